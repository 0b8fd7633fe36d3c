package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mostNearest is how many names a message offers.
const mostNearest = 3

// Nearest returns the few names that somebody who typed want may have meant, the likeliest first:
// those that begin with it, those that hold it, else those that the fewest letters part from it.
// Case does not count.
func Nearest(want string, names []string) []string {
	return nearest(want, names, 0, func(name string) []string { return []string{name} })
}

// NearestEnd is Nearest for names of which people type the end: of methods and providers nobody
// types the namespaces, nor what a method takes.
func NearestEnd(want string, names []string) []string {
	return nearest(strings.Trim(want, "*?"), names, misspelt, func(name string) []string {
		name, _, _ = strings.Cut(name, "(")
		ends := []string{name}
		for i := range len(name) {
			if strings.IndexByte(".!/", name[i]) >= 0 {
				ends = append(ends, name[i+1:])
			}
		}
		return ends
	})
}

// DidYouMean is the end of a message about a name that there is not: what Nearest offers, or "".
func DidYouMean(want string, names []string) string {
	list := Nearest(want, names)
	for i := range list {
		list[i] = Line(list[i])
	}
	if len(list) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(list, " or ") + "?"
}

// misspelt is how much farther a name is that is spelt otherwise than one that holds what was wanted.
const misspelt = 10_000

// nearest compares want with the forms of each name; the first form is the whole of it. What is
// spelt otherwise may be so much farther than the nearest.
func nearest(want string, names []string, farther int, forms func(string) []string) []string {
	want = strings.ToLower(want)
	const longest = 80 // longer names are not typed
	long := utf8.RuneCountInString(want)
	if want == "" {
		return nil
	}
	type offer struct {
		name string
		far  int
	}
	var offers []offer
	for _, name := range names {
		all := forms(strings.ToLower(name))
		begins := slices.ContainsFunc(all, func(form string) bool { return strings.HasPrefix(form, want) })
		if begins || long > 2 && strings.Contains(all[0], want) {
			far := utf8.RuneCountInString(all[0]) - long
			if !begins {
				far += 1000
			}
			offers = append(offers, offer{name, far})
			continue
		}
		if len(want) > longest || len(all[0]) > 4*longest {
			continue
		}
		least := 1000
		for _, form := range all {
			least = min(least, edits(want, form))
		}
		if least <= max(long/3, min(2, long/2)) {
			offers = append(offers, offer{name, misspelt + least})
		}
	}
	SortRows(offers, func(a, b *offer) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	offers = slices.CompactFunc(offers, func(a, b offer) bool { return a.name == b.name })
	var list []string
	for _, o := range offers[:min(len(offers), mostNearest)] {
		if o.far < misspelt || o.far <= offers[0].far+farther {
			list = append(list, o.name)
		}
	}
	return list
}

// edits is the number of letters that are to be put in, left out, replaced or exchanged with the
// next one to make b of a.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i, r := range x {
		row[0] = i + 1
		for j, s := range y {
			cost := 1
			if r == s {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && r == y[j-1] && x[i-1] == s {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
