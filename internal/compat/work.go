package compat

import (
	"encoding/binary"
	"slices"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// Ids of events that only what imitates dotnet-trace looks at, by the names of their manifests.
const (
	// Of nettrace.ProviderRuntime.
	idSampledObjectHigh      = 20 // GCSampledObjectAllocationHigh
	idMarkStackRoots         = 25 // GCMarkStackRoots
	idMarkFinalizeQueueRoots = 26 // GCMarkFinalizeQueueRoots
	idMarkHandles            = 27 // GCMarkHandles
	idMarkOlderGenerations   = 28 // GCMarkOlderGenerationRoots
	idSampledObjectLow       = 32 // GCSampledObjectAllocationLow
	idAdjustmentSample       = 54 // ThreadPoolWorkerThreadAdjustmentSample
	idEnqueue                = 61 // ThreadPoolEnqueue
	idDequeue                = 62 // ThreadPoolDequeue
	idIOEnqueue              = 63 // ThreadPoolIOEnqueue
	idIODequeue              = 64 // ThreadPoolIODequeue
	idIOPack                 = 65 // ThreadPoolIOPack

	// Of the runtime's private provider.
	idBackgroundGCBegin = 11 // BGCBegin

	// Of nettrace.ProviderFramework.
	idEnqueueWork     = 30  // ThreadPoolEnqueueWork
	idDequeueWork     = 31  // ThreadPoolDequeueWork
	idTransferSend    = 150 // ThreadTransferSend
	idTransferReceive = 151 // ThreadTransferReceive
)

// Events of nettrace.ProviderTasks. The task is the third number of each.
const (
	tplScheduled             = 7
	tplStarted               = 8
	tplCompleted             = 9
	tplWaitBegin             = 10
	tplWaitEnd               = 11
	tplContinuationScheduled = 12
)

// A work is a unit of execution with a creator, which the reference calls activity: a
// task, a continuation, a work item of the thread pool, or what a thread does by itself.
type work struct {
	creator  *work
	thread   *thread         // that runs it
	stack    profile.StackID // where it was created
	created  float64         // ms
	kind     workKind
	id       workID
	before   *work     // what thread did before
	activity *activity // the start/stop activity it works for, perhaps stopped
	waits    []*work   // begun while this was running, none of them over

	// The stack that it continues, once it was asked for.
	full joined
	top  *activity // with which full was made
}

type workKind uint8

const (
	workOrdinary  workKind = iota
	workInitial            // what a thread does where nothing else is known
	workWait               // an await: over when the thread goes on with something else
	workSyncWait           // a blocking wait: over as soon as it has ended
	workTimer              // over when the thread goes on with something else
	workTransfer           // other things sent to another thread
	workScheduled          // ends at an event of its own
)

// ends reports whether the work has no event that ends it.
func (k workKind) ends() bool { return k == workWait || k == workSyncWait || k == workTimer }

// A workID is the number of a work among those of a kind in its process.
type workID struct {
	pid  int
	from idSpace
	n    uint64
}

type idSpace uint8

const (
	idContinuation idSpace = iota + 1
	idTask
	idTimer
	idIO
	idPool
)

// doing is the work that c does.
func (c *thread) doing() *work {
	if c.current == nil {
		c.current = &c.initial
	}
	return c.current
}

// work takes what the event says about who does what.
func (b *builder) work(c *thread, ev *load.Observed) {
	id := func(from idSpace, n uint64) workID { return workID{ev.ProcessID, from, n} }
	switch ev.Metadata.Provider {
	case nettrace.ProviderTasks:
		if len(ev.Payload) < 12 {
			return
		}
		task := uint64(binary.LittleEndian.Uint32(ev.Payload[8:]))
		switch ev.Metadata.EventID {
		case tplScheduled:
			if b.works[id(idTask, task)] == nil {
				b.create(c, ev, id(idTask, task), workScheduled)
			}
		case tplStarted:
			b.begin(c, ev, id(idTask, task), false)
		case tplCompleted:
			b.end(c, b.works[id(idTask, task)])
		case tplContinuationScheduled:
			b.create(c, ev, id(idTask, task), workScheduled)
		case tplWaitBegin:
			kind := workWait
			if len(ev.Payload) >= 16 && binary.LittleEndian.Uint32(ev.Payload[12:]) == 1 {
				kind = workSyncWait
			}
			w := b.create(c, ev, id(idContinuation, task), kind)
			w.creator.waits = append(w.creator.waits, w)
		case tplWaitEnd:
			b.begin(c, ev, id(idContinuation, task), true)
		}
	case nettrace.ProviderFramework:
		if len(ev.Payload) < 8 {
			return
		}
		n := binary.LittleEndian.Uint64(ev.Payload)
		switch ev.Metadata.EventID {
		case idEnqueueWork:
			b.create(c, ev, id(idPool, n), workOrdinary)
		case idDequeueWork:
			b.begin(c, ev, id(idPool, n), false)
		case idTransferSend:
			kind := workTransfer
			if len(ev.Payload) >= 12 && binary.LittleEndian.Uint32(ev.Payload[8:]) == 1 {
				kind = workTimer
			}
			b.create(c, ev, id(idTimer, n), kind)
		case idTransferReceive:
			b.begin(c, ev, id(idTimer, n), false)
		}
	case nettrace.ProviderRuntime:
		switch ev.Metadata.EventID {
		case runtimeevents.IDWorkerWait: // the thread forgets its work
			c.current = &work{thread: c, before: c.current}
			b.settle()
		case idEnqueue:
			b.create(c, ev, id(idPool, b.pointer(ev)), workOrdinary)
		case idDequeue:
			b.begin(c, ev, id(idPool, b.pointer(ev)), false)
		case idIOEnqueue, idIOPack:
			b.create(c, ev, id(idIO, b.pointer(ev)), workOrdinary)
		case idIODequeue:
			b.begin(c, ev, id(idIO, b.pointer(ev)), false)
		}
	}
}

// pointer is the address at the start of the payload.
func (b *builder) pointer(ev *load.Observed) uint64 {
	switch {
	case b.header.PointerSize == 8 && len(ev.Payload) >= 8:
		return binary.LittleEndian.Uint64(ev.Payload)
	case len(ev.Payload) >= 4:
		return uint64(binary.LittleEndian.Uint32(ev.Payload))
	}
	return 0
}

func (b *builder) create(c *thread, ev *load.Observed, id workID, kind workKind) *work {
	creator := c.doing()
	w := &work{
		creator: creator, id: id, kind: kind, activity: creator.activity,
		stack: ev.Stack(), created: b.ms(ev.Time),
	}
	b.works[id] = w
	return w
}

// begin lets the thread do a work. Nothing ends an await but the next one.
func (b *builder) begin(c *thread, ev *load.Observed, id workID, awaited bool) {
	if awaited && c.current != nil && c.current.kind.ends() {
		b.end(c, c.current)
	}
	w := b.works[id]
	if w == nil || w.before != nil {
		return
	}
	w.before, w.thread = c.current, c
	c.current = w
	if awaited && slices.Contains(w.creator.waits, w) {
		if ev.Wanted {
			b.log = append(b.log, logged{at: b.ms(ev.Time), thread: c, work: w, activity: b.activityOf(w), awaited: true})
		}
		w.creator.waits = nil
	}
	b.settle()
	if w.kind == workSyncWait {
		b.end(c, w)
	}
}

// activityOf is the start/stop activity for which w was created, if it had not stopped by
// then.
func (b *builder) activityOf(w *work) *activity {
	a := w.activity
	if a != nil && !(a.stopped && a.start+a.dur < w.created) {
		return a
	}
	b.settle()
	return w.activity.running()
}

// end ends a work that c does, and what c began since; nil is one that nobody knows.
func (b *builder) end(c *thread, w *work) {
	for cur := c.current; ; {
		if cur == nil {
			c.current = nil
			break
		}
		if cur == w {
			c.current = cur.before
			break
		}
		if cur.kind == workInitial {
			break
		}
		if w == nil {
			cur = cur.before
			continue
		}
		c.current = cur.before
		b.ended(c, cur)
		cur = c.current
	}
	b.ended(c, w)
}

func (b *builder) ended(c *thread, w *work) {
	b.settle()
	c.doing()
	if w != nil {
		delete(b.works, w.id)
	}
}
