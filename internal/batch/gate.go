package batch

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
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

// Told is what it found in words, and in which trace.
func (g GateResult) Told() string { return g.Found + at(g.Where) }

// A metric is a number that gates look at.
type metric struct {
	name    string
	help    string
	unit    string                                    // "", "%", "ms"
	need    command.Counts                            // what gives it
	get     func(r *Report) (v float64, where string) // NaN: nothing tells it
	summary bool                                      // it is known with --summary only: see figure
	// part tells that of one trace in a sum, where that is worth a look; whole, of what a share is a share.
	part, whole func(x *Result) int
}

// A figure is a metric of what summaries tell of the service of each trace.
type figure struct {
	name string
	help string
	unit string
	join joining
	get  func(s *report.Service) float64 // NaN: nothing tells it
}

// A joining makes one number of those of many traces.
type joining uint8

const (
	added joining = iota
	highestOf
	lowestOf
)

func count(get func(t *Totals) int) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) { return float64(get(&r.Totals)), "" }
}

func rate(part, whole func(t *Totals) int) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) {
		w := whole(&r.Totals)
		if w == 0 {
			return math.NaN(), ""
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
		if q := r.Totals.Requests; q != nil {
			if h := get(q); h.Trace != "" {
				return h.Ms, h.Trace
			}
		}
		return math.NaN(), ""
	}
}

// told reads a figure that not every trace tells.
func told(get func(s *report.Service) *float64) func(*report.Service) float64 {
	return func(s *report.Service) float64 {
		if v := get(s); v != nil {
			return *v
		}
		return math.NaN()
	}
}

// metric returns f as gates take it. Without any requests a zero is nothing that summaries found:
// the events that tell were not recorded.
func (f *figure) metric() metric {
	get := func(r *Report) (float64, string) {
		q := r.Totals.Requests
		if q == nil || q.Service == nil {
			return math.NaN(), ""
		}
		v := f.get(q.Service)
		if v == 0 && q.Count == 0 {
			return math.NaN(), ""
		}
		return v, q.Most[f.name].where(f.join)
	}
	return metric{name: f.name, help: f.help, unit: f.unit, need: command.Requests, get: get, summary: true}
}

// errorsOf is a count of what requests tell: without any nothing tells it.
func errorsOf(r *Report) (float64, string) {
	if q := r.Totals.Requests; q != nil && q.Count > 0 {
		return float64(q.Errors), ""
	}
	return math.NaN(), ""
}

func resultCut(x *Result) int     { return x.Cut }
func resultSamples(x *Result) int { return x.Samples }

func resultErrors(x *Result) int {
	if x.Requests == nil {
		return 0
	}
	return x.Requests.Errors
}

func resultRequests(x *Result) int {
	if x.Requests == nil {
		return 0
	}
	return x.Requests.Count
}

// damagesOf counts one that is damaged at least once.
func damagesOf(x *Result) int {
	if x.Status != Damaged {
		return 0
	}
	return max(1, x.Damages)
}

func failures(x *Result) int {
	if x.Status == Failed {
		return 1
	}
	return 0
}

func requestCount(q *Requests) int  { return q.Count }
func requestErrors(q *Requests) int { return q.Errors }

// metrics are all that gates can ask for, in the order of the help text.
var metrics = func() []metric {
	all := slices.Clone(counted)
	for i := range figures {
		all = append(all, figures[i].metric())
	}
	return all
}()

// counted are what gates can ask of all traces together.
var counted = []metric{
	{name: "cut", help: "samples with a cut stack, repaired or not", need: command.Samples, get: count(func(t *Totals) int { return t.Cut }), part: resultCut},
	{name: "cut-rate", help: "share of samples that were cut", unit: "%", need: command.Samples, get: rate(func(t *Totals) int { return t.Cut }, func(t *Totals) int { return t.Samples }), part: resultCut, whole: resultSamples},
	{name: "unrepaired", help: "cut samples that keep a gap, [frames lost]", need: command.Repairs, get: count(func(t *Totals) int { return t.Repaired[bridge] }), part: func(x *Result) int { return x.Repaired[bridge] }},
	{name: "lost", help: "events lost while recording", get: count(func(t *Totals) int { return int(t.Lost) }), part: func(x *Result) int { return int(x.Lost) }},
	{name: "damaged", help: "damaged traces", get: count(func(t *Totals) int { return t.Damaged }), part: damagesOf},
	{name: "failed", help: "failed traces", get: count(func(t *Totals) int { return t.Failed }), part: failures},
	{name: "skipped", help: "files that are not traces", get: count(func(t *Totals) int { return t.Skipped })},
	{name: "traces", help: "all traces", get: count(func(t *Totals) int { return t.Traces })},
	{name: "requests", help: "HTTP requests of the side that --side selects", need: command.Requests, get: count(ofRequests(requestCount))},
	{name: "http-errors", help: "HTTP requests that failed, were canceled, or were answered 4xx or 5xx", need: command.Requests, get: errorsOf, part: resultErrors},
	{name: "http-error-rate", help: "share of http-errors in the requests of all traces", unit: "%", need: command.Requests, get: rate(ofRequests(requestErrors), ofRequests(requestCount)), part: resultErrors, whole: resultRequests},
	{name: "p50", help: "highest median request duration of any trace", unit: "ms", need: command.Requests, get: highest(func(q *Requests) Highest { return q.P50 })},
	{name: "p90", help: "highest 90th percentile of request durations of any trace", unit: "ms", need: command.Requests, get: highest(func(q *Requests) Highest { return q.P90 })},
	{name: "p95", help: "highest 95th percentile of request durations of any trace", unit: "ms", need: command.Requests, get: highest(func(q *Requests) Highest { return q.P95 })},
	{name: "p99", help: "highest 99th percentile of request durations of any trace", unit: "ms", need: command.Requests, get: highest(func(q *Requests) Highest { return q.P99 })},
	{name: "max", help: "longest request", unit: "ms", need: command.Requests, get: highest(func(q *Requests) Highest { return q.Max })},
}

