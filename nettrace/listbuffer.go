package nettrace

import (
	"encoding/binary"
	"hash/maphash"
)

// A listBuffer collects stacks or label lists for a block, those that are equal in a region once.
// They stay where they are put until they are written: most of a file with stacks is what stands
// here. What was written is known by its hash.
type listBuffer struct {
	sized  bool // the size of an entry stands before it
	ids    map[listHash]uint32
	first  uint32   // id of the first one that waits
	pieces [][]byte // what waits, an entry behind the other, none in two pieces
	free   [][]byte // pieces for later
	size   int      // bytes that wait
}

// A listHash tells entries apart. Its seeds are others in each process: that two of a million are
// taken for one is less likely than one in 10 to the power of 26.
type listHash [2]uint64

var listSeeds = [len(listHash{})]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

const (
	listPiece = 256 << 10
	listHead  = 8 // bytes before the entries of a block: the id of the first one, and their number
)

// reset begins a region.
func (l *listBuffer) reset() {
	l.written()
	if l.ids == nil {
		l.ids = map[listHash]uint32{}
	}
	clear(l.ids)
	l.first = 1
}

// id returns the id of an entry, which is added if this region has none such.
func (l *listBuffer) id(content []byte) uint32 {
	var h listHash
	for i, seed := range listSeeds {
		h[i] = maphash.Bytes(seed, content)
	}
	if id := l.ids[h]; id > 0 {
		return id
	}
	l.add(content)
	id := uint32(len(l.ids)) + 1
	l.ids[h] = id
	return id
}

// add appends an entry to the last piece, or to another one if it has no room.
func (l *listBuffer) add(content []byte) {
	n := len(content)
	if l.sized {
		n += 4
	}
	i := len(l.pieces) - 1
	if i < 0 || cap(l.pieces[i])-len(l.pieces[i]) < n {
		l.pieces = append(l.pieces, l.piece(n))
		i++
	}
	p := l.pieces[i]
	if l.sized {
		p = binary.LittleEndian.AppendUint32(p, uint32(len(content)))
	}
	l.pieces[i] = append(p, content...)
	l.size += n
}

// piece returns an empty one with room for n bytes.
func (l *listBuffer) piece(n int) []byte {
	if k := len(l.free) - 1; k >= 0 && n <= listPiece {
		p := l.free[k]
		l.free = l.free[:k]
		return p
	}
	return make([]byte, 0, max(n, listPiece))
}

// head appends what stands before the entries of a block of what waits.
func (l *listBuffer) head(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, l.first)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(l.ids))+1-l.first)
}

// written says that what waited is written.
func (l *listBuffer) written() {
	for _, p := range l.pieces {
		if cap(p) == listPiece { // a larger one is for one entry
			l.free = append(l.free, p[:0])
		}
	}
	clear(l.pieces)
	l.pieces, l.size, l.first = l.pieces[:0], 0, uint32(len(l.ids))+1
}
