package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

var counterFormats = output.Formats{
	{Name: "csv", Extensions: []string{".csv"}, Help: "a row for each value"},
	{Name: "table", Also: "text", Extensions: []string{".txt"}, Help: "a line for each counter"},
	{Name: "wide", Extensions: []string{".wide.csv"}, Help: "CSV with a column for each counter"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each value"},
	{Name: "openmetrics", Extensions: []string{".prom", ".openmetrics"}, Help: "OpenMetrics text"},
	{Name: "otlp", Extensions: []string{".otlp.json", ".otlp.jsonl"}, Help: "OpenTelemetry metrics as lines of OTLP JSON, as the file exporter writes them"},
	{Name: "dotnet-counters", Extensions: []string{".dotnet-counters.csv"}, Help: "CSV as that tool writes it"},
}

// Counters is `tracefix counters`.
type Counters struct {
	Provider []string `placeholder:"NAME" help:"Keep only counters of these providers or meters (of a performance-counter block: sections); * and ? are wildcards."`
	Name     []string `placeholder:"NAME" help:"Keep only counters of these names; * and ? are wildcards."`
	ProcessFlag
	TimeFlags
	Limit int `short:"n" placeholder:"N" help:"Print only the first N values (wide: rows; table, openmetrics and otlp: counters); 0 prints all."`
}

// Check implements Job.
func (n *Counters) Check(string) error {
	return errors.Join(n.TimeFlags.Check(), LimitFlag{n.Limit}.check())
}

// Do writes the values of the counters.
func (n *Counters) Do(ctx context.Context, c *Call) error {
	if c.In.Kind == input.Unknown {
		return n.blocks(c)
	}
	out := events.NewCounterWriter(c.Format, c.Out, c.Screen.Width, n.Limit)
	ours := n.keeps(ctx, c)
	told, dropped := 0, 0
	add := func(p *events.Point) error {
		if !n.overlap(p.Ns, p.Ns) || !ours(p.PID) {
			dropped++
			return nil
		}
		told++
		return out.Add(p)
	}
	res, err := events.ReadCounters(ctx, c.In.Reader, &events.CounterOptions{Select: profile.Selection{Providers: n.Provider, Names: n.Name}, Warn: c.warn}, add)
	if err != nil {
		return err
	}
	if err := out.Close(res); err != nil {
		return err
	}
	rep := c.Report
	rep.Lost, rep.Notes = int64(res.Stats.Lost), res.Notes
	switch {
	case told > 0:
		rep.Done = fmt.Sprintf("%s value%s of counters", report.Count(told), report.Plural(told))
		if told < int(res.Points) {
			rep.Done += " of " + report.Count(int(res.Points))
		}
		if res.Shown != "" {
			rep.Done += "; " + res.Shown + " shown"
		}
	case dropped > 0 || res.Dropped > 0:
		rep.Done = n.dropAll(ctx, c)
	default:
		rep.Done = "no counters; `" + collect.Counters.For(res.Header.Version) + "` records some"
	}
	return nil
}

// dropAll says that the filters drop all values, and what there is.
func (n *Counters) dropAll(ctx context.Context, c *Call) string {
	filters := asked{WhoFlags: WhoFlags{ProcessFlag: n.ProcessFlag}, TimeFlags: n.TimeFlags}
	what := filters.dropAll(ctx, c)
	var providers, names []string
	note := func(list *[]string, name string) {
		if !slices.Contains(*list, name) && len(*list) < mostNames {
			*list = append(*list, name)
		}
	}
	_, _ = events.ReadCounters(ctx, c.In.Reader, &events.CounterOptions{}, func(p *events.Point) error { // what was read until then will do
		note(&providers, p.Provider)
		if text.List(n.Provider).Match(p.Provider) {
			note(&names, p.Name)
		}
		return nil
	})
	if len(n.Provider) > 0 && len(names) == 0 {
		what += anyNearest(n.Provider, providers, "providers of counters")
	} else if len(n.Name) > 0 {
		what += anyNearest(n.Name, names, "counters")
	}
	return what
}

// blocks writes the counters of a .NET Framework process. All of a dump is in its head.
func (n *Counters) blocks(c *Call) error {
	const block = "a .NET Framework performance-counter block"
	if !slices.Contains(events.BlockFormats, c.Format) {
		return report.UsageError{Err: fmt.Errorf("%s: %s cannot become %s; --format can be %s", c.In.Name, block, c.Format, strings.Join(events.BlockFormats, ", "))}
	}
	if len(n.Process) > 0 || n.From != 0 || n.To != 0 {
		return report.UsageError{Err: fmt.Errorf("%s: --process, --from and --to do not apply to %s, which is of one process at one time", c.In.Name, block)}
	}
	list, err := events.ParseBlocks(c.In.Head())
	if err != nil {
		return err
	}
	var sections, names []string
	all := 0
	for _, b := range list {
		all += len(b.Figures)
		for _, f := range b.Figures {
			if sections = append(sections, f.Section); text.List(n.Provider).Match(f.Section) {
				names = append(names, f.Name)
			}
		}
	}
	other, more := events.SelectFigures(list, n.Provider, n.Name, n.Limit)
	c.Report.Done = fmt.Sprintf("%d performance-counter block%s", len(list), report.Plural(len(list)))
	switch {
	case all > 0 && other == all && len(names) == 0:
		c.Report.Done = dropsAll + anyNearest(n.Provider, sortedNames(sections), "sections of counters")
	case all > 0 && other == all:
		c.Report.Done = dropsAll + anyNearest(n.Name, sortedNames(names), "counters")
	case other+more > 0:
		c.Report.Done += fmt.Sprintf("; %s of %s counters shown", report.Count(all-other-more), report.Count(all))
	}
	for _, b := range list {
		if b.Skipped != "" {
			c.Report.Notes = append(c.Report.Notes, fmt.Sprintf("block %d was not read: %s", b.Index, b.Skipped))
		}
		if b.Torn {
			c.Report.Notes = append(c.Report.Notes, fmt.Sprintf("block %d was being written when the dump was taken", b.Index))
		}
	}
	return events.WriteBlocks(c.Out, list, c.Format)
}
