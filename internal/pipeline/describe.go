package pipeline

import (
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/trace"
)

// Describe fills in what the report says of the samples of p and of their repairs;
// each asks for a row per repaired sample.
func Describe(p *trace.Profile, each bool, rep *report.Trace) {
	rep.Threads = len(p.Threads)
	rep.Samples, rep.Cut, rep.CutBy, rep.Repaired, rep.Restored = 0, 0, map[string]int{}, map[string]int{}, 0
	for _, t := range p.Threads {
		repairs := t.Repairs.Cursor()
		for i, s := range t.Samples.All() {
			if s.Type != trace.SampleEvent {
				rep.Samples++
			}
			r := repairs.Of(i)
			if s.Cut == trace.Whole || s.Type == trace.SampleEvent {
				continue
			}
			rep.Cut++
			rep.CutBy[s.Cut.String()]++
			if r == nil {
				continue
			}
			rep.Repaired[r.How]++
			rep.Restored += r.Restored
			if each {
				rep.Repairs = append(rep.Repairs, report.Repair{
					Ms: float64(s.Time) / 1e6, PID: t.Process.PID, TID: t.TID, Why: s.Cut.String(),
					Depth: p.Table.Depth(r.Recorded), How: r.How, Restored: r.Restored, Confidence: float64(r.Confidence),
				})
			}
		}
	}
	lost := int64(0)
	for _, l := range p.Losses {
		lost += l.Events
	}
	rep.Lost = max(rep.Lost, lost) // a reader may have counted more than it lists
}
