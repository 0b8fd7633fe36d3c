package batch

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"

	"github.com/tracefix/tracefix/internal/report"
)

//go:embed overview.html
var overviewText string

var overview = template.Must(template.New("overview").Funcs(template.FuncMap{
	"count": func(n int) string { return report.Count(n) },
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

// A page is what the overview shows.
type page struct {
	*Report
	Verdict  string
	Repairs  []named
	Most     int // of Repairs and what is left
	CutBy    []named
	Reasons  []named
	Troubled []*Result // failed and damaged
	HasHTTP  bool
	HasCuts  bool
	links    string
}

// WriteHTML writes the overview: one page without anything from outside. links leads
// from the page's folder to the outputs; empty if they lie beside it.
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
	p.Most = max(p.Most, r.Totals.Left)
	for _, outcome := range []string{Failed, Damaged} {
		for _, t := range r.Traces {
			if t.Status == outcome {
				p.Troubled = append(p.Troubled, t)
			}
		}
	}
	return overview.Execute(w, p)
}

// Link is the URL of an output.
func (p *page) Link(name string) template.URL {
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
		return template.URL(strings.Join(l, "/") + "/" + s)
	}
	return template.URL("./" + s)
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
func (p *page) Undone(t *Result) int { return t.Left + t.Repaired[bridge] }

// TroubledFirst is how many of the troubled traces are shown at once.
func (p *page) TroubledFirst() int { return 200 }
