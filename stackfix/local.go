package stackfix

import (
	"slices"
	"sync"
)

// A threadTree counts the known stacks of one thread.
type threadTree struct {
	thread int // 1 + its number
	round  int
	pad    *scratchpad // by stack: numbers, below
	used   []StackID   // those with some
	fresh  []StackID   // stacks that were found in this round
	kept   *threadTallies
	later  []StackID                   // what was counted of the thread, but is not in what is kept
	known  [1 << foreignBits]foreigner // what foreign said lately, by a hash
	said   uint32                      // how often that was forgotten
	// scratch
	ends  []StackID
	order []StackID
}

// The numbers of a stack.
const (
	stacksOn = iota // known stacks through it
	nexts           // different next frames, and isMet
	toAdd           // to through
)

// isMet is set while the stack is in order.
const isMet = 1 << 31

// reset forgets all.
func (l *threadTree) reset() {
	l.clear()
	l.forget()
}

// clear forgets the thread.
func (l *threadTree) clear() {
	for _, s := range l.used {
		*l.pad.of(s) = [3]uint32{}
	}
	l.used = l.used[:0]
	l.fresh, l.thread = l.fresh[:0], 0
}

// A threadTally is what was counted of a thread. To take that up again costs a part of counting its
// stacks anew.
type threadTally struct {
	of    []tallied
	fresh []StackID // to be counted too
}

// threadTallies are those of threads that were asked: the next round may ask them again.
type threadTallies struct {
	mu   sync.Mutex
	of   map[int]threadTally
	room int // for how many more stacks there is room
}

// tallied are the numbers of a stack.
type tallied struct {
	stack           StackID
	stacksOn, nexts uint32
}

const (
	// mostTallied is of how many stacks the numbers of threads are kept.
	mostTallied = 1 << 18
	// tallyGrowth is what part of a thread may be found before what is kept of it is renewed.
	tallyGrowth = 8
)

// forget forgets what is kept of threads. Where a stack is not known any more they are to be counted anew.
func (l *threadTree) forget() { l.kept = &threadTallies{of: map[int]threadTally{}, room: mostTallied} }

// keep keeps what was counted of the thread, if there is room.
func (l *threadTree) keep() {
	if l.thread == 0 {
		return
	}
	l.kept.mu.Lock()
	defer l.kept.mu.Unlock()
	x := l.kept.of[l.thread-1]
	if len(l.used) > len(x.of)+len(x.of)/tallyGrowth {
		l.kept.room += len(x.of)
		if l.kept.room < len(l.used) {
			delete(l.kept.of, l.thread-1)
			return
		}
		l.kept.room -= len(l.used)
		x.of = slices.Grow(x.of[:0], len(l.used))
		for _, s := range l.used {
			n := l.pad.of(s)
			x.of = append(x.of, tallied{s, n[stacksOn], n[nexts]})
		}
		l.later = l.later[:0]
	}
	x.fresh = slices.Concat(l.later, l.fresh)
	l.kept.of[l.thread-1] = x
}

// takeUp takes up what is kept of a thread, and reports whether anything is.
func (l *threadTree) takeUp(thread int) bool {
	l.kept.mu.Lock()
	x, ok := l.kept.of[thread]
	l.kept.mu.Unlock()
	for _, y := range x.of {
		*l.pad.of(y.stack) = [3]uint32{stacksOn: y.stacksOn, nexts: y.nexts}
		l.used = append(l.used, y.stack)
	}
	l.fresh = append(l.fresh, x.fresh...)
	return ok
}

// learnThread makes e.local that of run ri, as it was when the round began.
func (e *solver) learnThread(ri int) {
	l := &e.local
	thread := e.runs[ri].thread
	if l.thread == thread+1 && l.round == e.round {
		return
	}
	l.ends = l.ends[:0]
	l.pad.reach(e.t.Len())
	known := l.thread == thread+1
	if !known {
		l.keep()
		l.clear()
		l.later = l.later[:0]
		known = l.takeUp(thread)
	}
	if known {
		for _, s := range l.fresh {
			l.end(s, 1)
		}
		l.later = append(l.later, l.fresh...)
	} else {
		for _, x := range e.known[thread] {
			l.end(x.stack, x.n)
		}
		for ri > 0 && e.runs[ri-1].thread == thread {
			ri--
		}
		for ; ri < len(e.runs) && e.runs[ri].thread == thread; ri++ {
			bs := e.runs[ri].blocks
			for k := range bs {
				if bs[k].rooted && !bs[k].given {
					l.end(bs[k].ext, 1)
				}
			}
		}
	}
	e.answers.reset()
	l.said++
	l.thread, l.round = thread+1, e.round
	l.fresh = l.fresh[:0]
	e.addEnds()
}

// end notes n known stacks s.
func (l *threadTree) end(s StackID, n int32) {
	x := l.pad.of(s)
	if x[toAdd] == 0 {
		l.ends = append(l.ends, s)
	}
	x[toAdd] += uint32(n)
}

// addEnds counts the stacks that were noted.
func (e *solver) addEnds() {
	// Every stack on the way to an end is met once. The paths end in one another, newer
	// ones in older ones: backwards, all that is above a stack is counted before it.
	l := &e.local
	order := l.order[:0]
	for _, s := range l.ends {
		from := len(order)
		for {
			x := l.pad.of(s)
			if x[nexts]&isMet != 0 {
				break
			}
			x[nexts] |= isMet
			order = append(order, s)
			if s == 0 {
				break
			}
			s = e.t.Parent(s)
		}
		slices.Reverse(order[from:])
	}
	l.order = order
	for i := len(order) - 1; i >= 0; i-- {
		s := order[i]
		x := l.pad.of(s)
		isNew := x[stacksOn] == 0
		x[stacksOn] += x[toAdd]
		if isNew {
			l.used = append(l.used, s)
		}
		if s != 0 {
			p := l.pad.of(e.t.Parent(s))
			p[toAdd] += x[toAdd]
			if isNew {
				p[nexts]++
			}
		}
		x[toAdd] = 0
		x[nexts] &^= isMet
	}
}

// foreign tells how many bits it takes to believe that p is on this thread.
func (e *solver) foreign(p StackID) float64 {
	l := &e.local
	if len(*l.pad) == 0 || l.pad.of(0)[stacksOn] == 0 {
		return 0 // nothing is known of this thread
	}
	known := &l.known[p*(mul>>32)>>(32-foreignBits)]
	if known.said == l.said && known.p == p {
		return known.bits
	}
	*known = foreigner{p, l.said, e.howForeign(p)}
	return known.bits
}

// A foreigner is a stack, and how strange it was when it was asked for.
type foreigner struct {
	p, said uint32
	bits    float64
}

const foreignBits = 13

// howForeign is foreign, worked out.
func (e *solver) howForeign(p StackID) float64 {
	l := &e.local
	at := e.t.first(p, func(s StackID) bool { return l.pad.has(s) && l.pad.of(s)[stacksOn] != 0 })
	if at == p {
		return 0
	}
	x := l.pad.of(at)
	return max(0, -e.logs.log2(shareOf(float64(x[nexts]), float64(x[stacksOn]))))
}
