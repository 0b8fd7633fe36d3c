package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// useHugePages asks the kernel for huge pages for the first size bytes of the heap: to touch memory
// page by page takes a short run a tenth of its time, and half of it in some virtual machines. The
// runtime has no switch for it. So the heap is made to grow at once, by a block that is given back
// unused; what is allocated from then on comes to lie where the block lay. It is advice: where it
// is not taken, nothing changes. The collector runs once for it, to take the block back, and not to
// make room for it.
//
// In virtual machines that give free memory back to their host it is huge pages that are dear, but
// for a few that were free for no more than seconds. So the first ones are touched, and where one
// of them took longer than the small ones that it stands for the rest is small, also where the
// kernel gives huge pages unasked.
func useHugePages(size int) {
	theHeap.withoutCollections(func() {
		block := make([]byte, size)
		adviseHugePages(block)
		runtime.KeepAlive(block)
		runtime.GC()
	})
}

const (
	hugePage   = 2 << 20 // of most processors; where they are larger, nothing is gained
	smallPage  = 4 << 10
	hugeProbes = 8  // huge pages that are touched before all are asked for
	smallOnes  = 16 // small pages that are timed
)

// adviseHugePages asks for huge pages in block, which nobody has touched, as long as they are
// cheap, and returns how many it asked for.
func adviseHugePages(block []byte) int {
	block = block[-int(uintptr(unsafe.Pointer(&block[0])))&(hugePage-1):]
	n := len(block)/hugePage - 1
	if n <= hugeProbes {
		return 0
	}
	_ = unix.Madvise(block[n*hugePage:][:hugePage], unix.MADV_NOHUGEPAGE) // as they are where the kernel gives huge pages unasked
	dear := touch(block[n*hugePage:][:smallOnes*smallPage], smallPage) * (hugePage / smallPage / smallOnes)
	for i := range hugeProbes {
		page := block[i*hugePage:][:hugePage]
		if unix.Madvise(page, unix.MADV_HUGEPAGE) != nil {
			return i
		}
		if touch(page, hugePage) > dear {
			_ = unix.Madvise(block[(i+1)*hugePage:n*hugePage], unix.MADV_NOHUGEPAGE)
			return i + 1
		}
	}
	_ = unix.Madvise(block[hugeProbes*hugePage:n*hugePage], unix.MADV_HUGEPAGE)
	return n
}

// touch writes to each page of block and tells how long that took.
func touch(block []byte, page int) time.Duration {
	start := time.Now()
	for i := 0; i < len(block); i += page {
		block[i] = 0
	}
	return time.Since(start)
}

// farOff is by how many percent the heap may grow while no collection is wanted: of the 4 MiB that
// the runtime takes for the least heap, 800 MB. Where the heap may grow beyond 1 GiB, as it may
// without the collector, the runtime puts its own tables on huge pages for good: a table of 32 MB
// of which a few pages are looked at otherwise (runtime/malloc.go, minHeapForMetadataHugePages).
const farOff = 20_000

// withoutCollections calls f while the collector runs only if f asks for it. What is to be told
// meanwhile is told after it.
func (h *heapPolicy) withoutCollections(f func()) {
	h.told.Lock()
	defer h.told.Unlock()
	percent, limit := debug.SetGCPercent(farOff), debug.SetMemoryLimit(math.MaxInt64)
	f()
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
}
