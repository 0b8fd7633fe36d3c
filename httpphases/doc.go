// Package httpphases rebuilds the HTTP requests of a .NET process, with the phases
// each spent its time on, from the events that HttpClient, sockets, name resolution
// and TLS write. It is a pure algorithm: events in, requests out. It reads no files.
//
//	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { ... }})
//	var d httpphases.Decoder
//	for ... {
//		// Path and PathLen are what package activity decodes from the id.
//		e := httpphases.Event{Time: ns, Thread: tid, Process: pid, ID: activityID, Related: relatedID}
//		if d.Decode(&e, provider, eventID, version, name, opcode, payload) {
//			b.Add(&e)
//		}
//	}
//	b.Finish(end)
//
// Requests are handed out as they end, so memory is bounded by what is in flight. Events may come
// out of order within a window; .NET 5 to 10 payloads, HTTP/1.1, 2 and 3 are understood. Events
// without activity ids are linked by thread, connection and value, and the requests so linked say
// so; they are handed out a few thousand events later, as the next use of a connection tells more.
// Served requests, and those of runtimes without these events, come from the events of ASP.NET
// Core, Kestrel, the log and the DiagnosticSource bridge. Values that the trace does not hold are
// absent.
//
// Sources: HttpTelemetry.cs, SocketsTelemetry.cs, NameResolutionTelemetry.cs,
// NetSecurityTelemetry.cs, DiagnosticSourceEventSource.cs, DiagnosticsHandler.cs and
// LoggingEventSource.cs of dotnet/runtime; HostingEventSource.cs,
// HostingApplicationDiagnostics.cs and KestrelEventSource.cs of dotnet/aspnetcore.
package httpphases
