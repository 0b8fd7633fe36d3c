package httpout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/jsontext"
)

// otlpWriter writes spans with the names of the semantic conventions: one per hop,
// and for new connections a trace of their own as .NET 9 and later emit them
// (http-events.md section 10.4).
type otlpWriter struct {
	out
	o    Options
	n    int
	base int64 // unix ns of time 0
}

func newOTLP(w io.Writer, o *Options) Writer {
	t := &otlpWriter{out: out{w: w}, o: *o}
	if !o.Start.IsZero() {
		t.base = o.Start.UnixNano()
	}
	t.str(`{"resourceSpans":[{"resource":{"attributes":[`)
	a := attributes{&t.out, 0}
	if o.Process != 0 {
		a.int("process.pid", int64(o.Process))
	}
	a.str("process.runtime.name", ".NET")
	a.str("tracefix.source", o.Source)
	t.str(`]},"scopeSpans":[{"scope":{"name":"tracefix"`)
	if o.Exporter != "" {
		t.str(`,"version":`)
		t.b = jsontext.AppendString(t.b, o.Exporter)
	}
	t.str(`},"spans":[`)
	return t
}

// attributes appends key and value pairs.
type attributes struct {
	o *out
	n int
}

func (a *attributes) key(k string) {
	if a.n > 0 {
		a.o.str(",")
	}
	a.n++
	a.o.str(`{"key":`)
	a.o.b = jsontext.AppendString(a.o.b, k)
	a.o.str(`,"value":{`)
}

func (a *attributes) str(k, v string) {
	if v == "" {
		return
	}
	a.key(k)
	a.o.str(`"stringValue":`)
	a.o.b = jsontext.AppendString(a.o.b, v)
	a.o.str("}}")
}

func (a *attributes) int(k string, v int64) {
	a.key(k)
	a.o.str(`"intValue":"`)
	a.o.b = strconv.AppendInt(a.o.b, v, 10)
	a.o.str(`"}}`)
}

// hash derives an id that is the same on every run.
func (w *otlpWriter) hash(r *httpphases.Request, what string, n int) [32]byte {
	var b [40]byte
	copy(b[:16], r.Activity[:])
	binary.LittleEndian.PutUint64(b[16:], uint64(r.Start))
	binary.LittleEndian.PutUint32(b[24:], r.Process)
	binary.LittleEndian.PutUint32(b[28:], uint32(r.ID))
	binary.LittleEndian.PutUint64(b[32:], uint64(n))
	return sha256.Sum256(append([]byte(w.o.Source+"\x00"+what+"\x00"), b[:]...))
}

func (w *otlpWriter) traceID(r *httpphases.Request, what string) string {
	h := w.hash(r, "trace "+what, 0)
	return hex.EncodeToString(h[:16])
}

func (w *otlpWriter) spanID(r *httpphases.Request, what string, n int) string {
	h := w.hash(r, "span "+what, n)
	return hex.EncodeToString(h[:8])
}

// begin starts a span; attributes follow, then end.
func (w *otlpWriter) begin(trace, span, parent, name string, kind int, start, end int64) attributes {
	if w.n > 0 {
		w.str(",")
	}
	w.n++
	w.str("\n{\"traceId\":\"")
	w.str(trace)
	w.str(`","spanId":"`)
	w.str(span)
	w.str(`"`)
	if parent != "" && strings.Trim(parent, "0") != "" {
		w.str(`,"parentSpanId":"`)
		w.str(parent)
		w.str(`"`)
	}
	w.str(`,"name":`)
	w.b = jsontext.AppendString(w.b, name)
	w.str(`,"kind":`)
	w.b = strconv.AppendInt(w.b, int64(kind), 10)
	w.str(`,"startTimeUnixNano":"`)
	w.b = strconv.AppendInt(w.b, w.base+start, 10)
	w.str(`","endTimeUnixNano":"`)
	w.b = strconv.AppendInt(w.b, w.base+end, 10)
	w.str(`","attributes":[`)
	return attributes{&w.out, 0}
}

// end closes a span. code is 0 (unset) or 2 (error).
func (w *otlpWriter) end(code int, message, events, links string) {
	w.str("]")
	if events != "" {
		w.str(`,"events":[` + events + "]")
	}
	if links != "" {
		w.str(`,"links":[` + links + "]")
	}
	w.str(`,"status":{`)
	if code != 0 {
		w.str(`"code":2`)
		if message != "" {
			w.str(`,"message":`)
			w.b = jsontext.AppendString(w.b, message)
		}
	}
	w.str("}}")
}

