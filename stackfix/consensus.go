package stackfix

import (
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
	// localStacks is how many whole stacks of the thread, on either side, tell what those between
	// them begin with: a power of two.
	localStacks = 64
	// mostInlined is how many frames of one stack another one may lack in a row, because
	// the same code was compiled again and calls were inlined.
	mostInlined = 2
	// turnVotes is the share of the votes that may show such frames again, behind those that lack them. Of 24
	// programs that were made to be hard 0.9 instead of 1.0 in a hundred stacks are wrong, ten real ones are as before.
	turnVotes = 1.0 / 8
	// A stretch of wayMethods is called by one method, or two ways lead into it: the part of the
	// stacks that know another one is more than otherWays.
	wayMethods = 6
	otherWays  = 0.05
	// Where code repeats itself with some things changed, as a chain of middleware does, several
	// ways lead into any six methods of it. What overlaps of the stack with its neighbours show
	// too, with a confidence of sureOverlap, needs a longer stretch that is called by one method
	// only. Of ten programs one of 4,400 bridged stacks more was wrong, and 1.1 in a hundred of all
	// missing frames came back by it; of four runs of a service with many middlewares, 17 to 47 in
	// a hundred. Where two ways lead in and one is nowhere whole, it may lead too far: of a message
	// bus cut at 30 frames 13 of 1,100 stacks.
	longWay     = 24
	sureOverlap = 0.97
	// partRounds is how often parts are looked for: a longer stack has another context.
	partRounds = 4
	// A round goes through all stacks: it is not worth it for fewer than one in roundShare of the open ones.
	roundShare = 20
	mostFrames = 1000 // that are put above a stack at once
	// fewMethods are in the recorded frames of a recursion that calls nothing else. Of the parts that
	// repeat such frames too far 28 of 36 were wrong in 39 cuts on purpose, none of 6 where stacks were
	// really cut; of all others 26 of 21,400.
	fewMethods = 10
)

// A part is what is known of a stack whose root is not.
type part struct {
	thread   int     // of it
	base     StackID // its root frames
	local    StackID // those that many whole stacks of its thread begin with
	baseConf float64
	stack    StackID // its recorded frames, below those that are known to call them
	conf     float64 // of these
	shortest int     // way that is known from the root to the recorded frames
	hearing          // of an answer that is not sure enough
}

// newPart is what is known of b of a thread before others are asked, given what is left of answers that were taken back.
func newPart(b *block, thread int, left map[*block]remnant) *part {
	p := &part{thread: thread, stack: b.stack, conf: 1, shortest: math.MaxInt}
	if x, ok := left[b]; ok {
		p.stack, p.conf = x.stack, x.conf
	}
	return p
}

// begins says that p begins with what many whole stacks of its thread do.
func (p *part) begins(local StackID) {
	p.local, p.base, p.baseConf = local, local, unanimous(2*localStacks)
}

// consensus finds parts by what other stacks of the process show. What is asked for one block
// changes nothing that another one asks for: see inquiry.
type consensus struct {
	*engine
	w         *world
	parts     map[*block]*part // of the open blocks that are asked for
	voted     []voted          // those that were answered by votes
	tried     bool             // trust is known
	trust     float64          // how often that is right; see votetrial.go
	listened  bool             // what follows is known, but for ways
	witnesses []witness        // in order of time
	times     []int64          // of these
	stackOf   []int32          // of these: the number of its stack
	isWhole   []bool           // of these
	stacks    []called         // the different ones, in the order of their first witnesses
	nodes     []StackID        // that these go through, callers before what they call
	fair      bool             // most samples are whole
	sole      *soleCallers     // nil: they are not believed
	recorded  bool             // who was not recorded whole is no witness, and all who were vote: see review
	ways      stretches        // of wayMethods
	longWays  stretches        // of longWay

	by spelling // of contexts
	asked

	// scratch
	fs   []FrameID
	way  []StackID
	path []waypoint
	idle chan *inquiry
}

// newConsensus returns one that has asked nobody yet.
func (e *engine) newConsensus(w *world) *consensus {
	return &consensus{engine: e, w: w, ways: stretches{length: wayMethods}, longWays: stretches{length: longWay}, idle: make(chan *inquiry, mostIdle)}
}

// find finds what is known of the stacks of samples that have no answer, or of those of other
// events, given what is left of answers that were taken back.
func (c *consensus) find(evidence bool, left map[*block]remnant) {
	c.parts, c.voted = map[*block]*part{}, nil
	var open []*block
	for i := range c.w.runs {
		for k := range c.w.runs[i].blocks {
			if b := &c.w.runs[i].blocks[k]; b.open() && b.evidence == evidence {
				c.parts[b] = newPart(b, c.w.runs[i].thread, left)
				open = append(open, b)
			}
		}
	}
	if len(open) == 0 || c.minConf > 1 {
		return
	}
	c.listen()
	if c.stopped() {
		return
	}
	c.local()
	c.answerOpen(open)
	c.answerOpen(c.doubtVotes(open, left))
	if c.stopped() {
		return
	}
	c.followSole(open)
	c.doubtBases(open)
	c.asked = asked{} // only the parts are asked for from here on
}

