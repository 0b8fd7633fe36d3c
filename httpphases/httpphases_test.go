package httpphases_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// The payloads of http-events.md section 9.2.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, provider string
		id, version    int
		payload        string
		want           httpphases.Event
	}{
		{"RequestStart", httpphases.ProviderHTTP, 1, 0,
			"68007400740070007300000061002e0069006f000000bb0100002f0078003f002a000000010100000000",
			httpphases.Event{Kind: httpphases.RequestStart, Scheme: "https", Host: "a.io", Port: 443, Text: "/x?*", Major: 1, Minor: 1}},
		{"ConnectionEstablished v1", httpphases.ProviderHTTP, 4, 1,
			"0200070000000000000068007400740070007300000061002e0069006f000000bb010000310030002e0030002e0030002e0039000000",
			httpphases.Event{Kind: httpphases.ConnectionEstablished, Major: 2, Conn: 7, HasConn: true, Scheme: "https", Host: "a.io", Port: 443, Text: "10.0.0.9"}},
		{"ConnectionEstablished v0", httpphases.ProviderHTTP, 4, 0, "0101",
			httpphases.Event{Kind: httpphases.ConnectionEstablished, Major: 1, Minor: 1}},
		{"RequestLeftQueue", httpphases.ProviderHTTP, 6, 0, "6666666666e646400101",
			httpphases.Event{Kind: httpphases.RequestLeftQueue, Millis: 45.8, Major: 1, Minor: 1}},
		{"ConnectFailed", httpphases.ProviderSockets, 3, 0, "4d2700006e006f000000",
			httpphases.Event{Kind: httpphases.ConnectFailed, Status: 10061, Text: "no"}},
		{"ConnectFailed without text", httpphases.ProviderSockets, 3, 0, "4d2700000000",
			httpphases.Event{Kind: httpphases.ConnectFailed, Status: 10061}},
		{"HandshakeStart", httpphases.ProviderSecurity, 1, 0, "0000000061002e0069006f000000",
			httpphases.Event{Kind: httpphases.HandshakeStart, Host: "a.io"}},
		{"HandshakeStart of the server", httpphases.ProviderSecurity, 1, 0, "010000000000",
			httpphases.Event{Kind: httpphases.HandshakeStart, Server: true}},
		{"HandshakeStop", httpphases.ProviderSecurity, 2, 0, "00300000",
			httpphases.Event{Kind: httpphases.HandshakeStop, Status: 12288}},
		{"HandshakeFailed", httpphases.ProviderSecurity, 3, 0, "00000000000000000000f83f78000000",
			httpphases.Event{Kind: httpphases.HandshakeFailed, Millis: 1.5, Text: "x"}},
		{"RequestStop v1", httpphases.ProviderHTTP, 2, 1, "ffffffff",
			httpphases.Event{Kind: httpphases.RequestStop, Status: -1, HasStatus: true}},
		{"RequestStop v0", httpphases.ProviderHTTP, 2, 0, "", httpphases.Event{Kind: httpphases.RequestStop}},
		{"RequestFailed v0", httpphases.ProviderHTTP, 3, 0, "", httpphases.Event{Kind: httpphases.RequestFailed}},
		{"ConnectionClosed v1", httpphases.ProviderHTTP, 5, 1, "01010000000000000000",
			httpphases.Event{Kind: httpphases.ConnectionClosed, Major: 1, Minor: 1, HasConn: true}},
		{"RequestContentStop", httpphases.ProviderHTTP, 10, 0, "400d030000000000",
			httpphases.Event{Kind: httpphases.RequestContentStop, Length: 200000}},
		{"of a later version, longer", httpphases.ProviderHTTP, 2, 9, "c8000000ffff",
			httpphases.Event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := hex.DecodeString(c.payload)
			require.NoError(t, err)
			var d httpphases.Decoder
			var got httpphases.Event
			require.True(t, d.Decode(&got, c.provider, c.id, c.version, "", 0, b))
			assert.Equal(t, c.want, got)
		})
	}
	var d httpphases.Decoder
	var e httpphases.Event
	assert.False(t, d.Decode(&e, httpphases.ProviderHTTP, 1, 0, "", 1, []byte{'h', 0}), "a cut payload")
	assert.False(t, d.Decode(&e, httpphases.ProviderHTTP, 99, 0, "", 0, nil), "an unknown event")
	assert.False(t, d.Decode(&e, "Other", 7, 0, "", 2, nil), "a stop of another provider")
	assert.True(t, d.Decode(&e, "Other", 7, 0, "", 1, nil), "its start takes a number")
}

func utf16(s string) []byte {
	var b []byte
	for _, c := range s {
		b = append(b, byte(c), byte(c>>8))
	}
	return append(b, 0, 0)
}

func TestDecodeBridge(t *testing.T) {
	payload := append(utf16("System.Net.Http"), utf16("System.Net.Http.HttpRequestOut")...)
	pairs := []string{"TraceId", "5f", "SpanId", "7a", "ParentSpanId", "0000000000000000",
		"TagObjects", "http.request.method:PUT, server.address:localhost, url.full:http://localhost/a,b, c, http.response.status_code:201"}
	payload = append(payload, byte(len(pairs)/2), 0)
	for _, p := range pairs {
		payload = append(payload, utf16(p)...)
	}
	var d httpphases.Decoder
	var e httpphases.Event
	require.True(t, d.Decode(&e, httpphases.ProviderBridge, 24, 0, "ActivityStop", 2, payload))
	assert.Equal(t, httpphases.SpanStop, e.Kind)
	assert.Equal(t, &httpphases.Span{
		Source: "System.Net.Http", Name: "System.Net.Http.HttpRequestOut", ID: "7a", TraceID: "5f", SpanID: "7a", ParentSpanID: "0000000000000000",
		Method: "PUT", URL: "http://localhost/a,b, c", Status: 201,
	}, e.Span)
}

