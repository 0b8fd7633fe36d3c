package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// A costs is what methods cost in one trace, by numbers that both traces share.
type costs struct {
	trace  *Trace
	names  *names
	ids    []int // by method, of names: 1 + the number, 0: not asked for yet
	stacks map[profile.StackID]stackCost
	skip   []bool // by method: it is no code
	self   sums
	total  sums
	all    float64        // ns on a CPU, without waiting
	told   float64        // of all, of which the request is known
	rest   bursts         // of the others
	lost   lost           // what stacks hide of the methods that were asked for
	route  numbers        // by request: 1 + the number of what it asks for; 0: it is not ours
	whose  numbers        // by activity: the request it is for; 0: none of ours
	count  map[string]int // requests by route
	work   map[string]float64

	// Time in code of which only the address is known, ns, of a recording that was cut off: see findUnnamed.
	inner float64 // in it
	on    float64 // with it on the stack
	apart float64 // of inner, which does not count as CPU time, as nothing tells that it was
}

// A names numbers the names of methods.
type names struct {
	list []string
	ids  map[string]int
}

// id returns the number of a name. Recorders spell the module as its file or in lower case.
func (n *names) id(s string) int {
	key := s
	if i := strings.IndexByte(s, '!'); i > 0 {
		key = strings.ToLower(s[:i]) + s[i:]
	}
	id, ok := n.ids[key]
	if !ok {
		id = len(n.list)
		n.ids[key] = id
		n.list = append(n.list, s)
	}
	return id
}

// A sum is what one method cost, in ns.
type sum struct {
	time, squares float64 // squares: of the samples
	samples       int
	rest          bursts          // of those whose request is not known
	routes        map[string]pair // of the others, if they were asked for: what it cost the requests of each route
	spread        int32           // its number among those that were asked for, from 1 on; 0: it was not
}

// count counts what it cost a request of a route.
func (s *sum) count(route string, ns int64) {
	p, x := s.routes[route], float64(ns)
	s.routes[route] = pair{p.sum + x, p.squares + x*x}
}

// A pair is the sum of some numbers, and that of their squares.
type pair struct{ sum, squares float64 }

// sums are by method: nil where it costs nothing.
type sums []*sum

// of returns the sum of a method, nil if it costs nothing.
func (s sums) of(m int) *sum {
	if m >= len(s) {
		return nil
	}
	return s[m]
}

// add returns the sum of a method, to which something is added.
func (s *sums) add(m int) *sum {
	for m >= len(*s) {
		*s = append(*s, nil)
	}
	if (*s)[m] == nil {
		(*s)[m] = &sum{}
	}
	return (*s)[m]
}

// together is the longest gap between samples of one burst, ns.
const together = 20_000_000

// A bursts is how the cost of one method is spread over the time of the threads. What a thread does
// in one go is one thing that happened or did not: its samples are no measurements of their own.
type bursts struct {
	thread      *profile.Thread
	from, until int64
	time        float64 // of the burst that goes on

	own     float64 // squares of the bursts of this thread
	covered int64   // of its time
	squares float64 // of threads before it
}

// add counts time on a thread between two points of time. Those of a thread come one after the
// other.
func (b *bursts) add(th *profile.Thread, from, until int64, time float64, whole int64) {
	if th != b.thread {
		b.squares = b.variance(whole)
		b.thread, b.own, b.covered, b.from, b.until, b.time = th, 0, 0, from, from, 0
	} else if from-b.until > together {
		b.own += b.time * b.time
		b.covered += b.until - b.from
		b.from, b.time = from, 0
	}
	b.until = until
	b.time += time
}

// variance is that of the sum, for bursts and gaps of random lengths: of rare bursts the sum of their
// squares, and nothing for what goes on all the while. whole is how long what is compared of the
// trace is.
func (b *bursts) variance(whole int64) float64 {
	if b.thread == nil {
		return 0
	}
	off := max(0, 1-float64(b.covered+b.until-b.from)/float64(max(1, whole)))
	return b.squares + off*off*(b.own+b.time*b.time)
}

