package stackfix

// Whole stacks that hold what a cut one goes on with may all begin alike, and the cut one
// otherwise: a way in that always leads so deep that its stacks are cut is in none of them. So a
// base is not believed where hardly any of the cut stacks that hold the same further in is known to
// begin with it. In six runs of programs made to be hard, with a pool of threads and with handlers
// that call each other, 72 of 75 stacks with a wrong base are no longer wrong; ten real programs
// lose 3 in a thousand of their restored frames.

// fewBegin is the part of the cut stacks that must be known to begin with a base, if one more did.
// It is set by hand.
const fewBegin = 0.1

// doubtBases takes back the bases of open blocks that were voted for and are doubted.
func (c *consensus) doubtBases(open []*block) {
	begin := map[StackID]StackID{} // what is known of the root of a stack that was recorded so
	var based []*block
	for _, b := range open {
		p := c.parts[b]
		root := p.base
		if b.rooted {
			root = b.ext
		} else if c.t.Depth(p.base) > c.t.Depth(p.local) {
			based = append(based, b)
		}
		if s, ok := begin[b.stack]; ok {
			root = c.t.shared(root, s)
		}
		begin[b.stack] = root
	}
	if len(based) == 0 {
		return
	}
	c.by = bySites
	c.inPortions(based, func(some []*block) {
		c.each(len(some), func(i int) {
			q := c.inquiry()
			q.met = reach(q.met, len(q.spots))
			if p := c.parts[some[i]]; q.doubtsBase(some[i], p, begin) {
				p.base, p.baseConf = p.local, unanimous(2*localStacks)
			}
			q.end()
		})
	})
}

// doubtsBase tells whether the base of b, which is p, is doubted, given what is known of the roots
// of other open stacks.
func (q *inquiry) doubtsBase(b *block, p *part, begin map[StackID]StackID) bool {
	id := q.of[p.stack][0]
	q.assemble(&q.votes, id, b.time, false, 0)
	depth := q.t.Depth(p.base)
	cut, alike := 0, 0
	var last StackID // one of the roots, and whether it is alike: most are the same
	isAlike := depth == 0
	for i := range q.votes.votes {
		v := &q.votes.votes[i]
		whole := q.votes.camps[v.camp].whole
		if whole && v.restored == 0 || q.t.Depth(v.above) <= int(v.restored) {
			continue // it was recorded whole, or nothing that was recorded of it calls what it is asked for
		}
		root := v.above
		if !whole {
			root = begin[v.stack]
		}
		if root != last {
			last, isAlike = root, q.shared(p.base, depth, root, 0) == depth
		}
		if isAlike {
			alike++
		}
		cut++
	}
	return float64(alike+1) < fewBegin*float64(cut)
}
