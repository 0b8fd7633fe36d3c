package spans

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
)

// Options of Read. The zero value works.
type Options struct {
	// Source is the name of the input, for titles.
	Source string
	// MaxDepth is the number of frames at which stacks were cut. Zero means what
	// tracefix's own output says, else 100.
	MaxDepth int
	// Warn is told of defects, and of the time in ns of the event read last before them, which
	// counts as those of the profile; -1 if there is none. nil drops them.
	Warn func(e *chromium.FormatError, at int64)
	// Salvage takes an error of the reader for the end of the input, if it is one of
	// what was stored (see input.Broken). It is for compressed files that were cut: what
	// could be unpacked is used.
	Salvage bool
	// Weighted makes samples also of lanes that dotnet-trace did not write: one for
	// each stretch of time in which the same frames are open. They have a Dur.
	Weighted bool
	// Events opens a source of events that is no Chromium trace, instead of the input: one whose
	// threads are in order of time. Such a trace is not rewritten.
	Events func(open func() (io.ReadCloser, error), warn func(*chromium.FormatError), stackFrame func(*chromium.StackFrame) error) (Source, error)
	// Log holds the begins and ends for Rewrite, if they are not too many, and saves it a reading.
	Log bool
	// Lean leaves out what only a view of the samples needs, for Rewrite: they have no
	// Dur, and only those that are cut a Time of their own.
	Lean bool
}

// A Source gives events and what is known of them, as a chromium.Reader does.
type Source interface {
	Read(*chromium.Event) error
	Name(id int32) string
	RawName(id int32) []byte
	Threads() []chromium.Thread
	Keys() []string
	Form() chromium.Form
	BOM() bool
	InputOffset() int64
}

// A Trace is what the first reading of a Chromium trace finds.
type Trace struct {
	Profile *profile.Profile
	Facts   Facts

	opts      Options
	limit     int // frames at which stacks were cut; 0: not by depth
	open      func() (io.ReadCloser, error)
	r         *chromium.Reader // nil of another source
	src       Source
	table     *frameTable
	zones     []zone
	clean     bool         // no defect was found: parts may be copied unread
	size      int64        // bytes of the input
	eventsEnd int64        // offset behind the last event, -1 if there are several arrays
	ends      int          // arrays of events that have one
	behind    bool         // events stand behind the document
	marked    bool         // an event has the mark of an earlier repair
	earlier   bytes.Buffer // the list of an earlier repair, with its key
	sorters   []*sorter
	log       *spanLog // nil if it was not wanted, or something is wrong with the trace
	of        []int32  // index in Facts.Threads, by thread of the profile
}

// reading is the state of Read.
type reading struct {
	*Trace
	lanes    []*lane // by chromium.Event.Thread: the current one
	all      []*lane
	sort     map[int32]bool // threads whose events are not in order of time
	deepest  int            // frames of a sample between the roots and the marker
	types    profile.TypeTally
	untyped  bool                         // tracefix's own output says that the recorder told no types,
	locked   map[int32][]profile.Interval // and when threads waited for locks then
	stitch   []int8                       // by stack: 1 stitched, -1 not, 0 not looked at
	names    map[int32]string
	procs    map[string]string
	programs map[string]program
	cpu      int32                       // name of CPU_TIME
	has      [2]bool                     // what the first begin has: a thread, a name
	required bool                        // has is known
	taken    int                         // events
	tell     func(*chromium.FormatError) // warn, in its place among the events
	twice    twice
	odd      []oddEnd
	slices   [][]slice // by chromium.Event.Thread, of threads that hold no stacks of dotnet-trace
}

