package httpphases

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// attemptEvent takes the events of connection attempts: name resolution, sockets,
// TLS and ConnectionEstablished. An attempt runs in the flow of the request that
// happened to call the pool, which need not be the one it serves in the end.
func (b *Builder) attemptEvent(p *process, th *thread, e *Event, h *[25]uint64, n int) {
	t := e.Time
	var r *request
	switch e.Kind {
	case ResolutionStart, ConnectStart, HandshakeStart, ConnectionEstablished:
		if e.Kind == HandshakeStart && e.Server {
			if e.ID == ([16]byte{}) {
				p.handshakes++
			}
			return
		}
		r = b.owner(p, e, h, n)
		if r != nil && e.Kind != ConnectionEstablished {
			r.ordinal(e)
		}
	}
	switch e.Kind {
	case ResolutionStart:
		b.stats.DNS++
		if r == nil {
			r = b.linkAttempt(p, th, e)
		}
		a := r.extends(e.Host)
		if a == nil {
			a = p.newAttempt(r, e, h, n)
		}
		a.host = e.Host
		a.dns = append(a.dns, interval{start: t, end: never})
		p.began(e, a, len(a.dns)-1)
		a.touch(th, e)
	case ConnectStart:
		b.stats.Connects++
		a := b.connectAttempt(p, th, e, r, h, n)
		a.tries = append(a.tries, try{interval: interval{start: t, end: never}, address: address(e.Text)})
		p.began(e, a, len(a.tries)-1)
		a.touch(th, e)
	case HandshakeStart:
		b.stats.Handshakes++
		a := b.handshakeAttempt(p, th, e, r, h, n)
		a.tls = append(a.tls, handshake{interval: interval{start: t, end: never}})
		p.began(e, a, len(a.tls)-1)
		a.touch(th, e)
	case ResolutionStop, ResolutionFailed, ConnectStop, ConnectFailed:
		a, v, code := b.begun(p, th, e)
		if a == nil {
			return
		}
		a.touch(th, e)
		switch e.Kind {
		case ResolutionFailed:
			v.failed, v.failedAt, v.err = true, t, "name resolution failed"
		case ConnectFailed:
			v.failed, v.failedAt, v.err = true, t, e.Text
			if v.err == "" {
				v.err = socketError(e.Status)
			}
			*code = e.Status
		default:
			v.end = t
			p.ended(e)
		}
	case HandshakeFailed:
		if e.Server {
			return
		}
		if a, v := b.openHandshake(p, th, e); a != nil {
			v.failed, v.failedAt, v.err = true, t, e.Text
			if v.err == "" {
				v.err = "TLS handshake failed"
			}
			a.touch(th, e)
		}
	case HandshakeStop:
		b.handshakeStop(p, th, e)
	case ConnectionEstablished:
		b.stats.Connections++
		b.connectionEstablished(p, th, e, r)
	}
}

func (a *attempt) touch(th *thread, e *Event) {
	a.thread, a.last = e.Thread, e.Time
	th.attempt = a
}

func (p *process) newAttempt(r *request, e *Event, h *[25]uint64, n int) *attempt {
	a := &attempt{owner: r, tunnel: unseen, began: e.Time}
	if n > 0 && !e.Overflow {
		a.hash, a.hashLen = h[n], uint8(n)
	}
	if r != nil {
		r.own(a)
	}
	p.attempts = append(p.attempts, a)
	if len(p.attempts) > maxAttempts {
		p.attempts[0].gone = true
		p.attempts[0] = nil
		p.attempts = p.attempts[1:]
	}
	return a
}

// drop takes a off the list of live attempts.
func (p *process) drop(a *attempt) {
	if a.gone {
		return
	}
	a.gone = true
	for i := len(p.attempts) - 1; i >= 0; i-- {
		if p.attempts[i] == a {
			p.attempts = append(p.attempts[:i], p.attempts[i+1:]...)
			return
		}
	}
}

// began and ended keep the open starts by id.
func (p *process) began(e *Event, a *attempt, index int) {
	if e.ID != ([16]byte{}) {
		if len(p.nodes) > 4*maxAttempts {
			clear(p.nodes) // stops were lost
		}
		p.nodes[e.ID] = node{a, e.Kind, index}
	}
}

func (p *process) ended(e *Event) {
	if e.ID != ([16]byte{}) {
		delete(p.nodes, e.ID)
	}
}

