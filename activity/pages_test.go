package activity

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
)

// Rows of which most are on disk are those that are in memory.
func TestRowsOnDisk(t *testing.T) {
	for _, encoder := range []Encoder{EncoderOld, EncoderNew} {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 1))
			file, err := os.CreateTemp(t.TempDir(), "")
			require.NoError(t, err)
			aside := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return file, nil }}
			here, there := NewBuilder(nil), NewBuilder(&Options{Spool: aside})
			there.rows.pages = spool.PagesIn[rowPage](aside, 1)
			add := func(e Event) {
				require.Equal(t, here.Add(&e), there.Add(&e))
			}
			var open [][]uint32
			for i := range 30_000 {
				path := []uint32{1, uint32(i)}
				var related ID
				if len(open) > 0 && r.IntN(4) > 0 {
					up := open[r.IntN(len(open))]
					path = append(append([]uint32{}, up...), uint32(r.IntN(5)+1))
					if r.IntN(8) > 0 {
						related = pathID(t, encoder, up)
					}
				}
				if len(path) > 8 {
					continue
				}
				e := Event{Time: int64(i), Thread: uint64(r.IntN(5)), Process: 7, Provider: "P", Name: "WorkStart", Opcode: Start, ID: pathID(t, encoder, path), Related: related}
				add(e)
				open = append(open, path)
				for len(open) > 0 && r.IntN(20) < 9 || len(open) > 300 {
					k := r.IntN(len(open))
					e.Name, e.Opcode, e.ID, e.Related = "WorkStop", Stop, pathID(t, encoder, open[k]), ID{}
					if r.IntN(10) > 0 {
						add(e)
					}
					open = append(open[:k], open[k+1:]...)
				}
			}
			want, got := here.FinishRows(), there.FinishRows()
			require.Greater(t, want.pages.Len(), 20)
			info, err := file.Stat()
			require.NoError(t, err)
			require.Greater(t, info.Size(), int64(1e6), "most are on disk")
			assert.Equal(t, want.Tree(), got.Tree())
			require.NoError(t, aside.Err())
			require.NoError(t, file.Close())
		}
	}
}

func pathID(t *testing.T, e Encoder, path []uint32) ID {
	id, err := Encode(NewPath(path...).WithProcess(7), e)
	require.NoError(t, err)
	return id
}
