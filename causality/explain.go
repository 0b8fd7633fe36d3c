package causality

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Time is where the time of an activity went, in ns. At each instant the first that holds
// counts, in the order of the fields, so that they add up to the whole.
type Time struct {
	GC      int64          // a collection had stopped a thread that ran for it
	CPU     int64          // a thread ran for it
	Blocked [Blocked]int64 // a thread stood blocked for it: by State, less one
	Pool    int64          // its work was queued for a thread of the pool
	Other   int64          // a request of its own waited for an answer
	Await   int64          // it awaited something else
	Unknown int64          // a thread may have worked for it: the trace does not tell
	Total   int64          // CPU of all its threads
	Queued  int64          // of all its work for a thread of the pool, whatever else went on
	// Compiled is for how long its threads compiled methods that they were about to call, a part of what they ran for;
	// 0 where the trace does not tell. Methods is how many.
	Compiled int64
	Methods  int
}

// Of returns the time for which threads stood blocked in a state.
func (t *Time) Of(s State) int64 { return t.Blocked[s-Lock] }

// A Span is a stretch of time.
type Span struct{ From, To int64 } // ns

// Sum returns the whole.
func (t *Time) Sum() int64 {
	n := t.GC + t.CPU + t.Pool + t.Other + t.Await + t.Unknown
	for _, b := range t.Blocked {
		n += b
	}
	return n
}

// An Explanation says what an activity did with its time.
type Explanation struct {
	Time       Time
	Exceptions []Thrown
	Hot        []Hot   // methods that ran, the longest first
	Stuck      []Stuck // stacks that blocked, the longest first
	Children   []*Activity
	Steps      []Step // its path, in order of time
}

// Thrown is an exception, as often as it was thrown.
type Thrown struct {
	Exception // the first
	Count     int
}

// Hot is a method and the time for which it ran.
type Hot struct {
	Method stacks.FrameID
	Time   int64 // ns
}

// Stuck is a stack and the time for which it blocked.
type Stuck struct {
	Stack stacks.StackID
	State State
	Time  int64 // ns
}

// A Cause is why time of a request passed.
type Cause uint8

// Causes, the first one that holds counting.
const (
	ByGC Cause = iota
	ByCPU
	ByLock
	BySleep
	ByWait
	ByIO
	ByOther
	ByPool
	ByOtherSide
	ByUnknown
	ByAwait
	causes
)

var causeNames = [causes]string{"gc", "cpu", "lock", "sleep", "wait", "io", "other", "pool", "other_side", "unknown", "await"}

// String returns the name: "gc", "cpu", "lock".
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// A Step is a stretch of time of an activity.
type Step struct {
	From, To int64 // ns
	Cause    Cause
	Thread   uint64 // that ran or stood for it; 0: none, or several
}

// An interval is a stretch of a thread's time for an activity.
type interval struct {
	from, to int64
	state    State
	thread   uint64
}

// work is what was done for an activity and those below it.
type work struct {
	intervals []interval
	calls     []*Activity // requests of its own
	children  []*Activity
	thrown    []*Exception
	compiled  int64           // ns
	methods   int             // in that time
	hot       map[uint32]*Hot // by method
	stuck     map[stuckKey]int64
	run       *workRun // in which the newest of what was done is not told yet; nil: none
	full      bool     // of children; next is the activity above that may have room
	next      *Activity
}

type stuckKey struct {
	stack stacks.StackID
	state State
}

const (
	maxChildren = 200 // most that show them show half as many; each activity that many are nested in keeps so many
	maxThrown   = 1000
	maxRoom     = 16 // intervals or children of a work that is used again
)

// An Explainer gathers what an Engine hands out, by activity.
type Explainer struct {
	engine  *Engine
	o       *ExplainOptions
	pauses  map[uint32]*timeline // of the garbage collector, by process
	open    map[threadKey]int64  // starts of those that are open, by the thread that stops all others
	unknown timeline             // threads at work, nobody knows for whom
	turns   turns                // what was left of a processor for each
	edges   []edge               // room for walk
	free    []*work              // of those that Forget was told of
	runs    map[threadKey]*workRun
}

