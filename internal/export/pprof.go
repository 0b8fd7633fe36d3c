package export

import (
	"cmp"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracefix/tracefix/profile"
)

// Fields of pprof's profile.proto.
const (
	pprofSampleType        = 1
	pprofSample            = 2
	pprofMapping           = 3
	pprofLocation          = 4
	pprofFunction          = 5
	pprofString            = 6
	pprofTime              = 9
	pprofDuration          = 10
	pprofPeriodType        = 11
	pprofPeriod            = 12
	pprofComment           = 13
	pprofDefaultSampleType = 14
)

// Pprof writes a pprof profile, not compressed: the number of samples, wall time and
// CPU time of each distinct stack of each thread, with the labels thread, tid,
// process and pid. CPU time is that of samples taken on a CPU; of a thread that was
// in native code EventPipe cannot tell, and it counts as wall time only.
//
// The message is written field by field: profile.Profile of github.com/google/pprof
// would hold every location of every stack at once.
func Pprof(w io.Writer, p *profile.Profile, o Options) error {
	out := newBuffer(w)
	x := &pprofWriter{buffer: out, t: p.Table, strings: map[string]uint64{"": 0}, order: []string{""}}
	x.skip = p.Table.Synthetic()
	x.methods = make([]uint64, p.Table.Methods())
	x.frames = make([]uint64, p.Table.Frames())
	x.mappings = map[string]uint64{}

	x.time, x.weights = o.weights(p)
	if x.time {
		x.valueType(pprofSampleType, "samples", "count")
		x.valueType(pprofSampleType, "wall", "nanoseconds")
		x.valueType(pprofSampleType, "cpu", "nanoseconds")
	}
	for _, i := range x.weights {
		x.valueType(pprofSampleType, p.Weights[i].Name, cmp.Or(string(p.Weights[i].Unit), "count"))
	}
	x.mapping(mainProgram(p)) // the first mapping names the program
	timing := p.Timing()
	anyCPU, notes := false, []string{o.exporter(), o.title(p), p.Meta.Format}
	for _, th := range o.threads(p) {
		x.labels = x.labels[:0]
		if x.time && x.thread(th, timing) {
			anyCPU = true
		}
		for at, i := range x.weights {
			x.weighed(p, th, i, at)
		}
		if x.err != nil {
			return x.err
		}
	}
	o.warnBeyond(x.beyond)
	x.valueType(pprofPeriodType, "cpu", "nanoseconds")
	x.varint(pprofPeriod, uint64(timing.Period))
	from, to := p.Meta.Span()
	if !p.Meta.Start.IsZero() {
		x.varint(pprofTime, uint64(p.Meta.Start.UnixNano()+from))
	}
	x.varint(pprofDuration, uint64(to-from))
	if x.onCPU {
		notes = append(notes, profile.SampledCPUs)
	}
	for _, c := range notes {
		if c != "" {
			x.varint(pprofComment, x.str(c))
		}
	}
	shown := "wall"
	switch {
	case !x.time && len(x.weights) > 0:
		shown = p.Weights[x.weights[0]].Name
	case anyCPU:
		shown = "cpu"
	}
	x.varint(pprofDefaultSampleType, x.str(shown))
	for _, s := range x.order {
		x.b = protowire.AppendTag(x.b, pprofString, protowire.BytesType)
		x.b = protowire.AppendString(x.b, s)
		x.flushed()
	}
	return x.flush()
}

// mainProgram names the process with the most samples, of a machine's many.
func mainProgram(p *profile.Profile) string {
	main, most, samples := "trace", 0, map[*profile.Process]int{}
	for _, th := range p.Threads {
		samples[th.Process] += th.Samples.Written()
	}
	for i, pr := range p.Processes {
		if i == 0 || samples[pr] > most {
			main, most = pr.Title(), samples[pr]
		}
	}
	return main
}

type pprofWriter struct {
	*buffer
	t       *profile.Table
	skip    []bool
	strings map[string]uint64
	order   []string
	// Numbers of written functions by method, of locations by frame, 0: none yet. They
	// are given in the order of first use, so that what else is in the table, such as
	// frames of stacks that are not written, makes no difference.
	methods, frames       []uint64
	lastMethod, lastFrame uint64
	off                   uint64 // the location of profile.OffCPU; 0: none yet
	mappings              map[string]uint64
	msg, sub              []byte

	time    bool   // samples are wanted
	onCPU   bool   // and were taken on CPUs
	weights []int  // in the profile's Weights
	beyond  bool   // an amount is larger than numbers are
	labels  []byte // of the thread
	ids     []byte
	values  []byte // of a sample
}

