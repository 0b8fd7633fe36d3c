package stackfix

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Stacks as deep as there are samples take as long as both together, and not as one for each of the
// other.
func TestDeepStacks(t *testing.T) {
	const bridge = FrameID(1 << 20)
	// deep is a stack of n frames, which differ from those of others.
	deep := func(tree *stacks.Tree, n, which int) (s StackID) {
		for i := range n {
			s = tree.Push(s, FrameID(2*i+which))
		}
		return s
	}
	for name, c := range map[string]struct {
		n    int
		make func(tree *stacks.Tree, n int) []Sample
	}{
		"cut": {2000, func(tree *stacks.Tree, n int) []Sample {
			return []Sample{{Stack: deep(tree, n, 0), Cut: Bytes}, {Stack: deep(tree, n, 1), Cut: Bytes}}
		}},
		"with suspects": {2000, func(tree *stacks.Tree, n int) []Sample {
			return []Sample{{Stack: deep(tree, n, 0), Cut: Bytes, Suspect: 1}, {Stack: deep(tree, n, 1), Cut: Bytes, Suspect: 2}}
		}},
		"with the bridge": {8000, func(tree *stacks.Tree, n int) []Sample {
			s := tree.Push(0, bridge)
			for i := range n {
				s = tree.Push(s, FrameID(i))
			}
			return []Sample{{Stack: s, Cut: Bytes}, {Stack: tree.Push(s, 1), Cut: Bytes}}
		}},
		"whole": {3000, func(tree *stacks.Tree, n int) []Sample {
			cut := tree.Add(2, 4, 6)
			return []Sample{{Stack: deep(tree, n, 0)}, {Stack: cut, Cut: Bytes}, {Stack: deep(tree, n, 1)}, {Stack: cut, Cut: Bytes}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tracetest.Growth(t, c.n, func(n int) {
				tree := stacks.NewTree()
				some := c.make(tree, n)
				all := make([]Sample, n)
				for i := range all {
					all[i] = some[i%len(some)]
					all[i].Time = int64(i) * 1e6
				}
				res := Fix(tree, site{}, []Thread{{Process: 1, Samples: Slice(all)}}, Options{Bridge: bridge})
				require.Equal(t, len(all), res.Stats.Samples)
			})
		})
	}
}
