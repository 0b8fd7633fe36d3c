package pass

import "github.com/tracefix/tracefix/internal/trace"

// DropEvidence takes the stacks of other events out of p once the repair has used them:
// what is written does not depend on whether they were read.
func DropEvidence(p *trace.Profile) {
	for _, t := range p.Threads {
		if t.Samples.Count(trace.SampleEvent) == 0 {
			continue
		}
		keepSamples(t, func(s *trace.Sample) bool { return s.Type != trace.SampleEvent })
	}
}
