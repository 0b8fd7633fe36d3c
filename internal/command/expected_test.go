package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
)

// What is announced is what is written, but for a factor of two at most.
func TestExpected(t *testing.T) {
	p, err := tracefix.Read(t.Context(), "../../testdata/chain.nettrace.zst", &tracefix.ReadOptions{Evidence: true})
	require.NoError(t, err)
	tracefix.Repair(p, nil)
	p.DropEvidence()
	for _, format := range []string{"chromium", "speedscope"} {
		var b bytes.Buffer
		require.NoError(t, tracefix.Write(&b, p, format, nil))
		assert.Greater(t, 2*expected(p, format), int64(b.Len()), format)
		assert.Less(t, expected(p, format), int64(2*b.Len()), format)
	}
	assert.Zero(t, expected(p, "pprof"), "is never large")
	assert.True(t, large(1e9, 55e6))
	assert.False(t, large(1e9, 900e6))
	assert.False(t, large(100e6, 1e6))
	assert.Contains(t, announcement("x.json", "chromium", 1e9), "x.json will take about 1000 MB as chromium")
}
