// Package spans turns begin and end events of threads into sampled stacks: those of a
// Chromium trace, whose repaired stacks it also turns back into the events of the same
// file, and those of speedscope JSON.
//
// A Chromium trace is read twice. [Read] follows begin and end per thread in order of time
// and fills a [profile.Profile]: wherever a begin is followed by an end, the frames
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
// Speedscope JSON is read as what it is (file-format-spec.ts: shared.frames, and
// profiles that are evented or sampled; numbers may stand in quotes, as dotnet-trace 3.1 wrote
// them). Its events come as those of a Chromium trace, so that its repair and all outputs
// serve these files too. A damaged file is read as far as it goes: an event that is not whole
// is left out or, where the events around it say what it was, put right, and each such place is
// told.
//
// How dotnet-trace lays out these files is described in dotnet-trace-convert.md.
package spans
