package stackfix

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the tree finds by jumps is what a walk frame by frame finds.
func TestTreeJumps(t *testing.T) {
	tree := NewTree()
	walk(tree, 1, 2, 400)
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
	*want = Tree{slices.Clone(tree.nodes), slices.Clone(tree.skips), slices.Clone(tree.slots), tree.held}
	push(tree, 500, rng)
	require.Greater(t, tree.Len(), want.Len())
	tree.truncate(want.Len())
	for seed := range uint64(3) {
		push(tree, 100, rand.New(rand.NewPCG(seed, 0)))
		push(want, 100, rand.New(rand.NewPCG(seed, 0)))
		require.Equal(t, want.nodes, tree.nodes)
		require.Equal(t, want.skips, tree.skips)
	}
}
