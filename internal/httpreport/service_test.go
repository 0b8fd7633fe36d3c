package httpreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

// requests returns a collector with n requests of 10 ms, each with a resolution that took
// so many ms.
func requests(dns ...int64) *ServiceCollector {
	c := &ServiceCollector{}
	c.Span(10e9)
	for i, ms := range dns {
		c.Client(&httpphases.Request{
			ID: i + 1, Scheme: "http", Host: "shop", Port: 80, Target: "/orders/" + strings.Repeat("7", i+1), Status: 200,
			Start: int64(i) * 1e8, Duration: 1e7 + ms*1e6, HasDuration: true,
			Phases: []httpphases.Phase{{Name: httpphases.DNS, Start: int64(i) * 1e8, Duration: ms * 1e6}},
		})
	}
	return c
}

// TestNothingStandsOut: beside requests that failed it is nothing else that stands out, and it
// comes behind them.
func TestNothingStandsOut(t *testing.T) {
	c := requests(1, 1)
	assert.Regexp(t, "^Nothing stands out: ", serviceSections(c.Finish("a"))[0].Lines[0])
	c = requests(1, 1)
	c.Client(&httpphases.Request{ID: 3, Scheme: "http", Host: "shop", Port: 80, Target: "/orders/7", Status: 500, Start: 1e9, Duration: 1e7, HasDuration: true})
	told := serviceSections(c.Finish("a"))[0].Lines
	require.Len(t, told, 2)
	assert.Contains(t, told[0], "1 of 3 requests made failed or were answered 400 or more (33.3 %)")
	assert.Regexp(t, "^Nothing else stands out: ", told[1])
}

// TestGuessedService: that events without ids do not tell which request is which is said, of a request
// whose ids are known not.
func TestGuessedService(t *testing.T) {
	c := requests(1, 1)
	for i := range 3 {
		c.Server(&httpphases.ServerRequest{ID: i, Method: "GET", Target: "/a", Start: int64(i) * 1e8, Duration: 1e7, HasDuration: true, Guessed: min(i, 1)})
		c.Client(&httpphases.Request{ID: 10 + i, Activity: [16]byte{1}, Target: "/b", Start: int64(i) * 1e8, Duration: 1e7, HasDuration: true, Guessed: 1})
	}
	s := c.Finish("a")
	assert.Equal(t, []int{2, 0}, []int{s.Server.Guessed, s.Client.Guessed})
	told := strings.Join(serviceSections(s)[0].Lines, "\n")
	assert.Contains(t, told, "2 of 3 requests served are told apart by a guess")
	assert.NotContains(t, told, "requests made are")
}

func TestOutliers(t *testing.T) {
	for _, c := range []struct {
		dns  []int64
		want int
	}{
		{[]int64{1, 1, 2, 1, 300}, 1},
		{[]int64{1, 1, 2, 1, 20}, 0},             // far above, but short
		{[]int64{100, 110, 120, 130, 140}, 0},    // slow, and all are
		{[]int64{1, 300}, 0},                     // too few to tell
		{[]int64{1, 1500}, 1},                    // but this is long for anybody
		{[]int64{1, 1, 1, 1, 1, 1, 60, 2000}, 2}, //
	} {
		s := requests(c.dns...).Finish("a")
		assert.Equal(t, c.want, s.Figures.DNSOutliers, "%v", c.dns)
		assert.Equal(t, c.want > 0, len(s.Findings) > 0, "%v", c.dns)
	}
}

// TestConvoys: waits that overlap are a convoy where the trace tells that they are for one lock,
// which it does not before .NET 8.
func TestConvoys(t *testing.T) {
	for _, lock := range []uint64{0x550, 0} {
		c := requests(0, 0, 0)
		c.tells.locks = true
		for thread := range uint64(convoyWaits) {
			c.contention(&runtimeevents.Contention{Process: 1, Thread: thread, Start: 1e8, Stop: 2e8 + int64(thread)*1e7, Lock: lock})
		}
		s := c.Finish("a")
		assert.Equal(t, lock != 0, *s.Figures.ConvoyWaits > 0, "lock %#x", lock)
		assert.Equal(t, lock != 0, len(s.Findings) > 0, "lock %#x", lock)
		assert.InDelta(t, 3900, *s.Figures.LockWaitMs, 0.1)
	}
}

