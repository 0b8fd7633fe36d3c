package requests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/profile"
)

// write makes an output of the rows of a recording.
func write(t *testing.T, rec *recording, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	sum := httpreport.Summary{Source: "a trace.nettrace"}
	w := httpreport.Lookup(format).New(&b, &httpreport.Options{Source: sum.Source, Exporter: "test", Origin: func() (string, string, string) { return "Lab", "Lab.dll --x", "10.0.12" }, Start: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC), Process: 7})
	for _, r := range rec.rows {
		sum.Add(r)
		sum.Matched++
		sum.Shown++
		c := *r
		require.NoError(t, w.Request(&c))
	}
	for _, s := range rec.served {
		sum.Servers++
		require.NoError(t, w.Server(s))
	}
	require.NoError(t, w.Close(&sum))
	return b.Bytes()
}

func small(t *testing.T) *recording {
	return loadFile(t, filepath.Join("testdata", "http-more.nettrace.zst"))
}

// members checks that an object has these members of these types, as the HAR schema
// demands: s string, n number, i integer, a array, o object.
func members(t *testing.T, v any, where string, want ...string) map[string]any {
	t.Helper()
	o, ok := v.(map[string]any)
	require.True(t, ok, "%s is not an object", where)
	for _, w := range want {
		name, kind, _ := strings.Cut(w, ":")
		m, ok := o[name]
		require.True(t, ok, "%s lacks %s", where, name)
		switch kind {
		case "s":
			require.IsType(t, "", m, "%s.%s", where, name)
		case "a":
			require.IsType(t, []any{}, m, "%s.%s", where, name)
		case "o":
			require.IsType(t, map[string]any{}, m, "%s.%s", where, name)
		case "n", "i":
			n, ok := m.(json.Number)
			require.True(t, ok, "%s.%s is not a number", where, name)
			if kind == "i" {
				_, err := n.Int64()
				require.NoError(t, err, "%s.%s", where, name)
			}
		}
	}
	return o
}

func decode(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	require.False(t, d.More())
	return v
}

// The demands are those of the HAR 1.2 schema, and of http-events.md section 10.2.
func TestHAR(t *testing.T) {
	rec := small(t)
	log := members(t, members(t, decode(t, write(t, rec, "har")), "har", "log:o")["log"], "log", "version:s", "creator:o", "entries:a")
	assert.Equal(t, "1.2", log["version"])
	members(t, log["creator"], "creator", "name:s", "version:s")
	hops := 0
	for _, r := range rec.rows {
		hops += 1 + len(r.Redirects)
	}
	entries := log["entries"].([]any)
	require.Len(t, entries, hops+len(rec.served))
	for i, v := range entries[:hops] { // write hands on what was made first
		where := fmt.Sprintf("entries[%d]", i)
		e := members(t, v, where, "startedDateTime:s", "time:n", "request:o", "response:o", "cache:o", "timings:o")
		_, err := time.Parse(time.RFC3339Nano, e["startedDateTime"].(string))
		require.NoError(t, err)
		q := members(t, e["request"], where+".request", "method:s", "url:s", "httpVersion:s", "cookies:a", "headers:a", "queryString:a", "headersSize:i", "bodySize:i")
		u, err := url.Parse(q["url"].(string))
		require.NoError(t, err)
		assert.True(t, u.IsAbs(), u)
		assert.Equal(t, "UNKNOWN", q["method"], "the method is in no event: it must not be made up")
		p := members(t, e["response"], where+".response", "status:i", "statusText:s", "httpVersion:s", "cookies:a", "headers:a", "content:o", "redirectURL:s", "headersSize:i", "bodySize:i")
		members(t, p["content"], where+".content", "size:i", "mimeType:s")
		m := members(t, e["timings"], where+".timings", "blocked:n", "dns:n", "connect:n", "ssl:n", "send:n", "wait:n", "receive:n")
		sum := 0.0
		delete(m, "comment")
		for name, v := range m {
			n, err := v.(json.Number).Float64()
			require.NoError(t, err)
			switch {
			case name == "send" || name == "wait" || name == "receive":
				assert.GreaterOrEqual(t, n, 0.0, "%s.%s", where, name)
			default:
				assert.True(t, n >= 0 || n == -1, "%s.%s is %v", where, name, n)
			}
			if n > 0 && name != "ssl" {
				sum += n
			}
		}
		total, _ := e["time"].(json.Number).Float64()
		assert.InDelta(t, total, sum, 1e-6, where)
		if c, ok := e["connection"]; ok {
			require.IsType(t, "", c)
		}
	}
}

