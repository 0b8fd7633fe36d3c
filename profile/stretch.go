package profile

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/tracefix/tracefix/internal/relay"
)

// A sample says what a thread did at an instant; a viewer draws time. The rules
// between the two, which the reference lacks (dotnet-trace-convert.md sections 3.5
// R5, R11 and 9):
//
//  1. A stack holds until the thread's next sample.
//  2. It does not hold over a break (lost events, a reused thread id), nor over a gap
//     in which the sampler went round heldPeriods times without seeing the thread:
//     then it ends one period after its sample and the rest is no data. A gap in
//     which the sampler saw no thread at all is the sampler's own pause (a GC, a
//     suspension), up to heldPause.
//  3. The last sample of a thread holds for one period.
//  4. A sample taken on a CPU (collect-linux, perf) comes only while the thread runs. It
//     holds for one period if the next is further than runPeriods away. Where the thread
//     came back on a CPU less than that before, it speaks from then on. How far apart such
//     samples are says how busy a thread was, so the period is the one that the trace tells.
//  5. An off-CPU stretch and a weighted sample know their duration.
//  6. Frames that two neighbouring stretches share stay open where one follows the other
//     without a gap. Of recorded spans (weighted samples) only those that were open
//     before stay so: see Sample.Fresh.
//
// This is the one law of time. What an output draws and what another sums up is the same:
// the stretches, and nothing between them.
const (
	heldPeriods = 20
	heldPause   = 1_000_000_000 // ns
	runPeriods  = 2
	// defaultPeriod is that of EventPipe's sampler.
	defaultPeriod = 1_000_000 // ns
	// leastTick is that of perf's cpu-clock (perf_swevent_start_hrtimer of Linux): less is another
	// unit, or damage.
	leastTick = 10_000 // ns
	// mostTicks is how many samples a busy thread may have in the time between two that the trace
	// tells. One that is moved from CPU to CPU, each of which ticks by itself, has a quarter of its
	// gaps below 0.29 of that time.
	mostTicks = 8
)

// A Stretch is the time for which a sample speaks.
type Stretch struct {
	Sample
	Index      int // of the sample
	Start, End int64
	// Joined says that the stretch begins where the one before ended, so that what their
	// stacks share is one span, but for the frames that are fresh.
	Joined bool
}

// Nanos is how long the stretch lasts, ns: what it adds to the time of its frames.
func (s *Stretch) Nanos() int64 { return s.End - s.Start }

// A Timing knows how the sampler of a profile ticked, and so for how long its samples
// speak. It can be shared by goroutines.
type Timing struct {
	Period int64   // ns between two samples of a busy thread
	typing *typing // nil where the recorder told the types
	ticks  map[*Process]*tickSet
}

// Timing looks at the times of all samples of p, once.
func (p *Profile) Timing() *Timing {
	threads := slices.Concat(p.Threads, p.Hidden)
	t := &Timing{Period: usualPeriod(p, threads), typing: p.typing(), ticks: map[*Process]*tickSet{}}
	for _, ticks := range relay.Shares(len(threads), func(ticks *map[*Process]*tickSet, i int) {
		th := threads[i]
		if *ticks == nil {
			*ticks = map[*Process]*tickSet{}
		}
		set := (*ticks)[th.Process]
		if set == nil {
			set = &tickSet{pages: map[int64]*tickPage{}}
			(*ticks)[th.Process] = set
		}
		c := th.Samples.Cursor()
		var s Sample
		for c.Read(&s) {
			if s.Type == SampleManaged || s.Type == SampleExternal || s.Type == SampleError {
				set.add(s.Time / t.Period)
			}
		}
	}) {
		for process, set := range *ticks {
			if all := t.ticks[process]; all != nil {
				all.merge(set)
			} else {
				t.ticks[process] = set
			}
		}
	}
	for _, set := range t.ticks {
		set.sort()
	}
	return t
}

