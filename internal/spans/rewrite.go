package spans

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/stackfix"
)

// Rewrite copies the trace to w with the stacks that its Profile now has. Events that a repair does
// not touch keep their bytes and their order. Inserted events have the mark in their category, and
// so do the recorded ends and begins that they are paired with, as readers pair by name and
// category, and ends that take place earlier (see tie). The object form gets the list of repairs
// under the key "tracefix". plain leaves marks and list away, those of an earlier repair as well.
func (t *Trace) Rewrite(ctx context.Context, w io.Writer, plain bool) error {
	rw := &rewriter{Trace: t, ctx: ctx, w: chromium.NewWriter(w), plain: plain, unmark: plain && (t.marked || slices.Contains(t.src.Keys(), repairsKey))}
	return rw.run()
}

// rewriter is the state of Rewrite.
type rewriter struct {
	*Trace
	ctx   context.Context
	w     *chromium.Writer
	plain bool
	// unmark says that the file has marks, or the list, which the output has not.
	unmark bool

	stacks  map[*lane]*repaired
	active  []*machine // by chromium.Event.Thread
	idle    []*machine // to be used again
	busy    int        // active machines
	settled *machine   // of the event just written: the rest of its transition stays as it is
	edits   map[int64]*edit
	early   []int64 // where ends are that take place earlier, in order
	marks   []int64 // where recorded events are that get the mark, in order
	pairs   *pairs  // of the reading that finds marks; nil in that which writes
	edit    edit    // of the event at hand
	buf     []byte
	changed [2][]byte // texts of the event at hand
	moved   [2][]byte // the time that an end was moved from last, and that to which
	bridge  bool      // a bridge was inserted: stackFrames needs it
	outside outside
}

// outside is what stands outside of events on its way to the output. Where events stand behind the
// document, they are written at the end of its last array: all else behind that waits for another
// reading.
type outside struct {
	w     io.Writer
	muted bool
	ends  int // of arrays, up to that of the last one
	left  int // bytes to come that are left out
}

// leaveOut leaves out the list of an earlier repair: it is told of what comes, which comes then.
func (o *outside) leaveOut(key string) io.Writer {
	if key != repairsKey {
		return nil
	}
	return leftOut{o}
}

type leftOut struct{ o *outside }

// Write implements io.Writer.
func (l leftOut) Write(p []byte) (int, error) {
	l.o.left = len(p)
	return len(p), nil
}

// Write implements io.Writer.
func (o *outside) Write(p []byte) (int, error) {
	if n := o.left; o.muted || n > 0 {
		o.left = 0
		return len(p), nil
	}
	return o.w.Write(p)
}

// eventsEnd turns on or off what is written at the end of the last array.
func (o *outside) eventsEnd() error {
	if o.ends--; o.ends == 0 {
		o.muted = !o.muted
	}
	return nil
}

// repaired are the samples of a lane next to the zones, in order.
type repaired struct {
	stacks []fix
}

// A fix is the stack of a sample after the repair.
type fix struct {
	sample   int32
	stack    profile.StackID // below the thread's frame
	inserted int32           // frames put in at the root side; below 0 for those taken away
	dropped  int32           // outermost frames that were recorded and are not in it: garbage
}

// changed reports whether the stack is another one than was recorded.
func (f fix) changed() bool { return f.inserted != 0 || f.dropped != 0 }

// index returns which frame of the repaired stack the recorded frame number at is, both counted
// from the outermost one, of which outer are not the sample's; ok is false for a frame that was dropped.
func (f fix) index(at, outer int) (i int, ok bool) {
	switch {
	case at < outer:
		return at, true
	case at < outer+int(f.dropped):
		return 0, false
	}
	return at + int(f.inserted), true
}

// open returns how many frames of the repaired stack are open where n are that were recorded. Of
// frames that were put in all stay open as long as one of those is that they stand below.
func (f fix) open(n, outer int) int {
	if n <= outer {
		return n
	}
	return max(n, outer+int(f.dropped)) + int(f.inserted)
}

// An edit is what happens at one event.
type edit struct {
	before, after []insert
	drop          bool
	early, mark   bool
}

// changes reports whether something does.
func (e *edit) changes() bool {
	return e.drop || e.early || e.mark || len(e.before) > 0 || len(e.after) > 0
}

