package stackfix

// The recorded whole stacks right before and after a cut one share root frames. Where
// a thread does not leave them in between, the cut stack begins with them too: an answer
// that says otherwise needs to be much better than others, and where threads of this recording
// seldom leave them it is not given at all. The thresholds of this file are set by hand, not
// fitted as the priors are.

// againstBits is what an answer loses that contradicts what the whole stacks around it share.
const againstBits = 8

// rarelyLeft is the share of the stacks of a trial that may begin otherwise than the whole
// stacks around them, so that the cut stacks of the recording are held to begin as these do.
const rarelyLeft = 0.01

// enclose notes for each open block of r what the recorded whole stacks before and after it share,
// and the frame that they begin with, which may be at another call. The innermost frame of either
// may be at another call in between, and does not count.
func (e *engine) enclose(r *run) {
	last := -1
	for k := range r.blocks {
		if b := &r.blocks[k]; !b.given || !b.known() {
			continue
		}
		if last >= 0 && k > last+1 {
			x, y := r.blocks[last].ext, r.blocks[k].ext
			s := e.t.shared(e.t.Parent(x), e.t.Parent(y))
			first := e.t.up(x, 1) // it may be the innermost one, too: that it is at another call is no matter
			if e.method(e.t.Frame(first)) != e.method(e.t.Frame(e.t.up(y, 1))) {
				first = 0
			}
			for j := last + 1; j < k; j++ {
				r.blocks[j].between, r.blocks[j].outermost = s, first
			}
		}
		last = k
	}
}

// leaves tells whether the stack of o under p does not begin with the methods of base.
func (e *engine) leaves(p StackID, o []FrameID, base StackID) bool {
	n := e.t.Depth(base) - e.t.Depth(p)
	if n > len(o) {
		return true
	}
	for ; n > 0; n-- {
		if e.method(e.t.Frame(base)) != e.method(o[n-1]) {
			return true
		}
		base = e.t.Parent(base)
	}
	return !e.begins(p, base)
}

// within returns the outermost frames of base that do not contradict what the recorded whole
// stacks around a stack share, where threads of this recording seldom leave that.
func (e *engine) within(base, between StackID) StackID {
	if between == 0 || !e.cal.enclosing.rare(rarelyLeft) {
		return base
	}
	for s := e.t.up(base, e.t.Depth(between)); !e.begins(between, s); s = e.t.Parent(s) {
		base = e.t.Parent(s)
	}
	return base
}

// A doubtful is what the trial found out about a claim: how often it could be judged, and
// how often it was wrong.
type doubtful struct{ n, wrong int }

// learn adds what another trial found out.
func (x *doubtful) learn(y doubtful) { x.n, x.wrong = x.n+y.n, x.wrong+y.wrong }

// rare tells whether it was wrong in less than the share most.
func (x doubtful) rare(most float64) bool { return x.n == 0 || float64(x.wrong) < most*float64(x.n) }

// learnEnclosing counts how often stacks of the trial do not begin with what the whole
// stacks around them share.
func (e *engine) learnEnclosing(v *world) (x doubtful) {
	judged := map[[2]StackID]bool{}
	for i := range v.runs {
		for k := range v.runs[i].blocks {
			b := &v.runs[i].blocks[k]
			key := [2]StackID{b.truth, b.between}
			if b.between == 0 || !b.whole || judged[key] {
				continue
			}
			judged[key] = true
			x.n++
			if !e.begins(b.truth, b.between) {
				x.wrong++
			}
		}
	}
	return x
}

// sameFrames is how many frames in a row must be the same in two stacks so that they tell that
// both are at the same place of the code.
const sameFrames = 3

// undisputed returns the inner part of p, which is to be put above e.o, that no known
// neighbour contradicts: one of them shows the same frames under another caller.
func (e *solver) undisputed(p StackID) StackID {
	e.fs = e.t.AppendFrames(e.fs[:0], p)
	n := len(e.fs)
	e.fs = append(e.fs, e.o...)
	from := 0
	for i := range e.places {
		if e.sides[i].ok {
			from = max(from, e.dispute(e.fs, i, n))
		}
	}
	if from == 0 {
		return p
	}
	return e.t.Add(e.fs[from:n]...)
}

// dispute returns the place, at most n, of the innermost frame of fs that has another
// caller in a side; 0 if there is none.
func (e *solver) dispute(fs []FrameID, side, n int) int {
	s, places := &e.sides[side], &e.places[side]
	if !s.marked { // else it was asked before
		places.mark(e, s.fs)
		s.marked = true
	}
	other, marked := s.fs, false
	for i := min(n, len(fs)-sameFrames); i > 0; i-- {
		m := e.method(fs[i])
		j := places.of(m)
		if j < 0 || j+sameFrames > len(other) {
			continue
		}
		same := true
		for k := range sameFrames {
			same = same && fs[i+k] == other[j+k]
		}
		if !same || j > 0 && e.method(other[j-1]) == e.method(fs[i-1]) {
			continue
		}
		if !marked { // seldom
			e.twice.mark(e, fs)
			marked = true
		}
		if e.twice.of(m) >= 0 {
			return i
		}
	}
	return 0
}

// methodPlaces tells where in a stack a method is, if it is there once.
type methodPlaces struct {
	at    []struct{ stamp, place int32 }
	stamp int32
}

func (x *methodPlaces) mark(e *solver, fs []FrameID) {
	x.at = reach(x.at, e.methods)
	x.stamp++
	for i, f := range fs {
		a := &x.at[e.method(f)]
		if a.stamp == x.stamp {
			a.place = -1
		} else {
			a.stamp, a.place = x.stamp, int32(i)
		}
	}
}

// of returns the place of m, -1 if it is not there once.
func (x *methodPlaces) of(m MethodID) int {
	if a := x.at[m]; a.stamp == x.stamp {
		return int(a.place)
	}
	return -1
}

// shortOverlap is the part of the frames that were recorded of a stack that a repaired one must
// overlap at least to tell the depth of a recursion.
const shortOverlap = 0.3

// An answer that follows from other repairs only, and is less than sureRepeated, is given only where
// at least clearShare of the votes of known stacks are for it: one wrong repair taught hundreds.
const (
	sureRepeated = 0.94
	clearShare   = 0.5
)
