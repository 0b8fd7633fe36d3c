package httpreport

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/text"
)

// tableWriter prints what dotnet-http prints, complete: queue, time to the first
// byte, the connection and a line per hop.
type tableWriter struct {
	out
	width int
	n     int
	serve []*httpphases.ServerRequest
}

func newTable(w io.Writer, o *Options) Writer {
	return &tableWriter{out: out{w: w}, width: o.Width}
}

// The columns of times add up to the total. What stands before a dot is the wait for the
// step behind it.
var tableHead = []struct {
	name  string
	width int
}{
	{"status", 6}, {"total", 8}, {"queue", 7}, {"·", 6}, {"dns", 7}, {"·", 6}, {"connect", 7}, {"·", 6}, {"tls", 7},
	{"send", 7}, {"wait", 7}, {"receive", 7}, {"other", 7}, {"conn", 5},
}

func (w *tableWriter) head() {
	for i, c := range tableHead {
		if i == 0 {
			w.b = append(w.b, c.name...)
			continue
		}
		w.b = appendRight(append(w.b, ' '), c.name, c.width)
	}
	w.str("  url   (times in ms; · is the wait before the next column)\n")
}

func appendRight(b []byte, s string, width int) []byte {
	for n := utf8.RuneCountInString(s); n < width; n++ {
		b = append(b, ' ')
	}
	return append(b, s...)
}

// cell prints ns as milliseconds with as many digits as help.
func cell(ns int64) string {
	switch ms := float64(ns) / 1e6; {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 3, 64)
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 10000:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	default:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	}
}

func (w *tableWriter) Request(r *httpphases.Request) error {
	if w.n == 0 {
		w.head()
	}
	w.n++
	status := ""
	switch {
	case r.Outcome == httpphases.Failed:
		status = "FAIL"
	case r.Outcome == httpphases.Canceled:
		status = "CANCEL"
	case r.Outcome == httpphases.Incomplete:
		status = "..."
	}
	if r.Status > 0 && (status == "" || r.Outcome == httpphases.Incomplete) {
		status = strconv.Itoa(r.Status) + strings.Repeat("…", min(len(status), 1))
	}
	total := ""
	if r.HasDuration {
		total = cell(r.Duration)
		if r.Outcome == httpphases.Incomplete {
			total = ">" + total
		}
	}
	text := r.URL()
	if text == "" {
		text = "(start not recorded)"
	}
	if r.Method != "" {
		text = r.Method + " " + text
	}
	for i := range r.Redirects {
		d := &r.Redirects[i]
		text += fmt.Sprintf(" -> %s (%s)", orText(d.URL, "?"), orText(statusText(d.Status), "redirect"))
	}
	switch {
	case r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled:
		if r.Status > 0 {
			text += fmt.Sprintf(" (%d)", r.Status)
		}
		text += " ~ "
		if n := failedPhase(r); n != "" {
			text += n + ": "
		}
		text += orText(firstLine(r.Error), "the trace does not tell why")
		if r.ErrorCause != "" {
			text += " <- " + shortType(r.ErrorCause)
		}
	case len(r.Missing) > 0:
		text += " ~ lost: " + strings.Join(r.Missing, ", ")
	case r.Outcome == httpphases.Incomplete:
		text += " ~ still open at the end of the trace"
	}
	w.line(status, total, r.Times(), r.Connection, marksText(r.Marks()), text)
	for i := range r.Redirects {
		d := &r.Redirects[i]
		w.line("  "+statusText(d.Status), cell(d.Duration), d.Times(), d.Connection, "", fmt.Sprintf("  hop %d: %s", i+1, d.From))
	}
	for _, f := range failedAttempts(r) {
		w.line("", "", httpphases.Times{}, nil, "", "  "+f)
	}
	w.explain(r.Why, r.Start, r.Duration)
	return w.flushed()
}

// marksText shows the doubts that the status does not show already.
func marksText(m httpphases.Marks) string {
	switch {
	case m&httpphases.Guessed != 0:
		return "?"
	case m&httpphases.Inferred != 0:
		return "~"
	}
	return ""
}

// shortType takes the namespaces off the type that a text of an exception begins with.
func shortType(s string) string {
	end := strings.IndexAny(s, ": (")
	if end < 0 {
		end = len(s)
	}
	return s[strings.LastIndexByte(s[:end], '.')+1:]
}

// failedAttempts tells in words what went wrong on the way without ending the request:
// addresses that did not answer, connections for it that came to nothing, tries that were
// sent again.
func failedAttempts(r *httpphases.Request) []string {
	var l []string
	add := func(what string, p *httpphases.Phase) {
		if p.Error != "" {
			l = append(l, fmt.Sprintf("%s failed after %s: %s", what, cell(p.Duration), firstLine(p.Error)))
		}
	}
	for i := range r.Tries[:max(len(r.Tries)-1, 0)] { // the last one is the phase
		add("connect "+r.Tries[i].Address, &r.Tries[i].Phase)
	}
	for i := range r.Side {
		for k := range r.Side[i].Phases {
			p := &r.Side[i].Phases[k]
			add("side attempt: "+p.Name.String(), p)
		}
	}
	last := len(r.Phases) - 1
	for i := range r.Phases {
		if p := &r.Phases[i]; i < last && p.Name >= httpphases.RequestHeaders && p.Name <= httpphases.Wait {
			add(p.Name.String(), p)
		}
	}
	return l
}

