// Package info tells what is in a trace: whether it can be used and for what, what to
// record next time, and the facts behind that.
//
// Of reads a file of any kind into Facts; there is one file of this package for each
// kind of input. WriteText and WriteJSON print them.
package info

import (
	"context"
	"fmt"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/samples"
	"github.com/tracefix/tracefix/profile"
)

// Options of Of. The zero value works.
type Options struct {
	// Light leaves out what needs the names of all stacks: Stacks.Cut, Stacks.Frames
	// and the verdicts.
	Light bool
}

// Facts are what is known of one file. What a file does not tell is absent.
type Facts struct {
	File    string   `json:"file"`
	Format  string   `json:"format"`            // nettrace, netperf, chromium, speedscope, pprof, folded, ndjson, perf script
	Version string   `json:"version,omitempty"` // of the format: "4", "6.0"
	Bytes   int64    `json:"bytes"`             // as stored
	Content int64    `json:"content_bytes"`     // unpacked
	Layers  []string `json:"layers,omitempty"`  // compression around it

	// Overall sums the verdicts up. Its topic is empty.
	Overall Verdict `json:"overall"`
	// Verdicts say what the trace is good for: what is wrong first, the worst at the top, then
	// what is good, then what was not recorded.
	Verdicts []Verdict `json:"verdicts"`

	Start      *time.Time `json:"start,omitempty"` // wall clock of time 0, UTC
	DurationMs float64    `json:"duration_ms"`     // to the last event that is no rundown
	RundownMs  float64    `json:"rundown_ms,omitempty"`
	Clock      *Clock     `json:"clock,omitempty"`

	PointerSize        int        `json:"pointer_size,omitempty"`
	Processors         int        `json:"processors,omitempty"`
	SamplingIntervalMs float64    `json:"sampling_interval_ms,omitempty"`
	Properties         []Property `json:"properties,omitempty"` // v6: pairs of the Trace block

	Processes []*Process `json:"processes,omitempty"`

	Events       int64       `json:"events"`
	EventTypes   int         `json:"event_types,omitempty"`
	PayloadBytes int64       `json:"payload_bytes,omitempty"`
	Providers    []*Provider `json:"providers,omitempty"` // by number of events
	Threads      []*Thread   `json:"threads,omitempty"`   // by number of samples, then events
	Lost         *Lost       `json:"lost,omitempty"`
	Samples      *Samples    `json:"samples,omitempty"`
	Stacks       *Stacks     `json:"stacks,omitempty"`
	Forecast     *Forecast   `json:"repair_forecast,omitempty"` // where stacks are cut
	Rundown      *Rundown    `json:"rundown,omitempty"`
	HTTP         *HTTP       `json:"http,omitempty"`
	Blocks       []Block     `json:"blocks,omitempty"`
	Spans        *Spans      `json:"spans,omitempty"` // of Chromium traces

	// Damage are the first places at which the file breaks its format, of Damages.
	Damage    []report.Damage `json:"damage,omitempty"`
	Damages   int             `json:"damages"`
	LostBytes int64           `json:"lost_bytes,omitempty"` // of the file, skipped because of damage
	// Salvage is told of a clean copy of a damaged recording: what its input had lost.
	Salvage *Salvage `json:"salvage,omitempty"`

	spikes int // runs of cut samples, of Chromium and speedscope files
}

// A Salvage tells what the input of a clean copy had lost by damage.
type Salvage struct {
	Places    int64 `json:"places"`
	LostBytes int64 `json:"lost_bytes"`
	LeftOut   int64 `json:"left_out"` // events that were not whole
	Cut       bool  `json:"cut"`      // the recording had no end
}

// A Verdict is the answer to one question that people have about a trace.
type Verdict struct {
	Topic string `json:"topic"`
	State string `json:"state"` // good, partly, bad, none
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // the command that helps

	// Problem is what is wrong, in a few words, and Share how much of the trace that is, %.
	Problem string  `json:"problem,omitempty"`
	Share   float64 `json:"share,omitempty"`

	of string // what can be used where nothing is wrong
}

// States of a Verdict.
const (
	Good   = "good"
	Partly = "partly" // can be used with care
	Bad    = "bad"    // of more than half of it nothing can be said
	None   = "none"   // was not recorded
)

