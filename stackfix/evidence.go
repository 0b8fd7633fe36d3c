package stackfix

import (
	"cmp"
	"math"
	"math/bits"
)

// What speaks for an answer or an extension is measured here, in levels. What it is worth
// is a matter of statistics: see calibration.go.

// A kind of evidence says what is judged, and by what.
type kind uint8

const (
	forAnswer kind = iota // for an answer
	byOverlap             // for an extension, by a neighbour that overlaps
	byCallers             // for an extension, by callers that never vary
	byContext             // for an extension, by what stands above equal contexts
)

// A level is the strength of one measure of evidence: 0 is the least.
type level uint8

// How many levels there are of each measure.
const (
	numRecs    = 3 // what recursion says
	numVotes   = 5 // what stands above the same first frames in known stacks
	numShares  = 6 // of the answer's innermost method among the callers of these frames
	numSides   = 3 // neighbours that overlap
	numMargins = 8 // what margin says
	numWins    = 4 // by how many bits the answer leads
	numBits    = 7 // of the overlap
	numLeads   = 4 // by how many bits it leads
	numBoth    = 2 // both neighbours agree; of contexts: knownByMany
	numDoubts  = 6 // what doubtAbove says
	numCallers = 6 // calls of what is called by callers that never vary
)

// An evidence is what speaks for an answer or an extension. Answers with equal evidence are
// equally good. Measures that the kind does not have are 0.
type evidence struct {
	kind                     kind
	rec                      level // all but byCallers
	votes                    level // forAnswer
	bits, lead, both, doubts level // byOverlap, byContext
	share                    level // all but byCallers
	sides, margin, win       level // forAnswer
	calls                    level // byCallers
}

// compare puts evidence into an order: sums over it do not depend on that of a map.
func (v evidence) compare(w evidence) int {
	return cmp.Or(
		cmp.Compare(v.kind, w.kind), cmp.Compare(v.rec, w.rec), cmp.Compare(v.votes, w.votes),
		cmp.Compare(v.bits, w.bits), cmp.Compare(v.lead, w.lead), cmp.Compare(v.both, w.both), cmp.Compare(v.doubts, w.doubts),
		cmp.Compare(v.share, w.share), cmp.Compare(v.sides, w.sides), cmp.Compare(v.margin, w.margin), cmp.Compare(v.win, w.win),
		cmp.Compare(v.calls, w.calls),
	)
}

// A row is one answer or extension that can be judged.
type row struct {
	evidence
	right bool
	whole bool      // what was asked for is known to its root
	key   [2]uint64 // see question
}

// question tells questions and answers apart, whichever of the copies of a recording they are of,
// in a tree of its own: by hashes of the frames of the stack that was asked for, and of what it was
// answered.
func (e *engine) question(truth, answer StackID) (key [2]uint64) {
	for i, s := range [...]StackID{truth, answer} {
		for s != 0 {
			callers, f := e.t.Node(s)
			key[i] = hashOn(key[i], f)
			s = callers
		}
	}
	return key
}

// Where the levels of measures begin: in bits, shares, and calls. They are set by hand; what
// each level is worth is fitted.
var (
	margins   = [numMargins - 1]float64{-0.5, 0.5, 1.5, 3, 6, 10, 16}
	wins      = [numWins - 1]float64{3, 8, 20}
	shares    = [numShares - 1]float64{0.15, 0.3, 0.5, 0.8, 0.95}
	doubts    = [numDoubts - 1]float64{0.5, 2, 5, 10, 20}
	overlaps  = [numBits - 1]float64{2, 6, 10, 16, 25, 40}
	leads     = [numLeads - 1]float64{2, 6, 12}
	unvarying = [numCallers - 1]float64{3, 5, 9, 17, 33}
)

// clearVotes are the levels of votes from 2 on: the least share that an answer has of the votes
// for candidates, and the most that prefixes have that no known stack shows. Set by hand.
var clearVotes = [numVotes - 2]struct{ share, unseen float64 }{{0.6, 1}, {0.9, 0.12}, {0.97, 0.03}}

// bucketOf returns the level of v.
func bucketOf(v float64, begin []float64) level {
	b := 0
	for b < len(begin) && v >= begin[b] {
		b++
	}
	return level(b)
}

// describe measures the evidence for c, and tells how sure its donors are.
func (e *solver) describe(c *cand, o []FrameID, f, b *side, vs *blend, lead float64) (v evidence, donor float64) {
	share, all := c.believed(), 0.0
	for i := range e.cs {
		if e.cs[i].votes > 0 {
			all += e.cs[i].believed()
		}
	}
	if all > 0 {
		share /= all
	}
	c.share = share * (1 - vs.other)
	votes := level(0)
	if c.votes > 0 {
		votes = 1
		for _, l := range clearVotes {
			if share < l.share || vs.other > l.unseen {
				break
			}
			votes++
		}
	}
	sides, far := level(0), math.MaxInt
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
		margin -= c.foreign * foreignWorth
	}
	return evidence{
		kind: forAnswer, rec: e.recursion(c.p, o), votes: votes, share: bucketOf(c.caller, shares[:]),
		sides: sides, margin: bucketOf(margin, margins[:]), win: bucketOf(lead, wins[:]),
	}, donor
}

// believed is what is left of the votes for c where it is strange.
func (c *cand) believed() float64 {
	if c.foreign == 0 {
		return c.votes
	}
	return c.votes * math.Exp2(-c.foreign)
}

// above measures the evidence for an extension of blk by p: by an overlap of so many bits
// that leads by some, or by a context.
func (e *solver) above(kind kind, blk *block, p StackID, bits, lead float64, both bool) evidence {
	v := evidence{
		kind: kind, rec: e.recursion(p, e.o), bits: bucketOf(bits, overlaps[:]), lead: bucketOf(lead, leads[:]),
		doubts: bucketOf(e.doubtAbove(p, e.o[0]), doubts[:]), share: bucketOf(e.callerShare(blk.ext, p), shares[:]),
	}
	if both {
		v.both = 1
	}
	return v
}

// apart is how far away a stack is: 0 for the next block, and one more for each time
// that it is twice as far.
func apart(blocks int) int { return bits.Len(uint(blocks)) - 1 }

// bitsApart is what an overlap is worth less for each doubling of the distance.
// Set by hand, as foreignWorth is.
const bitsApart = 0.5

// foreignWorth is how much of the strangeness of an answer counts against the margin by which
// one neighbour speaks for it.
const foreignWorth = 0.5

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
	d := e.doubts.of[p]
	for i := len(e.doubts.used) - 1; i >= n; i-- {
		s := e.doubts.used[i]
		// the same whoever asked before, and for which stacks
		d += float32(e.m.callerSurprise(e.method(e.t.Frame(e.t.Parent(s))), e.method(e.t.Frame(s))))
		e.doubts.of[s] = d
	}
	return float64(d)
}

// recursion tells whether the cut goes through a recursion, whose depth nothing
// tells: 0 if the first method of o comes once only in p and o, 1 if it comes
// again, 2 if it is called again by the method that calls it at the cut.
func (e *solver) recursion(p StackID, o []FrameID) level {
	h := e.method(o[0])
	rec := level(0)
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
