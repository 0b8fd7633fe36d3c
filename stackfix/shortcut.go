package stackfix

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// A method that calls another one through a third one calls it directly as soon as the runtime has
// compiled the third one into it, or has compiled that anew so that it calls last and leaves no
// frame; it hardly ever goes back. So where all stacks that show the one are from before all that
// show the other, an answer may show neither at a time of which no stack tells which it was.
const (
	// fewSights is how many stacks in a row must show the one and the other.
	fewSights = 3
	// sightTick is the unit of times here, ns: a stack has three numbers of 32 bits.
	sightTick = 1 << 16
)

// sightMargin is how far from the times at which it was seen a call is believed, in the mean time
// between two of these. Where sights come by chance, and one is the first after a change, no more
// time than this has passed since the change in one of ten cases; so it was there before with the
// confidence that an answer needs.
var sightMargin = -math.Log(DefaultConfidence)

// shortcuts tell when calls were made directly, and when through another method.
type shortcuts struct {
	*engine
	seen    []StackID // of which there are sights in the scratchpad, while the samples are read
	edges   numbering
	changes []change // by edge: from a method to one that it calls directly, and called before, or later, through another one
	known   []bool   // by method: a change has to do with its being called
}

// A change says in which times, in units of sightTick, a call is believed.
type change struct{ direct, through interval }

type interval struct{ from, to int64 }

func (x interval) holds(t int64) bool { return x.from <= t && t <= x.to }

// sights are when something was seen.
type sights struct {
	first, last uint32 // in units of sightTick
	n           uint32 // how often
}

func (x *sights) add(y sights) {
	switch {
	case y.n == 0:
	case x.n == 0:
		*x = y
	default:
		x.first, x.last = min(x.first, y.first), max(x.last, y.last)
		x.n += min(y.n, math.MaxInt32-x.n)
	}
}

// margin is how far from its sights something is believed.
func (x *sights) margin() int64 {
	return int64(float64(x.last-x.first) / float64(max(1, int(x.n)-1)) * sightMargin)
}

func tickOf(ns int64) int64 { return min(max(ns, 0)/sightTick, math.MaxUint32) }

// begin forgets all.
func (x *shortcuts) begin() {
	x.edges.reset()
	x.changes, x.known = nil, nil
	for _, s := range x.seen { // of samples of which nothing was learned
		*x.pad.of(s) = [3]uint32{}
	}
	x.seen = x.seen[:0]
	x.pad.reach(x.t.Len())
}

// see takes a block of the recording.
func (x *shortcuts) see(b *block) {
	if b.stack != 0 {
		t := uint32(tickOf(b.time))
		if x.add(b.stack, sights{t, t, 1}) {
			x.seen = append(x.seen, b.stack)
		}
	}
}

// add notes sights of s and tells whether they are its first ones.
func (x *shortcuts) add(s StackID, y sights) bool {
	own := x.pad.of(s)
	all := sights{own[0], own[1], own[2]}
	isFirst := all.n == 0
	all.add(y)
	own[0], own[1], own[2] = all.first, all.last, all.n
	return isFirst
}

func (x *shortcuts) sightsOf(s StackID) sights {
	own := x.pad.of(s)
	return sights{own[0], own[1], own[2]}
}

// learn finds the changes.
func (x *shortcuts) learn() {
	var direct []sights // by edge
	stacks := x.withCallers(x.seen)
	for s := range stacks {
		callers, f := x.t.Node(s)
		if callers == 0 {
			continue
		}
		n := x.sightsOf(s)
		x.add(callers, n)
		i := x.edges.add(edgeKey(x.method(x.t.Frame(callers)), x.method(f)))
		if i == len(direct) {
			direct = append(direct, sights{})
		}
		direct[i].add(n)
	}
	through := make([]sights, len(direct))
	for s := range stacks {
		g := x.t.Parent(x.t.Parent(s))
		if g == 0 {
			continue
		}
		if i := x.edges.get(edgeKey(x.method(x.t.Frame(g)), x.method(x.t.Frame(s)))); i >= 0 {
			through[i].add(x.sightsOf(s))
		}
	}
	for s := range stacks {
		*x.pad.of(s) = [3]uint32{}
	}
	x.seen = x.seen[:0]
	changed := numbering{}
	x.edges.each(func(key uint64, i int) {
		d, t := &direct[i], &through[i]
		if d.n < fewSights || t.n < fewSights {
			return
		}
		c := change{interval{0, math.MaxInt64}, interval{0, math.MaxInt64}}
		switch {
		case t.last <= d.first:
			c.direct.from, c.through.to = int64(d.first)-d.margin(), int64(t.last)+t.margin()
		case d.last <= t.first:
			c.direct.to, c.through.from = int64(d.last)+d.margin(), int64(t.first)-t.margin()
		default:
			return
		}
		if x.known == nil {
			x.known = make([]bool, x.methods)
		}
		x.known[MethodID(key)] = true
		if changed.add(key) == len(x.changes) {
			x.changes = append(x.changes, c)
		}
	})
	x.edges = changed
}

