package httpphases

import "slices"

// stages are those in which a request can write an event; of other kinds, in any.
var stages = [RequestRedirect + 1][]stage{
	RequestLeftQueue:      {stageNone, stageAnswered},
	RequestHeadersStart:   {stageNone, stageAnswered, stageSent},
	RequestHeadersStop:    {stageHeaders, stageNone},
	RequestContentStart:   {stageSent, stageResp},
	RequestContentStop:    {stageContent, stageAnswered, stageBody, stageDone},
	ResponseHeadersStart:  {stageSent, stageContent, stageNone},
	ResponseHeadersStop:   {stageResp, stageContent, stageNone},
	RequestRedirect:       {stageAnswered},
	ResponseContentStart:  {stageAnswered},
	ResponseContentStop:   {stageBody, stageFailed},
	RequestFailed:         {stageNone, stageHeaders, stageSent, stageContent, stageResp, stageAnswered, stageBody, stageDone},
	RequestFailedDetailed: {stageFailed},
	RequestStop:           {stageFailed, stageDone, stageAnswered, stageNone},
}

// stagesOf returns the stages of a kind, nil if there are no such.
func stagesOf(k Kind) []stage {
	if int(k) < len(stages) {
		return stages[k]
	}
	return nil
}

// fits reports whether a request, as far as it has come, can have written an event.
func (r *request) fits(k Kind) bool {
	s, of := r.stage(), stagesOf(k)
	if of == nil {
		return true
	}
	if !slices.Contains(of, s) {
		return false
	}
	switch k {
	case RequestHeadersStop, ResponseHeadersStart:
		return s != stageNone || r.tunnel() != nil
	case RequestContentStop:
		x := r.hop().last()
		return x != nil && x.content.open()
	case ResponseHeadersStop:
		return s == stageResp || s == stageContent && r.hop().last().resp.open() || s == stageNone && r.tunnel() != nil
	case RequestRedirect:
		x := r.hop().last()
		return !x.hasStatus || x.status >= 300 && x.status <= 308
	case ResponseContentStop:
		return s == stageBody || r.body.open()
	case RequestFailedDetailed:
		return !r.hasDetail
	case RequestStop:
		return s == stageDone || s == stageAnswered || s == stageFailed && !r.body.open() || s == stageNone && len(r.hops) == 1
	}
	return true
}

// link finds the request of an event without activity id, by the rules of section
// 7.6: the only open request, the thread, values, first in first out.
func (b *Builder) link(p *process, th *thread, e *Event) *request {
	if p.idless.n == 0 || e.ID != ([16]byte{}) {
		return b.adriftOwner(p, th, e)
	}
	if p.idless.n == 1 {
		r := p.idless.first
		if !r.fits(e.Kind) {
			// Events were lost, or come in an order that is not known: a lone request
			// still owns whatever happens.
			r.guesses++
		}
		return r
	}
	if r := th.leftQueue; r != nil && e.Kind == RequestFailed && r.open && r.idless {
		r.guesses++
		return r // it gave up waiting: who gets a connection sends headers next
	}
	if r := b.replyTo(p, e); r != nil {
		r.guesses++
		return r
	}
	if k := b.reply; k != nil && k.handled && k.to == nil {
		return nil // nobody was found that the rest of this answer can be of
	}
	l := b.candidates(&p.idless, e)
	if p.idless.n > maxChoice {
		for _, r := range [2]*request{th.last, th.leftQueue} {
			if r != nil && r.idless && r.open {
				l = append(l, r)
			}
		}
	}
	r, sure := b.match(p, e, b.unexpected(p, e, l))
	if r != nil && !sure {
		r.guesses++
		for _, o := range b.fit {
			o.rival = true
		}
	}
	return r
}

