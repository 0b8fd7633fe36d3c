package stackfix

import "slices"

// A threadTree counts the known stacks of one thread.
type threadTree struct {
	thread int // 1 + its number
	round  int
	nodes  perStack[threadNode]
	fresh  []StackID // stacks that were found in this round
	// scratch
	ends  []StackID
	order []StackID
}

type threadNode struct {
	n   int32 // known stacks through it
	q   int32 // different next frames
	add int32 // to n
	met bool  // it is in order
}

func (l *threadTree) reset() {
	l.nodes.reset()
	l.fresh, l.thread = l.fresh[:0], 0
}

// learnThread makes e.local that of run ri, as it was when the round began.
func (e *solver) learnThread(ri int) {
	l := &e.local
	thread := e.runs[ri].thread
	if l.thread == thread+1 && l.round == e.round {
		return
	}
	l.ends = l.ends[:0]
	l.nodes.reach(e.t.Len())
	if l.thread != thread+1 {
		l.reset()
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
	} else {
		for _, s := range l.fresh {
			l.end(s, 1)
		}
	}
	e.answers.reset()
	l.thread, l.round = thread+1, e.round
	l.fresh = l.fresh[:0]
	e.addEnds()
}

// end notes n known stacks s.
func (l *threadTree) end(s StackID, n int32) {
	x := &l.nodes.of[s]
	if x.add == 0 {
		l.ends = append(l.ends, s)
	}
	x.add += n
}

// addEnds counts the stacks that were noted.
func (e *solver) addEnds() {
	// Every stack on the way to an end is met once. The paths end in one another, newer
	// ones in older ones: backwards, all that is above a stack is counted before it.
	l := &e.local
	order := l.order[:0]
	for _, s := range l.ends {
		from := len(order)
		for !l.nodes.of[s].met {
			l.nodes.of[s].met = true
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
		x := &l.nodes.of[s]
		isNew := x.n == 0
		x.n += x.add
		if isNew {
			l.nodes.used = append(l.nodes.used, s)
		}
		if s != 0 {
			p := &l.nodes.of[e.t.Parent(s)]
			p.add += x.add
			if isNew {
				p.q++
			}
		}
		x.add, x.met = 0, false
	}
}

// foreign tells how many bits it takes to believe that p is on this thread.
func (e *solver) foreign(p StackID) float64 {
	l := &e.local
	if len(l.nodes.of) == 0 || l.nodes.of[0].n == 0 {
		return 0 // nothing is known of this thread
	}
	at := e.t.first(p, func(s StackID) bool { return int(s) < len(l.nodes.of) && l.nodes.of[s].n != 0 })
	if at == p {
		return 0
	}
	x := l.nodes.of[at]
	return max(0, -e.logs.log2(shareOf(float64(x.q), float64(x.n))))
}
