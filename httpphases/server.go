package httpphases

import (
	"slices"
	"strings"
)

// serverEvent takes the events of ASP.NET Core, Kestrel and the log about a request that
// is served. Hosting, bridge, log and Kestrel begin a request one after the other on one
// thread, and end it so in the reverse order: that ties the ids that each of them uses to
// the events of the others. Whoever was first to tell of a request also ends it.
func (b *Builder) serverEvent(p *process, th *thread, e *Event, h *[25]uint64, n int) {
	if e.Kind == ServerUnhandled && e.Span != nil {
		th.threwID = e.Span.RequestID // Kestrel's stop follows, if it was that of a request
		return
	}
	if e.Kind.begins() || e.Kind == KestrelStop || e.Kind == ServerLogged && e.Span.Task == TaskRan {
		b.settleBefore(p, th)
	}
	if th.others(e.Kind) {
		th.logged, th.threw, th.over = nil, false, false
	}
	switch e.Kind {
	case ServerRequestStart:
		s := b.newServer(p, th, e, h, n)
		s.Method, s.Target = e.Method, e.Text
	case KestrelStart, ScopeStart, SpanStart:
		if e.Kind == KestrelStart {
			p.begins(e.Span.RequestID)
		}
		s := b.beginning(p, th, e, h, n)
		if s == nil {
			s = b.newServer(p, th, e, h, n)
		}
		p.tell(s, e.Span)
	default:
		s := b.ending(p, th, e, h, n)
		if s == nil {
			// The end of a request follows, which tells whose it is.
			switch {
			case e.Kind == ServerUnhandled:
				th.threw = true
			case e.Kind == ServerLogged && (e.Span.Status > 0 || e.Span.Task == TaskRan):
				th.logged = e.Span
			case e.Kind == KestrelStop && b.beganBefore(p, e.Span):
				b.servedBefore(p, th, e, h, n)
			case e.Kind == ServerRequestStop || e.Kind == ScopeStop:
				th.over = true
			}
			return
		}
		if s == th.before && e.Kind == ServerLogged && !e.Span.finishes(s.Target) {
			return
		}
		if th.threw || e.Kind == ServerUnhandled {
			s.Outcome = Failed
		}
		for _, of := range []*Span{th.logged, e.Span} {
			if of != nil {
				p.tell(s, of)
			}
		}
		th.logged, th.threw, th.over = nil, false, false
		if s == th.before {
			if e.Kind == ServerRequestStop || e.Kind == ScopeStop {
				b.settleBefore(p, th)
			}
			return
		}
		if s.ends == e.Kind {
			s.Duration, s.HasDuration = max(0, e.Time-s.Start), true // below, the event came too late
			b.emitServer(p, s)
			th.serving = nil
		} else if e.Kind != ServerLogged {
			th.serving, th.stopping, s.ending = s, true, true
		}
	}
}

// others reports whether an event is of another request than the one whose end its thread told
// before: none that is known, as it began before the recording. That ends with a line of the log, a
// failure, and the stops of Hosting, the log and Kestrel, in this order.
func (th *thread) others(k Kind) bool {
	switch k {
	case ServerLogged, ServerUnhandled, ServerRequestStop:
		return th.over
	}
	return k.begins()
}

// begins reports whether an event is one of those with which a request that is served begins.
func (k Kind) begins() bool {
	return k == ServerRequestStart || k == KestrelStart || k == ScopeStart || k == SpanStart
}

// maxFirsts bounds the connections that are known.
const maxFirsts = 100000

// begins notes the id of a request that begins.
func (p *process) begins(id string) {
	connection, number, _ := strings.Cut(id, ":")
	if _, ok := p.firsts[connection]; !ok && len(p.firsts) < maxFirsts {
		p.firsts[connection] = number
	}
}

// beganBefore reports whether a request whose stop Kestrel tells, and nothing its start, was open
// when the recording began: no event is known to be lost, and none told of a request before it that
// began over its connection. Kestrel numbers them in eight hexadecimal digits.
func (b *Builder) beganBefore(p *process, of *Span) bool {
	connection, number, numbered := strings.Cut(of.RequestID, ":")
	first, began := p.firsts[connection]
	return numbered && of.Path != "" && !b.lossyBy(b.now) && (began && number < first || !began && len(p.firsts) < maxFirsts)
}

