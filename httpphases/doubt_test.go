package httpphases_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// inSteps runs events that are 1 ms apart, on one thread, in a trace that lost events of
// another one before.
func inSteps(lost bool, add func(step func(k httpphases.Kind, e httpphases.Event, path ...uint32))) []*httpphases.Request {
	var rows []*httpphases.Request
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
	if lost {
		b.Lost(0, 9, 0, 1)
	}
	now := int64(10e6)
	add(func(k httpphases.Kind, e httpphases.Event, path ...uint32) {
		now += 1e6
		e.Kind, e.Time, e.Thread = k, now, 1
		b.Add(below(e, path...))
	})
	b.Finish(now)
	return rows
}

func exchange(step func(httpphases.Kind, httpphases.Event, ...uint32), r uint32) {
	step(httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}, 1, r)
	step(httpphases.RequestHeadersStart, httpphases.Event{Conn: 5, HasConn: true}, 1, r, 1)
	step(httpphases.RequestHeadersStop, httpphases.Event{}, 1, r, 1)
	step(httpphases.ResponseHeadersStart, httpphases.Event{}, 1, r, 2)
	step(httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true}, 1, r, 2)
	step(httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true}, 1, r)
}

// Where events were lost nobody knows whether the first request that is seen on a
// connection opened it; the second one did not.
func TestSecondOfAConnection(t *testing.T) {
	rows := inSteps(true, func(step func(httpphases.Kind, httpphases.Event, ...uint32)) {
		exchange(step, 1)
		exchange(step, 2)
	})
	require.Len(t, rows, 2)
	assert.False(t, rows[0].Connection.NewTold)
	assert.True(t, rows[1].Connection.NewTold)
	assert.False(t, rows[1].Connection.New)
}

// A step that says that it failed, and whose stop is lost, ends with that.
func TestFailedWithoutStop(t *testing.T) {
	rows := inSteps(false, func(step func(httpphases.Kind, httpphases.Event, ...uint32)) {
		step(httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}, 1, 1)
		step(httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:80"}, 1, 1, 1)
		step(httpphases.ConnectFailed, httpphases.Event{Status: 10061}, 1, 1, 1)
		step(httpphases.RequestLeftQueue, httpphases.Event{Millis: 2.5, Major: 1, Minor: 1}, 1, 1)
		step(httpphases.RequestFailed, httpphases.Event{Text: "no"}, 1, 1)
		step(httpphases.RequestStop, httpphases.Event{Status: -1, HasStatus: true}, 1, 1)
	})
	require.Len(t, rows, 1)
	r := rows[0]
	assert.Equal(t, httpphases.Failed, r.Outcome)
	assert.Equal(t, "connection refused (10061)", r.ErrorCause)
	assert.Equal(t, []string{"a stop of connect"}, r.Missing)
	require.Len(t, r.Phases, 2)
	assert.Equal(t, httpphases.Phase{Name: httpphases.Connect, Start: 12e6, Duration: 1e6, Inferred: true, Error: "connection refused (10061)"}, r.Phases[1])
	assert.Equal(t, "inferred", r.Marks().String())
}

// The last phase of a request that failed ends with the failure, and is marked where
// events between may be lost.
func TestFailedInDoubt(t *testing.T) {
	var rows []*httpphases.Request
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
	for i, e := range []httpphases.Event{
		{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1},
		{Kind: httpphases.RequestHeadersStart},
		{Kind: httpphases.RequestHeadersStop},
		{Kind: httpphases.EventsLost, Length: 13e6},
		{Kind: httpphases.RequestFailed, Text: "no"},
		{Kind: httpphases.RequestStop, Status: -1, HasStatus: true},
	} {
		e.Time, e.Thread = int64(11+i)*1e6, 1
		path := []uint32{1, 1}
		if e.Kind == httpphases.RequestHeadersStart || e.Kind == httpphases.RequestHeadersStop {
			path = append(path, 1)
		}
		b.Add(below(e, path...))
	}
	b.Finish(20e6)
	require.Len(t, rows, 1)
	last := rows[0].Phases[len(rows[0].Phases)-1]
	assert.Equal(t, httpphases.Phase{Name: httpphases.Wait, Start: 13e6, Duration: 2e6, Inferred: true, Error: "no"}, last)
}

