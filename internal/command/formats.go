package command

import (
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/output"
)

// ProfileFormats are those that a profile, or a copy of its recording, is written in.
func ProfileFormats() (list output.Formats) {
	for _, o := range tracefix.Formats() {
		list = append(list, output.Format{Name: o.Name, Extensions: o.Extensions, Help: o.Help})
	}
	return list
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
