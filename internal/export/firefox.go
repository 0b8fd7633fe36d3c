package export

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// firefoxVersion is that of the processed profile format that is written: the first one whose
// tables all threads share. Viewers upgrade what is older than they are, and refuse what is
// newer (docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler).
const firefoxVersion = 60

// Categories of frames, in the order of firefoxCategories. Those of methods are their kinds.
const (
	firefoxOther = 5
	firefoxIdle  = 6
)

// firefoxCategories are named and coloured for the graph of activity. A frame that a repair put
// back has the subcategory that tells how it is known. Each kind of viewer demands a grey one.
var firefoxCategories = [...]struct{ name, color string }{
	profile.Managed: {"Managed", "blue"}, profile.Native: {"Native", "green"}, profile.Kernel: {"Kernel", "orange"},
	profile.Unresolved: {"Unresolved", "lightblue"}, profile.Synthetic: {"tracefix", "yellow"},
	firefoxOther: {"Other", "grey"}, firefoxIdle: {"Waiting", "transparent"},
}

// Firefox writes the processed profile of the Firefox Profiler. Each sample weighs the time for
// which it speaks, in milliseconds, so that the call tree adds up what top does; of another
// weight what that weighs, with its name as the leaf. Tracks are threads that hold markers
// only. A frame that a repair put back has a subcategory that tells how it is known.
func Firefox(w io.Writer, p *profile.Profile, o Options) error {
	weight, err := o.oneWeight(p)
	if err != nil {
		return err
	}
	x := newFirefoxWriter(newBuffer(w), p, o.Plain)
	x.str(`{"libs":[],"threads":[`)
	threads := slices.Clone(o.threads(p))
	slices.SortStableFunc(threads, func(a, b *profile.Thread) int { return cmp.Compare(x.ids.ranks[a], x.ids.ranks[b]) })
	for _, th := range threads {
		if weighs(th, weight) {
			x.thread(th, weight)
		}
	}
	for _, t := range o.tracks(p) {
		x.track(t)
	}
	x.str("],\n" + `"shared":`)
	x.shared()
	x.meta(&o)
	return x.flush()
}

type firefoxWriter struct {
	*buffer
	p       *profile.Profile
	ids     *numbers
	plain   bool
	skip    []bool
	timing  *profile.Timing
	threads int
	last    int64 // time of the latest sample or marker

	strings map[string]int32
	order   []string
	hows    []string // subcategories; the first one is "Other"

	stacks    map[firefoxStack]int32
	leaves    map[firefoxLeaf]int32
	walk      []profile.StackID
	frames    map[firefoxFrame]int32
	funcs     map[profile.Method]int32
	resources map[string]int32
	sources   map[string]int32

	// Columns of the tables.
	stackFrame, stackPrefix                                                []int32
	frameFunc, frameCategory, frameSub, frameLine                          []int32
	funcName, funcResource, funcSource, funcLine, resourceName, sourceName []int32
	schemas                                                                []firefoxSchema
	stack, delta, weight, cpu, data, phase                                 []byte // columns of the thread that is written
	name, start, end                                                       []byte
	length                                                                 int
}

// A firefoxStack is a stack with what a repair says of it. inserted is the number of its
// outermost frames that were put back, allInserted where all were.
type firefoxStack struct {
	stack    profile.StackID
	inserted int32
	how      int32 // in hows
}

const allInserted = -1

// A firefoxLeaf is what stands below a stack though it is no frame of it.
type firefoxLeaf struct {
	stack    int32
	name     string
	category int32
}

// A firefoxFrame is a frame of the file; line 0 is not known.
type firefoxFrame struct{ fn, category, how, line int32 }

// A firefoxSchema tells of which fields the markers of one group of tracks are.
type firefoxSchema struct {
	group  string
	fields []string
}

func newFirefoxWriter(b *buffer, p *profile.Profile, plain bool) *firefoxWriter {
	return &firefoxWriter{
		buffer: b, p: p, ids: newNumbers(p), plain: plain, skip: p.Table.Synthetic(), timing: p.Timing(),
		strings: map[string]int32{}, hows: []string{"Other"},
		stacks: map[firefoxStack]int32{}, leaves: map[firefoxLeaf]int32{}, frames: map[firefoxFrame]int32{},
		funcs: map[profile.Method]int32{}, resources: map[string]int32{}, sources: map[string]int32{},
	}
}

func (x *firefoxWriter) text(s string) int32 {
	id, ok := x.strings[s]
	if !ok {
		id = int32(len(x.order))
		x.strings[s] = id
		x.order = append(x.order, s)
	}
	return id
}

