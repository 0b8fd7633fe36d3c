package stackfix

import "math/bits"

// A hashSet is a set of hashes: a numbering without numbers, in a third of the memory. There are as
// many contexts in a recording as its tree has stacks, and more.
type hashSet struct {
	slots []uint64 // open addressing; 0 is free
	n     int
	shift uint8 // 64 - log2 of the number of slots
}

// reset makes the set empty. It keeps the memory unless most of it was not used.
func (t *hashSet) reset() {
	if 16*t.n < len(t.slots) {
		t.slots = nil
	}
	clear(t.slots)
	t.n = 0
}

// slot returns the place of h: its own, or a free one.
func (t *hashSet) slot(h uint64) *uint64 {
	i := h * mul >> t.shift
	for t.slots[i] != h && t.slots[i] != 0 {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	return &t.slots[i]
}

// has tells whether h is in the set.
func (t *hashSet) has(h uint64) bool { return t.n > 0 && *t.slot(max(h, 1)) != 0 }

// add adds h. 0 is taken for 1: two of so many hashes may be equal anyhow.
func (t *hashSet) add(h uint64) {
	if 4*t.n >= 3*len(t.slots) {
		t.grow()
	}
	h = max(h, 1)
	if s := t.slot(h); *s == 0 {
		*s = h
		t.n++
	}
}

func (t *hashSet) grow() {
	old := t.slots
	t.slots = make([]uint64, max(1<<8, 2*len(old)))
	t.shift = uint8(64 - bits.TrailingZeros(uint(len(t.slots))))
	for _, h := range old {
		if h != 0 {
			*t.slot(h) = h
		}
	}
}
