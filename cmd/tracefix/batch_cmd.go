package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// BatchCmd is `tracefix batch`.
type BatchCmd struct {
	Traces BatchTracesCmd `cmd:"" name:"run" default:"withargs" help:"Run a command on every trace of folders, globs, archives and buckets: tracefix batch PATH... -o DIR."`
	Plan   BatchPlanCmd   `cmd:"" help:"Split a large batch into pieces of equal work, for an external scheduler."`
	Merge  BatchMergeCmd  `cmd:"" help:"Join the reports of shards or pieces."`

	Compare BatchCompareCmd `cmd:"" help:"Show what moved between two batches, beyond noise; a gate over time."`
}

// batchCommands are the names of the commands below batch; a mistyped one looks like a path.
var batchCommands = []string{"merge", "plan", "compare", "run"}

// BatchReportFlags say where reports go and when the batch fails.
type BatchReportFlags struct {
	Report   string   `placeholder:"FILE" help:"Also write the report as JSON to this file or URL; - is standard output."`
	JUnit    string   `name:"junit" placeholder:"FILE" help:"Also write the report as JUnit XML."`
	Markdown string   `placeholder:"FILE" help:"Also write the report as Markdown, such as to $GITHUB_STEP_SUMMARY."`
	HTML     string   `name:"html" placeholder:"FILE" help:"Also write the overview as an HTML page."`
	FailOn   []string `sep:"none" placeholder:"GATE,..." help:"Exit 1 if a gate fails, such as damaged (any at all), http-error-rate>1% or p95>500ms. Gates: ${gates}."`
}

// BatchTracesCmd works on traces.
type BatchTracesCmd struct {
	Paths []string `arg:"" optional:"" name:"path" help:"Files, folders, globs, archives (zip, tar), s3://, gs:// and azblob:// URLs; - reads a list from standard input."`
	Out   string   `short:"o" required:"" placeholder:"DIR" help:"Folder or URL for the outputs, which mirror the inputs, and the reports."`

	Do      string `enum:"${doings}" default:"repair" placeholder:"COMMAND" help:"Command to run on each trace, which also takes its flags: ${jobs}. Default: repair."`
	Format  string `placeholder:"FORMAT" help:"Output format. Default: for repair and convert that of each trace, else ndjson (http, activities, events), csv (counters) or json."`
	Archive string `placeholder:"OUT.zip" help:"Pack the outputs into a zip too."`

	Jobs      int    `placeholder:"N" help:"Traces to work on at the same time. Default: the number of processors."`
	MaxMemory string `placeholder:"SIZE" help:"Memory limit for all of them together, such as 2GiB. Default: three quarters of the memory of the container or machine."`
	MaxSize   string `placeholder:"SIZE" default:"1TiB" help:"Refuse traces that are larger than this as stored. Default: 1TiB."`
	Shard     string `placeholder:"I/N" help:"Do only part I of N. Default: from JOB_COMPLETION_INDEX and JOB_COMPLETIONS, if set."`
	Manifest  string `placeholder:"PLAN[#N]" help:"Do one piece of a plan by batch plan (a file or URL), instead of paths. Default with --piece: batch-plan.ndjson in -o."`
	Piece     string `placeholder:"N" help:"The piece to do, counted from 0. Default: JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX or SLURM_ARRAY_TASK_ID."`
	ForMerge  bool   `help:"Exit 0 even if traces failed or were damaged, and leave the verdict to batch merge. Failures of a store or the network still exit 1, so that the piece is run again."`
	Attempts  int    `default:"3" help:"Give a trace up after this many runs (at least 3) were killed or ran out of memory while working on it."`
	Resume    bool   `help:"Continue a batch that was interrupted, or repeat one whose inputs changed: skip traces that are done."`
	Force     bool   `help:"Replace existing outputs."`
	Strict    bool   `help:"Count damaged traces as failed."`
	BatchReportFlags
	Job kong.Plugins `embed:""` // the flags of what is done
}

// Help is what stands below the flags.
func (*BatchTracesCmd) Help() string {
	return "It also takes the flags of the command: tracefix batch --do http --help lists those of http.\n\n" +
		examples("tracefix batch traces -o fixed", "tracefix batch traces -o out --do http --fail-on 'http-error-rate>1%'",
			"tracefix batch 's3://bucket/traces/*.nettrace' -o out --shard 1/4", "tracefix batch merge out/batch-report-*-of-4.json -o out")
}

