package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/compat"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// Config is how a trace becomes a profile and an output.
type Config struct {
	Repair bool   // else convert
	Name   string // of the output: some formats hold it as a title; "-" or empty: the profile's own

	// Of the repair.
	MaxDepth      int     // frames at which EventPipe cut; 0 means 100
	MinConfidence float64 // repairs below it become bridges; as in stackfix.Options
	Plain         bool    // inserted events carry no mark

	PairByThread bool // activities without ids are paired by thread

	// Of the output.
	Compat string   // "dotnet-trace": as the reference writes it, faults included
	Tracks []string // "cpu", "activities", ...; nil means the output's default
	With   []string // further tracks: "http", "activities"
	asked  []string // Tracks, if the command line names them: what the trace has none of is told

	Select profile.Selection
	// ByActivity puts stacks below the activities that they worked for.
	ByActivity bool
	// passes are the flags of the passes that have some of their own, by name.
	passes map[string]PassFlags

	// Weights are what stacks are weighed by: "cpu" and "wall" are the time of the samples, the
	// others those of tracefix.ReadOptions. nil is wall.
	Weights []string
	// Symbols are directories with the symbols of native code.
	Symbols []string

	// EachRepair, if set, makes the report list every cut sample.
	EachRepair bool
	// CanList says that the user could have had that list, by --report.
	CanList bool
	// Measure puts measures into the report.
	Measure bool

	all  bool         // of several weights in a file all are wanted, if none is named
	work bool         // for whom threads worked is wanted
	warn func(string) // told of what the output could not hold as it was
}

// ErrNothing reports a trace without anything that the output could show: an empty
// file would only hide that.
var ErrNothing = errors.New("nothing to write")

const filtersDropAll = noSample + dropsAll

const noSample = "no sample is left: "

// writeProfile takes one trace through the pipeline into an output of a format; "" is the
// input's own. What happened is in the report, also when the error is not nil.
func writeProfile(ctx context.Context, in *input.File, w io.Writer, format string, c *Config, rep *report.Trace) error {
	format = cmp.Or(format, in.Kind.Own())
	c.begin(rep)
	if err := c.check(in, format); err != nil {
		return report.UsageError{Err: err}
	}
	if err := tracefix.FormatNamed(format).CheckWeights(c.shown()); err != nil {
		return report.UsageError{Err: err}
	}
	return writeAs(ctx, in, w, format, c, rep)
}

func writeAs(ctx context.Context, in *input.File, w io.Writer, format string, c *Config, rep *report.Trace) error {
	f := tracefix.FromInput(in)
	row := tracefix.FormatNamed(format)
	needs := c.needsProfile() || len(c.Symbols) > 0 && !row.FromProfile()
	if f.Keeps(format) && !needs {
		return rewrite(ctx, f, w, c, rep)
	}
	if !row.FromProfile() && needs && format == in.Kind.Own() {
		return report.UsageError{Err: fmt.Errorf("%s output keeps every event as it is: filters, --symbols and --stacks logical do not go with it", format)}
	}
	if !row.FromProfile() {
		return report.UsageError{Err: fmt.Errorf("%s: a %s trace cannot become %s", in.Name, in.Kind, format)}
	}
	if c.Compat != "" {
		return writeCompat(ctx, in, w, row, c, rep)
	}
	c.Tracks = c.tracksOf(row)
	c.work = format == "ndjson" || format == "html" && slices.Contains(c.Tracks, "http")
	c.all = c.Weights == nil && (format == "pprof" || format == "ndjson") && in.Kind.String() == format // what is in it stays in it
	p, err := readProfile(ctx, in, c, rep)
	if err != nil {
		return err
	}
	if list := p.Meta.NoSpans; len(list) > 0 && row.Tracks {
		rep.Notes = append(rep.Notes, "left out, since stacks are made of spans: "+strings.Join(list, ", ")+"; Chromium JSON to Chromium JSON without filters keeps every event")
	}
	n := expected(p, format)
	rep.Progress.Expect(n)
	if large(n, in.Stored) {
		rep.Progress.Announce(announcement(cmp.Or(c.Name, "the output"), format, n, deepest(p.Table)))
	}
	return tracefix.Write(w, p, format, writeOptions(c))
}

