// Package stacks holds call stacks as a tree, in which stacks share the callers that they
// have in common: what readers fill, package stackfix repairs and writers go through.
package stacks

import "slices"

type (
	// StackID names a stack of a Tree. 0 is the empty stack.
	StackID = uint32
	// FrameID names a frame: what two stacks may share. What it stands for is the
	// caller's own.
	FrameID = uint32
)

// A Tree holds stacks. Each is an innermost frame and the stack of its callers, so that
// stacks share what they have in common. Ids are dense, from 0, the empty stack, on. The
// zero Tree is not usable.
type Tree struct {
	nodes  []node
	depths []int32   // of each node
	slots  []StackID // open addressing over (callers, frame) of all that follow not; 0 is free
	held   int       // slots in use

	// of a fork
	of    *Tree   // whose stacks it holds, too
	base  StackID // that one's number of stacks
	first StackID // the first stack of its own; there is none between base and first
}

// A node is one stack. Most stacks are read frame by frame, and these lie together: the depth is
// apart. Most follow their callers, as the next stack that was pushed, and are found without a look
// at the slots.
type node struct {
	callers StackID
	frame   FrameID
}

// follows tells whether s is found by its callers alone.
func (t *Tree) follows(s StackID) bool { return t.nodes[s].callers+1 == s }

// NewTree returns a tree that holds the empty stack only.
func NewTree() *Tree {
	return &Tree{nodes: make([]node, 1, 64), depths: make([]int32, 1, 64), slots: make([]StackID, 64)}
}

// Parent returns the stack of the callers of the innermost frame of s.
func (t *Tree) Parent(s StackID) StackID { return t.nodes[s].callers }

// Frame returns the innermost frame of s, which must not be the empty stack.
func (t *Tree) Frame(s StackID) FrameID { return t.nodes[s].frame }

// Node returns the stack of the callers of the innermost frame of s, and the frame.
func (t *Tree) Node(s StackID) (callers StackID, f FrameID) {
	n := &t.nodes[s]
	return n.callers, n.frame
}

// Depth returns the number of frames of s.
func (t *Tree) Depth(s StackID) int { return int(t.depths[s]) }

// Len returns the number of stacks, the empty one included: ids are below it.
func (t *Tree) Len() int { return len(t.nodes) }

// Push returns the stack in which callers calls f. Equal arguments give equal ids.
func (t *Tree) Push(callers StackID, f FrameID) StackID {
	next := callers + 1
	if int(next) == len(t.nodes) { // nothing was pushed on the newest one
		return t.add(callers, f)
	}
	if next >= t.first || next < t.base { // what is between is that of another fork
		if n := &t.nodes[next]; n.callers == callers && n.frame == f {
			return next
		}
	}
	if callers < t.first {
		if i := t.of.find(callers, f); t.of.slots[i] != 0 {
			return t.of.slots[i]
		}
	}
	i := t.find(callers, f)
	if t.slots[i] != 0 {
		return t.slots[i]
	}
	s := t.add(callers, f)
	t.slots[i] = s
	if t.held++; t.held*4 > len(t.slots)*3 {
		t.grow()
	}
	return s
}

// find returns the slot of the stack in which callers calls f, which is free if there is none.
func (t *Tree) find(callers StackID, f FrameID) uint64 {
	mask := uint64(len(t.slots) - 1)
	i := hash2(callers, f) & mask
	for t.slots[i] != 0 {
		if n := &t.nodes[t.slots[i]]; n.callers == callers && n.frame == f {
			break
		}
		i = (i + 1) & mask
	}
	return i
}

// Fork returns trees that hold the stacks of t, n of them, and are changed by one goroutine each
// while t is not. They share its memory, where each has room for so many stacks of its own: with
// more it has a copy. They are of no use once t was changed. Ids of their own stacks are not dense;
// see First.
func (t *Tree) Fork(n, room int) []*Tree {
	t.Grow(n * room)
	forks := make([]*Tree, n)
	for i := range forks {
		first := len(t.nodes) + i*room
		forks[i] = &Tree{
			nodes: t.nodes[: first : first+room], depths: t.depths[: first : first+room], slots: make([]StackID, 64),
			of: t, base: StackID(len(t.nodes)), first: StackID(first),
		}
	}
	return forks
}

// First returns the first id of the stacks that a fork has of its own, which reach from there to Len.
func (t *Tree) First() StackID { return t.first }

// Grow makes room for n more stacks.
func (t *Tree) Grow(n int) {
	t.nodes, t.depths = slices.Grow(t.nodes, n), slices.Grow(t.depths, n)
}

// Room returns for how many more stacks there is room.
func (t *Tree) Room() int { return min(cap(t.nodes)-len(t.nodes), cap(t.depths)-len(t.depths)) }

// add appends the stack in which callers calls f.
func (t *Tree) add(callers StackID, f FrameID) StackID {
	s := StackID(len(t.nodes))
	if len(t.nodes) == cap(t.nodes) {
		t.nodes = withRoom(t.nodes, t.base, t.first)
	}
	if len(t.depths) == cap(t.depths) {
		t.depths = withRoom(t.depths, t.base, t.first)
	}
	t.nodes = append(t.nodes, node{callers, f})
	t.depths = append(t.depths, t.depths[callers]+1)
	return s
}

// withRoom returns s, but for what lies between base and first, with room for half as many more.
// append copies large ones twice as often, and touches the room, which the system gives only where
// it is touched.
func withRoom[T any](s []T, base, first StackID) []T {
	more := make([]T, len(s), len(s)+len(s)/2+1)
	copy(more, s[:base])
	copy(more[first:], s[first:])
	return more
}

// grow makes room for twice as many slots. It takes the stacks in the order of their ids,
// so that a slot never depends on a newer stack.
func (t *Tree) grow() {
	t.slots = make([]StackID, 2*len(t.slots))
	for s := max(1, t.first); int(s) < len(t.nodes); s++ {
		if !t.follows(s) {
			t.slots[t.slot(s)] = s
		}
	}
}

// Truncate forgets the stacks from n on, which were pushed last.
func (t *Tree) Truncate(n int) {
	if n == 1 && t.of == nil { // there is none to keep a slot for
		clear(t.slots)
		t.held = 0
		t.nodes, t.depths = t.nodes[:n], t.depths[:n]
		return
	}
	for s := StackID(len(t.nodes) - 1); int(s) >= n; s-- {
		if !t.follows(s) {
			t.slots[t.slot(s)] = 0
			t.held--
		}
	}
	t.nodes, t.depths = t.nodes[:n], t.depths[:n]
}

// slot returns the slot of s: its own, or a free one.
func (t *Tree) slot(s StackID) uint64 { return t.find(t.nodes[s].callers, t.nodes[s].frame) }

// Add returns the stack with these frames, root first.
func (t *Tree) Add(frames ...FrameID) StackID { return t.Join(0, frames) }

// Join returns the stack in which s calls frames, each of which calls the next.
func (t *Tree) Join(s StackID, frames []FrameID) StackID {
	for _, f := range frames {
		s = t.Push(s, f)
	}
	return s
}

// AppendFrames appends the frames of s, root first, to dst and returns it.
func (t *Tree) AppendFrames(dst []FrameID, s StackID) []FrameID {
	n, d := len(dst), t.Depth(s)
	dst = slices.Grow(dst, d)[:n+d]
	for i := n + d - 1; i >= n; i-- {
		s, dst[i] = t.Node(s)
	}
	return dst
}

func hash2(a, b uint32) uint64 {
	h := (uint64(a)<<32 | uint64(b)) * 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	return h ^ h>>29
}