// A stackCost is what is known of a stack. Its methods are not: stacks of which each is one frame
// more than the last have more of them than there is memory.
type stackCost struct {
	leaf int  // of code; -1: none
	idle bool // it waits
}

// least is the part of all time that a method must cost to be looked at.
const least = 0.005

// noCosts returns the costs of a trace of which nothing is added up yet.
func noCosts(t *Trace, n *names) *costs {
	c := &costs{
		trace: t, names: n, stacks: map[profile.StackID]stackCost{}, count: map[string]int{}, work: map[string]float64{},
	}
	if table := t.Profile.Table; table != nil {
		c.ids, c.skip = make([]int, table.Methods()), make([]bool, table.Methods())
		for i := range c.skip {
			c.skip[i] = table.MethodAt(profile.MethodID(i)).Kind == profile.Synthetic
		}
	}
	return c
}

// newCosts adds up a trace.
func newCosts(t *Trace, n *names) *costs {
	c := noCosts(t, n)
	if t.Requests != nil {
		c.route, c.whose = t.Requests.numbers(), t.Requests.numbers()
	}
	for r := range t.Requests.all() {
		c.route.set(int(r.ID), r.asked+1)
		c.count[t.Requests.of(r).Route]++
	}
	c.route.done()
	c.findWhose()
	open, in := openStack{c: c, whole: t.nanos()}, gaps{trace: t}
	c.each(func(leaf int, th *profile.Thread, st *profile.Stretch, request int) {
		ns := float64(st.Nanos())
		c.all += ns
		c.lost.there = c.lost.there || in.recorded(th, st) > 0
		s := c.self.add(leaf)
		s.time += ns
		s.squares += ns * ns
		s.samples++
		route := c.of(int32(request))
		if route != nil {
			c.told += ns
			c.work[route.Route] += ns
		} else {
			s.rest.add(th, st.Start, st.End, ns, open.whole)
			c.rest.add(th, st.Start, st.End, ns, open.whole)
		}
		open.add(th, st, route != nil)
	})
	open.end()
	return c
}

// findWhose finds the requests that activities are for: their own, or those of their parents.
func (c *costs) findWhose() {
	for i, a := range c.trace.Profile.Activities.All() { // parents come first
		switch {
		case c.of(int32(a.Request)) != nil:
			c.whose.set(int(i), int32(a.Request))
		case a.Parent >= 0:
			if request := c.whose.get(int(a.Parent)); request > 0 {
				c.whose.set(int(i), request)
			}
		}
	}
	c.whose.done()
}

// of returns what a request asks for; nil if it is not ours.
func (c *costs) of(request int32) *asked {
	if n := c.route.get(int(request)); n > 0 {
		return &c.trace.Requests.kinds[n-1]
	}
	return nil
}

// restNoise is the noise of what a request costs of time whose request is not known, x before and y
// after. Each burst counts as a measurement. And it may be that of no request: what a service does
// once, as to start, or all the while costs a request the less, the more there are.
func restNoise(a, b *costs, x, y float64, restA, restB *bursts) float64 {
	na, nb := float64(a.trace.Requests.Len()), float64(b.trace.Requests.Len())
	side := func(x float64, rest *bursts, c, other *costs, n, m float64) (noise, apart float64) {
		whole, there := float64(c.trace.nanos()), float64(other.trace.nanos())
		noise = max(0.1*x, math.Sqrt(rest.variance(c.trace.nanos()))) / n
		return noise, x * max(math.Abs(1/n-1/m), math.Abs(1/n-there/max(1, whole)/m))
	}
	noiseA, apartA := side(x, restA, a, b, na, nb)
	noiseB, apartB := side(y, restB, b, a, nb, na)
	return math.Hypot(math.Hypot(noiseA, noiseB), min(apartA, apartB))
}

// union are the routes of either, in an order that does not change.
func union[V any](a, b map[string]V) []string {
	all := slices.Collect(maps.Keys(a))
	for r := range b {
		if _, ok := a[r]; !ok {
			all = append(all, r)
		}
	}
	slices.Sort(all)
	return all
}

