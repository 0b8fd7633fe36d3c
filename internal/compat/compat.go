// Package compat holds what dotnet-trace hands to its own writers: the samples of
// dotnet-trace-convert.md section 1 with their synthetic frames, from which section 3
// makes Chromium and speedscope files. It keeps the reference's faults on purpose.
package compat

import "github.com/tracefix/tracefix/profile"

// A Sample covers the time from one event of a thread to its next.
type Sample struct {
	Time   float64 // ms since the start of the trace
	Metric float32 // ms
	// Stack has all frames that the reference writes, root first: process,
	// activities, thread, the recorded frames, the leaf of section 1.4.
	Stack profile.StackID
}

// A Thread is one track of the reference's output.
type Thread struct {
	// Name is the text of its frame: "Thread (19)", "Thread (19) (.NET ThreadPool)".
	Name string
	// TID is the first number in parentheses in Name, 0 if there is none.
	TID int64
	// Samples are sorted by (Time, Metric).
	Samples []Sample
}

// A Trace is a whole recording as the reference sees it.
type Trace struct {
	// Table names the frames. Two frames are the same to the reference if their
	// methods are: every distinct full name is one MethodID, and Method.Full is
	// that name. It may be empty (the frame is skipped, its depth counts).
	Table *profile.Table
	// Threads are in the order of their first sample.
	Threads []*Thread
}
