package httpphases

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Limits of what is remembered. They bound memory on traces that have lost events;
// none is reached in a whole one.
const (
	windowSize     = 2048  // events that wait to be put in order
	maxRecent      = 256   // ended requests whose late events can still be told apart
	maxLingering   = 4096  // likewise of those with an attempt, or a duplex content, that goes on
	maxAttempts    = 4096  // attempts that came to nothing
	maxConnections = 65536 // connections whose end was not seen
	maxSpans       = 65536 // bridge spans whose stop was not seen
	maxGaps        = 4096  // stretches of lost events
	maxChoice      = 512   // requests of one stage that an event without a clear owner may be of
	maxOwn         = 256   // attempts of one request
	maxQueues      = 256   // waits of one hop
	maxOrigins     = 4096  // places that requests of others are sent to
)

// Options of a Builder. The zero value works.
type Options struct {
	// Request is called with every request when it has ended, and at the end of the
	// trace with those that have not. The Request is the callee's to keep.
	Request func(*Request)
	// Server is called likewise with the requests that were served.
	Server func(*ServerRequest)
	// Late is how many events, at most, an event can be late by; zero means 2048.
	Late int
}

// A Builder turns events into requests. It is not safe for concurrent use.
type Builder struct {
	opts   Options
	window []Event // a ring, in time order
	head   int     // of the oldest event
	n      int
	procs  map[uint32]*process
	proc   *process // of the last event
	nextID int
	stats  Stats
	now    int64
	lossy  bool  // events are known to be lost
	holed  bool  // they are from what is missing of a request
	gaps   []gap // the last maxGaps stretches of lost events, a ring
	gapAt  int

	choice, fit []*request // memory of among and candidates, and of match

	ahead *ahead // nil unless a request without activity id was seen
	reply *reply // that the event at hand is part of, if it is known ahead
}

// Stats count what a Builder has seen.
type Stats struct {
	Events   int64
	Requests int64
	Servers  int64
	Guessed  int64 // requests with guessed links
	Links    int64 // links between an event and a request
	Guesses  int64 // of which guessed
	Lost     int64 // requests with events missing
	Late     int64 // events that came too late to be put in order
	Unnamed  int64 // ends of served requests that only a stop without an id told
	// What the events tell of the recording session.
	WithID      int64 // events with an activity id
	DNS         int64
	Connects    int64
	Handshakes  int64
	Connections int64
	Versions    [int(RequestRedirect) + 1]bool // events of System.Net.Http that were seen
	NoRequest   int64                          // events of requests whose start is not in the trace
	Unasked     int64                          // answers to requests from before the trace that are no rows: their statuses are all that is told
}

// A process has everything that is keyed by ids of one process.
type process struct {
	id         uint32
	table      map[uint64]*request // by path or id; others of the same follow by next
	open       *request            // in flight, newest first; linked by request.openNext
	idless     idlessList
	adrift     []*request // and some that have ended since
	adrifts    int        // those in flight
	threads    map[uint64]*thread
	conns      map[int64]*connection
	connQ      []*connection         // in order of appearance, with some that are gone
	attempts   []*attempt            // live ones
	aliases    map[[16]byte]*request // ids that are no paths, of requests
	nodes      map[[16]byte]node     // open starts of connection attempts
	servers    map[uint64]*server
	serverKeys map[string]*server // open ones, by the ids that Kestrel, the log and the bridge give them, and by their parent's
	serverOpen map[*server]struct{}
	firsts     map[string]string // by connection of Kestrel's, until it is closed: the number of the first request that began
	ports      map[string]int32  // likewise: the port of this side
	unnamed    unnamed
	spans      map[string]*request // client spans in flight, by the activity's id
	spanIDs    map[string]int      // client spans seen, likewise
	origins    map[origin]struct{} // no proxies, though requests of other places are sent to them
	spanQ      []string
	answers    []answer // sent, that may have been given up
	answerEnds map[string]*answerEnds
	spansFrom  int64      // when the first span began that the session saw
	clock      int64      // trace time less time of day (ns), by the spans; 0: not known
	recent     []*request // ended, oldest first
	lingering  []*request // likewise, with connection attempts or content that go on
	handshakes int        // open ones of servers, without id
	outlook    outlook
}

// A node is the start of a lookup, a socket or a handshake.
type node struct {
	attempt *attempt
	kind    Kind
	index   int
}

type server struct {
	ServerRequest
	hash       uint64 // 0: no id
	thread     uint64
	open       bool
	ending     bool      // a stop of it was told, and its last one is to come
	client     *request  // that has the headers of its answer and waits for the rest
	parent     string    // the id of its span's parent
	above      *server   // open and of the same parent, when this one began
	ends       Kind      // the event that ends it
	keys       [3]string // in process.serverKeys: Kestrel's id, the log's, the bridge's
	next, prev *server   // of the same hash
	pace       *pace     // without an id: that of its route
	left       bool      // likewise: another event of its thread shows that it goes on elsewhere
}

// NewBuilder returns an empty Builder.
func NewBuilder(o *Options) *Builder {
	b := &Builder{procs: map[uint32]*process{}, now: never}
	if o != nil {
		b.opts = *o
	}
	if b.opts.Late <= 0 {
		b.opts.Late = windowSize
	}
	b.window = make([]Event, b.opts.Late)
	return b
}

// Stats returns what was counted so far; after Finish, of the whole trace.
func (b *Builder) Stats() Stats { return b.stats }

