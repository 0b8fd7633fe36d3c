package requests

import (
	"cmp"
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
	byID   map[int]*other
	byPath map[string][]*other
	added  []*other
}

// An other is a request that the process served.
type other struct {
	*httpphases.ServerRequest
	taken  bool  // it is known whom it answered
	latest int64 // when the last of those of its path that were added before it, and it, had ended, ns
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

// pathOf returns the path of a target without escapes: Kestrel tells what it has decoded, the others
// what was sent.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	if strings.Contains(path, "%") {
		if plain, err := url.PathUnescape(path); err == nil {
			return plain
		}
	}
	return path
}

// Add takes a served request that has ended. Of too many the newer half is kept.
func (o *Others) Add(s *httpphases.ServerRequest) {
	if len(o.added) == others {
		kept := o.added[others/2:]
		o.added, o.byID = make([]*other, 0, others), nil
		for _, x := range kept {
			if !x.taken {
				o.add(x)
			}
		}
	}
	o.add(&other{ServerRequest: s})
}

func (o *Others) add(x *other) {
	if o.byID == nil {
		o.byID, o.byPath = map[int]*other{}, map[string][]*other{}
	}
	o.added = append(o.added, x)
	o.byID[x.ID] = x
	if !x.HasDuration {
		return // nothing but its id tells whom it answered
	}
	path := pathOf(x.Target)
	l := o.byPath[path]
	x.latest = x.Start + x.Duration
	if len(l) > 0 {
		x.latest = max(x.latest, l[len(l)-1].latest)
	}
	o.byPath[path] = append(l, x)
}

// toItself reports whether a host, or the path of a Unix socket, is of the machine that asks.
func toItself(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// peer returns where a connection goes that is used for a host and a port: a name may be any machine's.
func peer(c *httpphases.Connection, host string, port int) (string, int) {
	switch {
	case c == nil:
	case c.Proxy != "":
		return host, 0 // who knows where that goes
	case c.Elsewhere:
		return c.Remote, c.Port
	case c.Remote != "":
		return c.Remote, cmp.Or(c.Port, port)
	}
	return host, port
}

// An asked is what tells who served a request: the last exchange of its last hop.
type asked struct {
	process  uint32
	request  int    // its ID; 0: of an earlier hop or exchange
	path     string // "" if nobody here did
	port     int
	conn     int64 // only if hasConn
	hasConn  bool
	from, to int64  // when that began, ns
	end      int64  // until when it lasted
	sent     int64  // when its headers were
	thread   uint64 // that began to write them, on HTTP/2; 0: none tells an order
	answered int64  // when those of the answer were there, or to
	gaveUp   bool   // before that began, perhaps
	guessed  bool   // when it ended may be when another one did
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
	host, q.port = peer(r.Connection, host, q.port)
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
	q.gaveUp, q.guessed = r.Outcome != httpphases.OK, r.Guessed > 0
	if r.Version == "2.0" && !q.guessed {
		q.thread = r.HeadersBy
	}
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
	return q.path != "" && c.Start >= q.from && c.Start <= q.answered && q.reaches(c)
}

// reaches reports whether c came in where q went, as far as that is told: of another port another
// process is behind.
func (q *asked) reaches(c *httpphases.ServerRequest) bool {
	if c.Process != q.process {
		return false
	}
	port := at(c)
	return port == q.port || port == 0 || q.port == 0
}

// Settle finds out who served whom of the requests of a whole trace, in the order of their ends,
// and puts each behind the one that served it, if that ended later: so this one is explained first.
// of returns the request that a row is, made or served.
func Settle[R any](rows []R, of func(R) (*httpphases.Request, *httpphases.ServerRequest)) {
	made, byID, byPath := sides(rows, of)
	answered(made, byID)
	p := newPairs(made, byPath)
	p.guess(made, byID, untakenOf(made, byID, byPath, p))
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
				s = p.by[r.ID]
				r.Why.ServerGuessed = s != nil
			}
			r.Why.Server = s
		}
		if s != nil {
			delete(byID, s.ID) // it answers one request
			if settled[s.ID] == nil {
				waiting[s.ID] = append(waiting[s.ID], row)
				continue
			}
		}
		sorted = append(sorted, row)
	}
	copy(rows, sorted)
}

