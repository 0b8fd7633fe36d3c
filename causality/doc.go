// Package causality finds for which activity each thread of a .NET process worked at each time, and
// where the time of an activity went. It is a pure algorithm: events in order of time in, segments
// and explanations out. It reads no files.
//
// An [Engine] follows the threads. A [Segment] says for whom a thread worked and what it did:
// it ran, or stood blocked for a lock, a sleep, an event, a file or a socket. An [Explainer]
// gathers the segments of an activity and of those below it, and tells for each instant of
// its time the cause that comes first.
//
// # What tells for whom a thread works
//
// While activity ids flow, every event of an EventSource and of the runtime has the activity that
// its thread works for when it is written. Between two events the flow may change without one: an
// async method that continues restores its flow, and one that returns restores that of its caller.
// Stacks show where: after the calls of ExecutionContext.Run, AsyncMethodBuilderCore.Start and
// ThreadPoolWorkQueue.Dispatch the flow is what it was before. Two stacks that share such a call,
// and everything below it, are in the same flow, whichever of them wrote an event; so an event also
// attributes the samples before it. An async method that ends runs its awaiter on the same stack,
// and most likely in its flow; so does code that runs a task at once, as Parallel.For does with its
// share.
//
// A thread that was started in a flow begins in it, if its stack shows that it was given one.
//
// Task events add in which flow a task was queued or an await was begun, and when which thread
// continued it. What was queued without its flow, its stack shows: nothing on it restores one.
// Otherwise work is attributed to the only open activity of those that the async method was seen
// to work for (requests of one route, say) and that no other thread was seen to run for. This is
// done only for methods for which the trace shows that the rule holds: at least twenty stretches
// that events do attribute, 99 % of them as the rule would. What remains is not known, and
// Segment.Known is false.
//
// # What is not known
//
// In what began before the ids of activities were on, as a recorder that attaches turns them on, events have
// none: they tell that it is for none that began since. While some of it may be open Segment.Earlier says so.
//
// Without task events: the first stretch of an async method that continues and neither writes an
// event, nor ends, nor is followed by its awaiter, while more than one activity qualifies; and for
// which of two requests a thread worked where it switched between them without a sample. With
// sampled stacks: everything shorter than the sampling interval. On a busy machine the sampler
// waits for a processor, too: if the flow changed meanwhile, a thread counts as running for the
// least that samples leave out, and is Unseen in between. Time between an event and a blocked
// sample counts as blocked: an event takes no time.
//
// Two calls of an async method that the pool resumes one after the other, with no sample in between
// that shows another stack, look like one: without task events an event of the second is attributed
// to the first, if that activity had begun by then and the two were not seen to call two methods
// from one place. If they were, it may still be one call with a loop, so what came before stays
// unknown.
//
// Sources: ActivityTracker.cs, TplEventSource.cs, ExecutionContext.cs,
// AsyncTaskMethodBuilderT.cs and ThreadPoolWorkQueue.cs of dotnet/runtime.
package causality
