package stackfix

import (
	"math/bits"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// engine is the state of one Fix. What it tries out before a repair leaves no trace in
// the tree.
type engine struct {
	opts    Options
	minConf float64
	t       *climber
	mth     []MethodID // of each frame
	methods int        // numbers of methods are below it

	// of the process
	cal     calibration
	least   int32 // known calls that tell the base of a bridge
	threads []Thread
	which   []int // of them: those of this process

	seen stackSet // scratch
}

func newEngine(tree *stacks.Tree, frames Frames, opts Options) *engine {
	e := &engine{opts: opts, minConf: opts.MinConfidence, t: newClimber(tree), least: fewCalls}
	if e.minConf == 0 {
		e.minConf = DefaultConfidence
	}
	n := 0
	for s := 1; s < tree.Len(); s++ {
		n = max(n, int(tree.Frame(StackID(s)))+1)
	}
	e.mth = make([]MethodID, n)
	for f := range e.mth {
		e.mth[f] = frames.Method(FrameID(f))
		e.methods = max(e.methods, int(e.mth[f])+1)
	}
	return e
}

// A stackSet is a set of stacks. To empty it costs what is in it, and not what the tree
// holds, of which a process may be a small part.
type stackSet struct {
	in   []bool // by stack
	list []StackID
}

// add adds s and reports whether it is new.
func (x *stackSet) add(s StackID) bool {
	if int(s) >= len(x.in) {
		x.in = reach(x.in, int(s)+1)
	}
	if x.in[s] {
		return false
	}
	x.in[s] = true
	x.list = append(x.list, s)
	return true
}

func (x *stackSet) has(s StackID) bool { return int(s) < len(x.in) && x.in[s] }

func (x *stackSet) clear() {
	for _, s := range x.list {
		x.in[s] = false
	}
	x.list = x.list[:0]
}

// fix repairs the threads of one process and adds to res what it found.
func (s *solver) fix(threads []Thread, which []int, res *Result) {
	w := s.load(threads, which)
	cuts := 0
	for i := range w.runs {
		for _, b := range w.runs[i].blocks {
			if !b.rooted {
				cuts++
			}
		}
	}
	s.cal, s.least = calibration{}, fewCalls
	if cuts > 0 {
		s.repair(w)
	}
	s.result(w, res)
}

func (e *engine) method(f FrameID) MethodID { return e.mth[f] }

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
		for b := range w.runs[i].all() {
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

// virtualShares are how much of the depth of a cut stack is left in the copies of the
// recording that are learnt from. Less leaves more stacks with known truth; more is
// closer to what the recorder left.
var virtualShares = [...]float64{0.7, 0.85}

// How many blocks of a recording are learnt from. A trial of fewer misleads where many
// are cut. Where fewer than one in rarelyCut is, enoughPerCut blocks for each that is cut
// are enough, or as many as have enoughFrames: the trial costs about what the repair does.
const (
	enoughBlocks = 8_000
	rarelyCut    = 5
	enoughPerCut = 6
	enoughFrames = 200_000
)

// enough returns how many blocks of w to learn from, given how many of them are cut, and
// to how many frames.
func enough(w *world, cuts, depth int) int {
	if cuts*rarelyCut > w.blocks {
		return enoughBlocks
	}
	return min(enoughBlocks, max(enoughPerCut*cuts, enoughFrames/max(depth, 1)))
}

// repair finds the missing frames of w, and returns the answers of the trial that came
// before.
func (s *solver) repair(w *world) []row {
	n := s.t.Len()
	trial := s.trial(w)
	s.cal.learn(trial.rows)
	s.least = trial.least
	s.t.Truncate(n)
	s.sides = [len(s.sides)]side{}
	s.world = w
	s.solve()
	return trial.rows
}

// An insight is what a trial teaches.
type insight struct {
	rows  []row
	least int32 // known calls that tell the base of a bridge
}

// trial repairs copies of the recording that are cut once more.
func (s *solver) trial(w *world) insight {
	depth, cuts := s.usualDepth(w)
	var limits [len(virtualShares)]int
	for i, share := range virtualShares {
		limits[i] = int(float64(depth) * share)
	}
	all := insight{least: fewCalls}
	for _, v := range s.virtual(w, limits[:], enough(w, cuts, depth)/len(limits)) {
		if v == nil {
			continue
		}
		s.world = v
		s.solve()
		all.rows = append(all.rows, s.rows...)
		all.least = max(all.least, s.learnBases(v))
	}
	return all
}

// usualDepth is the median depth of what the cuts left, and how many blocks are cut.
func (e *engine) usualDepth(w *world) (depth, cuts int) {
	var depths []int
	for i := range w.runs {
		for _, b := range w.runs[i].blocks {
			if !b.rooted {
				depths = append(depths, e.t.Depth(b.stack))
			}
		}
	}
	sortInts(depths)
	return depths[len(depths)/2], len(depths)
}

// A draft is a copy of the recording, cut once more, while it is made.
type draft struct {
	*builder
	limit int
	cuts  map[StackID]StackID // what is left of stacks
	begun bool                // the run, in this stretch
	fs    []FrameID
}

// cut adds what is left of a block.
func (d *draft) cut(b block) {
	b.truth, b.whole = b.stack, b.rooted
	depth := d.t.Depth(b.stack)
	if b.given = depth < d.limit && b.rooted; !b.given {
		b.rooted, b.cut = false, Depth
		if depth > d.limit {
			s, ok := d.cuts[b.stack]
			if !ok {
				d.fs = d.t.AppendFrames(d.fs[:0], b.stack)
				s = d.t.Add(d.fs[depth-d.limit:]...)
				d.cuts[b.stack] = s
			}
			b.stack, b.ext = s, s
		}
	}
	d.add(&b)
}

// virtual returns copies of w that are cut once more, one for each limit; nil where that
// teaches nothing. Of a world of more than enough blocks they hold stretches, each copy
// others. It reads the samples once more.
func (e *engine) virtual(w *world, limits []int, enough int) []*world {
	vs := make([]*world, len(limits))
	drafts := make([]*draft, len(limits))
	for i, limit := range limits {
		if limit >= 4 {
			vs[i] = &world{judged: true}
			drafts[i] = &draft{builder: e.build(vs[i]), limit: limit, cuts: map[StackID]StackID{}}
		}
	}
	const stretch = 256
	every := max(1, 1+(w.blocks-1)/enough)
	seen, ri, k, thread := 0, -1, 0, 0
	e.scan(func(t int) {
		ri++
		k, thread = 0, t
		for _, d := range drafts {
			if d != nil {
				d.begun = false
			}
		}
	}, func(b *block) {
		seen++
		filled := false
		for i, d := range drafts {
			if d == nil {
				continue
			}
			if seen/stretch%every != i%every {
				d.begun = false
				continue
			}
			if !d.begun {
				d.begin(thread)
				d.begun = true
			}
			bs := w.runs[ri].blocks
			for k < len(bs) && bs[k].first < b.first {
				k++
			}
			if k == len(bs) || bs[k].first != b.first {
				if !filled {
					e.fill(b)
					filled = true
				}
				d.cut(*b)
				continue
			}
			for j, end := k, b.first+b.n; j < len(bs) && bs[j].first < end; j++ {
				d.cut(bs[j])
			}
		}
	})
	for _, d := range drafts {
		if d != nil {
			d.end()
		}
	}
	return vs
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

// result adds the repairs of w to res.
func (e *engine) result(w *world, res *Result) {
	bridged := map[[2]StackID]StackID{} // by base and recorded stack
	var fs []FrameID
	export := func(b *block, base StackID) StackID {
		switch {
		case b.bridged:
			return b.orig
		case b.rooted && b.stack != 0:
			return b.ext
		}
		k := [2]StackID{base, b.stack}
		s, ok := bridged[k]
		if !ok {
			fs = e.t.AppendFrames(fs[:0], b.stack)
			s = e.t.Join(e.t.Push(base, e.opts.Bridge), fs)
			bridged[k] = s
		}
		return s
	}
	st := &res.Stats
	st.Samples += w.samples
	known := e.newBases(w)
	for i := range w.runs {
		r := &w.runs[i]
		base := known.of(r)
		for k := range r.blocks {
			b := &r.blocks[k]
			if b.cut == Whole {
				continue
			}
			if b.bridged || b.stack == 0 {
				b.dropped, b.conf, b.how = 0, 0, Bridge
			}
			rep := Repair{Stack: export(b, base[k]), How: b.how, Confidence: b.conf, Dropped: b.dropped}
			if !b.rooted {
				rep.How = Bridge
				rep.Confidence = 0
				rep.Restored = int32(e.t.Depth(base[k]))
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