// Add takes an event. It is copied.
func (b *Builder) Add(e *Event) {
	if e.Kind == EventsLost {
		// Known at once, so that what is handed out before then knows it too.
		b.lossy = true
		if len(b.gaps) < maxGaps {
			b.gaps = append(b.gaps, gap{e.Length, e.Time})
		} else {
			b.gaps[b.gapAt] = gap{e.Length, e.Time}
			b.gapAt = (b.gapAt + 1) % maxGaps
		}
	} else {
		b.stats.Events++
	}
	if b.n == len(b.window) {
		oldest := &b.window[b.head]
		if e.Time < oldest.Time {
			// Too late for the window: it can only be taken as it comes.
			b.stats.Late++
			b.pass(e)
			return
		}
		b.pass(oldest)
		b.head = (b.head + 1) % len(b.window)
		b.n--
	}
	i := b.n
	for i > 0 && b.at(i-1).Time > e.Time {
		*b.at(i) = *b.at(i - 1)
		i--
	}
	*b.at(i) = *e
	b.n++
}

func (b *Builder) at(i int) *Event { return &b.window[(b.head+i)%len(b.window)] }

// Lost records that events of a thread were lost between two times (ns). Requests that
// could be touched by that are marked as incomplete if they are not whole.
func (b *Builder) Lost(process uint32, tid uint64, after, before int64) {
	b.Add(&Event{Kind: EventsLost, Time: before, Thread: tid, Process: process, Length: after})
}

// A gap is a stretch of time in which some thread lost events.
type gap struct{ from, to int64 }

// lossyBy reports whether events may be lost before a time.
func (b *Builder) lossyBy(t int64) bool {
	return b.holed || len(b.gaps) == maxGaps || b.doubt(math.MinInt64, t)
}

// doubt reports whether events between two times may be lost.
func (b *Builder) doubt(from, to int64) bool {
	for _, g := range b.gaps {
		if g.from < to && g.to > from {
			return true
		}
	}
	return false
}

// Finish hands out what is still in flight. end is the time of the last event of the
// trace (ns).
func (b *Builder) Finish(end int64) {
	for ; b.n > 0; b.n-- {
		b.pass(&b.window[b.head])
		b.head = (b.head + 1) % len(b.window)
	}
	for b.ahead != nil && b.ahead.n > 0 {
		b.handleHeld()
	}
	b.now = max(b.now, end)
	var open []*request
	for _, p := range b.procs {
		for i := range p.answers {
			p.answers[i].settle()
		}
		for r := p.open; r != nil; r = r.openNext {
			open = append(open, r)
		}
	}
	sort.Slice(open, func(i, j int) bool { return open[i].id < open[j].id })
	for _, r := range open {
		if !r.stopped && r.lostEnd(b.now) {
			r.miss("the stop")
			b.lossy, b.holed = true, true
		}
	}
	for _, r := range open {
		b.emit(b.procs[r.process], r)
	}
	var servers []*server
	for _, p := range b.procs {
		for _, th := range p.threads {
			if s := th.before; s != nil {
				servers = append(servers, s)
			}
		}
		for s := range p.serverOpen {
			servers = append(servers, s)
		}
	}
	sort.Slice(servers, func(i, j int) bool { return servers[i].ID < servers[j].ID })
	for _, s := range servers {
		if !s.StartUnknown {
			s.Outcome = Incomplete
		}
		b.emitServer(b.procs[s.Process], s)
	}
}

// lostEnd reports whether an open request has ended all the same: what must have
// followed directly is not there, or its connection serves another one.
func (r *request) lostEnd(now int64) bool {
	if r.body.closed() {
		return now-r.body.end > 1e6 // RequestStop follows on the same thread
	}
	x := r.hop().last()
	return x != nil && x.conn != nil && x.conn.major == 1 && x.conn.lastUser != r
}

func (b *Builder) process(id uint32) *process {
	if b.proc != nil && b.proc.id == id {
		return b.proc
	}
	p := b.procs[id]
	if p == nil {
		p = &process{
			id:         id,
			table:      map[uint64]*request{},
			threads:    map[uint64]*thread{},
			conns:      map[int64]*connection{},
			nodes:      map[[16]byte]node{},
			aliases:    map[[16]byte]*request{},
			servers:    map[uint64]*server{},
			serverKeys: map[string]*server{},
			serverOpen: map[*server]struct{}{},
			firsts:     map[string]string{},
			ports:      map[string]int32{},
			spans:      map[string]*request{},
			spanIDs:    map[string]int{},
			origins:    map[origin]struct{}{},
			spansFrom:  math.MaxInt64,
		}
		b.procs[id] = p
	}
	b.proc = p
	return p
}

func (p *process) thread(id uint64) *thread {
	th := p.threads[id]
	if th == nil {
		th = &thread{gapFrom: never, gapTo: never}
		p.threads[id] = th
	}
	return th
}

// Keys of the table: the hash of a path, or of an id that is not a path of its own.

const hashSeed = 0x9E3779B97F4A7C15

func step(h uint64, v uint32) uint64 {
	h = (h ^ uint64(v)) * 0xBF58476D1CE4E5B9
	return h ^ h>>31
}

// hashes fills dst with the hash of every prefix of e's path; dst[i] is that of the
// first i numbers.
func hashes(e *Event, dst *[25]uint64) int {
	h := uint64(hashSeed)
	n := min(int(e.PathLen), len(e.Path))
	for i := range n {
		h = step(h, e.Path[i])
		dst[i+1] = h
	}
	return n
}

func hashID(id *[16]byte) uint64 {
	lo, hi := binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])
	h := (lo^hashSeed)*0xBF58476D1CE4E5B9 ^ hi
	h ^= h >> 29
	return h*0x94D049BB133111EB | 1<<63
}

