package tracefix

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/samples"
	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// ReadOptions say what to read. nil and the zero value read the samples.
type ReadOptions struct {
	// Evidence also reads the stacks of other events (exceptions, allocations, page faults),
	// which a repair learns from, as samples of type profile.SampleEvent. Profile.DropEvidence
	// takes them out again.
	Evidence bool
	// SampledOnly reads of Chromium JSON only stacks that a sampler took. Else the spans of
	// other producers become samples, too, one for each stretch of time in which the same
	// spans are open.
	SampledOnly bool
	// MaxDepth is the number of frames at which the recorder cut stacks. 0 and 100 mean 100,
	// or less where the stacks show that.
	MaxDepth int
	// Tracks are groups of tracks to read beside the samples, as profile.Track: "activities", "gc",
	// "exceptions", "contention", "faults", "events", "http" and "counters". Only nettrace has
	// them.
	Tracks []string
	// Weights are what the stacks of other events are read for: "alloc" (bytes), "exceptions",
	// "contention" and "wait" (time), an event's name (how often), or EVENT=FIELD (the sum of a
	// numeric field). Of a pprof they are sample types, and profile.TimeWeight is its time; nil is what it
	// shows by default, which may be a weight. See profile.Weight; only nettrace and pprof have them.
	Weights []string
	// AllWeights reads all sample types of a pprof, or weights of ndjson, where Weights is nil,
	// what it shows by default first.
	AllWeights bool
	// Symbols are directories, in addition to that of the trace, with ELF or debug files, which name native
	// functions of a collect-linux trace, and with portable PDBs or DLLs, which have source lines of managed
	// frames. A file of another build is not used.
	Symbols []string
	// PairByThread pairs the starts and stops of activities by thread where they have no
	// ids: right for synchronous code, a guess for async.
	PairByThread bool
	// Work also finds for which activity, and so for which HTTP request, each thread worked at each time:
	// Thread.Work and Profile.Activities. It needs a trace with activity ids.
	Work bool
	// From and To are what Select will keep, since the start of the trace; To 0 is the end.
	// Without Evidence, samples of a nettrace that lie outside are not kept, but for what tells
	// where those inside end; nor are requests.
	From, To time.Duration
	// Also are consumers that get the events of a nettrace in the same pass. If it fails, Stop is
	// called of those that have such a method. With other formats they are an error.
	Also []Consumer
	// Warn is called for each place where the file breaks its format; may be nil.
	Warn func(Damage)
}

// trackGroups are what Tracks can name; the samples are read in any case.
var trackGroups = append([]string{"cpu"}, append(slices.Clone(load.Groups), "http", "counters")...)

// check refuses what would be read as nothing at all.
func (o *ReadOptions) check() error {
	if o.MaxDepth < 0 || o.MaxDepth == 1 {
		return fmt.Errorf("ReadOptions.MaxDepth is %d: must be at least 2, or 0 for 100", o.MaxDepth)
	}
	if o.From < 0 || o.To < 0 || o.To != 0 && o.To < o.From {
		return fmt.Errorf("ReadOptions.From is %v and To %v: must be a time since the start of the trace and a later one, or 0 for its end", o.From, o.To)
	}
	return checkTracks("ReadOptions", o.Tracks, trackGroups)
}

// checkTracks refuses groups of tracks that do not exist.
func checkTracks(what string, tracks, known []string) error {
	for _, t := range tracks {
		if !slices.Contains(known, t) {
			return fmt.Errorf("%s.Tracks has %q: must be of %s", what, t, strings.Join(trackGroups, ", "))
		}
	}
	return nil
}

// A Consumer takes the events of one pass over a nettrace: requests, activities, counters and samples have
// consumers, and one pass serves all of them. A consumer that needs no more events returns nettrace.ErrStop.
type Consumer = nettrace.Consumer

// A Damage is a place where a file breaks its format.
type Damage = profile.Damage

// limit is MaxDepth for readers, which know the default themselves.
func (o *ReadOptions) limit() int {
	if o.MaxDepth == 100 {
		return 0
	}
	return o.MaxDepth
}

// Profile reads the trace into the model. Damage is reported to o.Warn, and an error means that
// nothing could be read. The caller owns the profile.
func (f *File) Profile(ctx context.Context, o *ReadOptions) (*profile.Profile, error) {
	o, damages := o.counting()
	whole := false
	defer stopUnless(&whole, o.Also)
	p, err := f.profile(ctx, o)
	if err != nil {
		return nil, f.named(err)
	}
	whole = true
	f.metAll(&p.Meta, damages)
	for _, t := range p.Tracks {
		if failed := t.Err; failed != nil {
			t.Err = func() error { return f.named(failed()) }
		}
	}
	return p, nil
}

