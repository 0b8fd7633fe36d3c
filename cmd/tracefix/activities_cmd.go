package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/export/activityout"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/pipeline"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/requests"
)

// ActivitiesCmd is `tracefix activities`.
type ActivitiesCmd struct {
	In     string `arg:"" name:"in" help:"Trace: nettrace or netperf, bare or in .gz, .zst, .zip; - is standard input."`
	Out    string `short:"o" placeholder:"OUT" help:"Output file; - is standard output, the default. Its extension names the format; .gz or .zst behind it compresses."`
	Format string `placeholder:"FORMAT" help:"Output format: tree, json, ndjson, chromium. Default: by OUT's extension, else tree."`
	Force  bool   `help:"Replace an existing output."`
	Strict bool   `help:"Fail on a damaged input (exit 1) instead of saving what can be saved (exit 3)."`

	Provider     []string      `placeholder:"NAME" help:"Keep activities of these event sources; * and ? are wild."`
	Name         []string      `placeholder:"NAME" help:"Keep activities of these names; * and ? are wild."`
	Slow         time.Duration `help:"Keep activities that took at least this long, such as 200ms."`
	Status       []string      `enum:"ok,auto-stopped,unfinished,orphan-stop" placeholder:"STATUS" help:"Keep activities in these states: ok, auto-stopped, unfinished, orphan-stop."`
	Depth        int           `placeholder:"N" help:"Print N levels of the tree."`
	PairByThread bool          `help:"Pair starts and stops by thread where there are no activity ids: right for synchronous code, wrong for async."`
}

var activityFormats = []string{"tree", "json", "ndjson", "chromium"}

// Run prints the tree.
func (c *ActivitiesCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	format, err := c.format()
	if err != nil {
		return usageError{err}
	}
	keep, err := c.filter()
	if err != nil {
		return usageError{err}
	}
	if format == "chromium" {
		if keep != nil || c.Depth != 0 {
			return usageError{errors.New("--provider, --name, --slow, --status and --depth do not apply to --format chromium")}
		}
		return c.chromium(ctx, cli, std)
	}
	in, err := input.Open(ctx, c.In, &input.Options{Stdin: std.in})
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := output.Create(cmp.Or(c.Out, "-"), &output.Options{Force: c.Force, Stdout: std.out, Inputs: []string{in.Path()}})
	if err != nil {
		return usageError{err}
	}
	defer out.Close()
	stop := showProgress(cli, std, in)
	tree, info, err := requests.Activities(ctx, in, &activity.Options{PairByThread: c.PairByThread})
	stop()
	if err != nil {
		return err
	}
	if c.Strict && info.Damages > 0 {
		d := info.Damage[0]
		return fmt.Errorf("%s: damaged: offset %d: %s: %s", in.Name, d.Offset, d.Where, d.What)
	}
	switch format {
	case "tree":
		err = activityout.Tree(out, tree, keep, c.Depth)
	case "json":
		err = activityout.JSON(out, tree, keep)
	case "ndjson":
		err = activityout.NDJSON(out, tree, keep)
	}
	if err == nil {
		err = out.Commit()
	}
	if err != nil {
		return err
	}
	if !cli.Quiet {
		c.explain(std, in, tree, info, out)
	}
	if info.Damages > 0 {
		return damaged{errors.New("damaged")}
	}
	return nil
}

func (c *ActivitiesCmd) explain(std streams, in *input.File, tree *activity.Tree, info *requests.Info, out *output.File) {
	var n [4]int
	for i := range tree.Rows {
		n[tree.Rows[i].Status]++
	}
	parts := []string{report.Count(len(tree.Rows)) + " activities"}
	for s, v := range n {
		if v > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", report.Count(v), activity.Status(s)))
		}
	}
	if info.Lost > 0 {
		parts = append(parts, fmt.Sprintf("the recorder lost %s events", report.Count(int(info.Lost))))
	}
	line := in.Name + ": " + strings.Join(parts, ", ")
	if out.Name != "-" {
		line += " -> " + out.Name
	}
	fmt.Fprintln(std.err, line)
	if !tree.HasIDs && len(tree.WithoutID) > 0 {
		how := "--pair-by-thread pairs them by thread: a guess that is wrong for async code."
		if c.PairByThread {
			how = "They are paired by thread: wrong for async code, so durations are guesses."
		}
		fmt.Fprintf(std.err, "  Recorded without activity ids, so starts and stops cannot be told apart. %s\n", how)
		fmt.Fprintf(std.err, "  To record them, enable System.Threading.Tasks.TplEventSource with keyword 0x80 at level 4, such as:\n  dotnet-trace collect -p %s --providers '%s,System.Threading.Tasks.TplEventSource:0x80:4'\n",
			pidText(info.ProcessID), providersText(tree))
	}
	printDamage(std.err, info.Damage, info.Damages)
}

func pidText(pid int) string {
	if pid == 0 {
		return "PID"
	}
	return fmt.Sprint(pid)
}

// providersText lists the event sources that the trace has starts of.
func providersText(tree *activity.Tree) string {
	var list []string
	for _, c := range tree.WithoutID {
		p := c.Provider + ":0xFFFFFFFFFFFFFFFF:4"
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return strings.Join(list, ",")
}

func (c *ActivitiesCmd) format() (string, error) {
	if c.Format != "" && !slices.Contains(activityFormats, c.Format) {
		return "", fmt.Errorf("--format must be one of %s, not %q", strings.Join(activityFormats, ", "), c.Format)
	}
	return formatOf(c.Format, c.Out, "tree", []extension{
		{".txt", "tree"}, {".chromium.json", "chromium"}, {".json", "json"}, {".ndjson", "ndjson"}, {".jsonl", "ndjson"},
	})
}

func (c *ActivitiesCmd) filter() (activityout.Filter, error) {
	if len(c.Provider) == 0 && len(c.Name) == 0 && len(c.Status) == 0 && c.Slow == 0 {
		return nil, nil
	}
	for _, p := range append(slices.Clone(c.Provider), c.Name...) {
		if _, err := path.Match(strings.ReplaceAll(p, "/", "."), ""); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	match := func(list []string, s string) bool {
		// path.Match keeps "*" from crossing slashes, which names may have.
		s = strings.ToLower(strings.ReplaceAll(s, "/", "."))
		return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool {
			ok, _ := path.Match(strings.ToLower(strings.ReplaceAll(p, "/", ".")), s)
			return ok
		})
	}
	return func(r *activity.Row) bool {
		d, ok := r.Duration()
		return match(c.Provider, r.Provider) && match(c.Name, r.Name) && (c.Slow == 0 || ok && d >= int64(c.Slow)) &&
			(len(c.Status) == 0 || slices.Contains(c.Status, r.Status.String()))
	}, nil
}

// chromium draws the activities as `convert` does, without the sampled stacks.
func (c *ActivitiesCmd) chromium(ctx context.Context, cli *CLI, std streams) error {
	cfg := pipeline.Config{Out: cmp.Or(c.Out, "-"), Format: "chromium", Force: c.Force, Stdout: std.out, Tracks: []string{"activities"}, PairByThread: c.PairByThread}
	return runEach(ctx, cli, std, []string{c.In}, OutputFlags{Out: cfg.Out, Strict: c.Strict, Force: c.Force}, cfg)
}
