package httpphases

import (
	"encoding/binary"
	"math"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
)

// put writes the fields of a payload.
func put(fields ...any) (b []byte) {
	for _, f := range fields {
		switch v := f.(type) {
		case string:
			for _, u := range utf16.Encode([]rune(v + "\x00")) {
				b = binary.LittleEndian.AppendUint16(b, u)
			}
		case byte:
			b = append(b, v)
		case int32:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		case float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		default:
			panic("a field of another type")
		}
	}
	return b
}

// What each event tells is in its place, whatever version it has.
func TestDecodePayloads(t *testing.T) {
	const i = int32(0)
	for _, c := range []struct {
		provider string
		id       int
		name     string
		opcode   int
		payload  []byte
		want     Event
	}{
		{ProviderHTTP, 1, "", 1, put("https", "h", i+443, "/a", byte(1), byte(1), i+2),
			Event{Kind: RequestStart, Scheme: "https", Host: "h", Port: 443, Text: "/a", Major: 1, Minor: 1, Policy: 2}},
		{ProviderHTTP, 2, "", 2, nil, Event{Kind: RequestStop}},
		{ProviderHTTP, 2, "", 2, put(i + 200), Event{Kind: RequestStop, Status: 200, HasStatus: true}},
		{ProviderHTTP, 3, "", 0, nil, Event{Kind: RequestFailed}},
		{ProviderHTTP, 3, "", 0, put("why"), Event{Kind: RequestFailed, Text: "why"}},
		{ProviderHTTP, 4, "", 0, put(byte(2), byte(0)), Event{Kind: ConnectionEstablished, Major: 2}},
		{ProviderHTTP, 4, "", 0, put(byte(1), byte(1), int64(7), "http", "h", i+80, "10.0.0.1"),
			Event{Kind: ConnectionEstablished, Major: 1, Minor: 1, Conn: 7, HasConn: true, Scheme: "http", Host: "h", Port: 80, Text: "10.0.0.1"}},
		{ProviderHTTP, 5, "", 0, put(byte(1), byte(1), int64(7)), Event{Kind: ConnectionClosed, Major: 1, Minor: 1, Conn: 7, HasConn: true}},
		{ProviderHTTP, 6, "", 0, put(1.5, byte(1), byte(1)), Event{Kind: RequestLeftQueue, Millis: 1.5, Major: 1, Minor: 1}},
		{ProviderHTTP, 7, "", 1, nil, Event{Kind: RequestHeadersStart}},
		{ProviderHTTP, 7, "", 1, put(int64(7)), Event{Kind: RequestHeadersStart, Conn: 7, HasConn: true}},
		{ProviderHTTP, 10, "", 2, put(int64(42)), Event{Kind: RequestContentStop, Length: 42}},
		{ProviderHTTP, 12, "", 2, put(i + 404), Event{Kind: ResponseHeadersStop, Status: 404, HasStatus: true}},
		{ProviderHTTP, 15, "", 0, put("detail"), Event{Kind: RequestFailedDetailed, Text: "detail"}},
		{ProviderHTTP, 16, "", 0, put("/b"), Event{Kind: RequestRedirect, Text: "/b"}},
		{ProviderDNS, 1, "", 1, put("h"), Event{Kind: ResolutionStart, Host: "h"}},
		{ProviderDNS, 2, "", 2, nil, Event{Kind: ResolutionStop}},
		{ProviderDNS, 3, "", 0, nil, Event{Kind: ResolutionFailed}},
		{ProviderSockets, 1, "", 1, put("InterNetworkV6:28"), Event{Kind: ConnectStart, Text: "InterNetworkV6:28"}},
		{ProviderSockets, 2, "", 2, nil, Event{Kind: ConnectStop}},
		{ProviderSockets, 3, "", 0, put(i+111, "refused"), Event{Kind: ConnectFailed, Status: 111, Text: "refused"}},
		{ProviderSockets, 4, "", 1, nil, Event{Kind: OtherStart}}, // of who accepts
		{ProviderSecurity, 1, "", 1, put(i+1, "h"), Event{Kind: HandshakeStart, Server: true, Host: "h"}},
		{ProviderSecurity, 1, "", 1, put(i, "h"), Event{Kind: HandshakeStart, Host: "h"}},
		{ProviderSecurity, 2, "", 2, put(i + 12288), Event{Kind: HandshakeStop, Status: 12288}},
		{ProviderSecurity, 3, "", 0, put(i, 2.5, "why"), Event{Kind: HandshakeFailed, Millis: 2.5, Text: "why"}},
		{ProviderHosting, 3, "", 1, put("GET", "/a"), Event{Kind: ServerRequestStart, Method: "GET", Text: "/a"}},
		{ProviderHosting, 17, "RequestStart", 1, put("GET", "/a"), Event{Kind: ServerRequestStart, Method: "GET", Text: "/a"}},
		{ProviderHosting, 17, "Request/Stop", 2, nil, Event{Kind: ServerRequestStop}},
		{ProviderHosting, 5, "", 0, nil, Event{Kind: ServerUnhandled}},
		{hostingOld, 3, "", 1, put("GET", "/a"), Event{Kind: ServerRequestStart, Method: "GET", Text: "/a"}},
		{ProviderHosting, 1, "HostStart", 1, nil, Event{Kind: OtherStart}},
		{ProviderKestrel, 9, "ConnectionStop", 2, put("0H:1"), Event{Kind: KestrelClosed, Text: "0H:1"}},
		{ProviderKestrel, 9, "ConnectionStart", 1, put("0H", "127.0.0.1:5000", "127.0.0.1:40000"), Event{Kind: OtherStart, Text: "0H", Port: 5000}},
		{ProviderKestrel, 9, "ConnectionStart", 1, put("0H", "[::1]:5000"), Event{Kind: OtherStart, Text: "0H", Port: 5000}},
		{ProviderKestrel, 9, "ConnectionStart", 1, put("0H", "/run/web.sock"), Event{Kind: OtherStart, Text: "0H"}},
		{ProviderKestrel, 9, "ConnectionStart", 1, nil, Event{Kind: OtherStart}},
		{"Mine", 1, "WorkStart", 1, nil, Event{Kind: OtherStart}},
	} {
		var d Decoder
		var e Event
		assert.True(t, d.Decode(&e, c.provider, c.id, 0, c.name, c.opcode, c.payload), "%s %d %s", c.provider, c.id, c.name)
		assert.Equal(t, c.want, e, "%s %d %s", c.provider, c.id, c.name)
	}
}

