package httpreport

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A ServiceCollector gathers a Service. It is a consumer of the events of a trace, for what the
// runtime tells; requests come after that, explained or not.
type ServiceCollector struct {
	client, server side
	// All says that no request was left out, so that what connections did counts without their requests.
	All bool
	// In is the part of the trace that is told of. What was under way at its ends counts with the
	// part inside. Requests that lie outside are not handed in.
	In interval.Interval
	// Wanted says which processes the events of the runtime and of connections are wanted of; nil: all.
	Wanted func(pid int) bool
	// Spool takes the numbers for which its memory has no room; nil: none. What is told is not to
	// be believed if it has an error.
	Spool *profile.Spool

	reader   *nettrace.Reader
	locks    runtimeevents.Contentions
	pool     runtimeevents.Pool
	pauses   runtimeevents.Suspensions
	byLock   map[lockKey]*lock
	lockWait int64
	pause    map[int]int64 // by process
	end      int64         // of the trace

	http          httpphases.Decoder
	conns         map[connKey]int     // requests of each connection
	openedAt      map[connKey]int64   // when the first request left the queue for a connection of HTTP/2 or 3
	opened        int                 // by requests
	events        [2]connectionEvents // Established, Closed
	attempts      int                 // that failed
	queued        []wait
	dns, tls      []wait
	gc            int64 // in requests
	queuedForPool int64 // work of requests
	compiled      int   // methods for requests
	compileTotal  int64 // ns
	lost          bool  // events were
	tells         runtimeTells
	net           bool // has events
	sampled       bool // threads were seen, or tell what they wait for
	queues        bool // events tell when work is queued for the pool, and taken
}

// A connKey names a connection: each process counts its own.
type connKey struct{ process, id int64 }

type lockKey struct {
	process int
	id      uint64
}

// A lock is what is known of the waits for one.
type lock struct {
	sum         int64
	first, last int64
	edges       edges // starts and ends of waits
}

// queued returns for how much of the time that was waited another one waited, too, ns.
func (l *lock) queued() (ns int64) {
	waiting, last := int64(0), int64(0)
	for at, delta := range l.edges.all {
		if waiting > 1 {
			ns += waiting * (at - last)
		}
		waiting, last = waiting+int64(delta), at
	}
	return ns
}

// A wait is a stretch of time of a request.
type wait struct {
	from, to int64
	what     string
	on       connKey // of a wait for a connection: which it was
	streams  bool    // that it carries many requests at once: what is waited for is a stream
}

// Events that tell of the queue of the thread pool, of TplEventSource and FrameworkEventSource.
const (
	taskScheduled = 7
	workDequeued  = 31
)

// runtimeTells are the things of which there are events of the runtime: each has a keyword of its own.
type runtimeTells struct{ collections, locks, pool, compiling bool }

func (t *runtimeTells) see(id int) {
	switch id {
	case runtimeevents.IDGCStart, runtimeevents.IDGCEnd, runtimeevents.IDSuspendEEBegin, runtimeevents.IDRestartEEBegin:
		t.collections = true
	case runtimeevents.IDContentionStart, runtimeevents.IDContentionStop:
		t.locks = true
	case runtimeevents.IDWorkerStart, runtimeevents.IDWorkerStop, runtimeevents.IDWorkerWait, runtimeevents.IDAdjustment, runtimeevents.IDMinMaxThreads:
		t.pool = true
	case runtimeevents.IDMethodJittingStarted:
		t.compiling = true
	}
}

func (t runtimeTells) any() bool { return t.collections || t.locks || t.pool }

// lacks names what there are no events of, and the keywords that would have them.
func (t runtimeTells) lacks() (names []string, keywords uint64) {
	for _, x := range []struct {
		told    bool
		name    string
		keyword uint64
	}{{t.collections, "collections", 0x1}, {t.locks, "locks", 0x4000}, {t.pool, "the size of the thread pool", 0x10000}} {
		if !x.told {
			names = append(names, x.name)
			keywords |= x.keyword
		}
	}
	return names, keywords
}

// Begin takes the reader.
func (c *ServiceCollector) Begin(r *nettrace.Reader) { c.reader = r }

