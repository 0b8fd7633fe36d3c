package httpphases

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// never is the time of what has not happened.
const never = int64(-1) << 62

// Values of HttpVersionPolicy; 0 is RequestVersionOrLower.
const (
	orHigher = 1
	exactly  = 2
)

// A span of time with an end that may be missing.
type interval struct {
	start, end int64 // never: not seen
	err        string
	failed     bool
	failedAt   int64 // of those that say so by an event of their own
	inferred   bool
}

func (v *interval) begun() bool  { return v.start != never }
func (v *interval) open() bool   { return v.start != never && v.end == never }
func (v *interval) closed() bool { return v.start != never && v.end != never }

var unseen = interval{start: never, end: never}

// A wait for a connection, as RequestLeftQueue reports it.
type queueing struct {
	start, end   int64
	major, minor uint8
}

// An exchange is one request header block with its answer. A hop has several when it
// was retried or challenged.
type exchange struct {
	conn      *connection
	connID    int64
	hasConn   bool
	first     bool     // first user of the connection
	again     bool     // another one was seen to use it before
	attempt   *attempt // that opened the connection, if first
	headers   interval
	content   interval
	resp      interval
	status    int32
	hasStatus bool
	// Ordinals of the activities of headers, content and resp below the request; 0
	// if there are no ids.
	ord    [3]uint32
	length int64  // bytes of the content, -1 if unknown
	sentBy uint64 // thread of the end of headers
	by     uint64 // of their beginning
	held   bool   // the content was held back for a 100 Continue, which need not have come
}

// A hop is one target of a redirect chain.
type hop struct {
	start  int64
	at     place
	queues []queueing
	ex     []exchange
	to     string // redirect target, as logged
	toAt   int64  // never: not redirected
	hasTo  bool
}

func (h *hop) last() *exchange {
	if len(h.ex) == 0 {
		return nil
	}
	return &h.ex[len(h.ex)-1]
}

// A try is one socket.
type try struct {
	interval
	address string
	code    int32
}

// A handshake is one TLS handshake.
type handshake struct {
	interval
	protocol int32
}

// An attempt is one effort to open a connection.
type attempt struct {
	owner        *request // whose flow it runs in; not always the one that needs it
	host         string   // looked up
	dns          []interval
	tries        []try
	tls          []handshake
	proxyTLS     []handshake
	tunnel       interval // CONNECT
	tunnelStatus int32
	talk         talk
	proxy        *connection // the connection to the proxy, while the tunnel is built
	conn         *connection
	hash         uint64 // of the path of its first event, with hashLen numbers
	hashLen      uint8
	thread       uint64 // of its last event
	last         int64  // time of its last event
	began        int64
	gone         bool // not among the live ones any more
}

func (a *attempt) lastTry() *try {
	if len(a.tries) == 0 {
		return nil
	}
	return &a.tries[len(a.tries)-1]
}

func (a *attempt) lastTLS() *handshake {
	if len(a.tls) == 0 {
		return nil
	}
	return &a.tls[len(a.tls)-1]
}

func (a *attempt) failed() bool {
	if n := len(a.dns); n > 0 && a.dns[n-1].failed {
		return true
	}
	if t := a.lastTry(); t != nil && t.failed {
		return true
	}
	if t := a.lastTLS(); t != nil && t.failed {
		return true
	}
	return a.tunnel.failed
}

// connected reports whether the last socket is open.
func (a *attempt) connected() bool {
	t := a.lastTry()
	return t != nil && t.closed() && !t.failed
}

// A connection is one of the client's.
type connection struct {
	id           int64
	hasID        bool
	major, minor uint8
	scheme, host string
	port         int
	remote       string
	at           int64 // when it was established; never: not seen
	attempt      *attempt
	used         bool
	seen         bool // an exchange on it is in the trace
	closed       bool
	proxy        string
	tls          int32
	peerPort     int
	user         *request // whose exchange it carries (HTTP/1.1)
	lastUser     *request
}

// elsewhere reports whether c is known to go to another place than the hop at p: to a
// proxy. A redirect tells a name as it is written, connections tell it in ASCII.
func (c *connection) elsewhere(p *place) bool {
	return c.host != "" && p.host != "" && (c.port != p.port ||
		c.host != p.host && strings.IndexFunc(p.host, func(r rune) bool { return r >= utf8.RuneSelf }) < 0)
}

