package stackfix

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"strconv"
)

// debugTruth is set by experiments.
var debugTruth func(run, block int, p StackID) bool

var debug = os.Getenv("SFXDEBUG") != ""

// engine is the state of one Fix.
type engine struct {
	stacks  Stacks
	frames  Frames
	threads []Thread
	opts    Options
	minConf float64

	runs   []run
	m      model
	retain retention
	idx    index
	round  int

	// scratch
	fo    []FrameID
	o     []FrameID
	cs    []cand
	ppm   ppm
	sides [4]side
}

// A run is a stretch of one thread without a break, as blocks of equal samples.
type run struct {
	thread int
	blocks []block
}

// A block is a row of samples of one stack.
type block struct {
	first, n int32 // samples
	stack    StackID
	ext      StackID // what is known of the stack: stack, or stack with frames put back
	conf     float32
	cut      Cut
	how      How
	rooted   bool // nothing is missing in ext
}

func newEngine(stacks Stacks, frames Frames, threads []Thread, opts Options) *engine {
	e := &engine{stacks: stacks, frames: frames, threads: threads, opts: opts, minConf: opts.MinConfidence}
	if e.minConf == 0 {
		e.minConf = DefaultConfidence
	}
	return e
}

func (e *engine) run() Result {
	e.makeRuns()
	e.learn()
	for e.round = range 8 {
		e.learnRetention()
		e.buildIndex()
		if e.pass() == 0 {
			break
		}
	}
	return e.result()
}

func (e *engine) makeRuns() {
	for ti, t := range e.threads {
		var r *run
		br := t.Breaks
		for j, s := range t.Samples {
			brk := j == 0
			for len(br) > 0 && br[0] <= s.Time {
				br = br[1:]
				brk = true
			}
			if brk {
				e.runs = append(e.runs, run{thread: ti})
				r = &e.runs[len(e.runs)-1]
			}
			if k := len(r.blocks) - 1; k >= 0 && r.blocks[k].stack == s.Stack && r.blocks[k].cut == s.Cut {
				r.blocks[k].n++
				continue
			}
			r.blocks = append(r.blocks, block{first: int32(j), n: 1, stack: s.Stack, ext: s.Stack, cut: s.Cut, rooted: s.Cut == Whole, conf: 1})
		}
	}
}

// model holds how often frames call each other, and methods.
type model struct {
	edge   map[uint64]int32
	from   map[FrameID]int32
	medge  map[uint64]int32
	mfrom  map[MethodID]int32
	mcount map[MethodID]int32
	total  int
}

func edgeKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

func (e *engine) learn() {
	e.m = model{edge: map[uint64]int32{}, from: map[FrameID]int32{}, medge: map[uint64]int32{}, mfrom: map[MethodID]int32{}, mcount: map[MethodID]int32{}}
	seen := map[StackID]bool{}
	for i := range e.runs {
		for _, b := range e.runs[i].blocks {
			for s := b.stack; s != 0 && !seen[s]; {
				seen[s] = true
				p := e.stacks.Parent(s)
				f := e.stacks.Frame(s)
				fm := e.frames.Method(f)
				e.m.mcount[fm]++
				e.m.total++
				if p != 0 {
					a := e.stacks.Frame(p)
					am := e.frames.Method(a)
					e.m.edge[edgeKey(a, f)]++
					e.m.from[a]++
					e.m.medge[edgeKey(am, fm)]++
					e.m.mfrom[am]++
				}
				s = p
			}
		}
	}
}

// surprise is -log2 of how often a calls b.
func (e *engine) surprise(a, b FrameID) float64 {
	n := e.m.from[a]
	return -math.Log2((float64(e.m.edge[edgeKey(a, b)]) + 0.5) / (float64(n) + 1))
}

func (e *engine) surpriseM(a, b FrameID) float64 {
	am, bm := e.frames.Method(a), e.frames.Method(b)
	n := e.m.mfrom[am]
	return -math.Log2((float64(e.m.medge[edgeKey(am, bm)]) + 0.5) / (float64(n) + 1))
}

