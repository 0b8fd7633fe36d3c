package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/pipeline"
	"github.com/tracefix/tracefix/internal/report"
)

// OutputFlags say where output goes.
type OutputFlags struct {
	Out    string `short:"o" placeholder:"OUT" help:"Output file; - is standard output. Its extension names the format; .gz or .zst behind it compresses. Default: a file beside the input, NAME.fixed.EXT (convert: NAME.converted.EXT, or NAME with the extension of another --format); standard output if the input is -."`
	Format string `placeholder:"FORMAT" help:"Output format: ${formats}. Default: by OUT's extension, else the input's own."`
	Force  bool   `help:"Replace an existing output."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of saving what can be saved (exit 3)."`
	Report string `placeholder:"FILE" help:"Write what was done as JSON; - is standard output."`
}

// SelectFlags say which part of the trace is wanted.
type SelectFlags struct {
	Process []string      `placeholder:"PID|NAME" help:"Keep these processes."`
	Thread  []string      `placeholder:"TID|NAME" help:"Keep these threads."`
	From    time.Duration `help:"Keep what is after this time since the start of the trace, such as 1.5s."`
	To      time.Duration `help:"Keep what is before this time."`
	Frame   string        `placeholder:"PATTERN" help:"Keep samples with a frame of that name; * and ? are wild."`
	CPUOnly bool          `name:"cpu-only" help:"Keep samples that were on a CPU."`
}

func (f SelectFlags) selection() (pipeline.Select, error) {
	s := pipeline.Select{Processes: f.Process, Threads: f.Thread, From: f.From, To: f.To, Frame: f.Frame, CPUOnly: f.CPUOnly}
	return s, checkTimes(f.From, f.To)
}

// checkTimes refuses a stretch of time in which nothing can be.
func checkTimes(from, to time.Duration) error {
	switch {
	case from < 0 || to < 0:
		return usageError{errors.New("--from and --to must not be negative")}
	case to != 0 && to <= from:
		return usageError{fmt.Errorf("--to %v: is not after --from %v", to, from)}
	}
	return nil
}

// checkDepth refuses a limit that no recorder has.
func checkDepth(limit int) error {
	if limit < 2 {
		return usageError{fmt.Errorf("--max-depth %d: must be at least 2", limit)}
	}
	return nil
}

// RepairFlags shape the repair.
type RepairFlags struct {
	MaxDepth      int     `default:"100" help:"Frames at which the recorder cut stacks."`
	MinConfidence float64 `default:"0.9" help:"Bridge what is known with less confidence than this (0 to 1)."`
	Plain         bool    `help:"Do not mark inserted events."`
}

// RepairCmd is `tracefix repair`.
type RepairCmd struct {
	In []string `arg:"" name:"in" help:"Traces: nettrace, netperf, Chromium JSON or speedscope JSON, bare or in .gz, .zst, .zip; - is standard input."`
	OutputFlags
	RepairFlags
	SelectFlags
	With   []string `placeholder:"TRACK" help:"Add tracks to a Chromium or Perfetto output: http, activities."`
	Tracks []string `placeholder:"TRACK" help:"Tracks of Chromium and Perfetto outputs: cpu, activities, gc, exceptions, contention, events."`
}

// Run repairs each input.
func (c *RepairCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	if err := c.RepairFlags.check(); err != nil {
		return err
	}
	sel, err := c.selection()
	if err != nil {
		return err
	}
	cfg := c.RepairFlags.config()
	cfg.Out, cfg.Format, cfg.Force, cfg.Stdout = c.Out, c.Format, c.Force, std.out
	cfg.With, cfg.Tracks, cfg.Select, cfg.EachRepair = c.With, c.Tracks, sel, c.Report != ""
	cfg.CanList = len(c.In) == 1 // --report is for one input
	return runEach(ctx, cli, std, c.In, c.OutputFlags, cfg)
}

