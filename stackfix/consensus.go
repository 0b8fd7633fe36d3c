package stackfix

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// What is not known of a stack as a whole may be known in parts: the frames that all whole
// stacks begin with which hold what was recorded, and those that all stacks show right above it.
// The numbers below are those at which, of ten recordings of real programs whose stacks were
// really cut (two in a thousand of 5,000 bridged stacks with truth), hardly any part was wrong;
// cutting whole stacks on purpose does not tell them.
const (
	outerSites = 8 // call sites of a context that tells what a stack begins with
	innerSites = 16
	mostVotes  = 96 // of the stacks that hold a context, those nearest in time
	// mostSeen is how many sightings of a context are looked at for these: a thread that waits
	// shows one stack thousands of times.
	mostSeen   = 1024
	nearVotes  = 12 // of these, those that must agree in all frames; see same
	outerVotes = 20
	innerVotes = 24
	// Stacks of one thread within lookTime may be one call that was seen many times: it
	// takes fewLooks.
	lookTime = 50e6 // ns
	fewLooks = 4
	// sureWhole is the confidence that a repaired stack needs to vote as a whole one.
	sureWhole = 0.97
	// mostlyWhole is the share of the samples that may be cut so that whole stacks stand for
	// them: they are the shallow ones.
	mostlyWhole = 1.0 / 3
	// localStacks is how many whole stacks of the thread, on either side, tell what those between them begin with.
	localStacks = 64
	// mostInlined is how many frames of one stack another one may lack in a row, because
	// the same code was compiled again and calls were inlined.
	mostInlined = 2
	// A stretch of wayMethods is called by one method, or two ways lead into it: the part of the
	// stacks that know another one is more than otherWays.
	wayMethods = 6
	otherWays  = 0.05
	// partRounds is how often parts are looked for: a longer stack has another context.
	partRounds = 2
	mostFrames = 1000 // that are put above a stack at once
)

// contextSites are the lengths of contexts.
var contextSites = [...]int{outerSites, innerSites}

// contexts are the numbers of the contexts of one stack, or those that end with one frame: 1 and
// more, 0 if it has none of this length.
type contexts [len(contextSites)]int32

// A part is what is known of a stack whose root is not.
type part struct {
	base     StackID // its root frames
	baseConf float64
	stack    StackID // its recorded frames, below those that are known to call them
	conf     float64 // of these
	shortest int     // way that is known from the root to the recorded frames
}

// A witness is a stack at a time, as it votes.
type witness struct {
	glimpse
	stack StackID
	whole bool
	surrounding
}

// A spot is where a context is in a stack.
type spot struct {
	context int32
	above   StackID // what stands above it
}

// A sighting is a spot in the stack of a witness.
type sighting struct{ witness, spot int32 }

// A glimpse is of a thread at a time.
type glimpse struct {
	time   int64
	thread int
}

// consensus finds parts by what other stacks of the process show.
type consensus struct {
	*engine
	parts     map[*block]*part
	witnesses []witness         // in order of time
	fair      bool              // most samples are whole
	callers   map[uint64][]vote // of stretches of wayMethods

	// of the contexts asked in this round
	ids   numbering
	of    map[StackID]contexts // of stacks that are asked
	ends  []uint8              // by frame: which of contextSites it is the innermost one of, a bit for each
	spots []spot
	seen  [][]sighting // by context, in order of time

	// scratch
	fs, gs []FrameID
	all    assembly
	met    []uint32 // by spot: when it was met
	now    uint32
}

