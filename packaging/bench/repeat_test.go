package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// TestRepeated makes a recording three times as long as a trace: it is whole, in order of time,
// and has the names of methods once and as many of the rest three times.
func TestRepeated(t *testing.T) {
	const trace = "../../testdata/chain.nettrace.zst"
	for vary := range variants {
		t.Run(vary, func(t *testing.T) {
			var once, thrice bytes.Buffer
			require.NoError(t, repeated(&once, trace, vary, 1))
			require.NoError(t, repeated(&thrice, trace, vary, int64(once.Len())*2))
			a, b := count(t, &once), count(t, &thrice)
			assert.Equal(t, a.names, b.names)
			assert.Greater(t, b.others, a.others)
			assert.Zero(t, b.others%a.others)
			if vary == "threads" {
				assert.Greater(t, len(b.threads), 2*len(a.threads))
			} else {
				assert.Equal(t, a.threads, b.threads)
			}
			if vary == "stacks" {
				assert.Greater(t, len(b.stacks), len(a.stacks)*3/2)
			}
		})
	}
	assert.Error(t, repeated(io.Discard, trace, "colours", 1))
}

// A counted recording.
type counted struct {
	names, others   int
	threads, stacks map[uint64]bool
}

func count(t *testing.T, in io.Reader) counted {
	r, err := nettrace.NewReader(in, &nettrace.Options{Warn: func(e *nettrace.FormatError) { t.Error(e) }})
	require.NoError(t, err)
	c := counted{threads: map[uint64]bool{}, stacks: map[uint64]bool{}}
	var ev nettrace.Event
	last := int64(0)
	for {
		err := r.Read(&ev)
		if err == io.EOF {
			return c
		}
		require.NoError(t, err)
		assert.False(t, ev.Late)
		assert.GreaterOrEqual(t, ev.Time, last)
		last = ev.Time
		if ev.Metadata.Source == nettrace.SourceRundown {
			c.names++
			continue
		}
		c.others++
		c.threads[ev.ThreadID] = true
		c.stacks[ev.StackKey] = true
	}
}
