package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tracefix/tracefix/internal/ipc"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

var ipcFormats = output.Formats{
	{Name: "text", Extensions: []string{".txt"}, Help: "a line for each message"},
	{Name: "ndjson", Extensions: []string{".ndjson", ".jsonl"}, Help: "one line of JSON for each message"},
}

// IPC is `tracefix ipc`.
type IPC struct {
	Extract string `placeholder:"DIR" help:"Write the traces of the conversation into this folder, as conn-N.nettrace or conn-N.netperf."`
	LimitFlag
	Values bool `help:"Show the values of environment variables; they may hold secrets."`
}

// Check implements Job.
func (i *IPC) Check(string) error {
	if i.Extract == "-" {
		return errors.New("--extract -: a folder cannot be standard output; name a folder (./- if it is called that)")
	}
	return i.LimitFlag.check()
}

// Do lists the messages.
func (i *IPC) Do(ctx context.Context, c *Call) error {
	r, err := c.In.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	traces := extracted{dir: i.Extract, force: c.Force, inputs: c.In.Sources()}
	c.Further(&traces)
	o := &ipc.Options{}
	if i.Extract != "" {
		o.Trace = traces.create
	}
	out := ipc.NewWriter(c.Out, c.Format, i.Values, c.Screen.Width)
	items := 0
	res, err := ipc.Read(r, o, func(it *ipc.Item) error {
		items++
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i.Limit > 0 && items > i.Limit {
			return nil
		}
		return out.Item(it)
	})
	if err != nil {
		return err
	}
	for _, d := range res.Damage {
		c.Report.AddDamage(report.Damage{Offset: d.Offset, Where: "recording", What: d.What})
	}
	number := func(n int, what string) string { return report.Count(n) + " " + what + report.Plural(n) }
	c.Report.Done = fmt.Sprintf("%s on %s, %s", number(items-res.Traces, "message"), number(res.Conns, "connection"), number(res.Traces, "trace"))
	if i.Limit > 0 && items > i.Limit {
		c.Report.Done += fmt.Sprintf("; %s shown", report.Count(i.Limit))
	}
	return nil
}

// extracted are the traces of a conversation. They appear when all is read.
type extracted struct {
	dir    string
	force  bool
	made   bool // the folder
	seen   map[int]int
	inputs []string
	files  []*output.File
}

func (x *extracted) create(conn int, format string) (io.WriteCloser, error) {
	if _, err := os.Stat(x.dir); err != nil {
		if err := output.Folder(x.dir); err != nil {
			return nil, err
		}
		x.made = true
	}
	if x.seen == nil {
		x.seen = map[int]int{}
	}
	name := fmt.Sprintf("conn-%d", conn)
	if x.seen[conn]++; x.seen[conn] > 1 {
		name += fmt.Sprintf("-%d", x.seen[conn])
	}
	f, err := output.Create(filepath.Join(x.dir, name+"."+format), &output.Options{Force: x.force, Private: true, Inputs: x.inputs})
	if err != nil {
		return nil, report.UsageError{Err: err}
	}
	x.files = append(x.files, f)
	return finished{f}, nil
}

// Commit makes the traces appear.
func (x *extracted) Commit() error {
	for _, f := range x.files {
		if err := f.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// Close drops what was not committed, and the folder if that was all there is.
func (x *extracted) Close() error {
	for _, f := range x.files {
		f.Close()
	}
	if x.made {
		os.Remove(x.dir) // fails where it holds a trace
	}
	return nil
}

// finished is an output that Close completes, but gives no name.
type finished struct{ *output.File }

func (f finished) Close() error { return f.Finish() }
