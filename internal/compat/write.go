package compat

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/profile"
)

// Options of the writers. The zero value works.
type Options struct {
	Name     string // the title
	Exporter string // name and version of this program; empty: "tracefix"
}

// Writers are the formats that dotnet-trace writes, by name.
var Writers = map[string]func(io.Writer, *Trace, Options) error{"chromium": Chromium, "speedscope": Speedscope}

// Chromium writes what dotnet-trace convert --format Chromium writes, byte for
// byte but for the exporter's name in the header, its float time and its unescaped
// categories included (dotnet-trace-convert.md section 3).
func Chromium(w io.Writer, tr *Trace, o Options) error {
	c := newWriter(w, tr, o)
	c.text(`{"otherData": { "name": "`)
	c.put(appendScript(c.AvailableBuffer(), o.Name))
	c.text(`", "exporter": "`)
	c.put(appendScript(c.AvailableBuffer(), c.exporter))
	c.text(`" }, "traceEvents": [`)
	var head, tail []byte
	first := true
	at, kind := -1.0, byte(0)
	for _, th := range tr.Threads {
		tid := strconv.AppendInt(nil, th.TID, 10)
		emit := func(k byte, id int32, time float64) {
			if time != at || k != kind {
				at, kind = time, k
				// Phase and time, which many events in a row share, and the thread.
				head = append(head[:0], `", "cat": "sampleEvent", "ph": "`...)
				head = append(head, k)
				head = append(head, `", "ts": `...)
				head = appendReference(head, time*1000)
				head = append(head, `, "pid": 0, "tid": `...)
				head = append(head, tid...)
				head = append(head, `, "sf": `...)
			}
			b := c.AvailableBuffer()
			if first {
				first = false
			} else {
				b = append(b, ", "...)
			}
			b = append(b, `{"name": "`...)
			b = append(b, c.frames[id].short...)
			b = append(b, head...)
			b = strconv.AppendInt(b, int64(id), 10)
			c.put(append(b, '}'))
		}
		at = -1
		c.merge(th.Samples, 'B', 'E', emit)
	}
	c.text(`], "displayTimeUnit": "ms", "stackFrames": {`)
	for i := range c.frames {
		f := &c.frames[i]
		if i > 0 {
			c.text(", ")
		}
		tail = append(tail[:0], '"')
		tail = strconv.AppendInt(tail, int64(i), 10)
		tail = append(tail, `": {"name": "`...)
		tail = append(tail, f.short...)
		tail = append(tail, `", "category": "`...)
		tail = append(tail, f.category...)
		tail = append(tail, '"')
		if f.parent >= 0 {
			tail = append(tail, `, "parent": `...)
			tail = strconv.AppendInt(tail, int64(f.parent), 10)
		}
		c.put(append(tail, '}'))
		if c.err != nil {
			break
		}
	}
	c.text("}}")
	return c.Flush()
}

// Speedscope writes what dotnet-trace convert --format Speedscope writes, byte
// for byte.
func Speedscope(w io.Writer, tr *Trace, o Options) error {
	c := newWriter(w, tr, o)
	c.text(`{"exporter": "`)
	c.put(appendScript(c.AvailableBuffer(), c.exporter))
	c.text(`", "name": "`)
	c.put(appendScript(c.AvailableBuffer(), o.Name))
	c.text(`", "activeProfileIndex": 0, "$schema": "https://www.speedscope.app/file-format-schema.json", "shared": { "frames": [ `)
	for i := range c.frames {
		if i > 0 {
			c.text(", ")
		}
		c.text(`{ "name": "`)
		c.put(c.frames[i].full)
		c.text(`" }`)
	}
	c.text(`] }, "profiles": [ `)
	var head []byte
	for i, th := range tr.Threads {
		if i > 0 {
			c.text(", ")
		}
		// The header needs the time of the last event: run the merge once for it.
		start, end, any := 0.0, 0.0, false
		c.merge(th.Samples, 'O', 'C', func(_ byte, _ int32, time float64) {
			if !any {
				start, any = time, true
			}
			end = time
		})
		c.text(`{ "type": "evented", "name": "`)
		c.put(appendScript(c.AvailableBuffer(), th.Name))
		c.text(`", "unit": "milliseconds", "startValue": `)
		c.put(appendReference(c.AvailableBuffer(), start))
		c.text(`, "endValue": `)
		c.put(appendReference(c.AvailableBuffer(), end))
		c.text(`, "events": [ `)
		first := true
		at, kind := -1.0, byte(0)
		var when []byte
		c.merge(th.Samples, 'O', 'C', func(k byte, id int32, time float64) {
			if time != at || k != kind {
				at, kind = time, k
				head = append(head[:0], `{ "type": "`...)
				head = append(head, k)
				head = append(head, `", "frame": `...)
				when = append(when[:0], `, "at": `...)
				when = append(appendReference(when, time), ' ', '}')
			}
			b := c.AvailableBuffer()
			if first {
				first = false
			} else {
				b = append(b, ", "...)
			}
			b = append(b, head...)
			b = strconv.AppendInt(b, int64(id), 10)
			c.put(append(b, when...))
		})
		c.text("]}")
	}
	c.text("] }")
	return c.Flush()
}

// A frame is one frame of the reference: a full name.
type frame struct {
	parent                int32 // at first sight; -1: none
	full, short, category []byte
}

type writer struct {
	*bufio.Writer
	err      error // of the newest write
	tr       *Trace
	exporter string
	ids      []int32 // by method; -1: not met, -2: the empty name
	frames   []frame

	nodes []profile.StackID // of the newest stack, by depth
	walk  []profile.StackID
	cur   []int32 // ids by depth; -2: skipped
	prev  []span
}

