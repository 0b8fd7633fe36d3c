package export

import (
	"container/heap"
	"encoding/json"
	"io"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracefix/tracefix/profile"
)

// Fields of Perfetto's trace_packet.proto and below.
const (
	tracePacket = 1

	packetClockSnapshot   = 6
	packetTimestamp       = 8
	packetSequenceID      = 10
	packetTrackEvent      = 11
	packetInternedData    = 12
	packetSequenceFlags   = 13
	packetDefaults        = 59
	packetTrackDescriptor = 60

	eventCategory   = 3
	eventAnnotation = 4
	eventType       = 9
	eventName       = 10
	eventTrack      = 11
	eventFlow       = 47

	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3

	stateCleared = 1
	stateNeeded  = 2

	clockRealtime = 1
	clockBoottime = 6
	// clockSequence is a clock of one packet sequence, whose timestamps we write as
	// differences: most are 0 then.
	clockSequence = 64
)

// perfettoDepth is how deep slices may nest. Perfetto drops what is deeper than 512,
// but takes its end for that of another slice. One level is for the off-CPU leaf.
const perfettoDepth = 510

// Perfetto writes Perfetto's protobuf form. Every thread is a packet sequence with its
// track as the default and with its own interned names; every track likewise. Slices
// of a track that overlap go to lanes of the same name, which Perfetto draws together. Of a
// weight other than time slices are as long as stacks weigh.
func Perfetto(w io.Writer, p *profile.Profile, o Options) error {
	p, _, err := o.weightAsTime(p)
	if err != nil {
		return err
	}
	x := &perfettoWriter{
		buffer: newBuffer(w), p: p, o: &o, ids: newNumbers(p), skip: p.Table.Synthetic(),
		methods:   make([]uint64, p.Table.Methods()),
		epochs:    make([]uint32, p.Table.Methods()),
		processes: map[*profile.Process]uint64{},
		threads:   map[*profile.Thread]uint64{},
		ties:      map[uint64]tie{},
	}
	tracks := o.tracks(p)
	x.clocks(p.Meta.Start)
	for _, pr := range p.Processes {
		x.ids.pid(pr)
	}
	for _, t := range tracks {
		x.ids.pid(x.ids.owner(t))
	}
	for i, pr := range x.ids.processes {
		x.processes[pr] = x.newUUID()
		x.process(pr, i)
	}
	timing := p.Timing()
	sp := newSpanner(p.Table, x.skip)
	for _, th := range o.threads(p) {
		x.thread(th, timing, sp)
		if x.err != nil {
			return x.err
		}
	}
	if err := x.samples(o.threads(p), timing); err != nil {
		return err
	}
	for i, t := range tracks {
		x.track(t, i)
		if x.err != nil {
			return x.err
		}
	}
	return x.flush()
}

type perfettoWriter struct {
	*buffer
	p         *profile.Profile
	o         *Options
	ids       *numbers
	skip      []bool // by method
	processes map[*profile.Process]uint64
	threads   map[*profile.Thread]uint64 // tracks that were described
	uuid      uint64
	flows     uint64         // ids given to flows
	ties      map[uint64]tie // by profile.Slice.FlowOut

	// Of the sequence that is being written.
	sequence uint64
	last     int64 // time of its newest packet
	head     []byte
	end      []byte // a whole packet behind its timestamp that ends a slice
	epoch    uint32
	methods  []uint64 // iids, valid if epochs is epoch
	epochs   []uint32
	names    map[string]uint64 // iids of event names
	cats     map[string]uint64
	keys     map[string]uint64
	interned []byte // entries that the next packet brings

	event, msg, sub []byte
}

func (x *perfettoWriter) newUUID() uint64 {
	x.uuid++
	return x.uuid
}

// packet writes a packet whose content is the parts.
func (x *perfettoWriter) packet(parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := append(x.b, tracePacket<<3|byte(protowire.BytesType))
	b = protowire.AppendVarint(b, uint64(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	x.b = b
	x.flushed()
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), strings.ToValidUTF8(s, "\uFFFD"))
}

