// Package events tells what the events of a nettrace say without samples: as a list, one line each
// (Write); as the values of EventCounters and Meters (ReadCounters); and as reports on collections,
// compilation, locks and the thread pool (ReadRuntime). It also reads the block of performance
// counters that a .NET Framework process keeps in shared memory (ParseBlocks).
//
// Lines of a list are built in one buffer that is used again; what all events of one type share
// is prepared once. An event costs no allocation.
package events

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Formats are the names of the forms of a list, the first one being the default.
var Formats = []string{"ndjson", "text"}

// Options of Write. The zero value writes every event as ndjson.
type Options struct {
	Format string            // one of Formats; empty is the first
	Select profile.Selection // by all but Frame, CPUOnly, Names and Hosts
	Limit  int64             // stop after so many events; 0: no limit
	// Activities are wanted beside those of Select; nil: none is.
	Activities *activity.IDSet

	// Width is that of the screen: longer lines of text are cut. 0: none are.
	Width int
	// Color marks parts of the text for a terminal.
	Color bool

	// Processes tells the names of processes; it is asked once at most, if Select
	// names one. Nil: none has a name.
	Processes func() map[int]string
	// Stack returns the stack of the n-th event of the trace, counted from 1, 0 if it has none, and
	// Names the full names of a stack, root first; a line then tells them. Nil: stacks are not
	// told.
	Stack func(n int64) profile.StackID
	Names func(stack profile.StackID) []string
	// Warn is told of each defect of the file that was skipped.
	Warn func(*nettrace.FormatError)
}

// A Result tells what Write did.
type Result struct {
	Header  nettrace.Header
	Stats   nettrace.Stats // of what was read, which may be more
	Lost    int64          // events that the recorder lost
	Events  int64          // read
	Written int64
	// Partial is set where reading ended early since nothing more was wanted.
	Partial bool
}

// flushAt is what is written at once.
const flushAt = 256 << 10

// Write writes the events to w in the order of their times. Damage of the file is told
// to o.Warn, the last one being what ended the file; an error means that nothing could
// be read or w failed.
func Write(ctx context.Context, open input.Opener, w io.Writer, o *Options) (*Result, error) {
	if o == nil {
		o = &Options{}
	}
	f, err := newFilter(o)
	if err != nil {
		return nil, err
	}
	l := &lister{o: o, w: w, liner: liner{filter: f, catalog: catalog{filter: f}}}
	consumer := input.Consumer(l)
	if o.Format != "text" && o.Stack == nil {
		consumer = newBeside(l)
	}
	r, err := input.Read(ctx, open, o.Warn, consumer)
	if r == nil {
		return nil, err
	}
	if err == nil {
		_, err = w.Write(l.buf)
	}
	l.res.Stats = r.Stats()
	if !l.res.Partial {
		l.res.Lost = int64(l.res.Stats.Lost)
	}
	return &l.res, err
}

type lister struct {
	liner
	o    *Options
	w    io.Writer
	text textForm
	buf  []byte
	res  Result

	frames map[profile.StackID][]byte // what is told of stacks: most come again soon
	told   int                        // bytes of these
}

// A liner makes the lines of events, one by one.
type liner struct {
	r       *nettrace.Reader
	filter  *filter
	catalog catalog
	paths   pathNames
	event   nettrace.Event // of a batch
	values  []nettrace.Value
	names   map[int]string // of processes, if the filter needs them
}

// Begin implements input.Consumer.
func (l *lister) Begin(r *nettrace.Reader) {
	l.r = r
	l.res.Header = *r.Header()
	l.text.init(l.o, r.Header())
	if slices.ContainsFunc(l.o.Select.Processes, isName) && l.o.Processes != nil {
		l.names = l.o.Processes()
	}
}

// Event implements input.Consumer.
func (l *lister) Event(ev *nettrace.Event) error {
	l.res.Events++
	ns := l.r.Nanos(ev.Time)
	k, over := l.kindOf(ev, ns)
	switch {
	case over:
		return l.enough(ev)
	case k == nil:
		return nil
	case l.o.Format == "text":
		l.buf = l.appendFrames(l.appendText(l.buf, ev, k, ns), appendTextFrames)
	default:
		l.buf = append(l.appendFrames(l.appendJSON(l.buf, ev, k, ns), appendJSONFrames), lineEnd...)
	}
	if len(l.buf) >= flushAt {
		if _, err := l.w.Write(l.buf); err != nil {
			return err
		}
		l.buf = l.buf[:0]
	}
	if l.res.Written++; l.res.Written == l.o.Limit {
		return l.enough(ev)
	}
	return nil
}