// Event takes an event.
func (c *ServiceCollector) Event(ev *nettrace.Event) error {
	if c.Wanted != nil && !c.Wanted(ev.ProcessID) {
		return nil
	}
	c.lost = c.lost || ev.Lost > 0
	switch ev.Metadata.Role {
	case nettrace.RoleSample, nettrace.RoleCPU, nettrace.RoleContextSwitch:
		c.sampled = true
		return nil
	}
	if ev.Lost > 0 && ev.Metadata.Provider != nettrace.ProviderRuntime { // what was lost may be the runtime's
		c.locks.Event(ev, 0, 0)
		c.pauses.Event(ev, 0)
	}
	ns := c.reader.Nanos(ev.Time)
	switch ev.Metadata.Provider {
	case nettrace.ProviderRuntime:
		c.tells.see(ev.Metadata.EventID)
	case nettrace.ProviderFramework:
		c.queues = c.queues || ev.Metadata.EventID == workDequeued
	case nettrace.ProviderTasks:
		c.queues = c.queues || ev.Metadata.EventID == taskScheduled
		return nil
	case httpphases.ProviderHTTP:
		c.net = true
		if c.In.Contains(ns) {
			c.connection(ev)
		}
		return nil
	default:
		return nil
	}
	c.end = max(c.end, ns)
	if l := c.locks.Event(ev, ns, 0); l != nil && l.Wait() > 0 {
		c.contention(l)
	}
	c.pool.Event(ev, ns, 0)
	if s := c.pauses.Event(ev, ns); s != nil && s.ForGC() {
		if c.pause == nil {
			c.pause = map[int]int64{}
		}
		c.pause[s.Process] += c.In.Part(s.Start, s.Start+s.Pause())
	}
	return nil
}

// End does nothing.
func (c *ServiceCollector) End() {}

// connectionEvents are events of one kind about connections.
type connectionEvents struct {
	n   int
	ids []connKey // of their connections, which have some since .NET 8
}

// of returns how many are of connections that requests used.
func (e *connectionEvents) of(conns map[connKey]int) (n int) {
	for _, id := range e.ids {
		if conns[id] > 0 {
			n++
		}
	}
	return n
}

// connection counts the connections that are opened and closed.
func (c *ServiceCollector) connection(ev *nettrace.Event) {
	m := ev.Metadata
	kind := httpphases.Kind(m.EventID)
	if kind != httpphases.ConnectionEstablished && kind != httpphases.ConnectionClosed {
		return
	}
	var e httpphases.Event
	if c.http.Decode(&e, m.Provider, m.EventID, ev.Version, m.Name, ev.Opcode, ev.Payload) {
		of := &c.events[kind-httpphases.ConnectionEstablished]
		of.n++
		if e.HasConn {
			of.ids = append(of.ids, connKey{int64(ev.ProcessID), e.Conn})
		}
	}
}

func (c *ServiceCollector) contention(l *runtimeevents.Contention) {
	from, to := c.In.Clip(l.Start, l.Stop)
	ns := l.Wait()
	if from != l.Start || to != l.Stop {
		if ns = to - from; ns == 0 {
			return
		}
	}
	c.lockWait += ns
	k := lockKey{l.Process, cmp.Or(l.Lock, l.Object)}
	if k.id == 0 {
		return // before .NET 8 nothing tells which lock it was, nor whether it is that of another wait
	}
	if c.byLock == nil {
		c.byLock = map[lockKey]*lock{}
	}
	x := c.byLock[k]
	if x == nil {
		x = &lock{first: from}
		x.edges.Spool = c.Spool
		c.byLock[k] = x
	}
	x.sum += ns
	x.edges.begin(from)
	x.edges.end(to)
	x.last = max(x.last, to)
}

// sliceOf is how long a slice of so long a time is: at most 31 are in it, and a clock can be read by them.
func sliceOf(span int64) int64 {
	for _, s := range [...]time.Duration{1, 2, 5, 10, 20, 60, 2 * 60, 5 * 60, 10 * 60, 20 * 60, 3600, 2 * 3600, 6 * 3600, 12 * 3600} {
		if width := int64(s * time.Second); span/width <= 30 {
			return width
		}
	}
	width := int64(24 * time.Hour)
	for span/width > 30 {
		width *= 2
	}
	return width
}

// Span sets how long the trace is, before the first request.
func (c *ServiceCollector) Span(end int64) {
	c.end = max(c.end, end)
	from, to := c.In.Resolve(c.end)
	width := sliceOf(to - from)
	c.client.width, c.server.width = width, width
	c.client.keep(c.Spool)
	c.server.keep(c.Spool)
	c.client.in, c.server.in = c.In, c.In
	c.conns, c.openedAt = map[connKey]int{}, map[connKey]int64{}
}

