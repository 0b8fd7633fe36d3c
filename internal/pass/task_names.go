package pass

import "strings"

// isBody reports whether a name is that of the body of an async method or of an iterator.
func isBody(name string) bool { return methodOf(name) != "" }

// methodOf returns the async method of a body as Type.Method, which the method that callers call has
// before its parameters; "" where the name is none of a body: Type+<Method>d__1.MoveNext() is one of C#,
// Type+VB$StateMachine_1_Method.MoveNext() of Visual Basic and Type+Method@12-1.MoveNext() of F#.
func methodOf(bodyName string) string {
	t, ok := strings.CutSuffix(bodyName, ".MoveNext()")
	if !ok {
		return ""
	}
	t = withoutArguments(t)
	if i := strings.LastIndex(t, "+<"); i >= 0 {
		if j := strings.LastIndex(t[i:], ">d"); j >= 0 {
			return t[:i] + "." + t[i+2:i+j]
		}
	}
	i := strings.LastIndexByte(t, '+')
	if i < 0 {
		return ""
	}
	if machine, ok := strings.CutPrefix(t[i+1:], "VB$StateMachine_"); ok {
		_, method, _ := strings.Cut(machine, "_")
		method, _, _ = strings.Cut(method, "`")
		return t[:i] + "." + method
	}
	if method, _, ok := strings.Cut(t[i+1:], "@"); ok {
		return t[:i] + "." + method
	}
	return ""
}

// withoutArguments takes what stands in brackets out of the name of a type.
func withoutArguments(t string) string {
	if !strings.Contains(t, "[") {
		return t
	}
	var b strings.Builder
	depth := 0
	for _, r := range t {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		default:
			if depth == 0 {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}
