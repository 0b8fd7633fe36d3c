package httpphases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// told lists phases with their starts and durations in ms, and a ! on those that failed.
func told(r *httpphases.Request) string {
	var l []string
	for _, p := range r.Phases {
		failed := ""
		if p.Error != "" {
			failed = "!"
		}
		l = append(l, fmt.Sprintf("%s %d+%d%s", p.Name, (p.Start-r.Start)/1e6, p.Duration/1e6, failed))
	}
	return strings.Join(l, " ")
}

// A handler, such as a service discovery, sends a request to another place than its URL names. A
// connection there is none to a proxy, and what is sent on it no CONNECT.
func TestSentElsewhere(t *testing.T) {
	type event = httpphases.Event
	ok := event{Status: 200, HasStatus: true}
	for name, c := range map[string]struct {
		url, to string // schemes
		major   uint8
		rest    func(step func(httpphases.Kind, event, ...uint32), answer func(status int32))
		phases  string
	}{
		"http":    {"http", "http", 1, nil, "connect 1+1 request_headers 4+1 wait 5+1 response_headers 6+1"},
		"https":   {"https", "https", 1, nil, "connect 1+1 tls 3+1 request_headers 6+1 wait 7+1 response_headers 8+1"},
		"to http": {"https", "http", 1, nil, "connect 1+1 request_headers 4+1 wait 5+1 response_headers 6+1"},
		"HTTP/2":  {"https", "http", 2, nil, "connect 1+1 request_headers 4+1 wait 5+2"},
		"either":  {"https+http", "http", 1, nil, "connect 1+1 request_headers 4+1 wait 5+1 response_headers 6+1"},
		"with content": {"https", "http", 1, func(step func(httpphases.Kind, event, ...uint32), answer func(int32)) {
			step(httpphases.RequestContentStart, event{}, 1, 2, 5)
			step(httpphases.RequestContentStop, event{Length: 7}, 1, 2, 5)
			answer(200)
			step(httpphases.RequestStop, ok, 1, 2)
		}, "connect 1+1 request_headers 4+1 request_content 6+1 wait 7+1 response_headers 8+1"},
		"with a body": {"https", "http", 1, func(step func(httpphases.Kind, event, ...uint32), answer func(int32)) {
			answer(200)
			step(httpphases.ResponseContentStart, event{}, 1, 2, 7)
			step(httpphases.ResponseContentStop, event{}, 1, 2, 7)
			step(httpphases.RequestStop, ok, 1, 2)
		}, "connect 1+1 request_headers 4+1 wait 5+1 response_headers 6+1 response_content 8+1"},
		"tried again": {"https", "http", 1, func(step func(httpphases.Kind, event, ...uint32), answer func(int32)) {
			answer(503)
			step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 7)
			step(httpphases.RequestHeadersStop, event{}, 1, 2, 7)
			answer(200)
			step(httpphases.RequestStop, ok, 1, 2)
		}, "connect 1+1 request_headers 4+1 wait 5+1 response_headers 6+1 request_headers 8+1 wait 9+1 response_headers 10+1"},
		"redirected": {"https", "http", 1, func(step func(httpphases.Kind, event, ...uint32), answer func(int32)) {
			answer(302)
			step(httpphases.RequestRedirect, event{Text: "http://10.0.0.7:8080/b"}, 1, 2)
			step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 7)
			step(httpphases.RequestHeadersStop, event{}, 1, 2, 7)
			answer(200)
			step(httpphases.RequestStop, ok, 1, 2)
		}, "redirect 0+8 request_headers 9+1 wait 10+1 response_headers 11+1"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
				ord := uint32(10)
				answer := func(status int32) {
					ord++
					step(httpphases.ResponseHeadersStart, event{}, 1, 2, ord)
					step(httpphases.ResponseHeadersStop, event{Status: status, HasStatus: true}, 1, 2, ord)
				}
				step(httpphases.RequestStart, event{Scheme: c.url, Host: "catalog", Port: 443, Text: "/", Major: 1, Minor: 1}, 1, 2)
				step(httpphases.ConnectStart, event{Text: "10.0.0.7:8080"}, 1, 2, 1)
				step(httpphases.ConnectStop, event{}, 1, 2, 1)
				if c.to == "https" {
					step(httpphases.HandshakeStart, event{Host: "10.0.0.7"}, 1, 2, 2)
					step(httpphases.HandshakeStop, event{Status: 12288}, 1, 2, 2)
				}
				step(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: c.to, Host: "10.0.0.7", Port: 8080, Text: "10.0.0.7", Major: c.major}, 1, 2)
				step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 4)
				step(httpphases.RequestHeadersStop, event{}, 1, 2, 4)
				if c.rest != nil {
					c.rest(step, answer)
				} else {
					answer(200)
					step(httpphases.RequestStop, ok, 1, 2)
				}
				// Once that is known, it is of requests without an answer, too.
				step(httpphases.RequestStart, event{Scheme: c.url, Host: "catalog", Port: 443, Text: "/", Major: 1, Minor: 1}, 1, 3)
				step(httpphases.ConnectionEstablished, event{Conn: 6, HasConn: true, Scheme: c.to, Host: "10.0.0.7", Port: 8080, Text: "10.0.0.7", Major: c.major}, 1, 3)
				step(httpphases.RequestHeadersStart, event{Conn: 6, HasConn: true}, 1, 3, 1)
				step(httpphases.RequestHeadersStop, event{}, 1, 3, 1)
				step(httpphases.RequestFailed, event{Text: "A task was canceled."}, 1, 3)
				step(httpphases.RequestStop, event{Status: -1, HasStatus: true}, 1, 3)
			})
			require.Len(t, rows, 2)
			r := rows[0]
			assert.Equal(t, httpphases.OK, r.Outcome)
			assert.Empty(t, r.Missing)
			assert.Equal(t, c.phases, told(r))
			conn := r.Connection
			if len(r.Redirects) > 0 {
				assert.False(t, conn.Elsewhere, "the redirect named it")
				conn = r.Redirects[0].Connection
			}
			require.NotNil(t, conn)
			assert.Equal(t, int64(5), conn.ID)
			assert.True(t, conn.New)
			assert.Equal(t, httpphases.Own, conn.Class)
			assert.Empty(t, conn.Proxy)
			assert.True(t, conn.Elsewhere)
			assert.Equal(t, 8080, conn.Port)
			assert.Equal(t, "request_headers 2+1 wait 3+1!", told(rows[1]))
		})
	}
}

