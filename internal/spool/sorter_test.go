package spool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Records come in the order of their keys, equal ones as they were added, from memory and from
// disk, and no more of them than are asked for.
func TestSorter(t *testing.T) {
	type record struct {
		key  int64
		some [9]uint32
		is   bool
	}
	random := rand.New(rand.NewPCG(1, 2))
	on, file := aside(t)
	full := &Spool{Memory: 1, Create: func() (File, error) { return &brim{}, nil }}
	for name, p := range map[string]*Spool{"in memory": nil, "on disk": on, "no disk": {}, "no room any more": full} {
		for _, order := range []struct {
			name string
			key  func(i int) int64
		}{
			{"nearly in order", func(i int) int64 { return int64(i) - random.Int64N(100) }},
			{"backwards", func(i int) int64 { return int64(-i) }},
			{"few keys", func(int) int64 { return random.Int64N(3) }},
			{"anyhow", func(int) int64 { return int64(random.Uint64()) }},
		} {
			for _, n := range []int{0, 1, 9, 40_000} {
				s := SorterIn(p, func(x *record) int64 { return x.key })
				var want []record
				for i := range n {
					x := record{key: order.key(i), some: [9]uint32{8: uint32(i)}, is: i%3 == 0}
					s.Add(&x)
					want = append(want, x)
				}
				slices.SortStableFunc(want, func(a, b record) int {
					return cmp.Compare(a.key, b.key)
				})
				var got []record
				for x := range s.Ascending {
					got = append(got, *x)
				}
				require.Equal(t, len(want), len(got), "%s, %s", name, order.name)
				for i := range want {
					require.True(t, want[i] == got[i], "%s, %s: %d of %d", name, order.name, i, n)
				}
			}
		}
	}
	there, err := file.Stat()
	require.NoError(t, err)
	assert.NotZero(t, there.Size(), "some of them are on disk")

	s := SorterIn(nil, func(x *int64) int64 { return *x })
	for i := range int64(100) {
		s.Add(&i)
	}
	seen := 0
	for range s.Ascending {
		if seen++; seen == 7 {
			break
		}
	}
	assert.Equal(t, 7, seen)
}
