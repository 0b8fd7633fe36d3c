package info

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
)

// Facts and advice for Chromium files that are not dotnet-trace's, or damaged.
func TestChromium(t *testing.T) {
	of := func(content string) *Facts {
		path := filepath.Join(t.TempDir(), "a b.json")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		in, err := input.Open(t.Context(), path, nil)
		require.NoError(t, err)
		f, err := Of(context.Background(), in, nil)
		require.NoError(t, err)
		return f
	}
	f := of("\xef\xbb\xbf" + `[{"ph":"B","name":"a","ts":1000,"pid":1,"tid":"x"},{"ph":"X","name":"b","ts":2500,"dur":500,"pid":1,"tid":2},{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"io"}}]`)
	assert.Equal(t, &Spans{Form: "array", ByteOrderMark: true, Phases: map[string]int64{"B": 1, "X": 1, "M": 1}, Unmatched: 1}, f.Spans)
	assert.Equal(t, 2.0, f.DurationMs)
	assert.Equal(t, int64(3), f.Events)
	require.Len(t, f.Threads, 2)
	assert.Equal(t, Thread{PID: 1, TID: 2, Name: "io", Events: 2, FirstMs: 1.5, LastMs: 2}, *f.Threads[0])
	assert.Equal(t, Thread{PID: 1, ID: `1/"x"`, Events: 1}, *f.Threads[1])
	assert.Equal(t, None, verdict(f, "CPU stacks").State)
	assert.Equal(t, Partly, verdict(f, "nesting").State)

	// Processes that have a name for a number are told apart by it, and what is no span is not asked of dotnet-trace.
	f = of(`[{"ph":"C","name":"a","ts":1,"pid":"web","tid":1,"args":{"v":1}},{"ph":"C","name":"a","ts":1,"pid":"web","tid":1,"args":{"v":1}},{"ph":"C","name":"a","ts":1,"pid":"db","tid":1,"args":{"v":1}}]`)
	require.Len(t, f.Processes, 2)
	assert.Equal(t, [2]string{"web", "db"}, [2]string{f.Processes[0].Name, f.Processes[1].Name})
	assert.Empty(t, verdict(f, "CPU stacks").Do)

	f = of(`{"traceEvents":[{"ph":"i","name":"a","ts":1},{"ph":"i"`)
	assert.Equal(t, 1, f.Damages)
	assert.Equal(t, int64(45), f.Damage[0].Offset)
	assert.Equal(t, Partly, verdict(f, "file").State)
}

func TestChromiumGolden(t *testing.T) {
	const name = "chain.chromium.json.zst"
	in, err := input.Open(t.Context(), filepath.Join("..", "..", "testdata", name), nil)
	require.NoError(t, err)
	f, err := Of(context.Background(), in, nil)
	require.NoError(t, err)
	f.File, f.Verdicts[0].Do = name, "tracefix repair "+name
	var text, js bytes.Buffer
	require.NoError(t, f.WriteText(&text, nil))
	golden(t, name+".txt", text.String())
	require.NoError(t, f.WriteJSON(&js))
	golden(t, name+".json", js.String())
}
