package httpphases

import (
	"strconv"
	"strings"
)

// The spans of requests that the process made, HttpRequestOut, tell method, status and
// the ids of W3C trace context of a request of System.Net.Http: one span for each hop. On
// runtimes and in recordings without those events the span is all there is of a request.

// spanStart takes the start of such a span.
func (b *Builder) spanStart(p *process, th *thread, e *Event, h *[25]uint64, n int) {
	s := e.Span
	key := spanKey(e)
	if p.spans[key] != nil {
		return // the session asked twice for it
	}
	r := b.owner(p, e, h, n)
	switch {
	case r != nil && !r.bridged:
		r.ordinal(e)
	default:
		if r = b.spanOwner(p, th, e); r == nil && (!b.stats.Versions[RequestStart] || b.lossy) {
			r = b.bridgedRequest(p, e, h, n)
		}
	}
	if r == nil {
		return
	}
	if r.method == "" && r.spanned == nil {
		r.method = s.Method
	}
	b.spannedHop(r, e)
	if r.span = [16]byte{}; e.Related != ([16]byte{}) && e.Related == r.guid {
		r.span = e.ID
	}
	r.spanStatus = 0
	if e.Span.ID == "" && e.ID == ([16]byte{}) {
		r.guesses++ // its end is told by the thread only
	}
	r.spanned = append(r.spanned, key)
	if r.idless { // what follows on the thread is of this request
		th.last, th.kind, th.at = r, RequestStart, e.Time
	}
	p.spans[key] = r
	p.names(r, e)
}

// redirected reports whether the last span of r ended with a redirect.
func (r *request) redirected() bool { return isRedirect(r.spanStatus) }

