package stackfix

import (
	"fmt"
	"math"
	"math/bits"
	"os"
)

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
	roots  map[MethodID]int // outermost methods of whole stacks
	idx    index

	// scratch
	fo, fe []FrameID
	truth  func(run, block int, p StackID) bool // debugging
}

// A run is a stretch of one thread without a break, as blocks of equal samples.
type run struct {
	thread int
	blocks []block
}

type block struct {
	first, n int32 // samples
	stack    StackID
	known    StackID // rooted stack, or 0
	conf     float32
	cut      Cut
	how      How
	direct   bool // known because it is whole
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
	for range 6 {
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
			b := block{first: int32(j), n: 1, stack: s.Stack, cut: s.Cut}
			if s.Cut == Whole {
				b.known, b.direct, b.conf = s.Stack, true, 1
			}
			r.blocks = append(r.blocks, b)
		}
	}
}

// model holds how often frames call each other.
type model struct {
	edge  map[uint64]int32
	from  map[FrameID]int32
	count map[FrameID]int32
	total int
}

func edgeKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

func (e *engine) learn() {
	e.m = model{edge: map[uint64]int32{}, from: map[FrameID]int32{}, count: map[FrameID]int32{}}
	e.roots = map[MethodID]int{}
	seen := map[StackID]bool{}
	for i := range e.runs {
		for _, b := range e.runs[i].blocks {
			if b.cut == Whole && b.stack != 0 {
				e.roots[e.frames.Method(e.root(b.stack))]++
			}
			for s := b.stack; s != 0 && !seen[s]; {
				seen[s] = true
				p := e.stacks.Parent(s)
				f := e.stacks.Frame(s)
				e.m.count[f]++
				e.m.total++
				if p != 0 {
					a := e.stacks.Frame(p)
					e.m.edge[edgeKey(a, f)]++
					e.m.from[a]++
				}
				s = p
			}
		}
	}
}

func (e *engine) root(s StackID) FrameID {
	for {
		p := e.stacks.Parent(s)
		if p == 0 {
			return e.stacks.Frame(s)
		}
		s = p
	}
}

// surprise is -log2 of how often a calls b.
func (e *engine) surprise(a, b FrameID) float64 {
	n := e.m.from[a]
	if n == 0 {
		return 1
	}
	return -math.Log2((float64(e.m.edge[edgeKey(a, b)]) + 0.5) / (float64(n) + 1))
}

func (e *engine) headSurprise(f FrameID) float64 {
	return -math.Log2((float64(e.m.count[f]) + 0.5) / (float64(e.m.total) + 1))
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
			a, b := bs[k-1].known, bs[k].known
			if a == 0 || b == 0 {
				continue
			}
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
	votes  int32
	score  float64
}

type side struct {
	known  StackID
	fs     []FrameID
	direct bool
	gap    int
}

// candidates collects prefixes for the window o.
func (e *engine) candidates(cs []cand, o []FrameID, f, b *side, vs *votes) []cand {
	add := func(p StackID, d int) *cand {
		for i := range cs {
			if cs[i].p == p {
				return &cs[i]
			}
		}
		cs = append(cs, cand{p: p, depth: d})
		return &cs[len(cs)-1]
	}
	for si, s := range [2]*side{f, b} {
		if s.known == 0 {
			continue
		}
		for p := 0; p < len(s.fs); p++ {
			if s.fs[p] != o[0] {
				continue
			}
			k, bits := e.match(o, s.fs[p:])
			c := add(e.prefix(s.known, p), p)
			if si == 0 {
				c.kf, c.bf = k, bits
			} else {
				c.kb, c.bb = k, bits
			}
		}
	}
	if vs != nil {
		for i := range vs.len {
			c := add(vs.p[i], e.stacks.Depth(vs.p[i]))
			c.votes = vs.n[i]
		}
	}
	return cs
}

func (e *engine) match(o, t []FrameID) (k int, bits float64) {
	k = 1
	for k < len(o) && k < len(t) && o[k] == t[k] {
		bits += e.surprise(o[k-1], o[k])
		k++
	}
	return k, bits
}

