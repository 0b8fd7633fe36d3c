package httpphases

import (
	"slices"
	"strings"
)

// row makes the Request of r as it stands: phases by http-events.md section 8.
func (b *Builder) row(r *request) *Request {
	w := rowWriter{b: b, r: r, limit: r.stop, known: true}
	if !r.stopped {
		// At the end of a whole trace what is open has lasted until then. Where events
		// were lost nobody knows how long.
		w.limit, w.known = b.now, !b.lossy && !r.lost
	}
	q := &Request{
		ID: r.id, Activity: r.guid, Path: slices.Clone(r.path), Process: r.process, Thread: r.thread,
		Method: r.method, Start: r.start, StartEvent: r.start, StartUnknown: r.headless, Took: r.took, SpanOnly: r.bridged && r.hop().last() == nil,
		VersionRequested: versionText(r.major, r.minor), RequestBytes: -1,
		TraceID: r.traceID, SpanID: r.spanID, ParentSpanID: r.parentSpanID, Spans: r.spans, Server: r.server,
	}
	switch {
	case r.bridged:
		q.StartEvent = r.told
	case r.headless:
		q.StartEvent = 0
	}
	first := &r.hops[0]
	q.Scheme, q.Host, q.Port, q.Target = first.at.scheme, first.at.host, first.at.port, first.at.target
	if r.headless {
		if x := first.last(); x != nil && x.conn != nil && x.conn.host != "" && x.conn.scheme == "https" {
			q.Scheme, q.Host, q.Port = x.conn.scheme, x.conn.host, x.conn.port
		}
	}
	w.out = q
	for i := range r.hops {
		w.hop(i)
	}
	if r.body.begun() {
		w.body()
	}
	w.check()
	w.tidy(&q.Phases, r.hop().start)
	if n := len(r.hops) - 1; n > 0 {
		hops := make([]Phase, 0, n+len(q.Phases))
		for i := range r.hops[:n] {
			h := &r.hops[i]
			hops = append(hops, Phase{Name: RedirectHop, Start: h.start, Duration: h.toAt - h.start})
		}
		q.Phases = append(hops, q.Phases...)
	}
	w.outcome()
	w.side()
	q.Guessed, q.Missing = r.guesses, r.missing
	if r.rival && q.Guessed == 0 {
		q.Guessed = 1 // what is left for it is guessed, too
	}
	return q
}

type rowWriter struct {
	b     *Builder
	r     *request
	out   *Request
	limit int64 // end of the request
	known bool  // limit is the end of what is open

	served  []*attempt // that gave phases to the row
	phases  []Phase    // of the hop
	blamed  bool       // a phase has the failure's text
	version string
}

// add appends a phase that ends at end, or is open.
func (w *rowWriter) add(n PhaseName, start, end int64) *Phase {
	p := Phase{Name: n, Start: start, Duration: end - start}
	if end == never {
		p.Open, p.Duration = true, 0
	}
	w.phases = append(w.phases, p)
	return &w.phases[len(w.phases)-1]
}

// until closes what was still going on when the request failed, ended or the trace
// did: it ends at bound, with the failure's text if there was one.
func (w *rowWriter) until(n PhaseName, start, bound int64, last bool) {
	r := w.r
	switch {
	case last && r.failed:
		p := w.add(n, start, max(min(bound, r.failAt), start))
		p.Error, w.blamed = w.failText(), true
		if w.b.doubt(start, r.failAt) {
			// What came between may be lost.
			r.miss("events before the failure")
			p.Inferred = true
		}
	case last && !r.stopped:
		if !w.known {
			w.add(n, start, never)
			return
		}
		w.add(n, start, max(bound, start))
	default:
		p := w.add(n, start, max(bound, start))
		p.Inferred = true
	}
}

func (w *rowWriter) failText() string {
	if w.r.failText != "" || w.r.bridged {
		return w.r.failText
	}
	return "failed"
}

