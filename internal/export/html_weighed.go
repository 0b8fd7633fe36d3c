package export

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

const weighedHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%[1]s</title>
<style>
:root { color-scheme: light dark; } body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; }
table { border-collapse: collapse; font-size: 13px; } th, td { padding: 2px 12px 2px 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th:last-child, td:last-child { text-align: left; white-space: normal; overflow-wrap: anywhere; } svg { width: 100%%; height: auto; }
</style>
<h1>%[1]s</h1>
`

// pageRows is how many rows the tables of a page have.
const pageRows = 50

// WeighedHTML writes a page on what stacks weigh: what weighs, where, and a flame graph.
func WeighedHTML(w io.Writer, p *profile.Profile, o Options) error {
	weight, err := o.oneWeight(p)
	if err != nil {
		return err
	}
	top := p.TopValues(weight, pageRows, false)
	out := newBuffer(w)
	text := func(s string) string { return html.EscapeString(text.Line(s)) }
	out.b = fmt.Appendf(out.b, weighedHead, text(o.title(p)+": "+top.Weight+", "+amountText(top.Total, top.Unit)+" in "+thousands(int64(top.Events))+" "+counted(top)+"s"))
	head := what[top.Weight]
	if head == "" {
		head = "EVENT"
	}
	count := strings.ToUpper(counted(top)) + "S"
	if len(top.Names) > 0 {
		out.str("<table><tr><th>AMOUNT<th>" + count + "<th>" + text(head) + "\n")
		for _, n := range top.Names {
			out.str("<tr><td>" + text(share(n.Amount, top)) + "<td>" + eventsText(n.Events, n.Within) + "<td>" + text(n.Name) + "\n")
			out.flushed()
		}
		out.str("</table>\n")
	}
	if err := out.flush(); err != nil {
		return err
	}
	if err := SVG(w, p, o); err != nil {
		return err
	}
	out.str("<table><tr><th>SELF<th>TOTAL<th>" + count + "<th>METHOD\n")
	for _, m := range top.Methods {
		out.str("<tr><td>" + text(share(m.Self, top)) + "<td>" + text(share(m.Total, top)) + "<td>" + eventsText(m.Events, m.Within) + "<td>" + text(m.Method) + "\n")
		out.flushed()
	}
	out.str("</table>\n</html>\n")
	return out.flush()
}