// A request has one key, and aliases for ids that are no paths: those are in a table
// of their own, since a request can follow another in one table only.

func (p *process) enter(r *request) {
	if r.next = p.table[r.hash]; r.next != nil {
		r.next.prev = r
	}
	p.table[r.hash] = r
}

func (p *process) leave(r *request) {
	if r.next != nil {
		r.next.prev = r.prev
	}
	switch {
	case r.prev != nil:
		r.prev.next = r.next
	case p.table[r.hash] != r:
	case r.next != nil:
		p.table[r.hash] = r.next
	default:
		delete(p.table, r.hash)
	}
	r.next, r.prev = nil, nil
}

// owner finds the request that an event with an activity id belongs to: the longest
// prefix of its path that is a request, by http-events.md section 7.1. Several
// requests share a path where the encoder of .NET 10 loses numbers.
func (b *Builder) owner(p *process, e *Event, h *[25]uint64, n int) *request {
	if e.ID == ([16]byte{}) {
		return nil
	}
	if !e.Overflow {
		for i := n; i > 0; i-- {
			if r := p.table[h[i]]; r != nil {
				return b.among(p, r, e)
			}
		}
	}
	if e.Overflow || n == 0 {
		if r := p.byID(&e.ID); r != nil {
			return b.among(p, r, e)
		}
		if e.Related != ([16]byte{}) {
			if r := p.byID(&e.Related); r != nil {
				p.alias(e.ID, r)
				return r
			}
		}
	}
	if e.Overflow {
		for i := n; i > 0; i-- {
			if r := p.table[h[i]]; r != nil {
				r = b.among(p, r, e)
				p.alias(e.ID, r)
				return r
			}
		}
	}
	return nil
}

// byID finds a request by an id that is not a path of its own.
func (p *process) byID(id *[16]byte) *request {
	if r := p.aliases[*id]; r != nil {
		return r
	}
	return p.table[hashID(id)]
}

// alias makes an id that is not a path below r one of its names.
func (p *process) alias(id [16]byte, r *request) {
	if len(r.guids) < 64 && p.aliases[id] == nil {
		r.guids = append(r.guids, id)
		p.aliases[id] = r
	}
}

// among picks the request that an event fits of r and those of the same path, of
// which the latest are looked at.
func (b *Builder) among(p *process, r *request, e *Event) *request {
	if r.next == nil {
		return r
	}
	l := b.choice[:0]
	for x, n := r, 0; x != nil && n < maxChoice; x, n = x.next, n+1 {
		if x.open {
			l = append(l, x)
		}
	}
	b.choice = l
	switch len(l) {
	case 0:
		return r
	case 1:
		return l[0]
	}
	if m, _ := b.match(p, e, l); m != nil {
		m.guesses++
		return m
	}
	return l[0]
}

// handle takes the next event in time order.
func (b *Builder) handle(e *Event) {
	b.now = max(b.now, e.Time)
	p := b.process(e.Process)
	if e.ID != ([16]byte{}) {
		b.stats.WithID++
	}
	if e.Kind <= RequestRedirect && e.Kind != KindNone {
		b.stats.Versions[e.Kind] = true
	}
	var h [25]uint64
	n := hashes(e, &h)
	th := p.thread(e.Thread)
	if e.Kind == EventsLost {
		if e.Length > th.gapTo {
			th.gapFrom = e.Length
		}
		th.gapTo = e.Time
		th.failed, th.detailed = nil, nil
		return
	}
	if th.stop != nil && e.Kind != OtherStart {
		b.settleHandshake(p, th, e)
	}
	if len(p.answers) > 0 {
		b.settleAnswers(p, "", e.Time)
	}
	answered := th.answered
	th.answered = nil
	switch e.Kind {
	case RequestStart:
		b.requestStart(p, th, e, h[n], n)
	case ServerRequestStart, ServerRequestStop, ServerUnhandled:
		b.serverEvent(p, th, e, &h, n)
		return
	case KestrelClosed:
		b.settleAnswers(p, e.Text, e.Time)
		delete(p.firsts, e.Text)
		delete(p.ports, e.Text)
		return
	case KestrelStart, KestrelStop, ScopeStart, ScopeStop, ServerLogged, SpanStart, SpanStop:
		if e.Kind == SpanStart {
			p.spansFrom = min(p.spansFrom, e.Time)
		}
		switch {
		case e.Span == nil:
		case e.Kind == SpanStart && e.Span.Name == spanClient:
			b.goesOn(p, answered)
			b.spanStart(p, th, e, &h, n)
		case e.Kind == SpanStop && e.Span.Name == spanClient:
			b.spanStop(p, th, e, &h, n)
		default:
			b.serverEvent(p, th, e, &h, n)
		}
		return
	case OtherStart:
		if e.Port > 0 && len(p.ports) < maxFirsts {
			p.ports[e.Text] = e.Port
		}
		if r := b.owner(p, e, &h, n); r != nil {
			r.ordinal(e)
		}
		return
	case ResolutionStart, ResolutionStop, ResolutionFailed, ConnectStart, ConnectStop, ConnectFailed,
		HandshakeStart, HandshakeStop, HandshakeFailed, ConnectionEstablished:
		b.attemptEvent(p, th, e, &h, n)
		return
	case ConnectionClosed:
		if e.HasConn {
			if c := p.conns[e.Conn]; c != nil {
				c.closed = true
				c.abandoned()
				if c.user != nil && c.user.open && th.last == nil {
					th.last, th.at = c.user, e.Time
				}
			}
			delete(p.conns, e.Conn)
		}
		return
	default:
		b.requestEvent(p, th, e, &h, n)
		return
	}
}