const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
)

func protocol(v string) string { return strings.TrimSuffix(v, ".0") }

func (w *otlpWriter) Request(r *httpphases.Request) error {
	trace := r.TraceID
	if len(trace) != 32 {
		trace = w.traceID(r, "request")
	}
	parent := r.ParentSpanID
	for i := range r.Redirects {
		d := &r.Redirects[i]
		h := harHop{start: d.Start, end: d.Start + d.Duration, url: d.From, version: d.Version, status: d.Status, conn: d.Connection, phases: d.Phases, bytes: -1}
		if i == 0 {
			h.method = r.Method
		}
		w.hop(r, trace, parent, &h, i, false)
	}
	h := harHop{
		start: r.Start, end: knownEnd(r), url: r.URL(), version: r.Version, status: r.Status, method: r.Method,
		conn: r.Connection, phases: r.Phases, bytes: r.RequestBytes,
	}
	if n := len(r.Redirects); n > 0 {
		d := &r.Redirects[n-1]
		h.start, h.url, h.method = d.Start+d.Duration, d.URL, ""
	}
	w.hop(r, trace, parent, &h, len(r.Redirects), true)
	return w.flushed()
}

func (w *otlpWriter) hop(r *httpphases.Request, trace, parent string, h *harHop, n int, last bool) {
	span := w.spanID(r, "hop", n)
	if len(r.Spans) == len(r.Redirects)+1 && len(r.Spans[n].Trace) == 32 && len(r.Spans[n].Span) == 16 {
		trace, span, parent = r.Spans[n].Trace, r.Spans[n].Span, r.Spans[n].Parent
	}
	name, method := "HTTP", "_OTHER"
	if h.method != "" {
		name, method = h.method, h.method
	}
	links := ""
	setup := h.conn != nil && h.conn.New
	setupTrace, setupSpan := "", ""
	if setup {
		setupTrace, setupSpan = w.traceID(r, "setup"+strconv.Itoa(n)), w.spanID(r, "setup", n)
		links = `{"traceId":"` + setupTrace + `","spanId":"` + setupSpan + `"}`
	}
	a := w.begin(trace, span, parent, name, kindClient, h.start, h.end)
	a.str("http.request.method", method)
	a.str("url.full", h.url)
	scheme, host, port := r.Scheme, r.Host, r.Port
	if n > 0 {
		scheme, host, port = splitAuthority(h.url)
	}
	a.str("url.scheme", scheme)
	a.str("server.address", host)
	if port > 0 {
		a.int("server.port", int64(port))
	}
	if h.status > 0 {
		a.int("http.response.status_code", int64(h.status))
	}
	if h.version != "" {
		a.str("network.protocol.name", "http")
		a.str("network.protocol.version", protocol(h.version))
	}
	if c := h.conn; c != nil {
		a.str("network.peer.address", c.Remote)
		if c.Remote != "" && c.Port > 0 {
			a.int("network.peer.port", int64(c.Port))
		}
	}
	if n > 0 {
		a.int("http.request.resend_count", int64(n))
	}
	if h.bytes >= 0 {
		a.int("http.request.body.size", h.bytes)
	}
	failed := last && (r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled)
	code, message, events := 0, "", ""
	switch {
	case failed:
		a.str("error.type", orText(r.ErrorType, "_OTHER"))
		code, message = 2, firstLine(r.Error)
		e := out{}
		e.str(`{"name":"exception","timeUnixNano":"` + strconv.FormatInt(w.base+h.end, 10) + `","attributes":[`)
		x := attributes{&e, 0}
		x.str("exception.type", r.ErrorType)
		x.str("exception.message", r.Error)
		e.str("]}")
		events = string(e.b)
	case h.status >= 400:
		a.str("error.type", strconv.Itoa(h.status))
		code = 2
	}
	a.str("tracefix.outcome", r.Outcome.String())
	if r.Guessed > 0 {
		a.int("tracefix.guessed_links", int64(r.Guessed))
	}
	w.end(code, message, events, links)

	server := joinAuthority(host, port)
	for i := range h.phases {
		p := &h.phases[i]
		if p.Name == httpphases.Queue && !p.Open {
			q := w.begin(trace, w.spanID(r, "queue"+strconv.Itoa(n), i), span, "HTTP wait_for_connection "+server, kindInternal, p.Start, p.End())
			q.str("error.type", errorType(p))
			w.end(errorCode(p), p.Error, "", "")
		}
	}
	w.setup(r, h, n, host, server, setupTrace, setupSpan, trace, span)
}

