// Package spans turns the begin and end events of a Chromium trace into sampled
// stacks, and repaired stacks back into the events of the same file.
//
// A trace is read twice. [Read] follows begin and end per thread in order of time
// and fills a [trace.Profile]: wherever a begin is followed by an end, the frames
// open between them are one sample. [Trace.Rewrite] copies the file byte by byte
// and works only on the transitions next to samples that a repair has changed:
// between two samples of a thread, frames of the repaired stacks that are in both
// stay open, so the events that split them are left out, and frames that were put
// back get events of their own.
//
// Two producers write sampled stacks: dotnet-trace, whose threads have synthetic roots
// and leaves, and tracefix itself, whose threads say in their name event what they
// hold. All other spans are just spans.
//
// How dotnet-trace lays out these files is described in dotnet-trace-convert.md.
package spans