// Read reads a trace into samples; a JSON document of another kind is an error that
// wraps chromium.ErrNoTrace. open returns the input from its start; it is
// called once, and again if a thread's events are not in order of time.
func Read(ctx context.Context, open func() (io.ReadCloser, error), o *Options) (*Trace, error) {
	t := &Trace{open: open, clean: true}
	if o != nil {
		t.opts = *o
	}
	if t.limit = t.opts.MaxDepth; t.limit == 0 {
		t.limit = 100
	}
	table := profile.NewTable()
	t.table = &frameTable{table: table, other: map[frameKey]int32{}, maxSF: -1}
	t.Profile = &profile.Profile{Table: table}
	d := &reading{Trace: t, sort: map[int32]bool{}, names: map[int32]string{}, procs: map[string]string{}}
	mods := &modules{seed: maphash.MakeSeed(), byID: map[string]entry{}, index: map[string]int32{}, maxSF: -1}
	var foreign *chromium.FormatError
	strange := int64(0) // elements that are no objects
	warn := func(fe *chromium.FormatError) {
		t.clean = false
		if errors.Is(fe.Err, chromium.ErrNotEvent) {
			strange++
		}
		if errors.Is(fe.Err, chromium.ErrNoTrace) && !slices.Contains(t.src.Keys(), "traceEvents") {
			foreign = fe
			return
		}
		d.tell(fe)
	}
	d.tell = d.warn
	stackFrame := func(f *chromium.StackFrame) error {
		mods.add(f)
		return nil
	}
	in, err := t.begin(warn, stackFrame)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t.table.r = t.src
	if t.opts.Log {
		t.log = &spanLog{}
	}
	if err := d.events(ctx); err != nil {
		return nil, err
	}
	if foreign != nil { // whole JSON of another kind: there is nothing to save
		return nil, fmt.Errorf("%w; give the file as the recorder wrote it", foreign)
	}
	if err := t.Facts.noTrace(strange); err != nil {
		return nil, fmt.Errorf("%w; give the file as the recorder wrote it", err)
	}
	if len(d.sort) > 0 {
		if err := d.sorted(ctx); err != nil {
			return nil, err
		}
	}
	t.table.setModules(mods)
	d.finish(mods.frames)
	return t, nil
}

// begin opens the source of the events.
func (t *Trace) begin(warn func(*chromium.FormatError), stackFrame func(*chromium.StackFrame) error) (io.Closer, error) {
	var err error
	if t.opts.Events != nil {
		opened := 0
		open := func() (io.ReadCloser, error) {
			in, err := t.open()
			if err != nil {
				return nil, err
			}
			told := warn
			if opened++; opened == 1 {
				told = nil // it is read again
			}
			return struct {
				io.Reader
				io.Closer
			}{t.source(in, told), in}, nil
		}
		if t.src, err = t.opts.Events(open, warn, stackFrame); err != nil {
			return nil, err
		}
		if c, ok := t.src.(io.Closer); ok {
			return c, nil
		}
		return io.NopCloser(nil), nil
	}
	in, err := t.open()
	if err != nil {
		return nil, err
	}
	t.r, err = chromium.NewReader(t.source(in, warn), &chromium.Options{Warn: warn, Outside: &t.Facts, StackFrame: stackFrame, Value: t.value,
		Behind: true, EventsEnd: func() error { t.ends++; return nil }})
	if err != nil {
		in.Close()
		return nil, err
	}
	t.src = t.r
	return in, nil
}

// value takes in the list of an earlier repair, and counts the samples that stand beside the events.
func (t *Trace) value(key string) io.Writer {
	switch key {
	case repairsKey:
		t.earlier.Reset()
		return &t.earlier
	case "samples":
		return &listCounter{n: &t.Facts.Listed}
	}
	return nil
}

// A listCounter counts the objects in a list, which is written to it with its key.
type listCounter struct {
	n       *int64
	depth   int
	text    bool // within a string
	escaped bool // behind a backslash
}

func (c *listCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case c.escaped:
			c.escaped = false
		case c.text:
			c.text, c.escaped = b != '"', b == '\\'
		case b == '"':
			c.text = true
		case b == '[' || b == '{':
			if b == '{' && c.depth == 1 {
				*c.n++
			}
			c.depth++
		case b == ']' || b == '}':
			c.depth--
		}
	}
	return len(p), nil
}