// str returns the number of a string.
func (x *pprofWriter) str(s string) uint64 {
	id, ok := x.strings[s]
	if !ok {
		id = uint64(len(x.order))
		x.strings[s] = id
		// A protobuf string is valid UTF-8. Two names may become one: that is harmless.
		x.order = append(x.order, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return id
}

func (x *pprofWriter) varint(field protowire.Number, v uint64) {
	x.b = appendVarintField(x.b, field, v)
}

func appendVarintField(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b // the default
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBytesField(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func (x *pprofWriter) message(field protowire.Number) {
	x.b = appendBytesField(x.b, field, x.msg)
	x.msg = x.msg[:0]
	x.flushed()
}

func (x *pprofWriter) valueType(field protowire.Number, kind, unit string) {
	x.msg = appendVarintField(x.msg, 1, x.str(kind))
	x.msg = appendVarintField(x.msg, 2, x.str(unit))
	x.message(field)
}

// A pprofValue is what a stack of a thread adds up to.
type pprofValue struct {
	stack            profile.StackID
	off              bool // with the leaf profile.OffCPU
	count, wall, cpu int64
}

func (x *pprofWriter) thread(th *profile.Thread, timing *profile.Timing) (anyCPU bool) {
	var values []pprofValue
	type key struct {
		stack profile.StackID
		off   bool
	}
	index := map[key]int{}
	sts := timing.Cursor(th)
	for st, ok := sts.Next(); ok; st, ok = sts.Next() {
		k := key{st.Stack, st.Type == profile.SampleOffCPU}
		i, ok := index[k]
		if !ok {
			i = len(values)
			index[k] = i
			values = append(values, pprofValue{stack: k.stack, off: k.off})
		}
		v := &values[i]
		d := st.Nanos()
		v.count++
		v.wall += d
		if st.Type.OnCPU() {
			v.cpu += d
			anyCPU = true
			x.onCPU = x.onCPU || st.Type == profile.SampleCPU
		}
	}
	if len(values) == 0 {
		return false
	}
	for _, v := range values {
		x.values = protowire.AppendVarint(x.values[:0], uint64(v.count))
		x.values = protowire.AppendVarint(x.values, uint64(v.wall))
		x.values = protowire.AppendVarint(x.values, uint64(v.cpu))
		for range x.weights {
			x.values = protowire.AppendVarint(x.values, 0)
		}
		x.sample(th, v.stack, v.off, nil)
		if x.err != nil {
			break
		}
	}
	return anyCPU
}

// weighed writes what the samples of a thread weigh by p.Weights[weight], which is the sample
// type number at of those.
func (x *pprofWriter) weighed(p *profile.Profile, th *profile.Thread, weight, at int) {
	type key struct {
		stack profile.StackID
		name  string
	}
	sums := map[key]float64{}
	var order []key
	for v := range p.Values(th, weight) {
		k := key{v.Sample.Stack, v.Name}
		if _, ok := sums[k]; !ok {
			order = append(order, k)
		}
		sums[k] += v.Amount
	}
	zeros := at
	if x.time {
		zeros += 3
	}
	for _, k := range order {
		x.values = x.values[:0]
		for range zeros {
			x.values = protowire.AppendVarint(x.values, 0)
		}
		x.values = protowire.AppendVarint(x.values, uint64(whole(sums[k], &x.beyond)))
		for range len(x.weights) - 1 - at {
			x.values = protowire.AppendVarint(x.values, 0)
		}
		var label []byte
		if k.name != "" {
			label = x.label(nil, labelOf(p.Weights[weight].Name), k.name, 0)
		}
		x.sample(th, k.stack, false, label)
		if x.err != nil {
			return
		}
	}
}

// labelOf is the key of the label that says what weighs.
func labelOf(weight string) string {
	if key, ok := map[string]string{"alloc": "type", "exceptions": "exception", "contention": "lock", "wait": "wait"}[weight]; ok {
		return key
	}
	return "event"
}

// sample writes one stack of a thread, off the CPU or not, with x.values, and labels beside
// the thread's.
func (x *pprofWriter) sample(th *profile.Thread, stack profile.StackID, off bool, labels []byte) {
	if len(x.labels) == 0 {
		pr := th.Owner()
		x.labels = x.label(x.labels, "thread", th.Title(), 0)
		x.labels = x.label(x.labels, "tid", "", th.TID)
		x.labels = x.label(x.labels, "process", pr.Title(), 0)
		x.labels = x.label(x.labels, "pid", "", pr.PID)
	}
	x.ids = x.ids[:0]
	if off {
		x.ids = protowire.AppendVarint(x.ids, x.offCPU())
	}
	for id := stack; id != 0; id = x.t.Parent(id) { // leaf first
		if f := x.t.Frame(id); !x.skip[x.t.Method(f)] {
			x.ids = protowire.AppendVarint(x.ids, x.location(f))
		}
	}
	x.msg = appendBytesField(x.msg[:0], 1, x.ids)
	x.msg = appendBytesField(x.msg, 2, x.values)
	x.msg = append(append(x.msg, x.labels...), labels...)
	x.message(pprofSample)
}

// label appends a label with a text, or without one with a number.
func (x *pprofWriter) label(b []byte, key, text string, num int64) []byte {
	m := appendVarintField(nil, 1, x.str(key))
	if text != "" {
		m = appendVarintField(m, 2, x.str(text))
	} else {
		m = appendVarintField(m, 3, uint64(num))
		m = appendVarintField(m, 4, x.str("id"))
	}
	return appendBytesField(b, 3, m)
}

// location writes the location, function and mapping of a frame once, and returns the
// number of the location.
func (x *pprofWriter) location(f profile.FrameID) uint64 {
	if id := x.frames[f]; id != 0 {
		return id
	}
	x.lastFrame++
	x.frames[f] = x.lastFrame
	fr := x.t.FrameAt(f)
	me := x.t.MethodAt(fr.Method)
	mapping := uint64(0)
	if me.Module != "" {
		mapping = x.mapping(me.Module)
	}
	if x.methods[fr.Method] == 0 {
		x.lastMethod++
		x.methods[fr.Method] = x.lastMethod
		x.msg = appendVarintField(x.msg[:0], 1, x.lastMethod)
		x.msg = appendVarintField(x.msg, 2, x.str(cmp.Or(me.Full(), "?")))
		// Where the system name is the name, pprof takes both for mangled C++ and cuts
		// the arguments off.
		x.msg = appendVarintField(x.msg, 3, x.str(category(me)+"::"+me.Name))
		begin := x.t.BeginOf(fr.Method)
		if begin.File == "" {
			begin.File = x.t.PlaceOf(f).File
		}
		x.msg = appendVarintField(x.msg, 4, x.str(begin.File))
		x.msg = appendVarintField(x.msg, 5, uint64(begin.Line))
		x.message(pprofFunction)
	}
	x.sub = appendVarintField(x.sub[:0], 1, x.methods[fr.Method]) // line: its function
	x.sub = appendVarintField(x.sub, 2, uint64(x.t.PlaceOf(f).Line))
	x.msg = appendVarintField(x.msg[:0], 1, x.frames[f])
	x.msg = appendVarintField(x.msg, 2, mapping)
	x.msg = appendVarintField(x.msg, 3, fr.Addr)
	x.msg = appendBytesField(x.msg, 4, x.sub)
	x.message(pprofLocation)
	return x.frames[f]
}

// offCPU writes the location and function of profile.OffCPU once, and returns the number of
// the location.
func (x *pprofWriter) offCPU() uint64 {
	if x.off == 0 {
		x.lastFrame++
		x.lastMethod++
		x.off = x.lastFrame
		x.msg = appendVarintField(x.msg[:0], 1, x.lastMethod)
		x.msg = appendVarintField(x.msg, 2, x.str(profile.OffCPU))
		x.msg = appendVarintField(x.msg, 3, x.str("tracefix::"+profile.OffCPU))
		x.message(pprofFunction)
		x.sub = appendVarintField(x.sub[:0], 1, x.lastMethod)
		x.msg = appendVarintField(x.msg[:0], 1, x.off)
		x.msg = appendBytesField(x.msg, 4, x.sub)
		x.message(pprofLocation)
	}
	return x.off
}

// mapping returns the number of a module. Where it lay is not known to the model;
// what matters is that pprof need not look for its symbols.
func (x *pprofWriter) mapping(module string) uint64 {
	id, ok := x.mappings[module]
	if !ok {
		id = uint64(len(x.mappings) + 1)
		x.mappings[module] = id
		x.msg = appendVarintField(x.msg[:0], 1, id)
		x.msg = appendVarintField(x.msg, 5, x.str(module))
		x.msg = appendVarintField(x.msg, 7, 1) // has_functions
		x.message(pprofMapping)
	}
	return id
}
