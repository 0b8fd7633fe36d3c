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
const smallHeap = 72 << 20

// explainHeap is the heap within which the requests of most traces are explained: what is
// known of them stays alive until they are written, in small pieces, and to go through those
// again and again takes a third of the time. The requests of a busy minute fit.
const explainHeap = 256 << 20

// roomToExplain is explainHeap, or less where the container or the machine has so little memory for the program
// that garbage of that size would have it killed.
func roomToExplain(memory int64) int64 { return max(smallHeap, min(explainHeap, memory/2)) }

// heapFloor is the heap below which keepMemoryLow leaves the collector alone, in bytes.
var heapFloor atomic.Int64

// oneTrace says that keepMemoryLow is at work. A batch has a budget of its own.
var oneTrace atomic.Bool

// stopKeepingMemoryLow leaves the collector alone again.
func stopKeepingMemoryLow() {
	if oneTrace.Swap(false) {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(100)
	}
}

// leaveAlone keeps the collector from running at all until the heap is that large, whatever of it is
// alive; makeRoom alone leaves it at several times what is alive.
func leaveAlone(heap int64) {
	if oneTrace.Load() {
		makeRoom(heap)
		debug.SetGCPercent(-1)
	}
}

// makeRoom raises the heap at which keepMemoryLow makes the collector run.
func makeRoom(heap int64) {
	if oneTrace.Load() {
		heapFloor.Store(heap)
		debug.SetMemoryLimit(heap)
	}
}

// heapRoom is what part of what is alive the heap may grow by before the collector runs, as its divisor.
var heapRoom atomic.Int64

// keepMemoryTight lets the heap grow by an eighth of what is alive, not a quarter: a page is made beside a browser,
// and all that it draws is held at once.
func keepMemoryTight() { heapRoom.Store(8) }

// keepMemoryLow makes the collector run earlier than it would by itself: at smallHeap,
// and beyond it when the heap has grown by a quarter of what was alive. The limit moves with
// what is alive, so that a large trace does not spend its time on collections. Far below
// smallHeap the collector runs less often than it would.
func keepMemoryLow() {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return // the user knows better
	}
	heapRoom.Store(4)
	oneTrace.Store(true)
	makeRoom(smallHeap)
	debug.SetGCPercent(400)
	afterCollection(func() {
		if !oneTrace.Load() {
			return
		}
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Kind() == metrics.KindUint64 {
			alive := int64(live[0].Value.Uint64())
			debug.SetMemoryLimit(max(heapFloor.Load(), 6<<20+alive+alive/heapRoom.Load()))
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
