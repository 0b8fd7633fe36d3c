package httpphases_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// below gives an event the activity id of a path.
func below(e httpphases.Event, path ...uint32) *httpphases.Event {
	if len(path) == 0 {
		return &e
	}
	e.PathLen = uint8(copy(e.Path[:], path))
	binary.LittleEndian.PutUint64(e.ID[:], uint64(len(path))<<32|uint64(path[len(path)-1]))
	e.ID[15] = 1
	return &e
}

// Events made so that each has many requests, attempts or connections to choose from:
// the time they take stays in proportion to their number.
func TestHostile(t *testing.T) {
	type event = httpphases.Event
	start := event{Kind: httpphases.RequestStart, Time: 1, Scheme: "https", Host: "h", Major: 1, Minor: 1}
	on := func(e event, kind httpphases.Kind, at, thread int) event {
		e.Kind, e.Time, e.Thread = kind, int64(at), uint64(thread)
		return e
	}
	for name, c := range map[string]struct {
		n   int
		add func(b *httpphases.Builder, n int)
	}{
		"open requests of one path that has lost numbers": {1500, func(b *httpphases.Builder, n int) {
			for i := range n {
				b.Add(below(on(start, httpphases.RequestStart, i, i), 1, 0))
			}
			for i := range n {
				b.Add(below(on(event{}, httpphases.ResponseContentStop, n+i, 1<<30), 1, 0))
			}
		}},
		"requests without ids": {1500, func(b *httpphases.Builder, n int) {
			for i := range n {
				e := on(start, httpphases.RequestStart, i, i)
				b.Add(&e)
			}
			for i := range n {
				e := on(event{}, httpphases.ResponseHeadersStop, n+i, 1<<30)
				b.Add(&e)
			}
		}},
		"requests without ids between two that stay": {1500, func(b *httpphases.Builder, n int) {
			kind := func(kind httpphases.Kind, at, thread int) {
				e := on(start, kind, at, thread)
				b.Add(&e)
			}
			for i := range n {
				kind(httpphases.RequestStart, i, i)
			}
			for i := range n { // those between have written headers, and wait
				if i > 0 && i < n-1 {
					kind(httpphases.RequestHeadersStart, n+i, i)
				}
			}
			for i := range n {
				kind(httpphases.ResponseHeadersStop, 2*n+i, 1<<30)
				kind(httpphases.RequestHeadersStop, 3*n+i, 1<<30)
			}
		}},
		"attempts of one request": {4000, func(b *httpphases.Builder, n int) {
			b.Add(below(start, 1, 2))
			for i := range n {
				b.Add(below(on(event{Host: "h"}, httpphases.ResolutionStart, 10+i, 0), 1, 2, uint32(i+1)))
			}
			for i := range n {
				b.Add(below(on(event{}, httpphases.RequestHeadersStop, 10+n+i, 0), 1, 2))
			}
		}},
		"waits of one request": {4000, func(b *httpphases.Builder, n int) {
			b.Add(below(start, 1, 2))
			for i := range n {
				b.Add(below(on(event{Millis: 1e-6, Major: 1, Minor: 1}, httpphases.RequestLeftQueue, 10+2*i, 0), 1, 2))
			}
		}},
		"connections of one id": {4000, func(b *httpphases.Builder, n int) {
			for i := range n {
				e := on(event{HasConn: true, Conn: 5, Scheme: "http", Host: "h"}, httpphases.ConnectionEstablished, i, 0)
				b.Add(&e)
				if i%2 == 0 {
					e.Kind = httpphases.ConnectionClosed
					b.Add(&e)
				}
			}
		}},
		"served requests without ids": {2000, func(b *httpphases.Builder, n int) {
			for i := range n {
				e := on(event{}, httpphases.ServerRequestStart, i, 1)
				b.Add(&e)
			}
			for i := range n {
				e := on(event{}, httpphases.ServerRequestStop, n+i, 2)
				b.Add(&e)
			}
		}},
		"exchanges of one request": {2000, func(b *httpphases.Builder, n int) {
			b.Add(below(start, 1, 2))
			for i := range n {
				if i > 0 && i%100 == 0 {
					b.Add(below(on(event{Text: "/x"}, httpphases.RequestRedirect, 4*i-1, 0), 1, 2))
				}
				b.Add(below(on(event{}, httpphases.RequestHeadersStart, 4*i, 0), 1, 2))
				b.Add(below(on(event{}, httpphases.RequestHeadersStop, 4*i+1, 0), 1, 2))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tracetest.Growth(t, c.n, func(n int) {
				b := httpphases.NewBuilder(nil)
				c.add(b, n)
				b.Finish(int64(5 * n))
			})
		})
	}
}

// Of the attempts and waits of a request a bounded number is kept, which its row tells.
func TestTooManyAreMissed(t *testing.T) {
	var missing []string
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { missing = r.Missing }})
	b.Add(below(httpphases.Event{Kind: httpphases.RequestStart, Time: 1, Scheme: "http", Host: "h"}, 1, 2))
	for i := range 300 {
		b.Add(below(httpphases.Event{Kind: httpphases.ResolutionStart, Time: int64(10 + i), Host: "h"}, 1, 2, uint32(i+1)))
		b.Add(below(httpphases.Event{Kind: httpphases.RequestLeftQueue, Time: int64(10 + i)}, 1, 2))
	}
	b.Add(below(httpphases.Event{Kind: httpphases.RequestStop, Time: 1000}, 1, 2))
	b.Finish(1000)
	assert.ElementsMatch(t, []string{"connection attempts", "RequestLeftQueue"}, missing)

	b.Add(below(httpphases.Event{Kind: httpphases.RequestStart, Time: 2000, Scheme: "http", Host: "h"}, 1, 3))
	for i := range 5000 {
		b.Add(below(httpphases.Event{Kind: httpphases.RequestHeadersStart, Time: int64(2000 + 4*i)}, 1, 3))
		b.Add(below(httpphases.Event{Kind: httpphases.RequestHeadersStop, Time: int64(2001 + 4*i)}, 1, 3))
	}
	for i := range 1100 {
		b.Add(below(httpphases.Event{Kind: httpphases.RequestRedirect, Time: int64(23000 + i), Text: "/x"}, 1, 3))
	}
	b.Add(below(httpphases.Event{Kind: httpphases.RequestStop, Time: 30000}, 1, 3))
	b.Finish(30000)
	assert.Subset(t, missing, []string{"an exchange", "a redirect"})
}

