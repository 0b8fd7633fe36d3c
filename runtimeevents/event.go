package runtimeevents

import (
	"github.com/tracefix/tracefix/nettrace"
)

// Unknown is a time that no event has.
const Unknown int64 = -1

// Numbers of events of nettrace.ProviderRuntime, after their names in its manifest.
const (
	IDGCStart               = 1
	IDGCEnd                 = 2
	IDRestartEEEnd          = 3
	IDHeapStats             = 4
	IDRestartEEBegin        = 7
	IDSuspendEEEnd          = 8
	IDSuspendEEBegin        = 9
	IDAllocationTick        = 10
	IDFinalizersEnd         = 13
	IDFinalizersBegin       = 14
	IDGCTriggered           = 35
	IDGCDynamic             = 39
	IDWorkerStart           = 50
	IDWorkerStop            = 51
	IDAdjustment            = 55
	IDWorkerWait            = 57
	IDMinMaxThreads         = 59
	IDThreadCreating        = 70
	IDThreadRunning         = 71
	IDExceptionThrown       = 80
	IDContentionStart       = 81
	IDContentionStop        = 91
	IDMethodLoadVerbose     = 143
	IDMethodJittingStarted  = 145
	IDMemoryForJitCode      = 146
	IDMarkWithType          = 202
	IDPerHeapHistory        = 204
	IDGlobalHeapHistory     = 205
	IDExceptionCatchStart   = 250
	IDExceptionCatchStop    = 251
	IDExceptionFinallyStart = 252
	IDExceptionFinallyStop  = 253
	IDExceptionFilterStart  = 254
	IDExceptionFilterStop   = 255
	IDExceptionStop         = 256
	IDBackgroundJitStart    = 283
	IDBackgroundJitStop     = 284
	IDAssemblyLoadStart     = 290
	IDAssemblyLoadStop      = 291
	IDWaitStart             = 301
	IDWaitStop              = 302
	IDAllocationSampled     = 303
)

// runtimeID returns the id of an event of the runtime's provider, 0 for others.
func runtimeID(ev *nettrace.Event) int {
	if ev.Metadata.Provider != nettrace.ProviderRuntime {
		return 0
	}
	return ev.Metadata.EventID
}

// A threadKey names a thread of a trace that may hold several processes.
type threadKey struct {
	pid int
	tid uint64
}

func keyOf(ev *nettrace.Event) threadKey { return threadKey{ev.ProcessID, ev.ThreadID} }

// captureOf is the thread that wrote the event, of which some may be lost.
func captureOf(ev *nettrace.Event) threadKey { return threadKey{ev.ProcessID, ev.CaptureThreadID} }

// nameOf returns the text for a number of an enumeration, which newer runtimes extend.
func nameOf(names []string, n uint32) string {
	if uint64(n) < uint64(len(names)) {
		return names[n]
	}
	return "Unknown"
}
