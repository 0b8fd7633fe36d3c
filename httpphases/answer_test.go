package httpphases_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// A span ends with the headers. Where the process serves the request itself, the other side
// tells when the content has come, unless its connection was closed for it.
func TestAnswerBehindTheSpan(t *testing.T) {
	const ms = int64(1e6)
	for name, c := range map[string]struct {
		earlier  int   // requests of that route, whose server had ended when the headers came
		served   int64 // ms: the end of the request that is served
		threw    bool
		status   int   // of the answer, if not 200
		closed   int64 // ms: the end of its connection
		reused   int64 // ms: the start of another request on its connection
		next     bool  // another request begins behind the headers, on their thread
		beside   bool  // and one was under way
		duration int64 // ms
		marks    string
		outcome  httpphases.Outcome
	}{
		"content that comes late":                     {served: 60, duration: 60, marks: "inferred"},
		"content that came with headers":              {earlier: 1, served: 12, duration: 10},
		"content that comes soon":                     {served: 12, duration: 12, marks: "inferred"},
		"content that nobody reads":                   {served: 60, closed: 60, duration: 10},
		"connection closed for another":               {served: 60, reused: 61, closed: 62, duration: 60, marks: "inferred"},
		"content that the next one does not wait for": {served: 60, next: true, duration: 10},
		"next one of other code":                      {served: 60, next: true, beside: true, duration: 60, marks: "inferred"},
		"connection closed later":                     {served: 60, closed: 80, duration: 60, marks: "inferred"},
		"server that fails in the middle":             {served: 60, threw: true, closed: 60, duration: 60, marks: "inferred", outcome: httpphases.Failed},
		"server that failed at once":                  {served: 5, threw: true, duration: 10, marks: "inferred", outcome: httpphases.Failed},
		"content that is too large for the server":    {served: 5, threw: true, status: 413, duration: 10},
		"content that broke off, and is told so":      {served: 12, threw: true, status: 400, duration: 10},
		"request that is served to the end":           {served: 1000, duration: 10},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []*httpphases.Request
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
			client := httpphases.Span{Name: "System.Net.Http.HttpRequestOut", ID: "c", URL: "http://localhost/a", Status: 200, Task: httpphases.TaskRan}
			client.Status = cmp.Or(c.status, client.Status)
			server := httpphases.Span{Name: "Microsoft.AspNetCore.Hosting.HttpRequestIn", ID: "s", ParentID: "c", RequestID: "0H:1"}
			type at struct {
				ms int64
				e  httpphases.Event
			}
			var events []at
			for i := range int64(c.earlier) {
				t, client, server := 10*i-900, client, server
				client.ID, server.ID, server.ParentID, server.RequestID = fmt.Sprint("c", i), fmt.Sprint("s", i), fmt.Sprint("c", i), fmt.Sprint("0G:", i)
				events = append(events, at{t, httpphases.Event{Kind: httpphases.SpanStart, Thread: 1, Span: &client}},
					at{t + 1, httpphases.Event{Kind: httpphases.ServerRequestStart, Thread: 2, Text: "/a"}},
					at{t + 1, httpphases.Event{Kind: httpphases.SpanStart, Thread: 2, Span: &server}},
					at{t + 2, httpphases.Event{Kind: httpphases.ServerRequestStop, Thread: 2}},
					at{t + 3, httpphases.Event{Kind: httpphases.SpanStop, Thread: 1, Span: &client}})
			}
			other := func(id string) httpphases.Event {
				return httpphases.Event{Kind: httpphases.SpanStart, Thread: 1, Span: &httpphases.Span{Name: client.Name, ID: id, URL: "http://elsewhere/b"}}
			}
			if c.beside {
				events = append(events, at{-1, other("o")})
			}
			events = append(events, []at{
				{0, httpphases.Event{Kind: httpphases.SpanStart, Thread: 1, Span: &client}},
				{1, httpphases.Event{Kind: httpphases.ServerRequestStart, Thread: 2, Text: "/a"}},
				{1, httpphases.Event{Kind: httpphases.SpanStart, Thread: 2, Span: &server}},
			}...)
			end := []at{{c.served, httpphases.Event{Kind: httpphases.ServerRequestStop, Thread: 2}}}
			if c.threw {
				end = append([]at{{c.served, httpphases.Event{Kind: httpphases.ServerUnhandled, Thread: 2}}}, end...)
			}
			stop := at{10, httpphases.Event{Kind: httpphases.SpanStop, Thread: 1, Span: &client}}
			switch {
			case c.served < 10:
				events = append(append(events, end...), stop)
			case c.served > 100: // it goes on behind the trace
				events = append(events, stop)
			default:
				events = append(events, stop)
				if c.next {
					events = append(events, at{11, other("n")})
				}
				events = append(events, end...)
			}
			if c.reused > 0 {
				events = append(events, at{c.reused, httpphases.Event{Kind: httpphases.ServerRequestStart, Thread: 4, Text: "/b"}},
					at{c.reused, httpphases.Event{Kind: httpphases.KestrelStart, Thread: 4, Span: &httpphases.Span{RequestID: "0H:2"}}})
			}
			if c.closed > 0 {
				events = append(events, at{c.closed, httpphases.Event{Kind: httpphases.KestrelClosed, Thread: 3, Text: "0H"}})
			}
			for _, x := range events {
				x.e.Time = (1000 + x.ms) * ms
				b.Add(&x.e)
			}
			b.Finish(1100 * ms)
			rows = slices.DeleteFunc(rows, func(r *httpphases.Request) bool { return r.Host == "elsewhere" })
			require.Len(t, rows, c.earlier+1)
			rows = rows[c.earlier:]
			assert.Equal(t, c.duration*ms, rows[0].Duration)
			assert.Equal(t, c.outcome, rows[0].Outcome)
			assert.Equal(t, c.marks, rows[0].Marks().String())
			if len(rows[0].Phases) > 0 {
				times := rows[0].Times()
				assert.Equal(t, rows[0].Duration, times.Sum())
			}
		})
	}
}

