package batch

import (
	"context"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/semaphore"
)

// A budget is the memory that all traces in work share. What alone needs more than
// there is gets all of it, and so works alone.
type budget struct {
	sem *semaphore.Weighted
	all int64
}

// own is what the program needs before the first trace: its code, and its buffers.
const own = 48 << 20

// heapLimit is how much of the memory the program may take is for its heap.
func heapLimit(bytes int64) int64 { return max(bytes-own, bytes/2) }

// newBudget makes a budget of the memory that the program may take as a whole.
func newBudget(bytes int64) *budget {
	left := max(bytes-own, bytes/4, 1)
	return &budget{semaphore.NewWeighted(left), left}
}

// acquire waits for n bytes and returns how to give them back.
func (b *budget) acquire(ctx context.Context, n int64) (release func(), err error) {
	n = min(max(n, 1), b.all)
	if err := b.sem.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { b.sem.Release(n) }, nil
}

// Memory of one trace in work, by its size: measured on the traces at hand, with room
// to spare. The floor is what buffers and decompressors take; the factor is what the
// model of a trace dense with samples takes for one byte of unpacked content.
const (
	costFloor  = 24 << 20
	costFactor = 5
	// packed is how much compressed nettrace files unpack to. JSON unpacks to more,
	// and takes less for each byte.
	packed = 6
)

// cost estimates what a trace of that many stored bytes needs.
func cost(stored int64, compressed bool) int64 {
	const limit = 1 << 50
	n := min(max(stored, 0), limit)
	if compressed {
		n *= packed
	}
	return costFloor + costFactor*n
}

// DefaultMemory is the budget where none is given: three quarters of what the
// container or the machine has, or 2 GiB if neither tells.
func DefaultMemory() int64 {
	best := int64(0)
	for _, f := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && (best == 0 || n < best) {
			best = n
		}
	}
	if n := machineMemory(); n > 0 && (best == 0 || n < best) {
		best = n
	}
	if best == 0 {
		return 2 << 30
	}
	return best / 4 * 3
}
