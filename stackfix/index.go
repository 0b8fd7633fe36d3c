package stackfix

import (
	"slices"
	"sync"
)

// maxContext is the longest context, in frames.
const maxContext = 64

// levels are the lengths of context that the index knows.
var levels = [...]int{1, 2, 4, 8, 16, 32, 48, maxContext}

// callerLevels is of how many of the levels, from the shortest on, callers are counted.
const callerLevels = 6

// longerThan tells the shortest of the levels that is longer than so many frames.
var longerThan = func() (t [maxContext]uint8) {
	for n := range t {
		for levels[t[n]] <= n {
			t[n]++
		}
	}
	return t
}()

// maxVotes is how many prefixes of one context are told apart.
const maxVotes = 16

// votes are the prefixes that stand before one context: a stretch of index.p and index.n.
type votes struct {
	at       int32
	len, cap uint8 // prefixes
	many     bool  // more than one context of the next length begins with this one
	total    int32
	callers  int32  // 1 + its place in index.callers, 0 if they are not counted
	longer   int32  // 1 + the first context of the next length that begins with this one
	key      uint64 // of longer
}

// A place is a frame of a stack in which contexts are looked for.
type place struct {
	h      uint64 // hash of the methods from here on to the end of the stack
	method MethodID
	prefix StackID
}

// An index says which prefixes stand before the first frames of a cut stack in the
// known stacks of the recording. It grows from round to round: by stacks that were
// repaired, and by contexts of stacks that were made longer.
type index struct {
	contexts numbering // hashes
	votes    []votes   // of each context
	p        []StackID // prefixes
	n        []int32   // how often each stands before its context
	callers  []callers
	pow      []uint64 // powers of mul

	windows [][]window // windowsAtOnce in each: they are large, and stay where they are
	stacks  numbering  // of windows
	heads   []head     // by method
	isHead  []heading  // by frame
	counted []known
	fresh   []StackID // known stacks not counted yet
	seen    []known   // cut stacks whose callers were counted
	marks   marks

	places []place // scratch
}

// A vote is how many donors of a context have a prefix, or a method as caller.
type vote struct {
	of uint32
	n  int32
}

// A head is a method that windows begin with.
type head struct {
	context  int32 // 1 + the number of the context of this frame only; 0: no window begins with it
	round    int32 // 1 + the newest round that brought contexts that begin with it
	shortest int32 // of these: its place in levels
}

// A heading says of a frame what its method is head of.
type heading uint8

const (
	isHead    heading = 1 << iota // windows begin with it
	isNewHead                     // contexts that are new in this round do
)

// A window is a cut stack that is looked up: its contexts, and what they tell.
type window struct {
	mu       sync.Mutex         // of all but contexts and open, while hands look up
	contexts [len(levels)]int32 // 1 + number; 0 if the stack is too short
	prefixes blend
	asked    int   // 1 + the round of prefixes
	donors   int32 // of its contexts, when these were worked out: as long as there are no more they are the same
	callers  blend // methods
	called   int   // 1 + the round of callers
	sights   int32 // of callers of its contexts, when these were worked out
	open     int   // 1 + the newest round in which it was that of an open block
}

// A mark tells of a stack how it was met.
type mark uint8

const (
	isKnown mark = 1 << iota // counted, or among fresh
	through                  // a counted stack goes through it
	under                    // a cut stack whose callers were counted goes through it
)

const windowsAtOnce = 128

// window returns the window of s.
func (x *index) window(s StackID) *window { return x.windowAt(x.stacks.get(uint64(s))) }

// windowAt returns that of stack number i.
func (x *index) windowAt(i int) *window { return &x.windows[i/windowsAtOnce][i%windowsAtOnce] }

// A known stack, or what is known of one, whose outermost frames were counted before it.
type known struct {
	s        StackID
	old      int
	recorded bool // nothing was put back
}

// reset forgets all and keeps the memory.
func (x *index) reset() {
	x.contexts.reset()
	x.votes, x.p, x.n = x.votes[:0], x.p[:0], x.n[:0]
	x.counted, x.fresh = x.counted[:0], x.fresh[:0]
	x.stacks.reset()
	clear(x.heads)
	x.callers, x.seen = x.callers[:0], x.seen[:0]
	x.marks.reset()
}

