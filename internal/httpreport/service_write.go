package httpreport

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// ServiceJSON writes s as one document.
func ServiceJSON(w io.Writer, s *Service) error {
	return text.WriteDocument(w, s, " ")
}

// ServiceNDJSON writes s as one line.
func ServiceNDJSON(w io.Writer, s *Service) error {
	return text.WriteDocument(w, s, "")
}

// A serviceSection is a heading with sentences or a table.
type serviceSection struct {
	Title string
	Lines []string
	Head  []string
	Rows  [][]string
}

// errors are the requests of a side that failed or were answered so; s may be nil.
func (s *Side) errors() (n int) {
	if s != nil {
		for i := range s.Status {
			n += s.Status[i].Errors
		}
	}
	return n
}

// none reports whether there was no request of a side; s may be nil.
func (s *Side) none() bool { return s == nil || s.Requests == 0 }

// serviceSections are what people are shown.
func serviceSections(s *Service) (list []serviceSection) {
	found := serviceSection{Title: "What to look at"}
	nothing := ""
	for _, f := range s.Findings {
		found.Lines = append(found.Lines, fmt.Sprintf("%s (%s to %s s)", f.Text, seconds(f.From), seconds(f.To)))
	}
	switch {
	case len(found.Lines) > 0:
	case s.Client.none() && s.Server.none() && !s.tells.any() && !s.queues:
		found.Lines = []string{"There is nothing to judge: no requests are recorded, and nothing of what the runtime and its thread pool did."}
	default:
		nothing = "Nothing stands out"
	}
	for _, x := range []struct {
		name string
		*Side
	}{{"served", s.Server}, {"made", s.Client}} {
		if n := x.errors(); n > 0 {
			if nothing != "" {
				nothing = "Nothing else stands out"
			}
			found.Lines = append(found.Lines, fmt.Sprintf("%d of %d requests %s failed or were answered 400 or more (%s %%), for the reasons below", n, x.Requests, x.name, number(100*float64(n)/float64(x.Requests))))
		}
		if !x.none() && x.Guessed*10 > x.Requests {
			found.Lines = append(found.Lines, fmt.Sprintf("%d of %d requests %s are told apart by a guess, as events have no activity ids: which of them took how long, and which failed, may be wrong; System.Threading.Tasks.TplEventSource:0x80:4, recorded with the rest, tells it", x.Guessed, x.Requests, x.name))
		}
	}
	if nothing != "" {
		found.Lines = append(found.Lines, nothing+": no starved thread pool, no convoy at a lock, no exhausted pool of connections, no slow name resolution or handshake in what was recorded.")
	}
	list = append(list, found)
	side := func(name string, x *Side) {
		if x == nil {
			return
		}
		routes := groups(fmt.Sprintf("%s by route: %d, at most %d at once", name, x.Requests, x.Concurrency), "route", x.Routes)
		if a := &x.All; a.Max > 0 {
			of := "all of them"
			if x.Upgraded > 0 {
				of += fmt.Sprintf(" but %d that became WebSockets", x.Upgraded)
			}
			routes.Lines = []string{fmt.Sprintf("%s: p50 %s ms, p90 %s ms, p99 %s ms, longest %s ms", of, number(a.P50), number(a.P90), number(a.P99), number(a.Max))}
		}
		list = append(list, routes)
		if len(x.Hosts) > 0 {
			list = append(list, groups(name+" by host", "host", x.Hosts))
		}
		list = append(list, groups(name+" by status", "status", x.Status), groups(name+" by time of their start", "time", x.Slices))
		if len(x.Errors) > 0 {
			t := serviceSection{Title: name + ": why they failed", Head: []string{"requests", "reason"}}
			for _, e := range x.Errors[:min(len(x.Errors), maxShown)] {
				t.Rows = append(t.Rows, []string{strconv.Itoa(e.Requests), e.Text})
			}
			list = append(list, t)
		}
	}
	side("Requests served", s.Server)
	side("Requests made", s.Client)
	if c := s.Connections; c != nil {
		each := ""
		if c.Requests > 0 {
			each = fmt.Sprintf(", %s requests on each", number(c.Requests))
		}
		list = append(list, serviceSection{Title: "Connections of the client", Lines: []string{
			fmt.Sprintf("%d opened, %d closed, %d attempt%s failed%s", c.Opened, c.Closed, c.Failed, report.Plural(c.Failed), each),
			fmt.Sprintf("%d request%s waited %s ms in all until another one gave its connection back", c.Queued, report.Plural(c.Queued), number(c.QueueMs)),
		}})
	}
	f := s.Figures
	run := serviceSection{Title: "The runtime"}
	tell := func(is bool, format string, figures ...*float64) {
		if !is {
			return
		}
		var words []any
		for _, v := range figures {
			words = append(words, number(*v))
		}
		run.Lines = append(run.Lines, fmt.Sprintf(format, words...))
	}
	if s.tells.pool {
		run.Lines = append(run.Lines, fmt.Sprintf("the pool changed its number of threads %.0f times since it starved or its threads blocked", *f.Starvation))
	}
	tell(f.PoolBlocked != nil, "served requests spent %s %% of their time waiting on a thread", f.PoolBlocked)
	tell(f.PoolWaitMs != nil, "%s ms in which work of requests was queued for a thread of the pool", f.PoolWaitMs)
	hung := ""
	if s.hung > 0 {
		hung = fmt.Sprintf(", not counting %d wait%s without an end, as a deadlock or the end of the trace leaves it", s.hung, report.Plural(s.hung))
	}
	tell(s.tells.locks, "%s ms waited for locks by all threads"+hung, f.LockWaitMs)
	tell(s.tells.collections, "%s ms of collections; requests for which a thread ran stood still for %s ms, added up", f.GCPauseMs, f.GCInRequestsMs)
	compiled := fmt.Sprintf("%d method%s compiled for requests", s.compiled, report.Plural(s.compiled))
	tell(s.tells.compiling, compiled+", in %s ms of what their threads ran, added up", f.CompileInRequestsMs)
	tell(s.compiled > 0 && !s.tells.compiling, compiled)
	if len(run.Lines) > 0 {
		list = append(list, run)
	}
	if len(s.Notes) > 0 {
		list = append(list, serviceSection{Title: "What the recording lacks", Lines: s.Notes})
	}
	return list
}