// function returns the number of a method, which begins there.
func (x *firefoxWriter) function(m profile.Method, begin profile.Place) int32 {
	fn, ok := x.funcs[m]
	if !ok {
		fn = int32(len(x.funcName))
		x.funcs[m] = fn
		x.funcName = append(x.funcName, x.text(cmp.Or(m.Name, "?")))
		x.funcResource = append(x.funcResource, x.resource(m.Module))
		x.funcSource = append(x.funcSource, x.source(begin.File))
		x.funcLine = append(x.funcLine, int32(begin.Line))
	}
	return fn
}

func (x *firefoxWriter) frame(f firefoxFrame) int32 {
	id, ok := x.frames[f]
	if !ok {
		id = int32(len(x.frameFunc))
		x.frames[f] = id
		x.frameFunc = append(x.frameFunc, f.fn)
		x.frameCategory = append(x.frameCategory, f.category)
		x.frameSub = append(x.frameSub, f.how)
		x.frameLine = append(x.frameLine, f.line)
	}
	return id
}

// source returns the number of a source file, -1 for none.
func (x *firefoxWriter) source(file string) int32 {
	if file == "" {
		return -1
	}
	id, ok := x.sources[file]
	if !ok {
		id = int32(len(x.sourceName))
		x.sources[file] = id
		x.sourceName = append(x.sourceName, x.text(file))
	}
	return id
}

func (x *firefoxWriter) resource(module string) int32 {
	if module == "" || module == "?" {
		return -1
	}
	id, ok := x.resources[module]
	if !ok {
		id = int32(len(x.resourceName))
		x.resources[module] = id
		x.resourceName = append(x.resourceName, x.text(module))
	}
	return id
}

func (x *firefoxWriter) push(prefix, frame int32) int32 {
	x.stackFrame = append(x.stackFrame, frame)
	x.stackPrefix = append(x.stackPrefix, prefix)
	return int32(len(x.stackFrame) - 1)
}

// key returns the key of an outer part of a stack.
func (s firefoxStack) key(id profile.StackID, depth int) firefoxStack {
	switch {
	case s.inserted == 0:
		return firefoxStack{stack: id}
	case s.inserted == allInserted || depth <= int(s.inserted):
		return firefoxStack{id, allInserted, s.how}
	}
	return firefoxStack{id, s.inserted, s.how}
}

// node returns the number of a stack, -1 for one without frames, and adds what is new of it.
func (x *firefoxWriter) node(s firefoxStack) int32 {
	t := x.p.Table
	depth, at := t.Depth(s.stack), int32(-1)
	x.walk = x.walk[:0]
	for id := s.stack; id != 0; id, depth = t.Parent(id), depth-1 {
		known, ok := x.stacks[s.key(id, depth)]
		if ok {
			at = known
			break
		}
		x.walk = append(x.walk, id)
	}
	for _, id := range slices.Backward(x.walk) {
		depth++
		key := s.key(id, depth)
		if m := t.Method(t.Frame(id)); !x.skip[m] {
			how := int32(0)
			if key.inserted == allInserted {
				how = s.how
			}
			method := t.MethodAt(m)
			at = x.push(at, x.frame(firefoxFrame{x.function(method, t.BeginOf(m)), int32(method.Kind), how, int32(t.PlaceOf(t.Frame(id)).Line)}))
		}
		x.stacks[key] = at
	}
	return at
}

// leaf returns the number of a stack with something below that is no frame of it.
func (x *firefoxWriter) leaf(stack int32, name string, category int32) int32 {
	key := firefoxLeaf{stack, name, category}
	id, ok := x.leaves[key]
	if !ok {
		fn := x.function(profile.Method{Name: name, Kind: profile.Synthetic}, profile.Place{})
		id = x.push(stack, x.frame(firefoxFrame{fn: fn, category: category}))
		x.leaves[key] = id
	}
	return id
}

// marked is the stack of a sample with what its repair says.
func (x *firefoxWriter) marked(s *profile.Sample, r *profile.Repair) firefoxStack {
	f := firefoxStack{stack: s.Stack}
	if n := inserted(x.p.Table, s, r); n > 0 && !x.plain {
		f.inserted, f.how = int32(n), x.how(r.How)
	}
	return f
}

func (x *firefoxWriter) how(how string) int32 {
	how = "put back: " + how
	i := slices.Index(x.hows, how)
	if i < 0 {
		i = len(x.hows)
		x.hows = append(x.hows, how)
	}
	return int32(i)
}

// noFrames is what stands for the stack of a sample that has none.
const noFrames = "[no frames]"