// earlierMarks is the list of an earlier repair; ok is false if the file has none.
func (t *Trace) earlierMarks() (marks []profile.RepairMark, ok bool) {
	_, list, _ := bytes.Cut(t.earlier.Bytes(), []byte(":"))
	if s, ok := t.src.(*SpeedscopeReader); ok {
		list = s.w.earlier
	}
	t.earlier = bytes.Buffer{}
	return profile.ReadRepairMarks(list)
}

// source is in with the errors of a cut compressed file taken for its end.
func (t *Trace) source(in io.Reader, warn func(*chromium.FormatError)) io.Reader {
	if !t.opts.Salvage {
		return in
	}
	return &salvage{r: in, warn: warn}
}

type salvage struct {
	r    io.Reader
	n    int64
	warn func(*chromium.FormatError)
	done bool
}

func (s *salvage) Read(p []byte) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF && input.Broken(err) {
		s.done = true
		if s.warn != nil {
			s.warn(&chromium.FormatError{Offset: s.n, Where: "compressed stream", Err: err})
		}
		err = io.EOF
	}
	return n, err
}

// events reads all events.
func (d *reading) events(ctx context.Context) error {
	f := &d.Facts
	var err error
	if d.r != nil && relay.Workers() > 1 {
		err = d.beside(ctx)
	} else {
		err = d.alone(ctx)
	}
	if err = d.tail(err); err != nil {
		return err
	}
	d.size = d.src.InputOffset()
	f.Form = d.src.Form()
	if d.ends > 1 || !d.clean || f.Form == chromium.FormBare { // events of that are copied with commas
		d.eventsEnd = -1
		d.log = nil
	}
	d.behind = d.r != nil && d.r.Behind() > 0
	f.BOM = d.src.BOM()
	return nil
}

// alone parses and follows event after event. It returns how the reading ended.
func (d *reading) alone(ctx context.Context) error {
	var ev chromium.Event
	var b brief
	for n := 0; ; n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := d.src.Read(&ev); err != nil {
			return err
		}
		b.shorten(&ev)
		d.take(&b)
	}
}

// take follows an event.
func (d *reading) take(b *brief) {
	f := &d.Facts
	d.eventsEnd = b.off + int64(b.size)
	f.see(b)
	d.require(b)
	if d.r != nil {
		if e := d.twice.see(b); e != nil {
			d.warn(e)
		}
	}
	if d.taken < maxSeen {
		f.hint(b.whole)
	}
	d.taken++
	switch b.phase {
	case 'B', 'E':
		if bytes.HasSuffix(b.cat, []byte(repairMark[1:])) {
			d.marked = true
		}
		d.span(b)
		if d.opts.Weighted {
			d.collect(b)
		}
	case 'X':
		if d.opts.Weighted {
			d.collect(b)
		}
	case 'M':
		d.metadata(b.whole)
	}
}

// What is wrong with an event: mostly what its phase needs and it lacks.
var (
	errNoPhase  = errors.New("an event without a phase (ph); it is passed over")
	errNoTime   = errors.New("the time (ts) of an event is missing, no number, or beyond 292 years; it is passed over")
	errNoThread = errors.New("an event without a process and thread (pid, tid), which those before it have")
	errNoName   = errors.New("a begin without a name, which those before it have")
	errNoLength = errors.New("the duration (dur) of a complete event is no number, or beyond 292 years; it takes no time")
	errBackward = errors.New("a complete event whose duration (dur) is negative; it takes no time")
)

// require tells of events that lack what their phase needs. Some producers leave out threads or
// names on purpose: then the first event has none either.
func (d *reading) require(b *brief) {
	var err error
	switch b.phase {
	case 'M', 'c', 'N', 'D', 'O', 'v', 'V', '(', ')', '=', 'R':
		return
	case 0:
		if !b.empty { // nothing is lost with it, and its writer put it there to have a comma before each other one
			err = errNoPhase
		}
	case 'B', 'E', 'X':
		has := [2]bool{b.threads, b.named || b.phase == 'E'}
		if !d.required {
			d.required, d.has = true, has
		}
		switch {
		case !b.timed:
			err = errNoTime
		case d.has[0] && !has[0]:
			err = errNoThread
		case d.has[1] && !has[1]:
			err = errNoName
		case b.phase == 'X' && b.lasting && b.dur < 0:
			err = errBackward
		case b.phase == 'X' && !b.lasting && !b.endless:
			err = errNoLength
		}
	case 'i', 'I', 'b', 'e', 'n', 'S', 'T', 'F', 's', 't', 'f', 'C':
		if !b.timed {
			err = errNoTime
		}
	}
	if err != nil {
		d.warn(&chromium.FormatError{Offset: b.off, Where: "traceEvents", Err: err})
	}
}

