package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
)

var activityFormats = output.Formats{
	{Name: "tree", Also: "text", Extensions: []string{".txt"}, Help: "a tree, for people"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each activity"},
	{Name: "chromium", Extensions: []string{".chromium.json"}, Help: "Chromium trace event JSON"},
}

// Activities is `tracefix activities`.
type Activities struct {
	Provider []string      `placeholder:"NAME" help:"Keep only activities of these event sources; * and ? are wildcards."`
	Name     []string      `placeholder:"NAME" help:"Keep only activities of these names, spans also of their display names; * and ? are wildcards."`
	Slow     time.Duration `placeholder:"TIME" help:"Keep only activities that took at least this long, such as 200ms."`
	Status   []string      `enum:"ok,auto-stopped,unfinished,orphan-stop" placeholder:"STATUS" help:"Keep only activities in these states: ok, auto-stopped, unfinished, orphan-stop."`
	WorkFlags
	WhoFlags
	TimeFlags
	LimitFlag
	Depth        int  `placeholder:"N" help:"Print only N levels of the tree."`
	Explain      bool `help:"Show where the time of each activity went: CPU, locks, waits, the thread pool, GCs, its requests."`
	PairByThread bool `help:"Pair starts and stops by thread where there are no activity ids; wrong for async code."`
}

// Check implements Job.
func (a *Activities) Check(format string) error {
	if format == "chromium" && (a.filters() || a.Depth != 0 || a.Limit != 0 || a.Explain) {
		return errors.New("filters, --depth, --limit and --explain do not apply to --format chromium")
	}
	if a.Depth != 0 && (a.Depth < 0 || format != "tree") {
		return errors.New("--depth is a number of levels from 1 on, of --format tree")
	}
	return errors.Join(a.TimeFlags.Check(), a.LimitFlag.check())
}

// Do writes the tree.
func (a *Activities) Do(ctx context.Context, c *Call) error {
	if c.Format == "chromium" { // drawn as convert does, without the sampled stacks
		return write(ctx, c, Config{Tracks: []string{"activities"}, PairByThread: a.PairByThread})
	}
	rows, read, err := requests.Activities(ctx, c.In, &activity.Options{PairByThread: a.PairByThread})
	if err != nil {
		return err
	}
	c.read(read)
	keep, err := a.filter(ctx, c, rows, read.End)
	if err != nil {
		return err
	}
	shown := a.first(rows, keep) // counts and sums are of all that match
	a.tell(ctx, c, rows, read, keep)
	var why httpreport.ActivityExplain
	var told *requests.Explanations
	if a.Explain {
		rec := requests.NewRecorder(0)
		p, _, err := recorded(ctx, c, rec)
		if err != nil {
			return err
		}
		if told, err = requests.ExplainActivities(rows, shown, p.Table, rec); err != nil {
			return err
		}
		why = told.Of
		if rows.Len() > 0 {
			a.lacks(c.Report, rec.Findings(), rows, read)
		}
	}
	switch c.Format {
	case "json":
		err = httpreport.ActivitiesJSON(c.Out, rows, keep, shown, why)
	case "ndjson":
		err = httpreport.ActivitiesNDJSON(c.Out, rows, shown, why)
	default:
		err = httpreport.ActivitiesTree(c.Out, rows, keep, shown, a.Depth, why, c.Screen.Width)
	}
	if told != nil {
		err = cmp.Or(err, told.Err())
	}
	return cmp.Or(err, rows.Err())
}

// lacks says what the recording of the rows lacks that tells where their time went, and the line
// that records both.
func (a *Activities) lacks(rep *report.Trace, list []requests.Finding, rows *activity.Rows, read *requests.Info) {
	if len(list) == 0 {
		return
	}
	for _, f := range list {
		rep.Notes = append(rep.Notes, f.Missing+": "+f.Effect)
	}
	line := collect.Line{PID: read.ProcessID, Profiles: []string{collect.Sampled}}
	seen := map[string]bool{}
	for _, r := range rows.All() {
		if !seen[r.Provider] {
			seen[r.Provider] = true
			line.Providers = append(line.Providers, collect.All(r.Provider))
		}
	}
	line.Providers = append(line.Providers, collect.TaskCauses, collect.RuntimeCauses)
	rep.Notes = append(rep.Notes, "to record it all: "+line.For(read.Version))
}

// tell says how many activities there are and how those ended that are wanted; if none is, what
// there is.
func (a *Activities) tell(ctx context.Context, c *Call, rows *activity.Rows, read *requests.Info, keep httpreport.ActivityFilter) {
	rep := c.Report
	var ended [4]int
	match := 0
	for i, r := range rows.All() {
		if keep == nil || keep(i, r) {
			ended[r.Status]++
			match++
		}
	}
	parts := []string{report.Count(rows.Len()) + " activities"}
	if match < rows.Len() {
		parts = append(parts, report.Count(match)+" match")
	}
	for s, n := range ended {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", report.Count(n), activity.Status(s)))
		}
	}
	if a.Limit > 0 && a.Limit < match {
		parts = append(parts, report.Count(a.Limit)+" shown")
	}
	rep.Done = strings.Join(parts, ", ")
	if rows.Len() == 0 && len(rows.WithoutID) == 0 {
		line := collect.Line{Providers: []string{collect.All("SOURCE"), collect.ActivityIDs}}
		rep.Done = "no activities; `" + line.For(read.Version) + "` records those of an event source, such as System.Net.Http"
	}
	if match == 0 && rows.Len() > 0 {
		filters := asked{WhoFlags: a.WhoFlags, TimeFlags: a.TimeFlags, WorkFlags: a.WorkFlags, provider: a.Provider}
		filters.Activity = slices.Concat(a.Name, a.Activity)
		rep.Notes = append(rep.Notes, filters.dropAll(ctx, c)+a.others(rows))
	}
	if rows.HasIDs || len(rows.WithoutID) == 0 {
		return
	}
	how := "--pair-by-thread pairs them by thread: a guess that is wrong for async code"
	if a.PairByThread {
		how = "they are paired by thread, which is wrong for async code, so durations are guesses"
	}
	line := collect.Line{PID: read.ProcessID, Providers: append(withoutIDs(rows), collect.ActivityIDs)}
	rep.Notes = append(rep.Notes,
		"recorded without activity ids, so starts and stops cannot be told apart; "+how,
		"to record them: "+line.For(read.Version))
}

