package text

import "strings"

// Wrapped breaks s at blanks into lines of at most width characters; all but the first begin with
// indent blanks. 0 is any width. A longer word stays whole, and so does a command of dotnet-trace that
// ends s, on a line of its own: both are there to be copied.
func Wrapped(s string, width, indent int) string {
	if width <= 0 {
		return s
	}
	const command = ": dotnet-trace "
	if i := strings.Index(s, command); i > 0 {
		return Wrapped(s[:i+1], width, indent) + "\n" + strings.Repeat(" ", indent) + s[i+2:]
	}
	indent = min(indent, width/2)
	var b strings.Builder
	r := []rune(s)
	for len(r) > width {
		at := width
		for at > indent && r[at] != ' ' {
			at--
		}
		if at == indent { // a longer word
			for at = width; at < len(r) && r[at] != ' '; at++ {
			}
		}
		rest := strings.TrimLeft(string(r[at:]), " ")
		if rest == "" {
			break
		}
		b.WriteString(strings.TrimRight(string(r[:at]), " ") + "\n")
		r = []rune(strings.Repeat(" ", indent) + rest)
	}
	b.WriteString(string(r))
	return b.String()
}

// leastName is how many characters a name is shown with before a column is left out for it.
const leastName = 20

// FitColumns makes a table fit width characters, with gap characters beside each column: where names,
// the columns give, cannot be made narrow enough, the columns spare are left out, the first one first.
// wide are the widths of the columns, and then those to use; -1 is a column to leave out.
func FitColumns(wide []int, width, gap int, give, spare []int) {
	if width <= 0 {
		return
	}
	over := func(least int) int {
		sum := -width
		for _, n := range wide {
			if n >= 0 {
				sum += n + gap
			}
		}
		for _, i := range give {
			sum -= max(0, wide[i]-least)
		}
		return sum
	}
	for _, i := range spare {
		if over(leastName) <= 0 {
			break
		}
		wide[i] = -1
	}
	for over(1<<30) > 0 {
		widest := give[0]
		for _, i := range give {
			if wide[i] > wide[widest] {
				widest = i
			}
		}
		if wide[widest] <= 1 {
			return
		}
		wide[widest]--
	}
}

// LeftOut tells of columns that FitColumns left out; empty if there are none.
func LeftOut(head []string, wide []int) string {
	var out []string
	for i, n := range wide {
		if n < 0 {
			out = append(out, head[i])
		}
	}
	if out == nil {
		return ""
	}
	return "(a wider terminal shows also " + strings.Join(out, ", ") + ")"
}

// Fit cuts the middle out of a text that is too long: host and end tell most.
func Fit(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	head := width / 2
	return string(r[:head]) + "…" + string(r[len(r)-(width-head-1):])
}
