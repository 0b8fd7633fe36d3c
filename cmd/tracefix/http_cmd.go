package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/export/httpout"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
)

// HTTPCmd is `tracefix http`.
type HTTPCmd struct {
	In     string `arg:"" name:"in" help:"Trace: nettrace or netperf, bare or in .gz, .zst, .zip; - is standard input."`
	Out    string `short:"o" placeholder:"OUT" help:"Output file; - is standard output, the default. Its extension names the format; .gz or .zst behind it compresses."`
	Format string `placeholder:"FORMAT" help:"Output format: table, json, ndjson, har, chromium, otlp, html. Default: by OUT's extension, else table."`
	Force  bool   `help:"Replace an existing output."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of saving what can be saved (exit 3)."`
	Report string `placeholder:"FILE" help:"Write the summary as JSON; - is standard output."`

	Slow   time.Duration `help:"Keep requests that took at least this long, such as 200ms."`
	Host   []string      `placeholder:"HOST" help:"Keep requests to these hosts; * and ? are wild. Not for requests that were served."`
	Status []string      `placeholder:"CODE" help:"Keep requests with these answers: 404, 5xx, 400-499. Not for requests that were served."`
	Failed bool          `help:"Keep requests that failed or were canceled."`
	From   time.Duration `help:"Keep requests that end after this time since the start of the trace."`
	To     time.Duration `help:"Keep requests that start before this time."`
	Sort   string        `enum:",start,duration,status,host,queue,wait" default:"" help:"Order: start, duration, status, host, queue or wait; start or duration where those served are among them. Default: by start, or as they end if there are very many."`
	Limit  int           `placeholder:"N" help:"Print the first N only."`
	Side   string        `enum:"client,server,both" default:"client" help:"Requests that the process made, those it served (ASP.NET Core), or both: client, server, both. HAR and HTML have no place for those served."`
}

// held is how many requests are kept to put them in order before they are written as
// they end: it bounds memory on traces with millions.
const held = 20000

// Run reads the trace and writes its requests.
func (c *HTTPCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	format, err := c.format()
	if err != nil {
		return usageError{err}
	}
	if c.sides()&requests.Server != 0 && !format.Served {
		var names []string
		for _, f := range httpout.Formats {
			if f.Served {
				names = append(names, f.Name)
			}
		}
		return usageError{fmt.Errorf("--side %s: %s has no place for requests that were served; use --format %s", c.Side, format.Name, strings.Join(names, ", "))}
	}
	if err := checkTimes(c.From, c.To); err != nil {
		return err
	}
	keep, err := c.filter()
	if err != nil {
		return usageError{err}
	}
	in, err := input.Open(ctx, c.In, &input.Options{Stdin: std.in})
	if err != nil {
		return err
	}
	defer in.Close()
	name := cmp.Or(c.Out, "-")
	opts := &output.Options{Force: c.Force, Stdout: std.out, Inputs: []string{in.Path()}}
	if c.Report != "" {
		if err := output.Check(c.Report, opts); err != nil {
			return usageError{err}
		}
	}
	out, err := output.Create(name, &output.Options{Force: c.Force, Stdout: std.out, Inputs: opts.Inputs, Others: []string{c.Report}})
	if err != nil {
		return usageError{err}
	}
	defer out.Close()

	run := httpRun{cmd: c, keep: keep, sum: httpout.Summary{Source: in.Name}}
	stop := showProgress(cli, std, in)
	info, err := requests.Read(ctx, in, func(r *nettrace.Reader) {
		run.scan = requests.NewScanner(r, run.request, run.server)
		h := r.Header()
		run.w = format.New(out, &httpout.Options{
			Source: in.Name, Exporter: version(), Start: h.SyncTime, Process: h.ProcessID, Width: c.width(name, std.out),
		})
	}, run.event)
	defer run.scan.Stop()
	if err == nil {
		run.scan.Finish()
		err = run.flush()
	}
	stop()
	if err != nil {
		return err
	}
	if run.err != nil {
		return run.err
	}
	if c.Strict && info.Damages > 0 {
		return fmt.Errorf("%s: damaged: offset %d: %s: %s", in.Name, info.Damage[0].Offset, info.Damage[0].Where, info.Damage[0].What)
	}
	findings := run.scan.Findings(&run.need, c.sides())
	for _, f := range findings {
		run.sum.Notes = append(run.sum.Notes, f.Missing+": "+f.Effect+".")
	}
	if len(findings) > 0 {
		run.sum.Notes = append(run.sum.Notes, "To record all of it: "+requests.Command(info.ProcessID, c.sides()))
	}
	if err := run.w.Close(&run.sum); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if c.Report != "" {
		if err := c.report(opts, &run.sum, info); err != nil {
			return err
		}
	}
	if !cli.Quiet {
		c.explain(std.err, &run, info, findings, out)
	}
	if info.Damages > 0 {
		return damaged{errors.New("damaged")}
	}
	return nil
}

