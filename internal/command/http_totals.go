package command

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// httpTotals are the totals of a report, as they are gathered.
type httpTotals struct {
	report.Requests
	slowest  slowHeap
	measures *report.Measurer // nil: not wanted
}

func newHTTPTotals(c *Call) httpTotals {
	t := httpTotals{}
	if c.Measure {
		t.measures = &report.Measurer{}
	}
	return t
}

// keptMemory is how many bytes of what is kept of all requests stay in memory beside what is made of them: the durations of
// some 2 million.
const keptMemory = 4 << 20

// served measures a request that was served.
func (t *httpTotals) served(s *httpphases.ServerRequest) {
	if t.measures != nil && s.Outcome != httpphases.Incomplete {
		failed := s.Outcome == httpphases.Failed || s.Outcome == httpphases.Canceled || s.Status >= 400
		t.measures.Request("server", s.Host, routeName(s.Method, cmp.Or(s.Route, httpphases.Route(s.Target))), failed, duration(s.HasDuration, s.Duration))
	}
}

func routeName(method, route string) string { return strings.TrimSpace(method + " " + route) }

func duration(has bool, ns int64) int64 {
	if !has {
		return -1
	}
	return ns
}

// add counts r.
func (t *httpTotals) add(r *httpphases.Request) {
	t.Count++
	failed := r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled
	if failed {
		t.Failed++
	}
	if failed || r.Status >= 400 {
		t.Errors++
	}
	if r.Outcome == httpphases.Incomplete {
		t.Incomplete++
	} else if t.measures != nil {
		t.measures.Request("client", r.Host, routeName(r.Method, httpphases.Route(r.Target)), failed || r.Status >= 400, duration(r.HasDuration, r.Duration))
	}
	if !httpreport.Lasted(r) {
		return
	}
	if len(t.slowest) < report.MaxSlowest {
		heap.Push(&t.slowest, r)
	} else if slower(r, t.slowest[0]) {
		t.slowest[0] = r
		heap.Fix(&t.slowest, 0)
	}
}

// end computes what needs all requests, of which these are the durations, ns, and puts it into the report.
func (t *httpTotals) end(rep *report.Trace, durations ...*quantile.Numbers) {
	at := quantile.Of([]float64{0.5, 0.9, 0.95, 0.99, 1}, durations...)
	for i, to := range []*float64{&t.P50, &t.P90, &t.P95, &t.P99, &t.Max} {
		*to = text.Millis(at[i])
	}
	slices.SortFunc(t.slowest, func(a, b *httpphases.Request) int {
		if slower(a, b) {
			return -1
		}
		return 1
	})
	for _, r := range t.slowest {
		t.Slowest = append(t.Slowest, report.SlowRequest{
			Method: r.Method, URL: r.URL(), Status: r.Status, Outcome: r.Outcome.String(),
			StartMs: text.Millis(r.Start), Duration: text.Millis(r.Duration),
		})
	}
	rep.Requests = &t.Requests
	if t.measures != nil {
		rep.Measures = t.measures.One()
	}
}

// slower says whether a is to be listed before b.
func slower(a, b *httpphases.Request) bool {
	return cmp.Or(cmp.Compare(b.Duration, a.Duration), cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) < 0
}

// A slowHeap has the fastest of the slowest requests on top.
type slowHeap []*httpphases.Request

func (s slowHeap) Len() int           { return len(s) }
func (s slowHeap) Less(i, j int) bool { return slower(s[j], s[i]) }
func (s slowHeap) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowHeap) Push(x any)        { *s = append(*s, x.(*httpphases.Request)) }
func (s *slowHeap) Pop() any {
	o := *s
	x := o[len(o)-1]
	*s = o[:len(o)-1]
	return x
}