// newConsensus finds what is known of the stacks of w that have no answer.
func (e *engine) newConsensus(w *world) *consensus {
	c := &consensus{engine: e, parts: map[*block]*part{}}
	var open []*block
	cut := 0
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			if b := &w.runs[i].blocks[k]; !b.rooted && !b.bridged && b.stack != 0 {
				c.parts[b] = &part{stack: b.stack, conf: 1, shortest: math.MaxInt}
				open = append(open, b)
				cut += int(b.n)
			}
		}
	}
	if len(open) == 0 || e.minConf > 1 {
		return c
	}
	c.fair = float64(cut) <= mostlyWhole*float64(w.samples)
	c.call(w)
	c.learnCallers()
	c.local(w)
	for range partRounds {
		c.ask(open)
		open = slices.DeleteFunc(open, func(b *block) bool { return !c.extend(b, c.parts[b]) })
	}
	return c
}

// call collects the witnesses.
func (c *consensus) call(w *world) {
	var at []blockPlace
	for i := range w.runs {
		for b := range w.runs[i].all() {
			x := witness{glimpse: glimpse{b.time, w.runs[i].thread}, stack: b.stack, whole: b.rooted && b.conf >= sureWhole}
			if x.whole {
				x.stack = b.ext
			}
			if !b.bridged && x.stack != 0 {
				c.witnesses = append(c.witnesses, x)
				at = append(at, blockPlace{i, b.first})
			}
		}
	}
	c.surround(at)
	slices.SortStableFunc(c.witnesses, func(a, b witness) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(c.t.Depth(a.stack), c.t.Depth(b.stack)))
	})
}

// ask finds where the contexts of what is known of open blocks are seen.
func (c *consensus) ask(open []*block) {
	c.ids.reset()
	c.of, c.ends = map[StackID]contexts{}, make([]uint8, len(c.mth))
	for _, b := range open {
		s := c.parts[b].stack
		if _, ok := c.of[s]; ok {
			continue
		}
		c.fs = c.t.AppendFrames(c.fs[:0], s)
		var x contexts
		for i, k := range contextSites {
			if len(c.fs) > k { // the innermost frame is no call site
				h := uint64(0)
				for _, f := range slices.Backward(c.fs[:k]) {
					h = outward(h, f)
				}
				x[i] = int32(c.ids.add(h^uint64(i))) + 1
				c.ends[c.fs[k-1]] |= 1 << i
			}
		}
		c.of[s] = x
	}
	c.see()
}

// see finds the contexts that are asked in the stacks of the witnesses.
func (c *consensus) see() {
	ends, which, last := c.endings()
	c.seen, c.spots = make([][]sighting, c.ids.n), nil
	shows := make([][2]int32, c.t.Len()) // stack: its spots
	for i := range c.witnesses {
		x := &c.witnesses[i]
		at := &shows[x.stack]
		if at[1] == 0 {
			at[0] = int32(len(c.spots))
			// the innermost frame is no call site
			for s := last[c.t.Parent(x.stack)]; s != 0; s = last[c.t.Parent(s)] {
				for k, id := range ends[which[s]] {
					if id > 0 {
						c.spots = append(c.spots, spot{id - 1, c.t.up(s, c.t.Depth(s)-contextSites[k])})
					}
				}
			}
			at[1] = int32(len(c.spots))
		}
		for n := at[0]; n < at[1]; n++ {
			list := &c.seen[c.spots[n].context]
			*list = append(*list, sighting{int32(i), n})
		}
	}
	c.met = reach(c.met, len(c.spots))
}

// endings returns the contexts that are asked and end with a stack, and for each stack which of
// these it has and the innermost stack in it that has some, itself included.
func (c *consensus) endings() (ends []contexts, which []int32, last []StackID) {
	ends, which, last = make([]contexts, 1), make([]int32, c.t.Len()), make([]StackID, c.t.Len())
	for s := StackID(1); int(s) < len(last); s++ { // callers come before what they call
		callers, f := c.t.Node(s)
		last[s] = last[callers]
		if int(f) >= len(c.ends) || c.ends[f] == 0 {
			continue
		}
		if ids := c.ending(s, c.ends[f]); ids != (contexts{}) {
			which[s], last[s] = int32(len(ends)), s
			ends = append(ends, ids)
		}
	}
	return ends, which, last
}

