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

// TestAlikeIsNotTwice holds that events of the same times are not taken for a block that stands there twice
// where they differ in what else they hold: flows from one moment to another, a span or a value for each of
// several things.
func TestAlikeIsNotTwice(t *testing.T) {
	told := func(events []string) (told []string) {
		_, err := Read(t.Context(), opener([]byte("["+strings.Join(events, ",")+"]")), &Options{Weighted: true, Warn: func(e *chromium.FormatError, _ int64) { told = append(told, e.Error()) }})
		require.NoError(t, err)
		return told
	}
	var flows, async, values, complete []string
	for i := range 20 {
		flows = append(flows,
			fmt.Sprintf(`{"args":{},"cat":"toplevel","id":%d,"name":"Schedule","ph":"s","pid":1,"tid":1,"ts":155694}`, 3866+i),
			fmt.Sprintf(`{"args":{},"bp":"e","cat":"toplevel","id":%d,"name":"Schedule","ph":"f","pid":1,"tid":1,"ts":169255}`, 3866+i))
	}
	for thing := range 4 {
		for i := range 20 {
			async = append(async, fmt.Sprintf(`{"cat":"latency","id2":{"local":"0x%d"},"name":"stage%d","ph":"%c","pid":1,"tid":1,"ts":%d}`, thing, i/2, "be"[i%2], i))
			values = append(values, fmt.Sprintf(`{"name":"memory","ph":"C","pid":1,"ts":%d,"args":{"v%d":%d}}`, i, thing, i))
			complete = append(complete, fmt.Sprintf(`{"name":"task","ph":"X","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"worker":%d}}`, i, thing))
		}
	}
	for _, events := range [][]string{flows, async, values, complete} {
		assert.Empty(t, told(events), events[0])
		doubled := told(append(events, events[len(events)-20:]...))
		assert.Len(t, doubled, 1, events[0])
		assert.Contains(t, doubled[0], "20 events that stand before come a second time")
	}
}
