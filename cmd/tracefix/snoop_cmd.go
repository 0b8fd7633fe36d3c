package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/ipc"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

// SnoopCmd is `tracefix snoop`.
type SnoopCmd struct {
	Target   string        `arg:"" name:"pid" help:"Process id of a .NET process, or the path of its diagnostics socket."`
	Out      string        `short:"o" placeholder:"OUT" help:"File of the recording, - for standard output; .gz or .zst at its end compresses. Default: snoop-PID.rec."`
	Force    bool          `help:"Replace an existing output."`
	Socket   string        `placeholder:"PATH" help:"Listen on this socket, for tools with --diagnostic-port PATH,connect. Default: the path at which tools look for the process id."`
	Duration time.Duration `help:"Stop after this time, such as 30s. Default: stop on Ctrl+C or when the process ends."`
}

// Help is what stands below the flags.
func (*SnoopCmd) Help() string {
	return examples("tracefix snoop 4711 -o session.rec", "tracefix ipc session.rec")
}

// Run relays and records until it is told to end, or the process is over.
func (c *SnoopCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	beInNoHurry(ctx, endless) // a signal is how a recording ends
	if c.Duration < 0 {
		return usage(fmt.Errorf("--duration %s: a recording takes some time; leave it out to record until Ctrl+C", c.Duration))
	}
	target, name, pid := c.Target, "socket", 0
	if n, err := strconv.Atoi(c.Target); err == nil && n > 0 {
		pid, name = n, c.Target
		if target, err = ipc.Endpoint(n); err != nil {
			return err
		}
	}
	path, byPID := ipc.ProxyPath(target)
	if c.Socket != "" {
		path, byPID = c.Socket, false
	}
	if c.Out == "" {
		c.Out = "snoop-" + name + ".rec"
	}
	out, err := output.Create(c.Out, &output.Options{Force: c.Force, Private: true, Stdout: std.out, Context: ctx})
	if err != nil {
		return usage(err)
	}
	defer out.Close()
	proxy, err := ipc.Listen(target, path)
	if err != nil {
		return err
	}
	defer proxy.Close()

	line := collect.Line{Port: path + ",connect"}
	if byPID && pid > 0 {
		line = collect.Line{PID: pid}
	}
	if !cli.Quiet {
		fmt.Fprintf(std.err, "%s stands for %s.\nRun a tool now, such as: %s\nCtrl-C ends the recording.\n", path, target, line.String())
	}
	if c.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Duration)
		defer cancel()
	}
	ended := proxy.Deserted // a path may lead into a container, whose processes have no number here
	if pid > 0 {
		ended = func() bool { return !ipc.Alive(pid) }
	}
	over, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for over.Err() == nil && !ended() {
			select {
			case <-over.Done():
			case <-time.After(time.Second / 4):
			}
		}
		proxy.Close() // what was said until then is still read
	}()
	st, err := proxy.Serve(ctx, out)
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if !cli.Quiet {
		next := fmt.Sprintf("`tracefix ipc %s` tells what was said", c.Out)
		if st.Bytes == 0 {
			next = "nothing was said; was a tool run with " + line.Target() + "?"
		}
		refused := ""
		if st.Refused > 0 {
			refused = fmt.Sprintf(" (%s not taken by the process)", report.Count(st.Refused))
		}
		fmt.Fprintf(std.err, "%s: %s connection%s%s, %s bytes; %s\n", c.Out, report.Count(st.Conns), report.Plural(st.Conns), refused, report.Count(int(st.Bytes)), next)
	}
	return nil
}