// What a client sent that is no URI is none in HAR either: its schema refuses the file for it.
func TestHARHoldsURIs(t *testing.T) {
	for in, want := range map[string]string{
		"/ok?x= y":               "/ok?x=%20y",
		"/%zz/%41/é|\"<>\\^`{}":  "/%25zz/%41/%C3%A9%7C%22%3C%3E%5C%5E%60%7B%7D",
		"/a[0]?b='(;,:@&=+$!)*#": "/a%5B0%5D?b='(;,:@&=+$!)*#",
	} {
		rec := small(t)
		rec.rows[0].Scheme, rec.rows[0].Host, rec.rows[0].Port, rec.rows[0].Target = "http", "::1", 8080, in
		log := members(t, members(t, decode(t, write(t, rec, "har")), "har", "log:o")["log"], "log", "entries:a")
		u := log["entries"].([]any)[0].(map[string]any)["request"].(map[string]any)["url"].(string)
		assert.Equal(t, "http://[::1]:8080"+want, u)
	}
}

// What the trace does not tell is -1 where HAR lets it be, and is not charged to blocked: wait takes the rest, and says so.
func TestHARUnknown(t *testing.T) {
	entry := func(r *httpphases.Request) (timings map[string]any, e map[string]any) {
		rec := &recording{rows: []*httpphases.Request{r}, info: &Info{}}
		log := members(t, members(t, decode(t, write(t, rec, "har")), "har", "log:o")["log"], "log", "entries:a")
		e = log["entries"].([]any)[0].(map[string]any)
		timings = map[string]any{}
		for k, v := range e["timings"].(map[string]any) {
			timings[k] = fmt.Sprint(v)
		}
		return timings, e
	}
	const unknown, rest = "-1", "the trace does not tell all parts: wait holds the rest"
	m, e := entry(&httpphases.Request{ID: 1, Start: 1e6, Duration: 9e6, HasDuration: true, SpanOnly: true, Status: 200, RequestBytes: -1})
	assert.Equal(t, map[string]any{"blocked": unknown, "dns": unknown, "connect": unknown, "ssl": unknown, "send": "0", "wait": "9", "receive": "0", "comment": rest}, m)
	assert.Equal(t, "9", e["time"].(json.Number).String())

	m, e = entry(&httpphases.Request{
		ID: 1, Start: 1e6, Duration: 9e6, HasDuration: true, Outcome: httpphases.Incomplete, Guessed: 1, Missing: []string{"request headers"}, RequestBytes: -1,
		Phases: []httpphases.Phase{{Name: httpphases.Connect, Start: 2e6, Duration: 1e6, Inferred: true}, {Name: httpphases.ResponseContent, Start: 8e6, Duration: 1e6}},
	})
	assert.Equal(t, map[string]any{"blocked": unknown, "dns": unknown, "connect": "1", "ssl": unknown, "send": "0", "wait": "7", "receive": "1", "comment": rest}, m)
	assert.Equal(t, []any{"inferred", "guessed", "incomplete"}, e["_marks"])
	assert.Contains(t, e["comment"], "marked: inferred,guessed,incomplete")

	m, _ = entry(&httpphases.Request{ // no more than there is: of a lookup inside the connect
		ID: 1, Start: 1e6, Duration: 9e6, HasDuration: true, Missing: []string{"request headers"}, RequestBytes: -1,
		Phases: []httpphases.Phase{{Name: httpphases.DNS, Start: 2e6, Duration: 4e6}, {Name: httpphases.Connect, Start: 2e6, Duration: 6e6}, {Name: httpphases.Wait, Start: 8e6, Duration: 2e6}},
	})
	assert.Equal(t, map[string]any{"blocked": unknown, "dns": "4", "connect": "3", "ssl": unknown, "send": "0", "wait": "2", "receive": "0"}, m)
}