// number appends a varint field even if it is 0.
func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendClock(b []byte, id uint64, at int64, incremental bool) []byte {
	var c []byte
	c = appendNumber(c, 1, id)
	c = appendNumber(c, 2, uint64(at))
	if incremental {
		c = appendNumber(c, 3, 1)
	}
	return appendBytesField(b, 1, c)
}

// clocks says when time 0 was.
func (x *perfettoWriter) clocks(start time.Time) {
	clocks := appendClock(nil, clockBoottime, 0, false)
	if !start.IsZero() {
		clocks = appendClock(clocks, clockRealtime, start.UnixNano(), false)
	}
	clocks = appendNumber(clocks, 2, clockBoottime) // primary_trace_clock
	b := appendNumber(nil, packetSequenceID, x.newSequence())
	x.packet(b, appendBytesField(nil, packetClockSnapshot, clocks))
}

func (x *perfettoWriter) newSequence() uint64 {
	x.sequence++
	return x.sequence
}

// begin starts the sequence of a track.
func (x *perfettoWriter) begin(uuid uint64) {
	x.newSequence()
	x.epoch++
	x.last = 0
	x.names, x.cats, x.keys = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}

	defaults := appendBytesField(nil, 11, appendNumber(nil, 11, uuid)) // track_event_defaults.track_uuid
	defaults = appendNumber(defaults, 58, clockSequence)               // timestamp_clock_id
	clocks := appendClock(nil, clockBoottime, 0, false)
	clocks = appendClock(clocks, clockSequence, 0, true)
	b := appendNumber(nil, packetSequenceID, x.sequence)
	b = appendNumber(b, packetSequenceFlags, stateCleared)
	b = appendBytesField(b, packetDefaults, defaults)
	x.packet(appendBytesField(b, packetClockSnapshot, clocks))

	x.head = appendNumber(x.head[:0], packetSequenceID, x.sequence)
	x.head = appendNumber(x.head, packetSequenceFlags, stateNeeded)
	x.end = append(x.end[:0], x.head...)
	x.end = appendBytesField(x.end, packetTrackEvent, appendNumber(nil, eventType, sliceEnd))
}

func (x *perfettoWriter) descriptor(d []byte) {
	b := appendNumber(nil, packetSequenceID, 1)
	x.packet(appendBytesField(b, packetTrackDescriptor, d))
}

func (x *perfettoWriter) process(pr *profile.Process, rank int) {
	pd := appendNumber(nil, 1, uint64(x.ids.pid(pr)))
	if pr.CommandLine != "" {
		pd = appendText(pd, 2, pr.CommandLine)
	}
	pd = appendText(pd, 6, x.ids.title(pr))
	d := appendNumber(nil, 1, x.processes[pr])
	d = appendBytesField(d, 3, pd)
	d = appendNumber(d, 11, 3) // child_ordering: by rank
	d = appendNumber(d, 12, uint64(rank))
	x.descriptor(d)
}

// timestamp returns the field for a time; times of a sequence do not go back.
func (x *perfettoWriter) timestamp(b []byte, at int64) []byte {
	b = appendNumber(b, packetTimestamp, uint64(at-x.last))
	x.last = at
	return b
}

// write writes the event that is in x.event, behind what it needs interned.
func (x *perfettoWriter) write(at int64) {
	x.msg = append(x.timestamp(x.msg[:0], at), x.head...)
	if len(x.interned) > 0 {
		x.msg = appendBytesField(x.msg, packetInternedData, x.interned)
		x.interned = x.interned[:0]
	}
	x.packet(appendBytesField(x.msg, packetTrackEvent, x.event))
}

func (x *perfettoWriter) endSlice(at int64) {
	x.msg = x.timestamp(x.msg[:0], at)
	x.packet(x.msg, x.end)
}

// intern returns the iid of a text in one of the sequence's tables.
func (x *perfettoWriter) intern(table map[string]uint64, field protowire.Number, s string) uint64 {
	id, ok := table[s]
	if !ok {
		id = uint64(len(table) + 1)
		table[s] = id
		x.sub = appendText(appendNumber(x.sub[:0], 1, id), 2, s)
		x.interned = appendBytesField(x.interned, field, x.sub)
	}
	return id
}

