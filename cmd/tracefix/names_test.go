package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

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
	for _, end := range []string{".json", ".md", ".xml", ".html"} {
		b, err := os.ReadFile(filepath.Join(dir, "all\xff", "batch-report"+end))
		require.NoError(t, err)
		assert.True(t, utf8.Valid(b), "a report is text: %s", end)
	}
}

// The names of an archive's members are its own: they tell neither a terminal nor a CI job
// what to do.
func TestNamesOfMembersAreOneLine(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "a.zip"))
	require.NoError(t, err)
	z := zip.NewWriter(f)
	_, err = z.Create("a\n::error::b\x1b[2J\u009b.nettrace") // empty: a failure to tell
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	code, _, words := tracefix(t, "batch", f.Name(), "-o", filepath.Join(dir, "out"))
	require.Equal(t, exitFailed, code)
	assert.NotContains(t, words, "\n::error")
	assert.Contains(t, words, "a ::error::b�[2J�.nettrace: ")
	code, _, words = tracefix(t, "batch", f.Name(), "-o", filepath.Join(dir, "out2"), "--fail-on", "failed,damaged,traces>=1")
	require.Equal(t, exitFailed, code)
	assert.NotContains(t, words, "\n::error")
	assert.Regexp(t, "gate failed: found 1 in [^\n]*a.zip/a ::error::b[^\n]*.nettrace; gate traces>=1: found 1\n", words, "all gates that failed, and no other")
}
