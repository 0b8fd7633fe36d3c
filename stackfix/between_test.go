package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestWithin holds that a base ends where it contradicts what the whole stacks around share, in
// recordings whose threads seldom leave that.
func TestWithin(t *testing.T) {
	tree := stacks.NewTree()
	between := tree.Add(1, 2, 3)
	for name, x := range map[string]struct {
		base, want []FrameID
		left       int // of 100
	}{
		"shorter":           {[]FrameID{1, 2}, []FrameID{1, 2}, 0},
		"goes on":           {[]FrameID{1, 2, 3, 4}, []FrameID{1, 2, 3, 4}, 0},
		"another way":       {[]FrameID{1, 2, 5, 6}, []FrameID{1, 2}, 0},
		"another root":      {[]FrameID{7, 2}, nil, 0},
		"often left, there": {[]FrameID{1, 2, 5, 6}, []FrameID{1, 2, 5, 6}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			base := tree.Add(x.base...)
			e := newEngine(tree, Names{}, Options{})
			e.cal.enclosing = doubtful{100, x.left}
			assert.Equal(t, tree.Add(x.want...), e.within(base, between))
		})
	}
	assert.Equal(t, between, newEngine(tree, Names{}, Options{}).within(between, 0), "nothing is known around")
}
