package stackfix

import "slices"

// maxCallers is how many methods that call one context are told apart.
const maxCallers = 8

// callers tell what stands above a context in all stacks, the cut ones too. The
// prefixes of votes come from known stacks, which are shallower than the cut ones: they
// know the outermost turn of a recursion and few of its inner ones.
//
// It is as long as two lines of a cache: most contexts have few callers, and are in the first of them.
type callers struct {
	total, len int32

	// ref is the longest of the stacks above it, of which the innermost agreed frames
	// are those of all others too, as far as these go. Two go as far as second.
	stacks         int32
	ref            StackID
	agreed, second int32
	parted         bool // others do not go on as ref does

	of [maxCallers]vote // the methods that call its first frame, as many as len; noCaller: a thread begins with it

	// hash is that of the innermost hashed frames of ref, which stand below rest.
	hashed int32
	hash   uint64
	rest   StackID

	_ [5]int32
}

// noCaller stands for the caller of the first frame of a thread.
const noCaller = ^MethodID(0)

// see counts for c what stands above its context in the stack that is laid out, where it begins at
// place q, called by m; whole tells whether it is all that is above it. Of its innermost frames so
// many are known to be those of ref, as far as that goes. It returns how many are known to be those
// of the ref of a longer context at that place: this one has seen all stacks that such a one has,
// and they all agree in so many frames.
func (x *index) see(e *engine, c *callers, q int, m MethodID, whole bool, known int32) int32 {
	p := x.places[q].prefix
	if p == 0 && !whole {
		return 0 // what is above it was cut off
	}
	c.total++
	if v := c.vote(m); v != nil {
		v.n++
	} else if c.len < maxCallers {
		c.of[c.len] = vote{m, 1}
		c.len++
	}
	if p == 0 {
		return 0
	}
	depth := int32(e.t.Depth(p))
	c.stacks++
	if c.stacks == 1 {
		c.follow(p, depth)
		return depth
	}
	n := min(c.agreed, depth)
	if n > known && !x.agrees(e, c, n, int32(q)) {
		n = c.walk(e, p, n)
	}
	c.second = max(c.second, n)
	switch {
	case n < min(c.agreed, depth):
		c.agreed, c.second, c.parted = n, n, true
	case !c.parted && n < depth:
		c.follow(p, depth)
	}
	return min(c.agreed, depth)
}

// follow says that p, of so many frames, is the longest stack above the context.
func (c *callers) follow(p StackID, depth int32) {
	c.ref, c.agreed = p, depth
	c.hashed, c.hash, c.rest = 0, 0, p
}

// worthHashing is how many frames are as quickly looked at one by one.
const worthHashing = 4

// agrees reports whether the hashes of the innermost n frames before place q and of ref are known
// and the same.
func (x *index) agrees(e *engine, c *callers, n, q int32) bool {
	if n < worthHashing || n > q {
		return false
	}
	if c.hashed > n {
		c.hashed, c.hash, c.rest = 0, 0, c.ref
	}
	for ; c.hashed < n; c.hashed++ {
		callers, f := e.t.Node(c.rest)
		c.hash, c.rest = c.hash*mul+uint64(e.method(f))+1, callers
	}
	return c.hash == x.between(int(q-n), int(q))
}

// walk returns how many of the innermost n frames p has in common with ref, up to the first that differs.
func (c *callers) walk(e *engine, p StackID, n int32) int32 {
	a, b := c.ref, p
	for i := range n {
		if a == b { // and so are their callers
			return n
		}
		x, f := e.t.Node(a)
		y, g := e.t.Node(b)
		if f != g && e.method(f) != e.method(g) {
			return i
		}
		a, b = x, y
	}
	return n
}

// vote returns how often m was seen, or nil.
func (c *callers) vote(m MethodID) *vote {
	for k := range c.of[:c.len] {
		if c.of[k].of == m {
			return &c.of[k]
		}
	}
	return nil
}

