package stackfix

import (
	"math"
	"slices"
)

// A question is all that an answer depends on, within one round and thread.
type question struct {
	ext, between          StackID
	before, after         StackID
	confBefore, confAfter float64
	isBefore, isAfter     bool
	farBefore, farAfter   int // apart
}

// An answer is the best candidate for the prefix of a cut stack.
type answer struct {
	none    bool // there is no candidate
	refused bool // it contradicts what the whole stacks around it share
	c       cand
	evidence
	donor float64 // how sure its donors are
}

// A memo holds the answers to questions: a hash table with open addressing.
type memo struct {
	slots []int32 // 1 + place in asked; 0 is free
	asked []struct {
		question
		answer
	}
}

// reset forgets all.
func (m *memo) reset() {
	if len(m.slots) > 1<<12 {
		m.slots = nil // to clear it costs what the largest thread needed
	}
	clear(m.slots)
	m.asked = m.asked[:0]
}

// of returns the place of q in asked, and whether it is new there.
func (m *memo) of(q *question) (place int, isNew bool) {
	if 2*len(m.asked) >= len(m.slots) {
		m.slots = make([]int32, max(1<<8, 2*len(m.slots)))
		for i := range m.asked {
			*m.slot(&m.asked[i].question) = int32(i) + 1
		}
	}
	s := m.slot(q)
	if *s != 0 {
		return int(*s) - 1, false
	}
	n := len(m.asked)
	m.asked = slices.Grow(m.asked, 1)[:n+1]
	m.asked[n].question = *q
	*s = int32(n) + 1
	return n, true
}

// slot returns the slot of q: its own, or a free one.
func (m *memo) slot(q *question) *int32 {
	h := uint64(q.ext)
	for _, x := range [...]uint64{uint64(q.between), uint64(q.before), uint64(q.after), math.Float64bits(q.confBefore), math.Float64bits(q.confAfter), uint64(q.farBefore<<8 + q.farAfter)} {
		h = (h + x) * mul
		h ^= h >> 32
	}
	for i := h; ; i++ {
		s := &m.slots[i&uint64(len(m.slots)-1)]
		if *s == 0 || m.asked[*s-1].question == *q {
			return s
		}
	}
}

// answer finds the best prefix for the stack ext, whose frames are e.o. The same
// question is asked often where a thread waits or loops.
func (e *solver) answer(ext, between StackID, f, b *side) answer {
	q := question{ext: ext, between: between, isBefore: f.ok, isAfter: b.ok}
	if f.ok {
		q.before, q.confBefore, q.farBefore = f.s, f.conf, f.far
	}
	if b.ok {
		q.after, q.confAfter, q.farAfter = b.s, b.conf, b.far
	}
	known, isNew := e.answers.of(&q)
	if !isNew {
		return e.answers.asked[known].answer
	}
	vs := e.lookup(ext)
	e.cs = e.candidates(e.cs[:0], e.o, f, b, vs)
	best, lead := e.judge(e.cs, ext, between, f, b, vs)
	a := answer{none: best < 0}
	if !a.none {
		c := &e.cs[best]
		a.evidence, a.donor = e.describe(c, e.o, f, b, vs, lead)
		a.c = *c
		a.refused = c.against && e.cal.taught && e.cal.enclosing.n > 0 && e.cal.enclosing.rare(rarelyLeft)
	}
	e.answers.asked[known].answer = a
	return a
}
