package load

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/symbol"
	"github.com/tracefix/tracefix/internal/trace"
	"github.com/tracefix/tracefix/nettrace"
)

const providerBridge = "Microsoft-Diagnostics-DiagnosticSource"

// A startKey finds the event that started a row of the tree.
type startKey struct {
	at     int64
	thread uint64
	proc   uint32
	name   string
}

// activities collects start and stop events of all EventSources and ActivitySources.
type activities struct {
	k       *tracker
	builder *activity.Builder
	starts  map[startKey]item      // what the start event told
	spans   map[string][]trace.Arg // what a bridged activity told, by trace and span id
	procs   map[uint32]*process    // by activity.Event.Process
	numbers map[*process]uint32    // the reverse
}

func newActivities(k *tracker) *activities {
	return &activities{
		k:       k,
		builder: activity.NewBuilder(nil),
		starts:  map[startKey]item{},
		spans:   map[string][]trace.Arg{},
		procs:   map[uint32]*process{},
		numbers: map[*process]uint32{},
	}
}

// event takes an event of any EventSource; it reports whether it starts or stops an
// activity.
func (a *activities) event(ev *nettrace.Event, now int64, t *thread) bool {
	op := activity.Opcode(ev.Opcode)
	if op != activity.Start && op != activity.Stop {
		op = activity.Info
		if ev.ActivityID.IsZero() {
			return false
		}
	}
	n, ok := a.numbers[t.proc]
	if !ok {
		n = uint32(len(a.numbers))
		a.numbers[t.proc], a.procs[n] = n, t.proc
	}
	e := activity.Event{
		Time: now, Thread: uint64(t.trace.TID), Process: n, Provider: ev.Metadata.Provider, Name: ev.EventName(),
		Opcode: op, ID: activity.ID(ev.ActivityID), Related: activity.ID(ev.RelatedActivityID),
	}
	if op != activity.Info && ev.Metadata.Provider == providerBridge && strings.Contains(e.Name, "Activity") {
		e.Span = a.bridge(ev, op == activity.Stop)
	}
	if op == activity.Start && e.Span == nil {
		a.starts[startKey{now, e.Thread, n, e.Provider}] = item{meta: ev.Metadata, version: ev.Version, payload: slices.Clone(ev.Payload)}
	}
	a.builder.Add(&e)
	return op != activity.Info && (e.Span != nil || strings.HasSuffix(e.Name, "Start") || strings.HasSuffix(e.Name, "Stop"))
}

// bridge reads ActivityStart and ActivityStop of the DiagnosticSource bridge
// (activity-ids.md section 7.4): a source, a name, and an array of keys and values.
func (a *activities) bridge(ev *nettrace.Event, stop bool) *activity.Span {
	b := ev.Payload
	str := func() string {
		s, rest, ok := symbol.CutUTF16(b)
		if !ok {
			b = nil
			return ""
		}
		b = rest
		return s
	}
	s := &activity.Span{Source: str(), Name: str()}
	if len(b) < 2 {
		return s
	}
	var args []trace.Arg
	n := int(binary.LittleEndian.Uint16(b))
	b = b[2:]
	for i := 0; i < n && len(b) > 0; i++ {
		key, value := str(), str()
		switch key {
		case "TraceId":
			s.TraceID = value
		case "SpanId":
			s.SpanID = value
		case "ParentSpanId":
			if strings.Trim(value, "0") != "" {
				s.ParentSpanID = value
			}
		case "Kind", "Status", "StatusDescription", "DisplayName", "Events":
			if value == "" || value == "Unset" || value == "[]" || value == s.Name {
				continue
			}
			args = append(args, trace.Arg{Key: key, Value: value})
		case "TagObjects":
			if !strings.HasPrefix(value, "System.Collections.") {
				args = append(args, trace.Arg{Key: "Tags", Value: value})
			}
		}
	}
	if key := s.TraceID + s.SpanID; stop || a.spans[key] == nil {
		a.spans[key] = args // the Stop knows more
	}
	return s
}

// A shownActivity is a row of the tree with its place in the track.
type shownActivity struct {
	start, dur      int64
	row             int
	id              uint64
	flowIn, flowOut uint64
	open, instant   bool
}

