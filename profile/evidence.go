package profile

// DropEvidence takes the stacks of other events out of p once the repair has used them:
// what is written does not depend on whether they were read.
func (p *Profile) DropEvidence() {
	for _, t := range p.Threads {
		t.Tasks = nil
		if t.Samples.Count(SampleEvent) == 0 {
			continue
		}
		dropEvents(t)
	}
}

// dropEvents drops the samples of other events, with their repairs.
func dropEvents(t *Thread) {
	var repairs Repairs
	old := t.Repairs.Cursor()
	i, kept := -1, 0
	t.Samples.Delete(func(s *Sample) bool {
		i++
		if s.Type == SampleEvent {
			return true
		}
		if r := old.Of(i); r != nil {
			r.Index = kept
			repairs.Append(*r)
		}
		kept++
		return false
	})
	t.Repairs = repairs
}
