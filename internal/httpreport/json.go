package httpreport

import (
	"strconv"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/text"
)

// object appends the members of a JSON object; a member without value is left out.
type object struct {
	b     []byte
	first bool
}

func open(b []byte) object { return object{append(b, '{'), true} }

func (o *object) key(k string) {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = append(o.b, '"')
	o.b = append(o.b, k...)
	o.b = append(o.b, '"', ':')
}

func (o *object) str(k, v string) {
	if v != "" {
		o.key(k)
		o.b = text.AppendJSON(o.b, v)
	}
}

func (o *object) int(k string, v int64) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) count(k string, v int) {
	if v != 0 {
		o.int(k, int64(v))
	}
}

// number is a number of the system, such as a thread's; 0 is none.
func (o *object) number(k string, v uint64) {
	if v != 0 {
		o.key(k)
		o.b = strconv.AppendUint(o.b, v, 10)
	}
}

// id is an activity's; zero is none.
func (o *object) id(k string, v activity.ID) {
	if !v.IsZero() {
		o.key(k)
		o.b = append(v.AppendText(append(o.b, '"')), '"')
	}
}

func (o *object) ms(k string, ns int64) {
	o.key(k)
	o.b = text.AppendMillis(o.b, ns)
}

func (o *object) bool(k string, v bool) {
	o.key(k)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) flag(k string, v bool) {
	if v {
		o.bool(k, true)
	}
}

func (o *object) close() []byte { return append(o.b, '}') }

func (o *object) strs(k string, l []string) {
	if len(l) == 0 {
		return
	}
	o.key(k)
	o.b = append(o.b, '[')
	for i, s := range l {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = text.AppendJSON(o.b, s)
	}
	o.b = append(o.b, ']')
}

// pathText prints an activity path as PerfView does: //1/8.
func pathText(path []uint32) string {
	if len(path) == 0 {
		return ""
	}
	p := activity.NewPath(path...)
	return "//" + p.String()
}

// AppendRequest appends r as one JSON object: the row of product.md's ndjson.
func AppendRequest(b []byte, r *httpphases.Request) []byte {
	o := open(b)
	o.int("id", int64(r.ID))
	o.id("activity", r.Activity)
	o.str("activity_path", pathText(r.Path))
	o.count("pid", int(r.Process))
	o.count("tid", int(r.Thread))
	o.str("method", r.Method)
	o.str("url", r.URL())
	o.str("scheme", r.Scheme)
	o.str("host", r.Host)
	if r.Host != "" && r.Port > 0 {
		o.int("port", int64(r.Port))
	}
	o.str("path", r.Target)
	o.str("version", r.Version)
	o.str("version_requested", r.VersionRequested)
	o.count("status", r.Status)
	o.ms("start_ms", r.Start)
	if r.HasDuration {
		o.ms("duration_ms", r.Duration)
	}
	if r.Took > 0 {
		o.ms("took_ms", r.Took)
	}
	o.str("outcome", r.Outcome.String())
	o.str("error", r.Error)
	o.str("error_type", r.ErrorType)
	o.str("error_cause", r.ErrorCause)
	if r.Connection != nil {
		o.key("connection")
		o.b = appendConnection(o.b, r.Connection)
	}
	o.key("phases")
	o.b = appendPhases(o.b, r.Phases)
	appendList(&o, "redirects", r.Redirects, appendRedirect)
	appendWaits(&o, r)
	if len(r.Tries) > 1 || len(r.Tries) == 1 && r.Tries[0].Code != 0 {
		appendList(&o, "tries", r.Tries, appendTry)
	}
	appendList(&o, "side_attempts", r.Side, appendSide)
	if r.RequestBytes >= 0 {
		o.int("request_bytes", r.RequestBytes)
	}
	o.strs("marks", r.Marks().List())
	if r.SpanOnly {
		o.str("told_by", "bridge")
	}
	if len(r.Path) == 0 && r.Activity == ([16]byte{}) && (!r.SpanOnly || r.Guessed > 0) { // a span has ids of its own
		o.str("linked_by", "thread and connection")
	}
	o.count("guessed_links", r.Guessed)
	o.strs("missing", r.Missing)
	o.str("trace_id", r.TraceID)
	o.str("span_id", r.SpanID)
	o.str("parent_span_id", r.ParentSpanID)
	o.count("server_request", r.Server)
	o.why(r.Why)
	return o.close()
}

