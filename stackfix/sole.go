package stackfix

import "slices"

// A method that one other method calls, wherever it was recorded, is called by that one in a cut
// stack too: the code has no other way. Of 5,000 such callers, in pieces of 300 samples of ten real
// programs whose stacks were really cut, one was wrong; and each of 457 stacks that were followed
// so to where threads begin was complete. More samples hardly make it surer, so that a trace of a
// few hundred is enough.
const (
	// fewSightings is how many stacks in a row must show a method with its caller.
	fewSightings = 3
	// soleConfidence is how sure are the callers found so.
	soleConfidence = 0.99
)

// soleCallers tells of methods who calls them, if it is always the same.
type soleCallers struct {
	of []soleCaller // by method
	// scratch
	up  []FrameID
	in  []int32 // by method: now, if it is in the stack that is followed
	now int32
}

// A soleCaller is what is known of the callers of a method.
type soleCaller struct {
	seen   int32
	varies bool
	none   bool // threads begin with it
	m      MethodID
	f      FrameID // in m, the one that was seen most
	lead   int32   // of f over others
}

// learnSole learns who calls whom from what was recorded.
func (c *consensus) learnSole(w *world) *soleCallers {
	seen := c.pad.list(c.t.Len()) // by stack: blocks that go through it
	defer clear(seen)
	begins := map[StackID]bool{} // stacks of one frame that whole stacks begin with
	add := func(s StackID, n int32, whole bool) {
		seen[s] += uint32(n)
		if whole && s != 0 {
			begins[c.t.up(s, 1)] = true
		}
	}
	for _, known := range w.known {
		for _, x := range known {
			add(x.stack, x.n, true)
		}
	}
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			if b := &w.runs[i].blocks[k]; !b.given {
				add(b.stack, 1, false)
			}
		}
	}
	sole := &soleCallers{of: make([]soleCaller, c.methods), in: make([]int32, c.methods)}
	for s := StackID(len(seen) - 1); s > 0; s-- { // callers come before what they call
		n := seen[s]
		if n == 0 {
			continue
		}
		callers, f := c.t.Node(s)
		x := &sole.of[c.method(f)]
		if callers == 0 {
			x.none = x.none || begins[s]
			continue
		}
		seen[callers] += n
		g := c.t.Frame(callers)
		x.see(c.method(g), g, int32(n))
	}
	return sole
}

// see notes n calls by frame f of method m.
func (x *soleCaller) see(m MethodID, f FrameID, n int32) {
	x.varies = x.varies || x.seen > 0 && x.m != m
	x.seen += n
	x.m = m
	switch {
	case x.lead == 0 || x.f == f:
		x.f, x.lead = f, x.lead+n
	case x.lead >= n:
		x.lead -= n
	default:
		x.f, x.lead = f, n-x.lead
	}
}

// climb returns the frames that must have called s, root first, and whether they begin a thread.
func (x *soleCallers) climb(e *engine, s StackID) (up []FrameID, rooted bool) {
	x.up = x.up[:0]
	x.now++
	m := MethodID(0)
	for ; s != 0; s = e.t.Parent(s) {
		m = e.method(e.t.Frame(s))
		x.in[m] = x.now
	}
	for len(x.up) < mostFrames {
		y := &x.of[m]
		if y.none {
			rooted = y.seen == 0
			break
		}
		if y.varies || y.seen < fewSightings || x.in[y.m] == x.now {
			break
		}
		x.up = append(x.up, y.f)
		m = y.m
		x.in[m] = x.now
	}
	slices.Reverse(x.up)
	return x.up, rooted
}

// followSole puts the callers that must have called what is known of open blocks above that, and
// roots those where that is all, unless a recursion is cut or the whole stacks around begin otherwise.
func (c *consensus) followSole(open []*block) {
	if c.sole == nil {
		return
	}
	type found struct {
		stack  StackID
		rooted bool
	}
	known := map[StackID]found{} // by what is known already
	q := c.inquiry()
	defer q.end()
	for _, b := range open {
		p := c.parts[b]
		if b.rooted || p.conf < c.minConf {
			continue
		}
		x, ok := known[p.stack]
		if !ok {
			up, begins := c.sole.climb(c.engine, p.stack)
			c.fs = c.t.AppendFrames(append(c.fs[:0], up...), p.stack)
			x.rooted = begins && !q.comesAgain(c.fs[len(up):], turnSites)
			if begins && !x.rooted && len(up) > 0 {
				c.fs = c.fs[1:] // something is missing, but not behind where threads begin
			}
			x.stack = c.t.Add(c.fs...)
			known[p.stack] = x
		}
		if x.stack == b.stack {
			continue
		}
		p.conf = min(p.conf, soleConfidence)
		p.stack = x.stack
		c.fs = c.t.AppendFrames(c.fs[:0], x.stack)
		if x.rooted && !c.leaves(0, c.fs, b.between) && !c.short.untimely(0, c.fs, b) {
			b.rooted, b.how, b.conf, b.ext = true, Caller, float32(p.conf), x.stack
		}
	}
}
