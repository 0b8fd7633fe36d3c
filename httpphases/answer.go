package httpphases

import (
	"cmp"
	"strings"
)

// Before .NET 5 the span of a request ends with the headers of its answer, and no event tells when
// the content has come. Where the process served the request itself, the other side tells: the
// content has come when that has sent it. A server that has sent all with the headers has mostly ended
// when these are read, but may get its processor late; so an answer goes on behind its headers where
// those of its route mostly do. One whose content is read by nobody ends otherwise: who asked closes
// the connection, or goes on at once.

// closedSoon is for how long behind a request its connection is closed for it, ns.
const closedSoon = int64(3e6)

// answerEnds counts the answers of a route: whether the server had ended when their headers were read.
type answerEnds struct{ with, behind int }

// maxRoutes bounds the routes whose answers are counted.
const maxRoutes = 10000

// ends returns the counts of the route of a request, which s served. A bridge that was asked for
// `[AS]*` tells what the client asked for only.
func (p *process) ends(r *request, s *server) *answerEnds {
	route := s.Route
	if route == "" {
		route = Route(cmp.Or(s.Target, r.hop().at.target))
	}
	e := p.answerEnds[route]
	if e == nil {
		if p.answerEnds == nil || len(p.answerEnds) >= maxRoutes {
			p.answerEnds = map[string]*answerEnds{}
		}
		e = &answerEnds{}
		p.answerEnds[route] = e
	}
	return e
}

// An answer is one whose headers have come and whose content has been sent.
type answer struct {
	to         *request
	connection string
	sent       int64
	reused     bool // another request came on the connection: it was read to the end
}

// answersOn reports whether the answer to r goes on behind its headers: the request is served here,
// and not done yet.
func (p *process) answersOn(r *request) bool {
	s := r.servedBy
	if s == nil || r.failed || r.spanStatus == 101 || r.method == "CONNECT" { // what a WebSocket carries is no content
		return false
	}
	if !s.open {
		p.ends(r, s).with++
		r.brokenOff(s)
		return false
	}
	s.client = r
	return true
}

// goesOn takes the start of a request on the thread that read the headers of the answer to r and did
// nothing since, as far as is told. If no other request is under way the thread is still in the code
// that asked, which so has all that it waited for.
func (b *Builder) goesOn(p *process, r *request) {
	if r == nil || !r.open || p.open != r || r.openNext != nil || r.redirected() {
		return
	}
	r.servedBy.client = nil
	b.emit(p, r)
}

// brokenOff notes that what served r failed when the headers were sent. A server that failed before
// has made an answer of that, which is whole: a 500, or 400, 408, 413 and the like for a request that
// it could not read.
func (r *request) brokenOff(s *server) {
	if s.Outcome == Failed && r.spanStatus < 400 {
		r.failed, r.endInferred, r.failText = true, true, "the server failed while it sent the answer"
	}
}

// sent takes the end of what served r, whose headers have come.
func (b *Builder) sent(p *process, s *server, r *request) {
	end := s.Start + s.Duration
	if r.brokenOff(s); r.failed {
		r.stop = max(r.stop, end)
	}
	if r.failed || s.Outcome != OK {
		b.emit(p, r)
		return
	}
	ends := p.ends(r, s)
	if ends.behind++; ends.behind <= ends.with {
		b.emit(p, r)
		return
	}
	connection := connectionOf(s.RequestID)
	p.answers = append(p.answers, answer{to: r, connection: connection, sent: end})
}

// connectionOf returns the connection of a request that Kestrel gave an id.
func connectionOf(request string) string {
	connection, _, _ := strings.Cut(request, ":")
	return connection
}

// reuse takes the id of a request that begins.
func (p *process) reuse(request string) {
	for i := range p.answers {
		a := &p.answers[i]
		a.reused = a.reused || a.connection == connectionOf(request)
	}
}

// settleAnswers ends the requests whose answers were sent, but for those whose connection is closed
// now, until a time when it would have been.
func (b *Builder) settleAnswers(p *process, closed string, now int64) {
	kept := p.answers[:0]
	for _, a := range p.answers {
		switch {
		case closed != "" && a.connection == closed && !a.reused:
			b.emit(p, a.to)
		case a.sent+closedSoon < now:
			a.settle()
			b.emit(p, a.to)
		default:
			kept = append(kept, a)
		}
	}
	clear(p.answers[len(kept):])
	p.answers = kept
}

// settle gives a request the end of its answer.
func (a *answer) settle() {
	r := a.to
	r.body = interval{start: r.stop, end: a.sent, inferred: true}
	r.stop = a.sent
}
