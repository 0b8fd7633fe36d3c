package command

import (
	"cmp"
	enc "encoding/binary"
	"slices"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
)

// explainedAtOnce is how many requests are put in order in memory that are explained, where all are
// asked for in another order than that of their ends: they have some kilobytes each. Of others it
// is held.
const explainedAtOnce = 5000

// rowRuns are requests that memory has no room for: runs of them, each in order, on disk.
type rowRuns struct {
	compare func(a, b *httpRow) int
	pack    spool.Packer
	log     spool.Log
	runs    []spool.Run
	b       []byte
}

// rowMemory is how many bytes of runs stay in memory.
const rowMemory = 1 << 20

func newRowRuns(aside *spool.Spool, compare func(a, b *httpRow) int) *rowRuns {
	return &rowRuns{compare: compare, log: spool.LogIn(aside, rowMemory)}
}

// add makes a run of rows, which it puts in order.
func (r *rowRuns) add(rows []httpRow) {
	text.SortRows(rows, r.compare)
	run := &rowRun{of: r, number: len(r.runs), next: r.log.Len(), row: rows[0]}
	for i := range rows {
		r.b = r.pack.Append(r.b[:0], &packedRow{rows[i].made, rows[i].served})
		r.log.Add(enc.LittleEndian.AppendUint32(nil, uint32(len(r.b))))
		r.log.Add(r.b)
	}
	run.end = r.log.Len()
	r.runs = append(r.runs, run)
}

// ordered yields all rows in order. Nothing is added any more.
func (r *rowRuns) ordered(yield func(httpRow) bool) {
	r.log.Done()
	spool.Merge(r.runs, func(x spool.Run) bool { return yield(x.(*rowRun).row) })
}

// Err is the error of rows that could not be read again: those that were yielded since are not what
// they were.
func (r *rowRuns) Err() error { return r.log.Err() }

// A packedRow is an httpRow whose fields a spool.Packer sees.
type packedRow struct {
	Made   *httpphases.Request
	Served *httpphases.ServerRequest
}

// A rowRun is rows in order, of which one is at hand.
type rowRun struct {
	of         *rowRuns
	number     int
	row        httpRow // at hand, or the first
	next, end  int64   // in the log, behind what is in rest
	rest, room []byte
}

// readAtOnce is how much of a run is read at once.
const readAtOnce = 16 << 10

// Before implements spool.Run.
func (r *rowRun) Before(other spool.Run) bool {
	o := other.(*rowRun)
	return cmp.Or(r.of.compare(&r.row, &o.row), cmp.Compare(r.number, o.number)) < 0
}

// Next implements spool.Run.
func (r *rowRun) Next() bool {
	if !r.reach(4) {
		r.row, r.rest, r.room = httpRow{}, nil, nil
		return false
	}
	n := int(enc.LittleEndian.Uint32(r.rest))
	r.rest = r.rest[4:]
	var x packedRow
	if r.reach(n) {
		r.of.pack.Unpack(r.rest[:n], &x)
		r.rest = r.rest[n:]
	}
	if r.row = (httpRow{x.Made, x.Served}); x.Made == nil && x.Served == nil {
		r.row.made = &httpphases.Request{} // it could not be read: Err tells
	}
	return true
}

// reach makes rest as long as n bytes, if there are so many.
func (r *rowRun) reach(n int) bool {
	if len(r.rest) >= n {
		return true
	}
	more := min(r.end-r.next, int64(max(n-len(r.rest), readAtOnce)))
	have := len(r.rest)
	r.room = append(r.room[:0], r.rest...)
	r.room = slices.Grow(r.room, int(more))[:have+int(more)]
	r.of.log.Peek(r.room[have:], r.next)
	r.rest, r.next = r.room, r.next+more
	return len(r.rest) >= n
}
