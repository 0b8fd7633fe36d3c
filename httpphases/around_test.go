package httpphases_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// TestStoppedAround: another session's events can stop the activity of a request that is served, so
// that the stop of Hosting has the id of its connection. It ends the only request that is open there.
func TestStoppedAround(t *testing.T) {
	connection := []uint32{1, 7}
	for name, c := range map[string]struct {
		open [][]uint32 // requests
		want string
	}{
		"one below":        {[][]uint32{{1, 7, 1, 1}, {1, 8, 1, 1}}, "[/1.7.1.1 5ms guessed][/1.8.1.1 open incomplete]"},
		"two below":        {[][]uint32{{1, 7, 1, 1}, {1, 7, 1, 2}}, "[/1.7.1.1 open incomplete][/1.7.1.2 open incomplete]"},
		"none below":       {[][]uint32{{1, 70, 1}}, "[/1.70.1 open incomplete]"},
		"the very request": {[][]uint32{{1, 7}, {1, 7, 1}}, "[/1.7 5ms ][/1.7.1 open incomplete]"},
	} {
		got := ""
		b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) {
			length := "open"
			if s.HasDuration {
				length = fmt.Sprint(s.Duration/1e6, "ms")
			}
			got += fmt.Sprintf("[%s %s %s]", s.Target, length, s.Marks())
		}})
		now := int64(0)
		at := func(kind httpphases.Kind, path []uint32) {
			now++
			e := httpphases.Event{Kind: kind, Time: now * 1e6, Thread: uint64(now), ID: id(path...), PathLen: uint8(len(path)), Text: "/"}
			for i, n := range path {
				e.Text += fmt.Sprint(n)
				if i < len(path)-1 {
					e.Text += "."
				}
			}
			copy(e.Path[:], path)
			b.Add(&e)
		}
		for _, path := range c.open {
			at(httpphases.ServerRequestStart, path)
		}
		now = 5
		at(httpphases.ServerRequestStop, connection)
		b.Finish(9e6)
		assert.Equal(t, c.want, got, name)
	}
}
