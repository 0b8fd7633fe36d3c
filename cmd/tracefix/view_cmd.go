package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

// ViewCmd is `tracefix view`.
type ViewCmd struct {
	In     string `arg:"" name:"in" help:"Trace of any format that repair reads; - is standard input."`
	Out    string `short:"o" placeholder:"FILE" help:"Write the page here instead of a temporary folder."`
	NoOpen bool   `name:"no-open" help:"Print the page's name; start no browser."`
	Force  bool   `help:"Replace an existing page."`
	command.Repair
}

// Run repairs the trace into one self-contained page and opens it.
func (c *ViewCmd) Run(ctx context.Context, cli *CLI, std streams) error {
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
	c.Draws = []string{"cpu", "http", "activities", "gc", "exceptions", "contention"}
	run := traceRun{
		cli: cli, std: std, row: command.Lookup("repair"), job: &c.Repair,
		opts: command.Options{Out: out, Format: "html", Force: c.Force, Stdout: std.out},
	}
	err := run.row.Check(run.job, run.opts)
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

func openBrowser(ctx context.Context, file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	switch runtime.GOOS {
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", abs).Run()
	case "darwin":
		return exec.CommandContext(ctx, "open", abs).Run()
	}
	return exec.CommandContext(ctx, "xdg-open", abs).Run()
}
