package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	door "github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/compare"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

var compareFormats = output.Formats{
	{Name: "text", Extensions: []string{".txt", ".text"}, Help: "what moved, for people"},
	{Name: "markdown", Extensions: []string{".md"}, Help: "the same for a pull request"},
	{Name: "json", Extensions: []string{".json"}, Help: "every figure with its interval"},
	{Name: "folded", Extensions: []string{".folded"}, Help: "stacks with two counts, as difffolded.pl writes them"},
	{Name: "html", Extensions: []string{".html"}, Help: "a differential flame graph"},
}

// batchCompareFormats are without those of stacks, which reports of batches do not hold.
var batchCompareFormats = compareFormats[:3]

// BatchCompareCmd is `tracefix batch compare`.
type BatchCompareCmd struct {
	Before string   `arg:"" help:"The batch to compare with: the folder or URL of its reports, or one of them (.ndjson, .json)."`
	After  string   `arg:"" help:"The batch to judge."`
	Out    string   `short:"o" placeholder:"OUT" help:"Output file or URL; - is standard output, the default."`
	Format string   `placeholder:"FORMAT" help:"Output format: text, markdown, json. Default: by OUT's extension, else text."`
	Force  bool     `help:"Replace an existing output."`
	Limit  int      `short:"n" default:"10" help:"Rows in each table; 0 prints all."`
	FailOn []string `sep:"none" placeholder:"GATE" help:"Exit 1 if one of these holds: new-failures, failed-rate>1%, http-error-rate>1%, or a change beyond noise such as KIND:NAME>+10% or KIND:NAME<-10%. KIND is p95, p50 or errors (NAME: a route) or cpu (NAME: a method); * and ? are wildcards."`
}

// Help is what stands below the flags.
func (*BatchCompareCmd) Help() string {
	return examples("tracefix batch compare monday tuesday", "tracefix batch compare s3://bucket/monday s3://bucket/tuesday", "tracefix batch compare monday tuesday --fail-on 'p95:*>+20%'")
}

// Run compares two batches.
func (c *BatchCompareCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	named, _, _ := strings.Cut(c.Out, "?") // options of a URL are no part of its extension
	format, err := batchCompareFormats.Resolve(c.Format, named, "text")
	if err != nil {
		return usage(err)
	}
	var gates []batch.ComparisonGate
	for _, s := range c.FailOn {
		g, err := batch.ParseComparisonGate(s)
		if err != nil {
			return usage(err)
		}
		gates = append(gates, g)
	}
	if c.Limit < 0 {
		return usage(fmt.Errorf("--limit %d: must not be negative", c.Limit))
	}
	out := cmp.Or(c.Out, "-")
	if !batch.IsURL(out) {
		if err := output.Check(out, &output.Options{Force: c.Force, Inputs: []string{c.Before, c.After}}); err != nil {
			return usage(err)
		}
	}
	x, err := batch.Compare(ctx, batch.Config{OpenURL: openURL}, c.Before, c.After)
	if err != nil {
		return err
	}
	why := x.Check(gates)
	err = writeAnywhere(ctx, out, std, c.Force, func(w io.Writer) error {
		switch d := x.Document(c.Limit); format {
		case "json":
			return x.JSON(w)
		case "markdown":
			return d.Markdown(w)
		default:
			width := 0
			if t := terminalOf(std.out); t != nil && out == "-" {
				width = t.Width
			}
			return d.Text(w, width)
		}
	})
	if err != nil {
		return err
	}
	if why != "" {
		return errors.New(why)
	}
	return nil
}

// CompareCmd is `tracefix compare`.
type CompareCmd struct {
	Before string `arg:"" help:"The trace to compare with."`
	After  string `arg:"" help:"The trace to judge."`
	Out    string `short:"o" placeholder:"OUT" help:"Output file; - is standard output, the default."`
	Format string `placeholder:"FORMAT" help:"Output format: text, markdown, json, folded, html. Default: by OUT's extension, else text."`
	Force  bool   `help:"Replace an existing output."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of comparing what can be saved (exit 3)."`
	Limit  int    `short:"n" default:"10" help:"Rows in each table; 0 prints all."`
	Raw    bool   `help:"Show the sampler's own frames (Thread.PollGC) instead of charging their time to the callers."`
	Report string `placeholder:"FILE" help:"Write the figures as JSON, whatever the output is; - is standard output."`

	command.WhoFlags
	command.TimeFlags
	command.WorkFlags
	Frame string `placeholder:"PATTERN" help:"Compare only samples with a frame of that name; * and ? are wildcards."`

	FailOn []string `sep:"none" placeholder:"GATE" help:"Exit 1 on a change beyond noise: KIND:NAME>+10% or KIND:NAME<-10%. KIND is cpu, self, alloc, exceptions, locks, requests, p95, errors, gc, memory or counters; * and ? are wildcards."`
}

// Help is what stands below the flags.
func (*CompareCmd) Help() string {
	return examples("tracefix compare before.nettrace after.nettrace", "tracefix compare before.nettrace after.nettrace --fail-on 'cpu:Shop.*>+10%'")
}

