package httpphases_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// TestServedSinceBeforeTheRecording: of a request that was open when the recording began Kestrel
// tells the end, with all that it was asked for. Where events were lost, or a request before it
// began over its connection, its start may be what is lost.
func TestServedSinceBeforeTheRecording(t *testing.T) {
	span := func(id string) *httpphases.Span {
		return &httpphases.Span{RequestID: id, Version: "2.0", Path: "/slow", Method: "GET"}
	}
	start := func(id string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.KestrelStart, Thread: 3, Span: span(id)}
	}
	stop := func(id string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.KestrelStop, Thread: 4, Span: span(id)}
	}
	for name, c := range map[string]struct {
		events []httpphases.Event
		before []string // ids of the requests that were open before
	}{
		"it ends":                {[]httpphases.Event{stop("A:00000003")}, []string{"A:00000003"}},
		"two of a connection":    {[]httpphases.Event{stop("A:00000003"), stop("A:00000001")}, []string{"A:00000003", "A:00000001"}},
		"one began since":        {[]httpphases.Event{start("A:00000005"), stop("A:00000003"), stop("A:00000005")}, []string{"A:00000003"}},
		"one began before it":    {[]httpphases.Event{start("A:00000001"), stop("A:00000003")}, nil},
		"events are lost":        {[]httpphases.Event{{Kind: httpphases.EventsLost, Thread: 9}, stop("A:00000003")}, nil},
		"they are later":         {[]httpphases.Event{stop("A:00000003"), {Kind: httpphases.EventsLost, Thread: 9, Length: 15e5}}, []string{"A:00000003"}},
		"before .NET 5":          {[]httpphases.Event{{Kind: httpphases.KestrelStop, Span: &httpphases.Span{RequestID: "A:00000003"}}}, nil},
		"who handles it threw":   {[]httpphases.Event{{Kind: httpphases.ServerUnhandled, Thread: 4}, stop("A:00000003")}, []string{"A:00000003"}},
		"the connection is gone": {[]httpphases.Event{start("A:00000001"), stop("A:00000001"), {Kind: httpphases.KestrelClosed, Text: "A"}, stop("B:00000001")}, []string{"B:00000001"}},
	} {
		var got []string
		b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) {
			if !s.StartUnknown {
				assert.NotContains(t, s.Marks().List(), "start_unknown", name)
				return
			}
			got = append(got, s.RequestID)
			assert.Equal(t, "start_unknown", s.Marks().String(), name)
			assert.Equal(t, []any{int64(0), true, "/slow", "GET", "2.0"}, []any{s.Start, s.HasDuration, s.Target, s.Method, s.Version}, name)
			assert.Positive(t, s.Duration, name)
			assert.Equal(t, name == "who handles it threw", s.Outcome == httpphases.Failed, name)
		}})
		for i := range c.events {
			e := c.events[i]
			e.Time = int64(i+1) * 1e6
			b.Add(&e)
		}
		b.Finish(1e9)
		assert.Equal(t, c.before, got, name)
	}
}

