package spool

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listRun is a run of numbers.
type listRun struct {
	list   []int
	at     int
	opened *int
}

func (r *listRun) Before(other Run) bool { return r.value() < other.(*listRun).value() }
func (r *listRun) value() int            { return r.list[max(0, r.at-1)] }

func (r *listRun) Next() bool {
	if r.at == 0 {
		*r.opened++
	}
	r.at++
	return r.at <= len(r.list)
}

// Merge yields all in order, and a run is not gone to before it is needed.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var runs []Run
		var want, got []int
		opened := 0
		for range r.IntN(8) {
			list := make([]int, 1+r.IntN(20))
			from := r.IntN(1000)
			for i := range list {
				list[i] = from + r.IntN(50)
			}
			slices.Sort(list)
			want = append(want, list...)
			runs = append(runs, &listRun{list: list, opened: &opened})
		}
		slices.Sort(want)
		Merge(runs, func(r Run) bool {
			got = append(got, r.(*listRun).value())
			return true
		})
		require.Equal(t, want, got)
		require.Equal(t, len(runs), opened)
	}
	opened := 0
	Merge([]Run{&listRun{list: []int{100}, opened: &opened}, &listRun{list: []int{1, 2}, opened: &opened}}, func(Run) bool { return false })
	require.Equal(t, 1, opened)
}
