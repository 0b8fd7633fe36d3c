package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// describe fills in what the report says of the samples of p and of their repairs, and returns all
// that was counted.
func (c *Config) describe(p *profile.Profile, rep *report.Trace) profile.Counts {
	n := p.Counts()
	rep.Threads, rep.Samples, rep.Cut, rep.CutBy = n.Threads, n.Samples, n.Cut, n.CutBy
	rep.CutEvents = n.CutEvents
	if c.Repair {
		rep.Repaired, rep.Restored = n.Repaired, n.Restored
		if c.EachRepair {
			rep.Repairs = repairsOf(p)
		}
		if n.Bridged > 0 {
			rep.Rest = rest(p)
		}
	}
	e := p.Meta.Earlier
	if e.Samples == 0 && !c.Repair {
		e = profile.Earlier{Samples: n.Known + n.Bridged, Bridged: n.Bridged, Restored: n.Restored}
	}
	if e.Samples > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("repaired before: %s sample%s, %s of them bridged, %s frames restored", report.Count(e.Samples), report.Plural(e.Samples), report.Count(e.Bridged), report.Count(e.Restored)))
	}
	lost := int64(0)
	for _, l := range p.Losses {
		lost += l.Events
	}
	rep.Lost = max(rep.Lost, lost) // a reader may have counted more than it lists
	return n
}

// A repairRecord is one repaired sample as it is kept for the report.
type repairRecord struct {
	time, pid, tid         int64
	how                    int // in the list of texts
	cut                    profile.Cut
	depth, restored, above int32
	conf, aboveConf, base  float32
}

// repairsOf lists the repaired samples of p; nil if there are none. It keeps nothing of p.
func repairsOf(p *profile.Profile) *report.Repairs {
	aside := input.Aside(4 << 20)
	list := spool.ListIn[repairRecord](aside)
	var hows []string
	for t, s := range p.Cuts() {
		r := s.Repair
		if r == nil || s.Type == profile.SampleEvent {
			continue
		}
		how := slices.Index(hows, r.How)
		if how < 0 {
			how, hows = len(hows), append(hows, r.How)
		}
		list.Add(&repairRecord{
			time: s.Time, pid: t.Process.PID, tid: t.TID, how: how, cut: s.Cut,
			depth: int32(p.Table.Depth(r.Recorded)), restored: int32(r.Restored), above: int32(r.Above),
			conf: r.Confidence, aboveConf: r.AboveConfidence, base: r.BaseConfidence,
		})
	}
	if list.Len() == 0 {
		return nil
	}
	return &report.Repairs{Err: aside.Err, All: func(yield func(report.Repair) bool) {
		for i := range list.Len() {
			r := list.At(i)
			if !yield(report.Repair{
				Ms: text.Millis(r.time), PID: r.pid, TID: r.tid, Why: r.cut.String(),
				Depth: int(r.depth), How: hows[r.how], Restored: int(r.restored), Confidence: float64(r.conf),
				Above: int(r.above), AboveConfidence: float64(r.aboveConf), BaseConfidence: float64(r.base),
			}) {
				return
			}
		}
	}}
}

// measure tells what a comparison of batches needs of the samples: the hottest methods.
func (c *Config) measure(p *profile.Profile, rep *report.Trace) {
	if !c.Measure {
		return
	}
	self, all := map[string]float64{}, 0.0
	for r := range p.Top(profile.TopOptions{}).Rows() {
		if r.CPUSelf > 0 {
			self[r.Method] += r.CPUSelf
			all += r.CPUSelf
		}
	}
	var m report.Measurer
	m.Hot(self, all)
	rep.Measures = m.One()
}

// rest tells where the samples are that a repair had to bridge.
func rest(p *profile.Profile) *report.Rest {
	counts := make([]int, len(p.Threads))
	stacks := map[profile.StackID]int{}
	for _, own := range relay.Shares(len(p.Threads), func(own *map[profile.StackID]int, i int) {
		if *own == nil {
			*own = map[profile.StackID]int{}
		}
		n := 0
		for s := range p.Threads[i].Cuts() {
			if s.Type != profile.SampleEvent && s.Repair != nil && s.Repair.How == profile.HowBridge {
				n++
				(*own)[s.Repair.Recorded]++
			}
		}
		counts[i] = n
	}) {
		for id, n := range *own {
			stacks[id] += n
		}
	}
	tab := p.Table
	synthetic := tab.Synthetic()
	outermost := map[profile.MethodID]int{}
	empty := 0
	for id, n := range stacks {
		var m profile.MethodID
		found := false
		for ; id != 0; id = tab.Parent(id) {
			if x := tab.Method(tab.Frame(id)); !synthetic[x] {
				m, found = x, true
			}
		}
		if found {
			outermost[m] += n
		} else {
			empty += n
		}
	}
	named, methods := map[string]int{}, map[string]int{}
	for i, n := range counts {
		if n > 0 {
			named[nameOf(p.Threads[i])] += n
		}
	}
	for m, n := range outermost {
		methods[tab.MethodAt(m).Full()] += n
	}
	if empty > 0 {
		methods["nothing: their stacks are empty"] += empty
	}
	return &report.Rest{Threads: most(named), Methods: most(methods)}
}

// nameOf names a thread so that no two have one name.
func nameOf(t *profile.Thread) string {
	if t.Name == "" {
		return fmt.Sprintf("thread %d", t.TID)
	}
	return fmt.Sprintf("%s %d", t.Name, t.TID)
}

// most are the entries with the highest counts.
func most(counts map[string]int) (list []report.Share) {
	for name, n := range counts {
		list = append(list, report.Share{Name: strings.ToValidUTF8(name, "\uFFFD"), Samples: n})
	}
	text.SortRows(list, func(a, b *report.Share) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), report.MaxRest)]
}

// advise tells what can be done about the cut samples that a repair had to bridge, and
// without one what their number is worth: of spans nothing but a repair tells which
// stacks at the limit are complete.
func advise(p *profile.Profile, c *Config, rep *report.Trace) {
	spans := !strings.HasPrefix(p.Meta.Format, "net")
	told := p.Meta.Format == "ndjson" // which stacks are cut, and what a repair made of them
	if n := rep.CutBy["depth"]; n > 0 && spans && !told && !c.Repair {
		rep.Notes = append(rep.Notes, fmt.Sprintf("stacks as deep as the limit of %d frames count as cut: %s; repair and info tell those apart that are complete", p.Meta.DepthLimit, report.Count(n)))
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
	switch {
	case p.Meta.Format == "perf script":
		do = append(do, "`sysctl kernel.perf_event_max_stack=1024` before `perf record` keeps deeper stacks")
	case spans:
		do = append(do, "the .nettrace that this file was made from tells more: repair that")
	}
	if rep.CutBy["bytes"] > 0 {
		do = append(do, "collect-linux copies 4 KiB of each stack, `dotnet-trace collect` records 100 frames")
	}
	if len(do) > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s not sure enough: %s", report.Count(bridged), strings.Join(do, "; ")))
	}
}
