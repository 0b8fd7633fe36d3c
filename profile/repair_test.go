package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRepairsKeepEverything(t *testing.T) {
	t.Run("few kinds", func(t *testing.T) { keepEverything(t, 5000, 2, 3) })
	t.Run("more kinds than have numbers", func(t *testing.T) { keepEverything(t, 3*mostKinds, 1000, math.MaxUint32) })
}

// keepEverything keeps n repairs that differ in so many ways, of so many stacks.
func keepEverything(t *testing.T, n, ways int, stacks uint32) {
	rng := rand.New(rand.NewPCG(5, 6))
	var l Repairs
	var want []Repair
	index := 0
	for range n {
		index += rng.IntN(3) // 0: right behind the one before
		r := Repair{Index: index, Recorded: rng.Uint32N(stacks), How: []string{"before", "after", "bridge"}[rng.IntN(3)], Restored: rng.IntN(ways), Dropped: rng.IntN(min(256, ways)), Confidence: float32(rng.IntN(ways)) / 3}
		if ways > 2 {
			r.Above, r.BaseConfidence, r.AboveConfidence, r.Earlier = rng.IntN(math.MaxInt32), rng.Float32(), rng.Float32(), rng.IntN(2) == 0
		}
		n := 1 + rng.IntN(3)
		if n == 1 {
			l.Append(r)
		} else {
			l.AppendRun(r, n)
		}
		for range n {
			r.Index = index
			want = append(want, r)
			index++
		}
	}
	require.Equal(t, len(want), l.Len())
	assert.Equal(t, want, slices.Collect(l.All()))

	c := l.Cursor()
	for i := range index + 2 {
		r := c.Of(i)
		if len(want) > 0 && want[0].Index == i {
			require.NotNil(t, r)
			require.Equal(t, want[0], *r)
			want = want[1:]
		} else {
			require.Nil(t, r, "sample %d has no repair", i)
		}
	}
	assert.Empty(t, want)
}

func TestEqualRepairsInARowAreOneRun(t *testing.T) {
	var l Repairs
	for i := range 1000 {
		l.Append(Repair{Index: 7 + i, Recorded: 3, How: "before", Restored: 4, Confidence: 0.9})
	}
	runs := 0
	for range l.Runs() {
		runs++
	}
	assert.Equal(t, 1, runs)
	assert.Equal(t, 1000, l.Len())
}

// TestRepairsAreSmall: a repair takes about ten bytes, in any number of kinds.
func TestRepairsAreSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l Repairs
	index := 0
	const n = 100_000
	for range n {
		index += 1 + rng.IntN(100)
		l.Append(Repair{Index: index, Recorded: 1_000_000 + rng.Uint32N(50_000), How: "before", Restored: rng.IntN(500)})
	}
	size := 0
	for _, b := range l.chunks {
		size += cap(b.b)
	}
	assert.Less(t, size, 10*n)
}