func isRedirect(status int) bool {
	switch status {
	case 300, 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// spanKey is what the start and the stop of a span have in common: the id of the
// Activity or, where the session did not ask for it, that of the event.
func spanKey(e *Event) string {
	switch {
	case e.Span.ID != "":
		return e.Span.ID
	case e.ID != ([16]byte{}):
		return string(e.ID[:])
	}
	return "thread " + strconv.FormatUint(e.Thread, 10)
}

// spannedHop starts a new hop where a redirect was followed that no other event told:
// before .NET 8 there is none.
func (b *Builder) spannedHop(r *request, e *Event) {
	h := r.hop()
	x := h.last()
	if r.bridged || x == nil || !x.resp.closed() || b.stats.Versions[RequestRedirect] || !r.redirected() || len(r.hops) > 1024 {
		return
	}
	h.toAt, h.hasTo, h.to = max(x.resp.end, h.start), true, e.Span.URL
	r.hops = append(r.hops, hop{start: h.toAt, toAt: never, at: splitURL(e.Span.URL, &h.at)})
}

// spanOwner finds the request of a span that no activity id tells: the one that began on
// the thread just now, the one whose last span ended there with a redirect, or the only
// one that has gone there without a span.
func (b *Builder) spanOwner(p *process, th *thread, e *Event) *request {
	hasID := e.ID != ([16]byte{})
	if hasID && b.lossy {
		return nil // it has one, whose start may be lost
	}
	to := splitURL(e.Span.URL, &place{})
	waits := func(r *request) bool {
		return r != nil && r.open && !r.bridged && r.spanned == nil && r.stage() == stageNone && r.hop().at.near(&to)
	}
	if waits(th.last) && th.kind == RequestStart {
		return th.last
	}
	if r := th.last; !hasID && e.Span.URL == "" && r.spansNext(th.kind) {
		if p.idless.n > 1 {
			r.guesses++ // the thread tells, and nothing that would not fit to another one
		}
		return r
	}
	if r := th.spanned; !hasID && r != nil && r.open && r.redirected() {
		return r
	}
	var only *request
	for r, seen := p.open, 0; r != nil && seen < maxChoice; r, seen = r.openNext, seen+1 {
		if waits(r) {
			if only != nil {
				return nil
			}
			only = r
		}
	}
	if only != nil {
		only.guesses++
	}
	return only
}

// spansNext reports whether the next span that begins on a thread is of r, whose event of kind k was
// the last one there: System.Net.Http begins it directly behind RequestStart and RequestRedirect. It
// has its address only when it ends, and then only if the session asked for the tags.
func (r *request) spansNext(k Kind) bool {
	return r != nil && r.open && r.idless && r.stage() == stageNone && (k == RequestStart && r.spanned == nil || k == RequestRedirect)
}

// near reports whether p is where a span goes. System.Net.Http leaves out the query, and
// the bridge tells it unescaped.
func (p *place) near(to *place) bool {
	if p.scheme != to.scheme || p.host != to.host || p.port != to.port {
		return false
	}
	a, _, _ := strings.Cut(p.target, "?")
	c, _, _ := strings.Cut(to.target, "?")
	return a == c || strings.ContainsAny(a, "%")
}

// answeredBy gives r the answer that came last on the thread, whose span ends directly
// behind it. Without activity ids it was given to the request that had waited longest.
func (b *Builder) answeredBy(p *process, th *thread, r *request) {
	w := th.last
	if w == nil || w == r || !w.idless || !w.open || th.kind != ResponseHeadersStop {
		return
	}
	has, lacks := w.hop().last(), r.hop().last()
	if has == nil || lacks == nil || !has.resp.closed() || lacks.resp.closed() {
		return
	}
	has.resp, lacks.resp = lacks.resp, has.resp
	has.status, lacks.status = lacks.status, has.status
	has.hasStatus, lacks.hasStatus = lacks.hasStatus, has.hasStatus
	if c := lacks.conn; c != nil && c.user == r {
		c.user = nil
	}
	if c := has.conn; c != nil && c.user == nil {
		c.user = w
	}
	p.idless.moved(w, b.now)
	p.idless.moved(r, b.now)
}

// bridgedRequest makes a request of a span.
func (b *Builder) bridgedRequest(p *process, e *Event, h *[25]uint64, n int) *request {
	r := b.newRequest(p, e)
	r.bridged = true
	r.start, r.told = p.started(e), e.Time
	r.hop0[0] = hop{start: r.start, toAt: never}
	if e.Span.URL != "" {
		r.hop0[0].at = splitURL(e.Span.URL, &place{})
	}
	r.hops = r.hop0[:]
	switch {
	case n > 0 && !e.Overflow:
		r.path = append(r.path0[:0], e.Path[:n]...)
		r.hash = h[n]
	case e.ID != ([16]byte{}):
		r.hash = hashID(&e.ID)
	}
	if r.hash != 0 {
		p.enter(r)
	}
	return r
}

// maxClock is by how much an activity can have begun before its event. More is a clock
// that was set.
const maxClock = 1e9 // ns

// started returns when the activity of a span began: before its event, which the bridge
// has to read the activity for; that takes milliseconds when it is not compiled yet. The
// activity tells the time of day. The event that followed the closest tells the time of
// the trace that belongs to it.
func (p *process) started(e *Event) int64 {
	if e.Span.Started == 0 {
		return e.Time
	}
	offset := e.Time - e.Span.Started*100
	if p.clock == 0 || offset < p.clock || offset-p.clock > maxClock {
		p.clock = offset
	}
	return p.clock + e.Span.Started*100
}

// spanStop takes its stop.
func (b *Builder) spanStop(p *process, th *thread, e *Event, h *[25]uint64, n int) {
	s := e.Span
	key := spanKey(e)
	r := p.spans[key]
	if r == nil {
		b.madeBefore(p, e, h, n)
	}
	if r == nil || !r.open {
		return
	}
	if s.Method != "" && (r.method == "" || key == r.spanned[0]) {
		r.method = s.Method
	}
	if s.ErrorType != "" {
		r.errorType = s.ErrorType
	}
	r.task, r.spanStatus = s.Task, s.Status
	th.spanned = r
	if r.idless {
		b.answeredBy(p, th, r)
		th.last, th.at = r, e.Time
	}
	if !r.bridged {
		x := r.hop().last()
		if x == nil || s.Status <= 0 {
			return
		}
		if r.idless && !x.resp.closed() { // the answer has come: nothing else told that it is this one's
			if !x.resp.begun() {
				x.resp.start = e.Time
			}
			x.resp.end, x.resp.inferred = e.Time, true
			x.leave(r)
			p.idless.moved(r, b.now)
		}
		if x.resp.closed() && (r.idless || !x.hasStatus) {
			x.status, x.hasStatus = int32(s.Status), true
		}
		return
	}
	if r.stopped {
		return
	}
	if at := &r.hop().at; at.host == "" && s.URL != "" {
		*at = splitURL(s.URL, &place{})
	}
	b.spannedEnd(r, e)
	if !p.answersOn(r) {
		b.emit(p, r)
		return
	}
	th.answered = r
}

// madeBefore makes the request of a span that ends and of which the session saw no start. Where something else
// than the session listens, as OpenTelemetry does, the spans of requests exist that began before the recording, and
// their stops tell all of them. A span that began when the session saw starts is that of a further try, or of where
// a redirect led, of such a request.
func (b *Builder) madeBefore(p *process, e *Event, h *[25]uint64, n int) {
	s := e.Span
	start := e.Time - s.Took
	if _, seen := p.spanIDs[spanKey(e)]; seen || b.lossyBy(e.Time) || s.ID == "" || s.Took <= 0 || s.URL == "" || start >= p.spansFrom {
		return
	}
	to := splitURL(s.URL, &place{})
	if b.owner(p, e, h, n) != nil { // System.Net.Http tells of it
		return
	}
	for r, seen := p.open, 0; e.ID == ([16]byte{}) && r != nil && seen < maxChoice; r, seen = r.openNext, seen+1 {
		if r.spanned == nil && r.hop().at.near(&to) {
			return // it may be the span of this one
		}
	}
	r := b.newRequest(p, e)
	r.bridged, r.method = true, s.Method
	if start < 0 {
		r.headless, r.took = true, s.Took
	} else { // it began in the recording, when the bridge was not yet on
		r.start = start
	}
	r.hop0[0] = hop{start: r.start, toAt: never, at: to}
	r.hops = r.hop0[:]
	p.names(r, e)
	b.spannedEnd(r, e)
	b.emit(p, r)
}

// names gives r the ids of its span that e tells of.
func (p *process) names(r *request, e *Event) {
	s, key := e.Span, spanKey(e)
	if s.SpanID != "" {
		if r.spanID == "" {
			r.traceID, r.spanID, r.parentSpanID = s.TraceID, s.SpanID, s.ParentSpanID
		}
		r.spans = append(r.spans, SpanIDs{s.TraceID, s.SpanID, s.ParentSpanID})
	}
	p.spanIDs[key] = r.id
	p.spanQ = append(p.spanQ, key)
	if len(p.spanQ) > maxSpans {
		delete(p.spanIDs, p.spanQ[0])
		p.spanQ = p.spanQ[1:]
	}
}

// spannedEnd ends r, of which nothing but spans tells, with the stop of its span.
func (b *Builder) spannedEnd(r *request, e *Event) {
	s := e.Span
	if s.Status > 0 && b.stats.Unasked > 0 {
		b.stats.Unasked-- // if System.Net.Http was on by then, it told of this answer just before
	}
	if s.ErrorType != "" {
		r.errorType = s.ErrorType
	}
	r.task, r.spanStatus = s.Task, s.Status
	r.stop, r.stopped, r.stopThread = max(e.Time, r.start), true, e.Thread
	r.failed = s.Task == TaskFaulted || s.Task == TaskCanceled || s.Status == 0 && s.ErrorType != ""
}
