package tracetest

import (
	"testing"
	"time"
)

// Growth fails the test if eight times the work takes more than 32 times as much processor time:
// what is linear takes 8 times, what takes the square 64 times. What else the machine does counts
// for little that way; where the system does not tell processor time, a busy machine gets further
// tries, later and later.
func Growth(t testing.TB, n int, run func(n int)) {
	t.Helper()
	took := func(n int) time.Duration {
		start := spent()
		run(n)
		return spent() - start
	}
	small, large := time.Hour, time.Hour
	for try := range 10 {
		time.Sleep(time.Duration(max(0, try-2)) * 100 * time.Millisecond)
		for range 3 {
			small = min(small, took(n))
		}
		// Less than two milliseconds are mostly what does not grow.
		if large = min(large, took(8*n)); large < 32*max(small, 2*time.Millisecond) {
			return
		}
	}
	t.Errorf("%d take %v, %d take %v", n, small, 8*n, large)
}
