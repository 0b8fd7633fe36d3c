package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// Measures are what batches are compared by. They add up over traces, and are bounded: the
// hottest methods and most frequent routes have a row, the others share one.
type Measures struct {
	Traces  int        `json:"traces"`          // with samples on a CPU
	CPU     float64    `json:"cpu_ms"`          // of all their samples
	Squares float64    `json:"cpu_ms2"`         // squares of each trace's, added up
	Methods []HotTime  `json:"methods"`         // by self time, the most first
	Routes  []Measured `json:"routes"`          // by number of requests, the most first
	Missed  float64    `json:"methods_missing"` // ms that a method in Methods may lack at most
}

// A HotTime is the self time of a method on a CPU, ms.
type HotTime struct {
	Method  string  `json:"method"`
	Traces  int     `json:"traces"` // that had it among their hottest
	Self    float64 `json:"self_ms"`
	Squares float64 `json:"self_ms2"`   // of each trace's, added up
	Cross   float64 `json:"self_x_cpu"` // of each trace's, times all of its CPU time
}

// Measured are the requests of one route to one host.
type Measured struct {
	Side   string `json:"side"` // client or server
	Host   string `json:"host,omitempty"`
	Route  string `json:"route"`  // method and route
	Count  int    `json:"count"`  // with an outcome
	Errors int    `json:"errors"` // failed, canceled, or answered with a status of 400 and above
	// Durations count the requests that ended, by DurationBin.
	Durations map[int]int `json:"durations"`
}

// Method returns the method of the requests, empty if no event told it.
func (m *Measured) Method() string {
	method, _, ok := strings.Cut(m.Route, " ")
	if !ok || strings.ContainsAny(method, "/(") {
		return ""
	}
	return method
}

const (
	// maxMethods and maxRoutes are the rows of one trace, and of all.
	maxMethods, maxAllMethods = 50, 2000
	maxRoutes, maxAllRoutes   = 100, 1000
	// OtherRoutes is the route of what has no row of its own.
	OtherRoutes = "(other)"
	// binsPerOctave: a bin is 4.4 % wide.
	binsPerOctave = 16
	lastBin       = 40 * binsPerOctave // 13 days
)

// DurationBin returns the bin of a duration in ns: they grow by the same factor, from 1 µs on.
func DurationBin(ns int64) int {
	us := float64(ns) / 1e3
	if us <= 1 {
		return 0
	}
	return min(lastBin, int(math.Log2(us)*binsPerOctave))
}

// binStart returns the duration in ms where a bin begins.
func binStart(bin float64) float64 { return math.Exp2(bin/binsPerOctave) / 1e3 }

// Quantile returns the duration in ms that a share q of n durations lies below; within a bin it
// takes them to lie evenly.
func (m *Measured) Quantile(q float64) float64 {
	bins := make([]int, 0, len(m.Durations))
	n := 0
	for b, k := range m.Durations {
		bins = append(bins, b)
		n += k
	}
	slices.Sort(bins)
	rank := max(0, min(1, q)) * float64(n)
	for _, b := range bins {
		k := float64(m.Durations[b])
		if rank <= k {
			return binStart(float64(b) + rank/k)
		}
		rank -= k
	}
	return 0
}

// Ended is how many requests have a duration.
func (m *Measured) Ended() (n int) {
	for _, k := range m.Durations {
		n += k
	}
	return n
}

// WithoutMethods leaves the methods of requests of one side away.
func (m *Measures) WithoutMethods(side string) *Measures {
	var sum Measurer
	for i := range m.Routes {
		r := &m.Routes[i]
		k := routeKey{r.Side, r.Host, r.Route}
		if method := r.Method(); r.Side == side && method != "" {
			k.route = r.Route[len(method)+1:]
		}
		sum.route(k).add(r)
	}
	out := *m
	out.Routes = sum.measures(0, maxAllRoutes).Routes
	return &out
}

// A Measurer adds measures up. The zero value is empty.
type Measurer struct {
	sum     Measures
	methods map[string]*HotTime
	routes  map[routeKey]*Measured
}

type routeKey struct{ side, host, route string }

// Hot adds the methods of a trace: their self time by name, and all CPU time, ms.
func (m *Measurer) Hot(self map[string]float64, cpu float64) {
	if cpu <= 0 {
		return
	}
	one := Measures{Traces: 1, CPU: cpu, Squares: cpu * cpu}
	for name, ms := range self {
		one.Methods = append(one.Methods, HotTime{strings.ToValidUTF8(name, "\uFFFD"), 1, ms, ms * ms, ms * cpu})
	}
	one.Methods = hottest(one.Methods, maxMethods, &one.Missed)
	m.Add(&one)
}