// extends returns the attempt of r that a further look-up belongs to: one that has
// looked up and not connected yet.
func (r *request) extends(host string) *attempt {
	if r == nil {
		return nil
	}
	for i := len(r.attempts) - 1; i >= 0; i-- {
		a := r.attempts[i]
		if a.conn == nil && len(a.tries) == 0 && len(a.dns) > 0 && a.host == host && !a.failed() && a.dns[len(a.dns)-1].closed() {
			return a
		}
	}
	return nil
}

// connectAttempt finds the attempt that a socket is opened for.
func (b *Builder) connectAttempt(p *process, th *thread, e *Event, r *request, h *[25]uint64, n int) *attempt {
	_, port := splitAddress(address(e.Text))
	return b.likeliest(p, th, e, r, h, n, func(a *attempt) int {
		if a.tunnel.begun() {
			return -1
		}
		if t := a.lastTry(); t != nil {
			// The next address is of the same port, and without ids that of who still waits.
			if _, is := splitAddress(t.address); !t.failed || t.open() || is != port || r == nil && a.owner != nil && !a.owner.open {
				return -1
			}
		} else if len(a.dns) == 0 || a.dns[len(a.dns)-1].open() || a.dns[len(a.dns)-1].failed {
			return -1
		}
		s := 0
		if a.hashLen > 0 && int(a.hashLen) <= n && h[a.hashLen] == a.hash {
			s += 4
		}
		if a.thread == e.Thread {
			s += 2
		}
		return s
	})
}

// handshakeAttempt finds the attempt whose socket, or tunnel, TLS is started on.
func (b *Builder) handshakeAttempt(p *process, th *thread, e *Event, r *request, h *[25]uint64, n int) *attempt {
	if r != nil && r.lastThread == e.Thread {
		if x := r.hop().last(); x != nil && x.resp.closed() && x.resp.end == r.last {
			if a := r.connecting(); a != nil && a.tunnel.open() {
				a.takes(x)
			}
		}
	}
	return b.likeliest(p, th, e, r, h, n, func(a *attempt) int {
		if len(a.tls) > 0 || !(a.connected() || a.tunnel.closed() && !a.tunnel.failed) {
			return -1
		}
		s := 0
		if a.thread == e.Thread {
			s += 4
		}
		if a.host == e.Host || a.host == "" || a.tunnel.closed() {
			s += 2
		}
		return s
	})
}

// likeliest returns the attempt that an event goes on with, for r if that is known: of those
// without a connection the newest of the highest score; a new one if none can be it. A score below
// 0 says that it can not. The newest attempt of the thread is a little likelier.
func (b *Builder) likeliest(p *process, th *thread, e *Event, r *request, h *[25]uint64, n int, score func(*attempt) int) *attempt {
	var best *attempt
	highest := 0
	for _, a := range p.attempts {
		if a.conn != nil || r != nil && a.owner != r || r == nil && a.owner != nil && !a.owner.idless {
			continue
		}
		s := score(a)
		if s < 0 {
			continue
		}
		if th.attempt == a {
			s++
		}
		if s >= highest {
			best, highest = a, s
		}
	}
	if best != nil {
		return best
	}
	if r == nil {
		r = b.linkAttempt(p, th, e)
	}
	return p.newAttempt(r, e, h, n)
}

// begun finds the open lookup or socket that an event is about.
func (b *Builder) begun(p *process, th *thread, e *Event) (*attempt, *interval, *int32) {
	dns := e.Kind == ResolutionStop || e.Kind == ResolutionFailed
	if e.ID != ([16]byte{}) {
		nd, ok := p.nodes[e.ID]
		if !ok || (nd.kind == ResolutionStart) != dns || (nd.kind == ConnectStart) == dns {
			return nil, nil, nil
		}
		if dns {
			return nd.attempt, &nd.attempt.dns[nd.index], nil
		}
		t := &nd.attempt.tries[nd.index]
		return nd.attempt, &t.interval, &t.code
	}
	var best *attempt
	score := -1
	for _, a := range p.attempts {
		if a.owner != nil && !a.owner.idless {
			continue
		}
		if dns && (len(a.dns) == 0 || !a.dns[len(a.dns)-1].open()) {
			continue
		}
		if !dns && (a.lastTry() == nil || !a.lastTry().open()) {
			continue
		}
		s := 0
		if a.thread == e.Thread {
			s += 2
		}
		if th.attempt == a {
			s++
		}
		if s > score { // the oldest of equals
			best, score = a, s
		}
	}
	if best == nil {
		return nil, nil, nil
	}
	if dns {
		return best, &best.dns[len(best.dns)-1], nil
	}
	t := best.lastTry()
	return best, &t.interval, &t.code
}

