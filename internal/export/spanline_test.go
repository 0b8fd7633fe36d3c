package export

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// longProfile has two threads with so many changes of the stack that their spans are many batches.
func longProfile() *profile.Profile {
	p := &profile.Profile{Table: profile.NewTable()}
	var stacks []profile.StackID
	for i := range 40 {
		id := profile.StackID(0)
		for depth := range 1 + i {
			m := p.Table.AddMethod(profile.Method{Module: "App", Name: string(rune('a'+(i*7+depth)%26)) + "()"})
			id = p.Table.Push(id, p.Table.AddFrame(profile.Frame{Method: m}))
		}
		stacks = append(stacks, id)
	}
	process := &profile.Process{PID: 1}
	p.Processes = append(p.Processes, process)
	for tid := range int64(2) {
		t := &profile.Thread{Process: process, TID: tid + 1}
		for i := range 4000 {
			t.Samples.Append(profile.Sample{Time: int64(i) * 1e6, Stack: stacks[(i*13+int(tid))%len(stacks)]})
		}
		p.Threads = append(p.Threads, t)
	}
	return p
}

// aFew takes some bytes and fails then.
type aFew struct {
	left int
	err  error
}

func (w *aFew) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// TestSpanLine writes many batches of spans with several processors: the bytes are those of one,
// and what ends the output ends the writer.
func TestSpanLine(t *testing.T) {
	p := longProfile()
	full := errors.New("full")
	for name, write := range map[string]func(io.Writer, *profile.Profile, Options) error{"chromium": Chromium, "speedscope": Speedscope} {
		t.Run(name, func(t *testing.T) {
			var want []byte
			for _, n := range []int{1, 2, 5} {
				before := runtime.GOMAXPROCS(n)
				var b bytes.Buffer
				err := write(&b, p, Options{})
				failed := write(&aFew{b.Len() / 2, full}, p, Options{})
				runtime.GOMAXPROCS(before)
				require.NoError(t, err)
				require.Greater(t, b.Len(), 8*bufferSize)
				if n == 1 {
					want = b.Bytes()
				}
				assert.True(t, bytes.Equal(want, b.Bytes()), "%d processors", n)
				assert.ErrorIs(t, failed, full, "%d processors", n)
			}
		})
	}
}
