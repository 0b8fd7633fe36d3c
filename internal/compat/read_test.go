package compat

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

// What is made of a trace is the reference's own file, byte for byte behind the header: then
// every sample, time and synthetic frame is the reference's.
func TestEqualsReference(t *testing.T) {
	for _, name := range []string{"chain", "shared", "recursion", "async", "library", "noise", "csc", "web", "http-cpu", "requests-short", "await-full"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "chain" && name != "http-cpu" && name != "requests-short" {
				t.Skip("large")
			}
			path := tracetest.Corpus(t, "dotnet10", name+".nettrace")
			tr, _, err := Read(context.Background(), func() (io.ReadCloser, error) { return os.Open(path) }, nil)
			require.NoError(t, err)
			formats := 0
			for format, behind := range map[string]string{"chromium": `"traceEvents"`, "speedscope": `"shared"`} {
				body := func(b []byte) string { return string(b[max(0, bytes.Index(b, []byte(behind))):]) }
				want, known := referenceOf(t, name, format)
				if !known {
					continue
				}
				formats++
				var out bytes.Buffer
				require.NoError(t, Writers[format](&out, tr, Options{}))
				sameText(t, body(want), body(out.Bytes()))
			}
			assert.NotZero(t, formats)
		})
	}
}

// referenceOf returns what the reference made of a trace, if that is in the corpus.
func referenceOf(t testing.TB, name, format string) ([]byte, bool) {
	file := name + "." + format + ".json.zst"
	if _, err := os.Stat(filepath.Join("..", "..", "..", "shared", "corpus", "dotnet10", "reference", file)); err != nil {
		return nil, false
	}
	return reference(t, file), true
}

// The activities around a sample are gone through once, not for every sample.
func TestChainIsKept(t *testing.T) {
	b := newBuilder()
	th := b.thread(&profile.Thread{Process: &profile.Process{PID: 1}, TID: 1})
	var chain []*activity
	for i := range 5 {
		a := &activity{frame: b.frame(strconv.Itoa(i)), stopped: i == 2 || i == 3}
		if i > 0 {
			a.creator, a.above = chain[i-1], chain[i-1]
		}
		chain = append(chain, a)
	}
	frames := func(s profile.StackID) (list []string) {
		for _, f := range b.table.AppendFrames(nil, s) {
			list = append(list, b.table.MethodOf(f).Name)
		}
		return list
	}
	want := []string{"Process", "(Activities)", "0", "1", "2", "3", "4", "Threads", "Thread"}
	assert.Equal(t, want, frames(b.base(th, chain[4].running())))
	chain[0].frame = chain[1].frame // not to be looked at
	assert.Equal(t, want, frames(b.base(th, chain[4].running())))

	assert.Same(t, chain[1], chain[3].running())
	chain[2].stopped = false // not to be looked at
	assert.Same(t, chain[1], chain[3].running())
}

// Whatever the file holds, reading it ends, and what was read can be written.
func FuzzRead(f *testing.F) {
	const testdata = "../../testdata/nettrace/"
	seed, err := os.ReadFile(testdata + "executioncheckpoints.nettrace")
	require.NoError(f, err)
	f.Add(seed)
	for _, name := range []string{"probe10", "runtime-locks"} {
		packed, err := os.Open(testdata + name + ".nettrace.zst")
		require.NoError(f, err)
		z, err := zstd.NewReader(packed)
		require.NoError(f, err)
		seed, err := io.ReadAll(io.LimitReader(z, 64<<10))
		require.NoError(f, err)
		f.Add(seed)
		z.Close()
		packed.Close()
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, _, err := Read(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, nil)
		if err != nil {
			return
		}
		for _, write := range Writers {
			require.NoError(t, write(io.Discard, tr, Options{}))
		}
	})
}
