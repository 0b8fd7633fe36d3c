package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// traceFlags are the flags of all rows of the table of commands, and a row's own.
type traceFlags struct {
	Out    string       `short:"o" aliases:"output" placeholder:"OUT" help:"Output file, - for standard output. Its extension chooses the format; .gz or .zst at the end compresses. Default: ${out}."`
	Format string       `placeholder:"FORMAT" help:"Output format: ${formats}. Default: by OUT's extension, else ${format}."`
	Force  bool         `help:"Replace an existing output."`
	Strict bool         `help:"Fail on a damaged input (exit 1) instead of saving what can be saved (exit 3)."`
	Report string       `placeholder:"FILE" help:"Write a report of the run as JSON; - is standard output."`
	Jobs   int          `placeholder:"N" help:"Processors to use; the output does not depend on it. Default: all that are available."`
	Job    kong.Plugins `embed:""`

	row *command.Command
}

// oneCmd is the grammar of a row that writes to standard output unless told otherwise.
type oneCmd struct {
	In string `arg:"" name:"in" help:"Input: ${inputs}; bare or in .gz, .zst, .zip; - is standard input."`
	traceFlags
}

// eachCmd is that of a row that writes beside each of its inputs.
type eachCmd struct {
	In []string `arg:"" name:"in" help:"Traces: ${inputs}; bare or in .gz, .zst, .zip; - is standard input."`
	traceFlags
}

// grammarOf returns the command line of a row.
func grammarOf(row *command.Command) any {
	flags := traceFlags{Job: kong.Plugins{row.New()}, row: row}
	if row.Rewrites != nil {
		return &eachCmd{traceFlags: flags}
	}
	return &oneCmd{traceFlags: flags}
}

// varsOf are the tags for what the help of a row's flags says of the row.
func varsOf(row *command.Command) []string {
	out, format := "standard output", row.Outputs[0].Name
	if r := row.Rewrites; r != nil {
		out, format = fmt.Sprintf("NAME%s.EXT beside the input", r.Own), "the input's own"
		if r.Other != r.Own {
			out += fmt.Sprintf(", in another format NAME%s.EXT", r.Other)
		}
	} else if row.Screen != "" {
		format += fmt.Sprintf(" (%s on a terminal)", row.Screen)
	}
	return []string{setVar("inputs", row.Inputs()), setVar("formats", strings.Join(row.Outputs.Names(), ", ")), setVar("out", out), setVar("format", format)}
}

// Help is what stands below the flags: examples.
func (c *traceFlags) Help() string { return examples(c.row.Examples...) }

// examples are command lines for a help text.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n  ")
}

// Run does the work.
func (c *oneCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	return c.each(ctx, cli, std, []string{c.In})
}

// mostJobs bounds --jobs by the processors of the machine. Each job may take a thread of the system, and the
// runtime ends the process at 10,000.
const mostJobs = 8

// Run does the work.
func (c *eachCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	return c.each(ctx, cli, std, c.In)
}

// each does the work with each input and tells the outcome as an error.
func (c *traceFlags) each(ctx context.Context, cli *CLI, std streams, names []string) error {
	if c.Jobs < 0 {
		return usage(fmt.Errorf("--jobs %d: must not be negative", c.Jobs))
	}
	jobs := min(c.Jobs, mostJobs*runtime.NumCPU())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(jobs)) // 0 changes nothing
	names = withoutOutputs(names, c.row)
	if len(names) > 1 && c.Out != "" {
		return usage(fmt.Errorf("-o names one output, but there are %d inputs; leave it out, or use `tracefix batch IN... -o DIR`", len(names)))
	}
	if err := stdinOnce(names); err != nil {
		return err
	}
	run := traceRun{
		cli: cli, std: std, row: c.row, job: c.Job[0].(command.Job),
		opts: command.Options{
			Out: c.Out, Format: c.Format, Force: c.Force, Strict: c.Strict, Report: c.Report,
			Listed: c.Report != "", Single: len(names) == 1,
			Stdout: std.out, Terminal: terminalOf(std.out), Version: version(),
		},
	}
	if err := run.check(names); err != nil {
		return err
	}
	if len(names) > 1 {
		run.opts.Taken = map[string]bool{}
		for _, name := range names {
			run.opts.Taken[output.Place(name)] = true
		}
	}
	failed, anyDamaged := 0, false
	var all report.Traces
	for _, name := range names {
		rep, err := run.one(ctx, name)
		if rep != nil {
			all.Traces = append(all.Traces, rep)
		}
		if err != nil {
			if len(names) == 1 || ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(std.err, "tracefix: %s\n", text.Lines(err.Error()))
			failed++
			continue
		}
		anyDamaged = anyDamaged || rep.Damages > 0
	}
	if c.Report != "" && len(names) > 1 {
		if err := writeTo(c.Report, std, c.Force, all.WriteJSON); err != nil {
			return fmt.Errorf("the outputs were written, their report was not: %w", err)
		}
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

// stdinOnce refuses a second input that is standard input: nothing is left of it then.
func stdinOnce(names []string) error {
	if i := slices.Index(names, "-"); i >= 0 && slices.Contains(names[i+1:], "-") {
		return usage(errors.New("-: standard input can be read once; name a file for one of both"))
	}
	return nil
}

// withoutOutputs leaves out of many inputs those that an earlier run made of others of them:
// who says *.nettrace again does not mean these.
func withoutOutputs(names []string, row *command.Command) []string {
	if row.Rewrites == nil {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		before, ext, found := strings.Cut(name, row.Rewrites.Own+".")
		return found && slices.Contains(names, before+"."+ext)
	})
}