const (
	internCategory = 1
	internName     = 2
	internKey      = 3
)

// named starts x.event.
func (x *perfettoWriter) named(kind uint64, name, cat string) {
	x.event = appendNumber(x.event[:0], eventType, kind)
	x.event = appendNumber(x.event, eventName, x.intern(x.names, internName, name))
	x.event = appendNumber(x.event, eventCategory, x.intern(x.cats, internCategory, cat))
}

// method starts x.event for a frame. Its two ids are looked up once per sequence.
func (x *perfettoWriter) method(m profile.MethodID) {
	if x.epochs[m] != x.epoch {
		x.epochs[m] = x.epoch
		me := x.p.Table.MethodAt(m)
		name := me.Name
		if name == "" {
			name = "?"
		}
		x.methods[m] = x.intern(x.names, internName, name)<<32 | x.intern(x.cats, internCategory, category(me))
	}
	ids := x.methods[m]
	x.event = append(x.event[:0], eventType<<3, sliceBegin, eventName<<3)
	x.event = protowire.AppendVarint(x.event, ids>>32)
	x.event = append(x.event, eventCategory<<3)
	x.event = protowire.AppendVarint(x.event, ids&math.MaxUint32)
}

// thread writes the spans of a thread's sampled stacks.
func (x *perfettoWriter) thread(th *profile.Thread, timing *profile.Timing, sp *spanner) {
	uuid := x.newUUID()
	x.threads[th] = uuid
	td := appendNumber(nil, 1, uint64(x.ids.pid(th.Owner())))
	td = appendNumber(td, 2, uint64(x.ids.tids[th]))
	td = appendText(td, 5, th.Title())
	d := appendNumber(nil, 1, uuid)
	d = appendBytesField(d, 4, td)
	d = appendNumber(d, 12, uint64(x.ids.ranks[th]))
	x.descriptor(d)
	if !hasStretches(th) {
		return
	}
	x.begin(uuid)

	repairs := th.Repairs.Cursor()
	offCPU := false
	depth := 0 // frames of the stack that is open
	end := int64(0)
	st := timing.Cursor(th)
	for s, ok := st.Next(); ok && x.err == nil; s, ok = st.Next() {
		if offCPU {
			x.endSlice(end)
		}
		keep := sp.next(&s)
		from := x.closeTo(keep, depth, len(sp.path), end)
		r := repairs.Of(s.Index)
		marked := 0
		if r != nil && !x.o.Plain {
			marked = inserted(x.p.Table, &s.Sample, r)
		}
		for i := from; i < len(sp.path); i++ {
			if i == perfettoDepth-1 && len(sp.path) > perfettoDepth {
				x.named(sliceBegin, "[deeper frames]", "tracefix")
				x.write(s.Start)
				break
			}
			x.method(sp.path[i])
			if i < marked {
				x.mark(r)
			}
			x.write(s.Start)
		}
		depth = len(sp.path)
		if offCPU = s.Type == profile.SampleOffCPU; offCPU {
			x.named(sliceBegin, profile.OffCPU, "tracefix")
			x.write(s.Start)
		}
		end = s.End
	}
	if offCPU {
		x.endSlice(end)
	}
	sp.step(0, 0)
	x.closeTo(0, depth, 0, end)
}

// closeTo closes the slices of a stack of old frames of which keep go on in one of
// next frames, and returns from which frame on slices have to be opened. A stack that
// is too deep ends in one slice for the rest.
func (x *perfettoWriter) closeTo(keep, old, next int, at int64) (from int) {
	oldOver, nextOver := old > perfettoDepth, next > perfettoDepth
	slots := min(old, perfettoDepth)
	switch {
	case oldOver && nextOver && keep >= perfettoDepth-1:
		return next // the slice for the rest stays open
	case oldOver || nextOver:
		keep = min(keep, perfettoDepth-1)
	}
	for ; slots > keep; slots-- {
		x.endSlice(at)
	}
	return keep
}

