package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// describe fills in what the report says of the samples of p and of their repairs;
// each asks for a row per repaired sample.
func describe(p *profile.Profile, each bool, rep *report.Trace) {
	c := p.Counts()
	rep.Threads, rep.Samples, rep.Cut, rep.CutBy = c.Threads, c.Samples, c.Cut, c.CutBy
	rep.Repaired, rep.Restored, rep.AtBridges = c.Repaired, c.Restored, c.AtBridges
	rep.CutEvents, rep.RepairedEvents = c.CutEvents, c.RepairedEvents
	if each {
		for t, s := range p.Cuts() {
			if r := s.Repair; r != nil && s.Type != profile.SampleEvent {
				rep.Repairs = append(rep.Repairs, report.Repair{
					Ms: float64(s.Time) / 1e6, PID: t.Process.PID, TID: t.TID, Why: s.Cut.String(),
					Depth: p.Table.Depth(r.Recorded), How: r.How, Restored: r.Restored, Confidence: float64(r.Confidence),
					Above: r.Above, AboveConfidence: float64(r.AboveConfidence), BaseConfidence: float64(r.BaseConfidence),
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

// advise tells what can be done about the cut samples that a repair had to bridge, and
// without one what their number is worth: of spans nothing but a repair tells which
// stacks at the limit are complete.
func advise(p *profile.Profile, c *Config, rep *report.Trace) {
	spans := !strings.HasPrefix(p.Meta.Format, "net")
	if n := rep.CutBy["depth"]; n > 0 && spans && !c.Repair {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s stacks count as cut since they are as deep as the limit of %d frames; repair and info tell those apart that are complete", report.Count(n), p.Meta.DepthLimit))
	}
	bridged := rep.Repaired["bridge"]
	if !c.Repair || bridged == 0 {
		return
	}
	if p.Meta.Repaired {
		why := "the trace"
		if p.Meta.DepthLimit > 0 {
			why = fmt.Sprintf("stacks of more than %d frames: the trace", p.Meta.DepthLimit)
		}
		rep.Notes = append(rep.Notes, why+" was repaired before, and what that repair could not know stays cut; to repair it in another way take the recording itself")
		return
	}
	rep.MinConfidence = cmp.Or(c.MinConfidence, tracefix.DefaultConfidence)
	var do []string
	if c.CanList && !c.EachRepair {
		do = append(do, "--report FILE lists them")
	}
	if spans {
		do = append(do, "the .nettrace that this file was made from tells more: repair that")
	}
	if rep.CutBy["bytes"] > 0 {
		do = append(do, "collect-linux copies 4 KiB of each stack, `dotnet-trace collect` records 100 frames")
	}
	if len(do) > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s not sure enough: %s", report.Count(bridged), strings.Join(do, "; ")))
	}
}