// ending returns the contexts asked that end with s and have the lengths asked.
func (c *consensus) ending(s StackID, lengths uint8) (ids contexts) {
	h, n := uint64(0), 0
	for i, sites := range contextSites {
		if lengths>>i == 0 {
			break
		}
		for ; s != 0 && n < sites; n++ {
			callers, f := c.t.Node(s)
			h = outward(h, f)
			s = callers
		}
		if n == sites && lengths>>i&1 != 0 {
			ids[i] = int32(c.ids.get(h^uint64(i))) + 1
		}
	}
	return ids
}

// outward is the hash of frames, h being that of all but the outermost one.
func outward(h uint64, f FrameID) uint64 { return (h+uint64(f)+1)*mul ^ h>>29 }

// A camp is witnesses that show the same above a context.
type camp struct {
	above StackID
	n     int
	first int // witnesses of other camps that are nearer than all of these
	whole bool
}

// An assembly is the witnesses of a context that vote, the nearest first.
type assembly struct {
	camps   []camp    // the one with the nearest witness first
	votes   []ballot  // of all of them
	n       int       // witnesses
	looks   []glimpse // at which they saw it, by lookTime, up to fewLooks
	differs int       // how many of the nearest have fewLooks; more than n if all have fewer
}

// assemble calls the nearest witnesses of a context.
func (c *consensus) assemble(a *assembly, id int32, time int64, whole bool) {
	a.camps, a.votes, a.n, a.looks, a.differs = a.camps[:0], a.votes[:0], 0, a.looks[:0], math.MaxInt
	if id == 0 {
		return
	}
	c.now++
	list := c.seen[id-1]
	at := func(i int) int64 { return c.witnesses[list[i].witness].time }
	hi := sort.Search(len(list), func(i int) bool { return at(i) >= time })
	for lo, seen := hi-1, 0; a.n < mostVotes && seen < mostSeen && (lo >= 0 || hi < len(list)); seen++ {
		var s sighting
		if hi == len(list) || lo >= 0 && time-at(lo) <= at(hi)-time {
			s = list[lo]
			lo--
		} else {
			s = list[hi]
			hi++
		}
		x := &c.witnesses[s.witness]
		if whole && !x.whole || c.met[s.spot] == c.now {
			continue
		}
		c.met[s.spot] = c.now
		above := c.spots[s.spot].above
		if above == 0 && !x.whole {
			continue // what is above it was cut off
		}
		a.add(above, x.whole)
		a.votes = append(a.votes, ballot{above, time - x.time, x.surrounding})
		a.look(time-x.time, x.thread)
	}
}

// look notes when the newest witness saw the context.
func (a *assembly) look(ago int64, thread int) {
	if len(a.looks) == fewLooks {
		return
	}
	if ago < 0 { // whatever the zero of time is, looks are the same
		ago -= lookTime - 1
	}
	if l := (glimpse{ago / lookTime, thread}); !slices.Contains(a.looks, l) {
		a.looks = append(a.looks, l)
	}
	if len(a.looks) == fewLooks {
		a.differs = a.n
	}
}

// add adds a witness.
func (a *assembly) add(above StackID, whole bool) {
	a.n++
	for i := range a.camps {
		if x := &a.camps[i]; x.above == above && x.whole == whole {
			x.n++
			return
		}
	}
	a.camps = append(a.camps, camp{above, 1, a.n - 1, whole})
}

// enough tells whether at least so many witnesses vote, and not all of one call.
func (a *assembly) enough(votes int) bool { return a.n >= votes && len(a.looks) == fewLooks }

// extend looks for more of p, and tells whether it found frames that call what is known.
func (c *consensus) extend(b *block, p *part) bool {
	ids := c.of[p.stack]
	if c.outer(b, p, ids[0]); b.rooted {
		return false
	}
	for _, id := range slices.Backward(ids[:]) {
		if c.assemble(&c.all, id, b.time, false); c.all.enough(innerVotes) {
			return c.inner(p, &c.all)
		}
	}
	return false
}

