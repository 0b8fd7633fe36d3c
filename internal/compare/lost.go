package compare

import (
	"cmp"

	"github.com/tracefix/tracefix/profile"
)

// A lost is the time on stacks whose outer methods were cut off and are not known: what a method
// costs with what it calls may be more by that much, but for the time in which it is seen there.
type lost struct {
	there    bool // there are such stacks
	hidden        // on all of them
	seen     map[int]*hidden
	shortest int // the least frames that were recorded of one
	// far is the time in which a method is so far out that such a stack of the other trace would lack it.
	far map[int]*hidden
}

// A hidden is time, in ns, and how much of it was for requests of each route.
type hidden struct {
	time float64
	work map[string]float64
}

func (h *hidden) add(route string, ns float64) {
	h.time += ns
	if route != "" {
		if h.work == nil {
			h.work = map[string]float64{}
		}
		h.work[route] += ns
	}
}

// of returns the time for requests of a route, of all there is for the empty one.
func (h *hidden) of(route string) float64 {
	switch {
	case h == nil:
		return 0
	case route == "":
		return h.time
	}
	return h.work[route]
}

// cutAt is the number of frames at which EventPipe cuts stacks.
const cutAt = 100

// A gaps tells of stretches, those of a thread one after the other, how many frames were recorded of
// a stack whose outer methods are missing; 0: none are.
type gaps struct {
	trace   *Trace
	thread  *profile.Thread
	repairs profile.RepairCursor
}

func (g *gaps) recorded(th *profile.Thread, st *profile.Stretch) int {
	t := g.trace.Profile.Table
	if g.trace.sums { // these are not repaired; FoldPolls may have taken the innermost frame
		if d := t.Depth(st.Stack); d == cutAt || d == cutAt-1 {
			return d
		}
		return 0
	}
	if st.Cut == profile.Whole {
		return 0
	}
	if th != g.thread {
		g.thread, g.repairs = th, th.Repairs.Cursor()
	}
	r := g.repairs.Of(st.Index)
	if r == nil {
		return t.Depth(st.Stack)
	}
	if r.How != profile.HowBridge {
		return 0
	}
	return max(1, t.Depth(cmp.Or(r.Recorded, st.Stack)))
}

// findLost finds how much of the time of wanted methods is on the stacks whose outer methods are lost.
func (c *costs) findLost(wanted map[int]bool) {
	if !c.lost.there {
		return
	}
	in := gaps{trace: c.trace}
	c.lost.seen = c.byMethod(wanted, func(th *profile.Thread, st *profile.Stretch, route string) bool {
		n := in.recorded(th, st)
		if n == 0 {
			return false
		}
		if c.lost.shortest == 0 || n < c.lost.shortest {
			c.lost.shortest = n
		}
		c.lost.add(route, float64(st.Nanos()))
		return true
	})
}

// findFar finds for how long wanted methods are where stacks of the other trace, which lost their
// outer methods, would lack them.
func (c *costs) findFar(wanted map[int]bool, other *lost) {
	if !other.there {
		return
	}
	t := c.trace.Profile.Table
	near := max(0, other.shortest-1) // FoldPolls may have taken a frame
	c.lost.far = c.byMethod(wanted, func(_ *profile.Thread, st *profile.Stretch, _ string) bool {
		if t.Depth(st.Stack) <= near {
			return false
		}
		for range near {
			st.Stack = t.Parent(st.Stack)
		}
		return true
	})
}

// byMethod adds up the time in which wanted methods are on the stacks that take says, which may take
// innermost frames from them.
func (c *costs) byMethod(wanted map[int]bool, take func(th *profile.Thread, st *profile.Stretch, route string) bool) map[int]*hidden {
	sums := map[int]*hidden{}
	of := ""
	open := openStack{c: c}
	open.gone = func(x *openMethod) {
		if wanted[x.id] {
			h := sums[x.id]
			if h == nil {
				h = &hidden{}
				sums[x.id] = h
			}
			h.add(of, open.time-x.time)
		}
	}
	c.each(func(_ int, th *profile.Thread, st *profile.Stretch, request int) {
		route := ""
		if asked := c.of(int32(request)); asked != nil {
			route = asked.Route
		}
		if !take(th, st, route) {
			return
		}
		if route != of {
			open.end()
			of = route
		}
		open.add(th, st, true)
	})
	open.end()
	return sums
}

// hides returns how much time of a method stacks may hide, ms a unit, for requests of a route or
// in all: no more than is hidden, nor than the other trace may have where it would be.
func hides(a, b *costs, m int, route string, unitsA, unitsB float64) (before, after float64) {
	x := (a.lost.of(route) - a.lost.seen[m].of(route)) / unitsA
	y := (b.lost.of(route) - b.lost.seen[m].of(route)) / unitsB
	farA, farB := a.lost.far[m].of(route)/unitsA, b.lost.far[m].of(route)/unitsB
	return min(x, farB+y) / 1e6, min(y, farA+x) / 1e6
}

// doubt takes the verdict back if nothing would have moved had the method run in all the time that
// may be hidden, in ms as the figure is. It reports whether it did.
func (f *Figure) doubt(before, after, sigma, critical float64) bool {
	if !f.Moved() {
		return false
	}
	all := Judge(f.Before, f.After+after-before, sigma, critical)
	if all.Verdict == f.Verdict {
		return false
	}
	f.Verdict = Unclear
	return true
}