// reset makes it one of nothing.
func (e *edit) reset() {
	e.before, e.after = e.before[:0], e.after[:0]
	e.drop, e.early, e.mark = false, false, false
}

// An insert is a new event.
type insert struct {
	phase byte
	frame profile.FrameID
	early bool // an end that takes place earlier
}

func (rw *rewriter) run() error {
	zones := rw.plan()
	if err := rw.sorters(zones); err != nil {
		return err
	}
	zones = slices.DeleteFunc(zones, func(z *zone) bool { return z.lane.sorted })
	var few *changes // nil if all events are to be read
	if len(rw.stacks) > 0 && (!rw.plain || rw.table.mixed) {
		var err error
		if rw.log != nil && !rw.unmark {
			few, err = rw.recall(zones)
		}
		if err == nil && few == nil {
			err = rw.findMarks(zones)
		}
		if err != nil {
			return err
		}
	}
	skip := rw.clean && rw.eventsEnd >= 0 && len(rw.edits) == 0 && !rw.unmark
	in, err := rw.open()
	if err != nil {
		return err
	}
	defer in.Close()
	if skip && len(zones) == 0 && !rw.Facts.BOM && rw.Facts.Form != chromium.FormOpen {
		n, err := copyAll(rw.ctx, rw.w.Outside(), in)
		if err != nil {
			return err
		}
		return rw.same(n)
	}
	rw.outside = outside{w: rw.w.Outside(), ends: rw.ends}
	opts := &chromium.Options{Outside: &rw.outside, Checked: rw.clean, Behind: true}
	if rw.behind {
		opts.EventsEnd = rw.outside.eventsEnd
	}
	if rw.bridge {
		opts.StackFramesEnd = rw.addBridge
	}
	if rw.unmark && slices.Index(rw.src.Keys(), repairsKey) > 0 { // without the comma in front of the next key there would be none
		opts.Value = rw.outside.leaveOut
	}
	if !rw.plain && !slices.Contains(rw.src.Keys(), repairsKey) {
		opts.ObjectEnd = rw.addRepairs
	}
	if few != nil {
		err = rw.readChanges(in, opts, few)
	} else {
		err = rw.read(in, opts, zones, skip)
	}
	if err == nil && rw.behind {
		err = rw.rest(opts)
	}
	if err != nil {
		return err
	}
	return rw.w.Close()
}

// rest writes what stands between the last array of events and the end of the document, where
// events that stand behind that were written first.
func (rw *rewriter) rest(opts *chromium.Options) error {
	in, err := rw.open()
	if err != nil {
		return err
	}
	defer in.Close()
	rw.outside.muted, rw.outside.ends = true, rw.ends
	if err := rw.r.Reset(rw.source(in, nil), opts); err != nil {
		return err
	}
	var ev chromium.Event
	for n := 0; ; n++ {
		if n&0xffff == 0 && rw.ctx.Err() != nil {
			return rw.ctx.Err()
		}
		if err := rw.r.Read(&ev); err != nil {
			if !over(err) {
				return err
			}
			return rw.same(rw.r.InputOffset())
		}
	}
}

// read goes through the events.
func (rw *rewriter) read(in io.Reader, opts *chromium.Options, zones []*zone, skip bool) error {
	if err := rw.r.Reset(rw.source(in, nil), opts); err != nil {
		return err
	}
	var ev chromium.Event
	for n := 0; ; n++ {
		if n&0xffff == 0 && rw.ctx.Err() != nil {
			return rw.ctx.Err()
		}
		if skip {
			zones = rw.pass(zones)
		}
		if err := rw.r.Read(&ev); err != nil {
			if !over(err) {
				return err
			}
			break
		}
		for len(zones) > 0 && zones[0].start <= ev.Offset {
			rw.start(zones[0])
			zones = zones[1:]
		}
		if err := rw.event(&ev); err != nil {
			return err
		}
	}
	return rw.same(rw.r.InputOffset())
}

// findMarks finds the recorded events that get the mark: those whose begin or end was put in or
// takes place earlier. A begin is known to be one at its end only, so this takes a reading.
func (rw *rewriter) findMarks(zones []*zone) error {
	early := rw.early
	rw.pairUp()
	for _, s := range rw.Trace.sorters {
		rw.pairSorted(s)
	}
	in, err := rw.open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := rw.read(in, &chromium.Options{Checked: rw.clean, Behind: true}, zones, false); err != nil {
		return err
	}
	rw.pairedUp()
	rw.early = early
	rw.active, rw.busy, rw.settled = nil, 0, nil
	return nil
}

