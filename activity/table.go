package activity

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A rowTable finds rows by what they have, of which it keeps hashes only: a slot of eight bytes tells most
// others apart without a look at their rows, which are far away.
type rowTable struct {
	at   []rowSlot // by hash; as many as a power of two
	used int
}

type rowSlot struct {
	row  int32 // 1 + row; 0: free
	hash uint32
}

// find returns the slot of a row with that hash of which is holds; nil if there is none.
func (t *rowTable) find(hash uint32, is func(row int32) bool) *rowSlot {
	if len(t.at) == 0 {
		return nil
	}
	for i := int(hash); ; i++ {
		s := &t.at[i&(len(t.at)-1)]
		if s.row == 0 {
			return nil
		}
		if s.hash == hash && is(s.row-1) {
			return s
		}
	}
}

// add adds a row that find does not find. It may take the place of one that keep does not hold of,
// and where there is no room left those are dropped first.
func (t *rowTable) add(hash uint32, row int32, keep func(row int32) bool) {
	if 4*t.used >= 3*len(t.at) {
		t.grow(keep)
	}
	for i := int(hash); ; i++ {
		s := &t.at[i&(len(t.at)-1)]
		if s.row == 0 {
			t.used++
		} else if s.hash != hash || keep(s.row-1) {
			continue
		}
		*s = rowSlot{1 + row, hash}
		return
	}
}

// grow makes room for half as many rows again as it keeps, or more: in place, if there are slots for them.
func (t *rowTable) grow(keep func(row int32) bool) {
	kept := 0
	for i, s := range t.at {
		switch {
		case s.row == 0:
		case keep(s.row - 1):
			kept++
		default:
			t.at[i].row = rowDropped
		}
	}
	size := 256
	for 5*size < 8*kept {
		size *= 2
	}
	t.used = kept
	if size != len(t.at) {
		old := t.at
		t.at = make([]rowSlot, size)
		for _, s := range old {
			if s.row > 0 {
				t.put(s)
			}
		}
		return
	}
	// What follows a free slot is as near to where its hash says as it can get when all before it
	// are: it is looked for from there.
	start := slices.IndexFunc(t.at, func(s rowSlot) bool { return s.row == 0 })
	for k := range t.at {
		s := &t.at[(start+k)&(size-1)]
		row := s.row
		if s.row = 0; row > 0 {
			t.put(rowSlot{row, s.hash})
		}
	}
}

// rowDropped is the row of a slot that is about to be freed.
const rowDropped = -1

// put puts a row into the first slot that is free.
func (t *rowTable) put(s rowSlot) {
	i := int(s.hash)
	for t.at[i&(len(t.at)-1)].row > 0 {
		i++
	}
	t.at[i&(len(t.at)-1)] = s
}

// A hasher hashes with a secret of its own: ids come from files, and nobody can make some that meet
// in one slot.
type hasher [2]uint64

func newHasher() hasher { return hasher{rand.Uint64(), rand.Uint64()} }

func (h *hasher) words(a, b uint64) uint64 {
	high, low := bits.Mul64(a^h[0], b^h[1])
	return high ^ low
}

// short mixes two words into the hash of a slot.
func (h *hasher) short(a, b uint64) uint32 { return uint32(h.words(h.words(a, b), 0)) }

func (h *hasher) id(x *owned) uint32 {
	return uint32(h.words(h.words(binary.LittleEndian.Uint64(x.id[:]), binary.LittleEndian.Uint64(x.id[8:])), uint64(x.process)))
}

// open is the hash of an id, which has that hash, and an identity.
func (h *hasher) open(id, identity uint32) uint32 { return h.short(uint64(id), uint64(identity)) }
