package events

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/runtimeevents"
)

// The distribution is that of all values, and the longest of each part of the time stays.
func TestWaited(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 100, 5_000, mostLongest - 1, mostLongest, 100_000} {
		w := newWaited(&spool.Spool{})
		var values []int64
		longest := map[int64]int64{} // by hundredth of the time
		for i := range n {
			d := runtimeevents.Delay{Time: int64(i) * 1e6, Wait: r.Int64N(1e9)}
			w.add(d)
			values = append(values, d.Wait)
			part := d.Time / (int64(n) * 1e4)
			longest[part] = max(longest[part], d.Wait)
		}
		want := spreadOf(values)
		require.Equal(t, want, w.spread(), n)
		require.Less(t, len(w.longest), mostLongest)
		if n < mostLongest {
			require.Len(t, w.longest, n)
		}
		if n < 100 {
			continue
		}
		lower := 0
		kept := map[int64]int64{}
		for _, d := range w.longest {
			part := d.Time / (int64(n) * 1e4)
			kept[part] = max(kept[part], d.Wait)
		}
		for part, v := range longest {
			if kept[part] != v {
				lower++ // the part before or behind it has the longest of where they meet
			}
		}
		assert.LessOrEqual(t, lower, 3, n)
	}
}

// Times that go back do not make it grow, nor go on for ever.
func TestWaitedOfDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	w := newWaited(nil)
	for i := range 300_000 {
		at := r.Int64() - math.MaxInt64/2
		if i%3 == 0 {
			at = int64(i%2) * math.MaxInt64
		}
		w.add(runtimeevents.Delay{Time: at, Wait: int64(i)})
		require.Less(t, len(w.longest), mostLongest)
	}
	assert.EqualValues(t, 299_999, w.spread().Max)
}