// TestEndOfOneFromBefore: how a request ended that was open when the recording began Hosting tells behind Kestrel's
// stop, in the order of .NET 5 to 10, and the last line of the log how long it took in all. What is told of
// another one is not its.
func TestEndOfOneFromBefore(t *testing.T) {
	stop := httpphases.Event{Kind: httpphases.KestrelStop, Span: &httpphases.Span{RequestID: "A:00000003", Path: "/slow"}}
	line := func(url string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.ServerLogged, Span: &httpphases.Span{URL: url, Status: 404, Took: 71e7}}
	}
	bridged := func(id string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.SpanStop, Span: &httpphases.Span{RequestID: id, Status: 404}}
	}
	other := httpphases.Event{Kind: httpphases.KestrelStop, Span: &httpphases.Span{RequestID: "B:00000001", Path: "/other"}}
	begins := httpphases.Event{Kind: httpphases.ServerRequestStart, Text: "/other"}
	threw := httpphases.Event{Kind: httpphases.ServerUnhandled}
	told := func(id string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.ServerUnhandled, Span: &httpphases.Span{RequestID: id}}
	}
	hosting := httpphases.Event{Kind: httpphases.ServerRequestStop}
	for name, c := range map[string]struct {
		then   []httpphases.Event
		status int
		took   int64
		failed bool
	}{
		"the log":                    {[]httpphases.Event{line("http://h:1/slow?q=1"), hosting}, 404, 71e7, false},
		"the bridge":                 {[]httpphases.Event{bridged("A:00000003"), hosting}, 404, 0, false},
		"all, and it threw":          {[]httpphases.Event{line("http://h:1/slow"), bridged("A:00000003"), threw, hosting}, 404, 71e7, true},
		"nothing":                    {nil, 0, 0, false},
		"the line of another one":    {[]httpphases.Event{line("http://h:1/other")}, 0, 0, false},
		"the bridge of another one":  {[]httpphases.Event{other, bridged("B:00000001")}, 0, 0, false},
		"another one began":          {[]httpphases.Event{begins, line("http://h:1/slow"), threw}, 0, 0, false},
		"it is over":                 {[]httpphases.Event{hosting, line("http://h:1/slow"), threw}, 0, 0, false},
		"the line is not the last":   {[]httpphases.Event{{Kind: httpphases.ServerLogged, Span: &httpphases.Span{Route: "/slow"}}}, 0, 0, false},
		"another thread is no proof": {[]httpphases.Event{{Kind: httpphases.ServerUnhandled, Thread: 8}}, 0, 0, false},
		"another endpoint has run":   {[]httpphases.Event{{Kind: httpphases.ServerLogged, Span: &httpphases.Span{Route: "/slow", Task: httpphases.TaskRan}}, bridged("A:00000003")}, 0, 0, false},
		"Kestrel's log, behind it":   {[]httpphases.Event{told("A:00000003")}, 0, 0, false},
	} {
		var rows []*httpphases.ServerRequest
		b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) { rows = append(rows, s) }})
		for i, e := range append([]httpphases.Event{stop}, c.then...) {
			e.Time = int64(i+1) * 1e6
			b.Add(&e)
		}
		b.Finish(1e9)
		if !assert.NotEmpty(t, rows, name) {
			continue
		}
		s := rows[0]
		assert.Equal(t, []any{"/slow", true, int64(1e6), c.status, c.took, c.failed, ""},
			[]any{s.Target, s.StartUnknown, s.Duration, s.Status, s.Took, s.Outcome == httpphases.Failed, s.Route}, name)
		assert.NotEqual(t, httpphases.Incomplete, s.Outcome, name)
	}
	for route, fits := range map[string]bool{"/{name}": true, "/other": false} { // of the endpoint that has run in front of it
		for task, told := range map[httpphases.TaskStatus]bool{httpphases.TaskRan: true, httpphases.TaskUnknown: false} {
			b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) {
				assert.Equal(t, fits && told, s.Route == route, route)
			}})
			for _, e := range []httpphases.Event{{Kind: httpphases.ServerLogged, Span: &httpphases.Span{Route: route, Task: task}}, stop} {
				b.Add(&e)
			}
			b.Finish(1e9)
		}
	}
	for id, failed := range map[string]bool{"A:00000003": true, "A:00000005": false} { // in front of it
		b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) {
			assert.Equal(t, failed, s.Outcome == httpphases.Failed, id)
		}})
		for _, e := range []httpphases.Event{told(id), stop} {
			b.Add(&e)
		}
		b.Finish(1e9)
		assert.EqualValues(t, 1, b.Stats().Servers)
	}
}

