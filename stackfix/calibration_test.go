package stackfix

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSlope holds that strong evidence is worth less in a recording in which a trial finds it
// wrong more often than usual, also of evidence that the trial has not seen.
func TestSlope(t *testing.T) {
	for name, answers := range map[string]struct {
		rec     level
		strong  float64 // right of the answers with strong evidence
		flatter bool
	}{
		"as usual":                    {0, 1, false},
		"overlaps by chance":          {0, 0.8, true},
		"in a recursion":              {1, 0.8, true},
		"in a recursion, as expected": {1, 0.98, false},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []row
			key := uint64(0)
			add := func(n int, right float64, v evidence) {
				for i := range n {
					key++
					rows = append(rows, row{v, float64(i) < right*float64(n), false, [2]uint64{key}})
				}
			}
			for margin := range level(numMargins - 1) {
				v := evidence{rec: answers.rec, votes: 2, share: 4, sides: 2, margin: margin, win: 3}
				add(40, min(sigmoid(usual(v)), answers.strong), v)
			}
			var c calibration
			c.learn(rows, wholeWorth)
			untold := calibration{taught: true}
			untold.learnt = c.learnt
			kind, other := answerSlope, recursionSlope
			if answers.rec > 0 {
				kind, other = other, kind
			}
			assert.Equal(t, 1.0, c.slope(other), "nothing was learnt of it")
			unseen := evidence{rec: answers.rec, votes: 2, share: 4, sides: 2, margin: numMargins - 1, win: 3}
			if answers.flatter {
				assert.Less(t, c.slope(kind), 0.9)
				assert.Less(t, c.confidence(unseen), untold.confidence(unseen)-0.01)
			} else {
				assert.Greater(t, c.slope(kind), 0.9)
				assert.InDelta(t, untold.confidence(unseen), c.confidence(unseen), 0.01)
			}
		})
	}
}

// TestWholeCountsLess holds that an answer for a stack that was cut before tells more than one for a
// whole stack.
func TestWholeCountsLess(t *testing.T) {
	v := evidence{votes: 4, share: 5}
	confidence := func(wholeIsRight bool) float64 {
		var rows []row
		for i := range 80 {
			whole := i%2 == 0
			rows = append(rows, row{v, whole == wholeIsRight, whole, [2]uint64{uint64(i)}})
		}
		var c calibration
		c.learn(rows, wholeWorth)
		return c.confidence(v)
	}
	assert.Less(t, confidence(true), 0.4)
	assert.Greater(t, confidence(false), 0.6)
}
