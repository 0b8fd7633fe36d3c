package httpphases

import "slices"

// Without activity ids no event of an answer tells its request. But a connection of HTTP/1.1
// carries one request at a time: it is used again when the answer to that has been read, and its
// next user names it (.NET 8 and later). A pool hands out the free connection that came back last,
// and one that somebody waits for goes to who has waited longest. So the next use of a connection
// tells the answer to its last user: the last one that ended before and is not told yet, but for
// those that no other connection is left for.

// Limits of what is known ahead.
const (
	aheadSize  = 4096 // events that are held back
	maxReplies = 512  // answers of a process whose connection is not known yet
	maxBusy    = 4096 // connections of a process that carry a request
)

// together is within what time (ns) events on a thread are of one answer, even where there are
// others.
const together = 5e5

// An ahead holds events back until those behind tell how connections are used again.
type ahead struct {
	ring []heldEvent
	head int // of the oldest
	n    int
}

// A heldEvent is one that waits, with the answer that it is part of.
type heldEvent struct {
	Event
	reply *reply
}

// A reply is an answer: the events that follow each other on one thread, and the end of the
// content.
type reply struct {
	begun   int64
	end     int64 // as far as it has come
	whole   bool  // its content was read by then; else somebody may go on reading
	told    bool  // its connection is known, or nobody asks for it any more
	conn    int64
	handled bool // the first of its events was
	to      *request
}

// An outlook is what is known ahead of the connections of a process.
type outlook struct {
	off     bool // ids tell more
	conns   map[int64]*connOutlook
	threads map[uint64]*threadOutlook
	busy    []*connOutlook // in order of their requests
	free    []*reply       // not told, in order of their ends
	reading []*reply       // whose content is being read
}

// A connOutlook is what is known ahead of a connection.
type connOutlook struct {
	major  uint8
	busy   bool  // the answer to its user is not known
	begun  int64 // when its user began to send the headers
	sent   int64 // when they were sent
	coming int   // answers on it that are known and not handled
}

// A threadOutlook is what is known ahead of a thread: its last event of System.Net.Http.
type threadOutlook struct {
	kind   Kind
	joined int64        // of RequestLeftQueue: when the request joined the queue
	major  uint8        // of RequestStart and RequestLeftQueue: the version that is used; 0: not told
	reply  *reply       // that the event was part of
	conn   *connOutlook // that the request was sent on
}

// pass takes the next event in time order. Where requests have no ids it handles the one that came
// aheadSize events before.
func (b *Builder) pass(e *Event) {
	a := b.ahead
	if a == nil {
		if e.Kind != RequestStart || e.ID != ([16]byte{}) {
			b.handle(e)
			return
		}
		a = &ahead{ring: make([]heldEvent, aheadSize)}
		b.ahead = a
	}
	if a.n == len(a.ring) {
		b.handleHeld()
	}
	h := &a.ring[(a.head+a.n)%len(a.ring)]
	h.Event, h.reply = *e, b.look(e)
	a.n++
}

// handleHeld handles the event that has waited longest.
func (b *Builder) handleHeld() {
	a := b.ahead
	h := &a.ring[a.head]
	a.head = (a.head + 1) % len(a.ring)
	a.n--
	b.reply = h.reply
	b.handle(&h.Event)
	b.reply = nil
}

// look notes an event, and returns the answer that it is part of, if any.
func (b *Builder) look(e *Event) *reply {
	span := e.Kind == SpanStart && e.Span != nil && e.Span.Name == spanClient
	if !span && (e.Kind == KindNone || e.Kind > RequestRedirect) {
		return nil
	}
	u := &b.process(e.Process).outlook
	if u.conns == nil {
		u.conns, u.threads = map[int64]*connOutlook{}, map[uint64]*threadOutlook{}
	}
	// The bridge's spans tell whose answer it is, which the event behind it on the thread ends.
	u.off = u.off || span || e.ID != ([16]byte{})
	if u.off {
		return nil
	}
	if e.Kind == ConnectionEstablished || e.Kind == ConnectionClosed {
		u.connection(e)
		return nil
	}
	th := u.threads[e.Thread]
	if th == nil {
		th = &threadOutlook{}
		u.threads[e.Thread] = th
	}
	kind, k, on := th.kind, th.reply, th.conn
	th.kind, th.reply, th.conn = e.Kind, nil, nil
	switch e.Kind {
	case RequestStart:
		if th.major = 0; e.Policy == exactly || e.Policy == orHigher && e.Major >= 2 {
			th.major = e.Major
		}
	case RequestLeftQueue:
		th.joined, th.major = e.Time-int64(e.Millis*1e6), e.Major
	case RequestHeadersStart:
		since, major := never, uint8(0)
		if kind == RequestLeftQueue {
			since = th.joined
		}
		if kind == RequestLeftQueue || kind == RequestStart {
			major = th.major
		}
		if e.HasConn {
			th.conn = u.begin(e, since, major)
		}
	case RequestHeadersStop, RequestContentStart, RequestContentStop:
		if th.conn = on; on != nil && e.Kind == RequestHeadersStop {
			on.sent = e.Time
		}
	default:
		if e.Kind != ResponseHeadersStart || on == nil || on.major < 2 { // else the wait for the answer begins
			th.reply = u.answer(e, kind, k)
		}
	}
	return th.reply
}

