package stackfix

import (
	"iter"
	"slices"
)

// Where the contexts that are asked are in what the witnesses show.

// A spot is where a context is in a stack.
type spot struct {
	context int32
	above   StackID // what stands above it
}

// A sighting is a spot in the stack of a witness.
type sighting struct {
	witness int32
	spot    uint32 // its number
}

// A view is the sightings of a context, in order of time.
type view struct {
	all   []sighting
	whole []sighting // those of whole witnesses, if few is set
	few   bool       // most witnesses are not whole
}

// asked is what is known of the contexts that are asked in a round.
type asked struct {
	ids    numbering
	of     map[StackID]contexts // of stacks that are asked
	ends   []uint8              // by letter: which of contextSites it is the innermost one of, a bit for each
	spots  []spot
	shows  [][2]int32 // by number of a stack: the spots of a witness
	counts []int      // by context: its sightings
	views  []view     // by context

	// scratch
	all      []sighting // of all contexts
	wholes   []sighting // of these: those of whole witnesses, where they are few
	lastEnds []ending
	// what gather needs
	lastSpots []spot
	places    []uint32
}

// Sightings are most of the memory of a repair: of more than mostSightings, which tests change, one
// in portions is held at a time.
var mostSightings = 512 << 10

const portions = 16

// divide divides open blocks so that what is seen of the contexts of each part are about n
// sightings. Blocks with the same context are in the same part.
func (c *consensus) divide(open []*block, n int) (parts [][]*block) {
	type group struct {
		blocks []*block
		asked  map[int32]bool // contexts
	}
	groups := map[int32]*group{}
	var order []*group
	for _, b := range open {
		ids := c.of[c.parts[b].stack]
		first := ids[c.by.first] // who shares a longer context shares this one
		g := groups[first]
		if g == nil {
			g = &group{asked: map[int32]bool{}}
			groups[first] = g
			order = append(order, g)
		}
		g.blocks = append(g.blocks, b)
		for _, id := range ids {
			g.asked[id] = true
		}
	}
	var part []*block
	sum := 0
	for _, g := range order {
		own := 0
		for id := range g.asked {
			if id > 0 {
				own += c.counts[id-1]
			}
		}
		if len(part) > 0 && sum+own > n {
			parts = append(parts, part)
			part, sum = nil, 0
		}
		part, sum = append(part, g.blocks...), sum+own
	}
	return append(parts, part)
}

// ask finds in which stacks the contexts of what is known of open blocks are, and returns how many sightings
// of them there are.
func (c *consensus) ask(open []*block) (sightings int) {
	return c.askFor(func(yield func(StackID) bool) {
		for _, b := range open {
			if !yield(c.parts[b].stack) {
				return
			}
		}
	})
}

// askFor is ask for the contexts that stacks begin with.
func (c *consensus) askFor(all iter.Seq[StackID]) (sightings int) {
	c.ids.reset()
	c.of, c.ends = map[StackID]contexts{}, make([]uint8, max(len(c.mth), c.methods))
	for s := range all {
		if _, ok := c.of[s]; ok {
			continue
		}
		c.fs = c.t.AppendFrames(c.fs[:0], s)
		var x contexts
		for i, k := range contextSites {
			if len(c.fs) > k && i >= c.by.first { // the innermost frame is no call site
				h := uint64(0)
				for _, f := range c.fs[:k] {
					h = hashOn(h, c.letter(f))
				}
				x[i] = int32(c.ids.add(h^uint64(i))) + 1
				c.ends[c.letter(c.fs[k-1])] |= 1 << i
			}
		}
		c.of[s] = x
	}
	ends, at := c.endings()
	defer clear(at)
	most := 0
	for _, x := range c.stacks {
		most += int(ends[at[c.t.Parent(x.stack)]].n)
	}
	c.spots = slices.Grow(c.spots[:0], most)
	c.shows = slices.Grow(c.shows[:0], len(c.stacks))[:len(c.stacks)]
	c.counts = make([]int, c.ids.n)
	for k, x := range c.stacks {
		from := len(c.spots)
		// the innermost frame is no call site
		for e := at[c.t.Parent(x.stack)]; e != 0; e = ends[e].next {
			c.spots = append(c.spots, ends[e].spot)
			c.counts[ends[e].context] += int(x.witnesses)
		}
		c.shows[k] = [2]int32{int32(from), int32(len(c.spots))}
		sightings += (len(c.spots) - from) * int(x.witnesses)
	}
	return sightings
}

// gather puts the spots of a context side by side: who goes through the sightings of one meets no others.
// It returns their new places, valid until it is called again.
func (c *consensus) gather() (places []uint32) {
	next := make([]uint32, len(c.counts)+1)
	for _, x := range c.spots {
		next[x.context+1]++
	}
	for i := range c.counts {
		next[i+1] += next[i]
	}
	n := len(c.spots)
	c.places = slices.Grow(c.places[:0], n)[:n]
	spots := slices.Grow(c.lastSpots[:0], n)[:n]
	for i, x := range c.spots {
		at := next[x.context]
		next[x.context]++
		c.places[i], spots[at] = at, x
	}
	c.spots, c.lastSpots = spots, c.spots
	return c.places
}