func statusText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// failedPhase names the phase in which a request failed.
func failedPhase(r *httpphases.Request) string {
	for i := len(r.Phases) - 1; i >= 0; i-- {
		if r.Phases[i].Error != "" {
			return r.Phases[i].Name.String()
		}
	}
	return ""
}

func firstLine(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return s[:i]
	}
	return s
}

func (w *tableWriter) line(status, total string, t httpphases.Times, c *httpphases.Connection, mark, line string) {
	value := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return cell(ns)
	}
	conn := ""
	if c != nil {
		if c.HasID {
			conn = "#" + strconv.FormatInt(c.ID, 10)
		}
		if c.New {
			conn += "+"
		}
	}
	cells := [...]string{
		status, total, value(t.Queue), value(t.BeforeDNS), value(t.DNS), value(t.BeforeConnect), value(t.Connect), value(t.BeforeTLS), value(t.TLS),
		value(t.Send), value(t.Wait), value(t.Receive), value(t.Other), conn,
	}
	used := 0
	for i, s := range cells {
		n := tableHead[i].width
		if i == 0 {
			w.b = append(w.b, s...)
			for k := utf8.RuneCountInString(s); k < n; k++ {
				w.b = append(w.b, ' ')
			}
			used += n
			continue
		}
		w.b = appendRight(append(w.b, ' '), s, n)
		used += n + 1
	}
	w.b = appendRight(w.b, mark, 2)
	used += 2
	if w.width > 0 {
		line = fit(line, max(w.width-used, 20))
	}
	w.str(text.Line(line))
	w.str("\n")
}

// fit cuts the middle out of a text that is too long: host and end tell most.
func fit(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	head := width * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(width-head-1):])
}

func (w *tableWriter) Server(s *httpphases.ServerRequest) error {
	w.serve = append(w.serve, s)
	return nil
}

func (w *tableWriter) served(q *httpphases.ServerRequest) {
	total := "..."
	if q.HasDuration {
		total = cell(q.Duration)
	}
	client := ""
	if q.Client > 0 {
		client = "#" + strconv.Itoa(q.Client)
	}
	status := map[httpphases.Outcome]string{httpphases.Failed: "FAIL", httpphases.Canceled: "CANCEL", httpphases.Incomplete: "..."}[q.Outcome]
	if status == "" {
		status = orText(statusText(q.Status), "ok")
	}
	line := strings.TrimSpace(q.Method + " " + q.Target)
	if q.Route != "" && q.Route != q.Target {
		line += "  (" + q.Route + ")"
	}
	if q.Outcome == httpphases.Failed {
		line += " ~ an exception that nobody handled"
		if q.Status > 0 {
			line += fmt.Sprintf(" (%d)", q.Status)
		}
	}
	w.str(text.Line(fmt.Sprintf("%-6s %8s %9s%2s%s", status, total, client, marksText(q.Marks()), line)) + "\n")
}

func (w *tableWriter) Close(s *Summary) error {
	if len(w.serve) > 0 {
		w.str("\nserved    total    client  method path   (times in ms)\n")
		for _, q := range w.serve {
			w.served(q)
			w.explain(q.Why, q.Start, q.Duration)
			if err := w.flushed(); err != nil {
				return err
			}
		}
	}
	if w.n == 0 {
		return w.flush()
	}
	w.str("\n requests  failed  4xx  5xx  new conn      p50      p90      p99      max  host\n")
	hosts := append([]*Host(nil), s.Hosts...)
	sort.SliceStable(hosts, func(i, j int) bool { return hosts[i].Requests > hosts[j].Requests })
	for i, h := range hosts {
		if i == 50 && len(hosts) > 60 {
			w.str(fmt.Sprintf("%9s and %d more hosts; --format json has them\n", "...", len(hosts)-i))
			break
		}
		w.b = appendRight(w.b, strconv.Itoa(h.Requests), 9)
		w.b = appendRight(w.b, strconv.Itoa(h.Outcomes[httpphases.Failed]+h.Outcomes[httpphases.Canceled]), 8)
		w.b = appendRight(w.b, strconv.Itoa(h.Client), 5)
		w.b = appendRight(w.b, strconv.Itoa(h.Server), 5)
		w.b = appendRight(w.b, strconv.Itoa(h.New), 10)
		for _, q := range []float64{.5, .9, .99, 1} {
			v := ""
			if len(h.Durations) > 0 {
				v = cell(h.Percentile(q))
			}
			w.b = appendRight(w.b, v, 9)
		}
		w.str("  " + text.Line(h.Name) + "\n")
	}
	return w.flush()
}
