package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

func bytesOpener(b []byte) input.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

// events reads all events of a file, with their stacks leaf first.
func events(t testing.TB, open input.Opener) (list []nettrace.Event, stacks [][]uint64) {
	t.Helper()
	in, err := open()
	require.NoError(t, err)
	defer in.Close()
	r, err := nettrace.NewReader(in, nil)
	require.NoError(t, err)
	for ev, err := range r.All() {
		require.NoError(t, err)
		c := *ev
		c.Payload = slices.Clone(ev.Payload)
		list = append(list, c)
		stacks = append(stacks, ev.Stack.AppendTo(nil))
	}
	return list, stacks
}

// graft puts the outermost frames of the last whole stack below every second cut one,
// and calls the others bridged.
func graft(p *profile.Profile) {
	bridge := p.Table.AddFrame(profile.Frame{Method: p.Table.AddBridge()})
	for _, th := range p.Threads {
		var whole, out []profile.FrameID
		var samples profile.Samples
		for i, s := range th.Samples.All() {
			out = p.Table.AppendFrames(out[:0], s.Stack)
			if s.Cut == profile.Whole && len(out) > 0 {
				whole = slices.Clone(out[:min(3, len(out))])
			} else if s.Cut != profile.Whole {
				r := profile.Repair{Index: i, Recorded: s.Stack, How: "before", Restored: len(whole)}
				base := whole
				if len(out) > 0 && (i%2 == 0 || len(whole) == 0) {
					r.How, base = profile.HowBridge, []profile.FrameID{bridge}
				}
				s.Stack = 0
				for _, f := range append(slices.Clone(base), out...) {
					s.Stack = p.Table.Push(s.Stack, f)
				}
				th.Repairs.Append(r)
			}
			samples.Append(s)
		}
		th.Samples = samples
	}
}

// A repaired file has the same events with the same payloads in the same order; a
// stack that was repaired keeps its recorded frames but for suspect ones, and what the
// loader makes of the file is what the repair made of the profile.
func TestRewrite(t *testing.T) {
	for _, name := range []string{"chain", "noise", "v6-chain", "v6-machine"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "v6-machine" {
				t.Skip("large")
			}
			open := opener(t, "dotnet10/"+name+".nettrace")
			var out bytes.Buffer
			p, _, err := Rewrite(context.Background(), open, &out, &Options{}, graft)
			require.NoError(t, err)
			want, wantStacks := events(t, open)
			got, gotStacks := events(t, bytesOpener(out.Bytes()))
			require.Equal(t, len(want), len(got))
			changed, longer := 0, 0
			for i := range want {
				w, g := &want[i], &got[i]
				require.Equal(t, w.Time, g.Time, "event %d", i)
				require.Equal(t, [4]any{w.ThreadID, w.ProcessID, w.EventName(), w.ActivityID}, [4]any{g.ThreadID, g.ProcessID, g.EventName(), g.ActivityID}, "event %d", i)
				require.Equal(t, w.Payload, g.Payload, "event %d", i)
				ws, gs := wantStacks[i], gotStacks[i]
				if slices.Equal(ws, gs) {
					continue
				}
				changed++
				if len(gs) > len(ws) {
					longer++
				}
				same := 0
				for same < len(ws) && same < len(gs) && ws[same] == gs[same] {
					same++
				}
				require.GreaterOrEqual(t, same, len(ws)-4, "event %d lost frames", i)
			}
			repairs, grown := 0, 0
			for _, th := range p.Threads {
				for r := range th.Repairs.All() {
					repairs++
					if r.How != profile.HowBridge { // whose one frame may stand for words that were no code
						grown++
					}
				}
			}
			assert.Positive(t, repairs)
			assert.LessOrEqual(t, changed, repairs)
			assert.Greater(t, longer*10, grown*9, "of %d repairs", grown)

			q, _, err := Profile(context.Background(), bytesOpener(out.Bytes()), &Options{Evidence: true})
			require.NoError(t, err)
			assert.False(t, p.Meta.Repaired)
			assert.True(t, q.Meta.Repaired, "stacks go beyond the limit, or the file says so")
			require.Equal(t, len(p.Threads), len(q.Threads))
			for i, th := range p.Threads {
				require.Equal(t, th.Samples.Len(), q.Threads[i].Samples.Len())
				next := pull(&q.Threads[i].Samples)
				for j, s := range th.Samples.All() {
					o := next()
					require.Equal(t, frames(p, s.Stack), frames(q, o.Stack), "thread %d sample %d", th.TID, j)
					if strings.Contains(frames(q, o.Stack), profile.Bridge) {
						assert.NotEqual(t, profile.Whole, o.Cut, "a bridged stack is cut still")
					}
				}
			}
		})
	}
}