// A request that was served has no parts that the trace tells, and no address without a host.
func TestHARServed(t *testing.T) {
	rec := &recording{info: &Info{}, served: []*httpphases.ServerRequest{
		{ID: 1, Method: "GET", Scheme: "https", Host: "shop:8443", Target: "/orders/7", Route: "/orders/{id}", Status: 200, Start: 1e6, Duration: 9e6, HasDuration: true},
		{ID: 2, Target: "/orders/7", Start: 2e6, Outcome: httpphases.Incomplete, Guessed: 1},
	}}
	log := members(t, members(t, decode(t, write(t, rec, "har")), "har", "log:o")["log"], "log", "entries:a")
	entries := log["entries"].([]any)
	require.Len(t, entries, 2)
	told, untold := entries[0].(map[string]any), entries[1].(map[string]any)
	assert.Equal(t, "https://shop:8443/orders/7", told["request"].(map[string]any)["url"])
	assert.Equal(t, json.Number("9"), told["time"])
	assert.Equal(t, map[string]any{
		"blocked": json.Number("-1"), "dns": json.Number("-1"), "connect": json.Number("-1"), "ssl": json.Number("-1"),
		"send": json.Number("0"), "wait": json.Number("9"), "receive": json.Number("0"), "comment": "the trace does not tell all parts: wait holds the rest",
	}, told["timings"])
	assert.Equal(t, "unknown:/orders/7", untold["request"].(map[string]any)["url"])
	assert.Equal(t, json.Number("0"), untold["time"])
	assert.Contains(t, untold["comment"], "its end is not in the trace")
	assert.Equal(t, []any{"guessed", "incomplete"}, untold["_marks"])
}

// Why a request failed is in every output, down to the innermost exception.
func TestCauses(t *testing.T) {
	rec := small(t)
	causes := 0
	for _, r := range rec.rows {
		if r.ErrorCause != "" {
			causes++
		}
	}
	assert.Greater(t, causes, 4)
	for format, want := range map[string]string{
		"table":    "<- SocketException (104): Connection reset by peer",
		"ndjson":   `"error_cause":"System.Net.Sockets.SocketException (104): Connection reset by peer"`,
		"html":     `"System.Net.Sockets.SocketException (104): Connection reset by peer"`,
		"har":      `"_error_cause":"System.Net.Sockets.SocketException (104): Connection reset by peer"`,
		"otlp":     `"System.Net.Sockets.SocketException (104): Connection reset by peer"`,
		"chromium": `"error_cause":"System.Net.Sockets.SocketException (104): Connection reset by peer"`,
	} {
		assert.Contains(t, string(write(t, rec, format)), want, format)
	}
}

// Attempts that failed without ending their request are told, too.
func TestFailedAttempts(t *testing.T) {
	failed := httpphases.Phase{Name: httpphases.Connect, Start: 2e6, Duration: 1e6, Error: "connection refused (10061)"}
	rec := &recording{info: &Info{}, rows: []*httpphases.Request{{
		ID: 1, Scheme: "http", Host: "h", Port: 80, Target: "/", Start: 1e6, Duration: 9e6, HasDuration: true, Status: 200, RequestBytes: -1,
		Tries: []httpphases.Try{{Phase: failed, Address: "10.0.0.8:80", Code: 10061}, {Address: "10.0.0.9:80"}},
		Side:  []httpphases.SideAttempt{{Phases: []httpphases.Phase{{Name: httpphases.TLS, Start: 3e6, Duration: 2e6, Error: "UntrustedRoot"}}}},
	}}}
	for format, want := range map[string][]string{
		"table":    {"connect 10.0.0.8:80 failed after 1.000: connection refused (10061)", "side attempt: tls failed after 2.000: UntrustedRoot"},
		"har":      {"connect 10.0.0.8:80 failed", "side attempt: tls failed"},
		"html":     {"connect 10.0.0.8:80 failed", "side attempt: tls failed"},
		"chromium": {"connect 10.0.0.8:80 failed", "side attempt: tls failed"},
		"otlp":     {`"name":"failed attempt"`, `"UntrustedRoot"`, `"connection refused (10061)"`},
		"ndjson":   {`"tries":[{"address":"10.0.0.8:80"`, `"side_attempts":[{"phases":[{"name":"tls","start_ms":3,"duration_ms":2,"error":"UntrustedRoot"}]}]`},
	} {
		got := string(write(t, rec, format))
		for _, w := range want {
			assert.Contains(t, got, w, format)
		}
	}
}

// What a backend reads: each line by the collector's own decoder.
func traces(t *testing.T, out []byte) (spans []ptrace.Span, resources []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var u ptrace.JSONUnmarshaler
		got, err := u.UnmarshalTraces(line)
		require.NoError(t, err)
		again, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(got) // it can go on as any other
		require.NoError(t, err)
		require.NotEmpty(t, again)
		for _, r := range got.ResourceSpans().All() {
			resources = append(resources, r.Resource().Attributes().AsRaw())
			for _, s := range r.ScopeSpans().All() {
				for _, span := range s.Spans().All() {
					spans = append(spans, span)
				}
			}
		}
	}
	return spans, resources
}