// Why a request that was served failed is what its explanation tells, down to the innermost exception.
func TestServedErrorCause(t *testing.T) {
	thrown := []httpphases.Exception{{Type: "A", Message: "first"}, {Type: "B", Message: "last", Cause: "C: inside"}}
	s := httpphases.ServerRequest{Outcome: httpphases.Failed}
	assert.Empty(t, s.ErrorCause(), "not explained")
	s.Why = &httpphases.Explanation{Exceptions: thrown}
	assert.Equal(t, "C: inside", s.ErrorCause())
	s.Why.Exceptions = thrown[:1]
	assert.Equal(t, "A: first", s.ErrorCause())
	s.Outcome = httpphases.OK
	assert.Empty(t, s.ErrorCause(), "it was handled")
}

// A CONNECT goes on without the request that it was begun for, and that gave up. Who is the first
// to use the tunnel misses nothing.
func TestTunnelOfWhoGaveUp(t *testing.T) {
	for name, before := range map[string]bool{"while the proxy thinks": true, "while the proxy is connected to": false} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(false, func(step func(httpphases.Kind, httpphases.Event, ...uint32)) {
				start := httpphases.Event{Scheme: "https", Host: "h", Port: 443, Text: "/", Major: 1, Minor: 1}
				giveUp := func() {
					step(httpphases.RequestLeftQueue, httpphases.Event{Millis: 2, Major: 1, Minor: 1}, 1, 1)
					step(httpphases.RequestFailed, httpphases.Event{Text: "A task was canceled."}, 1, 1)
					step(httpphases.RequestStop, httpphases.Event{Status: -1, HasStatus: true}, 1, 1)
				}
				step(httpphases.RequestStart, start, 1, 1)
				step(httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:8080"}, 1, 1, 1)
				if !before {
					giveUp()
				}
				step(httpphases.ConnectStop, httpphases.Event{}, 1, 1, 1)
				step(httpphases.ConnectionEstablished, httpphases.Event{Conn: 5, HasConn: true, Scheme: "http", Host: "127.0.0.1", Port: 8080, Major: 1, Minor: 1}, 1, 1)
				step(httpphases.RequestHeadersStart, httpphases.Event{Conn: 5, HasConn: true}, 1, 1, 2)
				step(httpphases.RequestHeadersStop, httpphases.Event{}, 1, 1, 2)
				if before {
					giveUp()
				}
				step(httpphases.ResponseHeadersStart, httpphases.Event{}, 1, 1, 3)
				step(httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 1, 3)
				step(httpphases.HandshakeStart, httpphases.Event{Host: "h"}, 1, 1, 4)
				step(httpphases.HandshakeStop, httpphases.Event{Status: 12288}, 1, 1, 4)
				step(httpphases.ConnectionEstablished, httpphases.Event{Conn: 6, HasConn: true, Scheme: "https", Host: "h", Port: 443, Major: 1, Minor: 1}, 1)
				step(httpphases.RequestStart, start, 1, 2)
				step(httpphases.RequestHeadersStart, httpphases.Event{Conn: 6, HasConn: true}, 1, 2, 1)
				step(httpphases.RequestHeadersStop, httpphases.Event{}, 1, 2, 1)
				step(httpphases.ResponseHeadersStart, httpphases.Event{}, 1, 2, 2)
				step(httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 2, 2)
				step(httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 2)
			})
			require.Len(t, rows, 2)
			assert.Equal(t, httpphases.Canceled, rows[0].Outcome)
			assert.Equal(t, httpphases.OK, rows[1].Outcome)
			assert.Empty(t, rows[1].Missing)
			require.NotNil(t, rows[1].Connection)
			assert.Equal(t, "127.0.0.1:8080", rows[1].Connection.Proxy)
			assert.Zero(t, rows[1].Marks())
		})
	}
}

