package stackfix

// How many turns of a recursion are missing is told by no whole stack where all that took more of them were cut: the
// fewest that fit seem to be the only ones. But cut stacks show it. Where nearly all of those that hold what an answer
// holds from some place on came there by another turn, one that the answer takes further in, there may have been more
// of them in it, too: it is taken back, unless a whole stack around it is deeper than what was recorded and goes the
// same way there, as those do whose depth is told by the events of tasks.
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
type turning map[MethodID]int

// turnings are known by a hash of their frames.
type turnings struct {
	ids numbering
	of  []turning
	windowHash
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
	all := d.suspects(func(b *block) *block {
		if b.given || !b.known() || b.ext == b.stack {
			return nil
		}
		return b
	})
	var t turnings
	places := map[StackID][]int{} // of an answer
	for i := range all {
		x := &all[i]
		if _, ok := places[x.ext]; !ok {
			places[x.ext] = t.ask(d.engine, d.t.AppendFrames(nil, x.ext), d.t.Depth(x.ext)-d.t.Depth(x.stack))
		}
	}
	if len(t.of) == 0 {
		return
	}
	d.countTurns(&t)
	for i := range all {
		if x := &all[i]; d.lacksTurns(x, &t, places[x.ext]) {
			x.takeBack()
		}
	}
}

// ask returns the places of an answer, of those among the put frames and right behind them, from which on it goes on as it does
// further in, where another method calls that, and counts their turnings.
func (t *turnings) ask(e *engine, fs []FrameID, put int) (places []int) {
	t.callers = reach(t.callers, e.methods)
	t.stamp++
	t.stack(fs)
	for i := len(fs) - 1; i > 0; i-- {
		further, caller := &t.callers[e.method(fs[i])], e.method(fs[i-1])
		if further.stamp == t.stamp && further.m != caller {
			if i <= put && i+turnFrames < len(fs) {
				places = append(places, i)
				if t.ids.add(t.at(i)) == len(t.of) {
					t.of = append(t.of, turning{})
				}
			}
			caller = several
		}
		*further = calledBy{t.stamp, caller}
	}
	return places
}

// countTurns counts what the turnings are called by in cut stacks.
func (d *review) countTurns(t *turnings) {
	seen := map[StackID]bool{}
	var fs []FrameID
	for i := range d.w.runs {
		for k := range d.w.runs[i].blocks {
			b := &d.w.runs[i].blocks[k]
			if b.given || b.bridged || seen[b.stack] {
				continue
			}
			seen[b.stack] = true
			fs = d.t.AppendFrames(fs[:0], b.stack)
			t.stack(fs)
			for at := 1; at+turnFrames < len(fs); at++ { // the innermost frame is no call site
				if id := t.ids.get(t.at(at)); id >= 0 {
					t.of[id][d.method(fs[at-1])]++
				}
			}
		}
	}
}

// lacksTurns tells whether x may have taken more turns at one of the places.
func (d *review) lacksTurns(x *suspect, t *turnings, places []int) bool {
	if len(places) == 0 {
		return false
	}
	fs := d.t.AppendFrames(nil, x.ext)
	t.stack(fs)
	for _, at := range places {
		seen := t.of[t.ids.get(t.at(at))]
		m, own := d.method(fs[at]), d.method(fs[at-1])
		turns := 0
		for caller, n := range seen {
			if caller != own && t.calls(d.engine, fs[at:], caller, m) {
				turns += n
			}
		}
		if float64(turns) >= mostTurns*float64(turns+seen[own]+unseenTurns) && !d.told(x, at) {
			return true
		}
	}
	return false
}

// calls reports whether a calls b in fs.
func (t *turnings) calls(e *engine, fs []FrameID, a, b MethodID) bool {
	for i := 1; i < len(fs); i++ {
		if e.method(fs[i]) == b && e.method(fs[i-1]) == a {
			return true
		}
	}
	return false
}

// told reports whether a whole stack around x that is deeper than what was recorded goes its way beyond a place.
func (d *review) told(x *suspect, place int) bool {
	for _, s := range [...]StackID{x.before, x.after} {
		if d.t.Depth(s) > d.t.Depth(x.stack) && d.t.Depth(d.t.shared(s, x.ext)) > place {
			return true
		}
	}
	return false
}

// A windowHash tells rows of turnFrames frames apart.
type windowHash struct{ sums []uint64 }

// stack turns to a stack.
func (h *windowHash) stack(fs []FrameID) {
	h.sums = append(h.sums[:0], 0)
	for i, f := range fs {
		h.sums = append(h.sums, inward(h.sums[i], f))
	}
}

// at returns the hash of the frames from a place on.
func (h *windowHash) at(place int) uint64 {
	return h.sums[place+turnFrames] - h.sums[place]*turnWeight
}

// turnWeight is mul to the power of turnFrames.
var turnWeight = func() uint64 {
	w := uint64(1)
	for range turnFrames {
		w *= mul
	}
	return w
}()
