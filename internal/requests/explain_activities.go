package requests

import (
	"encoding/binary"
	"slices"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// Explanations are those of rows of activities.
type Explanations struct {
	aside  *spool.Spool
	pack   spool.Packer
	packed spool.Log // each behind its length
	places spool.Pages[placePage]
	head   [binary.MaxVarintLen64]byte
	room   []byte // of one
}

// A placePage is the places of as many explanations, by row, and 1; 0: there is none.
type placePage [1 << 12]int64

// Bytes of them that stay in memory: rows of one time are near each other.
const (
	packedMemory = 4 << 20
	placeMemory  = 2 << 20
)

// ExplainActivities explains the rows that are wanted, all that have both ends. It goes through
// what a Recorder saw, whose stacks are those of a table.
func ExplainActivities(rows *activity.Rows, want func(int, *activity.Row) bool, t *profile.Table, rec *Recorder) (*Explanations, error) {
	aside := input.Aside(1)
	out := &Explanations{aside: aside}
	out.begin()
	type ended struct {
		requestKey
		stop int64
		row  int
	}
	begins, ends := spool.ListIn[requestKey](aside), spool.SorterIn(aside, func(e *ended) int64 { return e.stop })
	for i, r := range rows.All() {
		if i%len(placePage{}) == 0 {
			out.places.Add()
		}
		if _, ok := r.Duration(); ok && (want == nil || want(i, r)) {
			k := requestKey{r.Process, r.ID, r.Start}
			begins.Add(&k)
			ends.Add(&ended{k, r.Stop, i})
		}
	}
	wanted := begun{begins.From(0), [2]map[requestKey]struct{}{{}, {}}}
	x := newExplainer(t, rec, func(a *causality.Activity) bool { return wanted.has(requestKey{a.Process, a.ID, a.Start}) }, false)
	for e := range ends.Ascending {
		if x.until(e.stop); x.roots[e.requestKey] != nil { // or the events do not tell of it
			out.keep(e.row, x.explain(e.requestKey, e.start, e.stop, nil))
		}
	}
	out.done()
	if err := x.Err(); err != nil {
		return nil, err
	}
	return out, aside.Err()
}

func (e *Explanations) begin() {
	e.packed, e.places = spool.LogIn(e.aside, packedMemory), spool.PagesIn[placePage](e.aside, placeMemory)
}

// done says that nothing is kept any more.
func (e *Explanations) done() {
	e.packed.Done()
	e.places.Done()
}

func (e *Explanations) keep(row int, x *httpphases.Explanation) {
	e.room = e.pack.Append(e.room[:0], x)
	at := e.packed.Add(binary.AppendUvarint(e.head[:0], uint64(len(e.room))))
	e.packed.Add(e.room)
	page := e.places.Mut(row / len(placePage{}))
	page[row%len(placePage{})] = at + 1
	e.places.Trim()
}

// Of returns the explanation of a row; nil if its time is not known.
func (e *Explanations) Of(row int) *httpphases.Explanation {
	at := e.places.At(row / len(placePage{}))[row%len(placePage{})] - 1
	if at < 0 {
		return nil
	}
	head := e.head[:min(int64(len(e.head)), e.packed.Len()-at)]
	e.packed.Get(head, at)
	n, size := binary.Uvarint(head)
	if size <= 0 || n > uint64(e.packed.Len()-at-int64(size)) {
		return nil // it could not be read: Err tells
	}
	e.room = slices.Grow(e.room[:0], int(n))[:n]
	e.packed.Get(e.room, at+int64(size))
	x := &httpphases.Explanation{}
	e.pack.Unpack(e.room, x)
	return x
}

// Err is the error of explanations that could not be read again: those that were asked for since
// are not what they were.
func (e *Explanations) Err() error { return e.aside.Err() }

// begun are the activities that are wanted, as they begin.
type begun struct {
	next   spool.Cursor[requestKey]
	lately [2]map[requestKey]struct{} // those that began lately: the newest, and those before
}

// mostLately is how many of the newest are known, as events are nearly in order; and as many before.
const mostLately = 1 << 12

// has reports whether an activity is wanted. They are asked for about in the order of their starts.
func (b *begun) has(k requestKey) bool {
	for !b.knows(k) {
		x := b.next.Peek()
		if x == nil || x.start > k.start {
			return false
		}
		if len(b.lately[0]) == mostLately {
			b.lately[0], b.lately[1] = b.lately[1], b.lately[0]
			clear(b.lately[0])
		}
		b.lately[0][*x] = struct{}{}
		b.next.Next()
	}
	return true
}

func (b *begun) knows(k requestKey) bool {
	_, newest := b.lately[0][k]
	_, before := b.lately[1][k]
	return newest || before
}
