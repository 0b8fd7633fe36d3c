// Package pipeline ties inputs, passes and outputs together: one table of each, and
// one function that runs a trace through them.
package pipeline

import (
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix"
)

// An OutputFormat is a row of the table of outputs.
type OutputFormat = tracefix.Format

// Outputs are the formats that are written. Their order is that of the help text.
var Outputs = tracefix.Formats

// Output returns the row of that name, or nil.
func Output(name string) *OutputFormat {
	return tracefix.FormatNamed(name)
}

// Formats lists the names of the outputs.
func Formats() []string {
	var n []string
	for _, o := range Outputs {
		n = append(n, o.Name)
	}
	return n
}

// writeOptions are what c asks of a writer. The title is that of the reference: the
// name of the output without its folder and its last extension; of standard output it is
// the trace's own.
func writeOptions(c *Config) *tracefix.WriteOptions {
	o := &tracefix.WriteOptions{Plain: c.Plain, Tracks: c.Tracks, Warn: c.warn}
	if c.Out != "-" {
		o.Name = titleOf(c.Out)
	}
	return o
}

func titleOf(out string) string {
	name, _ := trimCompression(filepath.Base(out))
	return strings.TrimSuffix(name, filepath.Ext(name))
}
