package httpphases

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFirstIn picks one of requests that are all alike but for their times.
func TestFirstIn(t *testing.T) {
	a, b, c := &request{start: 1, last: 9}, &request{start: 3, last: 5}, &request{start: 2, last: 7}
	l := []*request{a, b, c}
	assert.Same(t, b, firstIn(l, RequestHeadersStart), "that began last")
	assert.Same(t, b, firstIn(l, RequestStop), "that was heard of longest ago")
	assert.Same(t, a, firstIn(l[:1], RequestStop))
}

// TestThose leaves all requests where none is so.
func TestThose(t *testing.T) {
	a, b := &request{failed: true}, &request{}
	l := []*request{a, b}
	failed := func(r *request) bool { return r.failed }
	assert.Equal(t, []*request{a}, those(l, failed))
	assert.Equal(t, l[1:], those(l[1:], failed))
}
