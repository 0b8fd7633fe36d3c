package requests

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// Activities that are nested, however deep, are explained in time that grows as their number: what a thread does is
// not told to each of those around it, one by one.
func TestExplainNested(t *testing.T) {
	tracetest.Growth(t, 1500, func(n int) {
		name := filepath.Join(t.TempDir(), "nested.nettrace")
		f, err := os.Create(name)
		require.NoError(t, err)
		w, err := nettrace.NewWriter(f, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1, Processors: 2})
		require.NoError(t, err)
		start := &nettrace.Metadata{ID: 1, EventID: 1, Provider: "Lab", Name: "WorkStart", Opcode: 1}
		stop := &nettrace.Metadata{ID: 2, EventID: 2, Provider: "Lab", Name: "WorkStop", Opcode: 2}
		at := int64(0)
		put := func(m *nettrace.Metadata, id, related uint64) {
			at += 100_000
			e := &nettrace.Event{Metadata: m, Time: at, ThreadID: 7, CaptureThreadID: 7, Sorted: true}
			binary.LittleEndian.PutUint64(e.ActivityID[:], id*0x9e3779b97f4a7c15)
			binary.LittleEndian.PutUint64(e.RelatedActivityID[:], related*0x9e3779b97f4a7c15)
			require.NoError(t, w.Write(e))
		}
		for i := range uint64(n) {
			put(start, i+1, i)
		}
		for i := uint64(n); i > 0; i-- {
			put(stop, i, 0)
		}
		require.NoError(t, w.Close())
		require.NoError(t, f.Close())

		in, err := input.Open(context.Background(), name, nil)
		require.NoError(t, err)
		defer in.Close()
		rows, _, err := Activities(context.Background(), in, nil)
		require.NoError(t, err)
		require.Equal(t, n, rows.Len())
		rec := NewRecorder(0)
		p, _, err := load.Profile(context.Background(), in.Reader, &load.Options{NoSamples: true, Take: rec.Take}, rec)
		require.NoError(t, err)
		out, err := ExplainActivities(rows, nil, p.Table, rec)
		require.NoError(t, err)
		for _, i := range []int{0, n / 2, n - 1} {
			require.EqualValues(t, 100_000*(2*(n-i)-1), out.Of(i).CPUTotal, "activity %d", i)
			require.Len(t, out.Of(i).Children, min(maxChildren, n-1-i))
		}
	})
}
