package batch

import (
	"cmp"
	"context"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// DoingNames lists the rows of the table of commands that batches can do.
func DoingNames() []string { return doingThat(0) }

// doingThat lists those whose reports count all of these things.
func doingThat(counts command.Counts) (names []string) {
	for _, c := range command.Table {
		if !c.Alone && c.Counts&counts == counts {
			names = append(names, c.Name)
		}
	}
	return names
}

// countsSamples reports whether what was done looks at samples.
func (r *Report) countsSamples() bool {
	c := command.Lookup(r.Do)
	return c == nil || c.Counts&command.Samples != 0
}

// formatOf is the format of the outputs of a row; empty if each trace keeps its own.
func formatOf(c *command.Command, format string) string {
	if c.Rewrites != nil {
		return format
	}
	return cmp.Or(format, c.Batch, c.Outputs[0].Name)
}

// Check refuses early what WorkOf could not do.
func Check(c *command.Command, job command.Job, format string) error {
	// Traces that keep their own format have no place for more than a nettrace has.
	return c.Check(job, command.Options{Format: cmp.Or(formatOf(c, format), input.Nettrace.Own())})
}

// WorkOf makes a Work of a row of the table of commands.
func WorkOf(c *command.Command, job command.Job, o command.Options) Work {
	return func(ctx context.Context, in *input.File, j Job) (*report.Trace, error) {
		o := o // this trace's
		// The content counts, not the name.
		o.Format = cmp.Or(formatOf(c, j.Format), in.Kind.Own())
		o.Out, o.Force = j.Out, j.Force
		return c.Run(ctx, job, in, o)
	}
}

// endOf is the end of the names of what is done.
func endOf(do, format string) string {
	c := command.Lookup(do)
	if c == nil {
		return "." + do
	}
	f := c.Outputs.Lookup(formatOf(c, format))
	switch {
	case f == nil:
		return "." + do
	case f.Name == "har": // holds nothing but requests
		return f.Extensions[0]
	}
	return "." + do + f.Extensions[0]
}
