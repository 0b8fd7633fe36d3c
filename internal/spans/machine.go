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
	r    *repaired
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

	endTS []byte // time of the last end

	clash clash
}

// A clash is what an end must not be like (see tie): the first begin that is written.
type clash struct {
	on   bool // an end may clash
	name int32
	how  string // of the mark of the begin, "" if it has none
	tied int    // only ends of frames before this one are at its time
	odd  int    // first frame of RA from keep on that has another name; -1: not looked for
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
	*m = machine{rw: rw, z: z, r: rw.stacks[z.lane], outerA: math.MaxInt, oldRA: frames{list: m.oldRA.list[:0]}, newRB: frames{list: m.newRB.list[:0]}}
	t := rw.table.table
	m.l.cur, m.l.outer = z.from.cur, z.from.outer
	if m.l.outer != 0 {
		m.l.outerDepth = t.Depth(m.l.outer)
		m.outerA = m.l.outerDepth
	}
	if z.lane.own.holds == holdsSamples {
		m.outerA = 0
	}
	m.a, m.b = m.r.of(z.before), m.r.of(z.after)
	low := z.low
	if low > m.outerA {
		low += int(m.a.inserted)
	}
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
	m.expect()
	return m
}

// expect works out what the first begin that is written will be.
func (m *machine) expect() {
	t := m.rw.table
	if m.keep == m.newRB.len() {
		return
	}
	c := &m.clash
	c.on, c.name, c.tied, c.odd = true, t.nameOf(m.newRB.at(m.keep)), m.z.tied, -1
	if c.tied > m.outerA && c.tied < math.MaxInt {
		c.tied += int(m.a.inserted)
	}
	roots := t.table.Depth(m.z.to.outer)
	recorded := m.keep >= m.z.low && m.keep < roots || m.keep-int(m.b.inserted) >= max(m.z.low, roots)
	if !recorded {
		c.how = m.howB()
		if m.rw.plain {
			c.how = ""
		}
	}
}

// clashes reports whether speedscope would take the first begin before the end of
// frame i of RA, whose mark is how. It is asked once about each end.
func (m *machine) clashes(i int, how string) bool {
	c, t := &m.clash, m.rw.table
	if !c.on || i >= c.tied || i >= m.oldRA.len() || how != c.how || t.nameOf(m.oldRA.at(i)) != c.name {
		return false
	}
	if c.odd < 0 {
		for c.odd = m.keep; c.odd < m.oldRA.len() && t.nameOf(m.oldRA.at(c.odd)) == c.name; c.odd++ {
		}
	}
	c.on = c.odd >= i // one is enough
	return !c.on
}

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

// step takes the next event of the lane.
func (m *machine) step(phase byte, f profile.FrameID, name int32, sf bool) edit {
	var e edit
	t := m.rw.table
	if phase == 'E' {
		n := m.l.end(t, f, name, sf)
		if n == 0 {
			return e // it ends nothing that is known: keep it
		}
		at := m.l.depth(t.table) // index of the frame that it ends
		if at >= m.outerA {
			at += int(m.a.inserted)
		}
		e.before = m.close(max(at+1, m.keep), e.before)
		if at < m.keep {
			e.drop = true
			return e
		}
		m.open = min(m.open, at)
		m.setHow(at, "")
		e.first = m.clashes(at, "")
		return e
	}
	e.before = m.close(m.keep, e.before)
	if !m.opening {
		m.depth, m.inThread = m.l.depth(t.table), m.l.outer != 0 || m.z.lane.own.holds == holdsSamples
	}
	at := m.depth
	m.depth++
	if m.inThread {
		at += int(m.b.inserted)
	} else if t.kind(f) == kindThread {
		m.inThread = true
	}
	e.before = m.openTo(at, e.before)
	if at < m.keep {
		e.drop = true
		return e
	}
	m.open = max(m.open, at+1)
	return e
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
		how := m.howOf(m.open)
		ins = append(ins, insert{'E', m.oldRA.at(m.open), how, m.clashes(m.open, m.marked(how))})
		m.setHow(m.open, "")
	}
	return ins
}

// openTo begins the frames of RB below index n that are not open yet.
func (m *machine) openTo(n int, ins []insert) []insert {
	m.opening = true
	for m.open < n && m.open < m.newRB.len() {
		how := m.howB()
		ins = append(ins, insert{phase: 'B', frame: m.newRB.at(m.open), how: how})
		m.setHow(m.open, how)
		m.open++
	}
	return ins
}

// howB returns the mark of frames of RB that are put in.
func (m *machine) howB() string {
	if m.b.how != "" {
		return m.b.how
	}
	return m.a.how
}

// marked returns what of the mark an inserted end has: tracefix's own output has it
// on begins only.
func (m *machine) marked(how string) string {
	if m.rw.plain || m.z.lane.own.holds == holdsSamples {
		return ""
	}
	return how
}

// rung returns the last rung of the transition up to which the ends stay as they are; nil
// if there is none, or an end may clash. An end comes behind it, for the time of those that
// are put in.
func (m *machine) rung() *rung {
	if m.z.lane.own.holds == holdsSamples {
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
	if last == nil || !m.clash.on {
		return last
	}
	for i := int(last.depth) + int(m.a.inserted); i < m.oldRA.len(); i++ {
		if m.rw.table.nameOf(m.oldRA.at(i)) == m.clash.name {
			return nil
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
	m.r.how = m.r.how[:min(len(m.r.how), m.open)]
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

// flush ends the transition.
func (m *machine) flush() []insert {
	ins := m.close(m.keep, nil)
	return m.openTo(m.newRB.len(), ins)
}

// howOf returns the mark of the begin of an open frame: an end has the same.
func (m *machine) howOf(i int) string {
	if i < len(m.r.how) && m.r.how[i] != "" {
		return m.r.how[i]
	}
	if m.a.how != "" {
		return m.a.how
	}
	return m.b.how
}

func (m *machine) setHow(i int, how string) {
	if how == "" && i >= len(m.r.how) {
		return
	}
	for i >= len(m.r.how) {
		m.r.how = append(m.r.how, "")
	}
	m.r.how[i] = how
}