// servedBefore makes the request that was open when the recording began and whose end Kestrel tells in e. How it
// ended Hosting tells behind that: the log's last line, the bridge, an exception.
func (b *Builder) servedBefore(p *process, th *thread, e *Event, h *[25]uint64, n int) {
	serving, stopping, threw, logged := th.serving, th.stopping, th.threw, th.logged
	th.threw, th.logged = false, nil
	s := b.newServer(p, th, e, h, n)
	delete(p.serverOpen, s) // it has ended
	s.Start, s.HasDuration, s.StartUnknown = min(0, e.Time), true, true
	s.Duration = e.Time - s.Start
	if threw || th.threwID == e.Span.RequestID { // the latter is told of those, too, that began before Hosting's events were on
		s.Outcome = Failed
	}
	if logged != nil && (logged.Task != TaskRan || routeFits(logged.Route, e.Span.Path)) {
		p.tell(s, logged)
	}
	p.tell(s, e.Span)
	th.before, th.stopping = s, true
	th.served, th.servedEnds = serving, stopping
}

// settleBefore hands out the request that servedBefore made on th, if there is one: nothing more tells of it.
func (b *Builder) settleBefore(p *process, th *thread) {
	s := th.before
	if s == nil {
		return
	}
	if th.serving == s {
		th.serving, th.stopping = th.served, th.servedEnds
	}
	th.before, th.served = nil, nil
	b.emitServer(p, s)
}

// newServer begins a request. It ends with the event that belongs to the first one.
func (b *Builder) newServer(p *process, th *thread, e *Event, h *[25]uint64, n int) *server {
	b.nextID++
	s := &server{thread: e.Thread, open: true, ends: e.Kind + 1} // stops stand behind their starts
	s.ServerRequest = ServerRequest{ID: b.nextID, Activity: e.ID, Process: e.Process, Thread: e.Thread, Start: e.Time}
	switch {
	case n > 0 && !e.Overflow:
		s.hash = h[n]
		s.Path = append(s.Path, e.Path[:n]...)
	case e.ID != ([16]byte{}):
		s.hash = hashID(&e.ID)
	}
	b.stats.Servers++
	if old := p.servers[s.hash]; old != nil && !e.shared() {
		old.Outcome = Incomplete // its stop was lost
		b.emitServer(p, old)
	}
	if s.hash != 0 {
		if s.next = p.servers[s.hash]; s.next != nil {
			s.next.prev = s
		}
		p.servers[s.hash] = s
	}
	p.serverOpen[s] = struct{}{}
	if s.hash == 0 {
		p.unnamed.begins(th, s)
	}
	th.serving, th.stopping = s, false
	return s
}

// Keys of p.serverKeys. The kinds of id differ in form, but their texts are the program's.
const (
	keyRequest  = "request "
	keyScope    = "scope "
	keyActivity = "activity "
	keyParent   = "parent " // of a span: the last that has it
)

// keys are the ids that a span tells of a request that is served.
func (s *Span) keys() [3]string {
	var k [3]string
	if s.RequestID != "" {
		k[0] = keyRequest + s.RequestID
	}
	if s.Scope != "" {
		k[1] = keyScope + s.Scope
	}
	if s.ID != "" {
		k[2] = keyActivity + s.ID
	}
	return k
}

// byKey finds the open request that has one of the ids of a span.
func (p *process) byKey(of *Span) *server {
	if of == nil {
		return nil
	}
	for _, k := range of.keys() {
		if s := p.serverKeys[k]; s != nil {
			return s
		}
	}
	return nil
}

