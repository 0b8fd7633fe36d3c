package httpphases_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// A busy service: many requests at once to one host over a limited number of connections.
type busy struct {
	connections int
	ids         bool
	think       int64   // ns, of the server
	redirects   float64 // share of requests
	lifo        bool    // who waits is served last in, first out
	silent      int     // requests that get no answer for long

	rng    *rand.Rand
	todo   steps
	now    int64
	seq    int
	events []httpphases.Event
	free   []int64
	opened int64
	queue  []*busyRequest
	all    []*busyRequest
}

const busyThreads = 16

type busyRequest struct {
	n          int
	ord        uint32
	start, end int64
	joined     int64
	thread     uint64
	queued     int64
	waited     int64
	sent       int64
	hops       int
	silent     bool
}

type busyStep struct {
	at  int64
	seq int
	f   func()
}

type steps []busyStep

func (s steps) Len() int { return len(s) }
func (s steps) Less(i, k int) bool {
	return s[i].at < s[k].at || s[i].at == s[k].at && s[i].seq < s[k].seq
}
func (s steps) Swap(i, k int) { s[i], s[k] = s[k], s[i] }
func (s *steps) Push(x any)   { *s = append(*s, x.(busyStep)) }
func (s *steps) Pop() any {
	o := *s
	x := o[len(o)-1]
	*s = o[:len(o)-1]
	return x
}

func (b *busy) after(d int64, f func()) {
	b.seq++
	heap.Push(&b.todo, busyStep{b.now + d, b.seq, f})
}

func (b *busy) emit(r *busyRequest, e httpphases.Event, child bool) {
	e.Time, e.Thread, e.Process = b.now, r.thread, 1
	if b.ids {
		path := []uint32{1, uint32(r.n + 1)}
		if child {
			r.ord++
			path = append(path, r.ord)
		}
		e.PathLen = uint8(copy(e.Path[:], path))
		e.ID[0], e.ID[1], e.ID[2], e.ID[3] = byte(r.n), byte(r.n>>8), byte(r.n>>16), byte(len(path))
		if child {
			e.ID[4], e.ID[5] = byte(r.ord), byte(r.ord>>8)
		}
		e.ID[15] = 1
	}
	b.events = append(b.events, e)
	b.now += 300 // no two events at one time
}

func (b *busy) stop(r *busyRequest, k httpphases.Kind, e httpphases.Event) {
	r.ord-- // the same id as its start
	e.Kind = k
	b.emit(r, e, true)
}

func (b *busy) hop(r *busyRequest) func() { // a continuation on a pool thread
	return func() { r.thread = uint64(b.rng.IntN(busyThreads) + 1) }
}

func (b *busy) run(requests int) {
	type ev = httpphases.Event
	for i := range requests {
		r := &busyRequest{n: i, silent: i < b.silent}
		b.all = append(b.all, r)
		b.seq++
		heap.Push(&b.todo, busyStep{int64(i+1) * 1e5, b.seq, func() {
			b.hop(r)()
			r.start = b.now
			b.emit(r, ev{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Text: fmt.Sprint("/", i), Major: 1, Minor: 1}, false)
			b.now += 4000
			b.acquire(r)
		}})
	}
	for len(b.todo) > 0 {
		s := heap.Pop(&b.todo).(busyStep)
		b.now = max(b.now, s.at)
		s.f()
	}
}

func (b *busy) acquire(r *busyRequest) {
	type ev = httpphases.Event
	if len(b.free) > 0 {
		c := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		b.exchange(r, c)
		return
	}
	r.joined = b.now
	b.queue = append(b.queue, r)
	if int(b.opened) < b.connections {
		c := b.opened
		b.opened++
		o := *r // the attempt goes on in the flow of r
		b.after(1e5, func() {
			o.thread = uint64(b.rng.IntN(busyThreads) + 1)
			o.ord = 1000
			b.emit(&o, ev{Kind: httpphases.ConnectStart, Text: "127.0.0.1:80"}, true)
			b.after(1e6, func() {
				o.thread = uint64(b.rng.IntN(busyThreads) + 1)
				b.stop(&o, httpphases.ConnectStop, ev{})
				b.emit(&o, ev{Kind: httpphases.ConnectionEstablished, HasConn: true, Conn: c, Scheme: "http", Host: "h", Port: 80, Text: "127.0.0.1", Major: 1, Minor: 1}, false)
				b.release(c)
			})
		})
	}
}