// Who comes when a connection is there that nobody has used yet does not wait for one.
func TestFirstOfAConnectionThatWaited(t *testing.T) {
	for name, waited := range map[string]bool{"there before": true, "made meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(true, func(step func(httpphases.Kind, httpphases.Event, ...uint32)) {
				start := httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}
				if !waited {
					step(httpphases.RequestStart, start, 1, 2)
				}
				step(httpphases.RequestStart, start, 1, 1)
				step(httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:80"}, 1, 1, 1)
				step(httpphases.ConnectStop, httpphases.Event{}, 1, 1, 1)
				step(httpphases.ConnectionEstablished, httpphases.Event{Conn: 5, HasConn: true, Scheme: "http", Host: "h", Port: 80, Major: 1, Minor: 1}, 1, 1)
				if waited {
					step(httpphases.RequestStart, start, 1, 2)
				}
				step(httpphases.RequestHeadersStart, httpphases.Event{Conn: 5, HasConn: true}, 1, 2, 1)
				step(httpphases.RequestHeadersStop, httpphases.Event{}, 1, 2, 1)
				step(httpphases.ResponseHeadersStart, httpphases.Event{}, 1, 2, 2)
				step(httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 2, 2)
				step(httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 2)
			})
			require.NotEmpty(t, rows)
			assert.Equal(t, uint32(2), rows[0].Path[1])
			assert.Equal(t, waited, len(rows[0].Missing) == 0, rows[0].Missing)
		})
	}
}

// A connection that another request gave back serves while a CONNECT is spoken for the same one: the
// answers to both are of its activity, and no event names the connection of an answer.
func TestAnswerBesideATunnel(t *testing.T) {
	type at struct {
		kind   httpphases.Kind
		status int32
		conn   int64
	}
	answer := func(status int32) []at {
		return []at{{kind: httpphases.ResponseHeadersStart}, {kind: httpphases.ResponseHeadersStop, status: status}}
	}
	tls := at{kind: httpphases.HandshakeStart}
	content, contentStop := at{kind: httpphases.ResponseContentStart}, at{kind: httpphases.ResponseContentStop}
	for name, c := range map[string]struct {
		late  bool // the CONNECT begins behind the exchange
		steps [][]at
		wait  int64 // ms
	}{
		"the tunnel is built first":   {false, [][]at{answer(200), {tls}, answer(404)}, 4},
		"the tunnel is built last":    {false, [][]at{answer(404), {content}, answer(200), {contentStop, tls}}, 1},
		"the proxy asks who it is":    {false, [][]at{answer(407), {{kind: httpphases.RequestHeadersStart, conn: 5}, {kind: httpphases.RequestHeadersStop}}, answer(200), {tls}, answer(404)}, 8},
		"the proxy does not want to":  {false, [][]at{answer(503), answer(404)}, 3},
		"the tunnel is not built yet": {false, [][]at{answer(404)}, 1},
		"late, and built first":       {true, [][]at{answer(200), {tls}, answer(404)}, 7},
		"late, and built last":        {true, [][]at{answer(404), {content}, answer(200), {contentStop, tls}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			ord := uint32(0)
			rows := inSteps(false, func(step func(httpphases.Kind, httpphases.Event, ...uint32)) {
				next := func(k httpphases.Kind, e httpphases.Event) {
					if k != httpphases.RequestHeadersStop && k != httpphases.ResponseHeadersStop && k != httpphases.ConnectStop && k != httpphases.ResponseContentStop {
						ord++
					}
					step(k, e, 1, 1, ord)
				}
				step(httpphases.RequestStart, httpphases.Event{Scheme: "https", Host: "h", Port: 443, Text: "/", Major: 1, Minor: 1}, 1, 1)
				step(httpphases.ConnectionEstablished, httpphases.Event{Conn: 4, HasConn: true, Scheme: "https", Host: "h", Port: 443, Major: 1, Minor: 1}, 1)
				next(httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:8080"})
				next(httpphases.ConnectStop, httpphases.Event{})
				step(httpphases.ConnectionEstablished, httpphases.Event{Conn: 5, HasConn: true, Scheme: "http", Host: "127.0.0.1", Port: 8080, Major: 1, Minor: 1}, 1, 1)
				connect := func() {
					next(httpphases.RequestHeadersStart, httpphases.Event{Conn: 5, HasConn: true})
					next(httpphases.RequestHeadersStop, httpphases.Event{})
				}
				if !c.late {
					connect()
				}
				step(httpphases.RequestLeftQueue, httpphases.Event{Millis: 3, Major: 1, Minor: 1}, 1, 1)
				next(httpphases.RequestHeadersStart, httpphases.Event{Conn: 4, HasConn: true})
				next(httpphases.RequestHeadersStop, httpphases.Event{})
				if c.late {
					step(httpphases.RequestLeftQueue, httpphases.Event{Millis: 5, Major: 1, Minor: 1}, 1, 1)
					connect()
				}
				for _, l := range c.steps {
					for _, v := range l {
						next(v.kind, httpphases.Event{Status: v.status, HasStatus: v.status != 0, Conn: v.conn, HasConn: v.conn != 0, Host: "h"})
					}
				}
				step(httpphases.RequestStop, httpphases.Event{Status: 404, HasStatus: true}, 1, 1)
			})
			require.Len(t, rows, 1)
			r := rows[0]
			assert.Equal(t, httpphases.OK, r.Outcome)
			assert.Empty(t, r.Missing)
			assert.Equal(t, int64(4), r.Connection.ID)
			assert.Equal(t, httpphases.Queue, r.Phases[0].Name)
			for _, p := range r.Phases {
				if p.Name == httpphases.Wait {
					assert.Equal(t, c.wait*1e6, p.Duration)
				}
				assert.NotEqual(t, httpphases.Proxy, p.Name)
			}
		})
	}
}

// A number between the request and its answer is that of something that was lost, if it is not that
// of an attempt.
func TestNumbersBeforeTheAnswer(t *testing.T) {
	for name, attempt := range map[string]bool{"of an attempt": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(true, func(step func(httpphases.Kind, httpphases.Event, ...uint32)) {
				step(httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 2}, 1, 1)
				step(httpphases.RequestHeadersStart, httpphases.Event{Conn: 5, HasConn: true}, 1, 1, 1)
				if attempt {
					step(httpphases.ResolutionStart, httpphases.Event{Text: "h"}, 1, 1, 2)
				}
				step(httpphases.RequestHeadersStop, httpphases.Event{}, 1, 1, 1)
				step(httpphases.ResponseHeadersStart, httpphases.Event{}, 1, 1, 3)
				step(httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 1, 3)
				step(httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true}, 1, 1)
			})
			require.Len(t, rows, 1)
			assert.Equal(t, attempt, slices.ContainsFunc(rows[0].Phases, func(p httpphases.Phase) bool { return p.Name == httpphases.Wait }))
		})
	}
}

