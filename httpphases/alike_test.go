package httpphases_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// TestServedOfOneID: the encoder of .NET 10 gives the 11th to 255th request of a connection one id. Of
// those that are served at one time Kestrel's id tells them apart, and Hosting's events stand beside
// Kestrel's; without Kestrel the thread may tell, and else the order.
func TestServedOfOneID(t *testing.T) {
	const a, b, c = "/a", "/b", "/c"
	hosting := func(thread uint64, path string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.ServerRequestStart, Thread: thread, Method: "GET", Text: path, PathLen: 4}
	}
	done := func(thread uint64) httpphases.Event {
		return httpphases.Event{Kind: httpphases.ServerRequestStop, Thread: thread, PathLen: 4}
	}
	kestrel := func(k httpphases.Kind, thread uint64, path string) httpphases.Event {
		return httpphases.Event{Kind: k, Thread: thread, PathLen: 5, Span: &httpphases.Span{RequestID: "A:" + path, Path: path, Version: "2.0"}}
	}
	start, stop := httpphases.KestrelStart, httpphases.KestrelStop
	for name, c := range map[string]struct {
		events []httpphases.Event
		want   []string // path, start, end, links that are guessed
	}{
		"Hosting and Kestrel": {[]httpphases.Event{
			hosting(1, a), hosting(2, b), kestrel(start, 1, a), kestrel(start, 2, b), hosting(1, c), kestrel(start, 1, c),
			kestrel(stop, 2, a), kestrel(stop, 3, c), done(2), done(3), kestrel(stop, 1, b), done(1),
		}, []string{"/a 1 9 0", "/c 5 10 0", "/b 2 12 0"}},
		"Hosting goes on elsewhere": {[]httpphases.Event{
			hosting(1, a), kestrel(start, 1, a), hosting(1, b), kestrel(start, 1, b), hosting(1, c), kestrel(start, 1, c),
			kestrel(stop, 2, b), done(3), kestrel(stop, 2, c), kestrel(stop, 3, a), done(4), done(4),
		}, []string{"/b 3 8 0", "/a 1 11 1", "/c 5 12 0"}},
		"Kestrel": {[]httpphases.Event{
			kestrel(start, 1, a), kestrel(start, 1, b), kestrel(start, 2, c),
			kestrel(stop, 2, b), kestrel(stop, 2, a), kestrel(stop, 1, c),
		}, []string{"/b 2 4 0", "/a 1 5 0", "/c 3 6 0"}},
		"Hosting": {[]httpphases.Event{
			hosting(1, a), hosting(2, b), hosting(1, c), done(2), done(3), done(3),
		}, []string{"/b 2 4 1", "/a 1 5 1", "/c 3 6 0"}},
		"Hosting, and a stop is lost": {[]httpphases.Event{
			{Kind: httpphases.EventsLost, Thread: 9}, hosting(1, a), hosting(1, b), done(2), hosting(1, c), done(2),
		}, []string{"/b 3 4 1", "/c 5 6 1", "/a 2 0 0"}},
	} {
		var got []string
		builder := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) {
			end := int64(0)
			if s.HasDuration {
				end = (s.Start + s.Duration) / 1e6
			}
			got = append(got, fmt.Sprint(s.Target, " ", s.Start/1e6, " ", end, " ", s.Guessed))
		}})
		for i := range c.events {
			e := c.events[i]
			e.Time = int64(i+1) * 1e6
			if e.PathLen > 0 {
				e.ID = [16]byte{e.PathLen}
				e.Path = [24]uint32{1, 1, 117, 0, 1}
			}
			builder.Add(&e)
		}
		builder.Finish(1e9)
		assert.Equal(t, c.want, got, name)
	}
}
