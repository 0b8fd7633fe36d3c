package httpphases

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Names of the activities that matter.
const (
	spanClient = "System.Net.Http.HttpRequestOut"
	spanServer = "Microsoft.AspNetCore.Hosting.HttpRequestIn"
)

// Categories of the log that tell of requests that are served.
const (
	loggerHosting    = "Microsoft.AspNetCore.Hosting.Diagnostics"
	loggerHostingOld = "Microsoft.AspNetCore.Hosting.Internal.WebHost" // before ASP.NET Core 3.0
	loggerKestrel    = "Microsoft.AspNetCore.Server.Kestrel"
	loggerEndpoint   = "Microsoft.AspNetCore.Routing.EndpointMiddleware"
)

// plainName is the name of an event as its source declares it. Names that a reader makes
// of task and opcode have a slash before Start and Stop.
func plainName(name string) string {
	if i := strings.IndexByte(name, '/'); i >= 0 {
		return name[:i] + name[i+1:]
	}
	return name
}

// spanOf returns the activity that a bridge event is about, and whether it starts or
// stops. An activity of an ActivitySource comes under its own name, and the name of the
// event tells; one of a DiagnosticListener has ".Start" or ".Stop" behind its name, and
// whoever asked for it chose the name of the event.
func spanOf(event, name string) (activity string, start, stop bool) {
	switch name {
	case spanClient + ".Start", spanServer + ".Start":
		return strings.TrimSuffix(name, ".Start"), true, false
	case spanClient + ".Stop", spanServer + ".Stop":
		return strings.TrimSuffix(name, ".Stop"), false, true
	case "Microsoft.AspNetCore.Hosting.BeginRequest":
		return spanServer, true, false
	case "Microsoft.AspNetCore.Hosting.EndRequest":
		return spanServer, false, true
	}
	return name, strings.HasSuffix(event, "Start"), strings.HasSuffix(event, "Stop")
}

// Call reports whether the start of an activity, of that name without "Start", is that of a request
// which the process made, and whether it is a span: that lies in the request of System.Net.Http
// where the trace has both.
func Call(provider, name string, payload []byte) (call, span bool) {
	switch provider {
	case ProviderHTTP:
		return name == "Request", false
	case ProviderBridge:
		c := cursor{b: payload}
		c.raw() // the source
		activity, start, _ := spanOf(name+"Start", c.str())
		call = start && activity == spanClient
		return call, call
	}
	return false, false
}

// ServedRoute returns the route, as Route has it, of a request that the process serves, if the
// start of an activity, of that name without "Start", begins one; else it is empty.
func ServedRoute(provider, name string, payload []byte) string {
	if provider != ProviderHosting && provider != hostingOld || name != "Request" {
		return ""
	}
	c := cursor{b: payload}
	c.raw() // the method
	return Route(c.str())
}

// bridge reads an event of the DiagnosticSource bridge: source, name and an array of key
// and value texts (http-events.md section 11).
func (d *Decoder) bridge(e *Event, event string, c *cursor) bool {
	event = plainName(event)
	switch {
	case event == "Message":
		d.alias(c.str())
		return false
	case !strings.Contains(event, "Activity") && event != "Event":
		return false
	}
	s := &Span{Source: d.hosts.str(c), Name: d.hosts.str(c)}
	activity, start, stop := spanOf(event, s.Name)
	if activity != spanClient && activity != spanServer {
		e.Kind = OtherStart // it takes a number below its creator
		return start && !c.bad
	}
	if !start && !stop {
		return false
	}
	if e.Kind = SpanStop; start {
		e.Kind = SpanStart
	}
	e.Span, s.Name = s, activity
	var base, path, query string
	n := int(c.u16())
	for i := 0; i < n && !c.bad; i++ {
		key := d.hosts.str(c)
		if a, ok := d.aliases[key]; ok {
			key = a
		}
		value := text(c.raw())
		switch lastStep(key) {
		case "PathBase":
			base = value
		case "Path":
			path = value
		case "QueryString":
			query = value
		default:
			s.set(key, value, stop)
		}
	}
	s.Path = base + path + query
	if s.SpanID == "" && strings.Trim(s.ParentSpanID, "0") == "" {
		s.ParentSpanID = "" // zeros say that a span is a root, but of an activity with a hierarchical id nothing
	}
	return !c.bad
}

