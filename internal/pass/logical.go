package pass

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// This file makes logical stacks of those that were recorded: who awaits whom, from
// the outermost method that waits for the result to the one that runs.
//
// An async method that awaits leaves its thread. When it is resumed its stack begins with
// what resumed it, and not with what awaits its result. Events of the task library tell who
// that is: which task a thread runs, and which task is awaited by which other one.
//
//   - The innermost method that was resumed is found by the names of what calls it. What
//     stands above it resumed it, or is done.
//   - Its awaiters, theirs, and so on stand above it instead; the outermost may be a thread
//     that waits for a task, with its own stack. A task that is done when another one is, as
//     that of Task.WhenAll, stands between those two without a frame, and what the values of an
//     async iterator resume awaits it.
//   - What runs below it are calls like any other: of an async method that has not been left
//     yet its caller is on the stack. Only the methods that begin it are dropped.
//   - Above a task that nobody is told to await, as one that is waited for with others or by nobody,
//     stands what called the async method, as its stack was when that was left for the first time, or
//     gave the task to the pool, and between them [started].
//   - Where no event tells who awaits, a method is taken for the awaiter that called this one
//     in every stack in which it had not been left yet. Else the frame [caller unknown] stands
//     for those above.

// LogicalStacks puts the logical stacks in place of those of all samples of p, but of events that
// are only evidence. It comes after a repair and before a selection.
func LogicalStacks(p *profile.Profile) {
	// The numbers of tasks are those of their process.
	told := map[*profile.Process]*profile.Profile{}
	rest := &profile.Profile{Table: p.Table, Losses: p.Losses}
	for _, t := range p.Threads {
		if t.Tasks.Len() > 0 && told[t.Process] == nil {
			told[t.Process] = &profile.Profile{Table: p.Table, Losses: p.Losses, Processes: []*profile.Process{t.Process}}
		}
	}
	for _, t := range p.Threads {
		part := cmp.Or(told[t.Process], rest)
		part.Threads = append(part.Threads, t)
	}
	for _, process := range processesOf(p) {
		if part := told[process]; part != nil {
			rewrite(part)
		} else {
			rest.Processes = append(rest.Processes, process)
		}
	}
	rewrite(rest)
}

func rewrite(p *profile.Profile) {
	w := &rewriter{
		tab: p.Table, roles: make([]asyncRole, p.Table.Methods()),
		awaits: map[uint32]await{}, waiting: map[uint32]wait{}, starters: map[uint32]starter{}, created: map[uint32]await{}, moves: map[uint32]uint32{},
		iterators: map[profile.MethodID]bool{}, workers: map[uint32]profile.MethodID{}, above: map[profile.MethodID]profile.StackID{},
		callers: map[profile.MethodID]caller{}, resumed: map[profile.MethodID]bool{},
		prefixes: map[uint32]profile.StackID{}, memo: map[memoKey]profile.StackID{},
	}
	synthetic := func(name string) profile.FrameID {
		return p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Name: name, Kind: profile.Synthetic})})
	}
	w.unknown, w.started = synthetic(profile.CallerUnknown), synthetic(profile.Started)
	w.bridge = p.Table.AddBridge()
	w.findIterators()
	w.findLoops()
	threads := threadsOf(p)
	visitTasks(p, func(t *profile.Thread, i int, s *profile.Sample, at *atTask) {
		if i == 0 {
			w.last = 0
		}
		if at.Own != nil {
			w.learn(s, at, w.misses(threads[t], i, s))
		}
	})
	for task, c := range w.created {
		if b, ok := w.created[c.by]; ok && !w.told {
			w.awaits[task] = await{by: c.by, frame: b.frame}
		}
	}
	for task, by := range w.moves {
		if c := w.created[by]; c.seen && !w.awaited(task) {
			w.awaits[task] = await{by: by, frame: c.frame}
		}
	}
	for _, j := range w.joins {
		if in := w.created[j.task].in; w.created[j.by].unwraps && in != 0 && in != j.by {
			w.joins = append(w.joins, join{in, j.by}) // what returned it ran in the one that is unwrapped
		}
	}
	for _, all := range []bool{false, true} { // one that is awaited itself comes first
		for i := len(w.joins) - 1; i >= 0; i-- { // inner ones stand behind
			j := w.joins[i]
			if !w.awaited(j.task) && (all || w.awaited(j.by)) {
				w.awaits[j.task] = await{by: j.by, frame: noFrame}
			}
		}
	}
	w.learnCallers(p)
	w.joinWorkers()
	threads = threadsOf(p)
	visitTasks(p, func(t *profile.Thread, i int, s *profile.Sample, at *atTask) {
		th := threads[t]
		id := s.Stack
		if th.counts(i) || s.Type != profile.SampleEvent {
			id = w.logical(s, at, w.misses(th, i, s))
		}
		th.stacks.Add(&id)
	})
	for t, th := range threads {
		i := -1
		t.Samples.Change(func(s *profile.Sample) bool {
			i++
			old := s.Stack
			s.Stack = th.stacks.At(i)
			return s.Stack != old
		})
	}
}