// recounts is in how many rounds of a stage, counted from 0, all stacks are searched for contexts that
// are new. Later ones bring few, which stand in stacks that were found as late or nowhere.
// Those of a trial are not searched again: it asks how often answers are right, not for all
// that there are.
const recounts = 2

// updateIndex looks in all known stacks for the first frames of the cut ones.
func (e *solver) updateIndex() {
	x := e.idx
	x.powers(maxContext + 1)
	x.marks.reach(e.t.Len())
	x.heads = reach(x.heads, len(e.m.methods))

	old := int32(len(x.votes))
	cut := len(x.seen)
	for i := range e.runs {
		r := &e.runs[i]
		for _, k := range r.open {
			s := r.blocks[k].ext
			before := x.stacks.n
			i := x.stacks.add(uint64(s))
			if i == before {
				e.addWindow(i, s)
				if e.round == 0 {
					x.seen = append(x.seen, known{s, e.walk(s, under), true})
				}
			}
			x.windowAt(i).open = e.round + 1
		}
	}
	e.markHeads()
	if len(x.votes) > int(old) && e.round < e.began+recounts && e.cal.taught {
		for _, c := range x.counted {
			e.count(c, true, old)
		}
		for _, c := range x.seen[:cut] {
			e.count(c, false, old)
		}
	}
	for _, c := range x.seen[cut:] {
		e.count(c, false, 0)
	}
	fresh := x.fresh
	x.fresh = x.fresh[:0]
	for _, s := range fresh {
		if i := x.stacks.get(uint64(s)); i >= 0 && x.windowAt(i).open == e.round+1 {
			x.fresh = append(x.fresh, s) // as long as it is a question it is no answer
			continue
		}
		c := known{s, e.walk(s, through), e.round == 0}
		x.counted = append(x.counted, c)
		e.count(c, true, 0)
	}
}

// markHeads notes which frames windows begin with.
func (e *solver) markHeads() {
	x := e.idx
	x.isHead = reach(x.isHead, len(e.mth))
	for f, m := range e.mth {
		at := &x.heads[m]
		is := heading(0)
		if at.context != 0 {
			is = isHead
			if at.round == int32(e.round)+1 {
				is |= isNewHead
			}
		}
		x.isHead[f] = is
	}
}

// walk marks s and what it goes through, and returns how many of its frames were
// marked before.
func (e *solver) walk(s StackID, as mark) int {
	x := e.idx
	for ; s != 0 && !x.marks.has(s, as); s = e.t.Parent(s) {
		x.marks.set(s, as)
	}
	return e.t.Depth(s)
}

// addKnown makes s evidence from the next round on.
func (x *index) addKnown(s StackID) {
	x.marks.reach(int(s) + 1)
	if !x.marks.has(s, isKnown) {
		x.marks.set(s, isKnown)
		x.fresh = append(x.fresh, s)
	}
}

// addWindow makes the contexts of s known, which is stack number i.
func (e *solver) addWindow(i int, s StackID) {
	x := e.idx
	if i/windowsAtOnce == len(x.windows) {
		x.windows = append(x.windows, make([]window, windowsAtOnce))
	}
	w := x.windowAt(i)
	*w = window{}
	e.fo = e.t.AppendFrames(e.fo[:0], s)
	at := &x.heads[e.method(e.fo[0])]
	round := int32(e.round) + 1
	h, n := uint64(0), 0
	var shorter *votes
	for li, k := range levels {
		if k > len(e.fo) {
			break
		}
		for ; n < k; n++ {
			h += (uint64(e.method(e.fo[n])) + 1) * x.pow[n]
		}
		c := x.contexts.add(h)
		if c == len(x.votes) {
			if at.round != round {
				at.round, at.shortest = round, int32(li)
			}
			at.shortest = min(at.shortest, int32(li))
			if shorter != nil {
				if shorter.longer == 0 {
					shorter.longer, shorter.key = int32(c)+1, h
				} else {
					shorter.many = true
				}
			}
			x.votes = append(x.votes, votes{})
			if li < callerLevels {
				x.callers = append(x.callers, callers{})
				x.votes[c].callers = int32(len(x.callers))
			}
		}
		w.contexts[li] = int32(c) + 1
		shorter = &x.votes[c]
	}
	at.context = w.contexts[0]
}