// ordinal notes the number of an activity directly below r, which begins with e.
func (r *request) ordinal(e *Event) uint32 {
	o := r.number(e)
	if o > 0 && o < 64 {
		r.ords |= 1 << o
	}
	return o
}

// number returns that of the activity of e if it is directly below r, else 0.
func (r *request) number(e *Event) uint32 {
	n := int(e.PathLen)
	if e.Overflow || len(r.path) == 0 || n != len(r.path)+1 {
		return 0
	}
	return e.Path[n-1]
}

func (b *Builder) newRequest(p *process, e *Event) *request {
	b.nextID++
	r := &request{
		id: b.nextID, guid: e.ID, process: e.Process, thread: e.Thread, start: e.Time, stop: never,
		last: e.Time, lastThread: e.Thread, open: true, failAt: never, body: unseen,
	}
	if r.openNext = p.open; p.open != nil {
		p.open.openPrev = r
	}
	p.open = r
	b.stats.Requests++
	return r
}

func (b *Builder) requestStart(p *process, th *thread, e *Event, hash uint64, n int) {
	r := b.newRequest(p, e)
	r.major, r.minor, r.policy = e.Major, e.Minor, e.Policy
	r.hop0[0] = hop{start: e.Time, toAt: never, at: place{e.Scheme, e.Host, e.Text, int(e.Port)}}
	r.hops = r.hop0[:]
	r.hop0[0].ex = r.ex0[:0]
	if e.ID == ([16]byte{}) {
		r.idless = true
		p.idless.add(r)
		p.idless.moved(r, b.now)
	} else {
		r.guid = e.ID
		if n > 0 && !e.Overflow {
			r.path = append(r.path0[:0], e.Path[:n]...)
			r.hash = hash
			if o := p.table[hash]; o != nil && !e.shared() && o.open {
				// One path is one activity: an open one with it has lost its stop.
				o.miss("the stop")
				b.emit(p, o)
			}
		} else {
			r.hash = hashID(&e.ID)
		}
		p.enter(r)
		// A request that starts inside another one stops the activity of the outer.
		if o := th.last; o != nil && o.open && !o.idless && o.stage() == stageNone && len(o.path) == n && th.gapTo <= th.at {
			p.setAdrift(o)
		}
	}
	th.last, th.kind, th.at, th.leftQueue = r, RequestStart, e.Time, nil
	th.failed, th.detailed = nil, nil
}

// headlessRequest makes a request whose start is not in the trace, from an event of one of
// its phases, or from its end where that is of a failure. One of the top level, below the number
// of the AppDomain, tells no request.
func (b *Builder) headlessRequest(p *process, th *thread, e *Event, h *[25]uint64, n int) *request {
	switch e.Kind {
	case RequestHeadersStart, RequestContentStart, ResponseHeadersStart, ResponseContentStart,
		RequestHeadersStop, RequestContentStop, ResponseHeadersStop, ResponseContentStop:
		n-- // the id is that of a phase
	case RequestStop:
		// An outer request whose activity was stopped ends with the id of what encloses it.
		if p.adrifts > 0 || p.servers[h[n]] != nil || th.unknownOf(e.Path[:n]) == nil {
			return nil
		}
	default:
		return nil
	}
	if n < 2 || e.Overflow {
		return nil
	}
	r := b.newRequest(p, e)
	r.headless = true
	r.guid = [16]byte{}
	r.path = append(r.path, e.Path[:n]...)
	r.hash = h[n]
	f := th.unknownOf(r.path)
	if f != nil {
		r.start = f.Time
	}
	r.hops = append(r.hops, hop{start: r.start, toAt: never})
	r.miss("the start")
	p.enter(r)
	if f != nil {
		b.failure(r, f)
		if f = th.detailed; f != nil {
			b.failure(r, f)
		}
	}
	return r
}

// requestEvent takes the events of a request's own phases.
func (b *Builder) requestEvent(p *process, th *thread, e *Event, h *[25]uint64, n int) {
	r := b.eventOwner(p, th, e, h, n)
	b.replied(p, e, r)
	if r == nil {
		return
	}
	th.failed, th.detailed = nil, nil
	b.stats.Links++
	if r.adrift && (e.ID == r.guid || e.Related == r.guid || e.Related != ([16]byte{}) && e.Related == r.span) {
		p.clearAdrift(r) // with the bridge, steps are inside its span: who stops the request's activity stops that, too
	}
	if e.Kind == RequestHeadersStart || e.Kind == RequestFailed && r.stage() == stageNone {
		for _, q := range th.queued {
			if q.end >= r.hop().start {
				b.leftQueue(r, q)
			}
		}
	}
	if e.Kind != RequestLeftQueue {
		th.queued = th.queued[:0]
	}
	if e.proves() {
		if a := r.talked(e); a != nil {
			p.exchanged(r, a)
		}
	}
	switch e.Kind {
	case RequestLeftQueue:
		b.silentRedirect(r, e)
		b.leftQueue(r, queueing{e.Time - int64(e.Millis*1e6), e.Time, e.Major, e.Minor})
		th.leftQueue = r
	case RequestHeadersStart:
		ord := r.ordinal(e)
		b.silentRedirect(r, e)
		b.headersStart(p, r, e, ord)
	case RequestHeadersStop, RequestContentStart, RequestContentStop, ResponseHeadersStart, ResponseHeadersStop:
		r.exchangeEvent(e, !b.lossy)
	case RequestRedirect:
		r.redirectTo(e)
	case ResponseContentStart:
		if ord := r.ordinal(e); r.body.begun() {
			r.miss("the stop")
		} else {
			r.body.start, r.bodyOrd = e.Time, ord
		}
	case ResponseContentStop:
		if !r.body.begun() {
			r.miss("a start of response content")
		} else {
			r.body.end = e.Time
		}
	case RequestFailed, RequestFailedDetailed:
		b.failure(r, e)
	case RequestStop:
		b.requestStop(p, th, r, e)
	}
	r.last, r.lastThread = e.Time, e.Thread
	if r.idless {
		p.idless.moved(r, b.now)
	}
	th.last, th.kind, th.at = r, e.Kind, e.Time
	if e.Kind != RequestLeftQueue {
		th.leftQueue = nil
	}
	if e.Kind == RequestStop {
		b.emit(p, r)
	}
}

