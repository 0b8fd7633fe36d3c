package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/internal/info"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// TimeFlags say which stretch of the trace is wanted.
type TimeFlags struct {
	From time.Duration `placeholder:"TIME" help:"Start of the time range, counted from the start of the trace, such as 1.5s."`
	To   EndTime       `placeholder:"TIME" help:"End of the time range, counted likewise."`
}

// An EndTime is a time.Duration from the start of the trace to an end. 0 is none, and cannot be
// asked for: what a script worked out to be 0 would keep all.
type EndTime time.Duration

// Decode reads the flag.
func (t *EndTime) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("expected duration but got %q: %w", text, err) // as kong says it
	case d == 0:
		return fmt.Errorf("%s: nothing is before the start of the trace", text)
	}
	*t = EndTime(d)
	return nil
}

// overlap reports whether something that began and ended then is wanted, ns.
func (f TimeFlags) overlap(from, to int64) bool {
	return to >= int64(f.From) && (f.To == 0 || from <= int64(f.To))
}

// Check refuses times that make no sense.
func (f TimeFlags) Check() error {
	switch {
	case f.From < 0 || f.To < 0:
		return errors.New("--from and --to must not be negative")
	case f.To != 0 && time.Duration(f.To) <= f.From:
		return fmt.Errorf("--to %v: is not after --from %v", time.Duration(f.To), f.From)
	}
	return nil
}

// Filters have the same names, wildcards and units in all commands that can have them.

// A ProcessFlag says which processes are wanted.
type ProcessFlag struct {
	Process []string `placeholder:"PID|NAME" help:"Keep only these processes; * and ? are wildcards in names."`
}

// keeps returns what the flag asks of a process id.
func (f ProcessFlag) keeps(ctx context.Context, c *Call) func(pid int) bool {
	keeps := WhoFlags{ProcessFlag: f}.keeps(ctx, c)
	return func(pid int) bool { return keeps(pid, 0) }
}

// WhoFlags say whose part of the trace is wanted.
type WhoFlags struct {
	ProcessFlag
	Thread []string `placeholder:"TID|NAME" help:"Keep only these threads, of any process; * and ? are wildcards in names."`
}

// keeps returns what the flags ask of a process and a thread. Names are those that info tells: a
// reading of its own, for who asks by name.
func (f WhoFlags) keeps(ctx context.Context, c *Call) func(pid int, tid int64) bool {
	type thread struct {
		pid int
		tid int64
	}
	var processes map[int]string
	threads := map[thread]string{}
	if slices.ContainsFunc(slices.Concat(f.Process, f.Thread), func(s string) bool { _, err := strconv.ParseInt(s, 0, 64); return err != nil }) {
		facts, _ := info.Nettrace(ctx, c.In, &info.Options{Light: true})
		processes = facts.ProcessNames()
		if facts != nil {
			for _, t := range facts.Threads {
				threads[thread{t.PID, int64(t.TID)}] = t.Name
			}
		}
	}
	return func(pid int, tid int64) bool {
		return text.List(f.Process).MatchID(int64(pid), processes[pid]) &&
			(len(f.Thread) == 0 || text.List(f.Thread).MatchID(tid, threads[thread{pid, tid}]))
	}
}

// SampleFlags say which samples are wanted.
type SampleFlags struct {
	WhoFlags
	TimeFlags
	Frame   string `placeholder:"PATTERN" help:"Keep only samples with a frame of that name; * and ? are wildcards."`
	CPUOnly bool   `name:"cpu-only" help:"Keep only samples that were on a CPU."`

	Activity []string `placeholder:"NAME|PATH" help:"Keep only work for these activities and those inside them: [Provider/]Name, a path such as //1/2, or a GUID; * and ? are wildcards. Processes may have the same paths and GUIDs: --process keeps one."`
	Request  []string `placeholder:"ID|URL" help:"Keep only work for these HTTP requests: the id that http shows, a URL or its path; * and ? are wildcards."`
	By       string   `enum:",activity" default:"" placeholder:"activity" help:"Group stacks by the activity that threads worked for."`

	// Passes are the flags of the passes that have some of their own.
	Passes kong.Plugins `embed:""`

	Symbols []string `placeholder:"DIR" help:"Directories with ELF or debug files (names of native functions), and portable PDBs or DLLs (source lines)."`

	Weight []string `placeholder:"WEIGHT" help:"What stacks are weighed by: cpu or wall time, alloc (bytes), exceptions, contention or wait (time), EVENT (its count), EVENT=FIELD (the sum of a field), or a sample type of a pprof."`
}

