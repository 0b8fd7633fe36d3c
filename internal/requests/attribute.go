package requests

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

// Options returns those of an Engine that follows the stacks of a table. All its frames
// have names.
func Options(t *profile.Table) causality.Options {
	methods := make([]causality.Role, t.Methods())
	for m := range methods {
		methods[m] = causality.RoleOf(t.MethodAt(profile.MethodID(m)).Full())
	}
	return causality.Options{
		Tree:   &t.Tree,
		Role:   func(f profile.FrameID) causality.Role { return methods[t.Method(f)] },
		Method: t.Method,
	}
}

type threadKey struct {
	process uint32
	id      uint64
}

// attribution fills a profile.
type attribution struct {
	p       *profile.Profile
	engine  *causality.Engine
	threads map[threadKey]*profile.Thread
	around  []*causality.Activity // the innermost first
}

// workMemory is how many bytes of what threads worked for stay in memory.
const workMemory = 1 << 20

// Attribute notes in p what its threads worked for. It empties the log.
func Attribute(p *profile.Profile, log *causality.Log) {
	a := attribution{p: p, threads: map[threadKey]*profile.Thread{}}
	for _, t := range p.Threads {
		k := threadKey{uint32(t.Owner().PID), uint64(t.TID)}
		if a.threads[k] == nil {
			a.threads[k] = t
		}
	}
	p.Activities.Spool = input.Aside(workMemory)
	o := Options(p.Table)
	o.Segment, o.Before = a.segment, log.Before()
	a.engine = causality.NewEngine(&o)
	r := log.Read()
	var e causality.Event
	for r.Next(&e) {
		a.engine.Add(&e)
	}
	a.engine.Finish()
	ids := a.engine.IDs()
	p.Activities.Paths = func(id [16]byte) (uint32, string) { return ids.Text(id) }
}

// segment notes what a thread worked for.
func (a *attribution) segment(s *causality.Segment) {
	t := a.threads[threadKey{s.Process, s.Thread}]
	if t == nil || !s.Known || s.Earlier || s.State == causality.Queued || s.Thrown != nil || !a.engine.HasIDs() {
		return
	}
	t.Work.Spool = a.p.Activities.Spool
	t.Work.Add(profile.Work{From: s.From, To: s.To, Activity: a.number(s.Activity)})
}

// number returns the index of an activity among those of the profile. As many as a file says lie in
// each other.
func (a *attribution) number(x *causality.Activity) int32 {
	number := int32(0) // and 1
	a.around = a.around[:0]
	for ; x != nil; x = x.Parent {
		if number = x.Number; number != 0 {
			break
		}
		a.around = append(a.around, x)
	}
	for _, x := range slices.Backward(a.around) {
		x.Number = 1 + a.p.Activities.Add(&profile.Activity{
			Process: x.Process, ID: x.ID, Name: cmp.Or(x.Label, x.Name), Provider: x.Provider, Parent: number - 1, Start: x.Start, Started: x.Started,
		})
		number = x.Number
	}
	clear(a.around)
	return number - 1
}
