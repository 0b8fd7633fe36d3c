package stackfix

// How many turns of a recursion are missing is told by no whole stack where all that took more of them were cut: the
// fewest that fit seem to be the only ones. But cut stacks show it. Where nearly all of those that hold what an answer
// holds from some place on came there by another turn, one that the answer takes further in, there may have been more
// of them in it, too: it is taken back, unless a whole stack around it is deeper than what was recorded and goes the
// same way there, as those do whose depth is told by the events of tasks.
//
// By names, where all calls of a method look the same, it tells nothing: a sixth of a recursion that was known would be lost.
//
// The numbers are set by hand.
const (
	// turnFrames is how many frames others must hold, too. With half of them rows of middleware of a few kinds, where
	// sixteen come again by chance, are taken for turns.
	turnFrames = 32
	// mostTurns is the share of the cut stacks that may have come by another turn, with unseenTurns more that did not.
	mostTurns   = 0.8
	unseenTurns = 2
)

// A turning is what goes on in one way from a place on: what calls it there in cut stacks, and how often.
type turning []vote

// add counts a caller.
func (x *turning) add(caller MethodID) {
	for i := range *x {
		if v := &(*x)[i]; v.of == caller {
			v.n++
			return
		}
	}
	*x = append(*x, vote{caller, 1})
}

// turnings are known by a hash of their frames.
type turnings struct {
	*engine
	ids     numbering
	of      []turning
	fs      []FrameID // of one stack
	sums    []uint64  // hashes of the first so many of them
	places  []int
	callers []calledBy // by method, of one stack
	stamp   int32
}

// A calledBy is the method that calls one, if its stamp is that of the stack; several, if there are.
type calledBy struct {
	stamp int32
	m     MethodID
}

// takeBackTurns takes back the answers that may lack turns of a recursion.
func (d *review) takeBackTurns() {
	if d.byName {
		return
	}
	all := d.suspects(func(b *block) *block {
		if b.given || !b.known() || b.ext == b.stack {
			return nil
		}
		return b
	})
	t := turnings{engine: d.engine}
	asked := map[StackID]bool{}
	for i := range all {
		if x := &all[i]; !asked[x.ext] {
			asked[x.ext] = true
			for _, at := range t.placesOf(x.block) {
				if t.ids.add(t.at(at)) == len(t.of) {
					t.of = append(t.of, nil)
				}
			}
		}
	}
	if len(t.of) == 0 {
		return
	}
	t.count(d.w)
	for i := range all {
		if x := &all[i]; t.lacking(x) {
			x.takeBack()
		}
	}
}

// placesOf returns the places in the answer of b, of those among the frames that were put back and right behind them, where a recursion
// may begin: a method is called that others call further in, and what calls it here does not. It is valid until the next call.
func (t *turnings) placesOf(b *block) []int {
	t.callers = reach(t.callers, t.methods)
	t.stamp++
	t.stack(b.ext)
	put := len(t.fs) - t.t.Depth(b.stack)
	t.places = t.places[:0]
	for i := len(t.fs) - 1; i > 0; i-- {
		further, caller := &t.callers[t.method(t.fs[i])], t.method(t.fs[i-1])
		if further.stamp == t.stamp && further.m != caller {
			if i <= put && i+turnFrames < len(t.fs) && !t.calls(t.fs[i:], caller, t.method(t.fs[i])) {
				t.places = append(t.places, i)
			}
			caller = several
		}
		*further = calledBy{t.stamp, caller}
	}
	return t.places
}

// count counts what the turnings are called by in cut stacks.
func (t *turnings) count(w *world) {
	seen := map[StackID]bool{}
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			b := &w.runs[i].blocks[k]
			if b.given || b.bridged || seen[b.stack] {
				continue
			}
			seen[b.stack] = true
			t.stack(b.stack)
			for at := 1; at+turnFrames < len(t.fs); at++ { // the innermost frame is no call site
				if id := t.ids.get(t.at(at)); id >= 0 {
					t.of[id].add(t.method(t.fs[at-1]))
				}
			}
		}
	}
}

// lacking tells whether x may have taken more turns.
func (t *turnings) lacking(x *suspect) bool {
	for _, at := range t.placesOf(x.block) {
		m, own := t.method(t.fs[at]), t.method(t.fs[at-1])
		turns, others := 0, unseenTurns
		for _, v := range t.of[t.ids.get(t.at(at))] {
			switch {
			case v.of == own:
				others += int(v.n)
			case t.calls(t.fs[at:], v.of, m):
				turns += int(v.n)
			}
		}
		if float64(turns) >= mostTurns*float64(turns+others) && !t.told(x, at) {
			return true
		}
	}
	return false
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

// told reports whether a whole stack around x that is deeper than what was recorded goes its way beyond a place.
func (t *turnings) told(x *suspect, place int) bool {
	for _, s := range [...]StackID{x.before, x.after} {
		if t.t.Depth(s) > t.t.Depth(x.stack) && t.t.Depth(t.t.shared(s, x.ext)) > place {
			return true
		}
	}
	return false
}

// stack turns to a stack.
func (t *turnings) stack(s StackID) {
	t.fs = t.t.AppendFrames(t.fs[:0], s)
	t.sums = append(t.sums[:0], 0)
	for i, f := range t.fs {
		t.sums = append(t.sums, inward(t.sums[i], f))
	}
}

// at returns the hash of the frames from a place on.
func (t *turnings) at(place int) uint64 {
	return t.sums[place+turnFrames] - t.sums[place]*turnWeight
}

// turnWeight is mul to the power of turnFrames.
var turnWeight = func() uint64 {
	w := uint64(1)
	for range turnFrames {
		w *= mul
	}
	return w
}()
