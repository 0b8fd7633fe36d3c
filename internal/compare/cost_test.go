package compare

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Means are the same to the last digit each time: their sums of squares are no whole numbers of a float64.
func TestMeansAreTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := &costs{count: map[string]int{"GET /a": 2000, "GET /b": 1000}, route: make([]*asked, 3001)}
	kinds := []*asked{{Route: "GET /a"}, {Route: "GET /a"}, {Route: "GET /b"}}
	s := &sum{byRequest: map[int]float64{}}
	for id := 1; id <= 3000; id++ {
		c.route[id] = kinds[id%3]
		s.byRequest[id] = float64(r.Int64N(1 << 40))
	}
	want := c.routeMeans(s)
	require.Len(t, want, 2)
	for range 20 {
		assert.Equal(t, want, c.routeMeans(s))
	}
	assert.Nil(t, c.of(0))
	assert.Nil(t, c.of(3001))
	assert.Equal(t, "GET /b", c.of(3000-1).Route)
}

// Requests of one kind share what they ask for, and URLs are kept for who selects by them.
func TestRequestList(t *testing.T) {
	for _, urls := range []bool{false, true} {
		l := requestList{urls: urls}
		l.add(1, "GET", "/a/*", "/a/1", 7, 10, 5, true)
		l.add(2, "GET", "/a/*", "/a/2", 7, 11, 5, false)
		l.add(3, "", "/a/*", "/a/1", 7, 12, 5, true)
		require.Len(t, l.list, 3)
		assert.Equal(t, urls, l.list[0].asked != l.list[1].asked)
		assert.EqualValues(t, -1, l.list[1].Duration)
		assert.Equal(t, "GET /a/*", l.list[1].Route)
		assert.Equal(t, "/a/*", l.list[2].Route)
		assert.Equal(t, map[bool]string{true: "/a/2"}[urls], l.list[1].url)
	}
}
