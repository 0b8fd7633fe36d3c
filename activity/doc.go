// Package activity decodes the activity ids of EventSource events and rebuilds the
// tree of activities from their start and stop events.
//
// An activity id looks like a GUID and holds a path: the numbers of the activities
// from the process down to the one that was current, each the ordinal among the
// children of the one before. Decode reads every form that the runtime has written:
// that of .NET 5 to 9, which follows some numbers by a stray zero byte, and that of
// .NET 10, which loses the numbers 11 to 255 wherever their code falls on the high
// half of a byte, so that there one GUID names several activities.
//
// The package reads no files. It is fed with events:
//
//	b := activity.NewBuilder(nil)
//	for ... {
//		b.Add(&activity.Event{Time: ns, Thread: tid, Provider: p, Name: n, Opcode: op, ID: id, Related: related})
//	}
//	tree := b.Finish()
//
// Sources: ActivityTracker.cs, EventSource.cs and, for spans,
// DiagnosticSourceEventSource.cs of dotnet/runtime.
package activity