// behind takes an event behind the end of its request, which tells of it no more than the CONNECT
// of an attempt that goes on without it.
func (b *Builder) behind(p *process, r *request, e *Event) {
	switch e.Kind {
	case RequestHeadersStart:
		b.connect(p, r, e, 0)
	case ResponseHeadersStop:
		if r.tunnel() != nil {
			r.exchangeEvent(e, false)
		}
	}
}

// eventOwner finds the request that an event of System.Net.Http is about; nil if it tells nothing
// about any, or not yet.
func (b *Builder) eventOwner(p *process, th *thread, e *Event, h *[25]uint64, n int) *request {
	var r *request
	if e.Kind == RequestStop {
		r = b.stopOwner(p, th, e, h, n)
	} else if r = b.owner(p, e, h, n); r != nil && !r.open && e.Kind != RequestLeftQueue {
		b.behind(p, r, e)
		return nil
	}
	switch {
	case r != nil:
		return r
	case e.Kind == RequestLeftQueue && e.ID == ([16]byte{}) && p.idless.n == 0:
		// The next headers on this thread tell whose it is.
		th.queued = append(th.queued, queueing{e.Time - int64(e.Millis*1e6), e.Time, e.Major, e.Minor})
		if len(th.queued) > 16 {
			th.queued = th.queued[1:]
		}
		return nil
	case e.ID == ([16]byte{}) || e.Kind == RequestStop:
		if r = b.link(p, th, e); r != nil {
			return r
		}
		if e.ID != ([16]byte{}) {
			r = b.headlessRequest(p, th, e, h, n)
		}
	default:
		if r = b.headlessRequest(p, th, e, h, n); r == nil {
			th.unknown(e)
		}
	}
	b.stats.NoRequest++
	if r == nil && e.Kind == ResponseHeadersStop && !b.lossyBy(e.Time) && p.idless.n == 0 {
		b.stats.Unasked++
	}
	return r
}

// exchangeEvent takes an event of an exchange of r, but the start of its headers: of the one that r
// is at, unless the trace is whole and another one is under way, too. What goes on while a tunnel is
// built is of the proxy.
func (r *request) exchangeEvent(e *Event, whole bool) {
	ord := r.number(e)
	if e.Kind == RequestContentStart || e.Kind == ResponseHeadersStart {
		r.ordinal(e)
	}
	x := r.hop().last()
	if whole && len(r.hop().ex) > 1 && x.hasConn && r.connecting() == nil {
		var sure bool
		if x, sure = r.hop().underWay(e.Kind, ord); !sure {
			r.guesses++
		}
	}
	switch e.Kind {
	case RequestHeadersStop:
		r.requestHeadersStop(x, e)
	case RequestContentStart:
		r.requestContentStart(x, e, ord)
	case RequestContentStop:
		if x == nil || !x.content.open() {
			r.miss("a start of request content")
			return
		}
		x.content.end, x.length = e.Time, e.Length
	case ResponseHeadersStart:
		r.responseHeadersStart(x, e, ord)
	case ResponseHeadersStop:
		r.responseHeadersStop(x, e)
	}
}

// requestHeadersStop ends the request headers of x, nil if there is no exchange, or of a tunnel.
func (r *request) requestHeadersStop(x *exchange, e *Event) {
	if a := r.tunnel(); a != nil {
		a.talk.headers.end, a.talk.sentBy = e.Time, e.Thread
		return
	}
	if x == nil || !x.headers.open() {
		if r.connecting() == nil {
			r.miss("a start of request headers")
		}
		return
	}
	x.headers.end, x.sentBy = e.Time, e.Thread
}

// requestContentStart begins the request content of x, nil if there is no exchange.
func (r *request) requestContentStart(x *exchange, e *Event, ord uint32) {
	if x == nil || x.content.begun() {
		r.miss("request headers")
		return
	}
	x.content.start, x.ord[1] = e.Time, ord
	if x.headers.closed() {
		after := e.Time - x.headers.end
		x.held = after >= heldBack || after >= 1e6 && x.sentBy != e.Thread
	}
}

// responseHeadersStart begins the response headers of x, nil if there is no exchange, or of a tunnel.
func (r *request) responseHeadersStart(x *exchange, e *Event, ord uint32) {
	if a := r.tunnel(); a != nil {
		a.talk.resp.start, a.talk.ord[2] = e.Time, ord
		return
	}
	if x != nil && x.resp.begun() {
		a := r.connecting()
		if a != nil && (!x.resp.closed() || r.body.begun()) {
			return // the proxy's
		}
		if a != nil {
			a.takes(x)
		}
	}
	if x == nil || x.resp.begun() {
		r.miss("request headers")
		return
	}
	x.resp.start, x.ord[2] = e.Time, ord
}

