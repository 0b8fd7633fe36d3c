// Package compare says what moved between two traces of one program: methods, types,
// requests by route, collections; by how much, and whether that is more than noise.
//
// Samples are counts, and a service that keeps its cores busy hides in its totals what one
// request costs. Where both traces hold requests, costs are those of a request: each request of a
// route is one measurement, and their scatter is the noise within a trace. To that comes
// what two runs of the same program differ by (see runNoise). What is left is tested against
// the number of things that were looked at: with that many, some lie far out by chance.
package compare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A Trace is what one side of a comparison holds.
type Trace struct {
	Name     string
	Profile  *profile.Profile
	Requests *Requests // that were served, or where none was, that were made
	made     *Requests // where Requests were served
	GC       []collection
	Damages  int // places at which its file is damaged
	// Counters are the values of each counter by its name, as events.SeriesNames has it: what a gauge
	// showed and an up-down counter stood at, the mean of what a histogram measured in an interval,
	// and what others grew by in a second. Quantiles of a histogram stand beside it: "latency p95".
	Counters   map[string][]Value
	counted    map[counter]*counterValues // of all processes
	unrecorded []string                   // names of kinds that were not recorded, as far as the trace tells
	from, to   int64                      // ns, the part that is compared; 0, 0 is all
	sums       bool                       // its file holds sums of stacks, which cannot be repaired
	nameless   bool                       // its recording ended before the runtime named what was compiled ahead
}

// A collection is what is compared of a garbage collection.
type collection struct {
	process    int
	generation uint32
	start, end int64 // ns, from the first suspension on
	pause      int64 // ns, as far as it lies in what is compared
	survived   int64 // bytes; -1 where that is not told
}

// gcs rides on the reading for collections.
type gcs struct {
	runtimeevents.GCs
	r *nettrace.Reader
}

func (g *gcs) Begin(r *nettrace.Reader) { g.r = r }
func (g *gcs) End()                     {}
func (g *gcs) Event(ev *nettrace.Event) error {
	g.GCs.Event(ev, g.r.Nanos(ev.Time), 0)
	return nil
}

// maxCounters bounds the counters that are compared: tags and quantiles may be of any number.
const maxCounters = 1 << 14

// A Value is what a counter tells of an interval. Weight is the number of measurements that it is
// the mean of, of what grows the length of the interval, in which a first one of some milliseconds
// tells little, and else 1.
type Value struct{ Value, Weight float64 }

// A counter is a series, or a quantile of one.
type counter struct {
	events.Series
	quantile string // " p95", else empty
}

// counterValues are those of a counter.
type counterValues struct {
	list    []Value
	running events.Running
}

// counterOf returns the values of a counter, nil for one of too many.
func (t *Trace) counterOf(c counter) *counterValues {
	v := t.counted[c]
	if v == nil && len(t.counted) < maxCounters {
		v = &counterValues{}
		t.counted[c] = v
	}
	return v
}

// count takes what a counter tells; wanted is false where it is outside of the time that is compared.
func (t *Trace) count(p *events.Point, wanted bool) {
	s := p.Series()
	all := t.counterOf(counter{s, ""})
	if all == nil {
		return
	}
	v := Value{p.PerSecond(), p.Interval}
	switch p.Type {
	case events.Gauge:
		v = Value{p.Value, max(1, float64(p.Count))}
	case events.UpDownCounter: // a level, as the length of a queue, where that is told
		if !math.IsNaN(p.Total) {
			v = Value{p.Total, 1}
		}
	case events.Histogram:
		n, sum := all.running.Of(p)
		if n <= 0 {
			return
		}
		v = Value{sum / float64(n), float64(n)}
	}
	if !wanted {
		return
	}
	all.add(v)
	for _, q := range p.Quantiles {
		if of := t.counterOf(counter{s, fmt.Sprintf(" p%g", math.Round(q.Share*1e6)/1e4)}); of != nil {
			of.add(Value{q.Value, v.Weight})
		}
	}
}

// add takes a value that is one.
func (v *counterValues) add(value Value) {
	if !math.IsNaN(value.Value) && !math.IsInf(value.Value, 0) {
		v.list = append(v.list, value)
	}
}