// A thread is what becomes of the samples of one.
type thread struct {
	stacks  *spool.List[profile.StackID]
	repairs profile.RepairCursor
	values  profile.ValueCursor
}

// threadsOf returns the threads of p, to be gone through once.
func threadsOf(p *profile.Profile) map[*profile.Thread]*thread {
	threads := make(map[*profile.Thread]*thread, len(p.Threads))
	for _, t := range p.Threads {
		threads[t] = &thread{stacks: spool.ListIn[profile.StackID](t.Samples.Spool()), repairs: t.Repairs.Cursor(), values: t.Values.Cursor()}
	}
	return threads
}

// misses reports whether callers are missing in the stack of sample i of t. It is asked in order.
func (w *rewriter) misses(t *thread, i int, s *profile.Sample) bool {
	return s.Cut != profile.Whole && (t.repairs.Of(i) == nil || w.lost(s.Stack) != 0)
}

// counts reports whether sample i has a value. It is asked in order.
func (t *thread) counts(i int) bool { return len(t.values.Of(i)) > 0 }

// An await is who awaits a task: another one, in whose body this is; noFrame: it has none.
type await struct {
	by    uint32
	frame profile.FrameID
	// Of a task in itself: it was seen to begin; to end; and somebody was told that it ended.
	seen, over, told bool
	unwraps          bool   // it stands for one that another one returns
	in               uint32 // the task whose code made it before anything in that was left
}

const (
	noFrame  = ^profile.FrameID(0)
	noMethod = ^profile.MethodID(0)
)

// A join is a task that is done when another one is: Task.WhenAll, and what Task.Run returns of a method.
type join struct{ task, by uint32 }

// A wait is a thread that waits for a task: its stack down to the method that does.
type wait struct {
	stack profile.StackID
	node  profile.StackID // of the task that it runs meanwhile, if any
	task  uint32
	cut   bool // callers are missing
}

// A starter is a stack that called an async method or gave a task to the pool, down to the method that did.
type starter struct {
	wait
	base profile.StackID // what is of the pool; 0: it is no thread of that, or goes on with something
}

// A caller is what calls an async method that has not been left yet.
type caller struct {
	frame   profile.FrameID
	unknown bool // more than one, or none that is async
	samples int  // that show it
}

// leastSamples is how many samples must show the same caller of a method for it to be taken
// for the only one: the first calls of a chain that calls itself show one, and not the other.
const leastSamples = 5

type memoKey struct {
	stack, node profile.StackID
	task        uint32
	cut         bool
}

