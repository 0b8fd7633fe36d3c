package command

import (
	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/ipc"
)

var (
	anyTrace   = input.Kinds()
	recordings = []input.Kind{input.Nettrace, input.Netperf}
)

// Table holds all commands that make one output of one trace, in the order of the help.
var Table = []Command{
	{
		Name: "repair", Help: "Restore the frames that the recorder cut from call stacks.", Group: GroupRepair,
		Examples: []string{"tracefix repair trace.nettrace", "tracefix repair trace.nettrace -o trace.speedscope.json", "tracefix repair trace.nettrace -o trace.pb.gz --from 10s --to 12s", "tracefix repair trace.nettrace -o alloc.svg --weight alloc"},
		Reads:    anyTrace, Outputs: ProfileFormats(), Rewrites: &Rewrites{Own: ".fixed", Other: ".fixed"}, Counts: Samples | Repairs,
		New: func() Job { return NewRepair() },
	},
	{
		Name: "convert", Help: "Convert a trace to another format, without repair.", Group: GroupRepair,
		Examples: []string{"tracefix convert trace.nettrace -o trace.chromium.json.gz", "tracefix convert trace.nettrace -o trace.folded --request /orders"},
		Reads:    anyTrace, Outputs: ProfileFormats(), Rewrites: &Rewrites{Own: ".converted"}, Counts: Samples,
		New: func() Job { return &Convert{SampleFlags: newSampleFlags()} },
	},
	{
		Name: "info", Help: "Show whether a trace is usable, what it holds, and what to record next time.", Group: GroupInspect,
		Examples: []string{"tracefix info trace.nettrace", "tracefix info trace.nettrace --format json"},
		Reads:    anyTrace, Outputs: infoFormats, Batch: "json", Counts: Samples,
		New: func() Job { return &Info{} },
	},
	{
		Name: "top", Help: "List the hottest methods, with CPU time apart from waiting.", Group: GroupInspect,
		Examples: []string{"tracefix top trace.nettrace --repair", "tracefix top trace.nettrace --weight alloc", `tracefix top trace.nettrace --method "*MoveNext"`},
		Reads:    anyTrace, Outputs: topFormats, Batch: "json", Counts: Samples,
		New: func() Job { return &Top{SampleFlags: newSampleFlags()} },
	},
	{
		Name: "http", Help: "List HTTP requests with their phases and waits.", Group: GroupInspect,
		Examples: []string{"tracefix http trace.nettrace", "tracefix http trace.nettrace --failed --host shop.example", "tracefix http trace.nettrace --id 17 --explain", "tracefix http trace.nettrace --summary", "tracefix http trace.nettrace -o requests.har"},
		Reads:    recordings, Outputs: httpFormats, Batch: "ndjson", Counts: Requests,
		New: func() Job { return &HTTP{} },
	},
	{
		Name: "activities", Help: "Print the start/stop tree of activities, with durations.", Group: GroupInspect,
		Examples: []string{"tracefix activities trace.nettrace --slow 100ms", "tracefix activities trace.nettrace --activity Request -n 20"},
		Reads:    recordings, Outputs: activityFormats, Batch: "ndjson",
		New: func() Job { return &Activities{} },
	},
	{
		Name: "events", Help: "List every event, decoded.", Group: GroupInspect,
		Examples: []string{"tracefix events trace.nettrace --provider System.Net.Http --from 2s --to 3s", "tracefix events trace.nettrace --event GC/Start -n 10"},
		Reads:    recordings, Outputs: eventFormats, Screen: "text", Streams: true,
		New: func() Job { return &Events{} },
	},
	{
		Name: "counters", Help: "Export the values of EventCounters and Meters.", Group: GroupInspect,
		Examples: []string{"tracefix counters trace.nettrace -o counters.csv", `tracefix counters trace.nettrace --name "cpu*"`},
		Reads:    recordings, Also: &Content{"a .NET Framework performance-counter block", events.IsBlock}, Outputs: counterFormats, Screen: "table", Streams: true,
		New: func() Job { return &Counters{} },
	},
	{
		Name: "gc", Help: "Report on garbage collections: pauses, reasons, sizes, who asked.", Group: GroupRuntime,
		Examples: []string{"tracefix gc trace.nettrace"},
		Reads:    recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &GC{RuntimeReport: RuntimeReport{kind: events.KindGC}} },
	},
	{
		Name: "jit", Help: "Report on JIT compilation: methods, time, tiers, the slowest.", Group: GroupRuntime,
		Examples: []string{"tracefix jit trace.nettrace -n 20"},
		Reads:    recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &JIT{RuntimeReport: RuntimeReport{kind: events.KindJIT}} },
	},
	{
		Name: "locks", Help: "Report on lock contention: which locks, for how long, who held them.", Group: GroupRuntime,
		Examples: []string{"tracefix locks trace.nettrace -o locks.html"},
		Reads:    recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &Locks{RuntimeReport: RuntimeReport{kind: events.KindLocks}} },
	},
	{
		Name: "threads", Help: "Report on the thread pool: its size and why, starvation, the queue.", Group: GroupRuntime,
		Examples: []string{"tracefix threads trace.nettrace"},
		Reads:    recordings, Outputs: runtimeFormats, Batch: "json",
		New: func() Job { return &Threads{RuntimeReport: RuntimeReport{kind: events.KindThreads}} },
	},
	{
		Name: "ipc", Help: "Decode a recording of snoop, and extract the traces in it.", Group: GroupTalk,
		Examples: []string{"tracefix ipc session.rec --extract traces"},
		Also:     &Content{"a recording of a diagnostics conversation (frames, DOTNET_IPC_V1 or ADVR_V1)", ipc.IsRecording}, Outputs: ipcFormats, Alone: true, Streams: true,
		New: func() Job { return &IPC{} },
	},
}
