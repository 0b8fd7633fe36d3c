package spans

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// TestTwice holds that a block of events which comes a second time, cut exactly between events, is told
// with its place and adds no samples.
func TestTwice(t *testing.T) {
	var events []string
	add := func(ph, name string, ts int) {
		events = append(events, fmt.Sprintf(`{"name":"%s","cat":"sampleEvent","ph":"%s","ts":%d.5,"pid":1,"tid":7}`, name, ph, ts))
	}
	add("B", "Process64 Process(1) (1)", 0)
	add("B", "Threads", 0)
	add("B", "Thread (7)", 0)
	for i := range 40 {
		add("B", "A!Main()", 1000*i)
		add("B", "A!Loop()", 1000*i)
		add("B", "A!Loop()", 1000*i) // a recursion: events that are alike
		add("B", fmt.Sprintf("A!Leaf%d()", i%3), 1000*i)
		add("B", "CPU_TIME", 1000*i)
		add("E", "CPU_TIME", 1000*i+900)
		add("E", fmt.Sprintf("A!Leaf%d()", i%3), 1000*i+900)
		add("E", "A!Loop()", 1000*i+900)
		add("E", "A!Loop()", 1000*i+900)
		add("E", "A!Main()", 1000*i+900)
	}
	read := func(events []string) (*Trace, []*chromium.FormatError) {
		var told []*chromium.FormatError
		text := `{"traceEvents":[` + strings.Join(events, ",\n") + `]}`
		tr, err := Read(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, &Options{Warn: func(e *chromium.FormatError, _ int64) { told = append(told, e) }})
		require.NoError(t, err)
		return tr, told
	}
	whole, told := read(events)
	require.Empty(t, told)
	for _, cut := range [][2]int{{3, 103}, {50, 150}, {61, 97}, {124, 301}} {
		block := events[cut[0]:cut[1]]
		doubled := append(append(append([]string{}, events[:cut[1]]...), block...), events[cut[1]:]...)
		got, told := read(doubled)
		require.Len(t, told, 1, "%v", cut)
		assert.ErrorContains(t, told[0], fmt.Sprintf("%d events", len(block)))
		at := len(`{"traceEvents":[`) + len(strings.Join(events[:cut[1]], ",\n")) + 2
		assert.EqualValues(t, at, told[0].Offset)
		assert.Equal(t, whole.Facts.Samples, got.Facts.Samples, "%v", cut)
	}
}
