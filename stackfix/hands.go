package stackfix

import (
	"math"
	"slices"
)

// What is found on one thread is evidence for another one from the next round on. So the threads of
// a round are searched side by side, by hands: solvers that share what is known when it begins, and
// push stacks on forks of the tree. These stacks are pushed on the tree itself in the order of the
// threads, and so all is as if one thread had been searched after the other.

// What tests change.
var (
	// handRoom is how many stacks may be pushed for one thread: with more the hand takes a copy of the tree.
	handRoom = 32 << 10
	// leastOpen is how many open blocks beside those of the busiest thread are worth it.
	leastOpen = 16
)

const (
	mostHands = 4 // each holds 16 bytes for each stack
	// pushedPerOpen is how many stacks are pushed for an open block, with something to spare.
	pushedPerOpen = 64
	// stacksPerOpen is for how many stacks, whose numbers a hand needs memory for, there must be
	// one such block.
	stacksPerOpen = 256
)

// A share is the runs of one thread, and what was found for it.
type share struct {
	from, to int // of runs
	thread   int
	open     int // blocks

	changed int
	first   StackID   // of the stacks that were pushed; others are of the tree
	pushed  []pushed  // in order
	fresh   []StackID // that are evidence now
}

// pushed is a stack in which callers calls a frame.
type pushed struct {
	callers StackID
	frame   FrameID
}

// shares returns the threads with open blocks, if it is worth it to search them side by side.
func (e *solver) shares() (all []share) {
	if e.opts.Workers < 2 || e.judged { // trials are side by side themselves
		return nil
	}
	open, most := 0, 0
	for ri := range e.runs {
		r := &e.runs[ri]
		if len(r.open) == 0 {
			continue
		}
		if len(all) == 0 || all[len(all)-1].thread != r.thread {
			all = append(all, share{from: ri, thread: r.thread})
		}
		x := &all[len(all)-1]
		x.to = ri + 1
		x.open += len(r.open)
		open += len(r.open)
		most = max(most, x.open)
	}
	if open-most < max(leastOpen, e.t.Len()/stacksPerOpen) {
		return nil
	}
	return all
}

// passBeside is pass, by hands.
func (e *solver) passBeside(shares []share) (changed int) {
	e.local.keep()
	e.local.clear()
	if !e.pieces.learned && e.mayBeStrict() {
		e.learnPieces()
	}
	order := make([]uint64, len(shares)) // those that take longest first
	most := 0
	for i, x := range shares {
		order[i] = (math.MaxUint32-uint64(x.open))<<32 | uint64(i)
		most = max(most, x.open)
	}
	slices.Sort(order)
	idle := e.callHands(min(e.opts.Workers, mostHands, len(shares)), min(handRoom, most*pushedPerOpen))
	e.each(len(order), func(i int) {
		h := <-idle
		defer func() { idle <- h }()
		h.searchThread(&shares[uint32(order[i])])
	})
	e.dismissHands()
	if e.stopped() {
		return 0 // and what was found is of no use: it has stacks that are not in the tree
	}
	for i := range shares {
		changed += shares[i].changed
		e.takeOver(&shares[i])
	}
	return changed
}

// hire makes hands of solvers that have nothing more to do: they have the memory that it takes.
func (e *solver) hire(idle chan *solver) {
	if e.opts.Workers < 2 {
		return
	}
	for len(idle) > 0 {
		h := <-idle
		h.doubts.reset()
		h.isHand, h.rows, h.last, h.world, h.idx = true, nil, nil, nil, nil
		e.hands = append(e.hands, h)
	}
}

// callHands returns n hands that know what e does, and can push so many stacks without a copy of the tree.
func (e *solver) callHands(n, room int) chan *solver {
	for len(e.hands) < n {
		h := &solver{engine: &engine{}, isHand: true}
		h.local.pad = &h.pad
		e.hands = append(e.hands, h)
	}
	idle := make(chan *solver, n)
	// the first one has the memory of e
	e.hands[0].pad, e.hands[0].doubts = e.pad, e.doubts
	for i, t := range e.t.fork(n, room) {
		h := e.hands[i]
		pad := h.pad
		*h.engine = *e.engine
		h.t, h.pad, h.short.engine, h.seen, h.meter = t, pad, h.engine, stackSet{}, Meter{}
		h.world, h.idx, h.m, h.pieces = e.world, e.idx, e.m, e.pieces
		h.round, h.began, h.stage = e.round, e.began, e.stage
		h.local.kept = e.local.kept
		h.retain = e.retain
		h.retain.n, h.retain.total = [9][9]float64{}, 0
		idle <- h
	}
	return idle
}

// dismissHands takes over what hands have counted.
func (e *solver) dismissHands() {
	e.pad, e.doubts = e.hands[0].pad, e.hands[0].doubts
	for _, h := range e.hands {
		for a := range h.retain.n {
			for b, n := range h.retain.n[a] {
				e.retain.n[a][b] += n
			}
		}
		e.retain.total += h.retain.total
		h.retain = retention{}
	}
}

// searchThread searches one thread.
func (h *solver) searchThread(x *share) {
	x.first = h.t.First()
	for i := range h.sides {
		h.sides[i] = side{fs: h.sides[i].fs[:0], nodes: h.sides[i].nodes[:0]} // stacks of another thread may have had the same numbers
	}
	for ri := x.from; ri < x.to; ri++ {
		x.changed += h.passRun(ri)
	}
	x.fresh = slices.Clone(h.local.fresh)
	h.local.keep()
	h.local.clear()
	for s := x.first; int(s) < h.t.Len(); s++ {
		callers, f := h.t.Node(s)
		x.pushed = append(x.pushed, pushed{callers, f})
	}
	used := h.doubts.used[:0]
	for _, s := range h.doubts.used {
		if s < x.first {
			used = append(used, s)
		} else {
			h.doubts.of[s] = 0
		}
	}
	h.doubts.used = used
	h.t.Truncate(int(x.first))
}

// takeOver makes what was found for a thread that of e.
func (e *solver) takeOver(x *share) {
	names := e.names[:0]
	rename := func(s *StackID) {
		if *s >= x.first {
			*s = names[*s-x.first]
		}
	}
	for _, p := range x.pushed {
		rename(&p.callers)
		names = append(names, e.t.Push(p.callers, p.frame))
	}
	e.names = names
	for ri := x.from; ri < x.to; ri++ {
		r := &e.runs[ri]
		for _, k := range r.open {
			b := &r.blocks[k]
			for _, s := range [...]*StackID{&b.ext, &b.guess, &b.triedExt, &b.triedF, &b.triedB} {
				rename(s)
			}
		}
		r.close()
	}
	for _, s := range x.fresh {
		rename(&s)
		e.idx.addKnown(s)
	}
	for i := range e.local.kept.of[x.thread].fresh {
		rename(&e.local.kept.of[x.thread].fresh[i])
	}
}
