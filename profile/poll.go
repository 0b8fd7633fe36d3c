package profile

// FoldPolls charges samples in Thread.PollGC to their callers: it is where the sampler itself
// stops threads that run, and no work of the program.
func (p *Profile) FoldPolls() {
	polls := make([]bool, p.Table.Methods())
	for i := range polls {
		polls[i] = p.Table.MethodAt(MethodID(i)).IsPoll()
	}
	below := map[StackID]StackID{}
	for _, t := range p.Threads {
		t.Samples.Change(func(s *Sample) bool {
			to, known := below[s.Stack]
			if !known {
				to = s.Stack
				for to != 0 && polls[p.Table.Method(p.Table.Frame(to))] && p.Table.Parent(to) != 0 {
					to = p.Table.Parent(to)
				}
				below[s.Stack] = to
			}
			changed := to != s.Stack
			s.Stack = to
			return changed
		})
	}
}
