package httpreport

import (
	"cmp"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/text"
)

// harWriter writes HAR 1.2: one entry per hop (http-events.md section 10.2), and one per request
// that was served.
type harWriter struct {
	out
	o Options
	n int
}

func newHAR(w io.Writer, o *Options) Writer {
	h := &harWriter{out: out{w: w}, o: *o}
	h.str(`{"log":{"version":"1.2","creator":`)
	c := open(h.b)
	name, version := "tracefix", "devel"
	if o.Exporter != "" {
		version = o.Exporter
	}
	c.str("name", name)
	c.str("version", version)
	h.b = c.close()
	h.str(`,"entries":[`)
	return h
}

// A harHop is one entry.
type harHop struct {
	start, end  int64
	url, method string
	version     string
	status      int
	redirect    string
	conn        *httpphases.Connection
	phases      []httpphases.Phase
	bytes       int64
	partly      bool // the trace does not hold all of it: what is not there is unknown
}

func (w *harWriter) Request(r *httpphases.Request) error {
	last := harHop{
		start: w.o.began(r.Start, knownEnd(r), r.Took), end: knownEnd(r), url: r.URL(), method: r.Method, version: r.Version, status: r.Status,
		conn: r.Connection, phases: r.Phases, bytes: r.RequestBytes,
		partly: len(r.Missing) > 0 || r.StartUnknown || r.SpanOnly || !r.HasDuration,
	}
	for i := range r.Redirects {
		d := &r.Redirects[i]
		h := harHop{
			start: d.Start, end: d.Start + d.Duration, url: d.From, version: d.Version, status: d.Status,
			redirect: d.URL, conn: d.Connection, phases: d.Phases, bytes: -1, partly: last.partly,
		}
		if i == 0 {
			h.method = r.Method
		}
		last.start, last.url, last.method = h.end, d.URL, ""
		w.hop(r, &h, i)
	}
	w.hop(r, &last, len(r.Redirects))
	return w.flushed()
}

// Server writes a request that was served: its time as a whole, as no event tells its parts.
func (w *harWriter) Server(q *httpphases.ServerRequest) error {
	end := q.Start + q.Duration
	h := harHop{start: w.o.began(q.Start, end, q.Took), end: end, url: servedURL(q), method: q.Method, version: q.Version, status: q.Status, bytes: -1, partly: true}
	w.entry(&h, func(o *object) {
		o.str("_side", "server")
		o.int("_request", int64(q.ID))
		o.str("_activity", pathText(q.Path))
		o.str("_outcome", q.Outcome.String())
		o.str("_route", q.Route)
		o.strs("_marks", q.Marks().List())
		comment := "a request that the process served"
		if q.Host == "" {
			comment += "; the trace does not tell the host"
		}
		if !q.HasDuration {
			comment += "; its end is not in the trace"
		}
		if q.Took > 0 {
			comment += "; " + tookText(q.Took)
		}
		if q.Outcome == httpphases.Failed {
			comment += "; failed: an exception that nobody handled"
		}
		if m := q.Marks(); m != 0 {
			comment += "; marked: " + m.String()
		}
		o.str("comment", comment)
	})
	return w.flushed()
}

// servedURL is the address of a request that was served; a scheme that is none where the trace
// does not tell the host.
func servedURL(q *httpphases.ServerRequest) string {
	switch {
	case q.Target == "":
		return ""
	case q.Host == "":
		return noURL + q.Target
	}
	return cmp.Or(q.Scheme, "unknown") + "://" + q.Host + q.Target
}

// noURL stands for an address that is not known: HAR wants an absolute one.
const noURL = "unknown:"

// harURL is an address with what no URI may hold in hexadecimal: HAR's schema wants a URI, and a
// validator refuses the whole file for one blank that a client sent as it was.
func harURL(u string) string {
	const hex = "0123456789ABCDEF"
	isHex := func(i int) bool { return i < len(u) && strings.IndexByte(hex+"abcdef", u[i]) >= 0 }
	var b []byte
	done := 0                                  // bytes of u that are in b
	slashes, path := strings.Index(u, "//"), 0 // where the path begins: [ and ] may stand around an address of IPv6 before it
	if slashes >= 0 {
		if i := strings.IndexByte(u[slashes+2:], '/'); i >= 0 {
			path = slashes + 2 + i
		} else {
			path = len(u)
		}
	}
	for i := range len(u) {
		c := u[i]
		switch {
		case c == '%' && isHex(i+1) && isHex(i+2):
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}%", c) >= 0 || (c == '[' || c == ']') && i >= path:
			b = append(append(b, u[done:i]...), '%', hex[c>>4], hex[c&15])
			done = i + 1
		}
	}
	if done == 0 {
		return u
	}
	return string(append(b, u[done:]...))
}

