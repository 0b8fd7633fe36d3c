package export

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/compat"
	"github.com/tracefix/tracefix/profile"
)

// CompatChromium writes what dotnet-trace convert --format Chromium writes, byte for
// byte but for the exporter's name in the header, its float time and its unescaped
// categories included (dotnet-trace-convert.md section 3).
func CompatChromium(w io.Writer, tr *compat.Trace, o Options) error {
	c := newCompatWriter(w, tr, &o)
	c.str(`{"otherData": { "name": "`)
	c.b = appendScript(c.b, o.Name)
	c.str(`", "exporter": "`)
	c.b = appendScript(c.b, c.exporter)
	c.str(`" }, "traceEvents": [`)
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
			b := c.b
			if first {
				first = false
			} else {
				b = append(b, ", "...)
			}
			b = append(b, `{"name": "`...)
			b = append(b, c.frames[id].short...)
			b = append(b, head...)
			b = strconv.AppendInt(b, int64(id), 10)
			c.b = append(b, '}')
			c.flushed()
		}
		at = -1
		c.merge(th.Samples, 'B', 'E', emit)
	}
	c.str(`], "displayTimeUnit": "ms", "stackFrames": {`)
	for i := range c.frames {
		f := &c.frames[i]
		if i > 0 {
			c.str(", ")
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
		c.b = append(append(c.b, tail...), '}')
		if !c.flushed() {
			break
		}
	}
	c.str("}}")
	return c.flush()
}

// CompatSpeedscope writes what dotnet-trace convert --format Speedscope writes, byte
// for byte.
func CompatSpeedscope(w io.Writer, tr *compat.Trace, o Options) error {
	c := newCompatWriter(w, tr, &o)
	c.str(`{"exporter": "`)
	c.b = appendScript(c.b, c.exporter)
	c.str(`", "name": "`)
	c.b = appendScript(c.b, o.Name)
	c.str(`", "activeProfileIndex": 0, "$schema": "https://www.speedscope.app/file-format-schema.json", "shared": { "frames": [ `)
	for i := range c.frames {
		if i > 0 {
			c.str(", ")
		}
		c.str(`{ "name": "`)
		c.b = append(c.b, c.frames[i].full...)
		c.str(`" }`)
		c.flushed()
	}
	c.str(`] }, "profiles": [ `)
	var head []byte
	for i, th := range tr.Threads {
		if i > 0 {
			c.str(", ")
		}
		// The header needs the time of the last event: run the merge once for it.
		start, end, any := 0.0, 0.0, false
		c.merge(th.Samples, 'O', 'C', func(_ byte, _ int32, time float64) {
			if !any {
				start, any = time, true
			}
			end = time
		})
		c.str(`{ "type": "evented", "name": "`)
		c.b = appendScript(c.b, th.Name)
		c.str(`", "unit": "milliseconds", "startValue": `)
		c.b = appendReference(c.b, start)
		c.str(`, "endValue": `)
		c.b = appendReference(c.b, end)
		c.str(`, "events": [ `)
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
			b := c.b
			if first {
				first = false
			} else {
				b = append(b, ", "...)
			}
			b = append(b, head...)
			b = strconv.AppendInt(b, int64(id), 10)
			c.b = append(b, when...)
			c.flushed()
		})
		c.str("]}")
	}
	c.str("] }")
	return c.flush()
}

// A compatFrame is one frame of the reference: a full name.
type compatFrame struct {
	parent                int32 // at first sight; -1: none
	full, short, category []byte
}

type compatWriter struct {
	*buffer
	tr       *compat.Trace
	exporter string
	ids      []int32 // by method; -1: not met, -2: the empty name
	frames   []compatFrame

	nodes []profile.StackID // of the newest stack, by depth
	walk  []profile.StackID
	cur   []int32 // ids by depth; -2: skipped
	prev  []compatSpan
}

// A compatSpan is an open frame.
type compatSpan struct {
	time   float64
	metric float32
	depth  int32
	id     int32
}

// newCompatWriter numbers the frames: thread after thread, in order of first sight.
func newCompatWriter(w io.Writer, tr *compat.Trace, o *Options) *compatWriter {
	c := &compatWriter{buffer: newBuffer(w), tr: tr, exporter: o.exporter(), ids: make([]int32, tr.Table.Methods())}
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
func (c *compatWriter) expand(id profile.StackID) {
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

func (c *compatWriter) add(m profile.MethodID) int32 {
	full := c.tr.Table.MethodAt(m).Full()
	if full == "" {
		c.ids[m] = -2
		return -2
	}
	f := compatFrame{parent: -1, full: appendScript(nil, full)}
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
func (c *compatWriter) merge(samples []compat.Sample, open, close byte, emit func(kind byte, id int32, time float64)) {
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
				prev = append(prev, compatSpan{s.Time, s.Metric, int32(d), id})
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
