package stackfix

import (
	"math"
	"slices"
)

// model holds how often frames call each other, and methods.
type model struct {
	frameCalls, methodCalls callCounts
	methods                 []methodModel
	total                   int
}

// Counts are small where it matters, and what was never seen may still be: to each count comes a part
// of an observation, so that no probability is 0 or 1.
const (
	// unseenHalf of yes and of no is the rule of Krichevsky and Trofimov for what happens or does not:
	// the code length is never much more than that of the best fixed probability.
	unseenHalf = 0.5
	// unseenCall is less: a method has few callers, and one that was never seen is rarely one of them.
	unseenCall = 0.1
	// unseenPair is for each of the 81 pairs of retention, unseenPairs for all of them: together they
	// weigh as much as four samples.
	unseenPair  = 0.05
	unseenPairs = 4
)

// shareOf is the probability of what happened n times in all.
func shareOf(n, all float64) float64 { return (n + unseenHalf) / (all + 2*unseenHalf) }

// callerSurprise is -log2 of how often a is what calls b: more than 0.
func (m *model) callerSurprise(a, b MethodID) float64 {
	return -math.Log2((float64(m.methodCalls.count(a, b)) + unseenCall) / (float64(m.methods[b].called) + 2*unseenCall))
}

// callCounts counts calls from one frame to another, or from one method to another.
type callCounts struct {
	ids  numbering // of pairs: edgeKey
	n    []int32   // of each pair
	from []int32   // of each caller
	bits []float64 // surprise of each pair
}

func (c *callCounts) reset(callers int) {
	c.ids.reset()
	c.n = c.n[:0]
	c.from = slices.Grow(c.from[:0], callers)[:callers]
	clear(c.from)
}

func (c *callCounts) add(a, b uint32) {
	i := c.ids.add(edgeKey(a, b))
	if i == len(c.n) {
		c.n = append(c.n, 0)
	}
	c.n[i]++
	c.from[a]++
}

// count returns how often a calls b.
func (c *callCounts) count(a, b uint32) int32 {
	if i := c.ids.get(edgeKey(a, b)); i >= 0 {
		return c.n[i]
	}
	return 0
}

// finish works out surprises.
func (c *callCounts) finish() {
	c.bits = slices.Grow(c.bits[:0], len(c.n))[:len(c.n)]
	c.ids.each(func(key uint64, i int) {
		c.bits[i] = c.unlikely(c.n[i], uint32(key>>32))
	})
}

func (c *callCounts) unlikely(n int32, caller uint32) float64 {
	return -math.Log2(shareOf(float64(n), float64(c.from[caller])))
}

// surprise is -log2 of how often a calls b of all it calls.
func (c *callCounts) surprise(a, b uint32) float64 {
	if i := c.ids.get(edgeKey(a, b)); i >= 0 {
		return c.bits[i]
	}
	return c.unlikely(0, a)
}

// A methodModel tells of one method how often it was seen, and by vote which method,
// and which frame of it, calls it most.
type methodModel struct {
	n      int32
	called int32 // of these: with a caller
	caller majority
}

// majority finds what more than half of its votes are for.
type majority struct {
	f     FrameID
	m     MethodID
	score int32 // of m
	fs    int32 // of f
}

func (v *majority) vote(f FrameID, m MethodID) {
	switch {
	case v.score == 0:
		v.m, v.score, v.f, v.fs = m, 1, f, 1
		return
	case v.m != m:
		v.score--
		return
	}
	v.score++
	switch {
	case v.fs == 0:
		v.f, v.fs = f, 1
	case v.f == f:
		v.fs++
	default:
		v.fs--
	}
}

func (e *solver) learnModel() {
	e.doubts.reset()
	m := &e.m
	m.total = 0
	m.frameCalls.reset(len(e.mth))
	m.methodCalls.reset(e.methods)
	m.methods = make([]methodModel, e.methods)
	e.seen.reset()
	for i := range e.runs {
		for b := range e.runs[i].all() {
			for s := b.stack; s != 0 && e.seen.add(s); {
				p := e.t.Parent(s)
				f := e.t.Frame(s)
				fm := e.method(f)
				x := &m.methods[fm]
				x.n++
				m.total++
				if p != 0 {
					a := e.t.Frame(p)
					am := e.method(a)
					m.frameCalls.add(a, f)
					m.methodCalls.add(am, fm)
					x.called++
					x.caller.vote(a, am)
				}
				s = p
			}
		}
	}
	m.frameCalls.finish()
	m.methodCalls.finish()
}

func (e *solver) headSurprise(f FrameID) float64 {
	return -math.Log2(shareOf(float64(e.m.methods[e.method(f)].n), float64(e.m.total)))
}

// retention is how the stacks of two consecutive samples differ in this trace:
// how many frames went and how many came.
type retention struct {
	n     [9][9]float64
	total float64
	bits  [9][9]float64 // log2 of the probability of one pair of numbers
	// the most of these where at least so many frames came, and at least so many went: of a
	// sample and the one before, and of it and the one after
	most [2][9][9]float64
}

func (r *retention) log(pops, pushes int) float64 { return r.bits[bucket(pops)][bucket(pushes)] }

func (r *retention) finish() {
	for a := range r.bits {
		for b := range r.bits[a] {
			r.bits[a][b] = r.cell(a, b)
		}
	}
	for came := len(r.bits) - 1; came >= 0; came-- {
		for went := len(r.bits) - 1; went >= 0; went-- {
			of := [2]float64{r.bits[went][came], r.bits[came][went]}
			for i, bits := range of {
				for _, more := range [2][2]int{{came + 1, went}, {came, went + 1}} {
					if max(more[0], more[1]) < len(r.bits) {
						bits = max(bits, r.most[i][more[0]][more[1]])
					}
				}
				r.most[i][came][went] = bits
			}
		}
	}
}

func (r *retention) cell(a, b int) float64 {
	// spread over the numbers of a bucket
	w := 1.0
	if a > 1 {
		w *= float64(int(1) << (a - 1))
	}
	if b > 1 {
		w *= float64(int(1) << (b - 1))
	}
	return math.Log2((r.n[a][b] + unseenPair) / (r.total + unseenPairs) / w)
}

// begin takes over what was counted.
func (r *retention) begin(pairs *[9][9]float64) {
	*r = retention{n: *pairs}
	for i := range r.n {
		for _, n := range r.n[i] {
			r.total += n
		}
	}
}

// count counts the change from block k-1 to block k of a run, if both are known.
func (r *retention) count(t *climber, bs []block, k int) {
	if k == 0 || k == len(bs) {
		return
	}
	x, y := &bs[k-1], &bs[k]
	if !y.follows || !x.rooted || !y.rooted || x.given && y.given {
		return
	}
	a, b := bs[k-1].ext, bs[k].ext
	c := t.Depth(t.shared(a, b))
	r.n[bucket(t.Depth(a)-c)][bucket(t.Depth(b)-c)]++
	r.total++
}

// logs remembers logarithms that were asked for lately: most are asked for often.
type logs [1 << 10]struct{ x, log2 float64 }

// log2 returns the logarithm of x, which is above 0.
func (l *logs) log2(x float64) float64 {
	y := &l[math.Float64bits(x)*mul>>(64-10)]
	if y.x != x {
		y.x, y.log2 = x, math.Log2(x)
	}
	return y.log2
}
