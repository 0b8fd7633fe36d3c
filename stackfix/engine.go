package stackfix

import (
	"math/bits"
)

// engine is the state of one Fix. It works on a tree of its own, so that what
// it tries out leaves no trace in the caller's.
type engine struct {
	frames  Frames
	opts    Options
	minConf float64
	t       *Tree
	mth     []MethodID // of each frame
	cal     calibration
}

// A world is a set of runs to be solved: the recording itself, or the recording
// cut once more, to learn from.
type world struct {
	runs   []run
	limit  int  // frames a Depth cut left
	judged bool // truth is known
}

// A run is a stretch of one thread without a break, as blocks of equal samples.
type run struct {
	thread int
	blocks []block
}

// A block is a row of samples of one stack.
type block struct {
	first, n int32   // samples
	orig     StackID // the caller's
	stack    StackID // as recorded, suspects dropped
	ext      StackID // what is known of the stack: stack, or stack with frames put back
	truth    StackID // in a judged world: the stack before it was cut
	conf     float32
	// the last attempt: with which neighbours
	triedExt, triedF, triedB StackID
	cut                      Cut
	how                      How
	dropped                  uint8
	rooted                   bool // nothing is missing in ext
	whole                    bool // truth is rooted
	bridged                  bool // repaired before: left as it is, and no evidence
	bad                      bool // in a judged world: ext is wrong
}

func newEngine(frames Frames, opts Options) *engine {
	e := &engine{frames: frames, opts: opts, minConf: opts.MinConfidence, t: NewTree()}
	if e.minConf == 0 {
		e.minConf = DefaultConfidence
	}
	return e
}

// fix repairs the threads of one process and adds to res what it found.
func (e *engine) fix(stacks Stacks, threads []Thread, which []int, res *Result) {
	w := e.load(stacks, threads, which)
	cuts := 0
	for i := range w.runs {
		for _, b := range w.runs[i].blocks {
			if !b.rooted {
				cuts++
			}
		}
	}
	if cuts > 0 {
		if v := e.virtual(w, e.virtualLimit(w), enoughBlocks); v != nil {
			s := solver{engine: e, world: v, learn: true}
			s.solve()
			e.cal.learn(s.rows)
		}
		s := solver{engine: e, world: w}
		s.solve()
	}
	e.result(stacks, w, res)
}

func (e *engine) method(f FrameID) MethodID { return e.mth[f] }

// load copies what it needs of the threads.
func (e *engine) load(stacks Stacks, threads []Thread, which []int) *world {
	w := &world{}
	copied := copier{engine: e, from: stacks}
	for _, ti := range which {
		t := &threads[ti]
		var r *run
		br := t.Breaks
		j := int32(-1)
		for s := range t.all() {
			j++
			brk := j == 0
			for len(br) > 0 && br[0] <= s.Time {
				br = br[1:]
				brk = true
			}
			if brk {
				w.runs = append(w.runs, run{thread: ti})
				r = &w.runs[len(w.runs)-1]
			}
			if k := len(r.blocks) - 1; k >= 0 && r.blocks[k].orig == s.Stack && r.blocks[k].cut == s.Cut && r.blocks[k].dropped == s.Suspect {
				r.blocks[k].n++
				continue
			}
			l := copied.id(s.Stack)
			bridged := s.Cut != Whole && e.holdsBridge(l)
			if bridged {
				l = 0
			}
			if s.Cut == Depth {
				w.limit = max(w.limit, e.t.Depth(l))
			}
			r.blocks = append(r.blocks, block{first: j, n: 1, orig: s.Stack, stack: l, ext: l, cut: s.Cut, dropped: s.Suspect, rooted: s.Cut == Whole || l == 0, bridged: bridged, conf: 1})
		}
	}
	e.dropSuspects(w)
	return w
}

// A copier copies stacks into the tree of the engine.
type copier struct {
	*engine
	from Stacks
	ids  []StackID // by stack of from: its copy, 0 if there is none yet
	path []StackID
}

// id returns the copy of s.
func (c *copier) id(s StackID) StackID {
	c.path = c.path[:0]
	for s != 0 && (int(s) >= len(c.ids) || c.ids[s] == 0) {
		c.path = append(c.path, s)
		s = c.from.Parent(s)
	}
	id := StackID(0)
	if s != 0 {
		id = c.ids[s]
	}
	for i := len(c.path) - 1; i >= 0; i-- {
		s = c.path[i]
		f := c.from.Frame(s)
		for int(f) >= len(c.mth) {
			c.mth = append(c.mth, c.frames.Method(FrameID(len(c.mth))))
		}
		id = c.t.Push(id, f)
		if n := int(s) + 1 - len(c.ids); n > 0 {
			c.ids = append(c.ids, make([]StackID, n)...)
		}
		c.ids[s] = id
	}
	return id
}

