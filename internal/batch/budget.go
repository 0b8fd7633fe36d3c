package batch

import (
	"bytes"
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

func newBudget(bytes int64) *budget {
	return &budget{semaphore.NewWeighted(bytes), bytes}
}

// acquire waits for n bytes and returns how to give them back.
func (b *budget) acquire(ctx context.Context, n int64) (release func(), err error) {
	n = min(max(n, 1), b.all)
	if err := b.sem.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { b.sem.Release(n) }, nil
}

// Memory of one trace in work, by its size. The floor is what buffers and
// decompressors take; the factor is what the largest of the inputs' models need for
// one byte of unpacked content.
const (
	costFloor  = 12 << 20
	costFactor = 3
	// packed is how much compressed traces of this kind unpack to when nothing tells.
	packed = 12
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
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for _, line := range bytes.Split(b, []byte("\n")) {
			var f = strings.Fields(string(line))
			if len(f) >= 2 && f[0] == "MemTotal:" {
				if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil && (best == 0 || kb<<10 < best) {
					best = kb << 10
				}
			}
		}
	}
	if best == 0 {
		return 2 << 30
	}
	return best / 4 * 3
}