// openHandshake finds the client handshake that an event is about.
func (b *Builder) openHandshake(p *process, th *thread, e *Event) (*attempt, *handshake) {
	if e.ID != ([16]byte{}) {
		nd, ok := p.nodes[e.ID]
		if !ok || nd.kind != HandshakeStart || nd.index >= len(nd.attempt.tls) {
			return nil, nil // the server's
		}
		return nd.attempt, &nd.attempt.tls[nd.index]
	}
	var best *attempt
	score := -1
	for _, a := range p.attempts {
		// The open handshake of an ended request takes no later event.
		if a.owner != nil && (!a.owner.idless || !a.owner.open) || a.lastTLS() == nil || !a.lastTLS().open() {
			continue
		}
		s := 0
		if a.thread == e.Thread {
			s += 2
		}
		if th.attempt == a {
			s++
		}
		if a.lastTLS().failed {
			s += 4
		}
		if s > score {
			best, score = a, s
		}
	}
	if best == nil {
		return nil, nil
	}
	return best, best.lastTLS()
}

func (b *Builder) handshakeStop(p *process, th *thread, e *Event) {
	a, v := b.openHandshake(p, th, e)
	if e.ID != ([16]byte{}) {
		if a != nil {
			v.end, v.protocol = e.Time, e.Status
			if e.Status == 0 && !v.failed {
				v.failed, v.err = true, "TLS handshake failed"
			}
			p.ended(e)
			a.touch(th, e)
		}
		return
	}
	switch {
	case a == nil:
		p.handshakes = max(p.handshakes-1, 0)
	case p.handshakes == 0:
		v.end, v.protocol = e.Time, e.Status
		a.touch(th, e)
	default:
		// The client's is followed on its thread by ConnectionEstablished or
		// RequestLeftQueue (section 7.6 f): the next event tells.
		th.stop, th.stopAt, th.stopStatus = v, e.Time, e.Status
		th.attempt = a
	}
}

// settleHandshake decides whose HandshakeStop the last event of a thread was.
func (b *Builder) settleHandshake(p *process, th *thread, e *Event) {
	v := th.stop
	th.stop = nil
	client := false
	switch e.Kind {
	case ConnectionEstablished:
		client = th.stopStatus != 0
		if client {
			// Of several open handshakes the one to this place.
			for _, a := range p.attempts {
				if l := a.lastTLS(); l != nil && l.open() && a.owner != nil && a.owner.idless &&
					a.owner.hop().at.host == e.Host && a.owner.hop().at.port == int(e.Port) {
					v, th.attempt = l, a
					break
				}
			}
		}
	case RequestLeftQueue:
		client = th.stopStatus == 0
	}
	if !client || !v.open() {
		p.handshakes = max(p.handshakes-1, 0)
		return
	}
	v.end, v.protocol = th.stopAt, th.stopStatus
	if th.attempt != nil {
		th.attempt.thread, th.attempt.last = e.Thread, th.stopAt
	}
}

// connectionEstablished takes the event of a connection that was opened, in an activity of r if that is not nil, and
// joins it to the attempt that fits best, of equal ones to the latest.
func (b *Builder) connectionEstablished(p *process, th *thread, e *Event, r *request) {
	c := &connection{
		id: e.Conn, hasID: e.HasConn, major: e.Major, minor: e.Minor, scheme: e.Scheme, host: e.Host, port: int(e.Port),
		remote: strings.TrimPrefix(e.Text, "::ffff:"), at: e.Time,
	}
	var best *attempt
	score := -1
	for _, a := range p.attempts {
		if s := a.fits(e, r); s > score || s >= 0 && s == score && best.last < a.last {
			best, score = a, s
		}
	}
	if a := best; a != nil {
		a.opens(c)
		p.drop(a)
		th.attempt = nil
		if r == nil {
			r = a.owner
		}
	}
	if r != nil && best == nil && r.open {
		// A transport of the program's own, or sockets are not recorded: no events, but still a
		// connection that was opened for r.
		c.attempt = &attempt{owner: r, conn: c, tunnel: unseen, began: e.Time, gone: true}
		r.own(c.attempt)
	}
	if e.HasConn {
		p.addConn(c)
	}
}

// fits returns how well a fits the event of a connection that was opened, in an activity of r if that is
// not nil; -1 if not at all.
func (a *attempt) fits(e *Event, r *request) int {
	if a.conn != nil || r != nil && a.owner != r {
		return -1
	}
	s := 0
	if r != nil {
		s += 16
	}
	if a.thread == e.Thread {
		s += 8
	}
	switch tls := a.lastTLS(); {
	case a.failed(), r == nil && tls != nil && tls.open():
		return -1
	case len(a.dns)+len(a.tries)+len(a.tls) == 0:
		if !a.tunnelTo(e) {
			return -1
		}
		s += 4
	case a.readyFor(e, tls):
		s += 4
	case s == 0:
		return -1
	}
	if e.HasConn && (a.host == e.Host || a.host == "") {
		s += 2
	}
	if e.HasConn && a.port() != 0 && a.port() == int(e.Port) {
		s++
	}
	if r == nil && s < 4 {
		return -1
	}
	return s
}

