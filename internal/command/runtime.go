package command

import (
	"cmp"
	"context"
	"errors"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/nettrace"
)

var runtimeFormats = output.Formats{
	{Name: "text", Extensions: []string{".txt", ".text"}, Help: "a verdict and tables, for people"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
	{Name: "csv", Extensions: []string{".csv"}, Help: "a row for each item"},
	{Name: "html", Extensions: []string{".html"}, Help: "a page with plots"},
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each item, then the totals"},
}

// RuntimeReport is what the reports on the runtime have in common.
type RuntimeReport struct {
	ProcessFlag
	TimeFlags
	Limit *int `short:"n" placeholder:"N" help:"Rows in each table of text and html; 0 prints all. Default: 10."`

	kind    events.ReportKind
	waits   bool
	threads []string
	work    WorkFlags
}

// Check implements Job.
func (r *RuntimeReport) Check(format string) error {
	if r.Limit != nil && *r.Limit > 0 && format != "text" && format != "html" {
		return errors.New("--limit is for --format text and html; the others have every row")
	}
	return errors.Join(r.TimeFlags.Check(), LimitFlag{r.limit()}.check())
}

func (r *RuntimeReport) limit() int { return limitOr(r.Limit, 10) }

// Do writes the report.
func (r *RuntimeReport) Do(ctx context.Context, c *Call) error {
	filters := asked{WhoFlags: WhoFlags{r.ProcessFlag, r.threads}, TimeFlags: r.TimeFlags, WorkFlags: r.work}
	o := events.RuntimeOptions{
		Load: load.Options{Source: c.In.Name, Warn: c.warn}, Limit: r.limit(), Waits: r.waits,
		Between: interval.Interval{From: int64(r.From), To: int64(r.To)},
	}
	ids, err := r.work.ids(ctx, c)
	if err != nil {
		return err
	}
	if len(r.Process)+len(r.threads) > 0 || ids != nil {
		ours := filters.keeps(ctx, c)
		o.Partial = len(r.threads) > 0 || ids != nil
		o.Wants = func(ev *nettrace.Event) bool {
			return ours(ev.ProcessID, int64(ev.ThreadID)) && (ids == nil || ids.Has(uint32(ev.ProcessID), activity.ID(ev.ActivityID)))
		}
	}
	rep, info, err := events.ReadRuntime(ctx, c.In.Reader, r.kind, o)
	if err = cmp.Or(err, ids.Err()); err != nil {
		return err
	}
	if rep.Missing != "" && filters.any() {
		rep.Missing = filters.dropAll(ctx, c)
	}
	c.Report.Events, c.Report.Lost = info.Events, int64(info.Stats.Lost)
	c.Report.Done = rep.Summary()
	return rep.Write(c.Out, c.Format, c.Screen.Width)
}

// GC is `tracefix gc`.
type GC struct{ RuntimeReport }

// A ThreadFlag says which threads are wanted.
type ThreadFlag struct {
	Thread []string `placeholder:"TID|NAME" help:"Keep only what these threads did, of any process; * and ? are wildcards in names."`
}

// JIT is `tracefix jit`.
type JIT struct {
	ThreadFlag
	WorkFlags
	RuntimeReport
}

// Do writes the report.
func (j *JIT) Do(ctx context.Context, c *Call) error {
	j.threads, j.work = j.Thread, j.WorkFlags
	return j.RuntimeReport.Do(ctx, c)
}

// Locks is `tracefix locks`.
type Locks struct {
	Waits bool `help:"In json and ndjson, also list waits for anything but a lock."`
	ThreadFlag
	WorkFlags
	RuntimeReport
}

// Check implements Job.
func (l *Locks) Check(format string) error {
	if l.Waits && format != "json" && format != "ndjson" {
		return errors.New("--waits is for --format json and ndjson")
	}
	return l.RuntimeReport.Check(format)
}

// Do writes the report.
func (l *Locks) Do(ctx context.Context, c *Call) error {
	l.waits, l.threads, l.work = l.Waits, l.Thread, l.WorkFlags
	return l.RuntimeReport.Do(ctx, c)
}

// Threads is `tracefix threads`.
type Threads struct {
	ThreadFlag
	RuntimeReport
}

// Do writes the report.
func (t *Threads) Do(ctx context.Context, c *Call) error {
	t.threads = t.Thread
	return t.RuntimeReport.Do(ctx, c)
}
