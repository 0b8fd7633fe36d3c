// Package command is the table of what can be done with one trace: the rows of the
// command line, of batches and of the documentation.
//
// A command is a file with a Job and a row of Table. What all of them share stands here
// once: which inputs are read, in which format and where the output goes, what damage
// means, and what is reported.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

// A Command is a row of the table.
type Command struct {
	Name     string
	Help     string   // one sentence
	Group    string   // of the help: what it is for
	Examples []string // command lines on trace.nettrace

	Reads []input.Kind // kinds of input that it reads
	Also  *Content     // content of no such kind that it reads as well, or nil

	Outputs output.Formats // the first one is the default
	Screen  string         // the default on a terminal; empty: the first
	Batch   string         // the default of batches, which is for programs; empty: the first

	// Rewrites is set where a trace becomes a trace: the default is then a file beside the
	// input, in the input's own format.
	Rewrites *Rewrites

	Counts  Counts // what its reports count
	Alone   bool   // has further outputs, so that batches cannot do it
	Streams bool   // writes while it reads: on a terminal a progress bar would stand among its rows

	// New returns a Job whose fields are flags, with their defaults, for kong to fill in.
	New func() Job
}

// Groups of commands in the help.
const (
	GroupRepair  = "Repair, view, convert:"
	GroupInspect = "What is in a trace:"
	GroupRuntime = "What the runtime did:"
	GroupMany    = "Many traces, CI:"
	GroupTalk    = "Traffic between tools and a process:"
	GroupProgram = "This program:"
)

// Content is what an input may hold that is not a trace.
type Content struct {
	Name string
	Is   func(head []byte) bool // head: the first bytes
}

// Counts are the things that a report counts; gates of a batch ask for them.
type Counts uint8

// What is counted.
const (
	Samples Counts = 1 << iota // and those that were cut
	Repairs
	Requests
)

// Rewrites are the marks before the extension of a default output, such as ".fixed".
type Rewrites struct {
	Own   string // in the input's own format
	Other string // in another one
}

// A Job is a command with its flags. It serves any number of traces, also at once.
type Job interface {
	// Check refuses flags that make no sense for this format of the output, before a trace
	// is opened. The format is empty where it will be that of the input.
	Check(format string) error
	// Do makes the output of one trace.
	Do(ctx context.Context, c *Call) error
}

// A Call is one trace for a Job.
type Call struct {
	In     *input.File
	Out    io.Writer
	Name   string // of the output; "-" is standard output
	Format string
	Report *report.Trace // of what is done; the Job fills it in

	Screen  Screen // where the output goes to a terminal, else zero
	Version string // of this program
	Listed  bool   // the report is kept, so that details are welcome
	Single  bool   // the only trace: its report can be asked for
	Force   bool   // outputs may be replaced
	Measure bool   // measures are wanted in the report

	further []further
}

// A further output of a Job appears with its output: Commit makes it appear, and Close
// without Commit leaves nothing behind.
type further interface {
	Commit() error
	Close() error
}

// Further takes an output that is made beside Out.
func (c *Call) Further(f further) { c.further = append(c.further, f) }

// warn takes a defect of the trace into the report.
func (c *Call) warn(e *nettrace.FormatError) {
	c.Report.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
}

// read takes what reading the trace has told into the report.
func (c *Call) read(i *requests.Info) {
	for _, d := range i.Damage {
		c.Report.AddDamage(d)
	}
	c.Report.Damages = i.Damages
	c.Report.Events, c.Report.Lost = i.Events, int64(i.Lost)
}

// A Screen is a terminal.
type Screen struct {
	Width int // columns; 0: not known
	Color bool
}

// Options say where the output of a Call goes.
type Options struct {
	Out    string // "-" is standard output; empty: the command's default
	Format string // empty: by Out, else the command's default
	Force  bool   // replace an existing output
	Strict bool   // a damaged input is an error

	Stdout   io.Writer // for "-"
	Terminal *Screen   // that Stdout is; nil: it is none
	Report   string    // where the caller writes the report: the output must not be there
	Listed   bool      // as in Call
	Single   bool      // as in Call
	Measure  bool      // as in Call
	Version  string

	// Taken are the places of all inputs and of the outputs so far of a run with several traces: they
	// are not replaced. nil: there is one trace.
	Taken map[string]bool

	Progress *report.Progress // is told how far the work is; nil: nobody asks
}

