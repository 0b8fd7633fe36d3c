// Package load reads a nettrace or netperf file into a profile.Profile.
//
// The file is read once. Names stand at its end: until then frames are addresses, and samples
// a few bytes each.
package load

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Options of Profile. The zero value loads everything that a viewer shows.
type Options struct {
	// Source is the name of the input, for titles.
	Source string
	// Rules say how frames are named; Reference is what dotnet-trace does.
	// It also leaves words that can be no code in the stacks.
	Rules Rules
	// Symbols are directories with the ELF files, or their debug files, of what ran: they name
	// native functions that the trace does not. Their build id has to be the trace's.
	Symbols []string
	// Evidence also loads the stacks of other events, as profile.SampleEvent.
	Evidence bool
	// DepthLimit is the number of frames at which EventPipe cut stacks; 0 means 100,
	// or less where the stacks show that a tool cut them.
	DepthLimit int

	// Processes and Threads are ids or names of those that are wanted; nil: all.
	// A name may hold the wildcards * and ?.
	Processes, Threads []string

	// From and To, ns, are what will be selected; To 0: to the end. Without Evidence samples
	// outside are not kept, but for one on each side.
	From, To int64

	// Tracks are the groups of tracks wanted: "activities", "gc", "exceptions",
	// "contention", "events", "faults".
	Tracks []string
	// PairByThread pairs the starts and stops of activities by thread where they have
	// no ids: right for synchronous code, wrong for async.
	PairByThread bool

	// Take, if set, is given every event with its time in ns; stack interns the event's
	// stack, whose frames have names when the profile is returned.
	Take func(ev *nettrace.Event, ns int64, stack func() profile.StackID)

	// Observe, if set, is told of every event that a thread has had, before the model is: not
	// of the rundown, and not of what the system tells of itself. What it is given is only valid
	// during the call.
	Observe func(*Observed)

	// NoSamples keeps no samples: for who only wants what Take or Observe is given.
	NoSamples bool

	// Table takes the names and stacks; nil: a new one.
	Table *profile.Table

	// Weights are what the stacks of other events are profiled by: alloc, exceptions,
	// contention, wait, EVENT or EVENT=FIELD. These events become samples of type
	// profile.SampleEvent that have a profile.Value, with or without a stack.
	Weights []string

	// Warn is told of each defect of the file that was skipped.
	Warn func(*nettrace.FormatError)
}

// Info tells what was in the file beside the profile.
type Info struct {
	Header     nettrace.Header
	Stats      nettrace.Stats
	Events     int64 // events read
	Samples    int64 // CPU samples, on-CPU or not
	Stacked    int64 // other events with a stack
	Cut        int64 // samples whose stack is cut
	Frames     int   // distinct frames
	Unresolved int   // of these, without a name
	Rundown    bool  // the names of the methods are complete
	BadNames   int64 // method, module and mapping events that could not be read
}

// Profile reads a trace. Damage is told to o.Warn and what is whole is returned; an
// error means that nothing could be read. Others who want the events of the same reading
// are told them, too.
func Profile(ctx context.Context, open input.Opener, o *Options, others ...input.Consumer) (*profile.Profile, *Info, error) {
	if o == nil {
		o = &Options{}
	}
	l := newLoader(o)
	l.tracks, l.window = newTracker(ctx, l, open), newWindow(o)
	defer l.tracks.close()
	if _, err := input.Read(ctx, open, o.Warn, append([]input.Consumer{l}, others...)...); err != nil {
		return nil, nil, err
	}
	l.release()
	if m := &l.profile.Meta; o.PairByThread && len(m.WithoutIDs) > 0 {
		m.Notes = append(m.Notes, "recorded without activity ids: starts and stops are paired by thread, which is wrong for async code, so durations are guesses")
	}
	return l.profile, &l.info, nil
}

// A process is what the loader knows of one process.
type process struct {
	trace   *profile.Process
	names   *symbols
	stacks  records
	gen     int // of names when stacks was filled
	wanted  bool
	exited  bool
	gone    bool // another process has the id: threads that were found before are of this one
	since   int  // the event of Universal.System that gave it an id used before; 0: none did
	threads map[uint64]*thread
	events  bool // has some that no other track shows
}

