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

// TestRequiredFields holds that an event which lacks what its phase needs is told with its place,
// and that producers who leave something out everywhere are not blamed for it.
func TestRequiredFields(t *testing.T) {
	const good = `{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}`
	for event, want := range map[string]error{
		good: nil,
		`{"name":"a","ts":1,"dur":1,"pid":1,"tid":1}`: errNoPhase,
		`{}`:                                    nil,
		`{ }`:                                   nil,
		`{"":1}`:                                errNoPhase,
		`{"name":"a","ph":"B","pid":1,"tid":1}`: errNoTime,
		`{"name":"a","ph":"i","pid":1,"tid":1}`: errNoTime,
		`{"name":"a","ph":"B","ts":1,"pid":1}`:  errNoThread,
		`{"ph":"B","ts":1,"pid":1,"tid":1}`:     errNoName,
		`{"ph":"E","ts":1,"pid":1,"tid":1}`:     nil,
		`{"name":"a","ph":"X","ts":1,"dur":-1,"pid":1,"tid":1}`:                   errBackward,
		`{"name":"a","ph":"X","ts":1,"pid":1,"tid":1}`:                            nil, // Chromium writes spans so that had not ended
		`{"name":"a","ph":"X","ts":1,"dur":null,"pid":1,"tid":1}`:                 nil,
		`{"name":"a","ph":"X","ts":1,"dur":18446744073709551615,"pid":1,"tid":1}`: errNoLength, // an end before the begin, without a sign
		`{"name":"a","ph":"X","ts":1,"dur":"x","pid":1,"tid":1}`:                  errNoLength,
		`{"name":"process_name","ph":"M","args":{}}`:                              nil,
		`{"name":"a","ph":"B","ts":"x","pid":1,"tid":1}`:                          errNoTime,
		`{"name":"a","ph":"B","ts":1e18,"pid":1,"tid":1}`:                         errNoTime,
	} {
		text := "[" + good + "," + event + "]"
		var told []error
		_, err := Read(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, &Options{Weighted: true, Warn: func(e *chromium.FormatError, _ int64) {
			assert.EqualValues(t, len(good)+2, e.Offset)
			told = append(told, e.Err)
		}})
		require.NoError(t, err)
		if want == nil {
			assert.Empty(t, told, event)
		} else {
			assert.Equal(t, []error{want}, told, event)
		}
	}
	text := fmt.Sprintf("[%s,%[1]s]", `{"ph":"X","ts":1,"dur":1}`)
	_, err := Read(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, &Options{Weighted: true, Warn: func(e *chromium.FormatError, _ int64) { t.Error(e) }})
	require.NoError(t, err)
}

// TestDamageHasATime: a defect is told with the time of the event read last before it, counted as
// in the profile: of samples of .NET as it is, else from the first event on.
func TestDamageHasATime(t *testing.T) {
	const bad = `{"name":"a","ph":"B","ts":"x","pid":1,"tid":1}`
	sampled := `{"name":"Process64 app (1) Args: ","cat":"sampleEvent","ph":"B","ts":5000,"pid":1,"tid":1},{"name":"Thread (1)","cat":"sampleEvent","ph":"B","ts":5000,"pid":1,"tid":1},` +
		`{"name":"A","cat":"sampleEvent","ph":"B","ts":5000,"pid":1,"tid":1},{"name":"CPU_TIME","cat":"sampleEvent","ph":"B","ts":5000,"pid":1,"tid":1},` +
		`{"name":"CPU_TIME","cat":"sampleEvent","ph":"E","ts":6000,"pid":1,"tid":1},{"name":"A","cat":"sampleEvent","ph":"E","ts":6000,"pid":1,"tid":1}`
	for text, want := range map[string]int64{
		"[" + bad + "]": -1,
		`[{"name":"a","ph":"X","ts":5000,"dur":1,"pid":1,"tid":1},{"name":"a","ph":"X","ts":5007,"dur":1,"pid":1,"tid":1},` + bad + "]": 7000,
		"[" + sampled + "," + bad + "]": 6000_000,
	} {
		var told []int64
		_, err := Read(t.Context(), opener([]byte(text)), &Options{Weighted: true, Warn: func(_ *chromium.FormatError, at int64) { told = append(told, at) }})
		require.NoError(t, err)
		assert.Equal(t, []int64{want}, told, text)
	}
}

// TestNoTrace holds that a list of something else is no trace, and that one with an event, or a cut one whose
// first element is not whole, is.
func TestNoTrace(t *testing.T) {
	for text, trace := range map[string]bool{
		`[]`: true, `[{}]`: true, `[{"id":1,"name":"a"`: true, `{"traceEvents":[{"id":1}]}`: true,
		`[{"id":1},{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]`: true,
		`[{"id":1,"name":"a"},{"id":2}]`:                                  false, `[{"id":1},` + "\n": false, `[1,2]`: false, `[null]`: false, `["a",{"id":1}]`: false,
	} {
		_, err := Read(t.Context(), opener([]byte(text)), nil)
		if trace {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorIs(t, err, chromium.ErrNoTrace, text)
		}
	}
}
