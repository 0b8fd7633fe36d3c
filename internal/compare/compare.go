package compare

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A Result is what moved between two traces.
type Result struct {
	Before string `json:"before"`
	After  string `json:"after"`
	// PerRequest says that costs are those of a request, and not of the whole trace.
	PerRequest bool       `json:"per_request"`
	Requests   [2]int     `json:"requests"`
	Seconds    [2]float64 `json:"seconds"` // that the traces last; 0 of a file of sums, which does not tell
	CPU        Figure     `json:"cpu"`     // ms, waiting left out
	Told       float64    `json:"told"`    // part of the time whose request is known, 0 to 1
	Methods    []Method   `json:"methods"` // ms
	Types      []Named    `json:"types"`   // allocated bytes
	Exceptions []Named    `json:"exceptions"`
	Locks      []Named    `json:"locks"`  // waits for locks by the method that wanted them, ms
	Routes     []Named    `json:"routes"` // mean duration, ms
	Tails      []Named    `json:"p95"`    // 95th percentile of durations, ms
	Errors     []Named    `json:"errors"` // share of requests by route, percent; Count is of those whose end is told
	GC         []Named    `json:"gc"`
	Memory     []Named    `json:"memory"`   // what collections of generation 2 leave, bytes, on average
	Counters   []Named    `json:"counters"` // means; of what grows, by how much in a second
	// NotCompared are the kinds that one of the traces did not record.
	NotCompared []NotCompared `json:"not_compared,omitempty"`
	// Damages are the places at which the two files are damaged, if any is: what is missing seems
	// to be less.
	Damages []int `json:"damages,omitempty"`
	// Lost are the events that the recorders of the two lost, if any were: likewise.
	Lost []int64 `json:"lost,omitempty"`
	// Failed are the gates that failed, and why.
	Failed []string `json:"failed,omitempty"`

	a, b *costs
	few  map[string][]string // names of a kind that one of the traces has too little of
	// untyped is the name of the trace whose recorder did not tell managed code from the rest, if
	// that of the other one did.
	untyped string
	// untold is that of the one whose file does not tell of samples whether they waited, if the other one does.
	untold string
	// ticked is that of the one whose samples processors took, if the runtime took those of the other one.
	ticked   string
	doubted  bool // totals moved, and lost methods may be all of it
	nameless bool // what moved may be that a trace does not name code
	// mix are the shares of the routes in all requests, percent, that moved far: by most first.
	mix  []Named
	bare bool // neither trace holds anything to compare
}

// A Named is a figure with a name.
type Named struct {
	Name string `json:"name"`
	Figure
	Count [2]int `json:"count"`
}

