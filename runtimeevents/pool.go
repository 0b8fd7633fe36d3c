package runtimeevents

import (
	"slices"

	"github.com/tracefix/tracefix/nettrace"
)

// An AdjustmentReason says why the thread pool set another number of workers.
type AdjustmentReason uint32

// Reasons that mean that work waited because workers were blocked.
const (
	Starvation          AdjustmentReason = 6 // nothing was dequeued for half a second
	CooperativeBlocking AdjustmentReason = 8 // a worker blocks in Task.Wait or Task.Result
)

var adjustmentReasons = []string{"Warmup", "Initializing", "RandomMove", "ClimbingMove", "ChangePoint", "Stabilizing", "Starvation", "ThreadTimedOut", "CooperativeBlocking"}

// String returns the name of the reason as the runtime spells it, or "Unknown".
func (r AdjustmentReason) String() string { return nameOf(adjustmentReasons, uint32(r)) }

// An Adjustment is a new goal for the number of workers.
type Adjustment struct {
	Time       int64
	Thread     uint64
	Throughput float64 // items per second
	Workers    uint32  // the goal
	Reason     AdjustmentReason
	Stack      uint32
}

// A WorkerChange is a worker that started, stopped or began to wait for work.
type WorkerChange struct {
	Time    int64
	Thread  uint64
	Kind    WorkerChangeKind
	Workers uint32 // that exist behind it, those that wait included
}

// A WorkerChangeKind is what a worker did.
type WorkerChangeKind uint8

// Kinds of changes.
const (
	WorkerStart WorkerChangeKind = iota
	WorkerStop
	WorkerWait
)

// Limits are what ThreadPool.SetMinThreads and SetMaxThreads set.
type Limits struct {
	Time                                 int64
	MinWorkers, MaxWorkers, MinIO, MaxIO uint16
}

// A PoolProcess has what one process recorded of its thread pool.
type PoolProcess struct {
	PID         int
	Adjustments []Adjustment
	Workers     []WorkerChange
	Before      uint32 // workers that existed before these, where more is known of it than they tell
	GoalBefore  uint32 // the goal before the adjustments, where more is known of it than they tell
	LimitBefore uint32 // how many workers might exist before Limits says, where that is known
	Limits      []Limits
	// Delays are the times, ns, that work spent in the queue, in the order of dequeueing;
	// they need the events of FrameworkEventSource. Empty where Pool.Delayed took them.
	Delays []Delay
	// Enqueued counts the work that was put into the queue.
	Enqueued int64
	// Untimed counts the work taken out of it of which the trace does not tell when it came. 0
	// where Pool.Untimed took it.
	Untimed int64
	// QueueTold says that the trace holds events of the queue, also where none of them is wanted.
	QueueTold bool
	// WorkersTold says that it holds events of the workers or their number, also where none of them
	// is wanted.
	WorkersTold bool
	// Births are the times between the creation of a thread and its first step.
	Births []Delay

	unwanted bool // some workers changed on threads that are not wanted

	queue  map[uint64][]int64 // enqueued and not dequeued, oldest first, by work id
	unkept bool               // some are missing there, as there were too many
	births map[uint64]int64
}

// A Delay is a wait that ended at Time.
type Delay struct {
	Time int64
	Wait int64
}

// Pool collects what the thread pools of a trace did. The zero value is ready for use.
type Pool struct {
	// Delayed, if set, takes the times that work spent in the queue, as they end: there may be millions.
	Delayed func(pid int, d Delay)
	// Untimed, if set, takes when work was taken out of the queue that came there before the trace
	// began, or when events were lost.
	Untimed func(pid int, ns int64)
	// Wanted, if set, says of which events something is told. The others are taken as far as they
	// begin or end what is told of a wanted one: work is mostly enqueued on one thread and dequeued
	// on another.
	Wanted func(*nettrace.Event) bool

	byPID map[int]*PoolProcess
	order []*PoolProcess
}

// Wants reports whether the collector would use the stack of the event.
func (*Pool) Wants(ev *nettrace.Event) bool { return runtimeID(ev) == IDAdjustment }

// Processes are those with events of their pools, in order of the first.
func (p *Pool) Processes() []*PoolProcess { return p.order }

