package pipeline

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/internal/speedscope"
	"github.com/tracefix/tracefix/profile"
)

// readChromium reads a Chromium trace for the first time. weighted asks for samples
// of threads that hold no recorded stacks as well.
func readChromium(ctx context.Context, in *input.File, c *Config, rep *report.Trace, weighted bool) (*spans.Trace, error) {
	return readSpans(ctx, in, in.Reader, c, rep, weighted)
}

func readSpans(ctx context.Context, in *input.File, open func() (io.ReadCloser, error), c *Config, rep *report.Trace, weighted bool) (*spans.Trace, error) {
	limit := c.MaxDepth
	if limit == 100 {
		limit = 0 // 100 also is what it is unless the file says otherwise
	}
	t, err := spans.Read(ctx, open, &spans.Options{
		Source:   in.Name,
		MaxDepth: limit,
		Salvage:  len(in.Layers) > 0,
		Weighted: weighted,
		Lean:     !weighted,
		Warn: func(e *chromium.FormatError) {
			rep.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	if n := t.Facts.CutUntold; n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s samples were cut by the recorder, and the file does not tell which: repair the recording that it was converted from", report.Count(n)))
	}
	if n := t.Facts.Deepest; n > 0 && c.Repair {
		rep.Notes = append(rep.Notes, fmt.Sprintf("stacks of up to %d frames: nothing was cut at %d here, or the trace was repaired before; --max-depth sets another limit", n, t.Facts.Limit))
	}
	return t, nil
}

// loadChromium reads a Chromium trace into the model.
func loadChromium(ctx context.Context, in *input.File, c *Config, rep *report.Trace) (*profile.Profile, missing, error) {
	t, err := readChromium(ctx, in, c, rep, true)
	if err != nil {
		return nil, nil, err
	}
	rep.Events = t.Facts.Events()
	noteUntold(t, rep)
	return t.Profile, onlySamples, nil
}

// noteUntold tells of samples that count as on a CPU because nothing says otherwise.
func noteUntold(t *spans.Trace, rep *report.Trace) {
	if n := t.Facts.Untold; n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s samples: the file does not tell whether they were on a CPU or waiting, and all count as on a CPU; the recording that it was converted from tells", report.Count(n)))
	}
}

// onlySamples says why there is nothing: of spans only the sampled stacks are read.
func onlySamples(groups []string) string {
	if slices.Contains(groups, "cpu") {
		return "the trace holds no samples"
	}
	return "of such a trace only the sampled stacks are read; take the .nettrace that it was made from"
}

// loadSpeedscope reads a speedscope file into the model.
func loadSpeedscope(ctx context.Context, in *input.File, c *Config, rep *report.Trace) (*profile.Profile, missing, error) {
	told := false // the events may be read twice, and a defect is one all the same
	open := func() (io.ReadCloser, error) {
		return speedscope.Events(in.Reader, func(e *speedscope.FormatError) {
			if !told {
				told = true
				rep.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
			}
		})
	}
	t, err := readSpans(ctx, in, open, c, rep, true)
	if err != nil {
		return nil, nil, err
	}
	t.Profile.Meta.Format = "speedscope"
	rep.Events = t.Facts.Events()
	noteUntold(t, rep)
	return t.Profile, onlySamples, nil
}

// rewriteChromium repairs a Chromium trace and keeps all else in it byte by byte.
func rewriteChromium(ctx context.Context, in *input.File, w io.Writer, c *Config, rep *report.Trace) error {
	t, err := readChromium(ctx, in, c, rep, false)
	if err != nil {
		return err
	}
	rep.Events = t.Facts.Events()
	if c.Repair {
		pass.FixStacks(t.Profile, c.MinConfidence)
	}
	Describe(t.Profile, c.EachRepair, rep)
	advise(t.Profile, c, rep)
	return t.Rewrite(ctx, w, c.Plain)
}
