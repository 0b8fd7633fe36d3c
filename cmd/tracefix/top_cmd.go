package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/pipeline"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// TopCmd is `tracefix top`.
type TopCmd struct {
	In     string `arg:"" name:"in" help:"Trace: nettrace, netperf, Chromium JSON or speedscope JSON, bare or in .gz, .zst, .zip; - is standard input."`
	Out    string `short:"o" placeholder:"OUT" help:"Output file; - is standard output, the default. Its extension names the format; .gz or .zst behind it compresses."`
	Format string `placeholder:"FORMAT" help:"Output format: text, json, csv. Default: by OUT's extension, else text."`
	Force  bool   `help:"Replace an existing output."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of saving what can be saved (exit 3)."`

	Limit     int  `short:"n" default:"30" help:"Methods to print (of each thread); 0 is all."`
	Total     bool `aliases:"inclusive" help:"Order by total time, with the methods called, instead of self time."`
	Wait      bool `help:"Order by the time spent waiting or in native code instead of CPU time."`
	ByThread  bool `help:"A table for each thread."`
	FoldPolls bool `help:"Charge what is in Thread.PollGC, where the sampler itself stops threads, to the callers."`
	Repair    bool `help:"Repair cut stacks first, so that the totals of outer methods are right."`
	SelectFlags
	MaxDepth int `default:"100" help:"Frames at which the recorder cut stacks."`
}

// Run counts the samples of the trace by method.
func (c *TopCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	write, err := c.writer(std)
	if err != nil {
		return usageError{err}
	}
	if c.Limit < 0 {
		return usageError{fmt.Errorf("--limit %d: must not be negative", c.Limit)}
	}
	sel, err := c.selection()
	if err == nil {
		err = checkDepth(c.MaxDepth)
	}
	if err != nil {
		return err
	}
	in, err := input.Open(ctx, c.In, &input.Options{Stdin: std.in})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := output.Create(c.out(), &output.Options{Force: c.Force, Stdout: std.out, Inputs: []string{in.Path()}})
	if err != nil {
		return usageError{err}
	}
	defer out.Close()

	stop := showProgress(cli, std, in)
	p, rep, err := pipeline.Load(ctx, in, pipeline.Config{
		Repair: c.Repair, Strict: c.Strict, MaxDepth: c.MaxDepth, Select: sel,
	})
	stop()
	var usage pipeline.UsageError
	if errors.As(err, &usage) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	top := p.Top(profile.TopOptions{Limit: c.Limit, Total: c.Total, Wait: c.Wait, ByThread: c.ByThread, FoldPolls: c.FoldPolls, Repaired: c.Repair})
	if top.Samples == 0 {
		return fmt.Errorf("%s: no samples to count%s", c.In, notes(rep))
	}
	if err := write(out, top); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if !cli.Quiet {
		fmt.Fprintf(std.err, "%s: %s sample%s of %s thread%s\n", c.In, report.Count(rep.Samples), report.Plural(rep.Samples), report.Count(rep.Threads), report.Plural(rep.Threads))
		rep.Explain(std.err)
		printDamage(std.err, rep.Damage, rep.Damages)
	}
	if rep.Damages > 0 {
		return damaged{fmt.Errorf("%s is damaged", c.In)}
	}
	return nil
}

// notes are what the report has to say about why there is nothing.
func notes(rep *report.Trace) string {
	if len(rep.Notes) == 0 {
		return ""
	}
	return ": " + strings.Join(rep.Notes, "; ")
}

func (c *TopCmd) out() string {
	if c.Out == "" {
		return "-"
	}
	return c.Out
}

// writer decides the format: the flag, else the extension of the output, else text.
func (c *TopCmd) writer(std streams) (func(io.Writer, *profile.Top) error, error) {
	format, err := formatOf(c.Format, c.Out, "text", []extension{{".txt", "text"}, {".text", "text"}, {".json", "json"}, {".csv", "csv"}})
	if err != nil {
		return nil, err
	}
	switch format {
	case "text":
		width := 0
		if f, ok := std.out.(*os.File); ok && c.out() == "-" {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil {
				width = w
			}
		}
		return func(w io.Writer, t *profile.Top) error { return export.TopText(w, t, width) }, nil
	case "json":
		return export.TopJSON, nil
	case "csv":
		return export.TopCSV, nil
	}
	return nil, fmt.Errorf("--format must be one of text, json, csv, not %q", format)
}