// responseHeadersStop ends the response headers of x, nil if there is no exchange, or of a tunnel.
func (r *request) responseHeadersStop(x *exchange, e *Event) {
	a := r.tunnel()
	if a == nil && x != nil && (x.resp.closed() || e.Status == 407) {
		if a = r.connecting(); a != nil && !x.resp.closed() {
			x.unanswered()
		}
	}
	if a != nil {
		a.tunnel.end = e.Time
		a.answered(e.Status, e.HasStatus)
		a.talk.answer(e)
		a.thread, a.last = e.Thread, e.Time
		return
	}
	if x == nil || x.resp.closed() {
		r.miss("request headers")
		return
	}
	if !x.resp.begun() {
		r.miss("a start of response headers")
		x.resp.start = never
	}
	x.answer(e)
	x.leave(r)
}

// leave says that r does not use the connection of x any more.
func (x *exchange) leave(r *request) {
	if x.conn != nil && x.conn.user == r {
		x.conn.user = nil
	}
}

// heldBack is how long after the headers (ns) content begins only where a 100 Continue was waited
// for: else it follows at once, on the same thread.
const heldBack = 50e6

// redirectTo begins a new hop of r.
func (r *request) redirectTo(e *Event) {
	h := r.hop()
	t := max(e.Time, h.start)
	h.to, h.toAt, h.hasTo = e.Text, t, true
	if len(r.hops) < 1024 {
		r.hops = append(r.hops, hop{start: t, toAt: never, at: splitURL(e.Text, &h.at)})
	} else {
		r.miss("a redirect")
	}
}

func firstLine(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	if _, rest, ok := strings.Cut(s, ": "); ok {
		return rest
	}
	return s
}

// stopOwner finds the request that a RequestStop ends: the one with exactly its id,
// else by the thread (section 7.5 rule 4).
func (b *Builder) stopOwner(p *process, th *thread, e *Event, h *[25]uint64, n int) *request {
	var r *request
	if e.ID != ([16]byte{}) {
		if n > 0 && !e.Overflow {
			r = p.table[h[n]]
		} else {
			r = p.table[hashID(&e.ID)]
		}
		if r != nil {
			r = b.among(p, r, e)
		}
		if r != nil && !r.open {
			r = nil
		}
		if r != nil && th.last != nil && th.last != r && th.last.open && !r.failed && r.stage() < stageAnswered &&
			th.last.adrift && (th.kind == ResponseContentStop || th.kind == RequestFailedDetailed) {
			// An outer request whose activity was stopped takes the id of whatever
			// encloses it.
			r = nil
		}
	}
	// With events lost the last one on the thread need not be the one before.
	if r == nil && th.last != nil && th.last.open && !th.last.idless && th.gapTo <= th.at &&
		(!b.lossy || th.last.adrift && e.Time-th.at < 1e6) {
		switch th.kind {
		case ResponseContentStop, RequestFailed, RequestFailedDetailed, ResponseHeadersStop:
			r = th.last
			r.guesses++
		}
	}
	return r
}

// silentRedirect starts a new hop where a redirect was followed that no event told:
// before .NET 8 there is none.
func (b *Builder) silentRedirect(r *request, e *Event) {
	h := r.hop()
	x := h.last()
	if x == nil || b.stats.Versions[RequestRedirect] || e.HasConn || x.hasConn || !x.resp.closed() || !x.hasStatus || len(r.hops) > 1024 {
		return
	}
	if isRedirect(int(x.status)) {
		h.toAt, h.hasTo = max(x.resp.end, h.start), true
		r.hops = append(r.hops, hop{start: h.toAt, toAt: never})
	}
}

func (b *Builder) leftQueue(r *request, q queueing) {
	h := r.hop()
	q.start = max(min(q.start, q.end), h.start)
	// What was exchanged inside a wait that is reported after it was a CONNECT (section
	// 7.3 b).
	k := slices.IndexFunc(h.ex, func(x exchange) bool { return x.headers.start >= q.start })
	if k >= 0 && h.at.scheme != "http" && (h.ex[k].conn == nil || h.ex[k].conn.host == "") {
		r.tunneled(h, k)
	}
	for i := range h.queues {
		// The inner wait of a CONNECT lies in the outer one.
		if o := &h.queues[i]; q.start <= o.start && q.end >= o.end {
			h.queues = append(h.queues[:i], h.queues[i+1:]...)
			break
		}
	}
	if len(h.queues) == maxQueues {
		r.miss("RequestLeftQueue")
		return
	}
	h.queues = append(h.queues, q)
}

// tunneled makes the exchanges of h from k on the CONNECT of the attempt that opened their
// connection.
func (r *request) tunneled(h *hop, k int) {
	first, last := h.ex[k], h.ex[len(h.ex)-1]
	h.ex, h.queues = h.ex[:k], h.queues[:0]
	a := first.attempt
	if a == nil || a.owner != r {
		a = r.liveAttempt()
	}
	if a == nil {
		a = &attempt{owner: r, began: first.headers.start, tunnel: unseen}
		r.own(a)
	}
	a.conn = nil
	if t := r.established(); t != nil {
		// The rest was taken for an attempt of its own.
		a.conn, a.proxyTLS, a.tls = t.conn, a.tls, t.tls
		a.conn.attempt = a
		r.attempts = slices.DeleteFunc(r.attempts, func(x *attempt) bool { return x == t })
	}
	r.tunnels = true
	a.tunnel = interval{start: first.headers.start, end: last.resp.end}
	a.answered(last.status, last.hasStatus)
}

// answered notes what the proxy said to a CONNECT.
func (a *attempt) answered(status int32, told bool) {
	a.tunnelStatus = status
	if told && status != 407 && (status < 200 || status > 299) {
		a.tunnel.failed, a.tunnel.err = true, proxyAnswered(status)
	}
}