// A CONNECT is sent on a connection of HTTP/1.1 whose scheme is http. What is sent on another one is a
// request, also where it gets no answer.
func TestSentElsewhereWithoutAnswer(t *testing.T) {
	type event = httpphases.Event
	for name, c := range map[string]struct {
		scheme string
		major  uint8
		phases string
	}{
		"a proxy, perhaps": {"http", 1, "proxy 2+2!"},
		"TLS":              {"https", 1, "request_headers 2+1 wait 3+1!"},
		"HTTP/2":           {"http", 2, "request_headers 2+1 wait 3+1!"},
	} {
		rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
			step(httpphases.RequestStart, event{Scheme: "https", Host: "catalog", Port: 443, Text: "/", Major: 1, Minor: 1}, 1, 2)
			step(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: c.scheme, Host: "10.0.0.7", Port: 8080, Major: c.major}, 1, 2)
			step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 1)
			step(httpphases.RequestHeadersStop, event{}, 1, 2, 1)
			step(httpphases.RequestFailed, event{Text: "A task was canceled."}, 1, 2)
			step(httpphases.RequestStop, event{Status: -1, HasStatus: true}, 1, 2)
		})
		require.Len(t, rows, 1)
		assert.Equal(t, c.phases, told(rows[0]), name)
	}
}

// A proxy that refuses a CONNECT is one, even if a handler asks it again or has an answer of its own.
func TestRefusedByAProxy(t *testing.T) {
	type event = httpphases.Event
	for name, again := range map[string]bool{"answered by a handler": false, "asked again": true} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
				ord := uint32(1)
				connect := func() {
					step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, ord+1)
					step(httpphases.RequestHeadersStop, event{}, 1, 2, ord+1)
					step(httpphases.ResponseHeadersStart, event{}, 1, 2, ord+2)
					step(httpphases.ResponseHeadersStop, event{Status: 403, HasStatus: true}, 1, 2, ord+2)
					step(httpphases.RequestLeftQueue, event{Millis: 5.5, Major: 1, Minor: 1}, 1, 2)
					ord += 2
				}
				step(httpphases.RequestStart, event{Scheme: "https", Host: "h", Port: 443, Text: "/", Major: 1, Minor: 1}, 1, 2)
				step(httpphases.ConnectStart, event{Text: "10.0.0.7:8080"}, 1, 2, 1)
				step(httpphases.ConnectStop, event{}, 1, 2, 1)
				step(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: "http", Host: "10.0.0.7", Port: 8080, Major: 1, Minor: 1}, 1, 2)
				connect()
				if again {
					connect()
				}
				step(httpphases.RequestStop, event{Status: 503, HasStatus: true}, 1, 2)
			})
			require.Len(t, rows, 1)
			assert.Nil(t, rows[0].Connection)
			assert.NotContains(t, told(rows[0]), "request_headers")
		})
	}
}