type rewriter struct {
	tab       *profile.Table
	roles     []asyncRole // by method
	unknown   profile.FrameID
	started   profile.FrameID
	bridge    profile.MethodID
	awaits    map[uint32]await // by the task that is awaited
	waiting   map[uint32]wait
	starters  map[uint32]starter        // who called the async method of a task that was awaited by none so far
	told      bool                      // who awaits whom
	tells     bool                      // who was told that a task ended, too
	created   map[uint32]await          // what awaits a task, if no event tells that, and its own body
	joins     []join                    // as they were told
	moves     map[uint32]uint32         // by the task of an async iterator: the one that its values resumed
	iterators map[profile.MethodID]bool // bodies of async iterators, whose tasks nobody awaits
	loops     loops
	workers   map[uint32]profile.MethodID          // by the task of a worker of such a loop: what it runs for each element
	above     map[profile.MethodID]profile.StackID // by that: those who await the loops
	last      uint32                               // the task that was created last on the thread, from lastAt
	lastAt    profile.StackID
	callers   map[profile.MethodID]caller
	resumed   map[profile.MethodID]bool  // methods of runtime async that were left
	prefixes  map[uint32]profile.StackID // by task: those who await it
	memo      map[memoKey]profile.StackID
	path      []profile.FrameID
	depth     int // of threads that wait for each other
}

func (w *rewriter) role(f profile.FrameID) asyncRole {
	m := w.tab.Method(f)
	if int(m) >= len(w.roles) {
		w.roles = append(w.roles, make([]asyncRole, w.tab.Methods()-len(w.roles))...)
	}
	if w.roles[m] == 0 {
		w.roles[m] = asyncLooked | asyncRoleOf(w.tab.MethodAt(m))
	}
	return w.roles[m]
}

func (w *rewriter) roleAt(s profile.StackID) asyncRole { return w.role(w.tab.Frame(s)) }

// isResumed reports whether the innermost frame of s is that of an async method that was
// left and goes on.
func (w *rewriter) isResumed(s profile.StackID) bool {
	up := w.tab.Parent(s)
	if up == 0 {
		return false
	}
	r := w.roleAt(s)
	if r&body != 0 {
		return w.roleAt(up)&resumes != 0
	}
	return r&(resumes|starts|waits) == 0 && w.roleAt(up)&dispatch != 0
}

// innermostResumed returns the innermost method in s that was left and goes on, 0 if there
// is none behind the frames that were lost.
func (w *rewriter) innermostResumed(s profile.StackID) profile.StackID {
	for ; s != 0 && w.tab.Method(w.tab.Frame(s)) != w.bridge; s = w.tab.Parent(s) {
		if w.isResumed(s) {
			return s
		}
	}
	return 0
}

// innermostBody returns the innermost body of an async method in s.
func (w *rewriter) innermostBody(s profile.StackID) profile.StackID {
	for ; s != 0; s = w.tab.Parent(s) {
		if w.roleAt(s)&body != 0 || w.isResumed(s) {
			return s
		}
	}
	return 0
}

// learn takes what an event tells, with its stack, whose callers may be missing.
func (w *rewriter) learn(s *profile.Sample, at *atTask, cut bool) {
	switch m := at.Own; m.Kind {
	case profile.TaskCreated:
		c := w.created[m.Task]
		c.by, c.frame, c.seen = at.Awaiter(m.Task), w.unknown, true
		if b := w.innermostBody(s.Stack); b != 0 {
			c.frame = w.tab.Frame(b)
		}
		c.unwraps = m.Other == profile.TaskUnwrap
		if node, task := at.Innermost(); task != 0 && w.tab.Depth(w.innermostResumed(s.Stack)) < w.tab.Depth(node) {
			c.in = task
		}
		w.created[m.Task] = c
		w.learnStarter(s, at, cut)
		stack := w.waiter(s.Stack)
		if m.Other == profile.TaskUnwrap && stack != 0 && stack == w.lastAt && w.last != 0 {
			w.joins = append(w.joins, join{w.last, m.Task}) // one call made both, as Task.Run does
		}
		w.last, w.lastAt = m.Task, stack
	case profile.TaskBegins:
		if m.Other == runs {
			w.learnMove(s, at)
			return
		}
		w.tells = true
		c := w.created[m.Task]
		c.told = true
		w.created[m.Task] = c
		w.learnJoin(at)
		w.learnLoop(s, at)
	case profile.TaskJoins:
		w.learnJoin(at)
	case profile.TaskCompleted:
		c := w.created[m.Task]
		c.over = true
		w.created[m.Task] = c
	case profile.TaskAwaited:
		w.told = true
		delete(w.starters, m.Task)
		if m.Other == 0 {
			stack := w.waiter(s.Stack)
			node, task := w.resumedAt(stack, at)
			w.waiting[m.Task] = wait{stack, node, task, cut}
		} else if b := w.innermostBody(s.Stack); b != 0 {
			w.awaits[m.Task] = await{by: m.Other, frame: w.tab.Frame(b)}
			w.learnWorker(m, w.tab.Frame(b))
		}
	}
}

