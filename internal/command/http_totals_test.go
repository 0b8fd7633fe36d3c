package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
)

// TestAWebSocketIsNoSlowRequest: it counts, and how long it was open does not.
func TestAWebSocketIsNoSlowRequest(t *testing.T) {
	totals := newHTTPTotals(&Call{Measure: true}, requests.Server)
	for _, status := range []int{200, 101} {
		totals.served(&httpphases.ServerRequest{Method: "GET", Target: "/chat", Status: status, Duration: 3600e9, HasDuration: true})
	}
	var rep report.Trace
	totals.end(&rep, nil, nil)
	assert.Equal(t, 2, rep.Requests.Count)
	if assert.Len(t, rep.Requests.Slowest, 1) {
		assert.Equal(t, 200, rep.Requests.Slowest[0].Status)
	}
	if assert.Len(t, rep.Measures.Routes, 1) {
		assert.Equal(t, map[int]int{report.DurationBin(3600e9): 1}, rep.Measures.Routes[0].Durations)
	}
}

// TestAPartOfARequestIsNoDuration: of one that was open when the recording began it is not known how long it took.
func TestAPartOfARequestIsNoDuration(t *testing.T) {
	totals := newHTTPTotals(&Call{Measure: true}, requests.Server)
	var sum httpreport.Summary
	for _, before := range []bool{false, true} {
		r := &httpphases.ServerRequest{Method: "GET", Target: "/a", Status: 500, Duration: 5e9, HasDuration: true, StartUnknown: before}
		totals.served(r)
		sum.AddServed(r)
	}
	var rep report.Trace
	totals.end(&rep, nil, nil)
	assert.Equal(t, []int{2, 2}, []int{rep.Requests.Count, rep.Requests.Errors})
	assert.Len(t, rep.Requests.Slowest, 1)
	if assert.Len(t, rep.Measures.Routes, 1) {
		assert.Equal(t, map[int]int{report.DurationBin(5e9): 1}, rep.Measures.Routes[0].Durations)
	}
	assert.Equal(t, []int{2, 1}, []int{sum.Served.Requests, int(sum.Served.Durations.Len())})
}

// A route that a server serves is the same in another run, on another port and machine.
func TestServedRoutesWithoutPlace(t *testing.T) {
	totals := newHTTPTotals(&Call{Measure: true}, requests.Server)
	for _, host := range []string{"shop.example", "shop.example:8080", "127.0.0.1:41233", "10.0.0.7", "[::1]:5000", "[fe80::1]", "::1", ""} {
		totals.served(&httpphases.ServerRequest{Host: host, Method: "GET", Route: "/a", Status: 200})
	}
	counts := map[string]int{}
	for _, r := range totals.measures.One().Routes {
		counts[r.Host] += r.Count
	}
	assert.Equal(t, map[string]int{"shop.example": 2, "": 6}, counts)
}

// TestSlowFromBefore: how long a request took in all counts for --slow, where only a part of it was recorded.
func TestSlowFromBefore(t *testing.T) {
	keep, err := (&HTTP{Slow: 8 * time.Millisecond}).filter()
	require.NoError(t, err)
	assert.True(t, keep(httpRow{served: &httpphases.ServerRequest{Duration: 5e6, HasDuration: true, Took: 9e6}}))
	assert.True(t, keep(httpRow{made: &httpphases.Request{Took: 9e6}}))
	assert.False(t, keep(httpRow{served: &httpphases.ServerRequest{Duration: 5e6, HasDuration: true, Took: 7e6}}))
	assert.False(t, keep(httpRow{made: &httpphases.Request{}}))
}
