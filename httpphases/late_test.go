package httpphases

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServerStopTooLate: a stop that comes too late to be put in order is not before its start.
func TestServerStopTooLate(t *testing.T) {
	var got []*ServerRequest
	b := NewBuilder(&Options{Late: 1, Server: func(s *ServerRequest) { got = append(got, s) }})
	b.Add(&Event{Kind: ServerRequestStart, Time: 100, Thread: 1, Process: 1, Method: "GET", Text: "/a"})
	b.Add(&Event{Kind: OtherStart, Time: 200, Thread: 2, Process: 1})
	b.Add(&Event{Kind: ServerRequestStop, Time: 50, Thread: 1, Process: 1})
	b.Finish(300)
	require.Len(t, got, 1)
	assert.True(t, got[0].HasDuration)
	assert.Zero(t, got[0].Duration)
}

// TestKestrelStopBeforeTheTrace: what ends before time 0 lasted no time of the trace.
func TestKestrelStopBeforeTheTrace(t *testing.T) {
	var got []*ServerRequest
	b := NewBuilder(&Options{Server: func(s *ServerRequest) { got = append(got, s) }})
	b.Add(&Event{Kind: KestrelStop, Time: -50, Thread: 1, Process: 1, Span: &Span{RequestID: "A:00000001", Path: "/a"}})
	b.Finish(300)
	for _, s := range got {
		assert.GreaterOrEqual(t, s.Duration, int64(0))
	}
}