// count looks in c for the contexts from number first on: all, or those of this round.
// What stands before them in a whole stack is a vote.
func (e *solver) count(c known, whole bool, first int32) {
	x := e.idx
	D := e.t.Depth(c.s)
	// what ends in the old frames was counted with an earlier stack
	begin := max(0, c.old+1-maxContext)
	// most stacks hold little that a context begins with
	asked := isHead
	if first > 0 {
		asked = isNewHead
	}
	last, s := D, c.s // the innermost such frame
	for ; last > begin; last-- {
		callers, f := e.t.Node(s)
		if x.isHead[f]&asked != 0 {
			break
		}
		s = callers
	}
	if last == begin {
		return
	}
	from := last + maxContext - 1 // and what is further in is in no context that begins with it
	if from < D {
		s, D = e.t.up(c.s, from), from
	} else {
		s = c.s
	}
	n := D - begin
	x.lay(e.engine, s, n)
	ps := x.places
	old := c.old - begin
	outermost := noCaller // what calls the first of the places
	if n > 0 {
		outermost = e.callerOf(ps[0].prefix)
	}
	most := len(levels)
	if !whole {
		most = callerLevels // longer ones have votes only
	}
	for q := range ps[:last-begin] {
		at := &ps[q]
		head := &x.heads[at.method]
		if head.context == 0 {
			continue
		}
		li := 0
		if first > 0 {
			if head.round != int32(e.round)+1 {
				continue
			}
			li = int(head.shortest)
		}
		if q < old {
			li = max(li, int(longerThan[old-q]))
		}
		caller := outermost
		if q > 0 {
			caller = ps[q-1].method
		}
		var v *votes
		known := int32(0)
		for ; li < most && levels[li] <= n-q; li++ {
			i := head.context - 1
			if li > 0 {
				k := levels[li]
				h := x.between(q, q+k)
				switch {
				case v == nil || v.many && v.key != h:
					i = int32(x.contexts.get(h))
				case v.key == h:
					i = v.longer - 1
				default:
					i = -1
				}
			}
			if i < 0 {
				break // and no longer one is known
			}
			v = &x.votes[i]
			if i < first {
				continue
			}
			if whole {
				x.vote(v, at.prefix)
			}
			if c.recorded && v.callers != 0 {
				known = x.see(e.engine, &x.callers[v.callers-1], q, caller, whole, known)
			}
		}
	}
}

// lay lays the innermost n frames of s out in x.places, and one place more for its end.
func (x *index) lay(e *engine, s StackID, n int) {
	x.powers(n + 1)
	x.places = slices.Grow(x.places[:0], n+1)[:n+1]
	ps := x.places
	h := uint64(0)
	ps[n].h = 0
	for i := n - 1; i >= 0; i-- {
		callers, f := e.t.Node(s)
		m := e.method(f)
		h = hashOn(h, m)
		ps[i] = place{h, m, callers}
		s = callers
	}
}

// between is the hash of the methods from place a to before place b.
func (x *index) between(a, b int) uint64 { return x.places[a].h - x.places[b].h*x.pow[b-a] }

// powers makes sure that n powers are known.
func (x *index) powers(n int) {
	if len(x.pow) == 0 {
		x.pow = append(x.pow, 1)
	}
	for len(x.pow) < n {
		x.pow = append(x.pow, x.pow[len(x.pow)-1]*mul)
	}
}