func (p *Pool) process(pid int) *PoolProcess {
	q := p.byPID[pid]
	if q == nil {
		if p.byPID == nil {
			p.byPID = map[int]*PoolProcess{}
		}
		q = &PoolProcess{PID: pid, queue: map[uint64][]int64{}, births: map[uint64]int64{}}
		p.byPID[pid] = q
		p.order = append(p.order, q)
	}
	return q
}

// Event takes an event. It should have all events, also those of other providers: they may tell
// that some were lost.
func (p *Pool) Event(ev *nettrace.Event, ns int64, stack uint32) {
	if q := p.byPID[ev.ProcessID]; q != nil && ev.Lost > 0 {
		// The same work is often queued again: with one dequeueing lost, each one behind it would
		// end the wait before its own.
		clear(q.queue)
		clear(q.births)
	}
	if ev.Metadata.Provider == nettrace.ProviderFramework {
		p.queueEvent(ev, ns)
		return
	}
	id := runtimeID(ev)
	switch id {
	case IDWorkerStart, IDWorkerStop, IDWorkerWait, IDAdjustment, IDMinMaxThreads, IDThreadCreating, IDThreadRunning:
	default:
		return
	}
	wanted := p.wants(ev)
	q := p.process(ev.ProcessID)
	q.WorkersTold = q.WorkersTold || id != IDThreadCreating && id != IDThreadRunning
	if !wanted && id != IDThreadCreating && id != IDThreadRunning {
		q.unwanted = q.unwanted || id == IDWorkerStart || id == IDWorkerStop
		return
	}
	q.threadEvent(ev, ns, stack, wanted)
}

// queueEvent takes an event of FrameworkEventSource.
func (p *Pool) queueEvent(ev *nettrace.Event, ns int64) {
	enqueued := ev.Metadata.EventID == 30
	if !enqueued && ev.Metadata.EventID != 31 {
		return
	}
	q := p.process(ev.ProcessID)
	wanted := p.wants(ev)
	switch d, ended := q.work(ev, ns, wanted); {
	case !wanted:
	case !ended && (enqueued || q.unkept):
	case !ended && p.Untimed != nil:
		p.Untimed(ev.ProcessID, ns)
	case !ended:
		q.Untimed++
	case ended && p.Delayed != nil:
		p.Delayed(ev.ProcessID, d)
	case ended:
		q.Delays = append(q.Delays, d)
	}
}

// threadEvent takes an event of the runtime of workers, their number, or the birth of a thread.
func (q *PoolProcess) threadEvent(ev *nettrace.Event, ns int64, stack uint32, wanted bool) {
	cur := ev.Cursor()
	switch runtimeID(ev) {
	case IDWorkerStart:
		q.worker(ev, ns, WorkerStart)
	case IDWorkerStop:
		q.worker(ev, ns, WorkerStop)
	case IDWorkerWait:
		q.worker(ev, ns, WorkerWait)
	case IDAdjustment:
		a := Adjustment{Time: ns, Thread: ev.ThreadID, Throughput: cur.F64(), Workers: cur.U32(), Reason: AdjustmentReason(cur.U32()), Stack: stack}
		if cur.Err() == nil {
			q.Adjustments = append(q.Adjustments, a)
		}
	case IDMinMaxThreads:
		l := Limits{ns, cur.U16(), cur.U16(), cur.U16(), cur.U16()}
		if cur.Err() == nil {
			q.Limits = append(q.Limits, l)
		}
	case IDThreadCreating:
		if len(q.births) < 1<<16 {
			q.births[cur.Pointer()] = ns
		}
	case IDThreadRunning:
		thread := cur.Pointer()
		if at, ok := q.births[thread]; ok {
			delete(q.births, thread)
			if wanted {
				q.Births = append(q.Births, Delay{ns, ns - at})
			}
		}
	}
}

func (p *Pool) wants(ev *nettrace.Event) bool { return p.Wanted == nil || p.Wanted(ev) }

func (q *PoolProcess) worker(ev *nettrace.Event, ns int64, kind WorkerChangeKind) {
	cur := ev.Cursor()
	w := WorkerChange{ns, ev.ThreadID, kind, cur.U32()}
	if cur.Err() == nil {
		q.Workers = append(q.Workers, w)
	}
}

// maxQueued bounds the work that was enqueued and never seen again.
const maxQueued = 1 << 20

