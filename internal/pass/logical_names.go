package pass

import (
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// A role is the part that a method plays in async code.
type asyncRole uint8

const (
	asyncLooked asyncRole = 1 << iota // the others are set
	body                              // the body of an async method, MoveNext of its state machine
	starts                            // calls a body for the first time
	resumes                           // calls a body that was left, or what does
	dispatch                          // calls a method of runtime async that was left
	waits                             // part of waiting for a task
	hands                             // part of handing a value to an async method that awaits it
	iterates                          // of an async iterator, beside its body
)

// nameOf returns the name of a method without its module.
func nameOf(m profile.Method) string {
	if _, name, ok := strings.Cut(m.Name, "!"); ok && m.Module == "" {
		return name
	}
	return m.Name
}

func asyncRoleOf(m profile.Method) asyncRole {
	name := nameOf(m)
	switch {
	case isBody(name):
		return body
	case strings.HasPrefix(name, "System.Runtime.CompilerServices.AsyncHelpers+") && (strings.Contains(name, ".MoveNext(") || strings.Contains(name, ".Dispatch")):
		return dispatch | resumes | waits
	case strings.HasPrefix(name, "System.Runtime.CompilerServices.") && strings.Contains(name, "MethodBuilder") && strings.Contains(name, ".Start("):
		return starts
	case isMove(name), strings.HasPrefix(name, iteratorBuilder+"MoveNext("):
		return starts | iterates
	case strings.HasPrefix(name, iteratorBuilder):
		return resumes | waits | iterates
	case strings.HasPrefix(name, "System.Runtime.CompilerServices."), strings.HasPrefix(name, "System.Threading.ExecutionContext."),
		strings.HasPrefix(name, "System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1"):
		return resumes | waits | hands
	case strings.HasPrefix(name, "System.Threading."):
		return resumes | waits
	case strings.HasPrefix(name, "System.Diagnostics.Tracing."):
		return waits
	}
	return 0
}

const iteratorBuilder = "System.Runtime.CompilerServices.AsyncIteratorMethodBuilder."

// isMove reports whether a name is that of a method of the state machine of an async iterator that
// runs its body: T+<Method>d__1.System.Collections.Generic.IAsyncEnumerator<System.Int32>.MoveNextAsync().
func isMove(name string) bool {
	t, _, ok := strings.Cut(name, ".System.Collections.Generic.IAsyncEnumerator<")
	if !ok {
		t, _, ok = strings.Cut(name, ".System.IAsyncDisposable.DisposeAsync(")
	}
	return ok && isBody(t+".MoveNext()")
}

// isMethod reports whether a name is that of a method Type.Method.
func isMethod(name, method string) bool {
	if i := strings.IndexByte(name, '('); i >= 0 {
		name = name[:i]
	}
	return withoutArguments(name) == method
}
