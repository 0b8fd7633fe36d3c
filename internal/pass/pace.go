package pass

import (
	"math"

	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// A pace tells how much work the stacks of a process were from how long the recorder took to walk them. How long it
// takes for the same work changes from one round of the recorder to the next, since caches are cold or
// others use the processor, and less from one millisecond to the next: stacks that were recorded whole
// show it.
type pace struct {
	logs   *walkLogs
	unit   float64   // logarithm of ns that a unit of work takes
	spread float64   // the standard deviation of what is told, as a logarithm
	width  int64     // ns that a slot of level holds for
	level  []float32 // by slot: by how much it took longer than usual, as a logarithm
}

// The numbers are set by hand, with ten recordings of real programs whose stacks were really cut and were
// seen whole by perf.
const (
	// beforeWalk is how long a walk takes for no frames, ns.
	beforeWalk = 1500
	// deepStack is how many frames a stack needs so that its work tells how long it took. Of shallower ones
	// what they take otherwise does.
	deepStack = 20
	fewWalks  = 20 // of deep stacks that were recorded whole
	// A shallow stack that was seen fewRepeats times tells how long it took, half as well as a deep one; of
	// a deep one its work counts as much as usualRepeats times. Of no more than mostRepeated stacks what
	// they took is kept.
	fewRepeats   = 6
	usualRepeats = 8
	shallowWorth = 0.5
	mostRepeated = 1 << 14
	// leastLonger is the part by which the cut stacks must have taken longer than what was kept of them, in
	// the middle. Other recorders, as that of Mono, end a walk where they cut.
	leastLonger = 0.03
	// A level is between these.
	leastLevel, mostLevel = -1, 1.5
	mostSlots             = 1 << 17
	slotWidth             = 1_000_000 // ns
)

// A level is made of those of the slot itself, and of what is around it: each weighs less the further off it is, by
// e for so many slots. Of each one more that is usual is added.
const ownLevel = 0.4

var levels = [...]struct{ slots, worth float64 }{{1.5, 0.25}, {6, 0.2}, {30, 0.15}}

// walked calls f for each row of samples of one stack of t whose walks are known, in order of time, of the middle n of
// its samples. All are valid until it returns.
func walked(t *profile.Thread, n int, f func(stack profile.StackID, cut bool, row []walk)) {
	from := max(0, t.Walks.Len()-n) / 2
	c, walks := t.Samples.Cursor(), t.Walks.From(from)
	c.Seek(from)
	var row []walk
	var s, first profile.Sample
	for n = min(n, t.Walks.Len()); n > 0 && c.Read(&s); n-- {
		w := walks.Next()
		if w == 0 {
			continue
		}
		if len(row) == mostInRow || len(row) > 0 && (s.Stack != first.Stack || s.Cut != first.Cut) {
			f(first.Stack, first.Cut != profile.Whole, row)
			row = row[:0]
		}
		if len(row) == 0 {
			first = s
		}
		row = append(row, walk{s.Time, w})
	}
	if len(row) > 0 {
		f(first.Stack, first.Cut != profile.Whole, row)
	}
}

const (
	mostInRow = 1024 // bounds the memory for a row
	// enoughWalks are as many as tell what is usual.
	enoughWalks = 1 << 15
)

// A walk is that of a sample.
type walk struct {
	time int64 // ns
	took profile.Walk
}

// walkLogs are logarithms of the ns that walks took, by Walk: of all, and of what goes beyond beforeWalk.
type walkLogs struct{ all, frames [256]float64 }

// logsOfWalks works them out.
func logsOfWalks() *walkLogs {
	x := &walkLogs{}
	for i := 1; i < len(x.all); i++ {
		d := float64(profile.Walk(i).Duration())
		x.all[i], x.frames[i] = math.Log(d), math.Log(max(d-beforeWalk, beforeWalk/8))
	}
	return x
}

// A histogram counts logarithms.
type histogram struct {
	n   int
	bin [2048]int
}

const binsPerUnit = 128

func (h *histogram) add(x float64) {
	h.bin[max(0, min(int((x+6)*binsPerUnit), len(h.bin)-1))]++
	h.n++
}

// median returns the middle one.
func (h *histogram) median() float64 {
	i, n := 0, 0
	for ; i < len(h.bin)-1 && 2*(n+h.bin[i]) < h.n; i++ {
		n += h.bin[i]
	}
	return (float64(i)+0.5)/binsPerUnit - 6
}

// newPace learns the pace of the recorder from the threads of one process; nil if nothing tells it.
func newPace(tab stackTable, threads []*profile.Thread) *pace {
	x := pacing{logs: logsOfWalks(), works: workCache{tab: tab}, threads: threads}
	for _, t := range threads {
		x.last, x.walks = max(x.last, t.Last), x.walks+t.Walks.Len()
	}
	usual, units := x.usual()
	if units.n < fewWalks {
		return nil
	}
	p := &pace{logs: x.logs, unit: units.median(), width: max(slotWidth, x.last/mostSlots+1)}
	p.learnLevel(x.levels(p, usual))
	off, longer := x.residues(p)
	if longer.n == 0 || longer.median() < leastLonger {
		return nil
	}
	p.spread = 1.48 * off.median()
	return p
}

// A pacing learns a pace from the walks of some threads.
type pacing struct {
	logs    *walkLogs
	works   workCache
	threads []*profile.Thread
	last    int64 // ns
	walks   int
}

// some is how many walks of t are as many as tell what is usual.
func (x *pacing) some(t *profile.Thread) int { return t.Walks.Len() / (1 + x.walks/enoughWalks) }

// usual finds how long walks of whole stacks take, by stack, and how long a unit of work takes. Of deep
// stacks the former goes beyond beforeWalk.
func (x *pacing) usual() (of map[repeat]average, units *histogram) {
	of, units = map[repeat]average{}, &histogram{}
	for i, t := range x.threads {
		walked(t, x.some(t), func(stack profile.StackID, cut bool, row []walk) {
			if cut {
				return
			}
			k := repeat{i + 1, stack}
			a, known := of[k]
			if x.works.tab.Depth(stack) < deepStack {
				for _, w := range row {
					a.sum += x.logs.all[w.took]
				}
			} else {
				work := x.works.of(stack)
				for _, w := range row {
					took := x.logs.frames[w.took]
					units.add(took - work)
					a.sum += took
				}
			}
			if a.n += len(row); known || len(of) < mostRepeated {
				of[k] = a
			}
		})
	}
	return of, units
}

// levels adds up, by slot, by how much longer than usual walks of whole stacks took, and what that is worth.
func (x *pacing) levels(p *pace, usual map[repeat]average) (sums, worth []float32) {
	sums = make([]float32, x.last/p.width+1)
	worth = make([]float32, len(sums))
	for i, t := range x.threads {
		walked(t, t.Walks.Len(), func(stack profile.StackID, cut bool, row []walk) {
			if cut {
				return
			}
			a := usual[repeat{i + 1, stack}]
			took, weight := &x.logs.frames, 1.0
			if x.works.tab.Depth(stack) < deepStack {
				took, weight = &x.logs.all, shallowWorth
				if a.n < fewRepeats {
					return
				}
			} else {
				a.sum, a.n = a.sum+usualRepeats*(p.unit+x.works.of(stack)), a.n+usualRepeats
			}
			mean := a.sum / float64(a.n)
			for _, w := range row {
				slot := min(max(0, w.time)/p.width, int64(len(sums)-1))
				sums[slot] += float32(weight * max(leastLevel, min(took[w.took]-mean, mostLevel)))
				worth[slot] += float32(weight)
			}
		})
	}
	return sums, worth
}

// residues are by how much what walks tell is off the work that whole stacks are, and by how much it is
// more than what was kept of cut ones.
func (x *pacing) residues(p *pace) (off, longer *histogram) {
	off, longer = &histogram{}, &histogram{}
	for _, t := range x.threads {
		walked(t, x.some(t), func(stack profile.StackID, cut bool, row []walk) {
			if x.works.tab.Depth(stack) < deepStack {
				return
			}
			work := x.works.of(stack)
			for _, w := range row {
				d := p.work(w.time, w.took) - work
				if cut {
					longer.add(d)
				} else {
					off.add(math.Abs(d))
				}
			}
		})
	}
	return off, longer
}

// pacesOf learns the paces of some processes.
func pacesOf(tab *profile.Table, threads []*profile.Thread, of map[*profile.Process]bool) map[*profile.Process]*pace {
	by := map[*profile.Process][]*profile.Thread{}
	for _, t := range threads {
		if of[t.Process] && t.Walks.Len() > 0 {
			by[t.Process] = append(by[t.Process], t)
		}
	}
	paces := map[*profile.Process]*pace{}
	for p, own := range by {
		paces[p] = newPace(tab, own)
	}
	return paces
}

// repeat is a stack of a thread.
type repeat struct {
	thread int // from 1
	stack  profile.StackID
}

type average struct {
	sum float64
	n   int
}

// learnLevel finds the level of each slot from what its samples are together, and how much they are worth.
func (p *pace) learnLevel(sums, worth []float32) {
	p.level = make([]float32, len(sums))
	for i, w := range worth {
		p.level[i] = ownLevel * sums[i] / (w + 1)
	}
	n, d := make([]float32, len(sums)), make([]float32, len(sums))
	for _, l := range levels {
		fades := float32(math.Exp(-1 / l.slots))
		var sum, w float32
		for i := range sums {
			sum, w = sum*fades+sums[i], w*fades+worth[i]
			n[i], d[i] = sum, w
		}
		sum, w = 0, 0
		for i := len(sums) - 1; i >= 0; i-- {
			p.level[i] += float32(l.worth) * (n[i] + sum) / (d[i] + w + 1)
			sum, w = (sum+sums[i])*fades, (w+worth[i])*fades
		}
	}
}

// work returns the logarithm of how much work a walk at a time was.
func (p *pace) work(time int64, w profile.Walk) float64 {
	slot := min(max(0, time)/p.width, int64(len(p.level)-1))
	return p.logs.frames[w] - p.unit - float64(p.level[slot])
}

// A stackTable tells what stacks are made of: a [profile.Table].
type stackTable interface {
	Depth(s profile.StackID) int
	AppendFrames(dst []profile.FrameID, s profile.StackID) []profile.FrameID
	Method(f profile.FrameID) profile.MethodID
}

// A workCache tells of stacks how much work they are, and remembers some.
type workCache struct {
	tab   stackTable
	known [1 << 12]struct {
		stack profile.StackID
		work  float64
	}
	fs    []profile.FrameID
	meter stackfix.Meter
}

// of returns the logarithm of how much work it is to walk s.
func (c *workCache) of(s profile.StackID) float64 {
	x := &c.known[uint32(s)%uint32(len(c.known))]
	if x.stack == s && s != 0 {
		return x.work
	}
	c.fs = c.tab.AppendFrames(c.fs[:0], s)
	c.meter.Begin()
	for _, f := range c.fs {
		c.meter.See(stackfix.MethodID(c.tab.Method(f)))
	}
	x.stack, x.work = s, c.meter.Work()
	return x.work
}
