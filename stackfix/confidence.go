package stackfix

import (
	"math"
	"math/bits"
)

// Evidence comes in cells: by kind and by strength.
const (
	numVotes = 5
	numSides = 4
	numBits  = 7
	numRecs  = 3
	numCells = numRecs * numVotes * numSides * numBits

	numLeads    = 4
	numOverlaps = numRecs * numBits * numLeads * 2
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

func cellIndex(rec, votes, sides, bits int) int {
	return ((rec*numVotes+votes)*numSides+sides)*numBits + bits
}

func cellParts(c int) (rec, votes, sides, bits int) {
	bits = c % numBits
	c /= numBits
	sides = c % numSides
	c /= numSides
	return c / numVotes, c % numVotes, sides, bits
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
	rec, str := e.recursion(c.p, o), 0.0
	if c.kf > 0 {
		x := c.bf + f.bonus(c.depth+c.kf)
		str = max(str, x)
		if rec > 0 && x < 0 {
			c.kf, c.bf = 0, 0 // so far away it says nothing
		}
	}
	if c.kb > 0 {
		x := c.bb + b.bonus(c.depth+c.kb)
		str = max(str, x)
		if rec > 0 && x < 0 {
			c.kb, c.bb = 0, 0
		}
	}
	sides := 0
	donor = 1
	switch {
	case c.kf > 0 && c.kb > 0:
		sides = 3
		donor = max(f.conf, b.conf)
	case c.kf > 0:
		sides = 2
		donor = f.conf
	case c.kb > 0:
		sides = 2
		donor = b.conf
	}
	own := c.bf + c.bb
	if sides < 3 {
		for i := range e.cs {
			y := &e.cs[i]
			if y.p != c.p && (c.kf == 0 && y.kf > 0 && y.bf > own || c.kb == 0 && y.kb > 0 && y.bb > own) {
				sides = 1
			}
		}
	}
	if c.foreign >= 4 && sides < 3 {
		sides = 1
	}
	str = min(str, 2.5*lead)
	return cellIndex(rec, votes, sides, bitsBucket(str)), donor
}

// apart is how far away a stack is: 0 for the next block, and one more for each time
// that it is twice as far.
func apart(blocks int) int { return bits.Len(uint(blocks)) - 1 }

// bitsApart is what an overlap is worth less for each doubling of the distance.
const bitsApart = 2

// bonus is what an overlap that ends after n frames of s is worth more than its bits say.
// One that lasts to the end of s was found at one place of few, not of many.
func (s *side) bonus(n int) float64 {
	b := -bitsApart * float64(s.far)
	if len(s.fs)-n <= 2 {
		b += 4
	}
	return b
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
	learnt        [numGroups]int // answers
	// what prior says, in logits
	answers    [numCells]float64
	extensions [numExtCells]float64
}

// begin makes a calibration that has learnt nothing yet.
func (c *calibration) begin() {
	*c = calibration{}
	for i := range c.answers {
		c.answers[i] = dot(cellFeatures(i), prior.answer)
	}
	for i := range c.extensions {
		c.extensions[i] = extPrior(i)
	}
}

func extCell(rec, bits, lead, both int) int {
	return ((rec*numBits+bits)*numLeads+lead)*2 + both
}

// callerCell is the cell of callers that never vary in n calls.
func callerCell(n int) int {
	b := 0
	for _, t := range [numCallers - 1]int{3, 5, 9, 17, 33} {
		if n >= t {
			b++
		}
	}
	return numOverlaps + b
}

// contextCell is the cell of what stands above equal contexts, by a cell as of overlaps.
// In place of both it knows many: four stacks or more.
func contextCell(c int) int { return numOverlaps + numCallers + c }

func extParts(c int) (rec, bits, lead, both int) {
	if c >= numOverlaps+numCallers {
		c -= numOverlaps + numCallers
	}

	both = c % 2
	c /= 2
	lead = c % numLeads
	c /= numLeads
	return c / numBits, c % numBits, lead, both
}

// weights are what cells are worth in recordings at large: logistic functions of
// the features of a cell. TestPriors learns them from recordings with known truth.
type weights struct {
	answer  []float64 // of cellFeatures
	overlap []float64 // of extFeatures
	caller  []float64 // of callerFeatures
	context []float64 // of extFeatures
	// strength is how many answers of a recording weigh as much as the prior.
	strength float64
	// variances, in logits, of how far a recording is from others, and a group
	// of its cells from its others
	shiftVar, groupVar float64
}

func cellFeatures(cell int) []float64 {
	rec, votes, sides, bits := cellParts(cell)
	x := make([]float64, numRecs*(numVotes+numSides+2))
	y := x[rec*(numVotes+numSides+2):]
	y[votes] = 1
	y[numVotes+sides] = 1
	y[numVotes+numSides] = float64(bits)
	if votes >= 2 {
		y[numVotes+numSides+1] = float64(bits)
	}
	return x
}

func extFeatures(cell int) []float64 {
	rec, bits, lead, both := extParts(cell)
	x := make([]float64, numRecs*(numBits+numLeads+1))
	y := x[rec*(numBits+numLeads+1):]
	y[bits] = 1
	y[numBits+lead] = 1
	y[numBits+numLeads] = float64(both)
	return x
}

// callerFeatures are those of the cells that callerCell makes.
func callerFeatures(cell int) []float64 {
	return []float64{1, float64(cell - numOverlaps)}
}

func dot(x, w []float64) float64 {
	z := 0.0
	for i, v := range x {
		z += v * w[i]
	}
	return z
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

func bitsBucket(v float64) int {
	b := 0
	for _, t := range [...]float64{2, 6, 10, 16, 25, 40} {
		if v >= t {
			b++
		}
	}
	return b
}

func leadBucket(v float64) int {
	b := 0
	for _, t := range [...]float64{2, 6, 12} {
		if v >= t {
			b++
		}
	}
	return b
}

// confidence is the probability that an answer of this cell is right.
func (c *calibration) confidence(cell int) float64 {
	p := sigmoid(c.answers[cell] + c.shift(cell))
	p = (prior.strength*p + c.right[cell]) / (prior.strength + c.n[cell])
	if rec, _, sides, bits := cellParts(cell); rec == 2 && (c.learnt[groupOf(cell)] < 10 || bits < 2 || bits < 3 && sides < 3) {
		// The depth of a recursion is believed only where the recording has shown
		// that such evidence is right, and only if the overlap says at least 10
		// bits, or 6 with each of two neighbours: one by chance is no rare thing
		// there, and a wrong depth misleads all stacks that overlap.
		p = min(p, 0.8)
	}
	return p
}

func (c *calibration) extConfidence(cell int) float64 {
	z := c.extensions[cell]
	if !isCaller(cell) {
		z += c.extShift
	}
	return (prior.strength*sigmoid(z) + c.extRight[cell]) / (prior.strength + c.extN[cell])
}

func isCaller(cell int) bool { return cell >= numOverlaps && cell < numOverlaps+numCallers }

// extPrior is what a cell of extensions is worth in recordings at large, in logits.
func extPrior(cell int) float64 {
	switch {
	case cell < numOverlaps:
		return dot(extFeatures(cell), prior.overlap)
	case isCaller(cell):
		return dot(callerFeatures(cell), prior.caller)
	}
	return dot(extFeatures(cell), prior.context)
}

const numGroups = 9

func groupOf(cell int) int {
	rec, _, sides, _ := cellParts(cell)
	return rec*3 + max(sides, 1) - 1
}

func (c *calibration) shift(cell int) float64 { return c.all + c.group[groupOf(cell)] }

// fit finds the shifts that make what was learnt most likely, held near zero.
func (c *calibration) fit() {
	const cap = 30 // answers of one cell are not independent
	type known struct {
		group          int // -1: an extension
		n, right, w, z float64
	}
	var cells []known
	for i, n := range c.n {
		if n > 0 {
			cells = append(cells, known{groupOf(i), n, c.right[i], min(1, cap/n), c.answers[i]})
		}
	}
	for i, n := range c.extN {
		if n > 0 && !isCaller(i) {
			cells = append(cells, known{-1, n, c.extRight[i], min(1, cap/n), c.extensions[i]})
		}
	}
	for range 500 {
		// gradients and curvatures
		all, h := -c.all/prior.shiftVar, 1/prior.shiftVar
		ext, he := -c.extShift/prior.shiftVar, 1/prior.shiftVar
		var g, hg [numGroups]float64
		for _, k := range cells {
			shift := c.extShift
			if k.group >= 0 {
				shift = c.all + c.group[k.group]
			}
			p := sigmoid(k.z + shift)
			d, q := k.w*(k.right-k.n*p), k.w*k.n*p*(1-p)
			if k.group < 0 {
				ext += d
				he += q
				continue
			}
			g[k.group] += d
			hg[k.group] += q
			all += d
			h += q
		}
		c.all += 0.5 * all / h
		c.extShift += 0.5 * ext / he
		for k := range g {
			c.group[k] += 0.5 * (g[k] - c.group[k]/prior.groupVar) / (hg[k] + 1/prior.groupVar)
		}
	}
}

func (c *calibration) learn(rows []row) {
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
