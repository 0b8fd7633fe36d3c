package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBlockRefuses holds that the counters of a .NET Framework process become no form that they do not
// fit, and that filters hold for them.
func TestBlockRefuses(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "counters.bin")
	const size = 384 // of a 64-bit process, without the header
	require.NoError(t, os.WriteFile(in, binary.LittleEndian.AppendUint16(nil, size), 0o666))
	require.NoError(t, os.Truncate(in, size))
	for _, format := range []string{"openmetrics", "otlp", "wide", "dotnet-counters"} {
		out := filepath.Join(dir, "x."+format)
		code, _, words := tracefix(t, "counters", in, "--format", format, "-o", out)
		assert.Equal(t, exitUsage, code, words)
		assert.Contains(t, words, "a .NET Framework performance-counter block cannot become "+format+"; --format can be csv, table, json, ndjson")
		assert.NoFileExists(t, out)
	}
	code, _, words := tracefix(t, "counters", in, "-o", filepath.Join(dir, "x.prom"))
	assert.Equal(t, exitUsage, code, words)
	for _, filter := range []string{"--from=1s", "--to=1s", "--process=1"} {
		code, _, words = tracefix(t, "counters", in, filter)
		assert.Equal(t, exitUsage, code, words)
	}
	for _, c := range []struct {
		args  string
		lines int
		words string
	}{
		{"--provider gc --name Gen*", 6, "; 6 of 68 counters shown"},
		{"--name *jit*", 6, "; 6 of 68 counters shown"},
		{"--provider GC -n 2", 2, "; 2 of 68 counters shown"},
		{"-n 100", 68, "1 performance-counter block\n"},
		{"--provider nothing", 0, "the filters drop all; its sections of counters are Context, "},
		{"--name nothing", 0, "the filters drop all; "},
	} {
		code, got, words := tracefix(t, append([]string{"counters", in, "--format", "ndjson"}, strings.Fields(c.args)...)...)
		assert.Equal(t, exitOK, code, words)
		assert.Equal(t, c.lines, strings.Count(got, "\n"), c.args)
		assert.Contains(t, words, c.words, c.args)
	}
}
