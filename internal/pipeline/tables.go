// Package pipeline ties inputs, passes and outputs together: one table of each, and
// one function that runs a trace through them.
package pipeline

import (
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
)

// An OutputFormat is a row of the table of outputs.
type OutputFormat = tracefix.Format

// Outputs are the formats that are written. Their order is that of the help text.
var Outputs = tracefix.Formats

// Output returns the row of that name, or nil.
func Output(name string) *OutputFormat {
	return tracefix.FormatNamed(name)
}

// Formats lists the outputs for the table of commands.
func Formats() (list output.Formats) {
	for _, o := range Outputs {
		list = append(list, output.Format{Name: o.Name, Extensions: o.Extensions, Help: o.Help})
	}
	return list
}

// OwnFormat is the output format that an input of kind k has itself.
func OwnFormat(k input.Kind) string {
	switch k {
	case input.Nettrace, input.Netperf:
		return "nettrace"
	case input.Speedscope:
		return "speedscope"
	}
	return "chromium"
}

// writeOptions are what c asks of a writer. The title is that of the reference: the
// name of the output without its folder and its last extension; of standard output it is
// the trace's own.
func writeOptions(c *Config) *tracefix.WriteOptions {
	o := &tracefix.WriteOptions{Plain: c.Plain, Tracks: c.Tracks, Weights: c.shown(), Warn: c.warn}
	if c.Name != "-" {
		o.Name = titleOf(c.Name)
	}
	return o
}

// titleOf is the name of an output without its folder and its last extension.
func titleOf(out string) string {
	name, _ := output.TrimCompression(filepath.Base(out))
	return strings.TrimSuffix(name, filepath.Ext(name))
}