// hop makes the phases of hop i.
func (w *rowWriter) hop(i int) {
	r := w.r
	h := &r.hops[i]
	last := i == len(r.hops)-1
	end := w.limit
	if !last {
		end = h.toAt
	}
	var beside []exchange
	if !w.b.lossy {
		beside = h.decide()
	}
	w.phases = make([]Phase, 0, 4+2*len(h.queues)+len(h.ex))
	w.version = ""
	for _, q := range h.queues {
		if q.end <= end {
			w.add(Queue, max(q.start, h.start), q.end)
		}
	}
	conn := w.exchanges(h, end, last)
	for k := range beside {
		x := &beside[k]
		x.leave(r)
		if last {
			w.earlier(x)
		}
	}
	if len(h.ex) == 0 {
		w.unserved(h, end, last)
	} else {
		w.version = w.httpVersion(h)
	}
	if last {
		w.out.Phases, w.out.Connection, w.out.Version = w.phases, conn, w.version
		return
	}
	w.tidyHop(h.start, h.toAt)
	w.redirect(i, conn)
}

// exchanges makes the phases of the exchanges of h, which ends at end, and returns the connection of the last one.
func (w *rowWriter) exchanges(h *hop, end int64, last bool) *Connection {
	r := w.r
	var conn *Connection
	from := h.start
	for k := range h.ex {
		x := &h.ex[k]
		lastEx := k == len(h.ex)-1
		if w.first(x) && x.attempt != nil {
			w.attempt(x.attempt, from, x.headers.start, x.attempt.owner != r)
		}
		bound := h.until(k, end, r)
		if !lastEx && w.b.lossy && x.hasStatus && x.status >= 300 && x.status <= 308 && x.status != 304 {
			r.miss("a redirect") // else a handler followed it
		}
		n := len(w.phases)
		w.exchange(h, x, bound, last && lastEx)
		if !lastEx && !w.b.lossy {
			w.cut(n, bound)
		}
		if last && !lastEx {
			w.earlier(x)
		}
		from = bound
		if conn == nil || conn.ID != x.connID || !x.hasConn {
			conn = w.connection(h, k)
		} else if n := w.connection(h, k); n != nil {
			// A challenge or retry on the same connection: new stays new.
			n.New, n.NewTold, n.Class = conn.New, conn.NewTold, conn.Class
			conn = n
		}
		if x.length >= 0 && last {
			w.out.RequestBytes = x.length
		}
	}
	return conn
}

// until returns when exchange k of h, a hop of r that ends at end, is over at the latest: the next one begins, or
// what leads to that.
func (h *hop) until(k int, end int64, r *request) int64 {
	if k == len(h.ex)-1 {
		return end
	}
	begun, next := h.ex[k].headers.start, &h.ex[k+1]
	bound := next.headers.start
	if a := next.attempt; a != nil && a.owner == r && a.began >= begun {
		bound = min(bound, a.began) // .NET 5 has no queue before it
	}
	for _, q := range h.queues {
		if q.start >= begun && q.start < bound {
			bound = q.start
		}
	}
	return bound
}

// earlier notes x, whose answer does not count, if it was sent.
func (w *rowWriter) earlier(x *exchange) {
	if x.hasConn && x.headers.closed() {
		w.out.Earlier = append(w.out.Earlier, x.out())
	}
}

// redirect adds hop i, whose phases are made.
func (w *rowWriter) redirect(i int, conn *Connection) {
	h := &w.r.hops[i]
	d := Redirect{
		From: joinURL(h.at.scheme, h.at.host, h.at.port, h.at.target), Start: h.start, Duration: h.toAt - h.start,
		Version: w.version, Connection: conn, Phases: w.phases,
	}
	if h.to != "" {
		next := &w.r.hops[i+1].at
		if d.URL = joinURL(next.scheme, next.host, next.port, next.target); next.target == "" {
			d.URL = h.to
		}
	}
	if x := h.last(); x != nil && x.hasStatus {
		d.Status = int(x.status)
	}
	w.out.Redirects = append(w.out.Redirects, d)
}

