package command

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/text"
)

// Repair is `tracefix repair`.
type Repair struct {
	RepairFlags
	SampleFlags
	TrackFlags

	// Draws are the tracks of an input that holds events, unless the flags name others. Nil:
	// those that the format has by default.
	Draws []string `kong:"-"`
}

// NewRepair returns the job of a command line that is not read yet, with the flags of all passes.
func NewRepair() *Repair { return &Repair{SampleFlags: newSampleFlags()} }

// Check implements Job.
func (r *Repair) Check(format string) error {
	return errors.Join(r.RepairFlags.check(), r.SampleFlags.check(), r.TrackFlags.check(format))
}

// Do implements Job.
func (r *Repair) Do(ctx context.Context, c *Call) error {
	cfg := r.RepairFlags.config()
	r.SampleFlags.into(&cfg)
	r.TrackFlags.into(&cfg)
	if cfg.Tracks == nil && slices.Contains(recordings, c.In.Kind) {
		cfg.Tracks = r.Draws
	}
	return write(ctx, c, cfg)
}

// Convert is `tracefix convert`.
type Convert struct {
	SampleFlags
	Compat string `enum:",dotnet-trace" default:"" placeholder:"dotnet-trace" help:"Write Chromium JSON or speedscope exactly as dotnet-trace does, with its faults."`
	TrackFlags
	DepthFlags
}

// Check implements Job.
func (v *Convert) Check(format string) error {
	return errors.Join(v.DepthFlags.check(), v.SampleFlags.check(), v.TrackFlags.check(format))
}

// Do implements Job.
func (v *Convert) Do(ctx context.Context, c *Call) error {
	cfg := Config{Compat: v.Compat, MaxDepth: v.MaxDepth}
	v.SampleFlags.into(&cfg)
	v.TrackFlags.into(&cfg)
	return write(ctx, c, cfg)
}

// write writes the trace through the pipeline.
func write(ctx context.Context, c *Call, cfg Config) error {
	cfg.Name, cfg.EachRepair, cfg.CanList, cfg.Measure = c.Name, c.Listed, c.Single, c.Measure
	if err := writeProfile(ctx, c.In, c.Out, c.Format, &cfg, c.Report); err != nil {
		return err
	}
	if c.Single && c.Name != "-" && !isDevice(c.Name) {
		c.Report.Next = opens(c.Name, c.Format, cfg.time())
	}
	return nil
}

// isDevice reports whether there is something by a name that does not keep what is written to it:
// nothing can open that.
func isDevice(name string) bool {
	st, err := os.Stat(name)
	return err == nil && !st.Mode().IsRegular()
}

// opens says what shows an output; empty where that is no question. view shows time. What the
// viewer of a format cannot unpack itself is to be unpacked first: of all packed files it takes
// gzip of some formats only.
func opens(name, format string, time bool) string {
	base, end := output.TrimCompression(name)
	word, view, unpack := text.ShellWord(name), "", ""
	if time {
		view = ", or run `tracefix view " + word + "`"
	}
	if end != "" && !(strings.EqualFold(end, ".gz") && slices.Contains(viewedInGzip, format)) {
		unpack = "unpack it and "
		if format == "pprof" {
			word = text.ShellWord(base)
		}
	}
	switch format {
	case "chromium":
		return unpack + "open it in https://ui.perfetto.dev" + view
	case "perfetto":
		return unpack + "open it in https://ui.perfetto.dev"
	case "speedscope":
		return unpack + "open it in https://www.speedscope.app" + view
	case "firefox":
		return unpack + "open it in https://profiler.firefox.com"
	case "nettrace":
		return unpack + "open it in PerfView or Visual Studio, or run `tracefix top " + word + "`"
	case "pprof":
		return unpack + "run `go tool pprof -http : " + word + "`"
	case "html", "svg":
		return unpack + "open it in a browser"
	}
	return ""
}

// viewedInGzip are the formats whose viewers unpack gzip themselves.
var viewedInGzip = []string{"chromium", "perfetto", "speedscope", "firefox", "pprof"}
