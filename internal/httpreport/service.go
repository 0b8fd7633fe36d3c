package httpreport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A Group is what requests of one kind have in common. Times are ms.
type Group struct {
	Name        string  `json:"name"`
	Requests    int     `json:"requests"`
	Failed      int     `json:"failed,omitempty"` // by an exception, or canceled
	Errors      int     `json:"errors,omitempty"` // those, and answers from 400 on
	Rate        float64 `json:"rate"`             // per second
	P50         float64 `json:"p50_ms,omitzero"`  // these four are of requests that ended
	P90         float64 `json:"p90_ms,omitzero"`
	P99         float64 `json:"p99_ms,omitzero"`
	Max         float64 `json:"max_ms,omitzero"`
	Concurrency float64 `json:"concurrency"` // on average; of a slice of time that of all requests, also those that began before
	// Time is where the time of all its requests went.
	Time map[string]float64 `json:"time_ms,omitempty"`

	durations quantile.Numbers // ns, of requests that ended
	sum       int64
	inside    int64 // ns of all requests, also open ones, in the part of the trace that is reported
	time      httpphases.TimeByCause
	explained bool
	told      int // requests whose end is told: by a status, or since they failed
}

// A Failure is a reason for which requests failed.
type Failure struct {
	Text     string `json:"text"` // the innermost exception that is known
	Requests int    `json:"requests"`
}

// Connections are those of the client.
type Connections struct {
	Opened   int     `json:"opened"`
	Closed   int     `json:"closed"`
	Failed   int     `json:"failed_attempts"`
	Requests float64 `json:"requests_each,omitempty"` // on average; 0: the trace does not tell
	QueueMs  float64 `json:"queue_ms"`                // in which requests waited until another one gave its connection back
	Queued   int     `json:"queued"`                  // such requests
}

// A Side is a direction: requests that the process made, or those it served.
type Side struct {
	Requests    int       `json:"requests"`
	Concurrency int       `json:"max_concurrency"`
	Upgraded    int       `json:"upgraded,omitempty"` // to a WebSocket: their durations are in those of their routes only
	Guessed     int       `json:"guessed,omitempty"`  // whose events have no ids: which of them took how long, and failed, may be wrong
	All         Group     `json:"all"`
	Routes      []Group   `json:"routes"`
	Hosts       []Group   `json:"hosts,omitempty"`
	Status      []Group   `json:"status"`
	Slices      []Group   `json:"slices"`
	Errors      []Failure `json:"errors,omitempty"`
}

// A Finding is something that is wrong, in a sentence that says what to look at.
type Finding struct {
	Kind string `json:"kind"` // "thread_pool_starvation", "lock_convoy", "client_pool_exhausted", "dns_outlier", "tls_outlier", "gc_pauses", "compiling"
	Text string `json:"text"`
	// From and To are the stretch of time in which it showed, ms.
	From float64 `json:"from_ms"`
	To   float64 `json:"to_ms"`
}

// A Service is how a service did.
type Service struct {
	Source      string         `json:"source"`
	From        float64        `json:"from_ms,omitempty"` // where the part of the trace that is reported begins
	Span        float64        `json:"span_ms"`           // how long that is
	Findings    []Finding      `json:"findings"`
	Client      *Side          `json:"client,omitempty"`
	Server      *Side          `json:"server,omitempty"`
	Connections *Connections   `json:"connections,omitempty"`
	Figures     report.Service `json:"figures"`
	Notes       []string       `json:"notes,omitempty"`

	// What the trace tells: what the runtime did, how long work was queued for the thread pool.
	tells    runtimeTells
	compiled int // methods for requests
	queues   bool
	hung     int // waits for locks that have no end
}

// maxGroups bounds groups of one kind: what comes later counts as one.
const (
	maxGroups = 2000
	others    = "(others)"
	maxShown  = 50 // of routes and hosts in text
)

// A table holds groups by name.
type table struct {
	list  []*Group
	index map[string]*Group
	spool *profile.Spool // of what its groups keep
}

func (t *table) group(name string) *Group {
	if g := t.index[name]; g != nil {
		return g
	}
	if len(t.list) >= maxGroups {
		name = others
		if g := t.index[name]; g != nil {
			return g
		}
	}
	if t.index == nil {
		t.index = map[string]*Group{}
	}
	g := &Group{Name: name, durations: quantile.Numbers{Spool: t.spool}}
	t.index[name] = g
	t.list = append(t.list, g)
	return g
}

// A request is what both sides tell of one.
type request struct {
	start, duration     int64
	inside              int64 // of the duration, what is in the part of the trace that is reported
	ended               bool
	open                bool // until the end of the trace, whatever the duration
	route, host, status string
	failed, bad         bool
	upgraded            bool // its duration is in that of its route only
	guessed             bool
	why                 *httpphases.Explanation
}

func (g *Group) add(r *request) {
	g.Requests++
	if r.failed {
		g.Failed++
	}
	if r.bad || r.failed {
		g.Errors++
	}
	if r.status != notTold && r.status != httpphases.Incomplete.String() {
		g.told++
	}
	if r.ended {
		g.durations.Add(r.duration)
		g.sum += r.duration
	}
	g.inside += r.inside
	if r.why != nil {
		g.explained = true
		g.time.Add(&r.why.Time)
	}
}

