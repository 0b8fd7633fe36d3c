package stackfix

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestWeigh holds that a state is as likely as all ways through it, forward and backward, whatever
// its own evidence says.
func TestWeigh(t *testing.T) {
	tree := stacks.NewTree()
	var samples []Sample
	for i, s := range []StackID{tree.Add(1, 2, 3, 9), tree.Add(1, 2, 3, 8), tree.Add(1, 2, 3, 9), tree.Add(1, 5, 6, 3, 9), tree.Add(1, 2, 3, 9)} {
		samples = append(samples, Sample{Time: int64(i), Stack: s})
	}
	e := newSolver(tree, Names{}, Options{Bridge: 100})
	e.world, _ = e.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
	e.learnModel()
	e.retain.begin(&e.pairs)
	e.retain.finish()
	short, long := e.t.Add(1, 2), e.t.Add(1, 5, 6)
	open := func(own float64) moment {
		return moment{block: &block{}, overlap: []float64{0, 20, 40}, states: []state{
			{prefix: long, stack: e.t.Add(1, 5, 6, 3, 9), own: own}, {prefix: short, stack: e.t.Add(1, 2, 3, 9)},
		}}
	}
	known := func() moment {
		return moment{block: &block{}, states: []state{{prefix: e.t.Add(1, 2, 3, 9), stack: e.t.Add(1, 2, 3, 9)}}}
	}
	row := []moment{known(), open(0.5), open(0), known()}
	e.weigh(row)
	for i := range row {
		s, sure := row[i].best()
		assert.Equal(t, e.t.Add(1, 2, 3, 9), s.stack, "moment %d: what overlaps stays", i)
		assert.Greater(t, sure, 0.5)
		all := math.Inf(-1)
		for _, s := range row[i].states {
			all = addLogs(all, s.until+s.from)
		}
		assert.InDelta(t, row[0].states[0].from, all, 1e-9, "moment %d: all ways of all moments are the same ones", i)
	}
	_, sure := (&moment{}).best()
	assert.Zero(t, sure, "nothing is known")
}
