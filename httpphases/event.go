package httpphases

import "slices"

// Names of the providers whose events Decode understands.
const (
	ProviderHTTP     = "System.Net.Http"
	ProviderDNS      = "System.Net.NameResolution"
	ProviderSockets  = "System.Net.Sockets"
	ProviderSecurity = "System.Net.Security"
	ProviderHosting  = "Microsoft.AspNetCore.Hosting"
	ProviderKestrel  = "Microsoft-AspNetCore-Server-Kestrel"
	ProviderLogging  = "Microsoft-Extensions-Logging"
	ProviderBridge   = "Microsoft-Diagnostics-DiagnosticSource"
)

// hostingOld is the name of ProviderHosting before ASP.NET Core 3.0.
const hostingOld = "Microsoft-AspNetCore-Hosting"

// A Kind is what an event tells.
type Kind uint8

// Kinds of events. Up to RequestRedirect they are the events 1 to 16 of System.Net.Http.
const (
	KindNone Kind = iota
	RequestStart
	RequestStop
	RequestFailed
	ConnectionEstablished
	ConnectionClosed
	RequestLeftQueue
	RequestHeadersStart
	RequestHeadersStop
	RequestContentStart
	RequestContentStop
	ResponseHeadersStart
	ResponseHeadersStop
	ResponseContentStart
	ResponseContentStop
	RequestFailedDetailed
	RequestRedirect
	ResolutionStart
	ResolutionStop
	ResolutionFailed
	ConnectStart
	ConnectStop
	ConnectFailed
	HandshakeStart
	HandshakeStop
	HandshakeFailed
	ServerRequestStart
	ServerRequestStop
	ServerUnhandled // with a Span it is a line of Kestrel's log, which tells whose it is by Kestrel's id
	KestrelClosed   // a connection over which requests came; Text is its id
	KestrelStart    // a request that is served; Span has Kestrel's id of it
	KestrelStop
	ScopeStart // the scope that the log opens for a request that is served
	ScopeStop
	ServerLogged // a line of the log about a request that is served: Span has its status or route
	SpanStart    // of the DiagnosticSource bridge
	SpanStop
	OtherStart // an activity of any other event source: it takes a number below its creator. Of a connection of Kestrel's Text is the id and Port where it came in
	EventsLost // of the thread, since Length (ns); see Builder.Lost
	kindCount
)

// A Span is what an event of the bridge, of Kestrel or of the log tells of a request
// beside its other events. A value that it does not tell is empty.
type Span struct {
	Source, Name string // of bridge events; Name without its ".Start" or ".Stop"
	// ID and ParentID are those of the System.Diagnostics.Activity: a hierarchical id
	// ("|a.b_") as it stands, of W3C ids the span's 16 hex digits.
	ID, ParentID string
	TraceID      string // W3C: 32 hex digits
	SpanID       string // W3C: 16 hex digits
	ParentSpanID string // W3C: 16 hex digits; empty or zeros for a root
	RequestID    string // Kestrel's, "connection:number"
	Scope        string // factory and id of the log's activity

	Method    string
	URL       string // of requests made; of one served, from the last line of the log about it
	Scheme    string // of requests served, as are the next three
	Host      string // with its port
	Path      string // with its query, where that is told
	Route     string
	Version   string // "1.1"
	ErrorType string
	Status    int        // 0: unknown
	Task      TaskStatus // of a line of the log TaskRan: the endpoint of the Route has run
	Started   int64      // the activity's own start time, ticks of 100 ns of the day's clock; 0: unknown
	Took      int64      // ns: of a request served, by the log or its activity; 0: unknown
}

// A TaskStatus is how the call of a request ended, by the bridge.
type TaskStatus uint8

// What becomes of a Task.
const (
	TaskUnknown TaskStatus = iota
	TaskRan
	TaskFaulted
	TaskCanceled
)

// An Event is one event. Which fields are set depends on Kind; see Decode.
type Event struct {
	Kind    Kind
	Time    int64  // ns since the start of the trace
	Thread  uint64 // id of the thread that wrote it
	Process uint32

	ID      [16]byte // activity id, zero if there is none
	Related [16]byte // related activity id
	// Path is the decoded activity id, root first, a lost number being 0; PathLen is 0
	// if it is none.
	Path    [24]uint32
	PathLen uint8
	// Overflow says that Path is only that of an ancestor: see activity.Overflow.
	Overflow bool

	HasConn   bool // Conn is known: .NET 8 and later
	HasStatus bool // Status is known: .NET 6 and later, serviced
	Server    bool // HandshakeStart, HandshakeFailed: the server's side
	Major     uint8
	Minor     uint8
	Policy    int32
	Port      int32
	Status    int32 // of HandshakeStop: SslProtocols; of ConnectFailed: SocketError
	Conn      int64
	Length    int64   // bytes of the content
	Millis    float64 // time on the queue, duration of a handshake
	Scheme    string
	Host      string // of ResolutionStart the name, of HandshakeStart the target
	Text      string // path and query, address, message, redirect URI
	Method    string // ServerRequestStart
	Span      *Span  // KestrelStart to SpanStop
}

// shared reports whether the activity id of e may be that of several activities: the encoder of .NET 10
// leaves numbers out.
func (e *Event) shared() bool {
	return e.Overflow || slices.Contains(e.Path[:min(int(e.PathLen), len(e.Path))], 0)
}
