package pipeline

import (
	"io"

	"github.com/tracefix/tracefix/internal/trace"
	"github.com/tracefix/tracefix/internal/view"
)

import "github.com/tracefix/tracefix/internal/input"

// Inputs are the formats that are read into the model.
var Inputs = []InputFormat{
	{Kind: input.Nettrace, Load: loadNettrace},
	{Kind: input.Netperf, Load: loadNettrace},
}

// Outputs are the formats that are written. Their order is that of the help text.
var Outputs = []OutputFormat{
	{Name: "chromium", Extensions: []string{".chromium.json", ".json"}, Help: "Chromium trace event JSON: Perfetto, speedscope, browser devtools"},
	{Name: "speedscope", Extensions: []string{".speedscope.json"}, Help: "speedscope JSON"},
	{Name: "nettrace", Extensions: []string{".nettrace"}, Help: "NetTrace: PerfView, Visual Studio, dotnet-trace"},
	{Name: "ndjson", Extensions: []string{".ndjson"}, Help: "one line of JSON for each sample"},
	{Name: "pprof", Extensions: []string{".pb.gz", ".pb"}, Help: "pprof protobuf: go tool pprof"},
	{Name: "folded", Extensions: []string{".folded"}, Help: "folded stacks: flame graphs"},
	{Name: "perfetto", Extensions: []string{".pftrace"}, Help: "Perfetto protobuf"},
	{Name: "html", Extensions: []string{".html"}, Help: "a page for any browser, offline",
		Write: func(w io.Writer, p *trace.Profile, _ *Config) error { return view.Write(w, p) }},
}

// Rewrites are tried before Inputs and Outputs.
var Rewrites = []Rewrite{}
