package stackfix

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// What a climber finds by jumps is what a walk frame by frame finds.
func TestClimber(t *testing.T) {
	base := stacks.NewTree()
	walk(base, 1, 2, 400)
	tree := newClimber(base)
	var chain StackID
	for range 1000 {
		chain = tree.Push(chain, 7)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	stack := func() StackID { return rng.Uint32N(uint32(tree.Len())) }
	outermost := func(s StackID, n int) StackID {
		for tree.Depth(s) > n {
			s = tree.Parent(s)
		}
		return s
	}
	for range 20_000 {
		a, b, n := stack(), stack(), rng.IntN(130)
		require.Equal(t, outermost(a, n), tree.up(a, n))
		want := 0
		for outermost(a, want+1) == outermost(b, want+1) && want < min(tree.Depth(a), tree.Depth(b)) {
			want++
		}
		require.Equal(t, outermost(a, want), tree.shared(a, b))
		require.Equal(t, outermost(a, n), tree.first(a, func(s StackID) bool { return tree.Depth(s) <= n }))
	}
}
