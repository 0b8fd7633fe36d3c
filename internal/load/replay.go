package load

import (
	"fmt"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A replay finds the threads of events when the file is read another time.
type replay struct {
	l      *loader
	procs  map[int][]*process // those of one id, one after the other
	system int                // events of Universal.System so far
	newest struct {           // what was asked for last, as it mostly is again
		pid int
		tid uint64
		t   *thread // nil: nothing
	}
}

func newReplay(l *loader) *replay {
	r := &replay{l: l, procs: map[int][]*process{}}
	for _, p := range l.order {
		r.procs[int(p.trace.PID)] = append(r.procs[int(p.trace.PID)], p)
	}
	return r
}

// pass takes an event of Universal.System: at the same one as on the first reading its
// id goes to another process.
func (r *replay) pass(ev *nettrace.Event) {
	r.system++
	if list := r.procs[ev.ProcessID]; len(list) > 1 && list[1].since == r.system {
		r.procs[ev.ProcessID], r.newest.t = list[1:], nil
	}
}

// thread returns the thread an event is about, nil if it was not seen before.
func (r *replay) thread(ev *nettrace.Event) *thread {
	tid := ev.ThreadID
	if ev.Thread != nil {
		tid = ev.Thread.ID
	}
	last := &r.newest
	if last.t != nil && last.pid == ev.ProcessID && last.tid == tid {
		return last.t
	}
	list := r.procs[ev.ProcessID]
	if len(list) == 0 {
		return nil
	}
	last.pid, last.tid, last.t = ev.ProcessID, tid, list[0].threads[tid]
	return last.t
}

// sameEvents returns an error if another reading of the file had another number of events
// than the first one: what was found then does not go with them. A recording that goes on
// may grow where more is no harm.
func (l *loader) sameEvents(n int, grow bool) error {
	if int64(n) == l.info.Events || grow && int64(n) > l.info.Events {
		return nil
	}
	return fmt.Errorf("expected %d events as at first, found %d: %w", l.info.Events, n, input.ErrChanged)
}

// sampleOf tells whether the loader keeps a sample of an event, and of which type:
// then the n-th such event of a thread is sample n of it, unless filters were set.
func (l *loader) sampleOf(ev *nettrace.Event) (profile.SampleType, bool) {
	m := ev.Metadata
	switch {
	case m.Role == nettrace.RoleSample:
		return SampleType(ev), true
	case m.Role == nettrace.RoleCPU:
		return profile.SampleCPU, true
	case m.Role == nettrace.RoleContextSwitch:
		return profile.SampleOffCPU, true
	case !tracked(m), m.Role == nettrace.RolePageFault, m.Source == nettrace.SourceEventPipe, namesCode(m):
		return 0, false
	}
	return profile.SampleEvent, ev.Stack.Len() > 0
}

// A rereader is told the events of another reading with their threads: all but those that
// tracks are not about.
type rereader struct {
	l    *loader
	r    *nettrace.Reader
	seen *replay
	n    int
	f    func(ev *nettrace.Event, now int64, t *thread) bool // false: enough
}

// Begin implements input.Consumer.
func (a *rereader) Begin(r *nettrace.Reader) { a.r = r }

// Event implements input.Consumer.
func (a *rereader) Event(ev *nettrace.Event) error {
	a.n++
	if ev.Metadata.Source == nettrace.SourceSystem {
		a.seen.pass(ev)
	}
	if !tracked(ev.Metadata) {
		return nil
	}
	if t := a.seen.thread(ev); t != nil && !a.f(ev, a.r.Nanos(ev.Time), t) {
		return input.ErrStop
	}
	return nil
}

// End implements input.Consumer.
func (a *rereader) End() {}