// A thread is what the loader knows of one thread.
type thread struct {
	trace  *profile.Thread
	proc   *process
	wanted bool
	seen   bool    // had an event
	late   bool    // samples out of order
	perm   []int32 // if late: place of each sample in the order of time
	last   int64

	look    profile.Look    // the newest sample of the runtime's sampler
	noted   profile.StackID // of the newest sample
	deepest int             // frames of a sample

	// The newest stack, root first: the next one shares most of it.
	addrs []uint64
	ids   []profile.StackID
	gen   int

	window windowed

	wants  int64 // when the thread began to wait for a lock, if it does
	locked []profile.Interval
}

type loader struct {
	o       *Options
	r       *nettrace.Reader
	profile *profile.Profile
	table   *profile.Table
	info    Info

	procs       map[int]*process
	recent      [64]*thread // by their id: which had events lately
	order       []*process
	rows        map[*nettrace.Thread]*thread
	images      *Images
	sampler     map[uint64]bool // capture threads of the sample profiler
	lastSampler uint64          // the newest of them
	lastWalk    int64           // when it had walked a stack last, ns
	births      []birth
	classes     []Class // by frame, v6
	end         int64
	systems     int // events of Universal.System
	wantAll     bool

	sampled []profile.StackID // the stacks of samples, each once
	spool   *profile.Spool    // of the samples of all threads
	bridged []bool            // by stack: see holdsBridge; nil if none is
	noted   []bool            // by stack: it is among them

	tracks *tracker // nil: none are wanted
	weigh  *weigher // nil: no weights are asked for
	window *window  // nil: all samples are kept
	types  profile.TypeTally
	locked int // how many waits for locks are kept

	// What Options.Take is told of, and how it gets the stack: one function for all events.
	taken      *nettrace.Event
	takenAt    int64
	takenStack func() profile.StackID

	observed Observed
}

type birth struct {
	t  *thread
	at int64
}

func newLoader(o *Options) *loader {
	table := cmp.Or(o.Table, profile.NewTable())
	p := &profile.Profile{Table: table}
	spool := input.Aside(0)
	l := &loader{
		o:       o,
		table:   table,
		profile: p,
		weigh:   newWeigher(p, spool, o.Weights),
		procs:   map[int]*process{},
		rows:    map[*nettrace.Thread]*thread{},
		images:  newImages(o.Symbols),
		sampler: map[uint64]bool{},
		spool:   spool,
		wantAll: len(o.Processes) == 0,
	}
	l.takenStack = func() profile.StackID { return l.stack(l.thread(l.taken), l.taken, l.takenAt) }
	return l
}

// Begin implements input.Consumer.
func (l *loader) Begin(r *nettrace.Reader) {
	l.r = r
	l.info.Header = *r.Header()
}

// Event implements input.Consumer.
func (l *loader) Event(ev *nettrace.Event) error {
	l.event(ev)
	l.info.Events++
	return nil
}

// End implements input.Consumer.
func (l *loader) End() {
	l.info.Stats = l.r.Stats()
	l.info.Header.PointerSize = l.r.Header().PointerSize // stacks tell it in v1 and v2
	relay.Each(2, func(i int) {
		if i == 0 {
			l.finish()
		} else if l.tracks != nil && l.tracks.acts != nil {
			l.tracks.acts.arrange(l.end)
		}
	})
	if l.tracks != nil {
		l.tracks.finish()
	}
}

// release lets go of what only the reading needed: slices of tracks are made with the loader as long as the
// profile lives.
func (l *loader) release() {
	l.r, l.rows, l.images, l.window, l.taken, l.observed, l.births, l.recent = nil, nil, nil, nil, nil, Observed{}, nil, [64]*thread{}
	l.o = &Options{}
	for _, p := range l.order {
		p.names, p.stacks = nil, records{}
		for _, t := range p.threads {
			t.addrs, t.ids, t.perm = nil, nil, nil
		}
	}
}