func TestGroups(t *testing.T) {
	s := requests(0, 0, 0, 0).Finish("a")
	require.Len(t, s.Client.Routes, 1, "ids are one route")
	g := s.Client.Routes[0]
	assert.Equal(t, "/orders/*", g.Name)
	assert.Equal(t, 4, g.Requests)
	assert.Equal(t, 10., g.P50)
	assert.Equal(t, 10., g.Max)
	assert.Equal(t, 0.4, g.Rate)
	assert.Equal(t, 1, s.Client.Concurrency)
	assert.Equal(t, "0s .. 1s", s.Client.Slices[0].Name)
}

func TestWritersKeepHostileNames(t *testing.T) {
	c := &ServiceCollector{}
	c.Span(1e9)
	c.Client(&httpphases.Request{ID: 1, Scheme: "http", Host: "h", Target: "/<script>|\n# x", Start: 1, Duration: 5, HasDuration: true, Outcome: httpphases.Failed, Error: "a\x1b[2Jb | c [log in](http://x)"})
	s := c.Finish("<b>")
	var text, md, page bytes.Buffer
	require.NoError(t, ServiceText(&text, s, 0))
	require.NoError(t, ServiceMarkdown(&md, s))
	require.NoError(t, ServiceHTML(&page, s))
	assert.NotContains(t, text.String(), "\x1b")
	assert.Contains(t, text.String(), "1 of 1 requests made failed or were answered 400 or more (100.0 %)", "what to look at does not pass over failures")
	assert.NotContains(t, md.String(), "\n# x")
	assert.NotContains(t, md.String(), "<script>")
	assert.Contains(t, md.String(), `\|`)
	assert.Contains(t, md.String(), `\[log in\](http://x)`, "what a client asked for is no link")
	assert.Regexp(t, `\n- all of them: [^\n]*\n\n\| route \|`, md.String(), "GitHub takes a table behind a line of a list for more text of it")
	assert.NotContains(t, page.String(), "<script>")
	assert.NotContains(t, page.String(), "<b>")
}

// TestWebSockets: how long they last is told of their route only, and what they await hides nothing that
// requests waited for.
func TestWebSockets(t *testing.T) {
	c := &ServiceCollector{sampled: true}
	c.Span(100e9)
	for i := range 10 {
		s := &httpphases.ServerRequest{ID: i + 1, Target: "/orders", Status: 200, Start: int64(i) * 1e9, Duration: 1e8, HasDuration: true, Why: &httpphases.Explanation{}}
		s.Why.Time.Wait, s.Why.Time.Await = 5e7, 5e7
		if i >= 8 {
			s.Target, s.Duration, s.Why.Time.Wait, s.Why.Time.Await = "/chat", 90e9, 0, 899e8
			if s.Status = 101; i == 9 {
				s.Method, s.Status = "CONNECT", 200
			}
		}
		c.Server(s)
	}
	s := c.Finish("a")
	assert.Equal(t, 2, s.Server.Upgraded)
	assert.Equal(t, 10, s.Server.Requests)
	for _, groups := range [][]Group{{s.Server.All}, s.Server.Slices, s.Server.Status} {
		for _, g := range groups {
			assert.LessOrEqual(t, g.Max, 100.0, g.Name)
		}
	}
	longest := map[string]float64{}
	for _, g := range s.Server.Routes {
		longest[g.Name] = g.Max
	}
	assert.Equal(t, map[string]float64{"/orders": 100, "/chat": 90e3, "CONNECT /chat": 90e3}, longest)
	assert.InDelta(t, 40, *s.Figures.PoolBlocked, 0.1, "400 of 8 * 100 and, for the sockets, 2 * 100 ms")
	assert.Contains(t, serviceSections(s)[1].Lines[0], "all of them but 2 that became WebSockets: p50 100")
}

// Slices are as long as what a clock shows: a day is told by hours, not by 5,000 s.
func TestSlicesOfTime(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		0: time.Second, 30 * time.Second: time.Second, 31 * time.Second: 2 * time.Second, 11 * time.Minute: time.Minute,
		24 * time.Hour: time.Hour, 31 * 24 * time.Hour: 2 * 24 * time.Hour,
	} {
		assert.Equal(t, want, time.Duration(sliceOf(int64(span))), span)
	}
	assert.Positive(t, sliceOf(math.MaxInt64))
}

