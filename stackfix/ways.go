package stackfix

import "slices"

// outward is the hash of frames, h being that of all but the outermost one.
func outward(h uint64, f FrameID) uint64 { return (h+uint64(f)+1)*mul ^ h>>29 }

// learnCallers counts what calls each stretch of wayMethods, and of longWay.
func (c *consensus) learnCallers() {
	c.seen.reset()
	var ms []MethodID
	for i := range c.witnesses {
		ms = ms[:0]
		n, s := 0, c.t.Parent(c.witnesses[i].stack)
		for ; s != 0 && c.seen.add(s); s = c.t.Parent(s) {
			ms = append(ms, c.method(c.t.Frame(s)))
			n++
		}
		for ; s != 0 && len(ms) < n+longWay; s = c.t.Parent(s) {
			ms = append(ms, c.method(c.t.Frame(s)))
		}
		for _, way := range [...]int{wayMethods, longWay} {
			for k := 0; k < n && k+way < len(ms); k++ {
				h := uint64(way)
				for _, m := range ms[k : k+way] {
					h = outward(h, m)
				}
				id := c.ways.add(h)
				if id == len(c.callers) {
					c.callers = append(c.callers, nil)
				}
				countVote(&c.callers[id], ms[k+way])
			}
		}
	}
}

// countVote counts one more of m.
func countVote(vs *[]vote, m MethodID) {
	if i := slices.IndexFunc(*vs, func(v vote) bool { return v.of == m }); i >= 0 {
		(*vs)[i].n++
	} else {
		*vs = append(*vs, vote{m, 1})
	}
}

// called tells whether other methods than m call the stretch of so many methods that fs begins with.
func (c *consensus) called(fs []FrameID, m MethodID, way int) bool {
	c.learned.Do(c.learnCallers)
	h := uint64(way)
	for _, f := range slices.Backward(fs[:min(way, len(fs))]) {
		h = outward(h, c.method(f))
	}
	id := c.ways.get(h)
	if id < 0 {
		return false
	}
	all, own := int32(0), int32(0)
	for _, v := range c.callers[id] {
		all += v.n
		if v.of == m {
			own = v.n
		}
	}
	return float64(all-own) > otherWays*float64(all)
}
