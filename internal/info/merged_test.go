package info

import (
	"testing"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// TestMergedGrowth: the times between samples all differ, and none of them has many near it.
func TestMergedGrowth(t *testing.T) {
	tracetest.Growth(t, 4000, func(n int) {
		th := &profile.Thread{}
		at, gap := int64(0), 100.
		for range n {
			th.Samples.Append(profile.Sample{Time: at, Type: profile.SampleCPU})
			at += int64(gap) * intervalStep
			gap *= 1 + 6./float64(n)
		}
		merged(th)
	})
}
