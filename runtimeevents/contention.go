package runtimeevents

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/nettrace"
)

// A Contention is a wait of a thread for a lock that another one held: Monitor or
// System.Threading.Lock. It starts when spinning has failed.
type Contention struct {
	Process int
	Thread  uint64
	Start   int64
	Stop    int64 // Unknown: no stop; Lock.TryEnter leaves none when its time is over, nor does Thread.Interrupt
	// Duration in ns by the runtime's own clock; Unknown where it does not tell (before .NET 5).
	Duration int64
	Native   bool   // a lock of the runtime itself
	Lock     uint64 // of the lock, for the life of the process; 0 before .NET 8
	Object   uint64 // address of the object at that time: collections move it; 0 before .NET 8
	Owner    uint64 // OS id of the thread that held it; 0: unknown, or it had let go already
	Stack    uint32

	over bool // events of the thread were lost since: a stop may be that of another one
}

// Wait is the time waited, 0 if the stop is missing, or is of before the start in a file whose
// events are out of order.
func (c *Contention) Wait() int64 {
	if c.Stop == Unknown {
		return 0
	}
	return max(0, c.Stop-c.Start)
}

// Contentions pairs the starts and stops of contention. The zero value is ready for use.
type Contentions struct {
	open map[threadKey]*Contention
	// StopsWithoutStart counts stops whose start the trace does not hold.
	StopsWithoutStart int
	// Early is the wait of the last of them: its Start is by its Duration, and may be before that of the trace;
	// both are Unknown where the stop does not tell (before .NET 5). Only the thread is known besides.
	Early Contention
}

// Wants reports whether the collector would use the stack of the event.
func (*Contentions) Wants(ev *nettrace.Event) bool { return runtimeID(ev) == IDContentionStart }

// Event takes an event and returns the contention that it ends: by a stop, or by a new
// start on the thread, which a thread that still waited could not have; then Stop is
// Unknown.
func (l *Contentions) Event(ev *nettrace.Event, ns int64, stack uint32) *Contention {
	if ev.Lost > 0 {
		if open := l.open[captureOf(ev)]; open != nil {
			open.over = true
		}
	}
	switch runtimeID(ev) {
	case IDContentionStart:
		return l.start(ev, ns, stack)
	case IDContentionStop:
		return l.stop(ev, ns)
	}
	return nil
}

func (l *Contentions) start(ev *nettrace.Event, ns int64, stack uint32) (abandoned *Contention) {
	c := ev.Cursor()
	n := &Contention{Process: ev.ProcessID, Thread: ev.ThreadID, Start: ns, Stop: Unknown, Duration: Unknown, Stack: stack}
	if ev.Version >= 1 {
		n.Native = c.U8() != 0
		c.U16()
	}
	if ev.Version >= 2 {
		n.Lock, n.Object, n.Owner = c.Pointer(), c.Pointer(), c.U64()
	}
	if l.open == nil {
		l.open = map[threadKey]*Contention{}
	}
	abandoned = l.open[keyOf(ev)]
	l.open[keyOf(ev)] = n
	return abandoned
}

func (l *Contentions) stop(ev *nettrace.Event, ns int64) *Contention {
	duration := Unknown
	if ev.Version >= 1 {
		c := ev.Cursor()
		c.U8()
		c.U16()
		if d := c.F64(); c.Err() == nil && d >= 0 && d < 1<<62 {
			duration = int64(d)
		}
	}
	open := l.open[keyOf(ev)]
	if open == nil {
		l.early(ev, ns, duration)
		return nil
	}
	delete(l.open, keyOf(ev))
	if open.over && (duration == Unknown || max(ns-open.Start-duration, open.Start+duration-ns) > max(clocksDiffer, duration/20)) {
		l.early(ev, ns, duration)
		return open
	}
	open.Stop, open.Duration = ns, duration
	return open
}

// early takes a stop without a start, of a wait of that duration.
func (l *Contentions) early(ev *nettrace.Event, ns, duration int64) {
	l.StopsWithoutStart++
	l.Early = Contention{Process: ev.ProcessID, Thread: ev.ThreadID, Start: Unknown, Stop: ns, Duration: duration}
	if duration != Unknown {
		l.Early.Start = ns - duration
	}
}

// clocksDiffer is how far, ns, the runtime's own measure of a wait may be from the time between its
// events: a thread may lose its processor in between.
const clocksDiffer = 1e6

// Open returns the contentions that have no stop so far, in order of their starts.
func (l *Contentions) Open() []*Contention {
	open := make([]*Contention, 0, len(l.open))
	for _, c := range l.open {
		open = append(open, c)
	}
	slices.SortFunc(open, func(a, b *Contention) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Thread, b.Thread))
	})
	return open
}

// A Wait is a wait of a thread for a wait handle, a Monitor.Wait or a Thread.Join (.NET 9
// and later). The waits of contended locks are among them: these are not to be added up.
type Wait struct {
	Process     int
	Thread      uint64
	Start, Stop int64 // Stop is Unknown where it is missing
	MonitorWait bool  // Monitor.Wait, on Object
	Object      uint64
	Stack       uint32
}

// Waits pairs the starts and stops of waits. The zero value is ready for use.
type Waits struct {
	open map[threadKey][]*Wait // innermost last
}

// maxNested bounds the waits kept open on a thread whose stops are missing.
const maxNested = 16

// Wants reports whether the collector would use the stack of the event.
func (*Waits) Wants(ev *nettrace.Event) bool { return runtimeID(ev) == IDWaitStart }

// Event takes an event and returns the wait that it ends, if any.
func (w *Waits) Event(ev *nettrace.Event, ns int64, stack uint32) *Wait {
	if ev.Lost > 0 {
		delete(w.open, captureOf(ev)) // a stop may be that of another one
	}
	key := keyOf(ev)
	open := w.open[key]
	switch runtimeID(ev) {
	case IDWaitStart:
		c := ev.Cursor()
		n := &Wait{Process: ev.ProcessID, Thread: ev.ThreadID, Start: ns, Stop: Unknown, MonitorWait: c.U8() == 1, Object: c.Pointer(), Stack: stack}
		if w.open == nil {
			w.open = map[threadKey][]*Wait{}
		}
		if len(open) == maxNested {
			open = open[1:]
		}
		w.open[key] = append(open, n)
	case IDWaitStop:
		if len(open) == 0 {
			return nil
		}
		last := open[len(open)-1]
		w.open[key] = open[:len(open)-1]
		last.Stop = ns
		return last
	}
	return nil
}

// IsContention reports whether ev starts a contention.
func IsContention(ev *nettrace.Event) bool { return runtimeID(ev) == IDContentionStart }

// IsContentionStop reports whether ev ends one.
func IsContentionStop(ev *nettrace.Event) bool { return runtimeID(ev) == IDContentionStop }

// IsWait reports whether ev starts a wait.
func IsWait(ev *nettrace.Event) bool { return runtimeID(ev) == IDWaitStart }

// IsWaitStop reports whether ev ends one.
func IsWaitStop(ev *nettrace.Event) bool { return runtimeID(ev) == IDWaitStop }
