package compare

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/profile"
)

// Means are the same to the last digit each time: their sums of squares are no whole numbers of a float64.
func TestMeansAreTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tr := &Trace{Profile: &profile.Profile{}, Requests: newRequests(false)}
	s := &sum{byRequest: map[int]float64{}}
	for id := 1; id <= 3000; id++ {
		tr.Requests.add(id, []string{"GET", "GET", "POST"}[id%3], "/a", "", 7, 0, 1, true)
		s.byRequest[id] = float64(r.Int64N(1 << 40))
	}
	c := newCosts(tr, &names{ids: map[string]int{}})
	want := c.routeMeans(s)
	require.Len(t, want, 2)
	for range 20 {
		assert.Equal(t, want, c.routeMeans(s))
	}
	assert.Nil(t, c.of(0))
	assert.Nil(t, c.of(3001))
	assert.Equal(t, "POST /a", c.of(3000-1).Route)
	require.NoError(t, tr.Err())
}

// Requests of one kind share what they ask for, and URLs are kept for who selects by them.
func TestRequests(t *testing.T) {
	for _, urls := range []bool{false, true} {
		l := newRequests(urls)
		l.add(1, "GET", "/a/*", "/a/1", 7, 10, 5, true)
		l.add(2, "GET", "/a/*", "/a/2", 7, 11, 5, false)
		l.add(3, "", "/a/*", "/a/1", 7, 12, 5, true)
		require.Equal(t, 3, l.Len())
		var list []Request
		for r := range l.all() {
			list = append(list, *r)
		}
		assert.Equal(t, urls, list[0].asked != list[1].asked)
		assert.EqualValues(t, -1, list[1].Duration)
		assert.Equal(t, "GET /a/*", l.of(&list[1]).Route)
		assert.Equal(t, "/a/*", l.of(&list[2]).Route)
		assert.Equal(t, map[bool]string{true: "/a/2"}[urls], l.of(&list[1]).url)
	}
}

// Of millions of requests the chosen ones are those that were wanted, in their order, and numbers by number are those that were
// set, in whatever order: most of both come from the disk.
func TestManyRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 2_000_000
	l := newRequests(false)
	by := l.numbers()
	for id := 1; id <= n; id++ {
		l.add(id, "GET", "/a", "", 7, int64(id)*10, 5, true)
		if id%3 == 0 {
			by.set(id, int32(r.IntN(10)))
		}
	}
	want := map[int]int32{}
	for range 50 {
		id := 1 + r.IntN(n)
		want[id] = int32(id)
		by.set(id, int32(id))
	}
	id := 0
	chosen := l.chosen(func(r *Request) bool { return r.ID%2 == 0 })
	require.Equal(t, n/2, chosen.Len())
	for r := range chosen.all() {
		id += 2
		if int(r.ID) != id || r.start != int64(id)*10 || r.process != 7 {
			require.Fail(t, "another one", "%d: %+v", id, *r)
		}
	}
	require.Equal(t, n, id)
	for id, v := range want {
		require.Equal(t, v, by.get(id))
	}
	require.Zero(t, by.get(n+1<<20))
	require.Zero(t, by.get(-1))
	require.NoError(t, l.Err())
}