// A proxy that refuses a CONNECT may keep its connection, on which another request sends the next one.
func TestRefusedByAProxyThatKeepsTheConnection(t *testing.T) {
	type event = httpphases.Event
	rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
		for i, status := range []int32{407, 403, 0} {
			r := []uint32{1, uint32(i + 2)}
			below := func(n uint32) []uint32 { return append(r[:2:2], n) }
			step(httpphases.RequestStart, event{Scheme: "https", Host: "h", Port: 443, Text: "/", Major: 1, Minor: 1}, r...)
			if i == 0 {
				step(httpphases.ConnectStart, event{Text: "10.0.0.7:8080"}, below(1)...)
				step(httpphases.ConnectStop, event{}, below(1)...)
				step(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: "http", Host: "10.0.0.7", Port: 8080, Major: 1, Minor: 1}, r...)
			}
			step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, below(2)...)
			step(httpphases.RequestHeadersStop, event{}, below(2)...)
			if status != 0 {
				step(httpphases.ResponseHeadersStart, event{}, below(3)...)
				step(httpphases.ResponseHeadersStop, event{Status: status, HasStatus: true}, below(3)...)
			}
			step(httpphases.RequestFailed, event{Text: "no tunnel"}, r...)
			step(httpphases.RequestStop, event{Status: -1, HasStatus: true}, r...)
		}
	})
	require.Len(t, rows, 3)
	for i, want := range []string{"connect 1+1 proxy 4+3!", "proxy 1+3!", "proxy 1+2!"} {
		assert.Equal(t, want, told(rows[i]))
		assert.Empty(t, rows[i].Side)
	}
	assert.Equal(t, "proxy answered 407", rows[0].Phases[1].Error)
	assert.Equal(t, "proxy answered 403", rows[1].Phases[0].Error)
}

// A request to a proxy is sent on a connection that has no port of its own.
func TestThroughAProxy(t *testing.T) {
	type event = httpphases.Event
	rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
		step(httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}, 1, 2)
		step(httpphases.ConnectStart, event{Text: "10.0.0.7:8080"}, 1, 2, 1)
		step(httpphases.ConnectStop, event{}, 1, 2, 1)
		step(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: "http", Host: "10.0.0.7", Major: 1, Minor: 1}, 1, 2)
		step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 2)
		step(httpphases.RequestHeadersStop, event{}, 1, 2, 2)
		step(httpphases.ResponseHeadersStart, event{}, 1, 2, 3)
		step(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 3)
		step(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
	})
	require.Len(t, rows, 1)
	assert.Equal(t, "10.0.0.7:8080", rows[0].Connection.Proxy)
	assert.False(t, rows[0].Connection.Elsewhere)
}

// A handler that follows redirects itself makes two exchanges of one request, of which nothing is
// missing.
func TestRedirectOfAHandler(t *testing.T) {
	type event = httpphases.Event
	for lost, missing := range map[bool][]string{false: nil, true: {"a redirect"}} {
		rows := inSteps(lost, func(step func(httpphases.Kind, event, ...uint32)) {
			step(httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}, 1, 2)
			for i, status := range []int32{302, 200} {
				ord := uint32(2 * i)
				step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, ord+1)
				step(httpphases.RequestHeadersStop, event{}, 1, 2, ord+1)
				step(httpphases.ResponseHeadersStart, event{}, 1, 2, ord+2)
				step(httpphases.ResponseHeadersStop, event{Status: status, HasStatus: true}, 1, 2, ord+2)
			}
			step(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
		})
		require.Len(t, rows, 1)
		assert.Equal(t, missing, rows[0].Missing)
		assert.Equal(t, "request_headers 1+1 wait 2+1 response_headers 3+1 request_headers 5+1 wait 6+1 response_headers 7+1", told(rows[0]))
	}
}