// timings are those of HAR, ns; -1: does not apply, or is not known. All but ssl add up to the time of the entry.
type timings struct {
	blocked, dns, connect, ssl, send, wait, receive int64

	rest int64 // part of wait of which the trace does not tell what passed
}

// partTimings are those of a hop that the trace does not hold all of: what its phases tell. HAR wants send, wait and
// receive, and a sum that is the time: wait takes the rest.
func partTimings(h *harHop) timings {
	t := timings{blocked: -1, dns: -1, connect: -1, ssl: -1}
	for i := range h.phases {
		p := &h.phases[i]
		if p.Open {
			continue
		}
		add := func(to ...*int64) {
			for _, v := range to {
				*v = max(*v, 0) + p.Duration
			}
		}
		switch p.Name {
		case httpphases.DNS:
			add(&t.dns)
		case httpphases.Connect, httpphases.Proxy:
			add(&t.connect)
		case httpphases.TLS:
			add(&t.connect, &t.ssl)
		case httpphases.RequestHeaders, httpphases.RequestContent:
			add(&t.send)
		case httpphases.Wait:
			add(&t.wait)
		case httpphases.ResponseHeaders, httpphases.ResponseContent:
			add(&t.receive)
		}
	}
	t.rest = h.end - h.start
	for _, v := range []*int64{&t.dns, &t.send, &t.wait, &t.receive, &t.connect} { // a lookup inside the connect counts once
		*v = min(*v, t.rest)
		t.rest -= max(*v, 0)
	}
	t.ssl = min(t.ssl, t.connect)
	t.wait += t.rest
	return t
}

func harTimings(h *harHop) timings {
	if h.partly {
		return partTimings(h)
	}
	a, z := h.start, h.end
	t := timings{dns: -1, connect: -1, ssl: -1}
	b, sent, f := int64(-1), int64(-1), int64(-1)
	for i := range h.phases {
		switch p := &h.phases[i]; p.Name {
		case httpphases.RequestHeaders:
			b, sent, f = p.Start, p.End(), -1 // the last exchange counts
		case httpphases.RequestContent:
			if b >= 0 {
				sent = max(sent, p.End())
			}
		case httpphases.Wait:
			if b >= 0 {
				f = p.End()
			}
		case httpphases.ResponseHeaders:
			f = p.Start
		}
	}
	if b < 0 {
		b = z
	}
	var connectFrom, connectTo int64 = -1, -1
	connected := func() {
		if connectFrom >= 0 {
			t.connect = max(t.connect, 0) + connectTo - connectFrom
			connectFrom = -1
		}
	}
	for i := range h.phases {
		p := &h.phases[i]
		start, end := max(p.Start, a), min(p.End(), b)
		if end < start {
			continue
		}
		switch p.Name {
		case httpphases.DNS:
			t.dns = max(t.dns, 0) + end - start
		case httpphases.Connect, httpphases.TLS, httpphases.Proxy:
			if connectFrom < 0 {
				connectFrom, connectTo = start, end
			}
			connectFrom, connectTo = min(connectFrom, start), max(connectTo, end)
			if p.Name == httpphases.TLS {
				t.ssl = max(t.ssl, 0) + end - start
			}
		case httpphases.RequestHeaders: // what opens a connection from here on is for another exchange
			connected()
		}
	}
	connected()
	t.blocked = b - a - max(t.dns, 0) - max(t.connect, 0)
	if t.blocked < 0 {
		// A lookup inside the connect: count it once.
		t.connect = max(t.connect+t.blocked, 0)
		t.blocked = max(b-a-max(t.dns, 0)-max(t.connect, 0), 0)
	}
	if sent < 0 {
		sent = b
	}
	if f < 0 {
		f = z
	}
	sent = min(max(sent, b), z)
	f = min(max(f, sent), z)
	t.send, t.wait, t.receive = sent-b, f-sent, z-f
	return t
}

func (w *harWriter) time(ns int64) string {
	return w.o.Start.Add(time.Duration(ns)).UTC().Format("2006-01-02T15:04:05.000000Z")
}

func httpVersion(v string) string {
	switch v {
	case "2.0":
		return "HTTP/2"
	case "3.0":
		return "HTTP/3"
	case "":
		return ""
	}
	return "HTTP/" + v
}

