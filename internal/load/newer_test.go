package load

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// A block of a kind that a later version has added is noted, and no damage.
func TestNewerBlock(t *testing.T) {
	var b bytes.Buffer
	w, err := nettrace.NewWriter(&b, &nettrace.Header{Version: 6, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	require.NoError(t, w.Write(&nettrace.Event{Metadata: &nettrace.Metadata{Provider: "P"}, Time: 1}))
	require.NoError(t, w.Close())
	end := b.Len() - 4
	data := append(bytes.Clone(b.Bytes()[:end]), 3, 0, 0, 99, 'n', 'e', 'w', 0, 0, 0, 0)
	p, info, err := Profile(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		&Options{Warn: func(e *nettrace.FormatError) { t.Error(e) }})
	require.NoError(t, err)
	assert.EqualValues(t, end, info.Stats.NewerOffset)
	assert.Contains(t, p.Meta.Notes, NewerNote(info.Stats))
}
