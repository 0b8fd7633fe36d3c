package requests

import (
	"math"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
)

// Pairs tells which connection of a client is which of the server. No event does: a client's has a
// number, Kestrel's an id. But all that is asked on one is served on the other, and nothing else
// is, so that of connections with some requests on them mostly one fits only.
type Pairs struct {
	server map[clientKey]serverKey
	client map[serverKey]clientKey
	by     map[int]*httpphases.ServerRequest // by the ID of the Request: who served it
}

type clientKey struct {
	process uint32
	id      int64
}

type serverKey struct {
	process uint32
	id      string
}

// A clientEnd is a connection as the client knows it.
type clientEnd struct {
	key    clientKey
	asked  []asked
	fits   []fit
	paired bool
}

// A serverEnd is one as Kestrel knows it.
type serverEnd struct {
	key    serverKey
	served []*httpphases.ServerRequest
	ended  int // of served, of which all is known
	fits   []clientFit
	paired bool
}

type clientFit struct {
	client *clientEnd
	*fit
}

// A fit is how well a connection of the server is one of the client.
type fit struct {
	server        *serverEnd
	right, misses int
}

// rival reports whether it may be the one, sure whether nothing speaks against it but what is lost
// or guessed elsewhere, and exact whether nothing does.
func (f *fit) rival() bool { return f.right > 0 && f.misses <= f.right }
func (f *fit) sure() bool  { return 10*f.misses <= f.right }
func (f *fit) exact() bool { return f.misses == 0 }

const (
	maxFits   = 1 << 20 // of all connections
	maxServed = 1 << 9  // requests that one may have been served by: with more, it tells of none
	inOrder   = 1 << 6  // requests of a connection that are looked at together
	passes    = 1 << 3  // through them
)

// connection returns the connection that a request was served on.
func connection(s *httpphases.ServerRequest) (k serverKey, number int64, ok bool) {
	id, n, ok := strings.Cut(s.RequestID, ":")
	number, err := strconv.ParseInt(n, 16, 64)
	return serverKey{s.Process, id}, number, ok && err == nil && id != ""
}

// Pair pairs the connections of the first requests of a trace, in the order of their ends, as
// Settle takes them: of those that Settle does not see.
func Pair[R any](rows []R, of func(R) (*httpphases.Request, *httpphases.ServerRequest)) *Pairs {
	made, _, byPath := sides(rows, of)
	return newPairs(made, byPath)
}

// newPairs pairs the connections of a whole trace. byPath has what was served, by path and in the
// order of its start.
func newPairs(made []*httpphases.Request, byPath map[string][]*httpphases.ServerRequest) *Pairs {
	p := &Pairs{server: map[clientKey]serverKey{}, client: map[serverKey]clientKey{}, by: map[int]*httpphases.ServerRequest{}}
	servers := map[serverKey]*serverEnd{}
	for _, l := range byPath {
		for _, s := range l {
			k, _, ok := connection(s)
			if !ok {
				continue
			}
			end := servers[k]
			if end == nil {
				end = &serverEnd{key: k}
				servers[k] = end
			}
			if end.served = append(end.served, s); s.HasDuration && !s.StartUnknown {
				end.ended++
			}
		}
	}
	if len(servers) == 0 {
		return p
	}
	clients := clientEnds(made)
	fits := 0
	for _, c := range clients {
		c.fit(byPath, servers)
		if fits += len(c.fits); fits > maxFits {
			return p
		}
	}
	pair := func(meant func(*fit) bool) (any bool) {
		for _, c := range clients {
			if s := c.only(meant); s != nil {
				c.paired, s.paired, any = true, true, true
				p.server[c.key], p.client[s.key] = s.key, c.key
				p.settle(c, s)
			}
		}
		return any
	}
	for pair((*fit).exact) || pair((*fit).rival) {
	}
	return p
}

// clientEnds returns the connections on which requests were made, in the order of the first one.
func clientEnds(made []*httpphases.Request) []*clientEnd {
	var ends []*clientEnd
	byKey := map[clientKey]*clientEnd{}
	add := func(q asked, conn int64) {
		if q.path == "" {
			return
		}
		k := clientKey{q.process, conn}
		end := byKey[k]
		if end == nil {
			end = &clientEnd{key: k}
			byKey[k], ends = end, append(ends, end)
		}
		end.asked = append(end.asked, q)
	}
	for _, r := range made {
		for i := range r.Redirects {
			if c := r.Redirects[i].Connection; c != nil && c.HasID {
				add(askingHop(r, &r.Redirects[i]), c.ID)
			}
		}
		q := asking(r)
		for i := range r.Earlier {
			if x := &r.Earlier[i]; r.Guessed == 0 {
				e := q
				e.earlier(x)
				add(e, x.Connection)
			}
		}
		if q.hasConn {
			add(q, q.conn)
		}
	}
	for _, end := range ends {
		sort.SliceStable(end.asked, func(i, k int) bool { return end.asked[i].from < end.asked[k].from })
	}
	return ends
}