// unserved makes the phases of a hop that never got a connection: those of its own
// attempt.
func (w *rowWriter) unserved(h *hop, end int64, last bool) {
	r := w.r
	if !last {
		return
	}
	until := end
	if r.failed && r.failAt < until {
		until = r.failAt
	}
	if n := len(h.queues); n > 0 {
		until = min(until, h.queues[n-1].end)
	}
	var best *attempt
	for _, a := range r.attempts {
		if a.began < h.start || a.began > until || a.conn != nil && a.conn.used {
			continue
		}
		if best == nil || a.failed() || !best.failed() {
			best = a
		}
	}
	if best != nil {
		w.attempt(best, h.start, until, false)
	}
	if r.failed && !w.blamed {
		for i := range w.phases {
			if w.phases[i].Error != "" {
				w.blamed = true
			}
		}
		if n := len(h.queues); n > 0 && !w.blamed {
			w.phases[n-1].Error, w.blamed = w.failText(), true
		}
	}
}

// attempt adds the phases of a connection attempt, clipped to from and to.
func (w *rowWriter) attempt(a *attempt, from, to int64, shared bool) {
	w.served = append(w.served, a)
	clip := func(n PhaseName, v interval, err string) {
		end := v.end
		open := v.open()
		if open && v.failed {
			// The failure is there, its stop, which follows at once, is not.
			end, open, v.inferred = v.failedAt, false, true
			w.r.miss("a stop of " + n.String())
		}
		if open {
			end = to
			// A step of an attempt that went on has lost its end.
			if a.conn != nil && a.conn.at != never || a.after(n) || w.b.doubt(v.start, to) {
				w.r.miss("a stop of " + n.String())
				return
			}
		}
		start := max(v.start, from)
		end = min(end, to)
		if v.start == never || start > end || start == end && v.start < from {
			return
		}
		if open && !w.r.stopped && !w.known {
			end = never
		}
		p := w.add(n, start, end)
		p.Shared, p.Inferred = shared, v.inferred
		switch {
		case v.failed:
			p.Error = err
			if p.Error == "" {
				p.Error = w.failText()
			}
		case open && w.r.failed:
			p.Error = w.failText()
		}
	}
	for _, d := range a.dns {
		clip(DNS, d, d.err)
	}
	if n := len(a.tries); n > 0 {
		last := a.tries[n-1]
		v := last.interval
		v.start = a.tries[0].start
		clip(Connect, v, v.err)
		for _, t := range a.tries {
			p := Phase{Name: Connect, Start: t.start, Duration: t.end - t.start, Error: t.err}
			if t.end == never {
				p.Open, p.Duration = true, 0
			}
			w.out.Tries = append(w.out.Tries, Try{Phase: p, Address: t.address, Code: int(t.code)})
		}
	}
	if a.tunnel.begun() {
		v := a.tunnel
		if len(a.proxyTLS) > 0 {
			v.start = min(v.start, a.proxyTLS[0].start)
		}
		if a.tunnelStatus == 407 && a.conn == nil && w.r.failed && !v.open() {
			v.failed, v.err = true, proxyAnswered(407) // nobody had credentials
		}
		clip(Proxy, v, v.err)
	}
	for _, t := range a.tls {
		clip(TLS, t.interval, t.err)
	}
}

// after reports whether the attempt went on behind a step.
func (a *attempt) after(n PhaseName) bool {
	switch n {
	case DNS:
		return len(a.tries)+len(a.tls) > 0 || a.tunnel.begun()
	case Connect:
		return len(a.tls) > 0 || a.tunnel.begun()
	case Proxy:
		return len(a.tls) > 0
	}
	return false
}

// sentAgain is the error of a try that was given up for another.
const sentAgain = "no answer; sent again"