// A workRun is what a thread did of late, in one state and at one stack, and for whom. Most activities begin
// and end while a thread goes on as before: those around them are told when it does something else, or when
// they are asked for, and not of each that begins and ends in them. With activities that are nested
// thousands deep that would be the square of their number.
type workRun struct {
	last Segment
	open []workSince // from the outermost to the one that it works for, each the parent of the next
}

// A workSince is an activity and since when what a thread did for it is not told.
type workSince struct {
	a    *Activity
	from int64
}

// ExplainOptions are those of an Explainer.
type ExplainOptions struct {
	// Options are those of its Engine, but for Segment and Started, which are the Explainer's own: Root is
	// told of each activity.
	Options
	// Root says which activities are explained.
	Root func(*Activity) bool
	// Processors is the number of processors that the threads had; 0: it is not known.
	Processors int
}

// NewExplainer returns an Explainer with its Engine.
func NewExplainer(o *ExplainOptions) *Explainer {
	x := &Explainer{o: o, pauses: map[uint32]*timeline{}, open: map[threadKey]int64{}, runs: map[threadKey]*workRun{}}
	eo := o.Options
	eo.Segment, eo.Started = x.segment, x.started
	x.engine = NewEngine(&eo)
	return x
}

// Add takes the next event.
func (x *Explainer) Add(e *Event) {
	switch e.Kind {
	case PauseBegin:
		x.open[threadKey{e.Process, e.Thread}] = e.Time
	case PauseEnd:
		x.pauseEnd(e)
	case HaltEnd:
		x.turns.halted(e.Time-e.Blocked, e.Time)
		if e.Stack == 0 && e.ID.IsZero() {
			return // the thread that samples wrote it, which works for none
		}
	}
	x.engine.Add(e)
}

// pauseEnd ends the pause that the same thread began. A collector asks for one while the sampler
// still holds all threads: that they go on then is not the end of it, nor is what another process
// does.
func (x *Explainer) pauseEnd(e *Event) {
	k := threadKey{e.Process, e.Thread}
	from, open := x.open[k]
	if !open {
		return
	}
	delete(x.open, k)
	l := x.pauses[e.Process]
	if l == nil {
		l = &timeline{}
		x.pauses[e.Process] = l
	}
	l.add(from, e.Time, 0)
}

// Finish takes the rest from the Engine.
func (x *Explainer) Finish() { x.engine.Finish() }

// Engine returns the Engine.
func (x *Explainer) Engine() *Engine { return x.engine }

// Settled reports whether nothing changes any more before a time.
func (x *Explainer) Settled(before int64) bool { return x.engine.settled(before) }

// started takes a new activity.
func (x *Explainer) started(a *Activity) {
	if a.Runtime {
		return
	}
	if x.o.Root(a) {
		a.work = x.newWork()
	}
	for up := a.Parent; up != nil; {
		w := up.work
		if w == nil {
			up = up.Parent
			continue
		}
		if w.children == nil {
			w.children = make([]*Activity, 0, 4) // most have no more
		}
		if len(w.children) < maxChildren {
			w.children = append(w.children, a)
		}
		switch {
		case a.Call:
			w.calls = append(w.calls, a)
			up = up.Parent
		case len(w.children) < maxChildren:
			up = up.Parent
		default:
			up = w.above(up)
		}
	}
}

// above returns the next one above a, whose work w is, that has room for children.
func (w *work) above(a *Activity) *Activity {
	if !w.full {
		w.full, w.next = true, a.Parent
	}
	for w.next != nil && w.next.work != nil && len(w.next.work.children) == maxChildren {
		if up := w.next.work; up.full {
			w.next = up.next
		} else {
			w.next = w.next.Parent
		}
	}
	return w.next
}

// newWork returns an empty work.
func (x *Explainer) newWork() *work {
	n := len(x.free)
	if n == 0 {
		return &work{}
	}
	w := x.free[n-1]
	x.free = x.free[:n-1]
	return w
}

// Forget drops what was done for an activity, which can't be explained any more. What an
// Explanation of it holds is the next one's.
func (x *Explainer) Forget(a *Activity) {
	if a == nil || a.work == nil {
		return
	}
	w := a.work
	a.work = nil
	if len(w.intervals) > maxRoom || len(w.children) > maxRoom || w.hot != nil || w.stuck != nil {
		return
	}
	clear(w.children)
	clear(w.calls)
	clear(w.thrown)
	*w = work{intervals: w.intervals[:0], calls: w.calls[:0], children: w.children[:0], thrown: w.thrown[:0]}
	x.free = append(x.free, w)
}

