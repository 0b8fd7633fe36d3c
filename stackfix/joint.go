package stackfix

import (
	"cmp"
	"math"
	"slices"
)

// A second opinion on answers that are not sure enough: what the open blocks of a thread between
// two known ones are all together, as a hidden Markov model. A block's states are the stacks that
// it may be; from one block to the next frames go and come as between known ones of this recording,
// and what stays is no surprise. The model believes itself too much where it stands alone: in
// recursions, and where many blocks follow each other, each of which hands its error on. Where it
// gives the answer that other evidence gives too, a whole stack near in time shows the same (see
// second), and no recursion is cut, hardly one was wrong of ten recordings of real programs. All
// numbers are set by hand.
const (
	mostInRow  = 14   // open blocks that are looked at together
	mostStates = 24   // of a block
	sureJoint  = 0.95 // probability that a state needs
	// What the answer needs by its own evidence, and with all that makes it less sure.
	leastOwn   = 0.8
	leastGuess = 0.3
)

// A moment is a block with the stacks that it may be.
type moment struct {
	*block
	overlap []float64 // of an open block: bits that its first so many frames are worth
	states  []state
}

// A state is one whole stack that a block may be.
type state struct {
	prefix, stack StackID
	own           float64 // bits by which the code's habits speak for it
	until, from   float64 // log2 of the probability of all until here, and of all behind it
}

// secondOpinion marks the answers that the model gives too.
func (e *solver) secondOpinion() {
	if !slices.ContainsFunc(e.runs, func(r run) bool {
		return slices.ContainsFunc(r.open, func(k int32) bool { return r.blocks[k].confirmable })
	}) {
		return
	}
	e.round++
	e.retain.finish()
	e.updateIndex()
	for ri := range e.runs {
		bs := e.runs[ri].blocks
		for k := 0; k < len(bs); k++ {
			from, ask := k, false
			for ; k < len(bs) && !bs[k].rooted; k++ {
				ask = ask || bs[k].confirmable
			}
			if ask && k-from <= mostInRow && !e.stopped() {
				e.learnThread(ri)
				e.confirmRow(bs, from, k)
			}
		}
	}
}

// confirmRow marks the answers to open blocks from number from on, before number end, that the
// model gives too.
func (e *solver) confirmRow(bs []block, from, end int) {
	e.weighRow(bs, from, end, func(x *moment) {
		if s, sure := x.best(); x.confirmable && x.triedExt == x.ext && sure >= sureJoint && s.prefix == x.guess {
			x.seconded = true
		}
	})
}

// weighRow weighs what the open blocks from number from on, before number end, may be, and calls f for each.
func (e *solver) weighRow(bs []block, from, end int, f func(m *moment)) {
	var row []moment
	var around []StackID
	for k := from - 1; k <= end; k++ {
		switch {
		case k < 0 || k == len(bs):
		case bs[k].known():
			around = append(around, bs[k].ext)
		case bs[k].rooted && k >= from && k < end, bs[k].bridged, bs[k].stack == 0:
			return
		}
	}
	n := e.t.Len()
	for k := max(from-1, 0); k <= end && k < len(bs); k++ {
		switch b := &bs[k]; {
		case b.known():
			row = append(row, moment{block: b, states: []state{{prefix: b.ext, stack: b.ext}}})
		case !b.rooted:
			row = append(row, e.moment(b, around))
		}
	}
	e.weigh(row)
	e.t.Truncate(n)
	for i := range row {
		if row[i].overlap != nil {
			f(&row[i])
		}
	}
}