// metAll notes what a reading met.
func (f *File) metAll(m *profile.Meta, t *tally) {
	m.Damages, m.Damage = t.n, t.first
	f.met = Reading{Events: m.Events, Lost: m.Lost, Damages: t.n, Damage: t.first}
}

func (f *File) profile(ctx context.Context, o *ReadOptions) (*profile.Profile, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	switch f.in.Kind {
	case input.Nettrace, input.Netperf:
		return f.nettrace(ctx, o)
	}
	if len(o.Also) > 0 {
		return nil, fmt.Errorf("a %s trace has no events for ReadOptions.Also", f.in.Kind)
	}
	switch f.in.Kind {
	case input.Chromium:
		t, err := f.spans(ctx, f.in.Reader, o, &spans.Options{Weighted: !o.SampledOnly})
		if err != nil {
			return nil, err
		}
		if !o.SampledOnly {
			noteUntold(t)
		}
		return t.Profile, nil
	case input.Speedscope:
		return f.speedscope(ctx, o)
	}
	if samples.Reads(f.in.Kind) {
		return f.samples(ctx, o)
	}
	return nil, f.in.NotATrace()
}

// samples reads a file that holds stacks and no events.
func (f *File) samples(ctx context.Context, o *ReadOptions) (*profile.Profile, error) {
	in, err := f.in.Reader()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return samples.Read(ctx, f.in.Kind, in, &samples.Options{
		Source: f.in.Name, MaxDepth: o.limit(), Weights: o.Weights, AllWeights: o.AllWeights,
		Warn: func(e *samples.FormatError) { o.warn(e.Offset, e.Where, e.Err, -1) },
	})
}

// nettrace reads a nettrace or netperf file, once for all that is wanted.
func (f *File) nettrace(ctx context.Context, o *ReadOptions) (*profile.Profile, error) {
	now := &clock{}
	also := append(slices.Clone(o.Also), now)
	lo := f.loadOptions(o)
	lo.Warn = func(e *nettrace.FormatError) { o.warn(e.Offset, e.Where, e.Err, now.time()) }
	var http *drawnRequests
	if slices.Contains(o.Tracks, "http") {
		http = newDrawnRequests(int64(o.From), int64(o.To))
	}
	var att *attributor
	if o.Work {
		att = newAttributor(lo)
		also = append(also, att.rec)
	}
	stop := func() {}
	if http != nil || att != nil { // both want the same requests
		scan := requestsFor(att, http)
		also, stop = append(also, scan), scan.Stop
		defer stop() // also where a consumer panics
	}
	var counters *drawnCounters
	if slices.Contains(o.Tracks, "counters") {
		counters = newDrawnCounters(o)
		also = append(also, counters)
	}
	p, _, err := load.Profile(ctx, f.in.Reader, lo, also...)
	stop() // and nothing below needs what the reading did
	if err != nil {
		return nil, err
	}
	if att != nil {
		if err := att.finish(p); err != nil {
			return nil, err
		}
	}
	if http != nil {
		p.Tracks = append(p.Tracks, http.tracks(p)...)
	}
	if counters != nil {
		p.Tracks = append(p.Tracks, counters.tracks(p)...)
	}
	return p, nil
}

func (f *File) loadOptions(o *ReadOptions) *load.Options {
	return &load.Options{
		Source: f.in.Name, Symbols: f.symbols(o.Symbols), Evidence: o.Evidence, DepthLimit: o.limit(),
		Tracks: o.Tracks, Weights: slices.DeleteFunc(slices.Clone(o.Weights), func(w string) bool { return w == profile.TimeWeight }), PairByThread: o.PairByThread, From: o.From.Nanoseconds(), To: o.To.Nanoseconds(),
		Warn: func(e *nettrace.FormatError) { o.warn(e.Offset, e.Where, e.Err, -1) },
	}
}

// symbols are the directories given and that of the trace, where it is a file.
func (f *File) symbols(dirs []string) []string {
	if info, err := os.Stat(f.in.Name); err == nil && info.Mode().IsRegular() {
		dirs = append(slices.Clip(dirs), filepath.Dir(f.in.Name))
	}
	return dirs
}

// A tally is what Warn is told: how often, and the first of it.
type tally struct {
	n     int
	first []Damage
}

// counting returns a copy of o, which may be nil, that counts what Warn is told.
func (o *ReadOptions) counting() (*ReadOptions, *tally) {
	own, t := ReadOptions{}, &tally{}
	if o != nil {
		own = *o
	}
	told := own.Warn
	own.Warn = func(d Damage) {
		if t.n++; len(t.first) < report.MaxDamages {
			t.first = append(t.first, d)
		}
		if told != nil {
			told(d)
		}
	}
	return &own, t
}

