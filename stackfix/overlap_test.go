package stackfix

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Overlaps are those that a look at each frame finds.
func TestOverlaps(t *testing.T) {
	var x zArrays
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		fs := func() []uint32 {
			fs := make([]uint32, rng.IntN(30)+1)
			for i := range fs {
				fs[i] = rng.Uint32N(1 + rng.Uint32N(3))
			}
			return fs
		}
		o, s := fs(), fs()
		for d, k := range x.find(o, s) {
			want := 0
			for want < len(o) && d+want < len(s) && o[want] == s[d+want] {
				want++
			}
			assert.Equal(t, want, int(k))
		}
	}
}
