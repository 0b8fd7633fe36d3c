package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/quantile"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/profile"
)

// summaryFormats write how a service did.
var summaryFormats = map[string]func(w io.Writer, s *httpreport.Service, width int) error{
	"table": httpreport.ServiceText, "markdown": whole(httpreport.ServiceMarkdown), "html": whole(httpreport.ServiceHTML),
	"json": whole(httpreport.ServiceJSON), "ndjson": whole(httpreport.ServiceNDJSON),
}

// whole is a format that is of any width.
func whole(write func(io.Writer, *httpreport.Service) error) func(io.Writer, *httpreport.Service, int) error {
	return func(w io.Writer, s *httpreport.Service, _ int) error { return write(w, s) }
}

// Summarizes reports whether a summary is asked for: nothing else is written as Markdown.
func (h *HTTP) Summarizes(format string) bool { return h.Summary || format == "markdown" }

// checkSummary refuses what does not go with a summary.
func (h *HTTP) checkSummary(format string) error {
	if summaryFormats[format] == nil {
		return fmt.Errorf("--summary: %s has no place for it; use --format table, markdown, html, json or ndjson", format)
	}
	if h.Explain || len(h.ID) > 0 || h.Sort != "" || h.Limit != 0 {
		return fmt.Errorf("--summary, which markdown always is, is of all requests: --explain, --id, --sort and --limit do not go with it")
	}
	return nil
}

// summary tells how the service did, on the sides that are asked for. What is wrong with it, and
// its figures, show in both.
func (h *HTTP) summary(ctx context.Context, c *Call) error {
	keep, ids, err := h.wanted(ctx, c)
	if err != nil {
		return err
	}
	aside := input.Aside(keptMemory)
	col := &httpreport.ServiceCollector{Spool: aside, In: interval.Interval{From: int64(h.From), To: int64(h.To)}}
	if len(h.Process) > 0 {
		col.Wanted = h.ProcessFlag.keeps(ctx, c)
	}
	var why *requests.Explainer
	var scan *requests.Scanner
	var need requests.Need
	sides := h.summarized()
	totals := newHTTPTotals(c, sides)
	durations, servedDurations := quantile.Numbers{Spool: aside}, quantile.Numbers{Spool: aside}
	made, served, all := 0, 0, 0
	dropped := droppedRequests{cmd: h}
	read, err := explained(ctx, c, func(p *profile.Profile, x *requests.Explainer, s *requests.Scanner) {
		col.Span(p.Meta.End)
		why, scan = x, s
	}, func(r httpRow, _ int64) {
		if r.made != nil {
			need.Request(r.made)
		}
		all++
		kept := h.inTime(r, scan) && keep(r)
		dropped.see(r, kept)
		switch {
		case !kept:
		case r.made != nil:
			r.made.Why = why.Client(r.made)
			col.Client(r.made)
			if totals.made(r.made); sides&requests.Client != 0 && r.lasted() {
				durations.Add(r.made.Duration)
			}
			made++
		default:
			r.served.Why = why.Server(r.served)
			col.Server(r.served)
			if totals.served(r.served); sides&requests.Server != 0 && r.lasted() {
				servedDurations.Add(r.served.Duration)
			}
			served++
		}
	}, col)
	if err == nil {
		err = why.Err()
	}
	if err != nil {
		return err
	}
	c.read(read)
	col.All = made+served == all
	s := col.Finish(c.In.Name)
	if sides&requests.Client == 0 {
		s.Client, s.Connections = nil, nil
	}
	if sides&requests.Server == 0 {
		s.Server = nil
	}
	s.Notes = notRecorded(s.Notes, scan.Findings(&need, sides), scan.Line(read.ProcessID, sides, true))
	if before := scan.Before(sides); before != "" {
		s.Notes = append(s.Notes, before)
	}
	totals.end(c.Report, []*quantile.Numbers{&durations}, []*quantile.Numbers{&servedDurations})
	if err := cmp.Or(aside.Err(), ids.Err()); err != nil {
		return err
	}
	c.Report.Requests.Service = &s.Figures
	c.Report.Done = summaryTold(c.Report.Requests, s)
	dropped.tell(ctx, c)
	return summaryFormats[c.Format](c.Out, s, c.Screen.Width)
}

// summaryTold is a summary in one line.
func summaryTold(told *report.Requests, s *httpreport.Service) string {
	var parts []string
	nothing := "nothing stands out"
	for i, of := range [...]*report.Side{told.Made, told.Served} {
		if of == nil {
			continue
		}
		part := report.Count(of.Count) + [...]string{" made", " served"}[i]
		if of.Errors > 0 {
			part += " (" + report.Count(of.Errors) + " with errors)"
			nothing = "nothing else stands out"
		}
		parts = append(parts, part)
	}
	for _, f := range s.Findings {
		parts = append(parts, strings.ReplaceAll(f.Kind, "_", " "))
	}
	if len(s.Findings) == 0 && told.Count > 0 {
		parts = append(parts, nothing)
	}
	return strings.Join(parts, ", ")
}
