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
		`{"name":"a","ts":1,"dur":1,"pid":1,"tid":1}`:           errNoPhase,
		`{"name":"a","ph":"B","pid":1,"tid":1}`:                 errNoTime,
		`{"name":"a","ph":"i","pid":1,"tid":1}`:                 errNoTime,
		`{"name":"a","ph":"B","ts":1,"pid":1}`:                  errNoThread,
		`{"ph":"B","ts":1,"pid":1,"tid":1}`:                     errNoName,
		`{"ph":"E","ts":1,"pid":1,"tid":1}`:                     nil,
		`{"name":"a","ph":"X","ts":1,"dur":-1,"pid":1,"tid":1}`: errBackward,
		`{"name":"a","ph":"X","ts":1,"pid":1,"tid":1}`:          nil, // Chromium writes spans so that had not ended
		`{"name":"process_name","ph":"M","args":{}}`:            nil,
		`{"name":"a","ph":"B","ts":"x","pid":1,"tid":1}`:        errNoTime,
	} {
		text := "[" + good + "," + event + "]"
		var told []error
		_, err := Read(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, &Options{Weighted: true, Warn: func(e *chromium.FormatError) {
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
	_, err := Read(context.Background(), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, &Options{Weighted: true, Warn: func(e *chromium.FormatError) { t.Error(e) }})
	require.NoError(t, err)
}
