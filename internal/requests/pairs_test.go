package requests

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// A paired is a row of a trace in which requests are made and served over connections.
type paired struct {
	r *httpphases.Request
	s *httpphases.ServerRequest
}

// over returns a request that was made over a connection from one time to another, in ms: its
// headers took a tenth of one.
func over(id int, connection int64, path string, from, to float64, change ...func(*httpphases.Request)) paired {
	r := &httpphases.Request{
		ID: id, Host: "localhost", Port: 80, Target: path, Start: int64(from * 1e6), Duration: int64((to - from) * 1e6), HasDuration: true, BodyObserved: true,
		Connection: &httpphases.Connection{ID: connection, HasID: true},
		Phases:     []httpphases.Phase{{Name: httpphases.RequestHeaders, Start: int64(from * 1e6), Duration: 1e5}},
	}
	for _, f := range change {
		f(r)
	}
	return paired{r: r}
}

func on(id int, request, path string, from, to float64, change ...func(*httpphases.ServerRequest)) paired {
	s := &httpphases.ServerRequest{
		ID: id, RequestID: request, Port: 80, Target: path, Start: int64(from * 1e6), Duration: int64((to - from) * 1e6), HasDuration: true,
	}
	for _, f := range change {
		f(s)
	}
	return paired{s: s}
}

// settled returns who served each request, by their ids.
func settled(rows []paired) map[int]int {
	Settle(rows, func(r paired) (*httpphases.Request, *httpphases.ServerRequest) { return r.r, r.s })
	by := map[int]int{}
	for _, r := range rows {
		if r.r != nil && r.r.Why != nil && r.r.Why.Server != nil {
			by[r.r.ID] = r.r.Why.Server.ID
		}
	}
	return by
}

