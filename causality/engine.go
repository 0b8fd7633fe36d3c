package causality

import (
	"cmp"
	"fmt"
	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A State is what a thread did.
type State uint8

// States of a thread.
const (
	Running State = iota
	Lock          // blocked for a lock
	Sleep
	Wait    // blocked for an event, a task or another thread
	IO      // blocked for a file or a socket
	Blocked // it is not known for what
	Queued  // no thread has it: the work waits for a thread of the pool
	Unseen  // a thread had it between two events, and nothing tells whether it ran or stood
)

var stateNames = [...]string{"running", "lock", "sleep", "wait", "io", "other", "queued", "unseen"}

// String returns the name: "running", "lock".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// A Segment is a stretch of time of a thread.
type Segment struct {
	Process uint32
	Thread  uint64
	From    int64 // ns
	To      int64 // ns
	// Activity is what the thread worked for, the innermost one; nil: none, if Known.
	Activity *Activity
	Known    bool
	State    State
	Stack    stacks.StackID // that the thread was last seen with; 0: none was seen
	// Thrown is an exception at To, and the segment nothing else.
	Thrown *Exception
	// Ready says that the thread had compiled a method at To, and that the segment is nothing else: the time for which
	// it did is in others. Compiled is that time but for the methods that it compiled meanwhile, ns; 0 where the trace
	// does not tell when it began.
	Ready    bool
	Compiled int64
	// Idle marks time of which nothing tells that it is work for anybody: a thread of its
	// own that no flow was handed to, as far as is known.
	Idle bool
	// Born is when work of a flow that is not known was first seen: it is for nobody who
	// began later.
	Born int64
	// Earlier says that it is for no Activity, but may be for one that began before ids were on.
	Earlier bool
}

// An Exception is one that was thrown.
type Exception struct {
	Type, Message string
	// Cause is the innermost exception that it follows from, "type: message"; empty if it
	// follows from none or the trace does not hold that.
	Cause string
	At    int64 // ns
}

func (x *Exception) text() string { return x.Type + ": " + x.Message }

// Options of an Engine. Tree, Role, Method and Segment are needed.
type Options struct {
	// Tree holds the stacks of events.
	Tree *stacks.Tree
	// Role returns the role of a frame, Method what method it is in.
	Role   func(stacks.FrameID) Role
	Method func(stacks.FrameID) uint32
	// Segment takes the segments. Those of one thread come in order of time.
	Segment func(*Segment)
	// Started is called for each activity.
	Started func(*Activity)
	// Unsampled says that the trace has no samples: between two events of a thread that are
	// farther apart than samples would be, it is Unseen.
	Unsampled bool
	// Interval is the distance of the samples of a thread as it was asked for, ns; 0: not known.
	// Where the flow changes between two events that are farther apart, the thread is taken to
	// have run for each no longer, and is Unseen in between.
	Interval int64
	// OnCPU says that samples are taken on CPUs: of a thread there is one for each Interval that it
	// runs, and none while it does not. Between two events that are farther apart it is Unseen but
	// for the time that a sample stands for.
	OnCPU bool
	// Before is until when activities were open that began before ids were on, by process, as Log.Before.
	Before map[uint32]int64
}

// runsOn is how far apart two events of a thread that runs may be where samples are taken on CPUs:
// as profile.Timing has it.
func runsOn(interval int64) int64 { return 2 * cmp.Or(interval, unseen) }

// A flow is what a thread works for: one that is not known yet may be later.
type flow struct {
	activity    *Activity
	known       bool
	root        bool  // that of a thread, or of a work item as below
	under       bool  // of a work item that was under way when its thread was first seen
	noted       bool  // by its activity, that a thread ran for it
	asked       bool  // or learned from, by elimination
	earlier     bool  // an event without an id told it, when it could be that of an activity from before ids were on
	born        int64 // when its scope was first seen, ns
	first, last int64 // of the samples that show it
}

// flows makes flows, some at a time: there is one for each work item.
type flows []flow

func (fs *flows) add(f flow) *flow {
	if len(*fs) == cap(*fs) {
		*fs = make(flows, 0, 64)
	}
	*fs = append(*fs, f)
	return &(*fs)[len(*fs)-1]
}

// with reports whether two flows can be of one request or other outermost activity.
func (f *flow) with(o *flow) bool { return f == o || f.activity.outermost() == o.activity.outermost() }

// see notes a sample that shows that a thread runs in the flow.
func (f *flow) see(at int64) {
	if f.last = at; f.first == 0 {
		f.first = at
	}
}

// A scope is a call on a thread's stack behind which the flow is what it was before.
type scope struct {
	depth    int // of its frame, root 0
	flow     *flow
	role     Role
	explicit Kind // WorkBegin or StepBegin of the event that opened it
	task     int64
	over     bool // what it called has ended
}

type threadKey struct {
	process uint32
	id      uint64
}

// A thread is what is known of one.
type thread struct {
	key threadKey
	backlog
	nodes  []stacks.StackID // of its newest stack, root first
	scopes []scope          // outermost first; [0] is the thread itself
	made   *flow            // in which the thread was made, until it runs something in a captured one

	// The scope that stands for those that cut stacks do not show.
	cut     int   // its number; 0: none
	cutFlow *flow // in which cut stacks began
	rested  bool  // before them t had no work

	// Its newest event.
	at       int64
	seen     bool // there is one
	last     Kind
	left     int64 // the task that was made last, if no other event of tasks came since: an async method is left
	state    State
	blocks   []block        // waits that events told, outermost first
	stack    stacks.StackID // of the newest sample
	external bool           // likewise
	ran      bool           // it is a sample that was taken on a CPU
	off      int64          // for how long the thread was off its CPU behind it, ns

	thrown *Exception // the newest
	threw  *flow      // for whom it was

	compiling []compilation // that have begun, the innermost last
}

// A compilation is one that has begun.
type compilation struct {
	method int64
	from   int64
	inside int64 // ns of it that others took
}

// A block is a wait that events tell.
type block struct {
	end    Kind
	state  State
	caller stacks.StackID // of a lock or a task: who waits, with its callers; 0: unknown
}

// An Engine follows the threads of a process. Events of one thread must come in order of time.
type Engine struct {
	o       Options
	acts    activities
	threads map[threadKey]*thread
	order   []*thread
	late    *thread              // that was found to wait, by settled
	recent  [64]*thread          // that had events lately, by their id
	tasks   [2]map[taskKey]*flow // the newest, and those before
	queued  map[taskKey]queued
	walk    []stacks.StackID
	flows   flows
	segment Segment // handed out
	hasIDs  bool
	stacked bool // events other than samples have stacks
	now     int64

	elimination elimination
}

type taskKey struct {
	process uint32
	item    bool // of the pool, not a task
	untold  bool // what awaits the task, and is no task itself
	id      int64
}

type queued struct {
	at    int64
	flow  *flow
	other int64 // by which it may be taken, too
}

const (
	unseen   = int64(1e6)  // ns between events in which a thread is taken to run: samples are no closer
	horizon  = int64(10e9) // ns for which a flow may stay unknown before it is given up
	maxTasks = 1 << 17
)

// NewEngine returns an Engine.
func NewEngine(o *Options) *Engine {
	return &Engine{
		o:       *o,
		acts:    newActivities(horizon),
		threads: map[threadKey]*thread{},
		tasks:   [2]map[taskKey]*flow{{}, {}},
		queued:  map[taskKey]queued{},
	}
}

func (g *Engine) thread(e *Event) *thread {
	k := threadKey{e.Process, e.Thread}
	at := &g.recent[k.id%uint64(len(g.recent))]
	if *at != nil && (*at).key == k {
		return *at
	}
	t := g.threads[k]
	if t == nil {
		t = &thread{key: k, scopes: make([]scope, 1, 16)}
		t.scopes[0] = scope{depth: -1, flow: g.flows.add(flow{root: true})}
		g.threads[k] = t
		g.order = append(g.order, t)
	}
	*at = t
	return t
}

func (t *thread) top() *scope { return &t.scopes[len(t.scopes)-1] }

// Add takes the next event.
func (g *Engine) Add(e *Event) {
	t := g.thread(e)
	g.now = max(g.now, e.Time)
	if e.Kind == Sample && g.again(t, e) {
		return
	}
	flowBefore, stateBefore, made := t.top().flow, t.state, t.made
	for n := len(t.blocks) - 1; n >= 0 && t.blocks[n].end != HandleEnd && g.gaveUp(&t.blocks[n], e); n-- {
		t.blocks = t.blocks[:n]
	}
	state := g.stateAt(t, e)
	left := false
	g.stacked = g.stacked || e.Kind != Sample && e.Stack != 0
	switch {
	case e.Cut:
		g.cutOff(t)
	case e.Stack != 0:
		left = g.rejoin(t, e.Stack, e.Kind == Caught)
	}
	if e.Kind == Idle || e.Kind == ThreadBegins {
		left, t.cut = true, 0
		t.nodes = t.nodes[:0]
		t.scopes = t.scopes[:1]
		t.scopes[0].flow = g.flows.add(flow{known: true, earlier: e.Kind == Idle && g.earlier(t, nil, e.Time)})
		t.blocks = t.blocks[:0]
	}
	if e.Kind == Adjust || e.Kind == Between {
		g.between(t)
	}
	if e.HasID && !e.ID.IsZero() {
		g.hasIDs = true
	}
	during := t.top().flow
	if made != nil && during == made {
		flowBefore = made // it began in it
	}
	if e.Kind == WorkEnd || e.Kind == StepEnd {
		g.end(t, e) // written behind the work, in the flow around it
	}
	var begun *beginning // of a Start
	if e.Kind == Start {
		begun = g.acts.begins(e)
	}
	g.evidence(t, e, begun)
	if e.Kind == Sample && state == Running && !e.Cut {
		during.see(e.Time)
	}
	g.advance(t, e, flowBefore, during, stateBefore, state, left)
	g.change(t, e, begun)
	t.at, t.seen, t.last, t.external = e.Time, true, e.Kind, e.External
	t.ran, t.off = e.OnCPU, e.Blocked
	if e.Kind != Sample {
		t.off = 0
	}
	g.flush(t, false)
}

// between takes t back to where the pool takes work items, if it is one of its threads.
func (g *Engine) between(t *thread) {
	for i := len(t.scopes) - 1; i > 0; i-- {
		if t.scopes[i].role == Dispatch {
			t.scopes, t.cut = t.scopes[:i+1], 0
			g.takes(t)
			t.nodes = t.nodes[:min(len(t.nodes), t.scopes[i].depth+1)]
			return
		}
	}
}

// takes is told that t, whose innermost scope is that of the pool, takes its next work item: no flow
// is handed to that.
func (g *Engine) takes(t *thread) {
	if top := t.top(); !top.flow.known || top.flow.activity != nil {
		top.flow = g.flows.add(flow{known: true})
	}
}

// again takes a sample that is as the one before it on its thread, as most are: threads wait.
func (g *Engine) again(t *thread, e *Event) bool {
	if t.off > 0 || e.OnCPU && !e.Held && e.Time-t.at > runsOn(g.o.Interval) {
		return false
	}
	if t.last != Sample || e.Stack != t.stack || e.Stack == 0 || e.Cut || t.cut > 0 || e.Blocked > 0 || e.External != t.external || len(t.blocks) > 0 {
		return false
	}
	t.piece(t.at, e.Time, t.top().flow, t.state, e.Stack)
	if t.state == Running {
		t.top().flow.see(e.Time)
	}
	t.at = e.Time
	if t.waits(g.now - horizon) {
		g.flush(t, false)
	}
	return true
}

// cutOff takes a cut stack. Which scopes are on it is not seen: it gets one of its own.
func (g *Engine) cutOff(t *thread) {
	if t.cut > 0 {
		return
	}
	t.cut, t.rested = len(t.scopes), g.rests(t)
	t.cutFlow = g.flows.add(flow{born: g.now, asked: true})
	t.scopes = append(t.scopes, scope{depth: len(t.nodes), flow: t.cutFlow})
}

// rests reports whether t is one of the pool's and had no work when it was seen last: what comes
// then is none of what it did.
func (g *Engine) rests(t *thread) bool {
	top := t.top()
	return top.role == Dispatch || g.shows(t, Parks) || len(t.nodes) == 0 && top.flow.known && top.flow.activity == nil
}

// shows reports whether t was last seen in a method of a role that its innermost scope called.
func (g *Engine) shows(t *thread, r Role) bool {
	for d := len(t.nodes) - 1; d > t.top().depth; d-- {
		if g.role(t.nodes[d]) == r {
			return true
		}
	}
	return false
}

// around returns the scope that t was in before the cut stacks that it has now: most likely it
// still is. nil: there is none.
func (t *thread) around() *scope {
	if t.cut == 0 || t.rested || len(t.scopes) != t.cut+1 {
		return nil
	}
	return &t.scopes[t.cut-1]
}

// rejoin takes a whole stack behind cut ones. Where the scope around them is the same as before,
// they were in its flow if no event told theirs.
func (g *Engine) rejoin(t *thread, s stacks.StackID, caught bool) (left bool) {
	if t.cut == 0 {
		return g.unwind(t, s, caught)
	}
	t.scopes, t.cut = t.scopes[:min(t.cut, len(t.scopes))], 0
	around := t.top().flow
	left = g.unwind(t, s, caught)
	if !t.rested && t.top().flow == around && around.known && !t.cutFlow.known {
		*t.cutFlow = *around
	}
	return left
}

// stateAt returns what t was doing when e was written.
func (g *Engine) stateAt(t *thread, e *Event) State {
	if e.Kind != Sample {
		return Running
	}
	if n := len(t.blocks); n > 0 {
		return t.blocks[n-1].state
	}
	if e.OnCPU {
		return Running
	}
	s := g.blockedIn(e.Stack, e.External)
	if s == Running && e.Blocked > 0 {
		return Blocked
	}
	return s
}

// blockedIn tells from its innermost frames why a thread waits; Running if it does not. One
// in managed code spins for a while before it blocks, or was just woken: for what it calls
// that is still the wait, but for locks, which are mostly had without one.
func (g *Engine) blockedIn(s stacks.StackID, external bool) State {
	state := Running
	for s != 0 {
		up, f := g.o.Tree.Node(s)
		switch g.o.Role(f) {
		case Sleeps:
			state = Sleep
		case Waits, Parks:
			state = Wait // whatever it does to wait
		case Locks:
			if external {
				state = Lock
			}
		case Talks:
			if external {
				state = IO
			}
		case Inside, Follows, AtOnce, Polls, Turns:
		default:
			return state
		}
		s = up
	}
	return state
}

// unwind compares a stack with the one before it, leaves the scopes that are on it no more, and
// enters the new ones. It reports whether that left the work item. What deals with an exception is
// no other call at the place of one that is over: an async method ends in its handler, behind which
// the runtime tells the ends of that.
func (g *Engine) unwind(t *thread, s stacks.StackID, caught bool) (left bool) {
	if n := len(t.nodes); n > 0 && t.nodes[n-1] == s {
		return false
	}
	under := t.nodes == nil && !t.scopes[0].flow.known // t may have had work before the recording began
	walk, live, same := g.newFrames(t, s)
	over := g.over(t, same)
	var was stacks.StackID // what the innermost shared frame called before
	if live < len(t.nodes) {
		was = t.nodes[live]
	}
	other := len(walk) > 0 && live < len(t.nodes) && same == live // where one method was called now another one is
	t.nodes = t.nodes[:live]
	for len(t.scopes) > 1 && t.top().depth >= same {
		left = t.top().role == Captured
		t.scopes = t.scopes[:len(t.scopes)-1]
	}
	left = left && t.top().role == Dispatch
	if top := t.top(); top.role == Dispatch && same == top.depth+1 {
		g.takes(t)
	}
	if other && !caught {
		if top := t.top(); top.role == Captured && top.depth+1 == live && g.role(t.nodes[live-1]) == Captured && g.role(was) <= Steps && g.role(walk[len(walk)-1]) <= Steps {
			g.renew(t, false) // it runs one callback: another one is another call's
		} else {
			g.otherCall(t, live)
		}
	}
	if top := t.top(); top.role == Captured && (over || top.over) {
		border := caught || g.border(t, walk, live)
		if over || !border {
			g.renew(t, border)
		}
	}
	g.push(t, walk, same, under)
	return left
}

// border reports whether what the innermost scope calls, or called before a change of the stack, only changes the
// flow: to the new one, or back from the old one. walk are the new frames above the live ones.
func (g *Engine) border(t *thread, walk []stacks.StackID, live int) bool {
	d := t.top().depth + 1
	if d < live {
		return g.role(t.nodes[d]) >= Inside
	}
	k := live + len(walk) - 1 - d
	return k < 0 || g.role(walk[k]) >= Inside
}

// push puts the new frames on the stack, the last one outermost, and enters their scopes but those of calls that
// were there before, which are below same. Under says that t may have had work before the recording began.
func (g *Engine) push(t *thread, walk []stacks.StackID, same int, under bool) {
	for i := len(walk) - 1; i >= 0; i-- {
		d := len(t.nodes)
		t.nodes = append(t.nodes, walk[i])
		if d < same {
			continue
		}
		r := g.role(walk[i])
		if top := t.top(); r == Plain && top.role == Dispatch && top.depth == d-1 {
			r = Captured // what is queued is called by a method that is part of the pool's own in optimized code
		}
		if (r == Plain || r == Steps) && g.bare(t) {
			t.scopes = append(t.scopes, scope{depth: d, role: Scoped, flow: t.scopes[len(t.scopes)-2].flow})
		}
		if r >= ThreadTop && r <= Scoped {
			g.enter(t, d, r)
			if under && r == Dispatch && i > 0 {
				// It may have begun an activity before the recording did.
				t.top().flow = g.flows.add(flow{root: true, under: true, born: g.now})
			}
		}
	}
}

// newFrames returns the stacks of the frames of s, innermost first, down to what the stack before it shares: how
// many that are, and how many calls, of which the last may be further on. They are valid until it is called again.
func (g *Engine) newFrames(t *thread, s stacks.StackID) (walk []stacks.StackID, live, same int) {
	tree := g.o.Tree
	walk = g.walk[:0]
	depth := tree.Depth(s)
	at := s
	for d := depth; d > 0; d-- {
		if d <= len(t.nodes) && t.nodes[d-1] == at {
			break
		}
		walk = append(walk, at)
		at = tree.Parent(at)
	}
	g.walk = walk
	live = depth - len(walk)
	same = live
	if len(walk) > 0 && live < len(t.nodes) {
		if g.o.Method(tree.Frame(walk[len(walk)-1])) == g.o.Method(tree.Frame(t.nodes[live])) {
			same = live + 1 // one call, further on
		}
	}
	return walk, live, same
}

// bare reports whether t is in a task that no flow was handed to: nothing between the method that
// tells of the task and the task's own restores one. It runs in that of who runs it.
func (g *Engine) bare(t *thread) bool {
	top := t.top()
	return top.explicit == WorkBegin && top.depth >= 0 && g.role(t.nodes[top.depth]) != Captured
}

// role returns the role of the innermost frame of a stack.
func (g *Engine) role(s stacks.StackID) Role { return g.o.Role(g.o.Tree.Frame(s)) }

// otherCall is told that the frame below a depth calls another method where it called one before:
// in a loop, or in another call of all that is around it. What is told of it from now on is not
// told of what was before.
func (g *Engine) otherCall(t *thread, depth int) {
	top := t.top()
	was := top.flow
	if was.known || was.root || depth <= top.depth+1 {
		return
	}
	is := g.flows.add(flow{born: g.now})
	for i := range t.scopes {
		if t.scopes[i].flow == was {
			t.scopes[i].flow = is
		}
	}
}

// over reports whether the innermost scope that encloses the frames from a depth on is over where
// they are gone: an async method had ended in it, behind which it does nothing. A call at its place
// is another one then.
func (g *Engine) over(t *thread, depth int) bool {
	end := len(t.nodes)
	for i := len(t.scopes) - 1; i > 0 && t.scopes[i].depth >= depth; i-- {
		end = t.scopes[i].depth // what is in a scope ends no other one
	}
	for d := depth; d < end; d++ {
		if g.completes(t, d) {
			return true
		}
	}
	return false
}

// renew takes the innermost scope for another call at the same place, which is over again where it
// is none yet. So is the one around it that ended with a call of the one before: it ends once.
func (g *Engine) renew(t *thread, over bool) {
	old, nodes := *t.top(), t.nodes
	t.nodes, t.scopes = t.nodes[:old.depth], t.scopes[:len(t.scopes)-1]
	if around := t.top(); around.role == Captured {
		for d := around.depth + 1; d < old.depth; d++ {
			if g.role(nodes[d]) == Resumes && g.completes(t, d) {
				g.renew(t, over)
				break
			}
		}
	}
	g.enter(t, old.depth, old.role)
	t.nodes, t.top().over = nodes, over
}

// goesOn reports whether what runs behind the innermost scope, in a flow of its own, is most likely
// in the scope's: the frames between end an async method, and who awaits it goes on, or run a task
// at once, which who waits for it has made. Who works for nobody, as far as is known, may wait for
// anybody.
func (g *Engine) goesOn(t *thread) bool {
	f := t.top().flow
	for d := len(t.nodes) - 1; d > max(t.top().depth, 0); d-- {
		if g.completes(t, d) || g.role(t.nodes[d]) == AtOnce && (f.activity != nil || !f.known && !f.root) {
			return true
		}
	}
	return false
}

// completes reports whether the frame at a depth ends an async method. Optimized code often has that inside
// the method itself, which then seems to call the task at once.
func (g *Engine) completes(t *thread, d int) bool {
	switch g.role(t.nodes[d]) {
	case Completes:
		return true
	case Follows, Resumes:
		return d > 0 && g.role(t.nodes[d-1]) == Steps
	}
	return false
}

// enter takes a frame that may begin a scope.
func (g *Engine) enter(t *thread, depth int, r Role) {
	top := t.top()
	switch r {
	case ThreadTop, Dispatch:
		t.scopes = append(t.scopes, scope{depth: depth, role: r, flow: g.flows.add(flow{known: true})})
	case Scoped:
		t.scopes = append(t.scopes, scope{depth: depth, role: r, flow: top.flow})
	case Captured:
		f := g.flows.add(flow{born: g.now})
		switch {
		case top.explicit == WorkBegin || g.goesOn(t):
			f = top.flow
		case top.explicit == StepBegin:
			f = cmp.Or(g.known(taskKey{process: t.key.process, id: top.task, untold: true}), f)
		case t.made != nil && g.first(t):
			f = t.made
		}
		t.made = nil
		t.scopes = append(t.scopes, scope{depth: depth, role: r, flow: f})
	}
}

// first reports whether the innermost frame of t is called by nothing but what begins a thread.
func (g *Engine) first(t *thread) bool {
	for _, n := range t.nodes[:len(t.nodes)-1] {
		if r := g.role(n); r != ThreadTop && r < Inside {
			return false
		}
	}
	return true
}

// evidence takes in what e, of which begun is known if it is a Start, tells of the flow that the thread is in.
func (g *Engine) evidence(t *thread, e *Event, begun *beginning) {
	if !e.HasID || e.Kind == Idle {
		return
	}
	id := e.ID
	if begun != nil && begun.in == nil {
		id = e.Related
	}
	if !g.hasIDs || e.Stack != 0 && !e.Cut && g.amid(t, g.role(e.Stack), id) {
		return
	}
	var a *Activity
	if !id.IsZero() {
		now := t.top().flow.activity
		is, sure := g.acts.meant(e, id, now)
		if !sure {
			return
		}
		a = is.innermost(now, e.Time)
	}
	if s := t.around(); s != nil && !g.tell(t, s, a, e) {
		return
	}
	if g.tell(t, t.top(), a, e) {
		t.proof = len(t.pieces)
	}
}

// amid reports whether an event of an id, whose innermost frame has a role, was written while the flow of t
// changed: its id is that of the one before, of the one behind, or of none. So it is in the code that
// writes a Start or a Stop, which has changed it by then, and is not in the trace yet.
func (g *Engine) amid(t *thread, r Role, id activity.ID) bool {
	return id.IsZero() && r == Captured || g.shows(t, Turns) || r != Tracing && g.shows(t, Tracing)
}

// tell takes in that what runs in the scope s of t works for a. It reports whether e tells of that scope.
func (g *Engine) tell(t *thread, s *scope, a *Activity, e *Event) bool {
	switch f := s.flow; {
	case !f.known && e.Stack == 0 && len(t.nodes) > 0 && (a == nil || g.stacked):
		return false // the runtime wrote it where no code is called: before or behind this flow
	case !f.known && f.first != 0 && a != nil && a.Started && a.Start > f.first:
		// It began when this flow was under way, and not in it: another call has come to its place.
		t.replace(s, g.flows.add(flow{activity: a, known: true}))
	case !f.known:
		f.activity, f.known, f.earlier = a, true, g.earlier(t, a, e.Time)
	case f.activity != a && f.activity.at(e.Time) != a.at(e.Time):
		is := g.flows.add(flow{activity: a, known: true, earlier: g.earlier(t, a, e.Time)})
		if related(f.activity, a) {
			s.flow = is
		} else {
			g.doubt(t, f)
			t.replace(s, is)
		}
	}
	return true
}

// earlier reports whether what an event of t tells to work for a may be for one that began before ids were on.
func (g *Engine) earlier(t *thread, a *Activity, at int64) bool {
	return a == nil && at <= g.o.Before[t.key.process]
}

// replace gives s another flow, and the calls around it that hand theirs to it.
func (t *thread) replace(s *scope, is *flow) {
	was, in := s.flow, false
	for i := len(t.scopes) - 1; i > 0; i-- {
		v := &t.scopes[i]
		if in && (v.flow != was || v.role != Scoped && v.role != Captured) {
			break
		}
		if in = in || v == s; in {
			v.flow = is
			if v.role != Scoped {
				break
			}
		}
	}
	s.flow = is
}

// related reports whether one of two activities, or none, is below the other.
func related(a, b *Activity) bool { return a.Below(b) && b != nil || b.Below(a) && a != nil }

// doubt is called when a flow is another one than it seemed. Whose work was queued the thread tells
// that queued it. What is for nobody has flows of its own for each piece of work, and a thread that
// has none is in none of these.
func (g *Engine) doubt(t *thread, was *flow) {
	for i := t.open(); i < len(t.pieces); i++ {
		p := &t.pieces[i]
		if p.state != Queued && (p.flow == was || was.activity != nil && p.flow.known && p.flow.activity == was.activity) {
			p.flow = g.flows.add(flow{born: p.from})
		}
	}
}

// advance takes the time since the newest event of t.
func (g *Engine) advance(t *thread, e *Event, before, now *flow, stateBefore, state State, left bool) {
	if !t.seen {
		return
	}
	if n := len(t.blocks); n > 0 && e.Kind != Sample {
		state = t.blocks[n-1].state
	}
	was := t.stack
	t.stack = 0
	if e.Kind == Sample {
		t.stack = e.Stack
	}
	after := state
	if t.off > 0 {
		back := min(t.at+t.off, e.Time)
		t.piece(t.at, back, before, stateBefore, was)
		t.at, was = back, 0
		if len(t.blocks) == 0 { // else an event tells when the wait ends
			stateBefore = Running
		}
		if e.OnCPU {
			was = e.Stack // as the next sample of a thread that just came back tells
		}
	}
	leaves, is := e.Kind == Sample && e.Blocked > 0 && len(t.blocks) == 0, t.stack
	if leaves {
		state = Running // until it left
	}
	if g.o.OnCPU && !e.Held && stateBefore == Running && e.Time-t.at > runsOn(g.o.Interval) {
		if t.ran && t.off == 0 {
			ran := t.at + cmp.Or(g.o.Interval, unseen)
			t.piece(t.at, ran, before, Running, was)
			t.at = ran
		}
		stateBefore, state, was, is = Unseen, Unseen, 0, 0
	}
	if g.o.Unsampled && e.Time-t.at > unseen {
		if stateBefore == Running {
			stateBefore = Unseen
		}
		if state == Running {
			state = Unseen
		}
	}
	mid := t.at + (e.Time-t.at)/2
	if left {
		// It left one work item and took another: how long it had none is not told.
		third := (e.Time - t.at) / 3
		t.piece(t.at, t.at+third, before, stateBefore, was)
		t.piece(e.Time-third, e.Time, now, state, is)
		t.state = after
		return
	}
	if before == now && stateBefore != state {
		// An event stands for no time: around it the sample tells.
		switch {
		case e.Kind == Sample && t.last != Sample:
			mid = t.at
		case e.Kind != Sample && t.last == Sample:
			mid = e.Time
		}
	}
	if leaves {
		mid = e.Time
	}
	near := e.Time - t.at
	if before != now {
		near = max(unseen, g.o.Interval) // no sample was taken when one was due: farther from both than that nothing tells
	}
	first, last := min(mid, t.at+near), max(mid, e.Time-near)
	if stateBefore != Running {
		first = mid
	}
	if state != Running {
		last = mid
	}
	t.piece(t.at, first, before, stateBefore, was)
	t.piece(first, mid, before, Unseen, 0)
	t.piece(mid, last, now, Unseen, 0)
	t.piece(last, e.Time, now, state, is)
	t.state = after
}

// change does what e, of which begun is known if it is a Start, does to the flow.
func (g *Engine) change(t *thread, e *Event, begun *beginning) {
	top := t.top()
	t.state = Running
	switch e.Kind {
	case Sample:
		t.state = g.stateAt(t, e)
	case Start:
		if e.ID.IsZero() {
			break
		}
		a := g.acts.start(e, begun, top.flow.activity)
		g.elimination.start(a, e.Text)
		if g.o.Started != nil {
			g.o.Started(a)
		}
		g.turn(t, a)
	case Stop:
		if a := g.acts.stopped(e, top.flow.activity); a != nil {
			if a.stop(e.Time) && a.kind != nil {
				a.kind.stop(a)
			}
			g.turn(t, a.Parent)
		}
	case TaskMade, TaskReady, TaskYields:
		if e.Kind != TaskMade || g.task(e.Process, e.Task) == nil {
			g.setTask(e.Process, e.Task, top.flow)
		}
		if e.Kind != TaskMade && t.last != TaskAwait {
			in := Event{Time: e.Time, Process: e.Process, Task: e.Task}
			if e.Kind == TaskYields {
				in.Next = g.yields(t)
			}
			g.queue(&in, top.flow)
			if in.Next != 0 {
				in.Task, in.Next = in.Next, in.Task
				g.queue(&in, top.flow)
			}
		}
		t.left = 0
		if e.Kind == TaskMade {
			t.left = e.Task
		}
	case TaskContinues:
		if f := g.task(e.Process, e.Task); f != nil {
			g.queue(e, f)
		}
	case TaskAwait:
		t.left = 0
		delete(g.queued, taskKey{process: e.Process, id: e.Next}) // it has begun
		if e.Next == 0 {
			g.setUntold(taskKey{process: e.Process, id: e.Task, untold: true}, top.flow)
		} else {
			g.setTask(e.Process, e.Next, top.flow)
		}
	case ThreadMade:
		g.setTask(e.Process, e.Task, top.flow)
	case ThreadBegins:
		t.made = g.task(e.Process, e.Task)
	case WorkBegin, StepBegin:
		t.left = 0
		g.begin(t, e)
	case Dequeue, TaskTaken:
		g.taken(t, e)
	case Enqueue:
		g.queue(e, top.flow)
	case Throw:
		t.throw(e, top.flow)
	case CompileBegin:
		t.compile(e)
	case CompileEnd:
		t.compiled(e, top.flow)
	case WaitBegin:
		t.block(WaitEnd, Wait, g.waiter(e))
	case LockBegin:
		t.block(LockEnd, Lock, g.waiter(e))
	case HandleBegin:
		if n := len(t.blocks); n == 0 || t.blocks[n-1].state != Lock {
			t.block(HandleEnd, Wait, 0)
		}
	case WaitEnd, LockEnd, HandleEnd:
		t.unblock(e.Kind)
	}
	if n := len(t.blocks); n > 0 {
		t.state = t.blocks[n-1].state
	}
}

// turn takes t to work for a from now on.
func (g *Engine) turn(t *thread, a *Activity) {
	f := g.flows.add(flow{activity: a, known: true, earlier: g.earlier(t, a, g.now)})
	if s := t.around(); s != nil {
		s.flow = f
	}
	t.top().flow = f
}

// queue notes that work of a flow waits for a thread of the pool.
func (g *Engine) queue(e *Event, f *flow) {
	if len(g.queued) >= maxTasks {
		clear(g.queued) // their ends were lost
	}
	g.queued[queueKey(e)] = queued{e.Time, f, e.Next}
}

// yields returns the task of the async method that runs and asks to go on later: an event tells that it does
// with the verbose ones only, but one tells when the task runs again. 0: it is none, or not known.
func (g *Engine) yields(t *thread) int64 {
	if t.left != 0 {
		return t.left
	}
	for i := len(t.scopes) - 1; i > 0; i-- {
		s := &t.scopes[i]
		if s.explicit == 0 {
			continue
		}
		methods := 0
		for d := s.depth + 1; d < len(t.nodes); d++ {
			if g.role(t.nodes[d]) == Steps {
				methods++
			}
		}
		if s.explicit == WorkBegin && methods == 1 {
			return s.task
		}
		break
	}
	return 0
}

// taken ends the waiting of work that t begins.
func (g *Engine) taken(t *thread, e *Event) {
	k := queueKey(e)
	q, ok := g.queued[k]
	if !ok {
		return
	}
	delete(g.queued, k)
	if q.other != 0 {
		delete(g.queued, taskKey{process: e.Process, id: q.other})
	}
	t.piece(q.at, e.Time, q.flow, Queued, 0)
}

func queueKey(e *Event) taskKey {
	k := taskKey{process: e.Process, id: e.Task}
	if e.Kind == Enqueue || e.Kind == Dequeue {
		k.item = true
	}
	return k
}

// causeLasts is for how long behind an exception another one of its thread follows from it, ns.
// That which it names need not have been thrown, and then what its thread threw before has nothing
// to do with it.
const causeLasts = int64(5e6)

// throw notes an exception.
func (t *thread) throw(e *Event, f *flow) {
	x := &Exception{Type: e.Name, Message: e.Text, At: e.Time}
	if last := t.thrown; e.HasInner && last != nil && e.Time-last.At <= causeLasts && t.threw.with(f) {
		x.Cause = last.Cause
		if x.Cause == "" && (last.Type != x.Type || last.Message != x.Message) { // else it is thrown on
			x.Cause = last.text()
		}
	}
	t.thrown, t.threw = x, f
	t.happened(e.Time, f, &point{thrown: x})
}

// happened adds a point.
func (t *thread) happened(at int64, f *flow, p *point) {
	t.pieces = append(t.pieces, piece{from: at, to: at, flow: f, point: p})
}

// maxCompiling is how many compilations of a thread may be open: the JIT compiles inside each other what it has to run.
const maxCompiling = 64

// compile begins to compile a method. What began long before, and was not ready since, never will be.
func (t *thread) compile(e *Event) {
	if len(t.compiling) == maxCompiling {
		t.compiling = append(t.compiling[:0], t.compiling[1:]...)
	}
	t.compiling = append(t.compiling, compilation{method: e.Task, from: e.Time})
}

// compiled notes that a method is ready. Those that began inside it and are not have failed.
func (t *thread) compiled(e *Event, f *flow) {
	took := int64(0)
	for i := len(t.compiling) - 1; i >= 0; i-- {
		c := &t.compiling[i]
		if c.method != e.Task {
			continue
		}
		all := e.Time - c.from
		if i > 0 {
			t.compiling[i-1].inside += all
		}
		took = max(0, all-c.inside)
		t.compiling = t.compiling[:i]
		break
	}
	t.happened(e.Time, f, &point{compiled: took})
}

func (t *thread) block(end Kind, s State, caller stacks.StackID) {
	if len(t.blocks) < 64 {
		t.blocks = append(t.blocks, block{end, s, caller})
	}
}

// waiter returns who waits for the lock of a LockBegin or the task of a WaitBegin, with its callers.
func (g *Engine) waiter(e *Event) stacks.StackID {
	if e.Cut {
		return 0
	}
	for s := e.Stack; s != 0; {
		up, f := g.o.Tree.Node(s)
		switch g.o.Role(f) {
		case Locks, Inside, Follows, AtOnce, Tracing, Waits, Sleeps, Parks, Polls, Turns:
		default:
			return s
		}
		s = up
	}
	return 0
}

// gaveUp reports whether an event of a thread shows that its wait for a lock or a task is over:
// Lock.TryEnter that gives up tells no end of it, TplEventSource tells that of Task.Wait at level
// Verbose only, and ends may be lost. A thread that waits does no work, and who waits is on its
// stack.
func (g *Engine) gaveUp(b *block, e *Event) bool {
	switch e.Kind {
	case Start, Stop:
		if !e.Runtime {
			return true
		}
	case LockBegin:
		if b.end == LockEnd { // else it may need one to wait
			return true
		}
	case WorkBegin, WorkEnd, StepBegin, StepEnd, TaskMade, TaskReady, TaskYields, TaskContinues, TaskTaken, TaskAwait, WaitBegin, Throw, Enqueue, Dequeue:
		return true
	}
	if b.caller == 0 || e.Stack == 0 || e.Cut {
		return false
	}
	s := e.Stack
	for depth := g.o.Tree.Depth(b.caller); g.o.Tree.Depth(s) > depth; {
		s, _ = g.o.Tree.Node(s)
	}
	return s != b.caller
}

// unblock ends the newest wait that end can end, and those that began inside it.
func (t *thread) unblock(end Kind) {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		if t.blocks[i].end == end {
			t.blocks = t.blocks[:i]
			return
		}
	}
}

