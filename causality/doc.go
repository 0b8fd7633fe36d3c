// Package causality finds out for which activity each thread of a .NET process worked, at
// each time, and where the time of an activity went. It is a pure algorithm: events in time
// order in, segments and explanations out. It reads no files.
//
// An [Engine] follows the threads. A [Segment] says for whom a thread worked and what it did:
// it ran, or stood blocked for a lock, a sleep, an event, a file or a socket. An [Explainer]
// gathers the segments of an activity and of those below it, and tells for each instant of
// its time the cause that comes first.
//
// # What tells for whom a thread works
//
// While activity ids flow, every event of an EventSource and of the runtime shows the
// activity that its thread works for when it is written. Between two events the flow may
// change without one: an async method that goes on takes its flow along, and one that
// returns gives back that of its caller. Stacks tell where: the frames of
// ExecutionContext.Run, AsyncMethodBuilderCore.Start and ThreadPoolWorkQueue.Dispatch are
// calls behind which the flow is what it was before. Two stacks that share such a call, and
// all that is below it, are in the same flow, whoever of them wrote an event; so an event
// also tells of the samples before it. An async method that ends runs the one that awaits it
// on the same stack, and most likely in its flow; so does who runs a task at once, as Parallel.For does with its share.
//
// A thread that was made in a flow begins in it, where its stack shows that it was handed one.
//
// Task events tell more: in which flow a task was queued or an await was begun, and when
// which thread went on with it. Where nothing else tells, the only activity is meant that was open of those that the async
// method at work was seen to work for, requests of one route, say, and that no other thread was seen to run for. That is believed of a method for which the trace shows
// that it holds: of the stretches of it that events do tell, twenty at least and 99 % would have been told so.
// What nothing tells is not known, and Segment.Known says so.
//
// # What is not known
//
// Without task events the first stretch of an async method that goes on and neither writes
// an event, nor ends, nor is followed by who awaits it, while more than one activity may be meant; which of two requests a thread
// worked for in between, where it left one and took the other up without a sample; and with
// sampled stacks all that is shorter than the distance of two samples. On a busy machine who
// samples waits for a processor, too: where the flow changed meanwhile, a thread is taken to
// have run for as long as samples leave out at least, and is Unseen in between. Time between
// an event and a sample that blocks counts as blocked: an event stands for no time.
//
// Two calls of an async method that the pool resumes one behind the other, with no sample in between that shows another
// stack, look like one: without task events what an event of the second one tells is told of the first, if that
// activity had begun then.
//
// Sources: ActivityTracker.cs, TplEventSource.cs, ExecutionContext.cs,
// AsyncTaskMethodBuilderT.cs and ThreadPoolWorkQueue.cs of dotnet/runtime.
package causality