// .NET 9 ends the span of a request that was canceled with neither a status nor the type of an
// exception. Spans without tags, or whose status nobody asked for, tell nothing.
func TestDecodeSpanOfACanceledRequest(t *testing.T) {
	const asked = "http.request.method:GET, server.port:80, url.full:http://h/a"
	for tags, ended := range map[string]httpphases.TaskStatus{
		asked: httpphases.TaskCanceled,
		asked + ", http.response.status_code:200": httpphases.TaskUnknown,
		asked + ", error.type:connection_error":   httpphases.TaskUnknown,
		"http.method:GET, url.full:http://h/a":    httpphases.TaskUnknown,
		"System.Diagnostics.Activity":             httpphases.TaskUnknown,
	} {
		for _, stop := range []bool{false, true} {
			name, opcode, want := "ActivityStart", 1, httpphases.TaskUnknown
			if stop {
				name, opcode, want = "ActivityStop", 2, ended
			}
			var d httpphases.Decoder
			var e httpphases.Event
			require.True(t, d.Decode(&e, httpphases.ProviderBridge, 24, 0, name, opcode,
				pairs(join(utf16("System.Net.Http"), utf16("System.Net.Http.HttpRequestOut")), "SpanId", "7a", "TagObjects", tags)))
			assert.Equal(t, want, e.Span.Task, "%s %s", name, tags)
		}
	}
}

// pairs appends what the bridge and the log write for an array of keys and values.
func pairs(to []byte, l ...string) []byte {
	to = append(to, byte(len(l)/2), 0)
	for _, p := range l {
		to = append(to, utf16(p)...)
	}
	return to
}

