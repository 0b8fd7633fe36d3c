package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tracefix runs the command as a user does.
func tracefix(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, streams{strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

func TestTopCommand(t *testing.T) {
	trace := filepath.Join("..", "..", "testdata", "chain.chromium.json.zst")
	require.FileExists(t, trace)

	code, text, words := tracefix(t, "top", "-n", "3", trace)
	require.Equal(t, 0, code, words)
	assert.Contains(t, text, "MANAGED SELF")
	assert.Contains(t, text, "Lab.Chain.Walk.Mix(int64)")
	assert.Contains(t, text, "more; --limit 0 shows all")
	assert.Contains(t, words, "samples of")

	code, text, _ = tracefix(t, "top", "--method", "*Chain.Walk.Spin", trace)
	require.Equal(t, 0, code)
	assert.Contains(t, text, "CALLED BY")
	code, _, words = tracefix(t, "top", "--method", "Chain.Walk.Spn", trace)
	assert.Equal(t, 1, code)
	assert.Contains(t, words, "near that name are Lab!Lab.Chain.Walk.Spin")

	dir := t.TempDir()
	file := filepath.Join(dir, "top.json")
	code, text, words = tracefix(t, "top", "--by-thread", "--repair", "--raw", "-o", file, trace)
	require.Equal(t, 0, code, words)
	assert.Empty(t, text)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var top struct {
		Samples int
		Groups  []struct {
			TID  int64
			Rows []struct {
				Method string
				Total  float64 `json:"cpu_total_ms"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(b, &top))
	assert.Greater(t, top.Samples, 1000)
	assert.Greater(t, len(top.Groups), 1)
	assert.NotEmpty(t, top.Groups[0].Rows)

	code, _, words = tracefix(t, "top", "-o", file, trace)
	assert.Equal(t, 2, code)
	assert.Contains(t, words, "--force")

	code, text, _ = tracefix(t, "top", "--format", "csv", "-n", "0", "-q", trace)
	require.Equal(t, 0, code)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	assert.Greater(t, len(rows), 50)

	for _, bad := range [][]string{{"--format", "xml"}, {"-o", filepath.Join(dir, "x.pdf")}, {"-n", "-1"}} {
		code, _, words = tracefix(t, append([]string{"top", trace}, bad...)...)
		assert.Equal(t, 2, code, words)
	}
	code, _, words = tracefix(t, "top", filepath.Join(dir, "none.nettrace"))
	assert.Equal(t, 1, code)
	assert.Contains(t, words, "none.nettrace")
}