// exchange adds the phases of one header block of h and its answer. bound is where an
// answer that never came ends.
func (w *rowWriter) exchange(h *hop, x *exchange, bound int64, last bool) {
	if x.headers.start == never {
		return
	}
	w.out.HeadersBy = x.by
	t := trial{rowWriter: w, x: x, bound: bound, last: last, gaveUp: !last && w.b.gaveUp(w.r, x), done: last && w.r.stopped && !w.r.failed}
	if x.headers.open() {
		t.unended(RequestHeaders, x.headers.start, "a stop of request headers")
		return
	}
	w.add(RequestHeaders, x.headers.start, x.headers.end)
	t.one = w.oneAtATime(h, x)
	t.expect = t.one && x.resp.begun() && x.content.begun() && x.resp.start < x.content.start
	sent := x.headers.end
	if t.expect || x.held {
		w.add(Wait, sent, x.content.start)
	}
	if x.content.begun() {
		end, ok := t.contentEnd()
		if !ok {
			t.unended(RequestContent, x.content.start, "a stop of request content")
			return
		}
		w.add(RequestContent, x.content.start, end)
		sent = max(sent, end)
	}
	t.answer(sent)
	if x.resp.end != never {
		w.out.HeadersAt = x.resp.end
	}
}

// A trial is an exchange as it is written into a row.
type trial struct {
	*rowWriter
	x      *exchange
	bound  int64 // where an answer that never came ends
	last   bool
	gaveUp bool // another exchange follows, and a step of this one may have ended without a stop
	done   bool // it is the last one of a request that has its answer
	one    bool // the connection has one exchange at a time
	expect bool // the content was held back until the server said that it wants it
}

// tried adds a phase that ended as the exchange was given up for another.
func (t *trial) tried(n PhaseName, start int64) {
	t.add(n, start, max(t.bound, start)).Error = sentAgain
}

// unended adds a phase of what was sent without the event that ends it, unless that is lost.
func (t *trial) unended(n PhaseName, start int64, lost string) {
	switch {
	case t.gaveUp:
		t.tried(n, start)
	case !t.last || t.done:
		t.r.miss(lost)
	default:
		t.until(n, start, t.bound, true)
	}
}

// contentEnd returns where the content that was sent ended, if that is known.
func (t *trial) contentEnd() (end int64, ok bool) {
	x := t.x
	switch {
	case !x.content.open():
		return x.content.end, true
	case t.done && !t.one && x.resp.closed() && !t.b.lossy:
		return max(t.bound, x.content.start), true // duplex: it goes on behind the answer
	case t.gaveUp && x.resp.closed():
		return max(x.resp.end, x.content.start), true // the answer came before its end
	}
	return 0, false
}

// answer adds the phases behind the last thing sent.
func (t *trial) answer(sent int64) {
	x := t.x
	// A number missing between the last thing sent and the answer: something was
	// sent that is not in the trace.
	gap := t.b.lossy && t.r.skips(max(x.ord[0], x.ord[1])+1, x.ord[2])
	switch {
	case x.resp.end != never && x.resp.start == never, gap:
		// The start of the answer is lost: how long was waited for it, too.
	case t.one && !t.expect && x.resp.closed():
		t.add(Wait, sent, x.resp.start)
		t.add(ResponseHeaders, x.resp.start, x.resp.end)
	case t.one && !t.expect && x.resp.open():
		t.add(Wait, sent, x.resp.start)
		if t.done {
			t.r.miss("a stop of response headers")
		} else {
			t.until(ResponseHeaders, x.resp.start, t.bound, t.last)
		}
	case x.resp.closed():
		if x.resp.end > sent {
			t.add(Wait, sent, x.resp.end)
		}
	case t.done:
		t.r.miss("response headers")
	case !t.last:
		// A try that was given up: its server closed the connection, or the stream
		// was refused.
		t.tried(Wait, sent)
	default:
		t.until(Wait, sent, t.bound, true)
	}
}

// skips reports whether an activity directly below r is missing of those from one number to before
// another, up to 63. Attempts have numbers, too.
func (r *request) skips(from, to uint32) bool { return from < to && ^r.ords&(1<<to-1)>>from != 0 }

func (x *exchange) out() Exchange {
	e := Exchange{From: x.headers.start, Sent: x.headers.end, Connection: x.connID}
	if x.resp.end != never {
		e.Answered = x.resp.end
	}
	return e
}

