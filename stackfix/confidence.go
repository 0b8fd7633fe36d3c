package stackfix

import "math"

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
	numExtCells = numOverlaps + numCallers
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
func (e *solver) describe(c *cand, o []FrameID, f, b *side, vs *ppm, lead float64) (cell int, donor float64) {
	share, all := c.votes*math.Exp2(-c.foreign), 0.0
	for i := range e.cs {
		all += e.cs[i].votes * math.Exp2(-e.cs[i].foreign)
	}
	if all > 0 {
		share /= all
	}
	c.share = share * (1 - vs.novel)
	votes := 0
	switch {
	case c.votes == 0:
	case share < 0.6:
		votes = 1
	case share < 0.9 || vs.novel > 0.12:
		votes = 2
	case share < 0.97 || vs.novel > 0.03:
		votes = 3
	default:
		votes = 4
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
	str := max(c.bf, c.bb)
	str = min(str, 2.5*lead)
	return cellIndex(e.recursion(c.p, o), votes, sides, bitsBucket(str)), donor
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

func extParts(c int) (rec, bits, lead, both int) {
	both = c % 2
	c /= 2
	lead = c % numLeads
	c /= numLeads
	return c / numBits, c % numBits, lead, both
}

// The priors are logistic functions of the parts of a cell.
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

func dot(x, w []float64) float64 {
	z := 0.0
	for i, v := range x {
		if i < len(w) {
			z += v * w[i]
		}
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

// strength is how many answers of a recording weigh as much as the prior.
var strength = 6.0

// confidence is the probability that an answer of this cell is right.
func (c *calibration) confidence(cell int) float64 {
	p := (strength*sigmoid(dot(cellFeatures(cell), cellPrior)+c.shift(cell)) + c.right[cell]) / (strength + c.n[cell])
	if rec, _, _, _ := cellParts(cell); rec == 2 && c.learnt[groupOf(cell)] < 10 {
		// the depth of a recursion is believed only where the recording has
		// shown that such evidence is right
		p = min(p, 0.8)
	}
	return p
}

func (c *calibration) extConfidence(cell int) float64 {
	p := 0.0
	if cell >= numOverlaps {
		p = [numCallers]float64{0.96, 0.97, 0.98, 0.99, 0.99, 0.99}[cell-numOverlaps]
	} else {
		p = sigmoid(dot(extFeatures(cell), extPrior) + c.extShift)
	}
	return (strength*p + c.extRight[cell]) / (strength + c.extN[cell])
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
	for range 500 {
		var g [numGroups]float64
		all, h := -c.all/shiftVar, 1/shiftVar
		var hg [numGroups]float64
		for i := range c.n {
			if c.n[i] == 0 {
				continue
			}
			w := min(1, cap/c.n[i])
			p := sigmoid(dot(cellFeatures(i), cellPrior) + c.shift(i))
			d, q := w*(c.right[i]-c.n[i]*p), w*c.n[i]*p*(1-p)
			g[groupOf(i)] += d
			hg[groupOf(i)] += q
			all += d
			h += q
		}
		c.all += 0.5 * all / h
		for k := range g {
			c.group[k] += 0.5 * (g[k] - c.group[k]/groupVar) / (hg[k] + 1/groupVar)
		}
		e, he := -c.extShift/shiftVar, 1/shiftVar
		for i := range numOverlaps {
			if c.extN[i] == 0 {
				continue
			}
			w := min(1, cap/c.extN[i])
			p := sigmoid(dot(extFeatures(i), extPrior) + c.extShift)
			e += w * (c.extRight[i] - c.extN[i]*p)
			he += w * c.extN[i] * p * (1 - p)
		}
		c.extShift += 0.5 * e / he
	}
}

var shiftVar, groupVar = 4.0, 1.0

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

var cellPrior = []float64{-0.50, -0.84, 0.88, 1.36, 0.88, -0.48, -0.34, 0.49, 2.09, 0.96, 0.35, -3.13, -0.83, -0.20, 1.41, 1.30, -0.99, -1.13, 0.12, 0.55, 0.50, 0.45, -1.53, -0.90, -0.27, -0.03, -0.74, -1.00, -1.71, -0.78, 0.01, 0.61, 0.48}
var extPrior = []float64{-1.33, -0.23, 0.15, 0.54, 1.35, 1.66, 1.74, -0.23, 0.40, 0.75, 2.97, 1.42, -2.72, -0.08, 0.10, -0.30, 0.81, 1.65, 1.37, -1.08, -0.64, 0.71, 1.83, 0.34, -2.46, -0.92, -0.22, 0.37, 1.07, 2.13, 3.10, 0.19, 0.46, 1.05, 1.37, 1.53}
