package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// smallHeap is the heap within which most traces are converted.
const smallHeap = 44 << 20

// oneTrace says that keepMemoryLow is at work. A batch has a budget of its own.
var oneTrace atomic.Bool

// stopKeepingMemoryLow leaves the collector alone again.
func stopKeepingMemoryLow() {
	if oneTrace.Swap(false) {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(100)
	}
}

// keepMemoryLow makes the collector run earlier than it would by itself: at smallHeap,
// and beyond it when the heap has grown by a quarter of what was alive. The limit moves with
// what is alive, so that a large trace does not spend its time on collections. Far below
// smallHeap the collector runs less often than it would.
func keepMemoryLow() {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return // the user knows better
	}
	oneTrace.Store(true)
	debug.SetMemoryLimit(smallHeap)
	debug.SetGCPercent(400)
	afterCollection(func() {
		if !oneTrace.Load() {
			return
		}
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Kind() == metrics.KindUint64 {
			debug.SetMemoryLimit(max(smallHeap, 6<<20+int64(live[0].Value.Uint64())*5/4))
		}
	})
}

// afterCollection calls f after each garbage collection.
func afterCollection(f func()) {
	type sentinel struct{ self *int }
	var arm func(*sentinel)
	arm = func(s *sentinel) {
		f()
		runtime.SetFinalizer(s, arm)
	}
	runtime.SetFinalizer(&sentinel{new(int)}, arm)
}