// TestBegunWhileProvidersWereTurnedOn: one that took no longer than the recording lasted began in it, before its
// provider was on.
func TestBegunWhileProvidersWereTurnedOn(t *testing.T) {
	for took, want := range map[int64][]any{
		3e6: {int64(2e6), int64(3e6), int64(0), false},
		5e6: {int64(0), int64(5e6), int64(0), false},
		6e6: {int64(0), int64(5e6), int64(6e6), true},
	} {
		for _, hosting := range []bool{true, false} { // else it is handed out at the end
			var s *httpphases.ServerRequest
			b := httpphases.NewBuilder(&httpphases.Options{Server: func(r *httpphases.ServerRequest) { s = r }})
			b.Add(&httpphases.Event{Time: 5e6, Kind: httpphases.KestrelStop, Span: &httpphases.Span{RequestID: "A:00000003", Path: "/slow"}})
			b.Add(&httpphases.Event{Time: 51e5, Kind: httpphases.ServerLogged, Span: &httpphases.Span{URL: "http://h:1/slow", Status: 200, Took: took}})
			if hosting {
				b.Add(&httpphases.Event{Time: 52e5, Kind: httpphases.ServerRequestStop})
			}
			b.Finish(1e9)
			if assert.NotNil(t, s) {
				assert.Equal(t, want, []any{s.Start, s.Duration, s.Took, s.StartUnknown}, hosting)
			}
		}
	}
}

// TestMadeSinceBeforeTheRecording: of a request that was under way when the recording began its span tells all, if
// something else than the session listened to spans.
func TestMadeSinceBeforeTheRecording(t *testing.T) {
	span := func(took int64, url string) *httpphases.Span {
		return &httpphases.Span{Source: "System.Net.Http", Name: "System.Net.Http.HttpRequestOut", ID: "1122334455667788", Method: "GET", URL: url, Took: took,
			Status: 200, TraceID: "00112233445566778899aabbccddeeff", SpanID: "1122334455667788"}
	}
	stop := func(at, took int64) httpphases.Event {
		return httpphases.Event{Time: at, Kind: httpphases.SpanStop, Span: span(took, "http://h:1/slow")}
	}
	start := func(at int64) httpphases.Event {
		return httpphases.Event{Time: at, Kind: httpphases.SpanStart, Span: &httpphases.Span{Name: "System.Net.Http.HttpRequestOut", ID: "aa"}}
	}
	made := httpphases.Event{Time: 1e6, Kind: httpphases.RequestStart, Scheme: "http", Host: "h", Port: 1, Text: "/slow"}
	failed := stop(5e6, 7e6)
	failed.Span.Status, failed.Span.Task = 0, httpphases.TaskCanceled
	for name, c := range map[string]struct {
		events []httpphases.Event
		want   string // start, duration, took, outcome, marks
	}{
		"from before":                 {[]httpphases.Event{stop(5e6, 7e6)}, "5ms 0ms 7ms ok start_unknown"},
		"told twice":                  {[]httpphases.Event{stop(5e6, 7e6), stop(5e6, 7e6)}, "5ms 0ms 7ms ok start_unknown"},
		"it was given up":             {[]httpphases.Event{failed}, "5ms 0ms 7ms canceled start_unknown"},
		"begun before the bridge":     {[]httpphases.Event{start(4e6), stop(5e6, 3e6)}, "2ms 3ms 0ms ok "},
		"a try of one from before":    {[]httpphases.Event{made, start(4e6), stop(7e6, 2e6)}, ""},
		"events are lost":             {[]httpphases.Event{{Kind: httpphases.EventsLost, Thread: 9}, stop(5e6, 7e6)}, ""},
		"what was asked for unknown":  {[]httpphases.Event{{Time: 5e6, Kind: httpphases.SpanStop, Span: span(7e6, "")}}, ""},
		"how long it took is unknown": {[]httpphases.Event{stop(5e6, 0)}, ""},
		"System.Net.Http tells of it": {[]httpphases.Event{made, stop(5e6, 45e5)}, ""},
	} {
		got := ""
		b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
			if !r.SpanOnly || r.Target != "/slow" {
				return
			}
			assert.Empty(t, got, name)
			got = fmt.Sprintf("%dms %dms %dms %v %v", r.Start/1e6, r.Duration/1e6, r.Took/1e6, r.Outcome, r.Marks())
			assert.Equal(t, []any{"http://h:1/slow", "GET", r.Took == 0}, []any{r.URL(), r.Method, r.HasDuration}, name)
			assert.Equal(t, []any{"1122334455667788", int64(0)}, []any{r.SpanID, r.StartEvent}, name)
			assert.Empty(t, r.Missing, name)
		}})
		for i := range c.events {
			b.Add(&c.events[i])
		}
		b.Finish(1e9)
		assert.Equal(t, c.want, got, name)
	}
}

