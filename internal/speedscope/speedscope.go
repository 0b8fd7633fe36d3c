// Package speedscope reads speedscope JSON as what it is: begin and end events of
// threads. The events go out as a Chromium trace, so the reader of those, its repair
// and all outputs serve speedscope files too.
//
// The format is that of speedscope's file-format-spec.ts: shared.frames, and profiles
// that are evented (open and close events) or sampled (stacks with weights).
package speedscope

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// A FormatError reports input that is not speedscope JSON.
type FormatError struct {
	Offset int64
	Where  string
	Err    error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("speedscope: offset %d: %s: %v", e.Offset, e.Where, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// frame is an entry of shared.frames. encoding/json bounds what it allocates by the
// input, and does not panic on any.
type frame struct {
	Name string `json:"name"`
}

// Events returns a reader of the trace events of a speedscope file. open is called
// twice: frames may stand behind the profiles that use them. warn is told of a file
// that breaks off or breaks the format; what stands before is read.
func Events(open func() (io.ReadCloser, error), warn func(*FormatError)) (io.ReadCloser, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	c := &converter{}
	err = c.walk(in, map[string]func(*json.Decoder) error{"exporter": c.exporter, "shared": c.shared})
	in.Close()
	var fe *FormatError
	if err != nil && !errors.As(err, &fe) {
		return nil, err
	}
	c.defect = fe
	if err := c.tails(); err != nil {
		return nil, err
	}
	if in, err = open(); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		defer in.Close()
		c.w = bufio.NewWriterSize(w, 64<<10)
		err := c.write(in)
		var fe *FormatError
		if errors.As(err, &fe) {
			c.defect, err = fe, nil
		}
		if err == nil {
			err = c.w.Flush()
		}
		w.CloseWithError(err)
	}()
	return &stream{r, c, warn}, nil
}

// stream is the reading end. It tells of the defect where its user is, so that warn
// never runs beside that.
type stream struct {
	*io.PipeReader
	c    *converter
	warn func(*FormatError)
}

func (e *stream) Read(p []byte) (int, error) {
	n, err := e.PipeReader.Read(p)
	if err == io.EOF && e.c.defect != nil && e.warn != nil {
		e.warn(e.c.defect)
		e.warn = nil
	}
	return n, err
}

type converter struct {
	w      *bufio.Writer
	defect *FormatError
	own    bool     // tracefix wrote the file
	frames [][]byte // the end of an event of each frame: `,"name":...,"sf":n}`
	names  []string
	count  int
	events int
	tids   map[int64]bool
	b      []byte
}

// walk reads the keys of the top-level object; those without a function are skipped.
func (c *converter) walk(in io.Reader, keys map[string]func(*json.Decoder) error) error {
	d := json.NewDecoder(in)
	fail := func(where string, err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		var se *json.SyntaxError
		var te *json.UnmarshalTypeError
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &se) || errors.As(err, &te) || errors.Is(err, errShape) {
			return &FormatError{d.InputOffset(), where, err}
		}
		return err
	}
	if err := open(d, '{'); err != nil {
		return fail("the file", err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail("the file", err)
		}
		name, _ := key.(string)
		f := keys[name]
		if f == nil {
			f = Skip
		}
		if err := f(d); err != nil {
			return fail(name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return fail("the file", err)
	}
	return nil
}

var errShape = errors.New("unexpected kind of value")

// open reads the delimiter that a value begins with.
func open(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%w: %v instead of %v", errShape, t, want)
	}
	return nil
}

// Skip passes over a value, of any depth, without keeping it.
func Skip(d *json.Decoder) error {
	depth := 0
	for {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// array calls each for every element of an array.
func array(d *json.Decoder, each func() error) error {
	if err := open(d, '['); err != nil {
		return err
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// object calls each for every key of an object.
func object(d *json.Decoder, each func(key string) error) error {
	if err := open(d, '{'); err != nil {
		return err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := each(key); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// exporter finds out whether tracefix wrote the file. Its frames have no synthetic roots
// by which a stack that was sampled is known: the events must say that they are samples.
func (c *converter) exporter(d *json.Decoder) error {
	var name any
	err := d.Decode(&name)
	c.own = name == "tracefix"
	return err
}

// dotnetRoot is a root of every stack that dotnet-trace writes, and tracefix where it
// writes what dotnet-trace would.
const dotnetRoot = "Threads"

// ownHolds is what an own file without it would say of its profiles: that their stacks
// were cut, as far as they were, where those of dotnet-trace are.
const ownHolds = `{"holds":"samples","limit":100}`

// tails makes the ends of the events of all frames. Those of tracefix's own output tell
// the module as in its Chromium JSON.
func (c *converter) tails() error {
	c.own = c.own && !slices.Contains(c.names, dotnetRoot)
	for i, full := range c.names {
		module, name := split(full)
		if full == profile.Bridge || full == profile.OffCPU {
			module = "tracefix"
		}
		n, err := json.Marshal(name)
		if err != nil {
			return err
		}
		if !c.own {
			c.frames = append(c.frames, fmt.Appendf(nil, `,"name":%s,"cat":"sampleEvent","sf":%d}`, n, i))
			continue
		}
		m, err := json.Marshal(module)
		if err != nil {
			return err
		}
		c.frames = append(c.frames, fmt.Appendf(nil, `,"name":%s,"cat":%s}`, n, m))
	}
	return nil
}

func (c *converter) shared(d *json.Decoder) error {
	return object(d, func(key string) error {
		if key != "frames" {
			return Skip(d)
		}
		return array(d, func() error {
			var f frame
			if err := d.Decode(&f); err != nil {
				return err
			}
			c.names = append(c.names, f.Name)
			return nil
		})
	})
}

// split is the rule of dotnet-trace: the module stands before the first "!".
func split(full string) (module, name string) {
	if i := strings.IndexByte(full, '!'); i > 0 {
		return full[:i], full[i+1:]
	}
	return "", full
}

func (c *converter) write(in io.Reader) error {
	c.tids = map[int64]bool{}
	c.w.WriteString(`{"stackFrames":{`)
	for i, n := range c.names {
		if i > 0 {
			c.w.WriteByte(',')
		}
		module, name := split(n)
		q, err := json.Marshal(map[string]string{"name": name, "category": module})
		if err != nil {
			return err
		}
		fmt.Fprintf(c.w, `"%d":%s`, i, q)
	}
	c.w.WriteString(`},"traceEvents":[`)
	err := c.walk(in, map[string]func(*json.Decoder) error{
		"profiles": func(d *json.Decoder) error {
			return array(d, func() error { return c.profile(d) })
		},
	})
	// The document ends whole in any case: what broke off was told.
	c.w.WriteString("]}")
	return err
}

// profile is what stands before the events or samples of a profile.
type oneProfile struct {
	tid   int64
	unit  string
	name  string
	start float64         // in units, of a sampled profile
	holds json.RawMessage // what tracefix says of its own, as in its Chromium JSON
}

// isSum reports whether tracefix says that the profile adds up the others.
func (p *oneProfile) isSum() bool {
	var own struct{ Sum bool }
	return len(p.holds) > 0 && json.Unmarshal(p.holds, &own) == nil && own.Sum
}

// microseconds is how many of them a unit is; units that are no time count as they are.
var microseconds = map[string]float64{"nanoseconds": 1e-3, "microseconds": 1, "milliseconds": 1e3, "seconds": 1e6}

var number = regexp.MustCompile(`\((\d{1,18})\)|Thread (\d{1,18})$`)

// thread tells the number of a profile's thread: that in "Thread (123)" or "Thread 123",
// if it is free, else its place in the file.
func (c *converter) thread(name string) int64 {
	c.count++
	id := int64(c.count)
	if all := number.FindAllStringSubmatch(name, -1); all != nil {
		m := all[len(all)-1] // that of the process may stand before
		if n, err := strconv.ParseInt(m[1]+m[2], 10, 64); err == nil && !c.tids[n] {
			id = n
		}
	}
	for c.tids[id] {
		id++
	}
	c.tids[id] = true
	return id
}

// profile reads one profile. The keys before events or samples are needed to read
// those, so a file with another order is refused.
func (c *converter) profile(d *json.Decoder) error {
	var p oneProfile
	named := false
	var samples [][]int
	begin := func() {
		if !named {
			named = true
			p.tid = c.thread(p.name)
			if c.own || !strings.HasPrefix(p.name, "Thread (") {
				c.metadata(p)
			}
		}
	}
	return object(d, func(key string) error {
		if p.isSum() {
			return Skip(d)
		}
		switch key {
		case "name":
			return d.Decode(&p.name)
		case "unit":
			return d.Decode(&p.unit)
		case "startValue":
			return d.Decode(&p.start)
		case "tracefix":
			return d.Decode(&p.holds)
		case "events":
			begin()
			return c.evented(d, p)
		case "samples":
			// Weights stand behind the samples, and a stack is as long as a call is
			// deep: this is the one part of a file that is held.
			return d.Decode(&samples)
		case "weights":
			begin()
			return c.sampled(d, p, samples)
		}
		return Skip(d)
	})
}

func (c *converter) metadata(p oneProfile) {
	q, err := json.Marshal(p.name)
	if err != nil {
		return
	}
	c.separator()
	own := ""
	if c.own {
		own = `,"tracefix":` + cmp.Or(string(p.holds), ownHolds)
	}
	fmt.Fprintf(c.w, `{"ph":"M","name":"thread_name","pid":0,"tid":%d,"ts":0,"args":{"name":%s%s}}`, p.tid, q, own)
}

func (c *converter) separator() {
	if c.events > 0 {
		c.w.WriteString(",\n")
	}
	c.events++
}

func (c *converter) event(ph byte, at float64, tid int64, frame int) error {
	if frame < 0 || frame >= len(c.frames) {
		return fmt.Errorf("%w: frame %d of %d", errShape, frame, len(c.frames))
	}
	c.separator()
	b := append(c.b[:0], `{"ph":"`...)
	b = append(b, ph)
	b = append(b, `","ts":`...)
	// Milliseconds times 1000 makes noise in the last digits; a trace's clock ticks
	// in nanoseconds.
	b = strconv.AppendFloat(b, math.Round(at*1000)/1000, 'f', -1, 64)
	b = append(b, `,"pid":0,"tid":`...)
	b = strconv.AppendInt(b, tid, 10)
	b = append(b, c.frames[frame]...)
	c.b = b
	_, err := c.w.Write(b)
	return err
}

func (c *converter) evented(d *json.Decoder, p oneProfile) error {
	scale, ok := microseconds[p.unit]
	if !ok {
		scale = 1
	}
	return array(d, func() error {
		var e struct {
			Type  string  `json:"type"`
			Frame int     `json:"frame"`
			At    float64 `json:"at"`
		}
		if err := d.Decode(&e); err != nil {
			return err
		}
		switch e.Type {
		case "O":
			return c.event('B', e.At*scale, p.tid, e.Frame)
		case "C":
			return c.event('E', e.At*scale, p.tid, e.Frame)
		}
		return fmt.Errorf("%w: event type %q", errShape, e.Type)
	})
}

// sampled turns stacks with weights into begins and ends: what two neighbours share
// stays open.
func (c *converter) sampled(d *json.Decoder, p oneProfile, samples [][]int) error {
	scale, ok := microseconds[p.unit]
	if !ok {
		scale = 1
	}
	var open []int
	at, i := p.start*scale, 0
	step := func(to []int) error {
		k := 0
		for k < len(open) && k < len(to) && open[k] == to[k] {
			k++
		}
		for j := len(open) - 1; j >= k; j-- {
			if err := c.event('E', at, p.tid, open[j]); err != nil {
				return err
			}
		}
		for _, f := range to[k:] {
			if err := c.event('B', at, p.tid, f); err != nil {
				return err
			}
		}
		open = to
		return nil
	}
	err := array(d, func() error {
		var w float64
		if err := d.Decode(&w); err != nil {
			return err
		}
		if i >= len(samples) {
			return fmt.Errorf("%w: more weights than samples", errShape)
		}
		if err := step(samples[i]); err != nil {
			return err
		}
		i++
		at += max(w, 0) * scale
		return nil
	})
	if err != nil {
		return err
	}
	return step(nil)
}