// pairUp begins to look for the events that get the mark.
func (rw *rewriter) pairUp() {
	rw.pairs = &pairs{wanted: make([]*openSpans, len(rw.src.Threads()))}
	for l := range rw.stacks {
		rw.pairs.wanted[l.thread] = &openSpans{}
	}
}

// pairedUp takes in those that were found.
func (rw *rewriter) pairedUp() {
	rw.marks = rw.pairs.marks
	slices.Sort(rw.marks)
	rw.marks = slices.Compact(rw.marks)
	rw.pairs = nil
}

// pass passes on unread what stays as it is, and returns the zones that are still to come.
func (rw *rewriter) pass(zones []*zone) []*zone {
	mark := rw.eventsEnd
	for _, list := range [][]int64{rw.marks, rw.early} {
		if len(list) > 0 {
			mark = min(mark, list[0])
		}
	}
	next := func() int64 {
		if len(zones) > 0 {
			return min(mark, zones[0].start)
		}
		return mark
	}
	switch m := rw.settled; {
	case rw.busy == 0:
		to := next()
		if len(zones) > 0 && to == zones[0].start {
			m := rw.start(zones[0])
			zones = zones[1:]
			if r := m.rung(); r != nil && m.z.start+int64(r.at) <= next() {
				m.passEnds(r)
				to = m.z.start + int64(r.at)
			}
		}
		rw.r.PassTo(to)
	case rw.busy == 1 && m != nil && m.z.last <= next():
		m.passBegins()
		rw.r.PassTo(m.z.last)
	}
	rw.settled = nil
	return zones
}

// copyAll copies r, and returns how many bytes it has.
func copyAll(ctx context.Context, w io.Writer, r io.Reader) (size int64, err error) {
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		n, err := r.Read(buf)
		size += int64(n)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return size, err
			}
		}
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// plan finds the zones that a repair changes and the stacks around them.
func (rw *rewriter) plan() []*zone {
	rw.stacks = map[*lane]*repaired{}
	var zones []*zone
	byLane := map[*lane][]*zone{}
	var order []*lane
	for i := range rw.zones {
		z := &rw.zones[i]
		if byLane[z.lane] == nil {
			order = append(order, z.lane)
		}
		byLane[z.lane] = append(byLane[z.lane], z)
	}
	for _, l := range order {
		if l.t.Repairs.Len() == 0 {
			continue
		}
		zs := byLane[l]
		r := &repaired{}
		rw.stacks[l] = r
		next, samples := l.t.Repairs.Cursor(), l.t.Samples.Cursor()
		look := func(i int) {
			if n := len(r.stacks); i < 0 || n > 0 && int(r.stacks[n-1].sample) >= i {
				return
			}
			samples.Seek(i)
			s, _ := samples.Next()
			f := fix{sample: int32(i), stack: s.Stack}
			if rep := next.Of(i); rep != nil && !rep.Earlier {
				f.inserted = int32(rw.table.table.Depth(s.Stack) - rw.table.table.Depth(rep.Recorded))
				f.dropped = int32(rep.Dropped)
				if rep.How == stackfix.Bridge.String() && rw.table.table.Frames() > len(rw.table.frames) {
					rw.bridge = true
				}
			}
			r.stacks = append(r.stacks, f)
		}
		for _, z := range zs {
			look(z.before)
			look(z.after)
		}
		for _, z := range zs {
			if r.of(z.before).changed() || r.of(z.after).changed() {
				zones = append(zones, z)
			}
		}
	}
	slices.SortStableFunc(zones, func(a, b *zone) int { return cmp.Compare(a.start, b.start) })
	for l := range rw.stacks {
		if !l.sorted {
			rw.early = append(rw.early, l.clashes...)
		}
	}
	slices.Sort(rw.early)
	return zones
}

// of returns the stack of sample i; the empty one for -1.
func (r *repaired) of(i int) fix {
	if i < 0 {
		return fix{}
	}
	k, ok := slices.BinarySearchFunc(r.stacks, int32(i), func(f fix, i int32) int { return cmp.Compare(f.sample, i) })
	if !ok {
		return fix{}
	}
	return r.stacks[k]
}