// otherMix is by how much a request costs more or less only since others of the routes are asked for
// than before, by what a request of each costs: no cost has moved for that.
func otherMix(a, b *costs, routes []string, cost func(c *costs, route string) float64) float64 {
	na, nb := float64(a.trace.Requests.Len()), float64(b.trace.Requests.Len())
	mix := 0.0
	for _, r := range routes {
		n, m := float64(a.count[r]), float64(b.count[r])
		x, y := cost(a, r), cost(b, r)
		if n == 0 {
			x = y
		} else if m == 0 {
			y = x
		}
		mix += (m/nb - n/na) * (x + y) / 2
	}
	return mix
}

// byRequest adds up what wanted methods cost the requests of each route.
func (c *costs) byRequest(wanted map[int]bool) {
	if c.trace.Requests.Len() == 0 {
		return
	}
	var asked []*sum
	for m := range wanted {
		for _, s := range []*sum{c.self.of(m), c.total.of(m)} {
			if s != nil {
				asked = append(asked, s)
				s.routes, s.spread = map[string]pair{}, int32(len(asked))
			}
		}
	}
	costs := newSpread(c.trace.Requests.aside, len(asked))
	now := 0 // the request whose methods are open
	put := func(s *sum, ns int64) {
		if s.spread > 0 {
			costs.add(int32(now), s.spread-1, ns)
		}
	}
	open := openStack{c: c}
	open.gone = func(x *openMethod) {
		put(c.total.of(x.id), int64(open.time-x.time)) // exact below 2^53 ns, which are hundred days
	}
	c.each(func(leaf int, th *profile.Thread, st *profile.Stretch, request int) {
		if c.of(int32(request)) == nil {
			return
		}
		if request != now {
			open.end()
			now = request
		}
		open.add(th, st, true)
		put(c.self.of(leaf), st.Nanos())
	})
	open.end()
	costs.each(func(request, thing int32, ns int64) { // in one order: sums of squares are not exact
		asked[thing].count(c.of(request).Route, ns)
	})
}

// each calls f with every stretch on a CPU that is no waiting and its innermost method; request is 0
// if not known.
func (c *costs) each(f func(leaf int, th *profile.Thread, st *profile.Stretch, request int)) {
	p := c.trace.Profile
	timing := p.Timing()
	for _, th := range p.Threads {
		work := th.Work.Cursor()
		for st := range timing.Stretches(th) {
			if !c.counts(&st) {
				continue
			}
			s := c.stack(st.Stack)
			if s.idle || s.leaf < 0 {
				continue
			}
			request := 0
			if w := work.At(st.Time); w != nil && w.Activity >= 0 {
				request = int(c.whose.get(int(w.Activity)))
			}
			f(s.leaf, th, &st, request)
		}
	}
}

// counts reports whether a stretch counts as on a CPU.
func (c *costs) counts(st *profile.Stretch) bool {
	return st.Type.OnCPU() || c.trace.Profile.Meta.Untold
}

func (c *costs) stack(id profile.StackID) stackCost {
	s, ok := c.stacks[id]
	if ok {
		return s
	}
	s.leaf = -1
	t := c.trace.Profile.Table
	for at := id; at != 0; at = t.Parent(at) {
		if s.leaf = c.innermost(at); s.leaf >= 0 {
			s.idle = IsWait(c.names.list[s.leaf])
			break
		}
	}
	c.stacks[id] = s
	return s
}

// innermost returns the number of the name of the innermost method of a stack; -1: it is no code.
func (c *costs) innermost(id profile.StackID) int {
	t := c.trace.Profile.Table
	if m := t.Method(t.Frame(id)); !c.skip[m] {
		return c.name(m)
	}
	return -1
}

// name returns the number of the name of a method.
func (c *costs) name(m profile.MethodID) int {
	if c.ids[m] == 0 {
		c.ids[m] = 1 + c.names.id(Name(c.trace.Profile.Table.MethodAt(m).Full()))
	}
	return c.ids[m] - 1
}

