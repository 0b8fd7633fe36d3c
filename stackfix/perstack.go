package stackfix

// perStack has a value for each stack. To forget them costs what was in use, and not what
// the tree holds, of which a process may be a small part.
type perStack[T any] struct {
	of   []T       // by stack
	used []StackID // those with a value, each once
}

// reach makes room for the stacks below n, and for some that a trial or a repair adds.
func (x *perStack[T]) reach(n int) {
	if n > cap(x.of) {
		x.of = append(make([]T, 0, n+min(n/4, roomToGrow)), x.of...)
	}
	x.of = reach(x.of, n)
}

// roomToGrow is about how many stacks a trial adds to those of the recording.
const roomToGrow = 1 << 18

// reset forgets all values.
func (x *perStack[T]) reset() {
	var none T
	for _, s := range x.used {
		x.of[s] = none
	}
	x.used = x.used[:0]
}

// A stackSet is a set of stacks.
type stackSet struct{ perStack[bool] }

// add adds s and reports whether it is new.
func (x *stackSet) add(s StackID) bool {
	if int(s) >= len(x.of) {
		x.reach(int(s) + 1)
	}
	if x.of[s] {
		return false
	}
	x.of[s] = true
	x.used = append(x.used, s)
	return true
}

func (x *stackSet) has(s StackID) bool { return int(s) < len(x.of) && x.of[s] }
