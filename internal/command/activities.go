package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
)

var activityFormats = output.Formats{
	{Name: "tree", Extensions: []string{".txt"}, Help: "a tree, for people"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each activity"},
	{Name: "chromium", Extensions: []string{".chromium.json"}, Help: "Chromium trace event JSON"},
}

// Activities is `tracefix activities`.
type Activities struct {
	Provider     []string      `placeholder:"NAME" help:"Keep activities of these event sources; * and ? are wild."`
	Name         []string      `placeholder:"NAME" help:"Keep activities of these names; * and ? are wild."`
	Slow         time.Duration `help:"Keep activities that took at least this long, such as 200ms."`
	Status       []string      `enum:"ok,auto-stopped,unfinished,orphan-stop" placeholder:"STATUS" help:"Keep activities in these states: ok, auto-stopped, unfinished, orphan-stop."`
	Depth        int           `placeholder:"N" help:"Print N levels of the tree."`
	Explain      bool          `help:"Tell where the time of each activity went: CPU, locks, waits, the thread pool, collections, requests of its own."`
	PairByThread bool          `help:"Pair starts and stops by thread where there are no activity ids: right for synchronous code, wrong for async."`
}

// Check implements Job.
func (a *Activities) Check(format string) error {
	if format == "chromium" && (a.filter() != nil || a.Depth != 0) {
		return errors.New("--provider, --name, --slow, --status and --depth do not apply to --format chromium")
	}
	return nil
}

// Do writes the tree.
func (a *Activities) Do(ctx context.Context, c *Call) error {
	if c.Format == "chromium" { // drawn as convert does, without the sampled stacks
		return write(ctx, c, Config{Tracks: []string{"activities"}, PairByThread: a.PairByThread})
	}
	tree, read, err := requests.Activities(ctx, c.In, &activity.Options{PairByThread: a.PairByThread})
	if err != nil {
		return err
	}
	var why httpreport.ActivityExplain
	if a.Explain {
		rec := requests.NewRecorder(0)
		p, err := recorded(ctx, c, rec)
		if err != nil {
			return err
		}
		why = requests.NewActivityExplainer(p.Table, &rec.Log).Activity
	}
	c.read(read)
	a.tell(c.Report, tree, read)
	keep := a.filter()
	switch c.Format {
	case "json":
		return httpreport.ActivitiesJSON(c.Out, tree, keep, why)
	case "ndjson":
		return httpreport.ActivitiesNDJSON(c.Out, tree, keep, why)
	}
	return httpreport.ActivitiesTree(c.Out, tree, keep, a.Depth, why)
}

func (a *Activities) tell(rep *report.Trace, tree *activity.Tree, read *requests.Info) {
	var n [4]int
	for i := range tree.Rows {
		n[tree.Rows[i].Status]++
	}
	parts := []string{report.Count(len(tree.Rows)) + " activities"}
	for s, v := range n {
		if v > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", report.Count(v), activity.Status(s)))
		}
	}
	rep.Done = strings.Join(parts, ", ")
	if tree.HasIDs || len(tree.WithoutID) == 0 {
		return
	}
	how := "--pair-by-thread pairs them by thread: a guess that is wrong for async code"
	if a.PairByThread {
		how = "they are paired by thread, which is wrong for async code, so durations are guesses"
	}
	pid := "PID"
	if read.ProcessID != 0 {
		pid = fmt.Sprint(read.ProcessID)
	}
	rep.Notes = append(rep.Notes,
		"recorded without activity ids, so starts and stops cannot be told apart; "+how,
		fmt.Sprintf("to record them: dotnet-trace collect -p %s --providers '%s,System.Threading.Tasks.TplEventSource:0x80:4'", pid, providersText(tree)))
}

// providersText lists the event sources that the trace has starts of.
func providersText(tree *activity.Tree) string {
	var list []string
	for _, c := range tree.WithoutID {
		p := c.Provider + ":0xFFFFFFFFFFFFFFFF:4"
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return strings.Join(list, ",")
}

// filter keeps what the flags ask for; nil keeps everything.
func (a *Activities) filter() httpreport.ActivityFilter {
	if len(a.Provider) == 0 && len(a.Name) == 0 && len(a.Status) == 0 && a.Slow == 0 {
		return nil
	}
	return func(r *activity.Row) bool {
		d, ok := r.Duration()
		return text.List(a.Provider).Match(r.Provider) && text.List(a.Name).Match(r.Name) && (a.Slow == 0 || ok && d >= int64(a.Slow)) &&
			(len(a.Status) == 0 || slices.Contains(a.Status, r.Status.String()))
	}
}
