package compat

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

type sortedItem struct{ key, number int }

func compareItems(a, b *sortedItem) int { return cmp.Compare(a.key, b.key) }

// Sorted is sorted, whatever path the sort takes: few elements, many, heaps.
func TestSortAsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		for _, keys := range []int{1, 3, 1000} {
			s := make([]sortedItem, n)
			for i := range s {
				s[i] = sortedItem{r.IntN(keys), i}
			}
			for name, sort := range map[string]func([]sortedItem){
				"all":  func(s []sortedItem) { sortAsReference(s, compareItems) },
				"heap": func(s []sortedItem) { introsort(s, 0, compareItems) },
			} {
				got := slices.Clone(s)
				sort(got)
				assert.True(t, slices.IsSortedFunc(got, func(a, b sortedItem) int { return compareItems(&a, &b) }), "%s of %d", name, n)
				slices.SortFunc(got, func(a, b sortedItem) int { return cmp.Compare(a.number, b.number) })
				assert.Equal(t, s, got, "%s of %d: nothing is lost", name, n)
			}
		}
	}
}