// lasted returns how long an activity took, ns: a span tells it that began before the recording and ended in it.
func lasted(r *activity.Row) (d int64, ok bool) {
	if r.HasStop && !r.HasStart && r.Span != nil {
		return r.Span.Duration, r.Span.Duration > 0
	}
	if d, ok = r.Duration(); !ok {
		return 0, false
	}
	return d, true
}

// others tells of all activities what --slow and --status ask for.
func (a *Activities) others(rows *activity.Rows) (what string) {
	longest := int64(0)
	var states []string
	for _, r := range rows.All() {
		d, _ := lasted(r)
		longest = max(longest, d)
		if s := r.Status.String(); !slices.Contains(states, s) {
			states = append(states, s)
		}
	}
	if a.Slow > 0 {
		what = fmt.Sprintf("; the longest took %v", time.Duration(longest).Round(time.Microsecond))
	}
	if len(a.Status) > 0 {
		what += "; they are " + strings.Join(states, ", ")
	}
	return what
}

// withoutIDs lists the event sources that the trace has starts of, as dotnet-trace takes them.
func withoutIDs(rows *activity.Rows) (list []string) {
	for _, c := range rows.WithoutID {
		p := collect.All(c.Provider)
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// filters reports whether the flags ask for a part of the activities.
func (a *Activities) filters() bool {
	return len(a.Provider)+len(a.Name)+len(a.Status)+len(a.Activity)+len(a.Request)+len(a.Process)+len(a.Thread) > 0 || a.Slow != 0 || a.From != 0 || a.To != 0
}

// filter keeps what the flags ask for, in a trace that ends then; nil keeps everything.
func (a *Activities) filter(ctx context.Context, c *Call, rows *activity.Rows, last int64) (httpreport.ActivityFilter, error) {
	if !a.filters() {
		return nil, nil
	}
	ours := a.WhoFlags.keeps(ctx, c)
	inside, err := a.WorkFlags.rows(ctx, c, rows)
	if err != nil {
		return nil, err
	}
	return func(i int, r *activity.Row) bool {
		d, ok := lasted(r)
		end := last
		if r.HasStop {
			end = r.Stop
		}
		return text.List(a.Provider).Match(r.Provider) && (text.List(a.Name).Match(r.Name) || r.Span != nil && text.List(a.Name).Match(r.Span.DisplayName)) && (a.Slow == 0 || ok && d >= int64(a.Slow)) &&
			(len(a.Status) == 0 || slices.Contains(a.Status, r.Status.String())) &&
			ours(int(r.Process), int64(r.StartThread)) && a.overlap(r.Start, end) && (inside == nil || inside.Has(i))
	}, nil
}

// first keeps the first --limit of what keep does.
func (a *Activities) first(rows *activity.Rows, keep httpreport.ActivityFilter) httpreport.ActivityFilter {
	if a.Limit == 0 {
		return keep
	}
	first := map[int]bool{}
	for i, r := range rows.All() {
		if len(first) == a.Limit {
			break
		}
		if keep == nil || keep(i, r) {
			first[i] = true
		}
	}
	return func(i int, _ *activity.Row) bool { return first[i] }
}