// withCallers yields some stacks and all that are further out, each once and before those that are
// further out.
func (x *shortcuts) withCallers(some []StackID) iter.Seq[StackID] {
	all := &x.engine.seen
	all.reset()
	var few []StackID // all of them, unless there are many
	most := x.t.Len() / 16
	newest := StackID(0)
	for _, s := range some {
		newest = max(newest, s)
		for ; s != 0 && all.add(s); s = x.t.Parent(s) {
			if len(few) <= most {
				few = append(few, s)
			}
		}
	}
	slices.SortFunc(few, cmp.Compare[StackID]) // callers come before what they call; slices.Sort of these takes 13 KB of program
	return func(yield func(StackID) bool) {
		if len(few) <= most {
			for _, s := range slices.Backward(few) {
				if !yield(s) {
					return
				}
			}
			return
		}
		for s := newest; s > 0; s-- {
			if all.has(s) && !yield(s) {
				return
			}
		}
	}
}

// wrong tells whether c is not called so by a at the time t: directly, or through another one.
func (x *shortcuts) wrong(a, c FrameID, through bool, t int64) bool {
	i := x.edges.get(edgeKey(x.method(a), x.method(c)))
	switch {
	case i < 0:
		return false
	case through:
		return !x.changes[i].through.holds(t)
	}
	return !x.changes[i].direct.holds(t)
}

// untimely tells whether frames that are put above the recorded ones of b show a call at another
// time than its own: those of p and then fs, which ends with what was recorded.
func (x *shortcuts) untimely(p StackID, fs []FrameID, b *block) bool {
	if x.known == nil {
		return false
	}
	t := tickOf(b.time)
	restored := len(fs) - x.t.Depth(b.stack)
	// from the recorded frames outward, two callers ahead
	at := min(restored+1, len(fs)-1)
	left := at - restored // frames whose caller was recorded
	next := func() (f FrameID, ok bool) {
		switch {
		case at >= 0:
			f = fs[at]
			at--
		case p == 0:
			return 0, false
		default:
			p, f = x.t.Node(p)
		}
		return f, true
	}
	c, _ := next()
	a, ok := next()
	for ; ok; left-- {
		g, more := next()
		if x.known[x.method(c)] && (left < 1 && x.wrong(a, c, false, t) || more && x.wrong(g, c, true, t)) {
			return true
		}
		c, a, ok = a, g, more
	}
	return false
}

// outer returns the outermost frames of s up to the first call that was made at another time.
func (x *shortcuts) outer(s StackID, at int64) StackID {
	if x.known == nil {
		return s
	}
	t := tickOf(at)
	kept := s
	for s != 0 {
		callers, f := x.t.Node(s)
		if callers != 0 && x.known[x.method(f)] {
			g := x.t.Parent(callers)
			if x.wrong(x.t.Frame(callers), f, false, t) || g != 0 && x.wrong(x.t.Frame(g), f, true, t) {
				kept = x.t.Parent(callers) // what calls it may not be there
			}
		}
		s = callers
	}
	return kept
}

// inner returns the innermost frames of s, which ends with those of b, up to a call that was made
// at another time.
func (x *shortcuts) inner(s StackID, b *block) StackID {
	if x.known == nil || s == b.stack {
		return s
	}
	t := tickOf(b.time)
	fs := x.t.AppendFrames(nil, s)
	for from := len(fs) - x.t.Depth(b.stack) - 1; from >= 0; from-- {
		if x.known[x.method(fs[from+1])] && x.wrong(fs[from], fs[from+1], false, t) ||
			from+2 < len(fs) && x.known[x.method(fs[from+2])] && x.wrong(fs[from], fs[from+2], true, t) {
			return x.t.Add(fs[from+1:]...)
		}
	}
	return s
}