// sorters works out the edits of threads that are not in order of time.
func (rw *rewriter) sorters(zones []*zone) error {
	byLane := map[*lane][]*zone{}
	for _, z := range zones {
		if z.lane.sorted {
			byLane[z.lane] = append(byLane[z.lane], z)
		}
	}
	for _, s := range rw.Trace.sorters {
		if rw.edits == nil {
			rw.edits = map[int64]*edit{}
		}
		zones := byLane[s.lane]
		for _, z := range zones {
			m := rw.machine(z)
			for at := int(z.start); at <= int(z.last); at++ {
				e := &s.events[at]
				var ed edit
				m.step(&ed, e.phase, e.frame, e.name, e.sf)
				if at == int(z.last) {
					ed.after = m.flush(nil)
				}
				if ed.changes() {
					rw.edits[e.off] = &ed
				}
			}
		}
		if rw.stacks[s.lane] == nil {
			continue
		}
		for _, i := range s.lane.clashes {
			if !covers(zones, i) { // else the zone's machine has seen to it
				rw.edits[s.events[i].off] = &edit{early: true}
			}
		}
	}
	return nil
}

// covers reports whether one of the zones of a lane, which are in order, holds what is at
// a place.
func covers(zones []*zone, at int64) bool {
	behind, _ := slices.BinarySearchFunc(zones, at+1, func(z *zone, at int64) int { return cmp.Compare(z.start, at) })
	return behind > 0 && at <= zones[behind-1].last
}

// start begins the work on a zone.
func (rw *rewriter) start(z *zone) *machine {
	for int(z.lane.thread) >= len(rw.active) {
		rw.active = append(rw.active, nil)
	}
	m := rw.machine(z)
	rw.active[z.lane.thread] = m
	rw.busy++
	return m
}

// event writes one event with what is to be inserted around it.
func (rw *rewriter) event(ev *chromium.Event) error {
	ed := &rw.edit
	ed.reset()
	mark := rw.listed(ed, ev.Offset)
	m := rw.at(ev.Thread, ev.Phase, ev.TS.Valid)
	if m != nil {
		var b brief
		b.shorten(ev)
		rw.step(m, ed, ev.Offset, ev.Phase, rw.table.id(&b), ev.NameID, ev.SF != nil)
	}
	if rw.pairs != nil {
		rw.pairs.event(rw.table, ev.Thread, ev.Phase, ev.NameID, ev.Offset-int64(len(ev.Lead)), ed)
		return nil
	}
	ed.mark = mark || ed.early && !rw.plain
	if m == nil {
		return rw.apply(ev, ed, nil)
	}
	err := rw.apply(ev, ed, m.endTS)
	if ev.Phase == 'E' {
		m.endTS = append(m.endTS[:0], ev.TS.Text...)
	}
	return err
}

// listed adds to an edit what the lists say of the event at an offset, and reports whether it gets the mark.
func (rw *rewriter) listed(ed *edit, off int64) (mark bool) {
	if len(rw.edits) > 0 {
		if e := rw.edits[off]; e != nil {
			ed.before, ed.after = append(ed.before, e.before...), append(ed.after, e.after...)
			ed.drop, ed.early = e.drop, e.early
		}
	}
	if len(rw.early) > 0 && rw.early[0] <= off {
		rw.early = rw.early[1:]
		ed.early = true
	}
	if mark = len(rw.marks) > 0 && rw.marks[0] <= off; mark {
		rw.marks = rw.marks[1:]
	}
	return mark
}

// at returns the machine that works on an event of a thread; nil if there is none.
func (rw *rewriter) at(thread int32, phase byte, timed bool) *machine {
	if rw.busy > 0 && int(thread) < len(rw.active) && (phase == 'B' || phase == 'E') && timed {
		return rw.active[thread]
	}
	return nil
}

// step takes an event of frame f to its machine, whose work may end there.
func (rw *rewriter) step(m *machine, ed *edit, off int64, phase byte, f profile.FrameID, name int32, sf bool) {
	ed.early = false // the machine knows which of its ends take place earlier
	m.step(ed, phase, f, name, sf)
	if off >= m.z.last { // equal where no separator stands before the event
		ed.after = m.flush(ed.after)
		rw.active[m.z.lane.thread] = nil
		rw.busy--
		rw.idle = append(rw.idle, m)
	} else if m.isSettled() {
		rw.settled = m
	}
}