// finish computes what needs all requests; span in ns.
func (g *Group) finish(span int64) {
	at := quantile.Of([]float64{.5, .9, .99, 1}, &g.durations)
	for i, to := range []*float64{&g.P50, &g.P90, &g.P99, &g.Max} {
		*to = text.Millis(at[i])
	}
	if span > 0 {
		g.Rate = round(float64(g.Requests) / (float64(span) / 1e9))
		g.Concurrency = round(float64(g.inside) / float64(span))
	}
	if g.explained {
		g.Time = map[string]float64{}
		for name, ns := range g.time.Causes {
			if ns > 0 {
				g.Time[name] = text.Millis(ns)
			}
		}
	}
	g.durations = quantile.Numbers{}
}

func round(v float64) float64    { return float64(int64(v*1000+0.5)) / 1000 }
func percent(a, b int64) float64 { return round(100 * float64(a) / float64(max(b, 1))) }

// A side gathers a Side.
type side struct {
	all                          Group
	routes, hosts, status, times table
	errors                       map[string]int
	edges                        edges           // for the concurrency
	width                        int64           // of a slice of time, ns
	busy                         map[int64]int64 // ns of all requests in each slice
	sum, passed                  int64           // of all requests, and what of that is in the part of the trace that is told of
	upgraded, guessed            int
	wait                         int64 // ns in which a thread waited for an event or a task for one of them
	in                           interval.Interval
}

// edges are where requests begin and end: twice the time, ns, and one more where one begins. So
// they are in order as numbers, what ends before what begins.
type edges struct{ quantile.Numbers }

func (e *edges) begin(ns int64) { e.Add(ns<<1 | 1) }
func (e *edges) end(ns int64)   { e.Add(ns << 1) }

// all yields where there are more or fewer of them from then on, in order of time.
func (e *edges) all(yield func(at int64, delta int) bool) {
	for x := range e.Ascending {
		if !yield(x>>1, int(x&1)<<1-1) {
			return
		}
	}
}

// keep says where numbers go for which memory has no room.
func (s *side) keep(p *profile.Spool) {
	s.routes.spool, s.hosts.spool, s.status.spool, s.times.spool, s.edges.Spool = p, p, p, p, p
	s.all = Group{Name: "all", durations: quantile.Numbers{Spool: p}}
}

func (s *side) add(r *request) {
	from, to := s.in.Clip(r.start, r.start+r.duration)
	r.inside = to - from
	s.routes.group(r.route).add(r)
	took, passed := r.duration, r.inside
	if r.guessed {
		s.guessed++
	}
	if r.upgraded {
		s.upgraded++
		r.ended = false
		if took = 0; r.why != nil {
			took = r.duration - r.why.Time.Await // what it worked for
		}
		passed = min(took, passed)
	}
	s.sum, s.passed = s.sum+took, s.passed+passed
	s.all.add(r)
	if r.host != "" {
		s.hosts.group(r.host).add(r)
	}
	s.status.group(r.status).add(r)
	s.times.group(strconv.FormatInt(from/s.width, 10)).add(r) // what was under way counts in the first slice
	s.edges.begin(from)
	if !r.open {
		s.edges.end(max(to, from+1)) // one whose end was lost was there at its start, that is all
	}
	s.spread(from, to)
	if r.why != nil {
		s.wait += r.why.Time.Wait
	}
}

// maxSlices is more than there are, unless times are damaged.
const maxSlices = 1000

// spread adds the time of a request to the slices in which it passed.
func (s *side) spread(from, to int64) {
	if s.busy == nil {
		s.busy = map[int64]int64{}
	}
	for n := from / s.width; n*s.width < to && n-from/s.width < maxSlices; n++ {
		s.busy[n] += min(to, (n+1)*s.width) - max(from, n*s.width)
	}
}

func (s *side) fail(text string) {
	if s.errors == nil {
		s.errors = map[string]int{}
	}
	if _, ok := s.errors[text]; !ok && len(s.errors) >= maxGroups {
		text = others
	}
	s.errors[text]++
}

func (s *side) finish(begin, end int64) *Side {
	if s.all.Requests == 0 {
		return nil
	}
	span := end - begin
	s.all.finish(span)
	out := &Side{Requests: s.all.Requests, Upgraded: s.upgraded, Guessed: s.guessed, All: s.all}
	byCount := func(a, b *Group) int { return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name)) }
	out.Routes, out.Hosts = s.routes.finish(span, byCount), s.hosts.finish(span, byCount)
	out.Status = s.status.finish(span, func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) })
	number := func(g *Group) int { n, _ := strconv.Atoi(g.Name); return n }
	out.Slices = s.times.finish(s.width, func(a, b *Group) int { return cmp.Compare(number(a), number(b)) })
	for i := range out.Slices {
		g := &out.Slices[i]
		n := int64(number(g))
		from, to := n*s.width, (n+1)*s.width
		if from < end && end < to {
			to = end // what is told of ends before the slice does
		}
		if from < begin && begin < to {
			from = begin
		}
		g.Name = fmt.Sprintf("%v .. %v", time.Duration(from), time.Duration(to).Round(time.Millisecond))
		g.Rate, g.Concurrency = round(float64(g.Requests)/(float64(to-from)/1e9)), round(float64(s.busy[n])/float64(to-from))
	}
	for text, n := range s.errors {
		out.Errors = append(out.Errors, Failure{text, n})
	}
	text.SortRows(out.Errors, func(a, b *Failure) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Text, b.Text))
	})
	open := 0
	for _, delta := range s.edges.all {
		open += delta
		out.Concurrency = max(out.Concurrency, open)
	}
	s.edges = edges{}
	return out
}

func (t *table) finish(span int64, order func(a, b *Group) int) (list []Group) {
	slices.SortFunc(t.list, order) // of pointers, as others are sorted: code for a sort of groups is 20 KB
	for _, g := range t.list {
		g.finish(span)
		list = append(list, *g)
	}
	return list
}
