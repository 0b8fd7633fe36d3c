// Package runtimeevents pairs the .NET runtime's own events in a trace:
// collections and their pauses, compilations, contention of locks, the thread pool,
// exceptions and allocations.
//
// Each collector takes every event of a trace in order of time and keeps what is
// its own; rows are complete after Finish. Collectors are independent of each other:
//
//	var gcs runtimeevents.GCs
//	for ev := range events {
//		gcs.Event(ev, reader.Nanos(ev.Time), 0)
//	}
//	for _, p := range gcs.Finish() {
//		fmt.Println(p.PID, len(p.Collections), p.Pause())
//	}
//
// Times are nanoseconds since the start of the trace, sizes are bytes. A time that
// no event told is Unknown. The last argument of Event is a number that the caller
// has for the event's stack, 0 for none; rows repeat it and nothing here reads it.
//
// # What is paired with what
//
// A suspension's four events (SuspendEEBegin, SuspendEEEnd, RestartEEBegin,
// RestartEEEnd) stand on one thread, which need not be that of the collection: with
// server GC it never is. A collection belongs to the suspension that was open when it
// started, a background collection also to that of reason SuspendForGCPrep with its
// number. One suspension may hold two collections, an ephemeral one at the start of a
// background one; its time is then counted once: what lies within the inner
// collection is the inner one's, the rest the outer one's.
//
// A pause runs from the start of the suspension to the start of the restart, which is
// what the runtime itself counts (GC.GetTotalPauseDuration). The reference library of
// .NET counts to the end of the restart and with it what the threads that wake take
// from the one that wakes them: up to some milliseconds on a busy machine.
//
// A contention is a ContentionStart and the next ContentionStop on its thread. A start
// that is followed by another start was left without a stop, as Lock.TryEnter leaves
// it when its time is over.
//
// A compilation is a MethodJittingStarted and the MethodLoadVerbose of the same method
// on its thread.
//
// Sources: ClrEtwAll.man and src/coreclr/gc of dotnet/runtime,
// docs/design/features/RandomizedAllocationSampling.md there, and TraceManagedProcess.cs
// of microsoft/perfview.
package runtimeevents