// Traces compares two traces.
func Traces(before, after *Trace) *Result {
	before, after = alike(before, after)
	routesAlike(before.Requests, after.Requests)
	typeAlike(before.Profile, after.Profile)
	typeAlike(after.Profile, before.Profile)
	untold := onlyOne(before, after, func(p *profile.Profile) bool { return p.Meta.Untold })
	if untold != "" { // waits that one cannot leave out count in both
		before.Profile.Meta.Untold, after.Profile.Meta.Untold = true, true
	}
	n := &names{ids: map[string]int{}}
	a, b := newCosts(before, n), newCosts(after, n)
	r := &Result{Before: before.Name, After: after.Name, Requests: [2]int{before.Requests.Len(), after.Requests.Len()}, Seconds: [2]float64{before.seconds(), after.seconds()}, a: a, b: b}
	if before.Damages+after.Damages > 0 {
		r.Damages = []int{before.Damages, after.Damages}
	}
	if x, y := before.Profile.Meta.Lost, after.Profile.Meta.Lost; x+y > 0 {
		r.Lost = []int64{x, y}
	}
	var all profile.Selection
	r.bare = before.Empty(&all) && after.Empty(&all)
	if r.untold = untold; untold == "" {
		r.untyped = onlyOne(before, after, func(p *profile.Profile) bool { return p.Meta.Untyped })
		r.ticked = onlyOne(before, after, ticked)
	}
	r.PerRequest = min(r.Requests[0], r.Requests[1]) >= minRequests
	if a.all+b.all > 0 {
		r.Told = (a.told + b.told) / (a.all + b.all)
	}
	unitsA, unitsB := 1.0, 1.0
	if r.PerRequest {
		unitsA, unitsB = float64(r.Requests[0]), float64(r.Requests[1])
	}
	// All the time there is differs between runs like the time of one thing in it.
	sigma := 0.05 * math.Hypot(a.all/unitsA, b.all/unitsB)
	if r.PerRequest {
		sigma = math.Hypot(sigma, restNoise(a, b, a.all-a.told, b.all-b.told, &a.rest, &b.rest))
		sigma = math.Hypot(sigma, otherMix(a, b, union(a.count, b.count), func(c *costs, route string) float64 {
			return c.work[route] / float64(max(1, c.count[route]))
		}))
		r.mix = mixes(a, b)
	} else { // rest is nearly all there is
		sigma = math.Hypot(sigma, math.Sqrt(a.rest.variance(before.nanos())+b.rest.variance(after.nanos())))
	}
	r.CPU = Judge(a.all/unitsA/1e6, b.all/unitsB/1e6, sigma/1e6, 3)
	a.findUnnamed()
	b.findUnnamed()
	r.Methods, r.doubted, r.nameless = methods(a, b, r.PerRequest)
	if f := &r.CPU; f.Moved() && f.within(a.apart/unitsA, b.apart/unitsB) {
		f.Verdict, r.nameless = Unclear, true
	}
	r.Types = values(before, after, allocations, unitsA, unitsB)
	r.Exceptions = values(before, after, exceptions, unitsA, unitsB)
	r.Locks = values(before, after, lockWaits, unitsA, unitsB)
	r.few = map[string][]string{}
	took := byRoute(before, after, true, func(r *Request) bool { return r.Duration >= 0 && r.answer != upgraded })
	r.Routes, r.few["requests"] = judgeRoutes(took, minRequests, duration)
	r.Tails, r.few["p95"] = judgeRoutes(took, LeastRanked, tail)
	answers := before.answers() && after.answers() // else none is told, or the shares are left out
	told := byRoute(before, after, false, func(r *Request) bool { return r.answer != unended && (r.answer != ended || !answers) })
	r.Errors, r.few["errors"] = judgeRoutes(told, minRequests, wrongs)
	r.GC = collections(before, after, unitsA, unitsB)
	r.Memory, r.few["memory"] = memory(before, after)
	r.Counters, r.few["counters"] = series(before, after)
	r.leaveOut(before, after)
	return r
}

// onlyOne returns the name of the trace of which alone something holds, if there is one.
func onlyOne(a, b *Trace, holds func(*profile.Profile) bool) string {
	switch was, is := holds(a.Profile), holds(b.Profile); {
	case was && !is:
		return a.Name
	case is && !was:
		return b.Name
	}
	return ""
}

// ticked reports whether processors took the samples of a profile, and not the sampler of a runtime.
func ticked(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Threads, func(th *profile.Thread) bool { return th.Samples.Count(profile.SampleCPU) > 0 })
}

// typeAlike has b go by its innermost methods where a does and b has no sample on a CPU by its types: so
// few samples as b may have do not show by themselves that their recorder told no types.
func typeAlike(a, b *profile.Profile) {
	if !a.Meta.Untyped || b.Meta.Untyped {
		return
	}
	external := 0
	for _, th := range b.Threads {
		if th.Samples.Count(profile.SampleManaged)+th.Samples.Count(profile.SampleCPU) > 0 {
			return
		}
		external += th.Samples.Count(profile.SampleExternal)
	}
	b.Meta.Untyped = external > 0
}

// unlike is how many times as long as the other one a trace may last before totals are doubted: what
// runs to its end may just have become slower.
const unlike = 1.5