// A handler has two exchanges of one request under way at a time: a second one that begins if the
// first is late, or a copy of it. The row is that of the one whose answer came last, with what was
// before it.
func TestExchangesBesideEachOther(t *testing.T) {
	type event = httpphases.Event
	type step = func(httpphases.Kind, event, ...uint32)
	answer := func(s step, ord uint32) {
		s(httpphases.ResponseHeadersStart, event{}, 1, 2, ord)
		s(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, ord)
	}
	closed := func(s step, conn int64) {
		s(httpphases.ConnectionClosed, event{Conn: conn, HasConn: true}, 1)
	}
	for name, c := range map[string]struct {
		major  uint8
		rest   func(step)
		phases string
		conn   int64
		marks  httpphases.Marks
	}{
		"the first is given up": {1, func(s step) { answer(s, 3); closed(s, 5) },
			"request_headers 3+1 wait 4+0! queue 4+0 request_headers 6+1 wait 7+1 response_headers 8+1 response_content 11+1", 6, httpphases.Guessed},
		"the second is given up": {1, func(s step) { answer(s, 3); closed(s, 6) },
			"request_headers 3+1 wait 4+4 response_headers 8+1 response_content 11+1", 5, httpphases.Guessed},
		"the first had been given up": {1, func(s step) { closed(s, 5); answer(s, 3) },
			"request_headers 3+1 wait 4+0! queue 4+0 request_headers 6+1 wait 7+2 response_headers 9+1 response_content 11+1", 6, 0},
		"both are answered": {1, func(s step) { answer(s, 3); answer(s, 4) },
			"request_headers 3+1 wait 4+6 response_headers 10+1 response_content 12+1", 5, httpphases.Guessed},
		"HTTP/2, the first": {2, func(s step) {
			s(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 11)
		}, "request_headers 3+1 wait 4+5 response_content 10+1", 5, 0},
		"HTTP/2, the second": {2, func(s step) {
			s(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 12)
		}, "request_headers 3+1 wait 4+2! request_headers 6+1 wait 7+2 response_content 10+1", 5, 0},
		"HTTP/2, both": {2, func(s step) {
			s(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 11)
			s(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 12)
		}, "request_headers 3+1 wait 4+2 request_headers 6+1 wait 7+3 response_content 11+1", 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(false, func(s step) {
				s(httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}, 1, 2)
				s(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: "http", Host: "h", Port: 80, Major: c.major}, 1)
				s(httpphases.ConnectionEstablished, event{Conn: 6, HasConn: true, Scheme: "http", Host: "h", Port: 80, Major: c.major}, 1)
				send := func(conn int64, ord uint32) {
					s(httpphases.RequestHeadersStart, event{Conn: conn, HasConn: true}, 1, 2, ord)
					s(httpphases.RequestHeadersStop, event{}, 1, 2, ord)
					if c.major == 2 {
						s(httpphases.ResponseHeadersStart, event{}, 1, 2, 10+ord)
					}
				}
				send(5, 1)
				if c.major == 1 {
					s(httpphases.RequestLeftQueue, event{Millis: .5, Major: 1}, 1, 2)
					send(6, 2)
				} else {
					send(5, 2)
				}
				c.rest(s)
				s(httpphases.ResponseContentStart, event{}, 1, 2, 20)
				s(httpphases.ResponseContentStop, event{}, 1, 2, 20)
				s(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
			})
			require.Len(t, rows, 1)
			r := rows[0]
			assert.Equal(t, httpphases.OK, r.Outcome)
			assert.Empty(t, r.Missing)
			assert.Equal(t, c.phases, told(r))
			assert.Equal(t, c.conn, r.Connection.ID)
			assert.Equal(t, c.marks, r.Marks())
			assert.Len(t, r.Earlier, 1, "the other one")
		})
	}
}

