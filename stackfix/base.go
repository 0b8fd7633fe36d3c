package stackfix

import (
	"math"
	"slices"
)

// fewCalls is how many known calls of a method it takes to believe that what stands
// above all of them stands above one more. Over the recordings of the corpus, cut at 20
// to 80 frames, sixteen never misled; of eight, three answers in ten thousand were wrong.
const fewCalls = 16

// baseConfidence is the least share of the bases found in the trial that must be right:
// frames in front of a bridge are claimed where the bridge says that nothing is known.
const baseConfidence = 0.995

// fewKnown is how many different known stacks of a run it takes to believe that what
// they share is shared by the others.
const fewKnown = 8

// bases finds the base of a stack whose missing frames cannot be known: those of its
// root frames that can. They are open in the nearest known stacks before and after it,
// and either all known stacks of the run share them, or no call of what the stack goes
// on with is known that does not stand under them.
type bases struct {
	*engine
	calls [2][]calls // by method and by frame
	least int32      // known calls that are believed
	memo  map[[2]StackID]StackID
	// scratch
	out   []StackID
	o, fs []FrameID
}

// calls are the known calls of a method, or of one frame of it.
type calls struct {
	n     int32
	above StackID // the root frames that all of them stand under
	asked bool    // a bridged stack holds it
	head  bool    // a bridged stack begins with it
}

// A callTable has the calls that bases know. To begin anew costs what the last ones asked for, and not
// what all processes have.
type callTable struct {
	of     [2][]calls // by method and by frame
	asked  []FrameID
	direct []directCall
	below  []uint32  // of a caller: 1 + the newest of its direct calls; 0: it has none
	used   []StackID // callers that have some
	told   numbering // those by callers that were asked for: the caller, the method
}

const isTold = math.MaxUint32 // in below: the direct calls are in told

// A directCall is a known call of a head.
type directCall struct {
	m    MethodID
	next uint32 // 1 + an older one of the same caller; 0: there is none
}

// begin forgets the calls, and makes room for those of e.
func (t *callTable) begin(e *engine) [2][]calls {
	for _, f := range t.asked {
		t.of[0][e.method(f)], t.of[1][f] = calls{}, calls{}
	}
	t.asked, t.direct = t.asked[:0], t.direct[:0]
	t.told.reset()
	for _, s := range t.used {
		t.below[s] = 0
	}
	t.used, t.below = t.used[:0], roomFor(t.below, e.t.Len())
	t.of[0], t.of[1] = reach(t.of[0], e.methods), reach(t.of[1], len(e.mth))
	return t.of
}

// ask has the calls of f and of its method counted from here on.
func (t *callTable) ask(f FrameID, m MethodID) {
	if c := &t.of[1][f]; !c.asked {
		c.asked, t.of[0][m].asked = true, true
		t.asked = append(t.asked, f)
	}
}

// add notes a known call of m, which is a head.
func (t *callTable) add(callers StackID, m MethodID) {
	last := &t.below[callers]
	if *last == 0 {
		t.used = append(t.used, callers)
	}
	t.direct = append(t.direct, directCall{m, *last})
	*last = uint32(len(t.direct))
}

// has tells whether a known call of m, which is a head, is by that stack. Few stacks are asked for.
func (t *callTable) has(callers StackID, m MethodID) bool {
	if int(callers) >= len(t.below) || t.below[callers] == 0 {
		return false
	}
	if i := t.below[callers]; i != isTold {
		for ; i > 0; i = t.direct[i-1].next {
			t.told.add(edgeKey(callers, t.direct[i-1].m))
		}
		t.below[callers] = isTold
	}
	return t.told.get(edgeKey(callers, m)) >= 0
}

// known tells whether all of b is known.
func (b *block) known() bool { return b.rooted && !b.bridged && b.ext != 0 }

