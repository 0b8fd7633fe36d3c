package stackfix

import (
	"math"
	"slices"
)

// A cand is a prefix that the missing frames may be.
type cand struct {
	p       StackID
	depth   int
	kf, kb  int // frames of the window that overlap
	bf, bb  float64
	votes   float64
	share   float64 // probability by the code's habits alone
	foreign float64 // bits: how strange the prefix is on this thread
	caller  float64 // how likely its innermost method is the caller
	against bool    // it contradicts what the whole stacks around share
}

type side struct {
	s      StackID
	fs     []FrameID
	nodes  []StackID // of fs, if it is known: the stack down to each frame
	direct bool
	far    int // apart
	conf   float64
	ok     bool
	bad    bool
	marked bool // its methods are in solver.places
}

// setSide makes block k of a run, if there is one, side i of the block at. Of sides that are not
// known, those from 2 on, the stacks down to each frame are not asked for.
func (e *solver) setSide(i int, bs []block, k, at int) {
	s := &e.sides[i]
	if s.ok = k >= 0 && k < len(bs) && e.t.Depth(bs[k].ext) <= mostBeside; !s.ok {
		return
	}
	b := &bs[k]
	if s.s != b.ext {
		s.s, s.marked = b.ext, false
		if i < 2 {
			s.fs, s.nodes = e.t.appendNodes(s.fs[:0], s.nodes[:0], b.ext)
		} else {
			s.fs = e.t.AppendFrames(s.fs[:0], b.ext)
		}
	}
	s.direct, s.conf, s.bad = b.stack == b.ext, float64(b.conf), b.bad
	s.far = apart(max(k-at, at-k))
}

// candidates collects prefixes for the window o.
func (e *solver) candidates(cs []cand, o []FrameID, f, b *side, vs *blend) []cand {
	ps := e.ps[:0] // of cs
	add := func(p StackID, d int) *cand {
		if i := slices.Index(ps, p); i >= 0 {
			return &cs[i]
		}
		ps = append(ps, p)
		cs = append(cs, cand{p: p, depth: d})
		return &cs[len(cs)-1]
	}
	hm := e.method(o[0])
	for si, s := range [2]*side{f, b} {
		if !s.ok {
			continue
		}
		for p := len(s.fs) - 1; p >= 0; p-- {
			if s.fs[p] != o[0] && e.method(s.fs[p]) != hm {
				continue
			}
			var node StackID
			if p > 0 {
				node = s.nodes[p-1]
			}
			k, bits := e.match(o, s.fs[p:], &e.calls)
			c := add(node, p)
			if si == 0 {
				c.kf, c.bf = k, bits
			} else {
				c.kb, c.bb = k, bits
			}
		}
	}
	for i, p := range vs.of { // each comes once
		if k := slices.Index(ps, p); k >= 0 {
			cs[k].votes = vs.p[i]
		} else {
			cs = append(cs, cand{p: p, depth: e.t.Depth(p), votes: vs.p[i]})
		}
	}
	e.ps = ps
	return e.mergeRoots(cs)
}

// rootSlack is how many frames further out the walk of one stack may have gone than that of
// another one of its thread. Set by hand; outerFrames is one more.
const rootSlack = 2

// mergeRoots makes one of prefixes that differ only in how far out the walk
// went: some stacks of a thread end a frame or two before its very first.
func (e *solver) mergeRoots(cs []cand) []cand {
	if !e.rootsDiffer(cs) {
		return cs
	}
	ends := e.ends[:0] // of cs: the innermost frame; what ends with another cannot be merged
	for i := range cs {
		ends = append(ends, prefixEnd{e.t.Frame(cs[i].p), int32(cs[i].depth)})
	}
	e.ends = ends
	for i := 0; i < len(cs); i++ {
		x := ends[i]
		for j := i + 1; j < len(ends); j++ {
			y := ends[j]
			if x.f != y.f {
				continue
			}
			if d := x.depth - y.depth; d == 0 || d > rootSlack || d < -rootSlack || x.depth == 0 || y.depth == 0 {
				continue
			}
			a, b := &cs[i], &cs[j]
			if !e.endsWith(a.p, b.p) {
				continue
			}
			fa, fb := e.foreign(a.p), e.foreign(b.p)
			if fb < fa || fb == fa && (b.votes > a.votes || b.votes == a.votes && b.depth > a.depth) {
				a, b, x = b, a, y
			}
			c := *a
			c.votes += b.votes
			if b.kf > c.kf {
				c.kf, c.bf = b.kf, b.bf
			}
			if b.kb > c.kb {
				c.kb, c.bb = b.kb, b.bb
			}
			cs[i], ends[i] = c, x
			cs = append(cs[:j], cs[j+1:]...)
			ends = append(ends[:j], ends[j+1:]...)
			j = i
		}
	}
	return cs
}