func TestConnectionsTellWhoServed(t *testing.T) {
	canceled := func(r *httpphases.Request) { r.Outcome = httpphases.Canceled }
	long := func(r *httpphases.Request) { r.Phases[0].Duration = 3e6 }
	http2 := func(thread uint64) func(*httpphases.Request) {
		return func(r *httpphases.Request) { r.Version, r.HeadersBy = "2.0", thread }
	}
	behind := func(from, first float64, connection int64) func(*httpphases.Request) { // an exchange that began first
		return func(r *httpphases.Request) {
			r.Phases[0].Start = int64(from * 1e6)
			r.Earlier = []httpphases.Exchange{{From: int64(first * 1e6), Sent: int64(first*1e6) + 1e5, Answered: int64(first*1e6) + 25e5, Connection: connection}}
		}
	}
	port := func(p int) func(*httpphases.ServerRequest) {
		return func(s *httpphases.ServerRequest) { s.Port = p }
	}
	for name, c := range map[string]struct {
		rows []paired
		want map[int]int
	}{
		"one of them fits": {[]paired{ // 1 and 2 ask for the same at once
			on(11, "A:00000001", "/a", 1, 5), on(12, "B:00000001", "/a", 1, 5), over(1, 7, "/a", 0, 6), over(2, 8, "/a", 0.5, 6),
			on(13, "A:00000002", "/b", 8, 9), over(3, 8, "/b", 7, 10),
		}, map[int]int{1: 12, 2: 11, 3: 13}},
		"both fit": {[]paired{
			on(11, "A:00000001", "/a", 1, 5), on(12, "B:00000001", "/a", 1, 5), over(1, 7, "/a", 0, 6), over(2, 8, "/a", 0.5, 6),
		}, map[int]int{}},
		"HTTP/2 numbers them": {[]paired{
			on(11, "A:00000001", "/a", 2, 5), on(12, "A:00000003", "/a", 1, 5), over(1, 7, "/a", 0, 6), over(2, 7, "/a", 0.5, 6),
		}, map[int]int{1: 11, 2: 12}},
		"not those sent at once": {[]paired{
			on(11, "A:00000001", "/a", 2, 5), on(12, "A:00000003", "/a", 1, 5), over(1, 7, "/a", 0, 6, long), over(2, 7, "/a", 0.5, 6),
		}, map[int]int{}},
		"of one thread": {[]paired{
			on(11, "A:00000001", "/a", 2, 5), on(12, "A:00000003", "/a", 1, 5), on(13, "A:00000005", "/a", 2, 4), over(1, 7, "/a", 0, 6, long, http2(9)), over(2, 7, "/a", 0.5, 6, long, http2(9)), over(3, 7, "/a", 0.7, 6, http2(9)),
		}, map[int]int{1: 11, 2: 12, 3: 13}},
		"not of two threads": {[]paired{
			on(11, "A:00000001", "/a", 2, 5), on(12, "A:00000003", "/a", 1, 5), over(1, 7, "/a", 0, 6, long, http2(9)), over(2, 7, "/a", 0.5, 6, http2(8)),
		}, map[int]int{}},
		"not if one may have come to nobody": {[]paired{
			on(11, "A:00000001", "/a", 2, 5), on(12, "A:00000003", "/a", 1, 5), over(1, 7, "/a", 0, 6, canceled), over(2, 7, "/a", 0.5, 6, canceled), over(3, 7, "/a", 0.7, 6),
		}, map[int]int{}},
		"of another port": {[]paired{
			on(11, "A:00000001", "/a", 1, 5, port(81)), over(1, 7, "/a", 0, 6),
		}, map[int]int{}},
		"of a port that nothing tells": {[]paired{
			on(11, "A:00000001", "/a", 1, 5, port(0)), over(1, 7, "/a", 0, 6),
		}, map[int]int{1: 11}},
		"of a port that the host tells": {[]paired{
			on(11, "A:00000001", "/a", 1, 5, func(s *httpphases.ServerRequest) { s.Port, s.Host = 0, "localhost:81" }), over(1, 7, "/a", 0, 6),
		}, map[int]int{}},
		"through a proxy": {[]paired{
			on(11, "A:00000001", "/a", 1, 5, port(81)), over(1, 7, "/a", 0, 6, func(r *httpphases.Request) { r.Connection.Proxy = "localhost:3128" }),
		}, map[int]int{1: 11}},
		"sent elsewhere by a handler": {[]paired{
			on(11, "A:00000001", "/a", 1, 5, port(81)), over(1, 7, "/a", 0, 6, func(r *httpphases.Request) {
				r.Host = "catalog"
				r.Connection.Elsewhere, r.Connection.Remote, r.Connection.Port = true, "127.0.0.1", 81
			}),
			on(12, "B:00000001", "/b", 1, 5), over(2, 8, "/b", 0, 6, func(r *httpphases.Request) {
				r.Connection.Elsewhere, r.Connection.Remote, r.Connection.Port = true, "10.0.0.7", 80
			}),
		}, map[int]int{1: 11}},
		"a name of this machine": {[]paired{
			on(11, "A:00000001", "/a", 1, 5, port(81)), over(1, 7, "/a", 0, 6, func(r *httpphases.Request) { r.Host, r.Connection.Remote, r.Connection.Port = "shop", "127.0.1.1", 81 }),
			on(12, "B:00000001", "/b", 1, 5, port(0)), over(2, 8, "/b", 0, 6, func(r *httpphases.Request) { r.Host, r.Connection.Remote = "docker", "/run/docker.sock" }),
			on(13, "C:00000001", "/c", 1, 5), over(3, 9, "/c", 0, 6, func(r *httpphases.Request) { r.Host, r.Connection.Remote = "shop", "10.0.0.7" }),
		}, map[int]int{1: 11, 2: 12}},
		"a hop sent elsewhere by a handler": {[]paired{
			on(11, "A:00000001", "/from", 1, 2, port(81)), on(12, "A:00000002", "/a", 4, 5, port(81)), on(13, "B:00000001", "/a", 4, 5, port(81)),
			over(1, 7, "/from", 0, 6, func(r *httpphases.Request) {
				r.Connection.Elsewhere, r.Connection.Remote, r.Connection.Port = true, "127.0.0.1", 81
				r.Redirects = []httpphases.Redirect{{From: "http://catalog/from", URL: "http://catalog/a", Duration: 3e6, Connection: r.Connection}}
				r.Phases[0].Start = 3.5e6
			}),
		}, map[int]int{1: 12}},
		"begun behind the headers of the answer": {[]paired{
			on(11, "A:00000001", "/a", 1, 2), on(12, "B:00000001", "/a", 4, 5), over(1, 7, "/a", 0, 6, func(r *httpphases.Request) { r.HeadersAt = 3e6 }),
		}, map[int]int{1: 11}},
		"by an earlier hop": {[]paired{ // which tells of the connection
			on(11, "A:00000001", "/from", 1, 2), on(12, "B:00000001", "/from", 1.5, 1.8), on(13, "A:00000002", "/a", 4, 5), on(14, "B:00000002", "/a", 4, 5), on(15, "B:00000003", "/b", 8, 9),
			over(1, 7, "/from", 0, 6, func(r *httpphases.Request) {
				r.Redirects = []httpphases.Redirect{{From: "http://localhost/from", URL: "http://localhost/a", Duration: 3e6, Connection: r.Connection}}
				r.Phases[0].Start = 3.5e6
			}),
			over(2, 8, "/from", 1, 2), over(3, 8, "/a", 3, 6), over(4, 8, "/b", 7, 10),
		}, map[int]int{1: 13, 2: 12, 3: 14, 4: 15}},
		"by earlier tries": {[]paired{ // which went over others
			on(11, "A:00000001", "/a", 1, 2), on(12, "A:00000002", "/b", 3, 4), on(13, "A:00000003", "/c", 21, 22),
			on(14, "B:00000001", "/d", 1, 2), on(15, "B:00000002", "/e", 3, 4), on(16, "B:00000003", "/c", 21, 22),
			on(17, "C:00000001", "/a", 6, 7), on(18, "C:00000002", "/b", 8, 9), on(19, "C:00000003", "/d", 10, 11), on(20, "C:00000004", "/e", 12, 13),
			over(1, 9, "/a", 0, 7.5, behind(5, 0, 7)), over(2, 9, "/b", 2, 9.5, behind(7.6, 2, 7)), over(3, 9, "/d", 0, 11.5, behind(9.6, 0, 8)), over(4, 9, "/e", 2, 13.5, behind(11.6, 2, 8)),
			over(5, 7, "/c", 20, 23), over(6, 8, "/c", 20.5, 23),
		}, map[int]int{1: 17, 2: 18, 3: 19, 4: 20, 5: 13, 6: 16}},
		"who served them went on": {[]paired{
			on(11, "A:00000001", "/a", 1, 50), on(12, "B:00000001", "/a", 1, 50), over(1, 7, "/a", 0, 6), over(2, 8, "/a", 0.5, 6),
			on(13, "A:00000002", "/b", 58, 59), over(3, 7, "/b", 57, 60),
		}, map[int]int{1: 11, 2: 12, 3: 13}},
		"one had given up before it was served": {[]paired{
			on(11, "A:00000001", "/a", 1, 5), over(1, 7, "/a", 0, 6), on(12, "B:00000001", "/a", 1, 5), over(2, 8, "/a", 0.5, 6),
			on(13, "A:00000002", "/b", 8, 9), over(3, 7, "/b", 7, 9.5), on(14, "B:00000002", "/b", 11, 12), over(4, 8, "/b", 10, 13),
			over(5, 7, "/c", 20, 21, canceled), on(15, "A:00000003", "/c", 22, 23), over(6, 8, "/c", 30, 31, canceled), on(16, "B:00000003", "/c", 32, 33),
		}, map[int]int{1: 11, 2: 12, 3: 13, 4: 14}},
	} {
		assert.Equal(t, c.want, settled(c.rows), name)
	}
}

