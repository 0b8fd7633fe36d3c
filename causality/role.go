package causality

import (
	"strings"

	"github.com/tracefix/tracefix/internal/waits"
)

// A Role is what a method does to the flow of work: where the activity that a thread
// works for may change without an event.
type Role uint8

// Roles of methods.
const (
	Plain     Role = iota
	Library        // of the framework, or a work item's own method: where the pool calls it no flow was handed to it
	Resumes        // goes on with an async method that awaited
	Steps          // of an async method: what it does from one await to the next
	ThreadTop      // the outermost method of a thread that no flow was handed to
	Dispatch       // takes one work item after the other from the pool
	Captured       // runs a callback in a flow that was captured before
	Scoped         // gives back the flow that it was called in
	Completes      // ends an async method: who awaits it goes on
	Tracing        // writes events
	Inside         // of the library of threads: it may be called to wait
	Follows        // of a task that is done: it runs who awaits it
	AtOnce         // runs a task that was not begun, for who asks for it or waits for it
	Sleeps
	Locks
	Waits
	Talks // reads, writes or waits for files and sockets
	Parks // waits for work of the pool
	Polls // lets the runtime stop the thread: its caller is what ran
	Turns // tells who wants to know that the flow changes: it is neither yet
)

// RoleOf returns the role of a method by its full name, Module!Namespace.Type.Method(args).
func RoleOf(name string) Role {
	if i := strings.IndexByte(name, '!'); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.IndexByte(name, '('); i >= 0 {
		name = name[:i]
	}
	if strings.HasSuffix(name, "].MoveNext") && strings.Contains(name, "StateMachineBox`1[") {
		return Resumes
	}
	if strings.HasSuffix(name, ".MoveNext") {
		// C#, Visual Basic, F#: T+<Method>d__1, T+VB$StateMachine_1_Method, T+method@12.
		machine, _, _ := strings.Cut(name, "[")
		if strings.Contains(machine, ">d") || strings.Contains(machine, "VB$StateMachine_") || strings.Contains(machine, "@") {
			return Steps
		}
	}
	rest, ok := strings.CutPrefix(name, "System.")
	if !ok {
		switch {
		case strings.HasPrefix(name, "Interop+"):
			return interopRole(name)
		case strings.HasPrefix(name, "Microsoft.Win32.SafeHandles."):
			if strings.HasSuffix(name, ".Execute") {
				return Captured // ThreadPoolValueTaskSource, as QueueUserWorkItemCallback: reads or writes a file
			}
			return Inside
		case strings.HasSuffix(name, ".Execute"):
			return Library
		}
		return Plain
	}
	if strings.HasPrefix(rest, "Diagnostics.Tracing.") {
		return Tracing
	}
	if rest, ok = strings.CutPrefix(rest, "Runtime.CompilerServices."); ok {
		switch {
		case rest == "AsyncMethodBuilderCore.Start":
			return Scoped
		case strings.HasPrefix(rest, "AsyncHelpers+") && strings.HasSuffix(rest, ".MoveNext"),
			strings.HasPrefix(rest, "AsyncHelpers+") && strings.HasSuffix(rest, ".DispatchContinuations"):
			return Captured
		case strings.HasPrefix(rest, "Async") && strings.Contains(rest, "MethodBuilder") && completes(rest),
			strings.HasPrefix(rest, "PoolingAsync") && completes(rest):
			return Completes
		}
		return Library
	}
	switch waits.Of(name) {
	case waits.Sleep:
		return Sleeps
	case waits.Lock:
		return Locks
	case waits.Wait, waits.Spin:
		return Waits
	case waits.Park:
		return Parks
	}
	rest, ok = strings.CutPrefix(strings.TrimPrefix(name, "System."), "Threading.")
	if !ok {
		return Library
	}
	return threadingRole(rest)
}

// completes reports whether a method of a builder ends the async method.
func completes(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "SetResult", "SetExistingTaskResult", "SetException":
		return true
	}
	return false
}

// threadingRole is RoleOf for what is in System.Threading.
func threadingRole(name string) Role {
	switch name {
	case "Thread.StartCallback", "ThreadHelper.ThreadStart", "ThreadHelper.ThreadStart_Context":
		return ThreadTop
	case "ThreadPoolWorkQueue.Dispatch":
		return Dispatch
	}
	typ, method, _ := strings.Cut(name, ".")
	typ, _, _ = strings.Cut(typ, "`")
	switch typ {
	case "QueueUserWorkItemCallback": // what it calls of ExecutionContext is inlined; there is one for the default flow, too
		return Captured
	case "ThreadPool+<>c": // what a source of a ValueTask calls for the async method that awaits it
		if strings.HasPrefix(method, "<.cctor>") {
			return Follows
		}
	case "ExecutionContext":
		if method == "OnValuesChanged" {
			return Turns
		}
		if strings.HasPrefix(method, "Run") {
			return Captured
		}
	case "Thread":
		if strings.HasPrefix(method, "<PollGC>") || strings.HasPrefix(method, "PollGC") {
			return Polls
		}
	case "Tasks":
		if strings.HasPrefix(method, "TplEventSource.") || strings.HasPrefix(method, "TplEtwProvider.") {
			return Tracing
		}
		if method == "TaskScheduler.TryRunInline" {
			return AtOnce
		}
		if strings.HasPrefix(method, "Task.") || strings.HasPrefix(method, "Task`1") {
			switch method[strings.LastIndexByte(method, '.')+1:] {
			case "TrySetResult", "TrySetException", "FinishContinuations", "RunContinuations":
				return Follows
			}
		}
	}
	return Inside
}

// interopRole tells the calls of the system that block for a file or a socket.
func interopRole(name string) Role {
	call := name[strings.LastIndexByte(name, '.')+1:]
	for _, c := range [...]string{
		"Read", "PRead", "Write", "PWrite", "ReadFile", "WriteFile", "Receive", "ReceiveMessage", "Send", "SendMessage", "SendFile",
		"Poll", "Select", "WaitForSocketEvents", "Connect", "Accept", "FSync", "FlushFileBuffers", "Open", "CreateFile", "Stat", "LStat",
		"FStat", "GetHostEntryForName", "GetAddrInfo", "GetAddrInfoW", "GetNameInfo", "WSARecv", "WSASend", "recv", "send", "select", "connect",
		"GetQueuedCompletionStatus", "GetQueuedCompletionStatusEx", "WaitPid", "SslRead", "SslWrite",
	} {
		if call == c {
			return Talks
		}
	}
	return Inside
}