// entry writes an entry, to which own adds what is not of all.
func (w *harWriter) entry(h *harHop, own func(o *object)) {
	if w.n > 0 {
		w.str(",")
	}
	w.n++
	t := harTimings(h)
	o := open(append(w.b, '\n'))
	o.str("startedDateTime", w.time(h.start))
	o.ms("time", h.end-h.start)

	o.key("request")
	q := open(o.b)
	comment := ""
	method := h.method
	if method == "" {
		method, comment = "UNKNOWN", "the trace does not tell the method"
	}
	q.str("method", method)
	u := harURL(h.url)
	if u == "" {
		u = noURL
		if comment == "" {
			comment = "the trace does not tell the URL"
		} else {
			comment += "; nor the URL"
		}
	}
	q.str("url", u)
	q.key("httpVersion")
	q.b = text.AppendJSON(q.b, httpVersion(h.version))
	empty(&q, "cookies", "headers", "queryString")
	q.int("headersSize", -1)
	body := h.bytes
	if body < 0 {
		body = -1
	}
	q.int("bodySize", body)
	q.str("comment", comment)
	o.b = q.close()

	o.key("response")
	s := open(o.b)
	s.int("status", int64(h.status))
	s.key("statusText")
	s.b = text.AppendJSON(s.b, http.StatusText(h.status))
	s.key("httpVersion")
	s.b = text.AppendJSON(s.b, httpVersion(h.version))
	empty(&s, "cookies", "headers")
	s.key("content")
	s.b = append(s.b, `{"size":0,"mimeType":"","comment":"not in the trace"}`...)
	s.key("redirectURL")
	s.b = text.AppendJSON(s.b, h.redirect)
	s.int("headersSize", -1)
	s.int("bodySize", -1)
	o.b = s.close()

	o.key("cache")
	o.b = append(o.b, "{}"...)
	o.key("timings")
	m := open(o.b)
	for _, v := range []struct {
		k  string
		ns int64
	}{{"blocked", t.blocked}, {"dns", t.dns}, {"connect", t.connect}, {"ssl", t.ssl}, {"send", t.send}, {"wait", t.wait}, {"receive", t.receive}} {
		if v.ns < 0 {
			m.int(v.k, -1)
		} else {
			m.ms(v.k, v.ns)
		}
	}
	if t.rest > 0 {
		m.str("comment", "the trace does not tell all parts: wait holds the rest")
	}
	o.b = m.close()
	own(&o)
	w.b = o.close()
}

// hop writes a hop of a request.
func (w *harWriter) hop(r *httpphases.Request, h *harHop, hop int) {
	w.entry(h, func(o *object) {
		if c := h.conn; c != nil {
			if a, err := netip.ParseAddr(c.Remote); err == nil {
				o.str("serverIPAddress", a.String())
			}
			if c.HasID {
				o.str("connection", strconv.FormatInt(c.ID, 10))
			}
			o.str("_class", c.Class.String())
			o.str("_proxy", c.Proxy)
		}
		o.int("_request", int64(r.ID))
		o.count("_hop", hop)
		o.str("_activity", pathText(r.Path))
		o.str("_outcome", r.Outcome.String())
		o.str("_error", r.Error)
		o.str("_error_cause", r.ErrorCause)
		o.strs("_marks", r.Marks().List())
		for i := range h.phases {
			if p := &h.phases[i]; p.Name == httpphases.Queue {
				o.ms("_queue", p.Duration)
				break
			}
		}
		o.strs("_missing", r.Missing)
		o.str("comment", harComment(r))
	})
}

// harComment says in words what is to be known of an entry, for viewers that show it.
func harComment(r *httpphases.Request) string {
	var l []string
	if r.Error != "" {
		l = append(l, r.Outcome.String()+": "+firstLine(r.Error))
	}
	if r.ErrorCause != "" {
		l = append(l, "cause: "+r.ErrorCause)
	}
	if m := r.Marks(); m != 0 {
		l = append(l, "marked: "+m.String())
	}
	if r.Took > 0 {
		l = append(l, tookText(r.Took))
	}
	if r.SpanOnly && len(r.Phases) == 0 {
		l = append(l, "the trace tells no phases, and the time until the headers only")
	}
	return strings.Join(append(l, failedAttempts(r)...), "; ")
}

func empty(o *object, keys ...string) {
	for _, k := range keys {
		o.key(k)
		o.b = append(o.b, "[]"...)
	}
}

func (w *harWriter) Close(s *Summary) error {
	w.str("\n]")
	notes := s.Notes
	if w.o.Start.IsZero() {
		notes = append([]string{"The trace does not tell the time of day: times begin at year 1."}, notes...)
	}
	if comment := strings.Join(notes, " "); comment != "" {
		w.str(`,"comment":`)
		w.b = text.AppendJSON(w.b, comment)
	}
	w.str("}}\n")
	return w.flush()
}
