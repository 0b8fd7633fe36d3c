package stackfix

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// What is not known of a stack as a whole may be known in parts: the frames that all whole
// stacks begin with which hold what was recorded, and those that all stacks show right above it.
// The numbers below are those at which, of ten recordings of real programs whose stacks were
// really cut (two in a thousand of 5,000 bridged stacks with truth), hardly any part was wrong;
// cutting whole stacks on purpose does not tell them.
const (
	outerSites = 8 // call sites of a context that tells what a stack begins with
	innerSites = 16
	longSites  = 32 // of the longest one that tells all that is missing
	mostVotes  = 96 // of the stacks that hold a context, those nearest in time
	// mostSeen is how many sightings of a context are looked at for these: a thread that waits
	// shows one stack thousands of times.
	mostSeen   = 1024
	nearVotes  = 12 // of these, those that must agree in all frames; see same
	outerVotes = 16
	innerVotes = 24
	// Stacks of one thread within lookTime may be one call that was seen many times: it
	// takes fewLooks.
	lookTime = 50e6 // ns
	fewLooks = 4
	// sureWhole is the confidence that a repaired stack needs to vote as a whole one.
	sureWhole = 0.97
	// mostlyWhole is the share of the samples that may be cut so that whole stacks stand for
	// them: they are the shallow ones.
	mostlyWhole = 1.0 / 3
	// localStacks is how many whole stacks of the thread, on either side, tell what those between them begin with: a power of two.
	localStacks = 64
	// mostInlined is how many frames of one stack another one may lack in a row, because
	// the same code was compiled again and calls were inlined.
	mostInlined = 2
	// A stretch of wayMethods is called by one method, or two ways lead into it: the part of the
	// stacks that know another one is more than otherWays.
	wayMethods = 6
	otherWays  = 0.05
	// Where code repeats itself with some things changed, as a chain of middleware does, several ways lead into
	// any six methods of it. What overlaps of the stack with its neighbours show too, with a confidence of
	// sureOverlap, needs a longer stretch that is called by one method only. Of ten programs one of 4,400 bridged
	// stacks more was wrong, and 1.1 in a hundred of all missing frames came back by it; of four runs of a service
	// with many middlewares, 17 to 47 in a hundred. Where two ways lead in and one is nowhere whole, it may lead too
	// far: of a message bus cut at 30 frames 13 of 1,100 stacks.
	longWay     = 24
	sureOverlap = 0.97
	// partRounds is how often parts are looked for: a longer stack has another context.
	partRounds = 4
	// A round goes through all stacks: it is not worth it for fewer than one in roundShare of the open ones.
	roundShare = 20
	mostFrames = 1000 // that are put above a stack at once
)

// contextSites are the lengths of contexts.
var contextSites = [...]int{outerSites, innerSites, longSites}

// site is what contexts are made of: call sites first. For who has no answer by these it is methods, and the shortest
// context is left out: where a method calls another one at several places, that is seen at each of them.
func (c *consensus) site(f FrameID) uint32 {
	if c.byMethod && int(f) < len(c.mth) { // it may be a bridge
		return c.method(f)
	}
	return f
}

// first is the first of contextSites that is asked for.
func (c *consensus) first() int {
	if c.byMethod {
		return 1
	}
	return 0
}

// innerContexts is how many contexts from the first on tell what stands right above a stack.
const innerContexts = 2

// contexts are the numbers of the contexts of one stack, or those that end with one frame: 1 and
// more, 0 if it has none of this length.
type contexts [len(contextSites)]int32

// A part is what is known of a stack whose root is not.
type part struct {
	thread   int     // of it
	base     StackID // its root frames
	baseConf float64
	stack    StackID // its recorded frames, below those that are known to call them
	conf     float64 // of these
	shortest int     // way that is known from the root to the recorded frames
	hearing          // of an answer that is not sure enough
}

// A witness is a stack at a time, as it votes.
type witness struct {
	glimpse
	stack   StackID
	whole   bool
	hearsay bool // a repair that only repairs speak for
	surrounding
}

// called is a stack that witnesses show.
type called struct {
	stack     StackID
	witnesses int32
}

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
	whole []sighting // those of whole witnesses
}

// A glimpse is of a thread at a time.
type glimpse struct {
	time   int64
	thread int
}