// Two served requests begin at one time on one thread: a stop without id ends the one
// that began last.
func TestServerTie(t *testing.T) {
	for range 20 {
		out := ""
		b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) { out += fmt.Sprint(s.Target, " ", s.Outcome, " ") }})
		b.Add(&httpphases.Event{Kind: httpphases.ServerRequestStart, Time: 5, Thread: 1, Text: "/a"})
		b.Add(&httpphases.Event{Kind: httpphases.ServerRequestStart, Time: 5, Thread: 1, Text: "/b"})
		b.Add(&httpphases.Event{Kind: httpphases.ServerRequestStop, Time: 6, Thread: 1})
		b.Finish(10)
		assert.Equal(t, "/b ok /a incomplete ", out)
	}
}

// A request of many phases is cut into pieces at about the price of sorting them.
func TestPartitionOfMany(t *testing.T) {
	r := &httpphases.Request{HasDuration: true}
	tracetest.Growth(t, 2000, func(n int) {
		r.Duration, r.Phases = int64(10*n), r.Phases[:0]
		for i := range n {
			r.Phases = append(r.Phases, httpphases.Phase{Name: httpphases.DNS, Start: int64(10 * i), Duration: 5})
		}
		assert.Len(t, r.Partition(), 2*n)
	})
}

// Partition takes for each stretch the phase of the highest rank, of equals the first.
func TestPartitionPlainly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		r := &httpphases.Request{Start: 5, Duration: 20, HasDuration: true}
		for i := range rng.IntN(8) {
			r.Phases = append(r.Phases, httpphases.Phase{
				Name: httpphases.PhaseName(rng.IntN(int(httpphases.Other))), Start: int64(rng.IntN(30)),
				Duration: int64(rng.IntN(12)), Open: rng.IntN(8) == 0, Error: fmt.Sprint(i),
			})
		}
		got := map[int64]httpphases.Phase{}
		for _, p := range r.Partition() {
			for at := p.Start; at < p.End(); at++ {
				got[at] = p
			}
		}
		assert.Len(t, got, 20)
		rank := []httpphases.PhaseName{httpphases.Queue, httpphases.Wait, httpphases.DNS, httpphases.Connect, httpphases.Proxy, httpphases.TLS,
			httpphases.RequestHeaders, httpphases.RequestContent, httpphases.ResponseHeaders, httpphases.ResponseContent, httpphases.RedirectHop}
		for at := int64(5); at < 25; at++ {
			want := httpphases.Phase{Name: httpphases.Other}
			for _, name := range rank {
				for i := len(r.Phases) - 1; i >= 0; i-- {
					if p := r.Phases[i]; p.Name == name && !p.Open && p.Start <= at && at < p.End() {
						want = p
					}
				}
			}
			assert.Equal(t, []any{want.Name, want.Error}, []any{got[at].Name, got[at].Error})
		}
	}
}

