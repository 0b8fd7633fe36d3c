package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tracefix/tracefix/internal/events"
	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/nettrace"
)

// ListFlags say where the output of a command goes that writes to standard output
// unless told otherwise.
type ListFlags struct {
	Out    string `short:"o" default:"-" placeholder:"OUT" help:"Output file; - is standard output. Its extension names the format; .gz or .zst behind it compresses."`
	Force  bool   `help:"Replace an existing output."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of telling what can be saved (exit 3)."`
}

// An extension of an output's name asks for a format.
type extension struct{ end, format string }

// formatOf decides a format: the flag, else the extension of the output, else what
// holds for names without one, which standard output is. An extension that asks for
// nothing known is refused: the file would not be what its name says.
func formatOf(flag, out, otherwise string, known []extension) (string, error) {
	if flag != "" {
		return flag, nil
	}
	name := strings.ToLower(filepath.Base(out))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	var ends []string
	for _, e := range known {
		if strings.HasSuffix(name, e.end) {
			return e.format, nil
		}
		ends = append(ends, e.end)
	}
	if end := filepath.Ext(name); end != "" && out != "" && out != "-" {
		return "", fmt.Errorf("%s: the extension %s names no format; use one of %s, or --format", out, end, strings.Join(ends, " "))
	}
	return otherwise, nil
}

// EventsCmd is `tracefix events`.
type EventsCmd struct {
	In string `arg:"" name:"in" help:"Trace: nettrace or netperf, bare or in .gz, .zst, .zip; - is standard input."`
	ListFlags
	Format   string        `enum:"ndjson,text," default:"" placeholder:"FORMAT" help:"ndjson (one JSON object for each line) or text. Default: by OUT's extension (.ndjson, .txt), else text on a terminal, else ndjson."`
	Provider []string      `placeholder:"NAME" help:"Keep events of these providers; * and ? are wild."`
	Event    []string      `placeholder:"NAME|ID" help:"Keep events of these names or ids; * and ? are wild."`
	Thread   []string      `placeholder:"TID|NAME" help:"Keep events of these threads; * and ? are wild."`
	Process  []string      `placeholder:"PID|NAME" help:"Keep events of these processes."`
	From     time.Duration `help:"Keep what is after this time since the start of the trace, such as 1.5s."`
	To       time.Duration `help:"Keep what is before this time."`
	Activity []string      `placeholder:"GUID|PATH" help:"Keep events of these activities: an id, or a path such as //1/2 with all below it."`
	Limit    int64         `short:"n" placeholder:"N" help:"Stop after N events."`
}

// Run lists the events.
func (c *EventsCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	if c.Limit < 0 {
		return usageError{fmt.Errorf("--limit %d: must not be negative", c.Limit)}
	}
	if err := checkTimes(c.From, c.To); err != nil {
		return err
	}
	format, err := c.format(std)
	if err != nil {
		return usageError{err}
	}
	run := listRun{cli: cli, std: std, flags: c.ListFlags}
	return run.do(ctx, c.In, func(in *input.File, w io.Writer, rep *report.Trace) error {
		if in.Kind != input.Nettrace && in.Kind != input.Netperf {
			return wrongKind(in, "events")
		}
		o := &events.Options{
			Format: format,
			Select: events.Select{Providers: c.Provider, Events: c.Event, Threads: c.Thread, Processes: c.Process, Activities: c.Activity, From: c.From, To: c.To},
			Limit:  c.Limit,
			Warn: func(e *nettrace.FormatError) {
				rep.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
			},
		}
		ahead := func() *info.Facts {
			f, _ := info.Nettrace(ctx, in, &info.Options{Light: true})
			return f
		}
		o.Lossy = func() bool { f := ahead(); return f != nil && f.LossyActivities() }
		o.Processes = func() map[int]string { return ahead().ProcessNames() }
		if c.Out == "-" && isTerminal(std.out) {
			o.Width, o.Color = screen(std.out)
		}
		res, err := events.Write(ctx, in.Reader, w, o)
		var usage events.UsageError
		if errors.As(err, &usage) {
			return usageError{err}
		}
		if err != nil {
			return about(in, err)
		}
		rep.Events, rep.Lost = res.Written, int64(res.Stats.Lost)
		run.summary = eventsSummary(in, res)
		return nil
	})
}