// oneAtATime reports whether an exchange of h is one of HTTP/1.1, where ResponseHeaders
// begins with the first line of the answer.
func (w *rowWriter) oneAtATime(h *hop, x *exchange) bool {
	if x.conn != nil && x.conn.major > 0 {
		return x.conn.major < 2
	}
	if n := len(h.queues); n > 0 {
		return h.queues[n-1].major < 2
	}
	if w.r.major >= 2 && (w.r.policy == orHigher || w.r.policy == exactly) {
		return false // on a connection from before the trace, too
	}
	// By shape: HTTP/2 and 3 say ResponseHeadersStart at once, before they wait.
	if x.resp.begun() && x.headers.closed() {
		if x.content.closed() && x.resp.start < x.content.end && x.resp.start < x.content.start {
			return w.r.onlyOne()
		}
		wait := x.resp.start - x.headers.end
		if x.content.closed() {
			if x.resp.start < x.content.end {
				return false
			}
			wait = x.resp.start - x.content.end
		}
		// It follows the request within some 40 us there, a cold one within 1.3 ms.
		return w.r.onlyOne() || wait > 2e6
	}
	return w.r.onlyOne()
}

// onlyOne reports whether r asked for HTTP/1 and no more. Without its start it is not known what it asked for.
func (r *request) onlyOne() bool { return r.major == 1 && r.policy != orHigher }

func (w *rowWriter) httpVersion(h *hop) string {
	x := h.last()
	if x.conn != nil && x.conn.major > 0 {
		return versionText(x.conn.major, x.conn.minor)
	}
	if w.b.lossy {
		return "" // the exchange could be that with a proxy
	}
	if n := len(h.queues); n > 0 && h.queues[n-1].major > 0 {
		return versionText(h.queues[n-1].major, h.queues[n-1].minor)
	}
	switch {
	case !x.resp.begun():
	case w.r.onlyOne():
		return "1.1"
	case w.r.policy == exactly:
		return versionText(w.r.major, w.r.minor)
	}
	return ""
}

// first reports whether x is the first use of its connection. Where events were lost
// an earlier one may be among them, unless the request opened it itself and
// x follows closely.
func (w *rowWriter) first(x *exchange) bool {
	if !x.first || !w.b.lossy {
		return x.first
	}
	return x.attempt != nil && x.attempt.owner == w.r && x.conn.at != never && x.headers.start-x.conn.at < 20e6
}

// connection tells what is known of the connection of exchange k.
func (w *rowWriter) connection(h *hop, k int) *Connection {
	x := &h.ex[k]
	c := x.conn
	if c == nil && !x.hasConn {
		return nil
	}
	q := &Connection{ID: x.connID, HasID: x.hasConn}
	first := w.first(x)
	if c != nil {
		q.Remote, q.Port, q.Proxy = c.remote, c.peerPort, c.proxy
		switch {
		case !c.elsewhere(&h.at):
		case c.port != 0:
			q.Elsewhere = true
		case h.at.scheme == "http" && c.peerPort != 0: // what goes through a proxy has no port of its own
			q.Proxy = joinHostPort(c.host, c.peerPort)
		}
		if first {
			q.TLS = tlsText(c.tls)
		}
	}
	waited := false
	for _, v := range h.queues {
		waited = waited || v.end <= x.headers.start && (k == 0 || v.start >= h.ex[k-1].headers.start)
	}
	w.classify(q, h, x, first, waited)
	return q
}

// classify tells whether the connection of x is new, and whose it was before; waited is whether the request
// was in the queue for it.
func (w *rowWriter) classify(q *Connection, h *hop, x *exchange, first, waited bool) {
	c := x.conn
	own := x.attempt != nil && x.attempt.owner == w.r && x.attempt.began >= h.start
	q.NewTold = true
	switch {
	case first && own:
		q.New, q.Class = true, Own
	case first && waited:
		q.New = true
		if x.attempt != nil || !w.r.idless && !w.r.adrift { // else nothing tells for whom it was opened
			q.Class = Adopted
		}
	case waited:
		q.Class = Returned
	default:
		q.Class = Pooled
	}
	if w.r.headless || w.b.lossy && !(first && own && waited) {
		// The events that would tell otherwise may be lost.
		q.NewTold = c != nil && c.at != never && c.at < h.start && !waited && !w.r.headless
		if !q.NewTold {
			q.New, q.Class = false, NoConnection
		}
	}
	if waited && !first && (c == nil || c.at == never) {
		// It waited, and nobody tells when the connection was opened.
		q.NewTold, q.Class = false, NoConnection
	}
	if x.again {
		// Another exchange has used it: it is not new, whatever was lost.
		q.New, q.NewTold = false, true
	}
}