// learnStarter takes who called an async method that is left for the first time, or gave a task to the
// pool. What a thread of the pool began with has nobody above it.
func (w *rewriter) learnStarter(s *profile.Sample, at *atTask, cut bool) {
	up, inner := s.Stack, s.Stack // and what it called
	for up != 0 && w.roleAt(up)&waits != 0 {
		up, inner = w.tab.Parent(up), up
	}
	if up != 0 && w.roleAt(up)&body != 0 && w.roleAt(inner)&hands != 0 && !w.isResumed(up) {
		up = w.callerOf(up) // the task is its own
	}
	if w.waiter(up) == 0 {
		return
	}
	var base profile.StackID
	if w.innermostBody(up) == 0 {
		if base = w.poolBase(up); base == up {
			return
		}
	}
	node, task := w.resumedAt(up, at)
	w.starters[at.Own.Task] = starter{wait{up, node, task, cut}, base}
}

// poolBase returns the innermost frame of s that is no more than a thread of the pool that takes work,
// 0 if that is not one.
func (w *rewriter) poolBase(s profile.StackID) profile.StackID {
	var path []profile.StackID // innermost first
	for ; s != 0; s = w.tab.Parent(s) {
		name := nameOf(w.tab.MethodOf(w.tab.Frame(s)))
		if !strings.HasPrefix(name, "System.Threading.ThreadPoolWorkQueue.Dispatch(") {
			path = append(path, s)
			continue
		}
		for _, inner := range slices.Backward(path) {
			if w.roleAt(inner)&waits == 0 && !strings.Contains(nameOf(w.tab.MethodOf(w.tab.Frame(inner))), ".IThreadPoolWorkItem.Execute(") {
				break
			}
			s = inner
		}
		return s
	}
	return 0
}

// callerOf returns what stands above the async method with the body at b and what begins it.
func (w *rewriter) callerOf(b profile.StackID) profile.StackID {
	s := w.tab.Parent(b)
	for s != 0 && w.roleAt(s)&starts != 0 {
		s = w.tab.Parent(s)
	}
	if s != 0 && w.begins(w.tab.Frame(s), w.tab.Frame(b)) {
		s = w.tab.Parent(s)
	}
	return s
}

// learnJoin takes what an event tells of a task while its thread tells those who wait for another one.
func (w *rewriter) learnJoin(at *atTask) {
	if task := at.Telling(); task != 0 && task != at.Own.Task {
		w.joins = append(w.joins, join{task, at.Own.Task})
	}
}

// waiter returns the innermost frame of s that is no part of waiting for a task.
func (w *rewriter) waiter(s profile.StackID) profile.StackID {
	for s != 0 && w.roleAt(s)&waits != 0 {
		s = w.tab.Parent(s)
	}
	return s
}