// rootsDiffer tells whether one of cs may be another one with a frame or two more at
// its root: whether its second or third frame is the first one of another.
func (e *solver) rootsDiffer(cs []cand) bool {
	outer := e.outer[:0]
	last := StackID(0) // most are the same
	for i := range cs {
		if s := e.t.skips[cs[i].p].outer; s != last && s != 0 && !slices.Contains(outer, s) {
			outer, last = append(outer, s), s
		}
	}
	e.outer = outer
	roots := e.firsts[:0]
	for _, s := range outer {
		roots = append(roots, e.t.Frame(e.t.up(s, 1)))
	}
	e.firsts = roots
	for _, s := range outer {
		for ; e.t.Depth(s) > 1; s = e.t.Parent(s) {
			if slices.Contains(roots, e.t.Frame(s)) {
				return true
			}
		}
	}
	return false
}

type prefixEnd struct {
	f     FrameID
	depth int32
}

// endsWith tells whether the shorter of a and b is the inner part of the longer.
func (e *solver) endsWith(a, b StackID) bool {
	for a != 0 && b != 0 {
		if a == b {
			return false // they part further in
		}
		if e.t.Frame(a) != e.t.Frame(b) {
			return false
		}
		a, b = e.t.Parent(a), e.t.Parent(b)
	}
	return true
}

// surprises are those of the calls in a stack, by frame and by method, summed up from its first
// frame on: of the first k frames at k-1, as far as they were asked for.
type surprises [2][]float64

func (x *surprises) reset() {
	for i := range x {
		x[i] = append(x[i][:0], 0)
	}
}

// match measures the overlap of o and t, whose first frames are of one method. It
// remembers the surprises of o.
func (e *solver) match(o, t []FrameID, known *surprises) (k int, bits float64) {
	n := min(len(o), len(t))
	o, t = o[:n], t[:n]
	if o[0] == t[0] {
		for k = 1; k < n && o[k] == t[k]; k++ {
		}
		return k, e.frameBits(o, k, known)
	}
	for k = 1; k < n && e.method(o[k]) == e.method(t[k]); k++ {
	}
	return k, e.methodBits(o, k, known)
}

// frameBits are the surprises of the calls among the first k frames of o.
func (e *solver) frameBits(o []FrameID, k int, known *surprises) float64 {
	sums := known[0]
	for i := len(sums); i < k; i++ {
		sums = append(sums, sums[i-1]+e.m.frameCalls.surprise(o[i-1], o[i]))
	}
	known[0] = sums
	return sums[k-1]
}

// methodBits are those of their methods.
func (e *solver) methodBits(o []FrameID, k int, known *surprises) float64 {
	sums := known[1]
	for i := len(sums); i < k; i++ {
		sums = append(sums, sums[i-1]+methodWorth*e.m.methodCalls.surprise(e.method(o[i-1]), e.method(o[i])))
	}
	known[1] = sums
	return sums[k-1]
}

// What the parts of a score count, in bits. All of them are set by hand, not fitted as the
// priors are: what comes of them is held by tests against recordings with known truth.
const (
	// beta is what a bit of an overlap counts: the calls in it are no independent evidence.
	beta = 0.6
	// methodWorth is what a call in an overlap of methods counts, of what one of frames does:
	// a method that calls another one from two places has two frames.
	methodWorth = 0.5
	// mostHead is the most that the surprise of the first frame counts where it overlaps.
	mostHead = 8
	// unseenVote is the share that a prefix has of the votes for those that no context shows.
	unseenVote = 0.01
	// callerWorth is what a bit of the caller's share counts: votes know of it, too.
	callerWorth = 0.5
	// leastCaller is added to the share of a caller, so that one that was never seen costs
	// no more than 13 bits times callerWorth.
	leastCaller = 1e-4
	// rounding is by how much a bound and a score may differ without a reason.
	rounding = 1e-6
	// mostLead is where leads end: an only candidate leads by no more.
	mostLead = 60
)

// fewCallers is the share of the callers in a context that a method needs at least to
// be believed to be the caller. Set by hand.
const fewCallers = 0.1