// Without ids a socket is not the next try of an attempt that was over when its request was, nor of
// one that goes to another port.
func TestConnectWithoutIDs(t *testing.T) {
	for name, address := range map[string]string{"the same port again": "127.0.0.1:80", "another port": "127.0.0.1:81"} {
		t.Run(name, func(t *testing.T) {
			var rows []*httpphases.Request
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
			now := int64(0)
			step := func(k httpphases.Kind, e httpphases.Event) {
				now += 1e6
				e.Kind, e.Time, e.Thread = k, now, 1
				b.Add(&e)
			}
			fail := func() {
				step(httpphases.RequestLeftQueue, httpphases.Event{Millis: 2, Major: 1, Minor: 1})
				step(httpphases.RequestFailed, httpphases.Event{Text: "no"})
				step(httpphases.RequestStop, httpphases.Event{Status: -1, HasStatus: true})
			}
			start := httpphases.Event{Scheme: "http", Host: "127.0.0.1", Port: 80, Text: "/", Major: 1, Minor: 1}
			step(httpphases.RequestStart, start)
			step(httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:80"})
			step(httpphases.ConnectFailed, httpphases.Event{Status: 10061})
			step(httpphases.ConnectStop, httpphases.Event{})
			fail()
			step(httpphases.RequestStart, start)
			step(httpphases.ConnectStart, httpphases.Event{Text: address})
			from := now
			fail()
			b.Finish(now)
			require.Len(t, rows, 2)
			phases := rows[1].Phases
			i := slices.IndexFunc(phases, func(p httpphases.Phase) bool { return p.Name == httpphases.Connect })
			require.GreaterOrEqual(t, i, 0, phases)
			assert.Equal(t, from, phases[i].Start)
			assert.Empty(t, rows[1].Side)
		})
	}
}

// withoutIDs returns what takes an event, 1 ms behind the one before, and what ends them.
func withoutIDs() (step func(uint64, httpphases.Kind, httpphases.Event), finish func() []*httpphases.Request) {
	var rows []*httpphases.Request
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
	now := int64(0)
	step = func(thread uint64, k httpphases.Kind, e httpphases.Event) {
		now += 1e6
		e.Kind, e.Time, e.Thread = k, now, thread
		b.Add(&e)
	}
	return step, func() []*httpphases.Request {
		b.Finish(now)
		return rows
	}
}

// A connection is not that of an attempt whose handshake has not ended: without ids that of a
// request that gave up never does.
func TestConnectionBesideAnOpenHandshake(t *testing.T) {
	step, finish := withoutIDs()
	step(1, httpphases.RequestStart, httpphases.Event{Scheme: "https", Host: "secure", Port: 443, Text: "/", Major: 1, Minor: 1})
	step(1, httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:443"})
	step(1, httpphases.ConnectStop, httpphases.Event{})
	step(1, httpphases.HandshakeStart, httpphases.Event{Host: "secure"})
	step(1, httpphases.RequestLeftQueue, httpphases.Event{Millis: 3, Major: 1, Minor: 1})
	step(1, httpphases.RequestFailed, httpphases.Event{Text: "The operation was canceled."})
	step(1, httpphases.RequestStop, httpphases.Event{Status: -1, HasStatus: true})
	step(1, httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "plain", Port: 80, Text: "/", Major: 1, Minor: 1})
	step(2, httpphases.ConnectStart, httpphases.Event{Text: "127.0.0.1:1080"})
	step(2, httpphases.ConnectStop, httpphases.Event{})
	step(1, httpphases.ConnectionEstablished, httpphases.Event{Conn: 1, HasConn: true, Scheme: "http", Host: "plain", Port: 80, Major: 1, Minor: 1})
	step(1, httpphases.RequestLeftQueue, httpphases.Event{Millis: 3, Major: 1, Minor: 1})
	step(1, httpphases.RequestHeadersStart, httpphases.Event{Conn: 1, HasConn: true})
	step(1, httpphases.RequestHeadersStop, httpphases.Event{})
	step(1, httpphases.ResponseHeadersStart, httpphases.Event{})
	step(1, httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true})
	step(1, httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true})
	rows := finish()
	require.Len(t, rows, 2)
	assert.Empty(t, rows[1].Missing)
	assert.Equal(t, httpphases.OK, rows[1].Outcome)
	assert.True(t, slices.ContainsFunc(rows[1].Phases, func(p httpphases.Phase) bool { return p.Name == httpphases.Connect }))
}

