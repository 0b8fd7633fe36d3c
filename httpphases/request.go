package httpphases

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A PhaseName names what a request spent time on.
type PhaseName uint8

// The phases. DNS, Connect, Proxy and TLS lie inside Queue where there is one; the
// others do not overlap.
const (
	Queue PhaseName = iota
	DNS
	Connect
	Proxy // the CONNECT dialogue
	TLS
	RequestHeaders
	RequestContent
	Wait // for the first byte of the answer
	ResponseHeaders
	ResponseContent
	RedirectHop // an earlier hop of a redirect chain as a whole
	Other       // of Partition only: what no phase covers
)

var phaseNames = [...]string{
	"queue", "dns", "connect", "proxy", "tls", "request_headers", "request_content", "wait",
	"response_headers", "response_content", "redirect", "other",
}

// String returns the name as the rows of tracefix spell it: "queue", "request_headers".
func (n PhaseName) String() string {
	if int(n) < len(phaseNames) {
		return phaseNames[n]
	}
	return fmt.Sprintf("PhaseName(%d)", uint8(n))
}

// An Outcome is how a request ended.
type Outcome uint8

// The outcomes.
const (
	OK         Outcome = iota // an answer came, whatever its status
	Failed                    // an exception
	Canceled                  // by the caller or by a timeout
	Incomplete                // the trace does not hold all of it
)