func (c *HTTPCmd) format() (*httpout.Format, error) {
	if c.Format != "" {
		if f := httpout.Lookup(c.Format); f != nil {
			return f, nil
		}
		var names []string
		for _, f := range httpout.Formats {
			names = append(names, f.Name)
		}
		return nil, fmt.Errorf("--format must be one of %s, not %q", strings.Join(names, ", "), c.Format)
	}
	if c.Out == "" || c.Out == "-" {
		return httpout.Lookup("table"), nil
	}
	if f := httpout.ByExtension(c.Out); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("%s: the extension names no format; use .txt, .json, .ndjson, .har, .chromium.json, .otlp.json, .html or --format", c.Out)
}

// width is that of the terminal the table goes to; 0 if it goes elsewhere.
func (c *HTTPCmd) width(name string, w io.Writer) int {
	if name != "-" || !isTerminal(w) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 40 {
		return n
	}
	n, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return n
}

// An httpRow is a request, seen from one side.
type httpRow struct {
	made   *httpphases.Request
	served *httpphases.ServerRequest // if made is nil
}

// facts are what both sides tell.
func (r httpRow) facts() (f struct {
	start, duration int64
	ended           bool
	outcome         httpphases.Outcome
	id              int
}) {
	if q := r.made; q != nil {
		f.start, f.duration, f.ended, f.outcome, f.id = q.Start, q.Duration, q.HasDuration, q.Outcome, q.ID
	} else {
		q := r.served
		f.start, f.duration, f.ended, f.outcome, f.id = q.Start, q.Duration, q.HasDuration, q.Outcome, q.ID
	}
	return f
}

