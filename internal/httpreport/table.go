package httpreport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// tableWriter prints what dotnet-http prints, complete: queue, time to the first
// byte, the connection and a line per hop.
//
// For a file all columns are written as requests come. For a screen rows are held until it
// is known which columns hold anything, and lines fit the width.
type tableWriter struct {
	out
	o     *Options
	n     int
	serve *tableWriter // of what was served, whose lines stand behind the others; nil: nothing was
	later *aside       // what that writes to

	held    []tableRow // while holding
	holding bool
	left    [len(tableHead)]bool // columns that are not shown
	wide    [len(tableHead)]int  // how wide the others are
}

// A tableRow is one line, with what is printed below it.
type tableRow struct {
	cells [len(tableHead)]string
	times [len(tableHead)]int64 // that the cells stand for; 0 where they stand for none
	mark  string
	text  urlText
	below []byte
}

// heldRows is how many rows decide which columns a screen shows.
const heldRows = 1000

func newTable(w io.Writer, o *Options) Writer {
	t := &tableWriter{out: out{w: w}, o: o, holding: o.Width > 0}
	for i := range tableHead {
		t.wide[i] = tableHead[i].width
	}
	return t
}

// The columns of times add up to the total. What stands before a dot is the wait for the
// step behind it. firstTime is the first of them.
var tableHead = [...]struct {
	name  string
	width int
}{
	{"id", 6}, {"start", 9}, {"status", 6}, {"total", 8},
	{"queue", 7}, {"·", 6}, {"dns", 7}, {"·", 6}, {"connect", 7}, {"·", 6}, {"tls", 7},
	{"send", 7}, {"wait", 7}, {"receive", 7}, {"other", 7}, {"conn", 5},
}

const (
	statusColumn = 2
	firstTime    = 4
	lastTime     = len(tableHead) - 2
	// fewestText is how much room the method and the URL are worth more than a column.
	fewestText = 30
)

func (w *tableWriter) head() {
	used := 0
	for i, c := range tableHead {
		if w.left[i] {
			continue
		}
		if used > 0 {
			w.str(" ")
			used++
		}
		w.b = appendCell(w.b, c.name, w.wide[i], i == statusColumn)
		used += w.wide[i]
	}
	const url, note = "  url", "   (times in ms; · is the wait before the next column)"
	w.str(url)
	if w.o.Width == 0 || used+len(url)+utf8.RuneCountInString(note) <= w.o.Width {
		w.str(note)
	}
	w.str("\n")
}

// appendCell adds s at the right of its cell, or at its left.
func appendCell(b []byte, s string, width int, left bool) []byte {
	if !left {
		return appendRight(b, s, width)
	}
	b = append(b, s...)
	for n := utf8.RuneCountInString(s); n < width; n++ {
		b = append(b, ' ')
	}
	return b
}

func appendRight(b []byte, s string, width int) []byte {
	for n := utf8.RuneCountInString(s); n < width; n++ {
		b = append(b, ' ')
	}
	return append(b, s...)
}

