package command

import (
	"github.com/tracefix/tracefix/internal/counters"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/ipc"
	"github.com/tracefix/tracefix/internal/runtimereport"
)

var (
	anyTrace   = input.Kinds()
	recordings = []input.Kind{input.Nettrace, input.Netperf}
)

// Table holds all commands that make one output of one trace, in the order of the help.
var Table = []Command{
	{
		Name: "repair", Help: "Repair cut stacks.",
		Reads: anyTrace, Outputs: ProfileFormats(), Rewrites: &Rewrites{Own: ".fixed", Other: ".fixed"}, Counts: Samples | Repairs,
		New: func() Job { return &Repair{SampleFlags: newSampleFlags()} },
	},
	{
		Name: "convert", Help: "Convert a trace, without repair.",
		Reads: anyTrace, Outputs: ProfileFormats(), Rewrites: &Rewrites{Own: ".converted"}, Counts: Samples,
		New: func() Job { return &Convert{SampleFlags: newSampleFlags()} },
	},
	{
		Name: "http", Help: "HTTP requests with their phases and waits.",
		Reads: recordings, Outputs: httpFormats, Batch: "ndjson", Counts: Requests,
		New: func() Job { return &HTTP{} },
	},
	{
		Name: "info", Help: "Tell what is in a trace: is it usable, and what to record next time.",
		Reads: anyTrace, Outputs: infoFormats, Batch: "json", Counts: Samples, Mute: true,
		New: func() Job { return &Info{} },
	},
	{
		Name: "top", Help: "Hottest methods, CPU time apart from waiting.",
		Reads: anyTrace, Outputs: topFormats, Batch: "json", Counts: Samples,
		New: func() Job { return &Top{SampleFlags: newSampleFlags()} },
	},
	{
		Name: "gc", Help: "Garbage collections: pauses, reasons, sizes, who asked for them.",
		Reads: recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &GC{RuntimeReport: RuntimeReport{kind: runtimereport.KindGC}} },
	},
	{
		Name: "jit", Help: "Compilation: methods, time, tiers, the slowest.",
		Reads: recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &JIT{RuntimeReport: RuntimeReport{kind: runtimereport.KindJIT}} },
	},
	{
		Name: "locks", Help: "Contention: which locks, for how long, who held them.",
		Reads: recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &Locks{RuntimeReport: RuntimeReport{kind: runtimereport.KindLocks}} },
	},
	{
		Name: "threads", Help: "The thread pool: its size over time and why, starvation, the queue.",
		Reads: recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &Threads{RuntimeReport: RuntimeReport{kind: runtimereport.KindThreads}} },
	},
	{
		Name: "activities", Help: "The start/stop tree of activities, with durations.",
		Reads: recordings, Outputs: activityFormats, Batch: "ndjson",
		New: func() Job { return &Activities{} },
	},
	{
		Name: "events", Help: "List every event, decoded.",
		Reads: recordings, Outputs: eventFormats, Screen: "text", Streams: true,
		New: func() Job { return &Events{} },
	},
	{
		Name: "counters", Help: "Values of EventCounters and Meters.",
		Reads: recordings, Also: &Content{"a .NET Framework performance-counter block", counters.IsBlock}, Outputs: counterFormats, Screen: "table", Streams: true,
		New: func() Job { return &Counters{} },
	},
	{
		Name: "ipc", Help: "Decode a recorded conversation with the diagnostic server of a process, and take the traces out of it.",
		Also: &Content{"a recording of a diagnostics conversation (frames, DOTNET_IPC_V1 or ADVR_V1)", ipc.IsRecording}, Outputs: ipcFormats, Alone: true, Streams: true,
		New: func() Job { return &IPC{} },
	},
}