// Where neither sockets nor name resolution are recorded, the id of ConnectionEstablished tells for whom
// a connection was opened. Without ids nothing does.
func TestOpenedForWhomWithoutSockets(t *testing.T) {
	type event = httpphases.Event
	start := event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}
	established := event{Conn: 5, HasConn: true, Scheme: "http", Host: "h", Port: 80, Major: 1, Minor: 1}
	for name, c := range map[string]struct {
		by   uint32 // whose id it has; 0: none, as that request has ended
		ids  bool
		want httpphases.Class
	}{
		"for itself":   {2, true, httpphases.Own},
		"for another":  {3, true, httpphases.Adopted},
		"for one gone": {0, true, httpphases.Adopted},
		"without ids":  {0, false, httpphases.NoConnection},
	} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
				below := func(k httpphases.Kind, e event, path ...uint32) {
					if !c.ids {
						path = nil
					}
					step(k, e, path...)
				}
				below(httpphases.RequestStart, start, 1, 2)
				if c.by == 3 {
					below(httpphases.RequestStart, start, 1, 3)
				}
				if c.by != 0 {
					below(httpphases.ConnectionEstablished, established, 1, c.by)
				} else {
					step(httpphases.ConnectionEstablished, established)
				}
				below(httpphases.RequestLeftQueue, event{Millis: 1, Major: 1, Minor: 1}, 1, 2)
				below(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 1)
				below(httpphases.RequestHeadersStop, event{}, 1, 2, 1)
				below(httpphases.ResponseHeadersStart, event{}, 1, 2, 2)
				below(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 2)
				below(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
			})
			conn := rows[0].Connection
			require.NotNil(t, conn)
			assert.True(t, conn.New)
			assert.Equal(t, c.want, conn.Class)
		})
	}
}

// A CONNECT is told by the events of System.Net.Http alone, and so are the proxy and whose tunnel it is.
func TestTunnelWithoutSockets(t *testing.T) {
	type event = httpphases.Event
	for _, ids := range []bool{true, false} {
		rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
			below := func(k httpphases.Kind, e event, path ...uint32) {
				if !ids {
					path = nil
				}
				step(k, e, path...)
			}
			exchange := func(conn int64, ord uint32) {
				below(httpphases.RequestHeadersStart, event{Conn: conn, HasConn: true}, 1, 2, ord)
				below(httpphases.RequestHeadersStop, event{}, 1, 2, ord)
				below(httpphases.ResponseHeadersStart, event{}, 1, 2, ord+1)
				below(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, ord+1)
			}
			below(httpphases.RequestStart, event{Scheme: "https", Host: "h", Port: 443, Text: "/", Major: 1, Minor: 1}, 1, 2)
			below(httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: "http", Host: "10.0.0.7", Port: 8080, Major: 1, Minor: 1}, 1, 2)
			exchange(5, 1)
			below(httpphases.ConnectionEstablished, event{Conn: 6, HasConn: true, Scheme: "https", Host: "h", Port: 443, Major: 1, Minor: 1}, 1, 2)
			below(httpphases.RequestLeftQueue, event{Millis: 6.5, Major: 1, Minor: 1}, 1, 2)
			exchange(6, 3)
			below(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
		})
		require.Len(t, rows, 1)
		assert.Equal(t, "queue 0+6 proxy 2+3 request_headers 8+1 wait 9+1 response_headers 10+1", told(rows[0]), "ids: %t", ids)
		require.NotNil(t, rows[0].Connection)
		assert.Equal(t, "10.0.0.7:8080", rows[0].Connection.Proxy)
		assert.Equal(t, httpphases.Own, rows[0].Connection.Class)
	}
}

// A request that expects a 100 Continue holds its content back for it: for as long as it takes on
// HTTP/2, where no event tells that it came, and for the handler's timeout where it does not come.
func TestContentHeldBack(t *testing.T) {
	type event = httpphases.Event
	for name, c := range map[string]struct {
		major   uint8
		threads [2]uint64 // of the headers and of the content
		after   int64     // ms
		want    string
	}{
		"no 100":                {1, [2]uint64{1, 2}, 20, "request_headers 1+1 wait 2+20 request_content 22+1 wait 23+1 response_headers 24+1"},
		"on the same thread":    {1, [2]uint64{1, 1}, 150, "request_headers 1+1 wait 2+150 request_content 152+1 wait 153+1 response_headers 154+1"},
		"a thread that stopped": {1, [2]uint64{1, 1}, 20, "request_headers 1+1 request_content 22+1 wait 23+1 response_headers 24+1"},
		"HTTP/2":                {2, [2]uint64{1, 2}, 20, "request_headers 1+1 wait 2+20 request_content 22+1 wait 23+2"},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []*httpphases.Request
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
			now := int64(0)
			step := func(thread uint64, k httpphases.Kind, e event, path ...uint32) {
				now += 1e6
				e.Kind, e.Time, e.Thread = k, now, thread
				b.Add(below(e, path...))
			}
			step(9, httpphases.ConnectionEstablished, event{Conn: 5, HasConn: true, Scheme: "http", Host: "h", Port: 80, Major: c.major}, 1, 9)
			step(1, httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: c.major}, 1, 2)
			step(1, httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 1)
			step(c.threads[0], httpphases.RequestHeadersStop, event{}, 1, 2, 1)
			if c.major == 2 {
				now -= 1e6
				step(1, httpphases.ResponseHeadersStart, event{}, 1, 2, 2)
			}
			now += (c.after - 1) * 1e6
			step(c.threads[1], httpphases.RequestContentStart, event{}, 1, 2, 3)
			step(c.threads[1], httpphases.RequestContentStop, event{Length: 7}, 1, 2, 3)
			if c.major == 1 {
				step(1, httpphases.ResponseHeadersStart, event{}, 1, 2, 4)
			} else {
				now += 1e6
			}
			step(1, httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 4)
			step(1, httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
			b.Finish(now)
			require.Len(t, rows, 1)
			assert.Equal(t, c.want, told(rows[0]))
		})
	}
}

