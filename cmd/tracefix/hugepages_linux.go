package main

import (
	"math"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// useHugePages asks the kernel for huge pages for the first size bytes of the heap: to
// touch memory page by page takes a short run a tenth of its time, and half of it in some virtual machines. The runtime
// has no switch for it. So the heap is made to grow at once, by a block that is given back unused; what is
// allocated from then on comes to lie where the block lay. It is advice: where it is not
// taken, nothing changes. The collector runs once for it, to take the block back, and not to make room for it.
func useHugePages(size int) {
	theHeap.withoutCollections(func() {
		block := make([]byte, size)
		_ = unix.Madvise(block, unix.MADV_HUGEPAGE)
		runtime.KeepAlive(block)
		runtime.GC()
	})
}

// farOff is by how many percent the heap may grow while no collection is wanted: of the 4 MiB that the runtime takes for the least heap,
// 800 MB. Where the heap may grow beyond 1 GiB, as it may without the collector, the runtime puts its own tables on huge pages for good: a
// table of 32 MB of which a few pages are looked at otherwise (runtime/malloc.go, minHeapForMetadataHugePages).
const farOff = 20_000

// withoutCollections calls f while the collector runs only if f asks for it. What is to be told meanwhile is told after it.
func (h *heapPolicy) withoutCollections(f func()) {
	h.told.Lock()
	defer h.told.Unlock()
	percent, limit := debug.SetGCPercent(farOff), debug.SetMemoryLimit(math.MaxInt64)
	f()
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
}
