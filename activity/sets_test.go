package activity

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			require.Equal(t, under && !row.ID.IsZero(), ids.Has(row.ID), "id of row %d", i)
		}
		assert.Equal(t, want, in.Len())
		assert.Equal(t, named, ids.Len())
	}
}

// TestIDSet puts more ids in than there was room for, most of them twice.
func TestIDSet(t *testing.T) {
	assert.False(t, (*IDSet)(nil).Has(ID{1}), "nil")
	assert.Zero(t, (*IDSet)(nil).Len())
	of := func(i int) (id ID) {
		binary.BigEndian.PutUint64(id[3:], uint64(i))
		return id
	}
	for _, room := range []int{0, 1, 10, 5_000, 10_000} {
		s := NewIDSet(room)
		assert.False(t, s.Has(of(0)), "empty")
		for i := range 10_000 {
			s.Add(of(i * 2))
			s.Add(of(i * 2 / 3 * 2))
		}
		assert.Equal(t, 10_000, s.Len())
		for i := range 20_000 {
			require.Equal(t, i%2 == 0, s.Has(of(i)), "%d of room for %d", i, room)
		}
	}
	full := NewIDSet(1_000)
	slots := len(full.slots)
	for i := range 1_000 {
		full.Add(of(i))
	}
	assert.Len(t, full.slots, slots, "no more memory than for so many")
}