// lastUnlike reports whether totals of unlike times are compared.
func (r *Result) lastUnlike() bool {
	if r.bare || r.PerRequest || r.a.trace.Profile.Meta.Sums || r.b.trace.Profile.Meta.Sums {
		return false
	}
	a, b := r.Seconds[0], r.Seconds[1]
	return max(a, b) > unlike*min(a, b)
}

// A valueKind is how values of a weight are compared.
type valueKind struct {
	weight string
	unit   float64
	// names returns what names a value of a trace.
	names func(*Trace) func(*profile.Weighed) string
	// convoys says that values which come close in time, be it on other threads, are one thing that happened.
	convoys bool
}

var (
	allocations = valueKind{"alloc", 1, byType, false}
	exceptions  = valueKind{"exceptions", 1, byType, false}
	lockWaits   = valueKind{"contention", 1e6, byCause, true} // who holds a lock for long lets many wait
)

// weights are those of all kinds.
var weights = []string{allocations.weight, exceptions.weight, lockWaits.weight}

// byType names values by what is allocated or thrown.
func byType(*Trace) func(*profile.Weighed) string {
	short := map[string]string{}
	return func(v *profile.Weighed) string { return remembered(short, v.Name, Name) }
}

// byCause names values by the method that came to them.
func byCause(t *Trace) func(*profile.Weighed) string {
	table, short := t.Profile.Table, map[profile.MethodID]string{}
	return func(v *profile.Weighed) string {
		id := table.Cause(v.Sample.Stack)
		if id == 0 {
			return "(no stack)"
		}
		return remembered(short, table.Method(table.Frame(id)), func(m profile.MethodID) string { return Name(table.MethodAt(m).Full()) })
	}
}

// remembered is f of x, which is worked out once.
func remembered[K comparable](known map[K]string, x K, f func(K) string) string {
	s, ok := known[x]
	if !ok {
		s = f(x)
		known[x] = s
	}
	return s
}

// An amount is what the values of one name amount to on one side.
type amount struct {
	sum, squares float64
	events       int
	convoys      map[int64]float64 // by the stretch of time that they begin in
}

// A convoy lasts so long, ns, or a part of what is compared: of a day there are as many as of a quarter
// of an hour.
const (
	convoy      = 100_000_000
	mostConvoys = 10_000
)

// add adds a value at a time; what comes together in a stretch of time is one thing if that is more than nothing.
func (s *amount) add(v float64, at, stretch int64) {
	s.sum += v
	s.events++
	if stretch == 0 {
		s.squares += v * v
		return
	}
	if s.convoys == nil {
		s.convoys = map[int64]float64{}
	}
	x := s.convoys[at/stretch]
	s.squares += (x+v)*(x+v) - x*x
	s.convoys[at/stretch] = x + v
}

// variance is that of the sum, of stretches in so long a time: those without a value count as well. Where no
// stretches are told, many of a kind may come together: in bursts.
func (s *amount) variance(stretch, whole int64) float64 {
	if stretch == 0 {
		return 1.5 * 1.5 * s.squares
	}
	return max(0, s.squares-s.sum*s.sum/max(1, float64(whole)/float64(stretch)))
}

// values compares what values of a kind amount to.
func values(a, b *Trace, kind valueKind, unitsA, unitsB float64) []Named {
	sides := map[string]*[2]amount{}
	var all [2]float64
	var stretch [2]int64
	for i, t := range []*Trace{a, b} {
		w := t.Profile.WeightNamed(kind.weight)
		if w < 0 {
			continue
		}
		nameOf := kind.names(t)
		if kind.convoys {
			stretch[i] = max(convoy, t.nanos()/mostConvoys)
		}
		for _, th := range t.Profile.Threads {
			for v := range t.Profile.Values(th, w) {
				name := nameOf(&v)
				s := sides[name]
				if s == nil {
					s = &[2]amount{}
					sides[name] = s
				}
				s[i].add(v.Amount/kind.unit, v.Sample.Time, stretch[i])
				all[i] += v.Amount / kind.unit
			}
		}
	}
	limit := Critical(len(sides))
	list := []Named{} // in JSON null is no list
	for name, s := range sides {
		x, y := s[0].sum/unitsA, s[1].sum/unitsB
		sx := math.Hypot(math.Sqrt(s[0].variance(stretch[0], a.nanos()))/unitsA, noiseOfItself*x+0.005*all[0]/unitsA)
		sy := math.Hypot(math.Sqrt(s[1].variance(stretch[1], b.nanos()))/unitsB, noiseOfItself*y+0.005*all[1]/unitsB)
		f := judgeEach(a, b, x, y, sx, sy, unitsA, unitsB, limit)
		list = append(list, Named{Name: name, Figure: f, Count: [2]int{s[0].events, s[1].events}})
	}
	sortNamed(list)
	return list
}

