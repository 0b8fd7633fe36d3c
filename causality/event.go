package causality

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A Kind is what an event tells about who works for whom.
type Kind uint8

// Kinds of events.
const (
	Other         Kind = iota // nothing but its activity id and its stack
	Sample                    // the thread was seen; External says where
	Start                     // of an activity
	Stop                      // of an activity
	Idle                      // the thread waits for work of the pool, or begins or leaves
	WorkBegin                 // the thread begins to run the task Task
	WorkEnd                   // and ends
	StepBegin                 // it begins to run continuations of Task
	StepEnd                   //
	TaskMade                  // the task Task, of an async method, is made in the current flow
	TaskReady                 // Task is queued for a thread of the pool, in the current flow
	TaskTaken                 // a thread of the pool takes the task Task from the queue
	TaskAwait                 // the task Next goes on when Task is done, in the current flow
	WaitBegin                 // the thread blocks until Task is done
	WaitEnd                   //
	LockBegin                 // the thread blocks for a lock
	LockEnd                   //
	HandleBegin               // the thread blocks for an event, a handle or a pulse
	HandleEnd                 //
	PauseBegin                // all threads are stopped for a collection, or soon will be
	PauseEnd                  // they run again
	HaltAsked                 // all threads are asked to stop, for something else: to sample them, most often
	HaltBegin                 // they stand, if that was asked, or for a collection
	HaltEnd                   // they run again; a Log tells how long they stood
	Throw                     // an exception
	Enqueue                   // the work item Task is queued for a thread of the pool
	Dequeue                   // a thread of the pool takes it
	Adjust                    // the pool changes its number of threads to Task; Next is the reason
	Between                   // the pool thinks about that: one of its threads has ended a work item
	Caught                    // an exception was dealt with, by the call on whose stack that is told
	ThreadMade                // the thread Task is made, in the current flow
	ThreadBegins              // it runs: this thread is Task
	TaskContinues             // as TaskReady, of a task that runs in the flow in which it was made
	CompileBegin              // the thread begins to compile the method Task
	CompileEnd                // and ends
	TaskYields                // as TaskReady, of an async method that goes on: Task is a number for that alone
)

// An Event is one event of a trace.
type Event struct {
	Kind    Kind
	Time    int64 // ns since the start of the trace
	Process uint32
	Thread  uint64
	ID      activity.ID // the activity that the thread worked for; of a Start the new one
	Related activity.ID // of a Start the activity that it was started in
	HasID   bool        // ID is known; zero is that of no activity then
	Stack   stacks.StackID
	Cut     bool // Stack misses its outermost frames
	// Runtime marks a Start or Stop of the runtime itself: its id is one of the tree, but
	// nobody calls it an activity.
	Runtime bool
	// Unsuffixed marks a Start or Stop whose own name has no suffix that says so. Two that belong together
	// have one task, which is not in the file, and names of any kind: BeginExecute, EndExecute.
	Unsuffixed bool
	// Call marks a Start of a request that the process made; Span says that it is a span of one,
	// which lies in another activity of the same request where the process tells of that.
	Call, Span bool
	External   bool  // Sample: outside of managed code, where the thread runs or blocks
	OnCPU      bool  // Sample: it ran, wherever
	Held       bool  // Sample: it ran in this stack ever since the newest event of the thread
	Blocked    int64 // Sample: ns for which the thread was off its processor, from Time on; HaltEnd: for which all stood
	Task       int64 // of a Start or Stop: what both of an activity tell, and those of no other; 0: nothing
	Next       int64
	Name       string // of a Start or Stop: the activity; of a Throw: the type of the exception
	Text       string // of a Throw: its message; of the Start of a request that the process serves: its route
	Nested     bool   // Throw: while another one is handled
	HasInner   bool   // Throw: it names the one that it follows from
	Provider   string // of a Start or Stop
	Label      string // of a Start whose Name does not tell the activity from others: what that is called, as activity.Label has it
}

