package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// httpFormats are those of package httpreport.
var httpFormats = func() (list output.Formats) {
	for _, f := range httpreport.Formats {
		list = append(list, output.Format{Name: f.Name, Extensions: f.Extensions, Help: f.Help})
		if f.Name == "table" {
			list[len(list)-1].Also = "text"
		}
	}
	return append(list, output.Format{Name: "markdown", Extensions: []string{".md"}, Help: "Markdown, the report of --summary"})
}()

// HTTP is `tracefix http`.
type HTTP struct {
	Slow    time.Duration `placeholder:"TIME" help:"Keep only requests that took at least this long, such as 200ms."`
	Host    []string      `placeholder:"HOST" help:"Keep only requests to these hosts; * and ? are wildcards."`
	Request []string      `placeholder:"ID|URL" help:"Keep only these requests: an id, a URL or its path; * and ? are wildcards."`
	Status  []string      `placeholder:"CODE" help:"Keep only requests with these status codes, such as 404, 5xx or 400-499."`
	Failed  bool          `help:"Keep only requests that failed or were canceled."`
	WhoFlags
	ActivityFlag
	TimeFlags
	Sort string `enum:",start,duration,status,host,queue,wait" default:"" placeholder:"ORDER" help:"Sort by start (the default), duration, status, host, queue or wait."`
	LimitFlag
	ID      []int  `name:"id" placeholder:"N" help:"Keep only the requests with these ids."`
	Summary bool   `help:"Report on the service as a whole: what is wrong with it; rates and durations by route, host, status and time."`
	Explain bool   `help:"Show where the time of each request went: CPU, locks, waits, the thread pool, GCs, the other side."`
	Side    string `enum:",client,server,both" default:"" placeholder:"SIDE" help:"Which requests: client (made by the process), server (served by it) or both. Default: client; with --summary both."`
	Stacks  string `placeholder:"PAGE" help:"Address of the page that view makes of the trace: html output links each request to its stacks there."`
}

// Check implements Job.
func (h *HTTP) Check(format string) error {
	if h.Stacks != "" && format != "html" {
		return fmt.Errorf("--stacks: %s has no place for it; use --format html", format)
	}
	if h.Summarizes(format) {
		_, err := h.filter()
		return errors.Join(h.TimeFlags.Check(), h.checkSummary(format), err)
	}
	if h.Explain && !slices.Contains([]string{"ndjson", "json", "html", "table"}, format) {
		return fmt.Errorf("--explain: %s has no place for it; use --format table, ndjson, json or html", format)
	}
	_, err := h.filter()
	return errors.Join(h.TimeFlags.Check(), h.LimitFlag.check(), err)
}

// Do writes the requests of the trace.
func (h *HTTP) Do(ctx context.Context, c *Call) error {
	if h.Summarizes(c.Format) {
		return h.summary(ctx, c)
	}
	keep, ids, err := h.wanted(ctx, c)
	if err != nil {
		return err
	}
	aside := input.Aside(keptMemory)
	run := httpRun{cmd: h, dropped: droppedRequests{cmd: h}, keep: keep, sum: httpreport.Summary{Source: c.In.Name, Spool: aside}, totals: newHTTPTotals(c, h.sides())}
	rows := 0
	switch {
	case c.Format != "table" || h.Sort != "" || h.Limit != 0 || len(h.ID) != 0 || len(h.Request) != 0:
	case h.Explain:
		rows = explainedRows
	case c.Screen.Width > 0:
		rows = screenRows
	}
	if rows > 0 {
		short := *h
		short.Sort, short.Limit = "duration", rows
		run.cmd = &short
	}
	begin := func(scan *requests.Scanner) {
		run.scan = scan
		head := scan.Header()
		run.w = httpreport.Lookup(c.Format).New(c.Out, &httpreport.Options{
			Source: c.In.Name, Exporter: c.Version, Start: head.SyncTime, Process: head.ProcessID, Width: c.Screen.Width, Totals: rows > 0, Stacks: h.Stacks, Origin: scan.Origin, Spool: run.sum.Spool,
		})
	}
	defer func() { httpreport.Abandon(run.w) }()
	var read *requests.Info
	if h.Explain {
		read, err = explained(ctx, c, func(_ *profile.Profile, x *requests.Explainer, scan *requests.Scanner) {
			x.Steps = c.Format == "table" || c.Format == "html"
			run.explain, run.others.Pairs = x, x.Pairs
			begin(scan)
		}, func(r httpRow, before int64) {
			run.take(r)
			run.release(before)
		})
	} else {
		read, err = scanned(ctx, c, begin, run.take)
	}
	if err == nil {
		err = run.flush()
	}
	if err == nil && run.explain != nil {
		err = run.explain.Err()
	}
	if err != nil {
		return err
	}
	c.read(read)
	lacks := run.scan.Findings(&run.need, h.sides())
	if x := run.explain; x != nil && run.sum.Requests+run.sum.Servers > 0 {
		lacks = append(lacks, x.Findings()...)
	}
	run.sum.Notes = notRecorded(run.sum.Notes, lacks, run.scan.Line(read.ProcessID, h.sides(), h.Explain))
	if before := run.scan.Before(h.sides()); before != "" {
		run.sum.Notes = append(run.sum.Notes, before)
	}
	if x := run.explain; x != nil && x.OnlyCPU() {
		run.sum.Notes = append(run.sum.Notes, "samples were taken on CPUs only, so what threads did between them is unknown; "+recordsOffCPU())
	}
	rep := c.Report
	rep.Notes, rep.Done = run.sum.Notes, run.told()
	run.totals.end(rep, run.sum.Durations(), run.sum.ServedDurations())
	run.dropped.tell(ctx, c)
	err = run.w.Close(&run.sum)
	rep.Detail = httpreport.AppendSummary(nil, &run.sum)
	return cmp.Or(err, ids.Err(), run.sum.Spool.Err())
}

