package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/nettrace"
)

// summaryFormats write how a service did.
var summaryFormats = map[string]func(io.Writer, *httpreport.Service) error{
	"table": httpreport.ServiceText, "markdown": httpreport.ServiceMarkdown, "html": httpreport.ServiceHTML, "json": httpreport.ServiceJSON, "ndjson": httpreport.ServiceNDJSON,
}

// summarizes reports whether a summary is asked for: nothing else is written as Markdown.
func (h *HTTP) summarizes(format string) bool { return h.Summary || format == "markdown" }

// checkSummary refuses what does not go with a summary.
func (h *HTTP) checkSummary(format string) error {
	if summaryFormats[format] == nil {
		return fmt.Errorf("--summary: %s has no place for it; use --format table, markdown, html, json or ndjson", format)
	}
	if h.Explain || len(h.ID) > 0 || h.Sort != "" || h.Limit != 0 {
		return fmt.Errorf("--summary is of all requests: --explain, --id, --sort and --limit do not go with it")
	}
	return nil
}

// summary tells how the service did, both sides of it.
func (h *HTTP) summary(ctx context.Context, c *Call) error {
	keep, err := h.wanted(ctx, c)
	if err != nil {
		return err
	}
	rec, col := requests.NewRecorder(0), &httpreport.ServiceCollector{}
	p, err := recorded(ctx, c, rec, col)
	if err != nil {
		return err
	}
	col.Span(p.Meta.End)
	why := requests.NewExplainer(p.Table, rec)
	var scan *requests.Scanner
	var need requests.Need
	totals := newHTTPTotals(c)
	made, served := 0, 0
	dropped := droppedRequests{cmd: h}
	wanted := func(r httpRow) bool {
		kept := h.inTime(r, scan) && keep(r)
		dropped.see(r, kept)
		return kept
	}
	request := func(r *httpphases.Request) {
		need.Request(r)
		if wanted(httpRow{made: r}) {
			r.Why = why.Client(r)
			col.Client(r)
			totals.add(r)
			made++
		}
	}
	server := func(r *httpphases.ServerRequest) {
		if wanted(httpRow{served: r}) {
			r.Why = why.Server(r)
			col.Server(r)
			totals.served(r)
			served++
		}
	}
	read, err := requests.Read(ctx, c.In, func(r *nettrace.Reader) { scan = requests.NewScanner(r, request, server) }, func(ev *nettrace.Event) { scan.Event(ev) })
	defer scan.Stop()
	if err != nil {
		return err
	}
	scan.Finish()
	c.read(read)
	s := col.Finish(c.In.Name)
	sides := requests.Client | requests.Server
	for _, f := range scan.Findings(&need, sides) {
		s.Notes = append(s.Notes, f.Missing+": "+f.Effect+".")
	}
	if len(s.Notes) > 0 {
		s.Notes = append(s.Notes, "To record all of it: "+scan.Command(read.ProcessID, sides))
	}
	totals.end(c.Report)
	c.Report.Requests.Service = &s.Figures
	parts := []string{fmt.Sprintf("%s made, %s served", report.Count(made), report.Count(served))}
	for _, f := range s.Findings {
		parts = append(parts, strings.ReplaceAll(f.Kind, "_", " "))
	}
	if len(s.Findings) == 0 && made+served > 0 {
		parts = append(parts, "nothing stands out")
	}
	c.Report.Done = strings.Join(parts, ", ")
	dropped.tell(ctx, c)
	return summaryFormats[c.Format](c.Out, s)
}