// waited reports whether c is known to have waited for somebody at a time: who joins then does not.
func (c *connection) waited(t int64) bool { return c != nil && c.at != never && c.at < t }

// A request is one that is in flight, or that ended a moment ago.
type request struct {
	id                 int
	guid               [16]byte
	path               []uint32
	hash               uint64    // key of the table: of path, or of guid; 0: none
	path0              [4]uint32 // memory of most paths, hops and exchanges
	hop0               [1]hop
	ex0                [1]exchange
	next, prev         *request // of the same key
	openPrev, openNext *request
	idlessLink         // in flight without activity id
	process            uint32
	thread             uint64
	start              int64
	told               int64 // when the event of its start was written
	stop               int64
	last               int64 // time of its last event
	lastThread         uint64
	open               bool
	idless             bool     // RequestStart had no activity id
	adrift             bool     // the tracker has stopped its activity: its events may have no id
	span               [16]byte // id of its last span, if that began while its activity went on
	headless           bool     // RequestStart is not in the trace
	took               int64    // ns: of one that began before the trace, by its span; 0: not known

	major, minor uint8 // asked for
	policy       int32 // HttpVersionPolicy
	hops         []hop
	body         interval // ResponseContent
	bodyOrd      uint32
	ords         uint64 // ordinals of the activities directly below it, up to 63

	failed      bool
	endInferred bool // it failed behind all events of its own
	failAt      int64
	failText    string
	detail      string
	hasDetail   bool
	status      int32
	hasStatus   bool
	stopped     bool
	stopThread  uint64

	attempts []*attempt
	tunnels  bool // one of them has had a CONNECT
	guesses  int
	rival    bool // an event that was given to another one, as a guess, may have been its own
	lost     bool // an event is known to be missing
	missing  []string

	servedBy          *server // in this process; the last one of a chain
	bridged           bool    // nothing but the bridge tells of it: its span is the request
	method, errorType string
	spanned           []string   // keys of process.spans
	task              TaskStatus // of its last span
	spanStatus        int        // likewise; 0: unknown
	traceID, spanID   string
	parentSpanID      string
	server            int
	spans             []SpanIDs
	guids             [][16]byte // other keys of the table
}

// own makes a one of the attempts of r. Of too many the newest count: what comes is of
// those.
func (r *request) own(a *attempt) {
	if len(r.attempts) == maxOwn {
		if r.attempts[0].owner == r {
			r.attempts[0].owner = nil
		}
		r.attempts = slices.Delete(r.attempts, 0, 1)
		r.miss("connection attempts")
	}
	r.attempts = append(r.attempts, a)
}

func (r *request) hop() *hop { return &r.hops[len(r.hops)-1] }

func (r *request) miss(what string) {
	r.lost = true
	for _, m := range r.missing {
		if m == what {
			return
		}
	}
	r.missing = append(r.missing, what)
}

// stage is how far the current exchange of a request has come.
type stage uint8

const (
	stageNone    stage = iota // waits for a connection
	stageHeaders              // writes headers
	stageSent                 // headers are written
	stageContent              // writes content
	stageResp                 // reads response headers
	stageAnswered
	stageBody
	stageDone
	stageFailed
)

func (r *request) stage() stage {
	if r.failed {
		return stageFailed
	}
	if r.body.begun() {
		if r.body.open() {
			return stageBody
		}
		return stageDone
	}
	x := r.hop().last()
	switch {
	case x == nil:
		return stageNone
	case x.resp.closed(): // a duplex content may go on
		return stageAnswered
	case x.content.open():
		return stageContent
	case x.resp.open():
		return stageResp
	case x.headers.open():
		return stageHeaders
	}
	return stageSent
}

// An idlessList has the requests of a process that are in flight without activity id,
// in order of start.
type idlessList struct {
	first, last *request
	n           int
	stages      [stageFailed + 1]stageList
	moves       int64
}

type idlessLink struct {
	idlessPrev, idlessNext *request
	listed                 stage // the stageList it is in
	move                   int64 // number of its place there
}

func (l *idlessList) add(r *request) {
	if r.idlessPrev = l.last; l.last == nil {
		l.first = r
	} else {
		l.last.idlessNext = r
	}
	l.last = r
	l.n++
}