// pull hands out the samples of a list one by one.
func pull(l *profile.Samples) func() profile.Sample {
	var all []profile.Sample
	for _, s := range l.All() {
		all = append(all, s)
	}
	return func() profile.Sample { s := all[0]; all = all[1:]; return s }
}

// Without a repair a file is written back with the same stacks, and the same sequence
// numbers, also where the first events of a thread were lost.
func TestRewriteKeepsWholeFiles(t *testing.T) {
	for _, name := range []string{"counters", "dropped"} {
		open := opener(t, "dotnet10/"+name+".nettrace")
		var out bytes.Buffer
		_, _, err := Rewrite(context.Background(), open, &out, &Options{}, nil)
		require.NoError(t, err)
		want, wantStacks := events(t, open)
		got, gotStacks := events(t, bytesOpener(out.Bytes()))
		require.Equal(t, len(want), len(got))
		require.Equal(t, wantStacks, gotStacks)
		for i := range want {
			require.Equal(t, want[i].SequenceNumber, got[i].SequenceNumber, "event %d of %s", i, name)
		}
	}
}

// A limit that a tool has set is found; a trace without cut stacks has the runtime's.
func TestDepthLimit(t *testing.T) {
	open := opener(t, "dotnet10/web.nettrace")
	truth, _, err := Profile(context.Background(), open, nil)
	require.NoError(t, err)
	for _, limit := range []int{20, 30, 40} {
		in, err := open()
		require.NoError(t, err)
		r, err := nettrace.NewReader(in, nil)
		require.NoError(t, err)
		var out bytes.Buffer
		w, err := nettrace.NewWriter(&out, r.Header())
		require.NoError(t, err)
		require.NoError(t, nettrace.Copy(w, r, func(ev *nettrace.Event) bool {
			if ev.Stack.Len() > limit {
				ev.Stack = nettrace.NewStack(ev.Stack.AppendTo(nil)[:limit])
			}
			return true
		}))
		require.NoError(t, w.Close())
		in.Close()
		p, info, err := Profile(context.Background(), bytesOpener(out.Bytes()), nil)
		require.NoError(t, err)
		assert.Equal(t, limit, p.Meta.DepthLimit)
		assert.Greater(t, info.Cut, int64(1000))
		for i, th := range p.Threads {
			next := pull(&truth.Threads[i].Samples)
			for _, s := range th.Samples.All() {
				was := truth.Table.Depth(next().Stack)
				require.Equal(t, was > limit, s.Cut != profile.Whole, "a stack of %d frames cut to %d", was, limit)
			}
		}
	}
	for _, name := range []string{"dotnet10/chain.nettrace", "dotnet10/counters.nettrace", "dotnet10/http-cpu.nettrace",
		"nettrace/microsoft-perfview/speedscope/only_managed_samples.nettrace", "nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-single-thread.golden.nettrace",
		"nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-webapp.golden.nettrace.gz", "nettrace/getsentry-sentry-dotnet/sample.nettrace.gz",
		"nettrace/dotnet-diagnostics/trace.nettrace.gz", "nettrace/erlendthune-RememberCalendar/trace.nettrace.gz",
		"nettrace/microsoft-perfview/speedscope/HeartRateMonitor.10068.nettrace.gz", "nettrace/microsoft-perfview/speedscope/mixed_managed_external_samples.nettrace"} {
		p, info, err := Profile(context.Background(), opener(t, name), nil)
		require.NoError(t, err)
		assert.Equal(t, 100, p.Meta.DepthLimit, name)
		t.Log(name, info.Samples, info.Cut, info.Stats.MaxDepth)
	}
}