func (e *engine) headSurprise(f FrameID) float64 {
	return -math.Log2((float64(e.m.mcount[e.frames.Method(f)]) + 0.5) / (float64(e.m.total) + 1))
}

// retention is how the stacks of two consecutive samples differ in this trace:
// how many frames went and how many came.
type retention struct {
	n     [9][9]float64
	total float64
}

func bucket(n int) int { return min(8, bits.Len(uint(max(n, 0)))) }

func (r *retention) log(pops, pushes int) float64 {
	a, b := bucket(pops), bucket(pushes)
	// spread over the cells of a bucket
	w := 1.0
	if a > 1 {
		w *= float64(int(1) << (a - 1))
	}
	if b > 1 {
		w *= float64(int(1) << (b - 1))
	}
	return math.Log2((r.n[a][b] + 0.05) / (r.total + 4) / w)
}

func (e *engine) common(a, b StackID) int {
	da, db := e.stacks.Depth(a), e.stacks.Depth(b)
	for da > db {
		a = e.stacks.Parent(a)
		da--
	}
	for db > da {
		b = e.stacks.Parent(b)
		db--
	}
	for a != b {
		a, b = e.stacks.Parent(a), e.stacks.Parent(b)
		da--
	}
	return da
}

func (e *engine) learnRetention() {
	r := &e.retain
	*r = retention{}
	for i := range e.runs {
		bs := e.runs[i].blocks
		for k := 1; k < len(bs); k++ {
			if !bs[k-1].rooted || !bs[k].rooted {
				continue
			}
			a, b := bs[k-1].ext, bs[k].ext
			c := e.common(a, b)
			r.n[bucket(e.stacks.Depth(a)-c)][bucket(e.stacks.Depth(b)-c)]++
			r.total++
		}
	}
}

type cand struct {
	p      StackID
	depth  int
	kf, kb int // frames of the window that overlap
	bf, bb float64
	votes  float64
	score  float64
}

type side struct {
	s      StackID
	fs     []FrameID
	direct bool
	gap    int
	conf   float64
	ok     bool
}

func (e *engine) setSide(i int, b *block, gap int) *side {
	s := &e.sides[i]
	if !s.ok || s.s != b.ext {
		s.s = b.ext
		s.fs = appendFrames(s.fs[:0], e.stacks, b.ext)
	}
	s.ok, s.gap, s.direct, s.conf = true, gap, b.stack == b.ext, float64(b.conf)
	return s
}

// candidates collects prefixes for the window o.
func (e *engine) candidates(cs []cand, o []FrameID, f, b *side, vs *ppm) []cand {
	add := func(p StackID, d int) *cand {
		for i := range cs {
			if cs[i].p == p {
				return &cs[i]
			}
		}
		cs = append(cs, cand{p: p, depth: d})
		return &cs[len(cs)-1]
	}
	hm := e.frames.Method(o[0])
	for si, s := range [2]*side{f, b} {
		if !s.ok {
			continue
		}
		node := s.s
		for p := len(s.fs) - 1; p >= 0; p-- {
			node = e.stacks.Parent(node)
			if s.fs[p] != o[0] && e.frames.Method(s.fs[p]) != hm {
				continue
			}
			k, bits := e.match(o, s.fs[p:])
			c := add(node, p)
			if si == 0 {
				c.kf, c.bf = k, bits
			} else {
				c.kb, c.bb = k, bits
			}
		}
	}
	for i, p := range vs.p {
		add(p, e.stacks.Depth(p)).votes = vs.w[i]
	}
	return cs
}

// match measures the overlap of o and t, whose first frames are of one method.
func (e *engine) match(o, t []FrameID) (k int, bits float64) {
	if o[0] == t[0] {
		k = 1
		for k < len(o) && k < len(t) && o[k] == t[k] {
			bits += e.surprise(o[k-1], o[k])
			k++
		}
		return k, bits
	}
	k = 1
	for k < len(o) && k < len(t) && e.frames.Method(o[k]) == e.frames.Method(t[k]) {
		bits += 0.5 * e.surpriseM(o[k-1], o[k])
		k++
	}
	return k, bits
}

