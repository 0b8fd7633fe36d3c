package events

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/runtimeevents"
)

// TestWaitsFromBefore: how long a wait for a lock took that began before the recording its end tells.
func TestWaitsFromBefore(t *testing.T) {
	early := func(stop, took int64) runtimeevents.Contention {
		x := runtimeevents.Contention{Start: runtimeevents.Unknown, Stop: stop, Duration: took}
		if took != runtimeevents.Unknown {
			x.Start = stop - took
		}
		return x
	}
	for want, waits := range map[string][]runtimeevents.Contention{
		"1 wait of which the trace lacks the beginning; it took 1.20 s, of which 200 ms lies in this time. For which lock is not told.":                         {early(2e8, 12e8)},
		"2 waits of which the trace lacks the beginning; they took 1.30 s in all, up to 1.20 s, of which 300 ms lies in this time. For which lock is not told.": {early(2e8, 12e8), early(3e8, 1e8)},
		"1 wait of which the trace lacks the beginning; it took 100 ms. For which lock is not told.":                                                            {early(3e8, 1e8)},
		"2 waits of which the trace lacks the beginning; 1 of them took 100 ms. For which lock is not told.":                                                    {early(3e8, 1e8), early(3e8, runtimeevents.Unknown)},
		"1 wait of which the trace lacks the beginning: for which lock and for how long is not told here.":                                                      {early(3e8, runtimeevents.Unknown)},
	} {
		var n waitCount
		for i := range waits {
			n.addEarly(&waits[i], interval.Interval{})
		}
		assert.Equal(t, want, n.told())
	}
	n := waitCount{early: 1, earlyTime: 12e8, earlyMax: 12e8, earlyRecorded: 2e8}
	sums := &lockSums{locks: []*lockSum{{waits: newDurations(nil)}}}
	s := &locksStats{Starts: 1, Stops: 1, NoStart: 1, Total: 1, Locks: 1, Threads: 1}
	assert.Contains(t, locksVerdict(s, sums, &n, &Context{End: 1e9})[0], "With those that lack their beginning, on average 0.20 threads stood waiting.")
	assert.Contains(t, locksVerdict(s, sums, &waitCount{}, &Context{End: 1e9})[0], "That is little.")
}