// maxAliases bounds what is remembered of a session's arguments.
const maxAliases = 1024

// alias learns the names that the session gave to values from what the bridge says when
// it reads them: "Parsing Explicit Transform 'Verb=Request.Method'".
func (d *Decoder) alias(message string) {
	_, rest, ok := strings.Cut(message, "Parsing Explicit Transform '")
	name, path, isAlias := strings.Cut(strings.TrimSuffix(rest, "'"), "=")
	if !ok || !isAlias || len(d.aliases) >= maxAliases {
		return
	}
	if d.aliases == nil {
		d.aliases = map[string]string{}
	}
	d.aliases[name] = path
}

// lastStep returns the name at the end of a path of names.
func lastStep(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// set takes a value by the path that it was read from, of which the last step is what
// the bridge calls it unless the session gave it another name.
func (s *Span) set(path, value string, stop bool) {
	if value == "" {
		return
	}
	switch lastStep(path) {
	case "Id", "ActivityId":
		s.ID = s.own(value)
	case "ParentId", "ActivityParentId":
		s.ParentID = s.above(value)
	// An activity with a hierarchical id has zeros in place of these.
	case "TraceId":
		if strings.Trim(value, "0") != "" {
			s.TraceID = value
		}
	case "SpanId":
		if strings.Trim(value, "0") != "" {
			s.ID, s.SpanID = value, value
		}
	case "ParentSpanId":
		s.ParentSpanID = value
		if strings.Trim(value, "0") != "" {
			s.ParentID = value
		}
	case "TraceIdentifier":
		s.RequestID = value
	case "TagObjects", "Tags", "*Enumerate":
		if stop {
			s.tags(value)
		}
	case "Method":
		s.Method = value
	case "RequestUri":
		s.URL = value
	case "Scheme":
		s.Scheme = value
	case "Host":
		s.Host = value
	case "Ticks", "ActivityStartTime":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && strings.Contains(path, "Start") {
			s.Started = n
		}
	case "Duration":
		if stop {
			s.Took = timeSpan(value)
		}
	case "Protocol":
		s.Version = versionOf(value)
	case "StatusCode":
		s.Status = statusOf(value)
	case "RequestTaskStatus":
		switch value {
		case "RanToCompletion":
			s.Task = TaskRan
		case "Faulted":
			s.Task = TaskFaulted
		case "Canceled":
			s.Task = TaskCanceled
		}
	default:
		if strings.HasPrefix(value, "|") || len(value) == 55 && strings.Count(value, "-") == 3 {
			// An id under a name that nobody told.
			if strings.Contains(strings.ToLower(path), "parent") {
				s.ParentID = s.above(value)
			} else if s.ID == "" {
				s.ID = s.own(value)
			}
		}
	}
}

// own takes the id of an activity, W3C or hierarchical, and returns what tells it apart.
func (s *Span) own(id string) string {
	if trace, span, ok := traceParent(id); ok {
		s.TraceID, s.SpanID = trace, span
		return span
	}
	return id
}

func (s *Span) above(id string) string {
	if _, span, ok := traceParent(id); ok {
		s.ParentSpanID = span
		return span
	}
	return id
}

// traceParent takes apart 00-trace-span-flags.
func traceParent(id string) (trace, span string, ok bool) {
	p := strings.Split(id, "-")
	if len(p) != 4 || len(p[1]) != 32 || len(p[2]) != 16 {
		return "", "", false
	}
	return p[1], p[2], true
}

// versionOf reads "HTTP/1.1" and "HTTP/2".
func versionOf(protocol string) string {
	v, ok := strings.CutPrefix(protocol, "HTTP/")
	if !ok {
		return ""
	}
	if !strings.Contains(v, ".") {
		v += ".0"
	}
	return v
}

// statusNames are the names of System.Net.HttpStatusCode; of those with several, all.
var statusNames = map[string]int{
	"Continue": 100, "SwitchingProtocols": 101, "Processing": 102, "EarlyHints": 103,
	"OK": 200, "Created": 201, "Accepted": 202, "NonAuthoritativeInformation": 203, "NoContent": 204, "ResetContent": 205,
	"PartialContent": 206, "MultiStatus": 207, "AlreadyReported": 208, "IMUsed": 226,
	"MultipleChoices": 300, "Ambiguous": 300, "MovedPermanently": 301, "Moved": 301, "Found": 302, "Redirect": 302,
	"SeeOther": 303, "RedirectMethod": 303, "NotModified": 304, "UseProxy": 305, "Unused": 306,
	"TemporaryRedirect": 307, "RedirectKeepVerb": 307, "PermanentRedirect": 308,
	"BadRequest": 400, "Unauthorized": 401, "PaymentRequired": 402, "Forbidden": 403, "NotFound": 404, "MethodNotAllowed": 405,
	"NotAcceptable": 406, "ProxyAuthenticationRequired": 407, "RequestTimeout": 408, "Conflict": 409, "Gone": 410,
	"LengthRequired": 411, "PreconditionFailed": 412, "RequestEntityTooLarge": 413, "RequestUriTooLong": 414,
	"UnsupportedMediaType": 415, "RequestedRangeNotSatisfiable": 416, "ExpectationFailed": 417, "MisdirectedRequest": 421,
	"UnprocessableEntity": 422, "UnprocessableContent": 422, "Locked": 423, "FailedDependency": 424, "UpgradeRequired": 426,
	"PreconditionRequired": 428, "TooManyRequests": 429, "RequestHeaderFieldsTooLarge": 431, "UnavailableForLegalReasons": 451,
	"InternalServerError": 500, "NotImplemented": 501, "BadGateway": 502, "ServiceUnavailable": 503, "GatewayTimeout": 504,
	"HttpVersionNotSupported": 505, "VariantAlsoNegotiates": 506, "InsufficientStorage": 507, "LoopDetected": 508,
	"NotExtended": 510, "NetworkAuthenticationRequired": 511,
}

// statusOf reads a status code, as number or by the name that .NET gives it; 0 if it is
// none: a server that was left by its client answers 0.
func statusOf(s string) int {
	if n, ok := statusNames[s]; ok {
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 100 || n > 999 {
		return 0
	}
	return n
}

// tags reads the text of TagObjects: `key:value, key:value`, or `[key, value],[key, value]`
// where each was asked for. Values may hold commas, so a pair ends only where a known key
// follows.
func (s *Span) tags(t string) {
	colon, pair := ":", ", "
	if strings.HasPrefix(t, "[") && strings.HasSuffix(t, "]") {
		colon, pair = ", ", "],["
		t = t[1 : len(t)-1]
	}
	asked, ended := false, false
	for t != "" {
		key, rest, ok := strings.Cut(t, colon)
		if !ok {
			return
		}
		value := rest
		t = ""
		for i := 0; ; {
			j := strings.Index(rest[i:], pair)
			if j < 0 {
				break
			}
			if j += i; tagKey(rest[j+len(pair):], colon) {
				value, t = rest[:j], rest[j+len(pair):]
				break
			}
			i = j + len(pair)
		}
		switch key {
		case "http.request.method", "http.request.method_original", "http.method":
			s.Method = value
			asked = asked || key == "http.request.method"
		case "url.full", "http.url":
			s.URL = value
		case "http.route":
			s.Route = value
		case "error.type":
			s.ErrorType, ended = value, true
		case "http.response.status_code", "http.status_code":
			s.Status, ended = statusOf(value), true
		}
	}
	if asked && !ended && s.Name == spanClient && s.Task == TaskUnknown {
		s.Task = TaskCanceled // an answer has a status and an exception a type, but .NET 9 tells none of this one
	}
}

// tagKey reports whether t begins with a name of the semantic conventions and a colon.
func tagKey(t, colon string) bool {
	key, _, ok := strings.Cut(t, colon)
	if !ok || !strings.Contains(key, ".") && key != "error" {
		return false
	}
	for _, c := range key {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

// kestrel reads an event of Kestrel's. Before .NET 5 it has the ids only.
func (d *Decoder) kestrel(e *Event, event string, c *cursor) {
	switch event {
	case "RequestStart":
		e.Kind = KestrelStart
	case "RequestStop":
		e.Kind = KestrelStop
	case "ConnectionStart":
		e.Kind, e.Text = OtherStart, c.str()
		_, port := splitAddress(c.str())
		e.Port = int32(port)
		c.bad = false // whatever it tells, it is a start
		return
	case "ConnectionStop":
		e.Kind, e.Text = KestrelClosed, c.str()
		return
	default:
		return
	}
	c.raw() // the connection, with which the request's id begins
	s := &Span{RequestID: c.str()}
	if len(c.b) > 0 {
		s.Version, s.Path, s.Method = versionOf(d.hosts.str(c)), c.str(), d.hosts.str(c)
	}
	e.Span = s
}

// hostingName gives the events of Microsoft.AspNetCore.Hosting by name: before .NET 5
// their ids are given out at run time. Where a trace has no names the ids of .NET 5 and
// later count.
func hostingName(name string, id int) string {
	if name != "" {
		return plainName(name)
	}
	switch id {
	case 3:
		return "RequestStart"
	case 4:
		return "RequestStop"
	case 5:
		return "UnhandledException"
	}
	return ""
}

// logging reads an event of Microsoft.Extensions.Logging.
func (d *Decoder) logging(e *Event, event string, c *cursor) {
	switch event = plainName(event); event {
	case "ActivityStart", "ActivityJsonStart", "ActivityStop", "ActivityJsonStop":
		id, factory, logger := c.i32(), c.i32(), d.hosts.str(c)
		start := strings.HasSuffix(event, "Start")
		if logger != loggerHosting && logger != loggerHostingOld {
			if start {
				e.Kind = OtherStart
			}
			return
		}
		e.Kind = ScopeStop
		e.Span = &Span{Scope: strconv.Itoa(int(factory)) + "/" + strconv.Itoa(int(id))}
		if start {
			e.Kind = ScopeStart
			e.Span.scope(event == "ActivityJsonStart", c)
		}
	case "FormattedMessage", "MessageJson":
		c.take(8) // level, factory
		logger := d.hosts.str(c)
		if logger == loggerKestrel {
			e.unhandled(c)
			return
		}
		if logger != loggerHosting && logger != loggerHostingOld && logger != loggerEndpoint {
			return
		}
		c.take(4) // id
		// A text that is null is not there at all before .NET 5: the others show by what
		// they begin with.
		for len(c.b) > 0 && e.Span == nil {
			switch t := c.str(); {
			case event == "FormattedMessage":
				e.Span = loggedLine(logger, t)
			case strings.HasPrefix(t, "{"):
				e.Span = loggedArguments(t)
			}
		}
		if c.bad = false; e.Span != nil { // numbers may follow
			e.Kind = ServerLogged
		}
	}
}

// unhandled reads a line of Kestrel's, which may be that a request threw what nobody handled.
func (e *Event) unhandled(c *cursor) {
	c.take(4) // id
	for len(c.b) > 0 {
		text := c.str()
		if before, ok := strings.CutSuffix(text, `": An unhandled exception was thrown by the application.`); ok {
			if _, id, ok := strings.Cut(before, `, Request id "`); ok {
				e.Kind, e.Span = ServerUnhandled, &Span{RequestID: id}
				break
			}
		}
	}
	c.bad = false
}

// scope reads what the log's scope of a request tells.
func (s *Span) scope(isJSON bool, c *cursor) {
	var trace, span, parent string
	set := func(k, v string) {
		switch k {
		case "RequestId":
			s.RequestID = v
		case "RequestPath":
			s.Path = v
		case "TraceId":
			trace = v
		case "SpanId":
			span = v
		case "ParentId":
			parent = v
		}
	}
	if isJSON {
		for k, v := range jsonTexts(c.str()) {
			set(k, v)
		}
	} else {
		n := int(c.u16())
		for i := 0; i < n && !c.bad; i++ {
			k := c.str()
			set(k, c.str())
		}
	}
	s.ID, s.ParentID = span, parent
	if len(span) == 16 && len(trace) == 32 {
		s.TraceID, s.SpanID, s.ParentSpanID = trace, span, parent
	}
}

// jsonTexts returns the members of a JSON object that are texts, nil if it is none.
func jsonTexts(t string) map[string]string {
	var all map[string]any
	if json.Unmarshal([]byte(t), &all) != nil {
		return nil
	}
	m := make(map[string]string, len(all))
	for k, v := range all {
		if v, ok := v.(string); ok {
			m[k] = v
		}
	}
	return m
}

// loggedArguments takes what matters of a line of the log from its arguments; nil if that
// is nothing.
func loggedArguments(t string) *Span {
	m := jsonTexts(t)
	s := &Span{Route: endpointRoute(m["EndpointName"]), Status: statusOf(m["StatusCode"])}
	if took, ok := m["ElapsedMilliseconds"]; ok {
		s.URL, s.Took = m["Scheme"]+"://"+m["Host"]+m["PathBase"]+m["Path"], milliseconds(took)
	}
	if s.Route == "" && s.Status == 0 {
		return nil
	}
	return s
}

// loggedLine takes the same from its text.
func loggedLine(logger, t string) *Span {
	if logger == loggerEndpoint {
		how, name, ok := strings.Cut(strings.TrimSuffix(t, "'"), " endpoint '")
		if r := endpointRoute(name); ok && r != "" && (how == "Executing" || how == "Executed") {
			s := &Span{Route: r}
			if how == "Executed" {
				s.Task = TaskRan
			}
			return s
		}
		return nil
	}
	rest, ok := strings.CutPrefix(t, "Request finished ")
	if !ok {
		return nil
	}
	s := &Span{}
	if old, isOld := strings.CutPrefix(rest, "in "); isOld { // before .NET 5: in 45.8855ms 200 text/plain
		_, rest, ok = strings.Cut(old, "ms ")
	} else { // HTTP/1.1 GET http://host/path - - - 200 2 - 2.3813ms
		if f := strings.Fields(rest); len(f) > 3 {
			s.URL, s.Took = f[2], milliseconds(strings.TrimSuffix(f[len(f)-1], "ms"))
		}
		for ok {
			if _, rest, ok = strings.Cut(rest, " - "); statusOf(firstField(rest)) > 0 {
				break
			}
		}
	}
	if s.Status = statusOf(firstField(rest)); ok && s.Status > 0 {
		return s
	}
	return nil
}

// finishes reports whether a line of the log is the last one about a request of that path.
func (s *Span) finishes(path string) bool {
	p, _, _ := strings.Cut(splitURL(s.URL, &place{}).target, "?")
	return s.Status > 0 && p == path
}

// milliseconds reads a number of them, as ns; 0 if it is none.
func milliseconds(t string) int64 {
	f, err := strconv.ParseFloat(t, 64)
	if err != nil || !(f > 0 && f < 1e12) {
		return 0
	}
	return int64(f * 1e6)
}

// timeSpan reads hours:minutes:seconds as .NET writes a TimeSpan of less than a day, as ns; 0 if it is none.
func timeSpan(t string) int64 {
	h, rest, _ := strings.Cut(t, ":")
	m, sec, _ := strings.Cut(rest, ":")
	hours, err := strconv.ParseUint(h, 10, 8)
	minutes, err2 := strconv.ParseUint(m, 10, 8)
	ns := milliseconds(sec) * 1000
	if err != nil || err2 != nil || ns > 60e9 {
		return 0
	}
	return (int64(hours)*60+int64(minutes))*60e9 + ns
}

func firstField(s string) string {
	f, _, _ := strings.Cut(s, " ")
	return f
}

// endpointRoute takes the template of a route from the display name of an endpoint:
// "/ok HTTP: GET", "HTTP: GET /ok => Handler". Another name, that of a controller's
// method, is returned as it is. "405 HTTP Method Not Supported" and "415 HTTP Unsupported
// Media Type" are endpoints by which routing says that no route fits.
func endpointRoute(name string) string {
	if status, what, _ := strings.Cut(name, " "); statusOf(status) >= 400 && strings.HasPrefix(what, "HTTP ") {
		return ""
	}
	if route, _, ok := strings.Cut(name, " HTTP: "); ok {
		return route
	}
	if rest, ok := strings.CutPrefix(name, "HTTP: "); ok {
		rest, _, _ = strings.Cut(rest, " => ")
		_, route, _ := strings.Cut(rest, " ")
		return route
	}
	return name
}