// body adds the phase of the response content.
func (w *rowWriter) body() {
	r := w.r
	w.phases = w.out.Phases
	w.out.BodyObserved = !r.body.inferred
	switch {
	case r.body.closed():
		p := w.add(ResponseContent, r.body.start, r.body.end)
		p.Inferred = r.body.inferred
		if r.failed && r.failAt >= r.body.start {
			p.Error, w.blamed = w.failText(), true
		}
	case r.stopped: // it has a stop also where it failed
		r.miss("the stop of response content")
	default:
		w.until(ResponseContent, r.body.start, w.limit, true)
	}
	w.out.Phases = w.phases
}

// check finds out what is missing.
func (w *rowWriter) check() {
	r := w.r
	h := r.hop()
	x := h.last()
	if r.stopped && !r.failed && !r.bridged {
		switch {
		case r.hasStatus && r.status == -1:
			r.miss("RequestFailed")
		case x == nil && w.b.lossy:
			r.miss("request headers")
		case x != nil && x.hasStatus && r.hasStatus && x.status != r.status && w.b.lossy:
			r.miss("an exchange")
		case x == nil && r.body.begun() && len(w.out.Redirects) > 0:
			r.miss("request headers")
		}
	}
	if w.b.lossy && len(r.path) > 0 && r.ords != 0 {
		// Every start below the request takes the next number.
		if o := r.ords >> 1; o&(o+1) != 0 {
			r.miss("a start below the request")
		}
	}
	if w.b.lossy && x != nil && x.first && x.attempt != nil && len(h.queues) == 0 && !x.conn.waited(h.start) {
		r.miss("RequestLeftQueue")
	}
}

func (w *rowWriter) outcome() {
	r, q := w.r, w.out
	if r.stopped || w.known {
		q.Duration, q.HasDuration = w.limit-r.start, true
	}
	if r.hasStatus && r.status >= 0 {
		q.Status = int(r.status)
		if r.idless && r.spanStatus > 0 && !r.redirected() {
			q.Status = r.spanStatus // that has an id, the stop none
		}
	} else if !r.hasStatus && !(w.b.lossy && r.redirected()) { // what followed may be lost
		q.Status = r.spanStatus
	}
	q.ErrorType = r.errorType
	switch {
	case r.failed:
		q.Outcome, q.Error, q.Detail = Failed, w.failText(), r.detail
		q.EndInferred = r.endInferred
		q.ErrorCause = w.cause()
		if t := exceptionType(r.detail); t != "" {
			q.ErrorType = t
			if isCanceled(t) {
				q.Outcome = Canceled
			}
		} else if !r.hasDetail {
			// The text is localized, but it is all there is.
			switch {
			case r.task == TaskCanceled, isCanceled(r.errorType), q.Error == "The operation was canceled.", q.Error == "A task was canceled.", strings.Contains(q.Error, "HttpClient.Timeout"):
				q.Outcome = Canceled
			}
		}
		if !r.stopped || r.headless && r.took == 0 {
			q.Outcome = Incomplete
		}
	case !r.stopped, r.lost && (!r.idless || w.b.lossy): // without ids another request may have what it misses
		q.Outcome = Incomplete
	}
	if !r.stopped && r.lost || r.headless {
		q.HasDuration, q.Duration = false, 0
	}
}

// cause returns the innermost exception: of the exception's text, or what the phase that
// failed says itself.
func (w *rowWriter) cause() string {
	if c := innermost(w.r.detail); c != "" || w.r.detail != "" {
		return c
	}
	for i := range w.out.Phases {
		if e := w.out.Phases[i].Error; e != "" && e != w.failText() && e != sentAgain {
			return e
		}
	}
	return ""
}