func groups(title, kind string, gs []Group) serviceSection {
	t := serviceSection{Title: title, Head: []string{kind, "requests", "errors", "per s", "p50 ms", "p90 ms", "p99 ms", "max ms", "at once", "where the time went"}}
	for i := range gs {
		if i == maxShown {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("and %d more; --format json has them", len(gs)-i), "", "", "", "", "", "", "", "", ""})
			break
		}
		g := &gs[i]
		errors := strconv.Itoa(g.Errors)
		if g.told == 0 {
			errors = "-"
		}
		atOnce := number(g.Concurrency)
		if g.Concurrency == 0 && g.inside == 0 {
			atOnce = "-" // nobody knows how long any of them lasted
		}
		quantiles := [4]string{"-", "-", "-", "-"} // none has ended
		if g.Max > 0 {
			quantiles = [4]string{number(g.P50), number(g.P90), number(g.P99), number(g.Max)}
		}
		t.Rows = append(t.Rows, []string{
			g.Name, strconv.Itoa(g.Requests), errors, number(g.Rate), quantiles[0], quantiles[1], quantiles[2], quantiles[3], atOnce, g.causes(),
		})
	}
	return t
}

// causes are the largest shares of the time of a group, in words.
func (g *Group) causes() string {
	type part struct {
		name string
		ns   int64
	}
	var list []part
	var sum int64
	for name, ns := range g.time.Causes {
		sum += ns
		list = append(list, part{name, ns})
	}
	text.SortRows(list, func(a, b *part) int { return int(min(1, max(-1, b.ns-a.ns))) })
	var words []string
	for _, p := range list {
		if share := float64(p.ns) / float64(max(sum, 1)); share >= 0.05 && len(words) < 4 {
			words = append(words, fmt.Sprintf("%s %.0f %%", strings.ReplaceAll(p.name, "_", " "), 100*share))
		}
	}
	return strings.Join(words, ", ")
}

