package export

import "github.com/tracefix/tracefix/profile"

// A spanner turns the stacks of one thread, one after the other, into frames that
// close and open. Frames are the same for a viewer if their methods are.
type spanner struct {
	table *profile.Table
	skip  []bool // by method

	path []profile.MethodID // open frames, root first
	// closed are the frames that the last step closed, root first; they were at
	// path[keep:].
	closed []profile.MethodID

	buf   []profile.MethodID // what closed lies in
	nodes []profile.StackID  // of the stack that is open, by depth
	seen  []int              // frames of path up to that depth
	walk  []profile.StackID
}

func newSpanner(t *profile.Table, skip []bool) *spanner { return &spanner{table: t, skip: skip} }

// next makes the stack of st the open one; see step.
func (s *spanner) next(st *profile.Stretch) (keep int) {
	shared := 0 // frames that may have been open before
	if st.Joined {
		shared = s.table.Depth(st.Stack) - int(st.Fresh)
	}
	return s.step(st.Stack, shared)
}

// step makes id the open stack, of which all but the outermost shared frames begin anew. It
// returns how many frames stay open: those before path[keep] do, closed closes, path[keep:]
// opens. The cost is that of the frames that differ.
func (s *spanner) step(id profile.StackID, shared int) (keep int) {
	if shared < len(s.nodes) {
		shared = max(shared, 0)
		s.nodes, s.seen = s.nodes[:shared], s.seen[:shared]
	}
	d := s.table.Depth(id)
	s.walk = s.walk[:0]
	for d > 0 && (d > len(s.nodes) || s.nodes[d-1] != id) {
		s.walk = append(s.walk, id)
		id = s.table.Parent(id)
		d--
	}
	if d > 0 {
		keep = s.seen[d-1]
	}
	s.nodes, s.seen = s.nodes[:d], s.seen[:d]
	s.buf = append(s.buf[:0], s.path[keep:]...)
	s.closed = s.buf
	s.path = s.path[:keep]
	same := true
	for i := len(s.walk) - 1; i >= 0; i-- {
		if m := s.table.Method(s.table.Frame(s.walk[i])); !s.skip[m] {
			// Another address of the same method, so another node, is no other frame.
			if same = same && len(s.nodes) < shared && len(s.closed) > 0 && s.closed[0] == m; same {
				s.closed = s.closed[1:]
				keep++
			}
			s.path = append(s.path, m)
		}
		s.nodes = append(s.nodes, s.walk[i])
		s.seen = append(s.seen, len(s.path))
	}
	return keep
}

// inserted returns how many of the outermost frames of a repaired sample were not
// recorded.
func inserted(t *profile.Table, s *profile.Sample, r *profile.Repair) int {
	if r == nil {
		return 0
	}
	return max(0, t.Depth(s.Stack)-(t.Depth(r.Recorded)-r.Dropped))
}
