package pipeline

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

// Inputs are the formats that are read into the model.
var Inputs = []InputFormat{
	{Kind: input.Nettrace, Load: loadNettrace},
	{Kind: input.Netperf, Load: loadNettrace},
	{Kind: input.Chromium, Load: loadChromium},
	{Kind: input.Speedscope, Load: loadSpeedscope},
}

// Outputs are the formats that are written. Their order is that of the help text.
var Outputs = []OutputFormat{
	{Name: "chromium", Extensions: []string{".chromium.json", ".json"}, Help: "Chromium trace event JSON: Perfetto, speedscope, browser devtools",
		Tracks: true, Write: with(export.Chromium), Compat: export.CompatChromium},
	{Name: "speedscope", Extensions: []string{".speedscope.json"}, Help: "speedscope JSON",
		Write: with(export.Speedscope), Compat: export.CompatSpeedscope},
	{Name: "nettrace", Extensions: []string{".nettrace"}, Help: "NetTrace: PerfView, Visual Studio, dotnet-trace"},
	{Name: "ndjson", Extensions: []string{".ndjson"}, Help: "one line of JSON for each sample",
		Write: with(export.NDJSON)},
	{Name: "pprof", Extensions: []string{".pb.gz", ".pb"}, Help: "pprof protobuf: go tool pprof",
		Write: with(export.Pprof)},
	{Name: "folded", Extensions: []string{".folded"}, Help: "folded stacks with self time in microseconds: flame graphs",
		Write: with(export.Folded)},
	{Name: "perfetto", Extensions: []string{".pftrace"}, Help: "Perfetto protobuf", Tracks: true,
		Write: with(export.Perfetto)},
	{Name: "html", Extensions: []string{".html"}, Help: "a page for any browser, offline",
		Write: func(w io.Writer, p *profile.Profile, _ *Config) error { return view.Write(w, p) }},
}

// Rewrites are tried before Inputs and Outputs.
var Rewrites = []Rewrite{
	{Kind: input.Chromium, Format: "chromium", Run: rewriteChromium},
	{Kind: input.Nettrace, Format: "nettrace", Run: rewriteNettrace},
	{Kind: input.Netperf, Format: "nettrace", Run: rewriteNettrace},
}

// with makes a row's Write of a writer of package export.
func with(write func(io.Writer, *profile.Profile, export.Options) error) func(io.Writer, *profile.Profile, *Config) error {
	return func(w io.Writer, p *profile.Profile, c *Config) error {
		o := exportOptions(c)
		if c.Out == "-" {
			o.Name = "" // the profile's own
		}
		return write(w, p, o)
	}
}

// exportOptions are what c asks of a writer. The title is that of the reference: the
// name of the output without its folder and its last extension.
func exportOptions(c *Config) export.Options {
	name, _ := trimCompression(filepath.Base(c.Out))
	return export.Options{Name: strings.TrimSuffix(name, filepath.Ext(name)), Plain: c.Plain, Tracks: c.Tracks, Warn: c.warn}
}