func proxyAnswered(status int32) string { return "proxy answered " + itoa(status) }

// liveAttempt returns the attempt of r that is not finished and began last.
func (r *request) liveAttempt() *attempt {
	for i := len(r.attempts) - 1; i >= 0; i-- {
		if a := r.attempts[i]; a.conn == nil {
			return a
		}
	}
	return nil
}

// connecting returns the attempt of r whose CONNECT is being spoken, perhaps beside an exchange
// of r itself, which another connection serves meanwhile.
func (r *request) connecting() *attempt {
	if !r.tunnels {
		return nil
	}
	for i := len(r.attempts) - 1; i >= 0; i-- {
		if a := r.attempts[i]; a.conn == nil && a.tunnel.begun() && (a.tunnel.open() || a.tunnelStatus == 407) {
			return a
		}
	}
	return nil
}

// tunnel is connecting where no exchange has begun since, or begun since its attempt and got no answer.
func (r *request) tunnel() *attempt {
	a := r.connecting()
	if a != nil {
		if x := r.hop().last(); x != nil && (x.headers.start >= a.tunnel.start || x.headers.start > a.began && !x.resp.closed()) {
			return nil
		}
	}
	return a
}

// takes gives the answer of x to the CONNECT of a beside it: events do not tell them apart, but
// another answer follows, or TLS begins.
func (a *attempt) takes(x *exchange) {
	a.tunnel.end = x.resp.end
	a.answered(x.status, x.hasStatus)
	x.unanswered()
}

// unanswered takes the answer from x that is another's.
func (x *exchange) unanswered() {
	x.resp.end, x.status, x.hasStatus = never, 0, false
	if x.conn == nil || x.conn.major < 2 { // else the wait for it has begun
		x.resp.start, x.ord[2] = never, 0
	}
}

// connect takes the start of headers if they look like those of a CONNECT: the connection goes
// elsewhere than the hop, as one to a proxy does (section 7.3 a). It reports whether they do.
func (b *Builder) connect(p *process, r *request, e *Event, ord uint32) bool {
	h, t := r.hop(), e.Time
	c := p.conns[e.Conn]
	if !e.HasConn || c == nil || h.at.scheme == "http" || !c.elsewhere(&h.at) || !p.toProxy(c) {
		return false
	}
	a := c.attempt
	if a != nil && a.owner == r && a.proxy == c && a.tunnel.closed() && a.tunnelStatus != 407 && !h.waitedFor(a) {
		p.exchanged(r, a) // after any other answer no proxy is asked again
		return false
	}
	if a != nil && a.owner != r && a.tunnel.begun() {
		a = nil // the proxy refused it, and kept the connection for this one
	}
	if a == nil {
		a = &attempt{owner: r, began: t, tunnel: unseen, gone: true}
		c.attempt = a
	}
	owner := a.owner
	a.owner = r
	known := slices.Contains(r.attempts, a)
	if !known {
		r.own(a)
	}
	r.tunnels = true
	a.conn, a.proxy = nil, c
	a.thread, a.last = e.Thread, t
	if a.gone {
		a.gone = false
		p.attempts = append(p.attempts, a)
	}
	if !a.tunnel.begun() {
		a.tunnel = interval{start: t, end: never}
		a.proxyTLS, a.tls = a.tls, nil
		// The inner wait goes, and one that an exchange followed stays.
		n := 0
		if x := h.last(); x != nil {
			for n < len(h.queues) && h.queues[n].end <= x.headers.start {
				n++
			}
		}
		a.talk = talk{first: !c.used, owner: owner, known: known, queues: slices.Clone(h.queues[n:])}
		h.queues = h.queues[:n]
	} else {
		a.tunnel.end = never
	}
	a.talk.exchange = sending(e, ord)
	a.tunnelStatus = 0
	c.used = true
	return true
}

func (b *Builder) headersStart(p *process, r *request, e *Event, ord uint32) {
	if b.connect(p, r, e, ord) {
		return
	}
	h := r.hop()
	var c *connection
	if e.HasConn {
		c = p.conns[e.Conn]
	}
	if x := h.last(); x != nil {
		switch {
		case b.gaveUp(r, x):
		case x.headers.open():
			r.miss("a stop of request headers")
		case x.content.open():
			r.miss("a stop of request content")
		}
		x.resp.inferred = x.resp.open()
	}
	x := sending(e, ord)
	switch {
	case c == nil && e.HasConn:
		// Established before the trace began, or its event was lost.
		c = &connection{id: e.Conn, hasID: true, at: never, used: true}
		p.addConn(c)
	case c == nil:
		// Version 0: the attempt of r that was established last. .NET 5 makes it part of
		// the request and tells of no queue; in others one without a queue was pooled.
		if a := r.established(); a != nil {
			c = a.conn
		}
	}
	x.conn = c
	if c != nil {
		if !c.used {
			c.used = true
			x.first, x.attempt = true, c.attempt
			c.attempt = nil
		}
		x.again, c.seen = c.seen && c.hasID, true
		c.user, c.lastUser = r, r
	}
	if len(h.ex) == 4096 {
		r.miss("an exchange")
		return
	}
	h.ex = append(h.ex, x)
}

// sending returns an exchange at the start of its headers, which have a number below the request.
func sending(e *Event, ord uint32) exchange {
	return exchange{
		headers: interval{start: e.Time, end: never}, content: unseen, resp: unseen,
		hasConn: e.HasConn, connID: e.Conn, length: -1, ord: [3]uint32{ord}, by: e.Thread,
	}
}