// A file of .NET Core 2.0 does not tell the size of its pointers: stacks do. What is made of
// it does, and payloads are read by it.
func TestRewriteGuessedPointerSize(t *testing.T) {
	le := binary.LittleEndian
	event := func(b []byte, id uint32, payload string, stack ...uint32) []byte {
		b = le.AppendUint32(b, uint32(56+len(payload)+4*len(stack)))
		b = le.AppendUint32(le.AppendUint32(b, id), 77)
		b = append(le.AppendUint64(b, 2000), make([]byte, 32)...)
		b = append(le.AppendUint32(b, uint32(len(payload))), payload...)
		b = le.AppendUint32(b, uint32(4*len(stack)))
		for _, a := range stack {
			b = le.AppendUint32(b, a)
		}
		return b
	}
	b := []byte("\x14\x00\x00\x00!FastSerialization.1\x04\x04\x01\x02\x00\x00\x00\x00\x00\x00\x00\x26\x00\x00\x00Microsoft.DotNet.Runtime.EventPipeFile\x06")
	b = append(b, make([]byte, 4+16)...)
	b = le.AppendUint64(le.AppendUint64(b, 1000), 1e9)
	id := uint32(len(b))
	b = event(b, 0, "P\x00\x00\x00"+string(make([]byte, 12)))
	b = event(b, id, "", 1, 2, 3)
	var out bytes.Buffer
	p, _, err := Rewrite(t.Context(), bytesOpener(b), &out, &Options{}, nil)
	require.NoError(t, err)
	assert.Equal(t, 4, p.Meta.PointerSize)
	r, err := nettrace.NewReader(&out, nil)
	require.NoError(t, err)
	assert.Equal(t, 4, r.Header().PointerSize)
	var ev nettrace.Event
	require.NoError(t, r.Read(&ev))
	assert.Equal(t, []uint64{1, 2, 3}, ev.Stack.AppendTo(nil))
}

// What was repaired is put into the events that it was found in, or nowhere.
func TestRewriteOfAnotherFile(t *testing.T) {
	file := func(n int) []byte {
		return written(t, 4, func(write func(nettrace.Event)) {
			for range n {
				write(nettrace.Event{ThreadID: 1, CaptureThreadID: 1, Metadata: &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}})
			}
		})
	}
	for _, n := range []int{99, 101} {
		files := [][]byte{file(100), file(n)}
		_, _, err := Rewrite(t.Context(), func() (io.ReadCloser, error) {
			b := files[0]
			files = files[1:]
			return bytesOpener(b)()
		}, io.Discard, &Options{}, nil)
		assert.ErrorContains(t, err, fmt.Sprintf("expected 100 events as at first, found %d", n))
	}
}

// A disk that is full says nothing of the input.
func TestRewriteToFullDisk(t *testing.T) {
	b := written(t, 4, func(write func(nettrace.Event)) {
		for range 2000 {
			write(nettrace.Event{ThreadID: 1, CaptureThreadID: 1, Payload: make([]byte, 2000), Metadata: &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}})
		}
	})
	full := errors.New("no space left")
	_, _, err := Rewrite(t.Context(), bytesOpener(b), writerFunc(func([]byte) (int, error) { return 0, full }), &Options{}, nil)
	assert.ErrorIs(t, err, full)
	n := 0
	_, _, err = Rewrite(t.Context(), bytesOpener(b), writerFunc(func(p []byte) (int, error) {
		if n += len(p); n > len(b)/2 {
			return 0, full
		}
		return len(p), nil
	}), &Options{}, nil)
	assert.ErrorIs(t, err, full)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Who gives up during the second reading does not wait for its end.
func TestRewriteIsCanceled(t *testing.T) {
	b := written(t, 4, func(write func(nettrace.Event)) {
		for range 20_000 {
			write(nettrace.Event{ThreadID: 1, CaptureThreadID: 1, Payload: make([]byte, 2000), Metadata: &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}})
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	opened := 0
	var in *bytes.Reader
	_, _, err := Rewrite(ctx, func() (io.ReadCloser, error) {
		if opened++; opened == 2 {
			cancel()
		}
		in = bytes.NewReader(b)
		return io.NopCloser(in), nil
	}, io.Discard, &Options{}, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Greater(t, in.Len(), len(b)/2, "is not read to its end")
}
