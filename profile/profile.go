// Package profile is the neutral model that inputs fill, passes rewrite and outputs
// write: a Profile of threads with their sampled stacks, and tracks of other things
// in time. It knows no file format.
//
// Time is int64 nanoseconds since the start of the trace. Stacks are root first.
// A Profile holds ids and not events: a sample costs a few bytes, a stack 20.
package profile

import (
	"cmp"
	"iter"
	"strconv"
	"time"
)

// Meta describes a trace and its recording.
type Meta struct {
	Source      string        // name of the input, for titles
	Format      string        // "nettrace 4", "chromium", ...
	Start       time.Time     // wall clock of time 0; zero if unknown
	End         int64         // ns: time of the last thing in the trace
	From, To    int64         // ns: the stretch of time that Select left; To 0: up to End
	PointerSize int           // bytes; 0 if unknown
	Interval    time.Duration // between two samples of a thread; 0 if unknown
	DepthLimit  int           // frames at which stacks are cut; 0: no such limit
	// Sums is set where a sample is the sum of what a recorder saw of its stack, and how often is unknown.
	Sums bool
	// Repaired is set where the file says that it was repaired, or stacks go beyond the
	// limit and the deepest are whole: a repair put frames back, and what is cut still is
	// what it could not know.
	Repaired bool
	Earlier  Earlier // what the file says of that repair

	// Untyped is set where the recorder called nearly all samples external: see TypeTally. A Timing
	// then gives samples the types that their stacks tell; they themselves have the ones that were
	// recorded.
	Untyped bool
	// Untold is set where a file does not tell of samples whether they were on a CPU or waited; those
	// count as on a CPU.
	Untold bool

	// What was met while reading.
	Events  int64    // events read
	Lost    int64    // events that the recorder could not keep
	Damages int      // places where the file breaks its format
	Damage  []Damage // the first hundred of them
	// Version is that of a nettrace, 0 of other formats. 6 is dotnet-trace collect-linux.
	Version int
	// WithoutIDs are the event sources whose activities were recorded without ids, so
	// that a track cannot show them.
	WithoutIDs []string
	// NoSpans are what of a Chromium trace is no span, and not in a profile: "1,627 counter values".
	NoSpans []string
	// Notes say, for people, what to know about the samples, and what to do next.
	Notes []string
}

// Span returns when what a profile holds begins and ends, ns: the whole trace, or what Select left of it.
func (m *Meta) Span() (from, to int64) {
	to = max(0, m.End)
	if m.To != 0 {
		to = min(to, max(0, m.To))
	}
	return min(max(0, m.From), to), to
}

// A Damage is a place where a file breaks its format.
type Damage struct {
	Offset int64  // bytes from the start of the unpacked content
	Where  string // the part of the file
	What   string // what is wrong
	Time   int64  // ns: of the latest event that was read before it; -1: not known
}

// A Process is one process of the trace.
type Process struct {
	PID         int64
	Name        string // without directory and extension; empty if unknown
	CommandLine string
}

var noProcess Process

// Title is what a viewer calls p.
func (p *Process) Title() string {
	if p.Name != "" {
		return p.Name
	}
	if p == &noProcess {
		return "Trace"
	}
	return "Process " + strconv.FormatInt(p.PID, 10)
}

// A Thread is one thread with its samples, in time order.
type Thread struct {
	Process *Process
	TID     int64
	Name    string // empty if unknown
	Samples Samples
	// Repairs are what a repair did, one for each cut sample; none before a repair.
	Repairs Repairs
	// Values are what samples of other events weigh, in the order of the samples.
	Values Values
	// Walks are how long the recorder took for the stacks of the samples, as far as that was asked for and is
	// known; none behind a repair, which is who asks.
	Walks Walks
	// Breaks are times (ns, ascending) at which what was true before says nothing
	// about what comes after: events were lost, the thread id was reused.
	Breaks []int64
	// Locked are when events tell that the thread waited for a lock, in order and without overlap; only where
	// Meta.Untyped is set. Monitor.Enter was no method on the stack before .NET 10.
	Locked []Interval
	// Tasks are what events of the task library told, in order; none where the stacks of
	// events were not asked for.
	Tasks TaskMarks
	// First and Last are the times of the first and the last event of the thread
	// of any kind, ns.
	First, Last int64
	// Work says for whom the thread worked, in order of time; see ReadOptions.Work of the
	// root package. What no stretch covers is not known.
	Work Works
}

