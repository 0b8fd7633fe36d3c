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
	shortGaps     = 2048   // steps: of a sampler most are shorter
)

// An interval measures the time between the samples of a thread. Headers tell what was
// asked for; a sampler that walks many or deep stacks is slower.
type interval struct {
	last  int64
	n     int64
	short []uint32        // how many of each length, in steps, below shortGaps: a map takes longer than all else
	gaps  map[int64]int64 // likewise, of any length
}

func (v *interval) add(ns int64) {
	switch {
	case v.gaps == nil:
		v.gaps = map[int64]int64{}
	case ns-v.last >= intervalStep: // less is how times were rounded
		k := (ns - v.last + intervalStep/2) / intervalStep
		if n := int64(len(v.short)); n <= k && k < shortGaps {
			v.short = append(v.short, make([]uint32, k+1-n)...)
		}
		if k < shortGaps {
			v.short[k]++
		} else {
			v.gaps[k]++
		}
		v.n++
	}
	v.last = max(v.last, ns)
}

// all tells how many gaps there are of each length, in steps.
func (v *interval) all() map[int64]int64 {
	for k, n := range v.short {
		if n > 0 {
			v.gaps[int64(k)] += int64(n)
		}
	}
	clear(v.short)
	return v.gaps
}

// merged is the interval of samples of which those with equal stacks were joined: the times between
// the others are of one interval or of several. Those of one are the shortest of which there are many.
func merged(t *profile.Thread) float64 {
	if t == nil {
		return 0
	}
	var all interval
	for _, s := range t.Samples.All() {
		if s.Dur == 0 && s.Type != profile.SampleEvent {
			all.add(s.Time)
		}
	}
	gaps := slices.Sorted(maps.Keys(all.all()))
	n, to := int64(0), 0 // how many are near, and the first that is further away
	for i, from := range gaps {
		for ; to < len(gaps) && float64(gaps[to]) <= 1.5*float64(from); to++ {
			n += all.gaps[gaps[to]]
		}
		if n >= max(fewestGaps, all.n/10) {
			near := interval{n: n, gaps: map[int64]int64{}}
			for _, gap := range gaps[i:to] {
				near.gaps[gap] = all.gaps[gap]
			}
			return near.medianMs()
		}
		n -= all.gaps[from]
	}
	return 0
}

// medianMs is the median in milliseconds, 0 where it would mean nothing.
func (v *interval) medianMs() float64 {
	if v.n < fewestGaps {
		return 0
	}
	below := int64(0)
	for _, gap := range slices.Sorted(maps.Keys(v.all())) {
		if below += v.gaps[gap]; 2*below >= v.n {
			return float64(gap) * intervalStep / 1e6
		}
	}
	return 0
}
