package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/ipc"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

// IPCCmd is `tracefix ipc`.
type IPCCmd struct {
	In string `arg:"" name:"in" help:"Recording of a diagnostics conversation: frames of connections, or the raw bytes of one; - is standard input."`
	ListFlags
	Format  string `enum:"text,ndjson," default:"" placeholder:"FORMAT" help:"text or ndjson. Default: by OUT's extension (.txt, .ndjson), else text."`
	Extract string `placeholder:"DIR" help:"Write the traces that were sent into this folder, as conn-N.nettrace."`
	Values  bool   `help:"Show the values of environment variables; they may hold secrets."`
}

// Run lists the messages.
func (c *IPCCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	format, err := formatOf(c.Format, c.Out, "text", []extension{{".ndjson", "ndjson"}, {".jsonl", "ndjson"}, {".txt", "text"}})
	if err != nil {
		return usageError{err}
	}
	if err := folder("--extract", c.Extract); err != nil {
		return err
	}
	run := listRun{cli: cli, std: std, flags: c.ListFlags}
	traces := extracted{dir: c.Extract, force: c.Force}
	defer traces.close()
	run.commit = traces.commit
	return run.do(ctx, c.In, func(in *input.File, w io.Writer, rep *report.Trace) error {
		if in.Kind != input.Unknown || !ipc.IsRecording(in.Head()) {
			if in.Kind != input.Unknown {
				return fmt.Errorf("%s: is a %s trace and no recording of a conversation; `tracefix info` tells about it", in.Name, in.Kind)
			}
			return fmt.Errorf("%s: offset 0: %w: expected frames, DOTNET_IPC_V1 or ADVR_V1, found %s", in.Name, ipc.ErrNoRecording, input.Found(in.Head()))
		}
		r, err := in.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		o := &ipc.Options{}
		if c.Extract != "" {
			seen := map[int]int{}
			o.Trace = func(conn int, format string) (io.WriteCloser, error) {
				name := fmt.Sprintf("conn-%d", conn)
				if seen[conn]++; seen[conn] > 1 {
					name += fmt.Sprintf("-%d", seen[conn])
				}
				return traces.create(name + "." + format)
			}
		}
		out := ipc.NewWriter(w, format, c.Values)
		items := 0
		res, err := ipc.Read(r, o, func(it *ipc.Item) error {
			items++
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return out.Item(it)
		})
		var usage usageError
		if errors.As(err, &usage) {
			return err // it names the output
		}
		if err != nil {
			return about(in, err)
		}
		for _, d := range res.Damage {
			rep.AddDamage(report.Damage{Offset: d.Offset, Where: "recording", What: d.What})
		}
		number := func(n int, what string) string {
			if n != 1 {
				what += "s"
			}
			return report.Count(n) + " " + what
		}
		run.summary = fmt.Sprintf("%s: %s on %s, %s", in.Name, number(items-res.Traces, "message"), number(res.Conns, "connection"), number(res.Traces, "trace"))
		return nil
	})
}

// extracted are the traces of a conversation. They appear when all is read.
type extracted struct {
	dir   string
	force bool
	made  bool // the folder
	files []*output.File
}

func (x *extracted) create(name string) (io.WriteCloser, error) {
	if _, err := os.Stat(x.dir); err != nil {
		if err := output.Folder(x.dir); err != nil {
			return nil, err
		}
		x.made = true
	}
	f, err := output.Create(filepath.Join(x.dir, name), &output.Options{Force: x.force})
	if err != nil {
		return nil, usageError{err}
	}
	x.files = append(x.files, f)
	return finished{f}, nil
}

func (x *extracted) commit() error {
	for _, f := range x.files {
		if err := f.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// close drops what was not committed, and the folder if that was all there is.
func (x *extracted) close() {
	for _, f := range x.files {
		f.Close()
	}
	if x.made {
		os.Remove(x.dir)
	}
}

// finished is an output that Close completes, but gives no name.
type finished struct{ *output.File }

func (f finished) Close() error { return f.Finish() }