// lookupCallers returns the methods that may call a window. They are valid for this round.
func (e *solver) lookupCallers(s StackID) *blend {
	x := e.idx
	w := x.window(s)
	if e.isHand {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	b := &w.callers
	if w.called == e.round+1 {
		return b
	}
	isNew := w.called == 0
	w.called = e.round + 1
	sights := int32(0)
	for _, c := range w.contexts {
		if c := x.callersOf(c); c != nil {
			sights += c.total
		}
	}
	if !isNew && sights == w.sights {
		return b
	}
	w.sights = sights
	if isNew {
		e.lend(b)
	}
	*b = blend{of: b.of[:0], p: b.p[:0], other: 1}
	above := &callers{}
	for li := len(levels) - 1; li >= 0; li-- {
		c := x.callersOf(w.contexts[li])
		if c == nil || c.total == 0 {
			continue
		}
		if c.total == above.total {
			above = c // longer contexts have heard all
			continue
		}
		e.more = e.more[:0]
		for _, v := range c.of[:c.len] {
			if longer := above.vote(v.of); longer != nil {
				v.n -= longer.n
			}
			if v.n > 0 {
				e.more = append(e.more, v)
			}
		}
		b.add(c.total-above.total, e.more)
		above = c
	}
	if isNew {
		e.settle(b)
	}
	return b
}

// unseenCaller is the share that a method has of the calls by methods that no context shows: as
// if there were fifty of them. Set by hand.
const unseenCaller = 0.02

// share is how likely m is the caller.
func (b *blend) share(m MethodID) float64 { return b.get(m) + unseenCaller*b.other }

// most is how likely the likeliest caller is.
func (b *blend) most() float64 {
	most := 0.0
	for _, p := range b.p {
		most = max(most, p)
	}
	return most + unseenCaller*b.other
}

// callerOf returns what calls the frames above which p stands.
func (e *engine) callerOf(p StackID) MethodID {
	if p == 0 {
		return noCaller
	}
	return e.method(e.t.Frame(p))
}

// callerShare is how likely the innermost method of p is what calls the window s.
func (e *solver) callerShare(s, p StackID) float64 {
	return e.lookupCallers(s).share(e.callerOf(p))
}

// callersOf returns the callers of a context of a window, or nil.
func (x *index) callersOf(context int32) *callers {
	if context == 0 {
		return nil
	}
	if c := x.votes[context-1].callers; c != 0 {
		return &x.callers[c-1]
	}
	return nil
}

// Set by hand: leastStacks is how many stacks must hold a context so that they can agree, and
// knownByMany how many are more than a few, which is one of the measures of evidence.
const (
	leastStacks = 2
	knownByMany = 4
)

// fewBits is the least information that a context needs so that what stands above it
// in other stacks is put above it in this one. Set by hand.
const fewBits = 6

// copyCallers puts back what stands above the first frames of blk wherever they were
// seen, in cut stacks too: as far as all these stacks agree.
func (e *solver) copyCallers(blk *block) bool {
	x := e.idx
	w := x.window(blk.ext)
	var best *callers
	level, unanimous := 0, 0
	for li := len(levels) - 1; li >= 0; li-- {
		c := x.callersOf(w.contexts[li])
		if c == nil || c.stacks == 0 {
			continue
		}
		if c.len != 1 || c.of[0].of == noCaller {
			break
		}
		if best == nil {
			best, level = c, levels[li]
		}
		unanimous = levels[li]
	}
	if best == nil || best.stacks < leastStacks {
		return false
	}
	bits, least := e.contextBits(level), e.contextBits(unanimous)
	if bits < fewBits {
		return false
	}
	up := e.fo[:0]
	for s := best.ref; len(up) < int(best.second) && s != 0; s = e.t.Parent(s) {
		up = append(up, e.t.Frame(s))
	}
	e.fo = up
	if len(up) == 0 {
		return false
	}
	slices.Reverse(up)
	p := e.t.Join(0, up)
	return e.prepend(blk, p, e.above(byContext, blk, p, bits, bits-least, best.stacks >= knownByMany), 1)
}

// contextBits is the surprise of the calls among the first n frames of e.o.
func (e *solver) contextBits(n int) float64 {
	b := 0.0
	for i := 1; i < n; i++ {
		b += e.m.methodCalls.surprise(e.method(e.o[i-1]), e.method(e.o[i]))
	}
	return b
}