// A Clock tells how times are counted.
type Clock struct {
	Frequency int64 `json:"frequency"` // ticks per second
	Sync      int64 `json:"sync"`      // ticks at time 0
}

// A Property is a pair that the file's head holds.
type Property struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A Process is one process of the trace.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name,omitempty"`
	// Then are the names of the programs that took its id later: began in its place (exec), or when
	// it was gone.
	Then        []string `json:"then,omitempty"`
	CommandLine string   `json:"command_line,omitempty"`
	Runtime     string   `json:"runtime,omitempty"` // version of .NET: "10.0.12"
	// DotNet tells of a recording of a whole machine which processes run .NET, and Directory where
	// most of the assemblies lie that are not the framework's.
	DotNet    bool   `json:"dotnet,omitempty"`
	Directory string `json:"directory,omitempty"`
	OS        string `json:"os,omitempty"`
	Arch      string `json:"arch,omitempty"`
	Events    int64  `json:"events"`
	Samples   int64  `json:"samples"`

	assemblies map[string]map[string]bool // by directory
}

// A Provider is a source of events.
type Provider struct {
	Name         string       `json:"name"`
	Events       int64        `json:"events"`
	PayloadBytes int64        `json:"payload_bytes"`
	Types        []*EventType `json:"types"` // by number of events
}

// An EventType is one kind of event of a provider.
type EventType struct {
	ID           int    `json:"id"`
	Version      int    `json:"version"`
	Name         string `json:"name"`
	Events       int64  `json:"events"`
	PayloadBytes int64  `json:"payload_bytes"`
}

// A Thread is one thread that events are about.
type Thread struct {
	PID     int     `json:"pid"`
	TID     uint64  `json:"tid"`
	Name    string  `json:"name,omitempty"`
	Events  int64   `json:"events"`
	Samples int64   `json:"samples"`
	ID      string  `json:"id,omitempty"`     // PID/TID of Chromium traces that are no numbers
	Waits   int64   `json:"waits,omitempty"`  // stacks where it left a CPU (collect-linux)
	Cut     int64   `json:"cut,omitempty"`    // samples and waits whose stack is cut
	Spikes  int64   `json:"spikes,omitempty"` // runs of them; Chromium traces only
	FirstMs float64 `json:"first_ms"`
	LastMs  float64 `json:"last_ms"`
	// IntervalMs is the sampling interval as it was kept: the median time between samples.
	// Absent where there are too few.
	IntervalMs float64 `json:"sampling_interval_ms,omitempty"`

	interval interval
	look     profile.Look // the newest sample of the runtime's sampler
}

// Lost counts the events that the runtime could not store.
type Lost struct {
	Events  uint64 `json:"events"`
	Gaps    int64  `json:"gaps"`    // in how many places
	Rundown uint64 `json:"rundown"` // of Events, those lost during the rundown: names
	Samples uint64 `json:"samples"` // of Events, those of the sampler
}

// Samples counts looks at stacks.
type Samples struct {
	Count    int64 `json:"count"` // of the CPU profile: the sum of the next four
	Managed  int64 `json:"managed,omitempty"`
	External int64 `json:"external,omitempty"`
	Unknown  int64 `json:"unknown,omitempty"`
	CPU      int64 `json:"cpu,omitempty"`          // collect-linux
	OffCPU   int64 `json:"offcpu,omitempty"`       // waits: stacks where a thread left a CPU
	Other    int64 `json:"other_stacks,omitempty"` // stacks of other events
	// Untyped: the recorder called nearly all of them external, those of threads in managed code too.
	Untyped bool `json:"untyped,omitempty"`
}

// Looks is the number of samples and waits: those that a repair repairs.
func (s *Samples) Looks() int64 { return s.Count + s.OffCPU }