// newSampleFlags are those of a command line that is not read yet.
func newSampleFlags() SampleFlags { return SampleFlags{Passes: passFlags()} }

func (f SampleFlags) check() error {
	errs := []error{f.TimeFlags.Check(), checkWeights(f.Weight), checkSymbols(f.Symbols)}
	for _, own := range f.Passes {
		errs = append(errs, own.(PassFlags).Check())
	}
	return errors.Join(errs...)
}

func (f SampleFlags) into(c *Config) {
	c.Select = profile.Selection{
		Processes: f.Process, Threads: f.Thread, From: int64(f.From), To: int64(f.To), Frame: f.Frame, CPUOnly: f.CPUOnly,
		Activities: f.Activity, Requests: f.Request,
	}
	c.ByActivity, c.Symbols, c.passes = f.By == "activity", f.Symbols, byPass(f.Passes)
	if len(f.Weight) > 0 { // an empty --weight is none, as an empty filter is
		c.Weights = f.Weight
	}
}

// checkSymbols refuses what is not a directory: nothing would be found there, without a word.
func checkSymbols(dirs []string) error {
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("--symbols %s: %w", dir, input.Plain(err))
		} else if !info.IsDir() {
			return fmt.Errorf("--symbols %s: is not a directory; name the one that the file is in", dir)
		}
	}
	return nil
}

// DepthFlags tell what the recorder did.
type DepthFlags struct {
	MaxDepth int `default:"100" help:"Number of frames at which the recorder cut stacks."`
}

func (f DepthFlags) check() error {
	if f.MaxDepth < 2 {
		return fmt.Errorf("--max-depth %d: must be at least 2", f.MaxDepth)
	}
	return nil
}

// RepairFlags shape the repair.
type RepairFlags struct {
	DepthFlags
	MinConfidence float64 `default:"0.9" help:"Lowest confidence (0 to 1) of restored frames; less certain ones become one frame [frames lost]."`
	Plain         bool    `help:"Write no marks on inserted events, and no list of repairs. nettrace, ndjson and html keep what they tell of repairs."`
}

func (f RepairFlags) check() error {
	if err := f.DepthFlags.check(); err != nil {
		return err
	}
	if !(f.MinConfidence >= 0 && f.MinConfidence <= 1) { // also NaN
		return fmt.Errorf("--min-confidence %v: must be between 0 and 1", f.MinConfidence)
	}
	return nil
}

func (f RepairFlags) config() Config {
	c := Config{Repair: true, MaxDepth: f.MaxDepth, MinConfidence: f.MinConfidence, Plain: f.Plain}
	if c.MinConfidence == 0 {
		c.MinConfidence = -1 // every answer; 0 is stackfix's default
	}
	return c
}

// TrackFlags say what is drawn beside the samples.
type TrackFlags struct {
	With   []string `placeholder:"TRACK" help:"Add tracks to those that are drawn by default: http, activities."`
	Tracks []string `placeholder:"TRACK" help:"Draw these tracks (chromium, perfetto, firefox and html only): ${tracks}."`
}

func (f TrackFlags) into(c *Config) {
	c.With, c.asked = f.With, f.Tracks
	if len(f.Tracks) > 0 { // an empty --tracks is none, as an empty filter is
		c.Tracks = f.Tracks
	}
}

func (f TrackFlags) check(format string) error {
	return checkTracks(format, f.Tracks, f.With)
}

// A LimitFlag says how many rows are wanted.
type LimitFlag struct {
	Limit int `short:"n" placeholder:"N" help:"Print only the first N; 0 prints all."`
}

func (f LimitFlag) check() error {
	if f.Limit < 0 {
		return fmt.Errorf("--limit %d: must not be negative", f.Limit)
	}
	return nil
}

// limitOr is the limit that was asked for, else another.
func limitOr(limit *int, other int) int {
	if limit == nil {
		return other
	}
	return *limit
}
