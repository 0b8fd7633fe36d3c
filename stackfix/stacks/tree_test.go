package stacks

import (
	"math/rand/v2"
	"slices"
	"sync"
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

// A frame of a stack that shares nothing takes twelve bytes: it is found without a slot.
func TestUnsharedStacks(t *testing.T) {
	tree := NewTree()
	const stacks, depth = 100, 500
	for i := range FrameID(stacks) {
		s := tree.Push(0, i)
		for f := range FrameID(depth - 1) {
			s = tree.Push(s, f)
		}
		require.Equal(t, depth, tree.Depth(s))
	}
	require.Equal(t, 1+stacks*depth, tree.Len())
	assert.Equal(t, stacks-1, tree.held, "all but the first begin beside another one")
	assert.LessOrEqual(t, len(tree.slots), 2*stacks+64)
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
	*want = Tree{nodes: slices.Clone(tree.nodes), depths: slices.Clone(tree.depths), slots: slices.Clone(tree.slots), held: tree.held}
	push(tree, 500, rng)
	require.Greater(t, tree.Len(), want.Len())
	tree.Truncate(want.Len())
	for seed := range uint64(3) {
		push(tree, 100, rand.New(rand.NewPCG(seed, 0)))
		push(want, 100, rand.New(rand.NewPCG(seed, 0)))
		require.Equal(t, want.nodes, tree.nodes)
		require.Equal(t, want.depths, tree.depths)
	}
	tree.Truncate(1)
	want = NewTree()
	for _, x := range []*Tree{tree, want} {
		push(x, 100, rand.New(rand.NewPCG(9, 0)))
	}
	require.Equal(t, want.nodes, tree.nodes, "with all forgotten it is as new")
	require.Equal(t, want.depths, tree.depths)
}

// Forks give what the tree has its own ids, hold what is pushed on them beside each other, and what
// they have made, pushed on the tree in the order of the forks, gives the tree that has taken all
// itself.
func TestFork(t *testing.T) {
	push := func(t *Tree, n int, seed uint64) (pushed []StackID) {
		rng := rand.New(rand.NewPCG(seed, 2))
		for range n {
			var s StackID
			for range rng.IntN(20) {
				s = t.Push(s, rng.Uint32N(5))
			}
			pushed = append(pushed, s)
		}
		return pushed
	}
	tree, want := NewTree(), NewTree()
	push(tree, 500, 1)
	push(want, 500, 1)
	base := tree.Len()
	for round := range uint64(3) {
		const n = 3
		forks := tree.Fork(n, 100) // more are pushed
		var wait sync.WaitGroup
		var pushed, wanted [n][]StackID
		for i, f := range forks {
			wait.Go(func() {
				push(f, 200, 1000*round+77)
				f.Truncate(int(f.First()))
				pushed[i] = push(f, 500, 10*round+uint64(i)+2)
			})
		}
		wait.Wait()
		for i := range n {
			wanted[i] = push(want, 500, 10*round+uint64(i)+2)
		}
		require.Equal(t, want.nodes[:base], tree.nodes, "nothing was added")
		for i, f := range forks {
			names := make([]StackID, f.Len()-int(f.First()))
			name := func(s StackID) StackID {
				if s < f.First() {
					require.Less(t, int(s), base)
					return s
				}
				return names[s-f.First()]
			}
			for s := f.First(); int(s) < f.Len(); s++ {
				callers, g := f.Node(s)
				names[s-f.First()] = tree.Push(name(callers), g)
			}
			for k, s := range pushed[i] {
				require.Equal(t, wanted[i][k], name(s))
				require.Equal(t, want.AppendFrames(nil, wanted[i][k]), f.AppendFrames(nil, s))
			}
		}
		require.Equal(t, want.nodes, tree.nodes)
		base = tree.Len()
	}
}