// Without ids what a request lacks may have been taken for that of another one: it is no sign that
// the trace lost events, and a request that ended is whole.
func TestWhatIsMissingWithoutIDs(t *testing.T) {
	for _, lost := range []bool{false, true} {
		step, finish := withoutIDs()
		if lost {
			step(1, httpphases.EventsLost, httpphases.Event{})
		}
		for _, k := range []httpphases.Kind{httpphases.RequestContentStart, httpphases.ResponseContentStart} {
			step(1, httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1})
			step(1, k, httpphases.Event{})
			step(1, k+1, httpphases.Event{})
			step(1, httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true})
		}
		rows := finish()
		require.Len(t, rows, 2)
		assert.Contains(t, rows[0].Missing, "request headers")
		if lost {
			assert.Equal(t, httpphases.Incomplete, rows[0].Outcome)
			continue
		}
		assert.Equal(t, httpphases.OK, rows[0].Outcome)
		assert.Equal(t, httpphases.OK, rows[1].Outcome, "a handler of the program's own answered it")
	}
}

// Without ids the connection that was closed tells which of two requests gave up, and which one is
// answered.
func TestWhoseConnectionIsClosedWithoutIDs(t *testing.T) {
	for closed := range int64(3) {
		step, finish := withoutIDs()
		for n := range int64(3) {
			step(1, httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1})
			step(1, httpphases.RequestHeadersStart, httpphases.Event{Conn: n, HasConn: true})
			step(1, httpphases.RequestHeadersStop, httpphases.Event{})
		}
		step(2, httpphases.ConnectionClosed, httpphases.Event{Conn: closed, HasConn: true})
		step(3, httpphases.ResponseHeadersStart, httpphases.Event{})
		step(3, httpphases.ResponseHeadersStop, httpphases.Event{Status: 200, HasStatus: true})
		step(3, httpphases.RequestStop, httpphases.Event{Status: 200, HasStatus: true})
		step(4, httpphases.RequestFailed, httpphases.Event{Text: "The operation was canceled."})
		step(4, httpphases.RequestStop, httpphases.Event{Status: -1, HasStatus: true})
		rows := finish()
		require.Len(t, rows, 3)
		assert.Equal(t, httpphases.OK, rows[0].Outcome)
		assert.NotEqual(t, closed, rows[0].Connection.ID)
		assert.Equal(t, httpphases.Canceled, rows[1].Outcome)
		assert.Equal(t, closed, rows[1].Connection.ID)
	}
}

