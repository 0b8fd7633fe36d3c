package requests

import (
	"maps"
	"math"
	"net"
	"net/url"
	"sort"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
)

// Others are requests that the process served, until the one that asked for each ends: it
// does so behind it. The zero value is empty.
type Others struct {
	Pairs  *Pairs // of connections, as far as they are known; may be nil
	byID   map[int]*httpphases.ServerRequest
	byPath map[string][]*httpphases.ServerRequest
}

// at returns the port at which s came in, 0 if nothing tells.
func at(s *httpphases.ServerRequest) int {
	if s.Port != 0 {
		return s.Port
	}
	_, port := s.Place()
	return port
}

// others is how many of them are kept.
const others = 20000

func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

// Add takes a served request that has ended.
func (o *Others) Add(s *httpphases.ServerRequest) {
	if o.byID == nil || len(o.byID) >= others {
		o.byID, o.byPath = map[int]*httpphases.ServerRequest{}, map[string][]*httpphases.ServerRequest{}
	}
	o.byID[s.ID] = s
	path := pathOf(s.Target)
	o.byPath[path] = append(o.byPath[path], s)
}

// toItself reports whether a host is the machine that asks.
func toItself(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// An asked is what tells who served a request: the last exchange of its last hop.
type asked struct {
	process  uint32
	request  int    // its ID; 0: of an earlier hop or exchange
	path     string // "" if nobody here did
	port     int
	conn     int64 // only if hasConn
	hasConn  bool
	from, to int64 // when that began, ns
	end      int64 // until when it lasted
	sent     int64 // when its headers were
	answered int64 // when those of the answer were there, or to
	gaveUp   bool  // before that began, perhaps
}

func asking(r *httpphases.Request) (q asked) {
	if !r.HasDuration || r.TraceID != "" {
		return q
	}
	host, target := r.Host, r.Target
	q.process, q.request, q.port, q.from, q.to = r.Process, r.ID, r.Port, r.Start, r.Start+r.Duration
	if c := r.Connection; c != nil && c.HasID {
		q.conn, q.hasConn = c.ID, true
	}
	q.sent, q.answered = q.to, q.to
	if n := len(r.Redirects); n > 0 {
		last := &r.Redirects[n-1]
		u, err := url.Parse(last.URL)
		if err != nil {
			return q
		}
		host, target, q.port, q.from = u.Hostname(), u.EscapedPath(), portOf(u), last.Start+last.Duration
	}
	if r.Connection != nil && r.Connection.Proxy != "" {
		q.port = 0 // who knows where that goes
	}
	sent := r.SpanOnly || r.Outcome == httpphases.OK
	for i := range r.Phases {
		if r.Phases[i].Name == httpphases.RequestHeaders {
			sent, q.from, q.sent = true, max(q.from, r.Phases[i].Start), q.to
			if !r.Phases[i].Open {
				q.sent = r.Phases[i].End()
			}
			if r.Guessed > 0 {
				break // the next one may be another request's
			}
		}
	}
	if r.HeadersAt > q.from {
		q.answered = min(q.to, r.HeadersAt)
	}
	if !sent || !toItself(host) {
		return q
	}
	q.path, q.end = pathOf(target), q.to+slack
	q.gaveUp = r.Outcome != httpphases.OK
	if q.gaveUp || !r.BodyObserved {
		q.end = math.MaxInt64 // it gave up, or was over with the headers of the answer
	}
	return q
}

// served reports whether c can be what served q, of whose path it is.
func (q *asked) served(c *httpphases.ServerRequest) bool {
	return q.began(c) && c.HasDuration && c.Start+c.Duration <= q.end
}

// began reports whether c began when what served q did.
func (q *asked) began(c *httpphases.ServerRequest) bool {
	return q.path != "" && q.reaches(c) && c.Start >= q.from && c.Start <= q.answered
}

// reaches reports whether c came in where q went, as far as that is told: of another port another process is behind.
func (q *asked) reaches(c *httpphases.ServerRequest) bool {
	if c.Process != q.process {
		return false
	}
	port := at(c)
	return port == q.port || port == 0 || q.port == 0
}

// Settle finds out who served whom of the requests of a whole trace, in the order of their ends, and puts each behind the one
// that served it, if that ended later: so this one is explained first. of returns the request that a row is, made or served.
func Settle[R any](rows []R, of func(R) (*httpphases.Request, *httpphases.ServerRequest)) {
	made, byID, byPath := sides(rows, of)
	p := newPairs(made, byPath)
	free := maps.Clone(byID) // but for those of which it is known whom they answer
	for _, r := range made {
		delete(free, r.Server)
	}
	for _, s := range p.by {
		delete(free, s.ID)
	}
	settled := map[int]*httpphases.ServerRequest{} // by id: nil while those that asked wait for it
	waiting := map[int][]R{}
	sorted := make([]R, 0, len(rows))
	for _, row := range rows {
		r, s := of(row)
		if s != nil {
			sorted = append(append(sorted, row), waiting[s.ID]...)
			delete(waiting, s.ID)
			settled[s.ID] = s
			continue
		}
		if r.HasDuration {
			r.Why = &httpphases.Explanation{}
			if s = byID[r.Server]; s == nil {
				q := asking(r)
				if s = p.by[r.ID]; s == nil {
					s = theOnly(q, byPath, free, func(c *httpphases.ServerRequest) bool { return p.allows(&q, c) })
				}
				r.Why.ServerGuessed = s != nil
			}
			r.Why.Server = s
		}
		if s != nil {
			delete(byID, s.ID) // it answers one request
			delete(free, s.ID)
			if settled[s.ID] == nil {
				waiting[s.ID] = append(waiting[s.ID], row)
				continue
			}
		}
		sorted = append(sorted, row)
	}
	copy(rows, sorted)
}

// sides returns what was made, and what was served by its ID and by its path, in the order of its start.
func sides[R any](rows []R, of func(R) (*httpphases.Request, *httpphases.ServerRequest)) (made []*httpphases.Request, byID map[int]*httpphases.ServerRequest, byPath map[string][]*httpphases.ServerRequest) {
	byID, byPath = map[int]*httpphases.ServerRequest{}, map[string][]*httpphases.ServerRequest{}
	for _, row := range rows {
		r, s := of(row)
		if s == nil {
			made = append(made, r)
			continue
		}
		byID[s.ID] = s
		path := pathOf(s.Target)
		byPath[path] = append(byPath[path], s)
	}
	for _, l := range byPath {
		sort.SliceStable(l, func(i, k int) bool { return l[i].Start < l[k].Start })
	}
	return made, byID, byPath
}

// theOnly returns the only request of those not taken yet that can have served q, nil if there are none or several. Of those
// that had ended before q there is one rather than of those that wrote their end later.
func theOnly(q asked, byPath map[string][]*httpphases.ServerRequest, free map[int]*httpphases.ServerRequest, may func(*httpphases.ServerRequest) bool) *httpphases.ServerRequest {
	var only [2]*httpphases.ServerRequest
	var n [2]int
	l, until := byPath[q.path], q.to
	if q.gaveUp {
		until += slack
	}
	for i := sort.Search(len(l), func(i int) bool { return l[i].Start >= q.from }); i < len(l) && l[i].Start <= until; i++ {
		c := l[i]
		switch {
		case free[c.ID] == nil, !q.reaches(c), !may(c):
		case c.Start > q.to: // it can be what q had asked for
			return nil
		case q.served(c):
			k := 0
			if q.end < math.MaxInt64 && c.Start+c.Duration > q.to {
				k = 1
			}
			only[k] = c
			if n[k]++; n[0] > 1 {
				return nil
			}
		}
	}
	switch {
	case n[0] == 1:
		return only[0]
	case n[0] == 0 && n[1] == 1:
		return only[1]
	}
	return nil
}

// Of returns the request by which r was served, as Settle found it, else the one that ids name, else the only one of its path
// that r holds, of those that have been added, and no other request does; then it is guessed.
func (o *Others) Of(r *httpphases.Request) (s *httpphases.ServerRequest, guessed bool) {
	if r.Why != nil {
		return r.Why.Server, r.Why.ServerGuessed
	}
	q := asking(r)
	if s = o.byID[r.Server]; s == nil {
		for _, c := range o.byPath[q.path] {
			if !q.served(c) || !o.Pairs.allows(&q, c) {
				continue
			}
			if s != nil {
				return nil, false
			}
			s = c
		}
		guessed = s != nil
	}
	if s == nil {
		return nil, false
	}
	delete(o.byID, s.ID)
	list := o.byPath[q.path]
	kept := list[:0]
	for _, c := range list {
		if c != s && c.Start+c.Duration > r.Start-int64(60e9) {
			kept = append(kept, c)
		}
	}
	o.byPath[q.path] = kept
	return s, guessed
}

// slack is how much later than the client a server may write that a request is over, ns:
// the answer is on its way before.
const slack = int64(5e6)
