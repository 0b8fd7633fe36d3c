package httpphases_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
)

// played returns the events of a play without activity ids: lines of a thread, what happens on it
// and with what. A line takes a millisecond, its events a microsecond each.
func played(t *testing.T, play string) []httpphases.Event {
	t.Helper()
	type event = httpphases.Event
	var events []event
	for i, line := range strings.Split(strings.TrimSpace(play), "\n") {
		f := append(strings.Fields(line), "")
		thread, err := strconv.Atoi(f[0])
		require.NoError(t, err, line)
		n, _ := strconv.Atoi(f[2])
		c := event{HasConn: true, Conn: int64(n), Scheme: "http", Host: "h", Port: 80, Major: 1, Minor: 1}
		do := map[string][]event{
			"many":  {{Kind: httpphases.ConnectionEstablished, Major: 2}}, // requests at once
			"close": {{Kind: httpphases.ConnectionClosed}},
			"start": {{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Text: f[2], Major: 1, Minor: 1}},
			"exact": {{Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 80, Text: f[2], Major: 2, Policy: 2}}, // HTTP/2, no other
			"left":  {{Kind: httpphases.RequestLeftQueue, Millis: float64(n), Major: 1, Minor: 1}},                           // so many lines
			"send":  {{Kind: httpphases.RequestHeadersStart}, {Kind: httpphases.RequestHeadersStop}},
			"head":  {{Kind: httpphases.ResponseHeadersStart}, {Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true}, {Kind: httpphases.ResponseContentStart}},
			"gives": {{Kind: httpphases.RequestLeftQueue, Millis: float64(n), Major: 1, Minor: 1}, {Kind: httpphases.RequestFailed}, {Kind: httpphases.RequestStop, Status: -1, HasStatus: true}}, // up
			"rest":  {{Kind: httpphases.ResponseContentStop}, {Kind: httpphases.RequestStop, Status: 200, HasStatus: true}},
		}
		do["asks"] = append(do["send"], httpphases.Event{Kind: httpphases.ResponseHeadersStart}) // and begins to wait, of HTTP/2
		do["answer"] = append(do["head"], do["rest"]...)
		do["streamed"] = []event{do["head"][0], do["head"][1], do["rest"][1]}
		require.Contains(t, do, f[1], line)
		for k, e := range do[f[1]] {
			switch e.Kind {
			case httpphases.ConnectionEstablished, httpphases.ConnectionClosed, httpphases.RequestHeadersStart:
				kind, major := e.Kind, max(e.Major, c.Major)
				e = c
				e.Kind, e.Major = kind, major
			}
			e.Time, e.Thread, e.Process = int64(i)*1e6+int64(k)*1e3, uint64(thread), 1
			events = append(events, e)
		}
	}
	return events
}

// Without ids the next use of a connection tells the answer to its last user.
func TestReuseTellsAnswers(t *testing.T) {
	for name, c := range map[string]struct{ play, want string }{
		"who came back last is taken first": {`
			1 start /a
			1 send 1
			2 start /b
			2 send 2
			3 answer
			4 answer
			1 start /c
			1 send 1
			2 start /d
			2 send 2`, "/a 5 /b 4"},
		"who has waited longest gets what comes back first": {`
			1 start /a
			1 send 1
			2 start /b
			2 send 2
			5 start /c
			6 start /d
			3 answer
			4 answer
			5 left 4
			5 send 2
			6 left 5
			6 send 1`, "/a 7 /b 6"},
		"no answer is left over": {`
			6 start /long
			6 many 9
			6 send 9
			1 start /a
			1 send 1
			3 answer
			2 start /b
			2 send 2
			4 answer
			1 start /c
			1 send 1
			2 start /d
			2 send 2`, "/a 5 /b 8"},
		"one that nobody reads on before one that is streamed": {`
			2 start /b
			2 send 2
			1 start /a
			1 send 1
			3 answer
			4 streamed
			1 start /c
			1 send 1
			5 start /d
			5 send 2`, "/a 4 /b 5"},
		"who gave up has no answer": {`
			1 start /a
			1 send 1
			2 start /b
			2 send 2
			3 answer
			4 close 1
			1 start /c
			1 send 2`, "/b 4"},
		"who gives up waiting fails at once": {`
			1 start /a
			1 send 1
			2 start /b
			3 close 1
			4 gives 2`, "/b 4"},
		"an answer to nobody ends none that wait": {`
			9 start /other
			1 start /a
			1 answer
			1 left 2
			1 send 1
			1 answer`, "/a 5"},
		"a connection of HTTP/2 from before the trace": {`
			6 exact /long
			6 asks 9
			1 start /a
			1 send 1
			2 start /b
			2 send 2
			3 answer
			6 exact /more
			6 asks 9
			2 start /c
			2 send 2`, "/b 6"},
		"content goes on on other threads": {`
			1 start /a
			1 send 1
			2 start /b
			2 send 2
			1 head
			2 head
			3 rest
			4 rest
			1 start /c
			1 send 1
			2 start /d
			2 send 2`, "/a 7 /b 6"},
	} {
		t.Run(name, func(t *testing.T) {
			ends := map[string]int64{}
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
				ends[r.Target] = (r.Start + r.Duration) / 1e6
			}})
			for _, e := range played(t, c.play) {
				b.Add(&e)
			}
			b.Finish(1e9)
			for f := strings.Fields(c.want); len(f) > 0; f = f[2:] {
				assert.Equal(t, f[1], fmt.Sprint(ends[f[0]]), f[0])
			}
		})
	}
}

// Of a busy client almost all ends are right, whether requests wait for connections or there are
// enough.
func TestEndsWithoutIDs(t *testing.T) {
	for name, c := range map[string]busy{
		"connections that are waited for": {connections: 10, think: 5e6},
		"enough connections":              {connections: 1000, think: 5e6},
	} {
		t.Run(name, func(t *testing.T) {
			c.rng = rand.New(rand.NewPCG(1, 2))
			c.run(4000)
			ends := map[string]int64{}
			b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
				ends[r.Target] = r.Start + r.Duration
			}})
			for i := range c.events {
				b.Add(&c.events[i])
			}
			b.Finish(c.now)
			right := 0
			for i, r := range c.all {
				if ends[fmt.Sprint("/", i)] == r.end {
					right++
				}
			}
			t.Logf("%d of %d ends", right, len(c.all))
			assert.Greater(t, right, len(c.all)*95/100)
		})
	}
}
