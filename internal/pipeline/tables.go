// Package pipeline ties inputs, passes and outputs together: one table of each, and
// one function that runs a trace through them.
package pipeline

import (
	"context"
	"io"

	"github.com/tracefix/tracefix/internal/compat"
	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// An InputFormat is a row of the table of inputs.
type InputFormat struct {
	Kind input.Kind
	// Load reads the whole trace into the model and tells of damage through the report.
	Load func(ctx context.Context, in *input.File, c *Config, rep *report.Trace) (*profile.Profile, missing, error)
}

// Missing says why a trace has nothing of these groups of tracks, and what records it.
type missing func(groups []string) string

// An OutputFormat is a row of the table of outputs.
type OutputFormat struct {
	Name       string
	Extensions []string // of file names; the first one is used for names we make
	Help       string   // what opens it
	Tracks     bool     // has tracks beside the sampled stacks
	// Write writes a profile.
	Write func(w io.Writer, p *profile.Profile, c *Config) error
	// Compat writes what dotnet-trace writes; nil: the reference has no such format.
	Compat func(w io.Writer, t *compat.Trace, o export.Options) error
}

// A Rewrite is a way from an input kind to an output format that keeps everything
// which the model does not hold.
type Rewrite struct {
	Kind   input.Kind
	Format string
	Run    func(ctx context.Context, in *input.File, w io.Writer, c *Config, rep *report.Trace) error
}

// Output returns the row of that name, or nil.
func Output(name string) *OutputFormat {
	for i := range Outputs {
		if Outputs[i].Name == name {
			return &Outputs[i]
		}
	}
	return nil
}

// Formats lists the names of the outputs.
func Formats() []string {
	var n []string
	for _, o := range Outputs {
		n = append(n, o.Name)
	}
	return n
}