// tellClipped tells of code whose size was no size.
func (l *loader) tellClipped(clipped map[int64]uint64) {
	if l.o.Warn == nil {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(clipped)) {
		l.o.Warn(&nettrace.FormatError{Offset: at, Where: "method or symbol", Err: fmt.Errorf("%w: its code would reach over that of others, and is read as if it ended at 0x%x", nettrace.ErrDamaged, clipped[at])})
	}
}

// tellRespelled tells of what was put right in the text of symbols.
func (l *loader) tellRespelled(parts []respelled) {
	for _, r := range parts {
		if l.o.Warn != nil {
			l.o.Warn(&nettrace.FormatError{Offset: r.offset, Where: "symbol", Err: fmt.Errorf("%w: %q, read as %q, which many symbols have", nettrace.ErrDamaged, r.was, r.is)})
		}
	}
}

// process returns the process with this id, which it adds if it is new.
func (l *loader) process(pid int) *process {
	if p := l.procs[pid]; p != nil {
		return p
	}
	return l.newProcess(pid, nil)
}

// newProcess gives an id to a process whose code these symbols name; nil: new ones.
func (l *loader) newProcess(pid int, names *symbols) *process {
	if names == nil {
		names = newSymbols(l.table, l.o.Rules, l.images)
	}
	p := &process{
		trace:   &profile.Process{PID: int64(pid)},
		names:   names,
		stacks:  records{other: map[uint64]profile.StackID{}},
		wanted:  l.wantAll || mayMatch(l.o.Processes, pid),
		threads: map[uint64]*thread{},
	}
	l.procs[pid] = p
	l.order = append(l.order, p)
	return p
}

// mayMatch reports whether id is in the list, or names are, which come later.
func mayMatch(list []string, id int) bool {
	for _, s := range list {
		n, err := strconv.Atoi(s)
		if err != nil || n == id {
			return true
		}
	}
	return false
}

// thread returns the thread an event is about.
func (l *loader) thread(ev *nettrace.Event) *thread {
	if ev.Thread != nil {
		if t, ok := l.rows[ev.Thread]; ok && !t.proc.gone {
			return t
		}
		if len(l.rows) > 1<<16 { // rows live until the next flush of the thread table
			clear(l.rows)
		}
		t := l.threadOf(ev.ProcessID, ev.Thread.ID)
		if t.trace.Name == "" {
			t.trace.Name = ev.Thread.Name
		}
		l.rows[ev.Thread] = t
		return t
	}
	return l.threadOf(ev.ProcessID, ev.ThreadID)
}

func (l *loader) threadOf(pid int, tid uint64) *thread {
	recent := &l.recent[tid%uint64(len(l.recent))]
	if t := *recent; t != nil && t.trace.TID == int64(tid) && t.proc.trace.PID == int64(pid) && !t.proc.gone {
		return t
	}
	p := l.process(pid)
	t := p.threads[tid]
	if t == nil {
		t = &thread{
			trace:  &profile.Thread{Process: p.trace, TID: int64(tid), Samples: profile.SamplesIn(l.spool), Values: profile.ValuesIn(l.spool), Walks: profile.WalksIn(l.spool), Tasks: profile.TaskMarksIn(l.spool)},
			proc:   p,
			wanted: p.wanted && (len(l.o.Threads) == 0 || mayMatch(l.o.Threads, int(tid))),
		}
		t.trace.Repairs = t.trace.NewRepairs()
		p.threads[tid] = t
	}
	*recent = t
	return t
}

// touch notes that t had an event.
func (l *loader) touch(t *thread, now int64) {
	if !t.seen {
		t.seen = true
		t.trace.First, t.trace.Last = now, now
		l.profile.Threads = append(l.profile.Threads, t.trace)
		return
	}
	t.trace.Last = max(t.trace.Last, now)
	t.trace.First = min(t.trace.First, now)
}