// A traceRun is a row of the table at work on single traces.
type traceRun struct {
	cli  *CLI
	std  streams
	row  *command.Command
	job  command.Job
	opts command.Options
}

func (r *traceRun) one(ctx context.Context, name string) (*report.Trace, error) {
	in, err := input.Open(ctx, name, &input.Options{Stdin: r.std.in})
	var folder input.FolderError
	switch {
	case errors.As(err, &folder) && r.row.Alone:
		err = fmt.Errorf("%s: is a folder; name a file in it", name)
	case errors.As(err, &folder) && r.row.Name != batch.DoRepair:
		err = errors.New(folder.With(" --do " + r.row.Name))
	}
	if err != nil { // the report tells of such an input, too: who goes by it must not think that all is done
		rep := &report.Trace{Command: r.row.Name, Input: report.Input{Name: name}, Status: "failed", Error: err.Error()}
		return rep, errors.Join(err, r.keep(ctx, rep))
	}
	defer in.Close()
	opts := r.opts
	stop := func() {}
	if !r.cli.Quiet {
		opts.Progress = &report.Progress{Tell: func(what string) { fmt.Fprintf(r.std.err, "%s%s\n", clearLine(r.std.err), text.Line(what)) }}
	}
	if !r.row.Streams || r.opts.Terminal == nil || r.opts.Out != "" && r.opts.Out != "-" {
		stop = showProgress(r.cli, r.std, r.courseOf(in, opts.Progress))
	}
	rep, err := r.row.Run(ctx, r.job, in, opts)
	stop()
	var wrong report.UsageError
	if errors.As(err, &wrong) {
		return rep, err
	}
	if werr := r.keep(ctx, rep); err == nil && werr != nil {
		name := rep.Output.Name
		if name == "-" {
			name = "standard output"
		}
		err = fmt.Errorf("%s was written, its report was not: %w", name, werr)
	}
	if err != nil {
		return rep, err
	}
	if !r.cli.Quiet {
		say(r.std.err, rep.Summary())
		rep.Explain(r.std.err, widthOf(r.std.err))
		printDamage(r.std.err, rep.Damage, rep.Damages)
	}
	return rep, nil
}

// check refuses early what cannot be done. The report takes the place of no input, also where that
// cannot be opened.
func (r *traceRun) check(names []string) error {
	err := r.row.Check(r.job, r.opts)
	if err == nil && r.opts.Report != "" {
		if err = output.Check(r.opts.Report, &output.Options{Force: r.opts.Force, Inputs: names}); err != nil {
			err = usage(err)
		}
	}
	return err
}

// keep writes the report of the only trace, if one is wanted; those of several are one file.
func (r *traceRun) keep(ctx context.Context, rep *report.Trace) error {
	if r.opts.Report == "" || !r.opts.Single || ctx.Err() != nil {
		return nil
	}
	return writeTo(r.opts.Report, r.std, r.opts.Force, rep.WriteJSON)
}

// printDamage lists the first of the places at which an input is damaged.
func printDamage(w io.Writer, places []report.Damage, total int) {
	for i, d := range places {
		if i == 5 && total > 6 {
			fmt.Fprintf(w, "  ... and %s more\n", report.Count(total-5))
			return
		}
		fmt.Fprintf(w, "  damage at offset %d: %s: %s\n", d.Offset, text.Line(d.Where), text.Line(d.What))
	}
}

// say writes a sentence in lines that fit the terminal, if w is one.
func say(w io.Writer, sentence string) {
	fmt.Fprintln(w, text.Wrapped(text.Line(sentence), widthOf(w), 2))
}

// widthOf is the width of the terminal that w is; 0 if it is none or does not tell.
func widthOf(w any) int {
	if t := terminalOf(w); t != nil {
		return t.Width
	}
	return 0
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// draws reports whether w is a terminal that takes colours and a line drawn again.
func draws(w any) bool { return isTerminal(w) && takesEscapes(w.(*os.File)) }

// terminalOf tells what is known of the terminal that w is; nil if it is none.
func terminalOf(w any) *command.Screen {
	if !isTerminal(w) {
		return nil
	}
	_, plain := os.LookupEnv("NO_COLOR")
	s := &command.Screen{Color: !plain && os.Getenv("TERM") != "dumb" && draws(w)}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 40 {
		s.Width = n
	} else if n, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && n >= 20 {
		s.Width = n
	}
	return s
}
