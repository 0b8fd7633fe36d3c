package spans

import (
	"math"
	"slices"

	"github.com/tracefix/tracefix/profile"
)

// A machine works on the events of one transition, from the stack SA to the stack
// SB as they were recorded, so that they lead from the repaired stack RA to RB. A
// repaired stack is the recorded one with frames put in between the thread's frame
// and it. Frames are counted from the outermost, synthetic roots included:
//
//  1. keep: that many frames stay open. They are what RA and RB have in common; but
//     where the transition split a span whose frame is in SA and SB alike, the split
//     is not the cut's doing, and stays.
//  2. An end of a frame below keep is left out, and so is a begin of one.
//  3. Before an event that is written, and behind the last one, inserted frames are
//     closed or opened as far as nesting demands.
type machine struct {
	rw   *rewriter
	z    *zone
	l    lane // replays the ends
	a, b fix
	keep int

	open    int  // frames of RA, then of RB, that are open
	opening bool // a begin has been seen
	oldRA   frames
	newRB   frames
	outerA  int // frames down to the thread's frame before the transition

	// Behind the first begin, instead of l:
	depth    int  // frames recorded as open
	inThread bool // the thread's frame is among them

	endTS   []byte // time of the last end
	lastEnd int64  // where it is, of an event of the log; -1 if there is none

	// The ends of RA's frames from early on to tied take place earlier (see tie).
	early, tied int
}

// frames are those of a stack without the outermost base ones, which are the same before
// and after a transition: there may be any number of them.
type frames struct {
	base int
	list []profile.FrameID
}

func (f *frames) len() int                 { return f.base + len(f.list) }
func (f *frames) at(i int) profile.FrameID { return f.list[i-f.base] }

func (rw *rewriter) machine(z *zone) *machine {
	var m *machine
	if n := len(rw.idle); n > 0 {
		m, rw.idle = rw.idle[n-1], rw.idle[:n-1]
	} else {
		m = &machine{}
	}
	*m = machine{rw: rw, z: z, outerA: math.MaxInt, lastEnd: -1, early: math.MaxInt, oldRA: frames{list: m.oldRA.list[:0]}, newRB: frames{list: m.newRB.list[:0]}}
	t := rw.table.table
	m.l.cur, m.l.outer = z.from.cur, z.from.outer
	if m.l.outer != 0 {
		m.l.outerDepth = t.Depth(m.l.outer)
		m.outerA = m.l.outerDepth
	}
	if z.lane.own.holds == holdsSamples {
		m.outerA = 0
	}
	r := rw.stacks[z.lane]
	m.a, m.b = r.of(z.before), r.of(z.after)
	low := m.a.open(z.low, m.outerA)
	base := 0
	if z.from.outer != 0 && z.to.outer != 0 {
		base = min(z.low, low, sameCallers(t, z.from.outer, z.to.outer))
	}
	rw.full(&m.oldRA, base, z.lane, z.from, m.a)
	m.open = m.oldRA.len()
	if z.end { // what is still open stays so
		m.keep = low
		m.newRB.base = base
		m.newRB.list = append(m.newRB.list, m.oldRA.list[:low-base]...)
		return m
	}
	rw.full(&m.newRB, base, z.lane, z.to, m.b)
	m.keep = base + common(m.oldRA.list, m.newRB.list)
	if z.low < sameFrames(t, z.from, z.to) {
		m.keep = min(m.keep, low)
	}
	m.findEarly()
	return m
}

// findEarly finds the ends that speedscope would mistake (see tie).
func (m *machine) findEarly() {
	t := m.rw.table
	if m.keep == m.newRB.len() {
		return
	}
	name := t.nameOf(m.newRB.at(m.keep))
	if m.tied = m.z.tied; m.tied < math.MaxInt {
		m.tied = m.a.open(m.tied, m.outerA)
	}
	m.tied = min(m.tied, m.oldRA.len())
	odd := m.keep
	for odd < m.tied && t.nameOf(m.oldRA.at(odd)) == name {
		odd++
	}
	for i := odd + 1; i < m.tied; i++ {
		if t.nameOf(m.oldRA.at(i)) == name {
			m.early = i
			return
		}
	}
}

// isEarly reports whether the end of frame i of RA takes place earlier.
func (m *machine) isEarly(i int) bool { return i >= m.early && i < m.tied }

// sameFrames returns how many frames of two states are the same, from the outermost.
func sameFrames(t *profile.Table, a, b state) int {
	if a.outer != 0 && a.outer == b.outer {
		return t.Depth(a.outer) + sameCallers(t, a.cur, b.cur)
	}
	outermost := func(s state) profile.StackID {
		if s.outer != 0 {
			return s.outer
		}
		return s.cur
	}
	return sameCallers(t, outermost(a), outermost(b))
}

// sameCallers returns the depth of what two stacks have in common.
func sameCallers(t *profile.Table, a, b profile.StackID) int {
	for t.Depth(a) > t.Depth(b) {
		a = t.Parent(a)
	}
	for t.Depth(b) > t.Depth(a) {
		b = t.Parent(b)
	}
	for a != b {
		a, b = t.Parent(a), t.Parent(b)
	}
	return t.Depth(a)
}

