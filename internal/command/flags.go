package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/profile"
)

// TimeFlags say which stretch of the trace is wanted.
type TimeFlags struct {
	From time.Duration `help:"Keep what is after this time since the start of the trace, such as 1.5s."`
	To   time.Duration `help:"Keep what is before this time."`
}

func (f TimeFlags) check() error {
	switch {
	case f.From < 0 || f.To < 0:
		return errors.New("--from and --to must not be negative")
	case f.To != 0 && f.To <= f.From:
		return fmt.Errorf("--to %v: is not after --from %v", f.To, f.From)
	}
	return nil
}

// WhoFlags say whose part of the trace is wanted.
type WhoFlags struct {
	Process []string `placeholder:"PID|NAME" help:"Keep these processes; * and ? are wild in names."`
	Thread  []string `placeholder:"TID|NAME" help:"Keep these threads, likewise."`
}

// SampleFlags say which samples are wanted.
type SampleFlags struct {
	WhoFlags
	TimeFlags
	Frame   string `placeholder:"PATTERN" help:"Keep samples with a frame of that name; * and ? are wild."`
	CPUOnly bool   `name:"cpu-only" help:"Keep samples that were on a CPU."`

	Activity []string `placeholder:"PATTERN" help:"Keep work for activities of that name, with or without Provider/ before, or of that path (//1/2), and for what is below them; * and ? are wild."`
	Request  []string `placeholder:"ID|URL" help:"Keep work for the HTTP request of that id, as http tells it, or for those whose URL, or its path, fits; * and ? are wild."`
	By       string   `enum:",activity" default:"" placeholder:"activity" help:"activity: put stacks below the activities that threads worked for."`

	// Passes are the flags of the passes that have some of their own.
	Passes kong.Plugins `embed:""`

	Symbols []string `placeholder:"DIR" help:"Directories with ELF files or their debug files: they name native functions of a collect-linux trace. Its own directory is searched, too; a file of another build id is never used."`

	Weight []string `placeholder:"WEIGHT" help:"What stacks are weighed by: cpu or wall (time of the samples), alloc (bytes, by type), exceptions (count, by type), contention (time, by lock), wait (time in wait handles), the name of any event (count) or EVENT=FIELD (a numeric field)."`
}

// newSampleFlags are those of a command line that is not read yet.
func newSampleFlags() SampleFlags { return SampleFlags{Passes: passFlags()} }

func (f SampleFlags) check() error {
	errs := []error{f.TimeFlags.check(), checkWeights(f.Weight)}
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
	c.ByActivity, c.Weights, c.Symbols, c.passes = f.By == "activity", f.Weight, f.Symbols, byPass(f.Passes)
}

// DepthFlags tell what the recorder did.
type DepthFlags struct {
	MaxDepth int `default:"100" help:"Frames at which the recorder cut stacks."`
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
	MinConfidence float64 `default:"0.9" help:"Put [frames lost] where frames are known with less confidence than this (0 to 1)."`
	Plain         bool    `help:"Write no marks on the events that the repair inserts."`
}

func (f RepairFlags) check() error {
	if err := f.DepthFlags.check(); err != nil {
		return err
	}
	if f.MinConfidence < 0 || f.MinConfidence > 1 {
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
	With   []string `placeholder:"TRACK" help:"Add tracks to a Chromium or Perfetto output: http, activities."`
	Tracks []string `placeholder:"TRACK" help:"Tracks of Chromium and Perfetto outputs: ${tracks}."`
}

func (f TrackFlags) into(c *Config) { c.With, c.Tracks = f.With, f.Tracks }

func (f TrackFlags) check(format string) error {
	return checkTracks(format, f.Tracks, f.With)
}

// A LimitFlag says how many rows are wanted.
type LimitFlag struct {
	Limit int `short:"n" placeholder:"N" help:"Print the first N only."`
}

func (f LimitFlag) check() error {
	if f.Limit < 0 {
		return fmt.Errorf("--limit %d: must not be negative", f.Limit)
	}
	return nil
}