// filter compiles the flags. It refuses those that ask for what the events of a served
// request do not tell.
func (c *HTTPCmd) filter() (func(httpRow) bool, error) {
	if c.sides()&requests.Server != 0 {
		for _, f := range []struct {
			flag string
			set  bool
		}{{"--host", len(c.Host) > 0}, {"--status", len(c.Status) > 0}, {"--sort " + c.Sort, c.Sort != "" && c.Sort != "start" && c.Sort != "duration"}} {
			if f.set {
				return nil, fmt.Errorf("%s does not go with --side %s: a trace tells no host, status or phases of requests that were served", f.flag, c.Side)
			}
		}
	}
	if c.Limit < 0 {
		return nil, fmt.Errorf("--limit %d: must not be negative", c.Limit)
	}
	type span struct{ lo, hi int }
	var status []span
	for _, s := range c.Status {
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
	for _, h := range c.Host {
		if _, err := path.Match(h, ""); err != nil {
			return nil, fmt.Errorf("--host %s: %w", h, err)
		}
	}
	return func(row httpRow) bool {
		f := row.facts()
		if c.Slow > 0 && (!f.ended || f.duration < int64(c.Slow)) {
			return false
		}
		if c.Failed && f.outcome != httpphases.Failed && f.outcome != httpphases.Canceled {
			return false
		}
		if c.From > 0 && f.ended && f.start+f.duration < int64(c.From) || c.To > 0 && f.start > int64(c.To) {
			return false
		}
		r := row.made
		if r == nil {
			return true
		}
		if len(status) > 0 && !slices.ContainsFunc(status, func(s span) bool { return r.Status >= s.lo && r.Status <= s.hi }) {
			return false
		}
		return len(c.Host) == 0 || slices.ContainsFunc(c.Host, func(h string) bool {
			ok, _ := path.Match(strings.ToLower(h), strings.ToLower(r.Host))
			return ok || strings.EqualFold(h, r.Host) || strings.EqualFold(h, r.Host+":"+strconv.Itoa(r.Port))
		})
	}, nil
}

// sides are those that --side asks for.
func (c *HTTPCmd) sides() requests.Sides {
	switch c.Side {
	case "server":
		return requests.Server
	case "both":
		return requests.Client | requests.Server
	}
	return requests.Client
}

// httpRun is one run: it counts, filters, orders and hands on.
type httpRun struct {
	cmd     *HTTPCmd
	keep    func(httpRow) bool
	scan    *requests.Scanner
	w       httpout.Writer
	sum     httpout.Summary
	need    requests.Need
	held    []httpRow
	flowing bool // too many to put in order: they are written as they end
	err     error
}

func (h *httpRun) event(ev *nettrace.Event) { h.scan.Event(ev) }

func (h *httpRun) request(r *httpphases.Request) {
	h.need.Request(r)
	if h.cmd.sides()&requests.Client != 0 {
		shown := h.keep(httpRow{made: r})
		h.sum.Add(r)
		h.row(httpRow{made: r}, shown)
	}
}

func (h *httpRun) server(s *httpphases.ServerRequest) {
	h.sum.Servers++
	if h.cmd.sides()&requests.Server != 0 {
		h.row(httpRow{served: s}, h.keep(httpRow{served: s}))
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
	if h.cmd.Sort == "" && len(h.held) >= held {
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

// flush writes what is held, in order.
func (h *httpRun) flush() error {
	key := map[string]func(r *httpphases.Request) int64{
		"status": func(r *httpphases.Request) int64 { return -int64(r.Status) - 1000*int64(r.Outcome) },
		"queue":  func(r *httpphases.Request) int64 { v, _ := r.Phase(httpphases.Queue); return -v },
		"wait":   func(r *httpphases.Request) int64 { v, _ := r.Phase(httpphases.Wait); return -v },
	}[h.cmd.Sort]
	slices.SortStableFunc(h.held, func(a, b httpRow) int {
		fa, fb := a.facts(), b.facts()
		c := 0
		switch {
		case h.cmd.Sort == "duration":
			c = cmp.Compare(fb.duration, fa.duration)
		case key != nil: // of requests that the process made: filter sees to it
			c = cmp.Compare(key(a.made), key(b.made))
		case h.cmd.Sort == "host":
			c = cmp.Or(cmp.Compare(a.made.Host, b.made.Host), cmp.Compare(a.made.Port, b.made.Port))
		}
		return cmp.Or(c, cmp.Compare(fa.start, fb.start), cmp.Compare(fa.id, fb.id))
	})
	for _, r := range h.held {
		h.write(r)
		if h.err != nil {
			return h.err
		}
	}
	h.held = nil
	return h.err
}

// explain prints the summary and what the recording lacks.
func (c *HTTPCmd) explain(w io.Writer, run *httpRun, info *requests.Info, findings []requests.Finding, out *output.File) {
	s := &run.sum
	var parts []string
	all := 0 // of the sides that were asked for
	if c.sides()&requests.Client != 0 {
		all += s.Requests
		parts = append(parts, fmt.Sprintf("%s request%s", report.Count(s.Requests), report.Plural(s.Requests)))
		for o, n := range s.Outcomes {
			if n > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", report.Count(n), httpphases.Outcome(o)))
			}
		}
	}
	asked := c.sides()&requests.Server != 0
	if asked {
		all += s.Servers
	}
	if asked || s.Servers > 0 {
		parts = append(parts, report.Count(s.Servers)+" served")
	}
	if s.Matched != all && s.Matched != s.Shown {
		parts = append(parts, report.Count(s.Matched)+" match")
	}
	if s.Shown != all {
		parts = append(parts, report.Count(s.Shown)+" shown")
	}
	if s.Guessed > 0 {
		parts = append(parts, report.Count(s.Guessed)+" with guessed links")
	}
	if info.Lost > 0 {
		parts = append(parts, fmt.Sprintf("the recorder lost %s events: %s requests are incomplete for that", report.Count(int(info.Lost)), report.Count(s.Missing)))
	}
	line := s.Source + ": " + strings.Join(parts, ", ")
	if out.Name != "-" {
		line += " -> " + out.Name
	}
	fmt.Fprintln(w, line)
	for _, f := range findings {
		fmt.Fprintf(w, "  missing %s: %s.\n", f.Missing, f.Effect)
	}
	if len(findings) > 0 {
		fmt.Fprintf(w, "  To record all of it: %s\n", requests.Command(info.ProcessID, c.sides()))
	}
	printDamage(w, info.Damage, info.Damages)
}

func (c *HTTPCmd) report(o *output.Options, s *httpout.Summary, info *requests.Info) error {
	f, err := output.Create(c.Report, o)
	if err != nil {
		return err
	}
	defer f.Close()
	status := "ok"
	if info.Damages > 0 {
		status = "damaged"
	}
	if _, err := fmt.Fprintf(f, "{\"command\":\"http\",\"status\":%q,\"events\":%d,\"lost\":%d,\"damages\":%d,\"summary\":%s}\n",
		status, info.Events, info.Lost, info.Damages, httpout.AppendSummary(nil, s)); err != nil {
		return err
	}
	return f.Commit()
}