// notRecorded appends what the recording lacks, and the line that records it and what the notes
// miss already.
func notRecorded(notes []string, lacks []requests.Finding, line string) []string {
	for _, f := range lacks {
		notes = append(notes, f.Missing+": "+f.Effect+".")
	}
	if len(notes) == 0 {
		return nil
	}
	return append(notes, "To record it all: "+line)
}

// How many requests are shown unless told, the slowest: on a terminal, and explained in words.
const (
	screenRows    = 20
	explainedRows = 5
)

// held is how many requests are kept to put them in order before they are written as
// they end: it bounds memory on traces with millions.
const held = 20000

// An httpRow is a request, seen from one side.
type httpRow struct {
	made   *httpphases.Request
	served *httpphases.ServerRequest // if made is nil
}

// facts are what both sides tell.
func (r httpRow) facts() (f struct {
	start, duration int64
	took            int64 // of one that began before the recording; 0: not known
	ended           bool
	outcome         httpphases.Outcome
	id, status      int
	process         uint32
	thread          uint64
	activity        activity.ID
}) {
	f.start, f.duration, f.id = r.order()
	if q := r.made; q != nil {
		f.ended, f.outcome, f.status, f.took = q.HasDuration, q.Outcome, q.Status, q.Took
		f.process, f.thread, f.activity = q.Process, q.Thread, activity.ID(q.Activity)
	} else {
		q := r.served
		f.ended, f.outcome, f.status, f.took = q.HasDuration, q.Outcome, q.Status, q.Took
		f.process, f.thread, f.activity = q.Process, q.Thread, activity.ID(q.Activity)
	}
	return f
}

// order is what requests are put in order by. It is asked for so often that facts takes too long.
func (r httpRow) order() (start, duration int64, id int) {
	if q := r.made; q != nil {
		return q.Start, q.Duration, q.ID
	}
	return r.served.Start, r.served.Duration, r.served.ID
}

// url is where it went, as far as is known.
func (r httpRow) url() string {
	if r.made != nil {
		return r.made.URL()
	}
	return cmp.Or(r.served.URL(), r.served.Target)
}

func (r httpRow) method() string {
	if r.made != nil {
		return r.made.Method
	}
	return r.served.Method
}

