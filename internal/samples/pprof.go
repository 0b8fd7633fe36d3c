package samples

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

// maxPprofMemory bounds what a profile takes once it is parsed, which for many small messages is 70
// times its size.
const maxPprofMemory = 4 << 30

var errPprofMemory = errors.New("a pprof profile that takes too much memory to read; make one of less time")

var errPprofSize = errors.New("a pprof profile of more than 1 GiB, which has to fit into memory; make one of less time")

// readPprof reads a profile.proto, unpacked. What is time becomes samples that last as long (see
// time), what is bytes or a count becomes what samples weigh.
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
	data, memory := b.wholeFields(data)
	if memory > maxPprofMemory {
		return &FormatError{Where: "pprof", Err: fmt.Errorf("%w (some %d GiB)", errPprofMemory, memory>>30)}
	}
	in, err := pprof.ParseUncompressed(data)
	if err != nil {
		return &FormatError{Where: "pprof", Err: fmt.Errorf("%w; copy the file again", err)}
	}
	x := &pprofReader{builder: b, in: in, names: map[string]uint32{}}
	x.own = slices.ContainsFunc(in.Comments, func(c string) bool { return strings.HasPrefix(c, "tracefix") })
	x.onCPU = x.own && slices.Contains(in.Comments, profile.SampledCPUs)
	if period := in.PeriodType; x.onCPU && period != nil && nanos[period.Unit] == 1 {
		b.p.Meta.Interval = time.Duration(min(max(0, in.Period), maxTime))
	}
	if err := x.choose(b.opts.Weights, b.opts.AllWeights); err != nil {
		return err
	}
	x.main = "trace"
	if len(in.Mapping) > 0 && in.Mapping[0].File != "" {
		x.main = load.FileModule(in.Mapping[0].File)
	}
	if in.TimeNanos > 0 {
		b.p.Meta.Start = time.Unix(0, in.TimeNanos).UTC()
	}
	if x.value >= 0 {
		x.countSamples()
		b.p.Meta.Sums = x.count < 0
	}
	b.p.Meta.End = min(max(0, in.DurationNanos), maxTime) // or where the last thread ends
	for i, s := range in.Sample {
		if i&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x.sample(i, s)
	}
	if x.skipped > 0 {
		b.note("%s sample%s of the profile weigh%s less than nothing, as in a difference of two, and %s left out", report.Count(x.skipped), report.Plural(x.skipped), map[bool]string{true: "s"}[x.skipped == 1], map[bool]string{true: "was", false: "were"}[x.skipped == 1])
	}
	unit := ""
	if x.value >= 0 {
		unit = "each as long as its " + in.SampleType[x.value].Type
		if nanos[in.SampleType[x.value].Unit] == 0 {
			unit = fmt.Sprintf("each as long as the recorder's period for each of its %s", in.SampleType[x.value].Type)
		}
	}
	b.sums(unit)
	if others := x.others(); len(others) > 0 {
		b.note("the profile also holds %s: --weight chooses", strings.Join(others, ", "))
	}
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