// Client adds a request that the process made.
func (c *ServiceCollector) Client(r *httpphases.Request) {
	q := &request{
		start: r.Start, duration: r.Duration, ended: r.HasDuration && r.Outcome != httpphases.Incomplete,
		route: routeTitle(r.Method, httpphases.Route(r.Target)), host: r.Host, status: status(r.Status, r.Outcome),
		failed: r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled, bad: r.Status >= 400, why: r.Why,
		guessed: r.Guessed > 0 && r.Activity == [16]byte{},
	}
	if r.Host != "" && r.Port > 0 {
		q.host += ":" + strconv.Itoa(r.Port)
	}
	if q.route == "" {
		q.route = "(start not recorded)"
	}
	c.client.add(q)
	switch {
	case q.failed:
		c.client.fail(cmp.Or(r.ErrorCause, strings.TrimSpace(firstLine(r.Error)), r.ErrorType, r.Outcome.String()))
	case q.bad:
		c.client.fail("status " + strconv.Itoa(r.Status))
	}
	for i := range r.Tries {
		if r.Tries[i].Code != 0 {
			c.attempts++
		}
	}
	for i := range r.Side {
		for k := range r.Side[i].Phases {
			if r.Side[i].Phases[k].Error != "" {
				c.attempts++
				break
			}
		}
	}
	if x := r.Connection; x != nil {
		if x.HasID {
			c.conns[connKey{int64(r.Process), x.ID}]++
		}
		if x.New {
			c.opened++
		}
	}
	c.phases(r, q.host)
}

func (c *ServiceCollector) phases(r *httpphases.Request, host string) {
	for i := range r.Phases {
		p := &r.Phases[i]
		if p.Open || p.Shared || r.Outcome == httpphases.Canceled && p.Duration < outlierAlone {
			continue // it lasted as long as the caller had patience, which was little
		}
		w := wait{from: p.Start, to: p.End(), what: host}
		switch p.Name {
		case httpphases.DNS:
			c.dns = append(c.dns, w)
		case httpphases.TLS:
			c.tls = append(c.tls, w)
		case httpphases.Queue:
			x := r.Connection
			if x == nil {
				continue
			}
			w.on, w.streams = connKey{int64(r.Process), x.ID}, r.Version >= "2"
			switch {
			case x.Class == httpphases.Returned:
				c.queued = append(c.queued, w)
			case x.New && x.HasID && w.streams:
				c.openedAt[w.on] = w.to
			}
		}
	}
	c.why(r.Why)
}

// Server adds a request that the process served.
func (c *ServiceCollector) Server(r *httpphases.ServerRequest) {
	q := &request{
		start: r.Start, duration: r.Duration, ended: r.Whole(),
		open:  !r.HasDuration && !c.lost,
		route: routeTitle(r.Method, cmp.Or(r.Route, httpphases.Route(r.Target))), host: r.Host, status: status(r.Status, r.Outcome),
		failed: r.Outcome == httpphases.Failed, bad: r.Status >= 400, upgraded: r.Upgraded(), why: r.Why,
		guessed: r.Guessed > 0 && r.Activity == [16]byte{},
	}
	c.server.add(q)
	switch {
	case q.failed:
		c.server.fail(cmp.Or(strings.TrimSpace(firstLine(r.ErrorCause())), "unhandled exception"))
	case q.bad:
		c.server.fail("status " + strconv.Itoa(r.Status))
	}
	c.why(r.Why)
}

// why adds up what the runtime took from a request.
func (c *ServiceCollector) why(w *httpphases.Explanation) {
	if w != nil {
		c.gc += w.Time.GC
		c.queuedForPool += w.PoolTotal
		c.compiled += w.Compiled
		c.compileTotal += w.CompileTotal
	}
}

// routeTitle is the method, where it is told, and the route.
func routeTitle(method, route string) string {
	if method == "" {
		return route
	}
	return method + " " + route
}

// notTold is the status of requests whose answer no event tells.
const notTold = "not told"

func status(code int, o httpphases.Outcome) string {
	if o == httpphases.Failed || o == httpphases.Canceled || code == 0 && o == httpphases.Incomplete {
		return o.String()
	}
	if code == 0 {
		return notTold
	}
	return strconv.Itoa(code)
}