// screen is the terminal that the output goes to, or nil.
func (o *Options) screen(c *Command) *Screen {
	if o.Out == "-" || o.Out == "" && c.Rewrites == nil {
		return o.Terminal
	}
	return nil
}

// Resolve decides the format of the output. It is empty where that of the input is kept.
func (c *Command) Resolve(o *Options) (string, error) {
	otherwise := c.Outputs[0].Name
	switch {
	case c.Rewrites != nil:
		otherwise = ""
	case c.Screen != "" && o.screen(c) != nil:
		otherwise = c.Screen
	}
	format, err := c.Outputs.Resolve(o.Format, o.Out, otherwise)
	if err == nil && o.Format == "" {
		err = c.foreign(o.Out)
	}
	if err != nil {
		return "", report.UsageError{Err: err}
	}
	return format, nil
}

// foreign refuses a name that ends as those of a format which other commands write: to this one
// x.speedscope.json is but .json, and speedscope would not open what is in it.
func (c *Command) foreign(name string) error {
	base, _ := output.TrimCompression(name)
	_, ext := c.Outputs.Of(base)
	for i := range Table {
		if f, longer := Table[i].Outputs.Of(base); f != nil && len(longer) > len(ext) {
			var known []string
			for _, f := range c.Outputs {
				known = append(known, f.Extensions...)
			}
			return fmt.Errorf("%s: the extension %s is that of %s, which `tracefix %s` does not write; use one of %s, or --format", name, longer, f.Name, c.Name, strings.Join(known, " "))
		}
	}
	return nil
}

// Check refuses early what Run could not do.
func (c *Command) Check(job Job, o Options) error {
	format, err := c.Resolve(&o)
	if err != nil {
		return err
	}
	if err := job.Check(format); err != nil {
		return report.UsageError{Err: err}
	}
	return nil
}

// Takes reports whether the command reads such an input.
func (c *Command) Takes(in *input.File) bool {
	return slices.Contains(c.Reads, in.Kind) || in.Kind == input.Unknown && c.Also != nil && c.Also.Is(in.Head())
}

// refuse says why an input is not taken.
func (c *Command) refuse(in *input.File) error {
	switch {
	case in.Kind != input.Unknown:
	case len(c.Reads) == 0:
		return fmt.Errorf("offset 0: expected %s, found %s", c.Also.Name, input.Found(in.Head()))
	default:
		return in.NotATrace()
	}
	return fmt.Errorf("%s: is a %s trace; `tracefix %s` reads %s: take the file that it was made from", in.Name, in.Kind, c.Name, c.Inputs())
}

// binary are the formats that no terminal can show.
var binary = []string{"nettrace", "pprof", "perfetto", "otlp-profiles-alpha"}

// shown are the formats for people, whose text is filtered where it is made. Others hold names as they
// are, and are filtered on their way to a terminal.
var shown = []string{"text", "table", "tree"}

// Inputs names what the command reads.
func (c *Command) Inputs() string {
	var names []string
	for _, k := range c.Reads {
		names = append(names, k.String())
	}
	if c.Also != nil {
		names = append(names, c.Also.Name)
	}
	return strings.Join(names, ", ")
}

// Run does the job with one trace. What happened is in the report, also when the error is
// not nil; an error means that no output was made.
func (c *Command) Run(ctx context.Context, job Job, in *input.File, o Options) (*report.Trace, error) {
	for {
		rep := &report.Trace{
			Progress: o.Progress,
			Command:  c.Name, Status: "ok",
			Input: report.Input{Name: in.Name, Format: in.Kind.String(), Bytes: in.Stored, Layers: in.Layers},
		}
		err := named(in, c.run(ctx, job, in, &o, rep))
		if errors.Is(err, errMended) {
			continue
		}
		if err != nil {
			rep.Status, rep.Error, rep.Output = "failed", err.Error(), nil
		}
		return rep, err
	}
}

// errMended says that a compressed input was broken, and can be read better than it was.
var errMended = errors.New("read it again")

// takeBack is how much of what a damaged input gave can be taken back from standard output.
const takeBack = 4 << 20

