package stackfix

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// How good answers are in this recording is found out by repairing copies of it that are cut
// once more, by the same search. What is made of the verdicts is in calibration.go.

// virtualShares are how much of the depth of a cut stack is left in the copies of the
// recording that are learnt from. Less leaves more stacks with known truth; more is
// closer to what the recorder left. Set by hand.
var virtualShares = [...]float64{0.7, 0.85}

// leastLimit is the least depth to cut to: what is left of stacks that are cut to less
// teaches nothing. Set by hand.
const leastLimit = 4

// sparser is how much fewer stretches of a large recording a copy has than another one: where
// less is left of stacks more of them are cut, and as many teach as much.
var sparser = [len(virtualShares)]int{2, 1}

// How many blocks of a recording are learnt from at most. A trial of fewer misleads where
// many are cut. Where fewer than one in rarelyCut is, enoughPerCut blocks for each that is cut
// are enough, or as many as have enoughFrames: the trial costs about what the repair does.
const (
	enoughBlocks = 8_000
	rarelyCut    = 5
	enoughPerCut = 6
	enoughFrames = 200_000

	// mostTaught is how many frames these blocks have at most. It is far from what EventPipe leaves.
	mostTaught = 1_600_000
)

// enough returns how many blocks of w to learn from, given how many of them are cut, and
// to how many frames.
func enough(w *world, cuts, depth int) int {
	depth = max(depth, 1)
	most := min(enoughBlocks, mostTaught/depth)
	if cuts*rarelyCut > w.blocks {
		return most
	}
	return min(most, max(enoughPerCut*cuts, enoughFrames/depth))
}

// repair finds the missing frames of w, and returns the answers of the trial that came
// before.
func (s *solver) repair(w *world) []row {
	trial := s.trial(w)
	if s.stopped() {
		return nil
	}
	s.cal.learn(trial.rows, s.worthOfWhole())
	s.cal.enclosing = trial.enclosing
	s.least = trial.least
	s.solve()
	s.hands = nil // or they would be held beside what follows
	if s.stopped() {
		return nil
	}
	s.local.forget()
	s.secondOpinion()
	s.local.reset() // who comes next has the scratchpad
	return trial.rows
}

// worthOfWhole is what an answer of a trial for a stack that was whole counts; see wholeWorth.
func (e *engine) worthOfWhole() float64 {
	if e.byName {
		return 1
	}
	return wholeWorth
}

// An insight is what a trial teaches.
type insight struct {
	rows      []row
	least     int32    // known calls that tell the base of a bridge
	enclosing doubtful // see calibration
}

// add adds what another copy taught.
func (x *insight) add(y insight) {
	x.rows = append(x.rows, y.rows...)
	x.least = max(x.least, y.least)
	x.enclosing.learn(y.enclosing)
}

// A trial repairs copies of a recording that are cut once more: side by side where there are
// processors for it, else one after the other in the same memory. Each copy has a tree of its own,
// with its own stacks only: what is known of these lies together.
type trial struct {
	*solver
	limits [len(virtualShares)]int
	enough int // blocks of a copy
	atOnce int // copies
	rooms  [len(virtualShares)]*engine
	idle   chan *solver // what one needed the next one uses again
}

// trial learns from copies of w, and prepares s for w beside that.
func (s *solver) trial(w *world) (all insight) {
	depth, cuts := s.usualDepth(w)
	t := trial{solver: s, enough: enough(w, cuts, depth) / len(virtualShares), atOnce: len(virtualShares), idle: make(chan *solver, len(virtualShares))}
	for i, share := range virtualShares {
		t.limits[i] = int(float64(depth) * share)
	}
	if s.opts.Workers < 2 {
		t.atOnce = 1
	}
	s.begin(w)
	beside := []func(){s.learnModel, func() {
		if s.mayBeStrict() {
			s.learnPieces()
		}
	}}
	all.least = fewCalls
	for from := 0; from < len(t.limits); from += t.atOnce {
		vs := t.some(w, from, beside...)
		beside = nil
		if from+t.atOnce == len(t.limits) { // after the last ones
			beside = append(beside, s.prepare)
		}
		for _, x := range t.teach(vs, beside...) {
			all.add(x)
		}
	}
	s.hire(t.idle)
	return all
}

// some makes copies of w, as many as there are at once, from one on. What else is given is done
// beside that.
func (t *trial) some(w *world, from int, beside ...func()) []*world {
	var limits [len(virtualShares)]int // 0: not now
	for i := from; i < from+t.atOnce; i++ {
		limits[i] = t.limits[i]
		if from == 0 {
			t.rooms[i] = t.room()
		} else {
			t.rooms[i] = t.rooms[0]
			t.rooms[i].t.Truncate(1)
		}
	}
	return t.copies(w, limits[:], t.enough, t.rooms[:], beside...)
}

// teach repairs copies, and returns what those that are there taught. What else is given is done
// beside that.
func (t *trial) teach(vs []*world, beside ...func()) (taught []insight) {
	of := make([]insight, len(vs))
	t.each(len(vs)+len(beside), func(i int) {
		if i >= len(vs) {
			beside[i-len(vs)]()
		} else if vs[i] != nil {
			of[i] = t.repaired(i, vs[i])
		}
	})
	for i, v := range vs {
		if v != nil {
			taught = append(taught, of[i])
		}
	}
	return taught
}

// repaired repairs copy number i.
func (t *trial) repaired(i int, v *world) insight {
	x := &solver{}
	select {
	case x = <-t.idle:
	default:
	}
	x.engine = t.rooms[i]
	x.begin(v)
	x.learnModel()
	x.prepare()
	x.solve()
	x.local.reset()
	taught := insight{x.rows, x.learnBases(v), x.learnEnclosing(v)}
	x.world = nil
	t.idle <- x
	return taught
}

