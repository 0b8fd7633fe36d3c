package stackfix

import "slices"

// By names alone all calls of a method look the same, and there are no stacks of other events: an
// answer may take the wrong one of several ways into what it holds. A method that a timer resumes
// runs below other frames than when the thread pool does; where one of the two always leads so deep
// that its stacks are cut, a trial never sees the other one go wrong. What was recorded whole tells
// where ways part. An answer is taken back there if neither the whole stacks around it nor those
// near in time that hold the same take its way, or if the whole stacks around do not tell: where
// others of this recording that stand between such ones often take another way.
//
// The numbers are set by hand, with the Chromium JSON of ten recordings of real programs whose
// stacks were really cut.
const (
	// firstWay and lastWay are where in a stack ways are looked for: further out all stacks of a
	// thread are the same, further in wrong ones are as rare as witnesses.
	firstWay, lastWay = 3, 60
	// leastWitnesses is how many whole stacks, which hold the same, it takes to doubt.
	leastWitnesses = 8
	// nearWay and fewWay are the part of the nearest leastWitnesses, and of all, that must take the
	// way of an answer that no whole stack around it takes.
	nearWay, fewWay = 0.25, 0.25
	// clearWay is the part of all that is enough where one of the whole stacks around takes it, and
	// followsOne that of those where the stacks around take different ways which took one of these.
	clearWay, followsOne = 0.8, 0.8
	// followsBoth is the part that went the way of the stacks around of those where both take one.
	followsBoth = 0.85
	// beyondDoubt is how sure an answer is that goes the way of a whole stack around it, whatever others do.
	beyondDoubt = 0.99
	// doubted is how sure an answer is at most that is doubted: of those of ten recordings 69 % were right.
	doubted = 0.7
)

// A review holds answers to blocks of a world against what was recorded whole.
type review struct {
	*engine
	w        *world
	recorded *consensus // who was recorded whole is a witness; nil until it is asked
	asked    map[*block]bool
	weighed  map[*block]bool    // answers whose way was believed: they are not asked for it again
	left     map[*block]remnant // of answers that were taken back

	fs, gs []FrameID // scratch
}

// A remnant is what is left of an answer: what was recorded, and frames above it.
type remnant struct {
	stack StackID
	conf  float64
}

// A suspect is a block whose answer may be doubted.
type suspect struct {
	*block
	before, after StackID // the recorded whole stacks around it, without their innermost frames
	place         int     // the innermost one where it takes a way that is doubted; 0: there is none
	waysKnown     bool    // witnesses tell of a place where ways part
}

func (e *engine) newReview(w *world) *review {
	return &review{engine: e, w: w, asked: map[*block]bool{}, weighed: map[*block]bool{}, left: map[*block]remnant{}}
}

// A doubt is what was found out of the ways that an answer takes.
type doubt struct{ known, strays bool }

// doubtsOn returns which answers that are not sure enough are doubted, of the blocks that may be
// given theirs.
func (d *review) doubtsOn(mayBe func(b *block) bool) map[*block]doubt {
	var of []*block
	n := d.t.Len()
	all := d.suspects(func(b *block) *block {
		if !mayBe(b) {
			return nil
		}
		x := *b
		x.ext, x.conf = d.t.Join(b.guess, d.t.AppendFrames(nil, b.ext)), b.guessed
		of = append(of, b)
		return &x
	})
	d.findPlaces(all)
	d.t.Truncate(n)
	out := map[*block]doubt{}
	for i, x := range all {
		out[of[i]] = doubt{x.waysKnown, x.place > 0}
	}
	return out
}

// takeBack takes back the answers by names that were found since the last time and are doubted,
// unless they are sure enough all the same.
func (d *review) takeBack() {
	if !d.byName {
		return
	}
	all := d.suspects(func(b *block) *block {
		if !b.known() || b.ext == b.stack || d.asked[b] {
			return nil
		}
		d.asked[b] = true
		return b
	})
	n := d.t.Len()
	d.findPlaces(all)
	d.t.Truncate(n)
	for _, x := range all {
		if x.place == 0 {
			continue
		}
		if d.minConf <= doubted {
			x.conf = min(x.conf, doubted)
			continue
		}
		if depth := d.t.Depth(x.ext); depth-d.t.Depth(x.stack) <= lastWay+1 { // or there may be others further in
			d.left[x.block] = remnant{d.t.Add(d.t.AppendFrames(nil, x.ext)[x.place:]...), float64(x.conf)}
		}
		x.takeBack()
	}
}

// suspects returns the blocks that suspect makes of others, if it does.
func (d *review) suspects(of func(b *block) *block) (all []suspect) {
	for i := range d.w.runs {
		var before StackID
		from := len(all) // since the last whole stack
		for b := range d.w.runs[i].all() {
			if b.given && b.known() {
				s := d.t.Parent(b.ext)
				for k := range all[from:] {
					all[from+k].after = s
				}
				before, from = s, len(all)
			} else if x := of(b); x != nil {
				all = append(all, suspect{block: x, before: before})
			}
		}
	}
	return all
}

// answered returns the blocks whose answers were found.
func (d *review) answered() []suspect {
	return d.suspects(func(b *block) *block {
		if b.given || !b.known() || b.ext == b.stack {
			return nil
		}
		return b
	})
}

