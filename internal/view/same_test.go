package view_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

// Pages of one trace are the same bytes, also where more details come again than are remembered.
func TestPageIsTheSame(t *testing.T) {
	page := func() []byte {
		p := &profile.Profile{Table: profile.NewTable()}
		p.Tracks = []*profile.Track{{Name: "Events", Group: "events", Slices: func(yield func(*profile.Slice) bool) {
			for i := range 60_000 {
				s := &profile.Slice{Start: int64(i), Instant: true, Name: "event", Args: []profile.Arg{{Key: "n", Value: fmt.Sprint(i % 20_000)}}}
				if !yield(s) {
					return
				}
			}
		}}}
		var b bytes.Buffer
		require.NoError(t, view.Write(&b, p))
		return b.Bytes()
	}
	want := page()
	for range 3 {
		require.True(t, bytes.Equal(want, page()))
	}
}