func (o *ReadOptions) warn(offset int64, where string, err error, time int64) {
	o.Warn(Damage{Offset: offset, Where: where, What: err.Error(), Time: time})
}

// A clock is a Consumer that knows the time of the latest event.
type clock struct {
	r     *nettrace.Reader
	ticks int64
}

func (c *clock) Begin(r *nettrace.Reader) { c.r = r }

func (c *clock) Event(ev *nettrace.Event) error {
	c.ticks = max(c.ticks, ev.Time)
	return nil
}

func (c *clock) End() {}

// time returns that of the latest event, ns; -1 before the first one.
func (c *clock) time() int64 {
	if c.ticks == 0 {
		return -1
	}
	return c.r.Nanos(c.ticks)
}

// spans reads Chromium trace events into samples.
func (f *File) spans(ctx context.Context, open func() (io.ReadCloser, error), o *ReadOptions, so *spans.Options) (*spans.Trace, error) {
	so.Source, so.MaxDepth, so.Salvage = f.in.Name, o.limit(), len(f.in.Layers) > 0
	so.Warn = func(e *chromium.FormatError, at int64) { o.warn(e.Offset, e.Where, e.Err, at) }
	t, err := spans.Read(ctx, open, so)
	if err != nil {
		return nil, err
	}
	m := &t.Profile.Meta
	m.Events = t.Facts.Events()
	for _, k := range t.Facts.NoSpans() {
		what := k.Many
		if k.Count == 1 {
			what = k.One
		}
		m.NoSpans = append(m.NoSpans, report.Count(int(k.Count))+" "+what)
	}
	if n := t.Facts.CutUntold; n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("%s samples were cut by the recorder, and the file does not tell which: repair the recording that it was converted from", report.Count(n)))
	}
	if n := t.Facts.Deepest; n > 0 && o.Evidence && m.Earlier.Samples == 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("stacks of up to %d frames: nothing was cut at %d here, or the trace was repaired before; --max-depth sets another limit", n, t.Facts.Limit))
	}
	if n := t.Facts.Crossing; n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("%s span%s end%s after the one that holds them: stacks have no place for the %.3f ms after it, which is left out; Chromium JSON to Chromium JSON keeps it", report.Count(n), report.Plural(n), map[bool]string{true: "s"}[n == 1], text.Millis(t.Facts.Clipped)))
	}
	if n := t.Facts.Reordered; n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("%s begin or end event%s came after later ones of their thread and were put in order of time", report.Count(n), report.Plural(n)))
	}
	if n := t.Facts.Unmatched(); n > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("%s begin or end event%s without the other: an end is passed over, a begin ends with what holds it, or with the last span of its thread", report.Count(n), report.Plural(n)))
	}
	if n := t.Facts.Endless; n > 0 && so.Weighted {
		m.Notes = append(m.Notes, fmt.Sprintf("complete events without a duration (dur): %s; they had not ended when the recording did, and take no time", report.Count(n)))
	}
	if n := t.Facts.Listed; n > 0 && so.Weighted {
		m.Notes = append(m.Notes, fmt.Sprintf("left out: %s sample%s that the file lists beside its events; stacks are made of events only, and Chromium JSON to Chromium JSON without filters keeps the list", report.Count(int(n)), report.Plural(int(n))))
	}
	return t, nil
}

// noteUntold notes that samples count as on a CPU for want of a word on that.
func noteUntold(t *spans.Trace) {
	if n := t.Facts.Untold; n > 0 {
		m := &t.Profile.Meta
		m.Untold = true
		m.Notes = append(m.Notes, fmt.Sprintf("%s sample%s: the file does not tell what was on a CPU and what waited, and all counts as on a CPU; the recording that it was converted from tells", report.Count(n), report.Plural(n)))
	}
}

// speedscope reads a speedscope file.
func (f *File) speedscope(ctx context.Context, o *ReadOptions) (*profile.Profile, error) {
	var in *spans.SpeedscopeReader
	events := func(open func() (io.ReadCloser, error), warn func(*chromium.FormatError), stackFrame func(*chromium.StackFrame) error) (_ spans.Source, err error) {
		in, err = spans.NewSpeedscopeReader(open, func(e *spans.SpeedscopeError) {
			warn(&chromium.FormatError{Offset: e.Offset, Where: e.Where, Err: e.Err})
		}, stackFrame)
		return in, err
	}
	t, err := f.spans(ctx, f.in.Reader, o, &spans.Options{Weighted: true, Events: events})
	if err != nil {
		return nil, err
	}
	t.Profile.Meta.Format = "speedscope"
	unit := in.Facts().NoTime
	if name := amountsOf(in.Facts(), o.Weights); unit != "" && name != "" {
		weighAmounts(t.Profile, name)
		return t.Profile, nil
	}
	noteUntold(t)
	if unit != "" {
		note := fmt.Sprintf("the file holds amounts and no times (unit %q); one of them counts as a microsecond", unit)
		if unit != "bytes" {
			note += "; --weight samples shows them as they are"
		}
		t.Profile.Meta.Notes = append(t.Profile.Meta.Notes, note)
	}
	return t.Profile, nil
}