func (c *EventsCmd) format(std streams) (string, error) {
	otherwise := "ndjson"
	if c.Out == "-" && isTerminal(std.out) {
		otherwise = "text"
	}
	return formatOf(c.Format, c.Out, otherwise, []extension{{".ndjson", "ndjson"}, {".jsonl", "ndjson"}, {".txt", "text"}})
}

func eventsSummary(in *input.File, res *events.Result) string {
	s := fmt.Sprintf("%s: %s event", in.Name, report.Count(int(res.Written)))
	if res.Written != 1 {
		s += "s"
	}
	switch {
	case res.Partial:
		s += fmt.Sprintf(" of the first %s", report.Count(int(res.Events)))
	case res.Written != res.Events:
		s += " of " + report.Count(int(res.Events))
	}
	if n := res.Stats.Lost; n > 0 {
		s += fmt.Sprintf("; %s more were lost while recording", report.Count(int(n)))
	}
	return s
}

// about names the input that an error is of. Errors of the output name that.
func about(in *input.File, err error) error {
	var place *output.PlaceError
	if errors.As(err, &place) {
		return err
	}
	return fmt.Errorf("%s: %w", in.Name, err)
}

// wrongKind says that a command does not read this sort of file.
func wrongKind(in *input.File, command string) error {
	if in.Kind == input.Unknown {
		return in.NotATrace()
	}
	return fmt.Errorf("%s: is a %s trace; `tracefix %s` reads nettrace files", in.Name, in.Kind, command)
}

// screen tells the width of a terminal, and whether colours are wanted there.
func screen(w any) (width int, color bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		width = 0
	}
	_, off := os.LookupEnv("NO_COLOR")
	return width, !off && os.Getenv("TERM") != "dumb"
}

// A listRun is a command that reads one input and writes one list.
type listRun struct {
	cli     *CLI
	std     streams
	flags   ListFlags
	summary string       // the line at the end; empty: none
	silent  bool         // no word on damage: the output has it
	commit  func() error // makes further outputs appear; nil: there are none
}

// do opens the input and the output, lets work write, and tells of damage.
func (r *listRun) do(ctx context.Context, name string, work func(in *input.File, w io.Writer, rep *report.Trace) error) error {
	in, err := input.Open(ctx, name, &input.Options{Stdin: r.std.in})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := output.Create(r.flags.Out, &output.Options{Force: r.flags.Force, Stdout: r.std.out, Inputs: []string{in.Path()}})
	if err != nil {
		return usageError{err}
	}
	defer out.Close()
	var rep report.Trace
	stop := func() {}
	if r.flags.Out != "-" || !isTerminal(r.std.out) {
		stop = showProgress(r.cli, r.std, in)
	}
	err = work(in, out, &rep)
	stop()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.flags.Strict && rep.Damages > 0 {
		d := rep.Damage[0]
		return fmt.Errorf("%s: offset %d: %s: %s (%d places in all; without --strict what can be saved is saved)", in.Name, d.Offset, d.Where, d.What, rep.Damages)
	}
	if r.commit != nil {
		if err := r.commit(); err != nil {
			return err
		}
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if !r.cli.Quiet {
		if r.summary != "" {
			fmt.Fprintln(r.std.err, r.summary)
		}
		if !r.silent {
			printDamage(r.std.err, rep.Damage, rep.Damages)
		}
	}
	if rep.Damages > 0 {
		return damaged{errors.New("damaged")}
	}
	return nil
}

// printDamage lists the first of the places at which an input is damaged.
func printDamage(w io.Writer, places []report.Damage, total int) {
	for i, d := range places {
		if i == 5 && total > 6 {
			fmt.Fprintf(w, "  ... and %s more\n", report.Count(total-5))
			return
		}
		fmt.Fprintf(w, "  damage at offset %d: %s: %s\n", d.Offset, d.Where, d.What)
	}
}
