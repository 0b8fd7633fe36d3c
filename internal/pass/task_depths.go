package pass

import (
	"context"
	"slices"
	"sort"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// This file tells how deep cut stacks are from events that begin and end inside each
// other.
//
// When a task is done its thread runs what awaits it right there, on top of the stack: a
// chain of awaits that is resumed grows a stack of one repeated unit, and where it is cut
// nothing in the recorded frames tells how many units are missing. Events of the task
// library do: each says when a thread begins something, and until that ends the frames it
// was begun in stand on the stack and don't change. A stack that was recorded in between
// has them all, so what it misses is what an earlier stack shows above the same place.
//
//  1. The method that writes an event of a kind is its marker: the innermost frame of the
//     event's own stack that is not part of the writing. Optimized code compiles it into its
//     caller, which is a marker then too, but only at the call sites where it was
//     (task_markers.go).
//  2. For every thread the list of what has begun and not ended is kept, and for each of it
//     the frames above its marker, as soon as a whole stack shows them.
//  3. The markers in a cut stack are those that began last. From the innermost one whose
//     frames are known the stack is put together, if all recorded frames agree.
//  4. Whole stacks tell how often that is right: they have as many markers as have begun.
//  5. Of a stack that no recorded marker makes whole the frames above the innermost known marker
//     are known, and how many markers it has. Repairs that the stacks around it suggest are held
//     against that (task_parts.go).
//  6. Where ends are not told, neither is known: what has ended may still be listed, and what has
//     begun before one that nobody is told to await is not. Only repairs that put back as
//     many markers as are listed, or none, are believed then.
//
// Where a trace has no events of the ends, one thing is known to have begun in another if
// the task that is done awaited the one before. It has ended unseen while the stack unwinds,
// which does not take long: behind its end a method does nothing but return.

// taskAnswers are the whole stacks of cut samples of a thread, in order; nil: there are none.
type taskAnswers struct {
	list       *spool.List[taskAnswer]
	first      []int32      // index of the first one of each chunk of list
	confidence float32      // 0 to 1
	parts      *taskAnswers // of samples whose whole stack is not known: their outermost frames, 0 for none
	frames     *frames      // tell the markers of parts
}

// A taskAnswer is the whole stack of a cut sample, or the outermost frames of one.
type taskAnswer struct {
	index   int32 // of the sample in its thread
	stack   profile.StackID
	markers int32 // of outermost frames: how many the whole stack has; if these are none, at least
}

func (l *taskAnswers) add(index int, stack profile.StackID, markers int) {
	before := l.list.Chunks()
	l.list.Add(&taskAnswer{int32(index), stack, int32(markers)})
	if l.list.Chunks() > before {
		l.first = append(l.first, int32(index))
	}
}

func (l *taskAnswers) len() int {
	if l == nil {
		return 0
	}
	return l.list.Len()
}

// from returns what reads the answers for a sample and those behind it. Any number of goroutines may read.
func (l *taskAnswers) from(index int) (c spool.Cursor[taskAnswer]) {
	if l == nil {
		return c
	}
	c = l.list.From(max(0, sort.Search(len(l.first), func(i int) bool { return int(l.first[i]) > index })-1))
	for a := c.Peek(); a != nil && int(a.index) < index; a = c.Peek() {
		c.Next()
	}
	return c
}

// taskHow is the word for how these answers are known.
const taskHow = "tasks"

// resolveTasks finds the whole stacks of cut samples of p, by thread, in order, where that is right
// with minConfidence at least. It adds stacks to the table and changes nothing else. An error is of
// ctx.
func resolveTasks(ctx context.Context, p *profile.Profile, minConfidence float64) (map[*profile.Thread]*taskAnswers, error) {
	processes := map[*profile.Process][]*profile.Thread{}
	for _, t := range p.Threads {
		if t.Tasks.Len() > 0 {
			processes[t.Process] = append(processes[t.Process], t)
		}
	}
	out := map[*profile.Thread]*taskAnswers{}
	for _, process := range processesOf(p) {
		threads := processes[process]
		if slices.ContainsFunc(threads, func(t *profile.Thread) bool { return t.Samples.Cuts() > 0 }) {
			if err := resolve(ctx, p, threads, minConfidence, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// enoughProofs is how many whole stacks tell how often the answers are right as well as more do.
const enoughProofs = 1000

func resolve(ctx context.Context, p *profile.Profile, threads []*profile.Thread, minConfidence float64, out map[*profile.Thread]*taskAnswers) error {
	r := newResolver(p, threads)
	if r == nil {
		return nil
	}
	for _, t := range threads {
		if t.Samples.Cuts() == 0 && r.right+r.wrong >= enoughProofs {
			r.answers = append(r.answers, nil)
			continue
		}
		r.found = &taskAnswers{list: spool.ListIn[taskAnswer](t.Samples.Spool()), frames: r.frames}
		r.found.parts = &taskAnswers{list: spool.ListIn[taskAnswer](t.Samples.Spool())}
		if err := r.thread(ctx, t, breaks(p, t)); err != nil {
			return err
		}
		r.answers = append(r.answers, r.found)
	}
	confidence := float32(r.right+1) / float32(r.right+r.wrong+2)
	if float64(confidence) < minConfidence {
		return nil
	}
	for i, t := range threads {
		if a := r.answers[i]; a.len() > 0 || a != nil && a.parts.len() > 0 {
			a.confidence = confidence
			out[t] = a
		}
	}
	return nil
}

// newResolver returns nil if there are no events that tell anything.
func newResolver(p *profile.Profile, threads []*profile.Thread) *resolver {
	r := &resolver{frames: newFrames(p.Table), events: choose(threads), work: map[profile.MethodID]uint32{}}
	if r.events == nil {
		return nil
	}
	if r.begin == profile.TaskCompleted {
		r.delays = delays(threads)
	}
	for _, t := range threads {
		r.findMarkers(t)
	}
	r.findMarks()
	r.findOuter()
	if r.events.end == none {
		r.awaiter = awaiters(r.frames, threads)
	}
	r.findSites(p, threads)
	return r
}

const none = ^profile.TaskKind(0)

// events are a kind of event that begins something and the kind that ends it.
type events struct{ begin, end profile.TaskKind }

// choose returns those that tell most, nil if there are none that tell anything.
func choose(threads []*profile.Thread) *events {
	var has [profile.TaskJoins + 1]bool
	for _, t := range threads {
		for m := range t.Tasks.All() {
			has[m.Kind] = true
		}
	}
	for _, e := range []events{
		{profile.TaskBegins, profile.TaskEnds},
		{profile.TaskResumes, profile.TaskResumed},
	} {
		if has[e.begin] && has[e.end] {
			return &e
		}
	}
	for _, begin := range []profile.TaskKind{profile.TaskResumes, profile.TaskCompleted} {
		if has[begin] {
			return &events{begin, none}
		}
	}
	return nil
}

// An entry is something that has begun on a thread and has not ended. If the frames above its marker
// are known, so are those of all that began before it, and they agree: its frames hold the markers of
// these, and no others, with the frames above them.
type entry struct {
	task   uint32
	other  uint32
	marker profile.MethodID
	known  bool
	above  profile.StackID // the frames above the marker, if known
}

const anyMethod = ^profile.MethodID(0)

type resolver struct {
	*frames
	*events
	awaiter map[uint32]uint32
	delays  map[uint32]bool             // tasks that are told to be done when what awaits them has run
	answers []*taskAnswers              // by thread
	work    map[profile.MethodID]uint32 // what work the events of a marker begin

	open         []entry           // of the current thread
	found        *taskAnswers      // nil: nobody asks for them
	nodes        []profile.StackID // markers of the current stack, innermost first
	least, most  int               // how many of the innermost of these have not begun yet, or have ended
	skip         int               // how many it is; -1: not known
	fitting      bool              // of a whole stack: it has the markers that have begun
	proving      bool              // that counts
	full         profile.StackID   // of a cut one: the whole stack, if it is another one; else 0
	part         profile.StackID   // or its outermost frames; 0: not known
	own          profile.TaskMark  // of the current sample, if there is one
	visit        func(i int, s *profile.Sample, own *profile.TaskMark)
	path         []profile.FrameID
	joined       []joined // by a hash
	right, wrong int
}

// findMarkers notes the methods that write the events of t.
func (r *resolver) findMarkers(t *profile.Thread) {
	next := t.Samples.Cursor()
	var s profile.Sample
	var last profile.StackID
	var other uint32 // of last
	for m := range t.Tasks.All() {
		if !m.Stacked || m.Kind != r.begin || r.delays[m.Task] {
			continue
		}
		next.Seek(int(m.Sample))
		if !next.Read(&s) || s.Stack == last && m.Other == other {
			continue
		}
		last, other = s.Stack, m.Other
		if node := r.writer(s.Stack); node != 0 {
			method := r.tab.Method(r.tab.Frame(node))
			r.setMarker(method)
			r.work[method] = m.Other
		}
	}
}

// breaks are the times at which what has begun on t is no longer known.
func breaks(p *profile.Profile, t *profile.Thread) []int64 {
	out := slices.Clone(t.Breaks)
	for i := range p.Losses {
		if l := &p.Losses[i]; l.Thread == t {
			out = append(out, l.To)
		}
	}
	slices.Sort(out)
	return out
}

// thread goes through the samples of a thread. An error is of ctx.
func (r *resolver) thread(ctx context.Context, t *profile.Thread, breaks []int64) error {
	r.open = r.open[:0]
	marks := t.Tasks.Cursor()
	next := t.Samples.Cursor()
	var s, last profile.Sample // one for all: r.visit gets its address
	for i, news := 0, true; next.Read(&s); i++ {
		if i%(1<<12) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for ; len(breaks) > 0 && breaks[0] <= s.Time; breaks = breaks[1:] {
			r.open, news = r.open[:0], true
		}
		var own *profile.TaskMark
		for m := marks.Before(i + 1); m != nil; m = marks.Before(i + 1) {
			news = true
			if m.Stacked {
				r.own, own = *m, &r.own
			} else {
				r.unseen(m)
			}
		}
		if news || s.Stack != last.Stack || s.Cut != last.Cut || !r.again(i, &s) {
			r.sample(i, &s, own)
		}
		last, news = s, own != nil
	}
	return nil
}

// again takes a stack that the sample before had too, with nothing in between, as a thread has that
// waits. It returns false if that tells something new.
func (r *resolver) again(i int, s *profile.Sample) bool {
	switch {
	case s.Cut == profile.Whole && !r.fitting:
		return false // by what was made of it, it does
	case s.Cut == profile.Whole && r.proving:
		r.right++
	case s.Cut == profile.CutDepth:
		r.answer(i)
	}
	if r.visit != nil {
		r.visit(i, s, nil)
	}
	return true
}

// answer notes the whole stack of a cut sample, if it is known, or else its outermost frames.
func (r *resolver) answer(i int) {
	switch {
	case r.found == nil:
	case r.full != 0:
		r.found.add(i, r.full, 0)
	case r.part != 0:
		r.found.parts.add(i, r.part, len(r.open)+r.skip)
	case r.end == none && len(r.nodes) > 0:
		r.found.parts.add(i, 0, len(r.open)+r.skip)
	}
}

// unseen takes an event without a stack.
func (r *resolver) unseen(m *profile.TaskMark) {
	switch m.Kind {
	case r.begin:
		if r.end == none {
			r.continues(m.Task)
		}
		if r.delays[m.Task] {
			return
		}
		r.open = append(r.open, entry{task: m.Task, other: m.Other, marker: anyMethod})
	case r.end:
		r.pop(m)
	}
}

// sample takes a stack, which an event may own.
func (r *resolver) sample(i int, s *profile.Sample, own *profile.TaskMark) {
	r.markersOf(s.Stack)
	known := r.end != none || len(r.nodes) > 0 // what has begun, by the events
	r.least, r.most, r.full, r.part = 0, 0, 0, 0
	switch {
	case own != nil && own.Kind == r.begin:
		known = r.end != none || r.continues(own.Task)
		r.begins(s.Stack, own)
	case own != nil && own.Kind == r.end:
		r.pop(own)
		if r.writes(s.Stack) {
			r.least, r.most = 1, 1
		}
	case r.writes(s.Stack):
		r.most = 1
	}
	switch {
	case s.Cut == profile.Whole:
		r.whole(known)
	case s.Cut == profile.CutDepth && !known:
		r.skip = -1
		r.answer(i)
	case s.Cut == profile.CutDepth:
		if full := r.cut(s.Stack); full != s.Stack {
			r.full = full
		}
		r.answer(i)
	default:
		r.skip = -1
	}
	if r.visit != nil {
		r.visit(i, s, own)
	}
}

// begins takes an event that begins something, with its stack.
func (r *resolver) begins(stack profile.StackID, m *profile.TaskMark) {
	if r.delays[m.Task] {
		return
	}
	marker := anyMethod
	if node := r.writer(stack); node != 0 {
		marker = r.tab.Method(r.tab.Frame(node))
	}
	r.open = append(r.open, entry{task: m.Task, other: m.Other, marker: marker})
}

// writes reports whether the innermost marker of the current stack does nothing but write
// an event.
func (r *resolver) writes(stack profile.StackID) bool {
	return len(r.nodes) > 0 && r.writer(stack) == r.nodes[0]
}

// continues drops what must have ended before a task was done that nothing told to have
// ended: all behind the one that the task awaited. It reports whether there is one.
func (r *resolver) continues(task uint32) bool {
	for n := len(r.open); n > 0; n-- {
		if next, ok := r.awaiter[r.open[n-1].task]; ok && next == task {
			r.open = r.open[:n]
			return true
		}
	}
	r.open = r.open[:0]
	return false
}

// pop takes an end.
func (r *resolver) pop(m *profile.TaskMark) {
	for n := len(r.open); n > 0; n-- {
		if e := &r.open[n-1]; e.task == m.Task && m.Task != 0 || m.Task == 0 && e.other == m.Other {
			r.open = r.open[:n-1]
			return
		}
	}
}

// agree reports whether the markers of the current stack up to the one at last, the innermost skip
// of them left out, are those that began last. Where the frames above one are those that are known,
// so are the outer ones.
func (r *resolver) agree(skip, last int) bool {
	for i := skip; i < len(r.nodes) && i <= last; i++ {
		e := r.entry(i, skip)
		callers, f := r.tab.Node(r.nodes[i])
		if e.marker != anyMethod && e.marker != r.tab.Method(f) {
			return false
		}
		if e.known && e.above == callers {
			return true
		}
	}
	return true
}

// whole learns from a stack that is whole; it may count as a proof.
func (r *resolver) whole(counts bool) {
	r.skip = -1
	for k := r.least; k <= r.most && r.skip < 0; k++ {
		if len(r.nodes)-k == len(r.open) && r.agree(k, len(r.nodes)-1) {
			r.skip = k
		}
	}
	r.fitting, r.proving = r.skip >= 0, counts && len(r.open) > 0
	if r.proving {
		if r.fitting {
			r.right++
		} else {
			r.wrong++
		}
	}
	if r.skip < 0 {
		r.rebuild()
		return
	}
	r.learn(r.nodes[r.skip:])
}

// learn keeps the frames above markers, the innermost first. Where they are those that are known,
// so are those above the outer ones.
func (r *resolver) learn(nodes []profile.StackID) {
	for i, node := range nodes {
		e := &r.open[len(r.open)-1-i]
		above := r.tab.Parent(node)
		if e.known && e.above == above {
			return
		}
		e.known, e.above = true, above
	}
}

// rebuild makes of the markers of a whole stack what has begun: events were lost, or began
// before the trace.
func (r *resolver) rebuild() {
	r.skip = r.most
	nodes := r.nodes[r.most:]
	last := entry{}
	if n := len(r.open); n > 0 {
		last = r.open[n-1]
	}
	r.open = r.open[:0]
	for _, node := range slices.Backward(nodes) {
		e := entry{marker: r.tab.Method(r.tab.Frame(node))}
		e.other = r.work[e.marker]
		if len(r.open) == len(nodes)-1 && e.marker == last.marker {
			e.task = last.task
		}
		e.known, e.above = true, r.tab.Parent(node)
		r.open = append(r.open, e)
	}
}

// cut returns the whole stack of one that is cut, 0 if it is not known.
func (r *resolver) cut(stack profile.StackID) profile.StackID {
	use, from, fits := 0, 0, 0
	r.skip = -1
	for skip := r.least; skip <= r.most; skip++ {
		if len(r.nodes)-skip > len(r.open) {
			continue
		}
		i := r.innermostKnown(skip)
		if !r.agree(skip, i) || i < len(r.nodes) && !r.fits(r.entry(i, skip).above, r.tab.Parent(r.nodes[i]), stack) {
			continue
		}
		use, from = skip, i
		fits++
	}
	if fits != 1 {
		return 0 // none, or both may be
	}
	r.skip = use
	if from == len(r.nodes) {
		if r.end != none { // else some of it may have ended unseen
			r.part = r.outermost()
		}
		return 0
	}
	full := r.below(r.entry(from, use).above, r.tab.Parent(r.nodes[from]), stack)
	r.learnFrom(full, stack, use, from)
	return full
}

// outermost returns the frames above the innermost marker that the current stack has not and whose
// are known, 0 if there are none.
func (r *resolver) outermost() profile.StackID {
	for n := len(r.open) - (len(r.nodes) - r.skip); n > 0; n-- {
		if e := &r.open[n-1]; e.known {
			return e.above
		}
	}
	return 0
}

// A joined is a stack that was put together lately: most are again and again.
type joined struct{ above, top, stack, full profile.StackID }

const joinedBits = 13

// lately returns where the frames of stack that top has not are, or may be put, below those of above.
func (r *resolver) lately(above, top, stack profile.StackID) (known *joined, ok bool) {
	if r.joined == nil {
		r.joined = make([]joined, 1<<joinedBits)
	}
	known = &r.joined[(uint64(above)<<32|uint64(stack))*0x9E3779B97F4A7C15>>(64-joinedBits)]
	return known, known.full != 0 && known.above == above && known.top == top && known.stack == stack
}

// fits reports whether the frames of top are the innermost of above, so that stack fits below these.
func (r *resolver) fits(above, top, stack profile.StackID) bool {
	if _, ok := r.lately(above, top, stack); ok {
		return true
	}
	for ; top != 0; top, above = r.tab.Parent(top), r.tab.Parent(above) {
		if above == 0 || r.tab.Frame(top) != r.tab.Frame(above) {
			return false
		}
	}
	return true
}

// below returns the stack of the frames of stack that top has not, below those of above.
func (r *resolver) below(above, top, stack profile.StackID) profile.StackID {
	known, ok := r.lately(above, top, stack)
	if ok {
		return known.full
	}
	full := above
	r.path = r.path[:0]
	for s := stack; s != top; s = r.tab.Parent(s) {
		r.path = append(r.path, r.tab.Frame(s))
	}
	for _, f := range slices.Backward(r.path) {
		full = r.tab.Push(full, f)
	}
	*known = joined{above, top, stack, full}
	return full
}

// entry is what marker i of the current stack began, the innermost skip of them left out.
func (r *resolver) entry(i, skip int) *entry { return &r.open[len(r.open)-1-(i-skip)] }

// innermostKnown returns the innermost marker of the current stack above which the frames
// are known, how many there are if above none.
func (r *resolver) innermostKnown(skip int) int {
	for i := skip; i < len(r.nodes); i++ {
		if r.entry(i, skip).known {
			return i
		}
	}
	return len(r.nodes)
}

// learnFrom keeps the frames above markers skip to from of a stack that was cut, now that it is
// whole. Those above the outer ones are known, as the frames above the marker from agree with them.
func (r *resolver) learnFrom(full, stack profile.StackID, skip, from int) {
	for i := skip; i < from; i++ {
		for ; stack != r.nodes[i]; stack, full = r.tab.Parent(stack), r.tab.Parent(full) {
		}
		e := r.entry(i, skip)
		e.known, e.above = true, r.tab.Parent(full)
	}
}
