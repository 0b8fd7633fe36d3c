package runtimeevents

import (
	"github.com/tracefix/tracefix/nettrace"
)

// Unknown is a time that no event told.
const Unknown int64 = -1

// Providers of the events that this package reads.
const (
	runtimeProvider   = nettrace.ProviderRuntime
	frameworkProvider = "System.Diagnostics.Eventing.FrameworkEventSource"
)

// Events of the runtime's provider, by the names of its manifest.
const (
	idGCStart              = 1
	idGCEnd                = 2
	idRestartEEEnd         = 3
	idHeapStats            = 4
	idRestartEEBegin       = 7
	idSuspendEEEnd         = 8
	idSuspendEEBegin       = 9
	idAllocationTick       = 10
	idFinalizersEnd        = 13
	idFinalizersBegin      = 14
	idGCTriggered          = 35
	idGCDynamic            = 39
	idWorkerStart          = 50
	idWorkerStop           = 51
	idAdjustment           = 55
	idWorkerWait           = 57
	idMinMaxThreads        = 59
	idThreadCreating       = 70
	idThreadRunning        = 71
	idExceptionThrown      = 80
	idContentionStart      = 81
	idContentionStop       = 91
	idMethodLoadVerbose    = 143
	idMethodJittingStarted = 145
	idMemoryForJitCode     = 146
	idMarkWithType         = 202
	idPerHeapHistory       = 204
	idGlobalHeapHistory    = 205
	idBackgroundJitStart   = 283
	idBackgroundJitStop    = 284
	idWaitStart            = 301
	idWaitStop             = 302
	idAllocationSampled    = 303
)

// runtimeID returns the id of an event of the runtime's provider, 0 for others.
func runtimeID(ev *nettrace.Event) int {
	if ev.Metadata.Provider != runtimeProvider {
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

// nameOf returns the text for a number of an enumeration, which newer runtimes extend.
func nameOf(names []string, n uint32) string {
	if uint64(n) < uint64(len(names)) {
		return names[n]
	}
	return "Unknown"
}

// millis converts nanoseconds to milliseconds.
func millis(ns int64) float64 { return float64(ns) / 1e6 }