// TestBridgeBeforeHTTP: of a request that began when the session had the bridge, and System.Net.Http not yet,
// nothing is lost. Where events are, that it began is.
func TestBridgeBeforeHTTP(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		var rows []*httpphases.Request
		b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
		if lossy {
			b.Lost(0, 9, 0, 1)
		}
		span := &httpphases.Span{Name: "System.Net.Http.HttpRequestOut", ID: "aa", URL: "http://h:1/a", Status: 200}
		b.Add(&httpphases.Event{Time: 1e6, Thread: 1, Kind: httpphases.SpanStart, Span: span})
		b.Add(&httpphases.Event{Time: 2e6, Thread: 2, Kind: httpphases.RequestStart, ID: id(1, 7), Path: [24]uint32{1, 7}, PathLen: 2, Text: "/b"})
		b.Add(&httpphases.Event{Time: 3e6, Thread: 1, Kind: httpphases.SpanStop, Span: span})
		b.Finish(1e9)
		assert.Equal(t, []any{"/a", lossy, !lossy}, []any{rows[0].Target, rows[0].StartUnknown, rows[0].HasDuration})
	}
}

// TestAnswersToOnesFromBefore: answers are counted of which nothing tells what was asked for. Where events were lost,
// it may be that, and without ids they are linked to what was.
func TestAnswersToOnesFromBefore(t *testing.T) {
	answer := httpphases.Event{Time: 5e6, Kind: httpphases.ResponseHeadersStop, Status: 200, HasStatus: true}
	own := answer // of HTTP/1.1, whose answers begin an activity
	own.ID, own.Path, own.PathLen = id(1, 9), [24]uint32{1, 9}, 2
	span := httpphases.Event{Time: 6e6, Kind: httpphases.SpanStop, Span: &httpphases.Span{
		Name: "System.Net.Http.HttpRequestOut", ID: "aa", URL: "http://h:1/a", Status: 200, Took: 8e6,
	}}
	for name, c := range map[string]struct {
		events []httpphases.Event
		want   int64
	}{
		"two":                  {[]httpphases.Event{answer, own}, 2},
		"the span tells":       {[]httpphases.Event{answer, span, answer}, 1},
		"events are lost":      {[]httpphases.Event{{Kind: httpphases.EventsLost, Thread: 9}, answer}, 0},
		"no ids":               {[]httpphases.Event{{Kind: httpphases.RequestStart, Text: "/b"}, answer, answer}, 0},
		"its headers are sent": {[]httpphases.Event{{Kind: httpphases.RequestHeadersStop}}, 0},
	} {
		b := httpphases.NewBuilder(nil)
		for i := range c.events {
			b.Add(&c.events[i])
		}
		b.Finish(1e9)
		assert.Equal(t, c.want, b.Stats().Unasked, name)
	}
}

// TestPortOfConnection: where a request came in the start of its connection tells, until that is closed.
func TestPortOfConnection(t *testing.T) {
	span := &httpphases.Span{RequestID: "A:00000001", Path: "/a"}
	var got []int
	b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) { got = append(got, s.Port) }})
	for i, e := range []httpphases.Event{
		{Kind: httpphases.OtherStart, Text: "A", Port: 5000},
		{Kind: httpphases.OtherStart, Text: "B", Port: 5001},
		{Kind: httpphases.KestrelStart, Span: span}, {Kind: httpphases.KestrelStop, Span: span},
		{Kind: httpphases.KestrelClosed, Text: "A"},
		{Kind: httpphases.KestrelStart, Span: span}, {Kind: httpphases.KestrelStop, Span: span},
	} {
		e.Time = int64(i+1) * 1e6
		b.Add(&e)
	}
	b.Finish(1e9)
	assert.Equal(t, []int{5000, 0}, got)
}