// mark adds to x.event what a repair says of a frame that it put back.
func (x *perfettoWriter) mark(r *profile.Repair) {
	var d []byte
	entry := func(key string, field protowire.Number, v uint64, text string) {
		e := appendText(nil, 10, key)
		switch field {
		case 5:
			e = protowire.AppendFixed64(protowire.AppendTag(e, 5, protowire.Fixed64Type), v)
		case 6:
			e = appendText(e, 6, text)
		default:
			e = appendNumber(e, field, v)
		}
		d = appendBytesField(d, 11, e)
	}
	entry("how", 6, 0, r.How)
	entry("restored", 4, uint64(r.Restored), "")
	entry("confidence", 5, math.Float64bits(float64(r.Confidence)), "")
	a := appendNumber(nil, 1, x.intern(x.keys, internKey, "tracefix"))
	x.event = appendBytesField(x.event, eventAnnotation, append(a, d...))
}

// annotate adds the details of a slice to x.event.
func (x *perfettoWriter) annotate(s *profile.Slice) {
	for _, a := range s.Args {
		m := appendNumber(nil, 1, x.intern(x.keys, internKey, a.Key))
		switch v := a.Value.(type) {
		case bool:
			n := uint64(0)
			if v {
				n = 1
			}
			m = appendNumber(m, 2, n)
		case uint64:
			m = appendNumber(m, 3, v)
		case int:
			m = appendNumber(m, 4, uint64(v))
		case int64:
			m = appendNumber(m, 4, uint64(v))
		case float64:
			m = protowire.AppendFixed64(protowire.AppendTag(m, 5, protowire.Fixed64Type), math.Float64bits(v))
		case string:
			m = appendText(m, 6, v)
		case json.RawMessage:
			m = appendText(m, 9, string(v)) // legacy_json_value
		default:
			m = appendText(m, 9, string(appendValue(nil, v)))
		}
		x.event = appendBytesField(x.event, eventAnnotation, m)
	}
	if s.Open {
		m := appendNumber(nil, 1, x.intern(x.keys, internKey, "tracefix.open"))
		x.event = appendBytesField(x.event, eventAnnotation, appendNumber(m, 2, 1))
	}
	x.flow(s)
}

// A tie is a slice that caused others which are still to come.
type tie struct {
	next uint64 // id of the flow to the next of them
	left int
}

// flow adds to x.event the flows of a slice. Perfetto draws slices of one flow as a chain, as if each
// had caused the one behind it: a slice that caused several has a flow to each of them.
func (x *perfettoWriter) flow(s *profile.Slice) {
	add := func(id uint64) {
		x.event = protowire.AppendFixed64(protowire.AppendTag(x.event, eventFlow, protowire.Fixed64Type), id)
	}
	if t, ok := x.ties[s.FlowIn]; ok && s.FlowIn != 0 {
		add(t.next)
		if t.next, t.left = t.next+1, t.left-1; t.left > 0 {
			x.ties[s.FlowIn] = t
		} else {
			delete(x.ties, s.FlowIn)
		}
	}
	if s.FlowOut != 0 {
		t := tie{next: x.flows + 1, left: max(1, s.Ties)}
		x.ties[s.FlowOut] = t
		for range t.left {
			x.flows++
			add(x.flows)
		}
	}
}

// A lane is a track of slices that nest: Perfetto cannot show others.
type lane struct {
	uuid  uint64 // 0: not described yet
	order int    // of making
	id    uint64 // what its slices belong to; 0: nothing
	ends  []int64
}