// usualPeriod returns the lower quartile of the times between samples, which idle
// threads do not move; where the trace tells the interval, a period near to it, and of
// samples that are taken on a CPU that interval itself: a quartile of theirs tells an idle
// machine from a busy one, and nothing of the sampler. Where it is not told, see Gaps.tick.
func usualPeriod(p *Profile, threads []*Thread) int64 {
	var all Gaps
	if p.Skipped != nil {
		all = *p.Skipped
	}
	for _, gaps := range relay.Shares(len(threads), func(gaps *Gaps, i int) {
		last := int64(-1)
		c := threads[i].Samples.Cursor()
		var s Sample
		for c.Read(&s) {
			if s.Type == SampleEvent || s.Type == SampleOffCPU {
				continue
			}
			gaps.polled, gaps.onCPU = gaps.polled || s.Type != SampleCPU, gaps.onCPU || s.Type == SampleCPU
			if last >= 0 {
				gaps.Add(s.Time - last)
			}
			last = s.Time
		}
	}) {
		all.merge(gaps)
	}
	period := all.lowerQuartile()
	told := int64(p.Meta.Interval)
	if all.onCPU && !all.polled && told < leastTick {
		period = all.tick()
	}
	switch {
	case told <= 0:
	case !all.onCPU || all.polled:
		period = max(told, min(period, 4*told))
	case told >= leastTick && (period == 0 || told <= mostTicks*period):
		period = told
	}
	if period <= 0 {
		period = defaultPeriod
	}
	return period
}

// Gaps are times between samples, as sums: a bucket is an eighth of a power of two.
type Gaps struct {
	buckets [64 * 8]struct{ n, sum int64 }
	n       int64
	// Which kinds of samples they are between.
	polled, onCPU bool
}

// Add adds the time between two samples of a thread, ns. Those that are not positive say
// nothing.
func (g *Gaps) Add(d int64) {
	if d <= 0 {
		return
	}
	b := &g.buckets[octave(d)]
	b.n++
	b.sum += d
	g.n++
}

// merge adds those of other.
func (g *Gaps) merge(other *Gaps) {
	for i, b := range &other.buckets {
		g.buckets[i].n += b.n
		g.buckets[i].sum += b.sum
	}
	g.n += other.n
	g.polled, g.onCPU = g.polled || other.polled, g.onCPU || other.onCPU
}

// lowerQuartile is the mean of its bucket, 0 where there are too few gaps.
func (g *Gaps) lowerQuartile() int64 {
	if g.n < 4 {
		return 0
	}
	rest := g.n / 4
	for _, b := range g.buckets {
		if rest < b.n {
			return b.sum / b.n
		}
		rest -= b.n
	}
	return 0
}

// slowestTick is of a profiler that looks 19 times a second; who looks less often is not met.
const slowestTick = 60_000_000

// tick is how often CPUs were sampled, by the times between two samples of a thread: those of a
// thread that runs on are near to it, others are as far apart as the thread ran, which is seldom
// twice the same. It is the least time that a tenth of them are near to: of threads that are moved
// at each tick that is more than half of it. Where there is none no thread ran for long, and it is
// that of collect-linux, or less.
func (g *Gaps) tick() int64 {
	if g.n < 4 {
		return 0
	}
	near := func(i int) (n, mean int64) { // two buckets: a time may be where they meet
		a, b := g.buckets[i], g.buckets[i+1]
		if n = a.n + b.n; n > 0 {
			mean = (a.sum + b.sum) / n
		}
		return n, mean
	}
	for i := range len(g.buckets) - 2 {
		n, at := near(i)
		if 10*n < g.n {
			continue
		}
		if next, mean := near(i + 1); next > n {
			at = mean
		}
		if at <= slowestTick {
			return at
		}
		break
	}
	return min(g.lowerQuartile(), defaultPeriod)
}

func octave(d int64) int {
	e := bits.Len64(uint64(d)) - 1
	if e < 3 {
		return e * 8
	}
	return e*8 + int(d>>(e-3)&7)
}

// A tickSet holds the numbers of the periods in which the sampler saw any thread.
type tickSet struct {
	pages map[int64]*tickPage
	keys  []int64
	at    int64 // number of the page that was asked for last
	page  *tickPage
}

// A tickPage has a bit for each of 4,096 periods.
type tickPage [64]uint64

func (s *tickSet) add(tick int64) {
	if s.page == nil || s.at != tick>>12 {
		s.at, s.page = tick>>12, s.pages[tick>>12]
		if s.page == nil {
			s.page = new(tickPage)
			s.pages[s.at] = s.page
		}
	}
	s.page[tick>>6&63] |= 1 << (tick & 63)
}

