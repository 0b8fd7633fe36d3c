package events

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/runtimeevents"
)

// largest remembers the largest of what was written at once.
type largest int

func (l *largest) Write(p []byte) (int, error) {
	*l = max(*l, largest(len(p)))
	return len(p), nil
}

// TestCounterGrowth: instruments that have all in common, as of a library that makes a Meter for
// each connection, and tags that have the same name or none.
func TestCounterGrowth(t *testing.T) {
	gauge := func(tags string, instrument int) *Point {
		return &Point{Name: "x", Tags: tags, Value: 1, Total: nan, Count: -1, Min: nan, Max: nan, Sum: nan, Instrument: instrument}
	}
	for _, format := range CounterFormats {
		t.Run(format, func(t *testing.T) {
			write := func(n int, point func(i int) *Point) {
				w := NewCounterWriter(format, io.Discard, 0, 0)
				for i := range n {
					require.NoError(t, w.Add(point(i)))
				}
				require.NoError(t, w.Close(&CounterResult{}))
			}
			tracetest.Growth(t, 100, func(n int) { write(n, func(i int) *Point { return gauge("", i) }) })
			tracetest.Growth(t, 100, func(n int) { write(1, func(int) *Point { return gauge(strings.Repeat("a=1,", n), 0) }) })
		})
	}
	tracetest.Growth(t, 20_000, func(n int) { SplitTags("a=1" + strings.Repeat(",", n)) })
}

// Labels of one name stay apart.
func TestEqualLabels(t *testing.T) {
	s := &series{Point: Point{Tags: "a=1,a=2,a_2=3,a=4,a=5,le=6,le=7"}}
	assert.Equal(t, `a="1",a_="2",a_2="3",a_3="4",a_4="5",le_="6",le_2="7"`, labelsOf(s, false, 1))
}

// TestWideIsNotHeld: each of many counters has one value, so that there are a million cells.
func TestWideIsNotHeld(t *testing.T) {
	var l largest
	w := NewCounterWriter("wide", &l, 0, 0)
	for i := range 1000 {
		require.NoError(t, w.Add(&Point{Ns: int64(i) * 1e9, Instrument: i, Value: 1, Total: nan, Count: -1}))
	}
	require.NoError(t, w.Close(&CounterResult{}))
	assert.Less(t, int(l), 2*jsonAtOnce)
}

// TestProcessGrowth: traces of many processes.
func TestProcessGrowth(t *testing.T) {
	tracetest.Growth(t, 20_000, func(n int) {
		l := newLocks(nil)
		for i := range n {
			l.countOf(i).waits++
		}
		l.pids()
	})
	tracetest.Growth(t, 1000, func(n int) {
		var j runtimeevents.JIT
		for i := range n {
			j.Compilations = append(j.Compilations, &runtimeevents.Compilation{Process: i})
			for range 20 {
				j.Batches = append(j.Batches, runtimeevents.Batch{Process: i})
			}
		}
		JIT(&j, &Context{Many: true, Process: func(int) string { return "" }})
	})
}