// What tells nothing, or is too short for what it should tell, is no event.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		provider string
		id       int
		opcode   int
		payload  []byte
	}{
		{ProviderHTTP, 0, 1, nil},
		{ProviderHTTP, 17, 1, nil},
		{ProviderHTTP, 1, 1, put("https", "h")},
		{ProviderHTTP, 4, 0, put(byte(2))},
		{ProviderHTTP, 6, 0, put(-1.0, byte(1), byte(1))},
		{ProviderHTTP, 6, 0, put(math.NaN(), byte(1), byte(1))},
		{ProviderHTTP, 16, 0, []byte("/\x00b")},
		{ProviderDNS, 4, 1, nil},
		{ProviderHosting, 99, 2, nil},
		{"Mine", 1, 2, nil},
	} {
		var d Decoder
		assert.False(t, d.Decode(&Event{}, c.provider, c.id, 0, "", c.opcode, c.payload), "%s %d %x", c.provider, c.id, c.payload)
	}
}

func TestSplitURL(t *testing.T) {
	base := place{scheme: "https", host: "h", port: 8443, target: "/a/b?c=d"}
	for u, want := range map[string]place{
		"http://x":                  {"http", "x", "/", 80},
		"HTTPS://x/":                {"https", "x", "/", 443},
		"http://x:81/y?z=://":       {"http", "x", "/y?z=://", 81},
		"http://x?q":                {"http", "x", "/?q", 80},
		"http://user:pass@x:81/y@z": {"http", "x", "/y@z", 81},
		"http://[::1]:81/":          {"http", "::1", "/", 81},
		"http://[::1]/":             {"http", "::1", "/", 80},
		"http://x:0/":               {"http", "x:0", "/", 80},
		"http://x:65536/":           {"http", "x:65536", "/", 80},
		"http://x:65535/":           {"http", "x", "/", 65535},
		"":                          {"https", "h", "", 8443},
		"*":                         {"https", "h", "", 8443}, // redacted
		"/e":                        {"https", "h", "/e", 8443},
		"?e":                        {"https", "h", "/a/b?e", 8443},
		"e":                         {"https", "h", "/a/e", 8443},
		"/login?from=http://x/":     {"https", "h", "/login?from=http://x/", 8443},
		"login?from=http://x/":      {"https", "h", "/a/login?from=http://x/", 8443},
	} {
		assert.Equal(t, want, splitURL(u, &base), u)
	}
}

