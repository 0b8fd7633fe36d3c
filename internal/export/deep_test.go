package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// TestDeepStacks writes and sums up 100,000 stacks, each one frame deeper than the last, as spans
// are that begin and never end: the cost is that of the frames that change. Where each stack cost
// its depth this took minutes.
func TestDeepStacks(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	process := &profile.Process{PID: 1}
	th := &profile.Thread{Process: process, TID: 1}
	p.Processes, p.Threads = []*profile.Process{process}, []*profile.Thread{th}
	var frames []profile.FrameID
	for i := range 50 {
		m := p.Table.AddMethod(profile.Method{Module: "App", Name: fmt.Sprintf("F%d()", i)})
		frames = append(frames, p.Table.AddFrame(profile.Frame{Method: m}))
	}
	id := profile.StackID(0)
	for i := range 100_000 {
		id = p.Table.Push(id, frames[i%len(frames)])
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Dur: 1e6, Stack: id})
	}
	for name, write := range map[string]func() error{
		"chromium":   func() error { return Chromium(io.Discard, p, Options{}) },
		"speedscope": func() error { return Speedscope(io.Discard, p, Options{}) },
		"svg":        func() error { return SVG(io.Discard, p, Options{}) },
		"top":        func() error { p.Top(profile.TopOptions{}); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, write())
		})
	}
}

// TestSpeedscopeLeavesOutADeepSum holds that a file grows with what changes on its threads: the sum
// of two threads of such stacks would take many times that, and is left out and said so.
func TestSpeedscopeLeavesOutADeepSum(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	process := &profile.Process{PID: 1}
	p.Processes = []*profile.Process{process}
	f := p.Table.AddFrame(profile.Frame{Method: p.Table.AddMethod(profile.Method{Module: "App", Name: "F()"})})
	for tid := range int64(2) {
		th := &profile.Thread{Process: process, TID: tid + 1}
		p.Threads = append(p.Threads, th)
		id := profile.StackID(0)
		for i := range 7000 {
			id = p.Table.Push(id, f)
			th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Dur: 1e6, Stack: id})
		}
	}
	var warned []string
	var out bytes.Buffer
	require.NoError(t, Speedscope(&out, p, Options{Warn: func(s string) { warned = append(warned, s) }}))
	assert.Less(t, out.Len(), 2_000_000)
	assert.NotContains(t, out.String(), allThreads)
	assert.Equal(t, []string{`left out: the profile "All threads", in which each stack stands from root to leaf: 24,503,500 frames. Each thread is whole`}, warned)
	assert.True(t, json.Valid(out.Bytes()))
}

// TestTopIsThatOfEachStack compares sums over stacks that share what is open with those of each
// stack by itself.
func TestTopIsThatOfEachStack(t *testing.T) {
	for seed := range uint64(40) {
		p := random(seed)
		skip := p.Table.Synthetic()
		want := map[string]int64{}
		timing := p.Timing()
		for _, th := range p.Threads {
			for st := range timing.Stretches(th) {
				if st.Type == profile.SampleOffCPU {
					want[profile.OffCPU] += st.Nanos()
				}
				met := map[profile.MethodID]bool{}
				for id := st.Stack; id != 0; id = p.Table.Parent(id) {
					if m := p.Table.Method(p.Table.Frame(id)); !skip[m] && !met[m] {
						met[m] = true
						want[p.Table.MethodAt(m).Full()] += st.Nanos()
					}
				}
			}
		}
		got := map[string]int64{}
		for _, r := range p.Top(profile.TopOptions{Raw: true}).Groups[0].Rows {
			got[r.Method] += int64((r.CPUTotal+r.WaitTotal)*1e6 + 0.5)
		}
		assert.Equal(t, want, got, "seed %d", seed)
	}
}