// newBases learns from the known stacks of w. Those that e made before are of no use from then on.
func (e *engine) newBases(w *world) *bases {
	b := &bases{engine: e, least: e.least, memo: map[[2]StackID]StackID{}}
	b.calls = e.called.begin(e)
	seen := &e.seen
	seen.reset()
	asked := false
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			x := &w.runs[i].blocks[k]
			if x.rooted {
				continue
			}
			asked = true
			for s := x.stack; s != 0 && seen.add(s); s = e.t.Parent(s) {
				f := e.t.Frame(s)
				e.called.ask(f, e.method(f))
				if e.t.Parent(s) == 0 {
					b.calls[0][e.method(f)].head = true
				}
			}
		}
	}
	if !asked {
		return b
	}
	seen.reset()
	for i := range w.runs {
		for x := range w.runs[i].all() {
			if !x.known() || seen.has(x.ext) {
				continue
			}
			way := ancestor{t: e.t}
			for s := x.ext; s != 0 && seen.add(s); {
				callers, f := e.t.Node(s)
				s = callers
				m := e.method(f)
				if !b.calls[0][m].asked {
					continue // nor is the frame
				}
				b.calls[0][m].add(&way, callers)
				b.calls[1][f].add(&way, callers)
				if b.calls[0][m].head {
					e.called.add(callers, m)
				}
			}
		}
	}
	return b
}

// An ancestor is what a stack and its callers have as their outermost frames, so many of them: it
// is asked for the same number again and again.
type ancestor struct {
	t     *climber
	n     int
	stack StackID
}

// of returns the stack of the outermost n frames of s, which is the stack that was asked for before
// or one of its callers; s if it has no more.
func (x *ancestor) of(s StackID, n int) StackID {
	if x.t.Depth(s) <= n {
		return s
	}
	if x.n != n {
		x.n, x.stack = n, x.t.up(s, n)
	}
	return x.stack
}

// add counts a call by callers.
func (c *calls) add(way *ancestor, callers StackID) {
	if !c.asked {
		return
	}
	c.n++
	switch {
	case c.n == 1:
		c.above = callers
	case c.above != 0:
		if s := way.of(callers, way.t.Depth(c.above)); s != c.above {
			c.above = way.t.shared(c.above, s)
		}
	}
}

// of returns the base of each block of r, valid until the next call.
func (b *bases) of(r *run) []StackID {
	b.out = append(b.out[:0], make([]StackID, len(r.blocks))...)
	root := b.root(r)
	b.gaps(r, func(k int, shared StackID) {
		x := &r.blocks[k]
		base := b.under(x.stack, shared)
		if b.t.Depth(root) > b.t.Depth(base) {
			base = root
		}
		b.out[k] = b.trim(base, x.stack)
		if b.out[k] == 0 && r.steady() {
			b.out[k] = b.trim(x.outermost, x.stack)
		}
	})
	return b.out
}

// gaps calls f for each block of r that is not known, with the root frames that the
// nearest known stacks before and after it share.
func (b *bases) gaps(r *run, f func(k int, shared StackID)) {
	last := -1
	for k := range r.blocks {
		if !r.blocks[k].known() {
			continue
		}
		if last >= 0 && k > last+1 {
			s := b.t.shared(r.blocks[last].ext, r.blocks[k].ext)
			for j := last + 1; j < k; j++ {
				if !r.blocks[j].rooted {
					f(j, s)
				}
			}
		}
		last = k
	}
}

// A root is the root frames that all known stacks of a run share.
type root struct {
	stack StackID
	some  []StackID // up to fewKnown different stacks
}

// share takes in that s is a known stack.
func (r *root) share(t *climber, s StackID) {
	switch {
	case len(r.some) == 0:
		r.stack = s
	case r.stack != s:
		r.stack = t.shared(r.stack, s)
	}
	if len(r.some) < fewKnown && !slices.Contains(r.some, s) {
		r.some = append(r.some, s)
	}
}

// steady tells whether what a thread begins with hardly ever changes, as far as known stacks show:
// what the stacks before and after one begin with, at whatever call there, it begins with too. It
// is so where that is the entry point of a program or of a thread, which stays open, and not where
// native code calls in again and again.
func (r *run) steady() bool {
	return r.steps >= fewCalls && float64(r.changes) <= (1-baseConfidence)*float64(r.steps)
}

// takeBackOthers takes back the answers that begin as other threads do. To refuse them while
// answers are looked for leads to others that are wrong: in an MVC service, cut at 20 frames,
// eleven.
func (e *engine) takeBackOthers(w *world) {
	for i := range w.runs {
		r := &w.runs[i]
		for k := range r.blocks {
			b := &r.blocks[k]
			if b.rooted && !b.given && !b.bridged && e.beginsOtherwise(w, r, b, b.ext) {
				b.takeBack()
			}
		}
	}
}