// An Interval is a time, ns, its end not included.
type Interval struct{ From, To int64 }

// Owner is the process of t, never nil: one without a name owns what has none.
func (t *Thread) Owner() *Process {
	if t == nil || t.Process == nil {
		return &noProcess
	}
	return t.Process
}

// Title is what a viewer calls t.
func (t *Thread) Title() string {
	if t.Name != "" {
		return t.Name
	}
	return "Thread " + strconv.FormatInt(t.TID, 10)
}

// A Loss is a stretch of time in which events were lost.
type Loss struct {
	From, To int64 // ns; the loss lies somewhere between
	Thread   *Thread
	Events   int64 // how many; 0 if unknown
}

// A Profile is a trace as the passes see it. One that is made by hand needs a Table; all else may be zero.
type Profile struct {
	Meta      Meta
	Table     *Table // never nil: NewTable
	Processes []*Process
	Threads   []*Thread // in order of their first event
	Hidden    []*Thread // not wanted; when they were sampled tells how the sampler ticked
	Tracks    []*Track
	// Skipped are the times between samples that a reader left out, since they are not
	// wanted: they tell how the sampler ticked. nil: none were.
	Skipped *Gaps
	Losses  []Loss
	// Activities are those that Thread.Work names.
	Activities Activities
	// Weights are those that Values count by, and Names what they count.
	Weights []Weight
	Names   []string
}

// PutAside is for who has appended all samples: those that stayed in memory go to the Spool too,
// where it has most of them.
func (p *Profile) PutAside() {
	for _, t := range p.Threads {
		if t.Samples.spool.Much() {
			t.Samples.putAllAside()
		}
	}
}

// Err returns the error of samples that a Spool could not read again, or of the first track whose slices
// have not all been there. It is to be asked after they were used.
func (p *Profile) Err() error {
	for _, t := range p.Threads {
		if err := cmp.Or(t.Samples.spool.Err(), t.Work.Spool.Err()); err != nil {
			return err
		}
	}
	if err := p.Activities.Spool.Err(); err != nil {
		return err
	}
	for _, t := range p.Tracks {
		if t.Err != nil {
			if err := t.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A Track is a line of things in time that is drawn apart from the sampled stacks.
type Track struct {
	Name    string
	Process *Process // owner; nil: the trace
	Thread  *Thread  // set if everything on it happened on this thread
	Group   string   // tracks of one group are drawn together: "http", "gc", ...
	// Nested says that the slices nest, like calls. Slices of other tracks may
	// overlap and must be written as async events.
	Nested bool
	// Slices yields the track's slices in order of start, the outer one first; nil: there are none.
	// It can be called more than once. A slice and its list of Args are valid until the next one;
	// what they hold does not change.
	Slices iter.Seq[*Slice]
	// Err, where it is not nil, tells what kept Slices from yielding all of them so far.
	Err func() error
}

// A Slice is something that takes time, or with Dur 0 and Instant an instant.
type Slice struct {
	Start, Dur int64 // ns
	Instant    bool
	Open       bool // had not ended when the trace did, or had begun before it
	Name       string
	Category   string
	ID         uint64 // of an async operation: slices with one ID belong together; 0: none
	// FlowOut and FlowIn tie a slice to those it caused; 0: none.
	FlowOut, FlowIn uint64
	// Ties is how many slices have FlowOut as their FlowIn; 0: one, or that is not known.
	Ties   int
	Args   []Arg
	Thread *Thread // that it happened on, in a track of many threads' single events
}

// An Arg is one detail of a slice. Value is a string, bool, int64, uint64, float64,
// or json.RawMessage that is known to be valid JSON.
type Arg struct {
	Key   string
	Value any
}
