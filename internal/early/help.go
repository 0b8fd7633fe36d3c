package early

const help = `Usage: tracefix <command> [flags]

tracefix repairs call stacks that .NET's trace recorders cut, reconstructs HTTP
requests, and converts traces, offline. Begin with: tracefix info TRACE

Exit codes: 0 done; 1 failed, nothing written (of several inputs: any failed);
2 usage; 3 done, but an input was damaged and what could be saved was saved
(--strict makes it 1); 130 interrupted.

Flags:
  -h, --help       Show context-sensitive help.
      --version    Print the version and exit.
  -q, --quiet      Print no summary and no progress.

Repair, look at it, convert:
  repair     Repair cut stacks.
  convert    Convert a trace, without repair.
  view       Repair a trace and open it in the browser, offline.

Tell what is in a trace:
  info          Is the trace usable, what is in it, what to record next time.
  top           Hottest methods, CPU time apart from waiting.
  http          HTTP requests with their phases and waits.
  activities    The start/stop tree of activities, with durations.
  events        List every event, decoded.
  counters      Values of EventCounters and Meters.

Tell what the runtime did:
  gc         Garbage collections: pauses, reasons, sizes, who asked.
  jit        Compilation: methods, time, tiers, the slowest.
  locks      Contention: which locks, for how long, who held them.
  threads    The thread pool: its size and why, starvation, the queue.

Conversations with the diagnostic server of a process:
  ipc      Decode a recorded conversation, and take the traces out of it.
  snoop    Record the conversation of tools with a process, for ipc.

Many traces, and CI:
  batch run        Work on folders, globs and archives of traces: tracefix batch
                   PATH... -o DIR.
  batch plan       Cut a fleet of traces into pieces of equal work, for the
                   scheduler that you have.
  batch merge      Join the reports of shards or pieces.
  batch compare    Tell what moved between two batches, beyond noise: a gate
                   over time.
  compare          What moved between two traces, beyond noise; a gate for CI.

This program:
  completion    Print a script that completes commands, flags and values in your
                shell.
  man           Print the man page.

Run "tracefix <command> --help" for more information on a command.
`
