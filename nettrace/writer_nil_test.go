package nettrace_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// A Writer needs nothing but events: without a header it writes that of a file of today.
func TestWriterWithoutHeader(t *testing.T) {
	var b bytes.Buffer
	w, err := nettrace.NewWriter(&b, nil)
	require.NoError(t, err)
	require.NoError(t, w.Write(&nettrace.Event{Time: 5, Metadata: &nettrace.Metadata{ID: 1, Provider: "Shop", Name: "Order"}}))
	require.NoError(t, w.Close())
	r, err := nettrace.NewReader(&b, nil)
	require.NoError(t, err)
	assert.Equal(t, 4, r.Header().Version)
	n := 0
	for ev, err := range r.All() {
		require.NoError(t, err)
		assert.Equal(t, "Shop", ev.Metadata.Provider)
		n++
	}
	assert.Equal(t, 1, n)
}