// merge adds the ticks of other, which is not used any more.
func (s *tickSet) merge(other *tickSet) {
	for at, page := range other.pages {
		if own := s.pages[at]; own != nil {
			for w := range page {
				own[w] |= page[w]
			}
		} else {
			s.pages[at] = page
		}
	}
}

func (s *tickSet) sort() {
	for k := range s.pages {
		s.keys = append(s.keys, k)
	}
	slices.Sort(s.keys)
}

// atLeast says whether there are n ticks in the periods from up to to.
func (s *tickSet) atLeast(n int, from, to int64) bool {
	i, _ := slices.BinarySearch(s.keys, from>>12)
	for ; i < len(s.keys) && s.keys[i] <= to>>12; i++ {
		pg := s.pages[s.keys[i]]
		for w, word := range pg {
			first := s.keys[i]<<12 + int64(w)<<6
			if first+63 < from || first > to {
				continue
			}
			if first < from {
				word &= ^uint64(0) << (from - first)
			}
			if first+63 > to {
				word &= ^uint64(0) >> (first + 63 - to)
			}
			if n -= bits.OnesCount64(word); n <= 0 {
				return true
			}
		}
	}
	return false
}

// held says whether a thread that was sampled at from and next at to was doing in
// between what the first sample says.
func (t *Timing) held(process *Process, from, to int64) bool {
	gap := to - from
	if gap <= heldPeriods*t.Period {
		return true
	}
	if gap > max(heldPause, 200*t.Period) {
		return false
	}
	set := t.ticks[process]
	return set == nil || !set.atLeast(heldPeriods, from/t.Period+1, to/t.Period-1)
}

// A StretchCursor reads the stretches of a thread, for merging and looking ahead.
type StretchCursor struct {
	t      *Timing
	th     *Thread
	c      Cursor
	breaks []int64
	next   Sample // not yet returned
	nextAt int
	more   bool
	index  int   // of the sample that c returns next
	end    int64 // of the last stretch; nothing starts before the trace does
	joined bool
	back   bool // the thread was back on a CPU at end, and the next stretch begins there
}

// Stretches yields the stretches of a thread of the profile: those that are wanted, in
// order and without overlap.
func (t *Timing) Stretches(th *Thread) iter.Seq[Stretch] {
	return func(yield func(Stretch) bool) {
		c := t.Cursor(th)
		var st Stretch
		for c.Read(&st) && yield(st) {
		}
	}
}

// Cursor returns a cursor before the first stretch of a thread of the profile.
func (t *Timing) Cursor(th *Thread) StretchCursor {
	s := StretchCursor{t: t, th: th, c: th.Samples.Cursor(), breaks: th.Breaks}
	s.fetch()
	return s
}

// Span returns where the first stretch of a thread of the profile begins and where the last one ends; 0
// and 0 if there is none. It reads what is near the ends of the thread, unless stretches reach over others.
func (t *Timing) Span(th *Thread) (first, last int64) {
	c := t.Cursor(th)
	var st Stretch
	if !c.Read(&st) {
		return 0, 0
	}
	first, last = st.Start, st.End
	chunks := th.Samples.chunks
	for back := 1; back < len(chunks) && !th.Samples.loose; back *= 2 { // the last may hold nothing that is wanted
		if end := t.cursorAt(th, len(chunks)-back); end.Read(&st) {
			c, last = end, st.End
			break
		}
	}
	for c.Read(&st) {
		last = st.End
	}
	return first, last
}

// cursorAt returns a cursor before the first stretch of a chunk of a thread whose samples are not
// loose. Whether that stretch is joined to the one before it does not tell.
func (t *Timing) cursorAt(th *Thread, chunk int) StretchCursor {
	l := &th.Samples
	s := StretchCursor{t: t, th: th, c: Cursor{chunks: l.chunks[chunk:], spool: l.spool}, breaks: th.Breaks, index: l.chunks[chunk].first}
	s.fetch()
	return s
}

