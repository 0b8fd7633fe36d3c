package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// loaded returns a solver that has read samples, one each ms.
func loaded(t *testing.T, tree *stacks.Tree, seen ...StackID) *solver {
	samples := make([]Sample, len(seen))
	for i, s := range seen {
		samples[i] = Sample{Time: int64(i) * 1e6, Stack: s}
	}
	s := newSolver(tree, Names{}, Options{Bridge: 200})
	_, ok := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, mostCuts)
	require.True(t, ok)
	return s
}

// TestShortcuts compiles a method into its caller in the middle of a recording: 1 calls 3 through 2
// at first, and then directly. Between what was seen of the one and of the other no answer with
// either is of its time.
func TestShortcuts(t *testing.T) {
	tree := stacks.NewTree()
	other := tree.Add(1, 8)
	var seen []StackID
	for i := range 100 {
		s := other
		switch {
		case i < 30 && i%2 == 0:
			s = tree.Add(1, 2, 3, FrameID(20+i%4))
		case i >= 60 && i%2 == 0:
			s = tree.Add(1, 3, FrameID(20+i%4))
		}
		seen = append(seen, s)
	}
	s := loaded(t, tree, seen...)
	recorded := tree.Add(3, 20, 21)
	alone := tree.Add(21)
	for _, c := range []struct {
		ms              int64
		through, direct bool // are untimely
	}{{10, false, true}, {28, false, true}, {40, true, true}, {59, true, true}, {60, true, false}, {99, true, false}} {
		b := &block{stack: recorded, time: c.ms * 1e6}
		inner := &block{stack: alone, time: c.ms * 1e6}
		assert.Equal(t, c.through, s.short.untimely(s.t.Add(1, 2), []FrameID{3, 20, 21}, b), "%d ms, through", c.ms)
		assert.Equal(t, c.direct, s.short.untimely(s.t.Add(1), []FrameID{3, 20, 21}, b), "%d ms, direct", c.ms)
		assert.Equal(t, c.through, s.short.untimely(0, []FrameID{1, 2, 3, 20, 21}, inner), "%d ms, through, all put back", c.ms)
		assert.Equal(t, c.direct, s.short.untimely(0, []FrameID{1, 3, 20, 21}, inner), "%d ms, direct, all put back", c.ms)
		assert.False(t, s.short.untimely(s.t.Add(1), []FrameID{8, 20}, &block{stack: s.t.Add(8, 20), time: c.ms * 1e6}), "another call")

		base := map[bool]StackID{true: s.t.Add(1), false: s.t.Add(1, 2, 3)}[c.through]
		assert.Equal(t, base, s.short.outer(s.t.Add(1, 2, 3), c.ms*1e6), "%d ms", c.ms)
		base = map[bool]StackID{true: 0, false: s.t.Add(1, 3, 20)}[c.direct]
		assert.Equal(t, base, s.short.outer(s.t.Add(1, 3, 20), c.ms*1e6), "%d ms", c.ms)
		up := map[bool]StackID{true: s.t.Add(3, 20, 21), false: s.t.Add(1, 3, 20, 21)}[c.direct]
		assert.Equal(t, up, s.short.inner(s.t.Add(1, 3, 20, 21), inner), "%d ms", c.ms)
		assert.Equal(t, recorded, s.short.inner(recorded, b), "nothing was put back")
	}
	// recorded frames are of their time whatever others show
	assert.False(t, s.short.untimely(s.t.Add(8), []FrameID{1, 3, 20}, &block{stack: s.t.Add(1, 3, 20), time: 10e6}))
}

// TestNoShortcuts: what is called in both ways at one time was not compiled anew, and two sights
// tell nothing.
func TestNoShortcuts(t *testing.T) {
	tree := stacks.NewTree()
	through, direct := tree.Add(1, 2, 3, 4), tree.Add(1, 3, 4)
	var mixed []StackID
	for i := range 60 {
		mixed = append(mixed, []StackID{through, direct}[i*7%60/30])
	}
	s := loaded(t, tree, mixed...)
	assert.Nil(t, s.short.known)
	s = loaded(t, tree, through, tree.Add(9), through, tree.Add(9), direct, tree.Add(9), direct, tree.Add(9), direct)
	assert.Nil(t, s.short.known)
}
