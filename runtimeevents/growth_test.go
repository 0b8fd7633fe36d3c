package runtimeevents

import (
	"testing"

	"github.com/tracefix/tracefix/internal/tracetest"
)

// TestGrowth: suspensions, collections and processes that never end.
func TestGrowth(t *testing.T) {
	for name, steps := range map[string]func(i, n int) []step{
		"suspensions that begin": func(i, _ int) []step { return []step{suspend(int64(i), uint64(i), 1, 0)} },
		"suspensions and collections": func(i, _ int) []step {
			at, tid := int64(i), uint64(i)
			return []step{suspend(at, tid, 1, 0), mark(at, tid, IDSuspendEEEnd), gcStart(at, tid, uint32(i), 0, NonConcurrentGC)}
		},
		"ends of others": func(i, n int) []step {
			at, tid := int64(i), uint64(i)
			return []step{suspend(at, tid, 6, 0), gcStart(at, tid, uint32(2*i), 0, NonConcurrentGC), gcEnd(at, tid, uint32(2*i+1))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, processes := range []int{1, 1 << 30} {
				tracetest.Growth(t, 1000, func(n int) {
					var c GCs
					for i := range n {
						for _, s := range steps(i, n) {
							ev := event(s.id, 1, s.tid, s.fields...)
							ev.ProcessID = i % processes
							c.Event(ev, s.at, 0)
						}
					}
					c.Finish()
				})
			}
		})
	}
}
