package stackfix

import (
	"iter"
	"math"
	"slices"
)

// A world is a set of runs to be solved: the recording itself, or the recording
// cut once more, to learn from.
//
// It grows with the stacks and the cuts, not with the samples: a whole stack is a
// block only where it is the nearest before or after one that is not rooted. Where it
// comes first is noted. What the others tell is counted when the world is made.
type world struct {
	runs   []run
	judged bool // truth is known

	frames          int        // of the stacks that it was loaded with, or more
	samples, blocks int        // of the recording, those that are not kept included
	stretches       []position // of the recording: where each stretch of blocks begins
	// of the given blocks:
	pairs [9][9]float64      // two in a row, as in retention
	known map[int][]howOften // by thread

	dwellings *dwellings // of the threads, once they are asked for
}

// howOften is the number of blocks of one stack.
type howOften struct {
	stack   StackID
	n       int32
	sampled bool // not of other events only
}

// A run is a stretch of one thread without a break, as blocks of equal samples.
type run struct {
	thread int
	blocks []block
	firsts []first
	root   root // of the blocks that are given
	// how many of the given blocks are known, and how many of these begin with another method than
	// the one before
	steps, changes int32
	open           []int32 // blocks of which the whole stack is not known yet
}

// A first is where a stack comes first in a world, if no block is kept there.
type first struct {
	at    int32 // sample
	stack StackID
	time  int64 // ns
	neighbours
}

// neighbours are the nearest whole stacks of a run before and after one, as they were recorded; 0:
// there is none.
type neighbours struct{ before, after StackID }

// all yields the blocks of a run, and in their places blocks made of its firsts. Each is
// valid until the next one.
func (r *run) all() iter.Seq[*block] {
	return func(yield func(*block) bool) {
		firsts := r.firsts
		until := func(at int32) bool {
			for len(firsts) > 0 && firsts[0].at < at {
				s := firsts[0].stack
				if !yield(&block{first: firsts[0].at, time: firsts[0].time, stack: s, ext: s, conf: 1, rooted: true, given: true, neighbours: firsts[0].neighbours}) {
					return false
				}
				firsts = firsts[1:]
			}
			return true
		}
		for i := range r.blocks {
			if !until(r.blocks[i].first) || !yield(&r.blocks[i]) {
				return
			}
		}
		until(math.MaxInt32)
	}
}

// cutStacks yields the stacks of cut blocks, as they were recorded, or of those of samples.
func (w *world) cutStacks(sampled bool) iter.Seq[StackID] {
	return func(yield func(StackID) bool) {
		for i := range w.runs {
			for k := range w.runs[i].blocks {
				b := &w.runs[i].blocks[k]
				if !b.given && !b.bridged && !(sampled && b.evidence) && !yield(b.stack) {
					return
				}
			}
		}
	}
}

// wholeStacks yields the stacks of samples that were recorded whole.
func (w *world) wholeStacks() iter.Seq[StackID] {
	return func(yield func(StackID) bool) {
		for _, l := range w.known {
			for _, k := range l {
				if k.sampled && !yield(k.stack) {
					return
				}
			}
		}
	}
}

// A block is a row of samples of one stack.
type block struct {
	first, n int32   // samples
	time     int64   // of the first, ns
	orig     StackID // as recorded
	stack    StackID // of it: suspects dropped
	ext      StackID // what is known of the stack: stack, or stack with frames put back
	truth    StackID // in a judged world: the stack before it was cut
	conf     float32
	guess    StackID // prefix of ext that was found last, but is not sure enough; 0: ext was taken for all
	guessed  float32 // how sure it is; 0: none was found
	guessHow How     // what speaks for it
	// what else is known of it: see opinion
	guessForeign                      float32
	guessMargin, guessRec, guessSides level
	neighbours                                // of the recording
	between                           StackID // what the recorded whole stacks around it share: see enclose
	outermost                         StackID // the frame of the method that they begin with; 0: with different ones
	// the last attempt: with which neighbours
	triedExt, triedF, triedB StackID
	cut                      Cut
	how                      How
	dropped                  uint8
	rooted                   bool    // nothing is missing in ext
	whole                    bool    // truth is rooted
	bridged                  bool    // repaired before, or too deep: left as it is, and no evidence
	bad                      bool    // in a judged world: ext is wrong
	hearsay                  bool    // of a stack that was extended, and only repairs overlap it
	confirmable              bool    // guess may be confirmed by a second opinion
	seconded                 bool    // guess is what a second opinion says too
	given                    bool    // rooted from the start, and counted in the world
	follows                  bool    // the block before in the run ended where it begins
	evidence                 bool    // of no sample
	effort, spread           float32 // of the samples together, and Thread.Spread; see measure
	looks                    int32   // samples whose effort is known
}

// guesses tells whether an answer was found that puts frames back, but is not sure enough.
func (b *block) guesses() bool { return b.guessed > 0 && (b.guess != 0 || b.ext != b.stack) }

