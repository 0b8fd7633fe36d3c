package runlist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListKeepsEverything: what is added is read again, in any number of kinds.
func TestListKeepsEverything(t *testing.T) {
	type kind struct {
		a float32
		b uint8
	}
	for _, kinds := range []int{1, fewKinds, fewKinds + 1, 1000} {
		rng := rand.New(rand.NewPCG(1, uint64(kinds)))
		var l List[kind]
		var want []Run[kind]
		at := int32(0)
		for range 20_000 {
			at += rng.Int32N(3)
			n := 1 + rng.Int32N(4)
			k := rng.IntN(kinds)
			want = append(want, Run[kind]{at, n, rng.Uint32N(1000), kind{float32(k), uint8(k)}})
			l.Append(want[len(want)-1])
			at += n
		}
		require.Equal(t, want, slices.Collect(l.All()))
		assert.LessOrEqual(t, len(l.kinds), kinds)
	}
}

// TestExtremes: indices and stacks may be any.
func TestExtremes(t *testing.T) {
	want := []Run[int]{{0, 1, 0, 0}, {math.MaxInt32 - 1, 1, math.MaxUint32, 1}, {0, math.MaxInt32, 0, 0}, {math.MaxInt32, 0, 1 << 31, 2}}
	var l List[int]
	for _, r := range want {
		l.Append(r)
	}
	assert.Equal(t, want, slices.Collect(l.All()))
	for r := range l.All() {
		assert.Equal(t, want[0], r)
		break
	}
	var none List[int]
	assert.Empty(t, slices.Collect(none.All()))
}

// TestMemory: a run takes some ten bytes.
func TestMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l List[int]
	at := int32(0)
	const n = 100_000
	for range n {
		at += 1 + rng.Int32N(100)
		l.Append(Run[int]{at, 1, 1_000_000 + rng.Uint32N(50_000), rng.IntN(500)})
	}
	size := 0
	for _, b := range l.chunks {
		size += cap(b)
	}
	assert.Less(t, size, 10*n)
}