// beginning finds the request of which a further event of its start tells.
func (b *Builder) beginning(p *process, th *thread, e *Event, h *[25]uint64, n int) *server {
	if s := p.byKey(e.Span); s != nil {
		return s
	}
	s, alike := b.serverOf(p, th, e, h, n)
	if s == nil || alike {
		if s = th.serving; s == nil || !s.open || th.stopping || s.hash != 0 && e.ID != ([16]byte{}) && n > 0 {
			return nil
		}
	}
	for i, k := range e.Span.keys() {
		if k != "" && s.keys[i] != "" {
			return nil // it has an id of that kind: this is another one
		}
	}
	return s
}

// ending finds the request of any other event.
func (b *Builder) ending(p *process, th *thread, e *Event, h *[25]uint64, n int) *server {
	exact := e.Kind == ServerRequestStop
	if s := p.byKey(e.Span); s != nil {
		return s
	}
	switch s, alike := b.serverOf(p, th, e, h, n); {
	case alike && e.Kind == ServerLogged:
		return nil // it may be of any of them
	case alike:
		s.Guessed++
		return s
	case s != nil:
		return s
	}
	if s := th.serving; s != nil && s.open {
		if th.stopping {
			return s
		}
		// What an endpoint logs it mostly logs where it began; what it says must fit.
		if e.Kind == ServerLogged && e.Span.Task != TaskRan && e.Span.Route != "" && routeFits(e.Span.Route, s.Target) {
			return s
		}
	}
	if exact && n > 0 && !e.Overflow {
		return p.onlyBelow(e.Path[:n])
	}
	if e.ID != ([16]byte{}) || e.Kind != ServerRequestStop {
		return nil
	}
	s := p.unnamed.choose(th, e)
	if s != nil {
		s.Guessed++
		b.stats.Unnamed++
	}
	return s
}

// onlyBelow finds the request of a stop whose id is that of an activity around it: its own was stopped
// before. Where sessions have the bridge and the log, the stop of the span stops the log's scope of the
// request, and so that of the scope stops the one of the connection and all that is inside. It returns
// the only request that is open there.
func (p *process) onlyBelow(path []uint32) (only *server) {
	if len(p.serverOpen) > maxChoice {
		return nil
	}
	for s := range p.serverOpen {
		if n := len(path); len(s.Path) > n && slices.Equal(s.Path[:n], path) {
			if only != nil {
				return nil
			}
			only = s
		}
	}
	if only != nil {
		only.Guessed++
	}
	return only
}

// serverOf finds the request of an event with an activity id: by that, or by a prefix. alike reports
// whether others that are open have it, too, and nothing tells them apart.
func (b *Builder) serverOf(p *process, th *thread, e *Event, h *[25]uint64, n int) (s *server, alike bool) {
	if e.ID == ([16]byte{}) {
		return nil, false
	}
	if n == 0 || e.Overflow {
		s = p.servers[hashID(&e.ID)]
	} else {
		for i := n; i > 0 && s == nil && (i == n || e.Kind != ServerRequestStop); i-- {
			s = p.servers[h[i]]
		}
	}
	if s == nil || s.next == nil {
		return s, false
	}
	// Hosting and Kestrel tell the same request one behind the other on one thread, and the last that
	// began there is the likely one of those that nothing else tells apart. Another one of them ends
	// first if it began first, unless those before it have but lost their ends, or if Kestrel told so.
	if of := th.serving; of != nil && of.open && of.hash == s.hash {
		return of, !th.stopping && !e.Kind.begins()
	}
	ending := 0
	for x, n := s, 0; x != nil && n < maxChoice; x, n = x.next, n+1 {
		if x.ending {
			ending++
		}
		if x.ending || !s.ending && !b.lossy {
			s = x
		}
	}
	return s, ending != 1 || e.Kind != ServerRequestStop
}

