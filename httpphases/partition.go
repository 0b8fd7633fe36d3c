package httpphases

import (
	"cmp"
	"container/heap"
	"slices"
)

// rank orders phases for Partition: of two that run at once the one with the higher
// rank gets the time (http-events.md section 8).
var rank = [...]int{
	Queue: 1, Wait: 2, DNS: 3, Connect: 4, Proxy: 5, TLS: 6, RequestHeaders: 7, RequestContent: 8,
	ResponseHeaders: 9, ResponseContent: 10, RedirectHop: 11, Other: 0,
}

// Partition cuts the duration of r into pieces without gap or overlap, in time order:
// each is of the phase that mattered then, or Other. Their durations sum to
// r.Duration exactly. It is nil if the duration is not known.
func (r *Request) Partition() []Phase {
	if !r.HasDuration {
		return nil
	}
	end := r.Start + r.Duration
	cuts := []int64{r.Start, end}
	var begin []int // phases in order of start
	for i := range r.Phases {
		if p := &r.Phases[i]; !p.Open {
			cuts = append(cuts, min(max(p.Start, r.Start), end), min(max(p.End(), r.Start), end))
			begin = append(begin, i)
		}
	}
	slices.Sort(cuts)
	slices.SortStableFunc(begin, func(i, k int) int { return cmp.Compare(r.Phases[i].Start, r.Phases[k].Start) })
	var out []Phase
	// Phases that have begun, the one that matters most on top; some have ended since.
	running := byRank{r: r}
	for i := 1; i < len(cuts); i++ {
		from, to := cuts[i-1], cuts[i]
		if from == to {
			continue
		}
		for ; len(begin) > 0 && r.Phases[begin[0]].Start <= from; begin = begin[1:] {
			heap.Push(&running, begin[0])
		}
		for len(running.l) > 0 && r.Phases[running.l[0]].End() < to {
			heap.Pop(&running)
		}
		name, errText := Other, ""
		if len(running.l) > 0 {
			p := &r.Phases[running.l[0]]
			name, errText = p.Name, p.Error
		}
		if n := len(out); n > 0 && out[n-1].Name == name && out[n-1].Error == errText {
			out[n-1].Duration += to - from
			continue
		}
		out = append(out, Phase{Name: name, Start: from, Duration: to - from, Error: errText})
	}
	return out
}

// byRank is a heap of phases of r: of equal rank the first one is on top.
type byRank struct {
	r *Request
	l []int
}

func (h *byRank) Len() int { return len(h.l) }

func (h *byRank) Less(i, k int) bool {
	a, b := rank[h.r.Phases[h.l[i]].Name], rank[h.r.Phases[h.l[k]].Name]
	return a > b || a == b && h.l[i] < h.l[k]
}

func (h *byRank) Swap(i, k int) { h.l[i], h.l[k] = h.l[k], h.l[i] }

func (h *byRank) Push(x any) { h.l = append(h.l, x.(int)) }

func (h *byRank) Pop() any {
	last := h.l[len(h.l)-1]
	h.l = h.l[:len(h.l)-1]
	return last
}