// int32s are little-endian.
func int32s(v ...int32) (b []byte) {
	for _, v := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func join(l ...[]byte) []byte { return slices.Concat(l...) }

// The payloads are those of recordings of .NET Core 3.1 and .NET 6. Event ids do not
// matter.
func TestDecodeNamed(t *testing.T) {
	const w3c = "00-f8df1cb41927b34fbb43b02fbdfe840e-25649092de15cf47-00"
	for name, c := range map[string]struct {
		provider, event string
		payload         []byte
		kind            httpphases.Kind
		span            httpphases.Span
	}{
		"3.1 client start, hierarchical id": {
			httpphases.ProviderBridge, "Activity1/Start",
			pairs(join(utf16("HttpHandlerDiagnosticListener"), utf16("System.Net.Http.HttpRequestOut.Start")),
				"RequestUri", "http://h:1/a?x= y", "Method", "GET", "Host", "h", "ActivityId", "|9955a51-4a7c.", "ActivityStartTime", "639309657101171183"),
			httpphases.SpanStart,
			httpphases.Span{Source: "HttpHandlerDiagnosticListener", Name: "System.Net.Http.HttpRequestOut", ID: "|9955a51-4a7c.",
				URL: "http://h:1/a?x= y", Method: "GET", Host: "h", Started: 639309657101171183},
		},
		"3.1 client stop, W3C": {
			httpphases.ProviderBridge, "Activity2Stop",
			pairs(join(utf16("HttpHandlerDiagnosticListener"), utf16("System.Net.Http.HttpRequestOut.Stop")),
				"StatusCode", "NotFound", "RequestTaskStatus", "RanToCompletion", "ActivityId", w3c, "ActivityDuration", "516980"),
			httpphases.SpanStop,
			httpphases.Span{Source: "HttpHandlerDiagnosticListener", Name: "System.Net.Http.HttpRequestOut", ID: "25649092de15cf47",
				TraceID: "f8df1cb41927b34fbb43b02fbdfe840e", SpanID: "25649092de15cf47", Status: 404, Task: httpphases.TaskRan},
		},
		"server start by an event that is no activity": {
			httpphases.ProviderBridge, "Event",
			pairs(join(utf16("Microsoft.AspNetCore"), utf16("Microsoft.AspNetCore.Hosting.HttpRequestIn.Start")),
				"QueryString", "?q=1", "Path", "/ok", "PathBase", "/app", "Scheme", "https", "Host", "h:2", "ActivityParentId", "|1."),
			httpphases.SpanStart,
			httpphases.Span{Source: "Microsoft.AspNetCore", Name: "Microsoft.AspNetCore.Hosting.HttpRequestIn", ParentID: "|1.",
				Scheme: "https", Host: "h:2", Path: "/app/ok?q=1"},
		},
		"ids under other names": {
			httpphases.ProviderBridge, "RecursiveActivity1/Start",
			pairs(join(utf16("Microsoft.AspNetCore"), utf16("Microsoft.AspNetCore.Hosting.HttpRequestIn.Start")),
				"MyParent", "|1.", "Mine", "|1.2_"),
			httpphases.SpanStart,
			httpphases.Span{Source: "Microsoft.AspNetCore", Name: "Microsoft.AspNetCore.Hosting.HttpRequestIn", ID: "|1.2_", ParentID: "|1."},
		},
		"hierarchical id, all keys": {
			httpphases.ProviderBridge, "ActivityStart",
			pairs(join(utf16("System.Net.Http"), utf16("System.Net.Http.HttpRequestOut")), "Id", "|4a7c.1.2.", "ParentId", "|4a7c.1.", "RootId", "4a7c",
				"TraceId", "00000000000000000000000000000000", "SpanId", "0000000000000000", "ParentSpanId", "0000000000000000"),
			httpphases.SpanStart,
			httpphases.Span{Source: "System.Net.Http", Name: "System.Net.Http.HttpRequestOut", ID: "|4a7c.1.2.", ParentID: "|4a7c.1."},
		},
		"tags that were asked for one by one": {
			httpphases.ProviderBridge, "ActivityStop",
			pairs(join(utf16("Microsoft.AspNetCore"), utf16("Microsoft.AspNetCore.Hosting.HttpRequestIn")),
				"SpanId", "7a", "Tags", "[http.route, /a/{id}],[http.response.status_code, 503],[error.type, 503]"),
			httpphases.SpanStop,
			httpphases.Span{Source: "Microsoft.AspNetCore", Name: "Microsoft.AspNetCore.Hosting.HttpRequestIn", ID: "7a", SpanID: "7a",
				Route: "/a/{id}", Status: 503, ErrorType: "503"},
		},
		"a server that its client has left": {
			httpphases.ProviderBridge, "Activity2/Stop",
			pairs(join(utf16("Microsoft.AspNetCore"), utf16("Microsoft.AspNetCore.Hosting.EndRequest")), "StatusCode", "0", "TraceIdentifier", "0H:1"),
			httpphases.SpanStop,
			httpphases.Span{Source: "Microsoft.AspNetCore", Name: "Microsoft.AspNetCore.Hosting.HttpRequestIn", RequestID: "0H:1"},
		},
		"Kestrel of 3.1": {
			httpphases.ProviderKestrel, "Request/Start", join(utf16("0H"), utf16("0H:00000001")),
			httpphases.KestrelStart, httpphases.Span{RequestID: "0H:00000001"},
		},
		"Kestrel of 6": {
			httpphases.ProviderKestrel, "RequestStop", join(utf16("0H"), utf16("0H:00000001"), utf16("HTTP/2"), utf16("/ok"), utf16("GET")),
			httpphases.KestrelStop, httpphases.Span{RequestID: "0H:00000001", Version: "2.0", Path: "/ok", Method: "GET"},
		},
		"scope of a request": {
			httpphases.ProviderLogging, "Activity/Start",
			pairs(join(int32s(7, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics")),
				"RequestId", "0H:1", "RequestPath", "/ok", "SpanId", "|1.2_", "TraceId", "|1.", "ParentId", "|1."),
			httpphases.ScopeStart, httpphases.Span{Scope: "1/7", RequestID: "0H:1", Path: "/ok", ID: "|1.2_", ParentID: "|1."},
		},
		"scope of a request as JSON": {
			httpphases.ProviderLogging, "ActivityJsonStart",
			join(int32s(7, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), utf16(`{"RequestId":"0H:1","RequestPath":"/ok"}`)),
			httpphases.ScopeStart, httpphases.Span{Scope: "1/7", RequestID: "0H:1", Path: "/ok"},
		},
		"end of the scope": {
			httpphases.ProviderLogging, "Activity/Stop", join(int32s(7, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics")),
			httpphases.ScopeStop, httpphases.Span{Scope: "1/7"},
		},
		"status in the log of 3.1": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), int32s(2), utf16("Request finished in 45.8855ms 404 text/plain")),
			httpphases.ServerLogged, httpphases.Span{Status: 404},
		},
		"status in the log of 6": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), int32s(2), utf16(""),
				utf16("Request finished HTTP/1.1 POST http://h/200 application/json 12 - 500 2 text/plain;+charset=utf-8 0.4096ms")),
			httpphases.ServerLogged, httpphases.Span{URL: "http://h/200", Status: 500, Took: 409600},
		},
		"status in the log of 8": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), int32s(2), utf16(""),
				utf16("Request finished HTTP/1.1 GET http://h/ok - 204 - - 0.4096ms")),
			httpphases.ServerLogged, httpphases.Span{URL: "http://h/ok", Status: 204, Took: 409600},
		},
		"status in the log as JSON": {
			httpphases.ProviderLogging, "MessageJson",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), int32s(2), utf16(""), utf16("{}"), utf16(`{"ElapsedMilliseconds":"1.5","StatusCode":"503","Scheme":"http","Host":"h:1","PathBase":"/b","Path":"/p"}`)),
			httpphases.ServerLogged, httpphases.Span{URL: "http://h:1/b/p", Status: 503, Took: 15e5},
		},
		"Kestrel's log of what threw": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(4, 1), utf16("Microsoft.AspNetCore.Server.Kestrel"), int32s(13), utf16("ApplicationError"),
				utf16("Connection id \"0H\", Request id \"0H:00000003\": An unhandled exception was thrown by the application."), utf16("")),
			httpphases.ServerUnhandled, httpphases.Span{RequestID: "0H:00000003"},
		},
		"route of 3.1": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Routing.EndpointMiddleware"), int32s(0), utf16("ExecutingEndpoint"), utf16("Executing endpoint '/a/{n} HTTP: GET'")),
			httpphases.ServerLogged, httpphases.Span{Route: "/a/{n}"},
		},
		"route of what has run": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Routing.EndpointMiddleware"), int32s(1), utf16("ExecutedEndpoint"), utf16("Executed endpoint 'HTTP: GET /a/{n} => Get'")),
			httpphases.ServerLogged, httpphases.Span{Route: "/a/{n}", Task: httpphases.TaskRan},
		},
		"route of 7": {
			httpphases.ProviderLogging, "FormattedMessage",
			join(int32s(2, 1), utf16("Microsoft.AspNetCore.Routing.EndpointMiddleware"), int32s(0), utf16("ExecutingEndpoint"), utf16("Executing endpoint 'HTTP: GET /a/{n} => Get'")),
			httpphases.ServerLogged, httpphases.Span{Route: "/a/{n}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d httpphases.Decoder
			var e httpphases.Event
			require.True(t, d.Decode(&e, c.provider, 17, 0, c.event, 0, c.payload))
			assert.Equal(t, c.kind, e.Kind)
			assert.Equal(t, c.span, *e.Span)
			for n := range c.payload {
				e = httpphases.Event{}
				d.Decode(&e, c.provider, 17, 0, c.event, 0, c.payload[:n]) // no panic
			}
		})
	}
}

