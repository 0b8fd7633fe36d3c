package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// longProfile has two threads with so many changes of the stack that they are many parts.
func longProfile() *profile.Profile {
	p := &profile.Profile{Table: profile.NewTable()}
	var stacks []profile.StackID
	for i := range 40 {
		id := profile.StackID(0)
		for depth := range 1 + i {
			m := p.Table.AddMethod(profile.Method{Module: "App", Name: string(rune('a'+(i*7+depth)%26)) + "()"})
			id = p.Table.Push(id, p.Table.AddFrame(profile.Frame{Method: m}))
		}
		stacks = append(stacks, id)
	}
	process := &profile.Process{PID: 1}
	p.Processes = append(p.Processes, process)
	for tid := range int64(2) {
		t := &profile.Thread{Process: process, TID: tid + 1}
		for i := range 4000 {
			t.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: stacks[(i*13+int(tid))%len(stacks)]})
		}
		p.Threads = append(p.Threads, t)
	}
	return p
}

// aFew takes some bytes and fails then.
type aFew struct {
	left int
	err  error
}

func (w *aFew) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// TestThreadLine writes many parts of threads with several processors: the bytes are those of one,
// and what ends the output ends the writer.
func TestThreadLine(t *testing.T) {
	p := longProfile()
	full := errors.New("full")
	for name, write := range map[string]func(io.Writer, *profile.Profile, Options) error{"chromium": Chromium, "speedscope": Speedscope} {
		t.Run(name, func(t *testing.T) {
			var want []byte
			for _, n := range []int{1, 2, 5} {
				before := runtime.GOMAXPROCS(n)
				var b bytes.Buffer
				err := write(&b, p, Options{})
				failed := write(&aFew{b.Len() / 2, full}, p, Options{})
				runtime.GOMAXPROCS(before)
				require.NoError(t, err)
				require.Greater(t, b.Len(), 8*bufferSize)
				if n == 1 {
					want = b.Bytes()
				}
				assert.True(t, bytes.Equal(want, b.Bytes()), "%d processors", n)
				assert.ErrorIs(t, failed, full, "%d processors", n)
			}
		})
	}
}

// anyProfile has samples of all kinds: many at one time or a nanosecond apart, time off the CPU, breaks,
// recorded spans, stacks that differ by an address only, and repairs.
func anyProfile(r *rand.Rand) *profile.Profile {
	p := &profile.Profile{Table: profile.NewTable()}
	var frames []profile.FrameID
	for i := range 6 {
		m := p.Table.AddMethod(profile.Method{Module: "App", Name: string(rune('a'+i%5)) + "()"})
		frames = append(frames, p.Table.AddFrame(profile.Frame{Method: m, Addr: uint64(i)}), p.Table.AddFrame(profile.Frame{Method: m, Addr: uint64(i + 100)}))
	}
	stack := func(under profile.StackID) profile.StackID {
		for range r.IntN(4) {
			under = p.Table.Push(under, frames[r.IntN(len(frames))])
		}
		return under
	}
	process := &profile.Process{PID: 1}
	p.Processes = append(p.Processes, process)
	for tid := range int64(3) {
		t := &profile.Thread{Process: process, TID: tid + 1}
		at, last := int64(0), profile.StackID(0)
		for i := range r.IntN(60) {
			at += []int64{0, 0, 1, 1, 2, 3, 1e6, 1e6, 3e9}[r.IntN(9)]
			s := profile.Sample{Time: at, Stack: last, Type: []profile.SampleType{profile.SampleManaged, profile.SampleManaged, profile.SampleCPU, profile.SampleOffCPU, profile.SampleEvent}[r.IntN(5)]}
			if r.IntN(3) > 0 {
				s.Stack = stack(0)
			}
			if s.Type == profile.SampleOffCPU || r.IntN(5) == 0 {
				s.Dur = int64(r.IntN(3)) * int64(r.IntN(1e6))
			}
			s.Fresh = uint16(r.IntN(8) / 7)
			if r.IntN(4) == 0 {
				repaired := stack(stack(0))
				t.Repairs.Append(profile.Repair{Index: i, Recorded: s.Stack, How: "after", Confidence: 1})
				s.Stack = p.Table.Join(repaired, p.Table.AppendFrames(nil, s.Stack))
			}
			if r.IntN(20) == 0 {
				t.Breaks = append(t.Breaks, at)
			}
			last = s.Stack
			t.Samples.Append(s)
		}
		p.Threads = append(p.Threads, t)
	}
	return p
}

// TestParts holds that the text does not depend on where parts end: a part for each stretch gives
// the bytes of one part for each thread. So what is written for one stretch may hang on all before, and
// a row of equal stretches is as good as one.
func TestParts(t *testing.T) {
	defer func(n int) { partFrames = n }(partFrames)
	for name, write := range map[string]func(io.Writer, *profile.Profile, Options) error{"chromium": Chromium, "speedscope": Speedscope} {
		for seed := range uint64(300) {
			p := anyProfile(rand.New(rand.NewPCG(seed, 1)))
			texts := map[int]string{}
			for _, n := range []int{1, 5, 1 << 30} {
				partFrames = n
				var b bytes.Buffer
				require.NoError(t, write(&b, p, Options{}))
				texts[n] = b.String()
			}
			require.True(t, texts[1<<30] == texts[1] && texts[1<<30] == texts[5], "%s, seed %d", name, seed)
		}
	}
}

// TestFirstMet holds the order of methods against one walk through all samples.
func TestFirstMet(t *testing.T) {
	for seed := range uint64(100) {
		p := anyProfile(rand.New(rand.NewPCG(seed, 2)))
		for range seed % 4 { // threads that have the same stacks, and others
			p.Threads = append(p.Threads, p.Threads...)
		}
		var want []profile.MethodID
		add := func(m profile.MethodID) {
			if !slices.Contains(want, m) {
				want = append(want, m)
			}
		}
		for _, th := range p.Threads {
			for _, s := range th.Samples.All() {
				if !s.Written() {
					continue
				}
				if s.Type == profile.SampleOffCPU {
					add(offCPULeaf)
				}
				for _, f := range p.Table.AppendFrames(nil, s.Stack) {
					add(p.Table.Method(f))
				}
			}
		}
		for _, n := range []int{1, 2, 5} {
			before := runtime.GOMAXPROCS(n)
			all := firstMet(p.Table, p.Threads)
			runtime.GOMAXPROCS(before)
			var got []profile.MethodID
			for _, m := range all {
				if !slices.Contains(got, m) {
					got = append(got, m)
				}
			}
			require.Equal(t, want, got, "seed %d, %d processors", seed, n)
		}
	}
}

// TestEventText holds that the longest numbers have room in the pieces of an event.
func TestEventText(t *testing.T) {
	for _, at := range []int64{0, math.MaxInt64, math.MinInt64} {
		for _, frame := range []int32{0, 7, math.MaxInt32, math.MinInt32} {
			b := &threadPart{out: []byte("x")}
			b.begin('O', at)
			end := endOf(frame)
			b.event(&end)
			b.event(&end)
			one := fmt.Sprintf(",\n"+`{"type":"O","at":%d,"frame":%d}`, at, frame)
			assert.Equal(t, "x"+one+one, string(b.out))
			assert.Equal(t, 1, b.at)
		}
	}
}
