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
	idx    *index
	round  int
	began  int // the round with which the stage began
	stage  stage
	// of this round and the thread of local
	answers memo
	pieces  pieces

	hands  []*solver // who search side by side; see passBeside
	isHand bool

	// scratch
	fo     []FrameID
	fs     []FrameID
	places [2]methodPlaces // of the sides that are known
	twice  methodPlaces
	o      []FrameID
	calls  surprises // of o
	tCalls surprises
	laps   zArrays
	cs     []cand
	bounds []bound // of cs
	ps     []StackID
	ends   []prefixEnd
	outer  []StackID
	firsts []FrameID // the outermost ones of outer
	sides  [4]side
	local  threadTree
	logs   logs
	stamp  uint32
	stamps []uint32
	doubts perStack[float32] // what doubt says; 0: not worked out
	more   []vote            // those that a longer context has not heard
	steps  []float64         // see weigh
	names  []StackID         // of what a hand has pushed
	// room for the prefixes and weights of windows
	spareOf []uint32
	spareP  []float64
}

func newSolver(tree *stacks.Tree, frames Frames, opts Options) *solver {
	return &solver{engine: newEngine(tree, frames, opts)}
}

// solve repairs the blocks of the world, for which e was prepared.
func (e *solver) solve() {
	// The trial asks how good evidence is, not for all that can be found. By names alone, where calls of one
	// method can't be told apart, what was not made longer first is wrong more often.
	if !e.judged && !e.byName {
		e.search(asRecorded)
	}
	e.search(longer)
}

// begin turns to another world. What was needed for the one before is used again.
func (e *solver) begin(w *world) {
	e.world, e.sides = w, [len(e.sides)]side{}
	e.rows = nil
	e.local.pad = &e.pad
	if e.idx == nil {
		e.idx = &index{}
	}
	e.idx.reset()
	e.local.reset()
	e.last = map[int64]int{}
	e.answers.reset()
	e.pieces.reset()
}

