package export

import (
	"cmp"
	"crypto/sha256"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracefix/tracefix/profile"
)

// OTLPProfiles writes a ProfilesData message of OTLP, which also is what a receiver is sent
// (ExportProfilesServiceRequest). The signal is in development: v1development of
// opentelemetry-proto, whose messages still change (docs/specification.md, profiles.proto).
//
// Each process is a resource with one profile for each kind of value: wall and cpu time in
// nanoseconds, or a weight. A sample is one distinct stack of one thread; a location tells what
// its frame is (profile.frame.type) and how a repair put it back (tracefix.repair).
func OTLPProfiles(w io.Writer, p *profile.Profile, o Options) error {
	x := newOTLPWriter(p, &o)
	out := newBuffer(w)
	time, weights := o.weights(p)
	for _, pr := range x.processes() {
		var profiles []byte
		if time {
			x.stretches(pr.threads)
			profiles = x.appendProfile(profiles, "wall", profile.Nanoseconds, x.wall)
			profiles = x.appendProfile(profiles, "cpu", profile.Nanoseconds, x.cpu)
		}
		for _, i := range weights {
			profiles = x.appendProfile(profiles, p.Weights[i].Name, p.Weights[i].Unit, x.values(pr.threads, i))
		}
		if len(profiles) == 0 {
			continue
		}
		resource := x.resource(pr.Process)
		scope := appendText(nil, 1, o.exporter())
		scoped := append(appendBytesField(nil, 1, scope), profiles...)
		out.b = appendBytesField(out.b, 1, append(appendBytesField(nil, 1, resource), appendBytesField(nil, 2, scoped)...))
		if err := out.flush(); err != nil {
			return err
		}
	}
	o.warnBeyond(x.beyond)
	x.dictionary(out)
	return out.flush()
}

type otlpWriter struct {
	p      *profile.Profile
	o      *Options
	skip   []bool
	timing *profile.Timing

	// Tables of the dictionary, whose entry 0 is nothing, with the numbers of their entries.
	strings, attributes, mappings, functions, locations, stacks otlpTable

	stackIDs  map[otlpStack]uint64
	frames    map[otlpFrame]uint64 // locations of frames that a repair put back
	recorded  []uint64             // locations of the others by frame; 0: not met
	wall, cpu []otlpSample         // of the process
	ids       []byte
	beyond    bool // an amount is larger than numbers are
}

// An otlpTable is a table of the dictionary: its entries in order, by their bytes. Entries of deep
// stacks are long, so each is held once, in pieces that do not move.
type otlpTable struct {
	field  protowire.Number
	ids    map[string]uint64 // by the entry, or by the hash of one that is not shorter than that
	pieces [][]byte
	size   int // of the pieces
}

func (t *otlpTable) id(entry []byte) uint64 {
	key := entry
	if len(entry) >= sha256.Size {
		sum := sha256.Sum256(entry)
		key = sum[:]
	}
	id, ok := t.ids[string(key)]
	if !ok {
		id = uint64(len(t.ids))
		t.ids[string(key)] = id
		t.add(entry)
	}
	return id
}

func (t *otlpTable) add(entry []byte) {
	const piece = 1 << 20
	last := len(t.pieces) - 1
	if last < 0 || len(t.pieces[last]) >= piece {
		t.pieces = append(t.pieces, nil)
		last++
	}
	before := len(t.pieces[last])
	t.pieces[last] = appendBytesField(t.pieces[last], t.field, entry)
	t.size += len(t.pieces[last]) - before
}

// An otlpStack is a stack with what a repair says of it, and what stands below it.
type otlpStack struct {
	stack    profile.StackID
	inserted int
	how      string
	off      bool
}

type otlpFrame struct {
	frame profile.FrameID
	how   string // of the repair that put it back
}

// An otlpSample is what a stack of a thread adds up to.
type otlpSample struct {
	stack  uint64
	labels string // numbers of its attributes, packed
	value  int64
}

func newOTLPWriter(p *profile.Profile, o *Options) *otlpWriter {
	x := &otlpWriter{p: p, o: o, skip: p.Table.Synthetic(), timing: p.Timing(), stackIDs: map[otlpStack]uint64{}, frames: map[otlpFrame]uint64{}, recorded: make([]uint64, p.Table.Frames())}
	for field, t := range map[protowire.Number]*otlpTable{1: &x.mappings, 2: &x.locations, 3: &x.functions, 5: &x.strings, 6: &x.attributes, 7: &x.stacks} {
		*t = otlpTable{field: field, ids: map[string]uint64{}}
		t.id(nil)
	}
	return x
}

// An otlpProcess is a process with those of its threads that are written.
type otlpProcess struct {
	*profile.Process
	threads []*profile.Thread
}

