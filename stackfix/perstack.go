package stackfix

// A heap that grows is expensive: the system hands it out page by page. So what is known of each
// stack of the tree for a while only is held in few bytes, in memory that is used again, and what
// is not used of it is not touched.

// perStack has a value for each stack. To forget them costs what was in use, and not what
// the tree holds, of which a process may be a small part.
type perStack[T any] struct {
	of   []T       // by stack
	used []StackID // those with a value, each once
}

// reach makes room for the stacks below n, and for some that a trial or a repair adds.
func (x *perStack[T]) reach(n int) { x.of = roomFor(x.of, n) }

// roomFor returns s with at least n elements, the new ones zero. s was never longer than it is:
// what lies behind it is zero, and not touched here.
func roomFor[T any](s []T, n int) []T {
	switch {
	case n <= len(s):
		return s
	case n > cap(s):
		s = append(make([]T, 0, n+min(n, roomToGrow)), s...)
	}
	return s[:n]
}

// roomToGrow is about how many stacks a trial or a repair adds to those of the recording.
const roomToGrow = 1 << 18

// reset forgets all values.
func (x *perStack[T]) reset() {
	var none T
	for _, s := range x.used {
		x.of[s] = none
	}
	x.used = x.used[:0]
}

// A stackSet is a set of stacks. It must be reset before it is used.
type stackSet struct {
	of  []uint8 // by stack: now, if it is in the set
	now uint8   // how often it was reset, from 1 on
}

// reset makes the set empty.
func (x *stackSet) reset() {
	if x.now++; x.now == 0 {
		clear(x.of)
		x.now = 1
	}
}

// add adds s and reports whether it is new.
func (x *stackSet) add(s StackID) bool {
	if int(s) >= len(x.of) {
		x.of = roomFor(x.of, int(s)+1)
	}
	if x.of[s] == x.now {
		return false
	}
	x.of[s] = x.now
	return true
}

func (x *stackSet) has(s StackID) bool { return int(s) < len(x.of) && x.of[s] == x.now }

// marks are bits of each stack, up to markBits. They must be reset before they are used.
type marks struct {
	of  []uint8 // by stack: its bits, above those how often all were reset when it had the first
	now uint8
}

const markBits = 3

// reset takes all bits from all stacks.
func (x *marks) reset() {
	if x.now += 1 << markBits; x.now == 0 {
		clear(x.of)
		x.now = 1 << markBits
	}
}

// reach makes room for the stacks below n.
func (x *marks) reach(n int) { x.of = roomFor(x.of, n) }

// has tells whether s, for which there is room, has the bit m.
func (x *marks) has(s StackID, m mark) bool {
	b := x.of[s]
	return b&uint8(m) != 0 && b>>markBits == x.now>>markBits
}

// set gives s, for which there is room, the bit m.
func (x *marks) set(s StackID, m mark) {
	b := &x.of[s]
	if *b>>markBits != x.now>>markBits {
		*b = x.now
	}
	*b |= uint8(m)
}

// A scratchpad has room for three numbers for each stack, for one step at a time: it leaves them 0.
type scratchpad []uint32

// reach makes room for the stacks below n.
func (x *scratchpad) reach(n int) { *x = roomFor(*x, 3*n) }

// has tells whether there is room for s.
func (x scratchpad) has(s StackID) bool { return 3*int(s) < len(x) }

// of returns the numbers of s.
func (x scratchpad) of(s StackID) *[3]uint32 { return (*[3]uint32)(x[3*int(s):]) }

// list returns a number for each of n stacks, which is to be left 0.
func (x *scratchpad) list(n int) []uint32 {
	x.reach((n + 2) / 3)
	return (*x)[:n:n]
}
