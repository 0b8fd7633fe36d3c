package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// activities collects start and stop events of all EventSources and ActivitySources. The tree
// of them is built beside the reading.
type activities struct {
	k        *tracker
	builder  *activity.Builder
	starts   []uint32   // by row: 1 + where payloads have that of its start event; 0: nowhere
	payloads payloadLog // what rows do not hold
	metas    []*nettrace.Metadata
	metaOf   map[*nettrace.Metadata]uint32
	spans    map[string][]profile.Arg // what a bridged activity told, by trace and span id
	procs    []*process               // by activity.Event.Process
	numbers  map[*process]uint32      // the reverse
	line     *relay.Line[activityBatch]

	tracks     []*profile.Track // see arrange
	withoutIDs []string         // event sources; see profile.Meta
}

// activityBatchSize is how many events go to the tree at once.
const activityBatchSize = 512

// An activityBatch is events on their way to the tree.
type activityBatch struct {
	events   []activityEvent
	payloads []byte
}

// An activityEvent is an event of an EventSource with what is needed of it as it was recorded.
type activityEvent struct {
	activity.Event
	meta     *nettrace.Metadata
	version  int
	from, to int // its payload in activityBatch.payloads
}

func newActivities(k *tracker) *activities {
	a := &activities{
		k:       k,
		builder: activity.NewBuilder(&activity.Options{PairByThread: k.l.o.PairByThread}),
		metaOf:  map[*nettrace.Metadata]uint32{},
		spans:   map[string][]profile.Arg{},
		numbers: map[*process]uint32{},
	}
	a.line = relay.New(nil, a.take)
	return a
}

// keep stores what the start event of a row told.
func (a *activities) keep(ev *nettrace.Event, row int) {
	m, ok := a.metaOf[ev.Metadata]
	if !ok {
		m = uint32(len(a.metas))
		a.metas = append(a.metas, ev.Metadata)
		a.metaOf[ev.Metadata] = m
	}
	if at, ok := a.payloads.add(m, ev.Version, ev.Payload); ok {
		for row >= len(a.starts) {
			a.starts = append(a.starts, 0)
		}
		a.starts[row] = 1 + at
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
		n = uint32(len(a.procs))
		a.numbers[t.proc] = n
		a.procs = append(a.procs, t.proc)
	}
	b := a.line.Batch()
	e := activityEvent{Event: activity.Event{
		Time: now, Thread: uint64(t.trace.TID), Process: n, Provider: ev.Metadata.Provider, Name: ev.EventName(),
		Opcode: op, ID: activity.ID(ev.ActivityID), Related: activity.ID(ev.RelatedActivityID),
	}, meta: ev.Metadata, version: ev.Version, from: len(b.payloads)}
	if op != activity.Info {
		b.payloads = append(b.payloads, ev.Payload...)
	}
	e.to = len(b.payloads)
	if b.events = append(b.events, e); len(b.events) == activityBatchSize {
		_ = a.line.Send() // take does not fail
	}
	return ofActivity(ev)
}

// take adds a batch to the tree.
func (a *activities) take(b *activityBatch) error {
	for i := range b.events {
		e := &b.events[i]
		ev := nettrace.Event{Metadata: e.meta, Version: e.version, Payload: b.payloads[e.from:e.to]}
		if e.Opcode != activity.Info && e.Provider == activity.BridgeProvider && strings.Contains(e.Name, "Activity") {
			e.Span = a.bridge(&ev, e.Opcode == activity.Stop)
		}
		if row := a.builder.Add(&e.Event); row >= 0 && e.Span == nil {
			a.keep(&ev, row)
		}
	}
	b.events, b.payloads = b.events[:0], b.payloads[:0]
	return nil
}

// close ends what builds the tree.
func (a *activities) close() {
	_ = a.line.Send()
	_ = a.line.Close()
}