func (b *busy) release(c int64) {
	if len(b.queue) == 0 {
		b.free = append(b.free, c)
		return
	}
	r := b.queue[0]
	if b.lifo {
		r = b.queue[len(b.queue)-1]
		b.queue = b.queue[:len(b.queue)-1]
	} else {
		b.queue = b.queue[1:]
	}
	b.after(20_000, func() {
		b.hop(r)()
		r.queued += b.now - r.joined
		b.emit(r, httpphases.Event{Kind: httpphases.RequestLeftQueue, Millis: float64(b.now-r.joined) / 1e6, Major: 1, Minor: 1}, false)
		b.now += 1000
		b.exchange(r, c)
	})
}

func (b *busy) exchange(r *busyRequest, c int64) {
	type ev = httpphases.Event
	b.emit(r, ev{Kind: httpphases.RequestHeadersStart, HasConn: true, Conn: c}, true)
	b.now += 5000
	r.sent = b.now
	b.stop(r, httpphases.RequestHeadersStop, ev{})
	think := b.think/2 + b.rng.Int64N(b.think)
	if r.silent {
		think = 60e9
	}
	b.after(think, func() {
		b.hop(r)()
		r.waited += b.now - r.sent
		b.emit(r, ev{Kind: httpphases.ResponseHeadersStart}, true)
		b.now += 4000
		status := int32(200)
		if r.hops == 0 && b.rng.Float64() < b.redirects {
			status = 302
		}
		b.stop(r, httpphases.ResponseHeadersStop, ev{Status: status, HasStatus: true})
		if status == 302 {
			r.hops++
			b.release(c)
			b.emit(r, ev{Kind: httpphases.RequestRedirect, Text: "http://h/next"}, false)
			b.now += 2000
			r.queued, r.waited = 0, 0
			b.acquire(r)
			return
		}
		b.now += 3000
		b.emit(r, ev{Kind: httpphases.ResponseContentStart}, true)
		b.after(50_000, func() {
			b.hop(r)()
			b.release(c)
			b.stop(r, httpphases.ResponseContentStop, ev{})
			r.end = b.now
			b.emit(r, ev{Kind: httpphases.RequestStop, Status: 200, HasStatus: true}, false)
		})
	})
}

// With ids every request is told exactly, however many there are at once. Without them
// each event still finds a request, and a wait for a connection its own: the time at
// which it began tells.
func TestBusy(t *testing.T) {
	for name, c := range map[string]busy{
		"ids":                            {connections: 10, ids: true, think: 5e6, redirects: .1},
		"ids, all at once":               {connections: 4000, ids: true, think: 5e8, redirects: .1},
		"no ids":                         {connections: 10, think: 5e6},
		"no ids, redirects":              {connections: 10, think: 5e6, redirects: .1},
		"no ids, last in first out":      {connections: 10, think: 5e6, lifo: true},
		"no ids, all at once":            {connections: 4000, think: 5e8},
		"no ids, beside silent requests": {connections: 1000, think: 5e6, silent: 600},
	} {
		t.Run(name, func(t *testing.T) {
			c.rng = rand.New(rand.NewPCG(1, 2))
			c.run(4000)
			got := map[string]*httpphases.Request{}
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { got[r.Target] = r }})
			for i := range c.events {
				b.Add(&c.events[i])
			}
			b.Finish(c.now)
			wrong := 0
			for i, r := range c.all {
				g := got[fmt.Sprint("/", i)]
				require.NotNil(t, g)
				assert.Equal(t, httpphases.OK, g.Outcome)
				assert.Empty(t, g.Missing)
				queue, _ := g.Phase(httpphases.Queue)
				wait, _ := g.Phase(httpphases.Wait)
				if !near(queue, r.queued) || c.ids && (g.Duration != r.end-r.start || !near(wait, r.waited)) {
					wrong++
				}
				assert.Equal(t, c.ids, g.Guessed == 0)
			}
			if c.ids || c.redirects == 0 { // whose redirect it was is a guess
				assert.Zero(t, wrong)
			}
			assert.Zero(t, b.Stats().NoRequest)
		})
	}
}

func near(a, b int64) bool { return max(a-b, b-a) < 2000 }