// pass tries every unresolved block once and returns how many it resolved.
func (e *engine) pass() int {
	n := 0
	var cs []cand
	var o []FrameID
	for ri := range e.runs {
		bs := e.runs[ri].blocks
		next := -1
		var f, b side
		last := -1
		for k := range bs {
			blk := &bs[k]
			if blk.known != 0 {
				last = k
				continue
			}
			o = appendFrames(o[:0], e.stacks, blk.stack)
			if len(o) == 0 {
				continue
			}
			f.known, b.known = 0, 0
			if last >= 0 {
				f.known, f.direct, f.gap = bs[last].known, bs[last].direct, k-last
				f.fs = appendFrames(f.fs[:0], e.stacks, f.known)
			}
			if next <= k {
				next = k + 1
				for next < len(bs) && bs[next].known == 0 {
					next++
				}
			}
			if next < len(bs) {
				b.known, b.direct, b.gap = bs[next].known, bs[next].direct, next-k
				b.fs = appendFrames(b.fs[:0], e.stacks, b.known)
			}
			vs, level := e.lookup(o)
			cs = e.candidates(cs[:0], o, &f, &b, vs)
			best, post := e.judge(cs, o, &f, &b, vs)
			if best < 0 {
				continue
			}
			c := &cs[best]
			if debug {
				ok := e.truth(ri, k, c.p)
				nv := 0
				if vs != nil {
					nv = vs.len
				}
				fmt.Printf("D %v %d %.2f kf=%d bf=%.1f kb=%d bb=%.1f votes=%d/%d level=%d n=%d depth=%d len=%d\n", ok, blk.n, post, c.kf, c.bf, c.kb, c.bb, c.votes, nv, level, len(cs), c.depth, len(o))
			}
			if post < e.minConf {
				continue
			}
			switch {
			case c.depth == 0:
				blk.how = Complete
			case c.kf > 0 && c.kb > 0:
				blk.how = BothSides
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
			blk.known = e.join(c.p, blk.stack)
			last = k
			n++
		}
	}
	return n
}

// judge scores the candidates and returns the best with its probability.
func (e *engine) judge(cs []cand, o []FrameID, f, b *side, vs *votes) (int, float64) {
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
			if s.known == 0 {
				continue
			}
			k, bits := c.kf, c.bf
			if si == 1 {
				k, bits = c.kb, c.bb
			}
			L := c.depth + k
			D := len(s.fs)
			if k == 0 {
				L = e.common(c.p, s.known)
				bits = 0
			} else {
				bits += head
			}
			pops, pushes := D-L, c.depth+N-L
			if si == 1 {
				pops, pushes = pushes, pops
			}
			c.score += e.retain.log(pops, pushes) + bits
		}
		tot := float32(0)
		if vs != nil {
			tot = float32(vs.total)
		}
		c.score += math.Log2(float64(float32(c.votes)+0.05) / float64(tot+1))
		if c.score > top {
			top, best = c.score, i
		}
	}
	// what nobody has seen
	novel := 0.0
	for si, s := range [2]*side{f, b} {
		if s.known == 0 {
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
	tot := 0.0
	if vs != nil {
		tot = float64(vs.total)
	}
	novel += math.Log2(0.5 / (tot + 1))
	sum := math.Exp2(novel - top)
	for i := range cs {
		sum += math.Exp2(cs[i].score - top)
	}
	return best, 1 / sum
}

// prefix returns the stack of the outermost n frames of s.
func (e *engine) prefix(s StackID, n int) StackID {
	for d := e.stacks.Depth(s); d > n; d-- {
		s = e.stacks.Parent(s)
	}
	return s
}

// join returns p with the frames of s on it.
func (e *engine) join(p, s StackID) StackID {
	e.fo = appendFrames(e.fo[:0], e.stacks, s)
	for _, f := range e.fo {
		p = e.stacks.Push(p, f)
	}
	return p
}

var levels = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}

type votes struct {
	p     [16]StackID
	n     [16]int32
	len   int
	total int32
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
			if b.known != 0 || done[b.stack] {
				continue
			}
			done[b.stack] = true
			e.fo = appendFrames(e.fo[:0], e.stacks, b.stack)
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
			if b.known == 0 || done[b.known] {
				continue
			}
			done[b.known] = true
			e.fe = appendFrames(e.fe[:0], e.stacks, b.known)
			h := e.hashes(e.fe)
			s := b.known
			nodes := make([]StackID, len(e.fe)+1)
			for d := len(e.fe); d > 0; d-- {
				nodes[d] = s
				s = e.stacks.Parent(s)
			}
			for d := len(e.fe); d > 0 && !seen[nodes[d]]; d-- {
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
						v.len++
					}
				}
			}
		}
	}
}

func (e *engine) lookup(o []FrameID) (v *votes, level int) {
	h := e.hashes(o[:min(len(o), 64)])
	for _, l := range levels {
		if l < len(h) {
			if w := e.idx.votes[ctxKey(h[l], l)]; w != nil && w.total > 0 {
				v, level = w, l
			}
		}
	}
	return v, level
}

func (e *engine) result() Result {
	res := Result{Repairs: make([][]Repair, len(e.threads))}
	for i := range e.runs {
		r := &e.runs[i]
		for _, b := range r.blocks {
			if b.cut == Whole {
				continue
			}
			rep := Repair{Stack: b.known, How: b.how, Confidence: b.conf}
			if b.known == 0 {
				rep.How = Bridge
				rep.Stack = e.join(e.stacks.Push(0, e.opts.Bridge), b.stack)
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
