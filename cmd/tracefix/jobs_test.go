package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/command"
)

// TestJobs does every row of the table in each of its formats with 1, 2 and 3 processors, of whole
// inputs and of damaged ones: the output, what is said and the exit code are the same, and no
// goroutine is left. -short does each row in its first format only.
func TestJobs(t *testing.T) {
	tracefix(t, "info", fixtures[""]) // starts what looks out for signals, which stays
	for _, row := range command.Table {
		in, ok := fixtures[row.Name]
		if !ok {
			in = fixtures[""]
		}
		outputs := row.Outputs
		if testing.Short() {
			outputs = outputs[:1]
		}
		for _, format := range outputs {
			sameForJobs(t, row.Name, in, "-o", "OUT"+format.Extensions[0])
		}
		if row.Name != "ipc" {
			sameForJobs(t, row.Name, damagedCopy(t, in), "-o", "OUT"+row.Outputs[0].Extensions[0])
		}
	}
	chromium := filepath.Join("..", "..", "testdata", "chain.chromium.json.zst")
	sameForJobs(t, "repair", chromium, "-o", "OUT.json.gz")
	sameForJobs(t, "repair", damagedCopy(t, chromium), "-o", "OUT.json.zst")
	sameForJobs(t, "http", fixtures["http"], "--explain", "-o", "OUT.ndjson")
	sameForJobs(t, "events", damagedCopy(t, fixtures["http"]), "--limit", "300", "-o", "OUT.ndjson")
	sameForJobs(t, "events", fixtures["http"], "--limit", "300", "--stacks", "-o", "OUT.txt.gz")
}

// damagedCopy returns a copy, unpacked, with zeros in its middle and without its end.
func damagedCopy(t *testing.T, name string) string {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	clear(b[len(b)/2 : len(b)/2+100])
	copied := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(name), ".zst"))
	require.NoError(t, os.WriteFile(copied, b[:len(b)*9/10], 0o666))
	return copied
}

// sameForJobs runs a command, in whose arguments OUT stands for a file, with several processors.
func sameForJobs(t *testing.T, args ...string) {
	t.Run(strings.Join(args, " "), func(t *testing.T) {
		type outcome struct {
			code         int
			words, bytes string
		}
		var want outcome
		for _, jobs := range []string{"1", "2", "3"} {
			before := runtime.NumGoroutine()
			dir := t.TempDir()
			run := append([]string(nil), args...)
			last := &run[len(run)-1]
			*last = strings.Replace(*last, "OUT", filepath.Join(dir, "out"), 1)
			code, printed, words := tracefix(t, append(run, "--jobs", jobs)...)
			b, err := os.ReadFile(*last)
			if code == exitOK || code == exitDamaged {
				require.NoError(t, err)
			}
			got := outcome{code, strings.ReplaceAll(printed+words, dir, ""), string(b)}
			if jobs == "1" {
				want = got
			}
			assert.Equal(t, want.code, got.code, "--jobs %s", jobs)
			assert.Equal(t, want.words, got.words, "--jobs %s", jobs)
			assert.True(t, want.bytes == got.bytes, "--jobs %s: %d bytes, with one %d", jobs, len(got.bytes), len(want.bytes))
			for i := 0; i < 2000 && runtime.NumGoroutine() > before; i++ {
				time.Sleep(time.Millisecond)
			}
			assert.LessOrEqual(t, runtime.NumGoroutine(), before, "goroutines are left")
		}
	})
}