// Endpoints by which routing says that it has no route for a request are none.
func TestEndpointWithoutRoute(t *testing.T) {
	for _, name := range []string{"405 HTTP Method Not Supported", "415 HTTP Unsupported Media Type"} {
		var d httpphases.Decoder
		var e httpphases.Event
		logged := join(int32s(2, 1), utf16("Microsoft.AspNetCore.Routing.EndpointMiddleware"), int32s(0), utf16("ExecutingEndpoint"))
		assert.False(t, d.Decode(&e, httpphases.ProviderLogging, 17, 0, "FormattedMessage", 0, join(logged, utf16("Executing endpoint '"+name+"'"))))
		assert.False(t, d.Decode(&e, httpphases.ProviderLogging, 17, 0, "MessageJson", 0, join(logged, utf16("{}"), utf16(`{"EndpointName":"`+name+`"}`))))
	}
}

// Names that a session gives to values are told by the bridge when it begins.
func TestAliases(t *testing.T) {
	var d httpphases.Decoder
	var e httpphases.Event
	for _, s := range []string{"Verb=Request.Method", "Where=Request.RequestUri", "Code=Response.StatusCode", "Me=*Activity.Id"} {
		assert.False(t, d.Decode(&e, httpphases.ProviderBridge, 14, 0, "Message", 0, utf16("DiagnosticSource: Parsing Explicit Transform '"+s+"'")))
	}
	names := join(utf16("HttpHandlerDiagnosticListener"), utf16("System.Net.Http.HttpRequestOut.Stop"))
	require.True(t, d.Decode(&e, httpphases.ProviderBridge, 14, 0, "Activity1/Stop", 0, pairs(names, "Verb", "PUT", "Where", "http://h/", "Code", "Redirect", "Me", "7a")))
	s := e.Span
	assert.Equal(t, []any{"PUT", "http://h/", 302, "7a"}, []any{s.Method, s.URL, s.Status, s.ID})
}

// A script is events written as "ms kind path related text".
type script struct {
	t      *testing.T
	events []httpphases.Event
}

// id makes an id of a path; how the runtime does it is not this package's affair.
func id(path ...uint32) (id [16]byte) {
	for i, v := range path {
		id[i] = byte(v)
	}
	if len(path) > 0 {
		id[15] = 1
	}
	return id
}

func (s *script) at(ms float64, path []uint32, e httpphases.Event) {
	e.Time = int64(ms*1e6 + .5)
	e.Thread, e.Process = 1, 1
	e.ID = id(path...)
	e.PathLen = uint8(copy(e.Path[:], path))
	s.events = append(s.events, e)
}

func (s *script) run() []*httpphases.Request {
	var rows []*httpphases.Request
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
	end := int64(0)
	for i := range s.events {
		b.Add(&s.events[i])
		end = s.events[i].Time
	}
	b.Finish(end)
	return rows
}

// worked is the example of http-events.md section 9.1. paths are those of the two
// connects, TLS, and the three phases behind.
func worked(t *testing.T, paths [6][]uint32, major uint8, answer float64) *script {
	s := &script{t: t}
	r := []uint32{1, 1}
	minor := 2 - major
	s.at(0, r, httpphases.Event{Kind: httpphases.RequestStart, Scheme: "https", Host: "a.io", Port: 443, Text: "/x", Major: 1, Minor: 1})
	dns := []uint32{1, 1, 1}
	s.at(.3, dns, httpphases.Event{Kind: httpphases.ResolutionStart, Host: "a.io"})
	s.at(5.3, dns, httpphases.Event{Kind: httpphases.ResolutionStop})
	s.at(5.4, paths[0], httpphases.Event{Kind: httpphases.ConnectStart, Text: "InterNetwork:16:{1,187,10,0,0,8,0,0,0,0,0,0,0,0}"})
	s.at(15.4, paths[0], httpphases.Event{Kind: httpphases.ConnectFailed, Status: 10061})
	s.at(15.45, paths[0], httpphases.Event{Kind: httpphases.ConnectStop})
	s.at(15.5, paths[1], httpphases.Event{Kind: httpphases.ConnectStart, Text: "InterNetwork:16:{1,187,10,0,0,9,0,0,0,0,0,0,0,0}"})
	s.at(25.5, paths[1], httpphases.Event{Kind: httpphases.ConnectStop})
	s.at(25.7, paths[2], httpphases.Event{Kind: httpphases.HandshakeStart, Host: "a.io"})
	s.at(45.7, paths[2], httpphases.Event{Kind: httpphases.HandshakeStop, Status: 12288})
	s.at(45.8, r, httpphases.Event{Kind: httpphases.ConnectionEstablished, Major: major, Minor: minor, Conn: 7, HasConn: true, Scheme: "https", Host: "a.io", Port: 443, Text: "10.0.0.9"})
	s.at(46, r, httpphases.Event{Kind: httpphases.RequestLeftQueue, Millis: 45.8, Major: major, Minor: minor})
	s.at(46.1, paths[3], httpphases.Event{Kind: httpphases.RequestHeadersStart, Conn: 7, HasConn: true})
	s.at(46.2, paths[3], httpphases.Event{Kind: httpphases.RequestHeadersStop})
	s.at(answer, paths[4], httpphases.Event{Kind: httpphases.ResponseHeadersStart})
	s.at(96.5, paths[4], httpphases.Event{Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true})
	s.at(96.9, paths[5], httpphases.Event{Kind: httpphases.ResponseContentStart})
	s.at(110.9, paths[5], httpphases.Event{Kind: httpphases.ResponseContentStop})
	s.at(111, r, httpphases.Event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true})
	return s
}

