package stackfix

import (
	"math"
	"slices"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// solver finds the missing frames of one world.
type solver struct {
	*engine
	*world
	rows   []row
	last   map[int64]int // block: its newest row
	m      model
	retain retention
	idx    index
	round  int
	// of this round and the thread of local
	answers memo

	// scratch
	fo      []FrameID
	o       []FrameID
	calls   surprises // of o
	tCalls  surprises
	cs      []cand
	ps      []StackID
	ends    []prefixEnd
	outer   []StackID
	sides   [4]side
	local   threadTree
	logs    logs
	stamp   uint32
	stamps  []uint32
	doubtOf []float32 // by stack: what doubt says; 0: not worked out
	doubted []StackID // those of doubtOf that are not 0
}

func newSolver(tree *stacks.Tree, frames Frames, opts Options) *solver {
	return &solver{engine: newEngine(tree, frames, opts)}
}

// solve repairs the blocks of the world. What it needed for another world before is
// used again.
func (e *solver) solve() {
	e.rows = nil
	e.idx.reset()
	e.local.reset()
	e.last = map[int64]int{}
	e.answers.reset()
	e.learnModel()
	e.retain.begin(&e.pairs)
	for i := range e.runs {
		r := &e.runs[i]
		for b := range r.all() {
			if b.rooted {
				e.idx.addKnown(b.ext)
			}
		}
		for k := range r.blocks {
			if r.blocks[k].rooted {
				e.retain.count(e.t, r.blocks, k)
			} else {
				r.open = append(r.open, int32(k))
			}
		}
	}
	for e.round = range 8 {
		e.retain.finish()
		e.updateIndex()
		if e.pass() == 0 {
			break
		}
	}
}

// found makes evidence of block k of r, whose whole stack was found.
func (e *solver) found(r *run, k int) {
	e.retain.count(e.t, r.blocks, k)
	e.retain.count(e.t, r.blocks, k+1)
	e.idx.addKnown(r.blocks[k].ext)
	e.local.fresh = append(e.local.fresh, r.blocks[k].ext)
}

// model holds how often frames call each other, and methods.
type model struct {
	frameCalls, methodCalls callCounts
	methods                 []methodModel
	total                   int
}

// callCounts counts calls from one frame to another, or from one method to another.
type callCounts struct {
	ids  numbering // of pairs: edgeKey
	n    []int32   // of each pair
	from []int32   // of each caller
	bits []float64 // surprise of each pair
}

func (c *callCounts) reset(callers int) {
	c.ids.reset()
	c.n = c.n[:0]
	c.from = slices.Grow(c.from[:0], callers)[:callers]
	clear(c.from)
}

func (c *callCounts) add(a, b uint32) {
	i := c.ids.add(edgeKey(a, b))
	if i == len(c.n) {
		c.n = append(c.n, 0)
	}
	c.n[i]++
	c.from[a]++
}

// count returns how often a calls b.
func (c *callCounts) count(a, b uint32) int32 {
	if i := c.ids.get(edgeKey(a, b)); i >= 0 {
		return c.n[i]
	}
	return 0
}

// finish works out surprises.
func (c *callCounts) finish() {
	c.bits = slices.Grow(c.bits[:0], len(c.n))[:len(c.n)]
	c.ids.each(func(key uint64, i int) {
		c.bits[i] = c.unlikely(c.n[i], uint32(key>>32))
	})
}

func (c *callCounts) unlikely(n int32, caller uint32) float64 {
	return -math.Log2((float64(n) + 0.5) / (float64(c.from[caller]) + 1))
}

// surprise is -log2 of how often a calls b of all it calls.
func (c *callCounts) surprise(a, b uint32) float64 {
	if i := c.ids.get(edgeKey(a, b)); i >= 0 {
		return c.bits[i]
	}
	return c.unlikely(0, a)
}

// A methodModel tells of one method how often it was seen, and by vote which method,
// and which frame of it, calls it most.
type methodModel struct {
	n      int32
	called int32 // of these: with a caller
	caller majority
}

// majority finds what more than half of its votes are for.
type majority struct {
	f     FrameID
	m     MethodID
	score int32 // of m
	fs    int32 // of f
}

func (v *majority) vote(f FrameID, m MethodID) {
	switch {
	case v.score == 0:
		v.m, v.score, v.f, v.fs = m, 1, f, 1
		return
	case v.m != m:
		v.score--
		return
	}
	v.score++
	switch {
	case v.fs == 0:
		v.f, v.fs = f, 1
	case v.f == f:
		v.fs++
	default:
		v.fs--
	}
}

// callerSurprise is -log2 of how often a is what calls b: more than 0.
func (m *model) callerSurprise(a, b MethodID) float64 {
	return -math.Log2((float64(m.methodCalls.count(a, b)) + 0.1) / (float64(m.methods[b].called) + 0.2))
}

func (e *solver) learnModel() {
	for _, s := range e.doubted {
		e.doubtOf[s] = 0
	}
	e.doubted = e.doubted[:0]
	m := &e.m
	m.total = 0
	m.frameCalls.reset(len(e.mth))
	m.methodCalls.reset(e.methods)
	m.methods = make([]methodModel, e.methods)
	e.seen.clear()
	for i := range e.runs {
		for b := range e.runs[i].all() {
			for s := b.stack; s != 0 && e.seen.add(s); {
				p := e.t.Parent(s)
				f := e.t.Frame(s)
				fm := e.method(f)
				x := &m.methods[fm]
				x.n++
				m.total++
				if p != 0 {
					a := e.t.Frame(p)
					am := e.method(a)
					m.frameCalls.add(a, f)
					m.methodCalls.add(am, fm)
					x.called++
					x.caller.vote(a, am)
				}
				s = p
			}
		}
	}
	m.frameCalls.finish()
	m.methodCalls.finish()
}

func (e *solver) headSurprise(f FrameID) float64 {
	return -math.Log2((float64(e.m.methods[e.method(f)].n) + 0.5) / (float64(e.m.total) + 1))
}

// retention is how the stacks of two consecutive samples differ in this trace:
// how many frames went and how many came.
type retention struct {
	n     [9][9]float64
	total float64
	bits  [9][9]float64 // log2 of the probability of one pair of numbers
	most  float64       // of these
}

func (r *retention) log(pops, pushes int) float64 { return r.bits[bucket(pops)][bucket(pushes)] }

func (r *retention) finish() {
	r.most = math.Inf(-1)
	for a := range r.bits {
		for b := range r.bits[a] {
			r.bits[a][b] = r.cell(a, b)
			r.most = max(r.most, r.bits[a][b])
		}
	}
}

func (r *retention) cell(a, b int) float64 {
	// spread over the numbers of a bucket
	w := 1.0
	if a > 1 {
		w *= float64(int(1) << (a - 1))
	}
	if b > 1 {
		w *= float64(int(1) << (b - 1))
	}
	return math.Log2((r.n[a][b] + 0.05) / (r.total + 4) / w)
}

// begin takes over what was counted.
func (r *retention) begin(pairs *[9][9]float64) {
	*r = retention{n: *pairs}
	for i := range r.n {
		for _, n := range r.n[i] {
			r.total += n
		}
	}
}

// count counts the change from block k-1 to block k of a run, if both are known.
func (r *retention) count(t *climber, bs []block, k int) {
	if k == 0 || k == len(bs) {
		return
	}
	x, y := &bs[k-1], &bs[k]
	if !y.follows || !x.rooted || !y.rooted || x.given && y.given {
		return
	}
	a, b := bs[k-1].ext, bs[k].ext
	c := t.Depth(t.shared(a, b))
	r.n[bucket(t.Depth(a)-c)][bucket(t.Depth(b)-c)]++
	r.total++
}

// A threadTree counts the known stacks of one thread.
type threadTree struct {
	thread int // 1 + its number
	round  int
	nodes  []threadNode // by stack
	dirty  []StackID    // those of nodes that are in use
	fresh  []StackID    // stacks that were found in this round
	// scratch
	ends  []StackID
	order []StackID
}

type threadNode struct {
	n   int32 // known stacks through it
	q   int32 // different next frames
	add int32 // to n
	met bool  // it is in order
}

func (l *threadTree) reset() {
	for _, s := range l.dirty {
		l.nodes[s] = threadNode{}
	}
	l.dirty, l.fresh, l.thread = l.dirty[:0], l.fresh[:0], 0
}

// learnThread makes e.local that of run ri, as it was when the round began.
func (e *solver) learnThread(ri int) {
	l := &e.local
	thread := e.runs[ri].thread
	if l.thread == thread+1 && l.round == e.round {
		return
	}
	l.ends = l.ends[:0]
	l.nodes = reach(l.nodes, e.t.Len())
	if l.thread != thread+1 {
		l.reset()
		for _, x := range e.known[thread] {
			l.end(x.stack, x.n)
		}
		for ri > 0 && e.runs[ri-1].thread == thread {
			ri--
		}
		for ; ri < len(e.runs) && e.runs[ri].thread == thread; ri++ {
			bs := e.runs[ri].blocks
			for k := range bs {
				if bs[k].rooted && !bs[k].given {
					l.end(bs[k].ext, 1)
				}
			}
		}
	} else {
		for _, s := range l.fresh {
			l.end(s, 1)
		}
	}
	e.answers.reset()
	l.thread, l.round = thread+1, e.round
	l.fresh = l.fresh[:0]
	e.addEnds()
}

// end notes n known stacks s.
func (l *threadTree) end(s StackID, n int32) {
	x := &l.nodes[s]
	if x.add == 0 {
		l.ends = append(l.ends, s)
	}
	x.add += n
}

// addEnds counts the stacks that were noted.
func (e *solver) addEnds() {
	// Every stack on the way to an end is met once. The paths end in one another, newer
	// ones in older ones: backwards, all that is above a stack is counted before it.
	l := &e.local
	order := l.order[:0]
	for _, s := range l.ends {
		from := len(order)
		for !l.nodes[s].met {
			l.nodes[s].met = true
			order = append(order, s)
			if s == 0 {
				break
			}
			s = e.t.Parent(s)
		}
		slices.Reverse(order[from:])
	}
	l.order = order
	for i := len(order) - 1; i >= 0; i-- {
		s := order[i]
		x := &l.nodes[s]
		isNew := x.n == 0
		x.n += x.add
		if isNew {
			l.dirty = append(l.dirty, s)
		}
		if s != 0 {
			p := &l.nodes[e.t.Parent(s)]
			p.add += x.add
			if isNew {
				p.q++
			}
		}
		x.add, x.met = 0, false
	}
}

// foreign tells how many bits it takes to believe that p is on this thread.
func (e *solver) foreign(p StackID) float64 {
	l := &e.local
	if len(l.nodes) == 0 || l.nodes[0].n == 0 {
		return 0 // nothing is known of this thread
	}
	at := e.t.first(p, func(s StackID) bool { return int(s) < len(l.nodes) && l.nodes[s].n != 0 })
	if at == p {
		return 0
	}
	x := l.nodes[at]
	return max(0, -e.logs.log2((float64(x.q)+0.5)/(float64(x.n)+1)))
}

// logs remembers logarithms that were asked for lately: most are asked for often.
type logs [1 << 10]struct{ x, log2 float64 }

// log2 returns the logarithm of x, which is above 0.
func (l *logs) log2(x float64) float64 {
	y := &l[math.Float64bits(x)*mul>>(64-10)]
	if y.x != x {
		y.x, y.log2 = x, math.Log2(x)
	}
	return y.log2
}

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
}

