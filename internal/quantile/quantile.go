// Package quantile keeps numbers of which exact quantiles are wanted: durations of millions of requests, in three or
// four bytes each.
package quantile

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	// digit is how many bits are told apart when numbers are counted.
	digit = 12
	// fewNumbers are sorted to find one of them. More are counted first.
	fewNumbers = 4096
	// firstChunk and mostChunk are the bytes of the first chunk and of the largest ones: each is twice the one before.
	firstChunk, mostChunk = 64, 64 << 10
)

// Numbers are numbers in no order. The zero value has none.
type Numbers struct {
	chunks   [][]byte // of varints
	n        int
	min, max uint64 // see ordered
}

// Add adds v.
func (s *Numbers) Add(v int64) {
	k := len(s.chunks) - 1
	if k < 0 || cap(s.chunks[k])-len(s.chunks[k]) < binary.MaxVarintLen64 {
		size := firstChunk
		if k >= 0 {
			size = min(2*cap(s.chunks[k]), mostChunk)
		}
		k++
		s.chunks = append(s.chunks, make([]byte, 0, size))
	}
	s.chunks[k] = binary.AppendVarint(s.chunks[k], v)
	x := ordered(v)
	if s.n == 0 {
		s.min = x
	}
	s.min, s.max = min(s.min, x), max(s.max, x)
	s.n++
}

// Len is how many there are.
func (s *Numbers) Len() int { return s.n }

// At returns the number that stands at a share q, 0 to 1, of all in their order: of 100 numbers, 0.5 is the one with
// index 50, and 1 is the last. It is 0 if there are none.
func (s *Numbers) At(q float64) int64 {
	if s.n == 0 {
		return 0
	}
	// Among the n numbers that are prefix above their lowest bits, it is the one with this index.
	index, n := min(int(q*float64(s.n)), s.n-1), s.n
	low := bits.Len64(s.min ^ s.max)
	prefix := s.min >> low
	for n > fewNumbers && low > 0 {
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
	few := make([]uint64, 0, n)
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
	for _, b := range s.chunks {
		for len(b) > 0 {
			v, n := binary.Varint(b)
			if b = b[n:]; !yield(ordered(v)) {
				return
			}
		}
	}
}

// ordered is a number without a sign that is less than another one where v is.
func ordered(v int64) uint64   { return uint64(v) ^ 1<<63 }
func unordered(x uint64) int64 { return int64(x ^ 1<<63) }
