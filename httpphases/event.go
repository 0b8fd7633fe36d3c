package httpphases

// Names of the providers whose events Decode understands.
const (
	ProviderHTTP     = "System.Net.Http"
	ProviderDNS      = "System.Net.NameResolution"
	ProviderSockets  = "System.Net.Sockets"
	ProviderSecurity = "System.Net.Security"
	ProviderHosting  = "Microsoft.AspNetCore.Hosting"
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
	ServerUnhandled
	SpanStart  // of the DiagnosticSource bridge
	SpanStop   //
	OtherStart // an activity of any other event source: it takes a number below its creator
	EventsLost // of the thread, since Length (ns); see Builder.Lost
	kindCount
)

// A Span is what a bridge event tells of its System.Diagnostics.Activity.
type Span struct {
	Source, Name string
	TraceID      string // 32 hex digits
	SpanID       string // 16 hex digits
	ParentSpanID string // 16 hex digits; empty or zeros for a root
	Kind         string // "Client", "Server", ...
	// Tags of a stop event that are understood.
	Method    string
	URL       string
	ErrorType string
	Status    int // http.response.status_code; 0: not told
}

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

	HasConn   bool // Conn is told: .NET 8 and later
	HasStatus bool // Status is told: .NET 6 and later, serviced
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
	Span      *Span  // SpanStart, SpanStop
}