// A span is an open frame.
type span struct {
	time   float64
	metric float32
	depth  int32
	id     int32
}

// bufferSize is what is written at once: large enough that a call costs nothing.
const bufferSize = 128 << 10

func (c *writer) text(s string) { _, c.err = c.WriteString(s) }

// put writes what was appended to AvailableBuffer, or anything else.
func (c *writer) put(b []byte) { _, c.err = c.Write(b) }

// newWriter numbers the frames: thread after thread, in order of first sight.
func newWriter(w io.Writer, tr *Trace, o Options) *writer {
	c := &writer{Writer: bufio.NewWriterSize(w, bufferSize), tr: tr, exporter: cmp.Or(o.Exporter, "tracefix"), ids: make([]int32, tr.Table.Methods())}
	for i := range c.ids {
		c.ids[i] = -1
	}
	for _, th := range tr.Threads {
		c.nodes = c.nodes[:0]
		for i := range th.Samples {
			c.expand(th.Samples[i].Stack)
		}
	}
	return c
}

// expand makes cur the ids of a stack, numbering frames that are new. Only what
// differs from the stack before is looked at.
func (c *writer) expand(id profile.StackID) {
	t := c.tr.Table
	d := t.Depth(id)
	c.walk = c.walk[:0]
	for d > 0 && (d > len(c.nodes) || c.nodes[d-1] != id) {
		c.walk = append(c.walk, id)
		id = t.Parent(id)
		d--
	}
	c.nodes, c.cur = c.nodes[:d], c.cur[:d]
	for i := len(c.walk) - 1; i >= 0; i-- {
		m := t.Method(t.Frame(c.walk[i]))
		fid := c.ids[m]
		if fid == -1 {
			fid = c.add(m)
		}
		c.nodes = append(c.nodes, c.walk[i])
		c.cur = append(c.cur, fid)
	}
}

func (c *writer) add(m profile.MethodID) int32 {
	full := c.tr.Table.MethodAt(m).Full()
	if full == "" {
		c.ids[m] = -2
		return -2
	}
	f := frame{parent: -1, full: appendScript(nil, full)}
	for i := len(c.cur) - 1; i >= 0; i-- {
		if c.cur[i] >= 0 {
			f.parent = c.cur[i]
			break
		}
	}
	short := full
	if i := strings.IndexByte(full, '!'); i > 0 {
		f.category, short = []byte(full[:i]), full[i+1:]
	}
	f.short = appendScript(nil, short)
	id := int32(len(c.frames))
	c.frames = append(c.frames, f)
	c.ids[m] = id
	return id
}

// merge turns the samples of a thread into events, by section 3.1. Its float32 sums
// and its clamp are the reference's.
func (c *writer) merge(samples []Sample, open, close byte, emit func(kind byte, id int32, time float64)) {
	prev := c.prev[:0]
	c.nodes, c.cur = c.nodes[:0], c.cur[:0]
	last := 0.0
	end := func(n int) {
		for len(prev) > n {
			p := prev[len(prev)-1]
			prev = prev[:len(prev)-1]
			last = max(last, p.time+float64(p.metric))
			emit(close, p.id, last)
		}
	}
	for i := range samples {
		s := &samples[i]
		if c.err != nil {
			break
		}
		c.expand(s.Stack)
		// n counts the frames of prev that go on, d the depth of the next of cur.
		n, d := 0, 0
		for ; d < len(c.cur); d++ {
			id := c.cur[d]
			if id < 0 {
				continue
			}
			if n == len(prev) {
				break
			}
			p := &prev[n]
			// The conversion keeps a compiler from fusing the product into the sum.
			if int(p.depth) != d || p.id != id || p.time+float64(float64(p.metric)*1.001) < s.Time {
				break
			}
			p.metric = float32(p.metric + s.Metric)
			n++
		}
		end(n)
		for ; d < len(c.cur); d++ {
			if id := c.cur[d]; id >= 0 {
				last = max(last, s.Time)
				emit(open, id, last)
				prev = append(prev, span{s.Time, s.Metric, int32(d), id})
			}
		}
	}
	end(0)
	c.prev = prev
}

// appendScript appends s as .NET's HttpUtility.JavaScriptStringEncode escapes it.
func appendScript(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, '\\', 'b')
		case r == '\f':
			b = append(b, '\\', 'f')
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20 || r == '\'' || r == '<' || r == '>' || r == '&' || r == 0x85 || r == 0x2028 || r == 0x2029:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r) // an invalid byte becomes U+FFFD
		}
		i += n
	}
	return b
}

// appendReference appends v as .NET prints a double: shortest digits, an exponent
// below 0.0001 and above 15 digits (dotnet-trace-convert.md section 3.4).
func appendReference(b []byte, v float64) []byte {
	at := len(b)
	// The plain form with its shortest digits is right for all times that occur.
	if v >= 0.001 && v < 1e15 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	if v == 0 {
		return append(b, '0')
	}
	b = strconv.AppendFloat(b, v, 'e', -1, 64) // d.ddde±xx
	text := b[at:]
	e := len(text) - 1
	for text[e] != 'e' {
		e--
	}
	exp, _ := strconv.Atoi(string(text[e+1:]))
	// scale counts digits before the point: value = 0.digits x 10^scale.
	if scale := exp + 1; scale >= -3 && scale <= 15 {
		return strconv.AppendFloat(b[:at], v, 'f', -1, 64)
	}
	text[e] = 'E'
	return b
}
