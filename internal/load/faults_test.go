package load

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Page faults have no stack that says anything, so they are no evidence; as a weight they are counted,
// by process and thread.
func TestPageFaultsAreCounted(t *testing.T) {
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, &nettrace.Header{Version: 6, SyncQPC: 1000, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)})
	require.NoError(t, err)
	fault := &nettrace.Metadata{ID: 1, Provider: "Universal.Events", Name: "soft_page_fault", EventID: 2}
	for i := range 10 {
		tid := uint64(7 + i%2)
		require.NoError(t, w.Write(&nettrace.Event{
			Time: 1000 + int64(i), ProcessID: 5, ThreadID: tid, CaptureThreadID: tid, Metadata: fault, Payload: []byte{3},
			Thread: &nettrace.Thread{ProcessID: 5, ID: tid}, Stack: nettrace.NewStack([]uint64{0}),
		}))
	}
	require.NoError(t, w.Close())

	p, _, err := Profile(context.Background(), bytesOpener(out.Bytes()), &Options{Weights: []string{"soft_page_fault"}})
	require.NoError(t, err)
	require.Len(t, p.Threads, 2)
	for _, th := range p.Threads {
		sum := 0.0
		for v := range p.Values(th, 0) {
			sum += v.Amount
			assert.Zero(t, v.Sample.Stack)
			assert.Equal(t, profile.Whole, v.Sample.Cut, "there is nothing to repair")
		}
		assert.InDelta(t, 5, sum, 0)
	}
	p, _, err = Profile(context.Background(), bytesOpener(out.Bytes()), &Options{Evidence: true})
	require.NoError(t, err)
	for _, th := range p.Threads {
		assert.Zero(t, th.Samples.Len(), "not asked for")
	}
}

// A sample of collect-linux stands for the interval that the trace tells: threads that are idle in
// between do not make it longer.
func TestIdleMachine(t *testing.T) {
	for told, want := range map[string]int64{"1000000": 39e6, "": 39 * 50e6} {
		h := &nettrace.Header{Version: 6, SyncQPC: 1000, Frequency: 1e9, PointerSize: 8, SyncTime: time.Unix(1e9, 0)}
		if told != "" {
			h.KeyValues = []nettrace.KeyValue{{Key: "ExpectedCPUSamplingRate", Value: told}}
		}
		var out bytes.Buffer
		w, err := nettrace.NewWriter(&out, h)
		require.NoError(t, err)
		cpu := &nettrace.Metadata{ID: 1, Provider: "Universal.Events", Name: "cpu", EventID: 1}
		for i := range 39 {
			require.NoError(t, w.Write(&nettrace.Event{
				Time: 1000 + int64(i)*50e6, Metadata: cpu, Payload: []byte{1},
				Thread: &nettrace.Thread{ProcessID: 5, ID: 7}, Stack: nettrace.NewStack([]uint64{0x1000}),
			}))
		}
		require.NoError(t, w.Close())
		p, _, err := Profile(context.Background(), bytesOpener(out.Bytes()), &Options{})
		require.NoError(t, err)
		require.Len(t, p.Threads, 1)
		sum := int64(0)
		for st := range p.Timing().Stretches(p.Threads[0]) {
			sum += st.Nanos()
		}
		assert.Equal(t, want, sum, told)
	}
}
