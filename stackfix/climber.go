package stackfix

import (
	"slices"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// A climber is a tree in which one gets from a stack to those further out by jumps.
type climber struct {
	*stacks.Tree
	skips []skip  // of each stack
	base  StackID // of a fork: where there are none until its first own one
}

type skip struct {
	depth int32 // that of the tree, nearer to jump
	// jump is a stack further out, so chosen that any stack further out is reached
	// in a number of steps that grows with the logarithm of the depth.
	jump StackID
	// outer is the stack of its outermost frames, up to outerFrames.
	outer StackID
}

// outerFrames is how many are kept: where roots differ by rootSlack frames one stack has the
// outermost frame of the other one here.
const outerFrames = rootSlack + 1

// newClimber returns tree with jumps.
func newClimber(tree *stacks.Tree) *climber {
	t := &climber{Tree: tree, skips: make([]skip, 1, tree.Len()+min(tree.Len()/2, roomToGrow))}
	t.follow()
	return t
}

// follow takes in what was pushed on the tree.
func (t *climber) follow() {
	for s := StackID(len(t.skips)); int(s) < t.Len(); s++ {
		callers := t.Parent(s)
		x := skip{depth: t.skips[callers].depth + 1, jump: callers, outer: t.skips[callers].outer}
		// skew-binary numbers: two jumps of one length make one of twice that and one
		if j := t.skips[callers].jump; t.Depth(callers)-t.Depth(j) == t.Depth(j)-t.Depth(t.skips[j].jump) {
			x.jump = t.skips[j].jump
		}
		if x.depth <= outerFrames {
			x.outer = s
		}
		if n := len(t.skips); n == cap(t.skips) {
			more := make([]skip, n, n+n/2)
			copy(more, t.skips[:t.base])
			copy(more[t.First():], t.skips[t.First():])
			t.skips = more
		}
		t.skips = append(t.skips, x)
	}
}

// fork is Fork. Less room is enough if there is so much in the memory that the tree has: more is
// got by a copy.
func (t *climber) fork(n, room int) []*climber {
	if free := min(t.Room(), cap(t.skips)-len(t.skips)) / n; free >= room/fewRooms {
		room = min(room, free)
	}
	t.skips = slices.Grow(t.skips, n*room)
	forks := make([]*climber, n)
	for i, tree := range t.Tree.Fork(n, room) {
		first := int(tree.First())
		forks[i] = &climber{Tree: tree, skips: t.skips[: first : first+room], base: StackID(t.Len())}
	}
	return forks
}

// fewRooms is the part of the room of a fork that is enough.
const fewRooms = 8

// Grow makes room for n more stacks.
func (t *climber) Grow(n int) {
	t.Tree.Grow(n)
	t.skips = slices.Grow(t.skips, n)
}

// Depth returns the number of frames of s.
func (t *climber) Depth(s StackID) int { return int(t.skips[s].depth) }

// Push returns the stack in which callers calls f.
func (t *climber) Push(callers StackID, f FrameID) StackID {
	s := t.Tree.Push(callers, f)
	if int(s) >= len(t.skips) {
		t.follow()
	}
	return s
}

// Join returns the stack in which s calls frames, each of which calls the next.
func (t *climber) Join(s StackID, frames []FrameID) StackID {
	s = t.Tree.Join(s, frames)
	t.follow()
	return s
}

// Add returns the stack with these frames, root first.
func (t *climber) Add(frames ...FrameID) StackID { return t.Join(0, frames) }

// Truncate forgets the stacks from n on, which were pushed last.
func (t *climber) Truncate(n int) {
	t.Tree.Truncate(n)
	t.skips = t.skips[:min(n, len(t.skips))] // others may have pushed on the tree
}

// up returns the stack of the outermost n frames of s, or s if it has no more.
func (t *climber) up(s StackID, n int) StackID {
	for t.Depth(s) > n {
		if j := t.skips[s].jump; t.Depth(j) >= n {
			s = j
		} else {
			s = t.Parent(s)
		}
	}
	return s
}

// first returns the first of s and the stacks further out, s first, that is in a set.
// The set holds the empty stack, and with a stack all that are further out.
func (t *climber) first(s StackID, in func(StackID) bool) StackID {
	for !in(s) {
		if j := t.skips[s].jump; !in(j) {
			s = j
		} else {
			s = t.Parent(s)
		}
	}
	return s
}

// shared returns the stack of the outermost frames that a and b share.
func (t *climber) shared(a, b StackID) StackID {
	a, b = t.up(a, t.Depth(b)), t.up(b, t.Depth(a))
	for a != b {
		// stacks of one depth have jumps of one length
		if x, y := t.skips[a].jump, t.skips[b].jump; x != y {
			a, b = x, y
		} else {
			a, b = t.Parent(a), t.Parent(b)
		}
	}
	return a
}

// common returns how many root frames p has in common with each of two sides, given
// how many these have: the depths of climber.shared, for many p.
func (t *climber) common(p StackID, f, b []StackID, sides int) (int, int) {
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

// sharedOn returns how many root frames s has in common with a path, each stack of which is the
// caller of the next, and the stack of one frame more of s; 0 if it has no more.
func (t *climber) sharedOn(s StackID, path []StackID) (d int, next StackID) {
	on := func(s StackID) bool {
		d := t.Depth(s)
		return d == 0 || d <= len(path) && path[d-1] == s
	}
	for !on(s) {
		if j := t.skips[s].jump; !on(j) {
			s = j
		} else {
			s, next = t.Parent(s), s
		}
	}
	return t.Depth(s), next
}

// appendNodes appends the frames of s, root first, to fs, and the stack down to each
// to nodes.
func (t *climber) appendNodes(fs []FrameID, nodes []StackID, s StackID) ([]FrameID, []StackID) {
	n, d := len(fs), t.Depth(s)
	fs = slices.Grow(fs, d)[:n+d]
	nodes = slices.Grow(nodes, d)[:n+d]
	for i := n + d - 1; i >= n; i-- {
		nodes[i] = s
		s, fs[i] = t.Node(s)
	}
	return fs, nodes
}

// appendInner appends the frames of s but for its outermost n, root first.
func (t *climber) appendInner(fs []FrameID, s StackID, n int) []FrameID {
	from := len(fs)
	d := max(t.Depth(s)-n, 0)
	fs = slices.Grow(fs, d)[:from+d]
	for i := from + d - 1; i >= from; i-- {
		s, fs[i] = t.Node(s)
	}
	return fs
}
