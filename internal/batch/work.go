package batch

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/pipeline"
	"github.com/tracefix/tracefix/internal/report"
)

// A Doing is a row of what batches can do with a trace.
type Doing struct {
	Name string
	// Formats of outputs with the ends of their files. Nil means those of the
	// pipeline; then the default is the trace's own.
	Formats []NamedFormat
	// Work is made of how the pipeline is to work. Outputs that name the program that
	// wrote them get its version.
	Work func(cfg pipeline.Config, version string) Work
}

// A NamedFormat is a format and the end of the files that hold it.
type NamedFormat struct{ Name, End string }

// Doings are all that batches can do. The first format of a row is its default.
var Doings = []Doing{
	{Name: DoRepair, Work: func(cfg pipeline.Config, _ string) Work { cfg.Repair = true; return writeProfile(cfg) }},
	{Name: DoHTTP, Formats: httpFormats(), Work: workHTTP},
	{Name: DoInfo, Formats: []NamedFormat{{"json", ".info.json"}, {"text", ".info.txt"}}, Work: workInfo},
	{Name: DoConvert, Work: func(cfg pipeline.Config, _ string) Work { cfg.Repair = false; return writeProfile(cfg) }},
}

// writeProfile repairs or converts.
func writeProfile(cfg pipeline.Config) Work {
	return func(ctx context.Context, in *input.File, job Job) (*report.Trace, error) {
		c := cfg
		c.Out, c.Force, c.Format = job.Out, job.Force, job.Format
		if c.Format == "" { // the content counts, not the name
			c.Format = pipeline.OwnFormat(in.Kind)
		}
		return pipeline.Run(ctx, in, c)
	}
}

// DoingOf returns the row of that name, or nil.
func DoingOf(name string) *Doing {
	for i := range Doings {
		if Doings[i].Name == name {
			return &Doings[i]
		}
	}
	return nil
}

// DoingNames lists the names of all rows.
func DoingNames() []string {
	var names []string
	for _, d := range Doings {
		names = append(names, d.Name)
	}
	return names
}

// CheckFormat says whether what is done can be had in a format; "" is the default.
func (d *Doing) CheckFormat(format string) error {
	if format == "" {
		return nil
	}
	var names []string
	if d.Formats == nil {
		names = pipeline.Formats()
	}
	for _, f := range d.Formats {
		names = append(names, f.Name)
	}
	for _, n := range names {
		if n == format {
			return nil
		}
	}
	return fmt.Errorf("--format must be one of %s with --do %s, not %q", strings.Join(names, ", "), d.Name, format)
}

// extensionOf is the end of the files of what is done.
func extensionOf(do, format string) string {
	d := DoingOf(do)
	if d == nil || len(d.Formats) == 0 {
		return "." + do
	}
	for _, f := range d.Formats {
		if f.Name == format {
			return f.End
		}
	}
	return d.Formats[0].End
}