// stack interns the stack of ev.
func (l *loader) stack(t *thread, ev *nettrace.Event, now int64) profile.StackID {
	n := ev.Stack.Len()
	if n == 0 {
		return 0
	}
	p := t.proc
	if g := p.names.Generation(); g != p.gen {
		p.stacks.clear()
		p.gen = g
	}
	if ev.StackKey != 0 {
		if id, ok := p.stacks.get(ev.StackKey); ok {
			return id
		}
	}
	// The root end is what neighbours of one thread have in common.
	if t.gen != p.gen {
		t.gen = p.gen
		t.addrs, t.ids = t.addrs[:0], t.ids[:0]
	}
	same := 0
	for same < n && same < len(t.addrs) && t.addrs[same] == ev.Stack.At(n-1-same) {
		same++
	}
	id := profile.StackID(0)
	if same > 0 {
		id = t.ids[same-1]
	}
	t.addrs, t.ids = t.addrs[:same], t.ids[:same]
	for i := n - 1 - same; i >= 0; i-- {
		a := ev.Stack.At(i)
		id = l.table.Push(id, p.names.Frame(a, now))
		if len(t.ids) < 512 {
			t.addrs, t.ids = append(t.addrs, a), append(t.ids, id)
		}
	}
	if ev.StackKey != 0 {
		p.stacks.add(ev.StackKey, id)
	}
	return id
}

// keep stores a sample, if it is in the window.
func (l *loader) keep(t *thread, s profile.Sample) {
	if l.o.NoSamples {
		return
	}
	l.note(t, s.Stack)
	if l.window != nil {
		l.window.take(t, &s, l.info.Header.SamplingInterval)
		return
	}
	t.append(s)
}

func (t *thread) append(s profile.Sample) {
	if s.Time < t.last && t.trace.Samples.Len() > 0 {
		t.late = true
	}
	t.last = s.Time
	t.trace.Samples.Append(s)
}

// note takes in that a sample of t has the stack s.
func (l *loader) note(t *thread, s profile.StackID) {
	if s == t.noted {
		return
	}
	t.noted = s
	t.deepest = max(t.deepest, l.table.Depth(s))
	for int(s) >= len(l.noted) {
		l.noted = append(l.noted, make([]bool, max(1<<10, len(l.noted)))...)
	}
	if !l.noted[s] {
		l.noted[s] = true
		l.sampled = append(l.sampled, s)
	}
}

// defaultLimit is EP_MAX_STACK_DEPTH of the runtime.
const defaultLimit = 100

// finish names the frames and puts the profile together.
func (l *loader) finish() {
	h := &l.info.Header
	m := &l.profile.Meta
	m.Source = l.o.Source
	m.Version, m.Events, m.Lost = h.Version, l.info.Events, int64(l.info.Stats.Lost)
	m.Format = "nettrace " + strconv.Itoa(h.Version)
	if h.Version < 4 {
		m.Format = "netperf " + strconv.Itoa(h.Version)
	}
	m.Start, m.End = h.SyncTime, l.end
	m.PointerSize, m.Interval = h.PointerSize, h.SamplingInterval

	l.classes = make([]Class, l.table.Frames())
	for _, p := range l.order {
		if p.names.finished {
			continue // of the program before, see loader.system
		}
		p.names.bridge = bridgeAddress(h.PointerSize)
		p.names.Finish(func(f profile.FrameID, c Class) { l.classes[f] = c })
		l.tellClipped(p.names.clipped)
		l.tellRespelled(p.names.respelled)
	}
	m.Notes = append(m.Notes, l.images.notes()...)
	if note := NewerNote(l.info.Stats); note != "" {
		m.Notes = append(m.Notes, note)
	}
	if m.Untyped = l.types.Untyped(); m.Untyped {
		m.Notes = append(m.Notes, profile.UntypedNote)
		for _, p := range l.order {
			for _, t := range p.threads {
				t.trace.Locked = t.locked
			}
		}
	}
	l.info.Frames = l.table.Frames()
	for f := range l.table.Frames() {
		if l.table.MethodOf(profile.FrameID(f)).Kind == profile.Unresolved {
			l.info.Unresolved++
		}
	}
	if l.window != nil {
		l.window.finish(l)
	}
	l.selectNamed()
	l.losses()
	l.markCuts()
	if marks, ok := profile.ReadRepairMarks([]byte(l.r.Note(repairsNote))); ok {
		l.profile.SetRepairMarks(marks)
	}
	for _, t := range l.profile.Threads {
		l.info.Cut += int64(t.Samples.Cuts())
	}
	l.profile.PutAside()
	for _, p := range l.order {
		if p.wanted {
			l.profile.Processes = append(l.profile.Processes, p.trace)
		}
	}
}

