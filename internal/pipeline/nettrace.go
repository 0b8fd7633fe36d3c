package pipeline

import (
	"context"
	"fmt"
	"io"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/symbol"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// loadOptions are what c asks of the loader.
func loadOptions(in *input.File, c *Config, rep *report.Trace) *load.Options {
	o := &load.Options{
		Source:   in.Name,
		Evidence: c.Repair,
		Tracks:   c.Tracks,

		PairByThread: c.PairByThread,
		Warn: func(e *nettrace.FormatError) {
			rep.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
		},
	}
	if c.MaxDepth != 100 {
		o.DepthLimit = c.MaxDepth // 100 also is what it is unless the file shows otherwise
	}
	if c.Compat != "" {
		o.Rules = symbol.Reference
		o.Processes, o.Threads = c.Select.Processes, c.Select.Threads
	}
	return o
}

// loadNettrace reads a nettrace or netperf file into the model.
func loadNettrace(ctx context.Context, in *input.File, c *Config, rep *report.Trace) (*profile.Profile, missing, error) {
	p, info, err := load.Profile(ctx, in.Reader, loadOptions(in, c, rep))
	if err != nil {
		return nil, nil, err
	}
	if err := addHTTP(ctx, in, c, p, info.Events); err != nil {
		return nil, nil, err
	}
	rep.Events = info.Events
	rep.Lost = int64(info.Stats.Lost)
	if c.PairByThread && len(info.WithoutIDs) > 0 {
		rep.Notes = append(rep.Notes, "recorded without activity ids: starts and stops are paired by thread, which is wrong for async code, so durations are guesses")
	}
	return p, func(groups []string) string { return notRecorded(info, c, groups) }, nil
}

// writeCompat converts as dotnet-trace convert does, faults included.
func writeCompat(ctx context.Context, in *input.File, w io.Writer, row *OutputFormat, c *Config, rep *report.Trace) error {
	t, info, err := load.Compat(ctx, in.Reader, loadOptions(in, c, rep))
	if err != nil {
		return err
	}
	rep.Events = info.Events
	rep.Lost = int64(info.Stats.Lost)
	rep.Threads, rep.CutsKept = len(t.Threads), true
	rep.Cut = int(info.Cut)
	for _, th := range t.Threads {
		rep.Samples += len(th.Samples)
	}
	if len(t.Threads) == 0 {
		note := info.NoSamples()
		switch filtered := len(c.Select.Processes)+len(c.Select.Threads) > 0; {
		case info.Samples > 0 && filtered:
			note = filtersDropAll
		case info.Samples > 0:
			note = fmt.Sprintf("dotnet-trace makes nothing of the %s samples of this trace; without --compat they are written", report.Count(int(info.Samples)))
		}
		rep.Notes = append(rep.Notes, note)
	}
	return row.Compat(w, t, exportOptions(c))
}

// rewriteNettrace copies a trace with its stacks repaired. Everything else stays.
func rewriteNettrace(ctx context.Context, in *input.File, w io.Writer, c *Config, rep *report.Trace) error {
	var fix func(*profile.Profile)
	if c.Repair {
		fix = func(p *profile.Profile) { pass.FixStacks(p, c.MinConfidence) }
	}
	p, info, err := load.Rewrite(ctx, in.Reader, w, loadOptions(in, c, rep), fix)
	if err != nil {
		return err
	}
	Describe(p, c.Repair && c.EachRepair, rep)
	advise(p, c, rep)
	if c.Repair {
		noteEvents(rep)
	}
	rep.Events = info.Events
	rep.Lost = int64(info.Stats.Lost)
	if rep.Samples == 0 {
		rep.Notes = append(rep.Notes, info.NoSamples())
	}
	return nil
}

// noteEvents tells of what only the copy of a recording has.
func noteEvents(rep *report.Trace) {
	if n := rep.CutEvents; n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s stacks of other events were cut too, and %s of them repaired", report.Count(n), report.Count(rep.RepairedEvents)))
	}
}