// outer finds the frames that all whole stacks begin with: as the nearest ones show them,
// and the others but for what is inlined; or those on the way that the thread takes. If that is
// all, it roots b.
func (c *consensus) outer(b *block, p *part, context int32) {
	all := &c.all
	c.assemble(all, context, b.time, true)
	known := c.t.Depth(p.stack) - c.t.Depth(b.stack)
	for _, x := range all.camps {
		p.shortest = min(p.shortest, c.t.Depth(x.above)+known)
	}
	if !all.enough(outerVotes) || !c.fair || !samePhase(all.votes) {
		return
	}
	if !c.agree(b, p, all) && !c.confirm(b, p, all) && b.between != 0 {
		c.followRoute(b, p, all.votes)
	}
}

// agree takes what all votes agree in, of the nearest ones to the last frame, and reports whether
// that is all that was missing.
func (c *consensus) agree(b *block, p *part, all *assembly) bool {
	above := all.camps[0].above
	for most := mostVotes; most >= nearVotes; most /= 2 {
		near := min(most, all.n)
		if all.differs > near {
			return false
		}
		n := c.t.Depth(above)
		for _, x := range all.camps {
			inlined := mostInlined
			if x.first < near {
				inlined = 0
			}
			n = c.shared(above, n, x.above, inlined)
		}
		if c.complete(b, p, all.votes[:near], n) {
			return true
		}
		if n > c.t.Depth(p.base) {
			p.base, p.baseConf = c.t.up(above, n), unanimous(all.n)
		}
	}
	return false
}

// shared tells how many of the outermost n frames of a, in a row, b begins with too. See same.
func (c *consensus) shared(a StackID, n int, b StackID, inlined int) int {
	d := c.t.Depth(c.t.shared(a, b))
	if d >= n || a == b {
		return n
	}
	c.fs = c.t.appendInner(c.fs[:0], c.t.up(a, n), d)
	c.gs = c.t.appendInner(c.gs[:0], b, d)
	return d + c.same(c.fs, c.gs, inlined)
}

// same tells how many frames a begins with that b begins with too, by method. Either may
// lack some in a row, up to so many.
func (c *consensus) same(a, b []FrameID, inlined int) int {
	is := func(i, j int) bool { return i < len(a) && j < len(b) && c.method(a[i]) == c.method(b[j]) }
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		k := 0
		for ; !is(i+k, j) && !is(i, j+k); k++ {
			if k == inlined {
				return i
			}
		}
		if is(i+k, j) {
			i, j = i+k+1, j+1
		} else {
			i, j = i+1, j+k+1
		}
	}
	return i
}

// unanimous is how sure is what n witnesses agree in, by the rule of succession. What
// was measured is better.
func unanimous(n int) float64 { return float64(n+1) / float64(n+2) }

// inner puts frames above p as long as all witnesses show them, and nothing else in
// the recording calls what they call.
func (c *consensus) inner(p *part, a *assembly) bool {
	up := c.fs[:0]
	votes := a.n
	for len(up) < mostFrames {
		left, f := c.next(a.camps)
		if left < innerVotes {
			break
		}
		votes = left
		up = append(up, f)
	}
	slices.Reverse(up)
	c.fs = c.t.AppendFrames(up, p.stack)
	n := len(up)
	from := n
	for from > 0 && !c.called(c.fs[from:], c.method(c.fs[from-1])) {
		from--
	}
	if from == n {
		return false
	}
	p.stack = c.t.Add(c.fs[from:]...)
	p.conf = min(p.conf, unanimous(votes))
	return true
}

