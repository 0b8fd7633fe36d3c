package stackfix

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestDwellings holds that a cut stack does not begin with what another thread was started for, where
// its own thread was started for something else.
func TestDwellings(t *testing.T) {
	const run, start, mine, theirs, wait, work = 4, 8, 12, 16, 20, 24 // methods, each with four call sites
	const samples, at = 300, 31
	answer := []FrameID{run, start, theirs, 904, 908}
	for name, x := range map[string]struct {
		own, other func(i int) FrameID // what start calls
		deep       bool                // own stacks
		want       []FrameID
	}{
		"each was started for something": {
			func(int) FrameID { return mine }, func(int) FrameID { return theirs }, true,
			[]FrameID{run, start, mine, testBridge},
		},
		"it calls what the other one was started for, once": {
			func(i int) FrameID {
				if i == 200 {
					return theirs
				}
				return mine
			}, func(int) FrameID { return theirs }, true, answer,
		},
		"the other one calls this and that": {
			func(int) FrameID { return mine }, func(i int) FrameID { return [...]FrameID{theirs, wait}[i%2] }, true, answer,
		},
		"it waits whenever it is seen whole": {
			func(int) FrameID { return wait }, func(int) FrameID { return theirs }, false, answer,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			// inner are frames that nothing else has
			inner := func(i int) (fs []FrameID) {
				for k := range FrameID(dwellingDepth) {
					fs = append(fs, 8000+4*(FrameID(i)*dwellingDepth+k))
				}
				return fs
			}
			lost := []FrameID{work, 28, 32, 36, 40, 44, 48, 52}
			var own, others []Sample
			for i := range samples {
				stack := []FrameID{run, start, x.own(i), 600}
				if x.deep {
					stack = append(stack[:3], inner(i)...)
				}
				own = append(own, Sample{Time: int64(i) * lookTime, Stack: tree.Add(stack...)})
				for k := range 4 { // the same work on another thread, and what else it does
					stack := append([]FrameID{run, start, theirs, 904, 908}, append(lost, inner(samples+4*i+k)...)...)
					if called := x.other(i); called != theirs {
						stack = append([]FrameID{run, start, called}, inner(samples+4*i+k)...)
					}
					others = append(others, Sample{Time: int64(i)*lookTime + int64(k)*1e6, Stack: tree.Add(stack...)})
				}
			}
			own = slices.Insert(own, at, Sample{Time: own[at].Time - 2e6, Stack: tree.Add(append(lost, 700)...), Cut: Depth})
			res := fix(tree, site{}, []recorded{{Samples: own}, {Samples: others}}, Options{Bridge: testBridge, MinConfidence: 0.3})
			assert.Equal(t, append(slices.Clone(x.want), append(lost, 700)...), tree.AppendFrames(nil, res.Repairs[0][0].Stack))
		})
	}
}