// wanted returns what the flags ask for, but for time, and the activities that it asks: theirs is
// an error that it had.
func (h *HTTP) wanted(ctx context.Context, c *Call) (func(httpRow) bool, *activity.IDSet, error) {
	keep, err := h.filter()
	if err != nil {
		return nil, nil, err
	}
	ids, err := WorkFlags{ActivityFlag: h.ActivityFlag}.ids(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	ours := h.keeps(ctx, c)
	return func(r httpRow) bool {
		f := r.facts()
		return ours(int(f.process), int64(f.thread)) && (ids == nil || ids.Has(f.process, f.activity)) && keep(r)
	}, ids, nil
}

// filter compiles the flags that are about a request alone. A served request whose status or host
// no event tells is not of any.
func (h *HTTP) filter() (func(httpRow) bool, error) {
	if h.sides()&requests.Server != 0 && !slices.Contains([]string{"", "start", "duration"}, h.Sort) {
		return nil, fmt.Errorf("--sort %s does not go with --side %s: use start or duration", h.Sort, h.Side)
	}
	type span struct{ lo, hi int }
	var status []span
	for _, s := range h.Status {
		lo, hi, dash := strings.Cut(strings.ToLower(s), "-")
		a, err := strconv.Atoi(strings.ReplaceAll(lo, "x", "0"))
		b := a
		switch {
		case dash && err == nil:
			b, err = strconv.Atoi(hi)
		case strings.HasSuffix(lo, "xx"):
			b = a + 99
		case strings.HasSuffix(lo, "x"):
			b = a + 9
		}
		if err != nil || a < 100 || b > 999 || b < a {
			return nil, fmt.Errorf("--status %s: use a code such as 404, a class such as 5xx, or a range such as 400-499", s)
		}
		status = append(status, span{a, b})
	}
	return func(row httpRow) bool {
		f := row.facts()
		if h.Slow > 0 && f.took < int64(h.Slow) && (!f.ended || f.duration < int64(h.Slow)) {
			return false
		}
		if len(h.ID) > 0 && !slices.Contains(h.ID, f.id) {
			return false
		}
		if h.Failed && f.outcome != httpphases.Failed && f.outcome != httpphases.Canceled {
			return false
		}
		if len(status) > 0 && !slices.ContainsFunc(status, func(s span) bool { return f.status >= s.lo && f.status <= s.hi }) {
			return false
		}
		if len(h.Request) > 0 && !profile.MatchRequest(h.Request, f.id, row.url()) {
			return false
		}
		return len(h.Host) == 0 || text.List(h.Host).Match(row.hostNames()...)
	}, nil
}

// hostNames are what the host of a request may be called.
func (row httpRow) hostNames() []string {
	var scheme, host string
	var port int
	if r := row.made; r != nil {
		scheme, host, port = r.Scheme, r.Host, r.Port
	} else if host, port = row.served.Place(); host == "" {
		return nil
	} else {
		scheme = row.served.Scheme
	}
	withPort := net.JoinHostPort(host, strconv.Itoa(port))
	return []string{host, withPort, scheme + "://" + host, scheme + "://" + withPort}
}

// inTime reports whether a request that scan found falls into the stretch of time that is wanted.
func (h *HTTP) inTime(row httpRow, scan *requests.Scanner) bool {
	f := row.facts()
	end := f.start + f.duration
	if !f.ended && f.took == 0 {
		end = scan.End()
	}
	return h.overlap(f.start, end)
}

// sides are those that --side asks for.
func (h *HTTP) sides() requests.Sides {
	switch h.Side {
	case "server":
		return requests.Server
	case "both":
		return requests.Client | requests.Server
	}
	return requests.Client
}

// summarized are the sides that a summary tells of.
func (h *HTTP) summarized() requests.Sides {
	if h.Side == "" {
		return requests.Client | requests.Server
	}
	return h.sides()
}

// httpRun is one run: it counts, filters, orders and hands on.
type httpRun struct {
	cmd     *HTTP
	keep    func(httpRow) bool
	scan    *requests.Scanner
	w       httpreport.Writer
	sum     httpreport.Summary
	need    requests.Need
	totals  httpTotals
	dropped droppedRequests
	explain *requests.Explainer // nil: not asked for
	others  requests.Others     // served and explained, for who asked for them
	held    []httpRow
	runs    *rowRuns // of all that was held before, where all are asked for in an order; nil: nothing was
	many    int      // held from which on release looks for those that can be written
	flowing bool     // too many to put in order: they are written as they end
	err     error
}

// take takes a request that has ended.
func (h *httpRun) take(r httpRow) {
	if r.made != nil {
		h.request(r.made)
	} else {
		h.server(r.served)
	}
}

func (h *httpRun) request(r *httpphases.Request) {
	h.need.Request(r)
	row := httpRow{made: r}
	if h.cmd.sides()&requests.Client == 0 {
		return
	}
	shown := h.cmd.inTime(row, h.scan)
	if shown {
		h.sum.Requests++
		shown = h.keep(row)
	}
	h.dropped.see(row, shown)
	if shown {
		h.sum.Add(r)
		h.totals.made(r)
	}
	if h.explain != nil && r.HasDuration {
		// Of all, so that what is shown has no say in who answered whom.
		by, guessed := h.others.Of(r)
		if shown {
			r.Why = h.explain.Client(r)
			r.Why.Server, r.Why.ServerGuessed = by, guessed
		}
	}
	h.row(row, shown)
}

func (h *httpRun) server(s *httpphases.ServerRequest) {
	row := httpRow{served: s}
	asked := h.cmd.sides()&requests.Server != 0
	if h.explain != nil {
		s.Why = h.explain.Server(s)
		h.others.Add(s)
	}
	if !h.cmd.inTime(row, h.scan) {
		if asked {
			h.dropped.see(row, false)
		}
		return
	}
	h.sum.Servers++
	if asked {
		shown := h.keep(row)
		if shown {
			h.sum.AddServed(s)
			h.totals.served(s)
		}
		h.dropped.see(row, shown)
		h.row(row, shown)
	}
}

// row takes a request of a side that is asked for.
func (h *httpRun) row(r httpRow, shown bool) {
	if !shown || h.err != nil {
		return
	}
	h.sum.Matched++
	if h.flowing {
		h.write(r)
		return
	}
	h.held = append(h.held, r)
	switch {
	case h.cmd.Sort != "" && (h.cmd.Limit == 0 || h.cmd.Limit > held/2): // of so many, keeping the first would sort the same ones again and again
		if len(h.held) == held || h.explain != nil && len(h.held) == explainedAtOnce {
			h.run()
		}
	case len(h.held) < held:
	case h.cmd.Sort != "":
		h.order()
		clear(h.held[h.cmd.Limit:])
		h.held = h.held[:h.cmd.Limit]
	default:
		h.err = h.flush()
		h.flowing = true
	}
}

func (h *httpRun) write(r httpRow) {
	if h.cmd.Limit > 0 && h.sum.Shown >= h.cmd.Limit {
		return
	}
	h.sum.Shown++
	if r.made != nil {
		h.err = h.w.Request(r.made)
	} else {
		h.err = h.w.Server(r.served)
	}
}

// run puts aside what is held.
func (h *httpRun) run() {
	if h.runs == nil {
		h.runs = newRowRuns(h.sum.Spool, h.compare())
	}
	h.runs.add(h.held)
	clear(h.held)
	h.held = h.held[:0]
}

// flush writes what is held, in order.
func (h *httpRun) flush() error {
	if h.runs != nil {
		if len(h.held) > 0 {
			h.run()
		}
		for r := range h.runs.ordered {
			if h.write(r); h.err != nil {
				return h.err
			}
		}
		return h.runs.Err()
	}
	h.order()
	for _, r := range h.held {
		h.write(r)
		if h.err != nil {
			return h.err
		}
	}
	h.held = nil
	return h.err
}

// release writes what is held and began before a time, which is all that did: so it is written while
// others are explained.
func (h *httpRun) release(before int64) {
	if h.cmd.Sort != "" || h.flowing || len(h.held) < max(h.many, 512) {
		return
	}
	h.order()
	n := 0
	for ; n < len(h.held) && h.held[n].facts().start < before && h.err == nil; n++ {
		h.write(h.held[n])
	}
	h.held = slices.Delete(h.held, 0, n)
	h.many = 2 * len(h.held)
}

// order puts what is held into the order that is asked for.
func (h *httpRun) order() { text.SortRows(h.held, h.compare()) }

// compare returns that order.
func (h *httpRun) compare() func(a, b *httpRow) int {
	key := map[string]func(r *httpphases.Request) int64{
		"status": func(r *httpphases.Request) int64 { return -int64(r.Status) - 1000*int64(r.Outcome) },
		"queue":  func(r *httpphases.Request) int64 { v, _ := r.Phase(httpphases.Queue); return -v },
		"wait":   func(r *httpphases.Request) int64 { v, _ := r.Phase(httpphases.Wait); return -v },
	}[h.cmd.Sort]
	return func(a, b *httpRow) int {
		start, duration, id := a.order()
		start2, duration2, id2 := b.order()
		c := 0
		switch {
		case h.cmd.Sort == "duration":
			c = cmp.Compare(duration2, duration)
		case key != nil: // of requests that the process made: filter sees to it
			c = cmp.Compare(key(a.made), key(b.made))
		case h.cmd.Sort == "host":
			c = cmp.Or(cmp.Compare(a.made.Host, b.made.Host), cmp.Compare(a.made.Port, b.made.Port))
		}
		return cmp.Or(c, cmp.Compare(start, start2), cmp.Compare(id, id2))
	}
}

// told is the summary in words.
func (h *httpRun) told() string {
	s, sides := &h.sum, h.cmd.sides()
	var parts []string
	all := 0 // of the sides that were asked for
	if sides&requests.Client != 0 {
		all += s.Requests
		parts = append(parts, fmt.Sprintf("%s request%s", report.Count(s.Requests), report.Plural(s.Requests)))
	}
	if sides&requests.Server != 0 {
		all += s.Servers
	}
	if sides&requests.Server != 0 || s.Servers > 0 {
		parts = append(parts, report.Count(s.Servers)+" served")
	}
	if s.Matched != all {
		parts = append(parts, report.Count(s.Matched)+" match")
	}
	for o, n := range s.Outcomes {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", report.Count(n), httpphases.Outcome(o)))
		}
	}
	if s.Shown != s.Matched {
		parts = append(parts, report.Count(s.Shown)+" shown")
	}
	if s.Guessed > 0 {
		parts = append(parts, report.Count(s.Guessed)+" with guessed links")
	}
	if s.Missing > 0 {
		parts = append(parts, report.Count(s.Missing)+" with events missing")
	}
	return strings.Join(parts, ", ")
}