// TestEndOfOneNobodyKnows: how a request ended that began before the recording is not told of the next
// one that ends on its thread.
func TestEndOfOneNobodyKnows(t *testing.T) {
	line := func(status int, route string) httpphases.Event {
		return httpphases.Event{Kind: httpphases.ServerLogged, Span: &httpphases.Span{Status: status, Route: route}}
	}
	scope := httpphases.Event{Kind: httpphases.ScopeStop, Span: &httpphases.Span{Scope: "1/1"}}
	stop := httpphases.Event{Kind: httpphases.ServerRequestStop}
	threw := httpphases.Event{Kind: httpphases.ServerUnhandled}
	of := func(id byte, thread uint64, events ...httpphases.Event) []httpphases.Event {
		for i := range events {
			events[i].ID, events[i].Thread = [16]byte{id}, thread
		}
		return events
	}
	for name, c := range map[string]struct {
		begun  uint64             // the thread on which the one that is known began
		before []httpphases.Event // of the other
		then   []httpphases.Event // of the one that is known
	}{
		"an exception":          {6, []httpphases.Event{threw, stop}, []httpphases.Event{stop}},
		"and it began there":    {5, []httpphases.Event{threw, stop}, []httpphases.Event{stop}},
		"a line of the log":     {6, []httpphases.Event{line(404, ""), stop, scope}, []httpphases.Event{line(0, "/y")}},
		"the log and no other":  {6, []httpphases.Event{line(404, ""), scope}, []httpphases.Event{line(0, "/y")}},
		"both, and lines after": {6, []httpphases.Event{line(404, ""), threw, stop, scope}, []httpphases.Event{line(0, "/y"), stop}},
	} {
		var rows []*httpphases.ServerRequest
		b := httpphases.NewBuilder(&httpphases.Options{Server: func(s *httpphases.ServerRequest) { rows = append(rows, s) }})
		start := httpphases.Event{Kind: httpphases.ServerRequestStart, Text: "/y"}
		events := append(of(1, 5, c.before...), of(2, c.begun, start)...)
		if c.begun != 5 { // it began before the other ended
			events = append(of(2, c.begun, start), of(1, 5, c.before...)...)
		}
		for i, e := range append(events, of(2, 5, c.then...)...) {
			e.Time = int64(i+1) * 1e6
			b.Add(&e)
		}
		b.Finish(1e9)
		if assert.Len(t, rows, 1, name) {
			assert.NotEqual(t, httpphases.Failed, rows[0].Outcome, name)
			assert.Zero(t, rows[0].Status, name)
		}
	}
}