// connection takes the beginning or the end of a connection.
func (u *outlook) connection(e *Event) {
	if !e.HasConn {
		return
	}
	if c := u.conns[e.Conn]; c != nil {
		// Who gave up has no answer, unless one would be left over.
		if _, last := u.choice(c.sent); c.busy && last < len(u.free) {
			u.reused(e.Conn, c, never)
		}
		u.idle(c)
		delete(u.conns, e.Conn)
	}
	if e.Kind == ConnectionEstablished {
		u.add(e.Conn).major = e.Major
	}
}

// add makes a connection known. Those that were before are forgotten if they are too many.
func (u *outlook) add(id int64) *connOutlook {
	if len(u.conns) == maxConnections {
		clear(u.conns)
		u.busy = nil
	}
	c := &connOutlook{}
	u.conns[id] = c
	return c
}

// begin takes the headers of a request that has waited for a connection since a time (never: it has
// not), and returns the connection they are sent on. Of one from before the trace the version tells
// whether it carries one request at a time (0: not known).
func (u *outlook) begin(e *Event, since int64, major uint8) *connOutlook {
	c := u.conns[e.Conn]
	if c == nil {
		c = u.add(e.Conn)
	}
	if c.major == 0 {
		c.major = major
	}
	if c.major >= 2 {
		return c
	}
	if c.busy {
		u.reused(e.Conn, c, since)
	}
	u.idle(c)
	if len(u.busy) == maxBusy {
		u.idle(u.busy[0])
	}
	c.busy, c.begun, c.sent = true, e.Time, e.Time
	u.busy = append(u.busy, c)
	return c
}

// answer takes an event of an answer, or of another kind that has no id of a connection, behind one
// of a kind on its thread that was part of k, and returns the answer that it is part of.
func (u *outlook) answer(e *Event, behind Kind, k *reply) *reply {
	switch {
	case e.Kind == ResponseHeadersStart:
		return &reply{begun: e.Time, end: e.Time}
	case e.Kind == ResponseHeadersStop && behind == ResponseHeadersStart && k != nil:
		if k.end, k.whole = e.Time, true; !k.told {
			k.move(nil, &u.free)
		}
	case e.Kind == ResponseContentStart && behind == ResponseHeadersStop:
		if k == nil {
			k = &reply{begun: e.Time, told: true, conn: never} // its connection has others
		}
		k.end = e.Time
		k.move(&u.free, &u.reading)
	case e.Kind == ResponseContentStop && len(u.reading) > 0:
		// It is that of the last one of the thread, if at once, else of the one that is read for longest.
		if behind != ResponseContentStart || !slices.Contains(u.reading, k) || e.Time-k.end >= together {
			k = u.reading[0]
		}
		k.end, k.whole = e.Time, true
		to := &u.free
		if k.told {
			to = nil
		}
		k.move(&u.reading, to)
	case e.Kind == RequestStop && behind == ResponseHeadersStop && k != nil:
		k.whole = false
	case behind == ResponseContentStop && e.Kind == RequestStop,
		behind == ResponseHeadersStop && e.Kind == RequestRedirect:
	default:
		return nil
	}
	return k
}

// move takes k off one list, if it is there, and puts it at the end of another one, which forgets
// the first of too many. Either may be nil.
func (k *reply) move(from, to *[]*reply) {
	if from != nil {
		if i := slices.Index(*from, k); i >= 0 {
			*from = slices.Delete(*from, i, i+1)
		}
	}
	if to != nil {
		if len(*to) == maxReplies {
			(*to)[0].move(to, nil)
		}
		*to = append(*to, k)
	}
}