// consensus finds parts by what other stacks of the process show. What is asked for one block
// changes nothing that another one asks for: see inquiry.
type consensus struct {
	*engine
	parts     map[*block]*part
	witnesses []witness // in order of time
	times     []int64   // of these
	stackOf   []int32   // of these: the number of its stack
	stacks    []called  // the different ones, in the order of their first witnesses
	nodes     []StackID // that these go through, callers before what they call
	fair      bool      // most samples are whole
	recorded  bool      // who was not recorded whole is no witness, and all who were vote: see review
	ways      stretches // of wayMethods
	longWays  stretches // of longWay

	byMethod bool // see site
	asked

	// scratch
	fs   []FrameID
	way  []StackID
	path []waypoint
	idle chan *inquiry
}

// asked is what is known of the contexts that are asked in a round.
type asked struct {
	ids    numbering
	of     map[StackID]contexts // of stacks that are asked
	ends   []uint8              // by site: which of contextSites it is the innermost one of, a bit for each
	spots  []spot
	shows  [][2]int32 // by number of a stack: the spots of a witness
	counts []int      // by context: its sightings
	views  []view     // by context

	// scratch
	all      []sighting // of all contexts
	wholes   []sighting // of these: those of whole witnesses, but where all are
	lastEnds []ending
}

// newConsensus finds what is known of the stacks of w that have no answer, given what is left of answers that were
// taken back.
func (e *engine) newConsensus(w *world, left map[*block]remnant) *consensus {
	c := &consensus{engine: e, parts: map[*block]*part{}, ways: stretches{length: wayMethods}, longWays: stretches{length: longWay}, idle: make(chan *inquiry, mostIdle)}
	var open []*block
	cut := 0
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			if b := &w.runs[i].blocks[k]; !b.rooted && !b.bridged && b.stack != 0 {
				p := &part{thread: w.runs[i].thread, stack: b.stack, conf: 1, shortest: math.MaxInt}
				if x, ok := left[b]; ok {
					p.stack, p.conf = x.stack, x.conf
				}
				c.parts[b] = p
				open = append(open, b)
				cut += int(b.n)
			}
		}
	}
	if len(open) == 0 || e.minConf > 1 {
		return c
	}
	c.fair = float64(cut) <= mostlyWhole*float64(w.samples)
	var sole *soleCallers // needs nothing of the witnesses
	c.each(2, func(i int) {
		switch {
		case i == 0:
			c.call(w)
		case c.minConf <= soleConfidence:
			sole = c.learnSole(w)
		}
	})
	if c.stopped() {
		return c
	}
	c.local(w)
	c.answerAll(open)
	if !c.byName {
		c.byMethod = true
		c.answerAll(slices.DeleteFunc(slices.Clone(open), func(b *block) bool { return b.rooted }))
	}
	if c.stopped() {
		return c
	}
	c.followSole(sole, open)
	c.asked = asked{} // only the parts are asked for from here on
	return c
}

// keep keeps what is left of answers that were taken back since.
func (c *consensus) keep(left map[*block]remnant) {
	for b, x := range left {
		if p := c.parts[b]; p != nil && c.t.Depth(x.stack) > c.t.Depth(p.stack) {
			p.stack, p.conf = x.stack, x.conf
		}
	}
}

// Sightings are most of the memory of a repair: of more than mostSightings, which tests change, one in portions is
// held at a time.
var mostSightings = 512 << 10

const portions = 16

// answerAll looks for more of what is known of open blocks, and of those of which it found frames that call that again.
func (c *consensus) answerAll(open []*block) {
	for n, few := 0, len(open)/roundShare; n < partRounds && len(open) > few; n++ {
		open = c.answerOnce(open)
	}
}

// answerOnce looks for more of what is known of open blocks, and returns those of which it found
// frames that call that.
func (c *consensus) answerOnce(open []*block) (longer []*block) {
	n := c.ask(open)
	if n <= mostSightings {
		c.see()
		return c.answer(open)
	}
	for _, some := range c.divide(open, max(mostSightings, n/portions)) {
		c.ask(some)
		c.see()
		if c.stopped() {
			break
		}
		longer = append(longer, c.answer(some)...)
	}
	return longer
}

