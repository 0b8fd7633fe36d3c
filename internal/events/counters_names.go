package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// A Series is what tells the values of one counter with one set of tags from those of all others.
type Series struct {
	Provider, Version, Name, Unit, Tags string
	Type                                CounterType
	PID, Instrument                     int
}

// Series returns the one that p is a value of.
func (p *Point) Series() Series {
	return Series{p.Provider, p.Version, p.Name, p.Unit, p.Tags, p.Type, p.PID, p.Instrument}
}

// A seriesPart is what names of series have behind them where these are equal.
type seriesPart struct {
	of   func(*Series) string
	form string
}

var (
	ofVersion = seriesPart{func(s *Series) string { return s.Version }, "version %s"}
	ofUnit    = seriesPart{func(s *Series) string { return s.Unit }, "%s"}
	ofType    = seriesPart{func(s *Series) string { return s.Type.String() }, "%s"}
	ofProcess = seriesPart{func(s *Series) string { return fmt.Sprint(s.PID) }, "process %s"}
)

// SeriesNames returns a name for each of the series of a process: the provider, the name, the tags.
// Those that have all of this in common, as instruments of two meters of one name, have behind it
// what they differ in: the version of the meter, the unit, the type, and last which of them it is,
// by the process's numbers of its instruments.
func SeriesNames(list []Series) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = strings.TrimSpace(list[i].Provider + "/" + list[i].Name + " " + list[i].Tags)
	}
	tellApart(list, names, []seriesPart{ofVersion, ofUnit, ofType})
	return names
}

// tellApart puts what series differ in behind names that they have in common.
func tellApart(list []Series, names []string, parts []seriesPart) {
	equal := map[string][]int{} // of a name
	for i, n := range names {
		equal[n] = append(equal[n], i)
	}
	for _, of := range equal {
		if !slices.ContainsFunc(of, func(i int) bool { return list[i] != list[of[0]] }) {
			continue
		}
		for _, p := range parts {
			if !slices.ContainsFunc(of, func(i int) bool { return p.of(&list[i]) != p.of(&list[of[0]]) }) {
				continue
			}
			for _, i := range of {
				if part := p.of(&list[i]); part != "" {
					names[i] += " (" + fmt.Sprintf(p.form, part) + ")"
				}
			}
		}
		text.SortRows(of, func(a, b *int) int { return cmp.Compare(list[*a].Instrument, list[*b].Instrument) })
		seen := map[string]map[Series]int{}
		for _, i := range of {
			n := names[i]
			if seen[n] == nil {
				seen[n] = map[Series]int{}
			}
			k, known := seen[n][list[i]]
			if !known {
				k = len(seen[n]) + 1
				seen[n][list[i]] = k
			}
			if k > 1 {
				names[i] += fmt.Sprintf(" (series %d)", k)
			}
		}
	}
}