// Drop forgets what was at times before one: no activity is explained any more that began before it.
func (x *Explainer) Drop(before int64) {
	for _, l := range x.pauses {
		l.drop(before)
	}
	x.unknown.drop(before)
	x.turns.drop(before)
}

// segment takes a stretch of time.
func (x *Explainer) segment(s *Segment) {
	if s.Ready {
		for a := s.Activity; a != nil; a = a.Parent {
			if w := a.work; w != nil {
				w.compiled += s.Compiled
				w.methods++
			}
		}
		return
	}
	if s.State == Running && s.Thrown == nil && !s.Idle {
		x.turns.wanted(s.From, s.To)
	}
	if !s.Known {
		if !s.Idle && s.State != Queued && s.Thrown == nil {
			x.unknown.add(s.From, s.To, s.Born)
		}
		return
	}
	if s.Thrown != nil {
		for a := s.Activity; a != nil; a = a.Parent {
			if w := a.work; w != nil && len(w.thrown) < maxThrown {
				w.thrown = append(w.thrown, s.Thrown)
			}
		}
		return
	}
	k := threadKey{s.Process, s.Thread}
	r := x.runs[k]
	if r == nil {
		r = &workRun{}
		x.runs[k] = r
	}
	l := &r.last
	if l.To != s.From || l.State != s.State || l.Stack != s.Stack {
		for i := range r.open {
			x.tell(r, i)
			r.open[i].from = s.From
		}
	}
	*l = *s
	l.To = s.From // of whom it is for is not changed yet
	x.become(r, s.Activity)
	for i := range r.open { // what other threads did for the outer ones comes first
		if w := r.open[i].a.work; w != nil {
			if w.run == r {
				break // and of those inside
			}
			x.hold(r, i)
		}
	}
	l.To = s.To
}

// hold makes a run the one that does the newest for its activity i.
func (x *Explainer) hold(r *workRun, i int) {
	a := r.open[i].a
	if o := a.work.run; o != nil && o != r && i < len(o.open) && o.open[i].a == a { // as deep in that
		x.tell(o, i)
	}
	a.work.run = r
}

// become makes an activity, or none, the one that a run goes on for.
func (x *Explainer) become(r *workRun, a *Activity) {
	n := len(r.open)
	switch {
	case n > 0 && r.open[n-1].a == a:
		return
	case n > 0 && a != nil && a.Parent == r.open[n-1].a:
		r.open = append(r.open, workSince{a, r.last.To})
		if a.work != nil {
			x.hold(r, n)
		}
		return
	case n > 1 && r.open[n-2].a == a:
		x.leave(r, n-1)
		return
	}
	x.leave(r, 0)
	for up := a; up != nil; up = up.Parent {
		r.open = append(r.open, workSince{up, r.last.To})
	}
	slices.Reverse(r.open)
}

// leave closes all of a run from one on.
func (x *Explainer) leave(r *workRun, from int) {
	for i := from; i < len(r.open); i++ {
		x.tell(r, i)
		if w := r.open[i].a.work; w != nil && w.run == r {
			w.run = nil
		}
	}
	r.open = r.open[:from]
}

// tell adds what was done in a run for one of its activities to the work of that.
func (x *Explainer) tell(r *workRun, i int) {
	o := &r.open[i]
	if o.a.work != nil && o.from < r.last.To {
		s := r.last
		s.From = o.from
		x.take(o.a, &s)
	}
	o.from = r.last.To
}

// told adds all that is known of an activity to its work.
func (x *Explainer) told(a *Activity) {
	if r := a.work.run; r != nil {
		for i := len(r.open) - 1; i >= 0; i-- { // it is one of the innermost, if anything is nested deep
			if r.open[i].a == a {
				x.tell(r, i)
				return
			}
		}
	}
}