// Two requests wait for a connection, one of them gives up: which one, nothing tells. What is left for
// the other one is a guess, too.
func TestRivalsWithoutIDs(t *testing.T) {
	step, finish := withoutIDs()
	type event = httpphases.Event
	start := event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}
	step(1, httpphases.RequestStart, start)
	step(1, httpphases.RequestStart, start)
	step(2, httpphases.RequestFailed, event{Text: "A task was canceled."})
	step(2, httpphases.RequestStop, event{Status: -1, HasStatus: true})
	step(3, httpphases.RequestLeftQueue, event{Millis: 3, Major: 1, Minor: 1})
	step(3, httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true})
	step(3, httpphases.RequestHeadersStop, event{})
	step(3, httpphases.ResponseHeadersStart, event{})
	step(3, httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true})
	step(3, httpphases.RequestStop, event{Status: 200, HasStatus: true})
	rows := finish()
	require.Len(t, rows, 2)
	for _, r := range rows {
		assert.Equal(t, httpphases.Guessed, r.Marks())
	}
}

// Without ids the span of a request tells that it is answered, and how, where the end of the headers was
// taken for that of another one: what follows on the thread is of this request.
func TestSpanTellsTheAnswerWithoutIDs(t *testing.T) {
	step, finish := withoutIDs()
	span := func(n int) *httpphases.Span {
		return &httpphases.Span{Name: "System.Net.Http.HttpRequestOut", ID: fmt.Sprint("span", n), SpanID: fmt.Sprint(n)}
	}
	step(1, httpphases.ConnectionEstablished, httpphases.Event{Conn: 1, HasConn: true, Scheme: "http", Host: "h", Port: 80, Major: 2})
	for n := range 3 {
		step(1, httpphases.RequestStart, httpphases.Event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 2, Policy: 2})
		step(1, httpphases.SpanStart, httpphases.Event{Span: span(n)})
		step(1, httpphases.RequestHeadersStart, httpphases.Event{Conn: 1, HasConn: true})
		step(1, httpphases.RequestHeadersStop, httpphases.Event{})
		step(1, httpphases.ResponseHeadersStart, httpphases.Event{})
	}
	status := []int{200, 404, 500}
	for _, n := range []int{2, 0, 1} {
		s := span(n)
		s.Status = status[n]
		step(2, httpphases.SpanStop, httpphases.Event{Span: s})
		step(2, httpphases.ResponseContentStart, httpphases.Event{})
		step(2, httpphases.ResponseContentStop, httpphases.Event{})
		step(2, httpphases.RequestStop, httpphases.Event{Status: int32(status[n]), HasStatus: true})
	}
	var got []string
	for _, r := range finish() {
		got = append(got, fmt.Sprintln(r.Start/1e6, r.Outcome, r.Status, r.Duration/1e6))
	}
	slices.Sort(got)
	assert.Equal(t, []string{"12 ok 500 8\n", "2 ok 200 22\n", "7 ok 404 21\n"}, got)
}