// findPlaces finds the places where suspects take ways that are doubted. It leaves stacks in the tree.
func (d *review) findPlaces(all []suspect) {
	if len(all) == 0 {
		return
	}
	if d.recorded == nil {
		d.recorded = &consensus{engine: d.engine, w: d.w, by: bySites, recorded: true, idle: make(chan *inquiry, mostIdle)}
		d.recorded.call()
	}
	c := d.recorded
	// What an answer holds from each place on is asked for like what is known of an open block.
	ways := map[StackID][]StackID{} // by answer, from firstWay on
	var different []StackID
	known := map[StackID]bool{}
	var fs []FrameID
	for _, x := range all {
		if ways[x.ext] != nil {
			continue
		}
		fs = d.t.AppendFrames(fs[:0], x.ext)
		at := []StackID{}
		for i := firstWay; i <= lastWay && i < len(fs)-d.t.Depth(x.stack) && i+outerSites < len(fs); i++ {
			s := d.t.Add(fs[i : i+outerSites+1]...) // the innermost frame is no call site
			if at = append(at, s); !known[s] {
				known[s] = true
				different = append(different, s)
			}
		}
		ways[x.ext] = at
	}
	portions := c.divideStacks(different)
	for _, some := range portions {
		if len(portions) > 1 { // or it is asked for already
			c.askFor(slices.Values(some))
		}
		c.see()
		if d.stopped() {
			break
		}
		callers := c.callersOf()
		d.each(len(all), func(i int) {
			x := &all[i]
			at := ways[x.ext]
			q := c.inquiry()
			defer q.end()
			q.met = reach(q.met, len(q.spots))
			for k := len(at) - 1; k >= 0 && firstWay+k > x.place; k-- {
				id := c.of[at[k]][0]
				if id == 0 || callers[id-1] == d.callerOf(d.t.up(x.ext, firstWay+k)) {
					continue // it is not asked for now, or all agree
				}
				if q.strays(x, firstWay+k, id) {
					x.place = firstWay + k
				}
			}
		})
	}
	c.asked = asked{} // the witnesses are asked again
}

// divideStacks asks for what stacks begin with, and divides them so that what is seen of what those
// of each part begin with are no more than about mostSightings sightings, or than one portion of
// all.
func (c *consensus) divideStacks(all []StackID) (parts [][]StackID) {
	n := c.askFor(slices.Values(all))
	most, sum, from := max(mostSightings, n/portions), 0, 0
	for i, s := range all {
		own := 0
		if id := c.of[s][0]; id > 0 {
			own = c.counts[id-1]
		}
		if sum+own > most && i > from {
			parts = append(parts, all[from:i])
			sum, from = 0, i
		}
		sum += own
	}
	return append(parts, all[from:])
}

// several stands for the callers of what is called by more than one.
const several = ^MethodID(0)

// callersOf returns who calls each context that was asked.
func (c *consensus) callersOf() []MethodID {
	callers := make([]MethodID, len(c.counts))
	met := make([]bool, len(c.counts))
	for _, x := range c.spots {
		m := c.callerOf(x.above)
		if met[x.context] && callers[x.context] != m {
			m = several
		}
		met[x.context], callers[x.context] = true, m
	}
	return callers
}

// strays tells whether the way that x takes is doubted at a place where what it holds begins with a context.
func (q *inquiry) strays(x *suspect, place int, context int32) bool {
	above := q.t.up(x.ext, place)
	around := max(q.along(above, x.before), q.along(above, x.after))
	if around == place && x.conf >= beyondDoubt {
		return false
	}
	a := &q.votes
	q.assemble(a, context, x.time, true, 0)
	if a.n < leastWitnesses {
		return false
	}
	parts := place // where the ways part: how many frames they share
	takes := make([]bool, len(a.camps))
	for i := range a.camps {
		other := a.camps[i].above
		if takes[i] = q.callerOf(other) == q.callerOf(above); !takes[i] {
			parts = min(parts, q.along(above, other))
		}
	}
	if parts == place {
		return false // some go further out
	}
	x.waysKnown = true
	// Of the witnesses: who takes the way of x, of the nearest and of all; and who stands between
	// whole stacks that share a way beyond that place or that do not, and goes with them.
	var near, take, both, wentBoth, one, wentOne int
	for i, v := range a.votes {
		if takes[v.camp] {
			take++
			if i < leastWitnesses {
				near++
			}
		}
		switch {
		case int(v.shared) <= parts:
			one++
			if int(v.either) > parts {
				wentOne++
			}
		case int(v.kept) >= parts:
			both++
			if int(v.kept) > parts {
				wentBoth++
			}
		}
	}
	less := func(n, of int, part float64) bool { return float64(n) < part*float64(of) }
	far, few := less(near, leastWitnesses, nearWay), less(take, a.n, fewWay)
	if around <= parts {
		return far || few
	}
	if around < place && far && few {
		return true
	}
	if x.conf >= beyondDoubt {
		return false
	}
	if q.along(above, q.t.shared(x.before, x.after)) > parts {
		return both >= fewAnswers && less(wentBoth+1, both+2, followsBoth)
	}
	return less(take, a.n, clearWay) && less(wentOne+1, one+2, followsOne)
}

// along is how many frames of s, from the root on, other ones begin with too. The walk of either
// may have gone rootSlack frames further out.
func (q *inquiry) along(s, other StackID) int {
	n := q.shared(s, q.t.Depth(s), other, 0)
	if n > 0 {
		return n
	}
	q.fs, q.gs = q.t.AppendFrames(q.fs[:0], s), q.t.AppendFrames(q.gs[:0], other)
	for d := 1; d <= rootSlack; d++ {
		if d < len(q.gs) {
			n = max(n, q.same(q.fs, q.gs[d:], 0))
		}
		if d < len(q.fs) {
			if more := q.same(q.fs[d:], q.gs, 0); more > 0 {
				n = max(n, d+more)
			}
		}
	}
	return n
}
