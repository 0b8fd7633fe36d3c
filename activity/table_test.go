package activity

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRowTable: a table finds what a map does, also where hashes meet, and rows that are not kept
// any more give way: it grows with those that are.
func TestRowTable(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var table rowTable
		var keys []int // of the rows
		dead := map[int32]bool{}
		want := map[int]int32{} // rows that live, by key
		alive := func(i int32) bool { return !dead[i] }
		hash := func(key int) uint32 { return uint32(key) % 100 * 7 }
		find := func(key int) int32 {
			return rowIn(table.find(hash(key), func(i int32) bool { return keys[i] == key && alive(i) }))
		}
		for range 5000 {
			key := rng.IntN(400)
			row, ok := want[key]
			if !ok {
				row = -1
			}
			require.Equal(t, row, find(key))
			switch {
			case !ok:
				keys = append(keys, key)
				want[key] = int32(len(keys) - 1)
				table.add(hash(key), int32(len(keys)-1), alive)
			case rng.IntN(2) == 0:
				dead[row] = true
				delete(want, key)
			}
		}
		assert.LessOrEqual(t, len(table.at), 2048, "of 400 rows that live at most")
	}
}

// TestHashes: neither ids that differ in one bit nor numbers in a row have the same hash more often
// than by chance.
func TestHashes(t *testing.T) {
	h := newHasher()
	seen := map[uint32]bool{}
	n := 0
	var id ID
	for i := range 128 {
		for k := range 128 {
			x := id
			x[i/8] ^= 1 << (i % 8)
			x[k/8] ^= 1 << (k % 8)
			if k < i {
				seen[h.id(&owned{1, x})] = true
				n++
			}
		}
	}
	for i := range uint64(5000) {
		seen[h.short(i, 7)] = true
		seen[h.short(7, 5000+i)] = true
		seen[h.id(&owned{uint32(2 + i), id})] = true
		n += 3
	}
	assert.Greater(t, len(seen), n-8)
	low := map[uint32]int{}
	for hash := range seen {
		low[hash%256]++
	}
	assert.Len(t, low, 256)
}

// TestRowTableInPlace: a table that drops rows in place finds all that it keeps, wherever its first
// free slot is.
func TestRowTableInPlace(t *testing.T) {
	const size = 256
	inPlace := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var table rowTable
		keys := []uint32{}
		add := func(keep func(int32) bool) {
			key := uint32(len(keys)) | rng.Uint32N(size)<<16
			keys = append(keys, key)
			table.add(key>>16, int32(len(keys)-1), keep)
		}
		for len(keys) < size*3/4 {
			add(func(int32) bool { return true })
		}
		require.Len(t, table.at, size)
		before := &table.at[0]
		dead := make([]bool, len(keys)+1)
		for i := range len(keys) {
			dead[i] = rng.IntN(2) == 0
		}
		alive := func(i int32) bool { return !dead[i] }
		add(alive)
		if before == &table.at[0] {
			inPlace++
		}
		used := 0
		for _, s := range table.at {
			if s.row != 0 {
				used++
			}
		}
		require.Equal(t, used, table.used)
		for i, key := range keys {
			want := int32(i)
			if dead[i] {
				want = -1
			}
			require.Equal(t, want, rowIn(table.find(key>>16, func(row int32) bool { return keys[row] == key && alive(row) })), "seed %d", seed)
		}
	}
	require.Greater(t, inPlace, 200)
}
