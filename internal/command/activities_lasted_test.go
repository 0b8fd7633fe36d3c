package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/activity"
)

// TestLasted: how long a span took from before the recording counts for --slow.
func TestLasted(t *testing.T) {
	for _, c := range []struct {
		row  activity.Row
		d    int64
		told bool
	}{
		{activity.Row{Start: 2, HasStart: true, Stop: 5, HasStop: true, Span: &activity.Span{Duration: 4}}, 3, true},
		{activity.Row{Stop: 5, HasStop: true, Span: &activity.Span{Duration: 9}}, 9, true},
		{activity.Row{Stop: 5, HasStop: true, Span: &activity.Span{}}, 0, false},
		{activity.Row{Stop: 5, HasStop: true}, 0, false},
	} {
		d, ok := lasted(&c.row)
		assert.Equal(t, []any{c.d, c.told}, []any{d, ok})
	}
}
