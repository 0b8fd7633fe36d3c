package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// ValueTopJSON writes the tops of several weights as one JSON document.
func ValueTopJSON(w io.Writer, tops []*profile.ValueTop) error {
	return text.WriteDocument(w, struct {
		Weights []*profile.ValueTop `json:"weights"`
	}{tops}, "  ")
}

// ValueTopCSV writes a row for each name and method.
func ValueTopCSV(w io.Writer, tops []*profile.ValueTop) error {
	c := csv.NewWriter(w)
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	rows := [][]string{{"weight", "unit", "kind", "name", "self", "total", "events"}}
	for _, t := range tops {
		for _, n := range t.Names {
			rows = append(rows, []string{t.Weight, string(t.Unit), "name", n.Name, num(n.Amount), num(n.Amount), strconv.Itoa(n.Events)})
		}
		for _, m := range t.Methods {
			rows = append(rows, []string{t.Weight, string(t.Unit), "method", m.Method, num(m.Self), num(m.Total), strconv.Itoa(m.Events)})
		}
	}
	return c.WriteAll(rows)
}

// what names the things that a weight counts, and how their tables are headed.
var what = map[string]string{"alloc": "TYPE", "exceptions": "EXCEPTION", "contention": "LOCK", "wait": "WAIT"}

// ValueTopText writes tables for people: what weighs first, then where.
func ValueTopText(w io.Writer, tops []*profile.ValueTop, width int) error {
	var b strings.Builder
	for i, t := range tops {
		if i > 0 {
			b.WriteByte('\n')
		}
		sum := fmt.Sprintf("%s: %s in %s %s%s", text.Line(t.Weight), amountText(t.Total, t.Unit), thousands(int64(t.Events)), counted(t), map[bool]string{false: "s"}[t.Events == 1])
		if t.Sampled {
			sum += fmt.Sprintf(", estimated from objects drawn at random: the sum is right within %.1f %% (95 in 100)", t.Within(t.Events))
		}
		b.WriteString(text.Wrapped(sum, width, 2) + "\n\n")
		head := what[t.Weight]
		if head == "" {
			head = "EVENT"
		}
		var rows [][]string
		for _, n := range t.Names {
			rows = append(rows, []string{share(n.Amount, t), eventsText(n.Events, n.Within), n.Name})
		}
		if len(rows) > 0 {
			valueTable(&b, []string{"AMOUNT", strings.ToUpper(counted(t)) + "S", head}, rows, t.AllNames, width)
			b.WriteByte('\n')
		}
		rows = nil
		for _, m := range t.Methods {
			rows = append(rows, []string{share(m.Self, t), share(m.Total, t), eventsText(m.Events, m.Within), m.Method})
		}
		if len(rows) == 0 { // a head without rows looks as if something was left out
			b.WriteString("No stacks were recorded with them.\n")
			continue
		}
		valueTable(&b, []string{"SELF", "TOTAL", strings.ToUpper(counted(t)) + "S", "METHOD"}, rows, t.AllMethods, width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counted is what the events of t are: where several are summed up, nobody knows how many.
func counted(t *profile.ValueTop) string {
	if t.Sums {
		return "stack"
	}
	return "event"
}

// share prints an amount and its part of the total.
func share(v float64, t *profile.ValueTop) string {
	if v == 0 {
		return ""
	}
	s := amountText(v, t.Unit)
	if t.Total > 0 {
		s += fmt.Sprintf(" %5.1f%%", 100*v/t.Total)
	}
	return s
}

// eventsText prints a number of events, with how far off the estimate may be that is made of them. Of a
// method that only calls others there are none.
func eventsText(n int, within float64) string {
	if n == 0 {
		return ""
	}
	s := thousands(int64(n))
	if within > 0 {
		s += fmt.Sprintf(" ±%.0f%%", within)
	}
	return s
}

// amountText prints an amount in its unit.
func amountText(v float64, unit profile.Unit) string {
	switch unit {
	case profile.Bytes:
		for _, u := range []struct {
			size float64
			name string
		}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
			if v >= u.size {
				return strconv.FormatFloat(v/u.size, 'f', 2, 64) + " " + u.name
			}
		}
		return strconv.FormatFloat(v, 'f', 0, 64) + " B"
	case profile.Nanoseconds:
		return ms3(v/1e6) + " ms"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return thousands(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// valueTable writes rows whose last column is a name; the others are figures.
func valueTable(b *strings.Builder, head []string, rows [][]string, all, width int) {
	last := len(head) - 1
	wide := make([]int, last)
	for i := range wide {
		wide[i] = len(head[i])
		for _, r := range rows {
			wide[i] = max(wide[i], utf8.RuneCountInString(r[i]))
		}
	}
	used := 0
	for i, n := range wide {
		fmt.Fprintf(b, "%*s  ", n, head[i])
		used += n + 2
	}
	b.WriteString(head[last] + "\n")
	for _, r := range rows {
		for i, n := range wide {
			fmt.Fprintf(b, "%*s  ", n, r[i])
		}
		name := text.Line(r[last])
		if width > 0 {
			name = Shorten(name, max(20, width-used))
		}
		b.WriteString(name + "\n")
	}
	if more := all - len(rows); more > 0 {
		fmt.Fprintf(b, "%*s%s more; --limit 0 shows all\n", used, "", thousands(int64(more)))
	}
}
