package pass

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// How long the recorder took tells how deep the stacks of a real recording were that it cut, whose names tell it,
// too: chain calls F000, F001 and so on.
func TestPaceOfRecording(t *testing.T) {
	p, _ := loadTrace(t, "../../testdata/chain.nettrace.zst", true)
	pace := newPace(p.Table, p.Threads)
	require.NotNil(t, pace)
	names := func(s profile.StackID) (out []string) {
		for _, f := range p.Table.AppendFrames(nil, s) {
			out = append(out, p.Table.MethodOf(f).Full())
		}
		return out
	}
	of := func(names []string) (at, number int) {
		for i, n := range slices.Backward(names) {
			if m := labFrame.FindStringSubmatch(n); m != nil {
				for _, d := range m[3] {
					number = 10*number + int(d-'0')
				}
				return i, number
			}
		}
		return -1, 0
	}
	var off []float64
	deepest, longest := 0, 0
	for _, th := range p.Threads {
		base := 0 // frames before F000
		for _, s := range th.Samples.All() {
			fs := names(s.Stack)
			if at, n := of(fs); s.Cut == profile.Whole && at >= 0 {
				base = max(base, at-n)
			}
		}
		walks := th.Walks.From(0)
		for _, s := range th.Samples.All() {
			w := walks.Next()
			fs := names(s.Stack)
			at, n := of(fs)
			if s.Cut == profile.Whole || w == 0 || at < 0 {
				continue
			}
			slices.Sort(fs)
			missing := base + n - at
			depth := len(fs) + missing
			work := stackfix.Work(depth, len(slices.Compact(fs))+missing)
			off = append(off, pace.work(s.Time, w)-work)
			deepest, longest = max(deepest, depth), max(longest, missing)
		}
	}
	require.Greater(t, len(off), 1000)
	assert.Greater(t, deepest, 250)
	slices.Sort(off)
	at := func(part float64) float64 { return off[int(part*float64(len(off)))] }
	t.Logf("%d cut stacks: off by %.2f %.2f %.2f %.2f %.2f (5, 25, 50, 75, 95 %%), said %.2f", len(off), at(0.05), at(0.25), at(0.5), at(0.75), at(0.95), pace.spread)
	assert.InDelta(t, 0, at(0.5), 0.1, "in the middle")
	assert.Less(t, at(0.75)-at(0.25), 0.3, "half of them")
	assert.Greater(t, pace.spread, 0.0)
	assert.Less(t, pace.spread, 0.3)
}

// lab is a recorder that takes as long as it is told for a stack of depth frames.
type lab struct {
	p    *profile.Profile
	r    *rand.Rand
	took func(work float64, round int) float64 // ns
	fs   []profile.FrameID
	true [][]float64 // by thread and sample: the work
}

func newLab(threads int, took func(work float64, round int) float64) *lab {
	x := &lab{p: &profile.Profile{Table: profile.NewTable()}, r: rand.New(rand.NewPCG(1, 2)), took: took, true: make([][]float64, threads)}
	for i := range 400 {
		m := x.p.Table.AddMethod(profile.Method{Name: strings.Repeat("m", 1+i)})
		x.fs = append(x.fs, x.p.Table.AddFrame(profile.Frame{Method: m}))
	}
	proc := &profile.Process{PID: 1}
	for i := range threads {
		x.p.Threads = append(x.p.Threads, &profile.Thread{Process: proc, TID: int64(i)})
	}
	return x
}

// round samples all threads once.
func (x *lab) round(n, limit int) {
	for i, t := range x.p.Threads {
		depth := 3 + i // idle
		if i%2 == 1 {
			depth = 20 + x.r.IntN(300)
		}
		s := profile.Sample{Time: int64(n)*1_000_000 + int64(i)*10_000, Stack: x.p.Table.Add(x.fs[400-depth:]...)}
		if depth >= limit {
			s.Stack, s.Cut = x.p.Table.Add(x.fs[400-limit:]...), profile.CutDepth
		}
		work := stackfix.Work(depth, depth)
		x.true[i] = append(x.true[i], work)
		t.Walks.Add(t.Samples.Len(), profile.WalkOf(time.Duration(x.took(work, n))))
		t.Samples.Append(s)
		t.Last = s.Time
	}
}

// What a pace tells is right, whatever a unit of work takes and however that changes from round to round.
func TestPace(t *testing.T) {
	slow := func(round int) float64 { return 1 + 0.5*math.Sin(float64(round)/40) }
	for name, c := range map[string]struct {
		took func(work float64, round int) float64
		most float64 // that nine of ten are off
	}{
		"fast": {func(work float64, _ int) float64 { return beforeWalk + 25*math.Exp(work) }, 0.15},
		"slow": {func(work float64, _ int) float64 { return beforeWalk + 300*math.Exp(work) }, 0.15},
		// by a factor of three
		"changes": {func(work float64, n int) float64 { return (beforeWalk + 100*math.Exp(work)) * slow(n) }, 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			x := newLab(6, c.took)
			for n := range 2000 {
				x.round(n, 100)
			}
			pace := newPace(x.p.Table, x.p.Threads)
			require.NotNil(t, pace)
			assert.Less(t, pace.spread, c.most)
			for i, th := range x.p.Threads {
				walks, off := th.Walks.From(0), []float64(nil)
				for k, s := range th.Samples.All() {
					if w := walks.Next(); s.Cut != profile.Whole {
						off = append(off, math.Abs(pace.work(s.Time, w)-x.true[i][k]))
					}
				}
				if i%2 == 1 {
					slices.Sort(off)
					assert.Less(t, off[len(off)*9/10], c.most, "thread %d", i)
				}
			}
		})
	}
}

// A recorder that ends a walk where it cuts, one of which too little is known, and one that waits tell nothing.
func TestNoPace(t *testing.T) {
	took := func(work float64, _ int) float64 { return beforeWalk + 100*math.Exp(work) }
	for name, c := range map[string]struct {
		rounds, limit int
		took          func(work float64, round int) float64
	}{
		"ends at the limit": {2000, 100, func(work float64, n int) float64 { return took(min(work, stackfix.Work(100, 100)), n) }},
		"few":               {5, 100, took},
		"nothing is cut":    {2000, 400, took},
		"waits":             {2000, 100, func(float64, int) float64 { return 2e6 }},
	} {
		t.Run(name, func(t *testing.T) {
			x := newLab(4, c.took)
			for n := range c.rounds {
				x.round(n, c.limit)
			}
			assert.Nil(t, newPace(x.p.Table, x.p.Threads))
		})
	}
}