// tail decides about the error that ended the events: io.EOF and damage at the end
// are none.
func (d *reading) tail(err error) error {
	if err == io.EOF {
		return nil
	}
	var fe *chromium.FormatError
	if !errors.As(err, &fe) || errors.Is(err, chromium.ErrTooDeep) {
		return err
	}
	d.clean = false
	d.warn(fe)
	return nil
}

// warn tells of a defect, and of when it was.
func (d *reading) warn(fe *chromium.FormatError) {
	if d.opts.Warn == nil {
		return
	}
	at, f := int64(-1), &d.Facts
	switch {
	case !f.timed:
	case len(f.Depths) > 0: // samples of .NET, whose times are taken as they are
		at = max(f.latest, 0)
	default:
		at = f.latest - f.earliest
	}
	d.opts.Warn(fe, at)
}

// over reports whether an error ends a second reading: damage was told on the first one.
func over(err error) bool {
	var fe *chromium.FormatError
	return err == io.EOF || errors.As(err, &fe)
}

// same returns an error if another reading ended after other than the n bytes of the first.
func (t *Trace) same(n int64) error {
	if n == t.size {
		return nil
	}
	return fmt.Errorf("expected %d bytes as at first, found %d: %w", t.size, n, input.ErrChanged)
}

// span follows a begin or end event.
func (d *reading) span(b *brief) {
	if !b.timed {
		d.Facts.NoTime++
		d.log = d.log.add(b, 0)
		return
	}
	for int(b.thread) >= len(d.lanes) {
		d.lanes = append(d.lanes, nil)
	}
	l := d.lanes[b.thread]
	if l == nil || l.unsorted {
		if l != nil {
			return
		}
		l = d.newLane(b)
	}
	if b.ns < l.lastNS || b.ns == l.lastNS && b.sub < l.lastSub {
		if l.cur != 0 || l.outer != 0 || l.ignored > 0 || l.implied > 0 {
			l.unsorted = true
			d.sort[b.thread] = true
			d.log = nil
			return
		}
		d.endLane(l)
		l = d.newLane(b)
	}
	f := d.table.id(b)
	if b.phase == 'B' {
		d.table.begins(f, b)
	}
	d.log = d.log.add(b, f)
	d.step(l, b.phase, f, b.name, b.sf != nil, b.ns, b.sub, b.off, int(b.lead))
}

func (d *reading) newLane(b *brief) *lane {
	l := &lane{thread: b.thread, fromSample: -1, lastNS: -1 << 62, first: b.ns, start: b.off - int64(b.lead), own: d.table.own(b.thread)}
	d.lanes[b.thread] = l
	d.all = append(d.all, l)
	return l
}

// step takes a begin or end of frame f to a lane.
func (d *reading) step(l *lane, phase byte, f profile.FrameID, name int32, sf bool, ns int64, sub uint32, off int64, lead int) {
	l.events++
	same := ns == l.lastNS && sub == l.lastSub
	near := same || isNear(ns, sub, l.lastNS, l.lastSub)
	l.lastNS, l.lastSub = ns, sub
	if sub >= 5e8 {
		ns++ // times are sums of floats: 580.1019999 stands for 580.102
	}
	if l.own.holds == holdsSamples {
		d.ownStep(l, phase, f, name, ns, same, near, off-int64(lead))
		return
	}
	if phase == 'B' {
		if !l.begun {
			l.firstBegin(d.table, f, same)
		}
		if l.root == 0 && l.cur == 0 && l.outer == 0 {
			l.root = 1 + f
		}
		if l.begin(d.table, f) {
			l.named = f
		}
		l.begun, l.began, l.last, l.seen = true, ns, off-int64(lead), true
		l.deepest = max(l.deepest, l.depth(d.table.table))
		return
	}
	if l.begun {
		d.sample(l, ns, false)
		l.begun = false
		l.start, l.low, l.from = off-int64(lead), l.depth(d.table.table), state{l.cur, l.outer}
		l.tie.reset()
		l.rungs = rungs{}
	}
	d.endStep(l, f, name, sf, near, off-int64(lead))
	l.last, l.seen = off-int64(lead), true
}

