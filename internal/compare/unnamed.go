package compare

import (
	"math"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// findUnnamed adds up the time in code of which only the address is known. A recording that was cut off does
// not name what was compiled ahead: those methods seem to be none of that trace. Others have stubs only without
// a name.
func (c *costs) findUnnamed() {
	p := c.trace.Profile
	if !c.trace.nameless {
		return
	}
	nameless := func(s profile.StackID) bool { return p.Table.MethodOf(p.Table.Frame(s)).Kind == profile.Unresolved }
	on := make([]bool, p.Table.Stacks())
	for s := 1; s < len(on); s++ { // parents come first
		on[s] = on[p.Table.Parent(profile.StackID(s))] || nameless(profile.StackID(s))
	}
	timing := p.Timing()
	for _, th := range p.Threads {
		for st := range timing.Stretches(th) {
			if !on[st.Stack] {
				continue
			}
			ns, counts, inner := float64(st.Nanos()), c.counts(&st), nameless(st.Stack)
			if inner && !counts && p.Meta.Untyped {
				c.apart += ns
			} else if !counts {
				continue
			}
			c.on += ns
			if inner {
				c.inner += ns
			}
		}
	}
}

// mayBeUnnamed takes back the verdicts on what a method costs, by itself or with what it calls, where one trace
// does not have the method and may have run it in code without a name, ns; and on what has no name. It reports
// whether it did.
//
//go:noinline
func (f *Figure) mayBeUnnamed(name string, routes []Route, before, after float64) bool {
	absent := f.Before == 0 || f.After == 0
	if !f.Moved() || !(absent && f.within(before, after) || before+after > 0 && strings.HasSuffix(name, "!?")) {
		return false
	}
	f.Verdict = Unclear
	for i := range routes {
		routes[i].Verdict = Unclear
	}
	return true
}

// within reports whether what the side that has less may have beside it, in ns, is about what
// it has less.
//
//go:noinline
func (f *Figure) within(before, after float64) bool {
	more := after
	if f.After > f.Before {
		more = before
	}
	return 2e-6*more >= math.Abs(f.After-f.Before)
}
