package profile

import (
	"slices"
	"strings"
)

// machinery are the starts of names of methods through which code comes to wait, throw or
// collect. They stand at the end of every such stack and say nothing about it.
var machinery = []string{
	"System.Threading.Monitor.", "System.Threading.Lock.", "System.Threading.Lock+", "System.GC.", "System.Runtime.EH.",
	"System.Threading.WaitHandle.", "System.Threading.ManualResetEventSlim.", "System.Diagnostics.Tracing.NativeRuntimeEventSource.",
	"System.Runtime.ExceptionServices.ExceptionDispatchInfo.", "System.Runtime.CompilerServices.TaskAwaiter", "System.Threading.Thread.Join", "System.Threading.Tasks.Task.InternalWait",
	"System.Threading.Tasks.Task.SpinThenBlockingWait", "System.Threading.Tasks.Task.Wait",
	// What EH calls to walk the stack is inlined where CoreLib was compiled ahead only.
	"System.Runtime.StackFrameIterator.", "System.Runtime.ExceptionServices.InternalCalls.",
}

// IsMachinery reports whether a method, given by its name without the module, is one through
// which code waits for a lock, throws or collects: who called it is who did that.
func IsMachinery(name string) bool {
	return slices.ContainsFunc(machinery, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Cause returns the innermost frame of a stack that is code and no machinery, else the innermost that is code; 0 if
// there is none.
func (t *Table) Cause(stack StackID) StackID {
	leaf := StackID(0)
	for id := stack; id != 0; id = t.Parent(id) {
		m := t.MethodOf(t.Frame(id))
		if m.Kind == Synthetic {
			continue
		}
		if !IsMachinery(m.Name) {
			return id
		}
		if leaf == 0 {
			leaf = id
		}
	}
	return leaf
}
