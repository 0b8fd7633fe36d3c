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
	var out []Phase
	each(r.Phases, r.Start, r.Start+r.Duration, func(p *Phase, from, to int64) {
		name, errText := Other, ""
		if p != nil {
			name, errText = p.Name, p.Error
		}
		if n := len(out); n > 0 && out[n-1].Name == name && out[n-1].Error == errText {
			out[n-1].Duration += to - from
			return
		}
		out = append(out, Phase{Name: name, Start: from, Duration: to - from, Error: errText})
	})
	return out
}

// few is how many phases are looked through for each piece: almost all requests have no
// more, and that takes no memory.
const few = 16

// each calls f with the pieces of the time from start to end, and the phase that matters
// most then; nil if there is none.
func each(phases []Phase, start, end int64, f func(p *Phase, from, to int64)) {
	var space [2*few + 2]int64
	cuts := append(space[:0], start, end)
	for i := range phases {
		if p := &phases[i]; !p.Open {
			cuts = append(cuts, min(max(p.Start, start), end), min(max(p.End(), start), end))
		}
	}
	slices.Sort(cuts)
	matters := first
	if len(phases) > few {
		matters = new(running).first
	}
	for i := 1; i < len(cuts); i++ {
		if from, to := cuts[i-1], cuts[i]; from < to {
			f(matters(phases, from, to), from, to)
		}
	}
}

// first returns the phase that matters most of those that last from one time to another;
// of equals the first one.
func first(phases []Phase, from, to int64) (best *Phase) {
	for i := range phases {
		if p := &phases[i]; !p.Open && p.Start <= from && p.End() >= to && (best == nil || rank[p.Name] > rank[best.Name]) {
			best = p
		}
	}
	return best
}

// running does the same for many phases, asked in order of time.
type running struct {
	begin []int // phases in order of start that have not begun
	heap  byRank
}

func (r *running) first(phases []Phase, from, to int64) *Phase {
	if r.heap.phases == nil {
		r.heap.phases = phases
		for i := range phases {
			if !phases[i].Open {
				r.begin = append(r.begin, i)
			}
		}
		slices.SortStableFunc(r.begin, func(i, k int) int { return cmp.Compare(phases[i].Start, phases[k].Start) })
	}
	for ; len(r.begin) > 0 && phases[r.begin[0]].Start <= from; r.begin = r.begin[1:] {
		heap.Push(&r.heap, r.begin[0])
	}
	for len(r.heap.l) > 0 && phases[r.heap.l[0]].End() < to { // has ended since
		heap.Pop(&r.heap)
	}
	if len(r.heap.l) == 0 {
		return nil
	}
	return &phases[r.heap.l[0]]
}

// Times say where the time of a request, or of one of its hops, went, in ns. They add up
// to its duration: each instant counts once.
type Times struct {
	BeforeDNS     int64 // from the start, or the end of what was before, until the look-up began
	DNS           int64
	BeforeConnect int64 // likewise until the socket was opened
	Connect       int64 // with the CONNECT dialogue of a proxy
	BeforeTLS     int64 // likewise until the handshake began
	TLS           int64
	Queue         int64 // the rest of the time in the queue for a connection
	Send          int64 // request headers and content
	Wait          int64 // for the answer
	Receive       int64 // response headers and content
	Other         int64 // no phase: the program's handlers, the way from one thread to the next
}

// Sum returns the sum of all.
func (t *Times) Sum() int64 {
	return t.BeforeDNS + t.DNS + t.BeforeConnect + t.Connect + t.BeforeTLS + t.TLS + t.Queue + t.Send + t.Wait + t.Receive + t.Other
}

// Times adds up the hops of r. It is empty if the duration is not known, or nothing but it.
func (r *Request) Times() (t Times) {
	if !r.HasDuration || r.SpanOnly && len(r.Phases) == 0 {
		return t
	}
	from := r.Start
	for i := range r.Redirects {
		d := &r.Redirects[i]
		t.Other += d.Start - from
		t.add(d.Phases, d.Start, d.Start+d.Duration)
		from = d.Start + d.Duration
	}
	last := r.Phases
	for len(last) > 0 && last[0].Name == RedirectHop {
		last = last[1:]
	}
	t.add(last, from, r.Start+r.Duration)
	return t
}

// Times says where the time of the hop went.
func (d *Redirect) Times() (t Times) {
	t.add(d.Phases, d.Start, d.Start+d.Duration)
	return t
}

// add counts the phases of a hop. What lies before a step of a connection attempt, in the
// queue or not, is the wait for that step.
func (t *Times) add(phases []Phase, from, end int64) {
	idle := [2]int64{} // in the queue, and not, since the last step
	wait := func(of *int64) {
		*of += idle[0] + idle[1]
		idle = [2]int64{}
	}
	each(phases, from, end, func(p *Phase, from, to int64) {
		d, name := to-from, Other
		if p != nil {
			name = p.Name
		}
		switch name {
		case Queue:
			idle[0] += d
			return
		case Other, RedirectHop:
			idle[1] += d
			return
		case DNS:
			wait(&t.BeforeDNS)
			t.DNS += d
		case Connect, Proxy:
			wait(&t.BeforeConnect)
			t.Connect += d
		case TLS:
			wait(&t.BeforeTLS)
			t.TLS += d
		case RequestHeaders, RequestContent:
			t.Send += d
		case Wait:
			t.Wait += d
		case ResponseHeaders, ResponseContent:
			t.Receive += d
		}
		t.Queue, t.Other, idle = t.Queue+idle[0], t.Other+idle[1], [2]int64{}
	})
	t.Queue, t.Other = t.Queue+idle[0], t.Other+idle[1]
}

// byRank is a heap of phases: of equal rank the first one is on top.
type byRank struct {
	phases []Phase
	l      []int
}

func (h *byRank) Len() int { return len(h.l) }

func (h *byRank) Less(i, k int) bool {
	a, b := rank[h.phases[h.l[i]].Name], rank[h.phases[h.l[k]].Name]
	return a > b || a == b && h.l[i] < h.l[k]
}

func (h *byRank) Swap(i, k int) { h.l[i], h.l[k] = h.l[k], h.l[i] }

func (h *byRank) Push(x any) { h.l = append(h.l, x.(int)) }

func (h *byRank) Pop() any {
	last := h.l[len(h.l)-1]
	h.l = h.l[:len(h.l)-1]
	return last
}
