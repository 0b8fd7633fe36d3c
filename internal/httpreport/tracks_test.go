package httpreport

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// Requests in flight at once have a track each, and later ones the first that is free,
// at about the price of sorting them.
func TestTracksOfMany(t *testing.T) {
	tracetest.Growth(t, 2000, func(size int) {
		n := int64(size)
		var list []*httpphases.Request
		for i := range n {
			list = append(list, &httpphases.Request{Start: i, Duration: n + i%3, HasDuration: true})
		}
		for i := range int64(3) { // when the first tracks are free again, but for one
			list = append(list, &httpphases.Request{Start: n + 1 + i, Duration: n, HasDuration: true})
		}
		var drawing Drawing
		for _, r := range list {
			drawing.Client(r)
		}
		tracks := drawing.Tracks(nil)
		assert.Len(t, tracks, size)
		for i, want := range []int64{n + 1, n + 2, 2, n + 3} {
			last := int64(0)
			for s := range tracks[i].Slices {
				last = s.Start
			}
			assert.Equal(t, want, last, "track %d", i)
		}
	})
}
