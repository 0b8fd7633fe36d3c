package stackfix

import (
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

// What an answer is made of must overlap by a stretch.
func TestUnseenStretches(t *testing.T) {
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
	s.world = s.load([]Thread{{Samples: Slice(samples)}}, []int{0})
	b := &s.runs[0].blocks[len(s.runs[0].blocks)-1]
	assert.Equal(t, cut, b.stack)
	for name, c := range map[string]struct {
		above  StackID
		unseen bool
	}{
		"as one stack has it":       {add(frames(1, 11)), false},
		"as another one has it":     {add(frames(50, 60)), false},
		"two ways that only meet":   {add(frames(1, 3), frames(50, 60)), true},
		"a piece is missing":        {add(frames(1, 8)), true},
		"nothing was put back":      {0, false},
		"from the middle of a base": {add(frames(5, 11)), false},
	} {
		s.o = tree.AppendFrames(s.o[:0], b.ext)
		assert.Equal(t, c.unseen, s.unseen(b, c.above, 0.93), name)
		assert.False(t, s.unseen(b, c.above, 0.99), name) // a sure one of few frames
	}
}