// pass tries every unresolved block once and returns how many it changed.
func (e *engine) pass() int {
	n := 0
	for ri := range e.runs {
		bs := e.runs[ri].blocks
		last, next := -1, -1
		for i := range e.sides {
			e.sides[i].ok = false
		}
		for k := range bs {
			blk := &bs[k]
			if blk.rooted {
				last = k
				continue
			}
			e.o = appendFrames(e.o[:0], e.stacks, blk.ext)
			if len(e.o) == 0 {
				continue
			}
			if last >= 0 {
				e.setSide(0, &bs[last], k-last)
			}
			if next <= k {
				next = k + 1
				for next < len(bs) && !bs[next].rooted {
					next++
				}
			}
			if next < len(bs) {
				e.setSide(1, &bs[next], next-k)
			} else {
				e.sides[1].ok = false
			}
			if e.root(ri, blk) {
				last = k
				n++
				continue
			}
			e.sides[2].ok, e.sides[3].ok = false, false
			if k > 0 && !bs[k-1].rooted {
				e.setSide(2, &bs[k-1], 1)
			}
			if k+1 < len(bs) && !bs[k+1].rooted {
				e.setSide(3, &bs[k+1], 1)
			}
			if e.extend(ri, blk) {
				n++
			}
		}
	}
	return n
}

// root tries to find the whole stack of blk.
func (e *engine) root(ri int, blk *block) bool {
	f, b := &e.sides[0], &e.sides[1]
	vs := e.lookup(e.o)
	e.cs = e.candidates(e.cs[:0], e.o, f, b, vs)
	best, post := e.judge(e.cs, e.o, f, b, vs)
	if best < 0 {
		return false
	}
	c := &e.cs[best]
	if debug && debugTruth != nil {
		d := func(p StackID) bool {
			fs := appendFrames(nil, e.stacks, p)
			x := e.stacks.Depth(blk.ext) - e.stacks.Depth(blk.stack)
			fs = append(fs, e.o[:x]...)
			var s StackID
			for _, f := range fs {
				s = e.stacks.Push(s, f)
			}
			return debugTruth(e.runs[ri].thread, int(blk.first), s)
		}
		in := false
		for _, x := range e.cs {
			in = in || d(x.p)
		}
		if !debugTruth(e.runs[ri].thread, int(blk.first), math.MaxUint32) {
			fmt.Printf("D r%d ok=%v in=%v %d %.2f kf=%d bf=%.1f kb=%d bb=%.1f votes=%.3f/%.3f level=%d n=%d depth=%d len=%d cut=%v tid=%d s=%d\n", e.round, d(c.p), in, blk.n, post, c.kf, c.bf, c.kb, c.bb, c.votes, vs.novel, vs.level, len(e.cs), c.depth, len(e.o), blk.cut, ri, blk.first)
		}
	}
	if post < e.minConf {
		return false
	}
	switch {
	case c.depth == 0 && blk.ext == blk.stack:
		blk.how = Complete
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
	blk.conf = float32(post)
	blk.ext = e.join(c.p, e.o)
	blk.rooted = true
	return true
}

// extend puts back frames of blk that overlapping cut neighbours show.
func (e *engine) extend(ri int, blk *block) bool {
	best, bestPost, bestD := (*side)(nil), 0.0, 0
	for si, s := range []*side{&e.sides[2], &e.sides[3]} {
		if !s.ok {
			continue
		}
		d, post := e.shift(e.o, s.fs, si == 1)
		if d > 0 && post > bestPost {
			best, bestPost, bestD = s, post, d
		}
	}
	if best != nil && bestPost >= e.minConf {
		p := best.s
		for e.stacks.Depth(p) > bestD {
			p = e.stacks.Parent(p)
		}
		blk.ext = e.join(p, e.o)
		return true
	}
	return false
}

// shift finds how many frames t begins before o, and how sure that is.
// It is negative where o begins before t.
func (e *engine) shift(o, t []FrameID, after bool) (int, float64) {
	top, bestD := math.Inf(-1), 0
	var scores []float64
	try := func(d int, a, b []FrameID) {
		k, bits := e.match(a, b)
		bits += min(e.headSurprise(a[0]), 8)
		pops, pushes := len(t)-max(d, 0)-k, len(o)-max(-d, 0)-k
		if after {
			pops, pushes = pushes, pops
		}
		s := e.retain.log(pops, pushes) + beta*bits
		scores = append(scores, s)
		if s > top {
			top, bestD = s, d
		}
	}
	for d := range t {
		if t[d] == o[0] {
			try(d, o, t[d:])
		}
	}
	for d := 1; d < len(o); d++ {
		if o[d] == t[0] {
			try(-d, t, o[d:])
		}
	}
	if len(scores) == 0 {
		return 0, 0
	}
	pops, pushes := len(t), len(o)
	if after {
		pops, pushes = pushes, pops
	}
	scores = append(scores, e.retain.log(pops, pushes))
	sum := 0.0
	for _, s := range scores {
		sum += math.Exp2(s - top)
	}
	return bestD, 1 / sum
}

// judge scores the candidates and returns the best with its probability.
func (e *engine) judge(cs []cand, o []FrameID, f, b *side, vs *ppm) (int, float64) {
	if len(cs) == 0 {
		return -1, 0
	}
	N := len(o)
	head := min(e.headSurprise(o[0]), 8)
	top, best := math.Inf(-1), -1
	for i := range cs {
		c := &cs[i]
		c.score = 0
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
				L = e.common(c.p, s.s)
				bits = 0
			} else {
				bits += head
			}
			pops, pushes := D-L, c.depth+N-L
			if si == 1 {
				pops, pushes = pushes, pops
			}
			c.score += e.retain.log(pops, pushes) + beta*bits
		}
		c.score += math.Log2(c.votes + vs.novel*0.01)
		if c.score > top {
			top, best = c.score, i
		}
	}
	// what nobody has seen
	novel := 0.0
	for si, s := range [2]*side{f, b} {
		if !s.ok {
			continue
		}
		D := len(s.fs)
		m := math.Inf(-1)
		for _, keep := range [...]int{0, D / 4, D / 2, 3 * D / 4} {
			pops, pushes := D-keep, N+10-keep
			if pushes < 0 {
				continue
			}
			if si == 1 {
				pops, pushes = pushes, pops
			}
			m = max(m, e.retain.log(pops, pushes))
		}
		novel += m
	}
	novel += math.Log2(vs.novel)
	sum := math.Exp2(novel - top)
	for i := range cs {
		sum += math.Exp2(cs[i].score - top)
	}
	return best, 1 / sum
}