// track writes one track with as many lanes as it needs.
func (x *perfettoWriter) track(t *profile.Track, rank int) {
	parent := x.threads[t.Thread]
	name := trackName(t, parent != 0)
	if parent == 0 {
		parent = x.processes[x.ids.owner(t)]
	}
	describe := func() uint64 {
		uuid := x.newUUID()
		d := appendNumber(nil, 1, uuid)
		d = appendText(d, 2, name)
		d = appendNumber(d, 5, parent)
		d = appendNumber(d, 12, uint64(rank))
		x.descriptor(d)
		return uuid
	}
	lanes := laneSet{first: &lane{uuid: describe()}, live: map[uint64]*lane{}}
	x.begin(lanes.first.uuid)
	var open perfettoSlices
	seq := 0
	endBefore := func(at int64) {
		for len(open) > 0 && open[0].end <= at {
			o := heap.Pop(&open).(perfettoSlice)
			lanes.pop(o.lane)
			if o.lane == lanes.first {
				x.endSlice(o.end)
				continue
			}
			x.event = appendNumber(x.event[:0], eventType, sliceEnd)
			x.event = appendNumber(x.event, eventTrack, o.lane.uuid)
			x.write(o.end)
		}
	}
	for s := range t.Slices {
		if x.err != nil {
			return
		}
		start := max(s.Start, x.last)
		endBefore(start)
		start = max(start, x.last)
		name, cat := s.Name, s.Category
		if name == "" {
			name = "(unnamed)"
		}
		if cat == "" {
			cat = "event"
		}
		if s.Instant {
			x.named(instant, name, cat)
			x.annotate(s)
			x.write(start)
			continue
		}
		end := max(start, s.Start+max(0, s.Dur))
		l := lanes.lane(t.Nested, s.ID, end)
		if l.uuid == 0 {
			l.uuid = describe()
		}
		l.ends = append(l.ends, end)
		x.named(sliceBegin, name, cat)
		if l != lanes.first {
			x.event = appendNumber(x.event, eventTrack, l.uuid)
		}
		x.annotate(s)
		x.write(start)
		seq++
		heap.Push(&open, perfettoSlice{end: end, seq: seq, lane: l})
	}
	endBefore(math.MaxInt64)
}

// A laneSet gives slices lanes in which they nest.
type laneSet struct {
	first *lane
	free  laneHeap         // lanes with nothing open, the first one apart
	live  map[uint64]*lane // lanes with open slices, by what those belong to
	all   int
}

// lane returns the lane for a slice that ends at end: within those that it belongs
// to, else one that is free, else a new one.
func (ls *laneSet) lane(nested bool, id uint64, end int64) *lane {
	if l := ls.first; len(l.ends) == 0 || nested && l.holds(end) {
		l.id = id
		ls.keep(l)
		return l
	}
	if l := ls.live[id]; l != nil && l.holds(end) {
		return l
	}
	var l *lane
	if len(ls.free) > 0 {
		l = heap.Pop(&ls.free).(*lane)
	} else {
		ls.all++
		l = &lane{order: ls.all}
	}
	l.id = id
	ls.keep(l)
	return l
}

func (l *lane) holds(end int64) bool {
	n := len(l.ends)
	return n > 0 && l.ends[n-1] >= end && n < perfettoDepth
}

func (ls *laneSet) keep(l *lane) {
	if l.id != 0 && ls.live[l.id] == nil {
		ls.live[l.id] = l
	}
}

// pop ends the innermost slice of a lane.
func (ls *laneSet) pop(l *lane) {
	l.ends = l.ends[:len(l.ends)-1]
	if len(l.ends) > 0 {
		return
	}
	if ls.live[l.id] == l {
		delete(ls.live, l.id)
	}
	if l != ls.first {
		heap.Push(&ls.free, l)
	}
}

type laneHeap []*lane

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i].order < h[j].order }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(x any)        { *h = append(*h, x.(*lane)) }

func (h *laneHeap) Pop() any {
	l := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return l
}

// A perfettoSlice waits for its end.
type perfettoSlice struct {
	end  int64
	seq  int
	lane *lane
}

type perfettoSlices []perfettoSlice

func (h perfettoSlices) Len() int { return len(h) }

func (h perfettoSlices) Less(i, j int) bool {
	if h[i].end != h[j].end {
		return h[i].end < h[j].end
	}
	return h[i].seq > h[j].seq
}

func (h perfettoSlices) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *perfettoSlices) Push(x any)   { *h = append(*h, x.(perfettoSlice)) }

func (h *perfettoSlices) Pop() any {
	o := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return o
}
