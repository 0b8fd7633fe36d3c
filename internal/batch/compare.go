package batch

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/internal/compare"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// A Comparison is what moved between two batches.
type Comparison struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Traces [2]int `json:"traces"`
	// Failures are the share of the traces that failed, in percent.
	Failures compare.Figure `json:"failures"`
	// NewFailures are traces that failed and did not before, and Recovered the other way round.
	NewFailures int          `json:"new_failures"`
	Recovered   int          `json:"recovered"`
	Failed      []NewFailure `json:"failed"` // the first 1000 of NewFailures
	Causes      []Cause      `json:"causes"` // why traces failed, the largest change first

	Requests [2]int         `json:"requests"`
	Errors   compare.Figure `json:"error_rate"` // of requests, in percent; a side without requests has none
	Routes   []RouteChange  `json:"routes"`
	Methods  []MethodChange `json:"methods"`
	Gates    []GateResult   `json:"gates,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
	alone    bool           // a trace each: see methods
}

// A NewFailure is a trace that failed and did not before.
type NewFailure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
	Was   string `json:"was"` // its outcome before, or "absent"
}

// A Cause is a reason for which traces failed, without its numbers.
type Cause struct {
	Why   string `json:"why"`
	Count [2]int `json:"count"`
}

// A RouteChange is the requests of one route to one host, or served by one.
type RouteChange struct {
	Side   string         `json:"side"`
	Host   string         `json:"host,omitempty"`
	Route  string         `json:"route"`
	Count  [2]int         `json:"count"`
	Errors compare.Figure `json:"error_rate"` // percent
	P50    compare.Figure `json:"p50_ms"`
	P95    compare.Figure `json:"p95_ms"`
}

func (r *RouteChange) name() string {
	return strings.TrimSpace(strings.TrimSpace(r.Side+" "+r.Host) + " " + r.Route)
}

// A MethodChange is a method's share of the CPU time of all traces, by itself.
type MethodChange struct {
	Method string         `json:"method"`
	Share  compare.Figure `json:"share"` // percent
	Traces [2]int         `json:"traces"`
}

// Compare compares the reports that two folders, URLs or files hold.
func Compare(ctx context.Context, c Config, before, after string) (*Comparison, error) {
	var sides [2]*Report
	for i, name := range []string{before, after} {
		m, err := NewMerger()
		if err != nil {
			return nil, err
		}
		defer m.Close()
		m.alone = true
		if err := m.addSide(ctx, c, name); err != nil {
			return nil, err
		}
		if sides[i], err = m.Report(nil); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return compareReports(shown(before), shown(after), sides[0], sides[1])
}

// addSide takes the whole report of a folder, or those of its shards where it has none.
func (m *Merger) addSide(ctx context.Context, c Config, name string) error {
	if isReport(withoutQuery(name)) {
		return m.AddFrom(ctx, c, name)
	}
	st := &stores{open: c.OpenURL}
	defer st.close()
	p, err := openPlace(ctx, st, local(name))
	if err != nil {
		return err
	}
	rels, err := p.list(ctx, reportName)
	if err != nil {
		return err
	}
	for _, end := range []string{rowsEnd, ".json"} {
		if slices.Contains(rels, reportName+end) {
			return m.addAt(ctx, p, reportName+end)
		}
	}
	err = m.AddFrom(ctx, c, name)
	if err == nil && m.out == nil {
		return fmt.Errorf("%s: no report of a batch is there: neither %s.json nor those of shards", name, reportName)
	}
	return err
}

func compareReports(before, after string, a, b *Report) (*Comparison, error) {
	x := &Comparison{Before: before, After: after, Traces: [2]int{a.Totals.Traces, b.Totals.Traces}, Failed: []NewFailure{}, Causes: []Cause{}, Routes: []RouteChange{}, Methods: []MethodChange{}}
	if a.Do != b.Do {
		x.Notes = compare.Add(x.Notes, "one is of --do %s, the other of --do %s: only what both tell is compared", a.Do, b.Do)
	}
	if p, q := a.Totals.Requests.side(), b.Totals.Requests.side(); p != q && p != "" && q != "" {
		x.Notes = compare.Add(x.Notes, "one is of --side %s, the other of --side %s: their requests are different ones, and what moved in them is no change of the service; make one of them again", p, q)
	}
	if a.Version != b.Version {
		x.Notes = compare.Add(x.Notes, "made by different versions of tracefix")
	}
	x.Failures = compare.Share(a.Totals.Failed, a.Totals.Traces, b.Totals.Failed, b.Totals.Traces, compare.Critical(1))
	if err := x.failures(a, b); err != nil {
		return nil, err
	}
	ma, mb := cmp.Or(a.Totals.Measures, &report.Measures{}), cmp.Or(b.Totals.Measures, &report.Measures{})
	x.routes(routesAlike(ma, mb))
	x.methods(ma, mb)
	if a.Totals.Measures == nil && b.Totals.Measures == nil {
		x.Notes = compare.Add(x.Notes, "neither report has figures on requests or methods: an older tracefix made them, or no trace had any (--do http counts requests, --do repair methods)")
	}
	return x, nil
}

// side tells which requests were asked for, as --side names them; "" where none were.
func (q *Requests) side() string {
	switch {
	case q == nil || q.Made == nil && q.Served == nil:
		return ""
	case q.Served == nil:
		return "client"
	case q.Made == nil:
		return "server"
	}
	return "both"
}

// numbers are what differs between two failures of one kind.
var numbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`0x[0-9a-fA-F]+|\d[\d,.]*`) })

// failures tells of traces that failed on one side only. Traces are the same if their names
// are, below the folder that all of a side's lie in.
func (x *Comparison) failures(a, b *Report) error {
	seed := maphash.MakeSeed()
	key := func(r *Report, t *Result) uint64 {
		return maphash.String(seed, strings.TrimPrefix(t.Input.Name, r.folder))
	}
	causes := map[string]*Cause{}
	cause := func(t *Result, side int) {
		why := numbers().ReplaceAllString(t.why(), "N")
		if causes[why] == nil {
			if len(causes) >= maxSkips {
				return
			}
			causes[why] = &Cause{Why: why}
		}
		causes[why].Count[side]++
	}
	was := map[uint64]string{}
	for t, err := range a.All() {
		if err != nil {
			return err
		}
		was[key(a, t)] = t.Status
		if t.Status == Failed {
			cause(t, 0)
		}
	}
	for t, err := range b.All() {
		if err != nil {
			return err
		}
		before := cmp.Or(was[key(b, t)], "absent")
		if t.Status != Failed {
			if before == Failed {
				x.Recovered++
			}
			continue
		}
		cause(t, 1)
		if before == Failed {
			continue
		}
		if x.NewFailures++; len(x.Failed) < maxSkips {
			x.Failed = append(x.Failed, NewFailure{t.Input.Name, t.why(), before})
		}
	}
	for _, c := range causes {
		x.Causes = append(x.Causes, *c)
	}
	text.SortRows(x.Causes, func(p, q *Cause) int {
		change := func(c *Cause) int { return c.Count[1] - c.Count[0] }
		return cmp.Or(cmp.Compare(change(q), change(p)), strings.Compare(p.Why, q.Why))
	})
	return nil
}

const (
	// leastRequests is the least number of requests of a route that are compared.
	leastRequests = compare.LeastRanked
	// binNoise is what a bin of durations leaves open.
	binNoise = 0.022
)

// quantileChange judges a quantile of durations, ms.
func quantileChange(a, b *report.Measured, q, limit float64) compare.Figure {
	side := func(m *report.Measured) (v, sigma float64) {
		v, sigma = compare.Rank(q, m.Ended(), m.Quantile)
		return v, math.Hypot(sigma, binNoise*v)
	}
	p, sp := side(a)
	r, sr := side(b)
	return compare.Judge(p, r, math.Hypot(sp, sr), limit)
}

// routesAlike leaves the methods of the requests of a side away where one batch tells them and the other one none:
// what was asked for would all seem to be something else.
func routesAlike(a, b *report.Measures) (x, y *report.Measures) {
	for _, side := range []string{"client", "server"} {
		var routes, methods [2]int
		for i, m := range []*report.Measures{a, b} {
			for k := range m.Routes {
				if r := &m.Routes[k]; r.Side == side && r.Route != report.OtherRoutes {
					routes[i]++
					methods[i] += min(1, len(r.Method()))
				}
			}
		}
		if min(routes[0], routes[1]) > 0 && (methods[0] == 0) != (methods[1] == 0) {
			a, b = a.WithoutMethods(side), b.WithoutMethods(side)
		}
	}
	return a, b
}

func (x *Comparison) routes(a, b *report.Measures) {
	type key struct{ side, host, route string }
	of := func(m *report.Measured) key { return key{m.Side, m.Host, m.Route} }
	before := map[key]*report.Measured{}
	for i := range a.Routes {
		before[of(&a.Routes[i])] = &a.Routes[i]
	}
	var errs [2]int
	for i, m := range []*report.Measures{a, b} {
		for _, r := range m.Routes {
			errs[i] += r.Errors
			x.Requests[i] += r.Count
		}
	}
	x.Errors = compare.Share(errs[0], x.Requests[0], errs[1], x.Requests[1], compare.Critical(1))
	limit := compare.Critical(3 * len(b.Routes))
	rare, most := 0, RouteChange{} // of those of which one batch has too few
	apart := func(r *report.Measured, was, is int) {
		if n := max(was, is); n >= leastRequests {
			if rare++; n > max(most.Count[0], most.Count[1]) {
				most = RouteChange{Side: r.Side, Host: r.Host, Route: r.Route, Count: [2]int{was, is}}
			}
		}
	}
	for i := range b.Routes {
		r := &b.Routes[i]
		k := of(r)
		old := cmp.Or(before[k], &report.Measured{})
		if delete(before, k); min(old.Count, r.Count) < leastRequests {
			apart(r, old.Count, r.Count)
			continue
		}
		x.Routes = append(x.Routes, RouteChange{
			Side: r.Side, Host: r.Host, Route: r.Route, Count: [2]int{old.Count, r.Count},
			Errors: compare.Share(old.Errors, old.Count, r.Errors, r.Count, limit),
			P50:    quantileChange(old, r, 0.5, limit), P95: quantileChange(old, r, 0.95, limit),
		})
	}
	for i := range a.Routes {
		if old := &a.Routes[i]; before[of(old)] != nil {
			apart(old, old.Count, 0)
		}
	}
	if rare > 0 { // a route that has another name now is two of them
		x.Notes = compare.Add(x.Notes, "routes that are not compared, as one batch has fewer than %d requests of them: %d, such as %s (%d -> %d)", leastRequests, rare, most.name(), most.Count[0], most.Count[1])
	}
	text.SortRows(x.Routes, func(p, q *RouteChange) int {
		size := func(f *compare.Figure) float64 { return math.Abs(f.Change) }
		return cmp.Or(cmp.Compare(size(&q.P95), size(&p.P95)), cmp.Compare(q.Count[1], p.Count[1]), strings.Compare(p.name(), q.name()))
	})
}

// leastShare is the share of all CPU time that a method must have to be looked at, in percent.
const leastShare = 0.5

func (x *Comparison) methods(a, b *report.Measures) {
	if a.CPU == 0 || b.CPU == 0 {
		return
	}
	sides := [2]map[string]report.HotTime{{}, {}}
	for i, m := range []*report.Measures{a, b} {
		for _, h := range m.Methods {
			name := compare.Name(h.Method)
			t := sides[i][name]
			sides[i][name] = report.HotTime{Traces: max(t.Traces, h.Traces), Self: t.Self + h.Self, Squares: t.Squares + h.Squares, Cross: t.Cross + h.Cross}
		}
	}
	names := map[string]bool{}
	for i, m := range []*report.Measures{a, b} {
		for name, h := range sides[i] {
			if 100*h.Self/m.CPU >= leastShare && !compare.IsWait(name) {
				names[name] = true
			}
		}
	}
	if x.alone = a.Traces+b.Traces <= 2; x.alone && len(names) > 0 {
		x.Notes = compare.Add(x.Notes, "%s: methods are not compared; `tracefix compare` compares two traces", alone)
		return
	}
	limit := compare.Critical(len(names))
	for name := range names {
		p, q := sides[0][name], sides[1][name]
		x.Methods = append(x.Methods, MethodChange{name, judgeShares(shareOf(p, a), shareOf(q, b), limit), [2]int{p.Traces, q.Traces}})
	}
	text.SortRows(x.Methods, func(p, q *MethodChange) int {
		size := func(f *compare.Figure) float64 { return math.Abs(f.After - f.Before) }
		return cmp.Or(cmp.Compare(size(&q.Share), size(&p.Share)), cmp.Compare(q.Share.After, p.Share.After), strings.Compare(p.Method, q.Method))
	})
}

// alone says why methods of a trace on each side are not compared.
const alone = "one trace each, which does not tell how much the methods' shares differ from trace to trace"

// A share is a method's part of all CPU time and what it differs by between runs. Each trace is one measurement of
// it: scatter is the variance of one as a part of its square, times free, its degrees of freedom.
type share struct{ part, run, scatter, free, traces float64 }

func shareOf(h report.HotTime, m *report.Measures) share {
	part, n := h.Self/m.CPU, float64(m.Traces)
	s := share{part: part, run: compare.RunNoise(part, 1), traces: n}
	if h.Self == 0 {
		s.run += m.Missed / m.CPU // it may be there, and not among the hottest
	} else {
		s.scatter, s.free = n*n*max(0, h.Squares-2*part*h.Cross+part*part*m.Squares)/(h.Self*h.Self), n-1
	}
	return s
}

// judgeShares judges shares, in percent. Traces of both sides scatter alike; by how much is hardly known of few,
// which may be alike by chance.
func judgeShares(p, q share, limit float64) compare.Figure {
	free, scatter := p.free+q.free, p.scatter+q.scatter
	if free == 0 { // it is there, or it is not
		free, scatter = 1, 1
	}
	scatter *= (p.part*p.part/p.traces + q.part*q.part/q.traces) / free
	sigma := func(z float64) float64 {
		t := student(z, free)
		return 100 * math.Sqrt(p.run*p.run+q.run*q.run+t*t*scatter)
	}
	return compare.Judge(100*p.part, 100*q.part, sigma(1.96), limit*sigma(limit)/sigma(1.96))
}

// student returns how many times as far from the mean as z sigmas the same part of Student's distribution lies
// (by Wallace's approximation).
//
//go:noinline
func student(z, free float64) float64 {
	z2 := z * (8*free + 3) / (8*free + 1)
	return math.Sqrt(free*math.Expm1(z2*z2/free)) / z
}

// A ComparisonGate is a condition under which a comparison of batches fails.
type ComparisonGate struct {
	change  compare.Change
	name    string
	op      string
	value   float64
	text    string
	counted bool
}

var (
	comparisonKinds  = []string{"p95", "p50", "errors", "cpu"}
	comparisonCounts = []string{"new-failures", "failed-rate", "http-error-rate"}
)

// ParseComparisonGate reads KIND:NAME>+N%, or NAME or NAME>VALUE.
func ParseComparisonGate(s string) (ComparisonGate, error) {
	if strings.Contains(s, ":") {
		c, err := compare.ParseChange(s, comparisonKinds)
		return ComparisonGate{change: c, text: s}, err
	}
	f := gateForm().FindStringSubmatch(strings.TrimSpace(s))
	if f == nil || !slices.Contains(comparisonCounts, f[1]) {
		return ComparisonGate{}, fmt.Errorf("--fail-on %q: must be %s with > and a number, or KIND:NAME>+N%% with KIND %s", s, strings.Join(comparisonCounts, ", "), strings.Join(comparisonKinds, ", "))
	}
	g := ComparisonGate{counted: true, name: f[1], op: cmp.Or(f[2], ">"), text: strings.TrimSpace(s)}
	if f[3] != "" {
		if _, err := fmt.Sscanf(f[3], "%g", &g.value); err != nil || f[4] != "" && f[4] != "%" {
			return g, fmt.Errorf("--fail-on %q: %q is not a number", s, f[3]+f[4])
		}
	}
	return g, nil
}

// Check asks the gates, and returns why they fail, a line each.
func (x *Comparison) Check(gates []ComparisonGate) (why string) {
	x.Gates = nil
	for _, g := range gates {
		r := g.check(x)
		if x.Gates = append(x.Gates, r); r.Failed {
			why += r.Found + "\n"
		}
	}
	return strings.TrimSuffix(why, "\n")
}

func (g *ComparisonGate) check(x *Comparison) GateResult {
	if g.counted {
		if g.name == "http-error-rate" && x.Requests[1] == 0 {
			return GateResult{Gate: g.text, Failed: true, Found: fmt.Sprintf("--fail-on %s: nothing tells it: no trace of %s has HTTP requests", g.text, x.After)}
		}
		v := map[string]float64{"new-failures": float64(x.NewFailures), "failed-rate": x.Failures.After, "http-error-rate": x.Errors.After}[g.name]
		limit := Gate{op: g.op, value: g.value}
		return GateResult{Gate: g.text, Failed: limit.fails(v), Found: "--fail-on " + g.text + ": " + g.name + " is " + limit.rounded(v)}
	}
	found := false
	var why []string
	test := func(name, fits string, f *compare.Figure) {
		if !g.change.Fits(name) && !g.change.Fits(fits) {
			return
		}
		found = true
		if over := g.change.Over(name, f); over != "" {
			why = append(why, over)
		}
	}
	if g.change.What == "cpu" {
		for i := range x.Methods {
			m := &x.Methods[i]
			test(m.Method, m.Method, &m.Share)
		}
	} else {
		for i := range x.Routes {
			r := &x.Routes[i]
			f := &r.Errors
			switch g.change.What {
			case "p95":
				f = &r.P95
			case "p50":
				f = &r.P50
			}
			test(r.name(), r.Route, f)
		}
	}
	switch {
	case found:
	case g.change.What == "cpu" && x.alone:
		why = []string{"--fail-on " + g.text + ": cannot be judged: " + alone}
	default:
		why = []string{"--fail-on " + g.text + ": neither report has anything of that name that is frequent enough to compare"}
	}
	return GateResult{Gate: g.text, Failed: len(why) > 0, Found: cmp.Or(compare.Told(why), "not beyond noise, or not that far")}
}

// JSON writes x as one document.
func (x *Comparison) JSON(w io.Writer) error { return text.WriteDocument(w, x, " ") }

// Document is x for people, limit rows in each table; 0 is all.
func (x *Comparison) Document(limit int) *compare.Document {
	d := &compare.Document{Before: x.Before, After: x.After, Verdict: x.verdict()}
	add := func(t compare.Table) {
		if limit > 0 && len(t.Rows) > limit {
			t.Rows, t.More = t.Rows[:limit], len(t.Rows)-limit
		}
		if len(t.Rows) > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
	title := "New failures"
	if n := len(x.Failed); n < x.NewFailures {
		title += ", the first " + report.Count(n)
	}
	failed := compare.Table{Title: title, Head: []string{"was", "trace and why"}}
	for _, f := range x.Failed {
		failed.Rows = append(failed.Rows, []string{f.Was, f.Name + ": " + f.Error})
	}
	add(failed)
	causes := compare.Table{Title: "Why traces failed", Head: []string{"before", "after", "why"}}
	for _, c := range x.Causes {
		causes.Rows = append(causes.Rows, []string{report.Count(c.Count[0]), report.Count(c.Count[1]), c.Why})
	}
	add(causes)
	p95, errs := compare.FigureTable("p95 of requests, ms", "route"), compare.FigureTable("Requests with errors, %", "route")
	for i := range x.Routes {
		r := &x.Routes[i]
		p95.Add(&r.P95, compare.Number, r.name())
		if r.Errors.Before+r.Errors.After > 0 {
			errs.Add(&r.Errors, compare.Number, r.name())
		}
	}
	add(p95)
	p50 := compare.FigureTable("Median of requests, ms", "route")
	for _, r := range x.byMedian() {
		p50.Add(&r.P50, compare.Number, r.name())
	}
	add(p50)
	add(errs)
	hot := compare.FigureTable("Share of the CPU time, %, by itself", "method")
	for i := range x.Methods {
		hot.Add(&x.Methods[i].Share, compare.Number, x.Methods[i].Method)
	}
	add(hot)
	return d
}

// byMedian returns the routes by how far their median moved, which need not be the order of their p95.
func (x *Comparison) byMedian() []*RouteChange {
	list := make([]*RouteChange, len(x.Routes))
	for i := range x.Routes {
		list[i] = &x.Routes[i]
	}
	slices.SortStableFunc(list, func(p, q *RouteChange) int {
		return cmp.Compare(math.Abs(q.P50.Change), math.Abs(p.P50.Change))
	})
	return list
}

// verdict are the sentences that come first.
func (x *Comparison) verdict() (v []string) {
	for _, g := range x.Gates {
		if g.Failed {
			v = compare.Add(v, "%s.", g.Found)
		}
	}
	if x.NewFailures > 0 {
		v = compare.Add(v, "%s trace%s failed that did not before (%s of %s failed, before %s of %s).", report.Count(x.NewFailures), report.Plural(x.NewFailures),
			compare.Number(x.Failures.After)+" %", report.Count(x.Traces[1]), compare.Number(x.Failures.Before)+" %", report.Count(x.Traces[0]))
	}
	if f := &x.Failures; x.NewFailures == 0 && f.Moved() {
		v = compare.Add(v, "Traces that failed: %s -> %s %%, %s.", compare.Number(f.Before), compare.Number(f.After), f.Told())
	}
	tell := func(what, unit string, list []*compare.Figure, name func(int) string) {
		n := 0
		for i, f := range list {
			if f.Moved() {
				if n++; n <= 3 {
					v = compare.Add(v, "%s: %s %s -> %s %s, %s.", name(i), what, compare.Number(f.Before), compare.Number(f.After), unit, f.Told())
				}
			}
		}
		if n > 3 {
			v = compare.Add(v, "%d more: %s.", n-3, what)
		}
	}
	var p95, p50, errs, hot []*compare.Figure
	for i := range x.Routes {
		p95, errs = append(p95, &x.Routes[i].P95), append(errs, &x.Routes[i].Errors)
	}
	medians := x.byMedian()
	for _, r := range medians {
		p50 = append(p50, &r.P50)
	}
	for i := range x.Methods {
		hot = append(hot, &x.Methods[i].Share)
	}
	route := func(i int) string { return x.Routes[i].name() }
	tell("p95", "ms", p95, route)
	tell("p50", "ms", p50, func(i int) string { return medians[i].name() })
	if moved := func(f *compare.Figure) bool { return f.Moved() }; x.Errors.Moved() && !slices.ContainsFunc(errs, moved) { // as routes that are too rare to compare do
		tell("errors", "%", []*compare.Figure{&x.Errors}, func(int) string { return "All requests" })
	}
	tell("errors", "%", errs, route)
	tell("share of the CPU time", "%", hot, func(i int) string { return x.Methods[i].Method })
	switch {
	case len(v) == 0 && len(x.Notes) == 0:
		v = compare.Add(v, "Nothing moved beyond noise.")
	case len(v) == 0:
		v = compare.Add(v, "Of what is compared nothing moved beyond noise.")
	}
	return append(v, x.Notes...)
}
