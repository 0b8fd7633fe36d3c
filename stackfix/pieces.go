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
	rows    hashSet
	learned bool
	// scratch
	seen stackSet
	ms   []MethodID
}

func (x *pieces) reset() {
	x.rows.reset()
	x.learned = false
}

// A calling is hashes of the same methods: what is called, as long as meetContext and as
// meetShort, and the former alone.
type calling struct{ long, short, context uint64 }

// callingOf returns the hashes of meetContext methods and their caller, innermost first.
func callingOf(ms []MethodID) (c calling) {
	for i, m := range ms[:meetContext+1] {
		c.add(m, i)
	}
	return c
}

// add adds method i of a calling.
func (c *calling) add(m MethodID, i int) {
	c.long = hashOn(c.long, m)
	if i < meetContext {
		c.context = hashOn(c.context, m)
	}
	if i >= meetContext-meetShort {
		c.short = hashOn(c.short, m)
	}
}

// next makes the hashes of ms[:meetContext+1] those of ms[1:meetContext+2].
func (c *calling) next(ms []MethodID) {
	c.long = hashOn(c.long-(uint64(ms[0])+1)*powers[meetContext], ms[meetContext+1])
	c.context = hashOn(c.context-(uint64(ms[0])+1)*powers[meetContext-1], ms[meetContext])
	c.short = hashOn(c.short-(uint64(ms[meetContext-meetShort])+1)*powers[meetShort], ms[meetContext+1])
}

// learnPieces collects those of all recorded stacks. Their innermost frames are no call sites.
func (e *solver) learnPieces() {
	x := &e.pieces
	x.learned = true
	x.seen.reset()
	for i := range e.runs {
		for b := range e.runs[i].all() {
			ms, n := x.ms[:0], 0
			s := e.t.Parent(b.stack)
			for ; e.t.Depth(s) > meetContext && x.seen.add(s); s = e.t.Parent(s) {
				ms = append(ms, e.method(e.t.Frame(s)))
				n++
			}
			if n == 0 {
				continue
			}
			for ; len(ms) < n+meetContext; s = e.t.Parent(s) {
				ms = append(ms, e.method(e.t.Frame(s)))
			}
			x.ms = ms
			c := callingOf(ms)
			for i := range n {
				if i > 0 {
					c.next(ms[i-1:])
				}
				x.rows.add(c.long)
				x.rows.add(c.short)
				x.rows.add(c.context)
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
	above, depth := e.t.Depth(p), e.t.Depth(p)+len(e.o)
	last := min(depth-e.t.Depth(blk.stack)+meetContext, // where the context of the outermost recorded frame ends
		depth-1) // the innermost frame is no call site
	first := max(above-meetContext, 0)
	ms := e.fo[:0]
	for d := last; d > above; d-- {
		ms = append(ms, e.method(e.o[d-above-1]))
	}
	for s := e.t.up(p, last); e.t.Depth(s) > first; s = e.t.Parent(s) {
		ms = append(ms, e.method(e.t.Frame(s)))
	}
	e.fo = ms
	unseen, otherwise := shared < meetContext, false
	for ; len(ms) > meetContext; ms = ms[1:] {
		c := callingOf(ms)
		called := c.long
		if !rows.has(c.context) {
			unseen, called = true, c.short
		}
		otherwise = otherwise || !rows.has(called)
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
