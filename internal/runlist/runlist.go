// Package runlist keeps what is known of some of the samples of a thread, such as how each cut one was repaired: samples
// that follow each other and of which the same is known are one run, which takes about ten bytes.
package runlist

import (
	"encoding/binary"
	"iter"
	"slices"
)

// A Run is N samples in a row, of which First is the index of the first. They have one stack, and what else is known
// of them is one of a few kinds.
type Run[K comparable] struct {
	First, N int32
	Stack    uint32
	Kind     K
}

// List is a list of runs in the order of samples. The zero value is empty.
type List[K comparable] struct {
	chunks [][]byte
	kinds  []K
	index  map[K]int // in kinds, where there are more than fewKinds
	end    int32     // of the newest run
	stack  uint32    // its
}

const (
	// fewKinds are looked through without a map.
	fewKinds = 8
	// firstChunk and mostChunk are the bytes of the first chunk and of the largest ones: each is twice the one before.
	firstChunk, mostChunk = 64, 64 << 10
	// mostRun is how many bytes a run takes at most.
	mostRun = 3*binary.MaxVarintLen32 + binary.MaxVarintLen64
)

// Append adds r behind the other runs.
func (l *List[K]) Append(r Run[K]) {
	k := len(l.chunks) - 1
	if k < 0 || cap(l.chunks[k])-len(l.chunks[k]) < mostRun {
		size := firstChunk
		if k >= 0 {
			size = min(2*cap(l.chunks[k]), mostChunk)
		}
		k++
		l.chunks = append(l.chunks, make([]byte, 0, size))
	}
	b := l.chunks[k]
	b = binary.AppendVarint(b, int64(r.First-l.end))
	b = binary.AppendVarint(b, int64(r.N))
	b = binary.AppendVarint(b, int64(int32(r.Stack-l.stack)))
	b = binary.AppendUvarint(b, uint64(l.kind(r.Kind)))
	l.chunks[k] = b
	l.end, l.stack = r.First+r.N, r.Stack
}

// kind returns the number of a kind.
func (l *List[K]) kind(of K) int {
	if len(l.kinds) <= fewKinds {
		if i := slices.Index(l.kinds, of); i >= 0 {
			return i
		}
	} else if i, ok := l.index[of]; ok {
		return i
	}
	n := len(l.kinds)
	l.kinds = append(l.kinds, of)
	switch {
	case l.index != nil:
		l.index[of] = n
	case n == fewKinds:
		l.index = make(map[K]int, 2*fewKinds)
		for i, k := range l.kinds {
			l.index[k] = i
		}
	}
	return n
}

// All yields the runs.
func (l *List[K]) All() iter.Seq[Run[K]] {
	return func(yield func(Run[K]) bool) {
		for c := l.Cursor(); c.Next(); {
			if !yield(c.Run) {
				return
			}
		}
	}
}

// Cursor returns a cursor before the first run.
func (l *List[K]) Cursor() Cursor[K] { return Cursor[K]{list: l} }

// A Cursor goes through a list, to which nothing must be added meanwhile.
type Cursor[K comparable] struct {
	Run   Run[K] // where it is
	list  *List[K]
	chunk int    // the next one
	rest  []byte // of the one before
}

// Next moves on to the next run, and tells whether there is one.
func (c *Cursor[K]) Next() bool {
	for len(c.rest) == 0 {
		if c.chunk == len(c.list.chunks) {
			return false
		}
		c.rest = c.list.chunks[c.chunk]
		c.chunk++
	}
	varint := func() int32 {
		v, n := binary.Varint(c.rest)
		c.rest = c.rest[n:]
		return int32(v)
	}
	r := &c.Run
	r.First += r.N + varint()
	r.N = varint()
	r.Stack += uint32(varint())
	kind, n := binary.Uvarint(c.rest)
	c.rest = c.rest[n:]
	r.Kind = c.list.kinds[kind]
	return true
}
