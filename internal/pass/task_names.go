package pass

import "strings"

// isBody reports whether a name is that of the body of an async method or of an iterator:
// Type+<Method>d__1.MoveNext().
func isBody(name string) bool {
	t, ok := strings.CutSuffix(name, ".MoveNext()")
	if !ok {
		return false
	}
	t = withoutArguments(t)
	i := strings.LastIndex(t, "+<")
	return i >= 0 && strings.Contains(t[i:], ">d")
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
