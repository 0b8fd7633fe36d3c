package spans

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/profile"
)

// Facts are what Read finds out about a trace besides its samples.
type Facts struct {
	Form     chromium.Form
	BOM      bool
	Producer string   // "" if it is not recognised
	Keys     []string // at the top level of the object form, in order

	Phases      map[string]int64 // events by phase
	First, Last int64            // ns: time of the first and the last event; Last < First if none has a time
	NoTime      int64            // begins and ends without a time that can be used, which are left alone
	Size        int64            // bytes read
	StackFrames int              // entries of stackFrames
	Listed      int64            // samples of the list beside the events, which are not read

	// Depths counts the samples of dotnet-trace's threads by number of frames.
	Depths  []int64
	Samples int
	Managed int // samples in managed code
	Untold  int // samples of which the trace does not tell whether they are, weighted ones too
	// CutUntold is how many samples were cut as tracefix's own output says, which does not
	// tell which: their depth does not show it.
	CutUntold int
	// Crossing is how many recorded spans end behind the one that they lie in, and Clipped the
	// time behind it, ns, which the profile has no place for.
	Crossing int
	Clipped  int64
	// Reordered is how many begins and ends stand behind a later one of their thread: they are read
	// in order of time.
	Reordered int
	// Endless is how many complete events have no duration: their ends were not recorded, and they
	// take no time.
	Endless int
	Cut     int // samples with exactly the limit of frames, or see Recount
	Spikes  int // runs of them
	// Deepest is the depth of a sample that is deeper than the limit, if there is
	// one: then nothing was cut there, or a repair was made already. Cut is 0 then.
	Deepest int
	Limit   int // frames at which samples were taken for cut; 0: at none
	Threads []ThreadFacts

	phases   [256]int64
	empty    int64        // events that hold nothing
	byThread []seenThread // by chromium.Event.Thread
	timed    bool         // an event had a time
	earliest int64        // ns: of all events that had one
	latest   int64        // ns: of the one read last, which need not be the greatest
	head     bytes.Buffer
	cats     map[string]int
	names    map[string]int
}

// ThreadFacts are those of one pair of pid and tid.
type ThreadFacts struct {
	PID, TID    string // as they stand in the events; "" is missing
	Process     string // name; "" if not told
	Name        string // "" if not told
	Events      int64
	First, Last int64 // ns
	MaxDepth    int   // begins open at a time, synthetic frames included
	Samples     int
	Cut, Spikes int
	Unsorted    bool // begins and ends are not in order of time
	Unmatched   int  // ends without a begin, and begins without an end
	timed       bool
	pid         int64 // in the synthetic root
	// Sampled is the thread of the profile that holds the stacks; nil if there are none.
	Sampled *profile.Thread
}

// A seenThread is what is counted while events go by: little, for a hostile trace has a
// thread in each event.
type seenThread struct {
	events      int64
	first, last int64 // ns
	timed       bool
	latest      int64 // ns: of begins and ends
	nested      bool  // there are such
}

// Events returns the number of events.
func (f *Facts) Events() int64 {
	var n int64
	for _, c := range f.phases {
		n += c
	}
	return n
}

// noTrace returns an error of an array that has elements and none with the phase that all events have: it
// is a list of something else. strange of its elements are no objects.
func (f *Facts) noTrace(strange int64) error {
	n := f.Events() + strange
	if f.Form == chromium.FormObject || n == f.empty || f.Events() > f.phases[0] {
		return nil
	}
	return &chromium.FormatError{Where: "document", Err: fmt.Errorf("%w: a list of %d, of which none has the phase (ph) of an event", chromium.ErrNoTrace, n)}
}

// A NoSpan is a kind of events that are neither spans nor metadata.
type NoSpan struct {
	Count     int64
	One, Many string // what they are called
}

