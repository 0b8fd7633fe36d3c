// Package tracefix is the library behind the command of the same name: it opens a trace
// of .NET in any format, repairs its cut stacks, and hands it to a writer.
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
// The content of a file tells its format, never its name: nettrace and netperf, Chromium
// trace event JSON, speedscope JSON, pprof, folded stacks, ndjson of samples and the text of
// perf script, each bare or inside gzip, zstd or zip. All of them become one [profile.Profile]: threads with their samples, and tracks of other things in
// time. Package profile says how to walk and select them.
//
// # Ownership and the end
//
// A Profile belongs to the caller and stays valid after the File is closed, but for tracks
// of all events, whose slices may be read from the file again: see profile.Track. A damaged
// file gives all that is whole in it; each defect goes to ReadOptions.Warn, and the number of
// them is in Profile.Meta. An error means that nothing could be read, and names the file. It
// is a [FormatError] with the byte offset where the content of the file is to blame.
//
// # Time
//
// Times are nanoseconds since the start of the trace. Others are named where they stand: nettrace.Event.Time
// counts ticks of the trace's own clock, and the amounts of profile.Top are milliseconds.
//
// # Requests, activities, counters
//
// [File.Requests], [File.Explain], [File.Activities] and [NewCounterScanner] read what else a nettrace
// tells; [File.Scan] hands its events to any number of consumers in one reading, of your own too.
//
// # Packages
//
// Those below this one do one thing each and can be used alone: nettrace and chromium
// read and write files, stackfix restores stacks, httpphases builds HTTP requests,
// activity builds trees of activities, runtimeevents collects what the runtime tells of
// itself, causality finds for whom threads worked, profile is the model.
package tracefix
