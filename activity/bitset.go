package activity

import "math/bits"

// A bitSet is a set of rows, in a bit each.
type bitSet []uint64

func (s bitSet) has(i int32) bool { return s[i/64]>>(i%64)&1 != 0 }

// set puts row i in or takes it out. It may be a new one.
func (s *bitSet) set(i int32, in bool) {
	for int(i/64) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i/64] &^= 1 << (i % 64)
	if in {
		(*s)[i/64] |= 1 << (i % 64)
	}
}

// all yields the rows of the set.
func (s bitSet) all(yield func(int32) bool) {
	for k, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(int32(64*k + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// backward yields the rows of the set, the last one first.
func (s bitSet) backward(yield func(int32) bool) {
	for k := len(s) - 1; k >= 0; k-- {
		for word := s[k]; word != 0; {
			i := bits.Len64(word) - 1
			word &^= 1 << i
			if !yield(int32(64*k + i)) {
				return
			}
		}
	}
}
