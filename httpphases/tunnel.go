package httpphases

import (
	"cmp"
	"slices"
)

// A connection that goes elsewhere than its request is one to a proxy, which is sent a CONNECT first,
// or a handler sends the request to another place than it was made for: a service discovery that
// turns https://catalog into http://10.0.0.7:8080. Until the answer both look the same. A CONNECT is
// not what the program gets the answer to.

// An origin is a place that a connection goes to.
type origin struct {
	host string
	port int
}

// A talk is what a CONNECT is if it is none: an exchange of the request.
type talk struct {
	exchange
	first  bool     // on its connection
	owner  *request // that the attempt had before
	known  bool     // the attempt was one of the request's before
	queues []queueing
}

// toProxy reports whether c can be a connection that a CONNECT is sent on: those are of HTTP/1.1,
// and their scheme is http, even where TLS goes to the proxy.
func (p *process) toProxy(c *connection) bool {
	_, is := p.origins[origin{c.host, c.port}]
	return !is && c.scheme != "https" && c.major < 2
}

// proves reports whether an event can tell that what looks like a CONNECT is none.
func (e *Event) proves() bool {
	switch e.Kind {
	case RequestContentStart, ResponseContentStart, RequestRedirect:
		return true
	case RequestStop:
		return e.HasStatus && e.Status >= 0
	}
	return false
}

// talked returns the attempt of r whose CONNECT is none, as e is about its content or its answer;
// nil if e is not.
func (r *request) talked(e *Event) *attempt {
	if !r.tunnels {
		return nil
	}
	x := r.hop().last()
	if x != nil && x.resp.closed() {
		return nil // that is answered
	}
	for _, a := range slices.Backward(r.attempts) {
		if a.proxy == nil || a.conn != nil || len(a.tls) > 0 || a.tunnel.closed() == (e.Kind == RequestContentStart) ||
			x != nil && x.headers.start >= a.tunnel.start || r.hop().waitedFor(a) {
			continue
		}
		return a
	}
	return nil
}

// waitedFor reports whether h waited for a connection until the CONNECT of a was over: it was one,
// and the proxy refused it.
func (h *hop) waitedFor(a *attempt) bool {
	return slices.ContainsFunc(h.queues, func(q queueing) bool { return q.start <= a.talk.headers.start && q.end >= a.tunnel.end })
}

// exchanged makes what looked like the CONNECT of a an exchange of r. Its connection goes to no
// proxy, and neither do others to the same place.
func (p *process) exchanged(r *request, a *attempt) {
	h, c, x := r.hop(), a.proxy, a.talk.exchange
	if len(p.origins) == maxOrigins {
		clear(p.origins)
	}
	p.origins[origin{c.host, c.port}] = struct{}{}
	a.proxy, a.tls, a.proxyTLS = nil, a.proxyTLS, nil
	a.tunnel, a.tunnelStatus = unseen, 0
	a.conn, c.attempt = c, nil
	if x.conn, x.first = c, a.talk.first; x.first {
		x.attempt = a
	}
	if a.owner = a.talk.owner; !a.talk.known {
		r.attempts = slices.DeleteFunc(r.attempts, func(o *attempt) bool { return o == a })
	}
	p.drop(a)
	x.again, c.seen = c.seen && c.hasID, true
	c.lastUser = r
	if !x.resp.closed() {
		c.user = r
	}
	h.queues = append(h.queues, a.talk.queues...)
	slices.SortStableFunc(h.queues, func(v, w queueing) int { return cmp.Compare(v.start, w.start) })
	h.ex = append(h.ex, x)
}