// join returns p with frames on it.
func (e *engine) join(p StackID, fs []FrameID) StackID {
	for _, f := range fs {
		p = e.stacks.Push(p, f)
	}
	return p
}

var beta = envf("BETA", 0.6)

func envf(n string, d float64) float64 {
	if v, err := strconv.ParseFloat(os.Getenv(n), 64); err == nil {
		return v
	}
	return d
}

var levels = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}

type votes struct {
	p      [16]StackID
	n      [16]int32
	rooted [16]bool
	len    int
	total  int32
}

type index struct {
	votes map[uint64]*votes
}

const mul = 0x9E3779B97F4A7C15

func ctxKey(h uint64, k int) uint64 { return h*31 + uint64(k) }

func (e *engine) hashes(fs []FrameID) []uint64 {
	h := make([]uint64, len(fs)+1)
	for i, f := range fs {
		h[i+1] = h[i]*mul + uint64(e.frames.Method(f)) + 1
	}
	return h
}

// buildIndex looks in all rooted stacks for those that show the first frames of
// the cut ones.
func (e *engine) buildIndex() {
	idx := map[uint64]*votes{}
	done := map[StackID]bool{}
	pow := [128]uint64{}
	pow[0] = 1
	for i := 1; i < len(pow); i++ {
		pow[i] = pow[i-1] * mul
	}
	for i := range e.runs {
		for _, b := range e.runs[i].blocks {
			if b.rooted || done[b.ext] {
				continue
			}
			done[b.ext] = true
			e.fo = appendFrames(e.fo[:0], e.stacks, b.ext)
			h := e.hashes(e.fo)
			for _, k := range levels {
				if k < len(h) {
					q := ctxKey(h[k], k)
					if idx[q] == nil {
						idx[q] = &votes{}
					}
				}
			}
		}
	}
	e.idx.votes = idx
	if len(idx) == 0 {
		return
	}
	seen := map[StackID]bool{}
	for i := range e.runs {
		for _, b := range e.runs[i].blocks {
			if !b.rooted || done[b.ext] {
				continue
			}
			done[b.ext] = true
			e.fo = appendFrames(e.fo[:0], e.stacks, b.ext)
			h := e.hashes(e.fo)
			s := b.ext
			nodes := make([]StackID, len(e.fo)+1)
			for d := len(e.fo); d > 0; d-- {
				nodes[d] = s
				s = e.stacks.Parent(s)
			}
			for d := len(e.fo); d > 0 && !seen[nodes[d]]; d-- {
				seen[nodes[d]] = true
				for _, k := range levels {
					if k > d {
						break
					}
					c := h[d] - h[d-k]*pow[k]
					v := idx[ctxKey(c, k)]
					if v == nil {
						continue
					}
					v.total++
					p := nodes[d-k]
					found := false
					for x := range v.len {
						if v.p[x] == p {
							v.n[x]++
							found = true
						}
					}
					if !found && v.len < len(v.p) {
						v.p[v.len] = p
						v.n[v.len] = 1
						v.rooted[v.len] = true
						v.len++
					}
				}
			}
		}
	}
}