// What the answers of a route do is told by those of its path alone, also where nothing but the
// client's span tells it, as with `[AS]*`. A WebSocket is open from the headers on and has no content.
func TestAnswersOfPath(t *testing.T) {
	const client, server = "System.Net.Http.HttpRequestOut", "Microsoft.AspNetCore.Hosting.HttpRequestIn"
	rows := map[string]int64{}
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows[r.Target] = r.Duration / 1e6 }})
	for i, c := range []struct {
		path, method string
		status       int
		served       int64 // ms: the end of the request that is served; the headers come at 20
	}{
		{"/short", "GET", 200, 10}, {"/short", "GET", 200, 11}, {"/long", "GET", 200, 50}, {"/ws", "GET", 101, 60}, {"/h2", "CONNECT", 200, 60},
	} {
		span := func(ms int64, thread uint64, kind httpphases.Kind, s httpphases.Span) {
			b.Add(&httpphases.Event{Kind: kind, Time: (int64(i)*100 + ms) * 1e6, Thread: thread, Span: &s})
		}
		asked, got := fmt.Sprint("c", i), fmt.Sprint("s", i)
		span(0, 1, httpphases.SpanStart, httpphases.Span{Name: client, ID: asked, Method: c.method, URL: "http://localhost" + c.path})
		span(5, 2, httpphases.SpanStart, httpphases.Span{Name: server, ID: got, ParentID: asked})
		span(c.served, 2, httpphases.SpanStop, httpphases.Span{Name: server, ID: got})
		span(20, 1, httpphases.SpanStop, httpphases.Span{Name: client, ID: asked, Status: c.status, Task: httpphases.TaskRan})
	}
	b.Finish(1e9)
	assert.Equal(t, map[string]int64{"/short": 20, "/long": 50, "/ws": 20, "/h2": 20}, rows)
}