// divide divides open blocks so that what is seen of the contexts of each part are about n sightings. Blocks with
// the same context are in the same part.
func (c *consensus) divide(open []*block, n int) (parts [][]*block) {
	type group struct {
		blocks []*block
		asked  map[int32]bool // contexts
	}
	groups := map[int32]*group{}
	var order []*group
	for _, b := range open {
		ids := c.of[c.parts[b].stack]
		first := ids[c.first()] // who shares a longer context shares this one
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

// answerAtOnce is how many blocks are answered before what was found goes into the tree.
const answerAtOnce = 1024

// mostIdle is how many inquiries are kept for later.
const mostIdle = 64

// answer looks for more of what is known of open blocks, and returns those of which it found
// frames that call that.
func (c *consensus) answer(open []*block) (longer []*block) {
	found := make([]finding, min(answerAtOnce, len(open)))
	for some := range slices.Chunk(open, answerAtOnce) {
		c.each(len(some), func(i int) {
			q := c.inquiry()
			q.extend(some[i], c.parts[some[i]], &found[i])
			q.end()
		})
		if c.stopped() {
			return nil
		}
		for i, b := range some {
			switch x := &found[i]; {
			case len(x.whole) > 0:
				b.ext = c.t.Add(x.whole...)
			case len(x.inner) > 0:
				c.parts[b].stack = c.t.Add(x.inner...)
				longer = append(longer, b)
			}
		}
	}
	return longer
}

// inquiry returns one that nobody uses.
func (c *consensus) inquiry() *inquiry {
	select {
	case q := <-c.idle:
		return q
	default:
		return &inquiry{consensus: c}
	}
}

// end leaves q to the next block.
func (q *inquiry) end() {
	select {
	case q.idle <- q:
	default:
	}
}

// call collects the witnesses.
func (c *consensus) call(w *world) {
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
	all, order := make([]witness, n), make([]turn, n)
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
			}
			x.between(q, b.before, b.after)
			all[k], order[k] = x, turn{x.time, int32(c.t.Depth(x.stack)), int32(k)}
			k++
		}
	})
	if c.stopped() {
		return
	}
	c.witnesses, c.times, c.stackOf = make([]witness, n), make([]int64, n), make([]int32, n)
	var stacks numbering
	for i, x := range mergeTurns(order) {
		c.witnesses[i] = all[x.at]
		c.times[i] = x.time
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

// findNodes finds what the stacks of witnesses go through, their innermost frames left out: these are no call sites. The
// tree holds as much that was tried only.
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

// A turn is when a witness is called: in order of time, and of those at one time the shallowest first.
type turn struct {
	time  int64
	depth int32
	at    int32 // its number
}

// mergeTurns sorts turns, which are long stretches that are sorted: those of runs, but for turns at one time.
func mergeTurns(all []turn) []turn {
	compare := func(a, b turn) int {
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
	into := make([]turn, len(all))
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
			if len(c.fs) > k && i >= c.first() { // the innermost frame is no call site
				h := uint64(0)
				for _, f := range c.fs[:k] {
					h = inward(h, c.site(f))
				}
				x[i] = int32(c.ids.add(h^uint64(i))) + 1
				c.ends[c.site(c.fs[k-1])] |= 1 << i
			}
		}
		c.of[s] = x
	}
	ends, at := c.endings()
	defer clear(at)
	c.spots = c.spots[:0]
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
// It returns their new places.
func (c *consensus) gather() (places []uint32) {
	next := make([]uint32, len(c.counts)+1)
	for _, x := range c.spots {
		next[x.context+1]++
	}
	for i := range c.counts {
		next[i+1] += next[i]
	}
	places = make([]uint32, len(c.spots))
	spots := make([]spot, len(c.spots))
	for i, x := range c.spots {
		places[i] = next[x.context]
		next[x.context]++
		spots[places[i]] = x
	}
	c.spots = spots
	return places
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

// findWhole finds the sightings of whole witnesses. Where most stacks are cut they are few, and who asks for them
// need not go through all.
func (c *consensus) findWhole() {
	some := c.wholes[:0]
	for id := range c.views {
		x := &c.views[id]
		from := len(some)
		for _, s := range x.all {
			if c.witnesses[s.witness].whole {
				some = append(some, s)
			}
		}
		if x.whole = some[from:]; len(x.whole) == len(x.all) {
			x.whole, some = x.all, some[:from]
		}
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
}

// endings returns those of the contexts that are asked, from 1 on, and for each stack the innermost in it; 0 if it has
// none.
func (c *consensus) endings() (ends []ending, at []uint32) {
	at = c.pad.list(c.t.Len())
	ends = append(c.lastEnds[:0], ending{})
	path := append(c.path[:0], waypoint{}) // from longSites further out on
	last := StackID(0)                     // where that path ends
	for _, s := range c.nodes {
		callers, f := c.t.Node(s)
		at[s] = at[callers]
		f = c.site(f)
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
			path = append(path, waypoint{s, inward(path[len(path)-1].hash, c.site(c.t.Frame(s)))})
		}
		last = s
		end := path[len(path)-1].hash
		for i, k := range contextSites {
			from := len(path) - 1 - k
			if from < 0 || c.ends[f]>>i&1 == 0 {
				continue
			}
			if id := c.ids.get((end - path[from].hash*siteWeight[i]) ^ uint64(i)); id >= 0 {
				x := ending{spot{int32(id), path[from].stack}, at[s]}
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

// inward is the hash of frames, h being that of all but the innermost one. That of the inner n frames alone is
// less by the hash of the others times mul to the power of n.
func inward(h uint64, f FrameID) uint64 { return h*mul + uint64(f) + 1 }

// siteWeight is mul to the power of each of contextSites.
var siteWeight = func() (w [len(contextSites)]uint64) {
	for i, n := range contextSites {
		w[i] = 1
		for range n {
			w[i] *= mul
		}
	}
	return w
}()

// local finds what many whole stacks of the thread begin with, before and after.
func (c *consensus) local(w *world) {
	type local struct {
		open  []*block
		times []int64   // of the whole stacks
		bases []StackID // what they begin with, and then so many from each on
	}
	of := map[int]*local{}
	var threads []*local
	for i := range w.runs {
		for k := range w.runs[i].blocks {
			if b := &w.runs[i].blocks[k]; c.parts[b] != nil {
				x := of[w.runs[i].thread]
				if x == nil {
					x = &local{}
					of[w.runs[i].thread] = x
					threads = append(threads, x)
				}
				x.open = append(x.open, b)
			}
		}
	}
	for i := range c.witnesses {
		if v := &c.witnesses[i]; v.whole && of[v.thread] != nil {
			x := of[v.thread]
			x.times, x.bases = append(x.times, v.time), append(x.bases, c.t.Parent(v.stack))
		}
	}
	c.each(len(threads), func(i int) {
		x := threads[i]
		few := len(x.open)*2*localStacks < len(x.bases)
		if !few {
			for n := 1; n < 2*localStacks; n *= 2 { // what 2n begin with is what the first and the last n of them do
				for k := 0; k+n < len(x.bases); k++ {
					x.bases[k] = c.t.shared(x.bases[k], x.bases[k+n])
				}
			}
		}
		for _, b := range x.open {
			at, _ := slices.BinarySearch(x.times, b.time)
			if at < localStacks || at+localStacks > len(x.times) {
				continue
			}
			p := c.parts[b]
			p.base, p.baseConf = x.bases[at-localStacks], unanimous(2*localStacks)
			if few {
				for _, s := range x.bases[at-localStacks : at+localStacks] {
					p.base = c.t.shared(p.base, s)
				}
			}
		}
	})
}

// part returns what is known of b, of which other evidence says that it begins with base.
func (c *consensus) part(known *bases, b *block, base StackID) part {
	p := *c.parts[b]
	if p.conf < c.minConf {
		p.stack = b.stack
	}
	if c.t.Depth(p.base) <= c.t.Depth(base) || p.baseConf < c.minConf {
		p.base, p.baseConf = base, baseConfidence
	}
	p.base = c.within(p.base, b.between)
	// together the parts are no longer than the shortest way
	above := c.t.Depth(p.stack) - c.t.Depth(b.stack)
	if over := c.t.Depth(p.base) + above - p.shortest; over > above {
		p.stack, p.base = b.stack, c.t.up(p.base, p.shortest)
	} else if over > 0 {
		c.fs = c.t.AppendFrames(c.fs[:0], p.stack)
		p.stack = c.t.Add(c.fs[over:]...)
	}
	p.base = known.trim(p.base, p.stack)
	return p
}
