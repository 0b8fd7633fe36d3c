package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestFirm holds that votes tell where a base ends only if they part in the same places: where each goes
// its own way, the next one may leave them earlier.
func TestFirm(t *testing.T) {
	tree := stacks.NewTree()
	chain := func(n int) StackID { // n methods of a row, then another one
		s := StackID(0)
		for f := range n {
			s = tree.Push(s, FrameID(f+1))
		}
		return tree.Push(s, 99)
	}
	for name, x := range map[string]struct {
		lengths []int
		apart   int64 // ns from vote to vote
		firm    bool
	}{
		"all alike":                 {[]int{20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20}, lookTime, true},
		"two ways":                  {[]int{20, 20, 20, 20, 20, 20, 20, 20, 20, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}, lookTime, true},
		"two ways, one of one look": {[]int{20, 20, 20, 20, 20, 20, 20, 20, 20, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}, 1, false},
		"each its own":              {[]int{20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2}, lookTime, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range x.lengths {
				chain(n)
			}
			q := &inquiry{consensus: &consensus{engine: newEngine(tree, Names{}, Options{})}}
			var votes []ballot
			for i, n := range x.lengths {
				s := chain(n)
				votes = append(votes, ballot{above: s, ago: int64(i) * x.apart, camp: q.votes.add(s, true)})
			}
			q.compare(&q.votes)
			assert.Equal(t, x.firm, q.firm(votes) >= DefaultConfidence)
		})
	}
}

// TestSeenAround holds that repairs which only repairs speak for are no witnesses of their time.
func TestSeenAround(t *testing.T) {
	before, after := ballot{ago: 2 * phaseTime}, ballot{ago: -2 * phaseTime}
	rumour := ballot{ago: -1, hearsay: true}
	assert.True(t, seenAround([]ballot{before, after}))
	assert.True(t, samePhase([]ballot{before, after}))
	assert.False(t, seenAround([]ballot{before, rumour}))
	assert.False(t, samePhase([]ballot{rumour, before}))
	rumour.hearsay = false
	assert.True(t, samePhase([]ballot{rumour}))
}
