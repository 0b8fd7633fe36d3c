package stackfix

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A frame of a method that was met in the stack before is a third of the work of one that was not.
func TestWork(t *testing.T) {
	tree := stacks.NewTree()
	e := newEngine(tree, frameMethods{0, 1, 1, 2}, Options{Bridge: 9})
	for _, c := range []struct {
		fs   []FrameID
		work float64
	}{
		{nil, 0},
		{[]FrameID{1}, math.Log(3)},
		{[]FrameID{1, 3}, math.Log(6)},
		{[]FrameID{1, 2, 1, 3}, math.Log(8)},
	} {
		for n := range len(c.fs) + 1 {
			p := tree.Add(c.fs[:n]...)
			e.mth = []MethodID{0, 1, 1, 2}
			e.methods = 3
			assert.InDelta(t, c.work, e.work(p, c.fs[n:]), 1e-12, "%v at %d", c.fs, n)
		}
	}
}

type frameMethods []MethodID

func (x frameMethods) Method(f FrameID) MethodID { return x[f] }

// That the recorder took no longer than an answer takes speaks for it, the more the less it errs; that it took
// longer, or what is not known, says nothing.
func TestFits(t *testing.T) {
	tree := stacks.NewTree()
	fs := make([]FrameID, 200)
	for i := range fs {
		fs[i] = FrameID(i % 20)
	}
	s := tree.Add(fs...)
	e := newEngine(tree, Names{}, Options{Bridge: 99})
	work := e.work(s, nil)
	fits := func(off, spread float64) float64 {
		b := block{cut: Depth, spread: float32(spread)}
		b.look(&Sample{Effort: float32(work + off)})
		return e.fits(b.measure(), s, nil)
	}
	assert.Equal(t, 1.0, e.fits(measure{}, s, nil), "not known")
	for _, spread := range []float64{0.01, 0.1, 0.2, 0.4} {
		assert.Greater(t, fits(0, spread), 1.0, "%v", spread)
		assert.LessOrEqual(t, fits(0, spread), float64(mostFit), "%v", spread)
		for _, off := range []float64{0.5 + spread, 1, 3} {
			assert.Equal(t, 1.0, fits(off, spread), "%v longer, %v", off, spread)
		}
		assert.Equal(t, 1.0, fits(-2, spread), "far too short, %v", spread)
	}
	assert.Greater(t, fits(0, 0.1), fits(0, 0.3), "a better measure says more")
	assert.InDelta(t, fits(0, 0.01), fits(0, 0.1), 1e-4, "none is that good")

	few, many := block{cut: Depth, spread: 0.3}, block{cut: Depth, spread: 0.3}
	few.look(&Sample{Effort: 5})
	for range 9 {
		many.look(&Sample{Effort: 5})
	}
	many.look(&Sample{}) // not known
	assert.Equal(t, few.measure().effort, many.measure().effort)
	assert.Less(t, many.measure().deviation, few.measure().deviation)
	assert.Greater(t, many.measure().deviation, few.measure().deviation/2, "samples in a row have a part of the error in common")
	other := few
	other.cut = Bytes
	assert.Equal(t, measure{}, other.measure(), "a recorder that copies bytes does not walk further")
}

// What fits is surer, and nothing becomes certain.
func TestSurer(t *testing.T) {
	for _, p := range []float64{0, 0.3, 0.5, 0.9, 0.999, 1} {
		assert.InDelta(t, p, surer(p, 1), 1e-12)
		q := surer(p, mostFit)
		require.GreaterOrEqual(t, q, p)
		require.LessOrEqual(t, q, 1.0)
	}
	assert.InDelta(t, 0.75, surer(0.5, 3), 1e-12)
}