// endStep closes frame f in a lane.
func (d *reading) endStep(l *lane, f profile.FrameID, name int32, sf, near bool, start int64) {
	was := state{l.cur, l.outer}
	l.rungs.add(l.depth(d.table.table), start-l.start)
	n := l.end(d.table, f, name, sf)
	if n == 0 {
		l.ignored++
	} else {
		l.implied += n - 1
	}
	if n != 1 && l.sampled() {
		if len(d.odd) == mostOdd && !l.sorted {
			d.unmatched() // those whose thread turns out to be out of order, too
		}
		d.odd = append(d.odd, oddEnd{l, start, l.lastNS, n})
	}
	l.low = min(l.low, l.depth(d.table.table))
	if !near {
		l.tie.reset()
	}
	l.tie.add(was, start, n, l.lastNS, l.lastSub)
}

// unmatched tells of the ends that go with no begin in a lane of samples: whoever wrote it closes
// what it opens, so events are missing or stand there twice. Other producers begin and end in the
// middle of spans. Only the end of a lane tells that its events are in order of time.
func (d *reading) unmatched() {
	for _, e := range d.odd {
		if e.lane.unsorted {
			continue
		}
		what := "an end of what is not open; it is passed over"
		if e.ended > 0 {
			what = "an end of what is not innermost; " + strconv.Itoa(e.ended-1) + " within it are ended, too"
		}
		d.Facts.latest = e.ns
		d.warn(&chromium.FormatError{Offset: e.at, Where: "traceEvents", Err: errors.New(what)})
	}
	d.odd = d.odd[:0]
}

// mostOdd is how many ends of threads that are in order wait to be told.
const mostOdd = 1 << 16

// sample ends the transition to what is open now, and makes a sample of it that
// holds until ns. With end the lane is over and nothing is open.
func (d *reading) sample(l *lane, ns int64, end bool) {
	t := d.table.table
	index, cut := -1, false
	own := l.own.holds == holdsSamples
	if !end && (l.outer != 0 || own) && l.cur != 0 {
		rec := profile.Sample{Time: l.began, Dur: ns - l.began, Stack: l.cur}
		if f := t.Frame(l.cur); d.table.kind(f) == kindMarker {
			switch {
			case own:
				rec.Type = profile.SampleOffCPU
			case d.table.frames[f].name != d.cpuTime():
				rec.Type = profile.SampleExternal
			default:
				d.Facts.Managed++
			}
			d.types.Add(rec.Type, true)
			rec.Stack = t.Parent(l.cur)
		} else if own {
			rec.Type = l.own.typ
			switch {
			case !l.own.typed:
				d.Facts.Untold++
			case rec.Type == profile.SampleManaged:
				d.Facts.Managed++
			}
		}
		n := t.Depth(rec.Stack)
		if told := l.own.cuts.at(l.began+(ns-l.began)/2, n); told != nil && !d.table.bridged(rec.Stack) {
			rec.Cut, rec.Suspect = told.cut, told.suspect
		} else if n == d.limit && n > 0 {
			rec.Cut = profile.CutDepth
		}
		cut = rec.Cut != profile.Whole
		if n > l.maxDepth {
			l.maxDepth = n
			if n > d.deepest && !d.stitched(rec.Stack) {
				d.deepest = n
			}
		}
		if d.opts.Lean {
			rec.Dur = 0 // the repair asks when, not how long
		}
		if l.t == nil {
			l.t = &profile.Thread{First: l.first, Locked: d.locked[l.thread]}
		}
		index = l.t.Samples.Len()
		l.t.Samples.Append(rec)
		d.Facts.depth(n)
	}
	if cut || l.fromCut {
		d.zones = append(d.zones, zone{lane: l, before: l.fromSample, after: index, start: l.start, last: l.last, low: l.low, tied: l.tied, from: l.from, to: state{l.cur, l.outer}, rungs: l.rungs, end: end})
	}
	if cut && !l.fromCut {
		l.spikes++
	}
	l.fromCut, l.fromSample = cut, index
}

