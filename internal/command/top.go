package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

var topFormats = output.Formats{
	{Name: "text", Extensions: []string{".txt", ".text"}, Help: "a table"},
	{Name: "json", Extensions: []string{".json"}, Help: "one JSON document"},
	{Name: "csv", Extensions: []string{".csv"}, Help: "a row for each method"},
}

// Top is `tracefix top`.
type Top struct {
	Limit    int  `short:"n" default:"30" help:"Methods to print (of each thread); 0 is all."`
	Total    bool `aliases:"inclusive" help:"Order by total time, with the methods called, instead of self time."`
	Wait     bool `help:"Order by the time spent waiting or in native code instead of CPU time."`
	ByThread bool `help:"A table for each thread."`
	Raw      bool `help:"Leave what is in Thread.PollGC, where the sampler itself stops threads, instead of charging it to the callers."`
	Repair   bool `help:"Repair cut stacks first, so that the totals of outer methods are right."`
	SampleFlags
	DepthFlags
}

// Check implements Job.
func (t *Top) Check(string) error {
	if len(t.Weight) > 0 && t.ByThread {
		return errors.New("--by-thread does not go with --weight; --thread keeps one")
	}
	return errors.Join(LimitFlag{t.Limit}.check(), t.SampleFlags.check(), t.DepthFlags.check())
}

// Do counts the samples of the trace by method.
func (t *Top) Do(ctx context.Context, c *Call) error {
	rep := c.Report
	cfg := Config{Repair: t.Repair, MaxDepth: t.MaxDepth}
	t.SampleFlags.into(&cfg)
	p, err := loadProfile(ctx, c.In, cfg, rep)
	if err != nil {
		return err
	}
	if len(p.Weights) > 0 {
		return t.values(c, p)
	}
	top := p.Top(profile.TopOptions{Limit: t.Limit, Total: t.Total, Wait: t.Wait, ByThread: t.ByThread, Raw: t.Raw, Repaired: t.Repair})
	if top.Samples == 0 {
		return errors.New(strings.Join(append([]string{"no samples to count"}, rep.Notes...), "; "))
	}
	rep.Done = fmt.Sprintf("%s sample%s of %s thread%s", report.Count(rep.Samples), report.Plural(rep.Samples), report.Count(rep.Threads), report.Plural(rep.Threads))
	switch c.Format {
	case "json":
		return export.TopJSON(c.Out, top)
	case "csv":
		return export.TopCSV(c.Out, top)
	}
	return export.TopText(c.Out, top, c.Screen.Width)
}

// values writes what the weights add up to.
func (t *Top) values(c *Call, p *profile.Profile) error {
	var tops []*profile.ValueTop
	for i := range p.Weights {
		tops = append(tops, p.TopValues(i, t.Limit, t.Total))
	}
	switch c.Format {
	case "json":
		return export.ValueTopJSON(c.Out, tops)
	case "csv":
		return export.ValueTopCSV(c.Out, tops)
	}
	return export.ValueTopText(c.Out, tops, c.Screen.Width)
}