// At once are as many as there are in a slice of time, also those that began before it; the last
// one is as long as the recording.
func TestSlicesShareOutRequests(t *testing.T) {
	c := &ServiceCollector{All: true}
	c.Span(2.5e9)
	for i := range 4 { // four at once from 0.5 to 2.25 s
		c.Client(&httpphases.Request{ID: i + 1, Host: "h", Target: "/", Status: 200, Start: 5e8, Duration: 175e7, HasDuration: true})
	}
	c.Client(&httpphases.Request{ID: 5, Host: "h", Target: "/", Status: 200, Start: 12e8, Duration: 1e8, HasDuration: true})
	c.Client(&httpphases.Request{ID: 6, Host: "h", Target: "/", Status: 200, Start: 21e8, Duration: 1e8, HasDuration: true})
	s := c.Finish("a").Client
	require.Equal(t, 5, s.Concurrency)
	require.Len(t, s.Slices, 3)
	for i, want := range []struct {
		name     string
		at, rate float64
	}{{"0s .. 1s", 2, 4}, {"1s .. 2s", 4.1, 1}, {"2s .. 2.5s", 2.2, 2}} {
		g := s.Slices[i]
		assert.Equal(t, want.name, g.Name)
		assert.InDelta(t, want.at, g.Concurrency, 1e-9, g.Name)
		assert.InDelta(t, want.rate, g.Rate, 1e-9, g.Name)
		assert.LessOrEqual(t, g.Concurrency, float64(s.Concurrency))
	}
}

// What no event tells is not told as nothing.
func TestASummaryInventsNoZeros(t *testing.T) {
	var figures report.Service
	served := func(c *ServiceCollector) string {
		c.Span(1e9)
		c.Server(&httpphases.ServerRequest{ID: 1, Target: "/a", Duration: 5e6, HasDuration: true})
		c.Server(&httpphases.ServerRequest{ID: 2, Target: "/a", Outcome: httpphases.Incomplete})
		c.Client(&httpphases.Request{ID: 1, Host: "h", Target: "/b", Status: 200, Duration: 5e6, HasDuration: true})
		var b bytes.Buffer
		s := c.Finish("a")
		require.NoError(t, ServiceText(&b, s, 0))
		figures = s.Figures
		return b.String()
	}
	text := served(&ServiceCollector{})
	b, err := json.Marshal(figures)
	require.NoError(t, err)
	assert.JSONEq(t, `{"dns_outliers":0,"tls_outliers":0,"rate":3,"max_concurrency":2,"findings":0}`, string(b), "nor in figures")
	for _, zero := range []string{"The runtime", " 0 ms", "Connections of the client"} {
		assert.NotContains(t, text, zero)
	}
	for _, lacks := range []string{"Microsoft-Windows-DotNETRuntime:0x1C001:4: ", "TplEventSource:0x1FF:4: ", "Microsoft-DotNETCore-SampleProfiler: ", "Microsoft-Diagnostics-DiagnosticSource: "} {
		assert.Contains(t, text, lacks)
	}
	assert.Regexp(t, `\n  /a +2 +- `, text, "errors among what is not told are not known")
	assert.Regexp(t, `\n  /b +1 +0 `, text)
	text = served(&ServiceCollector{tells: runtimeTells{collections: true}, queues: true, net: true, sampled: true})
	for name, v := range map[string]*float64{
		"gc": figures.GCPauseMs, "lock": figures.LockWaitMs, "starvation": figures.Starvation, "blocked": figures.PoolBlocked, "queue": figures.PoolWaitMs, "opened": figures.Opened,
	} {
		if assert.NotNil(t, v, name) {
			assert.Zero(t, *v, "%s: there may have been none", name)
		}
	}
	assert.Nil(t, figures.RequestsEach)
	assert.Contains(t, text, "0 ms of collections")
	assert.Contains(t, text, "0 ms in which work of requests was queued")
	assert.Contains(t, text, "spent 0 % of their time waiting")
	assert.Contains(t, text, "0 opened, 0 closed, 0 attempts failed")
	assert.NotContains(t, text, "TplEventSource")
	assert.NotContains(t, text, "waited for locks")
	assert.NotContains(t, text, "the pool changed")
	assert.Contains(t, text, "Microsoft-Windows-DotNETRuntime:0x14000:4: there are no events of locks and the size of the thread pool")

	var tells runtimeTells
	tells.see(187) // Runtime/Start is in each recording, whatever its keywords
	assert.False(t, tells.any())
	for _, id := range []int{runtimeevents.IDGCStart, runtimeevents.IDContentionStart, runtimeevents.IDWorkerWait, runtimeevents.IDMethodJittingStarted} {
		tells.see(id)
	}
	assert.Equal(t, runtimeTells{true, true, true, true}, tells)
	text = served(&ServiceCollector{tells: tells})
	for _, line := range []string{"0 ms of collections", "0 ms waited for locks", "changed its number of threads 0 times", "0 methods compiled for requests, in 0 ms of what their threads ran, added up"} {
		assert.Contains(t, text, line)
	}
	assert.NotContains(t, text, "there are no events")

	deadlock := &ServiceCollector{tells: tells}
	deadlock.locks.Event(&nettrace.Event{ProcessID: 1, ThreadID: 2, Metadata: &nettrace.Metadata{Provider: nettrace.ProviderRuntime, EventID: runtimeevents.IDContentionStart}}, 5, 0)
	assert.Contains(t, served(deadlock), "0 ms waited for locks by all threads, not counting 1 wait without an end, as a deadlock")
}

