package batch

import (
	"cmp"
	"context"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/pipeline"
	"github.com/tracefix/tracefix/internal/report"
)

// workInfo writes what is in a trace.
func workInfo(cfg pipeline.Config, _ string) Work {
	return func(ctx context.Context, in *input.File, job Job) (*report.Trace, error) {
		rep := begin(DoInfo, in)
		return finish(rep, infoTrace(ctx, in, job, &cfg, rep))
	}
}

func infoTrace(ctx context.Context, in *input.File, job Job, cfg *pipeline.Config, rep *report.Trace) error {
	if in.Kind == input.Unknown {
		return in.NotATrace()
	}
	f, err := info.Of(ctx, in, nil)
	if err != nil {
		return err
	}
	for _, d := range f.Damage {
		rep.AddDamage(d)
	}
	rep.Damages = f.Damages
	if f.Damages > 0 {
		rep.Status = Damaged
	}
	rep.Events, rep.Threads = f.Events, len(f.Threads)
	if f.Lost != nil {
		rep.Lost = int64(f.Lost.Events)
	}
	if f.Samples != nil {
		rep.Samples = int(f.Samples.Looks())
	}
	if f.Stacks != nil {
		for why, n := range f.Stacks.Cut {
			if n > 0 {
				rep.CutBy = sum(rep.CutBy, map[string]int{why: int(n)})
			}
		}
		rep.Cut = int(f.Stacks.CutTotal())
	}
	if err := strictly(cfg, rep); err != nil {
		return err
	}
	out, err := output.Create(job.Out, &output.Options{Force: job.Force, Inputs: []string{in.Path()}})
	if err != nil {
		return err
	}
	defer out.Close()
	format := cmp.Or(job.Format, "json")
	if format == "json" {
		err = f.WriteJSON(out)
	} else {
		err = f.WriteText(out, &info.TextOptions{All: true})
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	rep.Output = &report.Output{Name: job.Out, Format: format, Bytes: out.Bytes()}
	return nil
}
