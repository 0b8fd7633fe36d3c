package stackfix

// How many turns of a recursion are missing is told by no whole stack where all that took more of
// them were cut: the fewest that fit seem to be the only ones. But cut stacks show it. Where nearly
// all of those that hold what an answer holds from some place on came there by another turn, one
// that the answer takes further in, there may have been more of them in it, too: it is taken back,
// unless a whole stack around it is deeper than what was recorded and goes the same way there, as
// those do whose depth is told by the events of tasks.
//
// By names, where all calls of a method look the same, it tells nothing: a sixth of a recursion
// that was known would be lost.
//
// The numbers are set by hand.
const (
	// turnFrames is how many frames others must hold, too. With half of them rows of middleware of
	// a few kinds, where sixteen come again by chance, are taken for turns.
	turnFrames = 32
	// mostTurns is the share of the cut stacks that may have come by another turn, with unseenTurns
	// more that did not.
	mostTurns   = 0.8
	unseenTurns = 2
)

// turnings are the callings of places where a recursion may begin.
type turnings struct {
	callings
	found []int   // places
	met   []int32 // by method: whether it is in that stack once or again; less if it is not
	once  int32
	again int32
}

// takeBackTurns takes back the answers that may lack turns of a recursion.
func (d *review) takeBackTurns() {
	if d.byName {
		return
	}
	all := d.answered()
	t := turnings{callings: callings{engine: d.engine, length: turnFrames}}
	lacks := map[StackID]StackID{} // of an answer: what it begins with before turns that it may lack
	for i := range all {
		x := &all[i]
		if _, asked := lacks[x.ext]; !asked {
			lacks[x.ext] = 0
			for _, at := range t.placesOf(x.block) {
				t.ask(at)
			}
		}
	}
	if len(t.of) == 0 {
		return
	}
	t.count(d.w.cutStacks(false))
	clear(lacks)
	for i := range all {
		x := &all[i]
		entry, known := lacks[x.ext]
		if !known {
			entry = t.lacking(x.block)
			lacks[x.ext] = entry
		}
		if entry != 0 && !t.told(x, entry) {
			x.takeBack()
		}
	}
}

// placesOf returns the places in the answer of b, of those among the frames that were put back and
// right behind them, where a recursion may begin: there a method is called first, and further in
// not by what calls it there but by others. It is valid until the next call.
func (t *turnings) placesOf(b *block) []int {
	t.met = reach(t.met, t.methods)
	t.once, t.again = t.again+1, t.again+2
	t.stack(b.ext)
	for _, f := range t.fs {
		if met := &t.met[t.method(f)]; *met < t.once {
			*met = t.once
		} else {
			*met = t.again
		}
	}
	t.found = t.found[:0]
	for i := range t.places(b) {
		if met := &t.met[t.method(t.fs[i])]; *met == t.again {
			*met = t.once // for what is further in
			if t.enters(t.fs[i-1:]) {
				t.found = append(t.found, i)
			}
		}
	}
	return t.found
}

// enters tells whether others than the first of fs call the second one further in, and the first
// one does not.
func (t *turnings) enters(fs []FrameID) bool {
	own, m := t.method(fs[0]), t.method(fs[1])
	again := false
	for i := 2; i < len(fs); i++ {
		if t.method(fs[i]) == m {
			if t.method(fs[i-1]) == own {
				return false
			}
			again = true
		}
	}
	return again
}

// lacking returns what the answer of b begins with before turns of which there may be more; 0 if
// there are none.
func (t *turnings) lacking(b *block) StackID {
	for _, at := range t.placesOf(b) {
		m, own := t.method(t.fs[at]), t.method(t.fs[at-1])
		turns, others := 0, unseenTurns
		for _, v := range t.callers(at) {
			switch {
			case v.of == own:
				others += int(v.n)
			case t.calls(t.fs[at:], v.of, m):
				turns += int(v.n)
			}
		}
		if float64(turns) >= mostTurns*float64(turns+others) {
			return t.t.up(b.ext, at)
		}
	}
	return 0
}

// calls reports whether a calls b in fs.
func (t *turnings) calls(fs []FrameID, a, b MethodID) bool {
	for i := 1; i < len(fs); i++ {
		if t.method(fs[i]) == b && t.method(fs[i-1]) == a {
			return true
		}
	}
	return false
}

// told reports whether a whole stack around x that is deeper than what was recorded goes its way
// beyond an entry.
func (t *turnings) told(x *suspect, entry StackID) bool {
	for _, s := range [...]StackID{x.before, x.after} {
		if t.t.Depth(s) > t.t.Depth(x.stack) && t.t.Depth(t.t.shared(s, x.ext)) > t.t.Depth(entry) {
			return true
		}
	}
	return false
}
