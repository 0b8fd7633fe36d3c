package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// TopJSON writes t as one JSON document.
func TopJSON(w io.Writer, t *profile.Top) error {
	return text.WriteDocument(w, t, "  ")
}

// TopCSV writes a header and a row for each method.
func TopCSV(w io.Writer, t *profile.Top) error {
	c := csv.NewWriter(w)
	head := []string{"method", "module", "cpu_self_ms", "cpu_total_ms", "wait_self_ms", "wait_total_ms", "samples"}
	if t.Options.ByThread {
		head = append([]string{"process", "pid", "thread", "tid"}, head...)
	}
	if err := c.Write(head); err != nil {
		return err
	}
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, g := range t.Groups {
		for _, r := range g.Rows {
			row := []string{r.Method, r.Module, num(r.CPUSelf), num(r.CPUTotal), num(r.WaitSelf), num(r.WaitTotal), strconv.Itoa(r.Samples)}
			if t.Options.ByThread {
				row = append([]string{g.Process, strconv.FormatInt(g.PID, 10), g.Thread, strconv.FormatInt(g.TID, 10)}, row...)
			}
			if err := c.Write(row); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

// TopText writes tables for people. Names are shortened where a line would be wider
// than width; 0 is any width.
func TopText(w io.Writer, t *profile.Top, width int) error {
	var b strings.Builder
	if t.Samples == 0 {
		return nil
	}
	waits := "waiting or in native code"
	if t.CPUOnly {
		waits = "" // the recorder took no samples of it
	}
	total := func(cpu, wait float64) string {
		s := ms3(cpu) + " ms on a CPU"
		if waits != "" {
			s += ", " + ms3(wait) + " ms " + waits
		}
		return s
	}
	for i, g := range t.Groups {
		if i > 0 {
			b.WriteByte('\n')
		}
		if t.Options.ByThread {
			name := g.Thread
			if id := strconv.FormatInt(g.TID, 10); !strings.HasSuffix(name, id) {
				name += " (" + id + ")"
			}
			fmt.Fprintf(&b, "%s, %s (%d): ", text.Line(name), text.Line(g.Process), g.PID)
		}
		fmt.Fprintf(&b, "%s, in %s samples\n", total(g.CPU, g.Wait), thousands(int64(g.Samples)))
		topTable(&b, t, &g, width)
	}
	if t.Polls > 0 && t.Polls*20 > t.CPU {
		how := "and that is charged to the callers; --raw shows it."
		if t.Options.Raw {
			how = "which is no work of theirs; without --raw it is charged to the callers."
		}
		fmt.Fprintf(&b, "\n%.1f %% of the CPU samples are in Thread.PollGC, where the sampler itself stops threads, %s\n", 100*t.Polls/t.CPU, how)
	}
	if t.Cut > 0 {
		fmt.Fprintf(&b, "\n%s of %s stacks are cut: the totals of their outer methods are too low", thousands(int64(t.Cut)), thousands(int64(t.Samples)))
		if !t.Options.Repaired {
			b.WriteString("; --repair puts back what can be known")
		}
		b.WriteString(".\n")
	}
	if t.NoStack > 0 {
		fmt.Fprintf(&b, "\n%s of %s samples have no stack.\n", thousands(int64(t.NoStack)), thousands(int64(t.Samples)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A topColumn is one figure of a row.
type topColumn struct {
	head  string
	value func(*profile.TopRow) float64
	of    float64 // 100 %
}

func topTable(b *strings.Builder, t *profile.Top, g *profile.TopGroup, width int) {
	cols := []topColumn{
		{"CPU SELF", func(r *profile.TopRow) float64 { return r.CPUSelf }, g.CPU},
		{"CPU TOTAL", func(r *profile.TopRow) float64 { return r.CPUTotal }, g.CPU},
	}
	waits := []topColumn{
		{"WAIT SELF", func(r *profile.TopRow) float64 { return r.WaitSelf }, g.Wait},
		{"WAIT TOTAL", func(r *profile.TopRow) float64 { return r.WaitTotal }, g.Wait},
	}
	switch {
	case t.CPUOnly:
	case t.Options.Wait || g.CPU == 0:
		cols = append(waits, cols...)
	default:
		cols = append(cols, waits...)
	}
	// The narrowest terminals get the two columns that the order is by.
	if width > 0 && width < 100 {
		cols = cols[:2]
	}
	cells := make([][]string, len(g.Rows))
	wide := make([]int, len(cols))
	for i := range cols {
		wide[i] = len(cols[i].head)
	}
	for i := range g.Rows {
		for j, c := range cols {
			cell := ""
			if v := c.value(&g.Rows[i]); v > 0 {
				cell = fmt.Sprintf("%s %5.1f%%", ms3(v), 100*v/c.of)
			}
			cells[i] = append(cells[i], cell)
			wide[j] = max(wide[j], len(cell))
		}
	}
	used := 0
	for j, c := range cols {
		fmt.Fprintf(b, "%*s  ", wide[j], c.head)
		used += wide[j] + 2
	}
	b.WriteString("METHOD\n")
	for i, r := range g.Rows {
		for j := range cols {
			fmt.Fprintf(b, "%*s  ", wide[j], cells[i][j])
		}
		name := text.Line(r.Method)
		if width > 0 {
			name = Shorten(name, max(20, width-used))
		}
		b.WriteString(name)
		b.WriteByte('\n')
	}
	if more := g.Methods - len(g.Rows); more > 0 {
		fmt.Fprintf(b, "%*s%s more; --limit 0 shows all\n", used, "", thousands(int64(more)))
	}
}

// ms3 prints milliseconds: whole from 100 on.
func ms3(v float64) string {
	if v >= 99.95 {
		return thousands(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Shorten makes a full method name fit into width characters. It gives up first the
// arguments, then the module, then the namespace from its start; type and method
// stay. Generic arguments count as part of the type's name.
func Shorten(name string, width int) string {
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	if i := argumentsAt(name); i > 0 && name[i:] != "()" {
		name = name[:i] + "(…)"
	}
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	if i := strings.IndexByte(name, '!'); i > 0 {
		name = name[i+1:]
	}
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	// Drop from the left at dots outside of brackets, but keep Type.Method.
	depth, last := 0, -1
	dots := []int{}
	for i, r := range name {
		switch r {
		case '[', '<', '(':
			depth++
		case ']', '>', ')':
			depth--
		case '.':
			if depth == 0 && i > 0 && last != i-1 { // the second dot of "..ctor" is part of the name
				dots = append(dots, i)
			}
			last = i
		}
	}
	for i := 0; i+1 < len(dots); i++ {
		if rest := name[dots[i]+1:]; 1+utf8.RuneCountInString(rest) <= width {
			return "…" + rest
		}
	}
	if len(dots) >= 2 {
		name = "…" + name[dots[len(dots)-2]+1:]
	}
	// Still too long: cut the middle.
	runes := []rune(name)
	if len(runes) <= width {
		return name
	}
	if width < 3 {
		return string(runes[:max(0, width)])
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// argumentsAt returns where the arguments of a name begin: at the parenthesis that
// closes it. 0 if there are none.
func argumentsAt(name string) int {
	if !strings.HasSuffix(name, ")") {
		return 0
	}
	depth := 0
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}