// ConvertCmd is `tracefix convert`.
type ConvertCmd struct {
	In string `arg:"" name:"in" help:"Trace: nettrace, netperf, Chromium JSON or speedscope JSON, bare or in .gz, .zst, .zip; - is standard input."`
	OutputFlags
	SelectFlags
	Compat   string   `enum:",dotnet-trace" default:"" help:"Write what dotnet-trace writes, faults included: dotnet-trace. For Chromium JSON and speedscope."`
	With     []string `placeholder:"TRACK" help:"Add tracks to a Chromium or Perfetto output: http, activities."`
	Tracks   []string `placeholder:"TRACK" help:"Tracks of Chromium and Perfetto outputs: cpu, activities, gc, exceptions, contention, events."`
	MaxDepth int      `default:"100" help:"Frames at which the recorder cut stacks."`
}

// Run converts the input.
func (c *ConvertCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	sel, err := c.selection()
	if err == nil {
		err = checkDepth(c.MaxDepth)
	}
	if err != nil {
		return err
	}
	cfg := pipeline.Config{
		Out: c.Out, Format: c.Format, Force: c.Force, Stdout: std.out,
		Compat: c.Compat, With: c.With, Tracks: c.Tracks, Select: sel, MaxDepth: c.MaxDepth,
	}
	return runEach(ctx, cli, std, []string{c.In}, c.OutputFlags, cfg)
}

// runEach runs the pipeline on each input and tells the outcome as an error.
func runEach(ctx context.Context, cli *CLI, std streams, names []string, o OutputFlags, cfg pipeline.Config) error {
	if len(names) > 1 && o.Out != "" {
		return usageError{fmt.Errorf("-o names one output, but there are %d inputs; leave it out, or use `tracefix batch IN... -o DIR`", len(names))}
	}
	if o.Report != "" && len(names) > 1 {
		return usageError{errors.New("--report is for one input; `tracefix batch` reports on many")}
	}
	failed, anyDamaged := 0, false
	for _, name := range names {
		rep, err := runOne(ctx, cli, std, name, o, cfg)
		if err != nil {
			if len(names) == 1 || ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(std.err, "tracefix: %v\n", err)
			failed++
			continue
		}
		anyDamaged = anyDamaged || rep.Status == "damaged"
	}
	switch {
	case failed == len(names):
		return fmt.Errorf("all %d inputs failed", failed)
	case failed > 0:
		return fmt.Errorf("%d of %d inputs failed; the outputs of the others were written", failed, len(names))
	}
	if anyDamaged {
		return damaged{errors.New("damaged")}
	}
	return nil
}

func runOne(ctx context.Context, cli *CLI, std streams, name string, o OutputFlags, cfg pipeline.Config) (*report.Trace, error) {
	in, err := input.Open(ctx, name, &input.Options{Stdin: std.in})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if o.Report != "" {
		if err := output.Check(o.Report, &output.Options{Force: o.Force, Inputs: []string{in.Path()}}); err != nil {
			return nil, usageError{err}
		}
	}
	cfg.Strict, cfg.Report = o.Strict, o.Report
	stop := showProgress(cli, std, in)
	rep, err := pipeline.Run(ctx, in, cfg)
	stop()
	var usage pipeline.UsageError
	if errors.As(err, &usage) {
		return rep, usageError{err}
	}
	if o.Report != "" && ctx.Err() == nil {
		if werr := writeReport(o, std, rep); err == nil && werr != nil {
			err = fmt.Errorf("%s was written, its report was not: %w", rep.Output.Name, werr)
		}
	}
	if err != nil {
		return rep, err
	}
	if !cli.Quiet {
		fmt.Fprintln(std.err, rep.Summary())
		rep.Explain(std.err)
		printDamage(std.err, rep.Damage, rep.Damages)
	}
	return rep, nil
}

func writeReport(o OutputFlags, std streams, rep *report.Trace) error {
	f, err := output.Create(o.Report, &output.Options{Force: o.Force, Stdout: std.out})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := rep.WriteJSON(f); err != nil {
		return fmt.Errorf("%s: %w", o.Report, err)
	}
	return f.Commit()
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && terminal(f)
}
