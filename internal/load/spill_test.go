package load

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// Where the events of many processes do not fit into memory the file is read as often as
// what fits goes into them, and the slices are those of the events.
func TestSpilledProcesses(t *testing.T) {
	const procs, rounds = 200, 20
	told := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}
	cpu := &nettrace.Metadata{Provider: providerUniversal, EventID: 1, Name: "cpu"}
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
	require.NoError(t, l.read(context.Background(), open))
	l.finish()
	k := newTracker(context.Background(), l, open)
	k.limit = 10 * rounds * 20 // about ten processes
	require.NoError(t, k.run())
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
			round++
		}
		assert.Equal(t, rounds, round)
	}
	assert.Less(t, opened, procs/2/5)
	checkTrack(t, k.l.profile.Tracks[7])
}