var noSpans = []struct{ phases, one, many string }{
	{"C", "counter value", "counter values"},
	{"iIRn", "instant", "instants"},
	{"beSTpF", "begin or end of something asynchronous", "begins and ends of what is asynchronous"},
	{"stf", "step of a flow", "steps of flows"},
	{"NOD", "event of an object", "events of objects"},
	{"P", "sample", "samples"},
	{"vV", "memory dump", "memory dumps"},
}

// NoSpans tells how many events there are of each kind that a profile does not hold.
func (f *Facts) NoSpans() (list []NoSpan) {
	others := f.Events() - f.empty
	for _, ph := range "BEXM" {
		others -= f.phases[ph]
	}
	add := func(n int64, one, many string) {
		if others -= n; n > 0 {
			list = append(list, NoSpan{n, one, many})
		}
	}
	for _, k := range noSpans {
		var n int64
		for _, ph := range k.phases {
			n += f.phases[ph]
		}
		add(n, k.one, k.many)
	}
	add(others, "other event", "other events")
	return list
}

// Unmatched returns the number of begins and ends without the other.
func (f *Facts) Unmatched() (n int) {
	for i := range f.Threads {
		n += f.Threads[i].Unmatched
	}
	return n
}

// thread returns what was seen of a thread.
func (f *Facts) thread(id int32) *seenThread {
	for int(id) >= len(f.byThread) {
		f.byThread = append(f.byThread, seenThread{})
	}
	return &f.byThread[id]
}

// see counts an event.
func (f *Facts) see(b *brief) {
	f.phases[b.phase]++
	if b.empty {
		f.empty++
	}
	t := f.thread(b.thread)
	t.events++
	if !b.timed || b.phase == 'M' {
		return
	}
	first, last := b.ns, b.ns
	if b.lasting && b.phase == 'X' {
		last += max(b.dur, 0)
	}
	if !t.timed || first < t.first {
		t.first = first
	}
	if !t.timed || last > t.last {
		t.last = last
	}
	t.timed = true
	if !f.timed || first < f.earliest {
		f.earliest, f.timed = first, true
	}
	f.latest = first
	if b.phase == 'X' && b.endless {
		f.Endless++
	}
	if b.phase != 'B' && b.phase != 'E' {
		return
	}
	if t.nested && first < t.latest {
		f.Reordered++
	} else {
		t.latest, t.nested = first, true
	}
}

func (f *Facts) depth(n int) {
	n = min(n, 1<<16)
	for n >= len(f.Depths) {
		f.Depths = append(f.Depths, make([]int64, 16+len(f.Depths))...)
	}
	f.Depths[n]++
}

// maxSeen limits the events that tell the producer.
const maxSeen = 2000

// hint notes what tells the producer.
func (f *Facts) hint(ev *chromium.Event) {
	if f.cats == nil {
		f.cats, f.names = map[string]int{}, map[string]int{}
	}
	f.cats[string(ev.Cat)]++
	if ev.Phase == 'M' || len(f.names) < 100 {
		f.names[string(ev.Name)]++
	}
}

// Write keeps the first bytes outside the events.
func (f *Facts) Write(p []byte) (int, error) {
	if n := 64<<10 - f.head.Len(); n > 0 {
		f.head.Write(p[:min(n, len(p))])
	}
	return len(p), nil
}