// amountsOf is the weight that the profiles of a speedscope file are read as, "" for time. Bytes
// are no time; numbers without a unit are what asked says.
func amountsOf(f *spans.SpeedscopeFacts, asked []string) string {
	for _, p := range f.Profiles {
		if p.Unit != f.NoTime {
			return ""
		}
	}
	switch {
	case f.NoTime == "bytes" && (len(asked) == 0 || slices.Equal(asked, []string{"bytes"})):
		return "bytes"
	case f.NoTime != "bytes" && slices.Equal(asked, []string{"samples"}):
		return "samples"
	}
	return ""
}

// weighAmounts makes what samples weigh of how long they take: a microsecond is one.
func weighAmounts(p *profile.Profile, name string) {
	unit := profile.Count
	if name == "bytes" {
		unit = profile.Bytes
	}
	p.Weights, p.Names = []profile.Weight{{Name: name, Unit: unit, Sums: true}}, []string{""}
	for _, t := range p.Threads {
		old, n := t.Samples, int32(0)
		t.Samples, t.Values, t.Repairs = profile.SamplesIn(old.Spool()), profile.ValuesIn(old.Spool()), t.NewRepairs()
		for _, s := range old.All() {
			if s.Dur > 0 {
				t.Samples.Append(profile.Sample{Time: s.Time, Stack: s.Stack, Cut: s.Cut, Type: profile.SampleEvent})
				t.Values.Append(profile.Value{Index: n, Amount: float64(s.Dur) / 1000})
				n++
			}
		}
		t.Values.Done()
	}
}

// Rewrite copies the trace to w in its own format with repaired stacks. Everything else stays as it
// is, byte for byte. It returns the repaired profile; if repair is nil it only copies. In a
// nettrace profile.Bridge is an address where no code can be. plain omits the marks on inserted
// events. Of o only MaxDepth and Warn are used: a copy holds everything, and all of it is evidence.
//
// It cannot rewrite speedscope files: write their profile instead.
func (f *File) Rewrite(ctx context.Context, w io.Writer, o *ReadOptions, repair *RepairOptions, plain bool) (*profile.Profile, error) {
	o, damages := o.counting()
	if err := o.check(); err != nil {
		return nil, err
	}
	p, err := f.rewrite(ctx, w, o, repair, plain)
	if err != nil {
		return nil, f.named(err)
	}
	f.metAll(&p.Meta, damages)
	return p, nil
}

func (f *File) rewrite(ctx context.Context, w io.Writer, o *ReadOptions, repair *RepairOptions, plain bool) (*profile.Profile, error) {
	fix := func(p *profile.Profile) { _ = RepairContext(ctx, p, repair) } // what follows asks ctx itself
	if repair == nil {
		fix = nil
	}
	switch f.in.Kind {
	case input.Nettrace, input.Netperf:
		p, _, err := load.Rewrite(ctx, f.in.Reader, w, f.loadOptions(o), fix)
		if err == nil {
			err = p.Err()
		}
		return p, err
	case input.Chromium:
		t, err := f.spans(ctx, f.in.Reader, o, &spans.Options{Lean: true, Log: fix != nil && !plain})
		if err != nil {
			return nil, err
		}
		if fix != nil {
			fix(t.Profile)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch m := &t.Profile.Meta; t.Facts.Form {
		case chromium.FormBare:
			m.Notes = append(m.Notes, "the events stood in no array, which viewers refuse; the output is one JSON array")
		case chromium.FormOpen:
			m.Notes = append(m.Notes, "the array of events had no end, which some viewers refuse; it has one in the output")
		}
		return t.Profile, t.Rewrite(ctx, w, plain)
	}
	return nil, fmt.Errorf("%s: %s is not rewritten in place: write its profile", f.in.Name, f.in.Kind)
}

// Keeps reports whether Rewrite can write this format from f.
func (f *File) Keeps(format string) bool {
	return format == "nettrace" && f.events() || format == "chromium" && f.in.Kind == input.Chromium
}
