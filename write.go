package tracefix

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/view"
	"github.com/tracefix/tracefix/profile"
)

// A Format is a format that Write knows.
type Format struct {
	Name       string
	Extensions []string // of file names; the first one is the default
	Help       string   // what opens it
	Tracks     bool     // whether it has tracks beside the sampled stacks
	Weights    int      // how many weights it can show at once; 0: time only
	OnTimeAxis bool     // whether it draws a weight as time, so that no track fits beside it
	write      func(io.Writer, *profile.Profile, export.Options) error
}

// Formats returns a copy of the list of formats that Write and File.Rewrite know, in the order of the help.
func Formats() []Format {
	list := slices.Clone(formats)
	for i := range list {
		list[i].Extensions = slices.Clone(list[i].Extensions)
	}
	return list
}

// formats has a row for each format that profiles are written in.
var formats = []Format{
	{Name: "chromium", Extensions: []string{".chromium.json", ".json"}, Help: "Chromium trace event JSON: Perfetto, speedscope, browser devtools", Tracks: true, Weights: 1, OnTimeAxis: true, write: export.Chromium},
	{Name: "speedscope", Extensions: []string{".speedscope.json"}, Help: "speedscope JSON", Weights: 1, write: export.Speedscope},
	{Name: "nettrace", Extensions: []string{".nettrace"}, Help: "NetTrace: PerfView, Visual Studio, dotnet-trace"},
	{Name: "ndjson", Extensions: []string{".ndjson"}, Help: "one line of JSON for each sample", Weights: 1 << 8, write: export.NDJSON},
	{Name: "pprof", Extensions: []string{".pb.gz", ".pb"}, Help: "pprof protobuf: go tool pprof", Weights: 1 << 8, write: export.Pprof},
	{Name: "folded", Extensions: []string{".folded"}, Help: "folded stacks with self time in microseconds: flame graphs", Weights: 1, write: export.Folded},
	{Name: "perfetto", Extensions: []string{".pftrace"}, Help: "Perfetto protobuf", Tracks: true, Weights: 1, OnTimeAxis: true, write: export.Perfetto},
	{Name: "firefox", Extensions: []string{".firefox.json"}, Help: "Firefox Profiler JSON: profiler.firefox.com, what samply opens", Tracks: true, Weights: 1, write: export.Firefox},
	{Name: "otlp-profiles-alpha", Extensions: []string{".otlp-profiles.pb"}, Help: "OpenTelemetry profiles protobuf, a signal that may still change", Weights: 1 << 8, write: export.OTLPProfiles},
	{Name: "svg", Extensions: []string{".svg"}, Help: "a flame graph of all threads as one", Weights: 1, write: export.SVG},
	{Name: "html", Extensions: []string{".html"}, Help: "a page for any browser, offline", Tracks: true, Weights: 1, write: page},
}

// page writes the page of the samples' time, or one of what other events weigh.
func page(w io.Writer, p *profile.Profile, o export.Options) error {
	if len(o.Weights) == 1 && o.Weights[0] != profile.TimeWeight {
		return export.WeighedHTML(w, p, o)
	}
	return view.Write(w, p)
}

// FormatNamed returns a copy of the format of that name, nil if there is none.
func FormatNamed(name string) *Format {
	for _, f := range formats {
		if f.Name == name {
			f.Extensions = slices.Clone(f.Extensions)
			return &f
		}
	}
	return nil
}

// FromProfile reports whether Write can write the format. A nettrace can only be rewritten, see File.Rewrite.
func (f *Format) FromProfile() bool { return f.write != nil }

// CheckWeights returns an error for weights that the format cannot show.
func (f *Format) CheckWeights(weights []string) error {
	if len(weights) == 0 || len(weights) <= f.Weights || f.Weights == 0 && len(weights) == 1 && weights[0] == profile.TimeWeight {
		return nil
	}
	var can []string
	for i := range formats {
		if formats[i].Weights >= len(weights) {
			can = append(can, formats[i].Name)
		}
	}
	if f.Weights == 0 {
		return fmt.Errorf("%s keeps all events as they were recorded, and weighs none; %s do", f.Name, strings.Join(can, ", "))
	}
	return fmt.Errorf("%s shows one weight, not %s at once; %s do", f.Name, strings.Join(weights, " and "), strings.Join(can, ", "))
}

// WriteOptions configure Write. nil and the zero value are the defaults.
type WriteOptions struct {
	// Name is the title of the trace; empty: the profile's source.
	Name string
	// Plain omits the marks on frames that a repair inserted, and the list of repairs.
	Plain bool
	// Tracks are the groups to write: "cpu" for the sampled stacks, others of profile.Track, which
	// formats without tracks refuse. nil writes everything.
	Tracks []string
	// Weights are what stacks are weighed by: profile.TimeWeight is the time of the samples, any
	// other the name of one of p.Weights. nil is time, or the first weight if the file holds no
	// time.
	Weights []string
	// Warn is called for what the format could not hold as it was; may be nil.
	Warn func(string)
}

// Write writes p in the format of that name, one of Formats. It streams: its memory grows with the
// methods and stacks of p, not with the output. The same profile gives the same bytes. It can be
// called more than once, and does not change p.
func Write(w io.Writer, p *profile.Profile, format string, o *WriteOptions) error {
	if o == nil {
		o = &WriteOptions{}
	}
	f := FormatNamed(format)
	if f != nil && f.write == nil {
		return fmt.Errorf("a %s holds more than a profile does: File.Rewrite makes a repaired one of the file that the profile was read from", f.Name)
	}
	if f == nil {
		return fmt.Errorf("a profile is written as %s, not %q", strings.Join(formatNames(), ", "), format)
	}
	if p == nil || p.Table == nil {
		return errors.New("the profile has no Table: profile.NewTable makes one")
	}
	if err := f.CheckWeights(o.Weights); err != nil {
		return err
	}
	weights := o.Weights
	if len(weights) == 0 {
		weights = nil
		timed := slices.ContainsFunc(p.Threads, func(t *profile.Thread) bool { return t.Samples.Len() > t.Samples.Count(profile.SampleEvent) })
		if len(p.Weights) > 0 && p.Weights[0].Sums && !timed {
			weights = []string{p.Weights[0].Name}
		}
	}
	groups := slices.Clone(trackGroups)
	for _, t := range p.Tracks {
		groups = append(groups, t.Group)
	}
	if err := checkTracks("WriteOptions", o.Tracks, groups); err != nil {
		return err
	}
	if i := slices.IndexFunc(o.Tracks, func(t string) bool { return t != "cpu" }); i >= 0 && !f.Tracks {
		return fmt.Errorf("WriteOptions.Tracks has %q: %s has no place for tracks", o.Tracks[i], f.Name)
	}
	for _, name := range weights {
		if name != profile.TimeWeight && p.WeightNamed(name) < 0 {
			return fmt.Errorf("WriteOptions.Weights has %q: the profile was read without it, see ReadOptions.Weights", name)
		}
	}
	if err := f.write(w, p, export.Options{Name: o.Name, Plain: o.Plain, Tracks: o.Tracks, Weights: weights, Warn: o.Warn}); err != nil {
		return err
	}
	return p.Err()
}

// formatNames lists the formats that a profile alone can become.
func formatNames() (names []string) {
	for i := range formats {
		if formats[i].FromProfile() {
			names = append(names, formats[i].Name)
		}
	}
	return names
}