func (f *Facts) finish(d *reading, frames int) {
	f.Phases = map[string]int64{}
	for c, n := range f.phases {
		if n > 0 {
			f.Phases[strings.TrimRight(string([]byte{byte(c)}), "\x00")] = n
		}
	}
	f.StackFrames = frames
	f.Size = d.size
	f.Keys = slices.Clone(d.src.Keys())
	f.Threads = make([]ThreadFacts, len(f.byThread))
	for i, t := range f.byThread {
		f.Threads[i] = ThreadFacts{Events: t.events, First: t.first, Last: t.last, timed: t.timed}
	}
	for _, l := range d.all {
		t := &f.Threads[l.thread]
		t.Unsorted = l.sorted
		t.Unmatched += l.ignored + l.implied + l.depth(d.table.table)
		t.MaxDepth = max(t.MaxDepth, l.deepest)
		if l.t == nil {
			continue
		}
		if l.sampled() {
			t.Samples += l.t.Samples.Len()
			t.Sampled = l.t
		}
		t.Cut += l.t.Samples.Cuts()
		if l.t.Samples.Cuts() > 0 {
			t.Spikes += l.spikes
		}
		if l.t.Process != nil {
			t.pid, t.Process = l.t.Process.PID, l.t.Process.Name
		}
		if l.t.Name != "" {
			t.Name = l.t.Name
		}
	}
	for f.lastDepth() == 0 && len(f.Depths) > 0 {
		f.Depths = f.Depths[:len(f.Depths)-1]
	}
	f.First, f.Last = 0, -1
	timed := false
	for i := range f.Threads {
		t := &f.Threads[i]
		th := d.src.Threads()[i]
		t.PID, t.TID = th.PID, th.TID
		if t.Name == "" {
			t.Name = d.names[int32(i)]
		}
		if own, ok := d.programs[th.PID]; ok {
			t.pid, t.Process = own.PID, own.Process
		} else if t.Process == "" {
			t.Process = cmp.Or(d.procs[th.PID], textual(th.PID))
		}
		if t.timed {
			if !timed || t.First < f.First {
				f.First = t.First
			}
			if !timed || t.Last > f.Last {
				f.Last = t.Last
			}
			timed = true
		}
		f.Samples += t.Samples
		f.Cut += t.Cut
		f.Spikes += t.Spikes
	}
	f.byThread = nil
	f.Producer = f.producer()
	f.cats, f.names = nil, nil
	f.head.Reset()
}

// Recount counts cut samples and spikes anew from the profile. A repair tells that some
// stacks only look cut: they are as deep as the limit and complete.
func (t *Trace) Recount() {
	f := &t.Facts
	f.Cut, f.Spikes = 0, 0
	for i := range f.Threads {
		f.Threads[i].Cut, f.Threads[i].Spikes = 0, 0
	}
	for i, p := range t.Profile.Threads {
		th := &f.Threads[t.of[i]]
		th.Cut += p.Samples.Cuts()
		f.Cut += p.Samples.Cuts()
		before := profile.Whole
		for _, s := range p.Samples.All() {
			if s.Cut != profile.Whole && before == profile.Whole {
				th.Spikes++
				f.Spikes++
			}
			before = s.Cut
		}
	}
}

func (f *Facts) lastDepth() int64 {
	if len(f.Depths) == 0 {
		return 0
	}
	return f.Depths[len(f.Depths)-1]
}

// Timed reports whether an event of the thread has a time.
func (t *ThreadFacts) Timed() bool { return t.timed }

// ProcessID returns the pid: dotnet-trace writes 0 and tells it in the synthetic root.
func (t *ThreadFacts) ProcessID() int64 {
	if t.pid != 0 {
		return t.pid
	}
	return number(t.PID)
}

// producer guesses who wrote the trace, from what each of them alone writes
// (chromium-trace.md section 10).
func (f *Facts) producer() string {
	return cmp.Or(f.exporter(), f.byKeys(), f.byCategories())
}

// exporter is who the object otherData says.
func (f *Facts) exporter() string {
	var other struct {
		Exporter     string `json:"exporter"`
		BazelVersion string `json:"bazel_version"`
		BuildID      string `json:"build_id"`
	}
	head := f.head.Bytes()
	if i := bytes.Index(head, []byte(`"otherData"`)); i >= 0 {
		// The value may stand before or behind the events; it is small.
		if j := bytes.IndexByte(head[i:], '{'); j >= 0 {
			dec := json.NewDecoder(bytes.NewReader(head[i+j:]))
			_ = dec.Decode(&other) // what cannot be read tells nothing
		}
	}
	switch {
	case strings.HasPrefix(other.Exporter, "Microsoft.Diagnostics.Tracing.TraceEvent"):
		return "dotnet-trace (" + other.Exporter + ")"
	case other.Exporter != "":
		return other.Exporter
	case other.BazelVersion != "":
		return "Bazel " + other.BazelVersion
	case other.BuildID != "" || f.cats["build phase marker"] > 0 || f.cats["gc notification"] > 0:
		return "Bazel"
	}
	return ""
}