// tell takes what a span tells of s.
func (p *process) tell(s *server, of *Span) {
	for i, k := range of.keys() {
		if k == "" || s.keys[i] != "" {
			continue
		}
		s.keys[i] = k
		p.serverKeys[k] = s
	}
	q := &s.ServerRequest
	if q.RequestID == "" && of.RequestID != "" {
		p.reuse(of.RequestID)
		q.Port = int(p.ports[connectionOf(of.RequestID)])
	}
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&q.Method, of.Method}, {&q.Scheme, of.Scheme}, {&q.Host, of.Host}, {&q.Version, of.Version}, {&q.Route, of.Route},
		{&q.RequestID, of.RequestID}, {&q.TraceID, of.TraceID}, {&q.SpanID, of.SpanID}, {&q.ParentSpanID, of.ParentSpanID},
	} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	if len(of.Path) > len(q.Target) { // it has the query, or the base of the application, too
		q.Target = of.Path
	}
	if of.Status > 0 {
		q.Status = of.Status
	}
	if of.Took > 0 && q.StartUnknown {
		q.Took = of.Took
	}
	if of.ParentID != "" && s.parent == "" {
		p.asked(s, of.ParentID)
	}
	if s.above != nil && p.passedOn(s.above, s) {
		p.disown(s)
	}
}

// asked makes s the request by which the client's span of that id was served.
func (p *process) asked(s *server, parent string) {
	key := keyParent + parent
	s.parent, s.above = parent, p.serverKeys[key]
	p.serverKeys[key] = s
	s.Client = p.spanIDs[parent]
	if r := p.spans[parent]; r != nil {
		r.server, r.servedBy = s.ID, s
	}
}

// passedOn reports whether s, which began inside above and has the same parent, is what above asked
// for: a program that forwards requests with the headers they came with tells the parent of its own,
// and HttpClient leaves that as it is. What the client sent once more has the same parent, too, but
// goes to the same place.
func (p *process) passedOn(above, s *server) bool {
	to, _, _ := strings.Cut(s.Target, "?")
	of, _, _ := strings.Cut(above.Target, "?")
	switch {
	case to == "" || of == "":
		return false
	case to != of || s.Port != above.Port && s.Port != 0 && above.Port != 0:
		return true
	}
	for r, seen := p.open, 0; above.SpanID != "" && r != nil && seen < maxChoice; r, seen = r.openNext, seen+1 {
		if path, _, _ := strings.Cut(r.hop().at.target, "?"); path == to && r.parentSpanID == above.SpanID {
			return true
		}
	}
	return false
}

// disown takes s from the client whose span it names as its parent.
func (p *process) disown(s *server) {
	if key := keyParent + s.parent; p.serverKeys[key] == s {
		if delete(p.serverKeys, key); s.above.open {
			p.serverKeys[key] = s.above
		}
	}
	if r := p.spans[s.parent]; r != nil && r.servedBy == s {
		r.server, r.servedBy = s.above.ID, s.above
	}
	s.Client, s.above = 0, nil
}

func (b *Builder) emitServer(p *process, s *server) {
	if s.Took > 0 && s.Took <= s.Duration { // it began when only some of the recording was on
		s.Start += s.Duration - s.Took
		s.Duration, s.Took, s.StartUnknown = s.Took, 0, false
	}
	s.open = false
	delete(p.serverOpen, s)
	if s.hash == 0 {
		p.unnamed.ends()
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case p.servers[s.hash] != s:
	case s.next != nil:
		p.servers[s.hash] = s.next
	default:
		delete(p.servers, s.hash)
	}
	s.next, s.prev = nil, nil
	for _, k := range s.keys {
		if k != "" && p.serverKeys[k] == s {
			delete(p.serverKeys, k)
		}
	}
	if k := keyParent + s.parent; p.serverKeys[k] == s {
		delete(p.serverKeys, k)
	}
	s.above = nil
	if b.opts.Server != nil {
		b.opts.Server(&s.ServerRequest)
	}
	if r := s.client; r != nil && r.open {
		b.sent(p, s, r)
	}
}

// routeFits reports whether a path can be one of a route's: it has its fixed segments.
func routeFits(route, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i, want := range strings.Split(strings.Trim(route, "/"), "/") {
		switch {
		case strings.HasPrefix(want, "{*"):
			return true
		case strings.Contains(want, "{"): // which may be left out at the end
		case i >= len(segments) || !strings.EqualFold(segments[i], want):
			return false
		}
	}
	return true
}