// holdsBridge tells whether the bridge is in s.
func (e *engine) holdsBridge(s StackID) bool {
	for ; s != 0; s = e.t.Parent(s) {
		if e.t.Frame(s) == e.opts.Bridge {
			return true
		}
	}
	return false
}

// dropSuspects takes the outermost frames away that may be garbage and that no
// other stack confirms.
func (e *engine) dropSuspects(w *world) {
	any := false
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			any = any || w.runs[i].blocks[k].dropped > 0
		}
	}
	if !any {
		return
	}
	// who calls whom, suspects left out
	edges := map[uint64]struct{}{}
	seen := map[StackID]bool{}
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			b := &w.runs[i].blocks[k]
			d := e.t.Depth(b.stack)
			for s := b.stack; d > int(b.dropped)+1 && !seen[s]; d-- {
				if b.dropped == 0 {
					seen[s] = true
				}
				p := e.t.Parent(s)
				edges[edgeKey(e.method(e.t.Frame(p)), e.method(e.t.Frame(s)))] = struct{}{}
				s = p
			}
		}
	}
	type key struct {
		s StackID
		n uint8
	}
	memo := map[key]StackID{}
	var fs []FrameID
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			b := &w.runs[i].blocks[k]
			if b.dropped == 0 {
				continue
			}
			q := key{b.stack, b.dropped}
			s, ok := memo[q]
			if !ok {
				fs = e.t.AppendFrames(fs[:0], b.stack)
				n := min(int(b.dropped), len(fs)-1)
				drop := 0
				for x := n; x > 0; x-- {
					if _, ok := edges[edgeKey(e.method(fs[x-1]), e.method(fs[x]))]; !ok {
						drop = x
						break
					}
				}
				s = e.t.Add(fs[drop:]...)
				memo[q] = s
			}
			b.dropped = uint8(e.t.Depth(b.stack) - e.t.Depth(s))
			b.stack, b.ext = s, s
		}
	}
}

// virtualShare is how much of the depth of a cut stack is left in the copy of the
// recording that is learnt from.
var virtualShare = 0.7

// virtualLimit is how deep the recording is cut to learn from it.
func (e *engine) virtualLimit(w *world) int {
	var depths []int
	for i := range w.runs {
		for _, b := range w.runs[i].blocks {
			if !b.rooted {
				depths = append(depths, e.t.Depth(b.stack))
			}
		}
	}
	sortInts(depths)
	return int(float64(depths[len(depths)/2]) * virtualShare)
}

// enoughBlocks is how many blocks of a recording are learnt from.
const enoughBlocks = 8_000

// virtual returns w cut once more, or nil if that teaches nothing. Of a world of more
// than enough blocks it takes stretches.
func (e *engine) virtual(w *world, limit, enough int) *world {
	if limit < 4 {
		return nil
	}
	v := &world{limit: limit, judged: true}
	memo := map[StackID]StackID{}
	var fs []FrameID
	total, seen := 0, 0
	for i := range w.runs {
		total += len(w.runs[i].blocks)
	}
	const stretch = 256
	every := max(1, 1+(total-1)/enough)
	for i := range w.runs {
		r := run{thread: w.runs[i].thread}
		for _, b := range w.runs[i].blocks {
			seen++
			if seen/stretch%every != 0 {
				if len(r.blocks) > 0 {
					v.runs = append(v.runs, r)
					r.blocks = nil
				}
				continue
			}
			b.truth, b.whole = b.stack, b.rooted
			d := e.t.Depth(b.stack)
			if d < limit && b.rooted {
				r.blocks = append(r.blocks, b)
				continue
			}
			b.rooted, b.cut = false, Depth
			if d > limit {
				c, ok := memo[b.stack]
				if !ok {
					fs = e.t.AppendFrames(fs[:0], b.stack)
					c = e.t.Add(fs[d-limit:]...)
					memo[b.stack] = c
				}
				b.stack, b.ext = c, c
			}
			r.blocks = append(r.blocks, b)
		}
		v.runs = append(v.runs, r)
	}
	return v
}

