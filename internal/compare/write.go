package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/text"
)

// most is the largest change that is printed as a number.
const most = 999

// percent prints a change.
func percent(v float64) string { return bound(v) + " %" }

func bound(v float64) string {
	switch {
	case v > most:
		return fmt.Sprintf("> %+d", most)
	case -100 < v && v < -99.5: // what is left is not gone
		return fmt.Sprintf("%.1f", math.Ceil(v*10)/10)
	case math.Abs(v) < 0.5: // no -0
		return "0"
	}
	return fmt.Sprintf("%+.0f", v)
}

// interval prints where the change lies.
func (f *Figure) interval() string {
	if f.Before == 0 {
		return f.change()
	}
	if f.Low > most {
		return percent(f.Low)
	}
	return bound(f.Low) + " to " + percent(f.High)
}

func (f *Figure) change() string {
	switch {
	case f.Before == 0 && f.After == 0:
		return ""
	case f.Before == 0:
		return "new"
	case f.After == 0:
		return "gone"
	}
	return percent(f.Change)
}

// Told is the change with its interval, if there is one: what is new has none.
func (f *Figure) Told() string {
	if f.Before == 0 {
		return f.change()
	}
	return f.change() + " (95 %: " + f.interval() + ")"
}

func (f *Figure) word() string {
	word := map[string]string{More: "more", Less: "less", Unclear: "can't tell"}[f.Verdict]
	if f.Moved() && f.Low < 0 && f.High > 0 { // the verdict is that of a route: see compareOne
		word += " by route"
	}
	return word
}

// JSON writes r as one document.
func (r *Result) JSON(w io.Writer) error {
	return text.WriteDocument(w, r, " ")
}

// A Document is what text and Markdown have in common.
type Document struct {
	Before, After string
	Verdict       []string // the sentences that come first
	Tables        []Table
}

// A Table is a part of a Document; the last column holds names.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	More  int // rows that are left out
	Moved int // and how many of them moved, where others did not
}

// FigureTable is a table of figures.
func FigureTable(title, of string) Table { return Table{Title: title, Head: headed(of)} }

// Add adds a row.
func (t *Table) Add(f *Figure, form func(float64) string, name string) {
	t.Rows = append(t.Rows, row(f, form, name))
}

// more says how many rows are left out, as every other table does.
func (t *Table) more() string {
	moved := ""
	if t.Moved > 0 {
		moved = ", of which " + strconv.Itoa(t.Moved) + " moved"
	}
	return strconv.Itoa(t.More) + " more" + moved + "; --limit 0 shows all"
}

// Number prints a figure with three digits or so.
func Number(v float64) string { return number(v) }

func number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// lasts prints seconds: a trace of Chromium JSON may be of some microseconds.
func lasts(s float64) string {
	if s < 1 {
		return number(s*1e3) + " ms"
	}
	return number(s) + " s"
}