// Requests that are open at the end are under way until then, and no percentile tells of them. How
// long those were whose end was lost nobody knows.
func TestServiceOfOpenRequests(t *testing.T) {
	for _, lost := range []bool{false, true} {
		c := &ServiceCollector{lost: lost}
		c.Span(1e9)
		for i := range 4 {
			r := &httpphases.Request{ID: i + 1, Host: "h", Target: "/hangs", Outcome: httpphases.Incomplete, Start: int64(i) * 1e8}
			if !lost {
				r.Duration, r.HasDuration = 1e9-r.Start, true
			}
			c.Client(r)
			c.Server(&httpphases.ServerRequest{ID: i + 11, Target: "/hangs", Outcome: httpphases.Incomplete, Start: r.Start})
		}
		s := c.Finish("a")
		most, average := 4, 3.4
		if lost {
			most, average = 1, 0
		}
		assert.Equal(t, most, s.Client.Concurrency)
		assert.Equal(t, most, s.Server.Concurrency)
		assert.Equal(t, average, s.Client.All.Concurrency)
		var b bytes.Buffer
		require.NoError(t, ServiceText(&b, s, 0))
		assert.Regexp(t, `\n  /hangs +4 +- +4\.00 +- +- +- +- +`+map[bool]string{false: "3.40", true: "-"}[lost]+"\n", b.String())
		one, err := json.Marshal(s.Client)
		require.NoError(t, err)
		assert.NotContains(t, string(one), "p50_ms")
	}
}

// Requests that were open when the recording began were under way in it, and took longer than is told.
func TestServiceOfRequestsFromBefore(t *testing.T) {
	c := &ServiceCollector{}
	c.Span(1e9)
	for _, before := range []bool{false, true} {
		c.Server(&httpphases.ServerRequest{Target: "/a", Status: 200, Duration: 5e8, HasDuration: true, StartUnknown: before})
		c.Server(&httpphases.ServerRequest{Target: "/b", Status: 200, Duration: 1e8, HasDuration: true, StartUnknown: true})
	}
	s := c.Finish("a")
	assert.Equal(t, []any{4, 4, 1.2}, []any{s.Server.All.Requests, s.Server.Concurrency, s.Server.All.Concurrency})
	var b bytes.Buffer
	require.NoError(t, ServiceText(&b, s, 0))
	assert.Regexp(t, `\n  /a +2 +0 +2\.00 +500\.0 `, b.String())
	assert.Regexp(t, `\n  /b +2 +0 +2\.00 +- +- +- +- `, b.String())
}

