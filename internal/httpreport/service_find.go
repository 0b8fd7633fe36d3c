package httpreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

// What makes a finding.
const (
	// A pool that starves: threads were added since nothing was dequeued for half a second,
	// or so many since workers block that the pool grew far beyond its size, while served
	// requests spend much of their time waiting on a thread.
	starvedThreads = 3
	blockedThreads = 20
	blockedGrowth  = 6  // times the first goal
	blockedShare   = 30 // %

	// A convoy: many waits for one lock, much of the time of requests in them, and most of it in a
	// queue: others wait for the lock, too, so that who gets it is not the last. Threads that meet at
	// a lock now and then wait for its owner only.
	convoyWaits = 20
	convoyShare = 5  // %
	convoyQueue = 50 // % of the time that was waited

	// An exhausted pool of connections: many requests wait until another one gives its back.
	exhaustedRequests = 20
	exhaustedShare    = 15 // % of the requests, and of their time

	// An outlier is far above the median, and long for anybody.
	outlierTimes = 4
	outlierMin   = int64(50e6)
	outlierAlone = int64(1e9) // where there are too few for a median
)

// Compiling is told where it is so much of what requests took, percent, and of a time, ns, that a start does not take by
// itself.
const (
	compileShare = 10
	compileLeast = int64(100e6)
)

// Finish tells how the service did.
func (c *ServiceCollector) Finish(source string) *Service {
	from, to := c.In.Resolve(c.end)
	s := &Service{Source: source, From: text.Millis(from), Span: text.Millis(to - from), Findings: []Finding{}}
	s.Client, s.Server = c.client.finish(from, to), c.server.finish(from, to)
	for _, side := range []*Side{s.Client, s.Server} {
		if side != nil {
			s.Figures.MaxConcurrency = max(s.Figures.MaxConcurrency, side.Concurrency)
		}
	}
	s.tells, s.queues = c.tells, c.queues || c.queuedForPool > 0
	f := &s.Figures
	if s.Client != nil {
		c.waitedToOpen()
		n := c.connections()
		if c.net || n.Opened+n.Closed+n.Failed+n.Queued > 0 { // else no event tells of them
			s.Connections = n
			f.ClientQueueMs, f.FailedConnections, f.Opened, f.Closed = &n.QueueMs, count(n.Failed), count(n.Opened), count(n.Closed)
		}
		if n.Requests > 0 {
			f.RequestsEach = &n.Requests
		}
	}
	if to > from {
		f.Rate = round(float64(c.client.all.Requests+c.server.all.Requests) / (float64(to-from) / 1e9))
	}
	if s.queues {
		f.PoolWaitMs = new(text.Millis(c.queuedForPool))
	}
	var pause, worst int64 // no process stands still for the collections of another one
	for _, ns := range c.pause {
		pause, worst = pause+ns, max(worst, ns)
	}
	if s.Server != nil && (c.sampled || c.queues || c.server.wait > 0) {
		f.PoolBlocked = new(percent(c.server.wait, c.server.sum))
	}
	starved, convoyed := c.starvation(s), c.convoys(s)
	if s.tells.any() { // where there are events of one kind only, of the others there may have been none
		f.Starvation, f.ConvoyWaits = count(starved), count(convoyed)
		f.LockWaitMs, f.GCPauseMs, f.GCInRequestsMs = new(text.Millis(c.lockWait)), new(text.Millis(pause)), new(text.Millis(c.gc))
	}
	if s.compiled = c.compiled; s.tells.compiling {
		f.CompileInRequestsMs = new(text.Millis(c.compileTotal))
	}
	c.exhausted(s)
	f.DNSOutliers = c.outliers(s, c.dns, "dns_outlier", "name resolutions", "ask the resolver, or keep connections longer (PooledConnectionLifetime)")
	f.TLSOutliers = c.outliers(s, c.tls, "tls_outlier", "TLS handshakes", "look at the other side, at certificate revocation checks, and at whether connections are kept")
	if ms, whole := text.Millis(worst), text.Millis(to-from); ms > 0.1*whole {
		s.find("gc_pauses", from, to, "collections stopped all threads for %.1f %% of the time: `tracefix gc` tells which and why", 100*ms/whole)
	}
	if share := percent(c.compileTotal, c.server.sum+c.client.sum); share >= compileShare && c.compileTotal >= compileLeast {
		s.find("compiling", from, to, "%d methods were compiled for requests, for %.0f ms, %.0f %% of what these took: `tracefix jit` tells which; ReadyToRun code, or requests that warm up, would spare it",
			c.compiled, text.Millis(c.compileTotal), share)
	}
	f.Findings = len(s.Findings)
	s.hung = len(c.locks.Open())
	c.lacks(s)
	return s
}

