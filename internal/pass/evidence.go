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
		keepSamples(t, func(s *trace.Sample) bool { return s.Type != trace.SampleEvent })
	}
}
