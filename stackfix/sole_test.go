package stackfix

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A caller is believed if nothing else was seen to call the method, in stacks that were cut too.
func TestSoleCallers(t *testing.T) {
	tree := stacks.NewTree()
	var samples []Sample
	add := func(cut Cut, fs ...FrameID) StackID {
		s := tree.Add(fs...)
		samples = append(samples, Sample{Time: int64(len(samples)), Stack: s, Cut: cut})
		return s
	}
	for leaf := FrameID(90); leaf < 90+fewSightings; leaf++ {
		add(Whole, 1, 2, 3, 4, leaf)
		add(Whole, 1, 20, 21, leaf)
		add(Whole, 1, 30, 21, leaf)
		add(Depth, 40, 41, 42, leaf)
	}
	add(Whole, 1, 50, 51)
	s := newSolver(tree, Names{}, Options{Bridge: 200})
	w, _ := s.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
	sole := (&consensus{engine: s.engine}).learnSole(w)
	for name, c := range map[string]struct {
		stack  []FrameID
		up     []FrameID
		rooted bool
	}{
		"the only way, up to where threads begin": {[]FrameID{4, 89}, []FrameID{1, 2, 3}, true},
		"two ways":                            {[]FrameID{21, 89}, nil, false},
		"who calls the first is cut off":      {[]FrameID{42, 89}, []FrameID{40, 41}, false},
		"seen once":                           {[]FrameID{51, 89}, nil, false},
		"the caller is in the stack already":  {[]FrameID{4, 3, 89}, nil, false},
		"a method that was never seen before": {[]FrameID{89}, nil, false},
		"threads begin with it":               {[]FrameID{1, 89}, nil, true},
	} {
		up, rooted := sole.climb(s.engine, s.t.Add(c.stack...))
		if len(c.up) == 0 {
			assert.Empty(t, up, name)
		} else {
			assert.Equal(t, c.up, up, name)
		}
		assert.Equal(t, c.rooted, rooted, name)
	}
}
