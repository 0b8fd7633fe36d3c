package nettrace

import (
	"math"
	"sort"
)

// Sorting. A block is cut into segments: runs of events whose times do not go
// back, whatever their threads. Segments wait in a heap by the time of their next
// event, ties by position in the file, so what comes out is a stable sort by
// time. An event may leave once no later event of the file can be older: that
// is so up to the watermark, the time of the last event flagged as sorted, and for
// all events before a sequence point (nettrace.md section 8).
//
// The runtime writes long runs, so the top segment is drained up to the head of
// the next one without touching the heap.

// A block holds the bytes and rows of one event block until all its events are delivered.
type block struct {
	buf      []byte // contents and blockPad zero bytes
	offset   int64  // of buf[0] in the file
	rows     []row
	facts    rowFacts // of the rows as they were decoded
	ids      []activityIDs
	threads  []*Thread // v6
	segments int       // not yet delivered
	held     int       // its memory while it waits, with that of its segments
}

// contents is about what the events of the block occupy.
func (b *block) contents() int { return len(b.buf) + len(b.rows)*rowSize + len(b.ids)*32 }

// memory is contents with the room that slices have to spare: a block that is reused
// may have far more of that.
func (b *block) memory() int { return cap(b.buf) + cap(b.rows)*rowSize + cap(b.ids)*32 }

// trim gives up the room that the block has to spare.
func (b *block) trim() {
	b.buf, b.rows, b.ids, b.threads = trim(b.buf), trim(b.rows), trim(b.ids), trim(b.threads)
}

// numberOf returns the number of a row of the thread table in block.threads, 0 for none.
func (b *block) numberOf(th *Thread) uint64 {
	if th == nil {
		return 0
	}
	if n := len(b.threads); n == 0 || b.threads[n-1] != th {
		b.threads = append(b.threads, th)
	}
	return uint64(len(b.threads))
}

// thread is what numberOf has numbered.
func (b *block) thread(n uint64) *Thread {
	if n == 0 {
		return nil
	}
	return b.threads[n-1]
}

func trim[E any](s []E) []E {
	if cap(s)-len(s) <= len(s)/4 {
		return s
	}
	return append(make([]E, 0, len(s)), s...)
}

const (
	rowSize     = 96 // with its share of block.threads and of what slices grow by
	segmentSize = 48
)

type activityIDs struct{ activity, related GUID }

var noIDs activityIDs

// blockPad zero bytes follow the contents of a block, so that an event header
// that starts inside can be decoded without looking for the end at each step.
const blockPad = 128

// A row is a decoded event header. It is one line of a processor's cache, as rows are what goes
// from one processor to another. It is filled in field by field: a copy of one that was filled in
// just now has the processor wait, as it forwards no load of 16 bytes from two stores of 8.
type row struct {
	time    int64
	meta    *Metadata
	thread  uint64 // v6: number in block.threads
	capture uint64
	payload uint32 // where it is in block.buf
	size    uint32 // of the payload
	seq     uint32 // before v4: number of the interned stack
	lost    uint32
	stack   uint32 // number in Reader.stacks; before v4: size of the stack in bytes
	ids     uint32 // number in block.ids; v6: in Reader.labels; 0 is none
	cpu     int32
	header  uint8 // bytes between where the event begins and its payload
	sorted  bool
	fits    bool // the payload is known to be one of the type
}

// at is where the event begins in block.buf.
func (r *row) at() uint32 { return r.payload - uint32(r.header) }

// rowFacts are what several checks ask of all rows of a block, found in one pass: most blocks pass
// the checks by these alone.
type rowFacts struct {
	first, last int64 // the least and the greatest time
	odd         bool  // there is an event whose type is not defined, or was hit
}

func (f *rowFacts) of(rows []row) {
	*f = rowFacts{}
	if len(rows) == 0 {
		return
	}
	f.first, f.last = rows[0].time, rows[0].time
	var m *Metadata
	for i := range rows {
		row := &rows[i]
		f.first, f.last = min(f.first, row.time), max(f.last, row.time)
		if row.meta != m { // events of one type often follow one another
			m = row.meta
			f.odd = f.odd || m.odd()
		}
	}
}

// A segment is a range of rows in time order.
type segment struct {
	time int64 // of rows[i]
	pos  int64 // file offset of its first row: breaks ties
	blk  *block
	i, n int
}

func (s *segment) before(t *segment) bool {
	return s.time < t.time || s.time == t.time && s.pos < t.pos
}

// A queue holds the segments that wait for delivery.
type queue struct {
	heap      []segment
	watermark int64
	bytes     int // contents of the blocks that wait
	memory    int // of these blocks
}

func (q *queue) push(s segment) {
	h := append(q.heap, s)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	q.heap = h
}

// fix restores the order after the top has changed.
func (q *queue) fix() {
	h := q.heap
	for i := 0; ; {
		least := i
		if l := 2*i + 1; l < len(h) && h[l].before(&h[least]) {
			least = l
		}
		if r := 2*i + 2; r < len(h) && h[r].before(&h[least]) {
			least = r
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// ready returns the top segment and how far its rows may be delivered: up to
// the next segment's head and the watermark, unless all is set.
func (q *queue) ready(all bool) (*segment, int) {
	if len(q.heap) == 0 {
		return nil, 0
	}
	top := &q.heap[0]
	limit := int64(math.MaxInt64) // rows up to and including this time may go
	if !all {
		limit = q.watermark
	}
	for _, i := range [2]int{1, 2} {
		if i < len(q.heap) {
			next := &q.heap[i]
			until := next.time
			if top.pos > next.pos {
				until-- // top is before next, so its time is smaller: no underflow
			}
			limit = min(limit, until)
		}
	}
	rows := top.blk.rows
	if rows[top.n-1].time <= limit {
		return top, top.n
	}
	return top, top.i + sort.Search(top.n-top.i, func(k int) bool { return rows[top.i+k].time > limit })
}

// advance notes that the top segment is delivered up to n. It returns a block
// that is no longer needed.
func (q *queue) advance(n int) *block {
	top := &q.heap[0]
	blk := top.blk
	top.i = n
	if n < top.n {
		top.time = blk.rows[n].time
		q.fix()
		return nil
	}
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = segment{}
	q.heap = q.heap[:last]
	q.fix()
	blk.segments--
	if blk.segments > 0 {
		return nil
	}
	q.bytes -= blk.contents()
	q.memory -= blk.held
	return blk
}

// found takes n lost events of a capture thread out of the events that wait: they were not lost.
func (q *queue) found(thread uint64, n uint32) {
	for i := range q.heap {
		s := &q.heap[i]
		for j := s.i; j < s.n && n > 0; j++ {
			if row := &s.blk.rows[j]; row.lost > 0 && row.capture == thread {
				by := min(row.lost, n)
				row.lost, n = row.lost-by, n-by
			}
		}
	}
}
