package pass

import "github.com/tracefix/tracefix/internal/trace"

// DropEvidence takes the stacks of other events out of p once the repair has used them:
// what is written does not depend on whether they were read.
func DropEvidence(p *trace.Profile) {
	for _, t := range p.Threads {
		other := 0
		for _, s := range t.Samples.All() {
			if s.Type == trace.SampleEvent {
				other++
			}
		}
		if other == 0 {
			continue
		}
		var kept trace.Samples
		var repairs trace.Repairs
		rc := t.Repairs.Cursor()
		for i, s := range t.Samples.All() {
			r := rc.Of(i)
			if s.Type == trace.SampleEvent {
				continue
			}
			if r != nil {
				r.Index = kept.Len()
				repairs.Append(*r)
			}
			kept.Append(s)
		}
		t.Samples, t.Repairs = kept, repairs
	}
}
