package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
)

// TestHeapOf: commands that read no trace or but small ones, and batches, which have a budget of
// their own, are given no memory at once.
func TestHeapOf(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, size))
		return path
	}
	tiny, large := file("tiny.nettrace", 100), file("large.json", smallFile+1)
	explain := max(leastKept, roomToExplain(batch.DefaultMemory()))
	for _, c := range []struct {
		args []string
		want int64
	}{
		{nil, 0},
		{[]string{"--version"}, 0},
		{[]string{"version"}, 0},
		{[]string{"help", "info"}, 0},
		{[]string{"info", "--help"}, 0},
		{[]string{"-q", "batch", "dir", "-o", "out"}, 0},
		{[]string{"complete", "info"}, 0},
		{[]string{"info", "a.nettrace"}, leastKept},
		{[]string{"-q", "top", "-"}, leastKept},
		{[]string{"a.nettrace"}, leastKept},
		{[]string{"http", "a.nettrace", "--explain"}, explain},
		{[]string{"http", tiny, "--explain"}, 0},
		{[]string{"convert", tiny, "-o", filepath.Join(dir, "new.json")}, 0},
		{[]string{"convert", large, "-o", tiny}, leastKept},
		{[]string{"compare", tiny, large}, leastKept},
		{[]string{"convert", dir}, leastKept},
	} {
		assert.Equal(t, c.want, heapOf(c.args), c.args)
	}
}

// TestIntroducedIntoItself: a shell that adds to the trace has opened it already.
func TestIntroducedIntoItself(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "chain.nettrace.zst"))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "a.nettrace.zst")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	assert.ErrorContains(t, introduce(t.Context(), f, name), "is the input as well")
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.True(t, string(data) == string(after))
}