// newBatchCmd returns the grammar of batches that do what args say.
func newBatchCmd(args []string) *BatchCmd {
	row := command.Lookup(doing(args))
	if row == nil || row.Alone { // its enum refuses such a --do
		row = command.Lookup(batch.DoRepair)
	}
	return &BatchCmd{Traces: BatchTracesCmd{Job: kong.Plugins{row.New()}}}
}

// doing finds --do among args.
func doing(args []string) string { return valueOf(args, "--do") }

// valueOf finds the value of a flag among args, by any of its names.
func valueOf(args []string, names ...string) string {
	for i, a := range args {
		for _, name := range names {
			if v, ok := strings.CutPrefix(a, name+"="); ok {
				return v
			}
			if a == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

// planned returns args with what the plan says where they are for a piece of one and do not say
// what to do: which flags go with them depends on it; and the piece, with what was read of the
// plan. nil: there is none, or who does it tells what is wrong.
func planned(ctx context.Context, args []string) ([]string, *batch.Manifest) {
	at := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	manifest, number := valueOf(args, "--manifest"), valueOf(args, "--piece")
	if at < 0 || args[at] != "batch" || manifest == "" && number == "" || doing(args) != "" {
		return args, nil
	}
	m, err := batch.ParseManifest(manifest, number, valueOf(args, "-o", "--out"), os.Getenv)
	if err != nil {
		return args, nil
	}
	do, format, err := m.Doing(ctx, batch.Config{OpenURL: openURL})
	if err != nil {
		return args, nil
	}
	told := []string{"--do=" + do}
	if format != "" && valueOf(args, "--format") == "" {
		told = append(told, "--format="+format)
	}
	if at++; at < len(args) && args[at] == "run" {
		at++
	}
	return slices.Insert(slices.Clone(args), at, told...), m
}

// Run works on all traces.
func (c *BatchTracesCmd) Run(ctx context.Context, cli *CLI, std streams, piece *batch.Manifest) error {
	beInNoHurry(ctx, batchPatience)
	b, err := c.config(std, piece)
	if err != nil {
		return err
	}
	words := func() string {
		return fmt.Sprintf("interrupted; what is done stays: %s\nRun the same command with --resume to go on", b.Progress.Done())
	}
	lastWords(ctx, words)
	again := c.Force || c.Resume
	if err := c.BatchReportFlags.check(again, c.Archive, c.Out, c.Paths); err != nil {
		return err
	}
	rep, err := c.work(ctx, cli, std, b)
	var unwritten batch.UnwrittenError
	reports := c.Out
	switch {
	case ctx.Err() != nil:
		return interrupted{errors.New(words())}
	case errors.As(err, &unwritten): // what was done is told all the same
		reports = ""
	case err != nil:
		return err
	}
	rep.Paths = c.Paths
	var unpacked error
	if c.Archive != "" {
		unpacked = batch.Pack(ctx, b, rep, c.Archive, again)
	}
	err = c.BatchReportFlags.tell(ctx, cli, std, rep, c.Out, reports, again)
	if unpacked != nil {
		return unpacked
	}
	switch {
	case reports != "":
	case err != nil: // in words only: its exit code may be that of an output that was written
		return fmt.Errorf("%v; not all reports could be written: %w", err, unwritten)
	default:
		return fmt.Errorf("not all reports could be written: %w", unwritten)
	}
	var left judged
	if c.ForMerge && errors.As(err, &left) && rep.Totals.Unreached == 0 {
		return nil
	}
	return err
}

// config checks the flags, and returns the work that they ask for.
func (c *BatchTracesCmd) config(std streams, piece *batch.Manifest) (b batch.Config, err error) {
	if err := folder("-o", c.Out); err != nil {
		return b, err
	}
	if err := noneThere(c.Paths); err != nil {
		return b, err
	}
	row, job := command.Lookup(c.Do), c.Job[0].(command.Job)
	if err := batch.Check(row, job, c.Format); err != nil {
		return b, usage(err)
	}
	gates, err := c.gates(job)
	if err != nil {
		return b, err
	}
	if err := batch.CheckPack(c.Archive); err != nil {
		return b, usage(err)
	}
	if c.Jobs < 0 {
		return b, usage(fmt.Errorf("--jobs %d: must not be negative", c.Jobs))
	}
	if c.Attempts < batch.LeastAttempts {
		return b, usage(fmt.Errorf("--attempts %d: must be at least %d, so that no trace pays for another one that was at work beside it", c.Attempts, batch.LeastAttempts))
	}
	options, err := json.Marshal(job) // %v would print where the flags of passes lie
	if err != nil {
		return b, usage(err)
	}
	b = batch.Config{
		Attempts: c.Attempts,
		Paths:    c.Paths, Out: c.Out, Do: c.Do, Format: c.Format, Options: fmt.Sprintf("%s strict=%v", options, c.Strict),
		Version: version(), Work: batch.WorkOf(row, job, command.Options{Strict: c.Strict, Version: version(), Measure: true}), Jobs: c.Jobs, Resume: c.Resume, Force: c.Force,
		Gates: gates, Stdin: std.in, OpenURL: openURL, Progress: &batch.Progress{},
	}
	for _, f := range []string{c.Archive, c.Report, c.JUnit, c.Markdown, c.HTML} {
		if f != "" && f != "-" && !batch.IsURL(f) {
			b.Ignore = append(b.Ignore, f)
		}
	}
	if b.MaxMemory, err = parseSize("--max-memory", c.MaxMemory); err != nil {
		return b, err
	}
	if b.MaxSize, err = parseSize("--max-size", c.MaxSize); err != nil {
		return b, err
	}
	if err := c.part(&b, piece); err != nil {
		return b, usage(err)
	}
	return b, nil
}

// gates returns those of --fail-on, which a job must be able to judge.
func (c *BatchTracesCmd) gates(job command.Job) ([]batch.Gate, error) {
	gates, err := parseGates(c.FailOn, c.Do)
	if err != nil {
		return nil, err
	}
	h, isHTTP := job.(*command.HTTP)
	for _, g := range gates {
		if g.NeedsSummary() && !(isHTTP && h.Summarizes(c.Format)) {
			return nil, usage(fmt.Errorf("--fail-on %q: is known with --summary", g.Text))
		}
	}
	return gates, nil
}

// part says which part of the work is to be done. A piece whose plan was read already is not read again.
func (c *BatchTracesCmd) part(b *batch.Config, piece *batch.Manifest) (err error) {
	b.Manifest, err = batch.ParseManifest(c.Manifest, c.Piece, c.Out, os.Getenv)
	if m := b.Manifest; m != nil && piece != nil && m.Name == piece.Name && m.Piece == piece.Piece {
		b.Manifest = piece
	}
	switch {
	case err != nil:
		return err
	case b.Manifest != nil && (len(c.Paths) > 0 || c.Shard != ""):
		return errors.New("a piece of a plan has its paths in the plan: give neither paths nor --shard with --piece or --manifest")
	case b.Manifest != nil:
		return nil
	case len(c.Paths) == 0:
		return errors.New("expected \"<path> ...\", or --manifest or --piece for a piece of a plan")
	case c.Shard != "":
		b.Shard, err = batch.ParseShard(c.Shard)
	default:
		b.Shard, err = batch.ShardFromEnv(os.Getenv)
	}
	return err
}

// BatchPlanCmd is `tracefix batch plan`.
type BatchPlanCmd struct {
	Paths  []string `arg:"" name:"path" help:"As for batch."`
	Out    string   `short:"o" required:"" placeholder:"DIR" help:"Folder or URL of the outputs. The plan is written there as batch-plan.ndjson, and the numbers of its pieces as a JSON list, batch-pieces.json."`
	Do     string   `enum:"${doings}" default:"repair" placeholder:"COMMAND" help:"Command to run on each trace: ${jobs}. Default: repair."`
	Format string   `placeholder:"FORMAT" help:"Output format of the pieces."`
	Pieces int      `placeholder:"N" help:"Number of pieces; best many more than workers, so that a slow one delays nobody. Default: pieces of about 64 MiB, 1000 at most."`
	List   string   `placeholder:"FILE" help:"Also write the list of numbers to this file; - is standard output."`
	Force  bool     `help:"Replace another plan, and the file of --list."`
}

// Run makes the plan.
func (c *BatchPlanCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	if err := folder("-o", c.Out); err != nil {
		return err
	}
	if c.Pieces < 0 {
		return usage(fmt.Errorf("--pieces %d: must not be negative", c.Pieces))
	}
	if c.List != "" && !batch.IsURL(c.List) {
		if err := output.Check(c.List, &output.Options{Force: c.Force, Inputs: c.Paths, Made: c.Out}); err != nil {
			return usage(err)
		}
	}
	p, err := batch.MakePlan(ctx, batch.Config{
		Paths: c.Paths, Out: c.Out, Do: c.Do, Format: c.Format, Version: version(), Force: c.Force,
		Stdin: std.in, OpenURL: openURL,
	}, c.Pieces)
	if err != nil {
		return err
	}
	if c.List != "" {
		if err := writeAnywhere(ctx, c.List, std, true, p.WriteList); err != nil {
			return err
		}
	}
	if !cli.Quiet {
		say(std.err, p.Summary())
	}
	return nil
}

// noneThere refuses inputs of which not one exists: nothing is made for a typing mistake.
func noneThere(paths []string) error {
	switch {
	case len(paths) == 0: // a plan names them
		return nil
	case slices.Contains(paths, ""):
		return errors.New("the name of the trace is empty; was a variable not set?")
	}
	for _, p := range paths {
		if p == "-" || strings.Contains(p, "://") || strings.ContainsAny(p, "*?[") {
			return nil
		}
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	meant := input.MeantFile(paths[0])
	if near := text.Nearest(paths[0], batchCommands); meant == "" && near != nil {
		meant = fmt.Sprintf("; did you mean `tracefix batch %s`?", near[0])
	}
	if len(paths) == 1 {
		return fmt.Errorf("%s: no such file or folder%s", paths[0], meant)
	}
	return fmt.Errorf("%s: none of these %d files and folders exists%s", paths[0], len(paths), meant)
}

// work runs the batch with its progress.
func (c *BatchTracesCmd) work(ctx context.Context, cli *CLI, std streams, b batch.Config) (*batch.Report, error) {
	if !cli.Quiet {
		p := b.Progress
		p.Out, p.Live = std.err, draws(std.err)
		if f, ok := std.err.(*os.File); ok && p.Live {
			p.Width, _, _ = term.GetSize(int(f.Fd()))
		}
		go p.Measure(b.Paths)
	}
	defer b.Progress.Start()()
	stopKeepingMemoryLow()
	patience := batchPatience / 2 // the rest is for what it says
	if strings.Contains(b.Out, "://") {
		beInNoHurry(ctx, remote)
		patience = remote
	}
	var rep *batch.Report
	var err error
	ended := make(chan struct{})
	go func() {
		rep, err = batch.Run(ctx, b)
		close(ended)
	}()
	select {
	case <-ended:
		return rep, err
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return rep, err
	case <-time.After(patience): // the process ends before its workers do
		return nil, ctx.Err()
	}
}

// BatchMergeCmd is `tracefix batch merge`.
type BatchMergeCmd struct {
	Reports []string `arg:"" name:"report" help:"The reports of all shards or pieces (.json or .ndjson), or the folder or URL of the outputs, which has them."`
	Out     string   `short:"o" placeholder:"DIR" help:"Folder or URL of the shards' outputs, where batch-report.json, .md, .xml, .html and .ndjson are written."`
	Force   bool     `help:"Replace existing reports."`
	BatchReportFlags
}

// Run joins the reports.
func (c *BatchMergeCmd) Run(ctx context.Context, cli *CLI, std streams) error {
	if err := folder("-o", c.Out); err != nil {
		return err
	}
	m, err := batch.NewMerger()
	if err != nil {
		return err
	}
	defer m.Close()
	conf := batch.Config{Out: c.Out, Force: c.Force, OpenURL: openURL}
	for _, name := range c.Reports {
		if err := m.AddFrom(ctx, conf, name); err != nil {
			return err
		}
	}
	gates, err := parseGates(c.FailOn, m.Do())
	if err != nil {
		return err
	}
	if err := c.BatchReportFlags.check(c.Force, "", c.Out, c.Reports); err != nil {
		return err
	}
	r, err := m.Report(gates)
	if err != nil {
		return err
	}
	links := "."
	if c.Out != "" {
		links = c.Out
		if !strings.Contains(c.Out, "://") {
			if err := output.Folder(c.Out); err != nil {
				return err
			}
		}
		if err := r.WriteAll(ctx, conf); err != nil {
			return err
		}
	}
	return c.BatchReportFlags.tell(ctx, cli, std, r, links, c.Out, c.Force)
}

// check says early what could not be written later. The folder made may be there by then only.
func (f *BatchReportFlags) check(force bool, archive, made string, inputs []string) error {
	names := []string{f.Report, f.JUnit, f.Markdown, f.HTML, archive}
	for i, name := range names {
		if name == "" || batch.IsURL(name) && name != f.Markdown {
			continue
		}
		// Markdown is added to a file that is there already.
		o := &output.Options{Force: force || name == f.Markdown, Inputs: inputs, Others: names[:i], Made: made}
		if err := output.Check(name, o); err != nil {
			return usage(err)
		}
		if st, err := os.Stat(name); name == f.Markdown && err == nil && st.Mode().IsRegular() && isTrace(name) {
			return usage(fmt.Errorf("%s: is a trace, which --markdown would add its text to; name another file", name))
		}
	}
	return nil
}

// isTrace reports whether a file is one of a kind that is read.
func isTrace(name string) bool {
	in, err := input.Open(context.Background(), name, nil)
	if err != nil {
		return false
	}
	defer in.Close()
	return in.Kind != input.Unknown
}

// tell writes the reports that were asked for, prints what there is to say and turns
// the outcome into an exit code. outputs is where links of the overview lead, and reports the
// folder that holds the reports, or empty.
func (f *BatchReportFlags) tell(ctx context.Context, cli *CLI, std streams, r *batch.Report, outputs, reports string, force bool) error {
	unwritten := f.write(ctx, std, r, outputs, force)
	if !cli.Quiet { // what was done is done, whatever becomes of its report
		if err := printBatch(std, r); err != nil {
			return err
		}
		if reports != "" {
			say(std.err, fmt.Sprintf("reports in %s: %s", reports, strings.Join(r.Names(), ", ")))
		}
	}
	if unwritten != nil {
		return fmt.Errorf("the outputs were written, their report was not: %w", unwritten)
	}
	if nothing := r.Nothing(); nothing != "" {
		say(std.err, "tracefix: "+nothing)
	}
	switch r.Verdict() {
	case batch.SomeFailed:
		var gates []string
		for _, g := range r.Gates {
			if g.Failed {
				gates = append(gates, fmt.Sprintf("gate %s: found %s", g.Gate, text.Line(g.Told())))
			}
		}
		if len(gates) > 0 {
			return errors.New(strings.Join(gates, "; "))
		}
		if n := r.Totals.Unreached; n > 0 {
			return judged{fmt.Errorf("%d of %d traces failed, %d of them because the store failed; --resume does these again", r.Totals.Failed, r.Totals.Traces, n)}
		}
		return judged{fmt.Errorf("%d of %d traces failed", r.Totals.Failed, r.Totals.Traces)}
	case batch.SomeDamaged:
		return judged{damaged{fmt.Errorf("%d of %d traces were damaged", r.Totals.Damaged, r.Totals.Traces)}}
	}
	return nil
}

// write writes the reports that were asked for: one that cannot be does not keep the others from it.
func (f *BatchReportFlags) write(ctx context.Context, std streams, r *batch.Report, outputs string, force bool) error {
	var failed error
	if f.Report != "" {
		failed = errors.Join(failed, writeAnywhere(ctx, f.Report, std, force, r.WriteJSON))
	}
	if f.JUnit != "" {
		failed = errors.Join(failed, writeAnywhere(ctx, f.JUnit, std, force, r.WriteJUnit))
	}
	if f.Markdown != "" {
		// The summary of a CI job is a file that is there already and is added to.
		out, err := os.OpenFile(f.Markdown, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err == nil {
			err = errors.Join(r.WriteMarkdown(out), out.Close())
		}
		failed = errors.Join(failed, err)
	}
	if f.HTML != "" {
		failed = errors.Join(failed, writeAnywhere(ctx, f.HTML, std, force, func(w io.Writer) error { return r.WriteHTML(w, linksFrom(f.HTML, outputs)) }))
	}
	return failed
}

// judged is what a batch comes to, all of which is in its report.
type judged struct{ error }

func (j judged) Unwrap() error { return j.error }

// folder refuses standard output as the place of a folder.
func folder(flag, name string) error {
	if name == "-" {
		return usage(fmt.Errorf("%s -: a folder cannot be standard output; name a folder (./- if it is called that)", flag))
	}
	return nil
}

func writeTo(name string, std streams, force bool, write func(io.Writer) error) error {
	out, err := output.Create(name, &output.Options{Force: force, Stdout: std.out})
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return out.Commit()
}

// writeAnywhere is writeTo for URLs of object stores, too.
func writeAnywhere(ctx context.Context, name string, std streams, force bool, write func(io.Writer) error) error {
	if batch.IsURL(name) {
		return batch.WriteURL(ctx, openURL, name, force, write)
	}
	return writeTo(name, std, force, write)
}

// linksFrom leads from a page to the folder of outputs.
func linksFrom(page, outputs string) string {
	outputs = strings.TrimPrefix(outputs, "file://")
	if strings.Contains(outputs, "://") || page == "-" {
		return outputs
	}
	from, err1 := filepath.Abs(filepath.Dir(page))
	to, err2 := filepath.Abs(outputs)
	rel, err3 := filepath.Rel(from, to)
	if errors.Join(err1, err2, err3) != nil {
		return outputs
	}
	return filepath.ToSlash(rel)
}

// printBatch prints the summary line, and the first of what went wrong above it.
func printBatch(std streams, r *batch.Report) error {
	const most = 20
	n := 0
	for t, err := range r.Troubled() {
		if err != nil {
			return err
		}
		if n++; n > most {
			continue
		}
		what := t.Error
		if t.Status == batch.Damaged {
			what = "damaged in 1 place, what could be saved was saved"
			if t.Damages != 1 {
				what = fmt.Sprintf("damaged in %s places, what could be saved was saved", report.Count(t.Damages))
			}
		}
		if !strings.HasPrefix(what, t.Input.Name) {
			what = t.Input.Name + ": " + what
		}
		say(std.err, what)
	}
	if n > most {
		fmt.Fprintf(std.err, "... and %d more; the report lists them\n", n-most)
	}
	for _, note := range r.Notes {
		if !strings.HasPrefix(r.Nothing(), note) { // which tell says at the end
			say(std.err, "note: "+note)
		}
	}
	if n := r.Redone; n > 0 {
		say(std.err, fmt.Sprintf("note: done again, since another version of tracefix or other flags had made the output: %s trace%s", report.Count(n), report.Plural(n)))
	}
	say(std.err, r.Summary())
	return nil
}

// interrupted is an end by signal with something to say.
type interrupted struct{ error }

func parseGates(texts []string, do string) ([]batch.Gate, error) {
	var gates []batch.Gate
	for _, text := range texts {
		for t := range strings.SplitSeq(strings.ReplaceAll(text, "|", ","), ",") { // an empty one is no gate, and is told
			g, err := batch.ParseGate(t, do)
			if err != nil {
				return nil, usage(err)
			}
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// parseSize reads 512MiB, 2GB, 1.5g or a number of bytes; "" is 0.
func parseSize(flag, s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	bad := usage(fmt.Errorf("%s %q: must be a size such as 512MiB or 2GB", flag, s))
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(s)
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return 0, bad
	}
	unit := strings.ToLower(strings.TrimSpace(s[i:]))
	factor := 1.0
	if unit != "" && unit != "b" {
		k := strings.IndexByte("kmgt", unit[0])
		base := 1024.0 // k, M, G alone: as people mean memory
		switch {
		case k < 0:
			return 0, bad
		case unit[1:] == "b":
			base = 1000
		case unit[1:] != "" && unit[1:] != "ib" && unit[1:] != "i":
			return 0, bad
		}
		for range k + 1 {
			factor *= base
		}
	}
	if n *= factor; n < 1 || n > 1<<62 {
		return 0, bad
	}
	return int64(n), nil
}