// enough ends the list: what follows ev, which may have been read already, does not count.
func (l *lister) enough(ev *nettrace.Event) error {
	l.res.Partial = true
	for i := range ev.Losses() {
		l.res.Lost += int64(ev.Losses()[i].Count)
	}
	return input.ErrStop
}

// End implements input.Consumer.
func (l *lister) End() {}

// isName reports whether a pattern may be that of a name.
func isName(pattern string) bool {
	_, err := strconv.ParseInt(pattern, 0, 64)
	return err != nil
}

// kindOf returns the kind of an event that is wanted, else nil. over is set behind the time that is.
func (l *liner) kindOf(ev *nettrace.Event, ns int64) (wanted *kind, over bool) {
	l.paths.meet(ev)
	sel := &l.filter.s
	if sel.To != 0 && ns >= sel.To {
		return nil, !ev.Late
	}
	if sel.From != 0 && ns < sel.From {
		return nil, false
	}
	if k := l.catalog.of(ev); k.wanted && l.wants(ev) {
		return k, false
	}
	return nil, false
}

// wants decides what the type of the event does not.
func (l *liner) wants(ev *nettrace.Event) bool {
	sel := &l.filter.s
	name := ""
	if ev.Thread != nil {
		name = ev.Thread.Name
	}
	return text.List(sel.Threads).MatchID(int64(ev.ThreadID), name) &&
		text.List(sel.Processes).MatchID(int64(ev.ProcessID), l.names[ev.ProcessID]) &&
		l.filter.wantsActivity(ev, &l.paths)
}

const lineEnd = "}\n"

// appendJSON appends the line of one event but for its frames and its end.
func (l *liner) appendJSON(b []byte, ev *nettrace.Event, k *kind, ns int64) []byte {
	b = text.AppendMillis(append(b, `{"ms":`...), ns)
	if ev.ProcessID != 0 || ev.Thread != nil {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(ev.ProcessID), 10)
	}
	b = strconv.AppendUint(append(b, `,"tid":`...), ev.ThreadID, 10)
	if ev.Processor >= 0 {
		b = strconv.AppendInt(append(b, `,"cpu":`...), int64(ev.Processor), 10)
	}
	b = append(b, k.head...)
	if !ev.ActivityID.IsZero() {
		b = ev.ActivityID.AppendTo(append(b, `,"activity":"`...))
		b = append(b, '"')
		b = append(b, `,"path":"`...)
		n := len(b)
		if b = l.paths.append(b, ev.ActivityID, ev.ProcessID); len(b) > n {
			b = append(b, '"')
		} else {
			b = b[:n-len(`,"path":"`)]
		}
	}
	if !ev.RelatedActivityID.IsZero() {
		b = ev.RelatedActivityID.AppendTo(append(b, `,"related":"`...))
		b = append(b, '"')
	}
	if ev.TraceID != [16]byte{} {
		b = appendHex(append(b, `,"trace_id":"`...), ev.TraceID[:])
		b = append(b, '"')
	}
	if ev.SpanID != 0 {
		b = append(b, `,"span_id":"`...)
		for i := 60; i >= 0; i -= 4 {
			b = append(b, hexDigits[ev.SpanID>>i&15])
		}
		b = append(b, '"')
	}
	if len(ev.Labels) > 0 {
		b = appendLabels(b, ev.Labels)
	}
	b = l.appendPayload(append(b, `,"payload":{`...), ev, k)
	if ev.Lost > 0 {
		b = strconv.AppendUint(append(b, `,"lost_before":`...), uint64(ev.Lost), 10)
	}
	return b
}

// mostTold is how many bytes of what is told of stacks are remembered.
const mostTold = 16 << 20