// work takes ThreadPoolEnqueueWork and ThreadPoolDequeueWork, which ends a wait. The same work may be queued
// several times; the oldest goes first. What is enqueued counts if it is wanted.
func (q *PoolProcess) work(ev *nettrace.Event, ns int64, wanted bool) (d Delay, ended bool) {
	cur := ev.Cursor()
	id := cur.U64()
	if cur.Err() != nil {
		return d, false
	}
	q.QueueTold = true
	if ev.Metadata.EventID == 30 {
		if wanted {
			q.Enqueued++
		}
		if len(q.queue) < maxQueued && len(q.queue[id]) < maxQueued {
			q.queue[id] = append(q.queue[id], ns)
		} else {
			q.unkept = true
		}
		return d, false
	}
	times := q.queue[id]
	if len(times) == 0 {
		return d, false
	}
	if len(times) == 1 {
		delete(q.queue, id)
	} else {
		q.queue[id] = times[1:]
	}
	return Delay{ns, ns - times[0]}, true
}

// Waiting counts the work that was put into the queue before a time and that nothing tells to have
// been taken since: it waited on, or who waited for it ran it itself. After lost events it counts
// what came behind them.
func (q *PoolProcess) Waiting(before int64) (n int) {
	for _, times := range q.queue {
		for _, ns := range times {
			if ns < before {
				n++
			}
		}
	}
	return n
}

// Count counts the changes of a kind.
func (q *PoolProcess) Count(kind WorkerChangeKind) (n int) {
	for _, w := range q.Workers {
		if w.Kind == kind {
			n++
		}
	}
	return n
}

// WorkersAt is the number of workers that existed at a time: that behind the last change before it
// or, if there is none, that from which the first one came. It is 0 where that is not known:
// changes made on threads that are not wanted are not.
func (q *PoolProcess) WorkersAt(ns int64) uint32 {
	if q.unwanted {
		return 0
	}
	i := slices.IndexFunc(q.Workers, func(w WorkerChange) bool { return w.Time >= ns })
	if i < 0 {
		i = len(q.Workers)
	}
	if i > 0 {
		return q.Workers[i-1].Workers
	}
	return q.beforeFirst()
}

// beforeFirst is the number of workers from which the first change came: a change tells that behind it.
func (q *PoolProcess) beforeFirst() uint32 {
	if len(q.Workers) == 0 {
		return 0
	}
	switch first := q.Workers[0]; first.Kind {
	case WorkerStop:
		return first.Workers + 1
	case WorkerStart:
		return first.Workers - min(first.Workers, 1)
	default:
		return first.Workers
	}
}

// MaxWorkers is the largest number of workers that existed.
func (q *PoolProcess) MaxWorkers() uint32 {
	n := max(q.Before, q.beforeFirst())
	for _, w := range q.Workers {
		n = max(n, w.Workers)
	}
	return n
}

// MaxReached is how many workers might exist, if so many did, else 0: beyond it the pool adds none,
// however long work waits. Where the trace does not tell of all that existed how many might, told
// is false: it may have been reached unseen.
func (q *PoolProcess) MaxReached() (limit uint32, told bool) {
	most, exist := q.LimitBefore, max(q.Before, q.beforeFirst())
	told = true
	look := func() {
		switch {
		case exist > 0 && most == 0:
			told = false
		case exist > 0 && exist >= most:
			limit = most
		}
	}
	limits := q.Limits
	for _, w := range q.Workers {
		for len(limits) > 0 && limits[0].Time <= w.Time {
			look()
			most, limits = uint32(limits[0].MaxWorkers), limits[1:]
		}
		look()
		exist = w.Workers
	}
	look()
	for _, l := range limits {
		most = uint32(l.MaxWorkers)
		look()
	}
	return limit, told && most > 0
}

// Steps counts the adjustments for a reason that raised the goal and those that lowered it.
// Unknown says that there is one more, from a goal that the trace does not tell.
func (q *PoolProcess) Steps(r AdjustmentReason) (raised, lowered int, unknown bool) {
	goal := q.GoalBefore
	for _, a := range q.Adjustments {
		switch {
		case a.Reason != r:
		case goal == 0:
			unknown = true
		case a.Workers > goal:
			raised++
		default:
			lowered++
		}
		goal = a.Workers
	}
	return raised, lowered, unknown
}

// Reason returns the adjustments made for a reason.
func (q *PoolProcess) Reason(r AdjustmentReason) []Adjustment {
	return slices.DeleteFunc(slices.Clone(q.Adjustments), func(a Adjustment) bool { return a.Reason != r })
}
