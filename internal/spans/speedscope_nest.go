package spans

import "slices"

// A nest puts the events of a profile in order: their times do not go back, and what closes is
// what is open. It looks ahead a little, since one wrong number is known by what follows.
type nest struct {
	w    *walker
	p    *SpeedscopeProfile
	wait []profileEvent
	open []int
	at   float64
	n    int
	// The closes up to this offset are no reordered ones.
	tried int64
}

const (
	lookAhead = 2048 // events of one time that may close in any order
	judged    = 64   // of them, by which a reading is judged
)

func newNest(w *walker, p *SpeedscopeProfile) *nest { return &nest{w: w, p: p, at: p.Start} }

// add takes the next event of the file.
func (n *nest) add(e profileEvent) {
	n.p.Events++
	n.wait = append(n.wait, e)
	if len(n.wait) > lookAhead {
		n.next()
	}
}

// end hands on what waits. Frames may stay open, as they do in the file.
func (n *nest) end() {
	for len(n.wait) > 0 && !n.w.done {
		n.next()
	}
}

// next hands on the first event that waits.
func (n *nest) next() {
	e := n.wait[0]
	n.wait = n.wait[1:]
	e.at = n.time(e)
	n.at, n.p.Last = e.at, e.at
	if !e.typed {
		e.open = len(n.open) == 0 || n.open[len(n.open)-1] != e.frame
	}
	if e.open {
		n.open = append(n.open, e.frame)
		n.w.emit(true, e.frame, e.at)
		return
	}
	n.close(e)
}

// time is that of an event. One that goes back, or is beyond those that follow, is wrong.
func (n *nest) time(e profileEvent) float64 {
	first := n.n == 0
	n.n++
	if !e.timed {
		if first && len(n.wait) > 0 && n.wait[0].timed {
			return n.wait[0].at
		}
		return n.at
	}
	later, earlier := 0, 0 // of the next ones
	for i := 0; i < len(n.wait) && i < 8; i++ {
		if n.wait[i].timed {
			if n.wait[i].at < e.at {
				earlier++
			} else {
				later++
			}
		}
	}
	switch {
	case !first && e.at < n.at:
		n.w.s.damageAt(e.offset, "time %v after %v", e.at, n.at)
		return n.at
	case earlier > 2 && earlier > later:
		n.w.s.damageAt(e.offset, "time %v, but %v follows", e.at, n.wait[0].at)
		return max(n.at, min(e.at, n.wait[0].at))
	}
	return e.at
}

// close closes a frame. Closes of one time may stand in any order, as in files of
// dotnet-trace 3.1; anything else is damage, and is read in the way that fits best what follows.
func (n *nest) close(e profileEvent) {
	top := len(n.open) - 1
	if top >= 0 && n.open[top] == e.frame {
		n.pop(e.at)
		return
	}
	if n.reordered(e) {
		return
	}
	at := top
	for at >= 0 && top-at < lookAhead && n.open[at] != e.frame {
		at--
	}
	if at >= 0 && n.open[at] != e.frame {
		at = -1
	}
	n.w.s.damageAt(e.offset, "frame %d closes, which is not the innermost one", e.frame)
	// Either all above it close, or it is another frame that closes, or none does.
	best, least := 0, n.cost(n.open)
	if top >= 0 {
		if c := n.cost(n.open[:top]); c < least {
			best, least = 1, c
		}
	}
	if at >= 0 {
		if c := n.cost(n.open[:at]); c < least {
			best = top + 1 - at
		}
	}
	for range best {
		n.pop(e.at)
	}
}

// pop closes the innermost frame.
func (n *nest) pop(at float64) {
	top := len(n.open) - 1
	f := n.open[top]
	n.open = n.open[:top]
	n.w.emit(false, f, at)
}

// reordered closes a frame with the others that close at the same time, if together they are the
// innermost ones.
func (n *nest) reordered(e profileEvent) bool {
	if len(n.wait) == 0 || e.offset < n.tried {
		return false
	}
	got := []int{e.frame}
	for _, x := range n.wait {
		if x.open || !x.typed || x.at != e.at {
			break
		}
		got = append(got, x.frame)
		n.tried = x.offset
	}
	if len(got) < 2 || len(got) > len(n.open) {
		return false
	}
	want := slices.Clone(n.open[len(n.open)-len(got):])
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return false
	}
	for range got {
		n.pop(e.at)
	}
	n.wait = n.wait[len(got)-1:]
	return true
}

// cost is how many of the events that wait do not fit a stack.
func (n *nest) cost(open []int) (cost int) {
	open = slices.Clone(open[max(0, len(open)-lookAhead):])
	for _, e := range n.wait[:min(judged, len(n.wait))] {
		if !e.typed {
			continue
		}
		if e.open {
			open = append(open, e.frame)
			continue
		}
		i := len(open) - 1
		for i >= 0 && open[i] != e.frame {
			i--
		}
		if i < 0 {
			cost++
			continue
		}
		cost += len(open) - 1 - i
		open = open[:i]
	}
	return cost
}