// sample adds a row to the samples; node -1 is no data from then on. cpu is the time on a CPU since
// the row before.
func (x *firefoxWriter) sample(node int32, delta int64, weight string, cpu int64) {
	if x.length > 0 {
		x.stack, x.delta, x.weight, x.cpu = append(x.stack, ','), append(x.delta, ','), append(x.weight, ','), append(x.cpu, ',')
	}
	x.length++
	if node < 0 {
		x.stack = append(x.stack, "null"...)
	} else {
		x.stack = strconv.AppendInt(x.stack, int64(node), 10)
	}
	x.delta = text.AppendMillis(x.delta, delta)
	x.weight = append(x.weight, weight...)
	x.cpu = strconv.AppendInt(x.cpu, cpu, 10)
}

// thread writes the samples of a thread.
func (x *firefoxWriter) thread(th *profile.Thread, weight int) {
	kind := "tracing-ms"
	if weight < 0 {
		x.stretches(th)
	} else {
		kind = x.values(th, weight)
	}
	x.open(th.Owner(), th.Title(), x.ids.tids[th], th.First, th.TID == th.Owner().PID)
	x.str(`"samples":{"weightType":"` + kind + `","stack":[`)
	x.b = append(x.b, x.stack...)
	x.str(`],"timeDeltas":[`)
	x.b = append(x.b, x.delta...)
	x.str(`],"weight":[`)
	x.b = append(x.b, x.weight...)
	if weight < 0 {
		x.str(`],"threadCPUDelta":[`)
		x.b = append(x.b, x.cpu...)
	}
	x.str(`],"length":` + strconv.Itoa(x.length) + "}")
	x.stack, x.delta, x.weight, x.cpu, x.length = x.stack[:0], x.delta[:0], x.weight[:0], x.cpu[:0], 0
	x.close()
}

// stretches adds the samples of a thread as the time for which they speak.
func (x *firefoxWriter) stretches(th *profile.Thread) {
	repairs := th.Repairs.Cursor()
	at, end, cpu := int64(0), int64(0), int64(0)
	var weight []byte
	for st := range x.timing.Stretches(th) {
		if x.length > 0 && st.Start > end {
			x.sample(-1, end-at, "0", cpu)
			at, cpu = end, 0
		}
		node := x.node(x.marked(&st.Sample, repairs.Of(st.Index)))
		switch {
		case st.Type == profile.SampleOffCPU:
			node = x.leaf(node, profile.OffCPU, firefoxIdle)
		case node < 0:
			node = x.leaf(node, noFrames, firefoxOther)
		}
		weight = text.AppendMillis(weight[:0], st.Nanos())
		x.sample(node, st.Start-at, string(weight), cpu)
		at, end, cpu = st.Start, st.End, 0
		if st.Type.OnCPU() {
			cpu = st.Nanos()
		}
	}
	x.sample(-1, end-at, "0", cpu)
	x.last = max(x.last, end)
}

// values adds what the samples of a thread weigh and returns the type of that weight.
func (x *firefoxWriter) values(th *profile.Thread, weight int) string {
	kind, scale := "samples", 1.0
	switch x.p.Weights[weight].Unit {
	case profile.Bytes:
		kind = "bytes"
	case profile.Nanoseconds:
		kind, scale = "tracing-ms", 1e-6
	}
	at := int64(0)
	for v := range x.p.Values(th, weight) {
		node := x.node(x.marked(&v.Sample, v.Repair))
		if v.Name != "" || node < 0 {
			node = x.leaf(node, cmp.Or(v.Name, noFrames), firefoxOther)
		}
		x.sample(node, v.Sample.Time-at, strconv.FormatFloat(v.Amount*scale, 'f', -1, 64), 0)
		at = v.Sample.Time
	}
	x.last = max(x.last, at)
	return kind
}

// open begins a thread.
func (x *firefoxWriter) open(pr *profile.Process, name string, tid, first int64, main bool) {
	if x.threads++; x.threads > 1 {
		x.str(",")
	}
	x.str("\n" + `{"processType":"default","processStartupTime":0,"processShutdownTime":null,"registerTime":`)
	x.b = text.AppendMillis(x.b, max(0, first))
	x.str(`,"unregisterTime":null,"pausedRanges":[],"showMarkersInTimeline":true,"name":`)
	x.b = text.AppendJSON(x.b, name)
	x.str(`,"isMainThread":` + strconv.FormatBool(main) + `,"processName":`)
	x.b = text.AppendJSON(x.b, x.ids.title(pr))
	x.str(`,"pid":"` + strconv.FormatInt(x.ids.pid(pr), 10) + `","tid":` + strconv.FormatInt(tid, 10) + ",\n")
}

