package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// Where the events of many processes do not fit into memory the file is read as often as
// what fits goes into them, and the slices are those of the events.
func TestSpilledProcesses(t *testing.T) {
	const procs, rounds = 200, 20
	told := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}
	cpu := &nettrace.Metadata{Provider: "Universal.Events", EventID: 1, Name: "cpu"}
	b := written(t, 6, func(write func(nettrace.Event)) {
		for i := range rounds * procs {
			p := i % procs
			ev := nettrace.Event{Thread: &nettrace.Thread{Index: uint64(p + 1), ProcessID: 1000 + p, ID: uint64(p)}, Metadata: told, Payload: make([]byte, 8)}
			if p%2 == 1 {
				ev.Metadata, ev.Payload = cpu, []byte{1}
			}
			write(ev)
		}
	})
	opened := 0
	open := func() (io.ReadCloser, error) {
		opened++
		return bytesOpener(b)()
	}
	l := newLoader(&Options{Tracks: []string{"events"}})
	k := newTracker(context.Background(), l, open)
	k.limit, l.tracks = 10*rounds*20, k // about ten processes
	_, err := input.Read(context.Background(), open, nil, l)
	require.NoError(t, err)
	require.True(t, k.spill)
	require.Len(t, k.l.profile.Tracks, procs/2, "a process without such events has no track")
	opened = 0
	for i, tr := range k.l.profile.Tracks {
		assert.EqualValues(t, 1000+2*i, tr.Process.PID)
		round := 0
		for s := range tr.Slices {
			assert.EqualValues(t, round*procs+2*i+1, s.Start)
			assert.Equal(t, "Other/Told", s.Category+"/"+s.Name)
			assert.EqualValues(t, 2*i, s.Args[0].Value)
			assert.EqualValues(t, 2*i, s.Thread.TID)
			round++
		}
		assert.Equal(t, rounds, round)
	}
	assert.Less(t, opened, procs/2/5)
	checkTrack(t, k.l.profile.Tracks[7])
}

// A reading that fails, or is of another file, is told of by the tracks it was for.
func TestSpillFails(t *testing.T) {
	told := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}
	file := func(n int) []byte {
		return written(t, 4, func(write func(nettrace.Event)) {
			for range n {
				write(nettrace.Event{ThreadID: 1, CaptureThreadID: 1, Metadata: told, Payload: make([]byte, 8)})
			}
		})
	}
	b := file(100)
	disk := &fs.PathError{Op: "read", Path: "x", Err: errors.New("no such device")}
	for name, c := range map[string]struct {
		again func() (io.ReadCloser, error)
		want  string
	}{
		"cannot be opened": {func() (io.ReadCloser, error) { return nil, disk }, "no such device"},
		"disk fails": {func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(disk))), nil
		}, "no such device"},
		"has become shorter": {bytesOpener(b[:len(b)/2]), "expected 100 events as at first, found"},
		"has become longer":  {bytesOpener(file(101)), ""},
		"is the same":        {bytesOpener(b), ""},
	} {
		t.Run(name, func(t *testing.T) {
			open := bytesOpener(b)
			l := newLoader(&Options{Tracks: []string{"events"}})
			k := newTracker(context.Background(), l, func() (io.ReadCloser, error) { return open() })
			k.limit, l.tracks = 100, k
			_, err := input.Read(context.Background(), open, nil, l)
			require.NoError(t, err)
			require.True(t, k.spill)
			open = c.again
			for range k.l.profile.Tracks[0].Slices {
				break // is enough for one who only asks whether there are some
			}
			n := 0
			for range k.l.profile.Tracks[0].Slices {
				n++
			}
			failed := k.l.profile.Err()
			if c.want == "" {
				assert.NoError(t, failed)
				assert.GreaterOrEqual(t, n, 100)
				return
			}
			assert.ErrorContains(t, failed, c.want)
			open = bytesOpener(b)
			for range k.l.profile.Tracks[0].Slices {
			}
			assert.ErrorContains(t, k.l.profile.Err(), c.want, "it stays: something was written without them")
		})
	}
}

// The track of all events has the same ones whether they fit into memory or not.
func TestSpilledAreTheSame(t *testing.T) {
	b, err := os.ReadFile(tracetest.Corpus(t, "dotnet10", "http-bridge.nettrace"))
	require.NoError(t, err)
	read := func(limit int) map[string]int {
		l := newLoader(&Options{Tracks: Groups})
		k := newTracker(t.Context(), l, bytesOpener(b))
		k.limit, l.tracks = limit, k
		_, err := input.Read(t.Context(), bytesOpener(b), nil, l)
		require.NoError(t, err)
		found := map[string]int{}
		for _, tr := range l.profile.Tracks {
			if tr.Group == "events" {
				for s := range tr.Slices {
					found[s.Category+"/"+s.Name]++
				}
			}
		}
		assert.Equal(t, limit < maxItems, k.spill)
		return found
	}
	want := read(1 << 30)
	assert.NotEmpty(t, want)
	assert.Equal(t, want, read(1000))
}
