// Package tracefix is the library behind the command of the same name: it opens a .NET trace in any format,
// repairs its cut stacks, and writes it in any other.
//
//	f, err := tracefix.Open(ctx, "app.nettrace.gz")
//	...
//	defer f.Close()
//	p, err := f.Profile(ctx, &tracefix.ReadOptions{Evidence: true})
//	...
//	tracefix.Repair(p, nil)
//	err = tracefix.Write(w, p, "speedscope", nil)
//
// # What is read
//
// The format of a file is recognized from its content, never from its name: nettrace and netperf,
// Chromium trace event JSON, speedscope JSON, pprof, folded stacks, ndjson of samples and the text
// of perf script, each bare or inside gzip, zstd, bzip2 or zip. All of them become one
// [profile.Profile]: threads with their samples, and tracks of other things in time. Package
// profile documents how to iterate over and select them.
//
// # Ownership and the end
//
// A Profile belongs to the caller and stays valid after the File is closed, except tracks of all
// events, whose slices may be read from the file again: see profile.Track. A damaged file is read
// as far as it is whole; each defect is reported to ReadOptions.Warn, and their number is in
// Profile.Meta. An error means that nothing could be read, and names the file. If the content of
// the file is to blame, it is a [FormatError] with the byte offset.
//
// # Time
//
// Times are nanoseconds since the start of the trace. Exceptions are documented:
// nettrace.Event.Time counts ticks of the trace's own clock, and the amounts of profile.Top are
// milliseconds.
//
// # Requests, activities, counters
//
// [File.Requests], [File.Explain], [File.Activities] and [NewCounterScanner] read what else a nettrace holds;
// [File.Scan] passes its events to any number of consumers in one pass, including your own.
//
// # Packages
//
// The packages below this one do one thing each and can be used alone: nettrace and chromium read
// and write files, stackfix restores stacks, httpphases builds HTTP requests, activity builds trees
// of activities, runtimeevents pairs the runtime's own events, causality finds for which activity
// threads worked, profile is the model.
package tracefix
