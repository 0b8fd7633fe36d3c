package stackfix

import (
	"math"
	"math/bits"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// engine is the state of one Fix. What it tries out before a repair leaves no trace in
// the tree.
type engine struct {
	*stop
	opts    Options
	minConf float64
	t       *climber
	mth     []MethodID                 // of each frame
	methods int                        // numbers of methods are below it
	each    func(n int, f func(i int)) // Options.Each; once stopped it leaves calls out
	bridged []bool                     // stacks that hold the bridge already; nil: there are none
	byName  bool                       // nearly each frame is its own method: call sites cannot be told apart

	// of the process
	cal     calibration
	short   shortcuts
	least   int32 // known calls that tell the base of a bridge
	threads []Thread
	which   []int    // of them: those of this process
	section *section // nil: all of it

	observe func(thread int, b *block, x opinion) // set by tests that learn what opinions are worth

	// scratch
	seen   stackSet
	meter  Meter
	called callTable
	pad    scratchpad // of shortcuts while they are learned, then of threadTree, then of consensus, then of threadTree
}

func newEngine(tree *stacks.Tree, frames Frames, opts Options) *engine {
	e := &engine{opts: opts, minConf: opts.MinConfidence, t: newClimber(tree), least: fewCalls}
	e.each = func(n int, f func(i int)) {
		each := opts.Each
		if each == nil {
			each = inTurn
		}
		each(n, func(i int) {
			if !e.stopped() {
				f(i)
			}
		})
	}
	if e.minConf == 0 {
		e.minConf = DefaultConfidence
	}
	n := 0
	for s := 1; s < tree.Len(); s++ {
		callers, f := tree.Node(StackID(s))
		n = max(n, int(f)+1)
		if f == opts.Bridge && e.bridged == nil {
			e.bridged = make([]bool, tree.Len())
		}
		if e.bridged != nil {
			e.bridged[s] = f == opts.Bridge || e.bridged[callers]
		}
	}
	e.mth = make([]MethodID, n)
	distinct := map[MethodID]bool{}
	for f := range e.mth {
		e.mth[f] = frames.Method(FrameID(f))
		distinct[e.mth[f]] = true
		e.methods = max(e.methods, int(e.mth[f])+1)
	}
	e.short.engine = e
	e.byName = 10*len(distinct) >= 9*n
	return e
}

// inTurn is an Options.Each that does one after the other.
func inTurn(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// fix repairs the threads of one process, hands on what it found and counts it in res.
func (s *solver) fix(threads []Thread, which []int, res *Result) {
	w, ok := s.load(threads, which, mostCuts)
	switch {
	case s.stopped():
	case ok:
		s.fixWorld(w, res)
	default:
		s.inSections(threads, which, res)
	}
}

// fixWorld repairs a world, hands on what it found and counts it in res.
func (s *solver) fixWorld(w *world, res *Result) {
	if s.section == nil {
		res.Stats.Samples += w.samples
	} else {
		res.Stats.Samples += s.section.samples
	}
	s.cal, s.least = calibration{}, fewCalls
	open := w.open()
	if open {
		s.repair(w)
		s.takeBackOthers(w) // or they would vote
	}
	if s.stopped() {
		return
	}
	d := s.newReview(w)
	reviewed := open && s.minConf <= 1
	if reviewed {
		d.takeBack()
		d.takeBackTurns()
		d.takeBackContested()
	}
	c := s.newConsensus(w)
	var found [2][][]Repair // of each run: of samples, of other events
	// What others vote for is no evidence, so samples come first: their repairs do not depend on
	// whether those of other events are asked for.
	for i, evidence := range []bool{false, true} {
		found[i] = make([][]Repair, len(w.runs))
		if !w.cut(evidence) || evidence && s.opts.SamplesOnly || s.stopped() {
			continue
		}
		c.find(evidence, d.left)
		if reviewed && !s.stopped() {
			s.lastOpinion(c, d)
			d.takeBack()
			d.takeBackContested()
			c.keep(d.left)
		}
		if !s.stopped() {
			s.takeBackOthers(w) // those of the votes, and of the last opinion
			s.result(c, evidence, found[i], res)
		}
	}
	if s.stopped() {
		return
	}
	for i := range w.runs {
		if repairs := inOrder(found[0][i], found[1][i]); len(repairs) > 0 {
			s.opts.Found(w.runs[i].thread, repairs)
		}
	}
}

// inOrder puts repairs together that are each in the order of the samples.
func inOrder(a, b []Repair) []Repair {
	if len(b) == 0 {
		return a
	}
	all := make([]Repair, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		first := &a
		if b[0].Index < a[0].Index {
			first = &b
		}
		all, *first = append(all, (*first)[0]), (*first)[1:]
	}
	return append(append(all, a...), b...)
}

func (e *engine) method(f FrameID) MethodID { return e.mth[f] }

// holdsBridge tells whether the bridge is in s, a stack of the recording.
func (e *engine) holdsBridge(s StackID) bool {
	return e.bridged != nil && e.bridged[s]
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
	seen := map[StackID]uint8{} // 1 + with how many suspects, the fewest so far
	for i := range w.runs {
		for b := range w.runs[i].all() {
			d := e.t.Depth(b.stack)
			for s := b.stack; d > int(b.dropped)+1; d-- {
				if n := seen[s]; n > 0 && n <= b.dropped+1 {
					break // and so are its callers
				}
				seen[s] = b.dropped + 1
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

// parts returns what is known of the stacks of samples, or of other events, that have no answer.
func (e *engine) parts(c *consensus, evidence bool) map[*block]*part {
	parts := map[*block]*part{}
	known := e.newBases(c.w)
	var based []*block
	for i := range c.w.runs {
		r := &c.w.runs[i]
		if e.stopped() {
			return nil
		}
		if !r.cut(evidence) {
			continue
		}
		base := known.of(r)
		for k := range r.blocks {
			b := &r.blocks[k]
			if _, n := e.section.clip(r.thread, b.first, b.n); b.rooted || b.evidence != evidence || n <= 0 {
				continue
			}
			p := part{base: base[k], baseConf: baseConfidence, stack: b.stack, shortest: math.MaxInt}
			if c.parts[b] != nil {
				p = c.part(known, r, b, base[k])
			}
			parts[b] = &p
			if p.base != 0 {
				based = append(based, b)
			}
		}
	}
	if len(based) > 0 {
		homes := e.newHabitats(c.w, based, parts)
		for _, b := range based {
			p := parts[b]
			p.base = homes.within(p.base, b.stack, p.shortest)
		}
	}
	return parts
}

// result adds the repairs of samples, or of other events, to those of each run, and counts them in res.
func (e *engine) result(c *consensus, evidence bool, found [][]Repair, res *Result) {
	w := c.w
	bridged := map[[2]StackID]StackID{} // by base and recorded stack
	var fs []FrameID
	export := func(b *block, base, stack StackID) StackID {
		switch {
		case b.bridged:
			return b.orig
		case b.rooted && b.stack != 0:
			return b.ext
		}
		k := [2]StackID{base, stack}
		s, ok := bridged[k]
		if !ok {
			fs = e.t.AppendFrames(fs[:0], stack)
			s = e.t.Join(e.t.Push(base, e.opts.Bridge), fs)
			bridged[k] = s
		}
		return s
	}
	st := &res.Stats
	parts := e.parts(c, evidence)
	for i := range w.runs {
		if e.stopped() {
			return
		}
		r := &w.runs[i]
		for k := range r.blocks {
			b := &r.blocks[k]
			if b.cut == Whole || b.evidence != evidence {
				continue
			}
			first, n := e.section.clip(r.thread, b.first, b.n)
			if n <= 0 {
				continue
			}
			if b.bridged || b.stack == 0 {
				b.dropped, b.conf, b.how = 0, 0, Bridge
			}
			part := part{baseConf: baseConfidence, stack: b.stack}
			if p := parts[b]; p != nil {
				part = *p
			}
			if part.baseConf < e.minConf {
				part.base = 0 // more is asked for than any base is worth
			}
			part.base = e.short.outer(part.base, b.time)
			part.stack = e.short.inner(part.stack, b)
			rep := Repair{Stack: export(b, part.base, part.stack), How: b.how, Confidence: b.conf, Dropped: b.dropped}
			if !b.rooted {
				rep.How = Bridge
				rep.Confidence = 0
				rep.Above = int32(e.t.Depth(part.stack) - e.t.Depth(b.stack))
				rep.Restored = int32(e.t.Depth(part.base)) + rep.Above
				if rep.Above > 0 {
					rep.AboveConfidence = float32(part.conf)
				}
				if part.base != 0 {
					rep.BaseConfidence = float32(part.baseConf)
				}
			} else {
				rep.Restored = int32(e.t.Depth(b.ext) - e.t.Depth(b.stack))
			}
			st.How[rep.How] += int(n)
			st.Expected[rep.How] += float64(n) * float64(b.conf)
			st.Restored += int64(n) * int64(rep.Restored)
			st.Dropped += int64(n) * int64(rep.Dropped)
			if rep.How != Complete {
				st.Cut += int(n)
			}
			rep.Index, rep.N = first, n
			found[i] = append(found[i], rep)
		}
	}
}

func bucket(n int) int { return min(8, bits.Len(uint(max(n, 0)))) }

func edgeKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }
