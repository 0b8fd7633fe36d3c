package info

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// TestMedianCut: as many cut samples are before it as after, whatever the times are.
func TestMedianCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() int64{
		"everywhere":      func() int64 { return rng.Int64N(60e9) },
		"at the end":      func() int64 { return 60e9 - rng.Int64N(1000) },
		"at one time":     func() int64 { return 30e9 },
		"behind the end":  func() int64 { return 60e9 + rng.Int64N(1e9) },
		"before it began": func() int64 { return -rng.Int64N(1e9) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 1000} {
				p := &profile.Profile{Meta: profile.Meta{End: 60e9}}
				var all []int64
				for range 3 {
					var times []int64
					for range n {
						times = append(times, next())
					}
					slices.Sort(times)
					th := &profile.Thread{}
					for i, at := range times {
						cut := profile.CutDepth
						if i%3 == 1 {
							cut = profile.Whole
						} else {
							all = append(all, at)
						}
						th.Samples.Append(profile.Sample{Time: at, Cut: cut})
					}
					p.Threads = append(p.Threads, th)
				}
				slices.Sort(all)
				assert.Equal(t, all[len(all)/2], medianCut(p), n)
			}
		})
	}
}