// Request adds one request; ns is negative where its duration is not known.
func (m *Measurer) Request(side, host, route string, failed bool, ns int64) {
	r := m.route(routeKey{side, host, route})
	r.Count++
	if failed {
		r.Errors++
	}
	if ns >= 0 {
		r.Durations[DurationBin(ns)]++
	}
}

// route returns the row of a route, or that of others where there are too many.
func (m *Measurer) route(k routeKey) *Measured {
	if m.routes == nil {
		m.routes = map[routeKey]*Measured{}
	}
	r := m.routes[k]
	if r == nil && len(m.routes) >= 2*maxAllRoutes {
		k = routeKey{k.side, "", OtherRoutes}
		r = m.routes[k]
	}
	if r == nil {
		r = &Measured{Side: k.side, Host: strings.ToValidUTF8(k.host, "\uFFFD"), Route: strings.ToValidUTF8(k.route, "\uFFFD"), Durations: map[int]int{}}
		m.routes[k] = r
	}
	return r
}

func (r *Measured) add(o *Measured) {
	r.Count += o.Count
	r.Errors += o.Errors
	for b, n := range o.Durations {
		r.Durations[b] += n
	}
}

// Add adds what others add up to; nil is nothing.
func (m *Measurer) Add(o *Measures) {
	if o == nil {
		return
	}
	s := &m.sum
	s.Traces, s.CPU, s.Squares, s.Missed = s.Traces+o.Traces, s.CPU+o.CPU, s.Squares+o.Squares, s.Missed+o.Missed
	if m.methods == nil {
		m.methods = map[string]*HotTime{}
	}
	for _, h := range o.Methods {
		t := m.methods[h.Method]
		if t == nil {
			t = &HotTime{Method: h.Method}
			m.methods[h.Method] = t
		}
		t.Traces, t.Self, t.Squares, t.Cross = t.Traces+h.Traces, t.Self+h.Self, t.Squares+h.Squares, t.Cross+h.Cross
	}
	if len(m.methods) > 2*maxAllMethods {
		list := m.hot(maxAllMethods)
		clear(m.methods)
		for i := range list {
			m.methods[list[i].Method] = &list[i]
		}
	}
	for i := range o.Routes {
		r := &o.Routes[i]
		m.route(routeKey{r.Side, r.Host, r.Route}).add(r)
	}
}

func (m *Measurer) hot(most int) []HotTime {
	list := make([]HotTime, 0, len(m.methods))
	for _, t := range m.methods {
		list = append(list, *t)
	}
	return hottest(list, most, &m.sum.Missed)
}

// hottest keeps the methods with the most self time, and adds to missed what one may lack for it.
func hottest(list []HotTime, most int, missed *float64) []HotTime {
	text.SortRows(list, func(a, b *HotTime) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(a.Method, b.Method))
	})
	if len(list) > most {
		*missed += list[most].Self
		list = list[:most]
	}
	return list
}

// One returns the measures of one trace; nil if it has none.
func (m *Measurer) One() *Measures { return m.measures(maxMethods, maxRoutes) }

// All returns the measures of many traces; nil if they have none.
func (m *Measurer) All() *Measures { return m.measures(maxAllMethods, maxAllRoutes) }

func (m *Measurer) measures(methods, routes int) *Measures {
	if m.sum.Traces == 0 && len(m.routes) == 0 {
		return nil
	}
	out := m.sum
	out.Methods = m.hot(methods)
	out.Missed = m.sum.Missed
	list := make([]Measured, 0, len(m.routes))
	for _, r := range m.routes {
		list = append(list, *r)
	}
	text.SortRows(list, func(a, b *Measured) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Side, b.Side), strings.Compare(a.Host, b.Host), strings.Compare(a.Route, b.Route))
	})
	out.Routes = list
	if len(list) > routes {
		var rest Measurer
		for i := range list[routes:] {
			r := &list[routes+i]
			rest.route(routeKey{r.Side, "", OtherRoutes}).add(r)
		}
		out.Routes = list[:routes:routes]
		for _, side := range []string{"client", "server"} {
			if r := rest.routes[routeKey{side, "", OtherRoutes}]; r != nil {
				out.Routes = append(out.Routes, *r)
			}
		}
	}
	return &out
}