// A server refuses for a while: each attempt that fails starts the next one in the flow
// of the request that asked first. The one that succeeds at last still belongs to the
// connection that it opens.
func TestManyAttemptsOfOneFlow(t *testing.T) {
	type event = httpphases.Event
	for _, ended := range []bool{true, false} {
		rows := map[string]*httpphases.Request{}
		b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows[r.Target] = r }})
		now := int64(0)
		add := func(e event, path ...uint32) {
			now += 1e5
			e.Time, e.Thread = now, 1
			b.Add(below(e, path...))
		}
		start := event{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Major: 1, Minor: 1}
		first, second := start, start
		first.Text, second.Text = "/first", "/second"
		add(first, 1, 1)
		add(second, 1, 2)
		const refused = 300
		for i := range uint32(refused + 1) {
			add(event{Kind: httpphases.ResolutionStart, Host: "h"}, 1, 1, 2*i+1)
			add(event{Kind: httpphases.ResolutionStop}, 1, 1, 2*i+1)
			add(event{Kind: httpphases.ConnectStart, Text: "127.0.0.1:80"}, 1, 1, 2*i+2)
			if i < refused {
				add(event{Kind: httpphases.ConnectFailed, Status: 10061}, 1, 1, 2*i+2)
			}
			add(event{Kind: httpphases.ConnectStop}, 1, 1, 2*i+2)
			if i == 0 && ended {
				add(event{Kind: httpphases.RequestLeftQueue, Millis: .3, Major: 1, Minor: 1}, 1, 1)
				add(event{Kind: httpphases.RequestFailed, Text: "refused"}, 1, 1)
				add(event{Kind: httpphases.RequestStop, Status: -1, HasStatus: true}, 1, 1)
			}
		}
		add(event{Kind: httpphases.ConnectionEstablished, HasConn: true, Conn: 1, Scheme: "http", Host: "h", Port: 80, Text: "127.0.0.1", Major: 1, Minor: 1}, 1, 1)
		add(event{Kind: httpphases.RequestLeftQueue, Millis: float64(now)/1e6 - .3, Major: 1, Minor: 1}, 1, 2)
		add(event{Kind: httpphases.RequestHeadersStart, HasConn: true, Conn: 1}, 1, 2, 1)
		add(event{Kind: httpphases.RequestHeadersStop}, 1, 2, 1)
		add(event{Kind: httpphases.ResponseHeadersStart}, 1, 2, 2)
		add(event{Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true}, 1, 2, 2)
		add(event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true}, 1, 2)
		b.Finish(now)
		r := rows["/second"]
		assert.Equal(t, httpphases.OK, r.Outcome)
		connect, ok := r.Phase(httpphases.Connect)
		assert.True(t, ok)
		assert.EqualValues(t, 1e5, connect)
		assert.Equal(t, !ended, slices.Contains(rows["/first"].Missing, "connection attempts"))
	}
}

// The content of a duplex call may end long after the call has returned, when its answer
// is streamed: nothing of the call is lost, and its end is no request of its own.
func TestContentOutlastsTheRequest(t *testing.T) {
	type event = httpphases.Event
	for _, ids := range []bool{true, false} {
		rows := 0
		b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
			rows++
			assert.Equal(t, httpphases.OK, r.Outcome)
			assert.Empty(t, r.Missing)
			content, _ := r.Phase(httpphases.RequestContent)
			assert.EqualValues(t, 3e5, content, "up to the end of the call")
		}})
		now := int64(0)
		add := func(kind httpphases.Kind, e event, path ...uint32) {
			now += 1e5
			e.Time, e.Thread, e.Kind = now, 1, kind
			if ids {
				b.Add(below(e, path...))
			} else {
				b.Add(&e)
			}
		}
		const calls = 1000
		for n := range uint32(calls) {
			add(httpphases.RequestStart, event{Scheme: "https", Host: "h", Port: 443, Text: "/Duplex", Major: 2}, 1, n)
			add(httpphases.RequestHeadersStart, event{HasConn: true, Conn: 1}, 1, n, 1)
			add(httpphases.RequestHeadersStop, event{}, 1, n, 1)
			add(httpphases.RequestContentStart, event{}, 1, n, 2)
			add(httpphases.ResponseHeadersStart, event{}, 1, n, 3)
			add(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, n, 3)
			add(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, n)
		}
		for n := range uint32(calls) {
			add(httpphases.RequestContentStop, event{Length: 5}, 1, n, 2)
		}
		b.Finish(now)
		assert.Equal(t, calls, rows)
		if ids {
			assert.Zero(t, b.Stats().NoRequest)
		}
	}
}

