package stackfix

import (
	"math"
	"math/bits"
)

// Evidence for an answer comes in cells: by kind and by strength.
const (
	numRecs    = 3 // what recursion says
	numVotes   = 5 // what stands above the same first frames in known stacks
	numShares  = 6 // of the answer's innermost method among the callers of these frames
	numSides   = 3 // neighbours that overlap
	numMargins = 8 // what margin says
	numWins    = 4 // by how many bits the answer leads
	numCells   = numRecs * numVotes * numShares * numSides * numMargins * numWins
)

// Evidence for an extension comes in cells of its own.
const (
	numBits     = 7 // of the overlap
	numLeads    = 4 // by how many bits it leads
	numDoubts   = 6 // what doubtAbove says
	numOverlaps = numRecs * numBits * numLeads * 2 * numDoubts * numShares
	numCallers  = 6
	numContexts = numOverlaps
	numExtCells = numOverlaps + numCallers + numContexts
)

// A row is one answer that can be judged.
type row struct {
	cell  int
	right bool
	key   [2]StackID
	ext   bool // about an extension
}

// An evidence is what speaks for an answer.
type evidence struct{ rec, votes, share, sides, margin, win int }

func (v evidence) cell() int {
	return ((((v.rec*numVotes+v.votes)*numShares+v.share)*numSides+v.sides)*numMargins+v.margin)*numWins + v.win
}

func evidenceOf(cell int) (v evidence) {
	cell, v.win = cell/numWins, cell%numWins
	cell, v.margin = cell/numMargins, cell%numMargins
	cell, v.sides = cell/numSides, cell%numSides
	cell, v.share = cell/numShares, cell%numShares
	v.rec, v.votes = cell/numVotes, cell%numVotes
	return v
}

// describe puts the evidence for c into a cell and tells how sure its donors are.
func (e *solver) describe(c *cand, o []FrameID, f, b *side, vs *blend, lead float64) (cell int, donor float64) {
	share, all := c.votes*math.Exp2(-c.foreign), 0.0
	for i := range e.cs {
		if e.cs[i].votes > 0 {
			all += e.cs[i].votes * math.Exp2(-e.cs[i].foreign)
		}
	}
	if all > 0 {
		share /= all
	}
	c.share = share * (1 - vs.other)
	votes := 0
	switch {
	case c.votes == 0:
	case share < 0.6:
		votes = 1
	case share < 0.9 || vs.other > 0.12:
		votes = 2
	case share < 0.97 || vs.other > 0.03:
		votes = 3
	default:
		votes = 4
	}
	sides, far := 0, math.MaxInt
	for i, k := range [2]int{c.kf, c.kb} {
		if s := [2]*side{f, b}[i]; k > 0 {
			sides, donor, far = sides+1, max(donor, s.conf), min(far, s.far)
		}
	}
	if sides == 0 {
		donor, far = 1, 0
	}
	margin := e.margin(c) - bitsApart*float64(far)
	if sides < 2 {
		margin -= c.foreign / 2
	}
	return evidence{e.recursion(c.p, o), votes, bucketOf(c.caller, shares[:]), sides, bucketOf(margin, margins[:]), bucketOf(lead, wins[:])}.cell(), donor
}

// apart is how far away a stack is: 0 for the next block, and one more for each time
// that it is twice as far.
func apart(blocks int) int { return bits.Len(uint(blocks)) - 1 }

// bitsApart is what an overlap is worth less for each doubling of the distance.
const bitsApart = 0.5

// margin is by how many bits the sides overlap more with c than with any other candidate:
// less than 0 where another one overlaps more. An overlap that is nearly as long elsewhere,
// as in a recursion, is no evidence for one place: half of what it is worth there counts
// against it. What the second side says is half known from the first.
func (e *solver) margin(c *cand) float64 {
	var otherF, otherB float64 // the next best overlaps
	for i := range e.cs {
		if y := &e.cs[i]; y.p != c.p {
			otherF, otherB = max(otherF, y.bf), max(otherB, y.bb)
		}
	}
	mf, mb := c.bf-otherF, c.bb-otherB
	return mf + mb - max(0, min(mf, mb))/2 - max(otherF, otherB)/2
}

// doubtAbove is how many bits it takes to believe that p stands above f, by who calls
// whom alone: 0 where every caller is the only one that is known.
func (e *solver) doubtAbove(p StackID, f FrameID) float64 {
	if p == 0 {
		return 0
	}
	return e.doubt(p) + e.m.callerSurprise(e.method(e.t.Frame(p)), e.method(f))
}