type side struct {
	s      StackID
	fs     []FrameID
	nodes  []StackID // of fs: the stack down to each frame
	direct bool
	far    int // apart
	conf   float64
	ok     bool
	bad    bool
}

// setSide makes block k of a run, if there is one, side i of the block at.
func (e *solver) setSide(i int, bs []block, k, at int) {
	s := &e.sides[i]
	if s.ok = k >= 0 && k < len(bs); !s.ok {
		return
	}
	b := &bs[k]
	if s.s != b.ext {
		s.s = b.ext
		s.fs, s.nodes = e.t.appendNodes(s.fs[:0], s.nodes[:0], b.ext)
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
			if d := x.depth - y.depth; d == 0 || d > 2 || d < -2 || x.depth == 0 || y.depth == 0 {
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
	for i := range cs {
		if s := e.t.skips[cs[i].p].outer; s != 0 && !slices.Contains(outer, s) {
			outer = append(outer, s)
		}
	}
	e.outer = outer
	for _, s := range outer {
		for ; e.t.Depth(s) > 1; s = e.t.Parent(s) {
			for _, other := range outer {
				if e.t.Frame(e.t.up(other, 1)) == e.t.Frame(s) {
					return true
				}
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

// surprises are those of the calls in a stack, by frame and by method; 0: not worked out.
type surprises [2][]float64

func (x *surprises) reset(n int) {
	for i := range x {
		x[i] = slices.Grow(x[i][:0], n)[:n]
		clear(x[i])
	}
}

// match measures the overlap of o and t, whose first frames are of one method. It
// remembers the surprises of o.
func (e *solver) match(o, t []FrameID, known *surprises) (k int, bits float64) {
	if o[0] == t[0] {
		k = 1
		for k < len(o) && k < len(t) && o[k] == t[k] {
			if known[0][k] == 0 {
				known[0][k] = e.m.frameCalls.surprise(o[k-1], o[k])
			}
			bits += known[0][k]
			k++
		}
		return k, bits
	}
	k = 1
	for k < len(o) && k < len(t) && e.method(o[k]) == e.method(t[k]) {
		if known[1][k] == 0 {
			known[1][k] = e.m.methodCalls.surprise(e.method(o[k-1]), e.method(o[k]))
		}
		bits += 0.5 * known[1][k]
		k++
	}
	return k, bits
}

// pass tries every open block once and returns how many it changed.
func (e *solver) pass() int {
	n := 0
	for ri := range e.runs {
		r := &e.runs[ri]
		bs := r.blocks
		last, next := -1, -1
		for j, k32 := range r.open {
			k := int(k32)
			blk := &bs[k]
			if k > 0 && bs[k-1].rooted {
				last = k - 1
			}
			if next <= k {
				next = k + 1
				for _, o := range r.open[j+1:] {
					if int(o) != next {
						break
					}
					next++
				}
			}
			var before, after StackID
			if last >= 0 {
				before = bs[last].ext
			}
			if next < len(bs) {
				after = bs[next].ext
			}
			if blk.triedExt == blk.ext && blk.triedF == before && blk.triedB == after {
				continue // nothing is new
			}
			blk.triedExt, blk.triedF, blk.triedB = blk.ext, before, after
			e.learnThread(ri)
			e.o = e.t.AppendFrames(e.o[:0], blk.ext)
			e.calls.reset(len(e.o))
			e.setSide(0, bs, last, k)
			e.setSide(1, bs, next, k)
			if e.root(ri, k, blk) {
				e.found(r, k)
				n++
				continue
			}
			e.sides[2].ok, e.sides[3].ok = false, false
			if k > 0 && !bs[k-1].rooted {
				e.setSide(2, bs, k-1, k)
			}
			if k+1 < len(bs) && !bs[k+1].rooted {
				e.setSide(3, bs, k+1, k)
			}
			if e.extend(blk) || e.copyCallers(blk) || e.climb(blk) {
				n++
			}
		}
		r.open = slices.DeleteFunc(r.open, func(k int32) bool { return bs[k].rooted })
	}
	return n
}

// A question is all that an answer depends on, within one round and thread.
type question struct {
	ext                   StackID
	before, after         StackID
	confBefore, confAfter float64
	isBefore, isAfter     bool
	farBefore, farAfter   int // apart
}

// An answer is the best candidate for the prefix of a cut stack.
type answer struct {
	none  bool // there is no candidate
	c     cand
	cell  int
	donor float64 // how sure its donors are
}

// A memo holds the answers to questions: a hash table with open addressing.
type memo struct {
	slots []int32 // 1 + place in asked; 0 is free
	asked []struct {
		question
		answer
	}
}

// reset forgets all.
func (m *memo) reset() {
	if len(m.slots) > 1<<12 {
		m.slots = nil // to clear it costs what the largest thread needed
	}
	clear(m.slots)
	m.asked = m.asked[:0]
}

// of returns the place of q in asked, and whether it is new there.
func (m *memo) of(q *question) (place int, isNew bool) {
	if 2*len(m.asked) >= len(m.slots) {
		m.slots = make([]int32, max(1<<8, 2*len(m.slots)))
		for i := range m.asked {
			*m.slot(&m.asked[i].question) = int32(i) + 1
		}
	}
	s := m.slot(q)
	if *s != 0 {
		return int(*s) - 1, false
	}
	n := len(m.asked)
	m.asked = slices.Grow(m.asked, 1)[:n+1]
	m.asked[n].question = *q
	*s = int32(n) + 1
	return n, true
}

// slot returns the slot of q: its own, or a free one.
func (m *memo) slot(q *question) *int32 {
	h := uint64(q.ext)
	for _, x := range [...]uint64{uint64(q.before), uint64(q.after), math.Float64bits(q.confBefore), math.Float64bits(q.confAfter), uint64(q.farBefore<<8 + q.farAfter)} {
		h = (h + x) * mul
		h ^= h >> 32
	}
	for i := h; ; i++ {
		s := &m.slots[i&uint64(len(m.slots)-1)]
		if *s == 0 || m.asked[*s-1].question == *q {
			return s
		}
	}
}

// answer finds the best prefix for the stack ext, whose frames are e.o. The same
// question is asked often where a thread waits or loops.
func (e *solver) answer(ext StackID, f, b *side) answer {
	q := question{ext: ext, isBefore: f.ok, isAfter: b.ok}
	if f.ok {
		q.before, q.confBefore, q.farBefore = f.s, f.conf, f.far
	}
	if b.ok {
		q.after, q.confAfter, q.farAfter = b.s, b.conf, b.far
	}
	known, isNew := e.answers.of(&q)
	if !isNew {
		return e.answers.asked[known].answer
	}
	vs := e.lookup(ext)
	e.cs = e.candidates(e.cs[:0], e.o, f, b, vs)
	best, lead := e.judge(e.cs, ext, f, b, vs)
	a := answer{none: best < 0}
	if !a.none {
		c := &e.cs[best]
		a.cell, a.donor = e.describe(c, e.o, f, b, vs, lead)
		a.c = *c
	}
	e.answers.asked[known].answer = a
	return a
}

// root tries to find the whole stack of blk.
func (e *solver) root(ri, bi int, blk *block) bool {
	f, b := &e.sides[0], &e.sides[1]
	a := e.answer(blk.ext, f, b)
	if a.none {
		return false
	}
	c, cell, donor := &a.c, a.cell, a.donor
	own := e.cal.confidence(cell)
	conf := min(own, donor, float64(blk.conf))
	if c.kf == 0 && c.kb == 0 {
		// no neighbour speaks: the code's own habits are all there is
		conf = min(conf, c.share*math.Exp2(-c.foreign/8))
	}
	// where the code is hardly ever called so, the answer is wrong whatever else speaks
	// for it
	strange := c.caller < fewCallers
	if strange {
		conf *= c.caller / fewCallers
	}
	// an answer that follows a wrong neighbour teaches nothing
	misled := c.kf > 0 && f.bad || c.kb > 0 && b.bad
	verdict := -1
	if e.judged {
		verdict = e.verdict(blk, c.p, e.o)
	}
	if e.judged && !misled && !strange && e.extRight(blk) {
		if v := verdict; v >= 0 {
			x := row{cell: cell, right: v == 1, key: [2]StackID{blk.truth, c.p}}
			key := int64(ri)<<32 | int64(bi)
			if i, ok := e.last[key]; ok {
				e.rows[i] = x
			} else {
				e.last[key] = len(e.rows)
				e.rows = append(e.rows, x)
			}
		}
	}
	need := e.minConf
	if evidenceOf(cell).rec > 0 {
		// a wrong depth of a recursion misleads all that overlap it
		need = 1 - (1-need)/2
	}
	if own < need || conf < e.minConf {
		return false
	}
	switch {
	case c.depth == 0 && blk.ext == blk.stack:
		blk.how = Complete
	case blk.how == Caller:
	case c.kf > 0 && c.kb > 0:
		blk.how = BothSides
	case blk.ext != blk.stack:
		blk.how = Chain
	case c.kf > 0 && f.direct:
		blk.how = Before
	case c.kb > 0 && b.direct:
		blk.how = After
	case c.kf > 0 || c.kb > 0:
		blk.how = Chain
	default:
		blk.how = Elsewhere
	}
	blk.bad = verdict == 0
	blk.conf = float32(conf)
	blk.ext = e.t.Join(c.p, e.o)
	blk.rooted = true
	return true
}

// extend puts back frames of blk that overlapping cut neighbours show.
func (e *solver) extend(blk *block) bool {
	var best *side
	var bestD, bestCell int
	var bestConf float64
	ds := [2]int{}
	for si, s := range []*side{&e.sides[2], &e.sides[3]} {
		if !s.ok {
			continue
		}
		d, bits, lead := e.shift(e.o, s.fs, si == 1)
		ds[si] = d
		if d <= 0 {
			continue
		}
		both := 0
		if si == 1 && ds[0] > 0 && e.agree(e.sides[2].fs[:ds[0]], s.fs[:d]) {
			both = 1
		}
		p := e.t.up(s.s, d)
		cell := overlap{e.recursion(p, e.o), bucketOf(bits, overlaps[:]), bucketOf(lead, leads[:]), both, bucketOf(e.doubtAbove(p, e.o[0]), doubts[:]), bucketOf(e.callerShare(blk.ext, p), shares[:])}.cell()
		conf := min(e.cal.extConfidence(cell), s.conf, float64(blk.conf))
		if conf > bestConf {
			best, bestD, bestCell, bestConf = s, d, cell, conf
		}
	}
	if best == nil {
		return false
	}
	return e.prepend(blk, e.t.up(best.s, bestD), bestCell, best.conf)
}

// sureExtension is how sure an extension must be.
const sureExtension = 0.93

// prepend puts p before blk if evidence of its cell is good enough, and no better than
// donor.
func (e *solver) prepend(blk *block, p StackID, cell int, donor float64) bool {
	if e.judged && e.extRight(blk) {
		if v := e.extVerdict(blk, p); v >= 0 {
			e.rows = append(e.rows, row{cell: cell, right: v == 1, key: [2]StackID{blk.truth, p}, ext: true})
		}
	}
	conf := min(e.cal.extConfidence(cell), donor, float64(blk.conf))
	if conf < max(e.minConf, sureExtension) {
		return false
	}
	blk.ext = e.t.Join(p, e.o)
	blk.conf = float32(conf)
	return true
}

// climb puts back callers that never vary.
func (e *solver) climb(blk *block) bool {
	m := e.method(e.o[0])
	e.stamp++
	for _, f := range e.o {
		e.mark(e.method(f))
	}
	up := e.fo[:0]
	least := int32(math.MaxInt32)
	for len(up) < 1000 {
		c, n := e.m.methods[m].caller, e.m.methods[m].called
		if n < 2 || e.marked(c.m) {
			break
		}
		if k := e.m.methodCalls.count(c.m, m); k < n-n/200 {
			break
		}
		least = min(least, n)
		up = append(up, c.f)
		m = c.m
		e.mark(m)
	}
	e.fo = up
	if len(up) == 0 {
		return false
	}
	slices.Reverse(up)
	if !e.prepend(blk, e.t.Join(0, up), callerCell(int(least)), 1) {
		return false
	}
	blk.how = Caller
	return true
}

func (e *solver) mark(m MethodID) {
	for int(m) >= len(e.stamps) {
		e.stamps = append(e.stamps, make([]uint32, 1024)...)
	}
	e.stamps[m] = e.stamp
}

func (e *solver) marked(m MethodID) bool {
	return int(m) < len(e.stamps) && e.stamps[m] == e.stamp
}

// agree tells whether the shorter of a and b ends the longer.
func (e *solver) agree(a, b []FrameID) bool {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	for i := range a {
		if e.method(a[i]) != e.method(b[i]) {
			return false
		}
	}
	return true
}

// extRight tells of a judged world whether what blk was extended by is true.
func (e *solver) extRight(blk *block) bool {
	return blk.ext == blk.stack || e.extVerdict(blk, e.t.up(blk.ext, e.t.Depth(blk.ext)-e.t.Depth(blk.stack))) != 0
}

// extVerdict tells whether p stands above the recorded frames of blk in truth:
// 1 yes, 0 no, -1 not known.
func (e *solver) extVerdict(blk *block, p StackID) int {
	if e.t.Depth(blk.ext) > e.t.Depth(blk.stack) {
		// above what it was extended by already
		fs := e.o[:e.t.Depth(blk.ext)-e.t.Depth(blk.stack)]
		if e.t.up(blk.ext, len(fs)) != p {
			p = e.t.Join(p, fs)
		}
	}
	s := blk.truth
	for range e.t.Depth(blk.stack) {
		s = e.t.Parent(s)
	}
	n := 0
	for p != 0 && s != 0 {
		if e.method(e.t.Frame(p)) != e.method(e.t.Frame(s)) {
			return 0
		}
		p, s = e.t.Parent(p), e.t.Parent(s)
		n++
	}
	if p != 0 && blk.whole {
		return 0
	}
	if n == 0 {
		return -1
	}
	return 1
}

// shift finds how many frames t begins before o, the bits of the overlap, and
// by how many bits it leads. It is negative where o begins before t.
func (e *solver) shift(o, t []FrameID, after bool) (int, float64, float64) {
	top, second, bestD, bestBits := math.Inf(-1), math.Inf(-1), 0, 0.0
	try := func(d int, a, b []FrameID, known *surprises) {
		k, bits := e.match(a, b, known)
		pops, pushes := len(t)-max(d, 0)-k, len(o)-max(-d, 0)-k
		if after {
			pops, pushes = pushes, pops
		}
		s := e.retain.log(pops, pushes) + beta*bits
		if s > top {
			second = top
			top, bestD, bestBits = s, d, bits
		} else if s > second {
			second = s
		}
	}
	for d := range t {
		if t[d] == o[0] {
			try(d, o, t[d:], &e.calls)
		}
	}
	e.tCalls.reset(len(t))
	for d := 1; d < len(o); d++ {
		if o[d] == t[0] {
			try(-d, t, o[d:], &e.tCalls)
		}
	}
	return bestD, bestBits, min(60, top-second)
}

// judge scores the candidates and returns the best one, and by how many bits it leads.
func (e *solver) judge(cs []cand, s StackID, f, b *side, vs *blend) (int, float64) {
	if len(cs) == 0 {
		return -1, 0
	}
	N := len(e.o)
	head := min(e.headSurprise(e.o[0]), 8)
	callers := e.lookupCallers(s)
	top, second, best := math.Inf(-1), math.Inf(-1), -1
	most := 0.0 // bits that neighbours without an overlap add
	var nodes [2][]StackID
	for si, s := range [2]*side{f, b} {
		if s.ok {
			nodes[si] = s.nodes
			most += e.retain.most
		}
	}
	share := 0
	if f.ok && b.ok {
		share = e.t.Depth(e.t.shared(f.s, b.s))
	}
	for i := range cs {
		c := &cs[i]
		c.foreign = e.foreign(c.p)
		c.caller = callers.share(e.callerOf(c.p))
		votes, caller := e.logs.log2(c.votes+vs.other*0.01), 0.5*e.logs.log2(c.caller+1e-4)
		if c.kf == 0 && c.kb == 0 && most+votes-c.foreign+caller < second-1e-6 {
			continue // neither the best nor the next
		}
		score := 0.0
		var common [2]int
		if c.kf == 0 || c.kb == 0 {
			common[0], common[1] = e.t.common(c.p, nodes[0], nodes[1], share)
		}
		for si, s := range [2]*side{f, b} {
			if !s.ok {
				continue
			}
			k, bits := c.kf, c.bf
			if si == 1 {
				k, bits = c.kb, c.bb
			}
			L := c.depth + k
			D := len(s.fs)
			if k == 0 {
				L = common[si]
				bits = 0
			} else {
				bits += head
			}
			pops, pushes := D-L, c.depth+N-L
			if si == 1 {
				pops, pushes = pushes, pops
			}
			score += e.retain.log(pops, pushes) + beta*bits
		}
		score = score + votes - c.foreign + caller
		if score > top {
			top, second, best = score, top, i
		} else {
			second = max(second, score)
		}
	}
	return best, min(top-second, 60)
}

// fewCallers is the share of the callers in a context that a method needs at least to
// be believed to be the caller.
const fewCallers = 0.1

const beta = 0.6
