package httpphases

import "strings"

// Route returns what the paths of requests for one thing have in common: the path of a
// target without its query, segments that look like a number, a GUID or another id being "*".
// It is a guess where the trace does not tell the route that the server chose.
func Route(target string) string {
	path := target
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if !strings.ContainsAny(path, "0123456789") {
		return path
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if isID(p) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// isID reports whether a segment names one thing of many: it is a number, or is long and
// has digits in it.
func isID(s string) bool {
	digits, hex := 0, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			digits++
			hex++
		case c >= 'a' && c <= 'f', c >= 'A' && c <= 'F', c == '-':
			hex++
		}
	}
	switch {
	case digits == 0:
		return false
	case digits == len(s):
		return true
	case hex == len(s) && len(s) >= 8: // a GUID, a hash
		return true
	}
	return len(s) >= 16 && digits >= 4
}
