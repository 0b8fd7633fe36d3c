package command

import (
	"context"
	"fmt"
	"io"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/compat"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/nettrace"
)

// writeCompat converts as dotnet-trace convert does, faults included.
func writeCompat(ctx context.Context, in *input.File, w io.Writer, row *tracefix.Format, c *Config, rep *report.Trace) error {
	t, info, err := compat.Read(ctx, in.Reader, &load.Options{
		Source: in.Name, DepthLimit: c.limit(), Processes: c.Select.Processes, Threads: c.Select.Threads,
		Warn: func(e *nettrace.FormatError) {
			rep.AddDamage(report.Damage{Offset: e.Offset, Where: e.Where, What: e.Err.Error()})
		},
	})
	if err != nil {
		return err
	}
	h := &info.Header
	rep.Events = info.Events
	rep.Lost = int64(info.Stats.Lost)
	rep.Threads, rep.CutsKept = len(t.Threads), true
	rep.Cut = int(info.Cut)
	for _, th := range t.Threads {
		rep.Samples += len(th.Samples)
	}
	if len(t.Threads) == 0 {
		note := noSamples(h.Version, info.Events)
		switch filtered := len(c.Select.Processes)+len(c.Select.Threads) > 0; {
		case info.Samples > 0 && filtered:
			note = filtersDropAll
		case info.Samples > 0:
			note = fmt.Sprintf("dotnet-trace writes none of the %s samples of this trace; without --compat they are written", report.Count(int(info.Samples)))
		}
		rep.Notes = append(rep.Notes, note)
	}
	return compat.Writers[row.Name](w, t, compat.Options{Name: titleOf(c.Name)})
}

// limit is the depth that the user gave; 100 also is what it is unless the file shows otherwise.
func (c *Config) limit() int {
	if c.MaxDepth == 100 {
		return 0
	}
	return c.MaxDepth
}
