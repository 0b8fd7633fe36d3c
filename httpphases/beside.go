package httpphases

import "slices"

// A handler may have several exchanges of one request under way at a time: one that hedges sends the
// request again, to the same place or another, if the answer is late, and takes the first answer. A
// stop has the number of its start. The start of an answer has its own, and HTTP/1.1 begins it when
// the answer comes: whose it is, nothing tells. Who is given up has its connection closed.

// underWay returns the exchange of h that an event of one is of, and whether no other can be meant:
// the last one that fits it, or the last one at all.
func (h *hop) underWay(k Kind, ord uint32) (*exchange, bool) {
	var x *exchange
	sure := true
	for i := len(h.ex) - 1; i >= 0; i-- {
		o := &h.ex[i]
		if !o.fits(k, ord) || o.conn != nil && o.conn.closed && k == ResponseHeadersStart {
			continue
		}
		if x == nil {
			x = o
		} else if k == ResponseHeadersStart && x.conn != nil && x.conn.major < 2 {
			sure = false
		}
	}
	if x == nil {
		x = h.last()
	}
	return x, sure
}

// fits reports whether an event of a kind, whose activity has a number below the request, can go on
// with x.
func (x *exchange) fits(k Kind, ord uint32) bool {
	switch k {
	case RequestHeadersStop:
		return x.headers.open() && x.ord[0] == ord
	case RequestContentStart:
		return x.headers.closed() && !x.content.begun() && !x.resp.closed()
	case RequestContentStop:
		return x.content.open() && x.ord[1] == ord
	case ResponseHeadersStart:
		return x.headers.closed() && !x.resp.begun()
	case ResponseHeadersStop:
		return x.resp.open() && x.ord[2] == ord
	}
	return false
}

// abandoned takes the end of a connection of HTTP/1.1. If it is that of an exchange that was given an
// answer which nobody has read on yet, and another exchange waits for one on a connection that is
// still open, the answer was to the other one.
func (c *connection) abandoned() {
	r := c.lastUser
	if r == nil || !r.open || c.major > 1 || r.body.begun() {
		return
	}
	h := r.hop()
	x := h.last()
	for i := range h.ex {
		if o := &h.ex[i]; o.resp.end > x.resp.end {
			x = o
		}
	}
	if x == nil || x.conn != c || !x.resp.closed() {
		return
	}
	for i := range h.ex {
		o := &h.ex[i]
		if o.headers.closed() && !o.resp.begun() && o.conn != nil && o.conn.major == 1 && !o.conn.closed && o.headers.end < x.resp.start {
			o.resp, o.status, o.hasStatus, o.ord[2] = x.resp, x.status, x.hasStatus, x.ord[2]
			x.unanswered()
			return
		}
	}
}

// decide cuts off what is beside the exchange of h whose answer counts, which is the last one then,
// and returns the exchanges among that: the row of a request has one at a time.
func (h *hop) decide() (beside []exchange) {
	n := len(h.ex) - 1
	if n < 0 {
		return nil
	}
	last := h.ex[n].headers.start
	for i := range h.ex {
		if x := &h.ex[i]; x.resp.closed() && x.resp.end > last && x.resp.end > h.ex[n].resp.end {
			n = i
		}
	}
	x := &h.ex[n]
	h.queues = slices.DeleteFunc(h.queues, func(q queueing) bool { return q.start > x.headers.start && q.start < x.resp.end })
	beside, h.ex = h.ex[n+1:], h.ex[:n+1:n+1]
	return beside
}

// cut ends the phases from n on at bound.
func (w *rowWriter) cut(n int, bound int64) {
	l := w.phases[:n]
	for _, p := range w.phases[n:] {
		if p.Start > bound {
			continue
		}
		if !p.Open {
			p.Duration = min(p.Duration, bound-p.Start)
		}
		l = append(l, p)
	}
	w.phases = l
}