func count(n int) *float64 { return new(float64(n)) }

// lacks notes which figures are not known, and which provider tells them.
func (c *ServiceCollector) lacks(s *Service) {
	note := func(missing, what string) { s.Notes = append(s.Notes, missing+": "+what+".") }
	if s.Server != nil && !slices.ContainsFunc(s.Server.Routes, func(g Group) bool { return g.told > 0 }) {
		note(httpphases.ProviderBridge, "no other event tells the status of what was served, so errors among that are not known but for unhandled exceptions")
	}
	if s.Server == nil && s.Client == nil {
		return
	}
	if !s.tells.any() {
		note(collect.RuntimeCauses, "collections, locks and the size of the thread pool are not recorded")
	} else if names, keywords := s.tells.lacks(); len(names) > 0 {
		note(fmt.Sprintf("%s:0x%X:4", nettrace.ProviderRuntime, keywords), "there are no events of "+strings.Join(names, " and ")+", so that was not recorded, or nothing happened")
	}
	if s.Server != nil && !c.sampled {
		note(nettrace.ProviderSampler, "what threads ran, and what they waited for, is not recorded")
	}
	if !s.queues {
		note(collect.TaskCauses, "how long work of requests was queued for a thread of the pool is not recorded")
	}
}

func (s *Service) find(kind string, from, to int64, format string, args ...any) {
	s.Findings = append(s.Findings, Finding{Kind: kind, Text: fmt.Sprintf(format, args...), From: text.Millis(from), To: text.Millis(to)})
}

func (c *ServiceCollector) connections() *Connections {
	opened, closed := &c.events[0], &c.events[1]
	n := &Connections{Opened: c.opened, Closed: closed.of(c.conns), Failed: c.attempts, Queued: len(c.queued)}
	if c.All {
		n.Opened, n.Closed = max(n.Opened, opened.n), closed.n
	}
	served := 0
	for _, k := range c.conns {
		served += k
	}
	if len(c.conns) > 0 {
		n.Requests = round(float64(served) / float64(len(c.conns)))
	}
	queued := int64(0)
	for _, w := range c.queued {
		queued += w.to - w.from
	}
	n.QueueMs = text.Millis(queued)
	return n
}

// adjustments returns those for a reason that are in the part of the trace that is reported.
func (c *ServiceCollector) adjustments(p *runtimeevents.PoolProcess, reason runtimeevents.AdjustmentReason) (list []runtimeevents.Adjustment) {
	for _, a := range p.Reason(reason) {
		if c.In.Contains(a.Time) {
			list = append(list, a)
		}
	}
	return list
}

// starvation looks at why the pool added threads, and counts how often it did.
func (c *ServiceCollector) starvation(s *Service) (n int) {
	share := percent(c.server.wait, c.server.sum)
	for _, p := range c.pool.Processes() {
		starved, blocked := c.adjustments(p, runtimeevents.Starvation), c.adjustments(p, runtimeevents.CooperativeBlocking)
		n += len(starved) + len(blocked)
		all := append(slices.Clone(starved), blocked...)
		if len(all) == 0 || len(p.Adjustments) == 0 {
			continue
		}
		text.SortRows(all, func(a, b *runtimeevents.Adjustment) int { return cmp.Compare(a.Time, b.Time) })
		first, most := p.Adjustments[0].Workers, uint32(0)
		for _, a := range all {
			most = max(most, a.Workers)
		}
		grew := len(blocked) >= blockedThreads && most >= blockedGrowth*max(first, 1)
		if len(starved) < starvedThreads && !grew {
			continue
		}
		waits := c.server.wait > 0
		if waits && share < blockedShare && len(starved) < starvedThreads {
			continue
		}
		why := "its threads block in Task.Wait or Task.Result (sync over async)"
		if len(starved) >= len(blocked) {
			why = "nothing takes work for half a second, since its threads block (Thread.Sleep, events, locks, synchronous I/O) or compute for as long"
		}
		more := ""
		if waits {
			more = fmt.Sprintf("; served requests spent %.0f %% of their time waiting on a thread", share)
		}
		if c.queuedForPool > 0 {
			more += fmt.Sprintf("; work of requests stood %.0f ms in its queue", text.Millis(c.queuedForPool))
		}
		s.find("thread_pool_starvation", all[0].Time, all[len(all)-1].Time,
			"the thread pool starves: %s, and it wanted up to %d threads, %d at first%s. `tracefix http --explain` shows the stacks that block; await instead of waiting there",
			why, most, first, more)
	}
	return n
}

