package events

import (
	"context"
	"slices"

	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/interval"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// A ReportKind is a sort of report.
type ReportKind uint8

// Kinds of reports.
const (
	KindGC ReportKind = iota
	KindJIT
	KindLocks
	KindThreads
)

// RuntimeOptions of ReadRuntime. The zero value works.
type RuntimeOptions struct {
	Load  load.Options // Source and Warn; what else it says is decided by ReadRuntime
	Limit int          // rows in the tables of text and html; 0 is all
	Waits bool         // KindLocks: rows for waits that are for no lock, too

	// Wants says which events are wanted; nil: all. Collections are of no thread.
	Wants func(*nettrace.Event) bool
	// Partial says that Wants leaves out some of what a process did.
	Partial bool
	// Between is the time that is wanted: what overlaps it is whole.
	Between interval.Interval
}

// A collector gathers what one kind of report is about.
type collector interface {
	// wants reports whether the event's stack would be used.
	wants(ev *nettrace.Event) bool
	take(ev *nettrace.Event, ns int64, stack uint32)
	// report reports on what lies in a part of the trace.
	report(c *Context, in interval.Interval) *Report
}

// advice says of each kind of report what records the events that it is about.
var advice = [...]struct {
	nothing string
	line    *collect.Line
	what    string
}{
	KindGC:      {"no collections", &collect.Collections, "them, gc-verbose also what is allocated"},
	KindJIT:     {"no compilations", &collect.Compilations, "them"},
	KindLocks:   {"no contention", &collect.Contentions, "it"},
	KindThreads: {"nothing of the thread pool", &collect.Common, "it"},
}

// ReadRuntime reads a trace and reports on it. The report has no rows and Missing says why where
// the trace holds no such events.
func ReadRuntime(ctx context.Context, open input.Opener, kind ReportKind, o RuntimeOptions) (*Report, *load.Info, error) {
	var c collector
	switch kind {
	case KindGC:
		c = newGCCollector(o.Between)
	case KindJIT:
		c = &jitCollector{runtimeevents.JIT{Counts: o.Between.Overlaps}}
	case KindLocks:
		c = newLocksCollector(o.Between, o.Waits)
	default:
		t := newThreadsCollector(o.Between)
		t.Wanted, o.Wants = o.Wants, nil // work is enqueued on another thread than that which dequeues it
		c = t
	}
	o.Load.NoSamples = true
	o.Load.Take = func(ev *nettrace.Event, ns int64, stack func() profile.StackID) {
		if o.Wants != nil && !o.Wants(ev) {
			return
		}
		var id profile.StackID
		if ev.Stack.Len() > 0 && c.wants(ev) {
			id = stack()
		}
		c.take(ev, ns, id)
	}
	p, info, err := load.Profile(ctx, open, &o.Load)
	if err != nil {
		return nil, nil, err
	}
	r := c.report(contextOf(p, &o), o.Between)
	if o.Between.From > p.Meta.End { // when what has no end is over, too
		r = &Report{Title: r.Title, row: r.row, stats: r.stats}
	}
	for i := range r.Sections {
		r.Sections[i].Verdict = append(r.Sections[i].Verdict, lostNote(p.Meta.Lost)...)
	}
	if r.Rows.Len() == 0 {
		a := &advice[kind]
		r.Missing = a.nothing + "; `" + a.line.For(p.Meta.Version) + "` records " + a.what
	}
	return r, info, nil
}

func contextOf(p *profile.Profile, o *RuntimeOptions) *Context {
	names := map[int]string{}
	for _, pr := range p.Processes {
		names[int(pr.PID)] = pr.Name
	}
	from, until := o.Between.Resolve(p.Meta.End)
	c := &Context{Name: p.Meta.Source, End: until - from, In: o.Between, Limit: o.Limit, Partial: o.Partial, Version: p.Meta.Version, Events: p.Meta.Events, Lost: p.Meta.Lost, Many: len(p.Processes) > 1, Process: func(pid int) string { return names[pid] }}
	known := map[profile.StackID][]string{}
	c.Frames = func(stack profile.StackID) []string {
		names, ok := known[stack]
		if !ok {
			if len(known) == mostNamed {
				clear(known)
			}
			names = Names(p.Table, stack)
			known[stack] = names
		}
		return names
	}
	return c
}

// mostNamed is of how many stacks the names are remembered: most come again soon.
const mostNamed = 1 << 13

// Names returns the full names of the frames of a stack, root first.
func Names(t *profile.Table, stack profile.StackID) (names []string) {
	for _, f := range t.AppendFrames(nil, stack) {
		names = append(names, t.MethodOf(f).Full())
	}
	return names
}

type gcCollector struct {
	runtimeevents.GCs
	others map[int]bool // processes that were suspended for other reasons
	before map[int]*heapSizes
	ticked map[int]uint64 // bytes of a process that ticks in the time that is wanted tell
	lists  lists[gcRecord]
}

func newGCCollector(in interval.Interval) *gcCollector {
	c := &gcCollector{others: map[int]bool{}, before: map[int]*heapSizes{}, ticked: map[int]uint64{}, lists: listsIn[gcRecord](input.Aside(reportMemory))}
	c.Other = func(s *runtimeevents.Suspension) {
		if in.Overlaps(s.Start, s.Restarted) {
			c.others[s.Process] = true
		}
	}
	c.Finalizing = func(from, until int64) (int64, bool) {
		if from == runtimeevents.Unknown {
			return 0, in.Contains(until)
		}
		return in.Part(from, until), in.Overlaps(from, until)
	}
	c.Ticked = func(pid int, ns int64, amount uint64) {
		if in.Contains(ns) {
			c.ticked[pid] += amount
		}
	}
	c.Settled = func(pid int, g *runtimeevents.GC) {
		if in.Overlaps(min(g.Start, g.PauseStart()), g.End) {
			c.lists.add(pid, recordOf(g, in))
		}
		if g.Start < in.From {
			if before := c.before[pid].behind(&g.Collection); before != nil {
				c.before[pid] = before
			}
		}
	}
	return c
}

func (c *gcCollector) wants(ev *nettrace.Event) bool { return c.Wants(ev) }

func (c *gcCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	c.Event(ev, ns, stack) // the ticks before the time that is wanted, too: they are of its first collection
}

func (c *gcCollector) report(x *Context, in interval.Interval) *Report {
	var procs []*gcProcess
	for _, p := range c.Finish() {
		p.Suspensions = slices.DeleteFunc(p.Suspensions, func(s *runtimeevents.Suspension) bool { return !in.Overlaps(s.Start, s.Restarted) })
		l := c.lists.list(p.PID)
		ticked, ticks := c.ticked[p.PID]
		if l.Len()+len(p.Suspensions) > 0 || c.others[p.PID] || ticks {
			procs = append(procs, &gcProcess{p, l, c.before[p.PID], ticked})
		}
	}
	return gcReport(procs, c.lists.aside, x)
}

type jitCollector struct{ runtimeevents.JIT }

func (c *jitCollector) wants(*nettrace.Event) bool { return false }
func (c *jitCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	c.Event(ev, ns, stack)
}
func (c *jitCollector) report(x *Context, in interval.Interval) *Report {
	c.Finish()
	c.Compilations = slices.DeleteFunc(c.Compilations, func(m *runtimeevents.Compilation) bool { return !in.Overlaps(m.Stop-m.Time(), m.Stop) })
	c.Batches = slices.DeleteFunc(c.Batches, func(b runtimeevents.Batch) bool { return !in.Overlaps(b.Start, b.Stop) })
	return JIT(&c.JIT, x)
}

type locksCollector struct {
	contentions runtimeevents.Contentions
	pending     runtimeevents.Waits
	all         *locks
	waits       bool // those for no lock are listed
	in          interval.Interval
	held        map[thread]*heldWaits
}

// A thread is one of a process.
type thread struct {
	pid int
	id  uint64
}

// heldWaits are those of a thread since it began to wait for a lock. They were for that lock if it
// gets it, which its stop tells: a Lock.TryEnter that gives up has none, and what the thread waits
// for later is for no lock.
type heldWaits struct {
	since int64
	list  []*runtimeevents.Wait
}

// mostHeld bounds them. A contended lock is tried again after each of its waits: 60 times in a
// recording of a convoy.
const mostHeld = 1 << 10

func newLocksCollector(in interval.Interval, waits bool) *locksCollector {
	return &locksCollector{in: in, waits: waits, all: newLocks(input.Aside(reportMemory)), held: map[thread]*heldWaits{}}
}

func (c *locksCollector) wants(ev *nettrace.Event) bool {
	return c.contentions.Wants(ev) || c.waits && c.pending.Wants(ev)
}

func (c *locksCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	early := c.contentions.StopsWithoutStart
	if x := c.contentions.Event(ev, ns, stack); x != nil {
		c.contended(x, ns)
	}
	if c.contentions.StopsWithoutStart > early && c.in.Contains(ns) {
		c.all.countOf(ev.ProcessID).addEarly(&c.contentions.Early, c.in)
	}
	if c.waits && runtimeevents.IsContention(ev) {
		c.held[thread{ev.ProcessID, ev.ThreadID}] = &heldWaits{since: ns}
	}
	if w := c.pending.Event(ev, ns, stack); w != nil && c.in.Overlaps(w.Start, w.Stop) {
		c.all.countOf(w.Process).waits++
		if c.waits {
			c.waited(w)
		}
	}
}

// waited lists a wait, once it is sure that it was for no lock.
func (c *locksCollector) waited(w *runtimeevents.Wait) {
	h := c.held[thread{w.Process, w.Thread}]
	if h == nil || w.Start < h.since {
		c.all.list(w)
		return
	}
	if len(h.list) == mostHeld {
		c.all.list(h.list[0])
		h.list = h.list[1:]
	}
	h.list = append(h.list, w)
}

// contended takes a contention that was over by a time, Unknown if nothing tells that it was.
func (c *locksCollector) contended(x *runtimeevents.Contention, over int64) {
	key := thread{x.Process, x.Thread}
	if h := c.held[key]; h != nil && x.Stop == runtimeevents.Unknown {
		for _, w := range h.list {
			c.all.list(w)
		}
	}
	delete(c.held, key)
	if c.in.Overlaps(x.Start, over) {
		c.all.add(x, over == runtimeevents.Unknown)
	}
}

func (c *locksCollector) report(x *Context, _ interval.Interval) *Report {
	for _, open := range c.contentions.Open() {
		c.contended(open, runtimeevents.Unknown)
	}
	return locksReport(c.all, x)
}

type threadsCollector struct {
	runtimeevents.Pool
	in      interval.Interval
	outside map[int]int64 // work enqueued outside of it, by process
	queued  map[int]*waited
	untimed map[int]int64 // work taken of which nothing tells when it came, by process
	aside   *spool.Spool
}

func newThreadsCollector(in interval.Interval) *threadsCollector {
	c := &threadsCollector{in: in, outside: map[int]int64{}, queued: map[int]*waited{}, untimed: map[int]int64{}, aside: input.Aside(0)}
	c.Delayed = func(pid int, d runtimeevents.Delay) {
		if !in.Overlaps(d.Time-d.Wait, d.Time) {
			return
		}
		w := c.queued[pid]
		if w == nil {
			w = &waited{durations: newDurations(c.aside)}
			c.queued[pid] = w
		}
		w.add(d.Wait)
		inside := in.Part(d.Time-d.Wait, d.Time)
		if w.inside += inside; inside != d.Wait {
			w.cut++
		}
		w.longest.add(d.Time, text.Millis(d.Wait), 0)
	}
	c.Untimed = func(pid int, ns int64) {
		if in.Contains(ns) {
			c.untimed[pid]++
		}
	}
	return c
}

func (c *threadsCollector) wants(*nettrace.Event) bool { return false }

func (c *threadsCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	c.Event(ev, ns, stack)
	const enqueued = 30
	if ev.Metadata.Provider == nettrace.ProviderFramework && ev.Metadata.EventID == enqueued && !c.in.Contains(ns) && (c.Wanted == nil || c.Wanted(ev)) {
		c.outside[ev.ProcessID]++
	}
}

func (c *threadsCollector) report(x *Context, in interval.Interval) *Report {
	procs := c.Processes()
	for _, p := range procs {
		p.Before = p.WorkersAt(in.From) // their number holds on until the next change
		for _, a := range p.Adjustments {
			if a.Time < in.From {
				p.GoalBefore = a.Workers
			}
		}
		for _, l := range p.Limits {
			if l.Time < in.From {
				p.LimitBefore = uint32(l.MaxWorkers)
			}
		}
		p.Adjustments = slices.DeleteFunc(p.Adjustments, func(a runtimeevents.Adjustment) bool { return !in.Contains(a.Time) })
		p.Workers = slices.DeleteFunc(p.Workers, func(w runtimeevents.WorkerChange) bool { return !in.Contains(w.Time) })
		p.Limits = slices.DeleteFunc(p.Limits, func(l runtimeevents.Limits) bool { return !in.Contains(l.Time) })
		p.Births = slices.DeleteFunc(p.Births, func(d runtimeevents.Delay) bool { return !in.Overlaps(d.Time-d.Wait, d.Time) })
		p.Enqueued -= c.outside[p.PID]
		p.Untimed = c.untimed[p.PID]
	}
	procs = slices.DeleteFunc(procs, func(p *runtimeevents.PoolProcess) bool {
		return len(p.Adjustments)+len(p.Workers)+len(p.Limits)+len(p.Births) == 0 && c.queued[p.PID] == nil && p.Enqueued+p.Untimed == 0
	})
	r := threadsReport(procs, func(pid int) *waited { return c.queued[pid] }, x)
	r.aside = c.aside
	return r
}
