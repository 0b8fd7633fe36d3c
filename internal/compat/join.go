package compat

import (
	"slices"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// A logged event is an event that makes a sample: stacks can be joined only when methods
// have names, which stand at the end of the file.
type logged struct {
	at       float64 // ms
	thread   *thread
	work     *work
	activity *activity       // the start/stop activity, nil: none
	stack    profile.StackID // recorded; 0: none
	onCPU    bool
	awaited  bool // an await has ended: it is a sample by itself
}

// A joined is a stack with the frames of those who caused it, drawn on the thread of the
// first of them.
type joined struct {
	stack  profile.StackID
	thread *thread
}

// A joiner puts the stack of a work below the one that created it.
type joiner struct {
	b         *builder
	starting  profile.FrameID
	roles     []methodRole // by method; 0: not looked at
	entries   map[profile.StackID]profile.StackID
	unchanged map[[2]profile.StackID]profile.StackID // by base and recorded stack
	chain     []*work
	nodes     []profile.FrameID
}

// replay makes samples of the log.
func (b *builder) replay() {
	j := joiner{
		b: b, starting: b.frame("STARTING TASK"),
		entries:   map[profile.StackID]profile.StackID{},
		unchanged: map[[2]profile.StackID]profile.StackID{},
	}
	await := b.frame("AWAIT_TIME")
	for i := range b.log {
		e := &b.log[i]
		if !e.thread.shown { // by a name that came later
			continue
		}
		s := j.join(e.stack, e.work, e.activity)
		if e.awaited {
			b.emit(e.work.created, e.at, s, await)
			continue
		}
		b.take(e.thread, e.at, s, e.onCPU)
	}
	b.log = nil
}

// join returns a stack recorded in w below the stacks of its creators.
func (j *joiner) join(stack profile.StackID, w *work, a *activity) joined {
	j.chain = j.chain[:0]
	for x := w; x.creator != nil && (x.full.thread == nil || x.top != a); x = x.creator {
		j.chain = append(j.chain, x)
	}
	for _, x := range slices.Backward(j.chain) {
		x.full, x.top = j.below(x.stack, x.creator, a), a
	}
	return j.below(stack, w, a)
}

// below does the same where the stack that w continues is known.
func (j *joiner) below(stack profile.StackID, w *work, a *activity) joined {
	if w.creator == nil {
		return j.alone(stack, w, a)
	}
	entry := profile.StackID(0)
	if stack != 0 {
		if entry = j.entry(stack); entry == 0 {
			return j.alone(stack, w, a)
		}
	}
	s := w.full
	if j.repeats(stack, entry, s.stack) {
		return s
	}
	tab := j.b.table
	s.stack = tab.Push(s.stack, j.starting)
	j.nodes = j.nodes[:0]
	for ; stack != entry; stack = tab.Parent(stack) {
		j.nodes = append(j.nodes, tab.Frame(stack))
	}
	for _, f := range slices.Backward(j.nodes) {
		s.stack = tab.Push(s.stack, f)
	}
	return s
}

// alone returns a stack as it was recorded, below its thread.
func (j *joiner) alone(stack profile.StackID, w *work, a *activity) joined {
	base := j.b.base(w.thread, a)
	key := [2]profile.StackID{base, stack}
	id, ok := j.unchanged[key]
	if !ok {
		id = base
		j.nodes = j.b.table.AppendFrames(j.nodes[:0], stack)
		for _, f := range j.nodes {
			id = j.b.table.Push(id, f)
		}
		j.unchanged[key] = id
	}
	return joined{id, w.thread}
}

// repeats reports whether the frames of stack behind entry are the leaf of onto already,
// as they are when a loop awaits again and again.
func (j *joiner) repeats(stack, entry, onto profile.StackID) bool {
	tab := j.b.table
	for ; stack != 0 && onto != 0; stack, onto = tab.Parent(stack), tab.Parent(onto) {
		if stack == entry {
			return tab.Frame(onto) == j.starting
		}
		if tab.Frame(stack) != tab.Frame(onto) {
			break
		}
	}
	return false
}

// entry returns the frame nearest to the leaf behind which a task runs: what the thread
// pool does before it is not shown. 0: there is none.
func (j *joiner) entry(stack profile.StackID) profile.StackID {
	if at, ok := j.entries[stack]; ok {
		return at
	}
	tab := j.b.table
	at := profile.StackID(0)
	for s := stack; ; s = tab.Parent(s) {
		if s == 0 {
			at = 0
			break
		}
		role := j.role(tab.Method(tab.Frame(s)))
		if role == roleHelper || role == roleRun && at == 0 {
			at = s
		}
		if role == roleRun {
			break
		}
		if role == roleUnknown {
			at = 0
		}
	}
	j.entries[stack] = at
	return at
}

// A methodRole is the part that a method plays in running tasks.
type methodRole uint8

const (
	roleOther   methodRole = iota + 1
	roleUnknown            // it has no name
	roleRun                // it runs a task
	roleHelper             // it is called to run a task
)

func (j *joiner) role(m profile.MethodID) methodRole {
	for int(m) >= len(j.roles) {
		j.roles = append(j.roles, make([]methodRole, j.b.table.Methods()-len(j.roles))...)
	}
	if j.roles[m] == 0 {
		j.roles[m] = roleOf(j.b.table.MethodAt(m))
	}
	return j.roles[m]
}

// roleOf tells methods of the core library apart by their full names.
func roleOf(m profile.Method) methodRole {
	if m.Kind == profile.Unresolved {
		return roleUnknown
	}
	module, name, _ := strings.Cut(m.Full(), "!")
	module = strings.ToLower(module)
	switch {
	case !strings.HasPrefix(module, "mscorlib") && !strings.Contains(module, "system.private.corelib"):
		return roleOther
	case strings.HasPrefix(name, "System.Threading.ExecutionContext.Run"),
		strings.HasPrefix(name, "System.Threading.Tasks.AwaitTaskContinuation.Run"),
		strings.HasPrefix(name, "System.Threading.Tasks.Task.Execute"):
		return roleRun
	case strings.Contains(name, "System.Threading.Tasks.Task") && strings.Contains(name, ".InnerInvoke"):
		return roleHelper
	}
	return roleOther
}
