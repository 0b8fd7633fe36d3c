package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
)

// asked are the filters that were given, of those that what info tells can explain.
type asked struct {
	WhoFlags
	TimeFlags
	provider, event []string
	other           bool // one of its own
}

// any reports whether a filter was given.
func (a *asked) any() bool {
	return a.other || len(a.Process)+len(a.Thread)+len(a.provider)+len(a.event) > 0 || a.From != 0 || a.To != 0
}

// DropAll says that the filters drop all of a trace, and what there is for those that were given.
func DropAll(ctx context.Context, in *input.File, who WhoFlags, time TimeFlags) string {
	return (&asked{WhoFlags: who, TimeFlags: time}).dropAll(ctx, &Call{In: in})
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
		what += fmt.Sprintf("; the trace runs from 0 to %v", time.Duration(facts.DurationMs*1e6).Round(time.Millisecond))
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
	return what
}

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
