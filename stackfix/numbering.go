package stackfix

import "math/bits"

// A numbering numbers keys, from 0 on in the order they come: a hash table with open
// addressing, without the deletions and the iterators of a map.
type numbering struct {
	slots []numbered
	n     int
	shift uint8 // 64 - log2 of the number of slots
}

type numbered struct {
	key uint64
	id  int32 // its number + 1; 0: the slot is free
}

// mul is 2^64 over the golden ratio: the upper bits of a product with it are a hash.
const mul = 0x9E3779B97F4A7C15

// reset forgets all keys. It keeps the memory unless most of it was not used.
func (t *numbering) reset() {
	if 16*t.n < len(t.slots) {
		t.slots = nil
	}
	clear(t.slots)
	t.n = 0
}

// slot returns the place of key: its own, or a free one.
func (t *numbering) slot(key uint64) *numbered {
	i := key * mul >> t.shift
	for {
		s := &t.slots[i]
		if s.key == key || s.id == 0 {
			return s
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
}

// get returns the number of key, or -1.
func (t *numbering) get(key uint64) int {
	if t.n == 0 {
		return -1
	}
	return int(t.slot(key).id) - 1
}

// add returns the number of key, which is a new one if it had none.
func (t *numbering) add(key uint64) int {
	if 2*t.n >= len(t.slots) {
		t.grow()
	}
	s := t.slot(key)
	if s.id == 0 {
		t.n++
		*s = numbered{key, int32(t.n)}
	}
	return int(s.id) - 1
}

func (t *numbering) grow() {
	old := t.slots
	t.slots = make([]numbered, max(1<<8, 2*len(old)))
	t.shift = uint8(64 - bits.TrailingZeros(uint(len(t.slots))))
	for _, s := range old {
		if s.id != 0 {
			*t.slot(s.key) = s
		}
	}
}

// each calls f for every key and its number.
func (t *numbering) each(f func(key uint64, id int)) {
	for _, s := range t.slots {
		if s.id != 0 {
			f(s.key, int(s.id)-1)
		}
	}
}
