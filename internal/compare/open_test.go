package compare

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// TestOpenStack holds sums by calls and returns against those of each stretch for itself.
func TestOpenStack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := profile.NewTable()
	var frames []profile.FrameID
	for i := range 9 {
		kind := profile.Managed
		if i == 0 {
			kind = profile.Synthetic // no code
		}
		frames = append(frames, table.AddFrame(profile.Frame{Method: table.AddMethod(profile.Method{Name: fmt.Sprint("f", i), Kind: kind})}))
	}
	n := &names{ids: map[string]int{}}
	tr := &Trace{Profile: &profile.Profile{Table: table}}
	const whole = 1e12
	c, plain := noCosts(tr, n), noCosts(tr, n)
	open := openStack{c: c, whole: whole}
	for range 4 {
		th := &profile.Thread{}
		var now int64
		var stack profile.StackID
		known := false
		for range 3000 {
			for range rng.IntN(4) {
				stack = table.Parent(stack)
			}
			for range rng.IntN(4) {
				stack = table.Push(stack, frames[rng.IntN(len(frames))])
			}
			if rng.IntN(20) == 0 {
				now += together + rng.Int64N(3) - 1
			}
			if rng.IntN(10) == 0 {
				known = !known
			}
			st := &profile.Stretch{Sample: profile.Sample{Stack: stack}, Start: now, End: now + rng.Int64N(2e6)}
			now = st.End
			open.add(th, st, known)
			for _, m := range plain.methods(stack) {
				s, ns := plain.total.add(m), float64(st.Nanos())
				s.time += ns
				s.squares += ns * ns
				s.samples++
				if !known {
					s.rest.add(th, st.Start, st.End, ns, whole)
				}
			}
		}
	}
	open.end()
	require.Len(t, plain.total, 8)
	for m, want := range plain.total {
		got := c.total.of(m)
		require.NotNil(t, got)
		assert.Equal(t, want.time, got.time)
		assert.Equal(t, want.samples, got.samples)
		assert.InEpsilon(t, want.squares, got.squares, 1e-9)
		assert.Equal(t, want.rest.time, got.rest.time)
		assert.Equal(t, want.rest.covered, got.rest.covered)
		assert.InEpsilon(t, want.rest.own, got.rest.own, 1e-9)
		assert.InEpsilon(t, want.rest.squares, got.rest.squares, 1e-9)
		assert.InEpsilon(t, want.rest.variance(whole), got.rest.variance(whole), 1e-9)
	}
}
