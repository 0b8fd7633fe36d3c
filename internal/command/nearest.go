package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// nearest offers the names that a pattern may have meant; "" where there is none.
func nearest(pattern string, names []string) string {
	list := text.NearestEnd(pattern, names)
	for i := range list {
		list[i] = text.Line(list[i])
	}
	if list == nil {
		return ""
	}
	return "; near that name are " + strings.Join(list, ", ")
}

// methodNames are those that the stacks of p hold.
func methodNames(p *profile.Profile) []string {
	names := make([]string, p.Table.Methods())
	for i := range names {
		names[i] = p.Table.MethodAt(profile.MethodID(i)).Full()
	}
	return names
}

// dropped says that the filters drop all samples of p, and what there is for those that were
// given.
func dropped(p *profile.Profile, sel *profile.Selection) string {
	threads := append(slices.Clone(p.Threads), p.Hidden...)
	var frames []string
	if sel.Frame != "" {
		frames = []string{sel.Frame}
	}
	asked := TimeFlags{From: time.Duration(sel.From), To: EndTime(sel.To)}
	what := noSample + asked.dropAll(time.Duration(p.Meta.End), []offer{
		{sel.Processes, "processes", true, func() (list []string) {
			for _, t := range threads {
				if q := t.Owner(); !slices.Contains(list, nameAndID(q.Name, q.PID)) {
					list = append(list, nameAndID(q.Name, q.PID))
				}
			}
			return list
		}},
		{sel.Threads, "threads", true, func() (list []string) {
			for _, t := range threads {
				list = append(list, nameAndID(t.Name, t.TID))
			}
			return list
		}},
		{frames, "", false, func() []string { return methodNames(p) }},
		{sel.Activities, "activities", false, func() []string {
			return distinct(func(name func(string)) {
				for _, a := range p.Activities.All() {
					name(a.Name)
				}
			})
		}},
	})
	return what + droppedRequest(p, sel)
}

// droppedRequest says what requests p has, if some are asked for.
func droppedRequest(p *profile.Profile, sel *profile.Selection) string {
	if len(sel.Requests) == 0 {
		return ""
	}
	return offerRequests(sel.Requests, func(see func(int, string)) {
		for _, a := range p.Activities.All() {
			if a.Request != 0 {
				see(a.Request, a.URL)
			}
		}
	})
}

// nameAndID names a process or thread: ids alone tell people nothing, and names come more than once.
func nameAndID(name string, id int64) string {
	if name == "" {
		return fmt.Sprint(id)
	}
	return fmt.Sprintf("%s (%d)", text.Line(name), id)
}

// few lists the first of many.
func few(list []string) string {
	const most = 8
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
