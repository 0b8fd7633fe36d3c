package httpreport

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// Requests come out in order of start as a stable sort puts them, of however many runs and wherever these are.
func TestDrawnList(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, aside := range []*profile.Spool{nil, {Create: func() (spool.File, error) { return f, nil }, Memory: 1}} {
		for _, n := range []int{0, 1, readAtOnce + 1, runOfDrawn, 5*runOfDrawn + 3*readAtOnce} {
			var l drawnList
			want := make([]drawn, n)
			for i := range want {
				took := r.Int64N(50)
				if i%1000 == 0 {
					took = r.Int64N(1 << 20) // one that began long before it came
				}
				start := int64(i)/3 - took // several start together
				want[i] = drawn{start, start + took, profile.SlicePlace(i), uint32(i % 3), uint32(i)}
				l.add(want[i], aside)
			}
			slices.SortStableFunc(want, func(a, b drawn) int { return cmp.Compare(a.start, b.start) })
			var got []drawn
			for x := range l.ascending {
				got = append(got, *x)
			}
			require.Equal(t, len(want), len(got))
			for i := range want {
				require.Equal(t, want[i], got[i], i)
			}
			require.Equal(t, aside != nil && n*drawnSize > drawnMemory/4, aside.InUse(), n)
		}
	}
}