var (
	windows = [6][]uint32{{1, 1, 2}, {1, 1, 2, 1}, {1, 1, 3}, {1, 1, 4}, {1, 1, 5}, {1, 1, 6}}
	unix    = [6][]uint32{{1, 1, 1, 1}, {1, 1, 1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 1, 4}, {1, 1, 5}}
)

func phases(r *httpphases.Request) string {
	var s []string
	for _, p := range r.Phases {
		s = append(s, fmt.Sprintf("%s %.3f+%.3f", p.Name, float64(p.Start)/1e6, float64(p.Duration)/1e6))
	}
	return strings.Join(s, "; ")
}

func TestWorkedExample(t *testing.T) {
	for name, paths := range map[string][6][]uint32{"windows": windows, "unix": unix} {
		t.Run(name, func(t *testing.T) {
			rows := worked(t, paths, 1, 96.2).run()
			require.Len(t, rows, 1)
			r := rows[0]
			assert.Equal(t, "queue 0.200+45.800; dns 0.300+5.000; connect 5.400+20.100; tls 25.700+20.000; "+
				"request_headers 46.100+0.100; wait 46.200+50.000; response_headers 96.200+0.300; response_content 96.900+14.000", phases(r))
			assert.Equal(t, int64(111e6), r.Duration)
			assert.Equal(t, httpphases.OK, r.Outcome)
			require.NotNil(t, r.Connection)
			assert.Equal(t, httpphases.Connection{ID: 7, HasID: true, New: true, NewTold: true, Class: httpphases.Own, Remote: "10.0.0.9", Port: 443, TLS: "TLS 1.3"}, *r.Connection)
			require.Len(t, r.Tries, 2)
			assert.Equal(t, "10.0.0.8:443", r.Tries[0].Address)
			assert.Equal(t, 10061, r.Tries[0].Code)
			assert.Equal(t, "https://a.io/x", r.URL())

			sum := map[httpphases.PhaseName]int64{}
			total := int64(0)
			for _, p := range r.Partition() {
				sum[p.Name] += p.Duration
				total += p.Duration
			}
			assert.Equal(t, r.Duration, total)
			assert.Equal(t, int64(.7e6), sum[httpphases.Queue], "pool wait")
			assert.Equal(t, int64(.8e6), sum[httpphases.Other], "handler and tail")
			assert.Equal(t, httpphases.Times{
				BeforeDNS: .3e6, DNS: 5e6, BeforeConnect: .1e6, Connect: 20.1e6, BeforeTLS: .2e6, TLS: 20e6, Queue: .3e6,
				Send: .1e6, Wait: 50e6, Receive: 14.3e6, Other: .6e6,
			}, r.Times())
		})
	}
	r := worked(t, unix, 2, 46.25).run()[0]
	assert.Equal(t, "2.0", r.Version)
	wait, _ := r.Phase(httpphases.Wait)
	assert.Equal(t, int64(50.3e6), wait)
	_, ok := r.Phase(httpphases.ResponseHeaders)
	assert.False(t, ok)
}

// .NET 5 opens the connection as a part of the request, which waits in no queue then.
// Its connections have no ids.
func TestNET5(t *testing.T) {
	s := worked(t, unix, 1, 96.2)
	var old []httpphases.Event
	for _, e := range s.events {
		switch e.Kind {
		case httpphases.RequestLeftQueue:
			continue
		case httpphases.ConnectionEstablished:
			e.Scheme, e.Host, e.Port, e.Text = "", "", 0, ""
		case httpphases.ResponseHeadersStop, httpphases.RequestStop:
			e.Status, e.HasStatus = 0, false
		}
		e.Conn, e.HasConn = 0, false
		old = append(old, e)
	}
	// A redirect, of which no event tells, to a place without name and TLS.
	s.events = old[:len(old)-3]
	s.at(97, []uint32{1, 1, 6}, httpphases.Event{Kind: httpphases.ConnectStart, Text: "10.0.0.9:80"})
	s.at(98, []uint32{1, 1, 6}, httpphases.Event{Kind: httpphases.ConnectStop})
	s.at(99, []uint32{1, 1}, httpphases.Event{Kind: httpphases.ConnectionEstablished, Major: 1, Minor: 1})
	s.at(100, []uint32{1, 1, 7}, httpphases.Event{Kind: httpphases.RequestHeadersStart})
	s.at(101, []uint32{1, 1, 7}, httpphases.Event{Kind: httpphases.RequestHeadersStop})
	s.at(103, []uint32{1, 1, 8}, httpphases.Event{Kind: httpphases.ResponseHeadersStart})
	s.at(104, []uint32{1, 1, 8}, httpphases.Event{Kind: httpphases.ResponseHeadersStop})
	s.at(105, []uint32{1, 1}, httpphases.Event{Kind: httpphases.RequestStop})
	r := s.run()[0]
	assert.Equal(t, "dns 0.300+5.000; connect 5.400+20.100; tls 25.700+20.000; "+
		"request_headers 46.100+0.100; wait 46.200+50.000; response_headers 96.200+0.300; "+
		"connect 97.000+1.000; request_headers 100.000+1.000; wait 101.000+2.000; response_headers 103.000+1.000", phases(r))
	require.NotNil(t, r.Connection)
	assert.Equal(t, httpphases.Own, r.Connection.Class)
	assert.Empty(t, r.Missing)
}

