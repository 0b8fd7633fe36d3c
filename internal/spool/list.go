package spool

import "unsafe"

// A List is records of one type, one behind the other, of which the newest are in memory, and a few
// others that were asked for. It is for one goroutine at a time, but for Chunk.
type List[T any] struct { // T holds no pointers: the collector does not see what is on disk
	records
}

// ListIn returns a List; what is in full chunks goes to s.
func ListIn[T any](s *Spool) *List[T] {
	var x T
	return &List[T]{records{spool: s, size: int(unsafe.Sizeof(x)), per: max(1, chunkBytes/int(unsafe.Sizeof(x)))}}
}

// Add appends a record.
func (l *List[T]) Add(x *T) { *(*T)(l.add()) = *x }

// At returns a record.
func (l *List[T]) At(i int) T { return *(*T)(l.find(i)) }

// Change returns a record that may be changed, until another method is called.
func (l *List[T]) Change(i int) *T { return (*T)(l.change(i)) }

// Chunk returns the records of a chunk, which are not to be changed: in room, if they are on disk.
// When nothing is added or changed any more, any number of goroutines may call it.
func (l *List[T]) Chunk(i int, room *[]T) []T {
	var own unsafe.Pointer
	if cap(*room) >= l.per {
		own = unsafe.Pointer(unsafe.SliceData(*room))
	}
	chunk := unsafe.Slice((*T)(l.chunk(i, own)), l.lenOf(i))
	if i < len(l.full) {
		*room = chunk
	}
	return chunk
}

// From returns what reads the records of a chunk and of those behind it. As of Chunk, there may be
// any number of them.
func (l *List[T]) From(chunk int) Cursor[T] { return Cursor[T]{of: l, next: chunk} }

// A Cursor reads the records of a List in order. That of none has none.
type Cursor[T any] struct {
	of         *List[T]
	next       int // chunk
	rest, room []T
}

// Peek returns the next record, which is not to be changed, nil behind the last one. It is valid
// until that behind it is asked for.
func (c *Cursor[T]) Peek() *T {
	if len(c.rest) == 0 {
		if c.of == nil || c.next == c.of.Chunks() {
			return nil
		}
		c.rest = c.of.Chunk(c.next, &c.room)
		c.next++
	}
	return &c.rest[0]
}

// Next goes on behind the record that Peek returned.
func (c *Cursor[T]) Next() { c.rest = c.rest[1:] }

// chunkBytes is how large a chunk is about.
const chunkBytes = 32 << 10

// records do what a List does, whatever they are.
type records struct {
	spool     *Spool
	size, per int     // bytes of a record, and how many of them a chunk has
	full      []Piece // chunks
	last      unsafe.Pointer
	n, room   int // records of last, and how many it has room for

	asked   unsafe.Pointer // those of full[at-1]
	at      int
	changed bool // since they were read
}

// Len returns the number of records.
func (l *records) Len() int { return len(l.full)*l.per + l.n }

// Chunks returns the number of chunks, each of which but the last one has as many records.
func (l *records) Chunks() int {
	if l.n == 0 {
		return 0
	}
	return len(l.full) + 1
}

// Done says that nothing is changed any more.
func (l *records) Done() {
	l.keep()
	l.asked, l.at = nil, 0
}

// keep keeps what was changed of the chunk that was asked for.
func (l *records) keep() {
	if l.changed {
		l.spool.again(l.bytes(l.asked, l.per), &l.full[l.at-1])
		l.changed = false
	}
}

func (l *records) add() unsafe.Pointer {
	switch {
	case l.n == l.per:
		l.full, l.n = append(l.full, l.spool.Keep(l.bytes(l.last, l.n))), 0
	case l.n == l.room: // there are lists of few
		l.room = min(max(8, 2*l.room), l.per)
		more := memoryFor(l.room * l.size)
		if l.n > 0 {
			copy(l.bytes(more, l.n), l.bytes(l.last, l.n))
		}
		l.last = more
	}
	l.n++
	return l.of(l.last, l.n-1)
}

func (l *records) find(i int) unsafe.Pointer {
	chunk := i / l.per
	if chunk == len(l.full) {
		return l.of(l.last, i%l.per)
	}
	if l.at != chunk+1 {
		l.keep()
		if l.asked == nil {
			l.asked = memoryFor(l.per * l.size)
		}
		l.spool.fill(l.bytes(l.asked, l.per), &l.full[chunk])
		l.at = chunk + 1
	}
	return l.of(l.asked, i%l.per)
}

func (l *records) change(i int) unsafe.Pointer {
	x := l.find(i)
	l.changed = l.changed || i/l.per < len(l.full)
	return x
}

// lenOf is how many records a chunk has.
func (l *records) lenOf(i int) int {
	if i == len(l.full) {
		return l.n
	}
	return l.per
}

// chunk returns the records of a chunk, which are not to be changed: in room, which is made if it
// is nil, if they are on disk.
func (l *records) chunk(i int, room unsafe.Pointer) unsafe.Pointer {
	if i == len(l.full) {
		return l.last
	}
	if room == nil {
		room = memoryFor(l.per * l.size)
	}
	l.spool.fill(l.bytes(room, l.per), &l.full[i])
	return room
}

// of returns a record of a chunk.
func (l *records) of(chunk unsafe.Pointer, i int) unsafe.Pointer { return unsafe.Add(chunk, i*l.size) }

// bytes are those of the first n records of a chunk.
func (l *records) bytes(chunk unsafe.Pointer, n int) []byte {
	return unsafe.Slice((*byte)(chunk), n*l.size)
}

// memoryFor returns room for so many bytes of what has no pointers: words, as what comes may have
// to lie at a multiple of their size.
func memoryFor(bytes int) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, (bytes+7)/8)))
}