// ppm is what the contexts of all lengths say of the prefix of a window.
type ppm struct {
	p     []StackID
	w     []float64
	novel float64
	level int
	n     int // donors at the longest level
}

// lookup blends the levels from the longest context down. A level speaks for
// the donors that longer ones have not heard.
func (e *engine) lookup(o []FrameID) *ppm {
	x := &e.ppm
	x.p, x.w, x.novel, x.level, x.n = x.p[:0], x.w[:0], 1, 0, 0
	h := e.hashes(o[:min(len(o), 64)])
	var above *votes
	for li := len(levels) - 1; li >= 0; li-- {
		l := levels[li]
		if l >= len(h) {
			continue
		}
		v := e.idx.votes[ctxKey(h[l], l)]
		if v == nil || v.total == 0 {
			continue
		}
		if above == nil {
			x.level, x.n = l, int(v.total)
		}
		total, distinct := v.total, v.len
		if above != nil {
			total -= above.total
		}
		if total > 0 {
			distinct = 0
			for i := range v.len {
				n := v.n[i] - above.count(v.p[i])
				if n > 0 {
					distinct++
				}
			}
			esc := float64(max(distinct, 1)) / float64(int(total)+max(distinct, 1))
			for i := range v.len {
				n := v.n[i] - above.count(v.p[i])
				if n <= 0 {
					continue
				}
				w := x.novel * (1 - esc) * float64(n) / float64(total)
				k := 0
				for k < len(x.p) && x.p[k] != v.p[i] {
					k++
				}
				if k == len(x.p) {
					x.p = append(x.p, v.p[i])
					x.w = append(x.w, 0)
				}
				x.w[k] += w
			}
			x.novel *= esc
		}
		above = v
	}
	return x
}

func (v *votes) count(p StackID) int32 {
	if v == nil {
		return 0
	}
	for i := range v.len {
		if v.p[i] == p {
			return v.n[i]
		}
	}
	return 0
}

func (e *engine) result() Result {
	res := Result{Repairs: make([][]Repair, len(e.threads))}
	for i := range e.runs {
		r := &e.runs[i]
		for _, b := range r.blocks {
			if b.cut == Whole {
				continue
			}
			rep := Repair{Stack: b.ext, How: b.how, Confidence: b.conf}
			if !b.rooted {
				rep.How = Bridge
				rep.Stack = e.join(e.stacks.Push(0, e.opts.Bridge), appendFrames(nil, e.stacks, b.stack))
			}
			rep.Restored = int32(e.stacks.Depth(rep.Stack) - e.stacks.Depth(b.stack))
			for j := range b.n {
				rep.Index = int(b.first + j)
				res.Repairs[r.thread] = append(res.Repairs[r.thread], rep)
			}
		}
	}
	return res
}
