package command

import (
	"context"

	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/output"
)

var runtimeFormats = output.Formats{
	{Name: "text", Extensions: []string{".txt", ".text"}, Help: "a verdict and tables, for people"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
	{Name: "csv", Extensions: []string{".csv"}, Help: "a row for each thing"},
	{Name: "html", Extensions: []string{".html"}, Help: "a page with plots"},
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each thing, and the totals"},
}

// RuntimeReport is what the reports on the runtime have in common.
type RuntimeReport struct {
	Limit int `short:"n" default:"10" help:"Rows in each table of text and html; 0 is all."`

	kind  events.ReportKind
	waits bool
}

// Check implements Job.
func (r *RuntimeReport) Check(string) error { return LimitFlag{r.Limit}.check() }

// Do writes the report.
func (r *RuntimeReport) Do(ctx context.Context, c *Call) error {
	rep, info, err := events.ReadRuntime(ctx, c.In.Reader, r.kind, events.RuntimeOptions{
		Load: load.Options{Source: c.In.Name, Warn: c.warn}, Limit: r.Limit, Waits: r.waits,
	})
	if err != nil {
		return err
	}
	c.Report.Events, c.Report.Lost = info.Events, int64(info.Stats.Lost)
	c.Report.Done = rep.Summary()
	return rep.Write(c.Out, c.Format, c.Screen.Width)
}

// GC is `tracefix gc`.
type GC struct{ RuntimeReport }

// JIT is `tracefix jit`.
type JIT struct{ RuntimeReport }

// Locks is `tracefix locks`.
type Locks struct {
	Waits bool `help:"Also a row for each wait that was for no lock, in json and ndjson."`
	RuntimeReport
}

// Do writes the report.
func (l *Locks) Do(ctx context.Context, c *Call) error {
	l.waits = l.Waits
	return l.RuntimeReport.Do(ctx, c)
}

// Threads is `tracefix threads`.
type Threads struct{ RuntimeReport }