// open tells whether b is cut and has no answer.
func (b *block) open() bool { return !b.rooted && !b.bridged && b.stack != 0 }

// takeBack takes back the answer of b: it is as it was recorded, and nothing is left of what spoke for it.
func (b *block) takeBack() {
	b.guess, b.guessed, b.seconded, b.hearsay = 0, 0, false, false
	b.rooted, b.ext, b.triedExt = false, b.stack, b.stack
}

// A position is where a block begins in the samples of the process.
type position struct {
	which  int   // number of the thread in engine.which
	run    int   // number of the run in the world
	sample int32 // of the thread
	begins bool  // the run begins here
}

// scan goes through the samples of the process from a position on, and calls begin for each
// run that begins there and add for each block, until that returns false or all is stopped. Blocks are raw:
// fill completes them.
func (e *engine) scan(at position, begin func(thread int), add func(b *block) bool) {
	for ; at.which < len(e.which); at = (position{which: at.which + 1, begins: true}) {
		ti := e.which[at.which]
		t := &e.threads[ti]
		breaks := t.Breaks
		var b block
		j := at.sample
		for s := range t.from(int(j)) {
			if e.stoppedAt(int(j)) {
				return
			}
			isFirst := j == at.sample
			brk := isFirst && at.begins
			for len(breaks) > 0 && breaks[0] <= s.Time {
				breaks = breaks[1:]
				brk = brk || !isFirst // before it is behind the runs that came before
			}
			if !brk && !isFirst && b.orig == s.Stack && b.cut == s.Cut && b.dropped == s.Suspect {
				b.n++
				b.evidence = b.evidence && s.Evidence
				b.look(&s)
				j++
				continue
			}
			if !isFirst && !add(&b) {
				return
			}
			if brk {
				begin(ti)
			}
			b = block{first: j, n: 1, time: s.Time, orig: s.Stack, cut: s.Cut, dropped: s.Suspect, conf: 1, evidence: s.Evidence, spread: t.Spread}
			b.look(&s)
			j++
		}
		if j > at.sample && !add(&b) {
			return
		}
	}
}

// Each block costs as much time as its stack has frames, and in a recursion more. Recorders keep up
// to some hundred frames.
const (
	mostRecorded = 1024 // of a cut stack that is repaired
	mostBeside   = 2048 // of a stack that is looked at beside it
)

// fill completes a block that comes from the samples.
func (e *engine) fill(b *block) {
	s := b.orig
	if b.cut != Whole && (e.holdsBridge(s) || e.t.Depth(s) > mostRecorded) {
		b.bridged, s = true, 0
	}
	b.stack, b.ext = s, s
	b.rooted = b.cut == Whole || s == 0
	b.given = b.rooted && b.dropped == 0
}

// open tells whether a block is cut.
func (w *world) open() bool {
	for i := range w.runs {
		if slices.ContainsFunc(w.runs[i].blocks, func(b block) bool { return !b.rooted }) {
			return true
		}
	}
	return false
}

// cut tells whether samples are cut, or stacks of other events.
func (w *world) cut(evidence bool) bool {
	return slices.ContainsFunc(w.runs, func(r run) bool { return r.cut(evidence) })
}

// cut is that of one run.
func (r *run) cut(evidence bool) bool {
	for k := range r.blocks {
		if b := &r.blocks[k]; b.cut != Whole && b.evidence == evidence {
			return true
		}
	}
	return false
}

// stretch is how many blocks in a row a trial takes.
const stretch = 256

// noLimit is how many rows load takes where all of them are wanted.
const noLimit = math.MaxInt

// load makes the world of the recording, and returns false if there are more than most rows to repair.
func (e *engine) load(threads []Thread, which []int, most int) (*world, bool) {
	w := &world{}
	count := e.newBurden()
	e.threads, e.which = threads, which
	m := e.build(w)
	e.short.begin()
	at := position{which: -1}
	var last StackID // the last whole one of the run
	from := int32(0) // its first sample
	e.scan(position{begins: true}, func(thread int) {
		for at.which < 0 || e.which[at.which] != thread {
			at.which++
		}
		m.begin(thread)
		last, from = 0, 0
	}, func(b *block) bool {
		if w.blocks%stretch == 0 {
			at.run, at.sample, at.begins = len(w.runs)-1, b.first, !m.any
			w.stretches = append(w.stretches, at)
		}
		e.fill(b)
		e.short.see(b)
		b.before = last
		if b.cut == Whole && b.dropped == 0 && b.orig != 0 {
			if last = b.orig; e.t.Depth(last) > mostBeside {
				last = 0
			}
			m.neighbour(from, last)
			from = b.first
		}
		m.add(b)
		count.add(b.stack, !b.rooted)
		return count.rows() <= most
	})
	if count.rows() > most || e.stopped() {
		return nil, false
	}
	m.end()
	if w.frames = e.t.Len(); count.deep {
		w.frames = count.frames
	}
	e.short.learn()
	e.dropSuspects(w)
	return w, true
}

