package chromium

import (
	"bytes"
	"hash/maphash"
)

// texts gives equal byte strings equal small numbers, from 1 on.
type texts struct {
	seed  maphash.Seed
	slots []textSlot // open addressing, a power of two
	raw   [][]byte   // by number; [0] is nil
}

type textSlot struct {
	hash uint32
	id   int32
}

func newTexts() *texts {
	return &texts{seed: maphash.MakeSeed(), slots: make([]textSlot, 256), raw: make([][]byte, 1)}
}

// id returns the number of b and whether b is new. It keeps a copy of new text.
func (t *texts) id(b []byte) (id int32, isNew bool) {
	h := uint32(maphash.Bytes(t.seed, b))
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.id == 0 {
			t.raw = append(t.raw, bytes.Clone(b))
			if len(b) == 0 {
				t.raw[len(t.raw)-1] = []byte{}
			}
			*s = textSlot{h, int32(len(t.raw) - 1)}
			id = s.id
			if len(t.raw)*2 > len(t.slots) {
				t.grow()
			}
			return id, true
		}
		if s.hash == h && bytes.Equal(t.raw[s.id], b) {
			return s.id, false
		}
	}
}

func (t *texts) grow() {
	old := t.slots
	t.slots = make([]textSlot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}