// close ends a thread with its markers.
func (x *firefoxWriter) close() {
	x.str(",\n" + `"markers":{"length":` + strconv.Itoa(x.length) + `,"category":[`)
	for i := range x.length {
		if i > 0 {
			x.str(",")
		}
		x.str(strconv.Itoa(firefoxOther))
		x.flushed()
	}
	for _, c := range []struct {
		name   string
		values *[]byte
	}{{"name", &x.name}, {"startTime", &x.start}, {"endTime", &x.end}, {"phase", &x.phase}, {"data", &x.data}} {
		x.str(`],"` + c.name + `":[`)
		x.b = append(x.b, *c.values...)
		*c.values = (*c.values)[:0]
		x.flushed()
	}
	x.length = 0
	x.str("]}}")
	x.flushed()
}

// track writes a track as a thread of markers.
func (x *firefoxWriter) track(t *profile.Track) {
	pr := x.ids.owner(t)
	x.ids.pid(pr)
	schema := x.schema(cmp.Or(t.Group, "events"))
	first := int64(-1)
	for s := range t.Slices {
		if first < 0 {
			first = s.Start
		}
		x.marker(s, schema)
	}
	if x.length == 0 {
		return
	}
	x.open(pr, trackName(t, false), x.ids.fresh(), first, false)
	x.str(`"samples":{"weightType":"samples","stack":[],"timeDeltas":[],"weight":null,"length":0}`)
	x.close()
}

func (x *firefoxWriter) schema(group string) *firefoxSchema {
	i := slices.IndexFunc(x.schemas, func(s firefoxSchema) bool { return s.group == group })
	if i < 0 {
		i = len(x.schemas)
		x.schemas = append(x.schemas, firefoxSchema{group: group})
	}
	return &x.schemas[i]
}

// marker adds a row to the markers. Its details are text: a viewer that takes them for numbers
// rounds them.
func (x *firefoxWriter) marker(s *profile.Slice, schema *firefoxSchema) {
	if x.length > 0 {
		for _, c := range []*[]byte{&x.name, &x.start, &x.end, &x.phase, &x.data} {
			*c = append(*c, ',')
		}
	}
	x.length++
	x.last = max(x.last, s.Start) // one that began before is drawn
	x.name = strconv.AppendInt(x.name, int64(x.text(cmp.Or(s.Name, "(unnamed)"))), 10)
	x.start = text.AppendMillis(x.start, s.Start)
	if s.Instant {
		x.phase = append(x.phase, '0')
		x.end = append(x.end, "null"...)
	} else {
		x.phase = append(x.phase, '1')
		x.end = text.AppendMillis(x.end, s.Start+max(0, s.Dur))
	}
	x.data = append(text.AppendJSON(append(x.data, `{"type":`...), schema.group), `,"category":`...)
	x.data = text.AppendJSON(x.data, s.Category)
	add := func(key string, value []byte) {
		if key == "type" || key == "category" || key == "stack" || key == "cause" { // those have a meaning of their own
			key += "_"
		}
		if !slices.Contains(schema.fields, key) {
			schema.fields = append(schema.fields, key)
		}
		x.data = append(text.AppendJSON(append(x.data, ','), key), ':')
		x.data = text.AppendJSON(x.data, string(value))
	}
	seen := map[string]bool{}
	for _, a := range s.Args {
		if seen[a.Key] {
			continue
		}
		seen[a.Key] = true
		if v, ok := a.Value.(string); ok {
			add(a.Key, []byte(v))
		} else {
			add(a.Key, appendValue(nil, a.Value))
		}
	}
	if s.Open {
		add("tracefix.open", []byte("true"))
	}
	x.data = append(x.data, '}')
}

// column writes a list of numbers.
func column[T any](x *firefoxWriter, name string, values []T, write func([]byte, T) []byte) {
	x.str(`"` + name + `":[`)
	for i, v := range values {
		if i > 0 {
			x.str(",")
		}
		x.b = write(x.b, v)
		x.flushed()
	}
	x.str("],")
}

func appendIndex(b []byte, v int32) []byte { return strconv.AppendInt(b, int64(v), 10) }

func appendParent(b []byte, v int32) []byte {
	if v < 0 {
		return append(b, "null"...)
	}
	return appendIndex(b, v)
}

// appendLine writes the number of a line; 0 is not known.
func appendLine(b []byte, v int32) []byte {
	if v == 0 {
		return append(b, "null"...)
	}
	return appendIndex(b, v)
}

// same writes a column in which every row is the same.
func (x *firefoxWriter) same(name, value string, n int) {
	column(x, name, make([]struct{}, n), func(b []byte, _ struct{}) []byte { return append(b, value...) })
}

