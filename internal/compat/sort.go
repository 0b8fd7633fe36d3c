package compat

import "math/bits"

// sortAsReference sorts s as List<T>.Sort of .NET does, which leaves elements that compare
// equal in an order of its own: where it puts them shows in the reference's output.
func sortAsReference[T any](s []T, cmp func(a, b *T) int) {
	for i := 1; i < len(s); i++ {
		if cmp(&s[i-1], &s[i]) >= 0 {
			introsort(s, 2*bits.Len(uint(len(s))), cmp)
			return
		}
	}
}

const smallSort = 16

func introsort[T any](s []T, depth int, cmp func(a, b *T) int) {
	for len(s) > 1 {
		if len(s) <= smallSort {
			sortSmall(s, cmp)
			return
		}
		if depth == 0 {
			heapsort(s, cmp)
			return
		}
		depth--
		p := partition(s, cmp)
		introsort(s[p+1:], depth, cmp)
		s = s[:p]
	}
}

func sortSmall[T any](s []T, cmp func(a, b *T) int) {
	switch len(s) {
	case 2:
		order(s, 0, 1, cmp)
	case 3:
		order(s, 0, 1, cmp)
		order(s, 0, 2, cmp)
		order(s, 1, 2, cmp)
	default:
		for i := 1; i < len(s); i++ {
			v := s[i]
			j := i
			for ; j > 0 && cmp(&v, &s[j-1]) < 0; j-- {
				s[j] = s[j-1]
			}
			s[j] = v
		}
	}
}

// order swaps two elements that are in the wrong order.
func order[T any](s []T, i, j int, cmp func(a, b *T) int) {
	if cmp(&s[i], &s[j]) > 0 {
		s[i], s[j] = s[j], s[i]
	}
}

// partition moves what is less than the median of three to the front and returns the place
// of the median.
func partition[T any](s []T, cmp func(a, b *T) int) int {
	hi := len(s) - 1
	mid := hi / 2
	order(s, 0, mid, cmp)
	order(s, 0, hi, cmp)
	order(s, mid, hi, cmp)
	pivot := s[mid]
	s[mid], s[hi-1] = s[hi-1], s[mid]
	l, r := 0, hi-1
	for l < r {
		for l++; cmp(&s[l], &pivot) < 0; l++ {
		}
		for r--; cmp(&pivot, &s[r]) < 0; r-- {
		}
		if l >= r {
			break
		}
		s[l], s[r] = s[r], s[l]
	}
	s[l], s[hi-1] = s[hi-1], s[l]
	return l
}

func heapsort[T any](s []T, cmp func(a, b *T) int) {
	n := len(s)
	for i := n / 2; i >= 1; i-- {
		sift(s, i, n, cmp)
	}
	for i := n; i > 1; i-- {
		s[0], s[i-1] = s[i-1], s[0]
		sift(s, 1, i-1, cmp)
	}
}

// sift moves element i of a heap of n, counted from 1, down to its place.
func sift[T any](s []T, i, n int, cmp func(a, b *T) int) {
	v := s[i-1]
	for i <= n/2 {
		child := 2 * i
		if child < n && cmp(&s[child-1], &s[child]) < 0 {
			child++
		}
		if cmp(&v, &s[child-1]) >= 0 {
			break
		}
		s[i-1] = s[child-1]
		i = child
	}
	s[i-1] = v
}