// appendFrames appends what is told of the stack of the event at hand: tell appends that of names,
// root first.
func (l *lister) appendFrames(b []byte, tell func(b []byte, names []string) []byte) []byte {
	if l.o.Stack == nil {
		return b
	}
	id := l.o.Stack(l.res.Events)
	if id == 0 {
		return b
	}
	told, ok := l.frames[id]
	if !ok {
		if l.frames == nil || l.told > mostTold {
			l.frames, l.told = map[profile.StackID][]byte{}, 0
		}
		told = tell(nil, l.o.Names(id))
		l.frames[id] = told
		l.told += cap(told)
	}
	return append(b, told...)
}

func appendJSONFrames(b []byte, names []string) []byte {
	b = append(b, `,"frames":[`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = text.AppendJSON(b, name)
	}
	return append(b, ']')
}

// appendTextFrames appends a line for each frame, the innermost first.
func appendTextFrames(b []byte, names []string) []byte {
	for _, name := range slices.Backward(names) {
		b = append(b, "      at "...)
		b = append(b, text.Line(name)...)
		b = append(b, '\n')
	}
	return b
}

// appendPayload appends the fields and the closing brace; what has no field list
// follows as hexadecimal.
func (l *liner) appendPayload(b []byte, ev *nettrace.Event, k *kind) []byte {
	if k.layout == nil {
		b = append(b, '}')
		if len(ev.Payload) > 0 {
			b = appendHex(append(b, `,"raw":"`...), ev.Payload)
			b = append(b, '"')
		}
		return b
	}
	var err error
	l.values, err = ev.AppendValues(l.values[:0])
	at := len(b)
	for i := range l.values {
		v := &l.values[i]
		if v.Kind() == nettrace.KindNone || i >= len(k.keys) {
			continue
		}
		if len(b) > at {
			b = append(b, ',')
		}
		b = append(b, k.keys[i]...)
		if k.quoted[i] {
			b = append(appendValue(append(b, '"'), v), '"')
		} else {
			b = appendValue(b, v)
		}
	}
	b = append(b, '}')
	if err != nil {
		b = text.AppendJSON(append(b, `,"error":`...), err.Error())
	} else if rest := ev.Rest(l.values); len(rest) > 0 {
		b = appendHex(append(b, `,"rest":"`...), rest)
		b = append(b, '"')
	}
	return b
}

// appendLabels appends labels, each key once: most readers of JSON keep but the last value of one
// that stands there again.
func appendLabels(b []byte, labels []nettrace.Label) []byte {
	b = append(b, `,"labels":{`...)
	if repeatKeys(labels) {
		return append(appendLists(b, labels), '}')
	}
	for i := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(text.AppendJSON(b, labels[i].Key), ':')
		b = appendLabel(b, &labels[i])
	}
	return append(b, '}')
}

// repeatKeys reports whether several of the labels have one key.
func repeatKeys(labels []nettrace.Label) bool {
	if len(labels) < 16 { // as nearly always: no map is needed
		for i := range labels {
			if slices.ContainsFunc(labels[:i], func(l nettrace.Label) bool { return l.Key == labels[i].Key }) {
				return true
			}
		}
		return false
	}
	keys := make(map[string]bool, len(labels))
	for i := range labels {
		keys[labels[i].Key] = true
	}
	return len(keys) < len(labels)
}

// appendLists appends labels of which some have one key, each of these as a list.
func appendLists(b []byte, labels []nettrace.Label) []byte {
	of := make(map[string][]*nettrace.Label, len(labels))
	for i := range labels {
		of[labels[i].Key] = append(of[labels[i].Key], &labels[i])
	}
	for i := range labels {
		list := of[labels[i].Key]
		if list[0] != &labels[i] {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(text.AppendJSON(b, labels[i].Key), ':')
		if len(list) == 1 {
			b = appendLabel(b, list[0])
			continue
		}
		b = append(b, '[')
		for _, l := range list {
			b = append(appendLabel(b, l), ',')
		}
		b[len(b)-1] = ']'
	}
	return b
}

func appendLabel(b []byte, l *nettrace.Label) []byte {
	if l.IsNumeric {
		return strconv.AppendInt(b, l.Number, 10)
	}
	return text.AppendJSON(b, l.Value)
}