// appendList appends a member with an array; none if the list is empty.
func appendList[T any](o *object, key string, l []T, each func([]byte, *T) []byte) {
	if len(l) == 0 {
		return
	}
	o.key(key)
	o.b = append(o.b, '[')
	for i := range l {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = each(o.b, &l[i])
	}
	o.b = append(o.b, ']')
}

// appendWaits appends the time that no phase but the queue covers: with dns, connect,
// proxy, tls and what follows them it adds up to the duration.
func appendWaits(o *object, r *httpphases.Request) {
	t := r.Times()
	if t == (httpphases.Times{}) {
		return
	}
	o.key("waits")
	w := open(o.b)
	for _, v := range []struct {
		key string
		ns  int64
	}{{"before_dns_ms", t.BeforeDNS}, {"before_connect_ms", t.BeforeConnect}, {"before_tls_ms", t.BeforeTLS}, {"queue_ms", t.Queue}, {"other_ms", t.Other}} {
		if v.ns != 0 {
			w.ms(v.key, v.ns)
		}
	}
	o.b = w.close()
}

func appendTry(b []byte, t *httpphases.Try) []byte {
	o := open(b)
	o.str("address", t.Address)
	o.ms("start_ms", t.Start)
	if !t.Open {
		o.ms("duration_ms", t.Duration)
	}
	o.count("code", t.Code)
	o.str("error", t.Error)
	return o.close()
}

// appendSide appends a connection attempt that ran for a request without serving it.
func appendSide(b []byte, s *httpphases.SideAttempt) []byte {
	o := open(b)
	o.key("phases")
	o.b = appendPhases(o.b, s.Phases)
	return o.close()
}

func appendConnection(b []byte, c *httpphases.Connection) []byte {
	o := open(b)
	if c.HasID {
		o.int("id", c.ID)
	}
	if c.NewTold {
		o.bool("new", c.New)
	}
	o.str("class", c.Class.String())
	o.str("remote", c.Remote)
	o.str("proxy", c.Proxy)
	o.str("tls", c.TLS)
	return o.close()
}

func appendPhases(b []byte, l []httpphases.Phase) []byte {
	b = append(b, '[')
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		p := &l[i]
		o := open(b)
		o.str("name", p.Name.String())
		o.ms("start_ms", p.Start)
		if !p.Open {
			o.ms("duration_ms", p.Duration)
		}
		o.str("error", p.Error)
		o.flag("inferred", p.Inferred)
		o.flag("shared", p.Shared)
		b = o.close()
	}
	return append(b, ']')
}

func appendRedirect(b []byte, d *httpphases.Redirect) []byte {
	o := open(b)
	o.str("from", d.From)
	o.str("url", d.URL)
	o.count("status", d.Status)
	o.ms("start_ms", d.Start)
	o.ms("duration_ms", d.Duration)
	o.str("version", d.Version)
	if d.Connection != nil {
		o.key("connection")
		o.b = appendConnection(o.b, d.Connection)
	}
	o.key("phases")
	o.b = appendPhases(o.b, d.Phases)
	return o.close()
}

// AppendServerRequest appends s as one JSON object.
func AppendServerRequest(b []byte, s *httpphases.ServerRequest) []byte {
	o := open(b)
	o.int("id", int64(s.ID))
	o.str("kind", "server")
	o.id("activity", s.Activity)
	o.str("activity_path", pathText(s.Path))
	o.count("pid", int(s.Process))
	o.count("tid", int(s.Thread))
	o.str("method", s.Method)
	host, port := s.Place()
	o.str("url", s.URL())
	o.str("scheme", s.Scheme)
	o.str("host", host)
	o.count("port", port)
	o.str("path", s.Target)
	o.str("route", s.Route)
	o.str("version", s.Version)
	o.count("status", s.Status)
	o.ms("start_ms", s.Start)
	if s.HasDuration {
		o.ms("duration_ms", s.Duration)
	}
	if s.Took > 0 {
		o.ms("took_ms", s.Took)
	}
	o.str("outcome", s.Outcome.String())
	o.str("error_cause", s.ErrorCause())
	o.strs("marks", s.Marks().List())
	o.count("guessed_links", s.Guessed)
	o.str("request_id", s.RequestID)
	o.str("trace_id", s.TraceID)
	o.str("span_id", s.SpanID)
	o.str("parent_span_id", s.ParentSpanID)
	o.count("client_request", s.Client)
	o.why(s.Why)
	return o.close()
}