// judgeEach is Judge for what something costs a request, or the whole trace where units are 1, with the noise
// of both sides. Nothing has moved if nothing would have had it been done once, as to start, or all the while:
// then a request only has another part of it where there are more.
func judgeEach(a, b *Trace, x, y, sx, sy, unitsA, unitsB, limit float64) Figure {
	f := Judge(x, y, math.Hypot(sx, sy), limit)
	once := unitsA / unitsB
	for _, part := range []float64{once, once * float64(b.nanos()) / float64(max(1, a.nanos()))} {
		if unitsA > 1 && Judge(x*part, y, math.Hypot(sx*part, sy), limit).Verdict != f.Verdict {
			f.Verdict = Unclear
		}
	}
	return f
}

// A routeSum is what is compared of requests of one route.
type routeSum struct {
	n, wrong     int              // wrong: failed, canceled or answered with an error
	sum, squares float64          // of what they took, ms
	all          quantile.Numbers // of what they took, ns
}

// byRoute sums the requests of each route, of those that count; ranked says that quantiles of them are wanted.
func byRoute(a, b *Trace, ranked bool, counts func(*Request) bool) map[string]*[2]routeSum {
	routes := map[string]*[2]routeSum{}
	for i, t := range []*Trace{a, b} {
		for r := range t.Requests.all() {
			if !counts(r) {
				continue
			}
			route := t.Requests.of(r).Route
			s := routes[route]
			if s == nil {
				s = &[2]routeSum{}
				routes[route] = s
			}
			d := text.Millis(r.Duration)
			s[i].sum += d
			s[i].squares += d * d
			if ranked {
				s[i].all.Spool = t.Requests.aside
				s[i].all.Add(r.Duration)
			}
			s[i].n++
			if r.answer >= refused {
				s[i].wrong++
			}
		}
	}
	return routes
}

// judgeRoutes judges the requests of each route. Of few there are not enough.
func judgeRoutes(routes map[string]*[2]routeSum, enough int, judge func(x, y *routeSum, limit float64) Figure) (list []Named, few []string) {
	list = []Named{}
	limit := Critical(len(routes))
	for name, s := range routes {
		if min(s[0].n, s[1].n) < enough {
			few = append(few, name)
			continue
		}
		list = append(list, Named{Name: name, Figure: judge(&s[0], &s[1], limit), Count: [2]int{s[0].n, s[1].n}})
	}
	sortNamed(list)
	slices.Sort(few)
	return list, few
}

// duration compares the mean of what requests took, on the wall clock.
func duration(s, t *routeSum, limit float64) Figure {
	x, y := meanOf(s.sum, s.squares, s.n), meanOf(t.sum, t.squares, t.n)
	sigma := math.Hypot(math.Hypot(x.sigma, tookNoise*x.value), math.Hypot(y.sigma, tookNoise*y.value))
	return Judge(x.value, y.value, sigma, limit)
}

// tail compares the 95th percentile of it.
func tail(s, t *routeSum, limit float64) Figure {
	ms := func(q float64, of *quantile.Numbers) float64 { return text.Millis(of.At(q)) }
	x, sx := Rank(0.95, s.n, func(q float64) float64 { return ms(q, &s.all) })
	y, sy := Rank(0.95, t.n, func(q float64) float64 { return ms(q, &t.all) })
	return Judge(x, y, math.Hypot(sx, sy), limit)
}

