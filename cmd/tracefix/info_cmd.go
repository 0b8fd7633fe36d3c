package main

import (
	"context"
	"io"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// InfoCmd is `tracefix info`.
type InfoCmd struct {
	In string `arg:"" name:"in" help:"Trace of any format, bare or in .gz, .zst, .zip; - is standard input."`
	ListFlags
	Format string `enum:"text,json," default:"" placeholder:"FORMAT" help:"text or json. Default: by OUT's extension (.txt, .json), else text."`
	All    bool   `help:"List every provider, event type and thread."`
}

// Run tells what is in the trace.
func (c *InfoCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	format, err := formatOf(c.Format, c.Out, "text", []extension{{".json", "json"}, {".txt", "text"}})
	if err != nil {
		return usageError{err}
	}
	run := listRun{cli: cli, std: std, flags: c.ListFlags}
	return run.do(ctx, c.In, func(in *input.File, w io.Writer, rep *report.Trace) error {
		f, err := info.Of(ctx, in, nil)
		if err != nil {
			return err
		}
		rep.Damage, rep.Damages = f.Damage, f.Damages
		run.silent = true // the facts tell of the damage
		if format == "json" {
			return f.WriteJSON(w)
		}
		o := &info.TextOptions{All: c.All}
		if c.Out == "-" && isTerminal(std.out) {
			o.Width, o.Color = screen(std.out)
		}
		return f.WriteText(w, o)
	})
}