// answer takes the end of the headers of an answer.
func (x *exchange) answer(e *Event) {
	x.resp.end = e.Time
	x.status, x.hasStatus = e.Status, e.HasStatus && e.Status >= 0
}

// gaveUp reports whether a step of x that another exchange follows may have ended without
// a stop: where a connection of HTTP/2 or 3 takes no more streams, or answers early, the
// step throws.
func (b *Builder) gaveUp(r *request, x *exchange) bool {
	multiplexed := !r.onlyOne()
	if x.conn != nil && x.conn.major > 0 {
		multiplexed = x.conn.major >= 2
	}
	return multiplexed && !b.lossy
}

// established returns the attempt of r that opened a connection last for what r does
// next, if it has no id to be told by.
func (r *request) established() *attempt {
	h := r.hop()
	since := h.start
	if x := h.last(); x != nil {
		since = x.headers.start
	} else if len(h.queues) > 0 {
		since = r.start
	}
	for i := len(r.attempts) - 1; i >= 0; i-- {
		if a := r.attempts[i]; a.began >= since && a.conn != nil && !a.conn.hasID && !a.conn.used {
			return a
		}
	}
	return nil
}

func (p *process) addConn(c *connection) {
	p.conns[c.id] = c
	p.connQ = append(p.connQ, c)
	if len(p.connQ) > 2*len(p.conns)+64 || len(p.connQ) > maxConnections {
		live := p.connQ[:0]
		for _, o := range p.connQ {
			if p.conns[o.id] == o { // not closed, and no other has its id since
				live = append(live, o)
			}
		}
		clear(p.connQ[len(live):])
		p.connQ = live
		for len(p.connQ) > maxConnections/2 {
			delete(p.conns, p.connQ[0].id)
			p.connQ = p.connQ[1:]
		}
	}
}

func (b *Builder) failed(r *request, e *Event) {
	if r.failed {
		return
	}
	r.failed, r.failAt, r.failText = true, e.Time, e.Text
}

// failure takes an event that tells of a failure.
func (b *Builder) failure(r *request, e *Event) {
	if e.Kind == RequestFailed {
		b.failed(r, e)
		return
	}
	if !r.failed {
		b.failed(r, e)
		r.failText = firstLine(e.Text)
		r.miss("RequestFailed")
	}
	r.detail, r.hasDetail = e.Text, true
}

func (b *Builder) requestStop(p *process, th *thread, r *request, e *Event) {
	r.stop, r.stopped, r.stopThread = max(e.Time, r.hop().start), true, e.Thread // later, unless the event comes too late
	r.status, r.hasStatus = e.Status, e.HasStatus
	if r.headless && r.guid == ([16]byte{}) && slices.Equal(e.Path[:e.PathLen], r.path) {
		r.guid = e.ID // the id of a phase told the path alone
	}
	// Events of this thread were lost since the request was last heard of: a failure
	// may have been among them.
	if th.gapTo != never && th.gapFrom < e.Time && th.gapTo > r.last && !r.failed {
		r.miss("events before the stop")
	}
}

// emit hands r out and remembers it for a while.
func (b *Builder) emit(p *process, r *request) {
	if !r.open {
		return
	}
	if r.bridged && r.took == 0 && b.lossyBy(b.now) && slices.Contains(b.stats.Versions[:], true) {
		// System.Net.Http tells of requests: of this one the event was lost. Where none is, it began when the
		// session had the bridge only, as providers are turned on one after the other.
		r.headless = true
		r.miss("the start")
	}
	row := b.row(r)
	r.open = false
	if r.openPrev != nil {
		r.openPrev.openNext = r.openNext
	} else {
		p.open = r.openNext
	}
	if r.openNext != nil {
		r.openNext.openPrev = r.openPrev
	}
	r.openPrev, r.openNext = nil, nil
	if r.idless {
		p.idless.remove(r)
	}
	p.clearAdrift(r)
	if row.Guessed > 0 {
		b.stats.Guessed++
		b.stats.Guesses += int64(row.Guessed)
	}
	if len(row.Missing) > 0 {
		b.stats.Lost++
		// What is missing here can be missing elsewhere. (The beginning of a trace
		// cuts requests without anything being lost, and without ids another
		// request may have it.)
		holed := !r.headless && !r.idless
		b.lossy, b.holed = b.lossy || holed, b.holed || holed
	}
	// What remains is there for late events of its attempts.
	for _, h := range r.hops {
		for k := range h.ex {
			h.ex[k].leave(r)
		}
	}
	last := r.hops[len(r.hops)-1]
	x := last.last()
	lingers := x != nil && x.content.open()
	last.ex, last.queues = nil, nil
	r.hops = []hop{last}
	r.detail = ""
	for _, a := range r.attempts {
		lingers = lingers || a.conn == nil && !a.gone
	}
	list, limit := &p.recent, maxRecent
	if lingers {
		list, limit = &p.lingering, maxLingering
	}
	*list = append(*list, r)
	if len(*list) > limit {
		p.forget((*list)[0])
		(*list)[0] = nil
		*list = (*list)[1:]
	}
	if b.opts.Request != nil {
		b.opts.Request(row)
	}
}

func (p *process) forget(r *request) {
	if r.hash != 0 {
		p.leave(r)
	}
	for _, id := range r.guids {
		delete(p.aliases, id)
	}
	for _, a := range r.attempts {
		if a.owner == r {
			a.owner = nil
		}
	}
	r.attempts = nil
	for _, k := range r.spanned {
		if p.spans[k] == r {
			delete(p.spans, k)
		}
	}
}

func itoa(v int32) string { return strconv.Itoa(int(v)) }