// learnMove takes what begins to run a task. Where the body of an async iterator did it right from its
// stack, it has handed out a value, and what goes on had awaited that.
func (w *rewriter) learnMove(s *profile.Sample, at *atTask) {
	b := at.r.writer(s.Stack)
	for b != 0 && w.roleAt(b)&hands != 0 {
		b = w.tab.Parent(b)
	}
	if b != 0 && w.iterators[w.tab.Method(w.tab.Frame(b))] && w.isResumed(b) {
		if task := at.Task(b, w.resumer(b)); task != 0 {
			w.moves[task] = at.Own.Task
		}
	}
}

// findIterators notes the bodies of async iterators.
func (w *rewriter) findIterators() {
	for s := range profile.StackID(w.tab.Len()) {
		up := w.tab.Parent(s)
		if up == 0 {
			continue
		}
		if w.roleAt(up)&starts != 0 && w.roleAt(up)&iterates == 0 {
			up = w.tab.Parent(up) // AsyncMethodBuilderCore.Start
		}
		if up == 0 || (w.roleAt(s)|w.roleAt(up))&iterates == 0 {
			continue
		}
		for _, b := range []profile.StackID{s, up} {
			if w.roleAt(b)&body != 0 {
				w.iterators[w.tab.Method(w.tab.Frame(b))] = true
			}
		}
	}
}

// awaited reports whether it is known who waits for a task.
func (w *rewriter) awaited(task uint32) bool {
	_, ok := w.awaits[task]
	return ok || w.waiting[task].stack != 0
}

// isStarted reports whether it is known what started a task that nobody is told to await.
func (w *rewriter) isStarted(task uint32) bool { return w.told && w.starters[task].stack != 0 }

// learnCallers notes for all async methods who calls them where they had not been left.
func (w *rewriter) learnCallers(p *profile.Profile) {
	n := w.tab.Len()
	root, inner := make([]profile.StackID, n), make([]profile.StackID, n) // the innermost body
	for s := profile.StackID(1); int(s) < n; s++ {                        // callers come first
		up := w.tab.Parent(s)
		root[s], inner[s] = root[up], inner[up]
		if up == 0 {
			root[s] = s
		}
		if resumed := w.isResumed(s); resumed || w.roleAt(s)&body != 0 {
			inner[s] = s
			if resumed && w.roleAt(s)&body == 0 {
				w.resumed[w.tab.Method(w.tab.Frame(s))] = true
			}
		}
	}
	whole := make([]bool, n)  // stacks of one frame: some begin so that are not cut
	samples := make([]int, n) // that hold the stack
	for _, t := range p.Threads {
		for _, s := range t.Samples.All() {
			samples[s.Stack]++
			if s.Cut == profile.Whole {
				whole[root[s.Stack]] = true
			}
		}
	}
	for s := n - 1; s > 0; s-- {
		samples[w.tab.Parent(profile.StackID(s))] += samples[s]
	}
	for s := profile.StackID(1); int(s) < n; s++ {
		m, up := w.tab.Method(w.tab.Frame(s)), w.tab.Parent(s)
		if w.roleAt(s)&body == 0 && !w.resumed[m] || w.isResumed(s) {
			continue
		}
		by := inner[up]
		if w.roleAt(s)&body == 0 {
			by = 0
			if up != 0 && w.resumed[w.tab.Method(w.tab.Frame(up))] {
				by = up
			}
		}
		if by != 0 || whole[root[s]] {
			w.called(m, by, samples[s])
		}
	}
}

// called notes that n samples show the async method m called by the one at b, 0 for none.
func (w *rewriter) called(m profile.MethodID, b profile.StackID, n int) {
	c, ok := w.callers[m]
	c.samples += n
	switch {
	case b == 0:
		c.unknown = true
	case !ok:
		c.frame = w.tab.Frame(b)
	case w.tab.Method(c.frame) != w.tab.Method(w.tab.Frame(b)):
		c.unknown = true
	}
	w.callers[m] = c
}

