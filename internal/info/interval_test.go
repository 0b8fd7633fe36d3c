package info

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

func TestIntervalIsTheMedian(t *testing.T) {
	var v interval
	at := int64(5e9)
	for i := range int64(100) {
		v.add(at)
		at += 5e6 + i%3*3000 // 5 ms and jitter
		if i%10 == 0 {
			at += 200e6 // the thread was not there
		}
		if v.n < fewestGaps {
			assert.Zero(t, v.medianMs(), "too few to tell")
		}
	}
	assert.InDelta(t, 5.0, v.medianMs(), 0.011)
	v.add(0) // a clock that goes back
	v.add(at)
	assert.InDelta(t, 5.0, v.medianMs(), 0.011)
}

// Intervals as kept, not as the header says; and too few samples are not good.
func TestIntervalsOfThreads(t *testing.T) {
	measured := 0
	for _, v := range facts(t, data+"/async.nettrace.zst").Threads {
		if v.Samples > fewestGaps {
			measured++
			assert.Greater(t, v.IntervalMs, 0.5)
			assert.Less(t, v.IntervalMs, 100.0)
		}
	}
	assert.NotZero(t, measured)
}

func TestFewSamplesAreNotGood(t *testing.T) {
	for n, state := range map[int64]string{1: Partly, fewestSamples - 1: Partly, fewestSamples: Good} {
		v := Verdict{State: Good}
		v.few(n)
		assert.Equal(t, state, v.State, n)
		assert.Equal(t, state == Partly, v.Text != "", n)
	}
}

// TestMerged holds that the interval is found among times of several, of rounding and of a sampler
// that began anew.
func TestMerged(t *testing.T) {
	th := &profile.Thread{}
	at := int64(0)
	for i := range 120 {
		switch {
		case i < 6:
			at += 29_000
		case i%4 == 0:
			at += 6_000_000
		case i%10 == 5:
			at += 30
		default:
			at += 2_000_000 + int64(i%3)*1000
		}
		th.Samples.Append(profile.Sample{Time: at})
	}
	assert.InDelta(t, 2.0, merged(th), 0.011)
	assert.Zero(t, merged(nil))
	assert.Zero(t, merged(&profile.Thread{}))
}
