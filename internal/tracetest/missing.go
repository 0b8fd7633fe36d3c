package tracetest

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// A CutSample is a sample whose stack was cut, by its thread and its time in units of 100 ns.
type CutSample struct{ TID, Ticks int64 }

// CutSampleAt is the sample of a thread at a time, ns.
func CutSampleAt(tid, ns int64) CutSample {
	return CutSample{tid, int64(math.Round(float64(ns) / 100))}
}

// Missing reads a file of the corpus that tells what perf saw of stacks which a recorder cut: the
// full names of the methods that are missing of each, outermost first. Where the file is not at
// hand the test is skipped.
func Missing(t testing.TB, path string) map[CutSample][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("no corpus beside the project: %v", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	names := map[int]string{}
	out := map[CutSample][]string{}
	for d := json.NewDecoder(z); ; {
		var e struct {
			Frame   *int
			Name    string
			TID     *int64
			TS      float64 // ms
			Missing []int
		}
		err := d.Decode(&e)
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		switch {
		case e.Frame != nil:
			names[*e.Frame] = e.Name
		case e.TID != nil:
			m := make([]string, len(e.Missing))
			for k, f := range e.Missing {
				m[k] = names[f]
			}
			out[CutSample{*e.TID, int64(math.Round(e.TS * 1e4))}] = m
		}
	}
}