// resumedAt returns where the part of a stack begins that runs for somebody who awaits it,
// and its task: 0 where there is no such part, or the task is not known.
func (w *rewriter) resumedAt(s profile.StackID, at *atTask) (node profile.StackID, task uint32) {
	if node = w.innermostResumed(s); node != 0 {
		return node, at.Task(node, w.resumer(node))
	}
	return at.Innermost()
}

// resumer returns the innermost frame above node that does more than to resume it, the outermost one
// if all do only that. What began above it resumed something else: a pooled method and one
// that awaits another source of values than a task are resumed without an event.
func (w *rewriter) resumer(node profile.StackID) profile.StackID {
	s := w.tab.Parent(node)
	for w.roleAt(s)&resumes != 0 && w.tab.Parent(s) != 0 {
		s = w.tab.Parent(s)
	}
	return s
}

// logical returns the logical stack of a sample, whose callers may be missing.
func (w *rewriter) logical(s *profile.Sample, at *atTask, cut bool) profile.StackID {
	node, task := w.resumedAt(s.Stack, at)
	return w.join(s.Stack, node, task, cut)
}

// lost returns where frames of s were lost, 0 if none were.
func (w *rewriter) lost(s profile.StackID) profile.StackID {
	for s != 0 && w.tab.Method(w.tab.Frame(s)) != w.bridge {
		s = w.tab.Parent(s)
	}
	return s
}

// join returns the frames of s from node on below those who await the task.
func (w *rewriter) join(s, node profile.StackID, task uint32, cut bool) profile.StackID {
	key := memoKey{s, node, task, cut}
	if id, ok := w.memo[key]; ok {
		return id
	}
	var id profile.StackID
	resumed := node != 0 && (w.roleAt(node)&body != 0 || w.isResumed(node))
	loop := profile.StackID(0)
	if node == 0 {
		loop = w.worker(s)
	}
	switch {
	case loop != 0:
		id = w.push(w.above[w.calledBy(s, loop)], s, w.tab.Parent(loop), false)
	case node == 0, !resumed && !w.awaited(task) && !w.isStarted(task):
		id = w.whole(s, cut) // nobody is known to wait for it: it is shown as it runs
	case resumed:
		if task != 0 {
			id = w.awaiters(task, w.tab.Method(w.tab.Frame(node)))
		} else {
			id = w.callersOf(w.tab.Method(w.tab.Frame(node)))
		}
		id = w.push(id, s, w.tab.Parent(node), false)
	default: // what runs the task, and not its code
		id = w.push(w.awaiters(task, noMethod), s, node, true)
	}
	w.memo[key] = id
	return id
}

// whole returns a stack in which nothing was resumed, or that is cut before it shows what.
func (w *rewriter) whole(s profile.StackID, cut bool) profile.StackID {
	if !cut {
		return w.push(0, s, 0, false)
	}
	return w.push(w.tab.Push(0, w.unknown), s, w.lost(s), false)
}

// push adds the frames of s behind node to those of id, without what only begins an async
// method; at the start also without what runs tasks.
func (w *rewriter) push(id, s, node profile.StackID, runsTask bool) profile.StackID {
	w.path = w.path[:0]
	for ; s != node; s = w.tab.Parent(s) {
		w.path = append(w.path, w.tab.Frame(s))
	}
	slices.Reverse(w.path)
	path := w.path
	for runsTask && len(path) > 1 && w.role(path[0])&resumes != 0 {
		path = path[1:]
	}
	kept := path[:0]
	for _, f := range path {
		if w.role(f)&body != 0 {
			kept = w.dropStart(kept, f)
		}
		kept = append(kept, f)
	}
	for _, f := range kept {
		id = w.tab.Push(id, f)
	}
	return id
}

// dropStart takes off what begins the async method whose body f is: the method that its
// callers call, and what that calls.
func (w *rewriter) dropStart(path []profile.FrameID, f profile.FrameID) []profile.FrameID {
	n := len(path)
	for n > 0 && w.role(path[n-1])&starts != 0 {
		n--
	}
	if n > 0 && w.begins(path[n-1], f) {
		n--
	}
	return path[:n]
}

