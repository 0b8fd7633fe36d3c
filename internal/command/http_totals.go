package command

import (
	"cmp"
	"container/heap"
	"net"
	"net/netip"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
)

// httpTotals are the totals of a report, as they are gathered.
type httpTotals struct {
	report.Requests
	sides    requests.Sides // that are counted
	slowest  slowHeap
	measures *report.Measurer // nil: not wanted
}

// newHTTPTotals returns totals of some sides. Who counts requests keeps their durations.
func newHTTPTotals(c *Call, sides requests.Sides) httpTotals {
	t := httpTotals{sides: sides}
	if sides&requests.Client != 0 {
		t.Made = &report.Side{}
	}
	if sides&requests.Server != 0 {
		t.Served = &report.Side{}
	}
	if c.Measure {
		t.measures = &report.Measurer{}
	}
	return t
}

// keptMemory is how many bytes of what is kept of all requests stay in memory beside what is made
// of them: the durations of some 2 million.
const keptMemory = 4 << 20

// served measures a request that was served, and counts it if that side is asked for.
func (t *httpTotals) served(s *httpphases.ServerRequest) {
	row := httpRow{served: s}
	if t.measures != nil && s.Outcome != httpphases.Incomplete {
		_, failed := row.wentWrong()
		t.measures.Request("server", servedHost(s.Host), routeName(s.Method, cmp.Or(s.Route, httpphases.Route(s.Target))), failed, duration(s.Whole() && !s.Upgraded(), s.Duration))
	}
	if t.sides&requests.Server != 0 {
		t.count(row, t.Served)
	}
}

// servedHost is the name that a server was asked by, without what another run has another of: the port, which may
// be any free one, and an address.
func servedHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ""
	}
	return host
}

func routeName(method, route string) string { return strings.TrimSpace(method + " " + route) }

func duration(has bool, ns int64) int64 {
	if !has {
		return -1
	}
	return ns
}

// made measures a request that the process made, and counts it if that side is asked for.
func (t *httpTotals) made(r *httpphases.Request) {
	row := httpRow{made: r}
	if t.measures != nil && r.Outcome != httpphases.Incomplete {
		_, failed := row.wentWrong()
		t.measures.Request("client", r.Host, routeName(r.Method, httpphases.Route(r.Target)), failed, duration(r.HasDuration, r.Duration))
	}
	if t.sides&requests.Client != 0 {
		t.count(row, t.Made)
	}
}

// count counts a request of a side that is asked for.
func (t *httpTotals) count(r httpRow, side *report.Side) {
	one := report.RequestCounts{Count: 1}
	unanswered, wrong := r.wentWrong()
	if unanswered {
		one.Failed = 1
	}
	if wrong {
		one.Errors = 1
	}
	if r.facts().outcome == httpphases.Incomplete {
		one.Incomplete = 1
	}
	t.RequestCounts.Add(&one)
	side.Add(&one)
	if !r.lasted() {
		return
	}
	if len(t.slowest) < report.MaxSlowest {
		heap.Push(&t.slowest, r)
	} else if slowestFirst(&r, &t.slowest[0]) < 0 {
		t.slowest[0] = r
		heap.Fix(&t.slowest, 0)
	}
}

// wentWrong says whether a request failed or was canceled, and whether that or its status makes it an error.
func (r httpRow) wentWrong() (failed, wrong bool) {
	f := r.facts()
	failed = f.outcome == httpphases.Failed || f.outcome == httpphases.Canceled
	return failed, failed || f.status >= 400
}

// lasted reports whether it is known how long a request took, other than to talk.
func (r httpRow) lasted() bool {
	f := r.facts()
	return f.ended && f.outcome != httpphases.Incomplete && (r.served == nil || r.served.Whole() && !r.served.Upgraded())
}

// end computes what needs all requests, of which those of the sides have these durations, ns, and
// puts it into the report.
func (t *httpTotals) end(rep *report.Trace, made, served []*quantile.Numbers) {
	for _, x := range []struct {
		side      *report.Side
		durations []*quantile.Numbers
	}{{t.Made, made}, {t.Served, served}} {
		if x.side == nil {
			continue
		}
		d := &x.side.Durations
		at := quantile.Of([]float64{0.5, 0.9, 0.95, 0.99, 1}, x.durations...)
		for i, to := range []*float64{&d.P50, &d.P90, &d.P95, &d.P99, &d.Max} {
			*to = text.Millis(at[i])
		}
		t.Higher(d)
	}
	text.SortRows(t.slowest, slowestFirst)
	for _, r := range t.slowest {
		f := r.facts()
		kind := ""
		if r.served != nil {
			kind = "server"
		}
		t.Slowest = append(t.Slowest, report.SlowRequest{
			Kind:   kind,
			Method: r.method(), URL: r.url(), Status: f.status, Outcome: f.outcome.String(),
			StartMs: text.Millis(f.start), Duration: text.Millis(f.duration),
		})
	}
	rep.Requests = &t.Requests
	if t.measures != nil {
		rep.Measures = t.measures.One()
	}
}

// slowestFirst is the order in which the slowest requests are listed.
func slowestFirst(a, b *httpRow) int {
	start, duration, id := a.order()
	start2, duration2, id2 := b.order()
	return cmp.Or(cmp.Compare(duration2, duration), cmp.Compare(start, start2), cmp.Compare(id, id2))
}

// A slowHeap has the fastest of the slowest requests on top.
type slowHeap []httpRow

func (s slowHeap) Len() int           { return len(s) }
func (s slowHeap) Less(i, j int) bool { return slowestFirst(&s[j], &s[i]) < 0 }
func (s slowHeap) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowHeap) Push(x any)        { *s = append(*s, x.(httpRow)) }
func (s *slowHeap) Pop() any {
	o := *s
	x := o[len(o)-1]
	*s = o[:len(o)-1]
	return x
}
