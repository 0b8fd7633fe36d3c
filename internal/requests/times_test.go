package requests

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/nettrace"
)

// Times of a damaged file can lie further apart than 64 bits of nanoseconds tell.
func TestDamagedTimes(t *testing.T) {
	var file bytes.Buffer
	w, err := nettrace.NewWriter(&file, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	start := &nettrace.Metadata{Provider: httpphases.ProviderHTTP, EventID: 1, Name: "RequestStart"}
	stop := &nettrace.Metadata{Provider: httpphases.ProviderHTTP, EventID: 2, Name: "RequestStop"}
	payload := []byte("h\x00t\x00t\x00p\x00\x00\x00h\x00\x00\x00\x50\x00\x00\x00/\x00\x00\x00\x01\x01\x00\x00\x00\x00")
	require.NoError(t, w.Write(&nettrace.Event{Time: -9e18, ThreadID: 1, CaptureThreadID: 1, Metadata: start, Payload: payload}))
	require.NoError(t, w.Write(&nettrace.Event{Time: 9e18, ThreadID: 1, CaptureThreadID: 1, Metadata: stop, Payload: []byte{200, 0, 0, 0}}))
	require.NoError(t, w.Close())
	name := filepath.Join(t.TempDir(), "times.nettrace")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o666))

	var rows []*httpphases.Request
	var scan *Scanner
	_, err = Read(context.Background(), open(t, name), func(r *nettrace.Reader) {
		scan = NewScanner(r, func(q *httpphases.Request) { rows = append(rows, q) }, nil)
	}, func(ev *nettrace.Event) { scan.Event(ev) })
	require.NoError(t, err)
	scan.Finish()
	require.Len(t, rows, 1)
	assert.True(t, rows[0].HasDuration)
	assert.Equal(t, int64(1)<<61, rows[0].Duration)
}

// What is open at the end lasted until the last event of any kind, but for those of the rundown.
func TestOpenUntilTheEnd(t *testing.T) {
	var file bytes.Buffer
	w, err := nettrace.NewWriter(&file, &nettrace.Header{Version: 4, Frequency: 1e9, PointerSize: 8, ProcessID: 1})
	require.NoError(t, err)
	start := &nettrace.Metadata{Provider: httpphases.ProviderHTTP, EventID: 1, Name: "RequestStart"}
	other := &nettrace.Metadata{Provider: "Lab", EventID: 1, Name: "Other"}
	rundown := &nettrace.Metadata{Provider: nettrace.ProviderRuntime + "Rundown", EventID: 146}
	payload := []byte("h\x00t\x00t\x00p\x00\x00\x00h\x00\x00\x00\x50\x00\x00\x00/\x00\x00\x00\x01\x01\x00\x00\x00\x00")
	for _, e := range []nettrace.Event{{Time: 1e6, Metadata: start, Payload: payload}, {Time: 174e6, Metadata: other}, {Time: 250e6, Metadata: rundown, Payload: []byte{0, 0}}} {
		e.ThreadID, e.CaptureThreadID = 1, 1
		require.NoError(t, w.Write(&e))
	}
	require.NoError(t, w.Close())
	name := filepath.Join(t.TempDir(), "open.nettrace")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o666))

	rec := loadFile(t, name)
	require.Len(t, rec.rows, 1)
	assert.Equal(t, httpphases.Incomplete, rec.rows[0].Outcome)
	assert.True(t, rec.rows[0].HasDuration)
	assert.Equal(t, int64(173e6), rec.rows[0].Duration)
	assert.Equal(t, int64(174e6), rec.scan.End())
}
