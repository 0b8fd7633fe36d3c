package quantile

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
)

// TestAt: quantiles are those of the sorted numbers, however many there are and whatever they are.
func TestAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() int64{
		"durations": func() int64 { return int64(rng.ExpFloat64() * 5e6) },
		"equal":     func() int64 { return 7 },
		"any":       func() int64 { return int64(rng.Uint64()) },
		"extremes":  func() int64 { return []int64{math.MinInt64, -1, 0, math.MaxInt64}[rng.IntN(4)] },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, runLength - 1, runLength, runLength + 1, 3*runLength + 5, 20 * runLength} {
				var s Numbers
				var all []int64
				for range n {
					v := next()
					s.Add(v)
					all = append(all, v)
				}
				slices.Sort(all)
				assert.Equal(t, n, s.Len())
				for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.99, 1} {
					assert.Equal(t, all[min(int(q*float64(n)), n-1)], s.At(q), "%v of %d", q, n)
				}
			}
		})
	}
}

// TestOf: those of several lists are those of one that has all their numbers, at whatever shares.
func TestOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, sizes := range [][]int{{}, {0, 0}, {1}, {0, 5, 1}, {runLength, 3}, {2*runLength + 7, 0, 5 * runLength, 11}, {30 * runLength, 30 * runLength}} {
		var lists []*Numbers
		var all []int64
		for i, n := range sizes {
			s := &Numbers{}
			for range n {
				v := int64(rng.ExpFloat64()*5e6)*int64(i+1) - int64(i)*1e9
				s.Add(v)
				all = append(all, v)
			}
			lists = append(lists, s)
		}
		slices.Sort(all)
		shares := []float64{1, 0, 0.5, 0.5, 0.9, 0.99, 0.999, 0.25}
		want := make([]int64, len(shares))
		for i, q := range shares {
			if n := len(all); n > 0 {
				want[i] = all[min(int(q*float64(n)), n-1)]
			}
		}
		assert.Equal(t, want, Of(shares, lists...), "%v", sizes)
	}
}

// TestSpool: numbers that are on disk are those that were added; what cannot be read again is told.
func TestSpool(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	aside := &spool.Spool{Create: func() (spool.File, error) { return f, nil }, Memory: 30_000}
	lists := []*Numbers{{Spool: aside}, {Spool: aside}}
	var want []int64
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 20*runLength + 3 {
		v := int64(rng.ExpFloat64() * 5e6)
		lists[i%2].Add(v)
		want = append(want, v)
	}
	require.True(t, aside.InUse())
	inMemory := 0
	for _, s := range lists {
		for _, r := range s.runs {
			inMemory += r.InMemory()
		}
	}
	require.LessOrEqual(t, inMemory, 30_000)
	require.NotZero(t, inMemory)
	slices.Sort(want)
	shares := []float64{0, 0.1, 0.5, 0.99, 1}
	for i, got := range Of(shares, lists...) {
		require.Equal(t, want[min(int(shares[i]*float64(len(want))), len(want)-1)], got)
	}
	var got []int64
	for _, s := range lists {
		got = slices.AppendSeq(got, s.Ascending)
	}
	slices.Sort(got)
	require.Equal(t, want, got)

	require.NoError(t, aside.Err())
	require.NoError(t, f.Truncate(1))
	Of(shares, lists...)
	for range lists[0].Ascending {
	}
	require.ErrorContains(t, aside.Err(), "cannot be read again")
}

// TestAddAfterAt: who asks may go on.
func TestAddAfterAt(t *testing.T) {
	var s Numbers
	assert.Zero(t, s.At(0.5))
	for v := range int64(100) {
		s.Add(100 - v)
		assert.EqualValues(t, 100-v, s.At(0))
		assert.EqualValues(t, 100, s.At(1))
	}
}

// TestMemory: a duration takes two to three bytes where there are many.
func TestMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s Numbers
	const n = 1 << 20
	for range n {
		s.Add(int64(rng.ExpFloat64() * 5e6))
	}
	size := 8 * cap(s.fresh)
	for _, b := range s.runs {
		size += int(unsafe.Sizeof(b)) + b.InMemory()
	}
	assert.LessOrEqual(t, size, 5*n/2)
}

// BenchmarkNumbers adds a million durations and asks for four quantiles.
func BenchmarkNumbers(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	durations := make([]int64, 1<<20)
	for i := range durations {
		durations[i] = int64(rng.ExpFloat64() * 5e6)
	}
	b.SetBytes(int64(8 * len(durations)))
	b.ReportAllocs()
	for b.Loop() {
		var s Numbers
		for _, v := range durations {
			s.Add(v)
		}
		Of([]float64{0.5, 0.9, 0.99, 1}, &s)
	}
}

// Ascending yields all numbers in order: such as come nearly so, and such as come in none.
func TestAscending(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, next := range map[string]func(i int) int64{
		"times":  func(i int) int64 { return int64(i)*1000 - r.Int64N(50_000) },
		"random": func(int) int64 { return r.Int64() - 1<<62 },
		"few":    func(int) int64 { return r.Int64N(3) },
	} {
		for _, n := range []int{0, 1, runLength - 1, runLength, 10*runLength + 7} {
			var s Numbers
			want := []int64{}
			for i := range n {
				v := next(i)
				s.Add(v)
				want = append(want, v)
			}
			slices.Sort(want)
			got := []int64{}
			for v := range s.Ascending {
				got = append(got, v)
			}
			require.Equal(t, want, got, "%s, %d", name, n)
			if n > 0 {
				require.Equal(t, want[n/2], s.At(0.5), "they are still there")
				for v := range s.Ascending { // may be left
					require.Equal(t, want[0], v)
					break
				}
			}
		}
	}
}
