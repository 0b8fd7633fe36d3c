package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tracefix/tracefix/internal/pipeline"
)

// ViewCmd is `tracefix view`.
type ViewCmd struct {
	In     string `arg:"" name:"in" help:"Trace of any format that repair reads; - is standard input."`
	Out    string `short:"o" placeholder:"FILE" help:"Write the page here instead of a temporary folder."`
	NoOpen bool   `name:"no-open" help:"Print the page's name; start no browser."`
	Force  bool   `help:"Replace an existing page."`
	RepairFlags
	SelectFlags
}

// Run repairs the trace into one self-contained page and opens it.
func (c *ViewCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	if err := c.RepairFlags.check(); err != nil {
		return err
	}
	sel, err := c.selection()
	if err != nil {
		return err
	}
	out := c.Out
	if out == "" {
		dir, err := os.MkdirTemp("", "tracefix-view-*")
		if err != nil {
			return err
		}
		name := filepath.Base(c.In)
		if c.In == "-" {
			name = "trace"
		}
		out = filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name))+".html")
	}
	cfg := c.RepairFlags.config()
	cfg.Out, cfg.Format, cfg.Force, cfg.Stdout, cfg.Select = out, "html", c.Force, std.out, sel
	rep, err := runOne(ctx, cli, std, c.In, OutputFlags{}, cfg)
	if err != nil {
		if c.Out == "" {
			os.Remove(filepath.Dir(out)) // empty: nothing was written
		}
		return err
	}
	if out != "-" {
		fmt.Fprintln(std.out, out)
	}
	if !c.NoOpen && out != "-" {
		if err := openBrowser(ctx, out); err != nil {
			fmt.Fprintf(std.err, "no browser could be started (%v); open the file above\n", err)
		}
	}
	if rep.Status == "damaged" {
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

// config is the part of a run's configuration that the flags tell.
func (f RepairFlags) config() pipeline.Config {
	c := pipeline.Config{Repair: true, MaxDepth: f.MaxDepth, MinConfidence: f.MinConfidence, Plain: f.Plain}
	if c.MinConfidence == 0 {
		c.MinConfidence = -1 // every answer; 0 is stackfix's default
	}
	return c
}

func (f RepairFlags) check() error {
	if err := checkDepth(f.MaxDepth); err != nil {
		return err
	}
	if f.MinConfidence < 0 || f.MinConfidence > 1 {
		return usageError{fmt.Errorf("--min-confidence %v: must be between 0 and 1", f.MinConfidence)}
	}
	return nil
}
