package input

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSpoolLimit: an input without an end does not fill the disk.
func TestSpoolLimit(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(spoolEnv, "20M")
	_, err := Open(t.Context(), "-", &Options{Stdin: zeros{}, TempDir: dir})
	require.ErrorIs(t, err, ErrSpool)
	assert.ErrorContains(t, err, "TRACEFIX_MAX_SPOOL=SIZE")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	t.Setenv(spoolEnv, "lots")
	_, err = Open(t.Context(), "-", &Options{Stdin: zeros{}, TempDir: dir})
	assert.ErrorContains(t, err, "expected a size")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "20M": 20e6, "3gb": 3e9, " 2T ": 2e12, "": 0, "M": 0, "-1": 0, "9999999T": 0, "1X": 0, "1MM": 0} {
		n, err := parseSize(text)
		assert.Equal(t, want, n, text)
		assert.Equal(t, want == 0, err != nil, text)
	}
}