// Run compares two traces.
func (c *CompareCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	format, err := compareFormats.Resolve(c.Format, c.Out, "text")
	if err != nil {
		return usage(err)
	}
	var gates []compare.Gate
	for _, s := range c.FailOn {
		g, err := compare.ParseGate(s)
		if err != nil {
			return usage(err)
		}
		gates = append(gates, g)
	}
	if c.Limit < 0 {
		return usage(fmt.Errorf("--limit %d: must not be negative", c.Limit))
	}
	if err := c.TimeFlags.Check(); err != nil {
		return usage(err)
	}
	if err := stdinOnce([]string{c.Before, c.After}); err != nil {
		return err
	}
	name := c.Out
	if name == "" {
		name = "-"
	}
	if c.Report != "" {
		if err := output.Check(c.Report, &output.Options{Force: c.Force, Inputs: []string{c.Before, c.After}, Others: []string{name}}); err != nil {
			return usage(err)
		}
	}
	out, err := output.Create(name, &output.Options{Force: c.Force, Stdout: std.out, Context: ctx, Inputs: []string{c.Before, c.After}})
	if err != nil {
		return usage(err)
	}
	defer out.Close()
	before, damageBefore, err := c.read(ctx, std, c.Before)
	if err != nil {
		return err
	}
	after, damageAfter, err := c.read(ctx, std, c.After)
	if err != nil {
		return err
	}
	res := compare.Traces(before, after)
	why := res.Check(gates)
	width := 0
	if name == "-" {
		width = widthOf(std.out)
	}
	if err := c.write(out, res, format, width); err != nil {
		return err
	}
	if err := errors.Join(before.Err(), after.Err()); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if c.Report != "" {
		if err := writeTo(c.Report, std, c.Force, res.JSON); err != nil {
			return err
		}
	}
	if !cli.Quiet {
		say(std.err, fmt.Sprintf("%s -> %s: %s", c.Before, c.After, res.Summary()))
		tellDamage(std.err, before, damageBefore)
		tellDamage(std.err, after, damageAfter)
	}
	if why != "" {
		return errors.New(why)
	}
	if before.Damages+after.Damages > 0 {
		return damaged{errors.New("a trace is damaged")}
	}
	return nil
}

// tellDamage lists the first of the places at which a side is damaged.
func tellDamage(w io.Writer, t *compare.Trace, places []report.Damage) {
	if t.Damages > 0 {
		say(w, fmt.Sprintf("%s: damaged in %s place%s, what could be saved was compared", t.Name, report.Count(t.Damages), report.Plural(t.Damages)))
		printDamage(w, places, t.Damages)
	}
}

// read reads one side. It returns the first of its defects, too.
func (c *CompareCmd) read(ctx context.Context, std streams, name string) (*compare.Trace, []report.Damage, error) {
	in, err := input.Open(ctx, name, &input.Options{Stdin: std.in})
	if errors.As(err, &input.FolderError{}) {
		err = fmt.Errorf("%s: is a folder; `tracefix batch compare` compares two that batches wrote", name)
	}
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	if in.Kind == input.Unknown {
		return nil, nil, in.NotATrace()
	}
	if !door.FromInput(in).Timed() && (c.From != 0 || c.To != 0) {
		return nil, nil, command.Untimed(in)
	}
	harm := 0
	var places []report.Damage
	o := compare.Options{Raw: c.Raw, Warn: func(d door.Damage) {
		if harm++; len(places) < report.MaxDamages {
			places = append(places, report.Damage{Offset: d.Offset, Where: d.Where, What: d.What})
		}
	}}
	o.Select.Processes, o.Select.Threads, o.Select.Frame = c.Process, c.Thread, c.Frame
	o.Select.Activities, o.Select.Requests = c.Activity, c.Request
	o.Select.From, o.Select.To = int64(c.From), int64(c.To)
	t, err := compare.Read(ctx, door.FromInput(in), name, o)
	if in.Mend(ctx) {
		harm, places = 0, nil
		t, err = compare.Read(ctx, door.FromInput(in), name, o)
	}
	if err != nil {
		return nil, nil, err
	}
	if t.Empty(&o.Select) && !o.Select.IsZero() {
		return nil, nil, fmt.Errorf("%s: %s", name, command.DropAll(ctx, in, c.WhoFlags, c.TimeFlags, c.WorkFlags))
	}
	if harm > 0 && c.Strict {
		return nil, nil, fmt.Errorf("%s: offset %d: %s: %s", name, places[0].Offset, places[0].Where, places[0].What)
	}
	t.Damages = harm
	return t, places, nil
}

func (c *CompareCmd) write(w io.Writer, res *compare.Result, format string, width int) error {
	switch format {
	case "markdown":
		return res.Markdown(w, c.Limit)
	case "json":
		return res.JSON(w)
	case "folded":
		return res.Folded(w)
	case "html":
		return res.HTML(w)
	}
	return res.Text(w, width, c.Limit)
}