// cpuTime returns the number of the name of the marker of managed code.
func (d *reading) cpuTime() int32 {
	if d.cpu == 0 {
		for i := range d.table.frames {
			if f := &d.table.frames[i]; f.kind == kindMarker && d.src.Name(f.name) == "CPU_TIME" {
				d.cpu = f.name
			}
		}
	}
	return d.cpu
}

// stitched reports whether a stack is put together of two, and may be deeper than
// the limit therefore. What was found of its callers is not looked for again.
func (d *reading) stitched(s profile.StackID) bool {
	if n := int(s) + 1 - len(d.stitch); n > 0 {
		d.stitch = append(d.stitch, make([]int8, n)...)
	}
	at, found := s, int8(-1)
	for ; at != 0; at = d.table.table.Parent(at) {
		if d.stitch[at] != 0 {
			found = d.stitch[at]
			break
		}
		if d.table.kind(d.table.table.Frame(at)) == kindStitch {
			found = 1
			break
		}
	}
	for ; s != at; s = d.table.table.Parent(s) {
		d.stitch[s] = found
	}
	return found > 0
}

// endLane ends a lane.
func (d *reading) endLane(l *lane) {
	if l.begun {
		d.sample(l, l.lastNS, false) // the trace ends before the frames do
	} else if l.seen {
		d.sample(l, l.lastNS, true)
	}
	if l.t != nil {
		l.t.Last = l.lastNS
	}
	l.seen = false
}

// finish completes the profile.
func (d *reading) finish(frames int) {
	d.unmatched()
	for _, l := range d.all {
		if !l.unsorted {
			d.endLane(l)
		}
	}
	p := d.Profile
	limit := d.limit
	d.Facts.Limit = limit
	p.Meta = profile.Meta{Source: d.opts.Source, Format: "chromium", DepthLimit: limit}
	if p.Meta.Untyped = d.untyped || d.types.Untyped(); p.Meta.Untyped {
		p.Meta.Notes = append(p.Meta.Notes, profile.UntypedNote)
	}
	if d.deepest > limit && limit > 0 && (d.clean || d.Facts.deeper(limit)) {
		// A complete stack that is deeper shows that nothing was cut at limit. Behind damage, which
		// may have taken the end of a frame, one does not.
		p.Meta.DepthLimit = 0
		d.Facts.Deepest = d.deepest
		for _, l := range d.all {
			uncut(l.t)
		}
		d.zones = slices.DeleteFunc(d.zones, func(z zone) bool { return z.lane.own.cuts == nil })
	}
	if d.opts.Weighted {
		base := int64(0)
		if !slices.ContainsFunc(d.all, (*lane).sampled) {
			base = d.Facts.earliest
		}
		d.weigh(base)
	}
	slices.SortStableFunc(d.all, func(a, b *lane) int { return cmp.Compare(a.first, b.first) })
	procs := map[string]*profile.Process{}
	for _, l := range d.all {
		if l.t == nil || l.t.Samples.Cuts() == 0 {
			l.clashes = nil // there is nothing to repair
		}
		if l.unsorted || l.t == nil || l.t.Samples.Len() == 0 {
			continue
		}
		th := d.src.Threads()[l.thread]
		l.t.TID = number(th.TID)
		l.t.Process = d.process(l, th, procs)
		l.t.Name = d.threadName(l, th)
		p.Threads = append(p.Threads, l.t)
		d.of = append(d.of, l.thread)
		p.Meta.End = max(p.Meta.End, l.t.Last)
	}
	if marks, ok := d.earlierMarks(); ok {
		if d.opts.Lean {
			p.Meta.SetEarlier(marks)
		} else {
			p.SetRepairMarks(marks)
		}
	}
	d.Facts.finish(d, frames)
}

