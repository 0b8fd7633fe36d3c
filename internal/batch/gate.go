package batch

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/report"
)

// A Gate is a condition under which a batch fails: "cut", "http-error-rate>1%".
type Gate struct {
	Text  string
	name  string
	op    string
	value float64
	m     *metric
}

// A GateResult is what a gate found.
type GateResult struct {
	Gate   string `json:"gate"`
	Failed bool   `json:"failed"`
	Found  string `json:"found"` // the value, with its unit
	Where  string `json:"where,omitempty"`
}

// A metric is a number that gates look at.
type metric struct {
	name string
	help string
	unit string         // "", "%", "ms"
	need command.Counts // what gives it
	get  func(r *Report) (v float64, where string)
}

func count(get func(t *Totals) int) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) { return float64(get(&r.Totals)), "" }
}

func rate(part, whole func(t *Totals) int) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) {
		w := whole(&r.Totals)
		if w == 0 {
			return 0, ""
		}
		return 100 * float64(part(&r.Totals)) / float64(w), ""
	}
}

func ofRequests(get func(q *Requests) int) func(t *Totals) int {
	return func(t *Totals) int {
		if t.Requests == nil {
			return 0
		}
		return get(t.Requests)
	}
}

func highest(get func(q *Requests) Highest) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) {
		if r.Totals.Requests == nil {
			return 0, ""
		}
		h := get(r.Totals.Requests)
		return h.Ms, h.Trace
	}
}

// ofService is what summaries found; 0 where none was asked for.
func ofService(get func(s *report.Service) float64) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) {
		if q := r.Totals.Requests; q != nil && q.Service != nil {
			return get(q.Service), ""
		}
		return 0, ""
	}
}

func requestCount(q *Requests) int  { return q.Count }
func requestErrors(q *Requests) int { return q.Errors }

// metrics are all that gates can ask for, in the order of the help text.
var metrics = []metric{
	{"cut", "samples whose stack was cut, repaired or not", "", command.Samples, count(func(t *Totals) int { return t.Cut })},
	{"cut-rate", "share of samples that were cut", "%", command.Samples, rate(func(t *Totals) int { return t.Cut }, func(t *Totals) int { return t.Samples })},
	{"unrepaired", "cut samples that were bridged", "", command.Repairs, count(func(t *Totals) int { return t.Repaired[bridge] })},
	{"lost", "events lost while recording", "", 0, count(func(t *Totals) int { return int(t.Lost) })},
	{"damaged", "traces that were damaged", "", 0, count(func(t *Totals) int { return t.Damaged })},
	{"failed", "traces that failed", "", 0, count(func(t *Totals) int { return t.Failed })},
	{"skipped", "files that are not traces", "", 0, count(func(t *Totals) int { return t.Skipped })},
	{"traces", "traces in all", "", 0, count(func(t *Totals) int { return t.Traces })},
	{"requests", "HTTP requests", "", command.Requests, count(ofRequests(requestCount))},
	{"http-errors", "HTTP requests that failed, were canceled, or were answered 4xx or 5xx", "", command.Requests, count(ofRequests(requestErrors))},
	{"http-error-rate", "their share in the requests of all traces", "%", command.Requests, rate(ofRequests(requestErrors), ofRequests(requestCount))},
	{"p50", "highest median of request durations of any trace", "ms", command.Requests, highest(func(q *Requests) Highest { return q.P50 })},
	{"p95", "highest 95th percentile of request durations of any trace", "ms", command.Requests, highest(func(q *Requests) Highest { return q.P95 })},
	{"p99", "highest 99th percentile of request durations of any trace", "ms", command.Requests, highest(func(q *Requests) Highest { return q.P99 })},
	{"max", "longest request", "ms", command.Requests, highest(func(q *Requests) Highest { return q.Max })},
	{"findings", "with --summary: things that are wrong with a service, such as a starved thread pool", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.Findings) })},
	{"starvation", "with --summary: threads that thread pools added since they starved or their threads blocked", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.Starvation) })},
	{"pool-blocked", "with --summary: highest share of the time of served requests in which a thread waited for an event or a task", "%", command.Requests, ofService(func(s *report.Service) float64 { return s.PoolBlocked })},
	{"lock-wait", "with --summary: time that threads waited for locks", "ms", command.Requests, ofService(func(s *report.Service) float64 { return s.LockWaitMs })},
	{"convoy-waits", "with --summary: waits at locks with a convoy", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.ConvoyWaits) })},
	{"client-queue", "with --summary: time that requests waited until another one gave its connection back", "ms", command.Requests, ofService(func(s *report.Service) float64 { return s.ClientQueueMs })},
	{"dns-outliers", "with --summary: name resolutions that took far longer than the others", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.DNSOutliers) })},
	{"tls-outliers", "with --summary: TLS handshakes that took far longer than the others", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.TLSOutliers) })},
	{"gc-pause", "with --summary: time of collections", "ms", command.Requests, ofService(func(s *report.Service) float64 { return s.GCPauseMs })},
	{"gc-in-requests", "with --summary: time in which a collection stopped a thread that ran for a request", "ms", command.Requests, ofService(func(s *report.Service) float64 { return s.GCInRequestsMs })},
	{"connect-failed", "with --summary: attempts to connect that failed", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.FailedConnections) })},
	{"concurrency", "with --summary: most requests at once in any trace", "", command.Requests, ofService(func(s *report.Service) float64 { return float64(s.MaxConcurrency) })},
}

