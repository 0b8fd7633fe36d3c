package runtimeevents

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/nettrace"
)

// A SuspendReason says why the runtime stopped all managed threads.
type SuspendReason uint32

// Reasons that concern collections.
const (
	SuspendForGC     SuspendReason = 1
	SuspendForGCPrep SuspendReason = 6 // the later pause of a background collection
)

var suspendReasons = []string{"Other", "GC", "AppDomainShutdown", "CodePitching", "Shutdown", "Debugger", "GCPrep", "DebuggerSweep"}

// String returns the name of the reason, or "Unknown".
func (r SuspendReason) String() string { return nameOf(suspendReasons, uint32(r)) }

// A Suspension is a time during which all managed threads of a process stood still.
// Its times are Unknown where the event is missing.
type Suspension struct {
	Process int
	Thread  uint64 // that suspended
	Reason  SuspendReason
	Count   uint32 // the last collection; of a background collection's later pause its own number

	Start     int64 // SuspendEEBegin
	Suspended int64 // SuspendEEEnd: all stand still
	Restart   int64 // RestartEEBegin
	Restarted int64 // RestartEEEnd

	by   *GC  // that claimed it
	over bool // its restart was lost
}

// ForGC reports whether a collection was the reason.
func (s *Suspension) ForGC() bool { return s.Reason == SuspendForGC || s.Reason == SuspendForGCPrep }

// Pause is the time from the start to the start of the restart, 0 if that is not known.
func (s *Suspension) Pause() int64 {
	if s.Restart == Unknown {
		return 0
	}
	return max(0, s.Restart-s.Start)
}

// Suspensions pairs the events of suspensions. The zero value is ready for use.
type Suspensions struct {
	open map[threadKey]*Suspension
	// stopped is by process the one since whose SuspendEEEnd all threads stand still: a file may
	// hold any number that has no end.
	stopped map[int]*Suspension
}

// Event takes an event and returns the suspension that it ends, if any: a RestartEEEnd, or
// one of another suspension on a thread whose last one lacks its end.
func (s *Suspensions) Event(ev *nettrace.Event, ns int64) *Suspension {
	if ev.Lost > 0 {
		s.lost(captureOf(ev))
	}
	id := runtimeID(ev)
	switch id {
	case IDSuspendEEBegin:
		return s.begin(ev, ns)
	case IDSuspendEEEnd, IDRestartEEBegin, IDRestartEEEnd:
	default:
		return nil
	}
	key := keyOf(ev)
	if id == IDSuspendEEEnd {
		s.stand(key)
	}
	open := s.open[key]
	if open == nil {
		return nil
	}
	switch id {
	case IDSuspendEEEnd:
		if open.Suspended != Unknown || open.Restart != Unknown { // of another one, whose beginning was lost
			delete(s.open, key)
			return open
		}
		open.Suspended = ns
		if s.stopped == nil {
			s.stopped = map[int]*Suspension{}
		}
		s.stopped[key.pid] = open
	case IDRestartEEBegin:
		if open.Restart != Unknown {
			delete(s.open, key)
			return open
		}
		if !open.over {
			open.Restart = ns
		}
	case IDRestartEEEnd:
		if !open.over {
			open.Restarted = ns
		}
		delete(s.open, key)
		return open
	}
	return nil
}

// lost takes that a thread wrote events that were lost: an end may be that of another one.
func (s *Suspensions) lost(key threadKey) {
	if o := s.open[key]; o != nil {
		o.over = true
	}
}

// stand notes that all threads of a process stand still since a thread asked for it. Only one can
// have that at a time: the restarts of others were lost.
func (s *Suspensions) stand(key threadKey) {
	if o := s.standing(key.pid); o != nil && o.Thread != key.tid {
		o.over = true
	}
}

// standing returns the suspension for which the threads of a process stand still, nil if there is none.
func (s *Suspensions) standing(pid int) *Suspension {
	o := s.stopped[pid]
	if o == nil || o.Restart != Unknown || o.over || s.open[threadKey{pid, o.Thread}] != o {
		return nil
	}
	return o
}

func (s *Suspensions) begin(ev *nettrace.Event, ns int64) (unfinished *Suspension) {
	c := ev.Cursor()
	n := &Suspension{Process: ev.ProcessID, Thread: ev.ThreadID, Start: ns, Suspended: Unknown, Restart: Unknown, Restarted: Unknown}
	if ev.Version == 0 {
		n.Reason = SuspendReason(c.U16())
	} else {
		n.Reason, n.Count = SuspendReason(c.U32()), c.U32()
	}
	if c.Err() != nil {
		return nil
	}
	if s.open == nil {
		s.open = map[threadKey]*Suspension{}
	}
	unfinished = s.open[keyOf(ev)]
	s.open[keyOf(ev)] = n
	return unfinished
}

// Open returns the suspensions of a process that have not ended, the newest last.
func (s *Suspensions) Open(pid int) []*Suspension { return s.unended(pid, false) }

// unended is Open of a process or of all.
func (s *Suspensions) unended(pid int, all bool) (open []*Suspension) {
	for _, o := range s.open {
		if all || o.Process == pid {
			open = append(open, o)
		}
	}
	slices.SortFunc(open, func(a, b *Suspension) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Thread, b.Thread))
	})
	return open
}