// Decode reads into e what an event of a file tells but for its time, its thread and its
// stack, which are the caller's. Payloads that are too short tell nothing.
func Decode(e *Event, ev *nettrace.Event) {
	provider, id, payload := ev.Metadata.Provider, ev.Metadata.EventID, ev.Payload
	e.Kind, e.HasID = Other, true
	e.ID, e.Related = activity.ID(ev.ActivityID), activity.ID(ev.RelatedActivityID)
	switch provider {
	case nettrace.ProviderSampler:
		e.HasID = false
		if id == 0 {
			e.Kind, e.External = Sample, ev.SampleType() != nettrace.SampleManaged
		}
	case nettrace.ProviderTasks:
		decodeTask(e, id, payload)
	case nettrace.ProviderRuntime:
		decodeRuntime(e, id, ev)
	case nettrace.ProviderFramework:
		if len(payload) >= 8 {
			e.Task = int64(binary.LittleEndian.Uint64(payload))
			switch id {
			case 30:
				e.Kind = Enqueue
			case 31:
				e.Kind = Dequeue
			}
		}
	default:
		if strings.HasPrefix(provider, nettrace.ProviderRuntime) || strings.HasPrefix(provider, "Microsoft-DotNETCore-") {
			e.HasID = false
			return
		}
		switch activity.Opcode(ev.Opcode) {
		case activity.Start:
			e.Kind, e.Provider, e.Task = Start, provider, keyOf(provider, payload)
			e.Name, e.Unsuffixed = bareName(ev, "Start")
			e.Label = activity.Label(provider, cmp.Or(ev.Metadata.Name, ev.EventName()), payload)
		case activity.Stop:
			e.Kind, e.Provider, e.Task = Stop, provider, keyOf(provider, payload)
			e.Name, e.Unsuffixed = bareName(ev, "Stop")
		}
	}
}

// keyOf returns a hash of what the start and the stop of an activity have in common by their payloads.
func keyOf(provider string, payload []byte) int64 {
	key, _ := activity.DecodeKey(provider, payload)
	if key == "" {
		return 0
	}
	return int64(maphash.String(indexSeed, key))
}

// bareName returns the name of the activity that an event starts or stops, and whether the name of the
// event is without that suffix.
func bareName(ev *nettrace.Event, suffix string) (string, bool) {
	name := cmp.Or(ev.Metadata.Name, ev.EventName())
	bare, ok := strings.CutSuffix(name, suffix)
	return strings.TrimSuffix(bare, "/"), !ok
}

func number(b []byte, at int) int64 {
	if len(b) < at+4 {
		return 0
	}
	return int64(int32(binary.LittleEndian.Uint32(b[at:])))
}

// Numbers of CausalitySynchronousWork and TaskWaitBehavior.
const (
	workExecution   = 2
	waitSynchronous = 1
)

// continuationTask is set in the options of a task that ContinueWith made.
const continuationTask = 0x200

// decodeTask reads an event of TplEventSource.
func decodeTask(e *Event, id int, b []byte) {
	kind, at, size := Other, 0, 0
	switch id {
	case 7: // TaskScheduled: scheduler, originating task, task, creating task, options
		kind, at, size = TaskReady, 8, 12
		if number(b, 16)&continuationTask != 0 {
			kind = TaskContinues
		}
	case 8: // TaskStarted: scheduler, originating task, task
		kind, at, size = WorkBegin, 8, 12
	case 9: // TaskCompleted
		kind, at, size = WorkEnd, 8, 12
	case 10: // TaskWaitBegin: scheduler, originating task, task, behaviour, continuation
		kind, at, size = TaskAwait, 8, 20
		e.Next = number(b, 16)
		if number(b, 12) == waitSynchronous {
			kind = WaitBegin
		}
	case 11: // TaskWaitEnd
		kind, at, size = WaitEnd, 8, 12
	case 12: // AwaitTaskContinuationScheduled: scheduler, originating task, task
		kind, at, size = TaskYields, 8, 12
	case 14: // TraceOperationBegin: task
		kind, size = TaskMade, 4
	case 17: // TraceSynchronousWorkBegin: task, work
		kind, size = StepBegin, 8
		if number(b, 4) == workExecution {
			kind = WorkBegin
		}
	case 19: // TaskWaitContinuationStarted: task
		kind, size = TaskTaken, 4
	case 18: // TraceSynchronousWorkEnd: work
		kind, size = StepEnd, 4
		if number(b, 0) == workExecution {
			kind = WorkEnd
		}
		if len(b) >= size {
			e.Kind = kind
		}
		return
	}
	if kind != Other && len(b) >= size {
		e.Kind, e.Task = kind, number(b, at)
	}
}