func TestCausesStop(t *testing.T) {
	var got []string
	for name := range (&TimeByCause{}).Causes {
		if got = append(got, name); name == "lock" {
			break
		}
	}
	assert.Equal(t, []string{"gc", "cpu", "lock"}, got)
}

// How a request ended is told by the task of its call, else by its error.
func TestOutcomeOfSpan(t *testing.T) {
	for name, c := range map[string]struct {
		end  Span
		want Outcome
	}{
		"ran":                    {Span{Task: TaskRan, Status: 200}, OK},
		"ran to an error status": {Span{Task: TaskRan, Status: 500, ErrorType: "500"}, OK},
		"faulted":                {Span{Task: TaskFaulted}, Failed},
		"canceled":               {Span{Task: TaskCanceled}, Canceled},
		"only a status":          {Span{Status: 200}, OK},
		"only an error":          {Span{ErrorType: "name_resolution_error"}, Failed},
		"only a cancellation":    {Span{ErrorType: "System.Threading.Tasks.TaskCanceledException"}, Canceled},
	} {
		var rows []*Request
		b := NewBuilder(&Options{Request: func(r *Request) { rows = append(rows, r) }})
		start := Span{Name: "System.Net.Http.HttpRequestOut", ID: "c", Method: "GET", URL: "http://h/a"}
		c.end.Name, c.end.ID = start.Name, start.ID
		b.Add(&Event{Kind: SpanStart, Time: 1e6, Thread: 1, Span: &start})
		b.Add(&Event{Kind: SpanStop, Time: 3e6, Thread: 1, Span: &c.end})
		b.Finish(4e6)
		if assert.Len(t, rows, 1, name) {
			assert.Equal(t, c.want, rows[0].Outcome, name)
			assert.Equal(t, c.end.Status, rows[0].Status, name)
			assert.Equal(t, "http://h/a", rows[0].URL(), name)
			assert.Equal(t, int64(2e6), rows[0].Duration, name)
		}
	}
}

func TestUpgraded(t *testing.T) {
	for want, list := range map[bool][]ServerRequest{
		true:  {{Status: 101, Method: "GET"}, {Method: "CONNECT"}, {Status: 200, Method: "CONNECT"}},
		false: {{Method: "GET"}, {Status: 200, Method: "GET"}, {Status: 403, Method: "CONNECT"}},
	} {
		for _, s := range list {
			assert.Equal(t, want, s.Upgraded(), "%s %d", s.Method, s.Status)
		}
	}
}

// The times of a request without redirects, event by event.
func TestHeadersAt(t *testing.T) {
	events := func(stop bool) (l []Event) {
		l = []Event{
			{Kind: RequestStart, Time: 1, Scheme: "http", Host: "h", Port: 80, Text: "/a", Major: 1, Minor: 1},
			{Kind: RequestHeadersStart, Time: 5},
			{Kind: RequestHeadersStop, Time: 6},
			{Kind: ResponseHeadersStart, Time: 7},
		}
		if stop {
			l = append(l, Event{Kind: ResponseHeadersStop, Time: 9, Status: 204, HasStatus: true},
				Event{Kind: ResponseContentStart, Time: 10}, Event{Kind: ResponseContentStop, Time: 12})
		}
		return append(l, Event{Kind: RequestStop, Time: 13})
	}
	for stop, want := range map[bool]int64{true: 9, false: 0} {
		var rows []*Request
		b := NewBuilder(&Options{Request: func(r *Request) { rows = append(rows, r) }})
		all := events(stop)
		for i := range all {
			all[i].Thread = 1
			b.Add(&all[i])
		}
		b.Finish(20)
		assert.Equal(t, int64(len(all)), b.Stats().Events)
		if assert.Len(t, rows, 1) {
			assert.Equal(t, want, rows[0].HeadersAt, "stop: %v", stop)
			assert.Equal(t, uint64(1), rows[0].HeadersBy)
		}
	}
}