// The version of a connection that was there before the trace began is not told. One
// that was asked for 1.1 or higher may be HTTP/2, where the answer's headers "begin"
// before they are waited for.
func TestOrHigher(t *testing.T) {
	for _, c := range []struct {
		policy  int32
		answer  float64 // ResponseHeadersStart
		phases  string
		version string
	}{
		{0, .24, "request_headers 0.100+0.100; wait 0.200+0.040; response_headers 0.240+49.760", "1.1"},
		{1, .24, "request_headers 0.100+0.100; wait 0.200+49.800", ""},
		{1, 49, "request_headers 0.100+0.100; wait 0.200+48.800; response_headers 49.000+1.000", ""},
	} {
		s := &script{t: t}
		s.at(0, []uint32{1, 1}, httpphases.Event{Kind: httpphases.RequestStart, Scheme: "https", Host: "a.io", Port: 443, Text: "/x", Major: 1, Minor: 1, Policy: c.policy})
		s.at(.1, []uint32{1, 1, 1}, httpphases.Event{Kind: httpphases.RequestHeadersStart, Conn: 7, HasConn: true})
		s.at(.2, []uint32{1, 1, 1}, httpphases.Event{Kind: httpphases.RequestHeadersStop})
		s.at(c.answer, []uint32{1, 1, 2}, httpphases.Event{Kind: httpphases.ResponseHeadersStart})
		s.at(50, []uint32{1, 1, 2}, httpphases.Event{Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true})
		s.at(51, []uint32{1, 1}, httpphases.Event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true})
		r := s.run()[0]
		assert.Equal(t, c.phases, phases(r))
		assert.Equal(t, c.version, r.Version)
	}
}

// Paths that lost a number (.NET 10) name several requests at once: the connection and
// the thread tell them apart.
func TestSharedPath(t *testing.T) {
	s := &script{t: t}
	lost := []uint32{1, 5, 0}
	phase := func(n uint32) []uint32 { return []uint32{1, 5, 0, n} }
	for i := range 2 {
		s.at(float64(i), lost, httpphases.Event{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Text: fmt.Sprint("/", i), Major: 1, Minor: 1})
		s.events[len(s.events)-1].Thread = uint64(i + 1)
		s.at(float64(i)+.1, phase(1), httpphases.Event{Kind: httpphases.RequestHeadersStart, Conn: int64(i), HasConn: true})
		s.events[len(s.events)-1].Thread = uint64(i + 1)
		s.at(float64(i)+.2, phase(1), httpphases.Event{Kind: httpphases.RequestHeadersStop})
		s.events[len(s.events)-1].Thread = uint64(i + 1)
	}
	for i := range 2 {
		th := uint64(i + 1)
		for _, e := range []httpphases.Event{
			{Kind: httpphases.ResponseHeadersStart}, {Kind: httpphases.ResponseHeadersStop, Status: int32(200 + i), HasStatus: true},
		} {
			s.at(10+float64(i), phase(2), e)
			s.events[len(s.events)-1].Thread = th
		}
		s.at(10.5+float64(i), lost, httpphases.Event{Kind: httpphases.RequestStop, Status: int32(200 + i), HasStatus: true})
		s.events[len(s.events)-1].Thread = th
	}
	rows := s.run()
	require.Len(t, rows, 2)
	for i, r := range rows {
		assert.Equal(t, fmt.Sprint("/", i), r.Target)
		assert.Equal(t, 200+i, r.Status)
		assert.Equal(t, httpphases.OK, r.Outcome)
		assert.Positive(t, r.Guessed, "marked as a guess")
	}
}

// Memory is bounded by what is in flight: rows of a long trace do not pile up.
func TestManyRequests(t *testing.T) {
	n, done := 50000, 0
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
		done++
		if r.Outcome != httpphases.OK || len(r.Phases) != 3 {
			t.Fatalf("request %d: %s with %d phases", r.ID, r.Outcome, len(r.Phases))
		}
	}})
	most := 0
	for i := range n {
		s := &script{t: t}
		ms, path := float64(i), []uint32{1, uint32(i + 1)}
		s.at(ms, path, httpphases.Event{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Text: "/", Major: 1, Minor: 1})
		s.at(ms+.1, append(path, 1), httpphases.Event{Kind: httpphases.RequestHeadersStart, Conn: 1, HasConn: true})
		s.at(ms+.2, append(path, 1), httpphases.Event{Kind: httpphases.RequestHeadersStop})
		s.at(ms+.5, append(path, 2), httpphases.Event{Kind: httpphases.ResponseHeadersStart})
		s.at(ms+.6, append(path, 2), httpphases.Event{Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true})
		s.at(ms+.7, path, httpphases.Event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true})
		for k := range s.events {
			s.events[k].ID = [16]byte{} // ids of a byte per number would repeat; the path is enough
			s.events[k].ID[0], s.events[k].ID[15] = byte(k), 1
			b.Add(&s.events[k])
		}
		most = max(most, i+1-done)
	}
	b.Finish(int64(n) * 1e6)
	assert.Equal(t, n, done)
	assert.Less(t, most, 500, "requests held back")
}

