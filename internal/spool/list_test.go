package spool

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Records come back as they were, and as they were changed, from memory and from disk.
func TestList(t *testing.T) {
	type record struct {
		at   int64
		some [7]uint32
		is   bool
	}
	of := func(i int) record {
		return record{at: int64(i), some: [7]uint32{uint32(i), 6: uint32(i * i)}, is: i%3 == 0}
	}
	on, file := aside(t)
	full := &Spool{Memory: 1, Create: func() (File, error) { return &brim{}, nil }}
	for name, l := range map[string]*List[record]{"in memory": ListIn[record](nil), "on disk": ListIn[record](on), "no disk": ListIn[record](&Spool{}), "no room any more": ListIn[record](full)} {
		t.Run(name, func(t *testing.T) {
			const n = 20_000
			r := rand.New(rand.NewPCG(1, 2))
			var want []record
			for i := range n {
				require.Equal(t, i, l.Len())
				x := of(i)
				l.Add(&x)
				want = append(want, x)
				if k := r.IntN(i + 1); i%7 == 0 {
					l.Change(k).some[3]++
					want[k].some[3]++
					require.Equal(t, want[k], l.At(k))
				}
				if k := r.IntN(i + 1); i%5 == 0 {
					require.Equal(t, want[k], l.At(k))
				}
			}
			l.Done()
			var got, room []record
			for i := range l.Chunks() {
				got = append(got, l.Chunk(i, &room)...)
			}
			require.Equal(t, want, got)
			for i := range n {
				require.Equal(t, want[i], l.At(i))
			}
		})
	}
	there, err := file.Stat()
	require.NoError(t, err)
	assert.NotZero(t, there.Size(), "some of them are on disk")
	assert.Zero(t, ListIn[record](nil).Chunks())
}

// brim is a file that has room for a while.
type brim struct {
	b      []byte
	writes int
}

func (f *brim) ReadAt(b []byte, at int64) (int, error) { return copy(b, f.b[at:]), nil }

func (f *brim) WriteAt(b []byte, at int64) (int, error) {
	if f.writes++; f.writes > 300 {
		return 0, errors.New("no space left")
	}
	f.b = append(f.b, make([]byte, max(0, int(at)+len(b)-len(f.b)))...)
	return copy(f.b[at:], b), nil
}