// take adds a segment to the work of an activity.
func (x *Explainer) take(a *Activity, s *Segment) {
	w := a.work
	w.intervals = push(w.intervals, s)
	// Sums by method can't be cut later. An end that lies in a segment is known by now.
	from, to := max(s.From, a.Start), s.To
	if a.Stopped {
		to = min(to, a.Stop)
	}
	d := to - from
	if s.Stack == 0 || d <= 0 {
		return
	}
	if s.State == Running {
		f := x.leaf(s.Stack)
		m := x.o.Method(f)
		if w.hot == nil {
			w.hot = map[uint32]*Hot{}
		}
		if h := w.hot[m]; h != nil {
			h.Time += d
		} else {
			w.hot[m] = &Hot{f, d}
		}
		return
	}
	if w.stuck == nil {
		w.stuck = map[stuckKey]int64{}
	}
	w.stuck[stuckKey{x.waiter(s.Stack), s.State}] += d
}

// leaf returns the innermost frame that did something.
func (x *Explainer) leaf(s stacks.StackID) stacks.FrameID {
	up, f := x.o.Tree.Node(s)
	for x.o.Role(f) == Polls && up != 0 {
		up, f = x.o.Tree.Node(up)
	}
	return f
}

// waiter returns a stack without what a wait calls: it spins, sleeps and blocks in turn.
func (x *Explainer) waiter(s stacks.StackID) stacks.StackID {
	for s != 0 {
		up := x.o.Tree.Parent(s)
		if up == 0 || x.o.Role(x.o.Tree.Frame(up)) < Inside {
			return s
		}
		s = up
	}
	return s
}

// push appends a segment, or makes the last interval longer.
func push(list []interval, s *Segment) []interval {
	if n := len(list); n > 0 {
		if l := &list[n-1]; l.to == s.From && l.state == s.State && l.thread == s.Thread {
			l.to = s.To
			return list
		}
	}
	if list == nil {
		list = make([]interval, 0, 4) // most need no more
	}
	return append(list, interval{s.From, s.To, s.State, s.Thread})
}

// Explain says where the time of an activity went, from its start or from to its stop or
// to. It returns false for one that Root did not choose.
//
// waits are times in which it waited for an answer, beside those of its own requests. steps asks
// for its path.
func (x *Explainer) Explain(a *Activity, from, to int64, waits []Span, steps bool) (e Explanation, ok bool) {
	if a == nil || a.work == nil {
		return e, false
	}
	x.told(a)
	w := a.work
	n := len(w.children) // in order of their starts
	for n > 0 && w.children[n-1].Start > to {
		n--
	}
	e.Children = w.children[:n]
	x.walk(a, from, to, waits, func(s Step) {
		e.Time.add(s.Cause, s.To-s.From)
		if steps {
			e.step(s)
		}
	})
	for i := range w.intervals {
		switch v := &w.intervals[i]; v.state {
		case Running:
			e.Time.Total += max(0, min(v.to, to)-max(v.from, from))
		case Queued:
			e.Time.Queued += max(0, min(v.to, to)-max(v.from, from))
		}
	}
	e.Time.Compiled, e.Time.Methods = w.compiled, w.methods
	e.Exceptions = thrown(w.thrown, from, to)
	for _, h := range w.hot {
		e.Hot = append(e.Hot, *h)
	}
	// Short lists: code for a sort of each type is 13 KB.
	sort.SliceStable(e.Hot, func(i, k int) bool {
		a, b := e.Hot[i], e.Hot[k]
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Method, b.Method)) < 0
	})
	for k, d := range w.stuck {
		e.Stuck = append(e.Stuck, Stuck{k.stack, k.state, d})
	}
	sort.SliceStable(e.Stuck, func(i, k int) bool {
		a, b := e.Stuck[i], e.Stuck[k]
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Stack, b.Stack), cmp.Compare(a.State, b.State)) < 0
	})
	return e, true
}

// step makes the path longer.
func (e *Explanation) step(s Step) {
	if n := len(e.Steps); n > 0 && e.Steps[n-1].Cause == s.Cause && e.Steps[n-1].Thread == s.Thread {
		e.Steps[n-1].To = s.To
		return
	}
	e.Steps = append(e.Steps, s)
}

func (t *Time) add(c Cause, d int64) {
	switch c {
	case ByGC:
		t.GC += d
	case ByCPU:
		t.CPU += d
	case ByPool:
		t.Pool += d
	case ByOtherSide:
		t.Other += d
	case ByAwait:
		t.Await += d
	case ByUnknown:
		t.Unknown += d
	default:
		t.Blocked[c-ByLock] += d
	}
}