// fetch reads the next sample that stands for time.
func (s *StretchCursor) fetch() {
	for {
		s.more = s.c.Read(&s.next)
		s.nextAt = s.index
		s.index++
		if !s.more || s.next.Type != SampleEvent {
			if s.t.typing != nil {
				s.next.Type = s.t.typing.typeOf(s.th, &s.next)
			}
			return
		}
	}
}

// Next returns the next stretch that is wanted, and false after the last.
func (s *StretchCursor) Next() (st Stretch, ok bool) {
	ok = s.Read(&st)
	return st, ok
}

// Read makes st the next stretch that is wanted, or returns false after the last. To read in place
// takes half the time of Next: what is copied just after it was written keeps the processor waiting.
func (s *StretchCursor) Read(st *Stretch) bool {
	for s.more {
		st.Sample, st.Index, st.Joined = s.next, s.nextAt, s.joined
		if s.back {
			st.Start = s.end
		} else {
			st.Start = max(s.next.Time, s.end)
		}
		s.fetch()
		st.End, s.joined = s.endOf(st)
		s.end = st.End
		if !st.Hidden {
			return true
		}
		s.joined = false
	}
	return false
}

// ReadRun is Read, but st may be several stretches as one: those that go on where the one before ends with
// nothing else new but the time, each longer than least ns. How many these are, it does not say.
func (s *StretchCursor) ReadRun(st *Stretch, least int64) bool {
	if !s.Read(st) {
		return false
	}
	if x := &s.next; !s.joined || s.back || x.Stack != st.Stack || x.Type != st.Type || x.Type == SampleOffCPU || x.Dur > 0 || x.Fresh > 0 || x.Hidden ||
		x.Time != st.End || st.End-st.Start <= least || s.t.typing != nil {
		return true
	}
	limit, until := heldPeriods*s.t.Period, int64(math.MaxInt64)
	if st.Type == SampleCPU {
		limit = runPeriods * s.t.Period
	}
	if len(s.breaks) > 0 {
		until = s.breaks[0] // behind s.next, else it would not be joined
	}
	// s.next was the last that s.c read. What ends in the same chunk needs no look at all that
	// endOf looks at.
	b, at, read := s.c.b, s.next.Time, 0
	for s.c.state.mayRepeat(b) {
		v, n := short(binary.LittleEndian.Uint32(b[1:]))
		d := int64(v>>1) ^ -int64(v&1)
		if n == 0 || d <= least || d > limit || at+d >= until {
			break
		}
		b, at, read = b[1+n:], at+d, read+1
	}
	s.c.b, s.c.state.time, s.c.index = b, at, s.c.index+read
	s.next.Time, s.nextAt, s.index = at, s.nextAt+read, s.index+read
	s.end, st.End = at, at
	return true
}

// endOf returns where st ends and whether the stretch behind it is joined to it.
func (s *StretchCursor) endOf(st *Stretch) (end int64, joined bool) {
	period := s.t.Period
	s.back = false
	if !s.more {
		switch {
		case st.Type == SampleOffCPU:
			return max(st.Start, st.Time+st.Dur), false
		case st.Dur > 0:
			return max(st.Start, st.Start+st.Dur), false
		}
		return max(st.Start, st.Start+period), false
	}
	next := max(s.next.Time, st.Start)
	for len(s.breaks) > 0 && s.breaks[0] <= st.Time {
		s.breaks = s.breaks[1:]
	}
	broken := len(s.breaks) > 0 && s.breaks[0] <= s.next.Time
	switch {
	case st.Type == SampleOffCPU:
		end = min(st.Time+st.Dur, next)
	case st.Dur > 0:
		end = min(st.Start+st.Dur, next)
	case broken:
		end = min(st.Start+period, s.breaks[0], next)
	case st.Type == SampleCPU && next-st.Start > runPeriods*period:
		end = st.Start + period
	case st.Type != SampleCPU && !s.t.held(s.th.Process, st.Start, next):
		end = min(st.Start+period, next)
	default:
		end = next
	}
	end = max(end, st.Start)
	if st.Type == SampleOffCPU && s.next.Type == SampleCPU && s.next.Dur == 0 && next-end <= runPeriods*period && !broken {
		s.back = true
		return end, true
	}
	// A nanosecond is no gap: the Chromium writer closes some frames so much earlier.
	return end, !broken && end+1 >= next
}
