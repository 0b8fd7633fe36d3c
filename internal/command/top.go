package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	Limit    *int   `short:"n" placeholder:"N" help:"Methods in each table; 0 prints all. Default: 20; all callers and callees in json and csv."`
	Method   string `placeholder:"PATTERN" help:"Print the callers and callees of the methods with that name; * and ? are wildcards."`
	Total    bool   `aliases:"inclusive" help:"Sort by total time (with callees) instead of self time."`
	Wait     bool   `help:"Print only the time in native code or waiting, and sort by it."`
	ByThread bool   `help:"Print a table for each thread."`
	Raw      bool   `help:"Show the sampler's own frames (Thread.PollGC) instead of charging their time to the callers."`
	Repair   bool   `help:"Repair cut stacks first, so that the totals of outer methods are right."`
	SampleFlags
	DepthFlags
}

// Check implements Job.
func (t *Top) Check(string) error {
	if len(t.Weight) > 0 && t.ByThread {
		return errors.New("--by-thread does not go with --weight; --thread keeps one")
	}
	values, time := false, t.Wait || t.Raw
	for _, w := range t.Weight {
		is := isTime(w)
		values, time = values || !is, time || is
	}
	if values && time {
		return errors.New("top shows time or other weights: cpu, wall, --wait and --raw do not go with other weights")
	}
	if t.Method != "" && (len(t.Weight) > 0 || t.ByThread || t.Total || t.Wait) {
		return errors.New("--method prints callers and callees: --weight, --by-thread, --total and --wait do not go with it")
	}
	return errors.Join(LimitFlag{t.limit()}.check(), t.SampleFlags.check(), t.DepthFlags.check())
}

func (t *Top) limit() int { return limitOr(t.Limit, 20) }

// Do counts the samples of the trace by method.
func (t *Top) Do(ctx context.Context, c *Call) error {
	rep := c.Report
	cfg := Config{Repair: t.Repair, MaxDepth: t.MaxDepth, Measure: c.Measure}
	t.SampleFlags.into(&cfg)
	p, err := loadProfile(ctx, c.In, cfg, rep)
	if err != nil {
		return err
	}
	if err := t.write(c, p); err != nil {
		return err
	}
	return p.Err()
}

// write writes the table.
func (t *Top) write(c *Call, p *profile.Profile) error {
	rep := c.Report
	if len(p.Weights) > 0 {
		if len(t.Weight) == 0 && (t.Method != "" || t.ByThread || t.Wait) {
			return report.UsageError{Err: fmt.Errorf("%s shows %s by default, and no time, of which --method, --by-thread and --wait are; --weight chooses", c.In.Name, p.Weights[0].Name)}
		}
		return t.values(c, p)
	}
	rep.Done = fmt.Sprintf("%s %s%s of %s thread%s", report.Count(rep.Samples), map[bool]string{false: "sample", true: "stack"}[p.Meta.Sums], report.Plural(rep.Samples), report.Count(rep.Threads), report.Plural(rep.Threads))
	if t.Method != "" {
		return t.around(c, p)
	}
	top := p.Top(profile.TopOptions{Limit: t.limit(), Total: t.Total, Wait: t.Wait, ByThread: t.ByThread, Raw: t.Raw, Repaired: t.Repair})
	if top.Samples == 0 {
		return errors.New(strings.Join(append([]string{"no samples to count"}, rep.Notes...), "; "))
	}
	if p.Meta.Version >= 6 {
		rep.Notes = append(rep.Notes, t.ofLinux(top)...)
	}
	if of := processesOf(p); len(of) > 1 && len(t.Process) == 0 && !t.ByThread {
		rep.Notes = append(rep.Notes, "the times are those of "+strings.Join(of, ", ")+" together; --process keeps one")
	}
	switch c.Format {
	case "json":
		return export.TopJSON(c.Out, top)
	case "csv":
		return export.TopCSV(c.Out, top)
	}
	return export.TopText(c.Out, top, c.Screen.Width)
}

// ofLinux says what a recording of collect-linux does not tell, where that matters, and what would.
func (t *Top) ofLinux(top *profile.Top) (notes []string) {
	if share := top.Unnamed / max(top.CPU, 1e-9); share >= 0.01 && len(t.Symbols) == 0 && !t.Wait {
		notes = append(notes, fmt.Sprintf("%.0f %% of the CPU time is at addresses without a name; --symbols DIR names native code by its ELF or debug files, and `tracefix info` says whose it is", 100*share))
	}
	if t.Wait && top.CPUOnly {
		notes = append(notes, "no waits: the recorder took samples on CPUs only; "+recordsOffCPU())
	}
	return notes
}

// processesOf names the processes that samples are of, the ones with most samples first.
func processesOf(p *profile.Profile) (names []string) {
	samples := map[*profile.Process]int{}
	var order []*profile.Process
	for _, th := range p.Threads {
		if n := th.Samples.Written(); n > 0 {
			if samples[th.Owner()] == 0 {
				order = append(order, th.Owner())
			}
			samples[th.Owner()] += n
		}
	}
	slices.SortStableFunc(order, func(a, b *profile.Process) int { return cmp.Compare(samples[b], samples[a]) })
	for i, pr := range order {
		if i == maxNamed && len(order) > maxNamed+1 {
			return append(names, fmt.Sprintf("%d more processes", len(order)-i))
		}
		name := nameAndID(pr.Name, pr.PID)
		if pr.Name == "" {
			name = "process " + name
		}
		names = append(names, name)
	}
	return names
}

// maxNamed is how many processes a note names.
const maxNamed = 5

// around writes who calls a method and whom it calls.
func (t *Top) around(c *Call, p *profile.Profile) error {
	a := p.Around(t.Method, t.Raw)
	if a.Samples == 0 {
		return fmt.Errorf("%w: no sample has a method %s%s", ErrNothing, t.Method, nearest(t.Method, methodNames(p)))
	}
	// A table says how many rows it leaves out; the others are whole, unless told not to be.
	if n := limitOr(t.Limit, 0); n > 0 && c.Format != "text" {
		a.Callers, a.Callees = a.Callers[:min(n, len(a.Callers))], a.Callees[:min(n, len(a.Callees))]
	}
	switch c.Format {
	case "json":
		return export.AroundJSON(c.Out, a)
	case "csv":
		return export.AroundCSV(c.Out, a)
	}
	return export.AroundText(c.Out, a, t.limit(), c.Screen.Width)
}

// values writes what the weights add up to.
func (t *Top) values(c *Call, p *profile.Profile) error {
	var tops []*profile.ValueTop
	for i := range p.Weights {
		tops = append(tops, p.TopValues(i, t.limit(), t.Total))
	}
	switch c.Format {
	case "json":
		return export.ValueTopJSON(c.Out, tops)
	case "csv":
		return export.ValueTopCSV(c.Out, tops)
	}
	return export.ValueTopText(c.Out, tops, c.Screen.Width)
}