// A Figure is one thing before and after, with the interval in which the change lies in 95
// of 100 cases.
type Figure struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Change float64 `json:"change_percent"` // 0 where Before is 0
	Low    float64 `json:"low_percent"`
	High   float64 `json:"high_percent"`
	// Verdict is more or less where the change is beyond noise, else unclear.
	Verdict string `json:"verdict"`
	z       float64
}

// Verdicts.
const (
	More    = "more"
	Less    = "less"
	Unclear = "unclear"
)

// smallest is the least change that is worth a word.
const smallest = 0.03

// Judge judges a change: sigma is the noise of the difference, critical how many of it the
// change must be.
func Judge(before, after, sigma, critical float64) Figure {
	f := Figure{Before: before, After: after, Verdict: Unclear}
	d := after - before
	if sigma > 0 {
		f.z = d / sigma
	}
	size := math.Abs(before) // a counter may be less than nothing
	if size > 0 {
		f.Change, f.Low, f.High = 100*d/size, 100*(d-1.96*sigma)/size, 100*(d+1.96*sigma)/size
		if before > 0 && after >= 0 { // it cannot fall by more than all
			f.Low = max(-100, f.Low)
		}
	}
	if math.Abs(f.z) >= critical && math.Abs(d) >= smallest*size {
		f.Verdict = More
		if d < 0 {
			f.Verdict = Less
		}
	}
	return f
}

// Bursts is how much more shares and ranks of requests scatter than those of things that come one by
// one: requests that fail or are slow come together.
const Bursts = 1.5

// Share judges shares, in percent: n things of so many before, n2 after.
func Share(n, of, n2, of2 int, critical float64) Figure {
	side := func(n, of int) (share, sigma float64) {
		if of == 0 {
			return 0, 0
		}
		p := (float64(n) + 0.5) / (float64(of) + 1) // none of a few does not mean never
		return 100 * float64(n) / float64(of), 100 * Bursts * math.Sqrt(p*(1-p)/float64(of))
	}
	p, sp := side(n, of)
	q, sq := side(n2, of2)
	if of == 0 || of2 == 0 { // what nothing tells has not moved
		return Figure{Before: p, After: q, Verdict: Unclear}
	}
	return Judge(p, q, math.Hypot(sp, sq), critical)
}

// LeastRanked is the least number of requests of a route of which a high quantile is judged.
const LeastRanked = 40

// Rank returns the quantile q of what n requests took, of which at returns any. Its noise is what those of the
// ranks beside it differ by, and that of runs.
func Rank(q float64, n int, at func(float64) float64) (v, sigma float64) {
	sd := Bursts * math.Sqrt(q*(1-q)/float64(max(1, n)))
	v = at(q)
	return v, math.Hypot((at(q+sd)-at(q-sd))/2, tookNoise*v)
}

// Critical is how many sigmas a change must be so that of n things that did not change one
// seems to in one of twenty comparisons.
func Critical(n int) float64 {
	return max(2.5, math.Sqrt2*math.Erfinv(1-0.05/float64(max(1, n))))
}

// Run noise: what two runs of one program differ by beyond the scatter within a run. A
// machine is faster or slower, code is inlined or not, threads disturb each other: a part of
// the thing itself, and for small things a part of everything that went on beside them.
// Measured on runs of a service under load that do not differ.
const (
	noiseOfItself = 0.03
	noiseOfAll    = 0.025 // of the cost of a request
	noiseOfTrace  = 0.004 // of all time, in totals
	tookNoise     = 0.05  // how long a request waits depends on who else is there
)

// RunNoise is what two runs of one program differ by in a thing that costs x of all.
func RunNoise(x, all float64) float64 { return math.Hypot(noiseOfItself*x, noiseOfTrace*all) }

// A mean is the mean of measurements with its standard error.
type mean struct {
	value, sigma float64
	n            int
}

func meanOf(sum, squares float64, n int) mean {
	if n < 2 {
		return mean{value: sum / float64(max(1, n)), sigma: math.Inf(1), n: n}
	}
	v := sum / float64(n)
	return mean{v, math.Sqrt(max(0, squares-sum*v) / float64(n-1) / float64(n)), n}
}

