package httpreport

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// A URL that is too long gives up its scheme, then its query, then the middle of its path.
func TestURLFits(t *testing.T) {
	u := urlText{method: "GET", url: "https://shop.example:8443/api/v2/orders/4711/lines?page=2&size=50"}
	for width, want := range map[int]string{
		80: "GET https://shop.example:8443/api/v2/orders/4711/lines?page=2&size=50",
		64: "GET shop.example:8443/api/v2/orders/4711/lines?page=2&size=50",
		50: "GET shop.example:8443/api/v2/orders/4711/lines?…",
		30: "GET shop.example:…4711/lines?…",
	} {
		assert.Equal(t, want, u.fit(width), "%d columns", width)
	}
	for width := range 70 {
		assert.LessOrEqual(t, utf8.RuneCountInString(u.fit(width)), max(width, 0), "%d columns", width)
	}
}

// A table for a screen fits it, leaves out what is empty, and has id and start in each row.
func TestTableFits(t *testing.T) {
	for _, width := range []int{60, 80, 100, 140, 200} {
		var b strings.Builder
		w := newTable(&b, &Options{Width: width})
		s := &Summary{}
		for i := range 3 {
			r := &httpphases.Request{ID: i + 1, Start: int64(i) * 1e9, Method: "GET", Scheme: "http", Host: "shop.example", Port: 80, Target: "/" + strings.Repeat("path/", 9) + fmt.Sprint(i), Status: 200, HasDuration: true, Duration: 5e6}
			require.NoError(t, w.Request(r))
			s.Requests++
			s.Matched++
			s.Shown++
			s.Add(r)
		}
		require.NoError(t, w.Close(s))
		text := b.String()
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
		}
		assert.Contains(t, text, "3 2.000s 200")
		assert.NotContains(t, text, "tls")
		assert.Contains(t, text, "shop.example")
		assert.Contains(t, text, "path/2\n", "the end of the path stays")
	}
}

// A row says why its request failed, also where the trace does not hold all of it.
func TestTableTellsFailures(t *testing.T) {
	failed := httpphases.Request{ID: 1, Outcome: httpphases.Failed, Error: "no answer", ErrorCause: "System.TimeoutException: late"}
	partly, lost := failed, failed
	partly.Outcome, partly.Missing = httpphases.Incomplete, []string{"the start"}
	lost.Outcome, lost.Missing, lost.Error, lost.ErrorCause = httpphases.Incomplete, []string{"the start"}, "", ""
	for want, r := range map[string]*httpphases.Request{
		" ~ no answer <- TimeoutException: late":                     &failed,
		" ~ lost: the start ~ no answer <- TimeoutException: late\n": &partly,
		" ~ lost: the start\n":                                       &lost,
	} {
		var b strings.Builder
		w := newTable(&b, &Options{})
		require.NoError(t, w.Request(r))
		require.NoError(t, w.Close(&Summary{}))
		assert.Contains(t, b.String(), want)
	}
}

// A client follows 50 redirects of a loop. The first ones show it.
func TestTableOfALoop(t *testing.T) {
	for n, more := range map[int]string{maxHops: "", 50: "40 more"} {
		r := httpphases.Request{ID: 1, Outcome: httpphases.Failed, Error: "too many"}
		for i := range n {
			r.Redirects = append(r.Redirects, httpphases.Redirect{From: fmt.Sprintf("http://a/%d", i), URL: fmt.Sprintf("http://a/%d", i+1), Status: 302})
		}
		var b strings.Builder
		w := newTable(&b, &Options{})
		require.NoError(t, w.Request(&r))
		require.NoError(t, w.Close(&Summary{}))
		assert.Equal(t, maxHops, strings.Count(b.String(), "  hop "))
		assert.Contains(t, b.String(), fmt.Sprintf("  hop %d: http://a/%d\n", n, n-1), "the last one by its number")
		assert.Contains(t, b.String(), fmt.Sprintf("-> http://a/%d (302) ~ too many", n))
		assert.Equal(t, more != "", strings.Contains(b.String(), "more hops, which json lists"))
		assert.Contains(t, b.String(), more)
	}
}

// The totals of what was served say that they are without the times of WebSockets, in the table and as JSON.
func TestTotalsWithoutWebSockets(t *testing.T) {
	s := &Summary{Shown: 3}
	for _, r := range []httpphases.ServerRequest{
		{Status: 200, Duration: 5e6, HasDuration: true}, {Status: 101, Duration: 3600e9, HasDuration: true}, {Method: "CONNECT"},
	} {
		s.AddServed(&r)
	}
	var b strings.Builder
	require.NoError(t, newTable(&b, &Options{Totals: true}).Close(s))
	assert.Regexp(t, `(?m)^ +3 +5.000 +5.000 +5.000 +5.000  all requests, times but of 2 that became WebSockets$`, b.String())
	b.Reset()
	require.NoError(t, newJSON(&b, &Options{}).Close(s))
	assert.Contains(t, b.String(), `"upgraded":2,"p50_ms":5,`)
}

// TestTookInAll: how long a request took that began before the recording is in each format, and where that has
// times of day it begins when it did.
func TestTookInAll(t *testing.T) {
	made := &httpphases.Request{ID: 1, Method: "GET", Scheme: "http", Host: "h", Port: 1, Target: "/a", Start: 5e6, StartUnknown: true, Took: 9e6, SpanOnly: true, RequestBytes: -1}
	served := &httpphases.ServerRequest{ID: 2, Method: "GET", Target: "/a", Duration: 5e6, HasDuration: true, StartUnknown: true, Took: 9e6}
	base := time.Unix(1, 0).UTC()
	for name, c := range map[string]struct {
		make func(io.Writer, *Options) Writer
		want []string
	}{
		"otlp":  {newOTLP, []string{`"startTimeUnixNano":"996000000","endTimeUnixNano":"1005000000"`}},
		"har":   {newHAR, []string{`"startedDateTime":"1970-01-01T00:00:00.996000Z","time":9,`, "it began before the recording, and took 9.000 ms in all"}},
		"html":  {newHTML, []string{"it began before the recording, and took 9.000 ms in all"}},
		"table": {newTable, []string{"~ it took 9.000 in all"}},
	} {
		var out strings.Builder
		w := c.make(&out, &Options{Start: base})
		require.NoError(t, w.Request(made))
		require.NoError(t, w.Server(served))
		require.NoError(t, w.Close(&Summary{}))
		for _, want := range c.want {
			assert.Equal(t, 2, strings.Count(out.String(), want), "%s: %s", name, out.String())
		}
	}
	assert.Contains(t, string(AppendRequest(nil, made)), `"start_ms":5,"took_ms":9,`)
	assert.Equal(t, int64(3), (&Options{}).began(3, 5, 9), "no time of day is known")
}