// String returns "ok", "failed", "canceled" or "incomplete".
func (o Outcome) String() string {
	if names := [...]string{"ok", "failed", "canceled", "incomplete"}; int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// A Phase is a stretch of time of a request.
type Phase struct {
	Name     PhaseName
	Start    int64 // ns since the start of the trace
	Duration int64 // ns; nothing if Open
	Open     bool  // its end is not in the trace
	Inferred bool  // its end is that of the next thing known: its own stop was lost
	Shared   bool  // belongs to a connection that another request asked for
	Error    string
}

// String returns the name and the duration, in nanoseconds: "wait 1204500"; an open phase has none.
func (p Phase) String() string {
	if p.Open {
		return p.Name.String() + " open"
	}
	return p.Name.String() + " " + strconv.FormatInt(p.Duration, 10)
}

// End returns Start+Duration.
func (p *Phase) End() int64 { return p.Start + p.Duration }

// A Class says how a request came by its connection.
type Class uint8

// The classes.
const (
	NoConnection Class = iota
	Pooled             // it was there, no wait
	Own                // opened for this request
	Adopted            // this request is the first to use it, another one asked for it
	Returned           // waited until another request gave it back, or shared it
)

// String returns "" for NoConnection, else "pooled", "own", "adopted" or "returned".
func (c Class) String() string {
	if names := [...]string{"", "pooled", "own", "adopted", "returned"}; int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

// A Connection is what is known of the connection that served a request.
type Connection struct {
	ID      int64
	HasID   bool // .NET 8 and later
	New     bool
	NewTold bool // New is known
	Class   Class
	Remote  string // address of the peer, without port
	Port    int    // of the peer, 0 if unknown
	Proxy   string // host:port of the proxy it goes through
	TLS     string // "TLS 1.3", of new connections

	// Elsewhere says that it goes to another place than the URL names, and to no proxy: a handler
	// has sent the request there, such as one that discovers services.
	Elsewhere bool
}

// A Try is one attempt to connect to one address.
type Try struct {
	Phase
	Address string // "127.0.0.1:80"
	Code    int    // Winsock error number of a failure
}

// A Redirect is an earlier hop of a redirect chain.
type Redirect struct {
	From       string // URL of this hop
	URL        string // where it was sent
	Status     int    // of the 3xx; 0 if unknown
	Start      int64  // ns since the start of the trace
	Duration   int64  // ns
	Version    string
	Connection *Connection
	Phases     []Phase
}

// A SideAttempt is a connection attempt that ran on behalf of a request without
// serving it.
type SideAttempt struct {
	Phases []Phase // may lie behind the end of the request
}

// An Exchange is headers that were sent, and what came of it.
type Exchange struct {
	From, Sent int64 // ns: when they were begun and written
	Answered   int64 // ns: when the headers of an answer were there; 0: they were not
	Connection int64
}

// A Request is one call of HttpClient.
type Request struct {
	ID       int // 1, 2, ... in the order of start
	Activity [16]byte
	Path     []uint32 // decoded Activity; empty if it is none
	Process  uint32
	Thread   uint64 // that started it

	Method string // only from the DiagnosticSource bridge
	Scheme string
	Host   string
	Port   int
	Target string // path and query; since .NET 9 the query is "*"

	Version          string // "1.1", "2.0", "3.0"
	VersionRequested string
	Status           int   // 0: none
	Start            int64 // ns since the start of the trace
	StartEvent       int64 // ns: when it was told; behind Start where a span is all there is, which has a clock of its own; 0: it was not
	Duration         int64 // ns; nothing if !HasDuration
	HasDuration      bool
	Outcome          Outcome
	Error            string // text of the exception
	ErrorType        string // type of the exception, or error.type of the bridge
	ErrorCause       string // type and text of the innermost exception, if it is another one
	Detail           string // text of the exception with its stack
	Connection       *Connection
	Phases           []Phase // of the last hop, in time order
	Redirects        []Redirect
	Earlier          []Exchange // of the last hop, before the one whose answer counts: a handler tried again, or was asked who it is; .NET 8 and later
	Tries            []Try      // sockets that were tried for the serving attempt
	Side             []SideAttempt
	RequestBytes     int64  // -1 if unknown
	BodyObserved     bool   // a ResponseContent phase was there
	HeadersAt        int64  // ns: time at which the response headers were there; 0 if unknown
	HeadersBy        uint64 // thread that began to write the request headers of the last exchange; 0 if unknown

	// Guessed counts links that rest on the order of events or threads, not on ids.
	Guessed int
	// Missing says what is known to be lost, in words.
	Missing []string

	// SpanOnly says that nothing but a span of the bridge tells of the request: it ends with the
	// headers of the answer and has no phases, but where the process served it itself and the
	// content went on.
	SpanOnly bool

	// StartUnknown says that the trace begins inside the request: Start is that of its
	// first event. Took is how long it took, ns, if its span tells it, which is all that tells of it then: Start is
	// the end of that. Else 0.
	StartUnknown bool
	Took         int64

	// EndInferred says that the request ends with the last thing known: who served it failed, and no
	// event tells when this side learned that.
	EndInferred bool

	TraceID, SpanID, ParentSpanID string // from the bridge; of the first hop
	// Spans are the bridge's spans of all hops, in order; it makes one for each.
	Spans  []SpanIDs
	Server int // ID of the server request it was answered by; 0 if unknown

	Why *Explanation // nil unless the caller has found it out, as tracefix.File.Explain does
}

// SpanIDs name a span of W3C trace context, in hexadecimal.
type SpanIDs struct{ Trace, Span, Parent string }

// URL returns the address; empty if the trace does not tell it.
func (r *Request) URL() string { return joinURL(r.Scheme, r.Host, r.Port, r.Target) }

// Phase returns the sum of the durations of all phases of a name.
func (r *Request) Phase(n PhaseName) (sum int64, ok bool) {
	for i := range r.Phases {
		if r.Phases[i].Name == n {
			sum, ok = sum+r.Phases[i].Duration, true
		}
	}
	return sum, ok
}

// Marks are the doubts about a request, in the words that every output uses.
type Marks uint8

// The marks.
const (
	Inferred     Marks = 1 << iota // the end of a phase was lost; it is that of the next thing known
	Guessed                        // links that rest on the order of events or on threads, or who served it on path, time, port and connection
	Unfinished                     // the trace does not hold all of it: "incomplete"
	StartUnknown                   // the trace begins inside it
)

// String returns the marks with commas between, "" if there are none.
func (m Marks) String() string { return strings.Join(m.List(), ",") }

// List returns them one by one: "inferred", "guessed", "incomplete", "start_unknown".
func (m Marks) List() []string {
	var l []string
	for i, name := range []string{"inferred", "guessed", "incomplete", "start_unknown"} {
		if m&(1<<i) != 0 {
			l = append(l, name)
		}
	}
	return l
}

// Marks returns the doubts about r.
func (r *Request) Marks() (m Marks) {
	if r.EndInferred {
		m |= Inferred
	}
	if slices.ContainsFunc(r.Phases, func(p Phase) bool { return p.Inferred }) {
		m |= Inferred
	}
	for i := range r.Redirects {
		if slices.ContainsFunc(r.Redirects[i].Phases, func(p Phase) bool { return p.Inferred }) {
			m |= Inferred
		}
	}
	return m | marks(r.Guessed > 0 || r.Why != nil && r.Why.ServerGuessed, r.Outcome == Incomplete, r.StartUnknown)
}

// Marks returns the doubts about s.
func (s *ServerRequest) Marks() Marks {
	return marks(s.Guessed > 0, s.Outcome == Incomplete, s.StartUnknown)
}

func marks(guessed, incomplete, startUnknown bool) (m Marks) {
	if guessed {
		m |= Guessed
	}
	if incomplete {
		m |= Unfinished
	}
	if startUnknown {
		m |= StartUnknown
	}
	return m
}

// A ServerRequest is a request that ASP.NET Core served in the traced process.
type ServerRequest struct {
	ID          int // from the same counter as Request.ID
	Activity    [16]byte
	Path        []uint32
	Process     uint32
	Thread      uint64
	Method      string
	Scheme      string // from the bridge
	Host        string // with its port; from the bridge
	Target      string // path, with its query where the bridge tells it
	Route       string // template of the route, "/orders/{id}"; from the log or the bridge
	Version     string // "1.1", "2.0", "3.0"; from Kestrel
	RequestID   string // Kestrel's, "connection:number": HttpContext.TraceIdentifier
	Port        int    // at which its connection came in, from Kestrel; 0 if unknown
	Start       int64  // ns since the start of the trace
	Duration    int64  // ns; nothing if !HasDuration
	HasDuration bool
	Outcome     Outcome // Failed: an unhandled exception
	Status      int     // from the bridge or the log; 0 if unknown
	Guessed     int     // links that rest on the thread, not on ids

	// StartUnknown says that the request was open when the recording began, of which Start is the
	// beginning: it lasted longer than Duration. Took is how long in all, ns, if the log or the bridge
	// tells it; else 0.
	StartUnknown bool
	Took         int64

	TraceID, SpanID, ParentSpanID string
	Client                        int // ID of the Request that asked; 0 if it is not in the trace

	Why *Explanation // nil unless the caller has found it out, as tracefix.File.Explain does
}

// Whole reports whether the recording holds s from its begin to its end.
func (s *ServerRequest) Whole() bool {
	return s.HasDuration && !s.StartUnknown && s.Outcome != Incomplete
}

// Place returns the host that was asked, without brackets, and its port; 0 if the trace does not tell that.
func (s *ServerRequest) Place() (host string, port int) {
	if s.Host == "" {
		return "", 0
	}
	p := splitURL(cmp.Or(s.Scheme, "unknown")+"://"+s.Host, &place{})
	return p.host, p.port
}

// URL returns the address; empty if the trace does not tell all of it.
func (s *ServerRequest) URL() string {
	host, port := s.Place()
	return joinURL(s.Scheme, host, port, s.Target)
}

// Upgraded reports whether s handed its connection or stream over, to a WebSocket mostly: it lasts as long
// as who talks there wants, which is no measure of the server. HTTP/1.1 answers 101, which the bridge or the
// log tells; later versions are asked with CONNECT.
func (s *ServerRequest) Upgraded() bool {
	return s.Status == 101 || s.Method == "CONNECT" && s.Status < 300
}

// ErrorCause returns the innermost exception, "type: message", for which s failed; empty if its
// explanation does not tell it.
func (s *ServerRequest) ErrorCause() string {
	if s.Outcome != Failed || s.Why == nil || len(s.Why.Exceptions) == 0 {
		return ""
	}
	x := &s.Why.Exceptions[len(s.Why.Exceptions)-1]
	if x.Cause != "" {
		return x.Cause
	}
	return x.Type + ": " + x.Message
}

func defaultPort(scheme string) int {
	switch scheme {
	case "http", "ws":
		return 80
	case "https", "wss":
		return 443
	case "ftp":
		return 21
	}
	return 0
}

func joinURL(scheme, host string, port int, target string) string {
	if scheme == "" || host == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(scheme) + len(host) + len(target) + 10)
	b.WriteString(scheme)
	b.WriteString("://")
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		b.WriteByte('[')
		b.WriteString(host)
		b.WriteByte(']')
	} else {
		b.WriteString(host)
	}
	if port != defaultPort(scheme) && port > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(port))
	}
	b.WriteString(target)
	return b.String()
}

