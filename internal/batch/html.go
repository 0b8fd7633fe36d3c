package batch

import (
	"bufio"
	_ "embed"
	"encoding/json" // escapes what would end a script
	"fmt"
	"html/template"
	"io"
	"math"
	"net/url"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

//go:embed overview.html
var overviewText string

var overview = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("overview").Funcs(template.FuncMap{
		"count": func(n int) string { return report.Count(n) },
		"long":  func(n int64) string { return report.Count(int(n)) },
		"size":  size,
		"ms":    func(v float64) string { return fmt.Sprintf("%.1f", v) },
		"share": func(n, of int) string {
			if of == 0 {
				return "0"
			}
			return fmt.Sprintf("%.2f", 100*float64(n)/float64(of))
		},
		"status":  status,
		"explain": report.How,
	}).Parse(overviewText))
})

// A page is what the overview shows.
type page struct {
	*Report
	Verdict string
	Repairs []named
	Most    int // of Repairs and what is left
	CutBy   []named
	Reasons []named
	Trouble []*Result // the first that failed or are damaged
	HasHTTP bool
	HasCuts bool
	links   string
}

// WriteHTML writes the overview: one page without anything from outside. links leads
// from the page's folder to the outputs; empty if they lie beside it. The table of traces is
// data that a script shows a screen of at a time, so that a hundred thousand open as fast as
// ten.
func (r *Report) WriteHTML(w io.Writer, links string) error {
	p := &page{
		Report: r, links: links,
		Verdict: map[Verdict]string{AllGood: OK, SomeDamaged: Damaged, SomeFailed: Failed}[r.Verdict()],
		Repairs: sorted(r.Totals.Repaired), CutBy: sorted(r.Totals.CutBy), Reasons: sorted(r.Reasons),
		HasHTTP: r.Totals.Requests != nil, HasCuts: r.countsSamples(),
	}
	for _, n := range p.Repairs {
		p.Most = max(p.Most, n.N)
	}
	for _, outcome := range []string{Failed, Damaged} {
		for t, err := range r.Troubled() {
			if err != nil {
				return err
			}
			if t.Status == outcome && len(p.Trouble) < p.TroubleFirst() {
				p.Trouble = append(p.Trouble, t)
			}
		}
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if err := overview().ExecuteTemplate(b, "head", p); err != nil {
		return err
	}
	if err := p.data(b); err != nil {
		return err
	}
	if err := overview().ExecuteTemplate(b, "tail", p); err != nil {
		return err
	}
	return b.Flush()
}

// data writes the table of traces as rows of JSON: name, output (0: none, 1: as the name, without what
// all names begin with), outcome, why, and the numbers of the columns.
func (p *page) data(w io.Writer) error {
	base := ""
	if l := p.link(""); l != "" {
		base = l
	}
	head, err := json.Marshal(struct {
		Prefix string `json:"prefix"`
		Base   string `json:"base"`
	}{text.Lines(p.folder), base})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "<script type=\"application/json\" id=\"data\">{\"head\":%s,\"rows\":[", head)
	comma := "\n"
	for t, err := range p.All() {
		if err != nil {
			return err
		}
		row, err := json.Marshal(p.row(t))
		if err != nil {
			return err
		}
		io.WriteString(w, comma)
		w.Write(row)
		comma = ",\n"
	}
	_, err = io.WriteString(w, "]}</script>\n")
	return err
}

// row is one line of the table: as short as it can be, since there may be many.
func (p *page) row(t *Result) []any {
	name := text.Lines(strings.TrimPrefix(t.Input.Name, p.folder))
	var out any = 0
	if t.Output != nil {
		if out = t.Output.Name; out == name {
			out = 1
		}
	}
	why := ""
	if t.Status != OK {
		why = text.Lines(p.Why(t))
	}
	row := []any{name, out, t.Status, why}
	if p.HasCuts {
		row = append(row, t.Samples, t.Cut, p.Done(t), p.Undone(t))
	}
	if p.HasHTTP {
		if q := t.Requests; q != nil {
			p95, most := tenth(q.P95), tenth(q.Max)
			if q.Max == 0 { // no request of it ended
				p95, most = -1, -1
			}
			row = append(row, q.Count, q.Errors, p95, most)
		} else {
			row = append(row, -1, -1, -1, -1)
		}
	}
	written := int64(0)
	if t.Output != nil {
		written = t.Output.Bytes
	}
	return append(row, t.Lost, t.Input.Bytes, written)
}

func tenth(ms float64) float64 { return math.Round(ms*10) / 10 }

// Columns are the numbers of the table.
func (p *page) Columns() []string {
	var c []string
	if p.HasCuts {
		c = append(c, "Samples", "Cut", "Repaired", "Bridged")
	}
	if p.HasHTTP {
		c = append(c, "Requests", "Errors", "p95 ms", "Max ms")
	}
	return append(c, "Lost events", "Read", "Written")
}

// Link is the URL of an output.
func (p *page) Link(name string) template.URL { return template.URL(p.link(name)) }

func (p *page) link(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	s := strings.Join(parts, "/")
	switch {
	case isURL(p.links): // a bucket's URL is nothing that a browser opens
		return ""
	case p.links != "" && p.links != ".":
		l := strings.Split(p.links, "/")
		for i := range l {
			l[i] = url.PathEscape(l[i])
		}
		return strings.Join(l, "/") + "/" + s
	}
	return "./" + s
}

// Why tells what is wrong with a trace.
func (p *page) Why(t *Result) string {
	if t.Status == Failed {
		return t.why()
	}
	if len(t.Damage) == 0 {
		return fmt.Sprintf("damaged in %d places", t.Damages)
	}
	d := t.Damage[0]
	s := fmt.Sprintf("offset %d: %s: %s", d.Offset, d.Where, d.What)
	if t.Damages > 1 {
		s += fmt.Sprintf(" (and %d more)", t.Damages-1)
	}
	return s
}

// Done is how many cut samples of a trace got their frames back.
func (p *page) Done(t *Result) int {
	n := 0
	for how, k := range t.Repaired {
		if how != bridge {
			n += k
		}
	}
	return n
}

// Undone is how many cut samples of a trace did not.
func (p *page) Undone(t *Result) int { return t.Repaired[bridge] }

// TroubleFirst is how many of Trouble are shown at once.
func (p *page) TroubleFirst() int { return 200 }

// TroubleAll is how many traces failed or are damaged.
func (p *page) TroubleAll() int { return p.Totals.Failed + p.Totals.Damaged }