// On HTTP/2 who waits gets a stream, which more connections per server do not give. Those that wait
// for the connection to be opened wait for no other request.
func TestServiceOfStreams(t *testing.T) {
	connections := "all connections to h are in use: 20 of 21 requests waited until another one gave its connection back, %d ms in all, %d %% of their time. Raise MaxConnectionsPerServer, use HTTP/2, or send fewer at once"
	streams := "all streams of the HTTP/2 connections to h are in use: 20 of 21 requests waited until another one gave its stream back, %d ms in all, %d %% of their time. Set EnableMultipleHttp2Connections, raise the limit of streams of the server, or send fewer at once"
	for name, c := range map[string]struct {
		version    string
		opened     int64 // ms; the others wait from 100 to 140
		text       string
		ms, shares int
	}{
		"HTTP/1.1":         {"1.1", 50, connections, 800, 76},
		"HTTP/2":           {"2.0", 50, streams, 800, 76},
		"opened meanwhile": {"2.0", 110, streams, 600, 57},
		"opening":          {"2.0", 139, "", 0, 0},
	} {
		x := &ServiceCollector{}
		x.Span(1e9)
		for i := range 21 {
			r := &httpphases.Request{
				ID: i + 1, Host: "h", Target: "/", Status: 200, Start: 1e8, Duration: 5e7, HasDuration: true, Version: c.version,
				Phases:     []httpphases.Phase{{Name: httpphases.Queue, Start: 1e8, Duration: 4e7}},
				Connection: &httpphases.Connection{ID: 7, HasID: true, Class: httpphases.Returned},
			}
			if i == 0 {
				r.Connection.New, r.Connection.Class = true, httpphases.Own
				r.Phases[0].Start, r.Phases[0].Duration = 0, c.opened*1e6
			}
			x.Client(r)
		}
		s := x.Finish("a")
		if c.text == "" {
			assert.Empty(t, s.Findings, name)
			assert.Zero(t, s.Connections.Queued, name)
			continue
		}
		assert.Equal(t, 20, s.Connections.Queued, name)
		if assert.Len(t, s.Findings, 1, name) {
			assert.Equal(t, fmt.Sprintf(c.text, c.ms, c.shares), s.Findings[0].Text, name)
		}
	}
}

// Each process counts its connections from 0 on, and stands still for its own collections only.
func TestServiceOfProcesses(t *testing.T) {
	c := &ServiceCollector{}
	c.Span(1e9)
	for i := range 4 {
		c.Client(&httpphases.Request{ID: i + 1, Process: uint32(1 + i%2), Host: "h", Target: "/", Status: 200, Duration: 1e6, HasDuration: true, Connection: &httpphases.Connection{ID: 0, HasID: true}})
	}
	c.events[1] = connectionEvents{n: 2, ids: []connKey{{1, 0}, {3, 0}}}
	c.pause, c.tells.collections = map[int]int64{1: 6e7, 2: 6e7}, true
	s := c.Finish("a")
	assert.Equal(t, 2., s.Connections.Requests)
	assert.Equal(t, 1, s.Connections.Closed)
	assert.Equal(t, 120., *s.Figures.GCPauseMs)
	assert.Empty(t, s.Findings)
	c.pause[2] = 2e8
	assert.Equal(t, "collections stopped all threads for 20.0 % of the time: `tracefix gc` tells which and why", c.Finish("a").Findings[0].Text)
}

// TestCompilingIsFound: where much of what requests took is that of the compiler.
func TestCompilingIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		ms, found int64
	}{"a start": {99, 0}, "much": {101, 1}} {
		c := &ServiceCollector{tells: runtimeTells{compiling: true}}
		c.Span(2e9)
		c.Server(&httpphases.ServerRequest{Duration: 1e9, HasDuration: true, Why: &httpphases.Explanation{CompileTotal: tt.ms * 1e6, Compiled: 40}})
		s := c.Finish("a")
		require.Len(t, s.Findings, int(tt.found), name)
		assert.Equal(t, float64(tt.ms), *s.Figures.CompileInRequestsMs)
		if tt.found > 0 {
			assert.Equal(t, "compiling", s.Findings[0].Kind)
			assert.Contains(t, s.Findings[0].Text, "40 methods were compiled for requests, for 101 ms, 10 % of what these took: `tracefix jit`")
		}
	}
}