// beginsOtherwise tells whether s, what b of r may begin with, begins as no stack of its thread
// does around it, or as those of another thread do.
func (e *engine) beginsOtherwise(w *world, r *run, b *block, s StackID) bool {
	if s == 0 {
		return false
	}
	return b.outermost != 0 && r.steady() && e.method(e.t.Frame(b.outermost)) != e.method(e.t.Frame(e.t.up(s, 1))) ||
		e.dwellings(w).strange(r.thread, s)
}

// root returns the root frames that all known stacks of r share.
func (b *bases) root(r *run) StackID {
	all := r.root
	all.some = slices.Clip(all.some)
	for k := range r.blocks {
		if x := &r.blocks[k]; x.known() && !x.given {
			all.share(b.t, x.ext)
		}
	}
	if len(all.some) < fewKnown {
		return 0
	}
	return all.stack
}

// under returns those of the root frames shared that all known calls of what s begins
// with stand under.
func (b *bases) under(s, shared StackID) StackID {
	if shared == 0 {
		return 0
	}
	key := [2]StackID{s, shared}
	base, ok := b.memo[key]
	if !ok {
		b.o = b.t.AppendFrames(b.o[:0], s)
		for i, table := range b.calls {
			at := shared
			for _, f := range b.o {
				c := &table[[2]uint32{b.method(f), f}[i]]
				if c.n == 0 {
					continue
				}
				// what is known of a frame further in counts only if all of the outer
				// ones agree: a leaf may be called from anywhere
				if at = b.t.shared(at, c.above); at == 0 || c.n >= b.least {
					if b.t.Depth(at) > b.t.Depth(base) {
						base = at
					}
					break
				}
			}
		}
		b.memo[key] = base
	}
	return base
}

// trim takes frames off base until it cannot reach into s, nor right up to it: the
// bridge stands for at least one frame.
func (b *bases) trim(base, s StackID) StackID {
	if base == 0 {
		return 0
	}
	b.o = b.t.AppendFrames(b.o[:0], s)
	b.fs = b.t.AppendFrames(b.fs[:0], base)
	for fs := b.fs; b.overlap(fs, b.o); fs = fs[:len(fs)-1] {
		base = b.t.Parent(base)
	}
	if b.called.has(base, b.method(b.o[0])) {
		base = b.t.Parent(base)
	}
	return base
}

// overlap tells whether the end of fs may be the beginning of o. The innermost frame
// of fs may be at another call there.
func (b *bases) overlap(fs, o []FrameID) bool {
	last := len(fs) - 1
	for p := max(0, len(fs)-len(o)); p <= last; p++ {
		if slices.Equal(fs[p:last], o[:last-p]) && b.method(fs[last]) == b.method(o[last-p]) {
			return true
		}
	}
	return false
}

// learnBases returns how many known calls are believed in this recording: as many as
// make all but few of the bases in the trial right.
func (e *engine) learnBases(v *world) int32 {
	b := e.newBases(v)
	for ; b.least < 1<<20; b.least *= 2 {
		clear(b.memo)
		judged := map[[2]StackID]bool{}
		wrong := 0
		for i := range v.runs {
			b.gaps(&v.runs[i], func(k int, shared StackID) {
				x := &v.runs[i].blocks[k]
				base := b.trim(b.under(x.stack, shared), x.stack)
				key := [2]StackID{x.truth, base}
				if base == 0 || !x.whole || judged[key] {
					return
				}
				judged[key] = true
				if !e.begins(x.truth, base) || e.t.Depth(base)+e.t.Depth(x.stack) >= e.t.Depth(x.truth) {
					wrong++
				}
			})
		}
		if float64(wrong) <= (1-baseConfidence)*float64(len(judged)) {
			break
		}
	}
	return b.least
}

// begins tells whether the methods of base are the outermost ones of s.
func (e *engine) begins(s, base StackID) bool {
	s = e.t.up(s, e.t.Depth(base))
	for s != base {
		if s == 0 || base == 0 || e.method(e.t.Frame(s)) != e.method(e.t.Frame(base)) {
			return false
		}
		s, base = e.t.Parent(s), e.t.Parent(base)
	}
	return true
}
