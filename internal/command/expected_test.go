package command

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
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
	assert.Contains(t, announcement("x.json", "chromium", 1e9, 90), "x.json will take about 1000 MB as chromium")
}

// Stacks that are each one frame deeper than the last, as spans are that begin and never end, make
// an output that grows with the square of the input where a format holds each from root to leaf:
// that is told before it fills a disk.
func TestExpectedOfDeepStacks(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable()}
	process := &profile.Process{PID: 1}
	p.Processes = []*profile.Process{process}
	th := &profile.Thread{Process: process, TID: 1}
	p.Threads = []*profile.Thread{th}
	id := profile.StackID(0)
	for i := range 3000 {
		m := p.Table.AddMethod(profile.Method{Module: "App", Name: fmt.Sprintf("F%d()", i%50)})
		id = p.Table.Push(id, p.Table.AddFrame(profile.Frame{Method: m}))
		th.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Dur: 1e6, Stack: id, Type: profile.SampleCPU})
	}
	for format := range perWholeFrame {
		var b bytes.Buffer
		require.NoError(t, tracefix.Write(&b, p, format, nil))
		assert.Greater(t, 2*expected(p, format), int64(b.Len()), format)
		assert.Less(t, expected(p, format), int64(2*b.Len()), format)
	}
	for _, format := range []string{"firefox", "svg", "html"} {
		var b bytes.Buffer
		require.NoError(t, tracefix.Write(&b, p, format, nil))
		assert.Less(t, b.Len(), 2_000_000, "%s grows with what changes", format)
	}
	assert.Contains(t, announcement("x.ndjson", "ndjson", 531e9, 300_000), "x.ndjson will take about 531 GB as ndjson (before compression); each stack stands there from root to leaf, and the deepest has 300,000 frames")
}