// A builder makes a world of all blocks of a recording, which it takes one by one.
type builder struct {
	*engine
	w      *world
	ids    numbering // of stacks of given blocks
	of     []byStack // by these
	stacks []StackID // of the thread
	thread int
	prev   block // the block before in the run
	any    bool  // there is one
	kept   bool  // it is in the run
	held   block // the newest known block, if it is not in the run
	holds  bool
	after  bool     // no known block came since one that is not rooted
	outer  MethodID // that the newest known block begins with
}

// byStack is what a builder knows of a stack.
type byStack struct {
	n       int32    // given blocks of the thread
	sampled bool     // one of them is of samples
	run     int32    // 1 + the last run that has a given block of it
	outer   MethodID // that it begins with
}

func (e *engine) build(w *world) *builder {
	w.known = map[int][]howOften{}
	return &builder{engine: e, w: w}
}

// begin begins a run.
func (m *builder) begin(thread int) {
	if m.thread != thread {
		m.end()
	}
	m.thread, m.any, m.kept, m.holds, m.after = thread, false, false, false, false
	m.w.runs = append(m.w.runs, run{thread: thread})
}

// end ends a thread.
func (m *builder) end() {
	known := make([]howOften, len(m.stacks))
	for i, s := range m.stacks {
		x := &m.of[m.ids.get(uint64(s))]
		known[i] = howOften{s, x.n, x.sampled}
		x.n, x.sampled = 0, false
	}
	m.stacks = m.stacks[:0]
	m.w.known[m.thread] = known
}

// add adds the next block of the run.
func (m *builder) add(b *block) {
	m.w.samples += int(b.n)
	m.w.blocks++
	r := &m.w.runs[len(m.w.runs)-1]
	if !b.rooted {
		if m.holds {
			r.insert(m.held)
		}
		if m.any && !m.kept && !(m.holds && m.held.first == m.prev.first) {
			r.insert(m.prev)
		}
		m.kept, m.holds, m.after = m.any, false, true
	}
	b.follows = m.kept
	keep := !b.given || b.cut != Whole || m.any && !m.prev.rooted
	if b.known() {
		keep = keep || m.after
		m.held, m.holds, m.after = *b, !keep, false
	}
	isFirst := b.given && m.count(r, b)
	if keep {
		r.blocks = append(r.blocks, *b)
	} else if isFirst {
		r.firsts = append(r.firsts, first{b.first, b.ext, b.time, b.neighbours})
	}
	m.prev, m.kept, m.any = *b, keep, true
}

// neighbour notes that s is the nearest whole stack after the blocks of the run from sample number from on.
func (m *builder) neighbour(from int32, s StackID) {
	r := &m.w.runs[len(m.w.runs)-1]
	for k := len(r.blocks) - 1; k >= 0 && r.blocks[k].first >= from; k-- {
		r.blocks[k].after = s
	}
	for k := len(r.firsts) - 1; k >= 0 && r.firsts[k].at >= from; k-- {
		r.firsts[k].after = s
	}
	m.held.after, m.prev.after = s, s // they may be kept later
}

// insert puts a block that was not kept into its place near the end.
func (r *run) insert(b block) {
	k := len(r.blocks)
	for k > 0 && r.blocks[k-1].first > b.first {
		k--
	}
	r.blocks = slices.Insert(r.blocks, k, b)
	for k = len(r.firsts) - 1; k >= 0 && r.firsts[k].at >= b.first; k-- {
		if r.firsts[k].at == b.first {
			r.firsts = slices.Delete(r.firsts, k, k+1)
		}
	}
}

// count counts a given block and tells whether it is the first of its stack.
func (m *builder) count(r *run, b *block) bool {
	if m.any && m.prev.given {
		d := m.t.Depth(m.t.shared(m.prev.ext, b.ext))
		m.w.pairs[bucket(m.t.Depth(m.prev.ext)-d)][bucket(m.t.Depth(b.ext)-d)]++
	}
	i := m.ids.add(uint64(b.ext))
	if i == len(m.of) {
		m.of = append(m.of, byStack{})
	}
	x := &m.of[i]
	if x.n++; x.n == 1 {
		m.stacks = append(m.stacks, b.ext)
		if b.ext != 0 {
			x.outer = m.method(m.t.Frame(m.t.up(b.ext, 1)))
		}
	}
	x.sampled = x.sampled || !b.evidence
	first := x.run == 0
	if b.known() && x.run != int32(len(m.w.runs)) {
		r.root.share(m.t, b.ext)
	}
	x.run = int32(len(m.w.runs))
	if b.known() {
		if r.steps > 0 && x.outer != m.outer {
			r.changes++
		}
		r.steps++
		m.outer = x.outer
	}
	return first
}