// much is how far the share of a route must move before what it does to other figures is told, percent.
const much = 10

// mixes compares how many of the requests are of each route.
func mixes(a, b *costs) (list []Named) {
	na, nb := a.trace.Requests.Len(), b.trace.Requests.Len()
	if a.trace.Requests.named() != b.trace.Requests.named() {
		return nil
	}
	routes := union(a.count, b.count)
	for _, name := range routes {
		n := Named{Name: name, Figure: Share(a.count[name], na, b.count[name], nb, Critical(len(routes))), Count: [2]int{na, nb}}
		if n.Moved() && math.Abs(n.After-n.Before) >= much {
			list = append(list, n)
		}
	}
	sortNamed(list)
	return list
}

// wrongs compares the share of requests of a route that failed, were canceled or were answered with
// an error: one that throws at once takes no longer than before, and costs less.
func wrongs(x, y *routeSum, limit float64) Figure { return Share(x.wrong, x.n, y.wrong, y.n, limit) }

// collections compares collections: their pauses in ms first, then their numbers by generation.
func collections(a, b *Trace, unitsA, unitsB float64) []Named {
	type side struct {
		n              [3]int
		pause, squares float64
	}
	var sides [2]side
	for i, t := range []*Trace{a, b} {
		for _, g := range t.GC {
			d := text.Millis(g.pause)
			sides[i].n[min(2, g.generation)]++
			sides[i].pause += d
			sides[i].squares += d * d
		}
	}
	total := func(s *side) int { return s.n[0] + s.n[1] + s.n[2] }
	if total(&sides[0])+total(&sides[1]) == 0 {
		return []Named{}
	}
	counts := [2]int{total(&sides[0]), total(&sides[1])}
	var list []Named
	add := func(name string, x, y, sx, sy float64, counts [2]int) {
		f := judgeEach(a, b, x/unitsA, y/unitsB, math.Hypot(sx, 0.05*x)/unitsA, math.Hypot(sy, 0.05*y)/unitsB, unitsA, unitsB, 3)
		list = append(list, Named{Name: name, Figure: f, Count: counts})
	}
	add("pause", sides[0].pause, sides[1].pause, math.Sqrt(sides[0].squares), math.Sqrt(sides[1].squares), counts)
	for g := range 3 {
		x, y := float64(sides[0].n[g]), float64(sides[1].n[g])
		add("gen"+strconv.Itoa(g), x, y, math.Sqrt(x), math.Sqrt(y), [2]int{sides[0].n[g], sides[1].n[g]})
	}
	return list
}

// live is the name of what collections of generation 2 leave.
const live = "live"

// memory compares what collections of generation 2 leave, in all processes together. What follows
// each other is alike, as in series.
func memory(a, b *Trace) (list []Named, few []string) {
	of := func(t *Trace) (m mean) {
		byProcess := map[int][]Value{}
		for _, g := range t.GC {
			if g.generation >= 2 && g.survived >= 0 {
				byProcess[g.process] = append(byProcess[g.process], Value{float64(g.survived), 1})
			}
		}
		for _, process := range slices.Sorted(maps.Keys(byProcess)) { // sums differ by their order
			if values := byProcess[process]; len(values) >= minValues {
				p := meanOfValues(values)
				m.value, m.sigma, m.n = m.value+p.value, math.Hypot(m.sigma, p.sigma), m.n+p.n
			}
		}
		return m
	}
	x, y := of(a), of(b)
	if x.n == 0 || y.n == 0 {
		return []Named{}, []string{live}
	}
	sigma := math.Hypot(math.Hypot(2*x.sigma, 0.05*x.value), math.Hypot(2*y.sigma, 0.05*y.value))
	return []Named{{Name: live, Figure: Judge(x.value, y.value, sigma, Critical(1)), Count: [2]int{x.n, y.n}}}, nil
}

