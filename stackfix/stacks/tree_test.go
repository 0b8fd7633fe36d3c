package stacks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTreePush(t *testing.T) {
	tree := NewTree()
	seen := map[[2]uint32]StackID{}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		callers, f := rng.Uint32N(uint32(tree.Len())), rng.Uint32N(8)
		s := tree.Push(callers, f)
		if old, ok := seen[[2]uint32{callers, f}]; ok {
			require.Equal(t, old, s, "equal arguments give equal ids")
			continue
		}
		seen[[2]uint32{callers, f}] = s
		require.Equal(t, tree.Len()-1, int(s), "ids are dense")
		assert.Equal(t, callers, tree.Parent(s))
		assert.Equal(t, f, tree.Frame(s))
		assert.Equal(t, tree.Depth(callers)+1, tree.Depth(s))
	}
}

// A tree that was truncated is the one it was before.
func TestTruncate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tree, want := NewTree(), NewTree()
	push := func(t *Tree, n int, rng *rand.Rand) {
		for range n {
			var s StackID
			for range rng.IntN(20) {
				s = t.Push(s, rng.Uint32N(5))
			}
		}
	}
	push(tree, 500, rng)
	*want = Tree{slices.Clone(tree.nodes), slices.Clone(tree.kin), slices.Clone(tree.slots), tree.held}
	push(tree, 500, rng)
	require.Greater(t, tree.Len(), want.Len())
	tree.Truncate(want.Len())
	for seed := range uint64(3) {
		push(tree, 100, rand.New(rand.NewPCG(seed, 0)))
		push(want, 100, rand.New(rand.NewPCG(seed, 0)))
		require.Equal(t, want.nodes, tree.nodes)
		require.Equal(t, want.kin, tree.kin)
	}
}
