package info

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// TestMedianCut: as many cut samples are before it as after, whatever the times are.
func TestMedianCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() int64{
		"everywhere":      func() int64 { return rng.Int64N(60e9) },
		"at the end":      func() int64 { return 60e9 - rng.Int64N(1000) },
		"at one time":     func() int64 { return 30e9 },
		"behind the end":  func() int64 { return 60e9 + rng.Int64N(1e9) },
		"before it began": func() int64 { return -rng.Int64N(1e9) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 1000} {
				p := &profile.Profile{Meta: profile.Meta{End: 60e9}}
				var all []int64
				for range 3 {
					var times []int64
					for range n {
						times = append(times, next())
					}
					slices.Sort(times)
					th := &profile.Thread{}
					for i, at := range times {
						cut := profile.CutDepth
						if i%3 == 1 {
							cut = profile.Whole
						} else {
							all = append(all, at)
						}
						th.Samples.Append(profile.Sample{Time: at, Cut: cut})
					}
					p.Threads = append(p.Threads, th)
				}
				slices.Sort(all)
				assert.Equal(t, all[len(all)/2], medianCut(p), n)
			}
		})
	}
}

// The marks of tasks of a part are those of its samples.
func TestMiddleKeepsTasks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := &profile.Profile{Table: profile.NewTable()}
	stack := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Name: "M"})}))
	type told struct {
		at   int64 // of the sample
		mark profile.TaskMark
	}
	all := map[*profile.Process][]told{}
	const n = 60_000
	for range 3 {
		process := &profile.Process{}
		th := &profile.Thread{Process: process}
		at := int64(0)
		for i := range n {
			at += r.Int64N(3000)
			for range r.IntN(3) {
				m := profile.TaskMark{Sample: int32(i), Stacked: r.IntN(2) > 0, Kind: profile.TaskBegins, Task: r.Uint32()}
				th.Tasks.Append(m)
				m.Sample = 0
				all[process] = append(all[process], told{at, m})
			}
			th.Samples.Append(profile.Sample{Time: at, Stack: stack, Cut: profile.CutDepth})
		}
		p.Threads = append(p.Threads, th)
		p.Meta.End = max(p.Meta.End, at+1)
	}
	whole := slices.Clone(p.Threads)
	part := middle(p, 3*n)
	require.Equal(t, len(whole), len(part.Threads))
	for i, th := range p.Threads {
		require.Same(t, whole[i], th, "the trace is tried, not changed")
		require.Equal(t, n, th.Samples.Len())
		require.NotSame(t, th, part.Threads[i])
	}
	marks := 0
	for _, th := range part.Threads {
		var times []int64
		for _, s := range th.Samples.All() {
			times = append(times, s.Time)
		}
		require.Less(t, len(times), n/2)
		var want []told
		for _, m := range all[th.Process] {
			if m.at >= times[0] && m.at <= times[len(times)-1] {
				want = append(want, m)
			}
		}
		var got []told
		for m := range th.Tasks.All() {
			at := times[m.Sample]
			m.Sample = 0
			got = append(got, told{at, m})
		}
		require.Equal(t, want, got)
		marks += len(got)
	}
	assert.Greater(t, marks, 10_000)
}

// What is told of a part is about what holds for the whole, where task events tell most of it, too.
func TestForecastOfPart(t *testing.T) {
	file := tracetest.Corpus(t, "dotnet10", "await-full.nettrace")
	share := func(looks, frames int64) (share float64, tried int64) {
		p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return os.Open(file) }, &load.Options{Evidence: true})
		require.NoError(t, err)
		f, err := forecast(t.Context(), p, looks, frames)
		require.NoError(t, err)
		require.Greater(t, f.Tried, int64(100))
		return float64(f.Repaired) / float64(f.Tried), f.Tried
	}
	whole, all := share(1, 0)
	part, some := share(2*mostTried, 0)
	assert.Greater(t, whole, 0.7)
	assert.InDelta(t, whole, part, 0.1)
	assert.Less(t, some, all)
	_, deep := share(1, 2*mostTried*framesPerLook)
	assert.Equal(t, some, deep, "of deep stacks as much is tried as takes as long")
}