// minValues is the least number of values of a counter that a mean is taken of.
const minValues = 4

// series compares the means of counters. Values that follow each other are alike, which
// makes them worth less than their number.
func series(a, b *Trace) (list []Named, few []string) {
	list = []Named{}
	limit := Critical(len(a.Counters))
	for name := range b.Counters {
		if len(a.Counters[name]) == 0 {
			few = append(few, name)
		}
	}
	for name, x := range a.Counters {
		y := b.Counters[name]
		if min(len(x), len(y)) < minValues {
			few = append(few, name)
			continue
		}
		mx, my := meanOfValues(x), meanOfValues(y)
		sigma := math.Hypot(math.Hypot(2*mx.sigma, 0.05*mx.value), math.Hypot(2*my.sigma, 0.05*my.value))
		list = append(list, Named{Name: name, Figure: Judge(mx.value, my.value, sigma, limit), Count: [2]int{len(x), len(y)}})
	}
	text.SortRows(list, func(x, y *Named) int {
		return cmp.Or(cmp.Compare(math.Abs(y.z), math.Abs(x.z)), cmp.Compare(x.Name, y.Name))
	})
	return list, few
}

// meanOfValues is the mean of all that was measured, with its standard error by the scatter of the intervals.
func meanOfValues(values []Value) mean {
	var sum, weight float64
	for _, v := range values {
		sum += v.Value * v.Weight
		weight += v.Weight
	}
	n := len(values)
	m := mean{value: sum / weight, sigma: math.Inf(1), n: n}
	if n < 2 {
		return m
	}
	var squares float64
	for _, v := range values {
		d := (v.Value - m.value) * v.Weight / weight
		squares += d * d
	}
	m.sigma = math.Sqrt(squares * float64(n) / float64(n-1))
	return m
}

// sortNamed puts the largest changes first.
func sortNamed(list []Named) {
	text.SortRows(list, func(x, y *Named) int {
		return cmp.Or(cmp.Compare(math.Abs(y.After-y.Before), math.Abs(x.After-x.Before)), cmp.Compare(x.Name, y.Name))
	})
}

// Moved reports whether the figure changed beyond noise.
func (f *Figure) Moved() bool { return f.Verdict != Unclear }

// A Gate is a condition under which a comparison fails: "cpu:Method>+10%".
type Gate struct{ Change }

// Told is the first of the reasons for which a gate fails and how many more there are, empty if there is none.
//
//go:noinline
func Told(why []string) string {
	if len(why) < 2 {
		return strings.Join(why, "")
	}
	return why[0] + "; and " + strconv.Itoa(len(why)-1) + " more"
}

// Check asks the gates, and returns why they fail, a line each.
func (r *Result) Check(gates []Gate) string {
	r.Failed = nil
	for _, g := range gates {
		if why := g.check(r); len(why) > 0 {
			r.Failed = append(r.Failed, Told(why))
		}
	}
	return strings.Join(r.Failed, "\n")
}

// ParseGate reads KIND:NAME>+N% or KIND:NAME<-N%.
func ParseGate(s string) (Gate, error) {
	c, err := ParseChange(s, gateKinds())
	return Gate{c}, err
}

// A Change is a condition on how far something moved.
type Change struct {
	Text    string
	What    string // one of the kinds that it was read with
	pattern string
	less    bool
	percent float64
}

// ParseChange reads KIND:NAME>+N% or KIND:NAME<-N%, where KIND is one of kinds.
func ParseChange(s string, kinds []string) (Change, error) {
	c := Change{Text: s}
	what, rest, ok := strings.Cut(s, ":")
	i := strings.LastIndexAny(rest, "<>")
	if !ok || i <= 0 || !slices.Contains(kinds, what) {
		return c, fmt.Errorf("--fail-on %q: must be KIND:NAME>+N%% or KIND:NAME<-N%%, where KIND is one of %s and * and ? are wild in NAME%s", s, strings.Join(kinds, ", "), text.DidYouMean(what, kinds))
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(rest[i+1:], "+"), "%"), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return c, fmt.Errorf("--fail-on %q: %q is not a percentage", s, rest[i+1:])
	}
	c.What, c.pattern, c.less, c.percent = what, rest[:i], rest[i] == '<', n
	return c, nil
}

