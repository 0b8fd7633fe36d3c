package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file name is bytes: what is not UTF-8 in it arrives as it was given.
func TestNamesThatAreNotUTF8(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "nettrace", "executioncheckpoints.nettrace"))
	require.NoError(t, err)
	dir := t.TempDir()
	name := filepath.Join(dir, "a\xff\xfe.nettrace")
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Skip(err) // a system that takes UTF-8 only
	}
	out := filepath.Join(dir, "b\xff.nettrace")
	code, _, words := tracefix(t, "repair", name, "-o", out)
	require.Equal(t, 0, code, words)
	assert.FileExists(t, out)
	code, _, words = tracefix(t, "info", name)
	require.Equal(t, 0, code, words)
	code, _, words = tracefix(t, "batch", name, "-o", filepath.Join(dir, "all\xff"))
	require.Equal(t, 0, code, words)
	assert.FileExists(t, filepath.Join(dir, "all\xff", "batch-report.json"))
}
