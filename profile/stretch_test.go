package profile

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// randomThread has n samples in some chunks. wild ones come in any order, or are of time off the CPU.
func randomThread(r *rand.Rand, n int, wild bool) *Thread {
	t := &Thread{Process: &Process{PID: 1}}
	types := []SampleType{SampleManaged, SampleManaged, SampleExternal, SampleCPU, SampleEvent}
	if wild {
		types = append(types, SampleOffCPU)
	}
	now := r.Int64N(5e6) - 4e6
	var s Sample
	for i := range n {
		now += []int64{0, 1, 1e6, 1e6, 1e6, 3e7}[r.IntN(6)]
		if wild && r.IntN(50) == 0 {
			now -= r.Int64N(1e8)
		}
		if s.Time, s.Dur, s.Cut, s.Hidden, s.Fresh = now, 0, Whole, false, 0; r.IntN(9) == 0 {
			s.Stack, s.Type, s.Fresh = StackID(r.IntN(3)), types[r.IntN(len(types))], uint16(r.IntN(2))
		}
		if s.Type == SampleOffCPU || r.IntN(20) == 0 {
			s.Dur = r.Int64N(3e6)
		}
		if r.IntN(9) == 0 {
			s.Cut = Cut(r.IntN(4))
		}
		if s.Hidden = r.IntN(20) == 0; !s.Hidden && s.Cut != Whole && r.IntN(2) == 0 {
			t.Repairs.Append(Repair{Index: i, How: []string{"before", HowBridge}[r.IntN(2)], Restored: r.IntN(9)})
		}
		if r.IntN(100) == 0 {
			t.Breaks = append(t.Breaks, now)
		}
		t.Samples.Append(s)
	}
	return t
}

// The period is that of the sampler, however busy the threads were.
func TestPeriod(t *testing.T) {
	const us = 1000
	for _, x := range []struct {
		name string
		told time.Duration
		typ  SampleType
		gap  int64 // us
		want int64 // us
	}{
		{"an idle machine", time.Millisecond, SampleCPU, 50_000, 1000},
		{"a busy one", time.Millisecond, SampleCPU, 1000, 1000},
		{"a thread that is moved from CPU to CPU", time.Millisecond, SampleCPU, 290, 1000},
		{"slow samples", 10 * time.Millisecond, SampleCPU, 30_000, 10_000},
		{"nothing told", 0, SampleCPU, 50_000, 50_000},
		{"a number of Hz", 999, SampleCPU, 1001, 1001},
		{"much more than what is", time.Hour, SampleCPU, 1000, 1000},
		{"EventPipe, which may be late", time.Millisecond, SampleManaged, 3000, 3000},
		{"EventPipe, and threads that began to block", time.Millisecond, SampleManaged, 50_000, 4000},
	} {
		th := &Thread{Process: &Process{PID: 1}}
		for i := range int64(39) {
			th.Samples.Append(Sample{Time: i * x.gap * us, Type: x.typ})
		}
		p := &Profile{Meta: Meta{Interval: x.told}, Threads: []*Thread{th}}
		require.Equal(t, x.want*us, p.Timing().Period, x.name)
	}
}

// TestSpan holds what is found from the ends of a thread against all of its stretches.
func TestSpan(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		th := randomThread(r, []int{0, 1, 3, 30_000}[seed%4], seed%8 > 4)
		switch r.IntN(4) {
		case 0: // the end is not wanted
			from := r.IntN(th.Samples.Len() + 1)
			i := -1
			th.Samples.Change(func(s *Sample) bool {
				i++
				s.Hidden = s.Hidden || i >= from
				return true
			})
		case 1: // times are changed
			th.Samples.Change(func(s *Sample) bool {
				s.Time += r.Int64N(1e8)
				return s.Time%3 == 0
			})
		}
		timing := (&Profile{Threads: []*Thread{th}}).Timing()
		first, last := int64(0), int64(0)
		n := 0
		for st := range timing.Stretches(th) {
			if n++; n == 1 {
				first = st.Start
			}
			last = st.End
		}
		gotFirst, gotLast := timing.Span(th)
		require.Equal(t, [2]int64{first, last}, [2]int64{gotFirst, gotLast}, "seed %d, %d stretches", seed, n)
	}
}

// TestReadRun holds that the stretches of Read are all in those of ReadRun, and what these may leave out.
func TestReadRun(t *testing.T) {
	const least = 2
	runs := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		th := randomThread(r, 10_000, seed%4 == 0)
		timing := (&Profile{Threads: []*Thread{th}}).Timing()
		one, run := timing.Cursor(th), timing.Cursor(th)
		var st, all Stretch
		for run.ReadRun(&all, least) {
			require.True(t, one.Read(&st))
			first := all
			first.End = st.End
			require.Equal(t, first, st)
			for last := st; st.End < all.End; last = st {
				require.True(t, one.Read(&st))
				require.True(t, st.Joined && st.Start == last.End && st.Stack == all.Stack && st.Type == all.Type && st.Fresh == 0 && st.Dur == 0)
				require.True(t, st.Nanos() > least && last.Nanos() > least)
				runs++
			}
			require.Equal(t, all.End, st.End)
		}
		require.False(t, one.Read(&st))
	}
	require.Greater(t, runs, 20_000)
}

