package spool

import (
	"container/heap"
	"sort"
)

// A Run is a list in order, of which one is at hand.
type Run interface {
	// Next goes to the next one, or the first, and reports whether there is one.
	Next() bool
	// Before reports whether what is at hand comes before what is of another run; of one to which
	// nothing was gone yet, what it begins with.
	Before(other Run) bool
}

// Merge calls yield with the run whose next one comes first, until that returns false. It puts runs
// into the order of what they begin with, and goes to each when it is needed: of runs that hardly
// overlap few are read at once.
func Merge(runs []Run, yield func(Run) bool) {
	sort.Sort(openRuns(runs))
	var open openRuns
	for len(runs) > 0 || len(open) > 0 {
		if len(open) == 0 || len(runs) > 0 && runs[0].Before(open[0]) {
			if runs[0].Next() {
				heap.Push(&open, runs[0])
			}
			runs = runs[1:]
			continue
		}
		if !yield(open[0]) {
			return
		}
		if open[0].Next() {
			heap.Fix(&open, 0)
		} else {
			heap.Pop(&open)
		}
	}
}

// openRuns is a heap with the run on top that goes on first.
type openRuns []Run

func (h openRuns) Len() int           { return len(h) }
func (h openRuns) Less(i, k int) bool { return h[i].Before(h[k]) }
func (h openRuns) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *openRuns) Push(x any)        { *h = append(*h, x.(Run)) }

// Pop implements heap.Interface.
func (h *openRuns) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}