// Options of Read.
type Options struct {
	Raw bool // the sampler's own marks stay
	// Select says which part is compared: processes and times of all there is, threads and
	// frames of stacks and of what they weigh, activities and requests of these and of requests.
	Select profile.Selection
	Warn   func(tracefix.Damage)
}

// Read reads one side, repaired.
func Read(ctx context.Context, f *tracefix.File, name string, o Options) (*Trace, error) {
	t := &Trace{Name: name, from: o.Select.From, to: o.Select.To}
	if err := t.read(ctx, f, &o); err != nil {
		return nil, err
	}
	tracefix.Repair(t.Profile, nil)
	t.choose(&o.Select)
	t.Profile.DropEvidence()
	if !o.Raw {
		t.Profile.FoldPolls()
	}
	return t, nil
}

// read reads all there is. What it reads with is garbage before the repair, which takes the most memory.
func (t *Trace) read(ctx context.Context, f *tracefix.File, o *Options) error {
	t.counted = map[counter]*counterValues{}
	made, served := newRequests(len(o.Select.Requests) > 0), newRequests(len(o.Select.Requests) > 0)
	scan := tracefix.NewRequestScanner(
		func(r *httpphases.Request) {
			url := ""
			if made.urls {
				url = r.URL()
			}
			made.add(r.ID, r.Method, httpphases.Route(r.Target), url, r.Process, r.Start, r.Duration, r.HasDuration, answerOf(r.Outcome, r.Status))
		},
		served.addServed)
	defer scan.Stop()
	collections := &gcs{}
	from, until := int64(math.MinInt64), int64(math.MaxInt64)
	if o.Select.From > 0 {
		from = o.Select.From
	}
	if o.Select.To > 0 {
		until = o.Select.To
	}
	collections.Settled = func(pid int, g *runtimeevents.GC) {
		start, survived := g.PauseStart(), int64(-1)
		if g.HasSizes {
			survived = int64(g.Promoted())
		}
		t.GC = append(t.GC, collection{pid, g.Generation, start, max(start, g.End), g.PauseIn(from, until), survived})
	}
	counted := events.NewCounterConsumer(func(p *events.Point) error {
		t.count(p, p.Ns >= o.Select.From && (o.Select.To == 0 || p.Ns <= o.Select.To))
		return nil
	})
	asked := &session{}
	opts := &tracefix.ReadOptions{Evidence: true, Warn: o.Warn}
	k := f.Kind()
	t.sums = k == "pprof" || k == "folded"
	if k == "nettrace" || k == "netperf" {
		opts.Work, opts.Weights = true, weights
		opts.Also = []tracefix.Consumer{scan, collections, counted, asked}
	} else if k != "speedscope" { // whose bytes would be microseconds
		opts.Weights = []string{profile.TimeWeight} // samples are compared
	}
	p, err := f.Profile(ctx, opts)
	if err != nil {
		return err
	}
	if opts.Weights == nil && len(p.Weights) > 0 {
		return errors.New(t.Name + ": this speedscope holds bytes, and no time, which is compared")
	}
	t.Requests, t.made = served, made
	t.preferServed()
	t.Profile = p
	collections.Finish()
	t.unrecorded = t.notRecorded(asked)
	t.nameless = opts.Work && !asked.named && p.Meta.Version < 6 // whose names stand at their begin
	return nil
}

// preferServed has requests that were made stand for those that were served, where there are none.
func (t *Trace) preferServed() {
	if t.made != nil && t.Requests.Len() == 0 {
		t.Requests, t.made = t.made, nil
	}
}

// alike are two traces whose requests are of the same side: a service may make any number of requests
// for one that it serves, so that costs of the ones are none of the others.
func alike(a, b *Trace) (*Trace, *Trace) {
	switch {
	case a.made != nil && b.made == nil:
		return a.like(b)
	case b.made != nil && a.made == nil:
		b, a = b.like(a)
	}
	switch {
	case !a.asked() || !b.asked() || a.Requests.named() == b.Requests.named():
	case a.made.named() && b.made.named():
		x, y := *a, *b
		x.Requests, x.made, y.Requests, y.made = x.made, nil, y.made, nil
		return &x, &y
	case a.Requests.named():
		return a, b.withoutRoutes()
	default:
		return a.withoutRoutes(), b
	}
	return a, b
}

