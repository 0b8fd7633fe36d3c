package pass

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/trace"
)

func TestSelect(t *testing.T) {
	make := func() *trace.Profile {
		tab := trace.NewTable()
		frame := func(n string) trace.FrameID {
			return tab.AddFrame(trace.Frame{Method: tab.AddMethod(trace.Method{Module: "m", Name: n})})
		}
		a := tab.Push(0, frame("N.A(int32)"))
		ab := tab.Push(a, frame("N.B()"))
		p := &trace.Profile{Table: tab}
		for i := range 2 {
			th := &trace.Thread{Process: &trace.Process{PID: int64(10 + i), Name: []string{"web", "db"}[i]}, TID: int64(i + 1)}
			for k := range 6 {
				s := trace.Sample{Time: int64(k) * 100, Stack: a, Type: trace.SampleExternal}
				if k%2 == 1 {
					s = trace.Sample{Time: int64(k) * 100, Stack: ab, Type: trace.SampleManaged, Cut: trace.CutDepth}
					th.Repairs.Append(trace.Repair{Index: k, Restored: k})
				}
				th.Samples.Append(s)
			}
			p.Threads = append(p.Threads, th)
		}
		th := p.Threads[0]
		p.Tracks = []*trace.Track{{Process: th.Process, Slices: slices.Values([]*trace.Slice{{Start: 0, Dur: 50}, {Start: 40, Dur: 200}, {Start: 500}})}}
		return p
	}
	same := true
	count := func(p *trace.Profile) (threads, samples int) {
		for _, t := range p.Threads {
			samples += t.Samples.Written()
			for r := range t.Repairs.All() {
				for i, s := range t.Samples.All() {
					if i == r.Index {
						same = same && s.Cut == trace.CutDepth && int(s.Time/100) == r.Restored
					}
				}
			}
		}
		return len(p.Threads), samples
	}
	for _, c := range []struct {
		name             string
		s                Selection
		threads, samples int
	}{
		{"everything", Selection{}, 2, 12},
		{"process by id", Selection{Processes: []string{"11"}}, 1, 6},
		{"process by name", Selection{Processes: []string{"w*"}}, 1, 6},
		{"thread", Selection{Threads: []string{"2"}}, 1, 6},
		{"time, To excluded", Selection{From: 100, To: 300}, 2, 4},
		{"frame without module and arguments", Selection{Frame: "N.B"}, 2, 6},
		{"frame of all", Selection{Frame: "m!N.A*"}, 2, 12},
		{"no such frame", Selection{Frame: "X"}, 2, 0},
		{"on a CPU", Selection{CPUOnly: true}, 2, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := make()
			Select(p, c.s)
			th, sm := count(p)
			assert.Equal(t, c.threads, th)
			assert.Equal(t, c.samples, sm)
			assert.True(t, same, "a repair stays with its sample")
		})
	}
	p := make()
	Select(p, Selection{From: 100, To: 300})
	var starts []int64
	for s := range p.Tracks[0].Slices {
		starts = append(starts, s.Start)
	}
	assert.Equal(t, []int64{40}, starts, "slices that overlap the time stay")

	p = make()
	p.Tracks[0].Slices = slices.Values([]*trace.Slice{{Start: 1, Thread: p.Threads[0]}, {Start: 2, Thread: p.Threads[1]}, {Start: 3}})
	Select(p, Selection{Threads: []string{"1"}})
	starts = nil
	for s := range p.Tracks[0].Slices {
		starts = append(starts, s.Start)
	}
	assert.Equal(t, []int64{1, 3}, starts, "not slices of another thread")
}

// What knows how long it lasted is cut to the time that is wanted, and not lost.
func TestSelectLasting(t *testing.T) {
	th := &trace.Thread{Process: &trace.Process{}, TID: 1}
	for _, s := range []trace.Sample{
		{Time: 0, Dur: 250, Type: trace.SampleExternal},
		{Time: 250, Dur: 50},
		{Time: 900, Dur: 600, Type: trace.SampleOffCPU}, // from 300
		{Time: 900, Dur: 50},
	} {
		th.Samples.Append(s)
	}
	p := &trace.Profile{Table: trace.NewTable(), Threads: []*trace.Thread{th}}
	p.Losses = []trace.Loss{{From: 0, To: 50}, {From: 390, To: 410}, {From: 150, To: 160, Thread: &trace.Thread{Process: th.Process, TID: 2}}}
	Select(p, Selection{From: 100, To: 400, Threads: []string{"1"}})
	var got []trace.Sample
	for _, s := range th.Samples.All() {
		if s.Written() {
			got = append(got, s)
		}
	}
	assert.Equal(t, []trace.Sample{
		{Time: 100, Dur: 150, Type: trace.SampleExternal},
		{Time: 250, Dur: 50},
		{Time: 400, Dur: 100, Type: trace.SampleOffCPU},
	}, got)
	assert.Equal(t, []trace.Loss{{From: 390, To: 410}}, p.Losses)
}