// askingHop returns what tells who served an earlier hop of a chain of redirects.
func askingHop(r *httpphases.Request, hop *httpphases.Redirect) (q asked) {
	u, err := url.Parse(hop.From)
	if err != nil || r.TraceID != "" {
		return q
	}
	host, port := peer(hop.Connection, u.Hostname(), portOf(u))
	if !toItself(host) {
		return q
	}
	q = asked{process: r.Process, from: hop.Start, to: hop.Start + hop.Duration, path: pathOf(u.EscapedPath()), port: port}
	q.sent, q.answered = q.to, q.to
	for i := range hop.Phases {
		if ph := &hop.Phases[i]; ph.Name == httpphases.RequestHeaders && !ph.Open {
			q.from, q.sent = max(q.from, ph.Start), ph.End()
			break
		}
	}
	q.end = math.MaxInt64 // it is over with the headers of the answer
	return q
}

// earlier makes q what tells who served an exchange before it.
func (q *asked) earlier(x *httpphases.Exchange) {
	q.request, q.from, q.sent, q.answered, q.thread = 0, x.From, x.Sent, x.Answered, 0
	if q.gaveUp = x.Answered == 0; q.gaveUp {
		q.answered = q.to
	}
	q.to, q.end = q.answered, math.MaxInt64 // what became of the answer is not told
}

func portOf(u *url.URL) int {
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
		return port
	case u.Scheme == "https":
		return 443
	}
	return 80
}

// fit finds the connections of the server that c can be.
func (c *clientEnd) fit(byPath map[string][]*httpphases.ServerRequest, servers map[serverKey]*serverEnd) {
	type count struct{ asked, served, last int }
	counts := map[*serverEnd]*count{}
	seen := map[int]struct{}{}
	needed := 0
	var order []*serverEnd
	for i := range c.asked {
		q := c.asked[i]
		if q.gaveUp { // what it asked for may be on its way still
			q.to, q.answered = q.to+slack, q.answered+slack
		}
		l := byPath[q.path]
		from := sort.Search(len(l), func(i int) bool { return l[i].Start >= q.from })
		if from+maxServed < len(l) && l[from+maxServed].Start <= q.to {
			continue
		}
		if !q.gaveUp {
			needed++
		}
		for ; from < len(l) && l[from].Start <= q.to; from++ {
			s := l[from]
			k, _, _ := connection(s)
			end := servers[k]
			if end == nil || !q.began(s) {
				continue
			}
			n := counts[end]
			if n == nil {
				n = &count{last: -1}
				counts[end], order = n, append(order, end)
			}
			if n.last != i && !q.gaveUp {
				n.asked++
			}
			n.last = i
			if _, twice := seen[s.ID]; !twice && !s.StartUnknown {
				seen[s.ID] = struct{}{}
				n.served++
			}
		}
	}
	for _, end := range order {
		n := counts[end]
		f := fit{server: end, right: n.served, misses: needed - n.asked + end.ended - n.served}
		if f.rival() {
			c.fits = append(c.fits, f)
		}
	}
	for i := range c.fits {
		f := &c.fits[i]
		f.server.fits = append(f.server.fits, clientFit{c, f})
	}
}

// only returns the connection of the server that c is: the only one of those meant, for which there
// is no other one either; nil if that is not known.
func (c *clientEnd) only(meant func(*fit) bool) *serverEnd {
	if c.paired {
		return nil
	}
	var only *fit
	for i := range c.fits {
		if f := &c.fits[i]; !f.server.paired && meant(f) {
			if only != nil {
				return nil
			}
			only = f
		}
	}
	if only == nil || !only.sure() {
		return nil
	}
	for _, o := range only.server.fits {
		if o.client != c && !o.client.paired && meant(o.fit) {
			return nil
		}
	}
	return only.server
}

// allows reports whether s may have served q by their connections.
func (p *Pairs) allows(q *asked, s *httpphases.ServerRequest) bool {
	k, _, ok := connection(s)
	if !ok || !q.hasConn || p == nil {
		return true
	}
	c := clientKey{q.process, q.conn}
	if is, paired := p.server[c]; paired {
		return is == k
	}
	_, taken := p.client[k]
	return !taken
}