// verdict compares an answer with the truth: 1 right, 0 wrong, -1 not known.
func (e *engine) verdict(b *block, p StackID, o []FrameID) int {
	d := e.t.Depth(p) + len(o)
	td := e.t.Depth(b.truth)
	if b.whole && d != td || d < td {
		return 0
	}
	// o ends with the recorded frames: compare what lies above, innermost first
	s := b.truth
	n := e.t.Depth(b.stack)
	for range n {
		s = e.t.Parent(s)
	}
	x := len(o) - n
	for s != 0 {
		var f FrameID
		if x > 0 {
			x--
			f = o[x]
		} else {
			f = e.t.Frame(p)
			p = e.t.Parent(p)
		}
		if e.method(f) != e.method(e.t.Frame(s)) {
			return 0
		}
		s = e.t.Parent(s)
	}
	if d == td && !b.whole {
		return -1 // a stack as deep as the limit may be complete
	}
	return 1
}

func (e *engine) result(stacks Stacks, w *world, res *Result) {
	type key struct {
		orig, ext, base StackID
		rooted          bool
	}
	memo := map[key]StackID{}
	var fs []FrameID
	export := func(b *block, base StackID) StackID {
		if b.ext == b.stack && b.rooted && b.dropped == 0 && (b.bridged || b.stack != 0) {
			return b.orig
		}
		k := key{b.orig, b.ext, base, b.rooted}
		if s, ok := memo[k]; ok {
			return s
		}
		var s StackID
		from := b.ext
		if !b.rooted || b.stack == 0 {
			fs = e.t.AppendFrames(fs[:0], base)
			for _, f := range fs {
				s = stacks.Push(s, f)
			}
			s = stacks.Push(s, e.opts.Bridge)
			from = b.stack
		}
		fs = e.t.AppendFrames(fs[:0], from)
		for _, f := range fs {
			s = stacks.Push(s, f)
		}
		memo[k] = s
		return s
	}
	st := &res.Stats
	for i := range w.runs {
		r := &w.runs[i]
		base := e.base(r)
		for k := range r.blocks {
			b := &r.blocks[k]
			st.Samples += int(b.n)
			if b.cut == Whole {
				continue
			}
			if b.bridged || b.stack == 0 {
				b.dropped, b.conf, b.how = 0, 0, Bridge
			}
			var kept StackID
			if !b.rooted && k > base.first && k < base.last {
				kept = base.stack
			}
			rep := Repair{Stack: export(b, kept), How: b.how, Confidence: b.conf, Dropped: b.dropped}
			if !b.rooted {
				rep.How = Bridge
				rep.Confidence = 0
				rep.Restored = int32(e.t.Depth(kept))
			} else {
				rep.Restored = int32(e.t.Depth(b.ext) - e.t.Depth(b.stack))
			}
			st.How[rep.How] += int(b.n)
			st.Expected[rep.How] += float64(b.n) * float64(b.conf)
			st.Restored += int64(b.n) * int64(rep.Restored)
			st.Dropped += int64(b.n) * int64(rep.Dropped)
			if rep.How != Complete {
				st.Cut += int(b.n)
			}
			rep.Index, rep.N = b.first, b.n
			res.Repairs[r.thread] = append(res.Repairs[r.thread], rep)
		}
	}
}

// A base is the root frames that all known stacks of a run share, and the blocks
// between which they are known from both sides.
type base struct {
	stack       StackID
	first, last int
}

// fewKnown is how many different known stacks of a run it takes to believe that what
// they share is shared by the others.
const fewKnown = 8

func (e *engine) base(r *run) base {
	b := base{first: len(r.blocks), last: -1}
	distinct := map[StackID]struct{}{}
	for k := range r.blocks {
		x := &r.blocks[k]
		if !x.rooted || x.bridged || x.ext == 0 {
			continue
		}
		if b.last < 0 {
			b.first, b.stack = k, x.ext
		}
		b.last = k
		if len(distinct) < fewKnown {
			distinct[x.ext] = struct{}{}
		}
		if x.ext != b.stack {
			b.stack = e.t.shared(b.stack, x.ext)
		}
	}
	if len(distinct) < fewKnown {
		b.stack = 0
	}
	return b
}

func bucket(n int) int { return min(8, bits.Len(uint(max(n, 0)))) }

func edgeKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

func sortInts(x []int) {
	// depths are small: count
	c := map[int]int{}
	top := 0
	for _, v := range x {
		c[v]++
		top = max(top, v)
	}
	i := 0
	for v := 0; v <= top; v++ {
		for range c[v] {
			x[i] = v
			i++
		}
	}
}