// Reasons of a suspension: those of the garbage collector.
const (
	suspendForGC     = 1
	suspendForGCPrep = 6
)

// Events that the pool writes when it thinks about its size.
const (
	idAdjustmentSample = 54
	idAdjustmentStats  = 56
)

// Ends of what is done about an exception.
const (
	idCatchStop   = 251
	idFinallyStop = 253
	idFilterStop  = 255
	idThrownStop  = 256
)

// decodeRuntime reads an event of the runtime's own provider.
func decodeRuntime(e *Event, id int, ev *nettrace.Event) {
	b := ev.Payload
	switch id {
	case runtimeevents.IDSuspendEEBegin:
		if r := number(b, 0); r == suspendForGC || r == suspendForGCPrep {
			e.Kind = PauseBegin
		} else {
			e.Kind = HaltAsked
		}
	case runtimeevents.IDSuspendEEEnd:
		e.Kind = HaltBegin
	case runtimeevents.IDRestartEEEnd:
		e.Kind = HaltEnd
	case runtimeevents.IDRestartEEBegin:
		e.Kind = PauseEnd
	case runtimeevents.IDWorkerStart, runtimeevents.IDWorkerStop, runtimeevents.IDWorkerWait:
		e.Kind = Idle
	case runtimeevents.IDAdjustment:
		e.HasID = false // the pool writes it, without a stack: behind a work item, or on another thread of its own
		if len(b) >= 16 {
			e.Kind, e.Task, e.Next = Adjust, number(b, 8), number(b, 12)
		}
	case idAdjustmentSample, idAdjustmentStats:
		e.Kind, e.HasID = Between, false
	case runtimeevents.IDExceptionThrown:
		if x, err := runtimeevents.ReadException(ev); err == nil {
			e.Kind, e.Name, e.Text = Throw, x.Type.String(), x.Message.String()
			e.HasInner = x.Flags&runtimeevents.ExceptionHasInner != 0
			e.Nested = x.Flags&runtimeevents.ExceptionNested != 0
		}
	case idCatchStop, idFinallyStop, idFilterStop, idThrownStop:
		e.Kind = Caught
	case runtimeevents.IDThreadCreating, runtimeevents.IDThreadRunning:
		if len(b) >= 8 {
			e.Kind, e.Task = ThreadMade+Kind(id-runtimeevents.IDThreadCreating), int64(binary.LittleEndian.Uint64(b))
			e.HasID = e.Kind == ThreadMade
		}
	case runtimeevents.IDContentionStart:
		e.Kind = LockBegin
	case runtimeevents.IDContentionStop:
		e.Kind = LockEnd
	case runtimeevents.IDWaitStart:
		e.Kind = HandleBegin
	case runtimeevents.IDWaitStop:
		e.Kind = HandleEnd
	case runtimeevents.IDMethodJittingStarted:
		if len(b) >= 8 {
			e.Kind, e.Task = CompileBegin, int64(binary.LittleEndian.Uint64(b))
		}
	case runtimeevents.IDMethodLoadVerbose:
		var m nettrace.Method
		if ev.Method(&m) == nil && m.Flags&nettrace.MethodJitted != 0 && m.Flags.Extent() == 0 {
			e.Kind, e.Task = CompileEnd, int64(m.MethodID)
		}
	case runtimeevents.IDAssemblyLoadStart: // takes a number of the tree
		e.Kind, e.Runtime, e.Name, e.Provider = Start, true, "AssemblyLoad", nettrace.ProviderRuntime
	case runtimeevents.IDAssemblyLoadStop:
		e.Kind, e.Runtime, e.Name, e.Provider = Stop, true, "AssemblyLoad", nettrace.ProviderRuntime
	}
}