// doubt is that of all calls in p.
func (e *solver) doubt(p StackID) float64 {
	e.doubts.reach(e.t.Len())
	n := len(e.doubts.used)
	for ; e.t.Depth(p) > 1 && e.doubts.of[p] == 0; p = e.t.Parent(p) {
		e.doubts.used = append(e.doubts.used, p)
	}
	d := float64(e.doubts.of[p])
	for i := len(e.doubts.used) - 1; i >= n; i-- {
		s := e.doubts.used[i]
		d += e.m.callerSurprise(e.method(e.t.Frame(e.t.Parent(s))), e.method(e.t.Frame(s)))
		e.doubts.of[s] = float32(d)
	}
	return d
}

// recursion tells whether the cut goes through a recursion, whose depth nothing
// tells: 0 if the first method of o comes once only in p and o, 1 if it comes
// again, 2 if it is called again by the method that calls it at the cut.
func (e *solver) recursion(p StackID, o []FrameID) int {
	h := e.method(o[0])
	rec := 0
	if p == 0 {
		for _, f := range o[1:] {
			if e.method(f) == h {
				return 1
			}
		}
		return 0
	}
	caller := e.method(e.t.Frame(p))
	last := h
	for _, f := range o[1:] {
		m := e.method(f)
		if m == h {
			if last == caller {
				return 2
			}
			rec = 1
		}
		last = m
	}
	for p != 0 {
		m := e.method(e.t.Frame(p))
		p = e.t.Parent(p)
		if m == h {
			if p != 0 && e.method(e.t.Frame(p)) == caller {
				return 2
			}
			rec = 1
		}
	}
	return rec
}

// calibration is how often the answers of a cell are right in one recording.
type calibration struct {
	right, n       [numCells]float64
	extRight, extN [numExtCells]float64
	// how much more or less than usual is right in this recording, in logits:
	// in all, and of each group of cells
	all, extShift float64
	group         [numGroups]float64
	flatter       [numSlopes]float64 // how much less than usual the strength of evidence tells
	learnt        [numGroups]int     // answers
	taught        bool               // the trial is over
	enclosing     doubtful           // that a cut stack begins with what the whole ones around it share
}

// An overlap is what speaks for an extension by frames that stand above equal ones: in
// a neighbour, or above equal contexts.
type overlap struct{ rec, bits, lead, both, doubt, share int }

func (v overlap) cell() int {
	return ((((v.rec*numBits+v.bits)*numLeads+v.lead)*2+v.both)*numDoubts+v.doubt)*numShares + v.share
}

// overlapOf takes a cell of overlaps or of contexts.
func overlapOf(cell int) (v overlap) {
	if cell >= numOverlaps+numCallers {
		cell -= numOverlaps + numCallers
	}
	cell, v.share = cell/numShares, cell%numShares
	cell, v.doubt = cell/numDoubts, cell%numDoubts
	cell, v.both = cell/2, cell%2
	cell, v.lead = cell/numLeads, cell%numLeads
	v.rec, v.bits = cell/numBits, cell%numBits
	return v
}

// callerCell is the cell of callers that never vary in n calls.
func callerCell(n int) int { return numOverlaps + bucketOf(float64(n), unvarying[:]) }

// contextCell is the cell of what stands above equal contexts, by a cell as of overlaps.
// In place of both it knows many: four stacks or more.
func contextCell(c int) int { return numOverlaps + numCallers + c }

// weights are what cells are worth in recordings at large: logistic functions of
// features, each of one kind of evidence. TestPriors learns them from recordings with known truth.
type weights struct {
	answer  []float64 // see cellFeatures
	overlap []float64 // see extFeatures
	caller  []float64 // see callerFeature
	context []float64 // see extFeatures
	// What follows is chosen, not fitted.
	// strength is how many answers of a recording weigh as much as the prior.
	strength float64
	// variances, in logits, of how far a recording is from others, and a group
	// of its cells from its others
	shiftVar, groupVar float64
	// variance of how much less than usual the strength of evidence tells
	slopeVar float64
}

// Features say where the weights of a cell are.
type features [5]int

const (
	numSideFeatures   = numMargins + numWins
	numAnswerFeatures = numRecs * (numVotes + numShares + numSides*numSideFeatures)
	numExtFeatures    = numRecs * (numBits + numLeads + 2 + numDoubts + numShares)
)

func cellFeatures(cell int) features {
	v := evidenceOf(cell)
	at := v.rec * (numAnswerFeatures / numRecs)
	side := at + numVotes + numShares + v.sides*numSideFeatures
	return features{at + v.votes, at + numVotes + v.share, side + v.margin, side + numMargins + v.win, -1}
}