// byKeys goes by keys of the outer object, and names and categories, that one program alone writes.
func (f *Facts) byKeys() string {
	has := func(key string) bool { return slices.Contains(f.Keys, key) }
	head := f.head.Bytes()
	switch {
	case f.cats["sampleEvent"] > 0:
		return "dotnet-trace"
	case has("viztracer_metadata"):
		return "VizTracer"
	case has("schemaVersion") || has("deviceProperties") || has("distributedInfo"):
		return "PyTorch profiler"
	case has("beginningOfTime") || f.names["ExecuteCompiler"] > 0 || f.names["Total ExecuteCompiler"] > 0:
		return "clang -ftime-trace"
	case bytes.Contains(head, []byte(`"source":"DevTools"`)), bytes.Contains(head, []byte(`"source": "DevTools"`)):
		return "Chrome DevTools"
	case has("systemTraceEvents") && has("displayTimeUnit"):
		return "Fuchsia"
	case f.names["TracingStartedInBrowser"] > 0 && f.cats["__metadata"] > 0 && (f.cats["program"] > 0 || f.cats["parse"] > 0 || f.cats["check"] > 0):
		return "tsc --generateTrace"
	}
	return ""
}

// byCategories tells Chrome and Node.js apart, whose categories are alike: both have those of V8.
func (f *Facts) byCategories() string {
	node, chrome := false, false
	for c := range f.cats {
		if strings.Contains(c, "toplevel") {
			return "Chrome"
		}
		node = node || strings.HasPrefix(c, "node,") || strings.HasPrefix(c, "node.")
		chrome = chrome || strings.Contains(c, "devtools.timeline") || strings.Contains(c, "disabled-by-default-")
	}
	switch {
	case node:
		return "Node.js"
	case chrome || f.names["trace_buffer_overflowed"] > 0 || f.names["IsTimeTicksHighResolution"] > 0 || f.names["num_cpus"] > 0 && f.cats["__metadata"] > 0:
		return "Chrome"
	}
	return ""
}

// A program is one that tracefix's own output shows with another number than it had, since another
// one had it before.
type program struct {
	PID     int64  `json:"pid"`
	Process string `json:"process"`
}

// metadata notes the names that an M event tells. The last one counts.
func (d *reading) metadata(ev *chromium.Event) {
	name := string(ev.Name)
	if name != "process_name" && name != "thread_name" {
		return
	}
	var args struct {
		Name string          `json:"name"`
		Own  json.RawMessage `json:"tracefix"`
	}
	if json.Unmarshal(ev.Args, &args) != nil {
		return
	}
	if args.Own != nil && name == "thread_name" {
		d.mark(ev.Thread, args.Own)
	}
	if args.Name == "" {
		return
	}
	if name == "process_name" {
		d.procs[string(ev.PID)] = args.Name
		var own program
		if args.Own != nil && json.Unmarshal(args.Own, &own) == nil {
			if d.programs == nil {
				d.programs = map[string]program{}
			}
			d.programs[string(ev.PID)] = own
		}
	} else {
		d.names[ev.Thread] = args.Name
	}
}

// deeper reports whether more samples are deeper than limit than are just as deep.
func (f *Facts) deeper(limit int) bool {
	n := int64(0)
	for d := limit; d < len(f.Depths); d++ {
		if n += f.Depths[d]; d == limit {
			n = -n
		}
	}
	return n > 0
}