// TestCounts holds what is counted while samples come and change against what is there in the end.
func TestCounts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	r := rand.New(rand.NewPCG(5, 6))
	p := &Profile{}
	for i := range 7 {
		p.Threads = append(p.Threads, randomThread(r, i*700, i%2 == 0))
	}
	p.Threads[3].Samples.Change(func(s *Sample) bool {
		s.Cut, s.Hidden = Cut(r.IntN(4)), s.Hidden != (r.IntN(9) == 0)
		return r.IntN(2) == 0
	})
	p.Threads[4].Repairs = Repairs{}
	p.Threads[5].Samples.Delete(func(*Sample) bool { return r.IntN(3) == 0 })
	for range 2 {
		want := Counts{CutBy: map[string]int{}, Repaired: map[string]int{}}
		for _, th := range p.Threads {
			written := 0
			repairs := th.Repairs.Cursor()
			for i, s := range th.Samples.All() {
				rep := repairs.Of(i)
				switch {
				case s.Hidden:
				case s.Type == SampleEvent && s.Cut != Whole:
					want.CutEvents++
					if rep != nil && rep.How != HowBridge {
						want.RepairedEvents++
					}
				case s.Type != SampleEvent:
					written++
					if s.Cut == Whole {
						break
					}
					want.Cut++
					want.CutBy[s.Cut.String()]++
					if rep != nil {
						want.Repaired[rep.How]++
						want.Restored += rep.Restored
					}
				}
			}
			if want.Samples += written; written > 0 {
				want.Threads++
			}
		}
		want.Known, want.Bridged = want.Repaired["before"], want.Repaired[HowBridge]
		require.Equal(t, want, p.Counts())
		p.DropEvidence()
	}
}

// TestSkipTo holds what a cursor passes over against the times of all samples.
func TestSkipTo(t *testing.T) {
	skipped := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		th := randomThread(r, 30_000, seed%4 == 0)
		i := -1
		th.Samples.Delete(func(*Sample) bool { i++; return i%7 == 0 || i > 10_000 && i < 15_000 })
		var all []Sample
		for _, s := range th.Samples.All() {
			all = append(all, s)
		}
		c, at := th.Samples.Cursor(), 0
		var s Sample
		for c.Read(&s) {
			require.Equal(t, all[at], s)
			at++
			to := s.Time + r.Int64N(4e10)
			c.SkipTo(to)
			for ; at < c.index; at++ {
				require.Less(t, all[at].Time, to)
				skipped++
			}
			require.Equal(t, c.index, at, "it does not go back")
		}
		require.Len(t, all, at)
	}
	require.Greater(t, skipped, 50_000)
}

// How often CPUs were sampled is not told by every text. A machine that was idle does not tell it
// either, and its waits are no CPU time.
func TestTickUntold(t *testing.T) {
	const ms = int64(1e6)
	gaps := map[string]func(i int64) int64{
		"busy, each millisecond":    func(i int64) int64 { return ms + i%7*1000 },
		"busy, 99 times a second":   func(i int64) int64 { return 10_101_010 },
		"busy, 4 times as often":    func(i int64) int64 { return ms / 4 },
		"moved at each tick":        func(i int64) int64 { return ms * (1 + i%100) / 100 },
		"idle":                      func(i int64) int64 { return ms << (i % 11) },
		"wakes each half second":    func(i int64) int64 { return 500 * ms },
		"idle, and one that is not": func(i int64) int64 { return []int64{ms, ms, ms << (1 + i%10)}[i%3] },
	}
	for name, want := range map[string][2]int64{
		"busy, each millisecond": {ms, ms + 6000}, "busy, 99 times a second": {10_101_010, 10_101_010}, "busy, 4 times as often": {ms / 4, ms / 4},
		"moved at each tick": {ms / 2, ms}, "idle": {ms, ms}, "wakes each half second": {ms, ms}, "idle, and one that is not": {ms, ms},
	} {
		p := &Profile{Table: NewTable()}
		th := &Thread{Process: &Process{PID: 1}, TID: 1}
		at := int64(0)
		for i := range int64(3000) {
			th.Samples.Append(Sample{Time: at, Type: SampleCPU})
			at += gaps[name](i)
		}
		p.Threads = []*Thread{th}
		period := p.Timing().Period
		require.GreaterOrEqual(t, period, want[0], name)
		require.LessOrEqual(t, period, want[1], name)
	}
}