// adriftOwner finds the request of an event where ids are there, but the tracker stopped an outer request's
// activity: its events have none, or that of whatever encloses it.
func (b *Builder) adriftOwner(p *process, th *thread, e *Event) *request {
	if (e.ID != ([16]byte{}) || b.lossy) && (th.last == nil || !th.last.adrift || th.gapTo > th.at) {
		return nil
	}
	if th.last != nil && th.last.adrift && th.last.open && th.last.fits(e.Kind) {
		th.last.guesses++
		return th.last
	}
	var only *request
	if p.adrifts > maxChoice {
		return nil
	}
	for _, r := range p.adrift {
		if r.adrift && r.fits(e.Kind) {
			if only != nil && only != r { // who was adrift twice is listed twice
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

// setAdrift notes that the tracker has stopped the activity of r.
func (p *process) setAdrift(r *request) {
	if r.adrift {
		return
	}
	r.adrift = true
	p.adrifts++
	if len(p.adrift) > 2*p.adrifts+16 {
		p.adrift = slices.DeleteFunc(p.adrift, func(x *request) bool { return !x.adrift })
	}
	p.adrift = append(p.adrift, r)
}

// clearAdrift notes that r has ended, or that its activity goes on: a request that
// waits leaves its thread to others, whose start looks as if it were inside.
func (p *process) clearAdrift(r *request) {
	if r.adrift {
		r.adrift = false
		p.adrifts--
	}
}

// candidates returns those in flight that an event may be of. Of more than maxChoice of
// one stage it has those that match would pick for their place: those that were heard of
// first and last, for RequestLeftQueue those of about the time when it joined the queue.
func (b *Builder) candidates(l *idlessList, e *Event) []*request {
	out := b.choice[:0]
	for _, s := range stagesOf(e.Kind) {
		q := &l.stages[s]
		q.trim()
		to, from := len(q.l), 0
		switch {
		case q.n <= maxChoice:
			for _, p := range q.l {
				if !p.gone() {
					out = append(out, p.r)
				}
			}
			continue
		case e.Kind == RequestLeftQueue:
			from = q.find(e.Time - int64(e.Millis*1e6))
			to = from
		}
		out = q.from(out, from, maxChoice/2)
		out = q.before(out, to, maxChoice/2)
	}
	b.choice = out
	return out
}

// match picks the request of l that an event fits best, and whether there was no
// other choice.
func (b *Builder) match(p *process, e *Event, l []*request) (*request, bool) {
	fit := b.fit[:0]
	for _, r := range l {
		if r.open && r.fits(e.Kind) {
			fit = append(fit, r)
		}
	}
	b.fit = fit
	switch len(fit) {
	case 0:
		return nil, false
	case 1:
		return fit[0], false
	}
	fit = cutOff(fit, e.Kind)
	th := p.thread(e.Thread)
	switch e.Kind {
	case RequestLeftQueue:
		return nearestQueued(fit, e), false
	case RequestHeadersStart:
		if th.leftQueue != nil && slices.Contains(fit, th.leftQueue) {
			return th.leftQueue, true
		}
		fit = p.sameHost(fit, e)
	}
	// The same thread: most events of a request directly follow its last one.
	if th.last != nil && slices.Contains(fit, th.last) && th.last.follows(th.kind, e.Kind) {
		return th.last, len(fit) == 1
	}
	if e.Kind == RequestStop && e.HasStatus {
		fit = sameStatus(fit, e.Status)
	}
	return firstIn(fit, e.Kind), false
}

// nearestQueued picks the request of l that joined the queue nearest before the moment that e, which
// left it, tells.
func nearestQueued(l []*request, e *Event) *request {
	// t - ms is the moment the request joined the queue, just after its start (or
	// its redirect). Nearest such moment before it.
	at := e.Time - int64(e.Millis*1e6)
	var best *request
	bestGap := int64(1) << 62
	for _, r := range l {
		gap := at - r.hop().start
		if gap < 0 {
			gap = -8 * gap // it can only lie before by rounding
		}
		if r.queuedNow() {
			gap += 1 << 40 // has left already; a second wait is rare
		}
		if gap < bestGap {
			best, bestGap = r, gap
		}
	}
	return best
}

// sameHost leaves of l those that go where the connection of e does, all if there are none.
func (p *process) sameHost(l []*request, e *Event) []*request {
	if !e.HasConn {
		return l
	}
	c := p.conns[e.Conn]
	if c == nil || c.host == "" {
		return l
	}
	return those(l, func(r *request) bool {
		at := r.hop().at
		return at.host == c.host && at.port == c.port || at.scheme == "http" && c.port == 0
	})
}

// sameStatus leaves of l those whose last answer has a status, or that failed if it is -1; all if
// there are none.
func sameStatus(l []*request, status int32) []*request {
	return those(l, func(r *request) bool {
		x := r.hop().last()
		return r.failed && status == -1 || x != nil && x.hasStatus && x.status == status
	})
}

// those returns the requests of l that are so, l if there are none.
func those(l []*request, so func(*request) bool) []*request {
	var out []*request
	for _, r := range l {
		if so(r) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return l
	}
	return out
}

// firstIn picks the request of l that an event of kind k is of if they are served in turn.
func firstIn(l []*request, k Kind) *request {
	best := l[0]
	for _, r := range l[1:] {
		if k == RequestHeadersStart {
			// The one that began last: nested requests, and the thread told nothing.
			if r.start > best.start {
				best = r
			}
		} else if r.last < best.last {
			best = r
		}
	}
	return best
}

// cutOff leaves in l those that an event may be of, given which connections are closed: a request
// on a closed one gets no answer any more, and fails. It leaves all if that is none.
func cutOff(l []*request, k Kind) []*request {
	if k != RequestFailed && k != ResponseHeadersStart {
		return l
	}
	n := 0
	for i, r := range l {
		x := r.hop().last()
		if is := x != nil && x.conn != nil && x.conn.closed && !r.body.closed(); is == (k == RequestFailed) {
			l[n], l[i] = r, l[n]
			n++
		}
	}
	if n == 0 {
		return l
	}
	return l[:n]
}

// queuedNow reports whether the current hop has left the queue already.
func (r *request) queuedNow() bool {
	h := r.hop()
	return len(h.queues) > 0 && len(h.ex) == 0
}

// follows reports whether an event of kind k directly follows one of kind last on
// one thread.
func (r *request) follows(last, k Kind) bool {
	switch k {
	case RequestHeadersStart:
		return last == RequestStart || last == RequestRedirect || last == RequestLeftQueue || last == ResponseHeadersStop
	case ResponseHeadersStart, ResponseContentStop:
		return true
	}
	return true
}

// linkAttempt finds the request in whose flow an attempt without activity id runs.
// It only decides which request shows an attempt that fails: one that succeeds is
// told by its connection.
func (b *Builder) linkAttempt(p *process, th *thread, e *Event) *request {
	if p.idless.n == 0 || e.ID != ([16]byte{}) {
		return nil
	}
	_, port := splitAddress(address(e.Text))
	var best *request
	score := -1
	waiting := &p.idless.stages[stageNone]
	waiting.trim()
	l := waiting.before(b.choice[:0], len(waiting.l), maxChoice)
	b.choice = l
	for _, r := range l {
		if r.queuedNow() {
			continue
		}
		at := r.hop().at
		s := 0
		switch e.Kind {
		case ResolutionStart, HandshakeStart:
			if at.host == e.Host {
				s += 4
			}
		case ConnectStart:
			if port != 0 && at.port == port {
				s += 4
			}
		}
		if r.liveAttempt() == nil {
			s += 2
		}
		if th.last == r {
			s++
		}
		if s > score { // of equals the one that began last
			best, score = r, s
		}
	}
	return best
}