// guess finds out who served those of which neither an id nor the connection tells it. Those that
// gave up come behind those that had their answer, as nobody need have served them, and may leave
// one only to others of these.
func (p *Pairs) guess(made []*httpphases.Request, byID map[int]*httpphases.ServerRequest, free map[string]*untaken) {
	gaveUp := gaveUpOf(made, byID)
	for _, turn := range [3]bool{false, true, false} {
		for _, r := range made {
			if !r.HasDuration || byID[r.Server] != nil || p.by[r.ID] != nil {
				continue
			}
			q := asking(r)
			if q.gaveUp != turn {
				continue
			}
			s := p.theOnly(&q, free[q.path])
			if s == nil || q.gaveUp && p.rivals(gaveUp[q.path], &q, s) {
				continue
			}
			p.by[r.ID] = s
			take(free, s)
		}
	}
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

// answered tells those that had ended before who served them began, as one that gave up may have, by
// whom that was, where ids tell it.
func answered(made []*httpphases.Request, byID map[int]*httpphases.ServerRequest) {
	last := map[int]*httpphases.ServerRequest{} // by the ID of who asked
	for _, s := range byID {
		if o := last[s.Client]; o == nil || o.ID < s.ID {
			last[s.Client] = s
		}
	}
	for _, r := range made {
		if s := last[r.ID]; r.Server == 0 && s != nil {
			r.Server = s.ID
		}
	}
}

// An untaken is the requests of one path that the process served, in the order of their start, and
// when each ended: taken and unended are later than all. ends is a tree, as many may be in flight
// at once: its second half are these times, each of the others is the earlier one of its two.
type untaken struct {
	all  []*httpphases.ServerRequest
	ends []int64
}

const (
	taken   = math.MaxInt64
	unended = taken - 1
)

// untakenOf returns them by path: those of which it is known whom they answer are taken.
func untakenOf(made []*httpphases.Request, byID map[int]*httpphases.ServerRequest, byPath map[string][]*httpphases.ServerRequest, p *Pairs) map[string]*untaken {
	free := map[string]*untaken{}
	for path, l := range byPath {
		leaves := 1
		for leaves < len(l) {
			leaves *= 2
		}
		u := &untaken{l, make([]int64, 2*leaves)}
		for i := range u.ends {
			u.ends[i] = taken
		}
		for i, s := range l {
			end := int64(unended)
			if s.HasDuration {
				end = s.Start + s.Duration
			}
			u.set(i, end)
		}
		free[path] = u
	}
	for _, r := range made {
		for _, s := range [2]*httpphases.ServerRequest{byID[r.Server], p.by[r.ID]} {
			if s != nil {
				take(free, s)
			}
		}
	}
	return free
}

// gaveUpOf returns what tells who served those that gave up and of which no id tells it, by path
// and in the order of their start; end is when the last of those up to each one did.
func gaveUpOf(made []*httpphases.Request, byID map[int]*httpphases.ServerRequest) map[string][]asked {
	by := map[string][]asked{}
	for _, r := range made {
		if q := asking(r); q.gaveUp && byID[r.Server] == nil {
			by[q.path] = append(by[q.path], q)
		}
	}
	for _, l := range by {
		sort.SliceStable(l, func(i, k int) bool { return l[i].from < l[k].from })
		for i := range l {
			if l[i].end = l[i].answered; i > 0 {
				l[i].end = max(l[i].end, l[i-1].end)
			}
		}
	}
	return by
}

// rivals reports whether another one of those that gave up may have asked for s: q may then be one
// that was never served, or not yet when it gave up.
func (p *Pairs) rivals(gaveUp []asked, q *asked, s *httpphases.ServerRequest) bool {
	i := sort.Search(len(gaveUp), func(i int) bool { return gaveUp[i].from > s.Start })
	for looks := 0; i > 0 && gaveUp[i-1].end >= s.Start; looks++ {
		i--
		o := &gaveUp[i]
		if looks == maxServed || o.request != q.request && p.by[o.request] == nil && o.began(s) && p.allows(o, s) {
			return true
		}
	}
	return false
}

func take(free map[string]*untaken, s *httpphases.ServerRequest) {
	u := free[pathOf(s.Target)]
	i := u.from(s.Start)
	for u.all[i] != s {
		i++
	}
	u.set(i, taken)
}

func (u *untaken) set(i int, end int64) {
	i += len(u.ends) / 2
	for u.ends[i] = end; i > 1; i /= 2 {
		u.ends[i/2] = min(u.ends[i], u.ends[i^1])
	}
}

// next returns the first one from i on that had ended by some time, or one behind all.
func (u *untaken) next(i int, end int64) int {
	leaves := len(u.ends) / 2
	if i >= leaves {
		return leaves
	}
	for i += leaves; u.ends[i] > end; i++ {
		for i%2 == 1 {
			i /= 2
		}
		if i == 0 {
			return leaves
		}
	}
	for i < leaves {
		if i *= 2; u.ends[i] > end {
			i++
		}
	}
	return i - leaves
}

// from returns the first one that began at a time or later.
func (u *untaken) from(start int64) int {
	return sort.Search(len(u.all), func(i int) bool { return u.all[i].Start >= start })
}

// theOnly returns the only request of those not taken yet that can have served q, nil if there are
// none or several. Of those that had ended before q there is one rather than of those that wrote
// their end later, and rather of these than of those that went on.
func (p *Pairs) theOnly(q *asked, of *untaken) *httpphases.ServerRequest {
	if of == nil {
		return nil
	}
	s, none := p.theOnlyUntil(q, of)
	if none && q.end < math.MaxInt64 && !q.guessed {
		goesOn := *q
		goesOn.end = math.MaxInt64
		s, _ = p.theOnlyUntil(&goesOn, of)
	}
	return s
}

// theOnlyUntil is theOnly of those that had ended when q.end says. It also reports whether there are none.
func (p *Pairs) theOnlyUntil(q *asked, of *untaken) (_ *httpphases.ServerRequest, none bool) {
	var only [2]*httpphases.ServerRequest
	var n [2]int
	until, end, looks := q.to, min(q.end, unended), 0
	if q.gaveUp {
		until += slack
	}
	for i := of.next(of.from(q.from), end); i < len(of.all) && of.all[i].Start <= until; i = of.next(i+1, end) {
		c := of.all[i]
		if looks++; looks > maxServed {
			return nil, false
		}
		switch {
		case !q.reaches(c), !p.allows(q, c):
		case c.Start > q.to: // it can be what q had asked for
			return nil, false
		case q.served(c):
			k := 0
			if q.end < math.MaxInt64 && c.Start+c.Duration > q.to {
				k = 1
			}
			only[k] = c
			if n[k]++; n[0] > 1 {
				return nil, false
			}
		}
	}
	switch {
	case n[0] == 1:
		return only[0], false
	case n[0] == 0 && n[1] == 1:
		return only[1], false
	}
	return nil, n[1] == 0
}

// Of returns the request by which r was served, as Settle found it, else the one that ids name,
// else the only one of its path that r holds, of those that have been added, and no other request
// does; then it is guessed.
func (o *Others) Of(r *httpphases.Request) (s *httpphases.ServerRequest, guessed bool) {
	if r.Why != nil {
		return r.Why.Server, r.Why.ServerGuessed
	}
	x := o.byID[r.Server]
	if x == nil {
		q := asking(r)
		l := o.byPath[q.path]
		for i := len(l) - 1; i >= 0 && l[i].latest >= q.from; i-- {
			if c := l[i]; !c.taken && q.served(c.ServerRequest) && o.Pairs.allows(&q, c.ServerRequest) {
				if x != nil {
					return nil, false
				}
				x = c
			}
		}
		guessed = x != nil
	}
	if x == nil {
		return nil, false
	}
	x.taken = true
	delete(o.byID, x.ID)
	return x.ServerRequest, guessed
}

// slack is how much later than the client a server may write that a request is over, ns:
// the answer is on its way before.
const slack = int64(5e6)