// convoys looks for locks at which many wait, and counts these waits.
func (c *ServiceCollector) convoys(s *Service) (waits int) {
	whole, what := cmp.Or(c.server.passed, c.client.passed), "the time of requests"
	if whole == 0 {
		from, to := c.In.Resolve(c.end)
		whole, what = to-from, "the time that passed"
	}
	var list []*lock
	for _, l := range c.byLock {
		if l.edges.Len()/2 >= convoyWaits && percent(l.sum, whole) >= convoyShare && percent(l.queued(), l.sum) >= convoyQueue {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *lock) int { return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.first, b.first)) })
	for _, l := range list {
		n := l.edges.Len() / 2
		waits += n
		s.find("lock_convoy", l.first, l.last,
			"a convoy at one lock: threads waited for it %d times, %.0f ms in all, %.0f %% of %s, most of it in a queue. `tracefix locks` tells who holds it; do less inside it, or split it",
			n, text.Millis(l.sum), percent(l.sum, whole), what)
	}
	return waits
}

// waitedToOpen takes from the waits the time until a connection of HTTP/2 or 3 was opened, for which
// many wait at once: nobody gave them back anything. It drops those that were little else.
func (c *ServiceCollector) waitedToOpen() {
	list := c.queued[:0]
	for _, w := range c.queued {
		if at := c.openedAt[w.on]; w.streams && w.from < at {
			if w.to-at < at-w.from {
				continue
			}
			w.from = at
		}
		list = append(list, w)
	}
	c.queued = list
}

// exhausted looks at requests that wait for a connection.
func (c *ServiceCollector) exhausted(s *Service) {
	type host struct {
		n, streams  int
		sum         int64
		first, last int64
	}
	hosts := map[string]*host{}
	var names []string
	for _, w := range c.queued {
		h := hosts[w.what]
		if h == nil {
			h = &host{first: w.from}
			hosts[w.what] = h
			names = append(names, w.what)
		}
		h.n++
		if w.streams {
			h.streams++
		}
		h.sum += w.to - w.from
		h.first, h.last = min(h.first, w.from), max(h.last, w.to)
	}
	slices.Sort(names)
	for _, name := range names {
		h, g := hosts[name], c.client.hosts.index[name]
		if g == nil || h.n < exhaustedRequests || percent(int64(h.n), int64(g.Requests)) < exhaustedShare || percent(h.sum, g.sum) < exhaustedShare {
			continue
		}
		what, gave, advice := "connections", "connection", "Raise MaxConnectionsPerServer, use HTTP/2"
		if 2*h.streams > h.n {
			what, gave, advice = "streams of the HTTP/2 connections", "stream", "Set EnableMultipleHttp2Connections, raise the limit of streams of the server"
		}
		s.find("client_pool_exhausted", h.first, h.last,
			"all %s to %s are in use: %d of %d requests waited until another one gave its %s back, %.0f ms in all, %.0f %% of their time. %s, or send fewer at once",
			what, name, h.n, g.Requests, gave, text.Millis(h.sum), percent(h.sum, g.sum), advice)
	}
}

// outliers counts what took far longer than usual.
func (c *ServiceCollector) outliers(s *Service, list []wait, kind, what, advice string) (n int) {
	if len(list) == 0 {
		return 0
	}
	lengths := make([]int64, len(list))
	for i, w := range list {
		lengths[i] = w.to - w.from
	}
	slices.Sort(lengths)
	median := lengths[(len(lengths)-1)/2]
	limit := max(outlierMin, outlierTimes*median)
	if len(list) < 4 {
		limit = outlierAlone
	}
	var longest wait
	first, last := c.end, int64(0)
	for _, w := range list {
		if d := w.to - w.from; d >= limit {
			n++
			if d > longest.to-longest.from {
				longest = w
			}
			first, last = min(first, w.from), max(last, w.to)
		}
	}
	if n > 0 {
		s.find(kind, first, last, "%d of %d %s took %.0f ms or more, half of them %.1f ms at most; the longest %.0f ms, for %s: %s",
			n, len(list), what, text.Millis(limit), text.Millis(median), text.Millis(longest.to-longest.from), longest.what, advice)
	}
	return n
}
