package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/view"
)

// ViewCmd is `tracefix view`.
type ViewCmd struct {
	In     string `arg:"" name:"in" help:"A trace of any format that repair reads, - for standard input, or a folder, whose traces and pages are listed in the browser."`
	Out    string `short:"o" placeholder:"FILE" help:"Write the page to this file instead of a temporary folder."`
	NoOpen bool   `name:"no-open" help:"Print the name of the page and start no browser."`
	Force  bool   `help:"Replace an existing page."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of showing what can be saved (exit 3)."`
	Report string `placeholder:"FILE" help:"Write a report of the run as JSON; - is standard output."`
	command.Repair
}

// pages are what view writes.
var pages = output.Formats{{Name: "html", Extensions: []string{".html", ".htm"}}}

// Help is what stands below the flags.
func (*ViewCmd) Help() string {
	return examples("tracefix view trace.nettrace", "tracefix view trace.nettrace -o page.html --no-open")
}

// Run repairs the trace into one self-contained page and opens it.
func (c *ViewCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	if info, err := os.Stat(c.In); err == nil && info.IsDir() {
		return c.serve(ctx, cli, std)
	}
	if err := output.CheckPacking(c.Out); err != nil {
		return usage(err)
	}
	if _, err := pages.Resolve("", c.Out, "html"); err != nil {
		base, _ := output.TrimCompression(c.Out)
		return usage(fmt.Errorf("%s: view writes a page, whose name ends in .html or .htm, and not %s; `tracefix repair IN -o OUT` writes other formats", c.Out, filepath.Ext(base)))
	}
	out := c.Out
	var temp *output.TempFolder
	if out == "" {
		dir, err := output.TempDir("tracefix-view-")
		if err != nil {
			return err
		}
		temp = dir
		name := filepath.Base(c.In)
		if c.In == "-" {
			name = "trace"
		}
		out = filepath.Join(dir.Path, strings.TrimSuffix(name, filepath.Ext(name))+".html")
	}
	run := c.run(cli, std, out)
	err := run.check([]string{c.In})
	var rep *report.Trace
	if err == nil {
		rep, err = run.one(ctx, c.In)
	}
	if err != nil {
		if temp != nil {
			temp.Remove()
		}
		return err
	}
	if temp != nil {
		temp.Keep() // the page stays for the browser
	}
	if out != "-" {
		fmt.Fprintln(std.out, out)
	}
	if !c.NoOpen && out != "-" {
		if err := openBrowser(ctx, out); err != nil {
			fmt.Fprintf(std.err, "no browser could be started (%v); open the file above\n", err)
		}
	}
	if rep.Damages > 0 {
		return damaged{fmt.Errorf("%s is damaged", c.In)}
	}
	return nil
}

// run is the repair of a trace into a page.
func (c *ViewCmd) run(cli *CLI, std streams, out string) *traceRun {
	c.Draws = []string{"cpu", "http", "activities", "gc", "exceptions", "contention", command.Counted}
	return &traceRun{
		cli: cli, std: std, row: command.Lookup("repair"), job: &c.Repair,
		opts: command.Options{
			Out: out, Format: "html", Force: c.Force, Strict: c.Strict, Stdout: std.out,
			Report: c.Report, Listed: c.Report != "", Single: true,
		},
	}
}

// serve serves a folder of traces to the browser of this machine until it is interrupted.
func (c *ViewCmd) serve(ctx context.Context, cli *CLI, std streams) error {
	if c.Report != "" {
		return usage(fmt.Errorf("--report is on the page of one trace; %s is a folder", c.In))
	}
	if c.Out != "" {
		return usage(fmt.Errorf("-o FILE is the page of one trace; %s is a folder", c.In))
	}
	write := func(ctx context.Context, run *traceRun, trace string) error {
		folder := filepath.Dir(run.opts.Out)
		output.Temporary(folder, nil)
		defer output.Settled(folder)
		if err := run.row.Check(run.job, run.opts); err != nil {
			return err
		}
		_, err := run.one(ctx, trace)
		return err
	}
	f, err := view.Serve(c.In, view.Pages{
		Kind: kindOf,
		View: func(ctx context.Context, trace, out string) error { return write(ctx, c.run(cli, std, out), trace) },
		Requests: func(ctx context.Context, trace, stacks, out string) error {
			return write(ctx, &traceRun{
				cli: cli, std: std, row: command.Lookup("http"), job: &command.HTTP{Side: "both", Explain: true, Stacks: stacks},
				opts: command.Options{Out: out, Format: "html", Strict: c.Strict, Stdout: std.out},
			}, trace)
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(std.out, f.Address())
	if !c.NoOpen {
		if err := openInBrowser(ctx, f.Address()); err != nil {
			fmt.Fprintf(std.err, "no browser could be started (%v); open the address above\n", err)
		}
	}
	return f.Run(ctx)
}

// traceEvents is what the head of trace events holds that other JSON does not.
var traceEvents = regexp.MustCompile(`^[\s\x{feff}]*\[|"traceEvents"|"ph"\s*:`)

// kindOf names the kind of trace that a file holds; "" if it holds none.
func kindOf(file string) string {
	f, err := input.Open(context.Background(), file, nil)
	if err != nil {
		return ""
	}
	defer f.Close()
	if f.Kind == input.Netperf {
		return input.Nettrace.String() // events of both are read alike
	}
	if f.Kind == input.Unknown || f.Kind == input.Chromium && !traceEvents.Match(f.Head()) {
		return ""
	}
	return f.Kind.String()
}

func openBrowser(ctx context.Context, file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	return openInBrowser(ctx, abs)
}

// openInBrowser opens a file or an address.
func openInBrowser(ctx context.Context, what string) error {
	switch runtime.GOOS {
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", what).Run()
	case "darwin":
		return exec.CommandContext(ctx, "open", what).Run()
	}
	return exec.CommandContext(ctx, "xdg-open", what).Run()
}