// Stacks tells of the stacks of the samples.
type Stacks struct {
	// Depths counts samples by the number of frames recorded, the index; a mark that unwinding left is none.
	Depths []int64          `json:"depths"`
	Median int              `json:"median"`
	Max    int              `json:"max"`
	Limit  int              `json:"limit,omitempty"` // at which stacks are cut
	Cut    map[string]int64 `json:"cut"`             // samples and waits whose stack is cut: depth, bytes, broken
	// Untold counts samples that were cut in the recording that a file of ours was made from
	// and are not marked in it.
	Untold int64 `json:"cut_untold,omitempty"`
	// Bridged counts samples of which an earlier repair could not know all frames.
	Bridged int64 `json:"bridged,omitempty"`
	// Before is what the file says of an earlier repair; nil if it was not repaired.
	Before *Before `json:"repaired_before,omitempty"`
	Frames int64   `json:"frames"`       // of all samples and waits together
	Named  int64   `json:"named_frames"` // of Frames
}

// Before is what an earlier repair did.
type Before struct {
	Samples  int `json:"samples"` // repaired, bridged ones included
	Bridged  int `json:"bridged"`
	Restored int `json:"restored"` // frames
}

// repairedBefore is what the file of p says of an earlier repair.
func repairedBefore(p *profile.Profile) *Before {
	if e := p.Meta.Earlier; e.Samples > 0 {
		return &Before{e.Samples, e.Bridged, e.Restored}
	}
	return nil
}

// beforeText tells behind the number of cut stacks what an earlier repair did.
func (s *Stacks) beforeText() string {
	b := s.Before
	if b == nil {
		return ""
	}
	n := b.Samples - b.Bridged
	told := fmt.Sprintf("; repaired before: %s stack%s, %s frames restored", report.Count(n), report.Plural(n), report.Count(b.Restored))
	if b.Bridged > 0 && s.Bridged == 0 { // else that is told already
		told += fmt.Sprintf(", %s could not be known", report.Count(b.Bridged))
	}
	return told
}

// CutTotal is the number of cut samples and waits.
func (s *Stacks) CutTotal() (n int64) {
	for _, c := range s.Cut {
		n += c
	}
	return n
}

// Rundown tells whether the names of the methods are in the file.
type Rundown struct {
	Events   int64 `json:"events"`
	Methods  int64 `json:"methods"`  // methods named at the end
	Loaded   int64 `json:"loaded"`   // methods named when they were compiled
	Complete bool  `json:"complete"` // the mark of its end is there
}

// HTTP tells whether requests can be reconstructed.
type HTTP struct {
	Requests  int64    `json:"requests"`            // that the process made, as http tells them
	Served    int64    `json:"served,omitempty"`    // that it served
	Unnamed   int64    `json:"unnamed,omitempty"`   // of Served, those that only a stop without an activity id ended
	Events    int64    `json:"events"`              // of System.Net.Http
	Linked    int64    `json:"linked"`              // of Events, those with an activity id
	Missing   []string `json:"missing,omitempty"`   // providers that would tell more
	Recording string   `json:"recording,omitempty"` // the command that records all
}

// A Block counts the blocks of one kind.
type Block struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Of tells the facts of a file. Damage of the file is in the facts; an error means
// that nothing could be read.
func Of(ctx context.Context, in *input.File, o *Options) (*Facts, error) {
	if o == nil {
		o = &Options{}
	}
	read, ok := map[input.Kind]func(context.Context, *input.File, *Options) (*Facts, error){
		input.Nettrace: Nettrace, input.Netperf: Nettrace, input.Chromium: Chromium, input.Speedscope: Speedscope,
	}[in.Kind]
	if !ok && samples.Reads(in.Kind) {
		read, ok = ofSamples, true
	}
	if !ok {
		return nil, in.NotATrace()
	}
	f, err := read(ctx, in, o)
	if err != nil {
		return nil, err
	}
	f.sumUp()
	return f, nil
}

func newFacts(in *input.File) *Facts {
	return &Facts{File: in.Name, Format: in.Kind.String(), Bytes: in.Stored, Layers: in.Layers}
}

func (f *Facts) damaged(d report.Damage) {
	f.Damages++
	if len(f.Damage) < report.MaxDamages {
		f.Damage = append(f.Damage, d)
	}
}

// ProcessNames are the names of the processes by id.
func (f *Facts) ProcessNames() map[int]string {
	if f == nil {
		return nil
	}
	m := map[int]string{}
	for _, p := range f.Processes {
		m[p.PID] = p.Name
	}
	return m
}
