package command

import (
	"context"
	"fmt"
	"maps"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

var infoFormats = output.Formats{
	{Name: "text", Extensions: []string{".txt"}, Help: "for people: verdicts first"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
}

// Info is `tracefix info`.
type Info struct {
	All   bool `help:"List every provider, event type and thread."`
	Limit *int `short:"n" placeholder:"N" help:"List only the first N providers, threads and processes; 0 lists all. Default: 12 providers, 8 of the others."`
}

// Check implements Job.
func (i *Info) Check(string) error {
	return LimitFlag{limitOr(i.Limit, 0)}.check()
}

// Do tells what is in the trace.
func (i *Info) Do(ctx context.Context, c *Call) error {
	f, err := info.Of(ctx, c.In, nil)
	if err != nil {
		return err
	}
	rep := c.Report
	for _, d := range f.Damage {
		rep.AddDamage(d)
	}
	rep.Damages = f.Damages
	rep.Events, rep.Threads = f.Events, len(f.Threads)
	if f.Lost != nil {
		rep.Lost = int64(f.Lost.Events)
	}
	if f.Samples != nil {
		rep.Samples = int(f.Samples.Looks())
	}
	if rep.Samples == 0 {
		rep.Done = fmt.Sprintf("%s event%s, no samples", report.Count(int(f.Events)), report.Plural(int(f.Events)))
	}
	if f.Stacks != nil {
		rep.CutBy = map[string]int{}
		for why, n := range f.Stacks.Cut {
			rep.CutBy[why] = int(n)
		}
		maps.DeleteFunc(rep.CutBy, func(_ string, n int) bool { return n == 0 })
		rep.Cut = int(f.Stacks.CutTotal())
	}
	if c.Format == "json" {
		return f.WriteJSON(c.Out)
	}
	return f.WriteText(c.Out, &info.TextOptions{All: i.All || !c.Single, Rows: i.Limit, Width: c.Screen.Width, Color: c.Screen.Color})
}
