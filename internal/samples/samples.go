// Package samples reads files that hold sampled stacks and no events: pprof profiles, folded
// stacks, tracefix's own ndjson of samples, and the text of `perf script`. There is one file of
// this package for each. All of them fill a profile.Profile, so that repair and every output
// serve these files too.
//
// Folded stacks and pprof hold sums and no times: their samples stand one after the other, each
// as long as it weighs.
package samples

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

// Options of Read. Warn must be set.
type Options struct {
	// Source is the name of the input, for titles.
	Source string
	// MaxDepth is the number of frames at which the recorder cut stacks. Zero means what the
	// format is known for.
	MaxDepth int
	// Weights are what the stacks of a file are read for that holds several sums of each, by the names
	// that it has for them; profile.TimeWeight is time. nil is what the file shows by default.
	Weights []string
	// AllWeights reads all that a pprof or ndjson holds where Weights is nil, what it shows by default first.
	AllWeights bool
	// Warn is told of each place that cannot be read; what is whole is read.
	Warn func(*FormatError)
}

// A FormatError is a place where a file breaks its format.
type FormatError struct {
	Offset int64  // bytes from the start of the unpacked content
	Where  string // the part of the file
	Err    error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.Where, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// A WeightError reports that a file does not hold what Options.Weights asks for.
type WeightError struct{ text string }

func (e *WeightError) Error() string { return e.text }

func weightError(format string, args ...any) error {
	return &WeightError{fmt.Sprintf(format, args...)}
}

// A format is a kind of file that holds sampled stacks.
type format struct {
	input.Format
	read func(context.Context, io.Reader, *builder) error
	sums bool // and no times
	work bool // and for whom threads worked
}

// formats is the table of these files: a new one is a file of this package and a row here.
var formats = []format{
	{Format: input.Format{Name: "pprof", Called: "pprof", Own: "pprof", Is: isPprof}, read: readPprof, sums: true},
	{Format: input.Format{Name: "folded", Called: "folded stacks", Own: "folded", Is: isFolded}, read: readFolded, sums: true},
	{Format: input.Format{Name: "ndjson", Called: "ndjson of samples", Own: "ndjson", Is: isSamples}, read: readNDJSON, work: true},
	{Format: input.Format{Name: "perf script", Called: "the text of perf script", Own: "chromium", Is: isPerfScript}, read: readPerf},
}

var readers = map[input.Kind]format{}

func init() {
	for _, f := range formats {
		add(f)
	}
}

func add(f format) { readers[input.Register(f.Format)] = f }

// Reads reports whether Read reads files of this kind.
func Reads(k input.Kind) bool { return readers[k].read != nil }

// Sums reports whether files of this kind hold sums and no times.
func Sums(k input.Kind) bool { return readers[k].sums }

// TellsWork reports whether files of this kind tell for which activities threads worked.
func TellsWork(k input.Kind) bool { return readers[k].work }

// Read reads a file of kind k, for which Reads is true. Damage is told to o.Warn; an error means
// that nothing could be read, or that ctx has ended.
func Read(ctx context.Context, k input.Kind, r io.Reader, o *Options) (*profile.Profile, error) {
	b := &builder{opts: o, p: &profile.Profile{Table: profile.NewTable()}, processes: map[program]*profile.Process{}, threads: map[threadKey]*thread{}, frames: map[frameKey]profile.FrameID{}, works: map[work]*int32{}}
	b.p.Meta.Source, b.p.Meta.Format = o.Source, k.String()
	b.p.Meta.Sums = readers[k].sums
	if err := readers[k].read(ctx, r, b); err != nil {
		return nil, err
	}
	b.finish()
	return b.p, nil
}

// A builder makes a profile of samples that come in any order.
type builder struct {
	opts      *Options
	p         *profile.Profile
	processes map[program]*profile.Process
	threads   map[threadKey]*thread
	order     []*thread
	frames    map[frameKey]profile.FrameID
	works     map[work]*int32
	stack     []profile.FrameID // scratch
}

// A program is what a process ran, which may begin another in its place; empty where the file does not tell.
type program struct {
	pid  int64
	name string
}

type threadKey struct {
	program
	tid  int64
	name string // of threads that the file tells apart by it alone
}

// A frameKey is one identity of a frame.
type frameKey struct {
	method profile.MethodID
	addr   uint64
	line   int
}

// A thread gathers the samples of a thread.
type thread struct {
	*profile.Thread
	rows   []row
	values []profile.Value // by the index of their rows, which are in order of time
	end    int64           // of the last sample, where they stand one after the other
}

type row struct {
	profile.Sample
	repair *profile.Repair
	work   *int32 // index in Profile.Activities, -1: for none; nil: not known
}

// maxTime bounds times, ns: 36 years, far from where sums overflow.
const maxTime = 1 << 60

func (b *builder) process(k program) *profile.Process {
	p := b.processes[k]
	if p == nil {
		p = &profile.Process{PID: k.pid, Name: k.name}
		b.processes[k] = p
	}
	return p
}

func (b *builder) thread(pid, tid int64) *thread { return b.threadOf(program{pid: pid}, tid) }

func (b *builder) threadOf(who program, tid int64) *thread { return b.threadNamed(who, tid, "") }

func (b *builder) threadNamed(who program, tid int64, name string) *thread {
	k := threadKey{who, tid, name}
	t := b.threads[k]
	if t == nil {
		t = &thread{Thread: &profile.Thread{Process: b.process(who), TID: tid}}
		b.threads[k] = t
		b.order = append(b.order, t)
	}
	return t
}

// frame returns the frame of a method at an address; 0 where addresses are not known.
func (b *builder) frame(m profile.Method, addr uint64) profile.FrameID {
	return b.frameAt(m, addr, profile.Place{})
}

// frameAt returns the frame of a method at an address and a line of its file.
func (b *builder) frameAt(m profile.Method, addr uint64, at profile.Place) profile.FrameID {
	k := frameKey{b.p.Table.AddMethod(m), addr, at.Line}
	f, ok := b.frames[k]
	if !ok {
		f = b.p.Table.AddFrame(profile.Frame{Method: k.method, Addr: addr})
		if at != (profile.Place{}) {
			b.p.Table.SetPlace(f, at)
		}
		b.frames[k] = f
	}
	return f
}

// push returns the stack of frames, root first.
func (b *builder) push(frames []profile.FrameID) (s profile.StackID) {
	for _, f := range frames {
		s = b.p.Table.Push(s, f)
	}
	return s
}

// weigh appends a sample without a time behind the others of its thread, as n samples of about the
// same length. It reports whether there was room for it.
func (t *thread) weigh(ns, n int64, s profile.Sample) bool {
	if ns > maxTime-t.end {
		return false
	}
	n = max(1, min(n, ns))
	for i := range n {
		s.Time, s.Dur = t.end, ns/n
		if i < ns%n {
			s.Dur++
		}
		t.end += s.Dur
		t.rows = append(t.rows, row{Sample: s})
	}
	return true
}

// weighs appends a sample that takes no time and has values.
func (t *thread) weighs(stack profile.StackID, values []profile.Value) {
	for _, v := range values {
		v.Index = int32(len(t.rows))
		t.values = append(t.values, v)
	}
	t.rows = append(t.rows, row{Sample: profile.Sample{Time: t.end, Stack: stack, Type: profile.SampleEvent}})
}

// finish puts the samples into the profile.
func (b *builder) finish() {
	sorted, seen := 0, map[*profile.Process]bool{}
	ticks := false // there are samples of CPUs of which is not told for how long they speak
	for _, t := range b.order {
		if len(t.rows) == 0 { // named, and never seen
			continue
		}
		if !slices.IsSortedFunc(t.rows, byTime) {
			sorted++
			t.sort()
		}
		t.First, t.Last = t.rows[0].Time, t.rows[len(t.rows)-1].Time
		worked := int64(math.MinInt64)
		for i := range t.rows {
			r := &t.rows[i]
			t.Samples.Append(r.Sample)
			ticks = ticks || r.Type == profile.SampleCPU && r.Dur == 0
			b.p.Meta.Events++
			b.p.Meta.End = max(b.p.Meta.End, r.Time+r.Dur)
			if r.repair != nil {
				r.repair.Index = i
				t.Repairs.Append(*r.repair)
			}
			if r.work != nil && r.Time > worked {
				t.Work.Add(profile.Work{From: r.Time - 1, To: r.Time, Activity: *r.work})
				worked = r.Time
			}
		}
		for _, v := range t.values {
			t.Values.Append(v)
		}
		t.Values.Done()
		b.p.Threads = append(b.p.Threads, t.Thread)
		if !seen[t.Process] {
			seen[t.Process] = true
			b.p.Processes = append(b.p.Processes, t.Process)
		}
		t.rows, t.values = nil, nil
	}
	if ticks && b.p.Meta.Interval == 0 {
		b.note("how far apart samples of a CPU were taken is not told: each counts for %.3g ms, an estimate by how far apart they are", float64(b.p.Timing().Period)/1e6)
	}
	if sorted > 0 {
		b.note("the samples of %d of %d threads did not stand in order of time; they were sorted", sorted, len(b.order))
	}
}

// sort puts the rows in order of time. Values stay with theirs.
func (t *thread) sort() {
	order := make([]int32, len(t.rows)) // of rows, before
	for i := range order {
		order[i] = int32(i)
	}
	sort.SliceStable(order, func(i, k int) bool { return byTime(t.rows[order[i]], t.rows[order[k]]) < 0 })
	rows, place := make([]row, len(order)), make([]int32, len(order))
	for i, was := range order {
		rows[i], place[was] = t.rows[was], int32(i)
	}
	t.rows = rows
	for i := range t.values {
		t.values[i].Index = place[t.values[i].Index]
	}
	sort.SliceStable(t.values, func(i, k int) bool { return t.values[i].Index < t.values[k].Index })
}

func byTime(a, b row) int { return cmp.Compare(a.Time, b.Time) }

func (b *builder) note(format string, args ...any) {
	b.p.Meta.Notes = append(b.p.Meta.Notes, fmt.Sprintf(format, args...))
}

func (b *builder) warn(offset int64, format string, args ...any) {
	b.opts.Warn(&FormatError{Offset: offset, Where: b.p.Meta.Format, Err: fmt.Errorf(format, args...)})
}

// sums tells what files without times cannot say; unit is empty where no time is made of them.
func (b *builder) sums(unit string) {
	if unit != "" {
		b.note("%s holds sums and no times: the samples stand one after the other, %s", b.p.Meta.Format, unit)
	}
	limit := cmp.Or(b.opts.MaxDepth, eventPipeLimit)
	at := 0
	for _, t := range b.order {
		for i := range t.rows {
			if b.p.Table.Depth(t.rows[i].Stack) == limit {
				at++
			}
		}
	}
	if at > 0 {
		b.note("Stacks that are %d frames deep, and may have been cut there: %s; sums do not tell enough to repair them: repair the recording that they were made from", limit, report.Count(at))
	}
}

// eventPipeLimit is the number of frames at which EventPipe cuts stacks.
const eventPipeLimit = 100

// methodOf takes a full name apart as dotnet-trace puts it together: Module!Name. Its kind is what
// the name tells.
func methodOf(full string) profile.Method {
	switch full {
	case profile.Bridge, profile.CallerUnknown, profile.Started:
		return profile.Method{Name: full, Kind: profile.Synthetic}
	}
	m := profile.Method{Name: full}
	if i := strings.IndexByte(full, '!'); i > 0 && !strings.ContainsAny(full[:i], "( ") {
		m = profile.Method{Module: full[:i], Name: full[i+1:]}
	}
	m.Kind = profile.KindOf(m)
	return m
}
