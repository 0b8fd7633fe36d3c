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
	note := func(format string, args ...any) {
		b.WriteString("\n" + text.Wrapped(fmt.Sprintf(format, args...), width, 2) + "\n")
	}
	names := topNamesOf(t.Managed)
	total := func(cpu, wait float64) string {
		s := ms3(cpu) + " ms " + names.on
		if !t.CPUOnly { // else the recorder took no samples of it
			s += ", " + ms3(wait) + " ms " + names.off
		}
		return s
	}
	for i, g := range t.Groups {
		if i > 0 {
			b.WriteByte('\n')
		}
		head := ""
		if t.Options.ByThread {
			name := g.Thread
			if id := strconv.FormatInt(g.TID, 10); !strings.HasSuffix(name, id) {
				name += " (" + id + ")"
			}
			head = fmt.Sprintf("%s, %s (%d): ", text.Line(name), text.Line(g.Process), g.PID)
		}
		head += fmt.Sprintf("%s, in %s", total(g.CPU, g.Wait), samplesText(g.Samples, t.Sums))
		b.WriteString(text.Wrapped(head, width, 2) + "\n")
		topTables(&b, t, &g, width)
	}
	if t.Polls > 0 && t.Polls*20 > t.CPU {
		how := "and that is charged to the callers; --raw shows it."
		if t.Options.Raw {
			how = "which is not their work; without --raw it is charged to the callers."
		}
		note("%.1f %% of the time %s was seen in Thread.PollGC, where the sampler itself stops threads, %s", 100*t.Polls/t.CPU, names.on, how)
	}
	if t.Cut > 0 {
		how := "."
		if !t.Options.Repaired {
			how = "; --repair puts back what can be known."
		}
		note("%s of %s stacks are cut: the totals of their outer methods are too low%s", thousands(int64(t.Cut)), thousands(int64(t.Samples)), how)
	}
	if t.NoStack > 0 {
		note("%s of %s samples have no stack.", thousands(int64(t.NoStack)), thousands(int64(t.Samples)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// topNames are what the two kinds of time are called.
type topNames struct {
	on, off         string // in a sentence
	onHead, offHead string // above a column
}

// topNamesOf names what columns hold. EventPipe tells whether a thread was in managed code,
// and not whether it was on a CPU.
func topNamesOf(managed bool) topNames {
	if managed {
		return topNames{"in managed code", "in native code or waiting", "MANAGED", "NATIVE/WAIT"}
	}
	return topNames{"on a CPU", "off the CPUs", "CPU", "OFF-CPU"}
}

// A topColumn is one figure of a row.
type topColumn struct {
	head  string
	value func(*profile.TopRow) float64
	of    float64 // 100 %
}

// topTables writes the methods of a group: those of the kind of time that dominates, then
// those of the other. Where one kind is asked for there is only that.
func topTables(b *strings.Builder, t *profile.Top, g *profile.TopGroup, width int) {
	names := topNamesOf(t.Managed)
	cpu := []topColumn{
		{names.onHead + " SELF", func(r *profile.TopRow) float64 { return r.CPUSelf }, g.CPU},
		{names.onHead + " TOTAL", func(r *profile.TopRow) float64 { return r.CPUTotal }, g.CPU},
	}
	waits := []topColumn{
		{names.offHead + " SELF", func(r *profile.TopRow) float64 { return r.WaitSelf }, g.Wait},
		{names.offHead + " TOTAL", func(r *profile.TopRow) float64 { return r.WaitTotal }, g.Wait},
	}
	switch {
	case t.Options.Wait || g.CPU == 0 && g.Wait > 0:
		topTable(b, g.Rows, waits, g.WaitMethods, width)
	case g.Waits == nil:
		topTable(b, g.Rows, cpu, g.CPUMethods, width)
	default:
		first, second := func() { topTable(b, g.Rows, cpu, g.CPUMethods, width) }, func() { topTable(b, g.Waits, waits, g.WaitMethods, width) }
		if g.Wait > g.CPU {
			first, second = second, first
		}
		first()
		b.WriteByte('\n')
		second()
	}
}

// topTable writes those of rows that have some of what cols show: the first of all.
func topTable(b *strings.Builder, rows []profile.TopRow, cols []topColumn, all, width int) {
	var cells [][]string
	for i := range rows {
		var row []string
		none := true
		for _, c := range cols {
			cell := ""
			if v := c.value(&rows[i]); v > 0 {
				cell = fmt.Sprintf("%s %5.1f%%", ms3(v), 100*v/c.of)
				none = false
			}
			row = append(row, cell)
		}
		if none { // rows are in order: what follows has none of it either
			break
		}
		cells = append(cells, append(row, rows[i].Method))
	}
	valueTable(b, []string{cols[0].head, cols[1].head, "METHOD"}, cells, all, width)
}

// AroundJSON writes a as one JSON document.
func AroundJSON(w io.Writer, a *profile.Around) error {
	return text.WriteDocument(w, a, "  ")
}

// AroundCSV writes a header and a row for each caller and callee.
func AroundCSV(w io.Writer, a *profile.Around) error {
	c := csv.NewWriter(w)
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	rows := [][]string{{"kind", "method", "cpu_ms", "wait_ms", "samples"}}
	for _, l := range []struct {
		kind string
		rows []profile.AroundRow
	}{{"caller", a.Callers}, {"callee", a.Callees}} {
		for _, r := range l.rows {
			rows = append(rows, []string{l.kind, r.Method, num(r.CPU), num(r.Wait), strconv.Itoa(r.Samples)})
		}
	}
	return c.WriteAll(rows)
}

// AroundText writes callers and callees for people: at most limit of each, 0 is all.
func AroundText(w io.Writer, a *profile.Around, limit, width int) error {
	var b strings.Builder
	names := topNamesOf(a.Managed)
	const most = 5
	for i, m := range a.Methods {
		if i == most && len(a.Methods) > most+1 {
			fmt.Fprintf(&b, "and %s more methods\n", thousands(int64(len(a.Methods)-i)))
			break
		}
		m = text.Line(m)
		if width > 0 {
			m = Shorten(m, width)
		}
		b.WriteString(m + "\n")
	}
	total := fmt.Sprintf("%s ms %s, %s ms %s, in %s", ms3(a.CPU), names.on, ms3(a.Wait), names.off, samplesText(a.Samples, a.Sums))
	b.WriteString(text.Wrapped(total, width, 2) + "\n")
	for _, l := range []struct {
		head string
		rows []profile.AroundRow
	}{{"CALLED BY", a.Callers}, {"CALLS", a.Callees}} {
		b.WriteByte('\n')
		var cells [][]string
		for i, r := range l.rows {
			if limit > 0 && i == limit {
				break
			}
			of := func(v, all float64) string {
				if v == 0 {
					return ""
				}
				return fmt.Sprintf("%s %5.1f%%", ms3(v), 100*v/all)
			}
			cells = append(cells, []string{of(r.CPU, a.CPU), of(r.Wait, a.Wait), r.Method})
		}
		valueTable(&b, []string{names.onHead, names.offHead, l.head}, cells, len(l.rows), width)
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// samplesText tells how many samples there are; sums are stacks.
func samplesText(n int, sums bool) string {
	what := "sample"
	if sums {
		what = "stack"
	}
	if n != 1 {
		what += "s"
	}
	return thousands(int64(n)) + " " + what
}
