package spool

import (
	"sort"
	"unsafe"
)

// A Sorter takes records of one type and hands them out in the order of a key, equal ones in the
// order in which they came. It sorts them in runs, which are merged in the end: of records that
// come nearly in order few are in memory.
type Sorter[T any] struct{ sorter } // T as that of a List

// SorterIn returns a Sorter by a key; what it has no memory for goes to s.
func SorterIn[T any](s *Spool, key func(*T) int64) *Sorter[T] {
	l := ListIn[T](s)
	return &Sorter[T]{sorter{sorted: l.records, key: func(x unsafe.Pointer) int64 { return key((*T)(x)) }}}
}

// Add takes a record.
func (s *Sorter[T]) Add(x *T) {
	at := s.place()
	*(*T)(at) = *x
	s.order = append(s.order, sortKey{s.key(at), len(s.order)})
}

// Ascending yields the records in order, once; nothing is added any more. Each is valid until the next one.
func (s *Sorter[T]) Ascending(yield func(*T) bool) {
	s.ascending(func(x unsafe.Pointer) bool { return yield((*T)(x)) })
}

// runChunks is how many chunks of a list are sorted at once.
const runChunks = 16

// A sorter does what a Sorter does, whatever the records are.
type sorter struct {
	key    func(unsafe.Pointer) int64
	sorted records // runs, one behind the other
	runs   []Run
	fresh  unsafe.Pointer // records that are in no run yet, with room for as many as room says
	room   int
	order  sortKeys // theirs
}

// A sortKey is the key of a record of a run.
type sortKey struct {
	key int64
	i   int // its place among them
}

// sortKeys are sorted by key, and by place: slices.SortFunc takes 20 KB of program and no less time.
type sortKeys []sortKey

func (s *sortKeys) Len() int      { return len(*s) }
func (s *sortKeys) Swap(i, k int) { (*s)[i], (*s)[k] = (*s)[k], (*s)[i] }
func (s *sortKeys) Less(i, k int) bool {
	a, b := &(*s)[i], &(*s)[k]
	return a.key < b.key || a.key == b.key && a.i < b.i
}

// place returns where the next record goes.
func (s *sorter) place() unsafe.Pointer {
	n := len(s.order)
	if n == runChunks*s.sorted.per {
		s.run()
		n = 0
	}
	if n == s.room {
		s.room = min(max(8, 2*n), runChunks*s.sorted.per)
		more := memoryFor(s.room * s.sorted.size)
		if n > 0 {
			copy(s.sorted.bytes(more, n), s.sorted.bytes(s.fresh, n))
		}
		s.fresh = more
	}
	return s.sorted.of(s.fresh, n)
}

// run makes a run of the records that are in none.
func (s *sorter) run() {
	sort.Sort(&s.order)
	s.runs = append(s.runs, &sortedRun{of: s, number: len(s.runs), next: s.sorted.Len(), left: len(s.order), key: s.order[0].key})
	for _, k := range s.order {
		copy(s.sorted.bytes(s.sorted.add(), 1), s.sorted.bytes(s.sorted.of(s.fresh, k.i), 1))
	}
	s.order = s.order[:0]
}

func (s *sorter) ascending(yield func(unsafe.Pointer) bool) {
	if len(s.order) > 0 {
		s.run()
	}
	s.fresh, s.order, s.room = nil, nil, 0
	Merge(s.runs, func(r Run) bool { return yield(r.(*sortedRun).at) })
}

// A sortedRun is records in order, of which one is at hand.
type sortedRun struct {
	of     *sorter
	number int            // of the run
	next   int            // record behind the one at hand
	left   int            // from there on
	key    int64          // of the one at hand, or of the first
	at     unsafe.Pointer // the one at hand
	chunk  unsafe.Pointer // that it is in
}

// Before implements Run.
func (r *sortedRun) Before(other Run) bool {
	o := other.(*sortedRun)
	return r.key < o.key || r.key == o.key && r.number < o.number
}

// Next implements Run.
func (r *sortedRun) Next() bool {
	if r.left == 0 {
		r.chunk, r.at = nil, nil
		return false
	}
	list := &r.of.sorted
	if r.next%list.per == 0 || r.chunk == nil {
		r.chunk = list.chunk(r.next/list.per, r.chunk)
	}
	r.at = list.of(r.chunk, r.next%list.per)
	r.key = r.of.key(r.at)
	r.next++
	r.left--
	return true
}
