package events

import (
	"context"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
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
}

// A collector gathers what one kind of report is about.
type collector interface {
	// wants reports whether the event's stack would be used.
	wants(ev *nettrace.Event) bool
	take(ev *nettrace.Event, ns int64, stack uint32)
	report(c *Context) *Report
	// advice says what records the events that the report is about.
	advice() string
}

// ReadRuntime reads a trace and reports on it. The report has no rows and Missing says why where
// the trace holds no such events.
func ReadRuntime(ctx context.Context, open input.Opener, kind ReportKind, o RuntimeOptions) (*Report, *load.Info, error) {
	var c collector
	switch kind {
	case KindGC:
		c = &gcCollector{}
	case KindJIT:
		c = &jitCollector{}
	case KindLocks:
		c = &locksCollector{waits: o.Waits}
	default:
		c = &threadsCollector{}
	}
	o.Load.NoSamples = true
	o.Load.Take = func(ev *nettrace.Event, ns int64, stack func() profile.StackID) {
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
	r := c.report(contextOf(p, &o))
	if len(r.Rows) == 0 {
		r.Missing = c.advice()
	}
	return r, info, nil
}

func contextOf(p *profile.Profile, o *RuntimeOptions) *Context {
	names := map[int]string{}
	for _, pr := range p.Processes {
		names[int(pr.PID)] = pr.Name
	}
	c := &Context{Name: p.Meta.Source, End: p.Meta.End, Limit: o.Limit, Many: len(p.Processes) > 1, Process: func(pid int) string { return names[pid] }}
	known := map[uint32][]string{}
	c.Frames = func(stack uint32) []string {
		frames, ok := known[stack]
		if !ok {
			for _, f := range p.Table.AppendFrames(nil, stack) {
				frames = append(frames, p.Table.MethodOf(f).Full())
			}
			known[stack] = frames
		}
		return frames
	}
	return c
}

type gcCollector struct{ runtimeevents.GCs }

func (c *gcCollector) wants(ev *nettrace.Event) bool { return c.Wants(ev) }
func (c *gcCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	c.Event(ev, ns, stack)
}
func (c *gcCollector) report(x *Context) *Report { return GC(c.Finish(), x) }
func (c *gcCollector) advice() string {
	return "no collections; `dotnet-trace collect --profile gc-collect -p PID` records them, gc-verbose also what is allocated"
}

type jitCollector struct{ runtimeevents.JIT }

func (c *jitCollector) wants(*nettrace.Event) bool { return false }
func (c *jitCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	c.Event(ev, ns, stack)
}
func (c *jitCollector) report(x *Context) *Report {
	c.Finish()
	return JIT(&c.JIT, x)
}
func (c *jitCollector) advice() string {
	return "no compilations; `dotnet-trace collect -p PID --providers Microsoft-Windows-DotNETRuntime:0x1000000010:5` records them"
}

type locksCollector struct {
	contentions runtimeevents.Contentions
	pending     runtimeevents.Waits
	all         Locks
	waits       bool
}

func (c *locksCollector) wants(ev *nettrace.Event) bool {
	return c.contentions.Wants(ev) || c.waits && c.pending.Wants(ev)
}

func (c *locksCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	if x := c.contentions.Event(ev, ns, stack); x != nil {
		if x.Stop == runtimeevents.Unknown {
			c.all.Abandoned = append(c.all.Abandoned, x)
		} else {
			c.all.Contentions = append(c.all.Contentions, x)
		}
	}
	if w := c.pending.Event(ev, ns, stack); w != nil {
		c.all.Waits = append(c.all.Waits, w)
	}
}

func (c *locksCollector) report(x *Context) *Report {
	c.all.Abandoned = append(c.all.Abandoned, c.contentions.Open()...)
	return LocksReport(&c.all, c.waits, x)
}

func (c *locksCollector) advice() string {
	return "no contention; `dotnet-trace collect -p PID --providers Microsoft-Windows-DotNETRuntime:0x4000:4` records it"
}

type threadsCollector struct{ runtimeevents.Pool }

func (c *threadsCollector) wants(*nettrace.Event) bool { return false }
func (c *threadsCollector) take(ev *nettrace.Event, ns int64, stack uint32) {
	c.Event(ev, ns, stack)
}
func (c *threadsCollector) report(x *Context) *Report { return Threads(c.Processes(), x) }
func (c *threadsCollector) advice() string {
	return "nothing of the thread pool; `dotnet-trace collect --profile dotnet-common -p PID` records it"
}
