package httpreport

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// TestOTLPOfTwoExchanges: a request that is sent twice and opens a connection each time has two spans of that,
// each within the wait for it.
func TestOTLPOfTwoExchanges(t *testing.T) {
	type phase = httpphases.Phase
	var out strings.Builder
	w := newOTLP(&out, &Options{Source: "a.nettrace"})
	require.NoError(t, w.Request(&httpphases.Request{
		ID: 1, Method: "GET", Scheme: "http", Host: "shop", Port: 80, Status: 200, Start: 100, Duration: 100, HasDuration: true, RequestBytes: -1,
		Phases: []phase{
			{Name: httpphases.Queue, Start: 100, Duration: 10}, {Name: httpphases.DNS, Start: 101, Duration: 2}, {Name: httpphases.Connect, Start: 104, Duration: 5},
			{Name: httpphases.RequestHeaders, Start: 111, Duration: 1}, {Name: httpphases.Wait, Start: 112, Duration: 28},
			{Name: httpphases.Queue, Start: 141, Duration: 8}, {Name: httpphases.DNS, Start: 142, Duration: 1}, {Name: httpphases.Connect, Start: 143, Duration: 5},
			{Name: httpphases.RequestHeaders, Start: 150, Duration: 1}, {Name: httpphases.Wait, Start: 151, Duration: 40},
			{Name: httpphases.Connect, Start: 192, Duration: 1},
		},
	}))
	require.NoError(t, w.Close(&Summary{}))
	type span struct {
		SpanID, ParentSpanID, Name         string
		StartTimeUnixNano, EndTimeUnixNano string
	}
	var got struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	spans, times := map[string]span{}, []string{}
	for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
		assert.NotContains(t, spans, s.SpanID)
		spans[s.SpanID] = s
		if p := spans[s.ParentSpanID]; s.Name == "HTTP connection_setup shop:80" {
			times = append(times, s.StartTimeUnixNano+" "+s.EndTimeUnixNano+" in "+p.StartTimeUnixNano+" "+p.EndTimeUnixNano)
		}
	}
	assert.Equal(t, []string{"101 109 in 100 110", "142 148 in 141 149", "192 193 in 100 200"}, times)
}

// TestOTLPOfBadIDs: what the trace gives for an id and is none, such as the zeros of an activity without a W3C id or
// damaged text, is no id in OTLP, whose receivers refuse all that is sent with it.
func TestOTLPOfBadIDs(t *testing.T) {
	const zeros, text = "00000000000000000000000000000000", `1234567890"},{"1234567890abcdef1`
	var out strings.Builder
	w := newOTLP(&out, &Options{Source: "a.nettrace"})
	for i, id := range []string{zeros, text} {
		require.NoError(t, w.Request(&httpphases.Request{ID: i + 1, TraceID: id, ParentSpanID: id[:16], HasDuration: true}))
		require.NoError(t, w.Request(&httpphases.Request{ID: i + 3, HasDuration: true, Spans: []httpphases.SpanIDs{{Trace: id, Span: id[:16], Parent: id[:16]}}}))
		require.NoError(t, w.Server(&httpphases.ServerRequest{ID: i + 5, TraceID: id, SpanID: id[:16], ParentSpanID: id[:16], HasDuration: true}))
	}
	require.NoError(t, w.Close(&Summary{}))
	var got struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	require.Len(t, spans, 6)
	for _, s := range spans {
		assert.Regexp(t, "^[0-9a-f]{32}$", s["traceId"])
		assert.Regexp(t, "^[0-9a-f]{16}$", s["spanId"])
		assert.NotEqual(t, zeros, s["traceId"])
		assert.NotEqual(t, zeros[:16], s["spanId"])
		assert.NotContains(t, s, "parentSpanId")
	}
}

// TestOTLPOfRetries: a handler that sends a request again makes a span for each try, and the headers, which it leaves
// as they are, name the first one: what served each try lies below that.
func TestOTLPOfRetries(t *testing.T) {
	trace, first := strings.Repeat("a", 32), strings.Repeat("b", 16)
	var out strings.Builder
	w := newOTLP(&out, &Options{Source: "a.nettrace"})
	require.NoError(t, w.Request(&httpphases.Request{ID: 1, HasDuration: true, TraceID: trace, SpanID: first, Spans: []httpphases.SpanIDs{
		{Trace: trace, Span: first}, {Trace: strings.Repeat("c", 32), Span: strings.Repeat("d", 16)},
	}}))
	require.NoError(t, w.Close(&Summary{}))
	assert.Contains(t, out.String(), `"traceId":"`+trace+`","spanId":"`+first+`"`)
}

// TestOTLPOfFailureWithoutStart: of a request that began before the recording, all that is known may be why it failed.
func TestOTLPOfFailureWithoutStart(t *testing.T) {
	var out strings.Builder
	w := newOTLP(&out, &Options{Source: "a.nettrace"})
	require.NoError(t, w.Request(&httpphases.Request{ID: 1, Start: 100, Outcome: httpphases.Incomplete, Missing: []string{"the start"}, Error: "timed out", ErrorType: "System.TimeoutException"}))
	require.NoError(t, w.Request(&httpphases.Request{ID: 2, Start: 100, Outcome: httpphases.Incomplete, Missing: []string{"the end"}}))
	require.NoError(t, w.Close(&Summary{}))
	var got struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Status struct {
						Code    int
						Message string
					}
					Events []struct{ Name string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	require.Len(t, spans, 2)
	assert.Equal(t, 2, spans[0].Status.Code)
	assert.Equal(t, "timed out", spans[0].Status.Message)
	require.Len(t, spans[0].Events, 1)
	assert.Zero(t, spans[1].Status.Code, "nothing says that it failed")
	assert.Empty(t, spans[1].Events)
}
