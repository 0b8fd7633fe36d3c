package nettrace

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"iter"
)

// A listBuffer collects the stacks or label lists of a region, equal ones once. They stay where they are put: most
// of a file with stacks is what stands here.
type listBuffer struct {
	sized   bool // the size of an entry stands before it
	entries []listed
	newest  map[uint64]uint32 // by hash: how many entries there are up to the last one that has it
	pieces  [][]byte          // entries one behind the other, none in two pieces
	free    [][]byte          // pieces of regions before

	// what is not written yet
	first   uint32 // id of its first entry
	begins  place  // where it begins
	waiting int    // bytes
}

// A place is in a piece of a listBuffer.
type place struct{ piece, at int }

// A listed is an entry. Its id is its number, from 1 on.
type listed struct {
	place
	size   int
	before uint32 // how many entries there are up to the one before it that has the same hash
}

const (
	listPiece = 256 << 10
	// mostFree is how much memory is kept for the next region: as much as a block of stacks takes.
	mostFree = regionV4 / 2 / listPiece
	listHead = 8 // bytes before the entries of a block
)

var listSeed = maphash.MakeSeed()

// reset begins a region.
func (l *listBuffer) reset() {
	for _, p := range l.pieces {
		if len(l.free) < mostFree && cap(p) == listPiece {
			l.free = append(l.free, p[:0])
		}
	}
	clear(l.pieces)
	if l.newest == nil {
		l.newest = map[uint64]uint32{}
	}
	clear(l.newest)
	l.pieces, l.entries = l.pieces[:0], l.entries[:0]
	l.first, l.begins, l.waiting = 1, place{}, 0
}

// id returns the id of an entry, which is added if this region has none such.
func (l *listBuffer) id(content []byte) uint32 {
	h := maphash.Bytes(listSeed, content)
	before := l.newest[h]
	for n := before; n > 0; n = l.entries[n-1].before {
		if bytes.Equal(l.content(&l.entries[n-1]), content) {
			return n
		}
	}
	l.entries = append(l.entries, listed{l.put(content), len(content), before})
	id := uint32(len(l.entries))
	l.newest[h] = id
	return id
}

// content returns the bytes of an entry, without its size.
func (l *listBuffer) content(x *listed) []byte { return l.pieces[x.piece][x.at : x.at+x.size] }

// put appends an entry to the last piece, or to another one if it has no room, and returns where its content begins.
func (l *listBuffer) put(content []byte) place {
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
	at := len(p)
	l.pieces[i] = append(p, content...)
	l.waiting += n
	return place{i, at}
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

// head appends what stands before the entries of a block of those that wait: the id of the first one and their number.
func (l *listBuffer) head(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, l.first)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(l.entries))+1-l.first)
}

// written yields the entries that wait, some at once, which do not wait then any more.
func (l *listBuffer) written() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for ; l.begins.piece < len(l.pieces); l.begins = (place{l.begins.piece + 1, 0}) {
			p := l.pieces[l.begins.piece]
			if more := p[l.begins.at:]; len(more) > 0 && !yield(more) {
				return
			}
			if l.begins.piece == len(l.pieces)-1 {
				l.begins.at = len(p) // others follow there
				break
			}
		}
		l.first, l.waiting = uint32(len(l.entries))+1, 0
	}
}