// withoutRoutes is t without what its requests were asked for, which the other trace tells and t does not: of those that
// were served the bridge alone tells none.
func (t *Trace) withoutRoutes() *Trace {
	x := *t
	x.unrecorded = append(slices.Clone(x.unrecorded), "requests")
	return &x
}

// like is alike for a trace with requests that were served, and another one without.
func (t *Trace) like(other *Trace) (*Trace, *Trace) {
	switch x, y := *t, *other; {
	case y.Requests.Len() == 0:
	case x.made.Len() > 0:
		x.Requests, x.made = x.made, nil
		return &x, other
	default:
		y.Requests, y.made = nil, y.Requests
		y.unrecorded = append(slices.Clone(y.unrecorded), "requests")
		return t, &y
	}
	return t, other
}

// Err is the error that reading had what is on disk of the trace: a comparison is not to be believed then.
func (t *Trace) Err() error { return errors.Join(t.Profile.Err(), t.Requests.Err(), t.made.Err()) }

// choose leaves what is selected.
func (t *Trace) choose(sel *profile.Selection) {
	names := map[int]string{}
	for _, p := range t.Profile.Processes {
		names[int(p.PID)] = p.Name
	}
	outside := func(pid int, from, to int64) bool {
		return to < sel.From || sel.To != 0 && from > sel.To || !text.List(sel.Processes).MatchID(int64(pid), names[pid])
	}
	of := requestsInside(t.Profile, sel)
	chosen := func(list *Requests) *Requests {
		return list.chosen(func(r *Request) bool {
			if sel.OfWork() && !of[int(r.ID)] && !profile.MatchRequest(sel.Requests, int(r.ID), list.of(r).url) {
				return false
			}
			end := r.start + r.Duration
			if r.Duration < 0 {
				end = math.MaxInt64
			}
			return !outside(int(r.process), r.start, end)
		})
	}
	if t.Requests = chosen(t.Requests); t.made != nil {
		t.made = chosen(t.made)
		t.preferServed()
	}
	t.GC = slices.DeleteFunc(t.GC, func(g collection) bool { return outside(g.process, g.start, g.end) })
	byProcess := map[int][]events.Series{}
	quantiles := map[events.Series][]string{}
	for c := range t.counted {
		if !text.List(sel.Processes).MatchID(int64(c.PID), names[c.PID]) {
			continue
		}
		if c.quantile == "" {
			byProcess[c.PID] = append(byProcess[c.PID], c.Series)
		} else {
			quantiles[c.Series] = append(quantiles[c.Series], c.quantile)
		}
	}
	t.Counters = map[string][]Value{}
	add := func(name string, c counter) {
		if v := t.counted[c]; len(v.list) > 0 {
			t.Counters[name+c.quantile] = append(t.Counters[name+c.quantile], v.list...)
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(byProcess)) {
		for i, name := range events.SeriesNames(byProcess[pid]) {
			s := byProcess[pid][i]
			add(name, counter{s, ""})
			for _, q := range quantiles[s] {
				add(name, counter{s, q})
			}
		}
	}
	t.Profile.Select(*sel)
}

// requestsInside are the ids of the requests whose activities sel selects.
func requestsInside(p *profile.Profile, sel *profile.Selection) map[int]bool {
	ids := map[int]bool{}
	for i, in := range sel.Inside(p) {
		if in {
			ids[p.Activities.At(int32(i)).Request] = true
		}
	}
	return ids
}

// seconds is how long the trace lasts, or what is compared of it, 0 where sums do not tell; nanos is that
// in ns, of sums how long the longest thread's are together.
func (t *Trace) seconds() float64 {
	if t.Profile.Meta.Sums {
		return 0
	}
	return float64(t.nanos()) / 1e9
}

func (t *Trace) nanos() int64 {
	end := t.Profile.Meta.End
	if t.to != 0 {
		end = min(end, t.to)
	}
	return max(0, end-t.from)
}

// Empty reports whether there is nothing to compare of what sel selects.
func (t *Trace) Empty(sel *profile.Selection) bool {
	stackless := !t.sampled() && !slices.ContainsFunc(weights, t.weighs)
	if len(sel.Threads) > 0 || sel.Frame != "" || sel.OfWork() { // of which nothing else is
		return stackless
	}
	return stackless && t.Requests.Len()+len(t.Counters)+len(t.GC) == 0
}

// mapped are parts of signatures as the map of perf spells them, and as the runtime's events do (its two printers
// of signatures, PrettyPrintSig and PrettyPrintSigLegacy).
var mapped = spellings(
	`\b(class|valuetype) (?:\[[^\]]*\])?(?:[^ ,<>()\[\]]*/)?`, "${1} ",
	`\bvaluetype `, "value class ",
	`\bnative uint\b`, "unsigned int",
	`\bnative int\b`, "int",
	`\buint(8|16|32|64)\b`, "unsigned int${1}",
	`\bobject\b`, "class System.Object",
	`\bstring\b`, "class System.String",
	`\bchar\b`, "wchar",
)

// compiled are parts of names that another compilation of the same source changes: the ordinal that the compiler
// gives a method for its lambdas, local functions and state machines, and addresses that stand for a method.
var compiled = spellings(
	`>b__\d+_(\d+)`, ">b__${1}",
	`>d__\d+`, ">d__",
	`DisplayClass\d+_`, "DisplayClass_",
	`\|\d+_(\d+)`, "|${1}",
	`AnonymousType\d+`, "AnonymousType",
	`pMT: 0x[0-9A-Fa-f]+`, "pMT",
	`lambda_method\d+`, "lambda_method",
	`!0x[0-9A-Fa-f]+$`, "!?",
)

// A spelling is a pattern, and what stands in a name in place of what it finds.
type spelling struct {
	pattern *regexp.Regexp
	with    string
}

// spellings returns what makes spellings of pairs when they are needed.
func spellings(pairs ...string) func() []spelling {
	return sync.OnceValue(func() (list []spelling) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, spelling{regexp.MustCompile(pairs[i]), pairs[i+1]})
		}
		return list
	})
}

