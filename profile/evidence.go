package profile

import "github.com/tracefix/tracefix/internal/relay"

// DropEvidence takes the stacks of other events out of p once the repair has used them:
// what is written does not depend on whether they were read. Those that have a Value stay.
func (p *Profile) DropEvidence() {
	relay.Each(len(p.Threads), func(i int) {
		t := p.Threads[i]
		t.Tasks, t.Walks = TaskMarks{}, Walks{}
		if t.Samples.Count(SampleEvent) > 0 {
			dropEvents(t)
		}
	})
}

// dropEvents drops the samples of other events, with their repairs.
func dropEvents(t *Thread) {
	repairs := t.NewRepairs()
	old := t.Repairs.Cursor()
	i, kept, next := -1, 0, 0
	t.Samples.Delete(func(s *Sample) bool {
		i++
		valued := false
		for ; next < t.Values.Len(); next++ {
			v := t.Values.Change(next)
			if int(v.Index) > i {
				break
			}
			valued = true
			v.Index = int32(kept)
		}
		if s.Type == SampleEvent && !valued {
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
	t.Values.Done()
}