func TestOTLP(t *testing.T) {
	rec := small(t)
	spans, resources := traces(t, write(t, rec, "otlp"))
	require.NotEmpty(t, resources)
	for _, r := range resources {
		assert.Equal(t, map[string]any{
			"service.name": "Lab", "process.pid": int64(7), "process.command_line": "Lab.dll --x", "process.runtime.name": "dotnet",
			"process.runtime.version": "10.0.12", "tracefix.source": "a trace.nettrace",
		}, r)
	}
	byID := map[pcommon.SpanID]ptrace.Span{}
	for _, s := range spans {
		assert.NotContains(t, byID, s.SpanID(), "span ids are unique")
		byID[s.SpanID()] = s
	}
	clients, waited := 0, int64(0)
	for _, s := range spans {
		assert.LessOrEqual(t, s.StartTimestamp(), s.EndTimestamp())
		require.False(t, s.TraceID().IsEmpty())
		a := s.Attributes().AsRaw()
		if s.Kind() == ptrace.SpanKindClient {
			clients++
			for _, k := range []string{"http.request.method", "url.full", "server.address", "tracefix.outcome"} {
				assert.Contains(t, a, k)
			}
			failed := a["tracefix.outcome"] == "failed" || a["tracefix.outcome"] == "canceled"
			if !failed {
				continue
			}
			assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())
			require.NotZero(t, s.Events().Len())
			e := s.Events().At(0)
			assert.Equal(t, "exception", e.Name())
			assert.Contains(t, e.Attributes().AsRaw()["exception.stacktrace"], "   at System.Net.Http")
			continue
		}
		parent, ok := byID[s.ParentSpanID()]
		require.True(t, ok, "%s has a parent that is not there", s.Name())
		assert.Equal(t, parent.TraceID(), s.TraceID())
		assert.LessOrEqual(t, parent.StartTimestamp(), s.StartTimestamp(), s.Name())
		assert.GreaterOrEqual(t, parent.EndTimestamp(), s.EndTimestamp(), s.Name())
		if a["tracefix.phase"] == "wait" {
			waited += int64(s.EndTimestamp() - s.StartTimestamp())
		}
	}
	hops, wait := 0, int64(0)
	for _, r := range rec.rows {
		hops += 1 + len(r.Redirects)
		for _, l := range append([][]httpphases.Phase{r.Phases}, hopPhases(r)...) {
			for _, p := range l {
				if p.Name == httpphases.Wait {
					wait += p.Duration
				}
			}
		}
	}
	assert.Equal(t, hops, clients)
	assert.Equal(t, wait, waited, "all waiting is in spans")
}

func hopPhases(r *httpphases.Request) (l [][]httpphases.Phase) {
	for i := range r.Redirects {
		l = append(l, r.Redirects[i].Phases)
	}
	return l
}

// Spans of both sides belong to one trace where the bridge told their ids.
func TestOTLPServed(t *testing.T) {
	rec := loadFile(t, filepath.Join("testdata", "net31-more.nettrace.zst"))
	var b bytes.Buffer
	w := httpreport.Lookup("otlp").New(&b, &httpreport.Options{})
	for _, r := range rec.rows {
		require.NoError(t, w.Request(r))
	}
	for _, s := range rec.served {
		require.NoError(t, w.Server(s))
	}
	require.NoError(t, w.Close(&httpreport.Summary{}))
	spans, resources := traces(t, b.Bytes())
	assert.Equal(t, "unknown_service", resources[0]["service.name"])
	clients, served := map[pcommon.SpanID]pcommon.TraceID{}, 0
	for _, s := range spans {
		if s.Kind() == ptrace.SpanKindClient {
			clients[s.SpanID()] = s.TraceID()
		}
	}
	for _, s := range spans {
		if s.Kind() != ptrace.SpanKindServer {
			continue
		}
		served++
		assert.Equal(t, clients[s.ParentSpanID()], s.TraceID())
		status, told := s.Attributes().AsRaw()["http.response.status_code"].(int64)
		want := ptrace.StatusCodeUnset
		if told && status >= 500 {
			want = ptrace.StatusCodeError
		}
		assert.Equal(t, want, s.Status().Code())
	}
	assert.Equal(t, 92, served)
}