// routeMeans are what a method costs a request of each route.
func (c *costs) routeMeans(s *sum) map[string]mean {
	means := map[string]mean{}
	for r, n := range c.count {
		means[r] = meanOf(s.routes[r].sum, s.routes[r].squares, n)
	}
	return means
}

// noise adds the run noise to a standard error.
func noise(m mean, all float64) float64 {
	return math.Hypot(m.sigma, math.Hypot(noiseOfItself*m.value, noiseOfAll*all))
}

// A Route is what a method costs a request of one route, ms.
type Route struct {
	Route string `json:"route"`
	Figure
}

// A Method is one method in both traces.
type Method struct {
	Method  string  `json:"method"`
	Self    Figure  `json:"self"`
	Total   Figure  `json:"total"`
	Samples [2]int  `json:"samples"` // with the method on the stack, before and after
	Routes  []Route `json:"routes,omitempty"`
	RoutesT []Route `json:"routes_total,omitempty"`
}

// minRequests is the least number of requests of a route that a mean is taken of.
const minRequests = 8

// methods compares all methods that cost enough.
// Of doubted ones lost methods may be all that moved, of nameless ones that a trace does not name them.
func methods(a, b *costs, perRequest bool) (list []Method, doubted, nameless bool) {
	list = []Method{}
	wanted := map[int]bool{}
	for _, c := range []*costs{a, b} {
		for m, s := range c.total {
			if s != nil && s.time >= least*c.all && s.samples >= 10 {
				wanted[m] = true
			}
		}
	}
	var routes []string
	for r, n := range a.count {
		if n >= minRequests && b.count[r] >= minRequests {
			routes = append(routes, r)
		}
	}
	slices.Sort(routes)
	tests := 2 * len(wanted)
	unitsA, unitsB := 1.0, 1.0
	if perRequest {
		unitsA, unitsB = float64(a.trace.Requests.Len()), float64(b.trace.Requests.Len())
		a.byRequest(wanted)
		b.byRequest(wanted)
		tests *= max(1, len(routes))
	}
	a.findLost(wanted)
	b.findLost(wanted)
	a.findFar(wanted, &b.lost)
	b.findFar(wanted, &a.lost)
	limit := Critical(tests)
	for m := range wanted {
		row := Method{Method: a.names.list[m]}
		row.Self, row.Routes, _ = compareOne(a, b, a.self.of(m), b.self.of(m), -1, routes, perRequest, limit)
		hidden, doubt := m, false
		if row.Self.Moved() { // which is seen on any stack
			hidden = -1
		}
		row.Total, row.RoutesT, doubt = compareOne(a, b, a.total.of(m), b.total.of(m), hidden, routes, perRequest, limit)
		doubted = doubted || doubt
		nameless = row.Self.mayBeUnnamed(row.Method, row.Routes, a.inner/unitsA, b.inner/unitsB) || nameless
		nameless = row.Total.mayBeUnnamed(row.Method, row.RoutesT, a.on/unitsA, b.on/unitsB) || nameless
		for i, c := range []*costs{a, b} {
			if s := c.total.of(m); s != nil {
				row.Samples[i] = s.samples
			}
		}
		list = append(list, row)
	}
	if perRequest {
		explain(list)
	}
	text.SortRows(list, func(x, y *Method) int {
		return cmp.Or(cmp.Compare(math.Abs(y.Self.After-y.Self.Before), math.Abs(x.Self.After-x.Self.Before)), cmp.Compare(y.Self.After, x.Self.After), cmp.Compare(x.Method, y.Method))
	})
	return list, doubted, nameless
}

// explain takes back the verdict on totals that no method's own cost explains. Which frames
// stand above the work of a request depends on what had to be awaited: a continuation
// runs below the one that completed it, and another run completes others.
func explain(list []Method) {
	for i := range list {
		t := &list[i].Total
		explained := slices.ContainsFunc(list, func(m Method) bool {
			return m.Self.Verdict == t.Verdict && math.Abs(m.Self.After-m.Self.Before) >= 0.5*math.Abs(t.After-t.Before)
		})
		if t.Moved() && !explained {
			t.Verdict = Unclear
		}
	}
}

