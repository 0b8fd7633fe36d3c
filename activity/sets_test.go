package activity

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
)

// TestBelow holds Below and IDs against what the parents of each row tell.
func TestBelow(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		rows := NewBuilder(nil).rows
		rows.counts, rows.threads = make([]Count, 1), make([]rowThread, 1)
		const n = 3_000
		for i := range n {
			parent := r.Int32N(int32(i+1)) - 1
			id := ID{}
			if i%7 > 0 {
				binary.LittleEndian.PutUint32(id[4:], uint32(i))
			}
			rows.add(&Event{Time: int64(i), ID: id}, parent, 0, 0, "")
		}
		roots := map[int]bool{}
		for range r.IntN(20) {
			roots[r.IntN(n)] = true
		}
		in := rows.Below(func(i int, _ *Row) bool { return roots[i] })
		ids, want, named := rows.IDs(in), 0, 0
		for i, row := range rows.All() {
			under := false
			for k := i; k >= 0 && !under; k = rows.Parent(k) {
				under = roots[k]
			}
			require.Equal(t, under, in.Has(i), "row %d", i)
			if under {
				want++
			}
			if under && !row.ID.IsZero() {
				named++
			}
			require.Equal(t, under && !row.ID.IsZero(), ids.Has(0, row.ID), "id of row %d", i)
		}
		assert.Equal(t, want, in.Len())
		assert.Equal(t, named, ids.Len())
	}
}

// TestIDSet puts more ids in than there was room for, most of them twice.
func TestIDSet(t *testing.T) {
	assert.False(t, (*IDSet)(nil).Has(0, ID{1}), "nil")
	assert.Zero(t, (*IDSet)(nil).Len())
	of := func(i int) (id ID) {
		binary.BigEndian.PutUint64(id[3:], uint64(i))
		return id
	}
	for _, room := range []int{0, 1, 10, 5_000, 10_000} {
		s := NewIDSet(room)
		assert.False(t, s.Has(0, of(0)), "empty")
		for i := range 10_000 {
			s.Add(0, of(i*2))
			s.Add(0, of(i*2/3*2))
		}
		assert.Equal(t, 10_000, s.Len())
		for i := range 20_000 {
			require.Equal(t, i%2 == 0, s.Has(0, of(i)), "%d of room for %d", i, room)
		}
	}
	s := NewIDSet(0)
	s.Add(1, of(1))
	s.Add(2, of(2))
	assert.True(t, s.Has(1, of(1)))
	assert.False(t, s.Has(2, of(1)), "of another process")
	full := NewIDSet(1_000)
	slots := len(full.slots)
	for i := range 1_000 {
		full.Add(0, of(i))
	}
	assert.Len(t, full.slots, slots, "no more memory than for so many")
}

// TestIDsOnDisk holds the ids of rows on disk against what was put in: those of paths, of no order
// at all, such as begin alike, and some of them many times.
func TestIDsOnDisk(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	aside := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return file, nil }}
	const n = 600_000
	of := func(i int) (id ID) {
		switch i % 4 {
		case 0, 1:
			return pathID(t, EncoderOld, []uint32{1, 1, uint32(i), uint32(i%3 + 1)})
		case 2:
			r := rand.New(rand.NewPCG(uint64(i), 3))
			binary.LittleEndian.PutUint64(id[:], r.Uint64())
			binary.LittleEndian.PutUint64(id[8:], r.Uint64())
		default: // all of one begin
			id = ID{9, 9, 9, 9, 9, 9}
			binary.LittleEndian.PutUint32(id[12:], uint32(i))
		}
		return id
	}
	rows := NewBuilder(&Options{Spool: aside}).rows
	rows.counts, rows.threads = make([]Count, 1), make([]rowThread, 1)
	for i := range n {
		rows.add(&Event{Time: int64(i), ID: of(i / 2 * 2)}, -1, 0, 0, "") // of the even ones: two rows each
		if i%1_000 == 0 {
			rows.add(&Event{Time: int64(i), ID: of(0)}, -1, 0, 0, "")
		}
		if i%500 == 0 {
			rows.add(&Event{Time: int64(i), ID: of(4*(i/4) + 3)}, -1, 0, 0, "")
			rows.add(&Event{Time: int64(i)}, -1, 0, 0, "")
		}
	}
	ids := rows.idSet(rows.Below(func(int, *Row) bool { return true }), 1)
	require.NotNil(t, ids.sorted)
	require.Greater(t, len(ids.sorted.firsts), 2*idMemory/4/4096, "most are on disk")
	assert.Equal(t, n/2+n/500, ids.Len())
	var ask sync.WaitGroup
	for from := range 2 {
		ask.Go(func() {
			for i := from; i < n; i += 2 {
				if is := i%2 == 0 || i%500 == 3; is != ids.Has(0, of(i)) {
					t.Errorf("%d: in the set is %v", i, !is)
					return
				}
			}
		})
	}
	ask.Wait()
	assert.False(t, ids.Has(0, ID{}))
	assert.False(t, ids.Has(1, of(0)), "of another process")
	before := ids.Len()
	ids.Add(0, of(0))
	assert.Equal(t, before, ids.Len(), "was there")
	ids.Add(0, of(1))
	ids.Add(0, of(1))
	assert.Equal(t, before+1, ids.Len())
	assert.True(t, ids.Has(0, of(1)))
	require.NoError(t, ids.Err())
	require.NoError(t, file.Close())
	for i := 0; i < n; i += 2 {
		ids.Has(0, of(i))
	}
	assert.Error(t, ids.Err(), "the file cannot be read")
}