func TestNDJSON(t *testing.T) {
	rec := small(t)
	lines := bytes.Split(bytes.TrimSpace(write(t, rec, "ndjson")), []byte("\n"))
	require.Len(t, lines, len(rec.rows))
	for i, l := range lines {
		o := members(t, decode(t, l), "row", "id:i", "scheme:s", "host:s", "port:i", "path:s", "url:s", "start_ms:n", "duration_ms:n", "outcome:s", "phases:a")
		for _, k := range []string{"method"} {
			assert.NotContains(t, o, k, "the trace does not tell it")
		}
		ms, _ := o["start_ms"].(json.Number).Float64()
		assert.InDelta(t, float64(rec.rows[i].Start)/1e6, ms, 1e-9)
	}
	doc := members(t, decode(t, write(t, rec, "json")), "json", "requests:a", "summary:o")
	assert.Len(t, doc["requests"], len(rec.rows))
}

// The page must not reach for anything outside, and data must not end its script.
func TestHTML(t *testing.T) {
	rec := small(t)
	rec.rows[0].Target = "/</script><b>"
	page := string(write(t, rec, "html"))
	for _, bad := range []string{"src=", "@import", "fetch(", "XMLHttpRequest", "</script><b>", "/*ROWS*/", "/*SUMMARY*/"} {
		assert.NotContains(t, page, bad)
	}
	parts := partsOf(page)
	require.Len(t, parts, 1)
	assert.Len(t, decode(t, []byte(parts[0])), len(rec.rows))
}

// partsOf are the lists of rows of a page.
func partsOf(page string) (parts []string) {
	for _, m := range regexp.MustCompile(`(?s)class="rows">(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		parts = append(parts, m[1])
	}
	return parts
}

// Many rows stand in several elements, none of them large; no rows in none.
func TestHTMLInParts(t *testing.T) {
	rec := small(t)
	one := slices.Clone(rec.rows)
	for len(rec.rows) < 10_000 {
		rec.rows = append(rec.rows, one...)
	}
	parts, rows := partsOf(string(write(t, rec, "html"))), 0
	assert.Greater(t, len(parts), 2)
	for _, p := range parts {
		require.Less(t, len(p), 1_200_000)
		list, ok := decode(t, []byte(p)).([]any)
		require.True(t, ok)
		rows += len(list)
	}
	assert.Equal(t, len(rec.rows), rows)
	rec.rows, rec.served = nil, nil
	assert.Empty(t, partsOf(string(write(t, rec, "html"))))
}

func TestTable(t *testing.T) {
	rec := small(t)
	table := string(write(t, rec, "table"))
	for _, want := range []string{
		"FAIL", "CANCEL", "http://127.0.0.1:35381/interim ~ wait: An error occurred while sending the request.",
		"http://localhost:41785/redirect/1", "hop 1:", "requests  failed", "#12+",
	} {
		assert.Contains(t, table, want)
	}
}

// Slices of a track nest: each lies in the one that is open, or after it.
func TestTracksNest(t *testing.T) {
	recordings(t, func(t *testing.T, name string, rec *recording) {
		owner := &profile.Process{PID: 1}
		n := 0
		var drawing httpreport.Drawing
		for _, r := range rec.rows {
			drawing.Client(r)
		}
		for _, track := range drawing.Tracks(func(uint32) *profile.Process { return owner }) {
			assert.Equal(t, "http", track.Group)
			var open []profile.Slice
			last := int64(-1)
			for s := range track.Slices {
				require.GreaterOrEqual(t, s.Start, last, track.Name)
				last = s.Start
				for len(open) > 0 && open[len(open)-1].Start+open[len(open)-1].Dur <= s.Start {
					open = open[:len(open)-1]
				}
				if len(open) > 0 {
					o := open[len(open)-1]
					require.LessOrEqual(t, s.Start+s.Dur, o.Start+o.Dur, "%s: %s in %s", track.Name, s.Name, o.Name)
				}
				if s.Category == "http" {
					require.Empty(t, open, "%s: requests overlap", track.Name)
					n++
				}
				open = append(open, *s)
			}
		}
		assert.Equal(t, len(rec.rows), n)
	})
}

// Finish goes through the rest of the log: what a benchmark measures.
func (x *Explainer) Finish() {
	for x.more {
		x.until(x.next.Time)
	}
}