// readyFor reports whether a, whose last handshake is tls, has done all that the connection of e needs.
func (a *attempt) readyFor(e *Event, tls *handshake) bool {
	plain, secured := tls == nil && a.connected(), tls != nil && tls.closed()
	switch {
	case !e.HasConn:
		return secured || plain
	case e.Scheme == "https" || e.Scheme == "wss":
		return secured
	}
	return plain
}

// opens says that a is how c was opened.
func (a *attempt) opens(c *connection) {
	a.conn, c.attempt = c, a
	if a.proxy != nil {
		c.proxy = joinHostPort(a.proxy.host, a.proxy.port)
	} else if t := a.lastTry(); t != nil {
		host, port := splitAddress(t.address)
		c.peerPort = port
		if c.remote == "" {
			c.remote = host
		}
	}
	if tls := a.lastTLS(); tls != nil {
		c.tls = tls.protocol
	}
}

// tunnelTo reports whether a connection is the one that a asked a proxy for.
func (a *attempt) tunnelTo(e *Event) bool {
	if !a.tunnel.closed() || a.owner == nil || !a.owner.open {
		return false
	}
	at := &a.owner.hop().at
	return at.host == e.Host && at.port == int(e.Port)
}

// port returns the port that the attempt's socket goes to, 0 if not known.
func (a *attempt) port() int {
	if t := a.lastTry(); t != nil {
		_, p := splitAddress(t.address)
		return p
	}
	return 0
}

// address turns the text of a SocketAddress, such as InterNetwork:16:{1,187,93,184,216,34,...},
// into host:port (http-events.md 2.3), and that of a Unix socket into its path, where @ stands for
// the zero of one that is no file. Other text is returned as it is.
func address(s string) string {
	family, rest, ok := strings.Cut(s, ":")
	open := strings.IndexByte(rest, '{')
	if !ok || open < 0 || !strings.HasSuffix(rest, "}") {
		return s
	}
	var raw [108]byte // as long as the path of a Unix socket
	n := 0
	for _, f := range strings.Split(rest[open+1:len(rest)-1], ",") {
		v, err := strconv.ParseUint(f, 10, 8)
		if err != nil {
			return s
		}
		if n < len(raw) {
			raw[n] = byte(v)
			n++
		}
	}
	port := int(raw[0])<<8 | int(raw[1])
	switch {
	case family == "InterNetwork" && n >= 6:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[2:6])), uint16(port)).String()
	case family == "InterNetworkV6" && n >= 22:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[6:22])).Unmap(), uint16(port)).String()
	case family == "Unix" && n > 1:
		if raw[0] == 0 {
			raw[0] = '@'
		}
		path, _, _ := bytes.Cut(raw[:n], []byte{0})
		return strings.ToValidUTF8(string(path), "\uFFFD")
	}
	return s
}

func splitAddress(s string) (string, int) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return s, 0
	}
	return a.Addr().Unmap().String(), int(a.Port())
}

func joinHostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(port)
}

// socketError names the Winsock numbers that .NET uses on all systems.
func socketError(code int32) string {
	switch code {
	case 995:
		return "operation aborted (995)"
	case 10013:
		return "access denied (10013)"
	case 10048:
		return "address already in use (10048)"
	case 10049:
		return "address not available (10049)"
	case 10050:
		return "network down (10050)"
	case 10051:
		return "network unreachable (10051)"
	case 10053:
		return "connection aborted (10053)"
	case 10054:
		return "connection reset (10054)"
	case 10055:
		return "no buffer space available (10055)"
	case 10060:
		return "timed out (10060)"
	case 10061:
		return "connection refused (10061)"
	case 10064:
		return "host down (10064)"
	case 10065:
		return "host unreachable (10065)"
	case 11001:
		return "host not found (11001)"
	}
	return "socket error " + itoa(code)
}

// tlsText names a value of System.Security.Authentication.SslProtocols.
func tlsText(protocol int32) string {
	switch protocol {
	case 48:
		return "SSL 3.0"
	case 192:
		return "TLS 1.0"
	case 768:
		return "TLS 1.1"
	case 3072:
		return "TLS 1.2"
	case 12288:
		return "TLS 1.3"
	}
	return ""
}
