package info

import (
	"maps"
	"slices"
)

const (
	intervalStep  = 10_000 // ns: how finely times between samples are told apart
	fewestGaps    = 20     // for a median that means something
	fewestSamples = 100    // for a profile that does: one sample is then 1 % of it
)

// An interval measures the time between the samples of a thread. Headers tell what was
// asked for; a sampler that walks many or deep stacks is slower.
type interval struct {
	last int64
	n    int64
	gaps map[int64]int64 // how many of each length, in steps
}

func (v *interval) add(ns int64) {
	switch {
	case v.gaps == nil:
		v.gaps = map[int64]int64{}
	case ns > v.last:
		v.gaps[(ns-v.last+intervalStep/2)/intervalStep]++
		v.n++
	}
	v.last = max(v.last, ns)
}

// medianMs is the median in milliseconds, 0 where it would mean nothing.
func (v *interval) medianMs() float64 {
	if v.n < fewestGaps {
		return 0
	}
	below := int64(0)
	for _, gap := range slices.Sorted(maps.Keys(v.gaps)) {
		if below += v.gaps[gap]; 2*below >= v.n {
			return float64(gap) * intervalStep / 1e6
		}
	}
	return 0
}
