package httpphases_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// TestSpanWithoutAddress: a session that asks for `[AS]*` is not told where a span goes. Without
// activity ids it is that of the request that began directly before on its thread, or was sent
// elsewhere there; it tells whose the answer is before which it ends, and who served it.
func TestSpanWithoutAddress(t *testing.T) {
	const client, server = "System.Net.Http.HttpRequestOut", "Microsoft.AspNetCore.Hosting.HttpRequestIn"
	type event = httpphases.Event
	at := func(thread uint64, kind httpphases.Kind, e event) event {
		e.Thread, e.Kind = thread, kind
		return e
	}
	ask := func(thread uint64, path string) event {
		return at(thread, httpphases.RequestStart, event{Scheme: "http", Host: "h", Port: 80, Text: path, Major: 1, Minor: 1})
	}
	span := func(thread uint64, kind httpphases.Kind, name, id, parent string) event {
		return at(thread, kind, event{Span: &httpphases.Span{Name: name, ID: id, SpanID: id, ParentID: parent}})
	}
	plain := func(thread uint64, kind httpphases.Kind) event { return at(thread, kind, event{}) }
	answer := func(thread uint64, status int32) event {
		return at(thread, httpphases.ResponseHeadersStop, event{HasStatus: true, Status: status})
	}
	rows := map[string]*httpphases.Request{}
	served := map[string]*httpphases.ServerRequest{}
	b := httpphases.NewBuilder(&httpphases.Options{
		Request: func(r *httpphases.Request) { rows[r.Target] = r },
		Server:  func(s *httpphases.ServerRequest) { served[s.SpanID] = s },
	})
	for i, e := range []event{
		// Two at once, of which the second is answered first.
		ask(1, "/a"), span(1, httpphases.SpanStart, client, "a", ""), plain(1, httpphases.RequestHeadersStart), plain(1, httpphases.RequestHeadersStop),
		ask(2, "/b"), span(2, httpphases.SpanStart, client, "b", ""), plain(2, httpphases.RequestHeadersStart), plain(2, httpphases.RequestHeadersStop),
		at(4, httpphases.ServerRequestStart, event{Text: "/b"}), span(4, httpphases.SpanStart, server, "sb", "b"),
		span(4, httpphases.SpanStop, server, "sb", "b"), plain(4, httpphases.ServerRequestStop),
		plain(3, httpphases.ResponseHeadersStart), answer(3, 404), span(3, httpphases.SpanStop, client, "b", ""), at(3, httpphases.RequestStop, event{HasStatus: true, Status: 404}),
		plain(3, httpphases.ResponseHeadersStart), answer(3, 200), span(3, httpphases.SpanStop, client, "a", ""), at(3, httpphases.RequestStop, event{HasStatus: true, Status: 200}),
		// A redirect, with one span for each hop.
		ask(1, "/c"), span(1, httpphases.SpanStart, client, "c1", ""), plain(1, httpphases.RequestHeadersStart), plain(1, httpphases.RequestHeadersStop),
		plain(1, httpphases.ResponseHeadersStart), answer(1, 302), span(1, httpphases.SpanStop, client, "c1", ""), at(1, httpphases.RequestRedirect, event{Text: "http://h/d"}),
		span(1, httpphases.SpanStart, client, "c2", ""), plain(1, httpphases.RequestHeadersStart), plain(1, httpphases.RequestHeadersStop),
		plain(1, httpphases.ResponseHeadersStart), answer(1, 200), span(1, httpphases.SpanStop, client, "c2", ""), at(1, httpphases.RequestStop, event{HasStatus: true, Status: 200}),
		// Another span of the thread is not its own.
		ask(1, "/e"), plain(1, httpphases.RequestHeadersStart), span(1, httpphases.SpanStart, client, "f", ""), plain(1, httpphases.RequestHeadersStop),
		plain(1, httpphases.ResponseHeadersStart), answer(1, 200), at(1, httpphases.RequestStop, event{HasStatus: true, Status: 200}),
	} {
		e.Time = int64(i) * 1e6
		b.Add(&e)
	}
	b.Finish(1e9)
	require.Len(t, rows, 4)
	got := func(path string) []any {
		return []any{rows[path].SpanID, rows[path].Status, rows[path].Duration / 1e6}
	}
	assert.Equal(t, []any{"a", 200, int64(19)}, got("/a"))
	assert.Equal(t, []any{"b", 404, int64(11)}, got("/b"))
	require.Contains(t, served, "sb")
	assert.Equal(t, rows["/b"].ID, served["sb"].Client)
	assert.Equal(t, []httpphases.SpanIDs{{Span: "c1"}, {Span: "c2"}}, rows["/c"].Spans)
	assert.Zero(t, rows["/c"].Guessed)
	assert.Empty(t, rows["/e"].SpanID)
}