// apply writes an event as an edit says. Ends before it take the time of the end before them, if
// there is one: endTS.
func (rw *rewriter) apply(ev *chromium.Event, ed *edit, endTS []byte) error {
	ts := ev.TS.Text
	for _, x := range ed.before {
		at := ts
		if x.phase == 'E' && endTS != nil {
			at = endTS
		}
		if err := rw.w.InsertBefore(ev, rw.newEvent(ev, x, at)); err != nil {
			return err
		}
	}
	if ed.drop {
		rw.w.Drop(ev)
	} else {
		rw.change(ev, ed)
		if err := rw.w.Write(ev); err != nil {
			return err
		}
	}
	for _, x := range ed.after {
		if err := rw.w.Insert(rw.newEvent(ev, x, ts)); err != nil {
			return err
		}
	}
	return nil
}

// change gives a recorded event the mark and an earlier time.
func (rw *rewriter) change(ev *chromium.Event, ed *edit) {
	if ed.mark && rw.changeCat(ev) || rw.unmark && rw.unmarkCat(ev) {
		rw.changed[0] = chromium.AppendReplaced(rw.changed[0][:0], ev.Raw, "cat", rw.buf)
		ev.Raw = rw.changed[0]
	}
	if ed.early {
		rw.changed[1] = chromium.AppendReplaced(rw.changed[1][:0], ev.Raw, "ts", rw.earlierThan(ev.TS.Text))
		ev.Raw = rw.changed[1]
	}
}

// changeCat puts the new category of a recorded event that gets the mark into buf, and reports
// whether there is one. Perfetto looks for a begin of the category that an end has. One without a
// category ends what is open, and would not do so with the mark alone.
func (rw *rewriter) changeCat(ev *chromium.Event) bool {
	rw.buf = append(rw.buf[:0], '"')
	if ev.Phase == 'E' && rw.table.holds(ev.Thread) == holdsUnknown {
		switch {
		case len(ev.Cat) == 0 && rw.table.cats:
			return false
		case rw.table.mixed: // the begin may have another category
			rw.buf = append(rw.buf, '"')
			return len(ev.Cat) > 0
		}
	}
	rw.buf = append(markedCat(rw.buf, ev.Cat), '"')
	return !rw.plain
}

// unmarkCat puts the category of an event without the mark of an earlier repair into buf, and
// reports whether it has one.
func (rw *rewriter) unmarkCat(ev *chromium.Event) bool {
	if ev.Phase != 'B' && ev.Phase != 'E' {
		return false
	}
	cat := unmarked(ev.Cat)
	if string(cat) == repairMark[1:] && rw.table.holds(ev.Thread) == holdsUnknown { // of an event that had none
		cat = nil
	}
	rw.buf = append(append(append(rw.buf[:0], '"'), cat...), '"')
	return len(cat) < len(ev.Cat)
}

// repairMark is what follows the category of an event that the repair put in or moved.
const repairMark = ",tracefix"

// unmarked is a category, as raw text, without the mark.
func unmarked(cat []byte) []byte { return bytes.TrimSuffix(cat, []byte(repairMark)) }

// markedCat appends a category, as raw text, with the mark.
func markedCat(b, cat []byte) []byte {
	if cat = unmarked(cat); len(cat) == 0 || string(cat) == repairMark[1:] {
		return append(b, repairMark[1:]...)
	}
	return append(append(b, cat...), repairMark...)
}

// earlierThan is appendEarlier, worked out once for ends of one time.
func (rw *rewriter) earlierThan(ts []byte) []byte {
	if !bytes.Equal(ts, rw.moved[0]) {
		rw.moved[0] = append(rw.moved[0][:0], ts...)
		rw.moved[1] = appendEarlier(rw.moved[1][:0], ts)
	}
	return rw.moved[1]
}

// appendEarlier appends the text of the time before ts that speedscope surely tells from it.
func appendEarlier(b, ts []byte) []byte {
	v, err := strconv.ParseFloat(string(bytes.Trim(ts, `"`)), 64)
	if err != nil {
		return append(b, ts...)
	}
	text := strconv.AppendFloat(nil, v-earlier*math.Abs(v), 'f', -1, 64)
	if math.Abs(v) < 1 {
		text = strconv.AppendFloat(nil, v-1e-9, 'f', 9, 64) // readers know no more than 18 decimals
	}
	if ts[0] == '"' {
		return append(append(append(b, '"'), text...), '"')
	}
	return append(b, text...)
}

