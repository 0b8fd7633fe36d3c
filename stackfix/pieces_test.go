package stackfix

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// frames returns from, from+1, ..., to.
func frames(from, to FrameID) (fs []FrameID) {
	for f := from; f <= to; f++ {
		fs = append(fs, f)
	}
	return fs
}

// Pieces of an answer that only meet are told from those that overlap.
func TestMeet(t *testing.T) {
	const leaf = 99
	tree := stacks.NewTree()
	add := func(parts ...[]FrameID) StackID {
		var fs []FrameID
		for _, p := range parts {
			fs = append(fs, p...)
		}
		return tree.Add(fs...)
	}
	whole := add(frames(1, 20), []FrameID{leaf})
	other := add(frames(50, 60), frames(12, 20), []FrameID{leaf})
	cut := add(frames(12, 22), []FrameID{leaf})
	samples := []Sample{{Stack: whole}, {Time: 1, Stack: other}, {Time: 2, Stack: cut, Cut: Depth}}
	s := newSolver(tree, Names{}, Options{Bridge: 100})
	s.world, _ = s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
	b := &s.runs[0].blocks[len(s.runs[0].blocks)-1]
	assert.Equal(t, cut, b.stack)
	for name, c := range map[string]struct {
		above StackID
		meet  bool
	}{
		"as one stack has it":         {add(frames(1, 11)), false},
		"as another one has it":       {add(frames(50, 60)), false},
		"a piece of the other before": {add(frames(1, 8)), true},
		"nothing was put back":        {0, false},
		"from the middle of a base":   {add(frames(5, 11)), false},
		"a caller that is never one":  {add(frames(1, 11), frames(70, 71)), true},
	} {
		s.o = tree.AppendFrames(s.o[:0], b.ext)
		s.t.follow() // the tree has grown
		assert.Equal(t, c.meet, s.meet(b, c.above, 1), name)
	}
}

// What an answer is worth at most depends on what overlaps it.
func TestWorth(t *testing.T) {
	tree := stacks.NewTree()
	whole, cut := tree.Add(frames(1, 30)...), tree.Add(frames(11, 30)...)
	s := newSolver(tree, Names{}, Options{Bridge: 100})
	s.world, _ = s.load([]Thread{{Samples: Slice([]Sample{{Stack: whole}, {Time: 1, Stack: cut, Cut: Depth}})}}, []int{0}, math.MaxInt)
	above := tree.Add(frames(1, 5)...)
	for name, c := range map[string]struct {
		extended bool
		cand     cand
		want     float64
	}{
		"one stack holds all of it":                 {false, cand{p: tree.Add(frames(1, 10)...), kf: 20}, 1},
		"extended, and nothing overlaps":            {true, cand{p: above}, 1},
		"extended, short overlap, several ways":     {true, cand{p: above, kb: 1, caller: 0.5}, forkedWorth},
		"extended, short overlap, the only way":     {true, cand{p: above, kb: 1, caller: 1}, 1},
		"extended, overlap long enough":             {true, cand{p: above, kb: fewShared, caller: 0.5}, 1},
		"what is put above was never a caller here": {false, cand{p: tree.Add(29, 30), kf: 1}, meetWorth},
	} {
		b := &block{stack: cut, ext: cut}
		if c.extended {
			b.ext = tree.Join(tree.Add(frames(6, 10)...), frames(11, 30))
		}
		s.o = tree.AppendFrames(s.o[:0], b.ext)
		s.t.follow()
		assert.Equal(t, c.want, s.worth(b, &c.cand), name)
	}
}
