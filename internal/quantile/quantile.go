// Package quantile keeps numbers of which exact quantiles are wanted: durations of millions of requests, in two to three
// bytes each.
package quantile

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	// runLength is how many numbers are sorted at once: the more there are, the less they differ.
	runLength = 4096
	// digit is how many bits are told apart when numbers are counted.
	digit = 12
)

// Numbers are numbers in no order. The zero value has none.
type Numbers struct {
	fresh    []uint64 // ordered; in no run yet
	runs     [][]byte // of runLength sorted numbers each: by how much each is more than the one before, as varints
	n        int
	min, max uint64
}

// Add adds v.
func (s *Numbers) Add(v int64) {
	x := ordered(v)
	if s.n == 0 {
		s.min = x
	}
	s.min, s.max = min(s.min, x), max(s.max, x)
	s.n++
	if s.fresh = append(s.fresh, x); len(s.fresh) < runLength {
		return
	}
	slices.Sort(s.fresh)
	var room [runLength * 4]byte
	run, last := room[:0], uint64(0)
	for _, x := range s.fresh {
		run = binary.AppendUvarint(run, x-last)
		last = x
	}
	s.runs, s.fresh = append(s.runs, bytes.Clone(run)), s.fresh[:0]
}

// Len is how many there are.
func (s *Numbers) Len() int { return s.n }

// At returns the number that stands at a share q, 0 to 1, of all in their order: of 100 numbers, 0.5 is the one with
// index 50, and 1 is the last. It is 0 if there are none.
func (s *Numbers) At(q float64) int64 {
	if s.n == 0 {
		return 0
	}
	index := min(int(q*float64(s.n)), s.n-1)
	if len(s.runs) == 0 {
		slices.Sort(s.fresh)
		return unordered(s.fresh[index])
	}
	// Among the n numbers that are prefix above their lowest bits, it is the one with this index.
	low := bits.Len64(s.min ^ s.max)
	prefix := s.min >> low
	for n := s.n; n > runLength && low > 0; {
		next := max(low-digit, 0)
		var counts [1 << digit]int
		for x := range s.all {
			if x>>low == prefix {
				counts[x>>next&(1<<(low-next)-1)]++
			}
		}
		d := 0
		for ; index >= counts[d]; d++ {
			index -= counts[d]
		}
		n, prefix, low = counts[d], prefix<<(low-next)|uint64(d), next
	}
	if low == 0 {
		return unordered(prefix) // all of them
	}
	var few []uint64
	for x := range s.all {
		if x>>low == prefix {
			few = append(few, x)
		}
	}
	slices.Sort(few)
	return unordered(few[index])
}

// all yields them, ordered.
func (s *Numbers) all(yield func(uint64) bool) {
	for _, run := range s.runs {
		for x := uint64(0); len(run) > 0; {
			more, n := binary.Uvarint(run)
			x += more
			if run = run[n:]; !yield(x) {
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

// ordered is a number without a sign that is less than another one where v is.
func ordered(v int64) uint64   { return uint64(v) ^ 1<<63 }
func unordered(x uint64) int64 { return int64(x ^ 1<<63) }
