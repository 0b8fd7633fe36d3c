package samples

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// isPprof recognises profile.proto: nothing but its fields as far as b goes, with a sample type of
// two numbers of strings among them, and something else.
func isPprof(b []byte) bool {
	const varints, packed = 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<12 | 1<<14 | 1<<15, 1 << 13
	sampleType, more := false, false
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		size := 0
		if n > 0 {
			size = protowire.ConsumeFieldValue(num, typ, b[n:])
		}
		if n < 0 || size < 0 {
			return sampleType && more && len(b) < input.SniffSize // it goes on behind what is looked at
		}
		asVarint := num <= 15 && 1<<num&(varints|packed) != 0
		if num > 15 || typ != protowire.VarintType && typ != protowire.BytesType || typ == protowire.VarintType != asVarint && num != 13 {
			return false
		}
		if num == 1 {
			msg, _ := protowire.ConsumeBytes(b[n:])
			sampleType = isValueType(msg)
			if !sampleType {
				return false
			}
		} else {
			more = true
		}
		b = b[n+size:]
	}
	return sampleType && more
}

// isValueType recognises a message of at most two small numbers.
func isValueType(msg []byte) bool {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 || num > 2 || typ != protowire.VarintType {
			return false
		}
		v, m := protowire.ConsumeVarint(msg[n:])
		if m < 0 || v > 1<<31 {
			return false
		}
		msg = msg[n+m:]
	}
	return true
}

// maxPprof bounds a profile, which is read as a whole: 1 GiB unpacked.
const maxPprof = 1 << 30

var errPprofSize = errors.New("a pprof profile of more than 1 GiB, which has to fit into memory; make one of less time")

// readPprof reads a profile.proto, unpacked. Each sample weighs what it counts of wall time, else
// of another time, else of what the profile shows by default.
func readPprof(ctx context.Context, r io.Reader, b *builder) error {
	data, err := io.ReadAll(io.LimitReader(&withContext{ctx, r}, maxPprof+1))
	if err != nil && !input.Broken(err) {
		return err
	}
	if err != nil {
		b.warn(int64(len(data)), "%w", err)
	}
	if len(data) > maxPprof {
		return &FormatError{Offset: maxPprof, Where: "pprof", Err: errPprofSize}
	}
	in, err := pprof.ParseUncompressed(b.wholeFields(data))
	if err != nil {
		return &FormatError{Where: "pprof", Err: fmt.Errorf("%w; copy the file again", err)}
	}
	x := &pprofReader{builder: b, in: in}
	x.values()
	x.main = "trace"
	if len(in.Mapping) > 0 && in.Mapping[0].File != "" {
		x.main = load.FileModule(in.Mapping[0].File)
	}
	x.own = slices.ContainsFunc(in.Comments, func(c string) bool { return strings.HasPrefix(c, "tracefix") })
	if in.TimeNanos > 0 {
		b.p.Meta.Start = time.Unix(0, in.TimeNanos).UTC()
	}
	for i, s := range in.Sample {
		if i&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x.sample(i, s)
	}
	if x.skipped > 0 {
		b.note("%s samples of the profile weigh less than nothing, as in a difference of two, and were left out", report.Count(x.skipped))
	}
	unit := "each as long as its " + x.shown
	if x.scale == 0 {
		unit = fmt.Sprintf("and each of its %s counts as a microsecond", x.shown)
	}
	b.sums(unit)
	return nil
}

// withContext is a reader that ends with its context.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (w *withContext) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// wholeFields leaves out the fields of a profile that are not whole, and tells of them.
func (b *builder) wholeFields(data []byte) []byte {
	bad := false
	var out []byte
	for at := 0; at < len(data); {
		num, typ, n := protowire.ConsumeField(data[at:])
		_ = typ
		if n < 0 {
			b.warn(int64(at), "expected a field of profile.proto: %v; the rest is left out", protowire.ParseError(n))
			if !bad {
				return data[:at]
			}
			return out
		}
		ok := num < 1 || num > 6 || num == 6 || wholeMessage(data[at:at+n])
		if !ok {
			b.warn(int64(at), "a message (field %d of profile.proto) that is not whole; it is left out", num)
			if !bad {
				out, bad = append(out, data[:at]...), true
			}
		} else if bad {
			out = append(out, data[at:at+n]...)
		}
		at += n
	}
	if bad {
		return out
	}
	return data
}

// wholeMessage reports whether a field that holds a message holds a whole one.
func wholeMessage(field []byte) bool {
	_, typ, n := protowire.ConsumeTag(field)
	if typ != protowire.BytesType {
		return false
	}
	msg, _ := protowire.ConsumeBytes(field[n:])
	for len(msg) > 0 {
		_, _, n := protowire.ConsumeField(msg)
		if n < 0 {
			return false
		}
		msg = msg[n:]
	}
	return true
}

type pprofReader struct {
	*builder
	in      *pprof.Profile
	own     bool // tracefix wrote it
	main    string
	value   int   // that a sample weighs
	scale   int64 // ns of one of it; 0: it is no time
	shown   string
	cpu     int // the value with the time on a CPU; -1: none
	skipped int
}

