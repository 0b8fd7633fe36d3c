package stackfix

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHashSet(t *testing.T) {
	var set hashSet
	assert.False(t, set.has(0))
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2 {
		want := map[uint64]bool{}
		for range 10_000 {
			h := rng.Uint64N(5000) * mul
			assert.Equal(t, want[h], set.has(h))
			set.add(h)
			want[h] = true
		}
		for h := range want {
			require.True(t, set.has(h))
		}
		require.Equal(t, len(want), set.n)
		assert.LessOrEqual(t, len(set.slots), len(want)*8/3, "at most 22 bytes for each")
		set.reset()
		assert.False(t, set.has(mul))
	}
}
