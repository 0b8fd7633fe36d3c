package stackfix

import "math"

// Evidence comes in cells: by kind and by strength.
const (
	numVotes = 5
	numSides = 4
	numBits  = 5
	numCells = 2 * numVotes * numSides * numBits

	numLeads    = 4
	numOverlaps = 2 * numBits * numLeads * 2
	numCallers  = 6
	numExtCells = numOverlaps + numCallers
)

// A row is one answer that can be judged.
type row struct {
	cell   int
	right  bool
	weight float64
	key    [2]StackID
	ext    bool // about an extension
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
	share := 0.0
	if vs.novel < 1 {
		share = c.votes / (1 - vs.novel)
	}
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
	if lead < 6 {
		str = min(str, 2*lead)
	}
	rec, _ := e.recursion(c.p, o)
	return cellIndex(int(rec), votes, sides, bitsBucket(str)), donor
}

// recursion tells whether the cut goes through a recursion: whether the first
// method of o comes again, in o or in p; and the share of the innermost methods
// of p that o shows again. The depth of a recursion is what nothing tells.
func (e *solver) recursion(p StackID, o []FrameID) (rec, share float64) {
	e.stamp++
	h := e.method(o[0])
	for _, f := range o[1:] {
		m := e.method(f)
		if m == h {
			rec = 1
		}
		for int(m) >= len(e.stamps) {
			e.stamps = append(e.stamps, make([]uint32, 1024)...)
		}
		e.stamps[m] = e.stamp
	}
	n := 0
	for d := 0; p != 0; d++ {
		m := e.method(e.t.Frame(p))
		if m == h {
			rec = 1
		}
		if d < 8 {
			n++
			if int(m) < len(e.stamps) && e.stamps[m] == e.stamp {
				share++
			}
		}
		p = e.t.Parent(p)
	}
	if n > 0 {
		share /= float64(n)
	}
	return rec, share
}

// calibration is how often the answers of a cell are right in one recording.
type calibration struct {
	right, n       [numCells]float64
	extRight, extN [numExtCells]float64
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
	x := make([]float64, 2*numVotes+2*numSides+2*2)
	x[rec*numVotes+votes] = 1
	x[2*numVotes+rec*numSides+sides] = 1
	x[2*numVotes+2*numSides+rec*2] = float64(bits)
	if votes >= 2 {
		x[2*numVotes+2*numSides+rec*2+1] = float64(bits)
	}
	return x
}

func extFeatures(cell int) []float64 {
	rec, bits, lead, both := extParts(cell)
	x := make([]float64, 2+2*numBits+2*numLeads+2)
	x[rec] = 1
	x[2+rec*numBits+bits] = 1
	x[2+2*numBits+rec*numLeads+lead] = 1
	x[2+2*numBits+2*numLeads+rec] = float64(both)
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
	for _, t := range [...]float64{2, 6, 10, 16} {
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
var strength = 10.0

func (c *calibration) confidence(cell int) float64 {
	return (strength*sigmoid(dot(cellFeatures(cell), cellPrior)) + c.right[cell]) / (strength + c.n[cell])
}

func (c *calibration) extConfidence(cell int) float64 {
	p := 0.0
	if cell >= numOverlaps {
		p = [numCallers]float64{0.8, 0.9, 0.95, 0.97, 0.98, 0.99}[cell-numOverlaps]
	} else {
		p = sigmoid(dot(extFeatures(cell), extPrior))
	}
	return (strength*p + c.extRight[cell]) / (strength + c.extN[cell])
}

func (c *calibration) learn(rows []row) {
	seen := map[row]bool{}
	for _, r := range rows {
		k := r
		k.weight = 0
		if seen[k] {
			continue
		}
		seen[k] = true
		n, right := c.n[:], c.right[:]
		if r.ext {
			n, right = c.extN[:], c.extRight[:]
		}
		n[r.cell]++
		if r.right {
			right[r.cell]++
		}
	}
}

var cellPrior = []float64{-1.52, -0.37, 0.63, 2.09, 2.40, -2.38, -1.39, -0.86, 1.52, 0.61, 0.56, -1.95, 1.56, 3.07, -0.57, -1.11, -0.69, -0.13, 0.45, 0.32, 0.91, 0.21}
var extPrior = []float64{0.72, 0.17, -1.12, -0.12, -0.02, 0.39, 1.59, -2.51, -0.36, 0.36, 0.89, 1.79, -1.11, -0.46, 0.09, 2.19, -0.50, -0.30, 0.31, 0.66, 1.78, 1.56}