// vote counts p before a context.
func (x *index) vote(v *votes, p StackID) {
	v.total++
	at, n := int(v.at), int(v.len)
	if k := slices.Index(x.p[at:at+n], p); k >= 0 {
		x.n[at+k]++
		return
	}
	if v.len == v.cap {
		if v.cap == maxVotes {
			return
		}
		// a stretch that is full moves to the end
		from := at
		at = len(x.p)
		v.at, v.cap = int32(at), max(1, 4*v.cap)
		if more := at + int(v.cap); more > cap(x.p) { // by half as much it would be copied again and again
			x.p, x.n = slices.Grow(x.p, more), slices.Grow(x.n, more)
		}
		x.p = append(x.p, x.p[from:from+n]...)
		x.n = append(x.n, x.n[from:from+n]...)
		x.p, x.n = reach(x.p, at+int(v.cap)), reach(x.n, at+int(v.cap))
	}
	x.p[at+n], x.n[at+n] = p, 1
	v.len++
}

// reach returns s with at least n elements, the new ones zero.
func reach[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	old := len(s)
	s = slices.Grow(s, n-old)[:n]
	clear(s[old:])
	return s
}

// A blend is how likely answers are by contexts of all lengths, from the longest down. A
// level speaks for the donors that longer ones have not heard.
type blend struct {
	of    []uint32  // answers
	p     []float64 // of each: its probability
	other float64   // that of answers that were never seen
}

// add takes in a level: total donors, of which these say what more tells.
func (b *blend) add(total int32, more []vote) {
	if total <= 0 {
		return
	}
	distinct := max(len(more), 1)
	escape := float64(distinct) / float64(int(total)+distinct)
	for _, v := range more {
		k := slices.Index(b.of, v.of)
		if k < 0 {
			k = len(b.of)
			b.of = append(b.of, v.of)
			b.p = append(b.p, 0)
		}
		b.p[k] += b.other * (1 - escape) * float64(v.n) / float64(total)
	}
	b.other *= escape
}

// get returns the probability of an answer.
func (b *blend) get(of uint32) float64 {
	if k := slices.Index(b.of, of); k >= 0 {
		return b.p[k]
	}
	return 0
}

// lookup returns the prefixes of a window. They are valid for this round.
func (e *solver) lookup(s StackID) *blend {
	x := e.idx
	w := x.window(s)
	if e.isHand {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	b := &w.prefixes
	if w.asked == e.round+1 {
		return b
	}
	w.asked = e.round + 1
	isNew := b.of == nil
	donors := int32(0)
	for _, c := range w.contexts {
		if c > 0 {
			donors += x.votes[c-1].total
		}
	}
	if !isNew && donors == w.donors {
		return b
	}
	w.donors = donors
	if isNew {
		e.lend(b)
	}
	*b = blend{of: b.of[:0], p: b.p[:0], other: 1}
	above := &votes{}
	for li := len(levels) - 1; li >= 0; li-- {
		if w.contexts[li] == 0 {
			continue
		}
		v := &x.votes[w.contexts[li]-1]
		if v.total == 0 {
			continue
		}
		if v.total == above.total {
			above = v // longer contexts have heard all
			continue
		}
		e.more = e.more[:0]
		for i := v.at; i < v.at+int32(v.len); i++ {
			if n := x.n[i] - x.count(above, x.p[i]); n > 0 {
				e.more = append(e.more, vote{x.p[i], n})
			}
		}
		b.add(v.total-above.total, e.more)
		above = v
	}
	if isNew {
		e.settle(b)
	}
	return b
}

// lend gives b room for all that contexts of all lengths may tell.
func (e *solver) lend(b *blend) {
	if most := maxVotes * len(levels); len(e.spareOf) < most {
		e.spareOf, e.spareP = make([]uint32, 32*most), make([]float64, 32*most)
	}
	b.of, b.p = e.spareOf, e.spareP
}

// settle leaves b what it needs of the room that it was lent.
func (e *solver) settle(b *blend) {
	n := len(b.of)
	e.spareOf, e.spareP = e.spareOf[n:], e.spareP[n:]
	b.of, b.p = b.of[:n:n], b.p[:n:n]
}

// count returns how often p was counted in v.
func (x *index) count(v *votes, p StackID) int32 {
	if k := slices.Index(x.p[v.at:v.at+int32(v.len)], p); k >= 0 {
		return x.n[int(v.at)+k]
	}
	return 0
}