// extFeatures are those of a cell of overlaps or contexts.
func extFeatures(cell int) features {
	v := overlapOf(cell)
	at := v.rec * (numExtFeatures / numRecs)
	f := features{at + v.bits}
	at += numBits
	f[1] = at + v.lead
	at += numLeads
	f[2] = at + v.both
	at += 2
	f[3] = at + v.doubt
	f[4] = at + numDoubts + v.share
	return f
}

// callerFeature is that of a cell that callerCell makes: of two weights the first one is
// that of all, and the second one counts as often as this tells.
func callerFeature(cell int) float64 { return float64(cell - numOverlaps) }

func (f features) sum(w []float64) float64 {
	z := 0.0
	for _, i := range f {
		if i >= 0 {
			z += w[i]
		}
	}
	return z
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// Where the strengths of evidence begin: in bits, shares, and calls.
var (
	margins   = [numMargins - 1]float64{-0.5, 0.5, 1.5, 3, 6, 10, 16}
	wins      = [numWins - 1]float64{3, 8, 20}
	shares    = [numShares - 1]float64{0.15, 0.3, 0.5, 0.8, 0.95}
	doubts    = [numDoubts - 1]float64{0.5, 2, 5, 10, 20}
	overlaps  = [numBits - 1]float64{2, 6, 10, 16, 25, 40}
	leads     = [numLeads - 1]float64{2, 6, 12}
	unvarying = [numCallers - 1]float64{3, 5, 9, 17, 33}
)

func bucketOf(v float64, begin []float64) int {
	b := 0
	for b < len(begin) && v >= begin[b] {
		b++
	}
	return b
}

// confidence is the probability that an answer of this cell is right.
func (c *calibration) confidence(cell int) float64 {
	g := groupOf(cell)
	p := sigmoid(c.slope(slopeOf(g))*answerPrior(cell) + c.shift(g))
	p = (prior.strength*p + c.right[cell]) / (prior.strength + c.n[cell])
	if c.turnOpen(cell) {
		p = min(p, openTurn)
	}
	return p
}

// openTurn is the most that an answer is worth that leaves the turn of a recursion open.
const openTurn = 0.8

// turnOpen tells whether evidence of a cell leaves the turn of a recursion open, whatever
// the sum of its weights says: they cannot tell that one kind of evidence counts for nothing
// without another one.
func (c *calibration) turnOpen(cell int) bool {
	v := evidenceOf(cell)
	switch {
	case v.rec == 0:
		return false
	case v.share < rareCaller && v.margin < numMargins-1:
		return true
	case v.rec == 1:
		return false
	case c.taught && c.learnt[groupOf(cell)] < fewAnswers:
		return true
	}
	return v.margin < tells[v.win/(numWins-1)][v.sides] && c.n[cell] < fewAnswers
}

// rareCaller is the share, as a strength, of a caller in its context that it takes to tell
// the turn of a recursion by less than the largest margin. Below it most answers are wrong
// even where a trial on shallower stacks went well.
const rareCaller = 2

// tells is the least margin, as a strength, by which overlaps with none, one or both
// neighbours tell the depth of a recursion: of answers that lead by little and of those that
// lead by most. An overlap by chance is no rare thing there, and a wrong depth misleads all
// stacks that overlap.
var tells = [2][numSides]int{{numMargins, 6, 4}, {numMargins, 4, 4}}

// fewAnswers is how many of the trial show how good a cell is where overlaps do not tell,
// and without how many like it the depth of a recursion is not believed at all.
const fewAnswers = 5

func (c *calibration) extConfidence(cell int) float64 {
	z := extPrior(cell)
	if !isCaller(cell) {
		z = c.slope(extSlope)*z + c.extShift
	}
	return (prior.strength*sigmoid(z) + c.extRight[cell]) / (prior.strength + c.extN[cell])
}

func isCaller(cell int) bool { return cell >= numOverlaps && cell < numOverlaps+numCallers }

// answerPrior is what a cell of answers is worth in recordings at large, in logits.
func answerPrior(cell int) float64 { return cellFeatures(cell).sum(prior.answer) }

// extPrior is what a cell of extensions is worth in recordings at large, in logits.
func extPrior(cell int) float64 {
	switch {
	case cell < numOverlaps:
		return extFeatures(cell).sum(prior.overlap)
	case isCaller(cell):
		return prior.caller[0] + prior.caller[1]*callerFeature(cell)
	}
	return extFeatures(cell).sum(prior.context)
}

const (
	numGroups = numRecs * numSides
	noGroup   = -1 // that of an extension
)

func groupOf(cell int) int {
	v := evidenceOf(cell)
	return v.rec*numSides + v.sides
}

func (c *calibration) shift(group int) float64 { return c.all + c.group[group] }

// Kinds of evidence by overlaps. Where much repeats itself, as in a compiler, a long overlap
// is found by chance, and strong evidence is not as much better than weak evidence as usual.
const (
	answerSlope    = iota // for an answer
	recursionSlope        // for an answer where the cut goes through a recursion
	extSlope              // for an extension
	numSlopes

	noSlope = -1 // evidence of other kinds
)

// slopeOf returns the kind of evidence of a group of cells, or of noGroup.
func slopeOf(group int) int {
	switch {
	case group == noGroup:
		return extSlope
	case group%numSides == 0:
		return noSlope
	case group < numSides:
		return answerSlope
	}
	return recursionSlope
}

// slope is how much evidence of a kind tells, of what it tells in recordings at large: at
// most 1, since few answers of a trial are wrong, and those that were right say little.
func (c *calibration) slope(kind int) float64 {
	if kind == noSlope {
		return 1
	}
	return 1 - c.flatter[kind]
}

// trialSlopes are how much evidence tells in a trial, of what it tells in the recording. The
// stacks of a trial are shallower, and so is the recursion that it goes through: what overlaps
// there is a smaller part of its turns.
var trialSlopes = [numSlopes]float64{1, 0.75, 1}

// fit finds the shifts and slopes that make what was learnt most likely, held near those of
// recordings at large.
func (c *calibration) fit() {
	const cap = 30 // answers of one cell are not independent
	type known struct {
		group          int
		n, right, w, z float64
	}
	var cells []known
	for i, n := range c.n {
		if n > 0 {
			cells = append(cells, known{groupOf(i), n, c.right[i], min(1, cap/n), answerPrior(i)})
		}
	}
	for i, n := range c.extN {
		if n > 0 && !isCaller(i) {
			cells = append(cells, known{noGroup, n, c.extRight[i], min(1, cap/n), extPrior(i)})
		}
	}
	// Newton's method: of the group shifts each is tied to that of all only.
	step := func(x *float64, by float64) float64 {
		*x += max(-2, min(by, 2))
		return math.Abs(by)
	}
	for range 200 {
		ext, he := -c.extShift/prior.shiftVar, 1/prior.shiftVar
		var g, h [numGroups]float64
		var gs, hs [numSlopes]float64
		for _, k := range cells {
			shift, z := c.extShift, k.z
			if k.group != noGroup {
				shift = c.shift(k.group)
			}
			kind := slopeOf(k.group)
			if kind != noSlope {
				z *= trialSlopes[kind]
			}
			p := sigmoid(c.slope(kind)*z + shift)
			d, q := k.w*(k.right-k.n*p), k.w*k.n*p*(1-p)
			if kind != noSlope {
				gs[kind] -= d * z
				hs[kind] += q * z * z
			}
			if k.group == noGroup {
				ext += d
				he += q
				continue
			}
			g[k.group] += d
			h[k.group] += q
		}
		all, ha := -c.all/prior.shiftVar, 1/prior.shiftVar
		for k := range g {
			own, ho := g[k]-c.group[k]/prior.groupVar, h[k]+1/prior.groupVar
			all += g[k] - h[k]/ho*own
			ha += h[k] - h[k]/ho*h[k]
		}
		by := all / ha
		far := max(step(&c.extShift, ext/he), step(&c.all, by))
		for k := range g {
			own, ho := g[k]-c.group[k]/prior.groupVar, h[k]+1/prior.groupVar
			far = max(far, step(&c.group[k], (own-h[k]*by)/ho))
		}
		for k := range gs {
			by := (gs[k] - c.flatter[k]/prior.slopeVar) / (hs[k] + 1/prior.slopeVar)
			x := max(0, c.flatter[k]+max(-0.2, min(by, 0.2)))
			far = max(far, math.Abs(x-c.flatter[k]))
			c.flatter[k] = x
		}
		if far < 1e-6 {
			break
		}
	}
}

func (c *calibration) learn(rows []row) {
	c.taught = true
	seen := map[row]bool{}
	for _, r := range rows {
		if seen[r] {
			continue // the same answer to the same question
		}
		seen[r] = true
		n, right := c.n[:], c.right[:]
		if r.ext {
			n, right = c.extN[:], c.extRight[:]
		}
		n[r.cell]++
		if !r.ext {
			c.learnt[groupOf(r.cell)]++
		}
		if r.right {
			right[r.cell]++
		}
	}
	c.fit()
}