// next returns the frame that calls what the camps have seen so far, and how many know it;
// 0 if they disagree. Each camp goes on to it.
func (c *consensus) next(camps []camp) (votes int, f FrameID) {
	for i := range camps {
		x := &camps[i]
		switch {
		case x.n == 0:
			continue
		case x.above == 0 && x.whole:
			return 0, 0
		case x.above == 0:
			x.n = 0 // what is above was cut off
			continue
		}
		g := c.t.Frame(x.above)
		if votes > 0 && c.method(g) != c.method(f) {
			return 0, 0
		}
		if votes == 0 {
			f = g
		}
		votes += x.n
		x.above = c.t.Parent(x.above)
	}
	return votes, f
}

// learnCallers counts what calls each stretch of wayMethods.
func (c *consensus) learnCallers() {
	c.callers = map[uint64][]vote{}
	c.engine.seen.reset()
	for _, x := range c.witnesses {
		for s := c.t.Parent(x.stack); s != 0 && c.engine.seen.add(s); s = c.t.Parent(s) {
			h, a, n := uint64(0), s, 0
			for ; a != 0 && n < wayMethods; n++ {
				h = c.way(h, c.t.Frame(a))
				a = c.t.Parent(a)
			}
			if a == 0 {
				continue
			}
			m := c.method(c.t.Frame(a))
			vs := c.callers[h]
			if i := slices.IndexFunc(vs, func(v vote) bool { return v.of == m }); i >= 0 {
				vs[i].n++
			} else {
				c.callers[h] = append(vs, vote{m, 1})
			}
		}
	}
}

// way is the hash of a stretch, h being that of its inner frames.
func (c *consensus) way(h uint64, f FrameID) uint64 {
	return (h+uint64(c.method(f))+1)*mul ^ h>>29
}

// called tells whether other methods than m call what fs begins with.
func (c *consensus) called(fs []FrameID, m MethodID) bool {
	h := uint64(0)
	for _, f := range slices.Backward(fs[:min(wayMethods, len(fs))]) {
		h = c.way(h, f)
	}
	all, own := int32(0), int32(0)
	for _, v := range c.callers[h] {
		all += v.n
		if v.of == m {
			own = v.n
		}
	}
	return float64(all-own) > otherWays*float64(all)
}

// local finds what many whole stacks of the thread begin with, before and after.
func (c *consensus) local(w *world) {
	of := map[int][]*witness{}
	for i := range c.witnesses {
		if x := &c.witnesses[i]; x.whole {
			of[x.thread] = append(of[x.thread], x)
		}
	}
	for i := range w.runs {
		list := of[w.runs[i].thread]
		for k := range w.runs[i].blocks {
			b := &w.runs[i].blocks[k]
			p := c.parts[b]
			if p == nil {
				continue
			}
			at, _ := slices.BinarySearchFunc(list, b.time, func(x *witness, t int64) int { return cmp.Compare(x.time, t) })
			if at < localStacks || at+localStacks > len(list) {
				continue
			}
			base := c.t.Parent(list[at].stack)
			for _, x := range list[at-localStacks : at+localStacks] {
				base = c.t.shared(base, c.t.Parent(x.stack))
			}
			p.base, p.baseConf = base, unanimous(2*localStacks)
		}
	}
}

// part returns what is known of b, of which other evidence says that it begins with base.
func (c *consensus) part(known *bases, b *block, base StackID) part {
	p := *c.parts[b]
	if p.conf < c.minConf {
		p.stack = b.stack
	}
	if c.t.Depth(p.base) <= c.t.Depth(base) || p.baseConf < c.minConf {
		p.base, p.baseConf = base, baseConfidence
	}
	// together the parts are no longer than the shortest way
	above := c.t.Depth(p.stack) - c.t.Depth(b.stack)
	if over := c.t.Depth(p.base) + above - p.shortest; over > above {
		p.stack, p.base = b.stack, c.t.up(p.base, p.shortest)
	} else if over > 0 {
		c.fs = c.t.AppendFrames(c.fs[:0], p.stack)
		p.stack = c.t.Add(c.fs[over:]...)
	}
	p.base = known.trim(p.base, p.stack)
	return p
}