// rewrite copies a trace with its stacks repaired. Everything else stays.
func rewrite(ctx context.Context, f *tracefix.File, w io.Writer, c *Config, rep *report.Trace) error {
	var repair *tracefix.RepairOptions
	if c.Repair {
		repair = c.repairOptions()
	}
	p, err := f.Rewrite(ctx, w, c.readOptions(rep), repair, c.Plain)
	if err != nil {
		return err
	}
	describeReading(p, c, rep)
	counts := c.describe(p, rep)
	c.measure(p, rep)
	advise(p, c, rep)
	if p.Meta.Version == 0 {
		return nil
	}
	if n := rep.CutEvents; c.Repair && n > 0 { // only a copy holds their stacks
		rep.RepairedEvents = counts.RepairedEvents
		rep.Notes = append(rep.Notes, fmt.Sprintf("stacks of other events: %s cut, too, %s of them repaired", report.Count(n), report.Count(rep.RepairedEvents)))
	}
	if rep.Samples == 0 {
		rep.Notes = append(rep.Notes, noSamples(p.Meta.Version, p.Meta.Events))
	}
	return nil
}

func (c *Config) repairOptions() *tracefix.RepairOptions {
	return &tracefix.RepairOptions{MinConfidence: c.MinConfidence}
}

// readOptions are what c asks of a reader.
func (c *Config) readOptions(rep *report.Trace) *tracefix.ReadOptions {
	o := &tracefix.ReadOptions{
		Evidence: c.Repair, MaxDepth: c.MaxDepth, Tracks: c.Tracks, PairByThread: c.PairByThread, Weights: c.shown(), AllWeights: c.all, Symbols: c.Symbols,
		From: time.Duration(c.Select.From), To: time.Duration(c.Select.To), Work: c.work || c.ByActivity || c.Select.OfWork(),
		Warn: func(d tracefix.Damage) { rep.AddDamage(report.Damage{Offset: d.Offset, Where: d.Where, What: d.What}) },
	}
	for _, own := range c.passes {
		if own.Wanted() {
			own.Reads(o)
		}
	}
	return o
}

// describeReading fills in what was met while reading.
func describeReading(p *profile.Profile, c *Config, rep *report.Trace) {
	rep.Events, rep.Lost = p.Meta.Events, p.Meta.Lost
	rep.Notes = append(rep.Notes, p.Meta.Notes...)
	if len(c.Symbols) > 0 && p.Meta.Version == 0 {
		rep.Notes = append(rep.Notes, "--symbols is for recordings: other traces do not tell which build of which file an address is of")
	}
}

// Untimed refuses a time range of a file that holds sums.
func Untimed(in *input.File) error {
	return report.UsageError{Err: fmt.Errorf("%s: this %s file holds sums and no times that --from and --to could choose by; take the trace that it was made from", in.Name, in.Kind)}
}

// readProfile reads a trace into the model, repairs it if c says so, and keeps what c
// selects.
func readProfile(ctx context.Context, in *input.File, c *Config, rep *report.Trace) (*profile.Profile, error) {
	f := tracefix.FromInput(in)
	p, err := f.Profile(ctx, c.readOptions(rep))
	if err != nil {
		return nil, err
	}
	if (c.Select.From != 0 || c.Select.To != 0) && (!f.Timed() || in.Kind == input.Speedscope && len(p.Weights) > 0) {
		return nil, Untimed(in)
	}
	describeReading(p, c, rep)
	if c.Weights == nil && len(p.Weights) > 0 { // the file shows no time by default
		if c.all && sampled(p) {
			c.Weights = []string{"wall"}
		}
		for _, w := range p.Weights {
			c.Weights = append(c.Weights, w.Name)
		}
	}
	cpu := slices.Contains(c.Tracks, "cpu")
	sampled := sampled(p)
	for i := range Passes {
		pass := &Passes[i]
		if pass.wanted(c) {
			pass.apply(p, c)
		}
	}
	if c.ByActivity && p.Activities.Len() == 0 {
		rep.Notes = append(rep.Notes, withoutIDsToWork(p)+"; --by activity finds none")
	}
	if err := describeWeights(p, c, rep); err != nil {
		return nil, err
	}
	if err := c.tell(p, in, cpu && c.time(), sampled, rep); err != nil {
		return nil, err
	}
	p.DropEvidence()
	count(p, rep)
	return p, nil
}

