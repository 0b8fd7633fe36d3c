package stackfix

// A stack that is put together from others is made of pieces that were recorded, each of
// which overlaps the next. Where the overlap is short, other pieces fit as well: whatever else
// speaks for such an answer, it is worth no more than what follows. The shares are those of right
// answers to stacks of ten real programs, cut on purpose and really; the lengths are set by hand.
const (
	// Pieces only meet where meetContext methods in a row were never seen with a caller, and
	// what calls these or the first meetShort of them, as far as they were seen, is another one.
	meetShort   = 4
	meetContext = 8
	meetWorth   = 0.25

	// An overlap of fewer than fewShared frames with a stack that was extended decides nothing
	// where the code has several ways on: fewer than sameCaller of the calls come this way.
	fewShared   = 3
	sameCaller  = 0.98
	forkedWorth = 0.8
)

// pieces are hashes of the calls that were recorded, each with meetContext or meetShort methods
// that are called, and of the former without their caller.
type pieces struct {
	rows    numbering
	learned bool
}

func (x *pieces) reset() {
	x.rows.reset()
	x.learned = false
}

// A calling is hashes of the same methods: what is called, as long as meetContext and as
// meetShort, and the former alone.
type calling struct{ long, short, context uint64 }

// callingOf returns the hashes of what s ends with, which has a caller.
func (e *engine) callingOf(s StackID) (c calling) {
	h := uint64(0)
	inner := s
	for range meetContext {
		callers, f := e.t.Node(s)
		h = outward(h, e.method(f))
		s = callers
	}
	c.context = h
	c.long = outward(h, e.method(e.t.Frame(s)))
	h = 0
	for s = e.t.up(inner, e.t.Depth(inner)-meetContext+meetShort); e.t.Depth(s)+meetContext >= e.t.Depth(inner); s = e.t.Parent(s) {
		h = outward(h, e.method(e.t.Frame(s)))
	}
	c.short = h
	return c
}

// learnPieces collects those of all recorded stacks. Their innermost frames are no call sites.
func (e *solver) learnPieces() {
	e.pieces.learned = true
	e.seen.reset()
	for i := range e.runs {
		for b := range e.runs[i].all() {
			for s := e.t.Parent(b.stack); e.t.Depth(s) > meetContext && e.seen.add(s); s = e.t.Parent(s) {
				c := e.callingOf(s)
				e.pieces.rows.add(c.long)
				e.pieces.rows.add(c.short)
				e.pieces.rows.add(c.context)
			}
		}
	}
}

// meet tells whether p and what stands below it in the whole stack of blk, the frames e.o, only
// meet somewhere, given how many frames another stack shares with the latter.
func (e *solver) meet(blk *block, p StackID, shared int) bool {
	if !e.pieces.learned {
		e.learnPieces()
	}
	rows := &e.pieces.rows
	s := e.t.Join(p, e.o)
	last := e.t.Depth(s) - e.t.Depth(blk.stack) + meetContext // where the context of the outermost recorded frame ends
	first := e.t.Depth(p) - meetContext + 1
	if last >= e.t.Depth(s) {
		last = e.t.Depth(s) - 1 // the innermost frame is no call site
	}
	unseen, otherwise := shared < meetContext, false
	for s = e.t.up(s, last); e.t.Depth(s) > meetContext && e.t.Depth(s) >= first+meetContext; s = e.t.Parent(s) {
		c := e.callingOf(s)
		called := c.long
		if rows.get(c.context) < 0 {
			unseen, called = true, c.short
		}
		otherwise = otherwise || rows.get(called) < 0
	}
	return unseen && otherwise
}

// worth is the most that c is worth as an answer for blk, by how its pieces overlap.
func (e *solver) worth(blk *block, c *cand) float64 {
	extended, shared := blk.ext != blk.stack, max(c.kf, c.kb)
	w := 1.0
	if extended && shared > 0 && shared < fewShared && c.caller < sameCaller {
		w = forkedWorth
	}
	// one recorded stack that holds more than the context has all of it in one piece
	if (extended || shared < meetContext) && e.meet(blk, c.p, shared) {
		w = min(w, meetWorth)
	}
	return w
}