// TestManyConnections: of 30 clients that ask for the same all the time each has its own connection.
func TestManyConnections(t *testing.T) {
	const clients, each = 30, 40
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []paired
	for c := range clients {
		at := rng.Float64()
		for i := range each {
			id, long := 1+2*(c*each+i), 3+3*rng.Float64()
			rows = append(rows, on(id+1, fmt.Sprintf("%c:%08X", 'A'+c, i+1), "/a", at+0.3, at+long-0.1), over(id, int64(c), "/a", at, at+long))
			at += long + rng.Float64()
		}
	}
	by := settled(rows)
	assert.Len(t, by, clients*each)
	for id, s := range by {
		assert.Equal(t, id+1, s)
	}
}

// Of a request that is the only one on its connection nothing tells more than path and time, of however many.
func TestConnectionsThatAreManyEndSoon(t *testing.T) {
	var rows []paired
	for i := range 20000 {
		at := float64(i) / 100
		rows = append(rows, on(2*i+2, fmt.Sprintf("C%d:00000001", i), "/a", at+1, at+20), over(2*i+1, int64(i), "/a", at, at+21))
	}
	assert.Empty(t, settled(rows))
}

// TestLongConnection: of many requests on one connection it takes no longer for each.
func TestLongConnection(t *testing.T) {
	var rows []paired
	for i := range 20000 {
		at := float64(i)
		rows = append(rows, on(2*i+2, fmt.Sprintf("A:%08X", 2*i+1), "/a", at+0.5, at+2), over(2*i+1, 7, "/a", at, at+3))
	}
	assert.Len(t, settled(rows), 20000)
}

// TestPairsOfFirstRequests: what connections are known by the first requests of a trace tells of
// those that follow.
func TestPairsOfFirstRequests(t *testing.T) {
	first := []paired{
		on(11, "A:00000001", "/a", 1, 2), over(1, 7, "/a", 0, 3), on(12, "B:00000001", "/a", 4, 5), over(2, 8, "/a", 3, 6),
	}
	p := Pair(first, func(r paired) (*httpphases.Request, *httpphases.ServerRequest) { return r.r, r.s })
	a, b, c := on(13, "A:00000002", "/a", 8, 9).s, on(14, "B:00000002", "/a", 8, 9).s, on(15, "C:00000001", "/a", 8, 9).s
	for connection, want := range map[int64]*httpphases.ServerRequest{7: a, 8: b, 9: c} {
		for _, o := range []*Others{{Pairs: p}, {}} {
			o.Add(a)
			o.Add(b)
			o.Add(c)
			got, guessed := o.Of(over(3, connection, "/a", 7, 10).r)
			if o.Pairs == nil {
				assert.Nil(t, got)
				continue
			}
			assert.Same(t, want, got, "connection %d", connection)
			assert.True(t, guessed)
		}
	}
}