// Who asks for HTTP/2 and nothing below waits until the headers of the answer are there, also on a
// connection whose version was told before the trace, and where the wait began late.
func TestVersionAskedFor(t *testing.T) {
	type event = httpphases.Event
	for name, c := range map[string]struct {
		policy  int32
		version string
		want    string
	}{
		"or lower":  {0, "", "request_headers 1+1 wait 2+4 response_headers 6+1"},
		"or higher": {1, "", "request_headers 1+1 wait 2+5"},
		"exactly":   {2, "2.0", "request_headers 1+1 wait 2+5"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
				step(httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 2, Policy: c.policy}, 1, 2)
				step(httpphases.RequestHeadersStart, event{Conn: 5, HasConn: true}, 1, 2, 1)
				step(httpphases.RequestHeadersStop, event{}, 1, 2, 1)
				for range 3 {
					step(httpphases.OtherStart, event{}, 1, 9)
				}
				step(httpphases.ResponseHeadersStart, event{}, 1, 2, 2)
				step(httpphases.ResponseHeadersStop, event{Status: 200, HasStatus: true}, 1, 2, 2)
				step(httpphases.RequestStop, event{Status: 200, HasStatus: true}, 1, 2)
			})
			require.Len(t, rows, 1)
			assert.Equal(t, c.want, told(rows[0]))
			assert.Equal(t, c.version, rows[0].Version)
		})
	}
}

// With the bridge the steps of a request are inside its span. Another request that begins on its thread
// while it waits has not stopped its activity, and what has no id is of a request from before the trace.
func TestSpanTellsThatAnActivityGoesOn(t *testing.T) {
	type event = httpphases.Event
	start := event{Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1}
	inside := func(e event, path ...uint32) event {
		e.Related = below(event{}, path...).ID
		return e
	}
	ok := event{Status: 200, HasStatus: true}
	rows := inSteps(false, func(step func(httpphases.Kind, event, ...uint32)) {
		step(httpphases.RequestStart, start, 1, 20)
		step(httpphases.SpanStart, inside(event{Span: &httpphases.Span{Name: "System.Net.Http.HttpRequestOut", ID: "a"}}, 1, 20), 1, 20, 1)
		step(httpphases.RequestStart, start, 1, 30)
		step(httpphases.RequestHeadersStart, inside(event{Conn: 5, HasConn: true}, 1, 20, 1), 1, 20, 1, 2)
		step(httpphases.RequestHeadersStop, event{}, 1, 20, 1, 2)
		step(httpphases.ResponseHeadersStart, event{})
		step(httpphases.ResponseHeadersStop, ok)
		step(httpphases.ResponseHeadersStart, inside(event{}, 1, 20, 1), 1, 20, 1, 3)
		step(httpphases.ResponseHeadersStop, ok, 1, 20, 1, 3)
		step(httpphases.SpanStop, event{Span: &httpphases.Span{Name: "System.Net.Http.HttpRequestOut", ID: "a"}}, 1, 20, 1)
		step(httpphases.RequestStop, ok, 1, 20)
	})
	require.Len(t, rows, 2)
	r := rows[0]
	assert.Equal(t, httpphases.OK, r.Outcome)
	assert.Empty(t, r.Missing)
	assert.Zero(t, r.Guessed)
	assert.Equal(t, "request_headers 3+1 wait 4+3 response_headers 7+1", told(r))
}