// Over returns why the condition holds of a figure with a name that fits, empty if it does not.
func (c *Change) Over(name string, f *Figure) string {
	over := f.Change > c.percent || f.Before == 0 && f.After > 0
	if c.less {
		over = f.Change < c.percent
	}
	if !over || !f.Moved() {
		return ""
	}
	if f.Before == 0 && c.What == "errors" { // the route is as old as its requests
		return fmt.Sprintf("--fail-on %s: %s: %s %% of requests with errors, none before", c.Text, name, number(f.After))
	}
	if f.Before == 0 { // of which nothing is a percentage
		return fmt.Sprintf("--fail-on %s: %s is new", c.Text, name)
	}
	return fmt.Sprintf("--fail-on %s: %s changed by %s %% (95 %%: %s)", c.Text, name, c.beyond(f.Change), f.interval())
}

// beyond prints a change with so many digits that it is seen to be beyond the condition.
func (c *Change) beyond(v float64) string {
	for digits := 0; ; digits++ {
		s := fmt.Sprintf("%+.*f", digits, v)
		if w, err := strconv.ParseFloat(s, 64); err != nil || w == v || w != c.percent && w < c.percent == c.less {
			return s
		}
	}
}

// Fits reports whether a name is that of the condition: with or without module and arguments, of a method
// also as collect-linux spells it.
func (c *Change) Fits(name string) bool {
	short, _, _ := strings.Cut(name, "(")
	_, plain, _ := strings.Cut(short, "!")
	fits := func(pattern string) bool {
		return text.Match(pattern, name) || text.Match(pattern, short) || plain != "" && text.Match(pattern, plain)
	}
	other, ok := unmapped(c.pattern)
	return fits(c.pattern) || ok && fits(other)
}

// check returns why the comparison fails, nothing if it does not. A gate that fits nothing
// fails: it would never find anything.
func (g *Gate) check(r *Result) (why []string) {
	k := kindOf(g.What)
	for _, n := range r.NotCompared {
		if n.Kind == k.name || n.Kind == k.of {
			return g.fails("cannot be judged: " + n.Why)
		}
	}
	if k.list == nil && r.ticked != "" {
		return g.fails("cannot be judged: processors took the samples of " + r.ticked + ", and the runtime those of the other trace")
	}
	found := false
	for name, f := range g.figures(r, k) {
		if !g.Fits(name) {
			continue
		}
		found = true
		if over := g.Over(name, f); over != "" {
			why = append(why, over)
		}
	}
	switch {
	case found || k.list == nil && slices.ContainsFunc(r.a.names.list, g.Fits): // methods may cost too little to judge
		return why
	case slices.ContainsFunc(r.few[k.name], g.Fits):
		return g.fails("cannot be judged: a trace has too few values of that name")
	case k.list != nil && len(*k.list(r)) == 0 && k.asked != nil && r.a.trace.records(k) && r.b.trace.records(k):
		return nil // a good program throws nothing, and there is no name to go by
	}
	return g.fails("neither trace has anything of that name")
}

// fails is why it fails, if it cannot be asked.
//
//go:noinline
func (g *Gate) fails(why string) []string { return []string{"--fail-on " + g.Text + ": " + why} }

// figures are those of the kind that a gate is about.
func (g *Gate) figures(r *Result, k *kind) iter.Seq2[string, *Figure] {
	return func(yield func(string, *Figure) bool) {
		if k.list != nil {
			list := *k.list(r)
			for i := range list {
				if !yield(list[i].Name, &list[i].Figure) {
					return
				}
			}
			return
		}
		for i := range r.Methods {
			m := &r.Methods[i]
			f := &m.Total
			if g.What == self {
				f = &m.Self
			}
			if !yield(m.Method, f) {
				return
			}
		}
	}
}