// prepare learns from what is known of the world, but for the model.
func (e *solver) prepare() {
	e.retain.begin(&e.pairs)
	for i := range e.runs {
		r := &e.runs[i]
		e.enclose(r)
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
	e.round, e.began = 0, 0
	e.retain.finish()
	e.updateIndex()
}

// A stage of the search. What can be answered as it was recorded is evidence for the rest, and better
// evidence than what stacks are made longer by: that comes second. Only a stack that a recursion
// cuts waits for it: the longer it is, the fewer turns fit.
type stage uint8

const (
	asRecorded stage = iota // nothing is made longer
	longer
)

// search tries the open blocks, round by round while that finds something.
func (e *solver) search(s stage) {
	e.stage, e.began = s, e.round
	for i := range e.runs {
		r := &e.runs[i]
		for _, k := range r.open {
			r.blocks[k].triedExt = 0 // in another stage
		}
	}
	for range mostRounds {
		if e.stopped() {
			return
		}
		if e.round > 0 { // or it is prepared
			e.retain.finish()
			e.updateIndex()
		}
		n := e.pass()
		e.round++
		if n == 0 {
			break
		}
	}
}

// found makes evidence of block k of r, whose whole stack was found.
func (e *solver) found(r *run, k int) {
	e.retain.count(e.t, r.blocks, k)
	e.retain.count(e.t, r.blocks, k+1)
	if !e.isHand { // or the others would see it
		e.idx.addKnown(r.blocks[k].ext)
	}
	e.local.fresh = append(e.local.fresh, r.blocks[k].ext)
}

// Set by hand, not fitted.
const (
	// mostRounds ends a stage of a search that still finds something.
	mostRounds = 8
	// habitsDoubt is how much of the strangeness of an answer, in bits, counts against it
	// where no neighbour speaks for it: it counted already when it was chosen.
	habitsDoubt = 1.0 / 8
	// lessRisk is how much of the risk that is taken otherwise is taken in a recursion, and
	// where not more than one recorded stack speaks for an answer: of such that were 90 to 95 %
	// sure one in five was wrong.
	lessRisk = 0.5
	// leastRisk is that where a stack was extended first and no neighbour overlaps it: of such
	// answers that were 90 to 97 % sure one in four was wrong.
	leastRisk = 0.25
)

// pass tries every open block once and returns how many it changed.
func (e *solver) pass() int {
	if shares := e.shares(); shares != nil {
		return e.passBeside(shares)
	}
	n := 0
	for ri := range e.runs {
		n += e.passRun(ri)
		e.runs[ri].close()
	}
	return n
}

// close forgets which blocks were open and have an answer now.
func (r *run) close() {
	r.open = slices.DeleteFunc(r.open, func(k int32) bool { return r.blocks[k].rooted })
}

// passRun is pass for one run.
func (e *solver) passRun(ri int) int {
	n := 0
	r := &e.runs[ri]
	bs := r.blocks
	last, next := -1, -1
	for j, k32 := range r.open {
		if j%blocksPerAsk == 0 && e.stopped() {
			break
		}
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
		e.o = e.t.AppendFrames(e.o[:0], blk.ext)
		if e.stage == asRecorded && e.recursion(0, e.o) > 0 {
			continue // whatever answers it goes through a recursion
		}
		e.learnThread(ri)
		e.calls.reset()
		e.setSide(0, bs, last, k)
		e.setSide(1, bs, next, k)
		if e.root(ri, k, blk) {
			e.found(r, k)
			n++
			continue
		}
		if e.stage == asRecorded {
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
	return n
}

// root tries to find the whole stack of blk.
func (e *solver) root(ri, bi int, blk *block) bool {
	f, b := &e.sides[0], &e.sides[1]
	blk.guess, blk.guessed, blk.confirmable = 0, 0, false
	a := e.answer(blk.ext, blk.between, f, b)
	took := blk.measure()
	if a.none || a.refused && took.deviation == 0 || e.short.untimely(a.c.p, e.o, blk) {
		return false
	}
	c, v := &a.c, a.evidence
	own, conf, guessed := e.sureness(&a, blk, took)
	verdict := -1
	if e.judged {
		verdict = e.verdict(blk, c.p, e.o)
	}
	// an answer that follows a wrong neighbour teaches nothing
	misled := c.kf > 0 && f.bad || c.kb > 0 && b.bad
	if verdict >= 0 && !misled && !c.strange() && e.extRight(blk) {
		e.keep(int64(ri)<<32|int64(bi), row{v, verdict == 1, blk.whole, e.question(blk.truth, c.p)})
	}
	how := e.how(blk, c)
	hearsay := c.kf+c.kb > 0 && (c.kf == 0 || !f.direct) && (c.kb == 0 || !b.direct)
	blk.guess, blk.guessed, blk.guessHow = c.p, float32(guessed), how
	blk.guessForeign, blk.guessMargin, blk.guessRec, blk.guessSides = float32(c.foreign), v.margin, v.rec, v.sides
	need, needAll := e.needed(blk, c, v.rec > 0, how)
	if own < need || conf < needAll {
		// by names the model is wrong more often
		blk.confirmable = !e.byName && e.isStrict(blk) && v.rec == 0 && !hearsay && own >= leastOwn && conf >= leastGuess
		return false
	}
	if v.rec > 0 && e.stage == asRecorded || !e.judged && e.isStrict(blk) && min(conf, e.worth(blk, c)) < needAll ||
		hearsay && !e.heardWell(blk, c, v.rec > 0, conf) {
		return false
	}
	blk.hearsay = hearsay && blk.ext != blk.stack
	blk.how = how
	blk.bad = verdict == 0
	blk.conf = float32(conf)
	blk.ext = e.t.Join(c.p, e.o)
	blk.rooted = true
	return true
}

// sureness is how sure a is as the answer for blk, which took so long: by the model alone; by all that lowers it;
// and the lesser of the two before the time was asked.
func (e *solver) sureness(a *answer, blk *block, took measure) (own, all, guessed float64) {
	c := &a.c
	own = e.cal.confidence(a.evidence)
	all = min(own, a.donor, float64(blk.conf))
	if c.kf == 0 && c.kb == 0 {
		// no neighbour speaks: the code's own habits are all there is
		all = min(all, c.share*math.Exp2(-c.foreign*habitsDoubt))
	}
	if c.strange() {
		all *= c.caller / fewCallers
	}
	if a.refused {
		own, all = min(own, leavesWorth), min(all, leavesWorth)
	}
	guessed = min(own, all)
	if guessed >= leastFit {
		fits := e.fits(took, c.p, e.o)
		own, all = surer(own, fits), surer(all, fits)
	}
	return own, all, guessed
}

// strange reports whether the code is hardly ever called as c has it: then it is wrong whatever else speaks for it.
func (c *cand) strange() bool { return c.caller < fewCallers }

// keep keeps what became of the answer for a block, in place of what became of an older one.
func (e *solver) keep(block int64, x row) {
	if i, ok := e.last[block]; ok {
		e.rows[i] = x
		return
	}
	e.last[block] = len(e.rows)
	e.rows = append(e.rows, x)
}

// heardWell reports whether c, of which only answers for other cut stacks tell, may be the answer for blk.
func (e *solver) heardWell(blk *block, c *cand, recursive bool, conf float64) bool {
	if recursive && float64(max(c.kf, c.kb)) < shortOverlap*float64(e.t.Depth(blk.stack)) {
		return false
	}
	return e.judged || !e.isStrict(blk) || conf >= sureRepeated || c.share >= clearShare
}

// needed is how sure c, an answer for blk of which how speaks, must be: by the model alone, and by
// all that lowers it. More than minConf is needed where the model was found to be wrong more often.
func (e *solver) needed(blk *block, c *cand, recursive bool, how How) (own, all float64) {
	ownRisk, risk := 1.0, 1.0
	if recursive {
		// a wrong depth of a recursion misleads all that overlap it
		ownRisk = lessRisk
	}
	if e.isStrict(blk) && (how == Before || how == After || how == Elsewhere) {
		risk = lessRisk
	}
	if e.isStrict(blk) && c.kf+c.kb == 0 && blk.ext != blk.stack {
		// nor does anything overlap what it was extended by
		risk = min(risk, leastRisk)
	}
	return 1 - (1-e.minConf)*ownRisk, max(1-(1-e.minConf)*risk, e.neededOf(how))
}

// neededOf is how sure an answer must be of which how speaks, whatever it is. By names all calls of
// a method look the same: a way that always leads so deep that its stacks are cut shows in none,
// and callers that never vary among the others do there. Of such answers that were 90 to 95 % sure
// one in six was wrong.
func (e *engine) neededOf(how How) float64 {
	if e.byName && how == Caller {
		return 1 - (1-e.minConf)*lessRisk
	}
	return e.minConf
}

// mayBeStrict reports whether there may be answers that need more.
func (e *solver) mayBeStrict() bool {
	return slices.ContainsFunc(e.runs, func(r run) bool {
		return slices.ContainsFunc(r.blocks, func(b block) bool { return !b.rooted && e.isStrict(&b) })
	})
}

// isStrict reports whether an answer for blk needs more where little overlaps it. That was found for
// stacks that a limit of frames cut: of others no truth was at hand.
func (e *solver) isStrict(blk *block) bool { return blk.cut == Depth }

// how tells what speaks for c, an answer for blk.
func (e *solver) how(blk *block, c *cand) How {
	f, b := &e.sides[0], &e.sides[1]
	switch {
	case c.depth == 0 && blk.ext == blk.stack:
		return Complete
	case blk.how == Caller:
		return Caller
	case c.kf > 0 && c.kb > 0:
		return BothSides
	case blk.ext != blk.stack:
		return Chain
	case c.kf > 0 && f.direct:
		return Before
	case c.kb > 0 && b.direct:
		return After
	case c.kf > 0 || c.kb > 0:
		return Chain
	}
	return Elsewhere
}