// figures are what gates can ask of summaries.
var figures = []figure{
	{name: "findings", help: "problems of a service, such as a starved thread pool", get: func(s *report.Service) float64 { return float64(s.Findings) }},
	{name: "starvation", help: "how often thread pools changed their number of threads because they starved or their threads blocked", get: told(func(s *report.Service) *float64 { return s.Starvation })},
	{name: "pool-blocked", help: "highest share of the time of served requests in which a thread waited for an event or a task", unit: "%", join: highestOf, get: told(func(s *report.Service) *float64 { return s.PoolBlocked })},
	{name: "pool-wait", help: "time that work of requests was queued for a pool thread", unit: "ms", get: told(func(s *report.Service) *float64 { return s.PoolWaitMs })},
	{name: "lock-wait", help: "time that threads waited for locks", unit: "ms", get: told(func(s *report.Service) *float64 { return s.LockWaitMs })},
	{name: "convoy-waits", help: "waits in lock convoys", get: told(func(s *report.Service) *float64 { return s.ConvoyWaits })},
	{name: "client-queue", help: "time that requests waited for another one's connection", unit: "ms", get: told(func(s *report.Service) *float64 { return s.ClientQueueMs })},
	{name: "dns-outliers", help: "name resolutions that took far longer than the others", get: func(s *report.Service) float64 { return float64(s.DNSOutliers) }},
	{name: "tls-outliers", help: "TLS handshakes that took far longer than the others", get: func(s *report.Service) float64 { return float64(s.TLSOutliers) }},
	{name: "gc-pause", help: "pauses by collections", unit: "ms", get: told(func(s *report.Service) *float64 { return s.GCPauseMs })},
	{name: "gc-in-requests", help: "pauses that stopped a thread while it ran for a request", unit: "ms", get: told(func(s *report.Service) *float64 { return s.GCInRequestsMs })},
	{name: "compile-in-requests", help: "time in which methods were compiled for requests", unit: "ms", get: told(func(s *report.Service) *float64 { return s.CompileInRequestsMs })},
	{name: "connections-opened", help: "connections opened by the client", get: told(func(s *report.Service) *float64 { return s.Opened })},
	{name: "connections-closed", help: "connections of the client that were closed", get: told(func(s *report.Service) *float64 { return s.Closed })},
	{name: "requests-per-connection", help: "lowest average of any trace", join: lowestOf, get: told(func(s *report.Service) *float64 { return s.RequestsEach })},
	{name: "connect-failed", help: "failed attempts to connect", get: told(func(s *report.Service) *float64 { return s.FailedConnections })},
	{name: "rate", help: "highest number of requests made or served per second of any trace", join: highestOf, get: func(s *report.Service) float64 { return s.Rate }},
	{name: "concurrency", help: "most requests at once in any trace", join: highestOf, get: func(s *report.Service) float64 { return float64(s.MaxConcurrency) }},
}

// GateHelp lists what gates can ask for.
func GateHelp() string {
	var b strings.Builder
	for i, m := range metrics {
		if i == len(counted) {
			b.WriteString("and with --summary: ")
		}
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
		return bad("must begin with one of " + strings.Join(names, ", ") + text.DidYouMean(g.name, names))
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

// NeedsSummary reports whether it asks for what a summary tells only.
func (g Gate) NeedsSummary() bool { return g.m.summary }

func (g Gate) check(r *Report) GateResult {
	if q := r.Totals.Requests; g.m.summary && (q == nil || q.Service == nil) {
		return GateResult{g.Text, true, "nothing: no trace was done with --summary", ""}
	}
	v, where := g.m.get(r)
	part := r.part()
	switch {
	case r.Totals.Traces == 0 && !part:
		return GateResult{g.Text, true, "nothing: " + noTrace, ""}
	case math.IsNaN(v) && g.m.need == command.Samples:
		return GateResult{g.Text, !part, "nothing: no trace has CPU samples", ""}
	case math.IsNaN(v) && g.m.summary && r.Totals.Requests.Count > 0:
		return GateResult{g.Text, !part, "nothing: no trace has the events that tell it", ""}
	case math.IsNaN(v):
		return GateResult{g.Text, !part, "nothing: no trace has HTTP requests that tell it", ""}
	}
	if most := r.Totals.most[g.name]; g.m.part != nil && most.Traces > 0 {
		where = most.where(added)
	} else if g.name == "skipped" && len(r.Skipped) > 0 {
		where = Most{Trace: r.Skipped[0].Name, Traces: r.Totals.Skipped}.where(added)
	}
	return GateResult{g.Text, g.fails(v), g.rounded(v) + g.m.unit, where}
}

// fails reports whether a value is one at which a batch fails.
func (g Gate) fails(v float64) bool {
	switch g.op {
	case ">":
		return v > g.value
	case ">=":
		return v >= g.value
	case "<":
		return v < g.value
	}
	return v <= g.value
}

// rounded prints a value with four digits, as tables do, or all those before the point; with more
// where the gate would else seem to have passed what it did not, or the other way round.
func (g Gate) rounded(v float64) string {
	for digits := 4; ; digits++ {
		s := toDigits(v, digits)
		if w, err := strconv.ParseFloat(s, 64); digits == 17 || err == nil && cmp.Compare(w, g.value) == cmp.Compare(v, g.value) {
			return s
		}
	}
}

func toDigits(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'f', max(0, digits-1-int(math.Floor(math.Log10(math.Abs(v))))), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