// innermost returns type and text of the innermost exception in the text of one, "" if
// there is no other in it. Inner ones follow behind an arrow, and their stacks behind all of
// them; of several, such as those of an AggregateException, the first counts.
func innermost(detail string) string {
	detail, _, _ = strings.Cut(detail, "--- End of inner exception stack trace ---")
	i := strings.LastIndex(detail, "---> ")
	if i < 0 {
		return ""
	}
	c := detail[i+len("---> "):]
	if strings.HasPrefix(c, "(Inner Exception #") {
		_, c, _ = strings.Cut(c, ") ")
	}
	if i := strings.IndexAny(c, "\r\n"); i >= 0 {
		c = c[:i]
	}
	return strings.TrimSpace(c)
}

// isCanceled reports whether an exception of that type says that somebody gave up.
func isCanceled(exception string) bool {
	return strings.HasSuffix(exception, "TaskCanceledException") || strings.HasSuffix(exception, "OperationCanceledException")
}

// exceptionType returns the type that the text of an exception begins with.
func exceptionType(s string) string {
	end := strings.IndexAny(s, ": \r\n(")
	if end < 0 {
		end = len(s)
	}
	if t := s[:end]; strings.Contains(t, ".") {
		return t
	}
	return ""
}

// side lists the attempts of r that did not serve it.
func (w *rowWriter) side() {
next:
	for _, a := range w.r.attempts {
		for _, s := range w.served {
			if s == a {
				continue next
			}
		}
		var s SideAttempt
		add := func(n PhaseName, v interval) {
			p := Phase{Name: n, Start: v.start, Duration: v.end - v.start, Error: v.err}
			if v.end == never {
				p.Open, p.Duration = true, 0
			}
			s.Phases = append(s.Phases, p)
		}
		for _, v := range a.dns {
			add(DNS, v)
		}
		for _, v := range a.tries {
			add(Connect, v.interval)
		}
		for _, v := range a.tls {
			add(TLS, v.interval)
		}
		if len(s.Phases) > 0 {
			w.out.Side = append(w.out.Side, s)
		}
	}
}

func (w *rowWriter) tidyHop(from, to int64) {
	limit, known := w.limit, w.known
	w.limit, w.known = to, true
	w.tidy(&w.phases, from)
	w.limit, w.known = limit, known
}

// sortPhases orders by start. There are few and they nearly are in order.
func sortPhases(l []Phase) {
	for i := 1; i < len(l); i++ {
		for k := i; k > 0 && l[k].Start < l[k-1].Start; k-- {
			l[k], l[k-1] = l[k-1], l[k]
		}
	}
}

func nested(n PhaseName) bool { return n == DNS || n == Connect || n == Proxy || n == TLS }

// tidy puts phases in order, clips them to the request and takes away overlaps, which
// lost events and duplex bodies make: of two the later one keeps its time.
func (w *rowWriter) tidy(list *[]Phase, from int64) {
	l := (*list)[:0]
	for _, p := range *list {
		end := p.End()
		if p.Open {
			end = p.Start
		}
		p.Start = max(p.Start, from)
		if w.r.stopped || w.known {
			p.Start = min(p.Start, w.limit)
			end = min(end, w.limit)
		}
		if end < p.Start {
			continue
		}
		p.Duration = end - p.Start
		l = append(l, p)
	}
	sortPhases(l)
	for i := range l {
		for j := i + 1; j < len(l); j++ {
			a, c := &l[i], &l[j]
			if c.Start >= a.End() && !a.Open {
				break
			}
			if a.Name == Queue && nested(c.Name) || nested(a.Name) && c.Name == Queue {
				continue
			}
			if a.Open {
				a.Open, a.Inferred = false, true
			}
			if nested(c.Name) && !nested(a.Name) {
				continue // cut below
			}
			a.Duration = min(max(c.Start-a.Start, 0), max(a.Duration, 0))
		}
	}
	*list = l
}
