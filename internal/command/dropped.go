package command

import (
	"context"
	"slices"
	"time"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/requests"
)

// asked are the filters that were given, of those that what info tells can explain.
type asked struct {
	WhoFlags
	TimeFlags
	WorkFlags
	provider, event []string
}

// any reports whether a filter was given.
func (a *asked) any() bool {
	return len(a.Process)+len(a.Thread)+len(a.Activity)+len(a.Request)+len(a.provider)+len(a.event) > 0 || a.From != 0 || a.To != 0
}

// DropAll says that the filters drop all of a trace, and what there is for those that were given.
func DropAll(ctx context.Context, in *input.File, who WhoFlags, time TimeFlags, work WorkFlags) string {
	return (&asked{WhoFlags: who, TimeFlags: time, WorkFlags: work}).dropAll(ctx, &Call{In: in})
}

// dropAll says that the filters drop all, and what there is for those that were given. It reads
// the trace once more, since there is nothing else to be done with it.
func (a *asked) dropAll(ctx context.Context, c *Call) string {
	what := "the filters drop all"
	facts, _ := info.Nettrace(ctx, c.In, &info.Options{Light: true})
	if facts == nil {
		return what
	}
	if a.From != 0 || a.To != 0 {
		what += runsTo(time.Duration(facts.DurationMs * 1e6))
	}
	if len(a.Process) > 0 {
		var list []string
		for _, p := range facts.Processes {
			list = append(list, who(p.Name, int64(p.PID)))
		}
		what += "; its processes are " + few(list)
	}
	if len(a.Thread) > 0 {
		var list []string
		for _, t := range facts.Threads {
			list = append(list, who(t.Name, int64(t.TID)))
		}
		what += "; its threads are " + few(list)
	}
	if len(a.provider) > 0 {
		var list []string
		for _, p := range facts.Providers {
			list = append(list, p.Name)
		}
		what += anyNearest(a.provider, list, "providers")
	}
	if len(a.event) > 0 {
		var list []string
		for _, p := range facts.Providers {
			for _, t := range p.Types {
				list = append(list, t.Name)
			}
		}
		slices.Sort(list)
		what += anyNearest(a.event, slices.Compact(list), "events")
	}
	if len(a.Activity) > 0 {
		var list []string
		if tree, _, err := requests.Activities(ctx, c.In, nil); err == nil {
			for i := range tree.Rows {
				list = append(list, tree.Rows[i].Name)
			}
		}
		slices.Sort(list)
		what += anyNearest(a.Activity, slices.Compact(list), "activities")
	}
	if len(a.Request) > 0 {
		var list []string
		_ = eachRequest(ctx, c, func(r httpRow) { // what was read until then will do
			if url := r.url(); url != "" && len(list) < mostNames && !slices.Contains(list, url) {
				list = append(list, url)
			}
		})
		what += anyNearest(a.Request, list, "requests")
	}
	return what
}

// mostNames is how many names are compared with one that is not there.
const mostNames = 1000

// anyNearest offers the names that patterns may have meant, else the first of all.
func anyNearest(patterns, names []string, kind string) string {
	for _, p := range patterns {
		if near := nearest(p, names); near != "" {
			return near
		}
	}
	if len(names) == 0 {
		return "; it has no " + kind
	}
	return "; its " + kind + " are " + few(names)
}