// below returns the stack below the thread's frame, without the marker.
func (s state) below(t *frameTable) profile.StackID {
	if s.cur != 0 && t.kind(t.table.Frame(s.cur)) == kindMarker {
		return t.table.Parent(s.cur)
	}
	return s.cur
}

// full appends the frames of a state behind the outermost base ones, with f in the place
// of what is below the thread's frame.
func (rw *rewriter) full(dst *frames, base int, l *lane, s state, f fix) {
	t := rw.table.table
	dst.base = base
	if s.outer == 0 && l.own.holds != holdsSamples {
		dst.list = t.AppendFrames(dst.list, s.cur)
		return
	}
	n := t.Depth(s.outer) - base
	dst.list = slices.Grow(dst.list, n)[:n]
	for o := s.outer; n > 0; o = t.Parent(o) {
		n--
		dst.list[n] = t.Frame(o)
	}
	dst.list = t.AppendFrames(dst.list, f.stack)
	if s.below(rw.table) != s.cur {
		dst.list = append(dst.list, t.Frame(s.cur))
	}
}

func common(a, b []profile.FrameID) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// step takes the next event of the lane, and adds to an edit what happens there.
func (m *machine) step(e *edit, phase byte, f profile.FrameID, name int32, sf bool) {
	t := m.rw.table
	if phase == 'E' {
		n := m.l.end(t, f, name, sf)
		if n == 0 {
			return // it ends nothing that is known: keep it
		}
		at, ok := m.a.index(m.l.depth(t.table), m.outerA) // of the frame that it ends
		if !ok {
			e.drop = true
			return
		}
		e.before = m.close(max(at+1, m.keep), e.before)
		if at < m.keep {
			e.drop = true
			return
		}
		m.open = min(m.open, at)
		e.early = m.isEarly(at)
		return
	}
	e.before = m.close(m.keep, e.before)
	if !m.opening {
		m.depth, m.inThread = m.l.depth(t.table), m.l.outer != 0 || m.z.lane.own.holds == holdsSamples
	}
	at, ok := m.depth, true
	if m.inThread {
		at, ok = m.b.index(at, t.table.Depth(m.z.to.outer))
	} else if t.kind(f) == kindThread {
		m.inThread = true
	}
	m.depth++
	if !ok {
		m.opening, e.drop = true, true
		return
	}
	e.before = m.openTo(at, e.before)
	if at < m.keep {
		e.drop = true
		return
	}
	m.open = max(m.open, at+1)
}

// close ends the frames of RA from index n on that are still open.
func (m *machine) close(n int, ins []insert) []insert {
	if m.opening {
		return ins
	}
	for m.open > n {
		m.open--
		if m.open >= m.oldRA.len() {
			continue
		}
		ins = append(ins, insert{'E', m.oldRA.at(m.open), m.isEarly(m.open)})
	}
	return ins
}

// openTo begins the frames of RB below index n that are not open yet.
func (m *machine) openTo(n int, ins []insert) []insert {
	m.opening = true
	for m.open < n && m.open < m.newRB.len() {
		ins = append(ins, insert{phase: 'B', frame: m.newRB.at(m.open)})
		m.open++
	}
	return ins
}

// rung returns the last rung of the transition up to which the ends stay as they are; nil
// if there is none, or an end takes place earlier. An end comes behind it, for the time of those that
// are put in.
func (m *machine) rung() *rung {
	if m.z.lane.own.holds == holdsSamples || m.early < math.MaxInt {
		return nil
	}
	least := max(m.outerA, m.keep-int(m.a.inserted), 1)
	var last *rung
	for i := range m.z.rungs {
		if r := &m.z.rungs[i]; int(r.depth) >= least {
			last = r
			break
		}
	}
	return last
}

// passEnds takes the ends before a rung for written.
func (m *machine) passEnds(r *rung) {
	t := m.rw.table.table
	for t.Depth(m.l.cur)+m.l.outerDepth > int(r.depth) {
		m.l.cur = t.Parent(m.l.cur)
	}
	m.open = int(r.depth) + int(m.a.inserted)
}

// fewBegins is how many begins are not worth passing over.
const fewBegins = 4

// isSettled reports whether the rest of the transition stays as it is, and is more than
// fewBegins: only begins are left, and all frames put in before them are open.
func (m *machine) isSettled() bool {
	return m.opening && !m.z.end && m.z.lane.own.holds != holdsSamples &&
		m.open == m.depth+int(m.b.inserted) && m.depth+fewBegins < m.recordedB()
}

// recordedB returns how many frames of SB were recorded.
func (m *machine) recordedB() int {
	t := m.rw.table.table
	return t.Depth(m.z.to.outer) + t.Depth(m.z.to.cur)
}

// passBegins takes all begins that are left but the last for written, if isSettled.
func (m *machine) passBegins() {
	m.depth = m.recordedB() - 1
	m.open = m.depth + int(m.b.inserted)
}

// flush ends the transition, and appends what is to be inserted behind it.
func (m *machine) flush(ins []insert) []insert {
	ins = m.close(m.keep, ins)
	return m.openTo(m.newRB.len(), ins)
}
