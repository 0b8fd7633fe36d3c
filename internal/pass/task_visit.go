package pass

import (
	"context"
	"slices"

	"github.com/tracefix/tracefix/profile"
)

// An atTask is what events tell at the time of a sample. It is valid during the visit.
type atTask struct {
	// Own is what the event tells whose stack the sample is; nil: it is that of another
	// event, or of none.
	Own *profile.TaskMark
	r   *resolver
}

// visitTasks calls f for the samples of all threads, in order, with what has begun by then. It
// leaves p as it is, but for stacks that it adds.
func visitTasks(p *profile.Profile, f func(t *profile.Thread, i int, s *profile.Sample, at *atTask)) {
	threads := map[*profile.Process][]*profile.Thread{}
	for _, t := range p.Threads {
		threads[t.Process] = append(threads[t.Process], t)
	}
	for _, process := range processesOf(p) {
		r := newResolver(p, threads[process])
		if r == nil {
			r = &resolver{frames: newFrames(p.Table), events: &events{none, none}}
		} else if r.awaiter == nil {
			r.awaiter = awaiters(r.frames, threads[process])
		}
		for _, t := range threads[process] {
			r.visit = func(i int, s *profile.Sample, own *profile.TaskMark) { f(t, i, s, &atTask{own, r}) }
			_ = r.thread(context.Background(), t, breaks(p, t)) // it does not end
		}
	}
}

// processesOf lists the processes of p, and behind them those that only threads name: one that is
// made by hand may have none, and its threads be of none, which is nil here.
func processesOf(p *profile.Profile) []*profile.Process {
	list, listed := slices.Clone(p.Processes), map[*profile.Process]bool{}
	for _, x := range list {
		listed[x] = true
	}
	for _, t := range p.Threads {
		if !listed[t.Process] {
			listed[t.Process] = true
			list = append(list, t.Process)
		}
	}
	return list
}

// runs is the kind of work of events that tell of running a task.
const runs = 2

// Task returns the task that was running where the stack of the sample has node: what the
// innermost event from there to outer tells, a frame above it. 0: that is not known.
func (at *atTask) Task(node, outer profile.StackID) uint32 {
	r := at.r
	if r.skip < 0 {
		return 0
	}
	least, depth := r.tab.Depth(outer), r.tab.Depth(node)
	for i := r.skip; i < len(r.nodes); i++ {
		d := r.tab.Depth(r.nodes[i])
		if d < least {
			return 0
		}
		if d <= depth && i-r.skip < len(r.open) {
			return r.running(r.entry(i, r.skip))
		}
	}
	return 0
}

// Awaiter returns the task that awaits one, 0 if that is not known. Where no event tells it,
// it is the method that called the other one and was left right after it.
func (at *atTask) Awaiter(task uint32) uint32 { return at.r.awaiter[task] }

// running is the task that runs in what has begun with e, 0 if that is not known.
func (r *resolver) running(e *entry) uint32 {
	switch {
	case r.begin != profile.TaskBegins:
		return r.awaiter[e.task] // it is done
	case e.other == runs:
		return e.task
	}
	return 0
}

// Telling returns the task whose end the thread tells those who wait for it, and does nothing else
// meanwhile but what its own event begins; 0: there is none, or it is not known.
func (at *atTask) Telling() uint32 {
	r := at.r
	n := len(r.open)
	if at.Own.Kind == r.begin {
		n--
	}
	if n > 0 && r.skip >= 0 && r.begin == profile.TaskBegins && r.open[n-1].other != runs {
		return r.open[n-1].task
	}
	return 0
}

// Innermost returns the innermost place in the stack of the sample where a task was begun
// that still runs, and the task. 0: there is none, or it is not known.
func (at *atTask) Innermost() (node profile.StackID, task uint32) {
	r := at.r
	if r.skip < 0 || r.begin != profile.TaskBegins {
		return 0, 0
	}
	for i := r.skip; i < len(r.nodes) && i-r.skip < len(r.open); i++ {
		if e := r.entry(i, r.skip); e.other == runs {
			return r.nodes[i], e.task
		}
	}
	return 0, 0
}