// thrown counts equal exceptions of a time.
func thrown(list []*Exception, from, to int64) []Thrown {
	if len(list) == 0 {
		return nil
	}
	var out []Thrown
	at := map[[3]string]int{}
	for _, t := range list {
		if t.At < from || t.At > to {
			continue
		}
		k := [3]string{t.Type, t.Message, t.Cause}
		if i, ok := at[k]; ok {
			out[i].Count++
			continue
		}
		at[k] = len(out)
		out = append(out, Thrown{*t, 1})
	}
	return out
}

// An edge is where an interval begins or ends.
type edge struct {
	at     int64
	cause  Cause
	delta  int8
	thread uint64
}

// byTime sorts edges by time: slices.SortStableFunc takes 13 KB of program, and sort.SliceStable
// swaps by reflection.
type byTime []edge

func (l byTime) Len() int           { return len(l) }
func (l byTime) Less(i, k int) bool { return l[i].at < l[k].at }
func (l byTime) Swap(i, k int)      { l[i], l[k] = l[k], l[i] }

// walk goes through the time of an activity. Steps that follow each other may be of one kind.
func (x *Explainer) walk(a *Activity, from, to int64, waits []Span, step func(Step)) {
	edges := x.edges[:0]
	add := func(f, t int64, c Cause, thread uint64) {
		if f, t = max(f, from), min(t, to); t > f {
			edges = append(edges, edge{f, c, 1, thread}, edge{t, c, -1, thread})
		}
	}
	for i := range a.work.intervals {
		v := &a.work.intervals[i]
		add(v.from, v.to, causeOf[v.state], v.thread)
	}
	if l := x.pauses[a.Process]; l != nil {
		for _, v := range l.within(from, to, 0) {
			add(v.from, v.to, ByGC, 0)
		}
	}
	for _, v := range x.unknown.within(from, to, from) {
		add(v.from, v.to, ByUnknown, 0)
	}
	for _, c := range a.work.calls {
		end := to
		if c.Stopped {
			end = c.Stop
		}
		add(c.Start, end, ByOtherSide, 0)
	}
	for _, w := range waits {
		add(w.From, w.To, ByOtherSide, 0)
	}
	x.edges = edges
	sort.Stable(byTime(edges))
	var on held
	at, i := from, 0
	for at < to {
		for i < len(edges) && edges[i].at <= at {
			on.turn(&edges[i])
			i++
		}
		next := to
		if i < len(edges) {
			next = edges[i].at
		}
		c := on.first()
		if stood := on.stood(); c == ByCPU && stood != ByCPU {
			// Another thread waits meanwhile: this one ran for no more than its turns.
			if ran := at + x.turns.share(at, next, x.o.Processors); ran < next {
				step(Step{at, ran, c, on.whose(c)})
				at, c = ran, stood
			}
		}
		step(Step{at, next, c, on.whose(c)})
		at = next
	}
}

// causeOf is the cause that a state of a thread is.
var causeOf = [...]Cause{ByCPU, ByLock, BySleep, ByWait, ByIO, ByOther, ByPool, ByUnknown}

// held are the causes that hold at a time.
type held struct {
	n      [causes]int
	thread [causes]uint64 // the newest
}

// turn takes a beginning or an end.
func (h *held) turn(e *edge) {
	h.n[e.cause] += int(e.delta)
	if e.delta > 0 {
		h.thread[e.cause] = e.thread
	}
}

// first returns the first cause that holds.
func (h *held) first() Cause {
	if h.n[ByCPU] > 0 {
		if h.n[ByGC] > 0 {
			return ByGC
		}
		return ByCPU
	}
	for c := ByLock; c < ByAwait; c++ {
		if h.n[c] > 0 {
			return c
		}
	}
	return ByAwait
}

// stood returns why a thread stood blocked, the first reason that holds; ByCPU if none did.
func (h *held) stood() Cause {
	for c := ByLock; c < ByPool; c++ {
		if h.n[c] > 0 {
			return c
		}
	}
	return ByCPU
}

// whose returns the thread of a cause; 0: none, or several.
func (h *held) whose(c Cause) uint64 {
	if c = max(c, ByCPU); c < ByPool && h.n[c] == 1 {
		return h.thread[c]
	}
	return 0
}