// begin opens a scope that an event tells of.
func (g *Engine) begin(t *thread, e *Event) {
	f := t.top().flow
	if e.Kind == WorkBegin {
		g.taken(t, e)
		f = g.task(e.Process, e.Task)
		if f == nil {
			f = g.flows.add(flow{born: g.now})
		}
	}
	depth := g.writer(t)
	// What begins at the place of another piece of work follows it.
	for len(t.scopes) > 1 && t.top().depth > depth {
		t.scopes = t.scopes[:len(t.scopes)-1]
	}
	t.scopes = append(t.scopes, scope{depth: depth, flow: f, explicit: e.Kind, task: e.Task})
}

// end closes the innermost scope of its kind.
func (g *Engine) end(t *thread, e *Event) {
	want := WorkBegin
	if e.Kind == StepEnd {
		want = StepBegin
	}
	for i := len(t.scopes) - 1; i > 0; i-- {
		if t.scopes[i].explicit == want {
			if want == WorkBegin && i+1 < len(t.scopes) {
				// It goes on later in the flow that it leaves.
				g.setTask(e.Process, t.scopes[i].task, t.scopes[i+1].flow)
			}
			if t.scopes = t.scopes[:i]; i <= t.cut {
				t.cut = 0
			}
			return
		}
	}
}