// judge scores the candidates and returns the best one, and by how many bits it leads. What can
// make an answer neither the best nor the next is not worked out; so that this is much, those that
// may score most come first.
func (e *solver) judge(cs []cand, s, between StackID, f, b *side, vs *blend) (int, float64) {
	if len(cs) == 0 {
		return -1, 0
	}
	fits := e.fitting(f, b)
	callers := e.lookupCallers(s)
	mostCaller := callerWorth * e.logs.log2(callers.most()+leastCaller)
	bounds, likely := e.bound(cs, &fits, vs)
	top, second, best := math.Inf(-1), math.Inf(-1), -1
	for k := -len(likely); k < len(cs); k++ {
		i := k
		if k < 0 {
			i = likely[k+len(likely)]
		} else if k == likely[0] || k == likely[1] {
			continue
		}
		if i < 0 || bounds[i].most+mostCaller < second-rounding {
			continue
		}
		c := &cs[i]
		c.caller = callers.share(e.callerOf(c.p))
		caller := callerWorth * e.logs.log2(c.caller+leastCaller)
		if bounds[i].most+caller < second-rounding {
			continue
		}
		score := e.fit(c, &fits) + bounds[i].votes - c.foreign + caller
		if between != 0 && score >= second { // of equal ones the first is the best, whichever came before
			if c.against = e.leaves(c.p, e.o, between); c.against {
				score -= againstBits
			}
		}
		if score > top || score == top && i < best {
			top, second, best = score, max(second, top), i
		} else {
			second = max(second, score)
		}
	}
	return best, min(top-second, mostLead)
}

// A bound is what bounds the score of a candidate.
type bound struct {
	votes float64 // what its votes count
	most  float64 // the most that it may score, but for its caller
}

// bound bounds the scores of candidates, valid until it is called again, and tells which two of them may score
// most; -1 if there are not so many that can be told. It finds out how foreign each is.
func (e *solver) bound(cs []cand, x *fitting, vs *blend) (bounds []bound, likely [2]int) {
	if len(e.bounds) < len(cs) {
		e.bounds = make([]bound, 2*len(cs))
	}
	bounds = e.bounds[:len(cs)]
	likely, most := [2]int{-1, -1}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i := range cs {
		c := &cs[i]
		c.foreign = e.foreign(c.p)
		votes := e.logs.log2(c.votes + vs.other*unseenVote)
		bounds[i] = bound{votes, math.Inf(1)}
		if c.kf > 0 || c.kb > 0 {
			continue
		}
		n := votes - c.foreign
		for si, s := range x.sides {
			if D := len(s.fs); s.ok {
				n += e.retain.most[si][bucket(len(e.o)+max(0, c.depth-D))][bucket(D-c.depth)]
			}
		}
		bounds[i].most = n
		switch {
		case n > most[0]:
			likely, most = [2]int{i, likely[0]}, [2]float64{n, most[0]}
		case n > most[1]:
			likely[1], most[1] = i, n
		}
	}
	return bounds, likely
}

// fitting is what the fit of candidates between two sides depends on, but for themselves.
type fitting struct {
	sides [2]*side
	nodes [2][]StackID // of these; nil of one that there is none of
	share int          // frames that they have in common
	head  float64      // what it costs that the innermost frame is where it was
}

func (e *solver) fitting(f, b *side) fitting {
	x := fitting{sides: [2]*side{f, b}, head: min(e.headSurprise(e.o[0]), mostHead)}
	for si, s := range x.sides {
		if s.ok {
			x.nodes[si] = s.nodes
		}
	}
	if f.ok && b.ok {
		x.share = e.t.Depth(e.t.shared(f.s, b.s))
	}
	return x
}

// fit returns how likely a stack with the callers c is between both sides, in bits.
func (e *solver) fit(c *cand, x *fitting) (score float64) {
	var common [2]int
	if c.kf == 0 || c.kb == 0 {
		common[0], common[1] = e.t.common(c.p, x.nodes[0], x.nodes[1], x.share)
	}
	for si, s := range x.sides {
		if !s.ok {
			continue
		}
		k, bits := c.kf, c.bf
		if si == 1 {
			k, bits = c.kb, c.bb
		}
		L := c.depth + k
		if k == 0 {
			L = common[si]
			bits = 0
		} else {
			bits += x.head
		}
		pops, pushes := len(s.fs)-L, c.depth+len(e.o)-L
		if si == 1 {
			pops, pushes = pushes, pops
		}
		score += e.retain.log(pops, pushes) + beta*bits
	}
	return score
}
