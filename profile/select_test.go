package profile

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSelect(t *testing.T) {
	make := func() *Profile {
		tab := NewTable()
		frame := func(n string) FrameID {
			return tab.AddFrame(Frame{Method: tab.AddMethod(Method{Module: "m", Name: n})})
		}
		a := tab.Push(0, frame("N.A(int32)"))
		ab := tab.Push(a, frame("N.B()"))
		p := &Profile{Table: tab}
		for i := range 2 {
			th := &Thread{Process: &Process{PID: int64(10 + i), Name: []string{"web", "db"}[i]}, TID: int64(i + 1)}
			for k := range 6 {
				s := Sample{Time: int64(k) * 100, Stack: a, Type: SampleExternal}
				if k%2 == 1 {
					s = Sample{Time: int64(k) * 100, Stack: ab, Type: SampleManaged, Cut: CutDepth}
					th.Repairs.Append(Repair{Index: k, Restored: k})
				}
				th.Samples.Append(s)
			}
			p.Threads = append(p.Threads, th)
		}
		th := p.Threads[0]
		for i := range int32(5) {
			th.Work.Add(Work{From: int64(i)*100 - 50, To: int64(i)*100 + 50, Activity: i})
		}
		p.Tracks = []*Track{{Process: th.Process, Slices: slices.Values([]*Slice{{Start: 0, Dur: 50}, {Start: 40, Dur: 200}, {Start: 500}})}}
		return p
	}
	same := true
	count := func(p *Profile) (threads, samples int) {
		for _, t := range p.Threads {
			samples += t.Samples.Written()
			for r := range t.Repairs.All() {
				for i, s := range t.Samples.All() {
					if i == r.Index {
						same = same && s.Cut == CutDepth && int(s.Time/100) == r.Restored
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
			p.Select(c.s)
			th, sm := count(p)
			assert.Equal(t, c.threads, th)
			assert.Equal(t, c.samples, sm)
			assert.True(t, same, "a repair stays with its sample")
		})
	}
	p := make()
	p.Select(Selection{From: 100, To: 300})
	var starts []int64
	for s := range p.Tracks[0].Slices {
		starts = append(starts, s.Start)
	}
	assert.Equal(t, []int64{40}, starts, "slices that overlap the time stay")
	assert.Equal(t, []Work{{50, 150, 1}, {150, 250, 2}, {250, 350, 3}}, slices.Collect(p.Threads[0].Work.All()), "as does work")

	p = make()
	p.Tracks[0].Slices = slices.Values([]*Slice{{Start: 1, Thread: p.Threads[0]}, {Start: 2, Thread: p.Threads[1]}, {Start: 3}})
	p.Select(Selection{Threads: []string{"1"}})
	starts = nil
	for s := range p.Tracks[0].Slices {
		starts = append(starts, s.Start)
	}
	assert.Equal(t, []int64{1, 3}, starts, "not slices of another thread")
}

// What knows how long it lasted is cut to the time that is wanted, and not lost.
func TestSelectLasting(t *testing.T) {
	th := &Thread{Process: &Process{}, TID: 1}
	for _, s := range []Sample{
		{Time: 0, Dur: 250, Type: SampleExternal},
		{Time: 250, Dur: 50},
		{Time: 300, Dur: 600, Type: SampleOffCPU},
		{Time: 900, Dur: 50},
	} {
		th.Samples.Append(s)
	}
	p := &Profile{Table: NewTable(), Threads: []*Thread{th}}
	p.Losses = []Loss{{From: 0, To: 50}, {From: 390, To: 410}, {From: 150, To: 160, Thread: &Thread{Process: th.Process, TID: 2}}}
	p.Select(Selection{From: 100, To: 400, Threads: []string{"1"}})
	var got []Sample
	for _, s := range th.Samples.All() {
		if s.Written() {
			got = append(got, s)
		}
	}
	assert.Equal(t, []Sample{
		{Time: 100, Dur: 150, Type: SampleExternal},
		{Time: 250, Dur: 50},
		{Time: 300, Dur: 100, Type: SampleOffCPU},
	}, got)
	assert.Equal(t, []Loss{{From: 390, To: 410}}, p.Losses)
}

// What one selection hid the next one does not show again.
func TestSelectTwice(t *testing.T) {
	of := func(selections ...Selection) (times []int64) {
		th := &Thread{Process: &Process{}, TID: 1}
		for i := range int64(10) {
			th.Samples.Append(Sample{Time: i, Type: []SampleType{SampleManaged, SampleExternal}[i%2]})
		}
		p := &Profile{Table: NewTable(), Threads: []*Thread{th}}
		for _, s := range selections {
			p.Select(s)
		}
		for _, s := range th.Samples.All() {
			if s.Written() {
				times = append(times, s.Time)
			}
		}
		return times
	}
	assert.Equal(t, []int64{4, 6, 8}, of(Selection{From: 3, CPUOnly: true}))
	assert.Equal(t, []int64{4, 6, 8}, of(Selection{From: 3}, Selection{CPUOnly: true}))
	assert.Equal(t, []int64{4, 6, 8}, of(Selection{CPUOnly: true}, Selection{From: 3}))
}

// TestSpanOfSelections: what is left of the time is that of all selections, and within the trace.
func TestSpanOfSelections(t *testing.T) {
	for _, c := range []struct {
		of       []Selection
		from, to int64
	}{
		{nil, 0, 100},
		{[]Selection{{From: 10}}, 10, 100},
		{[]Selection{{From: 10, To: 60}, {From: 5, To: 70}}, 10, 60},
		{[]Selection{{To: 60}, {From: 20, To: 50}}, 20, 50},
		{[]Selection{{From: 300, To: 400}}, 100, 100},
		{[]Selection{{CPUOnly: true}}, 0, 100},
	} {
		p := &Profile{Table: NewTable(), Meta: Meta{End: 100}}
		for _, s := range c.of {
			p.Select(s)
		}
		from, to := p.Meta.Span()
		assert.Equal(t, [2]int64{c.from, c.to}, [2]int64{from, to}, "%+v", c.of)
	}
}