// ofActivity reports whether an event of an EventSource starts or stops an activity.
func ofActivity(ev *nettrace.Event) bool {
	if op := activity.Opcode(ev.Opcode); op != activity.Start && op != activity.Stop {
		return false
	}
	name := ev.EventName()
	return strings.HasSuffix(name, "Start") || strings.HasSuffix(name, "Stop") ||
		ev.Metadata.Provider == activity.BridgeProvider && strings.Contains(name, "Activity")
}

// bridge reads ActivityStart and ActivityStop of the DiagnosticSource bridge
// (activity-ids.md section 7.4): a source, a name, and an array of keys and values.
func (a *activities) bridge(ev *nettrace.Event, stop bool) *activity.Span {
	c := ev.Cursor()
	str := func() string { return c.UTF16().String() }
	s := &activity.Span{Source: str(), Name: str()}
	if c.Len() < 2 {
		return s
	}
	var args []profile.Arg
	n := int(c.U16())
	for i := 0; i < n && c.Len() > 0; i++ {
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
			args = appendDetail(args, key, value)
		case "TagObjects":
			if !strings.HasPrefix(value, "System.Collections.") {
				args = appendDetail(args, "Tags", value)
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
	row             int32
	id              uint32
	flowIn, flowOut uint32
}

// extent tells where a row is drawn. One without a start is an instant: nobody knows
// when it began, perhaps its start was lost.
func extent(tree *activity.Rows, row int32, end int64) (start, dur int64, open, instant bool) {
	start, stop, hasStart, hasStop, _ := tree.Extent(int(row))
	switch {
	case !hasStart:
		return stop, 0, false, true
	case hasStop:
		return start, max(0, stop-start), false, false
	}
	return start, max(0, end-start), true, false
}

// arrange makes one track for each process. Activities cross threads and overlap, so
// each is an async operation; one that lies inside its parent shares its id, which
// viewers draw as nested. Where it does not fit, a flow leads to it.
//
// It needs nothing that loader.finish does, and runs beside it.
func (a *activities) arrange(end int64) {
	a.close()
	tree := a.builder.FinishRows()
	tree.Lean()
	a.builder = nil
	if !tree.HasIDs {
		for _, c := range tree.WithoutID {
			if !slices.Contains(a.withoutIDs, c.Provider) {
				a.withoutIDs = append(a.withoutIDs, c.Provider)
			}
		}
	}
	counts := make([]int, len(a.procs))
	for i := range tree.Len() {
		_, _, _, _, process := tree.Extent(i)
		counts[process]++
	}
	shown := make([][]shownActivity, len(a.procs))
	for i, n := range counts {
		shown[i] = make([]shownActivity, 0, n)
	}
	for i := range tree.Len() {
		_, _, _, _, process := tree.Extent(i)
		shown[process] = append(shown[process], shownActivity{row: int32(i)})
	}
	n := nester{rows: tree, end: end, next: 1, at: make([]int32, tree.Len()), below: make([]int32, tree.Len())}
	for i, list := range shown {
		if len(list) == 0 {
			continue
		}
		outerFirst := func(x, y shownActivity) int {
			xs, xd, _, _ := n.extent(x.row)
			ys, yd, _, _ := n.extent(y.row)
			return cmp.Or(cmp.Compare(xs, ys), cmp.Compare(yd, xd))
		}
		if !slices.IsSortedFunc(list, outerFirst) { // rows are in the order in which they began, as a rule
			slices.SortStableFunc(list, outerFirst)
		}
		n.nest(list)
		a.tracks = append(a.tracks, &profile.Track{
			Name: "Activities", Group: "activities", Process: a.procs[i].trace,
			Slices: a.slices(tree, list, end),
		})
	}
}

// A nester gives ids to activities.
type nester struct {
	rows  *activity.Rows
	end   int64
	next  uint32
	at    []int32 // row -> place in list + 1, 0: not yet
	top   []int32 // by id: 1 + the innermost row that is open; 0: none
	below []int32 // by row: 1 + the one around it, of the same id
}

func (n *nester) extent(row int32) (start, dur int64, open, instant bool) {
	return extent(n.rows, row, n.end)
}

// nest takes the activities of a process in order of start, outer ones first.
func (n *nester) nest(list []shownActivity) {
	for i := range list {
		s := &list[i]
		n.at[s.row] = int32(i) + 1
		start, dur, _, instant := n.extent(s.row)
		if p := int32(n.rows.Parent(int(s.row))); p >= 0 && n.at[p] > 0 && !instant && n.process(p) == n.process(s.row) {
			parent := &list[n.at[p]-1]
			top := &n.top[parent.id]
			for *top > 0 && *top-1 != parent.row {
				if ts, td, _, _ := n.extent(*top - 1); ts+td > start {
					break
				}
				*top = n.below[*top-1]
			}
			ps, pd, _, _ := n.extent(parent.row)
			if *top == parent.row+1 && start+dur <= ps+pd {
				s.id = parent.id
				n.below[s.row], *top = *top, s.row+1
				continue
			}
			if parent.flowOut == 0 {
				parent.flowOut = uint32(s.row) + 1
			}
			s.flowIn = parent.flowOut
		}
		s.id = n.next
		n.next++
		for len(n.top) <= int(s.id) {
			n.top = append(n.top, 0)
		}
		n.top[s.id] = s.row + 1
	}
}

func (n *nester) process(row int32) uint32 {
	_, _, _, _, process := n.rows.Extent(int(row))
	return process
}

// slices yields the activities of one process.
func (a *activities) slices(tree *activity.Rows, list []shownActivity, end int64) func(func(*profile.Slice) bool) {
	return func(yield func(*profile.Slice) bool) {
		var s profile.Slice
		var values []nettrace.Value
		var payload []byte
		r := &activity.Row{}
		for i := range list {
			x := &list[i]
			tree.Row(int(x.row), r)
			args := s.Args[:0]
			s = profile.Slice{Name: cmp.Or(r.Name, "activity"), Category: cmp.Or(r.Provider, "activities"), ID: uint64(x.id), FlowIn: uint64(x.flowIn), FlowOut: uint64(x.flowOut)}
			s.Start, s.Dur, s.Open, s.Instant = extent(tree, x.row, end)
			if p, ok := tree.Path(r); ok {
				args = append(args, profile.Arg{Key: "path", Value: p.String()})
			} else if !r.ID.IsZero() && r.Span == nil {
				args = append(args, profile.Arg{Key: "activity", Value: r.ID.String()})
			}
			if r.HasStart {
				args = append(args, profile.Arg{Key: "thread", Value: int64(r.StartThread)})
			}
			if r.HasStop && r.StopThread != 0 && r.StopThread != r.StartThread {
				args = append(args, profile.Arg{Key: "ended on thread", Value: int64(r.StopThread)})
			}
			if r.Status != activity.OK {
				args = append(args, profile.Arg{Key: "status", Value: r.Status.String()})
			}
			if r.Guess {
				args = append(args, profile.Arg{Key: "end is a guess", Value: true})
			}
			if r.Span != nil {
				args = append(args, profile.Arg{Key: "trace", Value: r.Span.TraceID}, profile.Arg{Key: "span", Value: r.Span.SpanID})
				for _, d := range a.spans[r.Span.TraceID+r.Span.SpanID] {
					args = appendDetail(args, d.Key, d.Value)
				}
			} else if int(x.row) < len(a.starts) && a.starts[x.row] > 0 {
				meta, version := uint32(0), 0
				meta, version, payload = a.payloads.read(a.starts[x.row]-1, payload[:0])
				args, values = a.k.details(args, values, a.metas[meta], version, payload)
			}
			s.Args = args
			if !yield(&s) {
				return
			}
		}
	}
}