// replaced returns s with all that spellings find replaced.
func replaced(s string, list []spelling) string {
	for _, x := range list {
		s = x.pattern.ReplaceAllString(s, x.with)
	}
	return s
}

// unmapped spells the name of a method of the map of perf, `lab!Lab.Walk::Mix(uint8)`, or a pattern of one, as
// the runtime's events do, if it is one.
func unmapped(s string) (string, bool) {
	of, method, ok := strings.Cut(s, "::")
	return of + "." + replaced(method, mapped()), ok
}

// Name is a method's name without what only compilation changes, and as the runtime's events spell it. A
// library of the system, whose names may hold :: as well, is a file.
func Name(full string) string {
	head, _, ok := strings.Cut(full, "(")
	if module, _, in := strings.Cut(head, "!"); ok && in && !strings.Contains(module, ".so") && strings.Contains(head, "::") {
		full, _ = unmapped(full)
	}
	if !strings.ContainsAny(full, "0123456789") {
		return full
	}
	return replaced(full, compiled())
}

// waits are methods in which a thread waits or spins for work: no cost of what the program does.
var waits = []string{
	"System.Threading.LowLevelSpinWaiter.", "System.Threading.LowLevelLifoSemaphore.", "System.Threading.WaitHandle.", "System.Threading.SpinWait.",
	"System.Threading.Monitor.Wait", "System.Threading.Monitor.Enter_Slowpath", "System.Threading.Monitor.TryEnter_Slowpath", "System.Threading.Thread.Sleep",
	"System.Threading.Thread.Join", "System.Threading.Thread.SpinWait",
	"System.Threading.Thread.UninterruptibleSleep0", "System.Threading.Thread.Yield", // what a spin is made of
}

// IsWait reports whether a method, by its Name, is one in which a thread waits.
func IsWait(name string) bool {
	const module = "System.Private.CoreLib!"
	return len(name) > len(module) && strings.EqualFold(name[:len(module)], module) &&
		slices.ContainsFunc(waits, func(w string) bool { return strings.HasPrefix(name[len(module):], w) })
}