// Whatever comes, rows are sound: no negative times, nothing outside, no overlap.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte{1, 0, 1, 1, 7, 5, 1, 1, 8, 9, 1, 1, 11, 30, 1, 1, 12, 31, 1, 1, 2, 40, 1, 1})
	f.Add([]byte{1, 0, 0, 1, 17, 2, 0, 1, 20, 4, 0, 2, 6, 9, 0, 1, 16, 3, 0, 1, 14, 1, 0, 1, 3, 1, 0, 1})
	f.Add([]byte{1, 0, 1, 1, 7, 5, 9, 1, 8, 9, 1, 1, 11, 30, 1, 1, 12, 31, 1, 1, 2, 40, 1, 1})
	// Without ids: two requests whose connections are used again.
	f.Add([]byte{1, 0, 0, 1, 7, 1, 0, 17, 8, 1, 0, 1, 1, 1, 0, 2, 7, 1, 0, 34, 8, 1, 0, 2, 11, 9, 0, 1, 12, 0, 0, 1, 13, 0, 0, 1,
		11, 1, 0, 2, 12, 0, 0, 2, 13, 0, 0, 2, 14, 1, 0, 0, 2, 0, 0, 0, 14, 1, 0, 1, 2, 0, 0, 1, 1, 0, 0, 1, 6, 2, 0, 1, 7, 0, 0, 17,
		1, 1, 0, 2, 7, 0, 0, 34, 5, 3, 0, 17, 3, 1, 0, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			return
		}
		b := httpphases.NewBuilder(&httpphases.Options{Late: 4, Request: func(r *httpphases.Request) {
			if err := sound(r); err != nil {
				t.Fatalf("%v: %+v", err, r)
			}
		}, Server: func(s *httpphases.ServerRequest) {
			if s.Duration < 0 {
				t.Fatalf("negative duration: %+v", s)
			}
		}})
		now := int64(0)
		for ; len(data) >= 4; data = data[4:] {
			now += int64(data[1]) * 1e5
			e := httpphases.Event{
				Kind: httpphases.Kind(data[0] % 46), Time: now, Thread: uint64(data[3] % 3), Process: 1,
				Conn: int64(data[3] / 16), HasConn: data[3]&4 == 0, Status: int32(data[3]) + 180, HasStatus: data[3]&8 == 0,
				Millis: float64(data[1]) / 3, Major: 1 + data[3]%2, Minor: 1, Scheme: "https", Host: "h", Port: int32(data[3] / 64), Text: "/x",
			}
			if data[2]%16 == 9 { // another place than others, as a proxy is or a handler sends requests to
				e.Scheme, e.Host = "http", "p"
			}
			if e.Kind == httpphases.EventsLost {
				e.Length = now - int64(data[3])*1e5
			}
			if data[2] != 0 {
				e.ID[0], e.ID[1], e.ID[15] = data[2], data[3]%5, 1
				e.Path[0], e.Path[1], e.Path[2] = 1, uint32(data[2]%8), uint32(data[3]%5)
				e.PathLen = 2
				if data[3]%5 > 0 {
					e.PathLen = 3
				}
				e.Overflow = data[2] > 240
			}
			if e.Kind >= httpphases.KestrelStart && e.Kind <= httpphases.SpanStop && data[1]%7 > 0 {
				e.Span = someSpan(int(data[3]))
			}
			b.Add(&e)
		}
		b.Finish(now)
	})
}

// someSpan is one of a few spans of either side, with one id or another of them.
func someSpan(n int) *httpphases.Span {
	s := &httpphases.Span{Name: "System.Net.Http.HttpRequestOut", URL: "https://h:1/x", Method: "GET", Status: n % 600, Task: httpphases.TaskStatus(n % 4), Started: int64(n)}
	if n&1 != 0 {
		s.Name = "Microsoft.AspNetCore.Hosting.HttpRequestIn"
	}
	id := string('a' + rune(n/2%4))
	switch n / 8 % 4 {
	case 0:
		s.ID, s.SpanID, s.ParentID = id, id, "a"
	case 1:
		s.RequestID = id
	case 2:
		s.Scope, s.ID = id, "|"+id
	}
	return s
}

func sound(r *httpphases.Request) error {
	if r.Duration < 0 {
		return fmt.Errorf("negative duration")
	}
	end := int64(1) << 62
	if r.HasDuration {
		end = r.Start + r.Duration
	}
	last := r.Start
	for _, p := range r.Phases {
		if p.Open {
			continue
		}
		if p.Duration < 0 || p.Start < r.Start || p.End() > end {
			return fmt.Errorf("%s outside", p.Name)
		}
		if p.Name >= httpphases.DNS && p.Name <= httpphases.TLS {
			continue
		}
		if p.Start < last {
			return fmt.Errorf("%s overlaps", p.Name)
		}
		last = p.End()
	}
	if r.HasDuration {
		sum := int64(0)
		for _, p := range r.Partition() {
			sum += p.Duration
		}
		if sum != r.Duration {
			return fmt.Errorf("partition sums to %d of %d", sum, r.Duration)
		}
		if times := r.Times(); times.Sum() != r.Duration && !r.SpanOnly {
			return fmt.Errorf("times sum to %d of %d", times.Sum(), r.Duration)
		}
	}
	return nil
}