// wholeFields leaves out the fields of a profile that are not whole, and tells of them. memory is
// about what the parsed profile takes, in bytes.
func (b *builder) wholeFields(data []byte) (whole []byte, memory int64) {
	bad := false
	var out []byte
	for at := 0; at < len(data); {
		num, typ, n := protowire.ConsumeField(data[at:])
		_ = typ
		if n < 0 {
			b.warn(int64(at), "expected a field of profile.proto: %v; the rest is left out", protowire.ParseError(n))
			if !bad {
				return data[:at], memory
			}
			return out, memory
		}
		if memory += 16 + int64(n); num <= 5 {
			memory += 120 + 16*int64(n) // a byte may be the number of a location: one more, and a pointer
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
		return out, memory
	}
	return data, memory
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
	onCPU   bool // and says that samples were taken on CPUs
	main    string
	value   int   // the value with the time of a sample; -1: time is not read
	scale   int64 // ns of one of it
	cpu     int   // the value with the time on a CPU; -1: none
	count   int   // the value with the number of samples; -1: it is not told, or too large
	weights []pprofWeight
	names   map[string]uint32 // indexes in Profile.Names
	found   []profile.Value   // scratch
	skipped int
}

// A pprofWeight is a value that becomes what a sample weighs.
type pprofWeight struct {
	value int     // its index
	scale float64 // of the weight's unit
}

// nanos is how many nanoseconds a unit of time has.
var nanos = map[string]int64{
	"nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9, "nanosecond": 1, "microsecond": 1e3, "millisecond": 1e6, "second": 1e9,
	"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "minutes": 60e9, "minute": 60e9,
}

// sizes is how many bytes a unit of memory has, as go tool pprof counts them.
var sizes = map[string]float64{
	"bytes": 1, "byte": 1, "b": 1, "kilobytes": 1 << 10, "kilobyte": 1 << 10, "kb": 1 << 10, "megabytes": 1 << 20, "megabyte": 1 << 20, "mb": 1 << 20,
	"gigabytes": 1 << 30, "gigabyte": 1 << 30, "gb": 1 << 30,
}

// noTime are parts of the names of values that are nanoseconds, and not of the thread whose stack
// it is: a mutex profile of Go charges those who let others wait.
var noTime = []string{"delay", "lock", "contention", "wait", "exception", "alloc"}

// isTime reports whether value i is the time that a stack ran or stood.
func (x *pprofReader) isTime(i int) bool {
	t := x.in.SampleType[i]
	if nanos[t.Unit] == 0 || x.own && t.Type != "wall" && t.Type != "cpu" {
		return false
	}
	name := strings.ReplaceAll(strings.ToLower(t.Type), "clock", "")
	return name == "wall" || !slices.ContainsFunc(noTime, func(part string) bool { return strings.Contains(name, part) })
}

// time finds the value that tells the time of samples: of wall time, else what the profile shows by
// default, else of another time, else numbers of samples, where the recorder tells how long one is.
// cpu is the value of the time on a CPU. They are -1 where there is none.
func (x *pprofReader) time() (value int, scale int64, cpu int) {
	value, cpu = -1, -1
	best := 0
	for i, t := range x.in.SampleType {
		if !x.isTime(i) {
			continue
		}
		rank := 1
		switch t.Type {
		case "wall":
			rank = 3
		case x.in.DefaultSampleType:
			rank = 2
		}
		if rank > best {
			best, value, scale = rank, i, nanos[t.Unit]
		}
		if t.Type == "cpu" {
			cpu = i
		}
	}
	if p := x.in.PeriodType; value < 0 && p != nil && x.in.Period > 0 && nanos[p.Unit] > 0 && !x.own {
		value = x.counts()
		scale = min(x.in.Period, maxTime/nanos[p.Unit]) * nanos[p.Unit]
		if p.Type == "cpu" {
			cpu = value
		}
	}
	return value, scale, cpu
}

// choose chooses what is read: asked, or what the profile shows by default, and with all the others
// behind it.
func (x *pprofReader) choose(asked []string, all bool) error {
	value, scale, cpu := x.time()
	x.value, x.cpu, x.count = -1, -1, -1
	types := x.in.SampleType
	if asked == nil {
		shown := slices.IndexFunc(types, func(t *pprof.ValueType) bool { return t.Type == x.in.DefaultSampleType })
		// Numbers of samples are the same as their time, told less well.
		timed := value >= 0 && (shown < 0 || shown == value || x.isTime(shown) || types[shown].Type == "samples")
		switch {
		case timed:
			asked = []string{profile.TimeWeight}
		case shown >= 0:
			asked = []string{types[shown].Type}
		case len(types) > 0:
			asked = []string{types[len(types)-1].Type} // as go tool pprof does
		}
		for i, t := range types {
			told := timed && (i == value || i == cpu || t.Type == "samples") || slices.Contains(asked, t.Type)
			// Who names these means the time of samples.
			if all && !told && t.Type != "wall" && t.Type != "cpu" && t.Type != profile.TimeWeight && len(asked) < math.MaxUint8 {
				asked = append(asked, t.Type)
			}
		}
	}
	for _, name := range asked {
		if name == profile.TimeWeight && value >= 0 {
			x.value, x.scale, x.cpu = value, scale, cpu
			continue
		}
		i := slices.IndexFunc(types, func(t *pprof.ValueType) bool { return t.Type == name })
		if i < 0 {
			return weightError("this pprof holds no %s; it holds %s", map[bool]string{true: "time", false: "sample type " + name}[name == profile.TimeWeight], strings.Join(x.types(nil), ", "))
		}
		w := profile.Weight{Name: name, Unit: profile.Unit(types[i].Unit), Sums: true}
		own := pprofWeight{value: i, scale: 1}
		switch unit := strings.ToLower(types[i].Unit); {
		case nanos[unit] > 0:
			w.Unit, own.scale = profile.Nanoseconds, float64(nanos[unit])
		case sizes[unit] > 0:
			w.Unit, own.scale = profile.Bytes, sizes[unit]
		case unit == "" || unit == "none":
			w.Unit = profile.NoUnit
		}
		x.p.Weights = append(x.p.Weights, w)
		x.weights = append(x.weights, own)
	}
	return nil
}

// maxTypes bounds the sample types that messages list.
const maxTypes = 20

// types lists the sample types that keep wants; nil wants all.
func (x *pprofReader) types(keep func(i int) bool) (list []string) {
	for i, t := range x.in.SampleType {
		if keep == nil || keep(i) {
			if len(list) == maxTypes {
				return append(list, "...")
			}
			list = append(list, strings.TrimSuffix(t.Type+" ("+t.Unit+")", " ()"))
		}
	}
	return list
}

// others lists what the profile holds and is not read. Time has numbers of samples beside it.
func (x *pprofReader) others() []string {
	return x.types(func(i int) bool {
		read := slices.ContainsFunc(x.weights, func(w pprofWeight) bool { return w.value == i })
		return !read && (x.value < 0 || !x.isTime(i) && x.in.SampleType[i].Type != "samples")
	})
}

// nanos is how long sample s is by value i, which counts in units of scale ns.
func (x *pprofReader) nanos(s *pprof.Sample, i int, scale int64) int64 {
	if i < 0 {
		return 0
	}
	return min(max(valueOf(s, i), -maxTime/scale), maxTime/scale) * scale
}

// valueOf is value i of a sample, which a broken file may not have.
func valueOf(s *pprof.Sample, i int) int64 {
	if i >= len(s.Value) {
		return 0
	}
	return s.Value[i]
}

// stackOf puts the stack of sample i into x.stack. It reports whether there is one.
func (x *pprofReader) stackOf(i int, s *pprof.Sample) bool {
	x.stack = x.stack[:0]
	for k := len(s.Location) - 1; k >= 0; k-- {
		if s.Location[k] == nil {
			x.warn(0, "sample %d has a location that is not in the profile; it is left out", i)
			return false
		}
		x.location(s.Location[k])
	}
	return true
}

func (x *pprofReader) sample(i int, s *pprof.Sample) {
	all, weighs, less := x.nanos(s, x.value, x.scale), false, false
	for _, w := range x.weights {
		v := valueOf(s, w.value)
		weighs, less = weighs || v > 0, less || v < 0
	}
	if less || all < 0 {
		x.skipped++
	}
	if all <= 0 && !weighs || !x.stackOf(i, s) {
		return
	}
	t := x.labelled(s)
	off := false
	if n := len(x.stack); n > 0 {
		if m := x.p.Table.MethodOf(x.stack[n-1]); m.Name == profile.OffCPU && m.Module == "" {
			x.stack, off = x.stack[:n-1], true
		}
	}
	stack := x.push(x.stack)
	if weighs {
		x.weigh(t, s, stack)
	}
	more := x.value >= 0 && valueOf(s, x.value) > maxTime/x.scale
	if all > 0 && !x.last(t, s, stack, all, off) || more {
		x.warn(0, "sample %d takes more time than a trace can have", i)
	}
}

// maxCounted bounds the samples that are made of numbers of them: 50 MB.
const maxCounted = 1 << 20

// countSamples finds the value that tells of how many samples a stack was seen in.
func (x *pprofReader) countSamples() {
	i := x.counts()
	if i < 0 {
		return
	}
	all := int64(0)
	for _, s := range x.in.Sample {
		if all += min(max(valueOf(s, i), 0), maxCounted+1); all > maxCounted {
			return
		}
	}
	x.count = i
}

// counts is the value with numbers of samples, -1 if there is none.
func (x *pprofReader) counts() int {
	return slices.IndexFunc(x.in.SampleType, func(t *pprof.ValueType) bool { return t.Type == "samples" && t.Unit == "count" })
}

// weigh appends a sample that weighs what s does.
func (x *pprofReader) weigh(t *thread, s *pprof.Sample, stack profile.StackID) {
	name := ""
	if x.own { // see labelOf of internal/export
		for _, key := range []string{"type", "exception", "lock", "wait", "event"} {
			if v := s.Label[key]; len(v) > 0 {
				name = v[0]
			}
		}
	}
	id, ok := x.names[name]
	if !ok {
		id = uint32(len(x.p.Names))
		x.p.Names = append(x.p.Names, name)
		x.names[name] = id
	}
	values := x.found[:0]
	for k, w := range x.weights {
		if v := valueOf(s, w.value); v > 0 {
			values = append(values, profile.Value{Weight: uint8(k), Name: id, Amount: float64(v) * w.scale})
		}
	}
	t.weighs(stack, values)
	x.found = values
}

// last appends samples that last as long as s does, all ns. It reports whether there was room for them.
func (x *pprofReader) last(t *thread, s *pprof.Sample, stack profile.StackID, all int64, off bool) bool {
	cpu := all
	if x.cpu >= 0 && x.cpu != x.value {
		cpu = min(max(0, x.nanos(s, x.cpu, nanos[x.in.SampleType[x.cpu].Unit])), all)
	}
	on := profile.SampleManaged
	if x.cpu >= 0 && (!x.own || x.onCPU) {
		on = profile.SampleCPU
	}
	n := int64(1)
	if x.count >= 0 {
		n = max(1, valueOf(s, x.count))
	}
	if off {
		return t.weigh(all, n, profile.Sample{Stack: stack, Type: profile.SampleOffCPU})
	}
	some := n // of them on a CPU
	switch {
	case cpu <= 0:
		some = 0
	case cpu < all:
		some = min(max(1, int64(math.Round(float64(n)*float64(cpu)/float64(all)))), n-1)
	}
	ok := true
	if cpu > 0 {
		ok = t.weigh(cpu, some, profile.Sample{Stack: stack, Type: on})
	}
	if all > cpu {
		ok = ok && t.weigh(all-cpu, n-some, profile.Sample{Stack: stack, Type: profile.SampleExternal})
	}
	return ok
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
		case x.own && m.Module == "":
			m.Kind = kindOf(f.SystemName, m)
		case m.Module == "" && m.Kind != profile.Synthetic && file != "":
			m.Module, m.Kind = load.FileModule(file), profile.Native
		}
		addr := l.Address
		if k > 0 || len(l.Line) > 1 {
			addr = 0 // one address for all of them is none
		}
		at := profile.Place{}
		if line := l.Line[k].Line; f.Filename != "" && line >= 0 && line <= math.MaxInt32 {
			at = profile.Place{File: f.Filename, Line: int(line)}
		}
		frame := x.frameAt(m, addr, at)
		if id := x.p.Table.Method(frame); f.Filename != "" && x.p.Table.BeginOf(id) == (profile.Place{}) {
			x.p.Table.SetBegin(id, profile.Place{File: f.Filename, Line: int(min(max(f.StartLine, 0), math.MaxInt32))})
		}
		x.stack = append(x.stack, frame)
	}
}

