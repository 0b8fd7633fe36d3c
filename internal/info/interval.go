package info

import (
	"maps"
	"slices"

	"github.com/tracefix/tracefix/profile"
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

// merged is the interval of samples of which those with equal stacks were joined: the times between
// the others are of one interval or of several, and those of one are the shortest.
func merged(t *profile.Thread) float64 {
	if t == nil {
		return 0
	}
	var all, once interval
	for _, s := range t.Samples.All() {
		if s.Dur == 0 && s.Type != profile.SampleEvent {
			all.add(s.Time)
		}
	}
	short := all.quantileMs(0.1) * 1.5e6 / intervalStep
	once.gaps = map[int64]int64{}
	for gap, n := range all.gaps {
		if float64(gap) <= short {
			once.gaps[gap] = n
			once.n += n
		}
	}
	return once.medianMs()
}

// medianMs is the median in milliseconds, 0 where it would mean nothing.
func (v *interval) medianMs() float64 { return v.quantileMs(0.5) }

// quantileMs is the time that a share of those between samples do not exceed.
func (v *interval) quantileMs(share float64) float64 {
	if v.n < fewestGaps {
		return 0
	}
	below := int64(0)
	for _, gap := range slices.Sorted(maps.Keys(v.gaps)) {
		if below += v.gaps[gap]; float64(below) >= share*float64(v.n) {
			return float64(gap) * intervalStep / 1e6
		}
	}
	return 0
}
