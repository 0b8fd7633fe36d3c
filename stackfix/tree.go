package stackfix

import "slices"

// A Tree is a Stacks in memory. The zero Tree is not usable.
type Tree struct {
	nodes []node
	skips []skip    // of each node
	slots []StackID // open addressing over (parent, frame) of all but first children; 0 is free
	held  int       // slots in use
}

// A node is one stack. Most stacks are read frame by frame, and these lie together: what
// is for the rest is apart.
type node struct {
	parent StackID
	frame  FrameID
}

type skip struct {
	depth int32
	// jump is a stack further out, so chosen that any stack further out is reached
	// in a number of steps that grows with the logarithm of the depth.
	jump StackID
	// outer is the stack of its outermost frames, up to outerFrames.
	outer StackID
	// child is the first stack that was pushed on this one. Most stacks have no
	// other, and are found without a look at the slots.
	child StackID
}

const outerFrames = 3

// NewTree returns a tree that holds the empty stack only.
func NewTree() *Tree {
	return &Tree{nodes: make([]node, 1, 64), skips: make([]skip, 1, 64), slots: make([]StackID, 64)}
}

// Parent returns the stack of the callers of the innermost frame of s.
func (t *Tree) Parent(s StackID) StackID { return t.nodes[s].parent }

// Frame returns the innermost frame of s, which must not be the empty stack.
func (t *Tree) Frame(s StackID) FrameID { return t.nodes[s].frame }

// Depth returns the number of frames of s.
func (t *Tree) Depth(s StackID) int { return int(t.skips[s].depth) }

// Len returns the number of stacks, the empty one included: ids are below it.
func (t *Tree) Len() int { return len(t.nodes) }

// Push returns the stack in which callers calls f.
func (t *Tree) Push(callers StackID, f FrameID) StackID {
	switch c := t.skips[callers].child; {
	case c == 0:
		s := t.add(callers, f)
		t.skips[callers].child = s
		return s
	case t.nodes[c].frame == f:
		return c
	}
	mask := uint64(len(t.slots) - 1)
	i := hash2(callers, f) & mask
	for t.slots[i] != 0 {
		if n := &t.nodes[t.slots[i]]; n.parent == callers && n.frame == f {
			return t.slots[i]
		}
		i = (i + 1) & mask
	}
	s := t.add(callers, f)
	t.slots[i] = s
	if t.held++; t.held*2 > len(t.slots) {
		t.grow()
	}
	return s
}

// add appends the stack in which callers calls f.
func (t *Tree) add(callers StackID, f FrameID) StackID {
	if len(t.nodes) == cap(t.nodes) {
		t.nodes = slices.Grow(t.nodes, len(t.nodes))
		t.skips = slices.Grow(t.skips, len(t.skips))
	}
	p := &t.skips[callers]
	n := skip{depth: p.depth + 1, jump: callers}
	// skew-binary numbers: two jumps of one length make one of twice that and one
	if j := &t.skips[p.jump]; p.depth-j.depth == j.depth-t.skips[j.jump].depth {
		n.jump = j.jump
	}
	s := StackID(len(t.nodes))
	if n.outer = p.outer; n.depth <= outerFrames {
		n.outer = s
	}
	t.nodes = append(t.nodes, node{callers, f})
	t.skips = append(t.skips, n)
	return s
}

func (t *Tree) grow() {
	old := t.slots
	t.slots = make([]StackID, 2*len(old))
	for _, s := range old {
		if s != 0 {
			t.slots[t.slot(s)] = s
		}
	}
}

// truncate forgets the stacks from n on, which were pushed last.
func (t *Tree) truncate(n int) {
	for s := n; s < len(t.nodes); s++ {
		if p := &t.skips[t.nodes[s].parent]; int(p.child) >= n {
			p.child = 0
		}
	}
	old := t.slots
	t.slots, t.held = make([]StackID, len(old)), 0
	for _, s := range old {
		if s != 0 && int(s) < n {
			t.slots[t.slot(s)] = s
			t.held++
		}
	}
	t.nodes, t.skips = t.nodes[:n], t.skips[:n]
}

// slot returns a free slot for s.
func (t *Tree) slot(s StackID) uint64 {
	mask := uint64(len(t.slots) - 1)
	i := hash2(t.nodes[s].parent, t.nodes[s].frame) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// up returns the stack of the outermost n frames of s, or s if it has no more.
func (t *Tree) up(s StackID, n int) StackID {
	for int(t.skips[s].depth) > n {
		if j := t.skips[s].jump; int(t.skips[j].depth) >= n {
			s = j
		} else {
			s = t.nodes[s].parent
		}
	}
	return s
}

// first returns the first of s and the stacks further out, s first, that is in a set.
// The set holds the empty stack, and with a stack all that are further out.
func (t *Tree) first(s StackID, in func(StackID) bool) StackID {
	for !in(s) {
		if j := t.skips[s].jump; !in(j) {
			s = j
		} else {
			s = t.nodes[s].parent
		}
	}
	return s
}

// shared returns the stack of the outermost frames that a and b share.
func (t *Tree) shared(a, b StackID) StackID {
	a, b = t.up(a, t.Depth(b)), t.up(b, t.Depth(a))
	for a != b {
		// stacks of one depth have jumps of one length
		if x, y := t.skips[a].jump, t.skips[b].jump; x != y {
			a, b = x, y
		} else {
			a, b = t.nodes[a].parent, t.nodes[b].parent
		}
	}
	return a
}

// common returns how many root frames p has in common with each of two sides, given
// how many these have: the depths of Tree.shared, for many p.
func (t *Tree) common(p StackID, f, b []StackID, sides int) (int, int) {
	p = t.first(p, func(p StackID) bool {
		d := t.Depth(p)
		return d == 0 || d <= len(f) && f[d-1] == p || d <= len(b) && b[d-1] == p
	})
	d := t.Depth(p)
	if d > 0 && d <= len(f) && f[d-1] == p {
		return d, min(d, sides)
	}
	return min(d, sides), d
}

// Add returns the stack with these frames, root first.
func (t *Tree) Add(frames ...FrameID) StackID {
	var s StackID
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
		x := &t.nodes[s]
		dst[i] = x.frame
		s = x.parent
	}
	return dst
}

// appendNodes appends the frames of s, root first, to fs, and the stack down to each
// to nodes.
func (t *Tree) appendNodes(fs []FrameID, nodes []StackID, s StackID) ([]FrameID, []StackID) {
	n, d := len(fs), t.Depth(s)
	fs = slices.Grow(fs, d)[:n+d]
	nodes = slices.Grow(nodes, d)[:n+d]
	for i := n + d - 1; i >= n; i-- {
		x := &t.nodes[s]
		fs[i], nodes[i] = x.frame, s
		s = x.parent
	}
	return fs, nodes
}

func hash2(a, b uint32) uint64 {
	h := (uint64(a)<<32 | uint64(b)) * mul
	return h ^ h>>29
}