// GateHelp lists what gates can ask for.
func GateHelp() string {
	var b strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&b, "%s (%s), ", m.name, m.help)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

var gateForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9-]+)(?:\s*(>=|<=|>|<)\s*([0-9.]+)\s*([a-zµ%]*))?$`)
})

// ParseGate reads NAME, or NAME OP VALUE with OP one of > >= < <=. A name alone means
// more than none. Shares are in percent, times in a unit such as 500ms or 2s.
func ParseGate(s, do string) (Gate, error) {
	bad := func(why string) (Gate, error) { return Gate{}, fmt.Errorf("--fail-on %q: %s", s, why) }
	f := gateForm().FindStringSubmatch(strings.TrimSpace(s))
	if f == nil {
		return bad("must be NAME or NAME>VALUE, such as damaged or p95>500ms")
	}
	g := Gate{Text: strings.TrimSpace(s), name: f[1], op: f[2]}
	var names []string
	for i := range metrics {
		names = append(names, metrics[i].name)
		if metrics[i].name == g.name {
			g.m = &metrics[i]
		}
	}
	if g.m == nil {
		return bad("must begin with one of " + strings.Join(names, ", "))
	}
	if known := doingThat(g.m.need); !slices.Contains(known, do) {
		return bad(fmt.Sprintf("is known with --do %s, not with --do %s", strings.Join(known, " or "), do))
	}
	if g.op == "" {
		g.op = ">"
		return g, nil
	}
	v, err := strconv.ParseFloat(f[3], 64)
	if err != nil {
		return bad(f[3] + " is not a number")
	}
	switch unit := f[4]; {
	case unit == g.m.unit && unit != "ms", unit == "" && g.m.unit == "%":
	case g.m.unit == "ms" && unit != "":
		d, err := time.ParseDuration(f[3] + unit)
		if err != nil {
			return bad(unit + " is not a unit of time")
		}
		v = float64(d) / float64(time.Millisecond)
	case g.m.unit == "ms":
		return bad("a time needs a unit, such as 500ms")
	default:
		return bad(fmt.Sprintf("%s does not go with %s", unit, g.name))
	}
	g.value = v
	return g, nil
}

func (g Gate) check(r *Report) GateResult {
	v, where := g.m.get(r)
	failed := false
	switch g.op {
	case ">":
		failed = v > g.value
	case ">=":
		failed = v >= g.value
	case "<":
		failed = v < g.value
	case "<=":
		failed = v <= g.value
	}
	return GateResult{g.Text, failed, strconv.FormatFloat(v, 'g', 7, 64) + g.m.unit, where}
}