// nanos is how many nanoseconds a unit of time has.
var nanos = map[string]int64{"nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

// values chooses what samples weigh.
func (x *pprofReader) values() {
	x.cpu, x.value = -1, max(0, len(x.in.SampleType)-1)
	best := -1
	for i, t := range x.in.SampleType {
		rank := -1
		timed := nanos[t.Unit] > 0
		switch {
		case timed && t.Type == "wall":
			rank = 3
		case timed && t.Type == x.in.DefaultSampleType:
			rank = 2
		case timed:
			rank = 1
		case t.Type == x.in.DefaultSampleType:
			rank = 0
		}
		if rank > best {
			best, x.value = rank, i
		}
		if timed && t.Type == "cpu" {
			x.cpu = i
		}
	}
	if len(x.in.SampleType) == 0 {
		x.shown = "values"
		return
	}
	t := x.in.SampleType[x.value]
	x.scale, x.shown = nanos[t.Unit], t.Type
	if t.Unit != "" && x.scale == 0 {
		x.shown += " in " + t.Unit
	}
}

func (x *pprofReader) sample(i int, s *pprof.Sample) {
	weight := func(i int) int64 {
		if i < 0 || i >= len(s.Value) {
			return 0
		}
		v, scale := s.Value[i], x.scale
		if i != x.value {
			scale = nanos[x.in.SampleType[i].Unit]
		}
		scale = cmp.Or(scale, 1000)
		return min(max(v, -maxTime/scale), maxTime/scale) * scale
	}
	all := weight(x.value)
	if all <= 0 {
		if all < 0 {
			x.skipped++
		}
		return
	}
	x.stack = x.stack[:0]
	for k := len(s.Location) - 1; k >= 0; k-- {
		if s.Location[k] == nil {
			x.warn(0, "sample %d has a location that is not in the profile; it is left out", i)
			return
		}
		x.location(s.Location[k])
	}
	t := x.threadOf(s)
	off := false
	if n := len(x.stack); n > 0 {
		if m := x.p.Table.MethodOf(x.stack[n-1]); m.Name == profile.OffCPU && m.Module == "" {
			x.stack, off = x.stack[:n-1], true
		}
	}
	stack := x.push(x.stack)
	cpu := all
	if x.cpu >= 0 && x.cpu != x.value {
		cpu = min(max(0, weight(x.cpu)), all)
	}
	on := profile.SampleManaged
	if x.cpu >= 0 && !x.own {
		on = profile.SampleCPU
	}
	ok := true
	if off {
		ok = t.weigh(all, profile.Sample{Stack: stack, Type: profile.SampleOffCPU})
		cpu, all = 0, 0
	}
	if cpu > 0 {
		ok = ok && t.weigh(cpu, profile.Sample{Stack: stack, Type: on})
	}
	if all > cpu {
		ok = ok && t.weigh(all-cpu, profile.Sample{Stack: stack, Type: profile.SampleExternal})
	}
	if !ok {
		x.warn(0, "sample %d takes more time than a trace can have", i)
	}
}

// location appends the frames of a location: those that were inlined stand first.
func (x *pprofReader) location(l *pprof.Location) {
	file := ""
	if l.Mapping != nil {
		file = l.Mapping.File
	}
	if len(l.Line) == 0 {
		x.stack = append(x.stack, x.frame(profile.Method{Module: load.FileModule(file), Name: fmt.Sprintf("%#x", l.Address), Kind: profile.Unresolved}, l.Address))
		return
	}
	for k := len(l.Line) - 1; k >= 0; k-- {
		f := l.Line[k].Function
		if f == nil {
			continue
		}
		m := methodOf(f.Name)
		switch {
		case x.own:
			m.Kind = kindOf(f.SystemName, m)
		case m.Module == "" && m.Kind != profile.Synthetic && file != "":
			m.Module, m.Kind = load.FileModule(file), profile.Native
		}
		addr := l.Address
		if k > 0 || len(l.Line) > 1 {
			addr = 0 // one address for all of them is none
		}
		x.stack = append(x.stack, x.frame(m, addr))
	}
}

// kindOf tells what a function of tracefix's own output is by its system name, KIND::NAME.
func kindOf(system string, m profile.Method) profile.FrameKind {
	kind, _, _ := strings.Cut(system, "::")
	switch {
	case m.Module != "":
	case kind == "native":
		return profile.Native
	case kind == "kernel":
		return profile.Kernel
	case kind == "unresolved":
		return profile.Unresolved
	}
	return m.Kind
}

// threadOf finds the thread that the labels of a sample name.
func (x *pprofReader) threadOf(s *pprof.Sample) *thread {
	number := func(keys ...string) int64 {
		for _, k := range keys {
			if v := s.NumLabel[k]; len(v) > 0 {
				return v[0]
			}
		}
		return 0
	}
	text := func(keys ...string) string {
		for _, k := range keys {
			if v := s.Label[k]; len(v) > 0 {
				return v[0]
			}
		}
		return ""
	}
	t := x.thread(number("pid", "process_id"), number("tid", "thread_id", "thread"))
	if t.Name == "" {
		t.Name = text("thread", "thread_name", "comm")
		if t.Name == "" && t.TID == 0 {
			t.Name = "all threads"
		}
	}
	if p := t.Process; p.Name == "" {
		if p.Name = text("process", "process_name"); p.Name == "" {
			p.Name = x.main
		}
	}
	return t
}
