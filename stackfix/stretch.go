package stackfix

// A stack that is put together from others is made of pieces that were recorded: wherever one
// ends, the next one overlaps it. Where a stretch of an answer was never recorded in one piece,
// the pieces only meet, and most such answers are wrong: of 1,600 in the programs of the corpus,
// cut at 20 to 100 frames, a third, of all others one in three hundred. The numbers are set by hand.
const (
	stretchFrames = 8
	// Where a method was compiled anew its addresses are new: an answer that is sure need only be
	// made of so many methods in a row, or be shorter.
	stretchMethods = 48
	sureStretch    = 0.95
)

// stretches are what was recorded in one piece in the stacks of a world: hashes of rows of
// frames, and of longer ones of methods.
type stretches struct {
	of    [2]numbering
	known bool
}

// lengths of stretches: of frames, and of methods.
var stretchLengths = [2]int{stretchFrames, stretchMethods}

func (x *stretches) reset() {
	for i := range x.of {
		x.of[i].reset()
	}
	x.known = false
}

// hashStretch returns the hash of the innermost frames or methods of s, which has as many as a
// stretch at least.
func (e *solver) hashStretch(kind int, s StackID) (h uint64) {
	for range stretchLengths[kind] {
		callers, f := e.t.Node(s)
		if kind == 1 {
			f = e.method(f)
		}
		h = outward(h, f)
		s = callers
	}
	return h
}

// learnStretches collects those of all recorded stacks. Their innermost frames are no call sites.
func (e *solver) learnStretches() {
	e.pieces.known = true
	e.seen.reset()
	for i := range e.runs {
		for b := range e.runs[i].all() {
			for s := e.t.Parent(b.stack); s != 0 && e.seen.add(s); s = e.t.Parent(s) {
				for kind := range e.pieces.of {
					if e.t.Depth(s) >= stretchLengths[kind] {
						e.pieces.of[kind].add(e.hashStretch(kind, s))
					}
				}
			}
		}
	}
}

// inOnePiece tells whether each stretch of s, of which so many frames were recorded together, was
// recorded in one piece somewhere.
func (e *solver) inOnePiece(kind int, s StackID, recorded int) bool {
	n := stretchLengths[kind]
	// the innermost stretch that holds a frame that was put back
	s = e.t.up(s, min(e.t.Depth(s)-1, e.t.Depth(s)-recorded+n-1))
	for ; e.t.Depth(s) >= n; s = e.t.Parent(s) {
		if e.pieces.of[kind].get(e.hashStretch(kind, s)) < 0 {
			return false
		}
	}
	return true
}

// unseen tells whether p above e.o, an answer for blk, holds what was never seen in one piece.
func (e *solver) unseen(blk *block, p StackID, conf float64) bool {
	if !e.pieces.known {
		e.learnStretches()
	}
	s, recorded := e.t.Join(p, e.o), e.t.Depth(blk.stack)
	if e.t.Depth(s) == recorded {
		return false
	}
	return !e.inOnePiece(0, s, recorded) && (conf < sureStretch || !e.inOnePiece(1, s, recorded))
}
