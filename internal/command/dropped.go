package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// dropAll says what there is for the filters. It reads the trace once more, since there is nothing else to be
// done with it.
func (a *asked) dropAll(ctx context.Context, c *Call) string {
	facts, _ := info.Nettrace(ctx, c.In, &info.Options{Light: true})
	if facts == nil {
		return dropsAll
	}
	end := time.Duration(facts.DurationMs * 1e6)
	what := a.TimeFlags.dropAll(end, []offer{
		{a.Process, "processes", true, func() (list []string) {
			for _, p := range facts.Processes {
				list = append(list, nameAndID(p.Name, int64(p.PID)))
			}
			return list
		}},
		{a.Thread, "threads", true, func() (list []string) {
			for _, t := range facts.Threads {
				list = append(list, nameAndID(t.Name, int64(t.TID)))
			}
			return list
		}},
		{a.provider, "providers", false, func() (list []string) {
			for _, p := range facts.Providers {
				list = append(list, p.Name)
			}
			return list
		}},
		{a.event, "events", false, func() (list []string) {
			for _, p := range facts.Providers {
				for _, t := range p.Types {
					list = append(list, t.Name)
				}
			}
			return sortedNames(list)
		}},
		{a.Activity, "activities", false, func() []string {
			rows, _, err := requests.Activities(ctx, c.In, nil)
			if err != nil {
				return nil
			}
			return distinct(func(name func(string)) {
				for _, r := range rows.All() {
					name(r.Name)
				}
			})
		}},
	})
	if len(a.Request) > 0 {
		what += offerRequests(a.Request, func(see func(int, string)) {
			_ = eachRequest(ctx, c, func(r httpRow) { see(r.facts().id, r.url()) }) // what was read until then will do
		})
	}
	return what
}

// offerRequests says what requests there are for who asked for others: each calls see with the id
// and the URL, which may be "", of all of them.
func offerRequests(patterns []string, each func(see func(id int, url string))) string {
	ids := idsIn(patterns)
	var urls []string
	there := map[int]bool{}
	last := 0
	each(func(id int, url string) {
		last = max(last, id)
		if slices.Contains(ids, id) {
			there[id] = true
		}
		if url != "" && len(urls) < mostNames && !slices.Contains(urls, url) {
			urls = append(urls, url)
		}
	})
	what := ""
	for _, id := range ids {
		switch {
		case there[id]:
			what += fmt.Sprintf("; request %d is there, but nothing was recorded of a thread that worked for it", id)
		case last > 0:
			what += fmt.Sprintf("; it has no request %d: ids go up to %d, and `tracefix http --side both` of the recording lists them", id, last)
		}
	}
	switch {
	case len(ids) == len(patterns) && last > 0:
	case len(urls) == 0 && last > 0:
		what += "; it tells ids of requests and no URLs"
	default:
		what += anyNearest(patterns, urls, "requests")
	}
	return what
}

// idsIn returns those of patterns for requests that are ids.
func idsIn(patterns []string) (ids []int) {
	for _, p := range patterns {
		if id, err := strconv.Atoi(p); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// An offer is what there is for a filter to pick.
type offer struct {
	given []string        // its patterns; none: it is not offered
	kind  string          // of the names, in the plural; "": they are not told where none is near
	all   bool            // they are told however far they are
	names func() []string // asked only if there are patterns
}

// dropsAll begins the message that a filter left nothing.
const dropsAll = "the filters drop all"

// dropAll says that the filters drop all of a trace, which lasts until end, and what there is for those that
// were given.
func (f *TimeFlags) dropAll(end time.Duration, offers []offer) string {
	what := dropsAll
	if f.From != 0 || f.To != 0 {
		what += fmt.Sprintf("; the trace runs from 0 to %v", end.Round(time.Millisecond))
	}
	for _, o := range offers {
		switch {
		case len(o.given) == 0:
		case o.all:
			what += "; its " + o.kind + " are " + few(o.names())
		default:
			what += anyNearest(o.given, o.names(), o.kind)
		}
	}
	return what
}

func sortedNames(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// distinct returns the names that all tells, each once, in their order: few, of however many that have them.
func distinct(all func(name func(string))) []string {
	set := map[string]bool{}
	all(func(name string) { set[name] = true })
	delete(set, "") // what has none is not found by it
	return slices.Sorted(maps.Keys(set))
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
	switch {
	case kind == "":
		return ""
	case len(names) == 0:
		return "; it has no " + kind
	}
	return "; its " + kind + " are " + few(names)
}