func (l *idlessList) remove(r *request) {
	if r.idlessPrev == nil {
		l.first = r.idlessNext
	} else {
		r.idlessPrev.idlessNext = r.idlessNext
	}
	if r.idlessNext == nil {
		l.last = r.idlessPrev
	} else {
		r.idlessNext.idlessPrev = r.idlessPrev
	}
	r.idlessPrev, r.idlessNext = nil, nil
	l.n--
	l.stages[r.listed].n--
	r.move = 0
}

// moved notes that r, which is in the list, had an event.
func (l *idlessList) moved(r *request, now int64) {
	if r.move > 0 {
		l.stages[r.listed].n--
	}
	l.moves++
	r.listed, r.move = r.stage(), l.moves
	l.stages[r.listed].add(placing{r, r.move, now})
}

// A stageList has the requests of one stage in the order of their last event, with some
// that have gone on since.
type stageList struct {
	l []placing
	n int // those that have not
}

type placing struct {
	r    *request
	move int64
	at   int64 // time of its last event
}

func (s *stageList) add(p placing) {
	s.trim()
	s.l = append(s.l, p)
	s.n++
}

func (p placing) gone() bool { return p.r.move != p.move }

// trim takes those that have gone on off the ends, where most of them are, and all of
// them where they are too many.
func (s *stageList) trim() {
	for len(s.l) > 0 && s.l[0].gone() {
		s.l[0] = placing{}
		s.l = s.l[1:]
	}
	for n := len(s.l); n > 0 && s.l[n-1].gone(); n-- {
		s.l[n-1] = placing{}
		s.l = s.l[:n-1]
	}
	if len(s.l) > 2*s.n+64 {
		s.l = slices.DeleteFunc(s.l, placing.gone)
	}
}

// from and before append up to n requests from a place on, and before it, nearest first.
func (s *stageList) from(dst []*request, i, n int) []*request {
	for end := min(len(s.l), i+4*maxChoice); i < end && n > 0; i++ {
		if p := s.l[i]; !p.gone() {
			dst = append(dst, p.r)
			n--
		}
	}
	return dst
}

func (s *stageList) before(dst []*request, i, n int) []*request {
	for end := max(0, i-4*maxChoice); i > end && n > 0; i-- {
		if p := s.l[i-1]; !p.gone() {
			dst = append(dst, p.r)
			n--
		}
	}
	return dst
}

// find returns the place of the first one whose last event was not before a time.
func (s *stageList) find(at int64) int {
	i, _ := slices.BinarySearchFunc(s.l, at, func(p placing, at int64) int { return cmp.Compare(p.at, at) })
	return i
}

// A thread remembers what was written on it last: events of one request follow each
// other directly on a thread.
type thread struct {
	last      *request
	kind      Kind
	at        int64
	attempt   *attempt
	queued    []queueing // RequestLeftQueue events whose request is not known yet
	leftQueue *request   // whose RequestLeftQueue was the last event here
	gapFrom   int64      // last stretch of lost events
	gapTo     int64
	serving   *server // whose start or end was told here last
	stopping  bool    // it was its end
	// A request that was open when the recording began, whose end Kestrel told here last, and what serving and
	// stopping were before it.
	before, served *server
	servedEnds     bool
	spanned        *request // whose span of the bridge ended here last
	answered       *request // whose answer goes on behind its span, which was the last event here
	logged         *Span    // a line of the log about a request whose end follows
	threw          bool     // likewise, an exception that nobody handled
	threwID        string   // the last request here of which the log of Kestrel said that it threw, by Kestrel's id
	over           bool     // the end of a request has come that nobody knows: what is told next is of another one
	// RequestFailed and RequestFailedDetailed of a request that nobody knows: what ends here next.
	failed, detailed *Event
	// A HandshakeStop that may be the server's.
	stop       *handshake
	stopAt     int64
	stopStatus int32
}

// unknown notes a failure of a request that nobody knows.
func (th *thread) unknown(e *Event) {
	c := *e
	switch {
	case e.Kind == RequestFailed:
		th.failed, th.detailed = &c, nil
	case e.Kind == RequestFailedDetailed:
		th.detailed = &c
	}
}

// unknownOf returns the failure that was noted last, nil if it is of another request than the one
// with a path: the activity of a failure is the request's, or that of the content that was read.
func (th *thread) unknownOf(path []uint32) *Event {
	e := cmp.Or(th.failed, th.detailed)
	if n := len(path); e == nil || int(e.PathLen) < n || int(e.PathLen) > n+1 || !slices.Equal(e.Path[:n], path) {
		return nil
	}
	return e
}