// number prints with as many digits as help.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func seconds(ms float64) string { return strconv.FormatFloat(ms/1000, 'f', 2, 64) }

// since says where what is told of begins, if it is not the begin of the trace.
func (s *Service) since() string {
	if s.From == 0 {
		return ""
	}
	return " from " + seconds(s.From) + " s on"
}

// ServiceText writes s for a terminal of that width; 0 is any width.
func ServiceText(w io.Writer, s *Service, width int) error {
	var b strings.Builder
	b.WriteString(text.Wrapped(fmt.Sprintf("%s, %s s%s", text.Line(s.Source), seconds(s.Span), s.since()), width, 2) + "\n")
	for _, x := range serviceSections(s) {
		fmt.Fprintf(&b, "\n%s\n", x.Title)
		for _, l := range x.Lines {
			b.WriteString(text.Wrapped("  "+text.Line(l), width, 4) + "\n")
		}
		if len(x.Head) > 0 {
			x.table(&b, width)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// spared are the columns that a narrow terminal does without, the first one first.
var spared = []string{"at once", "p90 ms", "per s", "max ms"}

// table prints the rows: names and reasons at the left of their columns, figures at the right.
func (x *serviceSection) table(b *strings.Builder, width int) {
	last := len(x.Head) - 1
	rows := append([][]string{x.Head}, x.Rows...)
	wide := make([]int, len(x.Head))
	for _, r := range rows {
		for i, c := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(text.Line(c)))
		}
	}
	var spare []int
	for _, name := range spared {
		if i := slices.Index(x.Head, name); i > 0 {
			spare = append(spare, i)
		}
	}
	text.FitColumns(wide, width-1, 2, []int{0, last}, spare)
	for _, r := range rows {
		line := " "
		for i, c := range r {
			if wide[i] < 0 {
				continue
			}
			c = text.Line(c)
			if i == last {
				line += " "
				c = cut(c, wide[i])
			} else {
				c = text.Fit(c, wide[i])
			}
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(c))
			if i == 0 || i == last {
				line += " " + c + pad
			} else {
				line += "  " + pad + c
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if left := text.LeftOut(x.Head, wide); left != "" {
		b.WriteString("  " + left + "\n")
	}
}

// cut takes the end off a text that is too long.
func cut(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(width-1, 0)]) + "…"
	}
	return s
}

// ServiceMarkdown writes s for a report.
func ServiceMarkdown(w io.Writer, s *Service) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s s recorded%s\n", text.Markdown(s.Source), seconds(s.Span), s.since())
	for _, x := range serviceSections(s) {
		fmt.Fprintf(&b, "\n## %s\n\n", x.Title)
		for _, l := range x.Lines {
			fmt.Fprintf(&b, "- %s\n", text.Markdown(l))
		}
		if len(x.Head) == 0 {
			continue
		}
		if len(x.Lines) > 0 { // else the table is taken for more text of the list's last line
			b.WriteString("\n")
		}
		b.WriteString("| " + strings.Join(x.Head, " | ") + " |\n|" + strings.Repeat(" --- |", len(x.Head)) + "\n")
		for _, r := range x.Rows {
			b.WriteString("|")
			for _, c := range r {
				b.WriteString(" " + text.Markdown(c) + " |")
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

//go:embed service.html
var servicePageText string

var servicePage = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(servicePageText)) })

// ServiceHTML writes s as one page, for any browser, without network.
func ServiceHTML(w io.Writer, s *Service) error {
	return servicePage().Execute(w, map[string]any{"Source": s.Source, "Span": seconds(s.Span), "Since": s.since(), "Sections": serviceSections(s)})
}