func FuzzDecode(f *testing.F) {
	f.Add(httpphases.ProviderHTTP, 1, 0, []byte("h\x00\x00\x00"))
	f.Add(httpphases.ProviderBridge, 24, 0, append(utf16("System.Net.Http"), utf16("System.Net.Http.HttpRequestOut")...))
	f.Add(httpphases.ProviderLogging, 9, 8, join(int32s(2, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), int32s(2), utf16("Request finished in 1ms 200 ")))
	f.Add(httpphases.ProviderLogging, 9, 9, join(int32s(2, 1), utf16("Microsoft.AspNetCore.Hosting.Diagnostics"), int32s(2), utf16(`{"StatusCode":"200"}`)))
	f.Add(httpphases.ProviderKestrel, 3, 4, join(utf16("0H"), utf16("0H:1"), utf16("HTTP/2"), utf16("/"), utf16("GET")))
	f.Add(httpphases.ProviderBridge, 16, 1, pairs(join(utf16("HttpHandlerDiagnosticListener"), utf16("System.Net.Http.HttpRequestOut.Start")), "TagObjects", "a.b:c, d.e:f", "ActivityId", "|1."))
	f.Fuzz(func(t *testing.T, provider string, id, version int, payload []byte) {
		var d httpphases.Decoder
		var e httpphases.Event
		names := []string{"ActivityStop", "Activity1/Start", "Event", "Message", "Request/Start", "RequestStop", "ActivityStart", "ActivityJsonStart", "FormattedMessage", "MessageJson", ""}
		if d.Decode(&e, provider, id, version, names[uint(version)%uint(len(names))], 2, payload) {
			assert.NotEqual(t, httpphases.KindNone, e.Kind)
			if e.Kind == httpphases.RequestLeftQueue {
				assert.GreaterOrEqual(t, e.Millis, 0.0)
			}
		}
	})
}

func ExampleBuilder() {
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
		fmt.Println(r.URL(), r.Status, r.Duration)
	}})
	b.Add(&httpphases.Event{Kind: httpphases.RequestStart, Time: 10, Scheme: "http", Host: "localhost", Port: 80, Text: "/a", Major: 1, Minor: 1})
	b.Add(&httpphases.Event{Kind: httpphases.RequestStop, Time: 50, Status: 200, HasStatus: true})
	b.Finish(60)
	// Output: http://localhost/a 200 40
}

// What a request writes that began before the recording has ids of the top level: their
// first number is the AppDomain's, which is no request.
func TestAttached(t *testing.T) {
	type event = httpphases.Event
	s := &script{t: t}
	s.at(1, []uint32{1, 1}, event{Kind: httpphases.RequestHeadersStart, HasConn: true, Conn: 1})
	s.at(2, []uint32{1, 1}, event{Kind: httpphases.RequestHeadersStop})
	s.at(3, []uint32{1, 2}, event{Kind: httpphases.ConnectStart, Text: "10.0.0.1:5432"})
	s.at(4, []uint32{1, 2}, event{Kind: httpphases.ConnectStop})
	s.at(5, []uint32{1, 3}, event{Kind: httpphases.RequestStart, Scheme: "http", Host: "a.io", Port: 80, Text: "/", Major: 1, Minor: 1})
	s.at(6, []uint32{1, 4}, event{Kind: httpphases.ResponseHeadersStart})
	s.at(7, []uint32{1, 4}, event{Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true})
	s.at(8, []uint32{1, 3}, event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true})
	rows := s.run()
	require.Len(t, rows, 1)
	assert.Equal(t, "/", rows[0].Target)
}

// The redirect to a name that is not ASCII goes to no proxy, although the connection tells
// the name in ASCII.
func TestRedirectToUnicode(t *testing.T) {
	type event = httpphases.Event
	for scheme, port := range map[string]int32{"http": 80, "https": 443} {
		s := &script{t: t}
		r := []uint32{1, 1}
		s.at(0, r, event{Kind: httpphases.RequestStart, Scheme: "http", Host: "a.io", Port: 80, Text: "/", Major: 1, Minor: 1})
		for i, conn := range []int64{7, 8} {
			ord, at := uint32(2*i+1), float64(10*i)
			s.at(at+1, []uint32{1, 1, ord}, event{Kind: httpphases.RequestHeadersStart, Conn: conn, HasConn: true})
			s.at(at+2, []uint32{1, 1, ord}, event{Kind: httpphases.RequestHeadersStop})
			s.at(at+3, []uint32{1, 1, ord + 1}, event{Kind: httpphases.ResponseHeadersStart})
			if i == 1 {
				s.at(at+4, []uint32{1, 1, ord + 1}, event{Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true})
				break
			}
			s.at(at+4, []uint32{1, 1, ord + 1}, event{Kind: httpphases.ResponseHeadersStop, Status: 302, HasStatus: true})
			s.at(at+5, r, event{Kind: httpphases.RequestRedirect, Text: scheme + "://b\u00fccher.example/"})
			s.at(at+6, r, event{Kind: httpphases.ConnectionEstablished, Major: 1, Minor: 1, Conn: 8, HasConn: true, Scheme: scheme, Host: "xn--bcher-kva.example", Port: port})
		}
		s.at(15, r, event{Kind: httpphases.RequestStop, Status: 200, HasStatus: true})
		q := s.run()[0]
		assert.Equal(t, "redirect 0.000+5.000; request_headers 11.000+1.000; wait 12.000+1.000; response_headers 13.000+1.000", phases(q), scheme)
		if assert.NotNil(t, q.Connection, scheme) {
			assert.Empty(t, q.Connection.Proxy, scheme)
		}
	}
}
