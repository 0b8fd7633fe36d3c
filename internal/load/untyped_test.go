package load

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest/recorded"
	"github.com/tracefix/tracefix/profile"
)

// TestUntyped: where the runtime did not tell managed code from the rest, the stacks nearly do.
// What is held is what the same recording says with its types.
func TestUntyped(t *testing.T) {
	const path = "../../testdata/chain.nettrace.zst"
	told, _, err := Profile(t.Context(), func() (io.ReadCloser, error) { return unpack(path) }, &Options{})
	require.NoError(t, err)
	assert.False(t, told.Meta.Untyped)
	assert.NotContains(t, told.Meta.Notes, profile.UntypedNote)
	src, err := unpack(path)
	require.NoError(t, err)
	data := recorded.External(t, src)
	require.NoError(t, src.Close())
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	untold, _, err := Profile(t.Context(), open, &Options{})
	require.NoError(t, err)
	assert.True(t, untold.Meta.Untyped)
	assert.Contains(t, untold.Meta.Notes, profile.UntypedNote)

	was, is := told.Timing(), untold.Timing()
	require.Equal(t, len(told.Threads), len(untold.Threads))
	var all, same, managed int
	for i, th := range told.Threads {
		b := is.Cursor(untold.Threads[i])
		var x, y profile.Stretch
		for a := was.Cursor(th); a.Read(&x); {
			require.True(t, b.Read(&y))
			require.Equal(t, [2]int64{x.Start, x.End}, [2]int64{y.Start, y.End})
			all++
			if x.Type == y.Type {
				same++
			}
			if x.Type == profile.SampleManaged {
				managed++
			}
		}
		for _, s := range untold.Threads[i].Samples.All() {
			require.NotEqual(t, profile.SampleManaged, s.Type, "what was recorded stays")
		}
	}
	assert.Greater(t, managed, 500)
	assert.Greater(t, float64(same)/float64(all), 0.98, "%d of %d", same, all)

	// A selection by what ran goes by the same types.
	untold.Select(profile.Selection{CPUOnly: true})
	left := 0
	for _, th := range untold.Threads {
		left += th.Samples.Written()
	}
	assert.InDelta(t, managed, left, 0.05*float64(managed))
}