// see finds the contexts that are asked in the stacks of the witnesses.
func (c *consensus) see() {
	places := c.gather()
	n := 0
	for _, some := range c.counts {
		n += some
	}
	if cap(c.all) < n {
		c.all, c.views = nil, nil // or they would be held beside what takes their place
		c.all = make([]sighting, n)
	}
	all := c.all[:n]
	// What the witnesses of a part see stands behind what those before it do.
	parts := make([][]uint32, min(mostParts, 1+len(c.witnesses)/leastPart))
	bounds := func(part int) (from, to int) {
		return part * len(c.witnesses) / len(parts), (part + 1) * len(c.witnesses) / len(parts)
	}
	c.each(len(parts), func(i int) {
		parts[i] = make([]uint32, len(c.counts))
		shown := make([]uint32, len(c.stacks))
		from, to := bounds(i)
		for _, k := range c.stackOf[from:to] {
			shown[k]++
		}
		for k, n := range shown {
			if n > 0 {
				show := c.shows[k]
				for _, p := range places[show[0]:show[1]] {
					parts[i][c.spots[p].context] += n
				}
			}
		}
	})
	if c.stopped() {
		return
	}
	c.views = make([]view, len(c.counts))
	at := 0
	for id, some := range c.counts {
		c.views[id].all = all[at : at+some]
		next := uint32(at)
		for _, part := range parts {
			part[id], next = next, next+part[id]
		}
		at += some
	}
	c.each(len(parts), func(i int) {
		next := parts[i]
		from, to := bounds(i)
		for w := from; w < to; w++ {
			show := c.shows[c.stackOf[w]]
			for _, p := range places[show[0]:show[1]] {
				at := &next[c.spots[p].context]
				all[*at] = sighting{int32(w), p}
				*at++
			}
		}
	})
	c.findWhole()
}

// findWhole finds the sightings of whole witnesses where they are few: who asks for them need not go through all.
func (c *consensus) findWhole() {
	n := 0
	for id := range c.views {
		x := &c.views[id]
		whole := 0
		for _, s := range x.all {
			if c.isWhole[s.witness] {
				whole++
			}
		}
		if x.few = whole < len(x.all)/2; x.few {
			n += whole
		}
	}
	some := slices.Grow(c.wholes[:0], n)
	for id := range c.views {
		x := &c.views[id]
		if !x.few {
			continue
		}
		from := len(some)
		for _, s := range x.all {
			if c.isWhole[s.witness] {
				some = append(some, s)
			}
		}
		x.whole = some[from:]
	}
	c.wholes = some
}

// The witnesses are asked in up to mostParts parts at once, of leastPart and more.
const (
	mostParts = 8
	leastPart = 32 << 10
)

// An ending is where a context ends in a stack.
type ending struct {
	spot
	next uint32 // that of a shorter context, or the next one further out; 0 if there is none
	n    int32  // how many there are from here on
}

// endings returns those of the contexts that are asked, from 1 on, and for each stack the innermost
// in it; 0 if it has none.
func (c *consensus) endings() (ends []ending, at []uint32) {
	at = c.pad.list(c.t.Len())
	ends = append(c.lastEnds[:0], ending{})
	path := append(c.path[:0], waypoint{}) // from longSites further out on
	last := StackID(0)                     // where that path ends
	for _, s := range c.nodes {
		callers, f := c.t.Node(s)
		at[s] = at[callers]
		f = c.letter(f)
		if int(f) >= len(c.ends) || c.ends[f] == 0 {
			continue
		}
		c.way = append(c.way[:0], s)
		a := callers
		for ; a != 0 && a != last && len(c.way) <= longSites; a = c.t.Parent(a) {
			c.way = append(c.way, a)
		}
		if a == 0 || a != last {
			path = append(path[:0], waypoint{stack: a})
		}
		for _, s := range slices.Backward(c.way) {
			path = append(path, waypoint{s, hashOn(path[len(path)-1].hash, c.letter(c.t.Frame(s)))})
		}
		last = s
		end := path[len(path)-1].hash
		for i, k := range contextSites {
			from := len(path) - 1 - k
			if from < 0 || c.ends[f]>>i&1 == 0 {
				continue
			}
			if id := c.ids.get((end - path[from].hash*powers[k]) ^ uint64(i)); id >= 0 {
				x := ending{spot{int32(id), path[from].stack}, at[s], ends[at[s]].n + 1}
				at[s] = uint32(len(ends))
				if len(ends) == cap(ends) {
					ends = append(make([]ending, 0, 2*len(ends)), ends...)
				}
				ends = append(ends, x)
			}
		}
	}
	c.path, c.lastEnds = path, ends
	return ends, at
}

// A waypoint is a stack on a path, with the hash of its frames down to it.
type waypoint struct {
	stack StackID
	hash  uint64
}