// splitURL takes an absolute URL apart, or completes a relative one from base. A
// redirect target that was redacted altogether ("*") has an empty target.
func splitURL(u string, base *place) place {
	if s, rest, ok := strings.Cut(u, "://"); ok && !strings.ContainsAny(s, "/?*") {
		p := place{scheme: strings.ToLower(s)}
		end := strings.IndexAny(rest, "/?#")
		authority := rest
		if end >= 0 {
			authority, p.target = rest[:end], rest[end:]
		}
		if p.target == "" || p.target[0] != '/' {
			p.target = "/" + p.target
		}
		if i := strings.LastIndexByte(authority, '@'); i >= 0 {
			authority = authority[i+1:]
		}
		p.port = defaultPort(p.scheme)
		p.host = authority
		if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
			if n, err := strconv.Atoi(authority[i+1:]); err == nil && n > 0 && n < 65536 {
				p.host, p.port = authority[:i], n
			}
		}
		p.host = strings.TrimSuffix(strings.TrimPrefix(p.host, "["), "]")
		return p
	}
	p := *base
	switch {
	case u == "*" || u == "":
		p.target = ""
	case strings.HasPrefix(u, "/"):
		p.target = u
	case strings.HasPrefix(u, "?"):
		path, _, _ := strings.Cut(base.target, "?")
		p.target = path + u
	default:
		path, _, _ := strings.Cut(base.target, "?")
		p.target = path[:strings.LastIndexByte(path, '/')+1] + u
	}
	return p
}

// A place is where a hop goes.
type place struct {
	scheme, host, target string
	port                 int
}

func versionText(major, minor uint8) string {
	switch {
	case major == 1 && minor == 1:
		return "1.1"
	case major == 2 && minor == 0:
		return "2.0"
	case major == 3 && minor == 0:
		return "3.0"
	case major == 0:
		return ""
	}
	return strconv.Itoa(int(major)) + "." + strconv.Itoa(int(minor))
}