// newEvent returns the text of an inserted event in the style of ev.
func (rw *rewriter) newEvent(ev *chromium.Event, x insert, ts []byte) []byte {
	if rw.table.holds(ev.Thread) == holdsSamples {
		return rw.ownEvent(ev, x, ts)
	}
	colon, comma := chromium.Separators(ev.Raw)
	b := append(rw.buf[:0], `{"name"`...)
	b = append(b, colon...)
	b = rw.appendName(b, x.frame)
	field := func(key string, v []byte) {
		b = append(b, comma...)
		b = append(b, '"')
		b = append(b, key...)
		b = append(b, '"')
		b = append(b, colon...)
		b = append(b, v...)
	}
	cat := rw.table.catOf(x.frame)
	switch {
	case x.phase == 'E' && rw.table.isMixed(x.frame): // the begin may have any of them: see changeCat
	case !rw.plain || cat != "" || ev.Cat != nil:
		field("cat", nil)
		b = append(b, '"')
		b = append(b, rw.category([]byte(cat))...)
		b = append(b, '"')
	}
	field("ph", []byte{'"', x.phase, '"'})
	if x.early {
		ts = rw.earlierThan(ts)
	}
	field("ts", ts)
	if ev.PID != nil {
		field("pid", ev.PID)
	}
	if ev.TID != nil {
		field("tid", ev.TID)
	}
	if ev.SF != nil {
		if sf := rw.sfOf(x.frame); sf != "" {
			if ev.SF[0] == '"' && sf[0] != '"' {
				sf = strconv.Quote(sf)
			}
			field("sf", []byte(sf))
		}
	}
	b = append(b, '}')
	rw.buf = b
	return b
}

// ownEvent returns the text of an inserted event as internal/export writes it.
func (rw *rewriter) ownEvent(ev *chromium.Event, x insert, ts []byte) []byte {
	if x.early {
		ts = rw.earlierThan(ts)
	}
	b := append(rw.buf[:0], `{"ph":"`...)
	b = append(append(b, x.phase), `","ts":`...)
	b = append(append(b, ts...), `,"pid":`...)
	b = append(append(b, ev.PID...), `,"tid":`...)
	b = append(append(b, ev.TID...), `,"name":`...)
	b = append(rw.appendName(b, x.frame), `,"cat":"`...)
	cat := repairMark[1:]
	if int(x.frame) < len(rw.table.frames) {
		cat = rw.table.frames[x.frame].cat
	}
	b = append(append(b, rw.category([]byte(cat))...), `"}`...)
	rw.buf = b
	return b
}

// category is that of an event that is put in, of a frame that has cat.
func (rw *rewriter) category(cat []byte) []byte {
	if rw.plain {
		return cat
	}
	return markedCat(nil, cat)
}

func (rw *rewriter) appendName(b []byte, f profile.FrameID) []byte {
	if int(f) >= len(rw.table.frames) {
		return chromium.AppendQuoted(b, profile.Bridge)
	}
	b = append(b, '"')
	if n := rw.table.frames[f].name; n != 0 {
		b = append(b, rw.r.RawName(n)...)
	}
	return append(b, '"')
}

func (rw *rewriter) sfOf(f profile.FrameID) string {
	if int(f) < len(rw.table.frames) {
		return rw.table.frames[f].sf
	}
	if rw.table.maxSF < 0 {
		return ""
	}
	return strconv.FormatInt(rw.table.maxSF+1, 10)
}

// addBridge appends the bridge to stackFrames.
func (rw *rewriter) addBridge(n int) error {
	if rw.table.maxSF < 0 {
		return nil
	}
	sep := ", "
	if n == 0 {
		sep = ""
	}
	_, err := fmt.Fprintf(&rw.outside, `%s"%d": {"name": "%s", "category": ""}`, sep, rw.table.maxSF+1, profile.Bridge)
	return err
}

// repairsKey is the top-level key of the list of repairs.
const repairsKey = "tracefix"

// addRepairs appends the list of repairs to the object form.
func (rw *rewriter) addRepairs(n int) error {
	sep := ""
	if n > 0 {
		sep = ", "
	}
	return profile.WriteRepairMarks(sep+`"`+repairsKey+`": `, rw.Profile.RepairMarks(nil), func(b []byte) error {
		_, err := rw.outside.Write(b)
		return err
	})
}