// writer returns the depth of the frame that wrote the newest event.
func (g *Engine) writer(t *thread) int {
	if t.cut > 0 {
		return t.top().depth
	}
	for i, n := range t.nodes {
		if g.role(n) == Tracing {
			return max(i-1, 0)
		}
	}
	return max(len(t.nodes)-1, t.top().depth)
}

func (g *Engine) task(process uint32, id int64) *flow {
	return g.known(taskKey{process: process, id: id})
}

func (g *Engine) known(k taskKey) *flow {
	if f, ok := g.tasks[0][k]; ok {
		return f
	}
	return g.tasks[1][k]
}

func (g *Engine) setTask(process uint32, id int64, f *flow) {
	g.set(taskKey{process: process, id: id}, f)
}

// setUntold notes that something which is no task, as a pooled method is none, goes on in a flow when a task
// is done. No event tells when it does, and of several in different flows not which.
func (g *Engine) setUntold(k taskKey, f *flow) {
	for _, tasks := range g.tasks {
		if old, ok := tasks[k]; ok && (old == nil || !old.with(f)) {
			f = nil
		}
	}
	g.set(k, f)
}

func (g *Engine) set(k taskKey, f *flow) {
	if len(g.tasks[0]) >= maxTasks {
		g.tasks[0], g.tasks[1] = map[taskKey]*flow{}, g.tasks[0]
	}
	g.tasks[0][k] = f
}