// compareOne judges one sum: per request by its routes, else as a total. It is that of the method
// hidden with what it calls, of which stacks may hide a part, unless that is -1. doubted says that
// what they hide may be all that moved.
func compareOne(a, b *costs, x, y *sum, hidden int, routes []string, perRequest bool, limit float64) (f Figure, list []Route, doubted bool) {
	if x == nil {
		x = &sum{}
	}
	if y == nil {
		y = &sum{}
	}
	if !perRequest {
		sigma := math.Hypot(totalNoise(x, a.all), totalNoise(y, b.all))
		f = Judge(x.time/1e6, y.time/1e6, sigma/1e6, limit)
		if hidden >= 0 {
			before, after := hides(a, b, hidden, "", 1, 1)
			doubted = f.doubt(before, after, sigma/1e6, limit)
		}
		return f, nil, doubted
	}
	na, nb := float64(a.trace.Requests.Len()), float64(b.trace.Requests.Len())
	// The cost of an average request, by all samples; its noise is that of the routes.
	var variance, toldA, toldB float64
	verdict, z := Unclear, 0.0
	meansA, meansB := a.routeMeans(x), b.routeMeans(y)
	for _, r := range routes {
		ma, mb := meansA[r], meansB[r]
		allA, allB := a.work[r]/float64(a.count[r]), b.work[r]/float64(b.count[r])
		sigma := math.Hypot(noise(ma, allA), noise(mb, allB))
		share := (float64(a.count[r])/na + float64(b.count[r])/nb) / 2
		variance += share * share * sigma * sigma
		toldA += share * ma.value
		toldB += share * mb.value
		f := Judge(ma.value/1e6, mb.value/1e6, sigma/1e6, limit)
		if hidden >= 0 {
			before, after := hides(a, b, hidden, r, float64(a.count[r]), float64(b.count[r]))
			doubted = f.doubt(before, after, sigma/1e6, limit) || doubted
		}
		if f.Before > 0 || f.After > 0 {
			list = append(list, Route{r, f})
		}
		if f.Verdict != Unclear && math.Abs(f.z) > math.Abs(z) {
			verdict, z = f.Verdict, f.z
		}
	}
	restA, restB := max(0, x.time/na-toldA), max(0, y.time/nb-toldB)
	variance += math.Pow(otherMix(a, b, union(meansA, meansB), func(c *costs, route string) float64 {
		if c == a {
			return meansA[route].value
		}
		return meansB[route].value
	}), 2)
	variance += math.Pow(restNoise(a, b, na*restA, nb*restB, &x.rest, &y.rest), 2)
	if x.time > 0 {
		variance += x.squares / (na * na)
	}
	if y.time > 0 {
		variance += y.squares / (nb * nb)
	}
	f = Judge(x.time/na/1e6, y.time/nb/1e6, math.Sqrt(variance)/1e6, limit)
	d, more := f.After-f.Before, 0.0
	if hidden >= 0 {
		before, after := hides(a, b, hidden, "", na, nb)
		more = after - before
		doubted = f.doubt(before, after, math.Sqrt(variance)/1e6, limit) || doubted
	}
	// What moved in one route moved on the whole, unless other routes may have made up for it.
	enough := func(d float64) bool {
		return (verdict == More) == (d > 0) && math.Abs(d) >= max(smallest*f.Before, 1.64*math.Sqrt(variance)/1e6)
	}
	if verdict != Unclear && enough(d) {
		if enough(d + more) {
			f.Verdict, f.z = verdict, z
		} else {
			doubted = true
		}
	}
	text.SortRows(list, func(p, q *Route) int { return cmp.Compare(math.Abs(q.z), math.Abs(p.z)) })
	return f, list, doubted
}

// totalNoise is the standard error of a total: samples are counts, and those of one thread
// come in runs.
func totalNoise(s *sum, all float64) float64 {
	return math.Hypot(1.5*math.Sqrt(s.squares), RunNoise(s.time, all))
}
