package stackfix

import "slices"

// A Tree is a Stacks in memory. The zero Tree is not usable.
type Tree struct {
	parent []StackID
	frame  []FrameID
	depth  []int32
	slots  []StackID // open addressing over (parent, frame); 0 is free
}

// NewTree returns a tree that holds the empty stack only.
func NewTree() *Tree {
	return &Tree{
		parent: []StackID{0},
		frame:  []FrameID{0},
		depth:  []int32{0},
		slots:  make([]StackID, 256),
	}
}

// Parent returns the stack of the callers of the innermost frame of s.
func (t *Tree) Parent(s StackID) StackID { return t.parent[s] }

// Frame returns the innermost frame of s, which must not be the empty stack.
func (t *Tree) Frame(s StackID) FrameID { return t.frame[s] }

// Depth returns the number of frames of s.
func (t *Tree) Depth(s StackID) int { return int(t.depth[s]) }

// Len returns the number of stacks, the empty one included: ids are below it.
func (t *Tree) Len() int { return len(t.parent) }

// Push returns the stack in which callers calls f.
func (t *Tree) Push(callers StackID, f FrameID) StackID {
	mask := uint64(len(t.slots) - 1)
	i := hash2(callers, f) & mask
	for t.slots[i] != 0 {
		s := t.slots[i]
		if t.parent[s] == callers && t.frame[s] == f {
			return s
		}
		i = (i + 1) & mask
	}
	s := StackID(len(t.parent))
	t.parent = append(t.parent, callers)
	t.frame = append(t.frame, f)
	t.depth = append(t.depth, t.depth[callers]+1)
	t.slots[i] = s
	if len(t.parent)*4 > len(t.slots)*3 {
		t.grow()
	}
	return s
}

func (t *Tree) grow() {
	t.slots = make([]StackID, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for s := 1; s < len(t.parent); s++ {
		i := hash2(t.parent[s], t.frame[s]) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = StackID(s)
	}
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
	n, d := len(dst), int(t.depth[s])
	dst = slices.Grow(dst, d)[:n+d]
	for i := n + d - 1; i >= n; i-- {
		dst[i] = t.frame[s]
		s = t.parent[s]
	}
	return dst
}

// appendNodes appends the frames of s, root first, to fs, and the stack down to each
// to nodes.
func (t *Tree) appendNodes(fs []FrameID, nodes []StackID, s StackID) ([]FrameID, []StackID) {
	n, d := len(fs), int(t.depth[s])
	fs = slices.Grow(fs, d)[:n+d]
	nodes = slices.Grow(nodes, d)[:n+d]
	for i := n + d - 1; i >= n; i-- {
		fs[i], nodes[i] = t.frame[s], s
		s = t.parent[s]
	}
	return fs, nodes
}

func hash2(a, b uint32) uint64 {
	h := (uint64(a)<<32 | uint64(b)) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}