// tell describes what is left of p and says what is not there of what was asked for; it is an error if that is
// all. cpu is whether samples were asked for, sampled whether there were any.
func (c *Config) tell(p *profile.Profile, in *input.File, cpu, sampled bool, rep *report.Trace) error {
	found := hold(p, c)
	if len(p.Weights) > 0 {
		found["weights"] = true
	}
	if err := p.Err(); err != nil {
		return err
	}
	if cpu {
		c.describe(p, rep)
		c.measure(p, rep)
		if rep.Samples > 0 {
			found["cpu"] = true
		}
	}
	// Who asks for samples of a frame has nothing from tracks without them.
	ofSamples := cpu && (c.Select.Frame != "" || c.Select.CPUOnly || c.Select.OfWork())
	if len(found) == 0 || ofSamples && !found["cpu"] {
		damage := ""
		if rep.Damages > 0 {
			d := rep.Damage[0]
			damage = fmt.Sprintf("; the file is damaged: offset %d: %s: %s", d.Offset, d.Where, d.What)
		}
		return fmt.Errorf("%s: %w: %s%s", in.Name, ErrNothing, c.nothing(in.Kind, p, sampled, c.Tracks), damage)
	}
	if cpu {
		if !found["cpu"] {
			rep.Notes = append(rep.Notes, c.nothing(in.Kind, p, sampled, []string{"cpu"}))
		}
		advise(p, c, rep)
	}
	found["cpu"] = true // told already
	for _, w := range append(c.asked[:len(c.asked):len(c.asked)], c.With...) {
		if !found[w] {
			found[w] = true
			rep.Notes = append(rep.Notes, c.nothing(in.Kind, p, sampled, []string{w}))
		}
	}
	return nil
}

// nothing says why there is nothing of groups of tracks in p, which had samples before they were
// selected from or had none.
func (c *Config) nothing(kind input.Kind, p *profile.Profile, sampled bool, groups []string) string {
	switch {
	case sampled && p.Activities.Len() == 0 && c.Select.OfWork():
		return withoutIDsToWork(p)
	case !kind.IsRecording() && !c.time(): // of samples there may be many
		return fmt.Sprintf("a %s trace holds no events of --weight %s; take the .nettrace that it was made from", kind, strings.Join(c.values(), ","))
	case sampled && slices.Contains(groups, "cpu"):
		return dropped(p, &c.Select)
	}
	return missing(&p.Meta, c, groups)
}

func withoutIDsToWork(p *profile.Profile) string {
	return "recorded without activity ids, which tell for whom threads work; `" + collect.TaskIDs.For(p.Meta.Version) + "` records them"
}

// loadProfile reads the sampled stacks of a trace into the model, for commands that write no
// trace, and repairs them if c says so. What happened is in the report, also when the
// error is not nil.
func loadProfile(ctx context.Context, in *input.File, c Config, rep *report.Trace) (*profile.Profile, error) {
	c.begin(rep)
	if err := c.checkWork(in); err != nil {
		return nil, report.UsageError{Err: err}
	}
	c.Tracks = []string{"cpu"}
	return readProfile(ctx, in, &c, rep)
}

// begin fills in what c left to its defaults.
func (c *Config) begin(rep *report.Trace) {
	if c.MaxDepth == 0 {
		c.MaxDepth = 100
	}
	c.warn = func(text string) { rep.Notes = append(rep.Notes, text) }
}