// settle finds out who served whom on a connection. HTTP/2 numbers requests in the order in which
// their headers are written, and HTTP/1 has one after the other: what was sent before another one
// began has the smaller number. On HTTP/2 a thread begins to write headers, and has put them into the
// connection's queue before it does anything else: of one thread, what began first has the smaller one.
func (p *Pairs) settle(c *clientEnd, s *serverEnd) {
	sort.SliceStable(s.served, func(i, k int) bool {
		_, a, _ := connection(s.served[i])
		_, b, _ := connection(s.served[k])
		return a < b
	})
	at := make(map[string][]int, 8) // by path, those of s.served in the order of their start
	for i, r := range s.served {
		path := pathOf(r.Target)
		at[path] = append(at[path], i)
	}
	for _, l := range at {
		sort.SliceStable(l, func(i, k int) bool { return s.served[l[i]].Start < s.served[l[k]].Start })
	}
	may := make([][]int, len(c.asked)) // numbers in s.served
	many := map[string][]int{}         // by path: by how much more of those who are not in may ask for each one than for the one before it
	for i := range c.asked {
		q := &c.asked[i]
		l := at[q.path]
		from := sort.Search(len(l), func(i int) bool { return s.served[l[i]].Start >= q.from })
		to := from
		for to < len(l) && to-from <= maxServed && s.served[l[to]].Start <= q.answered {
			to++
		}
		if to-from > maxServed { // each of them may be its own, and that is all that is kept of it
			if many[q.path] == nil {
				many[q.path] = make([]int, len(l)+1)
			}
			many[q.path][from]++
			many[q.path][sort.Search(len(l), func(i int) bool { return s.served[l[i]].Start > q.answered })]--
			continue
		}
		may[i] = q.allServed(s.served, l[from:to])
		if len(may[i]) == 0 && !q.guessed {
			q.end = math.MaxInt64 // who served it went on
			may[i] = q.allServed(s.served, l[from:to])
		}
		slices.Sort(may[i])
	}
	c.rank(may, len(s.served))
	for again, n := true, 0; again && n < passes; n++ {
		again = c.narrow(may)
	}
	users := make([]int, len(s.served))
	for path, more := range many {
		n := 0
		for i, k := range at[path] {
			n += more[i]
			users[k] = n
		}
	}
	for i := range may {
		for _, k := range may[i] {
			users[k]++
		}
	}
	for i := range may {
		if q := &c.asked[i]; len(may[i]) == 1 && users[may[i][0]] == 1 && q.request != 0 {
			p.by[q.request] = s.served[may[i][0]]
		}
	}
}

// allServed returns which of the numbers are those of requests that can be what served q.
func (q *asked) allServed(by []*httpphases.ServerRequest, numbers []int) (may []int) {
	for _, k := range numbers {
		if q.served(by[k]) {
			may = append(may, k)
		}
	}
	return may
}

// rank takes out of what may have served each request, of n that were served on the connection,
// what is too early or too late: those that were sent before it began, or began when it was sent,
// have smaller or larger numbers.
func (c *clientEnd) rank(may [][]int, n int) {
	var sent, from []int64
	for i := range c.asked {
		if q := &c.asked[i]; !q.gaveUp && len(may[i]) > 0 {
			sent, from = append(sent, q.sent), append(from, q.from)
		}
	}
	slices.Sort(sent)
	for i := range may {
		q := &c.asked[i]
		before, _ := slices.BinarySearch(sent, q.from+1)
		behind, _ := slices.BinarySearch(from, q.sent)
		behind = len(from) - behind
		may[i] = slices.DeleteFunc(may[i], func(k int) bool { return k < before || k >= n-behind })
	}
}

// narrow takes out of what may have served each request what the others leave it not, and reports
// whether there was any.
func (c *clientEnd) narrow(may [][]int) (any bool) {
	drop := func(i int, out func(k int) bool) {
		n := len(may[i])
		if may[i] = slices.DeleteFunc(may[i], out); len(may[i]) < n {
			any = true
		}
	}
	for i := range may {
		for j := max(0, i-inOrder); j < i; j++ {
			a, b := &c.asked[j], &c.asked[i]
			if !a.gaveUp && len(may[j]) == 1 {
				drop(i, func(k int) bool { return k == may[j][0] })
			}
			if !b.gaveUp && len(may[i]) == 1 {
				drop(j, func(k int) bool { return k == may[i][0] })
			}
			if a.sent > b.from && (a.thread == 0 || a.thread != b.thread) {
				continue
			}
			if !a.gaveUp && len(may[j]) > 0 {
				first := may[j][0]
				drop(i, func(k int) bool { return k <= first })
			}
			if n := len(may[i]); !b.gaveUp && n > 0 {
				last := may[i][n-1]
				drop(j, func(k int) bool { return k >= last })
			}
		}
	}
	return any
}
