package stackfix

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// methodsFrom returns one frame of each of n methods.
func methodsFrom(first, n int) []FrameID {
	fs := make([]FrameID, n)
	for i := range fs {
		fs[i] = FrameID(4 * (first + i))
	}
	return fs
}

// TestVotesOnTrial holds that what all whole stacks show is not believed of a stack that was cut where other cut
// stacks show that the deep ones come another way: a middle that is called directly where stacks are whole, and by a
// detour where it leads so deep that they are cut. Most cut stacks do not show the detour any more.
func TestVotesOnTrial(t *testing.T) {
	const limit = 100
	base, detour, middle, tail := methodsFrom(1, 5), methodsFrom(10, 30), methodsFrom(50, 70), methodsFrom(130, 40)
	for name, x := range map[string]struct {
		way  []FrameID
		want []FrameID // of the stack whose root is not recorded; nil: it is not known
	}{
		"the same way":     {base, slices.Concat(base, middle, tail)},
		"another way":      {slices.Concat(base, detour), nil},
		"no others to ask": {nil, slices.Concat(base, middle, tail)},
	} {
		t.Run(name, func(t *testing.T) {
			tree := stacks.NewTree()
			th := recorded{}
			var asked []int
			for i := range 3000 {
				fs := methodsFrom(200+20*(i/2%2), 10) // what others do around it says nothing
				switch i % 12 {
				case 2:
					fs = slices.Concat(base, middle, tail[:8], methodsFrom(300+i/12%60, 2)) // as many different stacks vote
				case 6:
					fs = slices.Concat(base, middle, tail)
					if x.want == nil {
						fs = slices.Concat(x.way, middle, tail)
					}
					asked = append(asked, len(th.Samples))
				case 10: // the innermost part of the way is not cut off
					if x.way != nil {
						fs = slices.Concat(x.way, middle, tail[:27+i/12%3])
					}
				}
				s := Sample{Time: int64(i) * 1e6}
				if len(fs) >= limit {
					fs, s.Cut = fs[len(fs)-limit:], Depth
				}
				s.Stack = tree.Add(fs...)
				th.Samples = append(th.Samples, s)
				if i%12 == 6 { // an event, too: what the samples taught holds for it
					asked = append(asked, len(th.Samples))
					s.Time, s.Evidence = s.Time+1, true
					th.Samples = append(th.Samples, s)
				}
			}
			res := fix(tree, site{}, []recorded{th}, Options{Bridge: testBridge})
			found := 0
			for _, rep := range res.Repairs[0] {
				if !slices.Contains(asked, int(rep.Index)) {
					continue
				}
				found++
				if x.want == nil {
					require.Equal(t, Bridge, rep.How)
					continue
				}
				require.Equal(t, x.want, tree.AppendFrames(nil, rep.Stack))
				assert.GreaterOrEqual(t, float64(rep.Confidence), DefaultConfidence)
			}
			assert.Len(t, asked, found)
		})
	}
}