// selectNamed drops processes and threads that a filter by name does not want.
func (l *loader) selectNamed() {
	for _, p := range l.order {
		p.wanted = p.wanted && text.List(l.o.Processes).MatchID(p.trace.PID, p.trace.Name)
		for _, t := range p.threads {
			t.wanted = t.wanted && p.wanted && text.List(l.o.Threads).MatchID(t.trace.TID, t.trace.Name)
		}
	}
	gone := map[*profile.Thread]bool{}
	for _, p := range l.order {
		for _, t := range p.threads {
			if !t.wanted {
				gone[t.trace] = true
			}
		}
	}
	if len(gone) > 0 {
		l.profile.Threads = slices.DeleteFunc(l.profile.Threads, func(t *profile.Thread) bool { return gone[t] })
	}
}

// losses turns gaps in sequence numbers and births of threads into losses and breaks.
func (l *loader) losses() {
	var all []int64 // breaks of every thread
	for _, g := range l.r.Losses() {
		if g.Count == 0 { // they came after all
			continue
		}
		loss := profile.Loss{From: l.r.Nanos(g.After), To: l.r.Nanos(g.Before), Events: int64(g.Count)}
		if l.sampler[g.CaptureThreadID] {
			// Samples of any thread may be among the lost events.
			all = append(all, loss.To)
		} else if p := l.procs[g.ProcessID]; p != nil && p.threads[g.CaptureThreadID] != nil {
			loss.Thread = p.threads[g.CaptureThreadID].trace
		}
		l.profile.Losses = append(l.profile.Losses, loss)
	}
	slices.Sort(all)
	births := map[*profile.Thread][]int64{}
	for _, b := range l.births {
		births[b.t.trace] = append(births[b.t.trace], b.at)
	}
	relay.Each(len(l.profile.Threads), func(i int) {
		t := l.profile.Threads[i]
		if own := births[t]; len(all)+len(own) > 0 {
			slices.Sort(own)
			t.Breaks = breaks(&t.Samples, all, own)
		}
	})
	text.SortRows(l.profile.Losses, func(a, b *profile.Loss) int { return cmp.Compare(a.To, b.To) })
}

// breaks returns the first time behind each sample that one of the lists has; these are
// ascending. More between two samples would say nothing new, and a thread has no more
// breaks than samples, however many losses and threads there are.
func breaks(samples *profile.Samples, lists ...[]int64) []int64 {
	var out []int64
	from, next := int64(math.MaxInt64), int64(math.MinInt64) // next is the one of from
	var s profile.Sample
	for c := samples.Cursor(); c.Read(&s); {
		if from <= s.Time && s.Time < next {
			continue
		}
		from, next = s.Time, math.MaxInt64
		for _, list := range lists {
			if i, _ := slices.BinarySearch(list, s.Time+1); i < len(list) {
				next = min(next, list[i])
			}
		}
		if next < math.MaxInt64 {
			out = append(out, next)
		}
		c.SkipTo(next) // what is before it says nothing new
	}
	slices.Sort(out) // samples may be late
	return slices.Compact(out)
}

// NewerNote tells of what was passed over since a later version of the format may have added it; ""
// is nothing.
func NewerNote(s nettrace.Stats) string {
	if s.Newer == 0 {
		return ""
	}
	return fmt.Sprintf("blocks or parts of unknown kinds were not read: %d, the first at offset %d; a later version of the format may have added them: update tracefix", s.Newer, s.NewerOffset)
}
