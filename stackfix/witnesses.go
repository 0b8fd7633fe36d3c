package stackfix

import "cmp"

// Who votes on what is missing of a stack, and when.

// A witness is a stack at a time, as it votes.
type witness struct {
	glimpse
	stack    StackID
	restored int32 // outermost frames of it that were not recorded
	whole    bool
	hearsay  bool // a repair that only repairs speak for
	surrounding
}

// called is a stack that witnesses show.
type called struct {
	stack     StackID
	witnesses int32
}

// A glimpse is of a thread at a time.
type glimpse struct {
	time   int64
	thread int
}

// call collects the witnesses.
func (c *consensus) call() {
	w := c.w
	// of each run, side by side
	from := make([]int, len(w.runs)+1)
	c.each(len(w.runs), func(i int) {
		n := 0
		for b := range w.runs[i].all() {
			if c.votes(b) {
				n++
			}
		}
		from[i+1] = n
	})
	if c.stopped() {
		return
	}
	for i := range w.runs {
		from[i+1] += from[i]
	}
	n := from[len(w.runs)]
	all, order := make([]witness, n), make([]seat, n)
	c.each(len(w.runs), func(i int) {
		q := c.inquiry()
		defer q.end()
		k := from[i]
		for b := range w.runs[i].all() {
			if !c.votes(b) {
				continue
			}
			x := witness{glimpse: glimpse{b.time, w.runs[i].thread}, stack: b.stack, whole: c.whole(b), hearsay: b.hearsay}
			if x.whole {
				x.stack = b.ext
				x.restored = int32(c.t.Depth(b.ext) - c.t.Depth(b.stack))
			}
			x.between(q, b.before, b.after)
			all[k], order[k] = x, seat{x.time, int32(c.t.Depth(x.stack)), int32(k)}
			k++
		}
	})
	if c.stopped() {
		return
	}
	c.witnesses, c.times = make([]witness, n), make([]int64, n)
	c.stackOf, c.isWhole = make([]int32, n), make([]bool, n)
	var stacks numbering
	for i, x := range mergeSeats(order) {
		c.witnesses[i] = all[x.at]
		c.times[i], c.isWhole[i] = x.time, all[x.at].whole
		s := all[x.at].stack
		k := stacks.add(uint64(s))
		if k == len(c.stacks) {
			c.stacks = append(c.stacks, called{stack: s})
		}
		c.stackOf[i] = int32(k)
		c.stacks[k].witnesses++
	}
	c.findNodes()
}

// findNodes finds what the stacks of witnesses go through, their innermost frames left out: these
// are no call sites. The tree holds as much that was tried only.
func (c *consensus) findNodes() {
	c.seen.reset()
	n, newest := 0, StackID(0)
	for _, x := range c.stacks {
		s := c.t.Parent(x.stack)
		newest = max(newest, s)
		for ; s != 0 && c.seen.add(s); s = c.t.Parent(s) {
			n++
		}
	}
	c.nodes = make([]StackID, 0, n)
	for s := StackID(1); s <= newest; s++ {
		if c.seen.has(s) {
			c.nodes = append(c.nodes, s)
		}
	}
}

// whole tells whether b votes as a whole stack.
func (c *consensus) whole(b *block) bool {
	if c.recorded {
		return b.given
	}
	return b.rooted && b.conf >= sureWhole
}

// votes tells whether b is a witness.
func (c *consensus) votes(b *block) bool {
	switch {
	case b.bridged:
		return false
	case c.whole(b):
		return b.ext != 0
	}
	return b.stack != 0 && !c.recorded
}

// A seat is when a witness is called: in order of time, and of those at one time the shallowest first.
type seat struct {
	time  int64
	depth int32
	at    int32 // its number
}

// mergeSeats sorts seats, which are long stretches that are sorted: those of runs, but for those of one time.
func mergeSeats(all []seat) []seat {
	compare := func(a, b seat) int {
		if a.time != b.time { // as nearly always
			return cmp.Compare(a.time, b.time)
		}
		return cmp.Compare(a.depth, b.depth)
	}
	from := []int{0} // where stretches begin, and the end
	for i := 1; i < len(all); i++ {
		if compare(all[i], all[i-1]) < 0 {
			from = append(from, i)
		}
	}
	from = append(from, len(all))
	into := make([]seat, len(all))
	for len(from) > 2 {
		next := from[:1]
		for i := 0; i+1 < len(from); i += 2 {
			lo, mid := from[i], from[i+1]
			hi := mid
			if i+2 < len(from) {
				hi = from[i+2]
			}
			a, b, k := all[lo:mid], all[mid:hi], lo
			for len(a) > 0 && len(b) > 0 {
				if compare(b[0], a[0]) < 0 {
					into[k], b = b[0], b[1:]
				} else {
					into[k], a = a[0], a[1:]
				}
				k++
			}
			copy(into[k:], a)
			copy(into[k+len(a):hi], b)
			next = append(next, hi)
		}
		all, into, from = into, all, next
	}
	return all
}