// TestFailedSinceBeforeTheRecording: a request that was under way when the recording began, and of
// which only its failure is told, is a row with the reason. Where the end may be that of another one
// it is none.
func TestFailedSinceBeforeTheRecording(t *testing.T) {
	text, detail := "no answer", "System.Threading.Tasks.TaskCanceledException: no answer\n ---> System.TimeoutException: late\n"
	of := func(kind httpphases.Kind, path ...uint32) httpphases.Event {
		e := httpphases.Event{Kind: kind, Thread: 3, ID: id(path...), PathLen: uint8(len(path))}
		copy(e.Path[:], path)
		switch kind {
		case httpphases.RequestFailed:
			e.Text = text
		case httpphases.RequestFailedDetailed:
			e.Text = detail
		case httpphases.RequestStop:
			e.Status, e.HasStatus = -1, true
		case httpphases.RequestStart, httpphases.ServerRequestStart:
			e.Text = "/x"
		}
		return e
	}
	failed := func(path ...uint32) httpphases.Event { return of(httpphases.RequestFailed, path...) }
	detailed := func(path ...uint32) httpphases.Event { return of(httpphases.RequestFailedDetailed, path...) }
	stop := func(path ...uint32) httpphases.Event { return of(httpphases.RequestStop, path...) }
	lost := httpphases.Event{Kind: httpphases.EventsLost, Thread: 3}
	content := of(httpphases.ResponseContentStop, 1, 7, 4)
	elsewhere := stop(1, 7)
	elsewhere.Thread = 4
	for name, c := range map[string]struct {
		events []httpphases.Event
		want   string // path, start, error and cause
	}{
		"it fails":                  {[]httpphases.Event{failed(1, 7), detailed(1, 7), stop(1, 7)}, "[1 7] 1ms no answer; System.TimeoutException: late"},
		"before .NET 8":             {[]httpphases.Event{failed(1, 7), stop(1, 7)}, "[1 7] 1ms no answer; "},
		"inside another activity":   {[]httpphases.Event{failed(1, 7, 1, 2), detailed(1, 7, 1, 2), stop(1, 7, 1, 2)}, "[1 7 1 2] 1ms no answer; System.TimeoutException: late"},
		"its content fails":         {[]httpphases.Event{failed(1, 7, 4), detailed(1, 7, 4), content, stop(1, 7)}, "[1 7] 1ms no answer; System.TimeoutException: late"},
		"and no stop of it":         {[]httpphases.Event{failed(1, 7, 4), detailed(1, 7, 4), stop(1, 7)}, "[1 7] 1ms no answer; System.TimeoutException: late"},
		"it has an answer":          {[]httpphases.Event{stop(1, 7)}, ""},
		"its content is read":       {[]httpphases.Event{content, stop(1, 7)}, "[1 7] 1ms ; "},
		"another one fails":         {[]httpphases.Event{failed(1, 7), detailed(1, 7), stop(1, 8)}, ""},
		"it ends on another thread": {[]httpphases.Event{failed(1, 7), detailed(1, 7), elsewhere}, ""},
		"events are lost":           {[]httpphases.Event{failed(1, 7), lost, stop(1, 7)}, ""},
		"no ids":                    {[]httpphases.Event{failed(), detailed(), stop()}, ""},
		"what encloses it":          {[]httpphases.Event{of(httpphases.ServerRequestStart, 1, 7), failed(1, 7), detailed(1, 7), stop(1, 7)}, ""},
		"another one on its thread": {[]httpphases.Event{failed(1, 7), of(httpphases.RequestStart, 1, 9), stop(1, 9), stop(1, 7)}, ""},
	} {
		got := ""
		b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) {
			if !r.StartUnknown {
				return
			}
			assert.Empty(t, got, name)
			got = fmt.Sprint(r.Path, " ", r.Start/1e6, "ms ", r.Error, "; ", r.ErrorCause)
			assert.Equal(t, []any{httpphases.Incomplete, false}, []any{r.Outcome, r.HasDuration}, name)
			assert.Equal(t, []any{id(r.Path...), int64(0)}, []any{r.Activity, r.StartEvent}, name) // as its activity has it
			assert.Contains(t, r.Missing, "the start", name)
		}})
		for i, e := range c.events {
			e.Time = int64(i+1) * 1e6
			b.Add(&e)
		}
		b.Finish(1e9)
		assert.Equal(t, c.want, got, name)
	}
}

// TestVersionOfBeforeTheRecording: which version a request was made with that was under way when the recording
// began is not told. HTTP/2 says ResponseHeadersStart before it waits, HTTP/1.1 when the answer is there.
func TestVersionOfBeforeTheRecording(t *testing.T) {
	for begins, want := range map[int64]string{
		31: "[request_headers 30000000 wait 69000000]",
		90: "[request_headers 30000000 wait 60000000 response_headers 9000000]",
	} {
		var rows []*httpphases.Request
		b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
		for _, x := range []struct {
			at   int64 // ms
			kind httpphases.Kind
			k    uint32 // of the activity below that of the request
		}{
			{0, httpphases.RequestHeadersStart, 1}, {30, httpphases.RequestHeadersStop, 1},
			{begins, httpphases.ResponseHeadersStart, 2}, {99, httpphases.ResponseHeadersStop, 2}, {100, httpphases.RequestStop, 0},
		} {
			path := []uint32{1, 7, x.k}
			if x.k == 0 {
				path = path[:2]
			}
			e := httpphases.Event{Kind: x.kind, Time: x.at * 1e6, Thread: 3, ID: id(path...), PathLen: uint8(len(path)), HasConn: x.k == 1, Status: 200, HasStatus: true}
			copy(e.Path[:], path)
			b.Add(&e)
		}
		b.Finish(1e9)
		if assert.Len(t, rows, 1) {
			assert.True(t, rows[0].StartUnknown)
			assert.Empty(t, rows[0].Version)
			assert.Equal(t, want, fmt.Sprint(rows[0].Phases))
		}
	}
}
