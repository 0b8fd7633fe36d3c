package activity

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
)

// Rows come as a walk from the roots has them, those left out but for what is below them, from
// memory and from disk.
func TestForest(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	aside := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return file, nil }}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows := NewBuilder(&Options{Spool: aside}).rows
		rows.counts, rows.threads = make([]Count, 1), make([]rowThread, 1)
		rows.spool = map[bool]*spool.Spool{true: aside}[seed%2 == 0]
		const n = 30_000
		for i := range n {
			parent := int32(-1)
			switch r.IntN(10) {
			case 0:
			case 1: // one of long ago
				parent = r.Int32N(int32(i+1)) - 1
			default:
				parent = int32(max(-1, i-1-r.IntN(5)))
			}
			rows.add(&Event{Time: int64(i)}, parent, 0, 0, "")
		}
		for name, keep := range map[string]func(int, *Row) bool{
			"all": nil, "some": func(i int, _ *Row) bool { return i%3 > 0 }, "few": func(i int, _ *Row) bool { return i%100 == 0 }, "none": func(int, *Row) bool { return false },
		} {
			below := make([][]int, n+1) // of the roots: below[n]
			for i, row := range rows.All() {
				if keep != nil && !keep(i, row) {
					continue
				}
				p := row.Parent
				for p >= 0 && keep != nil && !keep(p, nil) {
					p = rows.Parent(p)
				}
				if p < 0 {
					p = n
				}
				below[p] = append(below[p], i)
			}
			var want, got [][2]int
			var walk func(i, level int)
			walk = func(i, level int) {
				for _, c := range below[i] {
					want = append(want, [2]int{c, level})
					walk(c, level+1)
				}
			}
			walk(n, 0)
			for row, level := range rows.forest(keep, 1).All() {
				got = append(got, [2]int{row, level})
			}
			require.Equal(t, len(want), len(got), name)
			for i := range want {
				require.Equal(t, want[i], got[i], "%s: %d", name, i)
			}
		}
		for row := range rows.Forest(nil).All() {
			if row > 0 {
				break
			}
		}
	}
	assert.True(t, aside.InUse())
	require.NoError(t, aside.Err())
}