// Whatever comes, and however late, each request is told once, and its phases lie inside
// it.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		rows := map[int]bool{}
		starts := 0
		b := httpphases.NewBuilder(&httpphases.Options{Late: 1 + rng.IntN(50), Request: func(r *httpphases.Request) {
			if rows[r.ID] {
				t.Fatalf("seed %d: request %d comes twice", seed, r.ID)
			}
			rows[r.ID] = true
			for i := range r.Phases {
				p := &r.Phases[i]
				if p.Duration < 0 || r.HasDuration && (p.Start < r.Start || p.End() > r.Start+r.Duration) {
					t.Fatalf("seed %d: %v %d+%d %+v", seed, r.Outcome, r.Start, r.Duration, p)
				}
			}
			if r.Duration < 0 {
				t.Fatalf("seed %d: duration %d", seed, r.Duration)
			}
			for _, h := range r.Redirects {
				for _, p := range h.Phases {
					if p.Duration < 0 || p.Start < h.Start || p.End() > h.Start+h.Duration {
						t.Fatalf("seed %d: hop %+v: %+v", seed, h, p)
					}
				}
			}
			sum := int64(0)
			for _, p := range r.Partition() {
				sum += p.Duration
			}
			if r.HasDuration && sum != r.Duration {
				t.Fatalf("seed %d: the partition of %d sums to %d", seed, r.Duration, sum)
			}
		}})
		now := int64(0)
		ids := rng.IntN(3)
		for range 5000 {
			now += int64(rng.IntN(2000))
			e := httpphases.Event{
				Kind: httpphases.Kind(1 + rng.IntN(int(httpphases.EventsLost))), Time: now - int64(rng.IntN(3000)), Thread: uint64(rng.IntN(4)),
				HasConn: rng.IntN(2) == 0, Conn: int64(rng.IntN(5)), HasStatus: rng.IntN(2) == 0, Status: []int32{200, 302, 401, -1}[rng.IntN(4)],
				Scheme: "http", Host: "h", Port: 80, Text: "/x", Major: uint8(rng.IntN(3)), Minor: 1, Millis: []float64{0, 1e-3, 1e300, -5, math.NaN()}[rng.IntN(5)],
				Length: now - 100,
			}
			if e.Kind >= httpphases.KestrelStart && e.Kind <= httpphases.SpanStop && rng.IntN(9) > 0 {
				e.Span = someSpan(rng.IntN(256))
			}
			if e.Kind == httpphases.RequestStart {
				starts++
			}
			if ids == 0 || ids == 1 && rng.IntN(2) == 0 {
				b.Add(&e)
				continue
			}
			path := []uint32{1, uint32(rng.IntN(30))}
			if e.Kind != httpphases.RequestStart && e.Kind != httpphases.RequestStop && rng.IntN(2) == 0 {
				path = append(path, uint32(rng.IntN(4)))
			}
			x := below(e, path...)
			x.Related = below(e, path[:2]...).ID
			b.Add(x)
		}
		b.Finish(now)
		if len(rows) < starts {
			t.Fatalf("seed %d: %d rows of %d starts", seed, len(rows), starts)
		}
	}
}