func (c *Command) run(ctx context.Context, job Job, in *input.File, o *Options, rep *report.Trace) error {
	if !c.Takes(in) {
		return c.refuse(in)
	}
	format, err := c.Resolve(o)
	if err != nil {
		return err
	}
	format = cmp.Or(format, in.Kind.Own())
	screen := o.screen(c)
	name := cmp.Or(o.Out, c.defaultOutput(in, format))
	if screen != nil && slices.Contains(binary, format) {
		return report.UsageError{Err: fmt.Errorf("%s is binary, and standard output is a terminal; name a file with -o", format)}
	}
	place := ""
	if o.Taken != nil {
		place = output.Place(name)
	}
	if o.Taken[place] {
		return report.UsageError{Err: fmt.Errorf("%s: is another input or output of this run; name another output with -o, for one input at a time", name)}
	}
	stdout := o.Stdout
	if screen != nil && !slices.Contains(shown, format) {
		stdout = text.ShownWriter(stdout)
	}
	hold := 0
	if in.Mendable() {
		hold = takeBack
	}
	out, err := output.Create(name, &output.Options{Force: o.Force, Stdout: stdout, Inputs: in.Sources(), Others: []string{o.Report}, Context: ctx, Hold: hold})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return report.UsageError{Err: err}
	}
	defer out.Close()
	call := &Call{In: in, Out: o.Progress.Writer(out), Name: name, Format: format, Report: rep, Version: o.Version, Listed: o.Listed, Single: o.Single, Force: o.Force, Measure: o.Measure}
	if screen != nil {
		call.Screen = *screen
	}
	err = job.Do(ctx, call)
	for _, f := range call.further {
		defer f.Close()
	}
	if !out.Gone() && in.Mend(ctx) {
		return errMended
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.Strict && rep.Damages > 0 {
		d := rep.Damage[0]
		return fmt.Errorf("offset %d: %s: %s (damaged in %d place%s; without --strict what can be saved is saved)", d.Offset, d.Where, d.What, rep.Damages, report.Plural(rep.Damages))
	}
	for _, f := range append(call.further, out) {
		if err := f.Commit(); err != nil {
			return err
		}
	}
	if o.Taken != nil {
		o.Taken[place] = true
	}
	rep.Output = &report.Output{Name: name, Format: format, Bytes: out.Bytes()}
	if note := noteOfSize(format, out.Bytes()); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	return nil
}

// largePage is the size from which on it is said of a page: Chromium draws one of view of 580 MB
// after 7 s and of 1.2 GB after 20, and takes nearly twice as much memory as the page has.
const largePage = 500e6

// noteOfSize says what to do about an output that is too large for what shows it; empty if it is not.
func noteOfSize(format string, bytes int64) string {
	if format != "html" || bytes <= largePage {
		return ""
	}
	return fmt.Sprintf("the page has %s MB, and a browser takes twice as much memory to show it; with --from and --to it has a part of the time only", report.Count(int(bytes/1e6)))
}

// named makes an error name the file that it is about. Errors of an output name that.
func named(in *input.File, err error) error {
	var place *output.PlaceError
	var usage report.UsageError
	for _, other := range []bool{err == nil, errors.As(err, &place), errors.As(err, &usage), errors.Is(err, context.Canceled), errors.Is(err, output.ErrExists)} {
		if other {
			return err
		}
	}
	if strings.HasPrefix(err.Error(), in.Name+":") {
		return err
	}
	return fmt.Errorf("%s: %w", in.Name, err)
}

// defaultOutput is the output's name where the user gave none.
func (c *Command) defaultOutput(in *input.File, format string) string {
	// /dev/fd/63 is what bash names a `<(command)`: there is no place beside it.
	if c.Rewrites == nil || in.Name == "-" || in.Name == "/dev/stdin" || strings.HasPrefix(in.Name, "/dev/fd/") {
		return "-"
	}
	base, compression := output.TrimCompression(in.Name)
	_, ext := c.Outputs.Of(base)
	base = strings.TrimSuffix(base, ext)
	if own := in.Kind.Own(); format != own {
		return base + c.Rewrites.Other + c.Outputs.Lookup(format).Extensions[0]
	} else if ext == "" {
		ext = c.Outputs.Lookup(own).Extensions[0]
	}
	if in.Kind == input.Netperf && strings.EqualFold(ext, ".netperf") {
		ext = ".nettrace" // what is written is NetTrace v4
	}
	if e := strings.ToLower(compression); e != ".gz" && e != ".zst" {
		compression = "" // is read only
	}
	return base + c.Rewrites.Own + ext + compression
}

// Lookup returns the row of that name, or nil.
func Lookup(name string) *Command {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}
