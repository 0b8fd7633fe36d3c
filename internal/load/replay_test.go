package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// written is a trace of the events that f writes, one tick of 1 ns apart.
func written(t testing.TB, version int, f func(write func(nettrace.Event))) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: version, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)})
	require.NoError(t, err)
	now := int64(0)
	f(func(ev nettrace.Event) {
		now++
		if ev.Time == 0 {
			ev.Time = now
		}
		require.NoError(t, w.Write(&ev))
	})
	require.NoError(t, w.Close())
	return out.Bytes()
}

// An exit tells nothing of a process that was not seen: on every reading the id goes to
// another process at the same event.
func TestExitOfUnknownProcess(t *testing.T) {
	create := &nettrace.Metadata{Provider: "Universal.System", EventID: systemProcessCreate, Name: "ProcessCreate"}
	exit := &nettrace.Metadata{Provider: "Universal.System", EventID: systemProcessExit, Name: "ProcessExit"}
	cpu := &nettrace.Metadata{Provider: "Universal.Events", EventID: 1, Name: "cpu"}
	other := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "Told"}
	name := func(s string) []byte {
		b := binary.LittleEndian.AppendUint16([]byte{1}, uint16(len(s)))
		return append(append(b, s...), 0, 0)
	}
	kernel, main := &nettrace.Thread{Index: 1, ProcessID: 7}, &nettrace.Thread{Index: 2, ProcessID: 7, ID: 70}
	b := written(t, 6, func(write func(nettrace.Event)) {
		write(nettrace.Event{Thread: kernel, Metadata: exit})
		write(nettrace.Event{Thread: kernel, Metadata: create, Payload: name("first")})
		write(nettrace.Event{Thread: main, Metadata: cpu, Payload: []byte{1}, Stack: nettrace.NewStack([]uint64{0xB1})})
		write(nettrace.Event{Thread: main, Metadata: other})
		write(nettrace.Event{Thread: kernel, Metadata: exit})
		write(nettrace.Event{Thread: kernel, Metadata: create, Payload: name("second")})
		write(nettrace.Event{Thread: main, Metadata: cpu, Payload: []byte{1}, Stack: nettrace.NewStack([]uint64{0xC1})})
	})
	p, _, err := Profile(context.Background(), bytesOpener(b), &Options{Tracks: []string{"events"}})
	require.NoError(t, err)
	require.Len(t, p.Tracks, 1)
	assert.Equal(t, "first", p.Tracks[0].Process.Name)

	var out bytes.Buffer
	_, _, err = Rewrite(context.Background(), bytesOpener(b), &out, &Options{}, func(p *profile.Profile) {
		require.Len(t, p.Threads, 2)
		th := p.Threads[1]
		require.Equal(t, "second", th.Process.Name)
		recorded := stackOf(th, 0)
		th.Repairs.Append(profile.Repair{Index: 0, Recorded: recorded, How: "caller", Restored: 1})
		root := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Addr: 0xC0}))
		var samples profile.Samples
		for _, s := range th.Samples.All() {
			s.Stack = p.Table.Push(root, p.Table.Frame(recorded))
			samples.Append(s)
		}
		th.Samples = samples
	})
	require.NoError(t, err)
	_, stacks := events(t, bytesOpener(out.Bytes()))
	assert.Equal(t, []uint64{0xB1}, stacks[2])
	assert.Equal(t, []uint64{0xC1, 0xC0}, stacks[6])
}