// reused takes the next use of a connection, by who has waited for one since a time (never: who has
// not), or its end.
func (u *outlook) reused(id int64, c *connOutlook, since int64) {
	first, last := u.choice(max(c.sent, since))
	var best *reply
	for i := first; i < len(u.free) && (i <= last || best == nil); i++ {
		k := u.free[i]
		if k.begun < c.sent {
			continue
		}
		if best == nil || k.whole && (since == never || !best.whole) {
			best = k
		}
	}
	for i := len(u.reading) - 1; i >= 0 && best == nil; i-- {
		// It comes back a moment before the end of the content is told.
		if k := u.reading[i]; !k.told && k.begun > max(c.sent, since) {
			best = k
		}
	}
	if best != nil {
		u.tell(best, id, c)
	}
}

// choice returns the first and the last of the free answers that one that ended behind a time can
// be: of those up to the last one at least one must be taken, or there are more of them than
// connections.
func (u *outlook) choice(after int64) (first, last int) {
	connections := 0
	first = len(u.free)
	for i := 0; i < len(u.free); i++ {
		k := u.free[i]
		for connections < len(u.busy) && u.busy[connections].begun < k.end {
			connections++
		}
		if connections <= i {
			// One too many: that of a request from before the trace, or of which events were lost.
			u.free[0].move(&u.free, nil)
			return u.choice(after)
		}
		if k.end > after {
			first = min(first, i)
			if connections == i+1 {
				return first, i
			}
		}
	}
	return min(first, len(u.free)), len(u.free)
}

// tell notes the connection of an answer.
func (u *outlook) tell(k *reply, id int64, c *connOutlook) {
	k.move(&u.free, nil)
	u.idle(c)
	k.told, k.conn = true, id
	if !k.handled {
		c.coming++
	}
}

// idle notes that the answer to the user of a connection is known.
func (u *outlook) idle(c *connOutlook) {
	if !c.busy {
		return
	}
	c.busy = false
	if i := slices.Index(u.busy, c); i >= 0 {
		u.busy = slices.Delete(u.busy, i, i+1)
	}
}

// replyTo returns the request that the event at hand answers, nil if that is not known ahead.
func (b *Builder) replyTo(p *process, e *Event) *request {
	k := b.reply
	if k == nil {
		return nil
	}
	r := k.to
	if c := p.conns[k.conn]; r == nil && k.told && c != nil {
		r = c.lastUser
	}
	if r == nil || !r.open || !r.idless || !r.fits(e.Kind) {
		return nil
	}
	return r
}

// unexpected leaves in l those that the end of a request, or the first event of an answer that
// nothing tells ahead, can be of: whose answer is not known to come later. It leaves all if that is
// none.
func (b *Builder) unexpected(p *process, e *Event, l []*request) []*request {
	if b.ahead == nil || e.Kind != RequestFailed && (b.reply == nil || b.reply.handled) {
		return l
	}
	u, n := &p.outlook, 0
	for i, r := range l {
		if !r.fits(e.Kind) {
			continue
		}
		if c := u.of(r); c == nil || c.coming == 0 {
			l[n], l[i] = r, l[n]
			n++
		}
	}
	if n == 0 {
		return l
	}
	return l[:n]
}

// of returns the connection that r is on, nil if it is not known.
func (u *outlook) of(r *request) *connOutlook {
	if x := r.hop().last(); x != nil && x.hasConn {
		return u.conns[x.connID]
	}
	return nil
}

// replied notes which request the event at hand was given to.
func (b *Builder) replied(p *process, e *Event, r *request) {
	if b.ahead == nil || r == nil && b.reply == nil {
		return
	}
	u, k := &p.outlook, b.reply
	if e.Kind == ResponseContentStop || e.Kind == RequestStop || e.Kind == RequestFailed {
		for _, f := range u.reading {
			if r != nil && f.to == r {
				f.move(&u.reading, nil)
				break
			}
		}
	}
	if k == nil || k.handled {
		return
	}
	k.handled, k.to = true, r
	if k.told {
		if c := u.conns[k.conn]; c != nil && c.coming > 0 {
			c.coming--
		}
		return
	}
	// Nothing tells ahead: the connection of who was chosen takes no other.
	k.move(&u.free, nil)
	k.told = true
	if r == nil {
		return
	}
	if c := u.of(r); c != nil && c.coming == 0 && c.sent <= e.Time {
		u.idle(c)
	}
}
