package text

import (
	"strconv"
	"strings"
)

// A List is what a user gave to choose by name: any of its patterns will do, and an empty
// list takes everything.
type List []string

// Match reports whether one of the patterns is one of the names of a thing.
func (l List) Match(names ...string) bool {
	for _, pattern := range l {
		for _, name := range names {
			if Match(pattern, name) {
				return true
			}
		}
	}
	return len(l) == 0
}

// MatchID is Match for a thing with an id, and a name unless that is empty. Ids are decimal,
// or hexadecimal behind 0x.
func (l List) MatchID(id int64, name string) bool {
	for _, pattern := range l {
		if n, err := strconv.ParseInt(pattern, 0, 64); err == nil && n == id || name != "" && Match(pattern, name) {
			return true
		}
	}
	return len(l) == 0
}

// Match reports whether name is what pattern says: * stands for any text, ? for any
// character; letter case does not matter.
func Match(pattern, name string) bool {
	p, n := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(name))
	star, mark, i, j := -1, 0, 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