// processes are those of the threads that are written, in their order.
func (x *otlpWriter) processes() (list []*otlpProcess) {
	seen := map[*profile.Process]*otlpProcess{}
	for _, th := range x.o.threads(x.p) {
		pr := seen[th.Owner()]
		if pr == nil {
			pr = &otlpProcess{Process: th.Owner()}
			seen[pr.Process] = pr
			list = append(list, pr)
		}
		pr.threads = append(pr.threads, th)
	}
	return list
}

func (x *otlpWriter) str(s string) uint64 {
	return x.strings.id([]byte(strings.ToValidUTF8(s, "\uFFFD")))
}

// anyText and anyInt are an AnyValue.
func anyText(s string) []byte { return appendText(nil, 1, s) }
func anyInt(v int64) []byte   { return appendNumber(nil, 3, uint64(v)) }

// attribute returns the number of a KeyValueAndUnit.
func (x *otlpWriter) attribute(key string, value []byte) uint64 {
	return x.attributes.id(appendBytesField(appendVarintField(nil, 1, x.str(key)), 2, value))
}

// resource tells of a process by the semantic conventions.
func (x *otlpWriter) resource(pr *profile.Process) (b []byte) {
	add := func(key string, value []byte) {
		b = appendBytesField(b, 1, appendBytesField(appendText(nil, 1, key), 2, value))
	}
	add("service.name", anyText(pr.Title()))
	if pr.PID != 0 {
		add("process.pid", anyInt(pr.PID))
	}
	if pr.CommandLine != "" {
		add("process.command_line", anyText(pr.CommandLine))
	}
	add("process.runtime.name", anyText("dotnet"))
	// The title is what the output is called, which nobody knows any more where it has been sent to.
	add("tracefix.source", anyText(cmp.Or(x.p.Meta.Source, x.o.Name)))
	return b
}

// labels are the packed attributes of a thread's samples.
func (x *otlpWriter) labels(th *profile.Thread) []byte {
	b := protowire.AppendVarint(nil, x.attribute("thread.id", anyInt(th.TID)))
	if th.Name != "" {
		b = protowire.AppendVarint(b, x.attribute("thread.name", anyText(th.Name)))
	}
	return b
}

// stretches adds up the time of the threads of a process.
func (x *otlpWriter) stretches(threads []*profile.Thread) {
	x.wall, x.cpu = x.wall[:0], x.cpu[:0]
	for _, th := range threads {
		labels := string(x.labels(th))
		repairs := th.Repairs.Cursor()
		wall, cpu := otlpSums{}, otlpSums{}
		for st := range x.timing.Stretches(th) {
			id := x.stack(x.marked(&st.Sample, repairs.Of(st.Index)))
			x.wall = wall.add(x.wall, otlpSample{id, labels, st.Nanos()})
			if st.Type.OnCPU() {
				x.cpu = cpu.add(x.cpu, otlpSample{id, labels, st.Nanos()})
			}
		}
	}
}

// values adds up what the samples of the threads of a process weigh.
func (x *otlpWriter) values(threads []*profile.Thread, weight int) (list []otlpSample) {
	key := labelOf(x.p.Weights[weight].Name)
	for _, th := range threads {
		labels := x.labels(th)
		exact := map[otlpKey]float64{}
		sums := otlpSums{}
		for v := range x.p.Values(th, weight) {
			s := otlpSample{stack: x.stack(x.marked(&v.Sample, v.Repair))}
			s.labels = string(labels)
			if v.Name != "" {
				s.labels = string(protowire.AppendVarint(labels[:len(labels):len(labels)], x.attribute(key, anyText(v.Name))))
			}
			list = sums.add(list, s)
			k := otlpKey{s.stack, s.labels}
			exact[k] += v.Amount
			list[sums[k]].value = whole(exact[k], &x.beyond)
		}
	}
	return list
}

// otlpSums is where in a list the samples of a thread are.
type otlpSums map[otlpKey]int

type otlpKey struct {
	stack  uint64
	labels string
}

func (sums otlpSums) add(list []otlpSample, s otlpSample) []otlpSample {
	k := otlpKey{s.stack, s.labels}
	i, ok := sums[k]
	if !ok {
		sums[k] = len(list)
		return append(list, s)
	}
	list[i].value += s.value
	return list
}

func (x *otlpWriter) marked(s *profile.Sample, r *profile.Repair) otlpStack {
	k := otlpStack{stack: s.Stack, off: s.Type == profile.SampleOffCPU}
	if n := inserted(x.p.Table, s, r); n > 0 && !x.o.Plain {
		k.inserted, k.how = n, r.How
	}
	return k
}