// finish makes one track for each process. Activities cross threads and overlap, so
// each is an async operation; one that lies inside its parent shares its id, which
// viewers draw as nested. Where it does not fit, a flow leads to it.
func (a *activities) finish(end int64) {
	tree := a.builder.Finish()
	rows := tree.Rows
	shown := map[uint32][]shownActivity{}
	for i := range rows {
		r := &rows[i]
		s := shownActivity{row: i, start: r.Start}
		switch {
		case !r.HasStart: // nobody knows when it began: perhaps its start was lost
			s.start, s.instant = r.Stop, true
		case r.HasStop:
			s.dur = max(0, r.Stop-r.Start)
		default:
			s.dur, s.open = max(0, end-r.Start), true
		}
		shown[r.Process] = append(shown[r.Process], s)
	}
	next := uint64(1)
	for n := range uint32(len(a.procs)) {
		list := shown[n]
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(x, y shownActivity) int {
			return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.dur, x.dur))
		})
		next = nest(list, rows, next)
		a.k.l.profile.Tracks = append(a.k.l.profile.Tracks, &trace.Track{
			Name: "Activities", Group: "activities", Process: a.procs[n].trace,
			Slices: a.slices(tree, list),
		})
	}
}

// nest gives ids to activities in order of start, outer ones first.
func nest(list []shownActivity, rows []activity.Row, next uint64) uint64 {
	type open struct {
		row int
		end int64
	}
	stacks := map[uint64][]open{} // by id: what is open, outermost first
	at := map[int]int{}           // row -> index in list
	for i := range list {
		s := &list[i]
		at[s.row] = i
		if p, ok := at[rows[s.row].Parent]; ok && !s.instant {
			parent := &list[p]
			st := stacks[parent.id]
			for len(st) > 0 && st[len(st)-1].end <= s.start && st[len(st)-1].row != parent.row {
				st = st[:len(st)-1]
			}
			stacks[parent.id] = st
			if len(st) > 0 && st[len(st)-1].row == parent.row && s.start+s.dur <= parent.start+parent.dur {
				s.id = parent.id
				stacks[s.id] = append(st, open{s.row, s.start + s.dur})
				continue
			}
			s.flowIn = uint64(s.row) + 1
			if parent.flowOut == 0 {
				parent.flowOut = s.flowIn
			} else {
				s.flowIn = parent.flowOut
			}
		}
		s.id = next
		next++
		stacks[s.id] = []open{{s.row, s.start + s.dur}}
	}
	return next
}

// slices yields the activities of one process.
func (a *activities) slices(tree *activity.Tree, list []shownActivity) func(func(*trace.Slice) bool) {
	return func(yield func(*trace.Slice) bool) {
		var s trace.Slice
		var values []nettrace.Value
		for i := range list {
			x := &list[i]
			r := &tree.Rows[x.row]
			args := s.Args[:0]
			s = trace.Slice{
				Start: x.start, Dur: x.dur, Open: x.open, Instant: x.instant, Name: r.Name, Category: r.Provider,
				ID: x.id, FlowIn: x.flowIn, FlowOut: x.flowOut,
			}
			if p, ok := tree.Path(r); ok {
				args = append(args, trace.Arg{Key: "path", Value: p.String()})
			} else if !r.ID.IsZero() && r.Span == nil {
				args = append(args, trace.Arg{Key: "activity", Value: r.ID.String()})
			}
			if r.HasStart {
				args = append(args, trace.Arg{Key: "thread", Value: int64(r.StartThread)})
			}
			if r.HasStop && r.StopThread != 0 && r.StopThread != r.StartThread {
				args = append(args, trace.Arg{Key: "ended on thread", Value: int64(r.StopThread)})
			}
			if r.Status != activity.OK {
				args = append(args, trace.Arg{Key: "status", Value: r.Status.String()})
			}
			if r.Guess {
				args = append(args, trace.Arg{Key: "end is a guess", Value: true})
			}
			if r.Span != nil {
				args = append(args, trace.Arg{Key: "trace", Value: r.Span.TraceID}, trace.Arg{Key: "span", Value: r.Span.SpanID})
				args = append(args, a.spans[r.Span.TraceID+r.Span.SpanID]...)
			} else if it, ok := a.starts[startKey{r.Start, r.StartThread, r.Process, r.Provider}]; ok && r.HasStart {
				args, values = a.k.details(args, values, it.meta, it.version, it.payload)
			}
			s.Args = args
			if !yield(&s) {
				return
			}
		}
	}
}