func sizeText(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " GB"}, {1e6, " MB"}, {1e3, " KB"}} {
		if math.Abs(v) >= u.size {
			return strconv.FormatFloat(v/u.size, 'f', 2, 64) + u.name
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " B"
}

func row(f *Figure, form func(float64) string, name string) []string {
	return []string{form(f.Before), form(f.After), f.change(), f.interval(), f.word(), name}
}

var heads = []string{"before", "after", "change", "95 % interval", "", ""}

func headed(name string) []string {
	h := append([]string{}, heads...)
	h[len(h)-1] = name
	return h
}

// Add adds a sentence. Inlined, it would make a kilobyte of verdict.
//
//go:noinline
func Add(v []string, format string, args ...any) []string {
	return append(v, fmt.Sprintf(format, args...))
}

// verdict are the sentences that come first.
func (r *Result) verdict() []string { return slices.Concat(r.doubts(), r.moves(), r.rests()) }

// doubts are the gates that failed, and sentences on what all that moved may come of.
func (r *Result) doubts() (v []string) {
	for _, why := range r.Failed {
		v = Add(v, "%s.", why)
	}
	for i, name := range []string{r.Before, r.After} {
		if r.Damages != nil && r.Damages[i] > 0 {
			v = Add(v, "Places at which %s is damaged: %d. What could be saved of it is compared.", name, r.Damages[i])
		}
		if r.Lost != nil && r.Lost[i] > 0 {
			v = Add(v, "Events of %s that were lost while recording: %d. What there was of them is less here.", name, r.Lost[i])
		}
	}
	if r.ticked != "" && r.compares("cpu") {
		v = Add(v, "Processors took the samples of %s, and the runtime those of the other trace, in which managed code counts that waits for a processor, and native code does not: CPU times are not comparable.", r.ticked)
	}
	if r.lastUnlike() {
		v = Add(v, "The traces last %s and %s: unless both did the same work, totals are not comparable.", lasts(r.Seconds[0]), lasts(r.Seconds[1]))
	}
	return v
}

// moves are sentences on what moved most, or that nothing did.
func (r *Result) moves() (v []string) {
	of := "ms of CPU time in all"
	if r.PerRequest {
		of = "ms of CPU time a request"
	}
	moved := 0
	for i := range r.Methods {
		if m := &r.Methods[i]; m.Self.Moved() {
			if moved++; moved <= 3 {
				line := fmt.Sprintf("%s: %s -> %s %s, %s", m.Method, number(m.Self.Before), number(m.Self.After), of, m.Self.Told())
				if len(m.Routes) > 0 && m.Routes[0].Moved() {
					t := &m.Routes[0]
					line += fmt.Sprintf("; in %s %s -> %s ms, %s", t.Route, number(t.Before), number(t.After), t.change())
				}
				v = Add(v, "%s.", line)
			}
		}
	}
	switch {
	case moved == 4:
		v = Add(v, "1 more method moved by itself.")
	case moved > 4:
		v = Add(v, "%d more methods moved by themselves.", moved-3)
	}
	if n, m := r.onlyTotals(); n > 0 {
		line := fmt.Sprintf("%s with what it calls: %s -> %s %s, %s", m.Method, number(m.Total.Before), number(m.Total.After), of, m.Total.Told())
		if n > 1 {
			line += fmt.Sprintf("; so did %d more", n-1)
		}
		v = Add(v, "%s. No method moved by itself.", line)
	}
	if f := &r.CPU; f.Moved() {
		v = Add(v, "All methods together: %s -> %s %s, %s.", number(f.Before), number(f.After), of, f.Told())
	}
	pauses, numbers := r.GC[:min(1, len(r.GC))], r.GC[min(1, len(r.GC)):] // see collections
	for _, l := range []struct {
		list []Named
		what string
		form func(float64) string
	}{
		{r.Types, "allocated", sizeText}, {r.Exceptions, "exceptions", number}, {r.Locks, "ms of waiting for locks", number},
		{r.Routes, "ms, mean duration", number}, {r.Tails, "ms, 95th percentile of durations", number}, {r.Errors, "% of requests with errors", number},
		{pauses, "ms", number}, {numbers, "collections", number}, {r.Memory, "survived generation 2 on average", sizeText}, {r.Counters, "on average", number},
	} {
		n := 0
		for i := range l.list {
			if x := &l.list[i]; x.Moved() {
				if n++; n <= 2 {
					v = Add(v, "%s: %s -> %s %s, %s.", x.Name, l.form(x.Before), l.form(x.After), l.what, x.Told())
				}
			}
		}
	}
	switch {
	case r.bare:
		v = Add(v, "Neither trace holds what is compared: samples, allocations, exceptions, waits for locks, requests, collections or counters.")
	case len(v) == 0 && len(r.NotCompared) == 0:
		v = Add(v, "Nothing moved beyond noise.")
	case len(v) == 0:
		v = Add(v, "Of what both traces recorded nothing moved beyond noise.")
	}
	return v
}

// rests are sentences on what the figures rest on.
func (r *Result) rests() (v []string) {
	if r.untyped != "" && r.compares("cpu") {
		v = Add(v, "The recorder of %s did not tell managed code from the rest, so that its innermost methods do: compiling and other native code may count as CPU time there, and not in the other trace.", r.untyped)
	}
	if r.untold != "" && r.compares("cpu") {
		v = Add(v, "%s does not tell of all samples whether they were on a CPU or waited: waits count as CPU time in both.", r.untold)
	}
	if r.doubted {
		lost := func(c *costs) string { return fmt.Sprintf("%.0f", 100*c.lost.time/max(1, c.all)) }
		v = Add(v, "The outer methods of stacks are lost, for %s %% of the CPU time before and %s %% after: totals that may differ for that alone are `can't tell`.", lost(r.a), lost(r.b))
	}
	if r.nameless {
		without := func(c *costs) float64 { return 100 * c.inner / max(1, c.all+c.apart) }
		v = Add(v, "Recordings that were cut off do not name what was compiled ahead, %.0f %% of the time before and %.0f %% after: what may differ for that alone, as methods that one trace seems not to have, is `can't tell`.", without(r.a), without(r.b))
	}
	for _, n := range r.NotCompared {
		v = Add(v, "Not compared: %s, since %s.", n.words, n.Why)
	}
	if few := r.few["requests"]; len(few) > 0 && r.compares("requests") {
		more := ""
		if n := len(few) - 3; n > 0 {
			few, more = few[:3], fmt.Sprintf(" and %d more", n)
		}
		v = Add(v, "Routes of which one trace has less than %d requests are not compared: %s%s.", minRequests, strings.Join(few, ", "), more)
	}
	if len(r.mix) > 0 {
		x := &r.mix[0]
		v = Add(v, "Other requests were asked for: %s are %s -> %s %% of them. What a request allocates, throws and waits for locks on average, and collections, may differ for that alone.", x.Name, number(x.Before), number(x.After))
	}
	if r.PerRequest {
		line := fmt.Sprintf("Costs are those of a request: %d before, %d after", r.Requests[0], r.Requests[1])
		if r.a.all+r.b.all > 0 && r.compares("cpu") {
			line += fmt.Sprintf("; %.0f %% of the CPU time is known to belong to one", 100*r.Told)
		}
		v = Add(v, "%s.", line)
	}
	return v
}

// onlyTotals returns how many methods moved with what they call, and the one that moved most, where
// that is all there is to say of methods: else it follows from those that moved by themselves, or
// all together.
func (r *Result) onlyTotals() (n int, most *Method) {
	if r.CPU.Moved() {
		return 0, nil
	}
	for _, m := range r.byChange(func(m *Method) *Figure { return &m.Total }) {
		if m.Self.Moved() {
			return 0, nil
		}
		if m.Total.Moved() {
			if n++; n == 1 {
				most = m
			}
		}
	}
	return n, most
}

// tables are what moved, and what is largest of the rest.
func (r *Result) tables(limit int) (list []Table) {
	of := ", ms in all"
	if r.PerRequest {
		of = ", ms a request"
	}
	methods := func(title string, figure func(*Method) *Figure, keep func(*Method) bool) {
		t := Table{Title: title + of, Head: headed("method")}
		for _, m := range r.byChange(figure) {
			switch {
			case !keep(m):
			case limit == 0 || len(t.Rows) < limit:
				t.Rows = append(t.Rows, row(figure(m), number, m.Method))
			default:
				t.More++
			}
		}
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	self := func(m *Method) *Figure { return &m.Self }
	total := func(m *Method) *Figure { return &m.Total }
	methods("CPU time of methods that moved by themselves", self, func(m *Method) bool { return m.Self.Moved() })
	routes := Table{Title: "The same by route, ms a request", Head: headed("route, method")}
	for _, m := range r.byChange(self) {
		for k := range m.Routes {
			f := &m.Routes[k]
			switch {
			case !m.Self.Moved() || !f.Moved():
			case limit == 0 || len(routes.Rows) < limit:
				routes.Rows = append(routes.Rows, row(&f.Figure, number, f.Route+" "+m.Method))
			default:
				routes.More++
			}
		}
	}
	if len(routes.Rows) > 0 {
		list = append(list, routes)
	}
	methods("CPU time of methods that moved with what they call", total, func(m *Method) bool { return m.Total.Moved() && !m.Self.Moved() })
	methods("CPU time of other methods", self, func(m *Method) bool { return !m.Self.Moved() && !m.Total.Moved() && m.Self.Before+m.Self.After > 0 })
	named := func(title, name string, rows []Named, form func(float64) string) {
		t := Table{Title: title, Head: headed(name)}
		if limit > 0 && len(rows) > limit { // what moved comes first, and is not cut off by what did not
			rows = slices.Clone(rows)
			slices.SortStableFunc(rows, func(x, y Named) int {
				switch {
				case x.Moved() == y.Moved():
					return 0
				case x.Moved():
					return -1
				}
				return 1
			})
		}
		for i := range rows {
			if limit == 0 || len(t.Rows) < limit {
				t.Rows = append(t.Rows, row(&rows[i].Figure, form, rows[i].Name))
				continue
			}
			t.More++
			if rows[i].Moved() {
				t.Moved++
			}
		}
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	named("Requests, mean duration in ms", "route", r.Routes, number)
	named("Requests, 95th percentile of durations in ms", "route", r.Tails, number)
	named("Requests with errors, %", "route", slices.DeleteFunc(slices.Clone(r.Errors), func(n Named) bool { return n.Before+n.After == 0 }), number)
	each := ""
	if r.PerRequest {
		each = ", a request"
	}
	named("Allocated bytes"+each, "type", r.Types, sizeText)
	named("Exceptions"+each, "type", r.Exceptions, number)
	named("Waits for locks"+of, "method", r.Locks, number)
	named("Collections"+each+": pause in ms, numbers", "", r.GC, number)
	named("Memory: what survives generation 2, mean in bytes", "", r.Memory, sizeText)
	named("Counters, mean or growth in a second", "counter", r.Counters, number)
	return list
}

// byChange are the methods by how far a figure of theirs moved, those that moved most first, of
// what did not move at all the largest: the ones that a limit leaves.
func (r *Result) byChange(figure func(*Method) *Figure) []*Method {
	list := make([]*Method, len(r.Methods))
	for i := range r.Methods {
		list[i] = &r.Methods[i]
	}
	sort.SliceStable(list, func(i, k int) bool {
		a, b := figure(list[i]), figure(list[k])
		if x, y := math.Abs(a.After-a.Before), math.Abs(b.After-b.Before); x != y {
			return x > y
		}
		return a.After > b.After
	})
	return list
}

// Text writes r for people; names are shortened where lines would be wider than width, 0 is
// any width. limit is the number of rows of a table.
func (r *Result) Text(w io.Writer, width, limit int) error { return r.document(limit).Text(w, width) }

// Markdown writes r for a pull request.
func (r *Result) Markdown(w io.Writer, limit int) error { return r.document(limit).Markdown(w) }

func (r *Result) document(limit int) *Document {
	return &Document{r.Before, r.After, r.verdict(), r.tables(limit)}
}

// Text writes d for people, as Result.Text does.
func (d *Document) Text(w io.Writer, width int) error {
	var b strings.Builder
	for _, v := range d.Verdict {
		b.WriteString(text.Wrapped(text.Line(v), width, 2) + "\n")
	}
	for _, t := range d.Tables {
		b.WriteString("\n" + t.Title + "\n")
		wide := make([]int, len(t.Head))
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			for i, c := range row {
				wide[i] = max(wide[i], len([]rune(c)))
			}
		}
		for k, row := range append([][]string{t.Head}, t.Rows...) {
			var line strings.Builder
			used := 0
			for i, c := range row {
				if i == len(row)-1 {
					if width > 0 {
						c = export.Shorten(c, max(24, width-used-2))
					}
					line.WriteString("  " + text.Line(c))
					break
				}
				if k == 0 {
					c = strings.ToUpper(c)
				}
				line.WriteString("  " + strings.Repeat(" ", wide[i]-len([]rune(c))) + c)
				used += wide[i] + 2
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		if t.More > 0 {
			b.WriteString("  " + t.more() + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxComment is what a comment on GitHub holds, in characters, less room for words of the user's own.
const maxComment = 65536 - 2048

// Markdown writes d for a pull request: of more than a comment holds, tables have as many rows as fit.
func (d *Document) Markdown(w io.Writer) error {
	longest := 0
	for _, t := range d.Tables {
		longest = max(longest, len(t.Rows))
	}
	// Without rows all of it fits: see markdown.
	off := sort.Search(longest, func(off int) bool { return len(d.markdown(longest-off)) <= maxComment })
	_, err := io.WriteString(w, d.markdown(longest-off))
	return err
}

// markdown is d with at most that many rows in a table, or the beginning of that which is too long already.
func (d *Document) markdown(most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s → %s\n\n", inComment(d.Before), inComment(d.After))
	for i, v := range d.Verdict {
		v = inComment(v)
		if b.Len()+len(v) > maxComment/2 {
			fmt.Fprintf(&b, "- and %d more, which --format text prints: a comment holds 65,536 characters\n", len(d.Verdict)-i)
			break
		}
		b.WriteString("- " + v + "\n")
	}
	for _, t := range d.Tables {
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", t.Title)
		b.WriteString("| " + strings.Join(t.Head, " | ") + " |\n|" + strings.Repeat("---:|", len(t.Head)-1) + "---|\n")
		rows := t.Rows[:min(most, len(t.Rows))]
		for _, row := range rows {
			if b.Len() > maxComment {
				return b.String()
			}
			for _, c := range row {
				b.WriteString("| " + inComment(c) + " ")
			}
			b.WriteString("|\n")
		}
		if n := len(t.Rows) - len(rows); n > 0 {
			fmt.Fprintf(&b, "\n%d more: a comment holds 65,536 characters; --format text --limit 0 shows all\n", t.More+n)
		} else if t.More > 0 {
			b.WriteString("\n" + t.more() + "\n")
		}
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

// inComment is s in Markdown; of a text that alone would fill a good part of a comment, the beginning.
func inComment(s string) string {
	const most = 2000
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return text.Markdown(s)
}
