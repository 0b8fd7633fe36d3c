package httpphases

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of requests whose activity was stopped those that have ended are let go, whether events without
// an id come or not; the only one that is in flight owns such an event, however often its activity
// was lost.
func TestAdrift(t *testing.T) {
	p := &process{}
	for range 10_000 {
		r := &request{open: true}
		p.setAdrift(r)
		p.clearAdrift(r)
	}
	assert.LessOrEqual(t, len(p.adrift), 32)
	assert.Zero(t, p.adrifts)

	r := &request{open: true, stop: never, failAt: never, body: unseen}
	r.hop0[0] = hop{toAt: never}
	r.hops = r.hop0[:]
	require.True(t, r.fits(RequestStop))
	for range 2 {
		p.setAdrift(r)
		p.clearAdrift(r)
	}
	p.setAdrift(r)
	b := NewBuilder(nil)
	assert.Same(t, r, b.link(p, &thread{}, &Event{Kind: RequestStop}))
	p.setAdrift(&request{open: true, stop: never, failAt: never, body: unseen, hops: r.hops})
	assert.Nil(t, b.link(p, &thread{}, &Event{Kind: RequestStop}), "one of two")
}
