package compare

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// TestAPartOfARequestIsNotCompared: of one that was open when the recording began only the end is told.
func TestAPartOfARequestIsNotCompared(t *testing.T) {
	l := newRequests(false)
	for _, before := range []bool{false, true} {
		l.addServed(&httpphases.ServerRequest{Target: "/a", Status: 500, Duration: 5e9, HasDuration: true, StartUnknown: before})
	}
	var got [][3]any
	for r := range l.all() {
		got = append(got, [3]any{r.start, r.Duration, r.answer})
	}
	assert.Equal(t, [][3]any{{int64(0), int64(5e9), refused}, {int64(5e9), int64(-1), refused}}, got)
}