// kindOf tells what a function of tracefix's own output without a module is by its system name, KIND::NAME.
func kindOf(system string, m profile.Method) profile.FrameKind {
	kind, _, _ := strings.Cut(system, "::")
	switch {
	case kind == "native":
		return profile.Native
	case kind == "kernel":
		return profile.Kernel
	case kind == "unresolved":
		return profile.Unresolved
	}
	return m.Kind
}

// labelled finds the thread that the labels of a sample name.
func (x *pprofReader) labelled(s *pprof.Sample) *thread {
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
	who := program{number("pid", "process_id"), text("process", "process_name")}
	switch {
	case x.own && who.name == (&profile.Process{PID: who.pid}).Title():
		who.name = "" // what the writer calls a process without a name, and below a thread
	case who.name == "" && !x.own:
		who.name = x.main
	}
	tid, name := number("tid", "thread_id", "thread id", "thread"), text("thread", "thread_name", "thread name", "comm")
	only := ""
	if tid == 0 {
		only = name
	}
	t := x.threadNamed(who, tid, only)
	if t.Name == "" {
		t.Name = name
		if x.own && t.Name == (&profile.Thread{TID: t.TID}).Title() {
			t.Name = ""
		}
		if t.Name == "" && t.TID == 0 && !x.own {
			t.Name = "all threads"
		}
	}
	return t
}
