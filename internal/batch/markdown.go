package batch

import (
	"cmp"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

const maxListed = 50 // rows of a table in Markdown: a summary is read, not searched

// WriteMarkdown writes the report as the summary of a CI job.
func (r *Report) WriteMarkdown(out io.Writer) error {
	w := &errWriter{w: out}
	t := r.Totals
	mark := map[Verdict]string{AllGood: "✅", SomeDamaged: "⚠️", SomeFailed: "❌"}[r.Verdict()]
	fmt.Fprintf(w, "## %s tracefix %s: %s\n\n", mark, r.Do, md(r.Summary()))
	if r.Shard != nil {
		fmt.Fprintf(w, "This is %s.\n\n", r.Shard)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "> %s\n\n", md(n))
	}
	if len(r.Gates) > 0 {
		fmt.Fprint(w, "| Gate | Found | |\n| --- | ---: | --- |\n")
		for _, g := range r.Gates {
			m := "✅"
			if g.Failed {
				m = "❌"
			}
			fmt.Fprintf(w, "| `%s` | %s | %s %s |\n", g.Gate, g.Found, m, md(g.Where))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| | |\n| --- | ---: |\n")
	row := func(what string, n int) {
		if n != 0 {
			fmt.Fprintf(w, "| %s | %s |\n", what, report.Count(n))
		}
	}
	fmt.Fprintf(w, "| Traces | %s |\n", report.Count(t.Traces))
	row("ok", t.OK)
	row("damaged", t.Damaged)
	row("failed", t.Failed)
	row("of these given up, since they killed what worked on them", t.Quarantined)
	row("Files that are not traces", t.Skipped)
	fmt.Fprintf(w, "| Read | %s |\n| Written | %s |\n", size(t.InputBytes), size(t.OutputBytes))
	row("Samples", t.Samples)
	row("Samples cut", t.Cut)
	row("Frames restored", t.Restored)
	row("Events lost while recording", int(t.Lost))
	if q := t.Requests; q != nil {
		fmt.Fprintf(w, "| HTTP requests | %s |\n", report.Count(q.Count))
		if q.Served != nil {
			row("of these served", q.Served.Count)
		}
		row("failed or canceled", q.Failed)
		row("failed, canceled, or answered 4xx or 5xx", q.Errors)
		row("incomplete requests", q.Incomplete)
		for _, side := range []struct {
			name string
			of   *Side
		}{{"made", q.Made}, {"served", q.Served}} {
			if d := side.of; d != nil && d.Max.Trace != "" {
				fmt.Fprintf(w, "| highest p95 of requests %s in a trace | %.1f ms |\n| longest request %s | %.1f ms |\n", side.name, d.P95.Ms, side.name, d.Max.Ms)
			}
		}
	}
	fmt.Fprintln(w)
	if hows := sorted(t.Repaired); len(hows) > 0 {
		fmt.Fprint(w, "| Repairs | Samples |\n| --- | ---: |\n")
		for _, h := range hows {
			fmt.Fprintf(w, "| %s | %s |\n", md(h.Name), report.Count(h.N))
		}
		fmt.Fprintln(w)
	}
	err := r.listMarkdown(w, "Failed", Failed, (*Result).why)
	err = cmp.Or(err, r.listMarkdown(w, "Damaged", Damaged, func(x *Result) string {
		s := fmt.Sprintf("%d place%s", x.Damages, report.Plural(x.Damages))
		if len(x.Damage) > 0 {
			d := x.Damage[0]
			s += fmt.Sprintf("; offset %d: %s: %s", d.Offset, d.Where, d.What)
		}
		return s
	}))
	if q := t.Requests; q != nil && len(q.Slowest) > 0 {
		fmt.Fprint(w, "<details><summary>Slowest requests</summary>\n\n| Request | ms | Status | Trace |\n| --- | ---: | --- | --- |\n")
		for _, s := range q.Slowest {
			fmt.Fprintf(w, "| %s %s | %.1f | %s | %s |\n", md(s.Method), code(s.URL), s.Duration, md(status(s.SlowRequest)), code(s.Trace))
		}
		fmt.Fprint(w, "\n</details>\n")
	}
	return cmp.Or(err, w.err)
}

func (r *Report) listMarkdown(w io.Writer, title, outcome string, why func(*Result) string) error {
	n := 0
	for t, err := range r.Troubled() {
		if err != nil {
			return err
		}
		if t.Status != outcome {
			continue
		}
		if n == 0 {
			fmt.Fprintf(w, "### %s\n\n| Trace | Why |\n| --- | --- |\n", title)
		}
		if n++; n <= maxListed {
			fmt.Fprintf(w, "| %s | %s |\n", code(t.Input.Name), md(why(t)))
		}
	}
	if n > maxListed {
		fmt.Fprintf(w, "| ... and %s more | |\n", report.Count(n-maxListed))
	}
	if n > 0 {
		fmt.Fprintln(w)
	}
	return nil
}

func status(s report.SlowRequest) string {
	if s.Outcome == OK && s.Status != 0 {
		return fmt.Sprint(s.Status)
	}
	return s.Outcome
}

// A named is a number with its name.
type named struct {
	Name string
	N    int
}

// sorted returns the numbers of m, the largest first.
func sorted(m map[string]int) []named {
	var out []named
	for k, n := range m {
		if n != 0 {
			out = append(out, named{k, n})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].N > out[j].N || out[i].N == out[j].N && out[i].Name < out[j].Name
	})
	return out
}

// md makes s plain text in a cell of a Markdown table.
func md(s string) string { return text.Markdown(short(s)) }

// code makes s code in a cell of a Markdown table.
func code(s string) string {
	s = strings.NewReplacer("`", "'", "|", `\|`).Replace(short(s))
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func short(s string) string {
	const most = 500
	s = text.Line(s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

func size(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/1000, 0
	for ; v >= 999.95 && u < len(units)-1; u++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}

// errWriter keeps the first error, so that a text is written without asking each time.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.w.Write(p)
	e.err = err
	return n, err
}