// answerOpen looks for what is known of open blocks: first by call sites, then by methods.
func (c *consensus) answerOpen(open []*block) {
	c.by = bySites
	c.answerAll(open)
	if !c.byName {
		c.by = byMethods
		c.answerAll(slices.DeleteFunc(slices.Clone(open), func(b *block) bool { return b.rooted }))
	}
}

// listen finds out who has a say, once: answers by votes are not heard.
func (c *consensus) listen() {
	if c.listened {
		return
	}
	c.listened = true
	cut := 0
	for i := range c.w.runs {
		for k := range c.w.runs[i].blocks {
			if b := &c.w.runs[i].blocks[k]; b.open() {
				cut += int(b.n)
			}
		}
	}
	c.fair = float64(cut) <= mostlyWhole*float64(c.w.samples)
	c.each(2, func(i int) {
		switch {
		case i == 0:
			c.call()
		case c.minConf <= soleConfidence: // needs nothing of the witnesses
			c.sole = c.learnSole(c.w)
		}
	})
}

// keep keeps what is left of answers that were taken back since.
func (c *consensus) keep(left map[*block]remnant) {
	for b, x := range left {
		if p := c.parts[b]; p != nil && c.t.Depth(x.stack) > c.t.Depth(p.stack) {
			p.stack, p.conf = x.stack, x.conf
		}
	}
}

// answerAll looks for more of what is known of open blocks, and of those of which it found frames
// that call that again.
func (c *consensus) answerAll(open []*block) {
	for n, few := 0, len(open)/roundShare; n < partRounds && len(open) > few; n++ {
		open = c.answerOnce(open)
	}
}

// answerOnce looks for more of what is known of open blocks, and returns those of which it found
// frames that call that.
func (c *consensus) answerOnce(open []*block) (longer []*block) {
	c.inPortions(open, func(some []*block) { longer = append(longer, c.answer(some)...) })
	return longer
}

// inPortions asks for what is known of open blocks, of all or of some at a time, and calls f for
// these when it is seen.
func (c *consensus) inPortions(open []*block, f func(some []*block)) {
	n := c.ask(open)
	if n <= mostSightings {
		c.see()
		f(open)
		return
	}
	for _, some := range c.divide(open, max(mostSightings, n/portions)) {
		c.ask(some)
		c.see()
		if c.stopped() {
			return
		}
		f(some)
	}
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
		c.extend(some, found)
		if c.stopped() {
			return nil
		}
		for i, b := range some {
			switch x := &found[i]; {
			case len(x.whole) > 0:
				if x.voted {
					c.voted = append(c.voted, voted{b, b.ext, b.conf})
				}
				b.ext = c.t.Add(x.whole...)
				b.rooted, b.how, b.conf = true, x.how, x.conf
			case len(x.inner) > 0:
				c.parts[b].stack = c.t.Add(x.inner...)
				longer = append(longer, b)
			}
		}
	}
	return longer
}

// extend finds what is known of some blocks, side by side.
func (c *consensus) extend(some []*block, found []finding) {
	c.each(len(some), func(i int) {
		q := c.inquiry()
		q.extend(some[i], c.parts[some[i]], &found[i])
		q.end()
	})
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

// local finds what many whole stacks of the thread begin with, before and after.
func (c *consensus) local() {
	type local struct {
		open  []*block
		times []int64   // of the whole stacks
		bases []StackID // what they begin with, and then so many from each on
	}
	of := map[int]*local{}
	var threads []*local
	for i := range c.w.runs {
		r := &c.w.runs[i]
		for k := range r.blocks {
			if b := &r.blocks[k]; c.parts[b] != nil {
				x := of[r.thread]
				if x == nil {
					x = &local{}
					of[r.thread] = x
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
			base := x.bases[at-localStacks]
			if few {
				for _, s := range x.bases[at-localStacks : at+localStacks] {
					base = c.t.shared(base, s)
				}
			}
			c.parts[b].begins(base)
		}
	})
}

// methodsIn returns how many different methods frames are of, and most if they are more.
func (e *engine) methodsIn(fs []FrameID, most int) int {
	ms := make([]MethodID, 0, most)
	for _, f := range fs {
		if m := e.method(f); len(ms) < most && !slices.Contains(ms, m) {
			ms = append(ms, m)
		}
	}
	return len(ms)
}

// part returns what is known of b of r, of which other evidence says that it begins with base.
func (c *consensus) part(known *bases, r *run, b *block, base StackID) part {
	p := *c.parts[b]
	if p.conf < c.minConf {
		p.stack = b.stack
	}
	if c.beginsOtherwise(c.w, r, b, p.base) {
		p.base, p.stack = 0, b.stack // who votes came another way
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
