package main

import (
	"context"
	"fmt"
	"io"

	"github.com/tracefix/tracefix/internal/counters"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/nettrace"
)

// CountersCmd is `tracefix counters`.
type CountersCmd struct {
	In string `arg:"" name:"in" help:"Trace: nettrace or netperf, or a dump of a .NET Framework performance-counter block; bare or in .gz, .zst, .zip; - is standard input."`
	ListFlags
	Format   string   `enum:"table,csv,wide,json,ndjson,openmetrics,dotnet-counters," default:"" placeholder:"FORMAT" help:"table (a line for each counter), csv (a row for each value), wide (CSV with a column for each counter), json, ndjson, openmetrics, dotnet-counters (CSV as that tool writes it). Default: by OUT's extension (.csv, .json, .ndjson, .prom, .txt), else table on a terminal, else csv."`
	Provider []string `placeholder:"NAME" help:"Keep counters of these providers or meters; * and ? are wild."`
	Name     []string `placeholder:"NAME" help:"Keep counters of these names; * and ? are wild."`
}

func (c *CountersCmd) format(std streams) (string, error) {
	otherwise := "csv"
	if c.Out == "-" && isTerminal(std.out) {
		otherwise = "table"
	}
	return formatOf(c.Format, c.Out, otherwise, []extension{
		{".csv", "csv"}, {".json", "json"}, {".ndjson", "ndjson"}, {".jsonl", "ndjson"}, {".prom", "openmetrics"}, {".openmetrics", "openmetrics"}, {".txt", "table"},
	})
}

// Run writes the values of the counters.
func (c *CountersCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	format, err := c.format(std)
	if err != nil {
		return usageError{err}
	}
	run := listRun{cli: cli, std: std, flags: c.ListFlags}
	return run.do(ctx, c.In, func(in *input.File, w io.Writer, rep *report.Trace) error {
		if in.Kind == input.Unknown && counters.IsBlock(in.Head()) {
			return c.blocks(in, w, format, &run)
		}
		if in.Kind != input.Nettrace && in.Kind != input.Netperf {
			return wrongKind(in, "counters")
		}
		width := 0
		if c.Out == "-" && isTerminal(std.out) {
			width, _ = screen(std.out)
		}
		out := counters.NewWriter(format, w, width)
		res, err := counters.Read(ctx, in.Reader, &counters.Options{
			Providers: c.Provider, Names: c.Name,
			Warn: func(e *nettrace.FormatError) {
				rep.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
			},
		}, out.Add)
		if err != nil {
			return about(in, err)
		}
		if err := out.Close(res); err != nil {
			return err
		}
		run.summary = countersSummary(in, res)
		return nil
	})
}

// blocks writes the counters of a .NET Framework process. All of a dump is in its head.
func (c *CountersCmd) blocks(in *input.File, w io.Writer, format string, run *listRun) error {
	blocks, err := counters.ParseBlocks(in.Head())
	if err != nil {
		return fmt.Errorf("%s: %w", in.Name, err)
	}
	run.summary = fmt.Sprintf("%s: %d performance-counter block", in.Name, len(blocks))
	if len(blocks) != 1 {
		run.summary += "s"
	}
	for _, b := range blocks {
		if b.Skipped != "" {
			run.summary += fmt.Sprintf("\n  note: block %d was not read: %s", b.Index, b.Skipped)
		}
		if b.Torn {
			run.summary += fmt.Sprintf("\n  note: block %d was being written when the dump was taken", b.Index)
		}
	}
	return counters.WriteBlocks(w, blocks, format)
}

func countersSummary(in *input.File, res *counters.Result) string {
	s := fmt.Sprintf("%s: %s values of counters", in.Name, report.Count(int(res.Points)))
	switch {
	case res.Points == 0 && res.Dropped > 0:
		s = fmt.Sprintf("%s: none of its %s values of counters is of that --provider and --name; without them all are told", in.Name, report.Count(int(res.Dropped)))
	case res.Points == 0:
		s = fmt.Sprintf("%s: no counters; `dotnet-trace collect -p PID --providers System.Runtime:0:1:EventCounterIntervalSec=1` records some", in.Name)
	}
	if n := res.Stats.Lost; n > 0 {
		s += fmt.Sprintf("; %s event%s lost while recording", report.Count(int(n)), report.Plural(int(n)))
	}
	for _, n := range res.Notes {
		s += "\n  note: " + n
	}
	return s
}
