package events

import (
	"cmp"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/runtimeevents"
)

// spreadOf sorts the values.
func spreadOf(values []int64) (s spread) {
	sorted := slices.Sorted(slices.Values(values))
	for _, v := range sorted {
		s.Sum += v
	}
	if s.Count = len(sorted); s.Count > 0 {
		s.P50, s.P95, s.P99 = percentile(sorted, 50), percentile(sorted, 95), percentile(sorted, 99)
		s.Max, s.Mean = sorted[len(sorted)-1], s.Sum/int64(s.Count)
	}
	return s
}

// percentile returns the nearest-rank percentile of sorted values, 0 of none.
func percentile[T any](sorted []T, p float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[rank(p, len(sorted))]
}

// The distribution of millions is that of the same values in a slice.
func TestDurations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 99, 100, 5_000, 200_000} {
		d := newDurations(input.Aside(1))
		var values []int64
		for range n {
			v := r.Int64N(1e9)
			d.add(v)
			values = append(values, v)
		}
		require.Equal(t, spreadOf(values), d.spread(), n)
	}
}

// The largest value of each part of the time stays, and few of many values do.
func TestPeaks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 100, mostPeaks - 1, mostPeaks, 100_000, 1_000_000} {
		var s peaks
		want, got := map[int64]float64{}, map[int64]float64{} // by hundredth of the time
		part := func(at int64) int64 { return at / (int64(n)*1e4 + 1) }
		for i := range n {
			at, v := int64(i)*1e6, r.Float64()
			s.add(at, v, i)
			want[part(at)] = max(want[part(at)], v)
		}
		require.Less(t, len(s.list), mostPeaks)
		if n < mostPeaks {
			require.Len(t, s.list, n)
		}
		for i, p := range s.list {
			require.Equal(t, p.at, int64(p.n)*1e6)
			require.True(t, i == 0 || s.list[i-1].at < p.at)
			got[part(p.at)] = max(got[part(p.at)], p.value)
		}
		lower := 0
		for k, v := range want {
			if got[k] != v {
				lower++ // where two parts meet, one of them has the largest of both
			}
		}
		assert.LessOrEqual(t, lower, 3, n)
	}
}

// Times that go back do not make the peaks grow, nor go on for ever.
func TestPeaksOfDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s peaks
	for i := range 300_000 {
		at := r.Int64() - math.MaxInt64/2
		if i%3 == 0 {
			at = int64(i%2) * math.MaxInt64
		}
		s.add(at, float64(i), i)
		require.Less(t, len(s.list), mostPeaks)
	}
}

// The longest pauses are those that a sort of all would put first, of equal ones the earlier ones.
func TestLongestPauses(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	l := spool.ListIn[gcRecord](input.Aside(1))
	for i := range 20_000 {
		l.Add(&gcRecord{Collection: runtimeevents.Collection{Number: uint32(i)}, gcTimes: gcTimes{pause: r.Int64N(500)}})
	}
	for _, n := range []int{0, 1, 10, 3_000, 20_000} {
		pauses := longest{n: n}
		for i := range l.Len() {
			pauses.add(l.At(i).pause, i)
		}
		got := pauses.numbers()
		require.Len(t, got, n)
		in := map[int]bool{}
		for k, i := range got {
			require.EqualValues(t, i, l.At(i).Number)
			in[i] = true
			if k > 0 {
				a, b := l.At(got[k-1]).pause, l.At(i).pause
				require.True(t, a > b || a == b && got[k-1] < i)
			}
		}
		for i := range l.Len() {
			if n > 0 && !in[i] {
				require.LessOrEqual(t, l.At(i).pause, l.At(got[n-1]).pause)
			}
		}
	}
}

// A report of what cannot be read again is an error.
func TestReportFromBrokenDisk(t *testing.T) {
	aside := &spool.Spool{Create: func() (spool.File, error) { return tracetest.Unreadable{}, nil }, Memory: 1}
	l := spool.ListIn[gcRecord](aside)
	for range 20_000 {
		l.Add(&gcRecord{})
	}
	r := gcReport([]*gcProcess{{&runtimeevents.GCProcess{}, l, nil, 0}}, aside, &Context{End: 1})
	require.ErrorContains(t, r.Write(io.Discard, "ndjson", 0), "gone")

	aside = &spool.Spool{Create: aside.Create, Memory: 1}
	waits := newLocks(aside)
	for i := range 100_000 {
		waits.add(&runtimeevents.Contention{Process: 1, Start: int64(i), Stop: int64(i) + 1}, false)
	}
	r = locksReport(waits, &Context{End: 1})
	require.ErrorContains(t, r.Write(io.Discard, "text", 0), "gone")
}

// Contentions come in the order of their starts, and equal ones as they ended: as one sort of all has them.
func TestContentionsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{0, 1, 1000, 100_000} {
		l := newLocks(input.Aside(1))
		var want []lockRecord
		for i := range n {
			x := runtimeevents.Contention{Process: 1, Start: int64(i/10)*10 - r.Int64N(100)/10*10, Stop: int64(i), Thread: uint64(i)}
			if i%1000 == 7 {
				x.Start = r.Int64N(int64(i + 1)) // waits that took long
			}
			l.add(&x, false)
			want = append(want, lockRecord{Contention: x})
		}
		slices.SortStableFunc(want, func(a, b lockRecord) int { return cmp.Compare(a.Start, b.Start) })
		got := l.inOrder(l.ended.list(1))
		require.Equal(t, n, got.Len())
		for i := range want {
			require.Equal(t, want[i], got.At(i))
		}
	}
}