// flush hands out what is known of t.
func (g *Engine) flush(t *thread, all bool) {
	for t.head < len(t.pieces) {
		p := &t.pieces[t.head]
		if !all && t.head >= t.proof && g.now-p.from < horizon {
			break // the next event may still tell that it is otherwise
		}
		if !all && !p.flow.known && g.pending(t, p) {
			break
		}
		g.eliminate(t, p)
		g.hand(t, &t.pieces[t.head])
		t.head++
	}
	t.trim()
}

// pending reports whether the flow of a piece may still become known.
func (g *Engine) pending(t *thread, p *piece) bool {
	if g.now-p.from > horizon {
		return false
	}
	for i := range t.scopes {
		if t.scopes[i].flow == p.flow {
			return true
		}
	}
	return false
}

// hand hands out a piece, cut where the activity ends before it.
func (g *Engine) hand(t *thread, p *piece) {
	s, f := &g.segment, p.flow
	s.Process, s.Thread, s.From, s.To = t.key.process, t.key.id, p.from, p.to
	s.State, s.Stack, s.Thrown, s.Ready, s.Compiled = p.state, p.stack, nil, false, 0
	if p.point != nil {
		s.Thrown, s.Ready, s.Compiled = p.point.thrown, p.point.thrown == nil, p.point.compiled
	}
	s.Activity, s.Known, s.Idle, s.Born = nil, f.known, f.root && !f.known && !f.under, f.born
	s.Earlier = f.earlier && p.from <= g.o.Before[t.key.process]
	if f.known {
		s.Activity = f.activity.servedAt(p.from)
		if f.first != 0 && s.Activity != nil && !f.noted {
			f.noted = true
			s.Activity.note(t, f)
		}
	}
	g.o.Segment(s)
}

// Finish hands out the rest.
func (g *Engine) Finish() {
	for _, t := range g.order {
		g.flush(t, true)
	}
}

// HasIDs reports whether any event had an activity id.
func (g *Engine) HasIDs() bool { return g.hasIDs }

// IDs returns what decodes the ids of activities, as far as is known by now how to read them.
func (g *Engine) IDs() activity.Decoder { return g.acts.ids }

// settled reports whether all segments before a time were handed out.
func (g *Engine) settled(before int64) bool {
	if g.now < before || g.late != nil && g.late.waits(before) {
		return false
	}
	for _, t := range g.order {
		if t.waits(before) {
			g.late = t
			return false
		}
	}
	return true
}
