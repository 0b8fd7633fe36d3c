package early

const help = `Usage: tracefix <command> [flags]

tracefix repairs call stacks that .NET's trace recorders cut, reconstructs HTTP
requests, and converts traces, offline. Start with: tracefix info TRACE

Exit codes: 0 done; 1 failed, nothing written (of several inputs: any failed);
2 usage; 3 done, but an input was damaged and what could be saved was saved
(--strict makes it 1); 130 interrupted.

Flags:
  -h, --help       Show context-sensitive help.
      --version    Print the version and exit.
  -q, --quiet      Print no summary line and no progress.

Repair, view, convert:
  repair     Restore the frames that the recorder cut from call stacks.
  convert    Convert a trace to another format, without repair.
  view       Repair a trace and open it in the browser, offline.

What is in a trace:
  info          Show whether a trace is usable, what it holds, and what to
                record next time.
  top           List the hottest methods, with CPU time apart from waiting.
  http          List HTTP requests with their phases and waits.
  activities    Print the start/stop tree of activities, with durations.
  events        List every event, decoded.
  counters      Export the values of EventCounters and Meters.

What the runtime did:
  gc         Report on garbage collections: pauses, reasons, sizes, who asked.
  jit        Report on JIT compilation: methods, time, tiers, the slowest.
  locks      Report on lock contention: which locks, for how long, who held
             them.
  threads    Report on the thread pool: its size and why, starvation, the queue.

Traffic between tools and a process:
  ipc      Decode a recording of snoop, and extract the traces in it.
  snoop    Record what tools say to a process, as a proxy, for ipc to decode.

Many traces, CI:
  batch run        Run a command on every trace of folders, globs, archives and
                   buckets: tracefix batch PATH... -o DIR.
  batch plan       Split a large batch into pieces of equal work, for an
                   external scheduler.
  batch merge      Join the reports of shards or pieces.
  batch compare    Show what moved between two batches, beyond noise; a gate
                   over time.
  compare          Show what moved between two traces, beyond noise; a gate for
                   CI.

This program:
  completion    Print the completion script for your shell.
  man           Print the man page.

Run "tracefix <command> --help" for more information on a command.
`