// room returns an engine like e without stacks.
func (e *engine) room() *engine {
	x := *e
	x.t = newClimber(stacks.NewTree())
	x.short.engine, x.cal, x.least = &x, calibration{}, fewCalls
	x.seen, x.called, x.pad, x.meter = stackSet{}, callTable{}, nil, Meter{}
	return &x
}

// A mover adds stacks of one engine to the tree of another one.
type mover struct {
	from, to *engine
	number   int       // of those which the first one's scratchpad has in it for
	moved    []StackID // their new names are there
	path     []StackID
}

func newMover(from, to *engine, number int) mover {
	from.pad.reach(from.t.Len())
	return mover{from: from, to: to, number: number}
}

// move returns the stack that is s in the other tree.
func (m *mover) move(s StackID) StackID {
	if m.from == m.to {
		return s
	}
	m.path = m.path[:0]
	out := StackID(0)
	for ; s != 0; s = m.from.t.Parent(s) {
		if out = m.from.pad.of(s)[m.number]; out != 0 {
			break
		}
		m.path = append(m.path, s)
	}
	for _, s := range slices.Backward(m.path) {
		out = m.to.t.Push(out, m.from.t.Frame(s))
		m.from.pad.of(s)[m.number] = out
	}
	m.moved = append(m.moved, m.path...)
	return out
}

// end leaves the scratchpad as it was.
func (m *mover) end() {
	for _, s := range m.moved {
		m.from.pad.of(s)[m.number] = 0
	}
}

// usualDepth is the median depth of what the cuts left of samples, and how many blocks of these are
// cut; where none is, that of other events.
func (e *engine) usualDepth(w *world) (depth, cuts int) {
	if depth, cuts = e.depthOf(w, false); cuts == 0 {
		return e.depthOf(w, true)
	}
	return depth, cuts
}

// depthOf is usualDepth of samples, or of other events.
func (e *engine) depthOf(w *world, evidence bool) (depth, cuts int) {
	blocks := make([]int, 1) // by depth
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			if b := &w.runs[i].blocks[k]; !b.rooted && b.evidence == evidence {
				d := e.t.Depth(b.stack)
				blocks = reach(blocks, d+1)
				blocks[d]++
				cuts++
			}
		}
	}
	if cuts == 0 {
		return 0, 0
	}
	for n := blocks[0]; n <= cuts/2; n += blocks[depth] {
		depth++
	}
	return depth, cuts
}

// A draft is a copy of the recording, cut once more, while it is made.
type draft struct {
	*builder
	mover
	limit int
	first int                 // number of its first stretch
	every int                 // of how many stretches it takes one
	cuts  map[StackID]StackID // what is left of stacks
	fs    []FrameID
}

// cut adds what is left of a block.
func (d *draft) cut(b block) {
	b.stack = d.move(b.stack)
	b.ext, b.truth, b.whole = b.stack, b.stack, b.rooted
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

// copies returns copies of w that are cut once more, one for each limit and in a room for it, which
// may be e; nil where that teaches nothing. Of a world of more than enough blocks they hold
// stretches, each copy others. Each reads those samples once more. What else is given is done
// beside that, if there are processors for it; it changes no block, nor what is in a scratchpad.
func (e *engine) copies(w *world, limits []int, enough int, rooms []*engine, beside ...func()) []*world {
	vs := make([]*world, len(limits))
	var drafts []*draft
	every := max(1, 1+(w.blocks-1)/enough)
	for i, limit := range limits {
		if limit < leastLimit {
			continue
		}
		vs[i] = &world{judged: true}
		d := &draft{builder: rooms[i].build(vs[i]), mover: newMover(e, rooms[i], i), limit: limit, first: i, every: 1, cuts: map[StackID]StackID{}}
		if every > 1 {
			d.every = every * sparser[i]
		}
		if rooms[i] != e {
			rooms[i].t.Grow(2 * w.frames / d.every)
		}
		drafts = append(drafts, d)
	}
	steps := beside
	for _, d := range drafts {
		steps = append(steps, func() {
			if every == 1 {
				e.copyStretch(w, w.stretches[0], w.blocks, d)
				d.w.stretches = w.stretches // of such a copy others can be made
				return
			}
			for i := d.first; i < len(w.stretches); i += d.every {
				e.copyStretch(w, w.stretches[i], stretch, d)
			}
		})
	}
	e.each(len(steps), func(i int) { steps[i]() })
	for _, d := range drafts {
		d.builder.end()
		d.mover.end()
	}
	return vs
}

// copyStretch copies the n blocks of w from a position on into d.
func (e *engine) copyStretch(w *world, at position, n int, d *draft) {
	ri, k, thread := at.run, 0, e.which[at.which]
	if at.begins {
		ri--
	} else {
		k, _ = slices.BinarySearchFunc(w.runs[ri].blocks, at.sample, func(b block, at int32) int { return cmp.Compare(b.first, at) })
	}
	begun := false // the run, in this stretch
	e.scan(at, func(t int) {
		ri++
		k, thread = 0, t
		begun = false
	}, func(b *block) bool {
		bs := w.runs[ri].blocks
		for k < len(bs) && bs[k].first < b.first {
			k++
		}
		if !begun {
			d.begin(thread)
			begun = true
		}
		if k < len(bs) && bs[k].first == b.first {
			for end := b.first + b.n; k < len(bs) && bs[k].first < end; k++ {
				d.cut(bs[k])
			}
		} else {
			e.fill(b)
			d.cut(*b)
		}
		n--
		return n > 0
	})
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
