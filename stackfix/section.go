package stackfix

import (
	"iter"
	"math"
	"slices"
)

// mostCuts is how many rows of cut samples of a process are repaired at once, which tests change:
// each takes some hundred bytes while it is. Of a recording with more of them, the repairs of a
// stretch of time are what that stretch and a part of those around it tell. That is about three
// minutes of a busy service: rare calls were all seen in it, and what stands before and after a cut
// stack on its thread is nearer.
var mostCuts = 64 << 10

// framesPerCut is how many frames take as much memory as a row of cut samples, where most stacks
// are recorded once: each is a stack of the tree then, and a context or more of its own. It counts
// where a tree has more frames than in mostCuts rows, which real recordings of minutes have not.
const framesPerCut = 64

// sectionMargin is what part of a section on either side is evidence for it.
const sectionMargin = 1.0 / 16

// A section is a stretch of time of a process that is repaired by itself.
type section struct {
	samples int            // that are repaired, or whole
	keep    map[int]cutout // by thread
}

// A cutout is a thread in a section: its samples from lo to hi, of which those from number from to number
// to are repaired.
type cutout struct{ lo, from, to, hi int32 }

// clip returns those of n samples from first on that are repaired, numbered as in the recording.
func (s *section) clip(thread int, first, n int32) (at, left int32) {
	if s == nil {
		return first, n
	}
	c := s.keep[thread]
	at = max(first+c.lo, c.from)
	return at, min(first+n+c.lo, c.to) - at
}

// inSections repairs threads of one process that have too many cuts for one world.
func (s *solver) inSections(threads []Thread, which []int, res *Result) {
	part := slices.Clone(threads)
	next := make([]int32, len(which)) // by thread: the first sample of the next section
	for _, b := range s.sectionBounds(threads, which) {
		sec := section{keep: map[int]cutout{}}
		var in []int
		for k, i := range which {
			c, after := cut(s.stop, &threads[i], next[k], b)
			next[k] = after
			if c.from < c.to {
				in = append(in, i)
				sec.keep[i] = c
				sec.samples += int(c.to - c.from)
				part[i].Samples = c.samples(&threads[i])
			}
		}
		s.section = &sec
		w, _ := s.load(part, in, noLimit)
		if s.stopped() {
			break
		}
		s.fixWorld(w, res)
	}
	s.section = nil
}

// A sectionBound is where a section is: it begins at begin and ends before end, and what tells of it reaches
// from after to before. The next one wants samples from next on. The last one has no end.
type sectionBound struct {
	after, begin, end, before, next int64
	last                            bool
}

// cut finds the samples of a section, which is not before number lo, and where the next one begins.
func cut(ends *stop, t *Thread, lo int32, b sectionBound) (c cutout, next int32) {
	i := lo
	c = cutout{-1, -1, -1, -1}
	next = -1
	reach := func(at *int32, reached bool) {
		if *at < 0 && reached {
			*at = i
		}
	}
	for s := range t.from(int(lo)) {
		reach(&c.lo, s.Time >= b.after)
		reach(&c.from, s.Time >= b.begin)
		reach(&c.to, s.Time >= b.end && !b.last)
		reach(&next, s.Time >= b.next)
		if s.Time >= b.before && !b.last || ends.stoppedAt(int(i)) {
			break
		}
		i++
	}
	c.hi = i
	for _, at := range []*int32{&c.lo, &c.from, &c.to, &next} {
		if *at < 0 {
			*at = i
		}
	}
	return c, next
}

// samples yields those of t that are in c.
func (c cutout) samples(t *Thread) func(from int) iter.Seq[Sample] {
	return func(from int) iter.Seq[Sample] {
		return func(yield func(Sample) bool) {
			left := int(c.hi-c.lo) - from
			if left <= 0 {
				return
			}
			for s := range t.from(int(c.lo) + from) {
				if !yield(s) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}

// A burden counts how much there is to repair, in rows of cut samples: where most stacks are
// recorded once, with their frames.
type burden struct {
	*engine
	cuts   int
	frames int  // of different stacks
	deep   bool // these are counted
}

// newBurden begins to count, in e.seen.
func (e *engine) newBurden() burden {
	e.seen.reset()
	return burden{engine: e, deep: e.t.Len() > mostCuts*framesPerCut}
}

// add counts a row of samples.
func (x *burden) add(s StackID, cut bool) {
	if cut {
		x.cuts++
	}
	for ; x.deep && s != 0 && x.seen.add(s); s = x.t.Parent(s) {
		x.frames++
	}
}

// rows is how much was counted.
func (x *burden) rows() int { return x.cuts + x.frames/framesPerCut }

// mostTimes is how many times of rows are looked at to divide a recording.
const mostTimes = 64 << 10

// rowTimes are the times of one row of so many.
type rowTimes struct {
	at    []int64
	every int
	n     int // rows
}

// add adds the next row.
func (x *rowTimes) add(at int64) {
	if x.n%x.every == 0 {
		x.at = append(x.at, at)
	}
	x.n++
	if len(x.at) == mostTimes {
		for k := range mostTimes / 2 {
			x.at[k] = x.at[2*k]
		}
		x.at, x.every = x.at[:mostTimes/2], 2*x.every
	}
}

// sectionBounds divides the time of a process so that each section has about as much to repair, not
// more than mostCuts rows.
func (e *engine) sectionBounds(threads []Thread, which []int) []sectionBound {
	rows := rowTimes{every: 1}
	count, n := e.newBurden(), 0
	for _, i := range which {
		var last Sample
		for s := range threads[i].from(0) {
			if n++; e.stoppedAt(n) {
				return nil
			}
			if s.Stack != last.Stack || s.Cut != last.Cut {
				for count.add(s.Stack, s.Cut != Whole); rows.n < count.rows(); {
					rows.add(s.Time)
				}
			}
			last = s
		}
	}
	times := rows.at
	slices.Sort(times)
	n = (rows.n + mostCuts - 1) / mostCuts
	at := func(section float64) int64 {
		k := int(section / float64(n) * float64(len(times)))
		if k <= 0 {
			return math.MinInt64
		}
		return times[min(k, len(times)-1)]
	}
	bounds := make([]sectionBound, n)
	for k := range bounds {
		x := float64(k)
		bounds[k] = sectionBound{at(x - sectionMargin), at(x), at(x + 1), at(x + 1 + sectionMargin), at(x + 1 - sectionMargin), k == n-1}
	}
	return bounds
}