// begins reports whether f is the async method whose body b is.
func (w *rewriter) begins(f, b profile.FrameID) bool {
	m, of := w.tab.MethodOf(f), w.tab.MethodOf(b)
	method := methodOf(nameOf(of))
	return method != "" && m.Module == of.Module && isMethod(nameOf(m), method)
}

// awaiters returns the stack of those who await a task, the outermost first. m is the
// method that runs it, which tells more where nobody is known to await it.
func (w *rewriter) awaiters(task uint32, m profile.MethodID) profile.StackID {
	var below []uint32 // awaited by the next one, the last by task
	seen := map[uint32]bool{}
	for {
		a, ok := w.awaits[task]
		if _, known := w.prefixes[task]; known || !ok || seen[task] {
			break
		}
		seen[task] = true
		below = append(below, task)
		task, m = a.by, noMethod
		if a.frame != noFrame {
			m = w.tab.Method(a.frame)
		}
	}
	id, known := w.prefixes[task]
	switch {
	case seen[task]: // they await each other
		id = w.callersOf(m)
	case !known:
		id = w.outermost(task, m)
		w.prefixes[task] = id
	}
	for _, t := range slices.Backward(below) {
		if w.tab.Depth(id) >= maxAwaiters {
			id = w.tab.Push(0, w.unknown)
		}
		if f := w.awaits[t].frame; f != noFrame {
			id = w.tab.Push(id, f)
		}
		w.prefixes[t] = id
	}
	return id
}

// maxAwaiters bounds the frames above a method, and the threads that wait for each other.
const maxAwaiters = 4096

// maxStarters bounds the frames above [started].
const maxStarters = 256

// outermost returns what stands above the method m, whose task no task awaits.
func (w *rewriter) outermost(task uint32, m profile.MethodID) profile.StackID {
	if waiting, ok := w.waiting[task]; ok && w.depth < maxAwaiters {
		w.prefixes[task] = w.tab.Push(0, w.unknown) // should it wait for itself
		w.depth++
		defer func() { w.depth-- }()
		return w.join(waiting.stack, waiting.node, waiting.task, waiting.cut)
	}
	if m, ok := w.workers[task]; ok {
		return w.aboveLoop(m)
	}
	if c := w.starters[task]; w.isStarted(task) && w.depth < maxAwaiters {
		w.prefixes[task] = w.tab.Push(0, w.unknown) // should it start itself
		w.depth++
		var id profile.StackID
		if c.base != 0 {
			id = w.push(0, c.stack, c.base, false)
		} else {
			id = w.join(c.stack, c.node, c.task, c.cut)
		}
		w.depth--
		if w.tab.Depth(id) >= maxStarters { // what starts itself again and again
			id = w.tab.Push(0, w.unknown)
		}
		return w.tab.Push(id, w.started)
	}
	if c := w.created[task]; c.seen && w.told && !w.iterators[m] {
		if w.tells && c.over && !c.told {
			return 0 // nobody waited for it
		}
		return w.tab.Push(0, w.unknown)
	}
	return w.callersOf(m)
}

// callersOf returns those who call the async method m as far as there is only one, below the
// frame for those who are not known.
func (w *rewriter) callersOf(m profile.MethodID) profile.StackID {
	var frames []profile.FrameID
	seen := map[profile.MethodID]bool{m: true}
	for {
		c, ok := w.callers[m]
		if !ok || c.unknown || c.samples < leastSamples {
			break
		}
		m = w.tab.Method(c.frame)
		if seen[m] {
			break
		}
		seen[m] = true
		frames = append(frames, c.frame)
	}
	id := w.tab.Push(0, w.unknown)
	for _, f := range slices.Backward(frames) {
		id = w.tab.Push(id, f)
	}
	return id
}
