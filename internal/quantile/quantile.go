// Package quantile keeps numbers of which exact quantiles are wanted, or the order: durations of
// millions of requests, in two to three bytes each, on disk where memory is not to grow.
package quantile

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
)

const (
	// runLength is how many numbers are sorted at once: the more there are, the less they differ.
	runLength = 4096
	// digit is how many bits are told apart when numbers are counted.
	digit = 12
)

// Numbers are numbers in no order. The zero value has none.
type Numbers struct {
	// Spool takes what its memory has no room for; nil: all stays in memory. If it has an error,
	// what is asked for is not to be believed.
	Spool *spool.Spool

	fresh    []uint64 // ordered; in no run yet
	runs     []run
	n        int
	min, max uint64
	rooms    spool.Rooms // for runs that are read
}

// A run is runLength sorted numbers, or less: by how much each is more than the one before, as varints.
type run struct {
	first uint64
	spool.Piece
}

// Add adds v.
func (s *Numbers) Add(v int64) {
	x := ordered(v)
	if s.n == 0 {
		s.min = x
	}
	s.min, s.max = min(s.min, x), max(s.max, x)
	s.n++
	if s.fresh = append(s.fresh, x); len(s.fresh) == runLength {
		s.run()
	}
}

// run makes a run of those that are in none.
func (s *Numbers) run() {
	slices.Sort(s.fresh)
	var room [runLength * 4]byte
	b, last := room[:0], uint64(0)
	for _, x := range s.fresh {
		b = binary.AppendUvarint(b, x-last)
		last = x
	}
	s.runs, s.fresh = append(s.runs, run{s.fresh[0], s.Spool.Keep(b)}), s.fresh[:0]
}

// Len is how many there are.
func (s *Numbers) Len() int { return s.n }

// At returns the number that stands at a share q, 0 to 1, of all in their order: of 100
// numbers, 0.5 is the one with index 50, and 1 is the last. It is 0 if there are none.
func (s *Numbers) At(q float64) int64 { return Of([]float64{q}, s)[0] }

// Of returns what stands at each share of all the numbers of several lists, as At does of one.
func Of(shares []float64, of ...*Numbers) []int64 {
	at := make([]int64, len(shares))
	n, least, most := 0, ^uint64(0), uint64(0)
	for _, s := range of {
		if n += s.n; s.n > 0 {
			least, most = min(least, s.min), max(most, s.max)
		}
	}
	if n == 0 {
		return at
	}
	wanted := make([]place, len(shares))
	low := bits.Len64(least ^ most)
	for i, q := range shares {
		wanted[i] = place{prefix: least >> low, low: low, n: n, index: min(int(q*float64(n)), n-1)}
	}
	for narrow(wanted, of) {
	}
	for i, w := range wanted {
		at[i] = unordered(w.prefix)
	}
	return at
}

// A place is that of a number which is looked for: it is the one with index among the n that are
// prefix above their low lowest bits.
type place struct {
	prefix   uint64
	low      int
	n, index int
}

// narrow goes through all numbers once, and brings each place nearer to its number: to that, where
// there are few. It returns false if all have been there.
func narrow(wanted []place, of []*Numbers) bool {
	type group struct { // of places that are equal but for their indices
		place
		counts *[1 << digit]int // of many, by the highest bits below prefix
		few    []uint64
	}
	var groups []*group
	in := make([]*group, len(wanted))
	for i, w := range wanted {
		if w.low == 0 {
			continue
		}
		for _, g := range groups {
			if g.prefix == w.prefix && g.low == w.low {
				in[i] = g
			}
		}
		if in[i] == nil {
			in[i] = &group{place: w}
			if w.n > runLength {
				in[i].counts = new([1 << digit]int)
			}
			groups = append(groups, in[i])
		}
	}
	if len(groups) == 0 {
		return false
	}
	for _, s := range of {
		for x := range s.all {
			for _, g := range groups {
				if x>>g.low != g.prefix {
					continue
				}
				if g.counts == nil {
					g.few = append(g.few, x)
				} else {
					next := max(g.low-digit, 0)
					g.counts[x>>next&(1<<(g.low-next)-1)]++
				}
			}
		}
		if s.Spool.Err() != nil { // there are fewer than were counted
			return false
		}
	}
	for _, g := range groups {
		slices.Sort(g.few)
	}
	for i := range wanted {
		w, g := &wanted[i], in[i]
		switch {
		case g == nil:
		case g.counts == nil:
			w.prefix, w.low = g.few[w.index], 0
		default:
			d, next := 0, max(w.low-digit, 0)
			for ; w.index >= g.counts[d]; d++ {
				w.index -= g.counts[d]
			}
			w.n, w.prefix, w.low = g.counts[d], w.prefix<<(w.low-next)|uint64(d), next
		}
	}
	return true
}

// all yields them, ordered.
func (s *Numbers) all(yield func(uint64) bool) {
	var room []byte
	for i := range s.runs {
		rest := s.Spool.Read(&s.runs[i].Piece, &room)
		for x := uint64(0); len(rest) > 0; {
			more, n := binary.Uvarint(rest)
			x += more
			if rest = rest[n:]; !yield(x) {
				return
			}
		}
	}
	for _, x := range s.fresh {
		if !yield(x) {
			return
		}
	}
}

// Ascending yields them in order.
func (s *Numbers) Ascending(yield func(int64) bool) {
	if len(s.fresh) > 0 {
		s.run()
	}
	runs := make([]spool.Run, len(s.runs)) // of times that come nearly in order few runs are merged at once
	for i := range s.runs {
		runs[i] = &openRun{of: s, run: &s.runs[i], x: s.runs[i].first}
	}
	spool.Merge(runs, func(r spool.Run) bool { return yield(unordered(r.(*openRun).x)) })
}

// An openRun is a run of which x is the number at hand.
type openRun struct {
	of         *Numbers
	run        *run // nil: its numbers are in rest
	x          uint64
	rest, room []byte
}

// Before implements spool.Run.
func (r *openRun) Before(other spool.Run) bool { return r.x < other.(*openRun).x }

// Next implements spool.Run.
func (r *openRun) Next() bool {
	if r.run != nil {
		r.room = r.of.rooms.Take()
		r.rest, r.run, r.x = r.of.Spool.Read(&r.run.Piece, &r.room), nil, 0
	}
	if len(r.rest) == 0 {
		r.of.rooms.Give(r.room)
		return false
	}
	more, n := binary.Uvarint(r.rest)
	r.x, r.rest = r.x+more, r.rest[n:]
	return true
}

// ordered is a number without a sign that is less than another one where v is.
func ordered(v int64) uint64   { return uint64(v) ^ 1<<63 }
func unordered(x uint64) int64 { return int64(x ^ 1<<63) }