// moment finds the states of an open block between known stacks: what contexts show, and the
// places in the stacks around where it can begin.
func (e *solver) moment(b *block, around []StackID) moment {
	m := moment{block: b}
	e.o = e.t.AppendFrames(e.o[:0], b.ext)
	m.overlap = append(m.overlap, 0, min(e.headSurprise(e.o[0]), mostHead))
	for i := 1; i < len(e.o); i++ {
		m.overlap = append(m.overlap, m.overlap[i]+e.m.frameCalls.surprise(e.o[i-1], e.o[i]))
	}
	vs, callers := e.lookup(b.ext), e.lookupCallers(b.ext)
	add := func(p StackID, vote float64) {
		if slices.ContainsFunc(m.states, func(s state) bool { return s.prefix == p }) {
			return
		}
		own := e.logs.log2(vote+vs.other*unseenVote) - e.foreign(p) + callerWorth*e.logs.log2(callers.share(e.callerOf(p))+leastCaller)
		if b.between != 0 && e.leaves(p, e.o, b.between) {
			own -= againstBits
		}
		m.states = append(m.states, state{prefix: p, own: own})
	}
	for i, p := range vs.of {
		add(p, vs.p[i])
	}
	head := e.method(e.o[0])
	for _, s := range around {
		for ; s != 0; s = e.t.Parent(s) {
			if e.method(e.t.Frame(s)) == head {
				add(e.t.Parent(s), 0)
			}
		}
	}
	if b.guesses() {
		add(b.guess, 0)
	}
	slices.SortStableFunc(m.states, func(a, b state) int { return cmp.Or(cmp.Compare(b.own, a.own), cmp.Compare(a.prefix, b.prefix)) })
	m.states = m.states[:min(len(m.states), mostStates)]
	for i := range m.states {
		m.states[i].stack = e.t.Join(m.states[i].prefix, e.o)
	}
	return m
}

// weigh works out how likely the states of a row are by all that came before, and by all that
// comes after.
func (e *solver) weigh(row []moment) {
	steps := e.steps[:0] // from the first moment on: of each state of the next one those from the states before it
	for i := range row {
		for k := range row[i].states {
			s := &row[i].states[k]
			if i > 0 {
				s.until = math.Inf(-1)
				for j := range row[i-1].states {
					x := &row[i-1].states[j]
					step := e.step(&row[i-1], &row[i], x, s)
					steps = append(steps, step)
					s.until = addLogs(s.until, x.until+step)
				}
			}
			s.until += s.own
		}
	}
	e.steps = steps
	for i := len(row) - 2; i >= 0; i-- {
		n := len(row[i].states)
		to := steps[len(steps)-n*len(row[i+1].states):]
		steps = steps[:len(steps)-len(to)]
		for k := range row[i].states {
			s := &row[i].states[k]
			s.from = math.Inf(-1)
			for j := range row[i+1].states {
				x := &row[i+1].states[j]
				s.from = addLogs(s.from, x.from+x.own+to[j*n+k])
			}
		}
	}
}

// step is how likely y follows x, as log2.
func (e *solver) step(a, b *moment, x, y *state) float64 {
	shared := e.t.Depth(e.t.shared(x.stack, y.stack))
	bits := 0.0
	if b.overlap != nil {
		bits = b.overlap[max(0, shared-e.t.Depth(y.prefix))]
	} else if a.overlap != nil {
		bits = a.overlap[max(0, shared-e.t.Depth(x.prefix))]
	}
	return beta*bits + e.retain.log(e.t.Depth(x.stack)-shared, e.t.Depth(y.stack)-shared)
}

// best returns the likeliest state, and how likely it is.
func (m *moment) best() (*state, float64) {
	all, best := math.Inf(-1), 0
	for i := range m.states {
		p := m.states[i].until + m.states[i].from
		all = addLogs(all, p)
		if p > m.states[best].until+m.states[best].from {
			best = i
		}
	}
	if len(m.states) == 0 {
		return nil, 0
	}
	s := &m.states[best]
	return s, math.Exp2(s.until + s.from - all)
}

// probability is how likely a state is; 0 if the block cannot have it.
func (m *moment) probability(prefix StackID) float64 {
	all, own := math.Inf(-1), math.Inf(-1)
	for i := range m.states {
		p := m.states[i].until + m.states[i].from
		all = addLogs(all, p)
		if m.states[i].prefix == prefix {
			own = p
		}
	}
	if math.IsInf(own, -1) {
		return 0
	}
	return math.Exp2(own - all)
}

// addLogs is log2(2^a + 2^b).
func addLogs(a, b float64) float64 {
	a, b = max(a, b), min(a, b)
	if !(b-a > leastLog) { // nor where both are of 0
		return a
	}
	return a + math.Log2(1+math.Exp2(b-a))
}

// leastLog is that of what is lost beside 1: a number has 53 bits.
const leastLog = -54