// show ends the holding of rows: what they hold decides about the columns.
func (w *tableWriter) show() {
	if !w.holding {
		return
	}
	w.holding = false
	var sums [len(tableHead)]int64
	room := w.o.Width - 2
	for i := range tableHead {
		w.wide[i] = 0
		for _, r := range w.held {
			w.wide[i] = max(w.wide[i], utf8.RuneCountInString(r.cells[i]))
			sums[i] += r.times[i]
		}
		if w.left[i] = w.wide[i] == 0; !w.left[i] {
			w.wide[i] = max(w.wide[i], utf8.RuneCountInString(tableHead[i].name))
			room -= w.wide[i] + 1
		}
	}
	var out []string
	for room < fewestText {
		least := -1
		for i := firstTime; i <= lastTime; i++ {
			if !w.left[i] && (least < 0 || sums[i] < sums[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		w.left[least] = true
		room += w.wide[least] + 1
		if n := tableHead[least].name; n != "·" {
			out = append(out, n)
		}
	}
	if len(w.held) > 0 {
		w.head()
	}
	for i := range w.held {
		w.row(&w.held[i])
		w.b = append(w.b, w.held[i].below...)
	}
	w.held = nil
	if len(out) > 0 {
		w.str(text.Line(text.Fit("(a wider terminal shows also "+strings.Join(out, ", ")+")", w.o.Width)) + "\n")
	}
}

// cell prints ns as milliseconds with as many digits as help.
func cell(ns int64) string {
	switch ms := text.Millis(ns); {
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
	if w.n == 0 && !w.holding {
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
		if r.Outcome == httpphases.Incomplete || r.StartUnknown {
			total = ">" + total
		}
	}
	what := urlText{method: r.Method, url: orText(r.URL(), "(start not recorded)")}
	list, more := shownHops(r.Redirects)
	for i, d := range list {
		if i == maxHops-1 && more > 0 {
			what.note += fmt.Sprintf(" -> (%d more)", more)
		}
		what.note += fmt.Sprintf(" -> %s (%s)", orText(d.URL, "?"), orText(statusText(d.Status), "redirect"))
	}
	switch {
	case r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled:
		if r.Status > 0 {
			what.note += fmt.Sprintf(" (%d)", r.Status)
		}
		what.note += failure(r)
	case len(r.Missing) > 0:
		what.note += " ~ lost: " + strings.Join(r.Missing, ", ")
		if r.Error != "" {
			what.note += failure(r)
		}
	case r.Outcome == httpphases.Incomplete:
		what.note += " ~ still open at the end of the trace"
	}
	if r.Took > 0 {
		what.note += " ~ it took " + strings.TrimSpace(cell(r.Took)) + " in all"
	}
	w.line(strconv.Itoa(r.ID), startText(r.Start), status, total, r.Times(), r.Connection, marksText(r.Marks()), what)
	for i, d := range list {
		if i == maxHops-1 && more > 0 {
			w.line("", "", "", "", httpphases.Times{}, nil, "", urlText{method: fmt.Sprintf("  %d more hops, which json lists", more)})
			i += more
		}
		w.line("", "", "  "+statusText(d.Status), cell(d.Duration), d.Times(), d.Connection, "", urlText{method: fmt.Sprintf("  hop %d:", i+1), url: d.From})
	}
	for _, f := range failedAttempts(r) {
		w.line("", "", "", "", httpphases.Times{}, nil, "", urlText{method: "  " + f})
	}
	w.explain(r.Why, r.Start, r.Duration)
	if len(w.held) >= heldRows {
		w.show()
	}
	return w.flushed()
}

// maxHops is how many redirects of a request the table lists: a handler follows 50 of a loop.
const maxHops = 10

// shownHops returns the first redirects and the last one, and how many there are between them.
func shownHops(all []httpphases.Redirect) (list []httpphases.Redirect, more int) {
	if more = len(all) - maxHops; more <= 0 {
		return all, 0
	}
	return append(slices.Clone(all[:maxHops-1]), all[len(all)-1]), more
}

// failure tells where and why a request failed.
func failure(r *httpphases.Request) string {
	note := " ~ "
	if n := failedPhase(r); n != "" {
		note += n + ": "
	}
	note += orText(firstLine(r.Error), "the trace does not tell why")
	if r.ErrorCause != "" {
		note += " <- " + shortType(r.ErrorCause)
	}
	return note
}

// startText is when a request began: seconds since the start of the trace.
func startText(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 3, 64) + "s" }

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

func (w *tableWriter) line(id, start, status, total string, t httpphases.Times, c *httpphases.Connection, mark string, text urlText) {
	conn := ""
	if c != nil {
		if c.HasID {
			conn = "#" + strconv.FormatInt(c.ID, 10)
		}
		if c.New {
			conn += "+"
		}
	}
	r := tableRow{mark: mark, text: text}
	r.cells = [...]string{id, start, status, total, "", "", "", "", "", "", "", "", "", "", "", conn}
	for i, ns := range [...]int64{t.Queue, t.BeforeDNS, t.DNS, t.BeforeConnect, t.Connect, t.BeforeTLS, t.TLS, t.Send, t.Wait, t.Receive, t.Other} {
		if ns != 0 {
			r.cells[firstTime+i], r.times[firstTime+i] = cell(ns), ns
		}
	}
	if w.holding {
		w.held = append(w.held, r)
		return
	}
	w.row(&r)
}

func (w *tableWriter) row(r *tableRow) {
	used := 0
	for i, s := range r.cells {
		if w.left[i] {
			continue
		}
		if used > 0 {
			w.str(" ")
			used++
		}
		w.b = appendCell(w.b, s, w.wide[i], i == statusColumn)
		used += w.wide[i]
	}
	w.b = appendRight(w.b, r.mark, 2)
	used += 2
	if w.o.Width == 0 {
		w.str(text.Line(r.text.whole()) + "\n")
		return
	}
	w.str(text.Line(r.text.fit(max(w.o.Width-used, 20))) + "\n")
	if note := strings.TrimSpace(r.text.note); note != "" {
		const indent = 8
		w.str(strings.Repeat(" ", indent) + text.Line(text.Fit(note, max(w.o.Width-indent, 20))) + "\n")
	}
}

// A urlText is what a row says of a request: its method, its URL, and what came of it.
type urlText struct{ method, url, note string }

func (t urlText) whole() string {
	if t.method == "" {
		return t.url + t.note
	}
	return strings.TrimRight(t.method+" "+t.url, " ") + t.note
}

// fit is the method and the URL in width characters: the scheme goes first, then the query,
// then the middle of the path. Host and the end of the path tell most.
func (t urlText) fit(width int) string {
	prefix := ""
	if t.method != "" {
		prefix = t.method + " "
	}
	room := width - utf8.RuneCountInString(prefix)
	url := t.url
	if utf8.RuneCountInString(url) > room {
		if _, rest, ok := strings.Cut(url, "://"); ok {
			url = rest
		}
	}
	if before, _, ok := strings.Cut(url, "?"); ok && utf8.RuneCountInString(url) > room {
		url = before + "?…"
	}
	if room < 8 {
		return text.Fit(strings.TrimRight(prefix+url, " "), width)
	}
	return strings.TrimRight(prefix+text.Fit(url, room), " ")
}

func (w *tableWriter) Server(s *httpphases.ServerRequest) error {
	if w.serve == nil {
		w.later = newAside(w.o)
		w.serve = &tableWriter{out: out{w: w.later}, o: w.o}
	}
	w.serve.n++
	w.serve.served(s)
	w.serve.explain(s.Why, s.Start, s.Duration)
	return w.serve.flushed()
}

func (w *tableWriter) served(q *httpphases.ServerRequest) {
	total := "..."
	if q.HasDuration {
		total = cell(q.Duration)
		if q.StartUnknown {
			total = ">" + total
		}
	}
	client := ""
	if q.Client > 0 {
		client = "#" + strconv.Itoa(q.Client)
	}
	status := map[httpphases.Outcome]string{httpphases.Failed: "FAIL", httpphases.Canceled: "CANCEL", httpphases.Incomplete: "..."}[q.Outcome]
	if status == "" {
		status = orText(statusText(q.Status), "ok")
	}
	what := urlText{method: q.Method, url: q.Target}
	if q.Route != "" && q.Route != q.Target {
		what.note += "  (" + q.Route + ")"
	}
	if q.Outcome == httpphases.Failed {
		what.note += " ~ an exception that nobody handled"
		if q.Status > 0 {
			what.note += fmt.Sprintf(" (%d)", q.Status)
		}
	}
	if q.Took > 0 {
		what.note += " ~ it took " + strings.TrimSpace(cell(q.Took)) + " in all"
	}
	head := fmt.Sprintf("%6d %9s %-6s %8s %9s%2s", q.ID, startText(q.Start), status, total, client, marksText(q.Marks()))
	line := what.whole()
	if w.o.Width > 0 {
		line = text.Fit(line, max(w.o.Width-len(head), 20))
	}
	w.str(head + text.Line(line) + "\n")
}

// Close implements Writer: on a screen the totals come first.
func (w *tableWriter) Close(s *Summary) error {
	if w.o.Totals && s.Shown > 0 {
		if w.totals(s) {
			w.str("\n")
		}
		w.str(fmt.Sprintf("Slowest %d of %s. --sort start: all; --id N --explain: why one was slow.\n\n", s.Shown, report.Count(s.Matched)))
	}
	w.show()
	all := w.n
	if w.serve != nil {
		all += w.serve.n
		if w.n > 0 {
			w.str("\n")
		}
		w.str("    id     start served    total    client  method path   (times in ms)\n")
		if err := cmp.Or(w.serve.flush(), w.later.copyTo(&w.out)); err != nil {
			return err
		}
	}
	if !w.o.Totals && all > 0 {
		w.str("\n")
		w.totals(s)
	}
	return w.flush()
}

// totals writes those of both sides, each for itself, and reports whether there are any.
func (w *tableWriter) totals(s *Summary) bool {
	made := len(s.Hosts) > 0
	if made {
		w.hosts(s.Hosts, "host")
	}
	if s.Served != nil {
		if made {
			w.str("\n")
		}
		if n := s.Served.Upgraded; n > 0 {
			s.Served.Name = fmt.Sprintf("all requests, times but of %d that became WebSockets", n)
		}
		w.hosts([]*Host{s.Served}, "served")
	}
	return made || s.Served != nil
}

// hosts writes a row for each host, the busiest first. Columns of which nothing happened are
// left out.
func (w *tableWriter) hosts(hosts []*Host, what string) {
	hosts = slices.Clone(hosts)
	slices.SortStableFunc(hosts, func(a, b *Host) int { return cmp.Compare(b.Requests, a.Requests) })
	rest := 0
	if len(hosts) > 60 {
		hosts, rest = hosts[:50], len(hosts)-50
	}
	number := func(get func(h *Host) int) func(*Host) string {
		return func(h *Host) string {
			if n := get(h); n > 0 {
				return strconv.Itoa(n)
			}
			return ""
		}
	}
	quantiles := make(map[*Host][]int64, len(hosts))
	for _, h := range hosts {
		if h.Durations.Len() > 0 {
			quantiles[h] = quantile.Of([]float64{.5, .9, .99, 1}, &h.Durations)
		}
	}
	at := func(i int) func(*Host) string {
		return func(h *Host) string {
			if quantiles[h] == nil {
				return ""
			}
			return cell(quantiles[h][i])
		}
	}
	columns := []struct {
		name string
		of   func(*Host) string
	}{
		{"requests", number(func(h *Host) int { return h.Requests })},
		{"failed", number(func(h *Host) int { return h.Outcomes[httpphases.Failed] + h.Outcomes[httpphases.Canceled] })},
		{"4xx", number(func(h *Host) int { return h.Client })},
		{"5xx", number(func(h *Host) int { return h.Server })},
		{"new conn", number(func(h *Host) int { return h.New })},
		{"p50", at(0)}, {"p90", at(1)}, {"p99", at(2)}, {"max", at(3)},
	}
	lines := make([]string, len(hosts)+1)
	for _, c := range columns {
		wide := 0
		for _, h := range hosts {
			wide = max(wide, len(c.of(h)))
		}
		if wide == 0 {
			continue
		}
		wide = max(wide, len(c.name))
		lines[0] += fmt.Sprintf("%*s  ", wide, c.name)
		for i, h := range hosts {
			lines[i+1] += fmt.Sprintf("%*s  ", wide, c.of(h))
		}
	}
	w.str(lines[0] + what + "\n")
	for i, h := range hosts {
		name := text.Line(h.Name)
		if w.o.Width > 0 {
			name = text.Fit(name, max(w.o.Width-len(lines[i+1]), 8))
		}
		w.str(lines[i+1] + name + "\n")
	}
	if rest > 0 {
		w.str(fmt.Sprintf("... and %d more hosts; --format json has them\n", rest))
	}
}