// rows ends a table.
func (x *firefoxWriter) rows(n int, next string) {
	x.str(`"length":` + strconv.Itoa(n) + "},\n" + next)
}

// shared writes the tables that all threads share.
func (x *firefoxWriter) shared() {
	x.str(`{"stackTable":{`)
	column(x, "frame", x.stackFrame, appendIndex)
	column(x, "prefix", x.stackPrefix, appendParent)
	n := len(x.frameFunc)
	x.rows(len(x.stackFrame), `"frameTable":{`)
	column(x, "func", x.frameFunc, appendIndex)
	column(x, "category", x.frameCategory, appendIndex)
	column(x, "subcategory", x.frameSub, appendIndex)
	x.same("address", "-1", n)
	x.same("inlineDepth", "0", n)
	x.same("innerWindowID", "0", n)
	x.same("nativeSymbol", "null", n)
	column(x, "line", x.frameLine, appendLine)
	x.same("column", "null", n)
	x.rows(n, `"funcTable":{`)
	n = len(x.funcName)
	column(x, "name", x.funcName, appendIndex)
	column(x, "resource", x.funcResource, appendIndex)
	x.same("isJS", "false", n)
	x.same("relevantForJS", "false", n)
	column(x, "source", x.funcSource, appendParent)
	column(x, "lineNumber", x.funcLine, appendLine)
	x.same("columnNumber", "null", n)
	x.rows(n, `"resourceTable":{`)
	n = len(x.resourceName)
	column(x, "name", x.resourceName, appendIndex)
	x.same("lib", "null", n)
	x.same("host", "null", n)
	x.same("type", "1", n) // a library
	x.rows(n, `"nativeSymbols":{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0},"sources":{`)
	n = len(x.sourceName)
	x.same("id", "null", n)
	column(x, "filename", x.sourceName, appendIndex)
	x.str(`"length":` + strconv.Itoa(n) + `},`)
	column(x, "stringArray", x.order, text.AppendJSON)
	x.b[len(x.b)-1] = '}'
	x.str(",\n")
}

// meta writes what is known of the trace as a whole.
func (x *firefoxWriter) meta(o *Options) {
	m := &x.p.Meta
	x.str(`"meta":{"version":31,"preprocessedProfileVersion":` + strconv.Itoa(firefoxVersion) + `,"product":`)
	x.b = text.AppendJSON(x.b, cmp.Or(o.title(x.p), "trace"))
	x.str(`,"importedFrom":`)
	x.b = text.AppendJSON(x.b, o.exporter())
	x.str(`,"interval":`)
	x.b = text.AppendMillis(x.b, x.timing.Period)
	x.str(`,"startTime":`)
	start := int64(0)
	if !m.Start.IsZero() {
		start = m.Start.UnixNano()
	}
	x.b = text.AppendMillis(x.b, start)
	// The end is not part of what the viewer takes in: what happens at the end of the recording
	// would not be there.
	end := max(0, m.End)
	if x.last >= end {
		end = x.last + 1
	}
	x.str(`,"profilingStartTime":0,"profilingEndTime":`)
	x.b = text.AppendMillis(x.b, end)
	x.str(`,"processType":0,"stackwalk":1,"symbolicated":true,"usesOnlyOneStackType":true,"sourceCodeIsNotOnSearchfox":true,"keepProfileThreadOrder":true` +
		`,"sampleUnits":{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"},"categories":[`)
	for i, c := range firefoxCategories {
		if i > 0 {
			x.str(",")
		}
		x.str("\n" + `{"name":"` + c.name + `","color":"` + c.color + `",`)
		column(x, "subcategories", x.hows, text.AppendJSON)
		x.b[len(x.b)-1] = '}'
	}
	x.str(`],"markerSchema":[`)
	for i := range x.schemas {
		if i > 0 {
			x.str(",")
		}
		x.markerSchema(&x.schemas[i])
	}
	x.str("]}}\n")
}

func (x *firefoxWriter) markerSchema(s *firefoxSchema) {
	x.str("\n" + `{"name":`)
	x.b = text.AppendJSON(x.b, s.group)
	x.str(`,"display":["marker-chart","marker-table","timeline-overview"],`)
	column(x, "fields", append([]string{"category"}, s.fields...), func(b []byte, key string) []byte {
		b = text.AppendJSON(append(b, `{"key":`...), key)
		b = text.AppendJSON(append(b, `,"label":`...), key)
		return append(b, `,"format":"string"}`...)
	})
	x.b[len(x.b)-1] = '}'
}