// check refuses what would be passed over without a word.
func (c *Config) check(in *input.File, format string) error {
	if err := c.checkTracks(format); err != nil {
		return err
	}
	s := c.Select
	if c.Tracks != nil && !slices.Contains(c.Tracks, "cpu") && c.Weights == nil && (s.Frame != "" || s.CPUOnly || s.OfWork()) {
		return errors.New("--frame, --cpu-only, --activity and --request choose samples, of which --tracks draws none; add cpu to it")
	}
	events := in.Kind.IsRecording()
	if !events && len(c.drawn()) > 0 {
		return fmt.Errorf("%s: a %s trace holds no events to draw the track %s from; take the .nettrace that it was made from", in.Name, in.Kind, c.drawn()[0])
	}
	if err := c.checkWork(in); err != nil {
		return err
	}
	ofWork := c.ByActivity || c.Select.OfWork()
	if c.Compat == "" {
		return nil
	}
	if !events {
		return fmt.Errorf("%s: --compat is for nettrace inputs, as dotnet-trace is; this is %s", in.Name, in.Kind)
	}
	if compat.Writers[format] == nil {
		return fmt.Errorf("--compat %s: it writes no %s; use --format %s", c.Compat, format, formatsWith(func(o *tracefix.Format) bool { return compat.Writers[o.Name] != nil }))
	}
	if ofWork || c.wantsOwn() || c.Tracks != nil || c.With != nil || s.From != 0 || s.To != 0 || s.CPUOnly || s.Frame != "" ||
		c.Weights != nil || len(c.Symbols) > 0 || c.MaxDepth != 100 {
		return fmt.Errorf("--compat %s: it writes all samples as they are and nothing else; of the flags that choose or change them only --process and --thread go with it", c.Compat)
	}
	return nil
}

// checkWork refuses to ask for activities where no file of that kind tells them.
func (c *Config) checkWork(in *input.File) error {
	if !tracefix.FromInput(in).TellsWork() && (c.ByActivity || c.Select.OfWork()) {
		return fmt.Errorf("%s: a %s trace does not tell for whom threads worked; --activity, --request and --by take the .nettrace that it was made from", in.Name, in.Kind)
	}
	return nil
}

// checkTracks refuses names that would draw nothing, and tracks that the format has no
// place for. An empty format is that of the input, which is not known yet.
func checkTracks(format string, tracks, with []string) error {
	return (&Config{Tracks: tracks, With: with}).checkTracks(format)
}

func (c *Config) checkTracks(format string) error {
	for _, t := range append(slices.Clone(c.Tracks), c.With...) {
		if !slices.Contains(TrackNames, t) && t != Counted {
			return fmt.Errorf("there is no track %q; tracks are %s%s", t, strings.Join(TrackNames, ", "), text.DidYouMean(t, TrackNames))
		}
	}
	if d := c.drawn(); len(d) > 0 && format != "" && !tracefix.FormatNamed(format).Tracks {
		return fmt.Errorf("%s output has no place for the track %s; use --format %s", format, d[0], formatsWith(func(o *tracefix.Format) bool { return o.Tracks }))
	}
	if d := c.drawn(); len(d) > 0 && format != "" && !c.time() && tracefix.FormatNamed(format).OnTimeAxis {
		return fmt.Errorf("%s output draws --weight %s along its time axis, where the track %s has no place; leave one of them out", format, c.Weights[0], d[0])
	}
	return nil
}

// drawn are the tracks that were asked for beside the sampled stacks.
func (c *Config) drawn() []string {
	return slices.DeleteFunc(append(slices.Clone(c.Tracks), c.With...), func(t string) bool { return t == "cpu" })
}

// formatsWith lists the formats for which has holds.
func formatsWith(has func(*tracefix.Format) bool) string {
	var names []string
	for _, f := range tracefix.Formats() {
		if has(&f) {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, " or ")
}

// tracksOf are the tracks to load and write: those asked for, else all but single
// events where the format has tracks.
func (c *Config) tracksOf(row *tracefix.Format) []string {
	if !row.Tracks || row.OnTimeAxis && !c.time() {
		return []string{"cpu"}
	}
	t := slices.Clone(c.Tracks)
	if t == nil {
		t = []string{"cpu", "activities", "gc", "exceptions", "contention", "faults"}
	}
	for _, w := range c.With {
		if !slices.Contains(t, w) {
			t = append(t, w)
		}
	}
	return t
}
