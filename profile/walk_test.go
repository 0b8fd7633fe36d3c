package profile

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A walk is as long as it was, to some three in a hundred, and what cannot be one is not known.
func TestWalkOf(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, 15, MostWalk + 1, time.Hour, 1<<63 - 1} {
		assert.Zero(t, WalkOf(d), "%d", d)
		assert.Zero(t, WalkOf(d).Duration(), "%d", d)
	}
	last := Walk(0)
	for d := time.Duration(16); d <= MostWalk; d += max(1, d/1000) {
		w := WalkOf(d)
		require.NotZero(t, w, "%d", d)
		require.GreaterOrEqual(t, w, last, "%d", d)
		require.InEpsilon(t, float64(d), float64(w.Duration()), 0.034, "%d", d)
		last = w
	}
}

// Walks come back for the samples that they were added for, from any one on, in memory and on disk.
func TestWalks(t *testing.T) {
	spool := onDisk(t)
	for name, l := range map[string]Walks{"in memory": {}, "on disk": WalksIn(spool), "no disk": WalksIn(&Spool{})} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			want := make([]Walk, 3*walksPerChunk+100)
			for i := range want {
				if r.IntN(3) == 0 || i > 60_000 && i < 61_000 {
					want[i] = Walk(r.IntN(256))
				}
				if i >= 2*walksPerChunk-5 && i < 2*walksPerChunk+5 {
					want[i] = 0
				}
				l.Add(i, want[i])
			}
			want[len(want)-1] = 7
			l.Add(len(want)-1, 7)
			l.Add(len(want)+1_000_000, 0) // tells nothing
			require.Equal(t, len(want), l.Len())
			for _, from := range []int{0, 1, walksPerChunk - 1, walksPerChunk, 2*walksPerChunk - 3, 3 * walksPerChunk, len(want) - 1} {
				c := l.From(from)
				for i := from; i < len(want); i++ {
					require.Equal(t, want[i], c.Next(), "%d from %d", i, from)
				}
				assert.Zero(t, c.Next())
				assert.Zero(t, c.Next())
			}
			past := l.From(len(want) + 10)
			assert.Zero(t, past.Next())
			none := (&Walks{}).From(0)
			assert.Zero(t, none.Next())
		})
	}
}
