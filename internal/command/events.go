package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

var eventFormats = output.Formats{
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each event"},
	{Name: "text", Extensions: []string{".txt"}, Help: "one line for each event, for people"},
}

// Events is `tracefix events`.
type Events struct {
	Provider []string `placeholder:"NAME" help:"Keep only events of these providers; * and ? are wildcards."`
	Event    []string `placeholder:"NAME|ID" help:"Keep only events of these names or ids; * and ? are wildcards."`
	WhoFlags
	TimeFlags
	WorkFlags
	Stacks bool `help:"Show the stack of each event. This reads the trace twice, as method names are at its end."`
	LimitFlag
}

func (e *Events) selection() profile.Selection {
	return profile.Selection{Providers: e.Provider, Events: e.Event, Threads: e.Thread, Processes: e.Process, From: int64(e.From), To: int64(e.To)}
}

// work returns which activities are wanted: ids and paths as they are, and of those that are named the ids.
func (e *Events) work(ctx context.Context, c *Call) (given []string, named *activity.IDSet, err error) {
	rest := WorkFlags{Request: e.Request}
	for _, a := range e.Activity {
		if profile.IsActivityID(a) {
			given = append(given, a)
		} else {
			rest.Activity = append(rest.Activity, a)
		}
	}
	named, err = rest.ids(ctx, c)
	return given, named, err
}

// Check implements Job.
func (e *Events) Check(string) error {
	return errors.Join(e.LimitFlag.check(), e.TimeFlags.Check())
}

// Do lists the events.
func (e *Events) Do(ctx context.Context, c *Call) error {
	ahead := func() *info.Facts {
		f, _ := info.Nettrace(ctx, c.In, &info.Options{Light: true})
		return f
	}
	o := events.Options{
		Format: c.Format, Limit: int64(e.Limit),
		Width: c.Screen.Width, Color: c.Screen.Color,
		Processes: func() map[int]string { return ahead().ProcessNames() },
		Warn:      c.warn,
	}
	aside := input.Aside(0)
	if e.Stacks {
		if err := tellStacks(ctx, c, &o, aside); err != nil {
			return err
		}
	}
	o.Select = e.selection()
	var err error
	if o.Select.Activities, o.Activities, err = e.work(ctx, c); err != nil {
		return err
	}
	res, err := events.Write(ctx, c.In.Reader, c.Out, &o)
	if err = cmp.Or(err, aside.Err(), o.Activities.Err()); err != nil {
		return err
	}
	c.Report.Events, c.Report.Lost = res.Written, res.Lost
	c.Report.Done = fmt.Sprintf("%s event%s", report.Count(int(res.Written)), report.Plural(int(res.Written)))
	switch {
	case res.Partial:
		c.Report.Done += fmt.Sprintf(" of the first %s", report.Count(int(res.Events)))
	case res.Written != res.Events:
		c.Report.Done += " of " + report.Count(int(res.Events))
	}
	if res.Written == 0 && res.Events > 0 {
		filters := asked{WhoFlags: e.WhoFlags, TimeFlags: e.TimeFlags, WorkFlags: e.WorkFlags, provider: e.Provider, event: e.Event}
		c.Report.Notes = append(c.Report.Notes, filters.dropAll(ctx, c))
	}
	return nil
}

// tellStacks reads the trace for the stacks of its events, which o asks for then. Where they do not
// fit into memory they go to aside, which tells whether they came back.
func tellStacks(ctx context.Context, c *Call, o *events.Options, aside *spool.Spool) error {
	ids := spool.ListIn[profile.StackID](aside)
	p, _, err := load.Profile(ctx, c.In.Reader, &load.Options{NoSamples: true, Take: func(ev *nettrace.Event, _ int64, stack func() profile.StackID) {
		var id profile.StackID
		if ev.Stack.Len() > 0 {
			id = stack()
		}
		ids.Add(&id)
	}})
	if err != nil {
		return err
	}
	o.Stack = func(n int64) profile.StackID {
		if n < 1 || n > int64(ids.Len()) {
			return 0
		}
		return ids.At(int(n - 1))
	}
	o.Names = func(stack profile.StackID) []string { return events.Names(p.Table, stack) }
	return nil
}