// A connection of HTTP/2 that takes no more streams (GOAWAY) makes the step throw at
// which the request was, which then has no stop; the request is sent again elsewhere.
func TestSentAgain(t *testing.T) {
	type event = httpphases.Event
	const again = "no answer; sent again"
	for name, c := range map[string]struct {
		kinds  []httpphases.Kind // of the first try
		phases string
	}{
		"headers": {nil, "request_headers 2 " + again},
		"content": {[]httpphases.Kind{httpphases.RequestHeadersStop, httpphases.RequestContentStart},
			"request_headers 1 request_content 2 " + again},
		"content beside the wait": {[]httpphases.Kind{httpphases.RequestHeadersStop, httpphases.RequestContentStart, httpphases.ResponseHeadersStart},
			"request_headers 1 request_content 3 " + again},
		"early answer": {[]httpphases.Kind{httpphases.RequestHeadersStop, httpphases.RequestContentStart, httpphases.ResponseHeadersStart, httpphases.ResponseHeadersStop},
			"request_headers 1 request_content 2"},
		"wait": {[]httpphases.Kind{httpphases.RequestHeadersStop, httpphases.ResponseHeadersStart},
			"request_headers 1 wait 3 " + again},
	} {
		t.Run(name, func(t *testing.T) {
			var row *httpphases.Request
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { row = r }})
			now, ord := int64(0), uint32(0)
			add := func(kind httpphases.Kind, e event) {
				now += 1e6
				e.Time, e.Thread, e.Kind = now, 1, kind
				switch kind {
				case httpphases.RequestHeadersStart, httpphases.RequestContentStart, httpphases.ResponseHeadersStart:
					ord++
				case httpphases.RequestStart, httpphases.RequestStop:
					b.Add(below(e, 1, 2))
					return
				}
				b.Add(below(e, 1, 2, ord))
			}
			add(httpphases.RequestStart, event{Scheme: "https", Host: "h", Port: 443, Text: "/", Major: 2})
			add(httpphases.RequestHeadersStart, event{HasConn: true, Conn: 1})
			for _, k := range c.kinds {
				add(k, event{Status: 401, HasStatus: true})
			}
			now += 1e6
			add(httpphases.RequestHeadersStart, event{HasConn: true, Conn: 2})
			add(httpphases.RequestHeadersStop, event{})
			add(httpphases.ResponseHeadersStart, event{})
			add(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true})
			add(httpphases.RequestStop, event{Status: 200, HasStatus: true})
			b.Finish(now)
			assert.Equal(t, httpphases.OK, row.Outcome)
			assert.Empty(t, row.Missing)
			got := ""
			for _, p := range row.Phases {
				got += fmt.Sprint(" ", p.Name, " ", p.Duration/1e6)
				if p.Error != "" {
					got += " " + p.Error
				}
			}
			assert.Equal(t, " "+c.phases+" request_headers 1 wait 2", got)
			var earlier []httpphases.Exchange
			if len(c.kinds) > 0 {
				earlier = []httpphases.Exchange{{From: 2e6, Sent: 3e6, Connection: 1}}
			}
			if name == "early answer" {
				earlier[0].Answered = 6e6
			}
			assert.Equal(t, earlier, row.Earlier)
		})
	}
}

// The failure of a request whose activity was stopped, by one inside it, has no id. It
// is not that of whoever had the thread last.
func TestFailureWithoutID(t *testing.T) {
	for _, thread := range []uint64{2, 3, 9} { // threads of others, and one of nobody
		testFailureWithoutID(t, thread)
	}
}

func testFailureWithoutID(t *testing.T, thread uint64) {
	type event = httpphases.Event
	outcomes := map[string]httpphases.Outcome{}
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { outcomes[r.Target] = r.Outcome }})
	now := int64(0)
	add := func(thread uint64, kind httpphases.Kind, e event, path ...uint32) {
		now += 1e5
		e.Time, e.Thread, e.Kind = now, thread, kind
		if path == nil {
			b.Add(&e)
			return
		}
		x := below(e, path...)
		if len(path) == 3 {
			x.Related = below(event{}, path[:2]...).ID
		}
		b.Add(x)
	}
	start := func(thread uint64, target string, n uint32) {
		add(thread, httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: target, Major: 1, Minor: 1}, 1, n)
	}
	send := func(thread uint64, n uint32) {
		add(thread, httpphases.RequestHeadersStart, event{HasConn: true, Conn: int64(n)}, 1, n, 1)
		add(thread, httpphases.RequestHeadersStop, event{}, 1, n, 1)
	}
	answer := func(thread uint64, n uint32) {
		add(thread, httpphases.ResponseHeadersStart, event{}, 1, n, 2)
		add(thread, httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, n, 2)
		add(thread, httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, n)
	}
	start(1, "/outer", 1)
	start(1, "/inner", 2)
	send(1, 2)
	start(2, "/waits", 3) // for a connection: the thread goes on with another one
	start(2, "/other", 4)
	add(3, httpphases.RequestLeftQueue, event{Millis: .1, Major: 1, Minor: 1}, 1, 3)
	send(3, 3)
	send(2, 4)
	answer(1, 2)
	add(thread, httpphases.RequestFailed, event{Text: "no token"})
	add(thread, httpphases.RequestStop, event{Status: -1, HasStatus: true})
	answer(4, 3)
	answer(4, 4)
	b.Finish(now)
	assert.Equal(t, map[string]httpphases.Outcome{"/outer": httpphases.Failed, "/inner": httpphases.OK, "/waits": httpphases.OK, "/other": httpphases.OK}, outcomes)
}