// TestPassedOn: a program that forwards requests with the headers they came with tells the parent of
// its own, so two that are served name one span. Who asked is served by the first, as far as the
// second goes elsewhere or was asked for inside it. What is sent once more is served by the second.
func TestPassedOn(t *testing.T) {
	const client, server = "System.Net.Http.HttpRequestOut", "Microsoft.AspNetCore.Hosting.HttpRequestIn"
	for name, c := range map[string]struct {
		path   string
		port   int32 // of the second; the first came in at 1
		asks   bool  // a request for path is open inside the first
		late   bool  // the path is known behind the span
		client bool  // the second is of the client
	}{
		"elsewhere":             {path: "/b"},
		"told later":            {path: "/b", late: true},
		"another port":          {path: "/a", port: 2},
		"asked for inside":      {path: "/a", asks: true},
		"sent once more":        {path: "/a", client: true},
		"with the same port":    {path: "/a", port: 1, client: true},
		"path that nobody says": {client: true},
	} {
		t.Run(name, func(t *testing.T) {
			type event = httpphases.Event
			rows := map[string]*httpphases.Request{}
			served := map[string]*httpphases.ServerRequest{}
			b := httpphases.NewBuilder(&httpphases.Options{
				Request: func(r *httpphases.Request) { rows[r.SpanID] = r },
				Server:  func(s *httpphases.ServerRequest) { served[s.SpanID] = s },
			})
			n := int64(0)
			at := func(thread uint64, e event) {
				n++
				e.Thread, e.Time = thread, n*1e6
				b.Add(&e)
			}
			span := func(thread uint64, kind httpphases.Kind, name, id, parent, url string) {
				at(thread, event{Kind: kind, Span: &httpphases.Span{Name: name, ID: id, SpanID: id, ParentID: parent, ParentSpanID: parent, URL: url}})
			}
			begin := func(thread uint64, id, path, request string, late bool) {
				kestrel := event{Kind: httpphases.KestrelStart, Span: &httpphases.Span{RequestID: request, Path: path}}
				if !late && path != "" {
					at(thread, event{Kind: httpphases.ServerRequestStart, Text: path})
				}
				span(thread, httpphases.SpanStart, server, id, "c", "")
				at(thread, kestrel)
			}
			end := func(thread uint64, id, request string) {
				at(thread, event{Kind: httpphases.KestrelStop, Span: &httpphases.Span{RequestID: request}})
				span(thread, httpphases.SpanStop, server, id, "", "")
				at(thread, event{Kind: httpphases.ServerRequestStop})
			}
			at(9, event{Kind: httpphases.OtherStart, Text: "0A", Port: 1})
			at(9, event{Kind: httpphases.OtherStart, Text: "0B", Port: c.port})
			span(1, httpphases.SpanStart, client, "c", "", "http://localhost:1/a?x")
			begin(2, "s1", "/a", "0A:1", false)
			if c.asks {
				span(2, httpphases.SpanStart, client, "i", "s1", "http://localhost:1/a")
			}
			begin(3, "s2", c.path, "0B:1", c.late)
			end(3, "s2", "0B:1")
			if c.asks {
				span(2, httpphases.SpanStop, client, "i", "", "")
			}
			end(2, "s1", "0A:1")
			span(1, httpphases.SpanStop, client, "c", "", "")
			b.Finish(1e9)

			require.Contains(t, rows, "c")
			require.Len(t, served, 2)
			want, second := served["s1"].ID, 0
			if c.client {
				want, second = served["s2"].ID, rows["c"].ID
			}
			assert.Equal(t, want, rows["c"].Server)
			assert.Equal(t, rows["c"].ID, served["s1"].Client)
			assert.Equal(t, second, served["s2"].Client)
		})
	}
}