// stack returns the number of a stack: its locations, leaf first.
func (x *otlpWriter) stack(k otlpStack) uint64 {
	if id, ok := x.stackIDs[k]; ok {
		return id
	}
	t := x.p.Table
	x.ids = x.ids[:0]
	if k.off {
		x.ids = protowire.AppendVarint(x.ids, x.location(otlpCode{Method: profile.Method{Name: profile.OffCPU, Kind: profile.Synthetic}}, ""))
	}
	for id, depth := k.stack, t.Depth(k.stack); id != 0; id, depth = t.Parent(id), depth-1 {
		f := t.Frame(id)
		if x.skip[t.Method(f)] {
			continue
		}
		how := ""
		if depth <= k.inserted {
			how = k.how
		}
		x.ids = protowire.AppendVarint(x.ids, x.frame(f, how))
	}
	var entry []byte
	if len(x.ids) > 0 {
		entry = appendBytesField(nil, 1, x.ids)
	}
	id := x.stacks.id(entry)
	x.stackIDs[k] = id
	return id
}

// frame returns the number of a frame's location. A deep stack asks for as many as it has frames,
// so those that were recorded, which are nearly all, are looked up without a hash.
func (x *otlpWriter) frame(f profile.FrameID, how string) uint64 {
	if how == "" && x.recorded[f] != 0 {
		return x.recorded[f]
	}
	k := otlpFrame{f, how}
	at, ok := x.frames[k]
	if !ok {
		t := x.p.Table
		fr := t.FrameAt(f)
		at = x.location(otlpCode{t.MethodAt(fr.Method), t.BeginOf(fr.Method), t.PlaceOf(f).Line, fr.Addr}, how)
		if how == "" {
			x.recorded[f] = at
		} else {
			x.frames[k] = at
		}
	}
	return at
}

// otlpFrameTypes are values of profile.frame.type.
var otlpFrameTypes = map[profile.FrameKind]string{profile.Managed: "dotnet", profile.Native: "native", profile.Kernel: "kernel"}

// An otlpCode is what a frame runs, and where in the source that stands.
type otlpCode struct {
	profile.Method
	begin profile.Place
	line  int
	addr  uint64
}

func (x *otlpWriter) location(m otlpCode, how string) uint64 {
	var entry []byte
	if m.Module != "" {
		entry = appendVarintField(entry, 1, x.mappings.id(appendVarintField(nil, 4, x.str(m.Module))))
	}
	entry = appendVarintField(entry, 2, m.addr)
	function := appendVarintField(nil, 1, x.str(cmp.Or(m.Full(), "?")))
	function = appendVarintField(function, 3, x.str(m.begin.File))
	function = appendVarintField(function, 4, uint64(m.begin.Line))
	line := appendVarintField(nil, 1, x.functions.id(function))
	entry = appendBytesField(entry, 3, appendVarintField(line, 2, uint64(m.line)))
	var attributes []byte
	if kind, ok := otlpFrameTypes[m.Kind]; ok {
		attributes = protowire.AppendVarint(attributes, x.attribute("profile.frame.type", anyText(kind)))
	}
	if how != "" {
		attributes = protowire.AppendVarint(attributes, x.attribute("tracefix.repair", anyText(how)))
	}
	if len(attributes) > 0 {
		entry = appendBytesField(entry, 4, attributes)
	}
	return x.locations.id(entry)
}

// appendProfile appends a profile of one kind of value to a scope; of nothing it appends none.
func (x *otlpWriter) appendProfile(b []byte, kind string, unit profile.Unit, samples []otlpSample) []byte {
	if len(samples) == 0 {
		return b
	}
	valueType := func(kind string, unit string) []byte {
		return appendVarintField(appendVarintField(nil, 1, x.str(kind)), 2, x.str(unit))
	}
	m := appendBytesField(nil, 1, valueType(kind, cmp.Or(string(unit), "count")))
	var s []byte
	for i := range samples {
		s = appendVarintField(s[:0], 1, samples[i].stack)
		s = appendBytesField(s, 2, []byte(samples[i].labels))
		s = appendBytesField(s, 4, protowire.AppendVarint(nil, uint64(samples[i].value)))
		m = appendBytesField(m, 2, s)
	}
	from, to := x.p.Meta.Span()
	if start := x.p.Meta.Start; !start.IsZero() {
		m = protowire.AppendFixed64(protowire.AppendTag(m, 3, protowire.Fixed64Type), uint64(start.UnixNano()+from))
	}
	m = appendVarintField(m, 4, uint64(to-from))
	m = appendBytesField(m, 5, valueType("cpu", string(profile.Nanoseconds)))
	return appendBytesField(b, 2, appendVarintField(m, 6, uint64(x.timing.Period)))
}

// dictionary writes what the profiles refer to.
func (x *otlpWriter) dictionary(out *buffer) {
	link := appendBytesField(nil, 4, nil) // no links but the one that is nothing
	tables := []*otlpTable{&x.mappings, &x.locations, &x.functions, {pieces: [][]byte{link}, size: len(link)}, &x.strings, &x.attributes, &x.stacks}
	size := 0
	for _, t := range tables {
		size += t.size
	}
	out.b = protowire.AppendVarint(protowire.AppendTag(out.b, 2, protowire.BytesType), uint64(size))
	for _, t := range tables {
		for _, piece := range t.pieces {
			out.b = append(out.b, piece...)
			if !out.flushed() {
				return
			}
		}
	}
}