// setup writes the spans of a connection attempt: a trace of its own if it led to a
// connection, else below the request.
func (w *otlpWriter) setup(r *httpphases.Request, h *harHop, n int, host, server, trace, span, requestTrace, requestSpan string) {
	var from, to int64 = -1, -1
	for i := range h.phases {
		if p := &h.phases[i]; p.Name >= httpphases.DNS && p.Name <= httpphases.TLS && !p.Open {
			if from < 0 || p.Start < from {
				from = p.Start
			}
			to = max(to, p.End())
		}
	}
	if from < 0 {
		return
	}
	if trace == "" {
		trace, span = requestTrace, requestSpan
	} else {
		a := w.begin(trace, span, "", "HTTP connection_setup "+server, kindInternal, from, to)
		if c := h.conn; c != nil {
			a.str("network.peer.address", c.Remote)
		}
		w.end(0, "", "", "")
	}
	for i := range h.phases {
		p := &h.phases[i]
		if p.Open {
			continue
		}
		id := w.spanID(r, "phase"+strconv.Itoa(n), i)
		switch p.Name {
		case httpphases.DNS:
			a := w.begin(trace, id, span, "DNS lookup "+host, kindInternal, p.Start, p.End())
			a.str("dns.question.name", host)
			a.str("error.type", errorType(p))
			w.end(errorCode(p), p.Error, "", "")
		case httpphases.Connect:
			peer := ""
			code := 0
			if len(r.Tries) > 0 {
				t := r.Tries[len(r.Tries)-1]
				peer, code = t.Address, t.Code
			}
			a := w.begin(trace, id, span, strings.TrimSpace("socket connect "+peer), kindInternal, p.Start, p.End())
			if ap, err := netip.ParseAddrPort(peer); err == nil {
				a.str("network.peer.address", ap.Addr().String())
				a.int("network.peer.port", int64(ap.Port()))
				kind := "ipv4"
				if ap.Addr().Is6() {
					kind = "ipv6"
				}
				a.str("network.type", kind)
			}
			if p.Error != "" {
				a.str("error.type", connectError(code))
			}
			w.end(errorCode(p), p.Error, "", "")
		case httpphases.TLS:
			a := w.begin(trace, id, span, "TLS client handshake "+host, kindInternal, p.Start, p.End())
			a.str("server.address", host)
			if c := h.conn; c != nil && strings.HasPrefix(c.TLS, "TLS ") {
				a.str("tls.protocol.name", "tls")
				a.str("tls.protocol.version", strings.TrimPrefix(c.TLS, "TLS "))
			}
			a.str("error.type", errorType(p))
			w.end(errorCode(p), p.Error, "", "")
		}
	}
}

func errorCode(p *httpphases.Phase) int {
	if p.Error != "" {
		return 2
	}
	return 0
}

func errorType(p *httpphases.Phase) string {
	if p.Error != "" {
		return "_OTHER"
	}
	return ""
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

func (w *otlpWriter) Server(s *httpphases.ServerRequest) error {
	trace, span := s.TraceID, s.SpanID
	r := &httpphases.Request{ID: s.ID, Activity: s.Activity, Start: s.Start, Process: s.Process}
	if len(trace) != 32 {
		trace = w.traceID(r, "server")
	}
	if len(span) != 16 {
		span = w.spanID(r, "server", 0)
	}
	a := w.begin(trace, span, s.ParentSpanID, orText(s.Method, "HTTP"), kindServer, s.Start, s.Start+s.Duration)
	a.str("http.request.method", orText(s.Method, "_OTHER"))
	path, query, _ := strings.Cut(s.Target, "?")
	a.str("url.path", path)
	a.str("url.query", query)
	code := 0
	if s.Outcome == httpphases.Failed {
		a.str("error.type", "_OTHER")
		code = 2
	}
	w.end(code, "", "", "")
	return w.flushed()
}

func (w *otlpWriter) Close(*Summary) error {
	w.str("\n]}]}]}\n")
	return w.flush()
}
