package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// smallHeap is the heap within which most traces are converted.
const smallHeap = 72 << 20

// explainHeap is the heap within which the requests of most traces are explained: what is known of
// them stays alive until they are written, in small pieces, and to go through those again and again
// takes time. With 256 MB a busy minute takes a tenth less, an hour a quarter.
const explainHeap = 100 << 20

// roomToExplain is explainHeap, or less where the container or the machine has so little memory for
// the program that garbage of that size would have it killed.
func roomToExplain(memory int64) int64 { return max(smallHeap, min(explainHeap, memory/2)) }

// smallRoom is by how many percent of what is alive the heap may grow within the heap that was
// asked for. The runtime takes 4 MiB for the least that is alive: a small trace is over before 40
// MiB.
const smallRoom = 1000

// A heapPolicy tells by how much the heap may grow before the collector runs.
type heapPolicy struct {
	floor atomic.Int64 // up to here by smallRoom percent, in bytes; beyond it by roomBeyond
	idle  atomic.Bool  // up to floor not at all

	told    sync.Mutex
	percent int // as it was told
	limit   int64
}

// Beyond the heap there are free pieces that nothing new fits. slack is how much of them there may
// be before the runtime gives some back, and leastKept what it keeps of all where smallHeap is
// enough: what was given back is touched anew, page by page, which takes longer than to write it.
// The repair of a compiler, of which 53 MB are alive, takes a third longer in a virtual machine
// with 80 MB, and no less with 112.
const (
	slack     = 8 << 20
	leastKept = 92 << 20
)

// roomBeyond is by how much the heap may grow beyond what is alive, where floor is too little. Of a
// trace of gigabytes 60 to 90 MB are alive, and with 16 MB of garbage all of it stays below 128
// MiB; a quarter of what is alive is up to 12 MB more, and saves 1 % of the time of a repair. Much
// more is alive where a format needs the whole: there it is a quarter, less what makes that begin
// at 16 MB.
func roomBeyond(alive int64) int64 { return max(16<<20, alive/4-10<<20) }

// of returns what debug.SetGCPercent and debug.SetMemoryLimit are to be told when so many bytes are alive.
func (h *heapPolicy) of(alive int64) (percent int, limit int64) {
	alive = max(alive, 1)
	floor := h.floor.Load()
	most := int64(smallRoom)
	if h.idle.Load() {
		most = floor * 100 / (4 << 20) // the runtime takes the percentage of 4 MiB for the least heap
	}
	heap := max(floor, alive+roomBeyond(alive))
	limit = heap + slack
	if heap == floor {
		limit = max(limit, leastKept)
	}
	return int(min(most, (heap-alive)*100/alive)), limit
}

// apply tells the runtime.
func (h *heapPolicy) apply() {
	h.told.Lock()
	defer h.told.Unlock()
	percent, limit := h.of(alive())
	if percent == h.percent && limit == h.limit {
		return // to tell it stops the world
	}
	h.percent, h.limit = percent, limit
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
}

// theHeap is the policy of this process.
var theHeap heapPolicy

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
	theHeap.idle.Store(true)
	makeRoom(heap)
}

// makeRoom raises the heap at which keepMemoryLow makes the collector run.
func makeRoom(heap int64) {
	if oneTrace.Load() {
		theHeap.floor.Store(heap)
		theHeap.apply()
	}
}

// keepMemoryLow makes the collector run earlier than it would by itself: at smallHeap, and beyond
// it when the heap has grown by roomBeyond what was alive. Far below smallHeap the collector runs
// less often than it would. The percentage moves with what is alive. A memory limit alone would do
// the same, but near it the runtime gives pages back, only to touch them again at once: it lies a
// little beyond.
func keepMemoryLow() {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return // the user knows better
	}
	oneTrace.Store(true)
	makeRoom(smallHeap)
	afterCollection(func() {
		if oneTrace.Load() {
			theHeap.apply()
		}
	})
}

// alive is how many bytes of the heap were in use after the last collection.
func alive() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(live[0].Value.Uint64())
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