// uncut takes the marks of cuts at the limit from the samples of t.
func uncut(t *profile.Thread) {
	if t == nil || t.Samples.Cuts() == 0 {
		return
	}
	var s profile.Samples
	for _, x := range t.Samples.All() {
		if x.Cut == profile.CutDepth {
			x.Cut = profile.Whole
		}
		s.Append(x)
	}
	t.Samples = s
}

// threadName returns what the trace calls a thread: in a metadata event, or in the
// frame `Thread (n) (name)`.
func (d *reading) threadName(l *lane, th chromium.Thread) string {
	if n := cmp.Or(d.names[l.thread], textual(th.TID)); n != "" || !l.dotnet {
		if l.own.holds == holdsSamples && n == (&profile.Thread{TID: number(th.TID)}).Title() {
			return "" // what the writer calls a thread without a name
		}
		return n
	}
	name := d.src.Name(d.table.frames[l.named].name)
	if _, rest, ok := strings.Cut(name, ") ("); ok {
		return strings.TrimSuffix(rest, ")")
	}
	return ""
}

// integer reads a pid or tid; ok is false of anything but a whole number. Where all numbers are floats, as in
// Lua, it is written as one.
func integer(raw string) (n int64, ok bool) {
	raw = strings.Trim(raw, `"`)
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return n, true
	}
	const exact = 1 << 53
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= exact {
		return 0, false
	}
	return int64(f), true
}

// number reads a pid or tid; anything but a whole number is 0.
func number(raw string) int64 {
	n, _ := integer(raw)
	return n
}

// textual returns a pid or tid that a number does not tell, else "": a text, which some writers give in its
// place, and what is no int64, as hashes of threads are.
func textual(raw string) string {
	switch _, ok := integer(raw); {
	case ok || raw == "" || raw == "null":
		return ""
	case raw[0] == '"':
		return chromium.Unquote([]byte(raw[1 : len(raw)-1]))
	}
	return raw
}

// process finds the process of a lane: the synthetic root tells it, as
// dotnet-trace writes pid 0.
func (d *reading) process(l *lane, th chromium.Thread, procs map[string]*profile.Process) *profile.Process {
	root := ""
	if l.root > 0 && d.table.kind(l.root-1) == kindProcess {
		root = d.src.Name(d.table.frames[l.root-1].name)
	}
	key := th.PID + "\x00" + root
	if p := procs[key]; p != nil {
		return p
	}
	p := &profile.Process{PID: number(th.PID), Name: cmp.Or(d.procs[th.PID], textual(th.PID))}
	if own, ok := d.programs[th.PID]; ok {
		p.PID, p.Name = own.PID, own.Process
	}
	if l.own.holds == holdsSamples && p.Name == (&profile.Process{PID: p.PID}).Title() {
		p.Name = "" // what the writer calls a process without a name
	}
	if root != "" {
		parseRoot(root, p)
	}
	procs[key] = p
	d.Profile.Processes = append(d.Profile.Processes, p)
	return p
}

// parseRoot reads the frame `Process64 NAME (PID) Args: ARGS`.
func parseRoot(root string, p *profile.Process) {
	_, rest, _ := strings.Cut(root, " ")
	head, args, ok := strings.Cut(rest, " Args:")
	if !ok {
		head = rest
	}
	i := strings.LastIndexByte(head, '(')
	if i < 0 || !strings.HasSuffix(head, ")") {
		return
	}
	pid, err := strconv.ParseInt(head[i+1:len(head)-1], 10, 64)
	if err != nil {
		return
	}
	p.PID = pid
	p.Name = strings.TrimSpace(head[:i])
	p.CommandLine = strings.TrimSpace(strings.TrimPrefix(args, " "))
}
