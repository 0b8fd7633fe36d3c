package httpreport

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export/otlp"
	"github.com/tracefix/tracefix/internal/text"
)

// otlpWriter writes spans with the names of the semantic conventions: one per hop, with a
// child for each of its phases, those of a new connection below one of its own
// (http-events.md section 10.4), and one per request served.
type otlpWriter struct {
	lines otlp.Writer
	o     Options
	base  int64 // unix ns of time 0
}

func newOTLP(w io.Writer, o *Options) Writer {
	t := &otlpWriter{o: *o}
	t.lines = otlp.Writer{W: w, Signal: otlp.Spans, Version: o.Exporter, Resource: t.resource}
	if !o.Start.IsZero() {
		t.base = o.Start.UnixNano()
	}
	return t
}

func (w *otlpWriter) resource() *otlp.Resource {
	r := &otlp.Resource{PID: w.o.Process, Source: w.o.Source}
	if w.o.Origin != nil {
		r.Service, r.Command, r.RuntimeVersion = w.o.Origin()
	}
	return r
}

// isID reports whether a text of the trace is an id of OTLP: so many hexadecimal digits, not all of them 0.
// An activity without a W3C id has nothing but zeros, and a damaged payload has any text.
func isID(s string, digits int) bool {
	if len(s) != digits || strings.Trim(s, "0") == "" {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// hash derives an id that is the same on every run.
func (w *otlpWriter) hash(id int, activity [16]byte, process uint32, start int64, what string, n int) [32]byte {
	var b [40]byte
	copy(b[:16], activity[:])
	binary.LittleEndian.PutUint64(b[16:], uint64(start))
	binary.LittleEndian.PutUint32(b[24:], process)
	binary.LittleEndian.PutUint32(b[28:], uint32(id))
	binary.LittleEndian.PutUint64(b[32:], uint64(n))
	return sha256.Sum256(append([]byte(w.o.Source+"\x00"+what+"\x00"), b[:]...))
}

func (w *otlpWriter) traceID(r *httpphases.Request) string {
	h := w.hash(r.ID, r.Activity, r.Process, r.Start, "trace request", 0)
	return hex.EncodeToString(h[:16])
}

func (w *otlpWriter) spanID(r *httpphases.Request, what string, n int) string {
	h := w.hash(r.ID, r.Activity, r.Process, r.Start, "span "+what, n)
	return hex.EncodeToString(h[:8])
}

// A span is one that is being written.
type span struct {
	w                 *otlpWriter
	a                 otlp.Attributes
	trace, id, parent string
	code              int // 0: unset, 2: error
	message           string
	events            []byte // of JSON objects, with commas between
	eventCount        int
}

// begin starts a span; attributes follow, then end.
func (w *otlpWriter) begin(trace, id, parent, name string, kind int, start, end int64) *span {
	b := w.lines.Item()
	b = append(append(append(b, "{\"traceId\":\""...), trace...), `","spanId":"`...)
	b = append(append(b, id...), '"')
	if isID(parent, 16) {
		b = append(append(append(b, `,"parentSpanId":"`...), parent...), '"')
	}
	b = text.AppendJSON(append(b, `,"name":`...), name)
	b = strconv.AppendInt(append(b, `,"kind":`...), int64(kind), 10)
	b = otlp.AppendInt(append(b, `,"startTimeUnixNano":`...), w.base+start)
	b = otlp.AppendInt(append(b, `,"endTimeUnixNano":`...), w.base+end)
	return &span{w: w, a: otlp.Attributes{B: append(b, `,"attributes":[`...)}, trace: trace, id: id, parent: parent}
}

// failed says that what the span is of failed.
func (s *span) failed(errorType, message string) {
	s.a.Text("error.type", errorType)
	s.code, s.message = 2, firstLine(message)
}

// event adds an event to the span.
func (s *span) event(name string, at int64, attributes func(*otlp.Attributes)) {
	if s.eventCount++; s.eventCount > 1 {
		s.events = append(s.events, ',')
	}
	b := text.AppendJSON(append(s.events, `{"name":`...), name)
	b = otlp.AppendInt(append(b, `,"timeUnixNano":`...), s.w.base+at)
	a := otlp.Attributes{B: append(b, `,"attributes":[`...)}
	attributes(&a)
	s.events = append(a.B, "]}"...)
}

func (s *span) end() error {
	b := append(s.a.B, ']')
	if s.eventCount > 0 {
		b = append(append(append(b, `,"events":[`...), s.events...), ']')
	}
	b = append(b, `,"status":{`...)
	if s.code != 0 {
		b = append(b, `"code":2`...)
		if s.message != "" {
			b = text.AppendJSON(append(b, `,"message":`...), s.message)
		}
	}
	return s.w.lines.Done(append(b, "}}"...))
}

const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
)

func protocol(v string) string { return strings.TrimSuffix(v, ".0") }

func (w *otlpWriter) Request(r *httpphases.Request) error {
	trace := r.TraceID
	if !isID(trace, 32) {
		trace = w.traceID(r)
	}
	for i := range r.Redirects {
		d := &r.Redirects[i]
		h := harHop{start: d.Start, end: d.Start + d.Duration, url: d.From, version: d.Version, status: d.Status, conn: d.Connection, phases: d.Phases, bytes: -1}
		if i == 0 {
			h.method = r.Method
		}
		if err := w.hop(r, trace, &h, i); err != nil {
			return err
		}
	}
	h := harHop{
		start: w.o.began(r.Start, knownEnd(r), r.Took), end: knownEnd(r), url: r.URL(), version: r.Version, status: r.Status, method: r.Method,
		conn: r.Connection, phases: r.Phases, bytes: r.RequestBytes,
	}
	if n := len(r.Redirects); n > 0 {
		d := &r.Redirects[n-1]
		h.start, h.url, h.method = d.Start+d.Duration, d.URL, ""
	}
	return w.hop(r, trace, &h, len(r.Redirects))
}

// hop writes the span of hop n, and those of its phases.
func (w *otlpWriter) hop(r *httpphases.Request, trace string, h *harHop, n int) error {
	id, parent := w.spanID(r, "hop", n), r.ParentSpanID
	// There are more spans than hops where a handler sends the request again. Its headers then name the first one.
	if (n == 0 && len(r.Spans) > 0 || len(r.Spans) == len(r.Redirects)+1) && isID(r.Spans[n].Trace, 32) && isID(r.Spans[n].Span, 16) {
		trace, id, parent = r.Spans[n].Trace, r.Spans[n].Span, r.Spans[n].Parent
	}
	s := w.begin(trace, id, parent, cmp.Or(h.method, "HTTP"), kindClient, h.start, h.end)
	a := &s.a
	a.Text("http.request.method", cmp.Or(h.method, "_OTHER"))
	a.Text("url.full", h.url)
	scheme, host, port := r.Scheme, r.Host, r.Port
	if n > 0 {
		scheme, host, port = splitAuthority(h.url)
	}
	a.Text("url.scheme", scheme)
	a.Text("server.address", host)
	if port > 0 {
		a.Int("server.port", int64(port))
	}
	if h.status > 0 {
		a.Int("http.response.status_code", int64(h.status))
	}
	if h.version != "" {
		a.Text("network.protocol.name", "http")
		a.Text("network.protocol.version", protocol(h.version))
	}
	if c := h.conn; c != nil {
		a.Text("network.peer.address", c.Remote)
		if c.Remote != "" && c.Port > 0 {
			a.Int("network.peer.port", int64(c.Port))
		}
		if c.HasID {
			a.Int("tracefix.connection", c.ID)
		}
		if c.New {
			a.Bool("tracefix.connection.new")
		}
	}
	if n > 0 {
		a.Int("http.request.resend_count", int64(n))
	}
	if h.bytes >= 0 {
		a.Int("http.request.body.size", h.bytes)
	}
	a.Int("tracefix.request", int64(r.ID))
	a.Text("tracefix.activity", pathText(r.Path))
	a.Text("tracefix.outcome", r.Outcome.String())
	a.Texts("tracefix.marks", r.Marks().List())
	a.Texts("tracefix.missing", r.Missing)
	last := n == len(r.Redirects)
	switch {
	case last && (r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled || r.Error != ""): // incomplete, but failed: its start is not known
		s.failed(cmp.Or(r.ErrorType, "_OTHER"), r.Error)
		s.event("exception", h.end, func(x *otlp.Attributes) {
			x.Text("exception.type", r.ErrorType)
			x.Text("exception.message", r.Error)
			x.Text("exception.stacktrace", r.Detail)
			x.Text("tracefix.error_cause", r.ErrorCause)
		})
	case h.status >= 400:
		s.failed(strconv.Itoa(h.status), "")
	}
	if last {
		s.sideAttempts(r)
	}
	if err := s.end(); err != nil {
		return err
	}
	return w.phases(r, h, n, s, host, port)
}

// sideAttempts adds as events what failed on the way without ending the request.
func (s *span) sideAttempts(r *httpphases.Request) {
	failed := func(p *httpphases.Phase, address string) {
		if p.Error == "" {
			return
		}
		s.event("failed attempt", p.End(), func(a *otlp.Attributes) {
			a.Text("tracefix.phase", p.Name.String())
			a.Text("network.peer.address", address)
			a.Text("error.message", p.Error)
		})
	}
	for i := range r.Tries[:max(len(r.Tries)-1, 0)] {
		failed(&r.Tries[i].Phase, r.Tries[i].Address)
	}
	for i := range r.Side {
		for k := range r.Side[i].Phases {
			failed(&r.Side[i].Phases[k], "")
		}
	}
}

// spanNames are those of the phases, as .NET calls them where it has a span for them.
var spanNames = [...]string{
	httpphases.Queue: "HTTP wait_for_connection", httpphases.DNS: "DNS lookup", httpphases.Connect: "socket connect", httpphases.Proxy: "HTTP proxy CONNECT",
	httpphases.TLS: "TLS client handshake", httpphases.RequestHeaders: "HTTP request headers", httpphases.RequestContent: "HTTP request content",
	httpphases.Wait: "HTTP wait for response", httpphases.ResponseHeaders: "HTTP response headers", httpphases.ResponseContent: "HTTP response content",
	httpphases.RedirectHop: "", httpphases.Other: "",
}

// phases writes a span for each phase of a hop: those of a connection that was opened for
// it below one for that, which lies below the wait for it.
func (w *otlpWriter) phases(r *httpphases.Request, h *harHop, n int, of *span, host string, port int) error {
	server := joinAuthority(host, port)
	key := func(what string) string { return what + strconv.Itoa(n) }
	waits := of.id // the parent of what a queue contains
	setup, setups := "", 0
	list := nest(h.phases, h.end)
	for i, p := range list {
		switch {
		case p.Name == httpphases.RedirectHop:
			continue
		case exchanges(&p): // another one, such as that with credentials, may wait again, and open another connection
			setup, waits = "", of.id
		}
		id, parent := w.spanID(r, key("phase"), i), of.id
		name := spanNames[p.Name]
		opens := p.Name >= httpphases.DNS && p.Name <= httpphases.TLS
		if opens {
			if setup == "" {
				setup = w.spanID(r, key("setup"), setups)
				setups++
				s := w.begin(of.trace, setup, waits, "HTTP connection_setup "+server, kindInternal, p.Start, setupEnd(list[i:]))
				if c := h.conn; c != nil {
					s.a.Text("network.peer.address", c.Remote)
				}
				if p.Shared {
					s.a.Bool("tracefix.shared") // another request asked for the connection
				}
				if err := s.end(); err != nil {
					return err
				}
			}
			parent = setup
		}
		switch p.Name {
		case httpphases.Queue:
			waits = id
			name += " " + server
		case httpphases.DNS, httpphases.TLS:
			name += " " + host
		case httpphases.Connect:
			if t := lastTry(r); t != nil {
				name += " " + t.Address
			}
		}
		s := w.begin(of.trace, id, parent, strings.TrimSpace(name), kindInternal, p.Start, p.End())
		w.about(r, h, s, &p, host)
		if err := s.end(); err != nil {
			return err
		}
	}
	return nil
}

// about says what is known of a phase beside its times.
func (w *otlpWriter) about(r *httpphases.Request, h *harHop, s *span, p *httpphases.Phase, host string) {
	s.a.Text("tracefix.phase", p.Name.String())
	if p.Inferred {
		s.a.Texts("tracefix.marks", httpphases.Inferred.List())
	}
	errorType := "_OTHER"
	switch p.Name {
	case httpphases.DNS:
		s.a.Text("dns.question.name", host)
	case httpphases.Connect:
		t := lastTry(r)
		if t == nil {
			break
		}
		errorType = connectError(t.Code)
		if ap, err := netip.ParseAddrPort(t.Address); err == nil {
			s.a.Text("network.peer.address", ap.Addr().String())
			s.a.Int("network.peer.port", int64(ap.Port()))
			s.a.Text("network.type", map[bool]string{true: "ipv6", false: "ipv4"}[ap.Addr().Is6()])
		}
	case httpphases.TLS:
		s.a.Text("server.address", host)
		if c := h.conn; c != nil && strings.HasPrefix(c.TLS, "TLS ") {
			s.a.Text("tls.protocol.name", "tls")
			s.a.Text("tls.protocol.version", strings.TrimPrefix(c.TLS, "TLS "))
		}
	}
	if p.Error != "" {
		s.failed(errorType, p.Error)
	}
}

// exchanges reports whether a phase is of a connection that is open: what opened it is over.
func exchanges(p *httpphases.Phase) bool {
	return p.Name >= httpphases.RequestHeaders && p.Name <= httpphases.ResponseContent
}

// setupEnd is the end of what opens a connection, of which the first phase is the first one of list.
func setupEnd(list []httpphases.Phase) int64 {
	end := list[0].Start
	for i := range list {
		p := &list[i]
		if exchanges(p) {
			break
		}
		if p.Name >= httpphases.DNS && p.Name <= httpphases.TLS {
			end = max(end, p.End())
		}
	}
	return end
}

func lastTry(r *httpphases.Request) *httpphases.Try {
	if n := len(r.Tries); n > 0 {
		return &r.Tries[n-1]
	}
	return nil
}

func connectError(code int) string {
	switch code {
	case 10061:
		return "connection_refused"
	case 10060:
		return "timed_out"
	case 10065:
		return "host_unreachable"
	case 10051:
		return "network_unreachable"
	case 10054:
		return "connection_reset"
	case 995:
		return "operation_aborted"
	}
	return "_OTHER"
}

func joinAuthority(host string, port int) string {
	if port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(port)
}

func splitAuthority(u string) (scheme, host string, port int) {
	scheme, rest, ok := strings.Cut(u, "://")
	if !ok {
		return "", "", 0
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	host = rest
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		if n, err := strconv.Atoi(rest[i+1:]); err == nil {
			host, port = rest[:i], n
		}
	}
	if port == 0 {
		port = map[string]int{"http": 80, "https": 443}[scheme]
	}
	return scheme, strings.Trim(host, "[]"), port
}

func (w *otlpWriter) Server(q *httpphases.ServerRequest) error {
	trace, id := q.TraceID, q.SpanID
	if !isID(trace, 32) {
		h := w.hash(q.ID, q.Activity, q.Process, q.Start, "trace server", 0)
		trace = hex.EncodeToString(h[:16])
	}
	if !isID(id, 16) {
		h := w.hash(q.ID, q.Activity, q.Process, q.Start, "span server", 0)
		id = hex.EncodeToString(h[:8])
	}
	name := strings.TrimSpace(cmp.Or(q.Method, "HTTP") + " " + q.Route)
	s := w.begin(trace, id, q.ParentSpanID, name, kindServer, w.o.began(q.Start, q.Start+q.Duration, q.Took), q.Start+q.Duration)
	a := &s.a
	a.Text("http.request.method", cmp.Or(q.Method, "_OTHER"))
	path, query, _ := strings.Cut(q.Target, "?")
	a.Text("url.path", path)
	a.Text("url.query", query)
	a.Text("url.scheme", q.Scheme)
	a.Text("http.route", q.Route)
	if _, host, port := splitAuthority(q.Scheme + "://" + q.Host); q.Host != "" {
		a.Text("server.address", host)
		if port > 0 {
			a.Int("server.port", int64(port))
		}
	}
	if q.Status > 0 {
		a.Int("http.response.status_code", int64(q.Status))
	}
	a.Text("network.protocol.version", protocol(q.Version))
	a.Int("tracefix.request", int64(q.ID))
	a.Text("tracefix.activity", pathText(q.Path))
	a.Text("tracefix.request_id", q.RequestID)
	a.Text("tracefix.outcome", q.Outcome.String())
	a.Texts("tracefix.marks", q.Marks().List())
	switch { // 4xx is the client's fault: the status of a server's span stays unset
	case q.Outcome == httpphases.Failed:
		s.failed("_OTHER", "an exception that nobody handled")
		s.event("exception", q.Start+q.Duration, func(x *otlp.Attributes) {
			x.Text("exception.message", "an exception that nobody handled; the trace does not tell which")
		})
	case q.Status >= 500:
		s.failed(strconv.Itoa(q.Status), "")
	}
	return s.end()
}

func (w *otlpWriter) Close(*Summary) error { return w.lines.Close() }
