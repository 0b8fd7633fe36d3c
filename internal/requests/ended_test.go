package requests

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// TestEndedLine: all requests come in the order in which they ended, also those that end when the
// line is closed, and nothing is made for a side that nobody takes.
func TestEndedLine(t *testing.T) {
	for _, n := range []int{0, 1, endedAtOnce - 1, endedAtOnce, 5*endedAtOnce + 7} {
		var got, want []int
		l := newEndedLine(func(r *httpphases.Request) { got = append(got, r.ID) }, nil)
		assert.Nil(t, l.options.Server)
		for i := range n {
			l.options.Request(&httpphases.Request{ID: i})
			want = append(want, i)
		}
		l.close()
		l.close()
		assert.Equal(t, want, got, "closed after %d", n)
		l.options.Request(&httpphases.Request{ID: n})
		assert.Equal(t, append(want, n), got, "what ends behind that is taken at once")
	}
	l := newEndedLine(nil, nil)
	assert.Nil(t, l.options.Request)
	assert.Nil(t, l.line)
	l.close()
}
