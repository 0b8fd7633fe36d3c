package httpphases

// serverEvent takes the events of Microsoft.AspNetCore.Hosting.
func (b *Builder) serverEvent(p *process, e *Event, h *[25]uint64, n int) {
	if e.Kind == ServerRequestStart {
		b.nextID++
		s := &server{hash: h[n], thread: e.Thread, open: true}
		s.ServerRequest = ServerRequest{
			ID: b.nextID, Activity: e.ID, Process: e.Process, Thread: e.Thread, Method: e.Method, Target: e.Text, Start: e.Time,
		}
		if n > 0 && !e.Overflow {
			s.Path = append(s.Path, e.Path[:n]...)
		} else if e.ID != ([16]byte{}) {
			s.hash = hashID(&e.ID)
		} else {
			s.hash = 0
		}
		b.stats.Servers++
		if old := p.servers[s.hash]; s.hash != 0 && old != nil && old.open {
			old.Outcome = Incomplete // its stop was lost
			b.emitServer(p, old)
		}
		if s.hash != 0 {
			p.servers[s.hash] = s
		}
		p.serverOpen[s] = struct{}{}
		if s.hash == 0 {
			p.serverRuns[s.thread] = append(p.serverRuns[s.thread], s)
		}
		return
	}
	s := p.serverOf(e, h, n, e.Kind == ServerRequestStop)
	if s == nil {
		return
	}
	if e.Kind == ServerUnhandled {
		s.Outcome = Failed
		return
	}
	s.Duration, s.HasDuration = e.Time-s.Start, true
	b.emitServer(p, s)
}

// serverOf finds the server request of an event: by its id, or by a prefix of it;
// without ids by the thread.
func (p *process) serverOf(e *Event, h *[25]uint64, n int, exact bool) *server {
	if e.ID == ([16]byte{}) {
		l := p.serverRuns[e.Thread]
		if len(l) == 0 {
			return nil
		}
		return l[len(l)-1] // that began last
	}
	if n == 0 || e.Overflow {
		return p.servers[hashID(&e.ID)]
	}
	for i := n; i > 0; i-- {
		if s := p.servers[h[i]]; s != nil {
			return s
		}
		if exact {
			break
		}
	}
	return nil
}

func (b *Builder) emitServer(p *process, s *server) {
	s.open = false
	delete(p.serverOpen, s)
	if l := p.serverRuns[s.thread]; len(l) > 0 && l[len(l)-1] == s {
		if l[len(l)-1] = nil; len(l) == 1 {
			delete(p.serverRuns, s.thread)
		} else {
			p.serverRuns[s.thread] = l[:len(l)-1]
		}
	}
	if p.servers[s.hash] == s {
		delete(p.servers, s.hash)
	}
	if b.opts.Server != nil {
		b.opts.Server(&s.ServerRequest)
	}
}

// spanEvent takes the starts and stops of HttpRequestOut and HttpRequestIn, which the
// DiagnosticSource bridge tells: the method and the W3C ids.
func (b *Builder) spanEvent(p *process, e *Event, h *[25]uint64, n int) {
	s := e.Span
	if s == nil || s.SpanID == "" {
		return
	}
	if s.Name == spanServer {
		// Its stop carries nothing that its start did not.
		if e.Kind != SpanStart {
			return
		}
		if q := p.serverOf(e, h, n, false); q != nil {
			q.TraceID, q.SpanID, q.ParentSpanID = s.TraceID, s.SpanID, s.ParentSpanID
			q.Client = p.spanIDs[s.ParentSpanID]
			if r := p.spans[s.ParentSpanID]; r != nil {
				r.server = q.ID
			}
		}
		return
	}
	if e.Kind == SpanStart {
		r := b.owner(p, e, h, n)
		if r == nil {
			return
		}
		r.ordinal(e)
		if r.spanID == "" {
			r.traceID, r.spanID, r.parentSpanID = s.TraceID, s.SpanID, s.ParentSpanID
		}
		r.spans = append(r.spans, SpanIDs{s.TraceID, s.SpanID, s.ParentSpanID})
		p.spans[s.SpanID] = r
		p.spanIDs[s.SpanID] = r.id
		p.spanQ = append(p.spanQ, s.SpanID)
		if len(p.spanQ) > maxSpans {
			delete(p.spanIDs, p.spanQ[0])
			p.spanQ = p.spanQ[1:]
		}
		return
	}
	r := p.spans[s.SpanID]
	if r == nil {
		return
	}
	if r.method == "" && s.SpanID == r.spanID {
		r.method = s.Method
	}
	if s.ErrorType != "" {
		r.errorType = s.ErrorType
	}
}
