package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// activities collects start and stop events of all EventSources and ActivitySources. The tree
// of them is built beside the reading. What does not fit into memory is on disk.
type activities struct {
	k        *tracker
	builder  *activity.Builder
	drawn    spool.Pages[drawnPage]   // by row
	payloads payloadLog               // what rows do not hold
	spans    map[string][]profile.Arg // what a bridged activity told, by what spanOf returns
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
		builder: activity.NewBuilder(&activity.Options{PairByThread: k.l.o.PairByThread, Spool: k.aside}),
		drawn:   spool.PagesIn[drawnPage](k.aside, drawnMemory), payloads: payloadsIn(k.aside),
		spans:   map[string][]profile.Arg{},
		numbers: map[*process]uint32{},
	}
	a.line = relay.New(nil, a.take)
	return a
}

// keep stores what the start event of a row told.
func (a *activities) keep(ev *nettrace.Event, row int) {
	a.at(row).payload = 1 + a.payloads.add(ev)
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
		Time: now, Thread: uint64(t.trace.TID), Process: n, Provider: ev.Metadata.Provider, Name: cmp.Or(ev.Metadata.Name, ev.EventName()),
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
		if e.ReadPayload(ev.Payload); e.Span != nil {
			a.details(&ev, e.Span, e.Opcode == activity.Stop)
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
	op := activity.Opcode(ev.Opcode)
	return op == activity.Start || op == activity.Stop
}

// details keeps what an event of the DiagnosticSource bridge (activity-ids.md section 7.4) tells of its
// span beside that: source, name, and an array of keys and values.
func (a *activities) details(ev *nettrace.Event, s *activity.Span, stop bool) {
	c := ev.Cursor()
	str := func() string { return c.UTF16().String() }
	str()
	str()
	if c.Len() < 2 {
		return
	}
	var args []profile.Arg
	n := int(c.U16())
	for i := 0; i < n && c.Len() > 0; i++ {
		key, value := str(), str()
		switch key {
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
	if key := spanOf(s); key != "" && (stop || a.spans[key] == nil) {
		a.spans[key] = args // the Stop knows more
	}
}

// spanOf returns what tells a span apart from others; empty if nobody asked for it.
func spanOf(s *activity.Span) string {
	if s.SpanID == "" {
		return s.ID
	}
	return s.TraceID + s.SpanID
}

// A drawn is what is kept of a row of the tree beside it. Others are 1 + their rows.
type drawn struct {
	payload         int64 // 1 + where payloads have that of its start event; 0: nowhere
	start, dur      int64
	parent          int32  // as next, in its process; 0: none, or it is an instant, which lies in nothing
	next            int32  // the one that is drawn behind it in its process; 0: none
	id              uint32 // that it is drawn with; 0: not known yet
	flowIn, flowOut uint32
	ties            int32 // how many have flowOut as their flowIn
	owner           int32 // the first one with the id
	below           int32 // the one around it, of the same id
	top             int32 // of an owner: the innermost one that is open; 0: none
}

const drawnAtOnce = 1 << 10

// A drawnPage is so many of them side by side.
type drawnPage [drawnAtOnce]drawn

const drawnMemory = 4 << 20

// at returns what is kept of a row, to be changed before it is asked for a row behind all others.
func (a *activities) at(row int) *drawn {
	for row/drawnAtOnce >= a.drawn.Len() {
		a.drawn.Add()
	}
	return &a.drawn.Mut(row / drawnAtOnce)[row%drawnAtOnce]
}

// extent tells where a row is drawn. One without a start is an instant: nobody knows
// when it began, perhaps its start was lost.
func extent(r *activity.Row, end int64) (start, dur int64, open, instant bool) {
	switch {
	case !r.HasStart:
		return r.Stop, 0, false, true
	case r.HasStop:
		return r.Start, max(0, r.Stop-r.Start), false, false
	}
	return r.Start, max(0, end-r.Start), true, false
}

// arrange makes one track for each process. Activities cross threads and overlap, so
// each is an async operation; one that lies inside its parent shares its id, which
// viewers draw as nested. Where it does not fit, a flow leads to it.
//
// It needs nothing that loader.finish does, and runs beside it.
func (a *activities) arrange(end int64) {
	a.close()
	tree := a.builder.FinishRows()
	a.builder = nil
	if !tree.HasIDs {
		for _, c := range tree.WithoutID {
			if !slices.Contains(a.withoutIDs, c.Provider) {
				a.withoutIDs = append(a.withoutIDs, c.Provider)
			}
		}
	}
	n := nester{drawn: &a.drawn}
	for i, l := range n.lists(tree, len(a.procs), end) {
		if l.first == 0 {
			continue
		}
		n.nest(l.first)
		a.tracks = append(a.tracks, &profile.Track{
			Name: "Activities", Group: "activities", Process: a.procs[i].trace,
			Slices: a.slices(tree, l.first, end), Err: a.k.aside.Err,
		})
	}
	a.drawn.Done()
	a.payloads.log.Done()
}

// A nester puts activities in order and gives them ids.
type nester struct {
	drawn *spool.Pages[drawnPage]
	ids   uint32 // given so far
}

// at returns what is kept of a row, to be changed before trim is called.
func (n *nester) at(row int32) *drawn { return &n.drawn.Mut(int(row / drawnAtOnce))[row%drawnAtOnce] }

// trim puts aside what is too much, every now and then.
func (n *nester) trim(i int) {
	if i%drawnAtOnce == 0 {
		n.drawn.Trim()
	}
}

// A rowList is the activities of a process in order of start, outer ones first.
type rowList struct {
	first, last int32 // 1 + row; 0: none
	unsorted    bool  // as they come
	torn        bool  // they go back in time, not only in depth
}

// lists returns those of so many processes.
func (n *nester) lists(tree *activity.Rows, processes int, end int64) []rowList {
	lists := make([]rowList, processes)
	for i, r := range tree.All() {
		n.trim(i)
		for i/drawnAtOnce >= n.drawn.Len() {
			n.drawn.Add()
		}
		x, instant := n.at(int32(i)), false
		x.start, x.dur, _, instant = extent(r, end)
		if p := int32(r.Parent); p >= 0 && !instant && tree.Process(int(p)) == r.Process {
			x.parent = 1 + p
		}
		l := &lists[r.Process]
		if l.first == 0 {
			l.first = 1 + int32(i)
		} else {
			last := n.at(l.last - 1)
			last.next = 1 + int32(i)
			l.unsorted = l.unsorted || outerFirst(last, x) > 0
			l.torn = l.torn || x.start < last.start
		}
		l.last = 1 + int32(i)
	}
	for i := range lists {
		if lists[i].unsorted {
			n.sort(&lists[i])
		}
	}
	return lists
}

func outerFirst(x, y *drawn) int {
	return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.dur, x.dur))
}

// sort puts a list in order: what begins at one time, or all of it if it is torn, as in damaged files only.
func (n *nester) sort(l *rowList) {
	type placed struct {
		drawn
		row int32 // 1 + row
	}
	var group []placed
	before := int32(0) // the row before the group
	link := func(row int32) {
		if before == 0 {
			l.first = row
		} else {
			n.at(before - 1).next = row
		}
		before = row
	}
	flush := func() {
		text.SortRows(group, func(x, y *placed) int { return outerFirst(&x.drawn, &y.drawn) })
		for i := range group {
			link(group[i].row)
		}
		group = group[:0]
	}
	for row, at := l.first, 0; row != 0; at++ {
		n.trim(at)
		x := placed{*n.at(row - 1), row}
		if len(group) > 0 && x.start > group[0].start && !l.torn {
			flush()
		}
		group = append(group, x)
		row = x.next
	}
	flush()
	link(0)
}

// nest takes the activities of a process, of which that is the first.
func (n *nester) nest(first int32) {
	for row, at := first, 0; row != 0; at++ {
		n.trim(at)
		s := n.at(row - 1)
		n.place(row, s)
		row = s.next
	}
}

// place gives a row its id.
func (n *nester) place(row int32, s *drawn) {
	if s.parent > 0 {
		if parent := n.at(s.parent - 1); parent.id > 0 {
			owner := n.at(parent.owner - 1)
			for owner.top > 0 && owner.top != s.parent {
				top := n.at(owner.top - 1)
				if top.start+top.dur > s.start {
					break
				}
				owner.top = top.below
			}
			if owner.top == s.parent && s.start+s.dur <= parent.start+parent.dur {
				s.id, s.owner = parent.id, parent.owner
				s.below, owner.top = owner.top, row
				return
			}
			if parent.flowOut == 0 {
				parent.flowOut = uint32(row)
			}
			s.flowIn = parent.flowOut
			parent.ties++
		}
	}
	n.ids++
	s.id, s.owner, s.top = n.ids, row, row
}

// slices yields the activities of one process, of which that is the first.
func (a *activities) slices(tree *activity.Rows, first int32, end int64) func(func(*profile.Slice) bool) {
	return func(yield func(*profile.Slice) bool) {
		var s profile.Slice
		var values []nettrace.Value
		payloads := payloadReader{log: &a.payloads}
		r, rows := &activity.Row{}, tree.Reader()
		var room, page *drawnPage
		at := -1 // of page
		for row := first; row != 0; {
			if i := int(row-1) / drawnAtOnce; i != at {
				if room == nil {
					room = new(drawnPage)
				}
				page, at = a.drawn.View(i, room), i
			}
			x := &page[(row-1)%drawnAtOnce]
			rows.Row(int(row-1), r)
			args := s.Args[:0]
			s = profile.Slice{Name: cmp.Or(r.Name, "activity"), Category: cmp.Or(r.Provider, "activities"), ID: uint64(x.id), FlowIn: uint64(x.flowIn), FlowOut: uint64(x.flowOut), Ties: int(x.ties)}
			s.Start, s.Dur, s.Open, s.Instant = extent(r, end)
			if p, ok := tree.Path(r); ok {
				args = append(args, profile.Arg{Key: "path", Value: "//" + p.String()}) // as --activity takes it
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
				if r.Span.SpanID != "" {
					args = append(args, profile.Arg{Key: "trace", Value: r.Span.TraceID}, profile.Arg{Key: "span", Value: r.Span.SpanID})
				} else if r.Span.ID != "" {
					args = append(args, profile.Arg{Key: "span", Value: r.Span.ID})
				}
				details := a.spans[spanOf(r.Span)]
				for _, d := range details {
					args = appendDetail(args, d.Key, d.Value)
				}
				if len(details) == 0 && r.Span.DisplayName != "" && r.Span.DisplayName != r.Span.Name { // none has an id
					args = appendDetail(args, "DisplayName", r.Span.DisplayName)
				}
			} else if x.payload > 0 {
				if ev := payloads.read(x.payload - 1); ev != nil {
					args, values = a.k.args(args, values, ev.Metadata, ev.Version, ev.Payload)
				}
			}
			s.Args = args
			if !yield(&s) {
				return
			}
			row = x.next
		}
	}
}
