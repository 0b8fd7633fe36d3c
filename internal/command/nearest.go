package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// mostNearest is how many names a message offers.
const mostNearest = 3

// nearest offers the names that a pattern may have meant; "" where there is none.
func nearest(pattern string, names []string) string {
	want := strings.ToLower(strings.Trim(pattern, "*?"))
	type offer struct {
		name string
		far  int
	}
	var offers []offer
	for _, n := range names {
		if far, ok := distance(want, n); ok {
			offers = append(offers, offer{n, far})
		}
	}
	slices.SortFunc(offers, func(a, b offer) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	offers = slices.CompactFunc(offers, func(a, b offer) bool { return a.name == b.name })
	var list []string
	for _, o := range offers[:min(len(offers), mostNearest)] {
		list = append(list, text.Line(o.name))
	}
	if list == nil {
		return ""
	}
	return "; near that name are " + strings.Join(list, ", ")
}

// distance says how far a name is from what was wanted, in letters, and whether it is near
// at all. Of a method's name its end counts, since nobody types the namespaces.
func distance(want, name string) (far int, ok bool) {
	name = strings.ToLower(name)
	name, _, _ = strings.Cut(name, "(")
	if want == "" {
		return 0, false
	}
	if strings.Contains(name, want) {
		return utf8.RuneCountInString(name) - utf8.RuneCountInString(want), true
	}
	const longest = 80 // longer names are not typed
	if len(want) > longest || len(name) > 4*longest {
		return 0, false
	}
	least := 1000
	for {
		least = min(least, edits(want, name))
		i := strings.IndexAny(name, ".!/")
		if i < 0 {
			break
		}
		name = name[i+1:]
	}
	long := utf8.RuneCountInString(want)
	return 500 + least, least <= max(long/3, min(2, long/2))
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		before := row[0]
		row[0] = i + 1
		for j, s := range y {
			cost := 1
			if r == s {
				cost = 0
			}
			before, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, before+cost)
		}
	}
	return row[len(y)]
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
	asked := TimeFlags{From: time.Duration(sel.From), To: time.Duration(sel.To)}
	return noSample + asked.dropAll(time.Duration(p.Meta.End), []offer{
		{sel.Processes, "processes", true, func() (list []string) {
			for _, t := range threads {
				if q := t.Owner(); !slices.Contains(list, who(q.Name, q.PID)) {
					list = append(list, who(q.Name, q.PID))
				}
			}
			return list
		}},
		{sel.Threads, "threads", true, func() (list []string) {
			for _, t := range threads {
				list = append(list, who(t.Name, t.TID))
			}
			return list
		}},
		{frames, "", false, func() []string { return methodNames(p) }},
		{sel.Activities, "activities", false, func() (list []string) {
			for _, a := range p.Activities {
				list = append(list, a.Name)
			}
			return sortedNames(list)
		}},
		{sel.Requests, "requests", false, func() (list []string) {
			for _, a := range p.Activities {
				if a.URL != "" && len(list) < mostNames && !slices.Contains(list, a.URL) {
					list = append(list, a.URL)
				}
			}
			return list
		}},
	})
}

func who(name string, id int64) string {
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
