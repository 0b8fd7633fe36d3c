package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// Groups are the groups of tracks that Options.Tracks can name.
var Groups = []string{"activities", "gc", "exceptions", "contention", "faults", "events"}

// maxItems is how many bytes of events tracks keep in memory. Beyond it the tracks of
// all events read the file again whenever they are asked for their slices; see spill.
const maxItems = 24 << 20

// An item is a slice before anybody asks for it.
type item struct {
	start, dur int64
	details    int64  // 1 + where tracker.payloads have the event that tells them; 0: none
	name       uint32 // in tracker.names
	gc         uint32 // of the start of a collection: its number
	kind       int32  // event id that opened it
	instant    bool
	open       bool
}

// A lane is a track being built. Its items are in order of start.
type lane struct {
	track *profile.Track
	items *spool.List[item]
	at    int   // tracker.seen when it was added
	open  []int // indices of items that have not ended, outermost first
	left  []int // of an exception's: that have ended unless their stop comes, see leave

	kinds map[int32]int  // how many are open, by item.kind
	gcs   map[uint32]int // and collections, by their number
}

// push opens the newest item.
func (ln *lane) push() {
	at := ln.items.Len() - 1
	ln.open = append(ln.open, at)
	ln.count(at, 1)
}

// count notes that an item was opened or ended.
func (ln *lane) count(at, n int) {
	it := ln.items.At(at)
	if ln.kinds == nil {
		ln.kinds = map[int32]int{}
	}
	ln.kinds[it.kind] += n
	if it.kind == runtimeevents.IDGCStart {
		if ln.gcs == nil {
			ln.gcs = map[uint32]int{}
		}
		if ln.gcs[it.gc] += n; ln.gcs[it.gc] == 0 {
			delete(ln.gcs, it.gc)
		}
	}
}

type laneKey struct {
	proc *process
	t    *thread // nil: the whole process
	name string
}

type tracker struct {
	l       *loader
	ctx     context.Context
	source  input.Opener
	want    map[string]bool
	lanes   map[laneKey]*lane
	order   []*lane
	acts    *activities
	aside   *spool.Spool // what does not fit into memory of activities and details
	details payloadLog
	names   []string                  // of items
	number  map[string]uint32         // in names
	limit   int                       // of size
	size    int                       // bytes of items of the events group
	spill   bool                      // the events group reads the file again
	ends    map[*profile.Process]bool // has events for the end of an exception
	seen    int                       // events so far
	// Suspensions by process, as they are shown without a sampler and with one. Which of the two it
	// is is known from the first sample on.
	suspensions [2]map[*process]*suspended
}

// What suspensions there are to show. A sampler's own are for no reason that has a name, one for each tick.
const (
	withoutSampler = iota // all
	withSampler
)

// suspended is when the runtime of a process was.
type suspended struct {
	*lane
	holder *thread // who does it for something we show; others may suspend, too
	// waiting are those that wait to do it while the holder does, which only one can at a time.
	waiting []suspender
}

// A suspender is a thread that suspends the others.
type suspender struct {
	thread *thread
	item   item
}

// maxSuspenders bounds those of a damaged trace that wait.
const maxSuspenders = 16

// newTracker returns what collects the tracks that l is asked for while it reads; nil if
// these are none. A spill reads the file again.
func newTracker(ctx context.Context, l *loader, open input.Opener) *tracker {
	if !slices.ContainsFunc(l.o.Tracks, func(g string) bool { return slices.Contains(Groups, g) }) {
		return nil
	}
	k := &tracker{
		l: l, ctx: ctx, source: open, limit: maxItems,
		aside:       input.Aside(1),
		number:      map[string]uint32{},
		want:        map[string]bool{},
		lanes:       map[laneKey]*lane{},
		ends:        map[*profile.Process]bool{},
		suspensions: [2]map[*process]*suspended{{}, {}},
	}
	k.details = payloadsIn(k.aside)
	for _, g := range l.o.Tracks {
		k.want[g] = true
	}
	if k.want["activities"] {
		k.acts = newActivities(k)
	}
	return k
}

// close ends what works beside the reading; it does nothing after finish and on nil.
func (k *tracker) close() {
	if k != nil && k.acts != nil {
		k.acts.close()
	}
}

// lane returns the lane of that name, which it adds if it is new.
func (k *tracker) lane(group, name string, p *process, t *thread, nested bool) *lane {
	key := laneKey{p, t, name}
	ln := k.lanes[key]
	if ln == nil {
		ln = k.newLane(group, name, p, t, nested)
		k.lanes[key] = ln
		k.order = append(k.order, ln)
	}
	return ln
}

func (k *tracker) newLane(group, name string, p *process, t *thread, nested bool) *lane {
	tr := &profile.Track{Name: name, Group: group, Process: p.trace, Nested: nested}
	if t != nil {
		tr.Thread = t.trace
	}
	return &lane{track: tr, items: spool.ListIn[item](k.aside), at: k.seen}
}

// item returns one with the details of ev.
func (k *tracker) item(ev *nettrace.Event, now int64, name string) item {
	x := item{start: now, name: k.name(name), details: 1 + k.details.add(ev), kind: int32(ev.Metadata.EventID)}
	if x.kind == runtimeevents.IDGCStart {
		x.gc = u32at(ev.Payload, 0)
	}
	return x
}

// name returns the number of a name.
func (k *tracker) name(s string) uint32 {
	n, ok := k.number[s]
	if !ok {
		n = uint32(len(k.names))
		s = strings.Clone(s)
		k.names, k.number[s] = append(k.names, s), n
	}
	return n
}

// begin appends an item that ends later.
func (k *tracker) begin(ln *lane, ev *nettrace.Event, now int64, name string) {
	x := k.item(ev, now, name)
	ln.items.Add(&x)
	ln.push()
}

// end ends the newest open item that began with the event id kind, and what is open
// inside it. Where there is none, it had begun before the recording.
func (k *tracker) end(ln *lane, now int64, kind int32, name string) {
	for ln.kinds[kind] > 0 && len(ln.open) > 0 { // asked first: stops without a start may be many; none is open where the disk fails
		last := len(ln.open) - 1
		at := ln.open[last]
		ln.open = ln.open[:last]
		ln.count(at, -1)
		it := ln.items.Change(at)
		it.dur = now - it.start
		if it.kind == kind {
			return
		}
	}
	if ln.items.Len() == 0 {
		ln.items.Add(&item{dur: max(0, now), name: k.name(name), open: true, kind: kind})
	}
}

// giveUp ends what is open on a lane when its thread begins anew what it cannot do inside:
// Lock.TryEnter that gives up has no stop. When that was, nothing tells.
func (k *tracker) giveUp(ln *lane) {
	for _, at := range ln.open {
		ln.items.Change(at).instant = true
		ln.count(at, -1)
	}
	ln.open = ln.open[:0]
}

// event sorts one event into its track. Samples and what names methods are in none.
func (k *tracker) event(ev *nettrace.Event, now int64, t *thread) {
	k.seen++
	m := ev.Metadata
	if !tracked(m) {
		return
	}
	if k.want["events"] && !t.proc.events {
		t.proc.events = !k.shown(ev)
	}
	used := false
	switch {
	case namesCode(m):
		used = true // the loader's own
	case m.Source == nettrace.SourceRuntime:
		used = k.runtime(ev, now, t)
	case m.Role == nettrace.RolePageFault:
		if k.want["faults"] {
			ln := k.lane("faults", "Page faults", t.proc, t, true)
			ln.items.Add(&item{start: now, instant: true, name: k.name(strings.ReplaceAll(ev.Metadata.Name, "_", " "))})
		}
		used = true
	default:
		if k.acts != nil {
			used = k.acts.event(ev, now, t)
		}
	}
	if used || !k.want["events"] || k.spill {
		return
	}
	x := k.item(ev, now, eventName(ev))
	x.instant = true
	k.lane("events", "Events", t.proc, t, true).items.Add(&x)
	if k.size += 120 + len(ev.Payload); k.size > k.limit {
		k.spillEvents()
	}
}

// tracked reports whether tracks are about events of a definition.
func tracked(m *nettrace.Metadata) bool {
	switch {
	case m.Source == nettrace.SourceRundown, m.Source == nettrace.SourceSystem,
		m.Role == nettrace.RoleSample, m.Role == nettrace.RoleCPU, m.Role == nettrace.RoleContextSwitch:
		return false
	}
	return true
}

// namesCode reports whether events of a definition are the runtime's names of methods.
func namesCode(m *nettrace.Metadata) bool {
	return m.Source == nettrace.SourceRuntime && m.Role.NamesMethods()
}

// Numbers in payloads, and what tracks and slices are called.
const (
	backgroundGC        = 1
	suspendOther        = 0
	unknownReason       = math.MaxUint32
	nameContention      = "Contention"
	nameGC              = "GC"
	nameGCBackground    = "GC (background)"
	nameSuspension      = "GC suspension"
	nameFinalizers      = "Finalizers"
	nameExceptions      = "Exceptions"
	nameContentionTrack = "Lock contention"
)

// runtime takes an event of the runtime; it reports whether a track shows it.
func (k *tracker) runtime(ev *nettrace.Event, now int64, t *thread) bool {
	id := ev.Metadata.EventID
	switch id {
	case runtimeevents.IDGCStart, runtimeevents.IDGCEnd, runtimeevents.IDRestartEEEnd, runtimeevents.IDRestartEEBegin, runtimeevents.IDSuspendEEEnd, runtimeevents.IDSuspendEEBegin, runtimeevents.IDFinalizersEnd, runtimeevents.IDFinalizersBegin:
		if !k.want["gc"] {
			return false
		}
		k.gc(ev, now, t, id)
		return true
	case runtimeevents.IDExceptionThrown, runtimeevents.IDExceptionCatchStart, runtimeevents.IDExceptionCatchStop, runtimeevents.IDExceptionFinallyStart, runtimeevents.IDExceptionFinallyStop, runtimeevents.IDExceptionFilterStart, runtimeevents.IDExceptionFilterStop, runtimeevents.IDExceptionStop:
		if !k.want["exceptions"] {
			return false
		}
		k.exception(ev, now, t, id)
		return true
	case runtimeevents.IDContentionStart, runtimeevents.IDContentionStop:
		if !k.want["contention"] || len(ev.Payload) > 0 && ev.Payload[0] != 0 { // native locks of the runtime
			return false
		}
		ln := k.lane("contention", nameContentionTrack, t.proc, t, true)
		if id == runtimeevents.IDContentionStart {
			k.giveUp(ln)
			k.begin(ln, ev, now, nameContention)
		} else {
			k.end(ln, now, runtimeevents.IDContentionStart, nameContention)
		}
		return true
	}
	return false
}

func u32at(b []byte, at int) uint32 {
	if at+4 > len(b) {
		return unknownReason
	}
	return binary.LittleEndian.Uint32(b[at:])
}

func nameOf(names []string, i uint32, other string) string {
	if int64(i) < int64(len(names)) {
		return names[i]
	}
	return other
}

var (
	gcReasons = []string{"small allocation", "induced", "low memory", "empty", "large allocation", "out of space (small)",
		"out of space (large)", "induced, not forced", "internal", "low memory, blocking", "induced, compacting",
		"low memory of the host", "full", "low memory of the host, blocking", "background tuning (small)", "background tuning (large)",
		"background stepping", "induced, aggressive"}
	gcTypes        = []string{"blocking", "background", "foreground"}
	suspendReasons = []string{"other", "GC", "app domain shutdown", "code pitching", "shutdown", "debugger", "GC preparation", "debugger sweep"}
)

// gc takes an event of a collection or suspension.
func (k *tracker) gc(ev *nettrace.Event, now int64, t *thread, id int) {
	switch id {
	case runtimeevents.IDGCStart:
		typ := u32at(ev.Payload, 12)
		ln := k.lane("gc", nameGC, t.proc, nil, true)
		if typ == backgroundGC {
			ln = k.lane("gc", nameGCBackground, t.proc, nil, true)
		}
		gen := "?"
		if g := u32at(ev.Payload, 4); g < 10 {
			gen = string(rune('0' + g))
		}
		k.begin(ln, ev, now, "GC gen "+gen+" ("+nameOf(gcTypes, typ, "unknown")+", "+nameOf(gcReasons, u32at(ev.Payload, 8), "unknown reason")+")")
	case runtimeevents.IDGCEnd:
		count := u32at(ev.Payload, 0)
		for _, name := range []string{nameGCBackground, nameGC} {
			if ln := k.lanes[laneKey{t.proc, nil, name}]; ln != nil && ln.gcs[count] > 0 {
				k.end(ln, now, runtimeevents.IDGCStart, nameGC)
				return
			}
		}
		k.end(k.lane("gc", nameGC, t.proc, nil, true), now, runtimeevents.IDGCStart, nameGC)
	case runtimeevents.IDFinalizersBegin:
		k.begin(k.lane("gc", nameFinalizers, t.proc, t, true), ev, now, nameFinalizers)
	case runtimeevents.IDFinalizersEnd:
		k.end(k.lane("gc", nameFinalizers, t.proc, t, true), now, runtimeevents.IDFinalizersBegin, nameFinalizers)
	default:
		k.suspension(ev, now, t, id)
	}
}

// suspension takes an event of a suspension.
func (k *tracker) suspension(ev *nettrace.Event, now int64, t *thread, id int) {
	if len(k.l.sampler) == 0 {
		k.suspend(withoutSampler, ev, now, t, id)
	} else {
		k.suspensions[withoutSampler] = nil
	}
	if id != runtimeevents.IDSuspendEEBegin || u32at(ev.Payload, 0) != suspendOther {
		k.suspend(withSampler, ev, now, t, id)
	}
}

// suspend adds an event to the suspensions of either kind.
func (k *tracker) suspend(which int, ev *nettrace.Event, now int64, t *thread, id int) {
	s := k.suspensions[which][t.proc]
	if id == runtimeevents.IDSuspendEEBegin {
		if s == nil {
			s = &suspended{lane: k.newLane("gc", nameSuspension, t.proc, nil, true)}
			k.suspensions[which][t.proc] = s
		}
		x := suspender{t, k.item(ev, now, "suspended: "+nameOf(suspendReasons, u32at(ev.Payload, 0), "unknown reason"))}
		if len(s.open) == 0 || s.holder == t {
			k.hold(s, x, now)
		} else if len(s.waiting) < maxSuspenders {
			s.waiting = append(s.waiting, x)
		}
		return
	}
	if s == nil || len(s.open) == 0 {
		return
	}
	if s.holder != t {
		i := slices.IndexFunc(s.waiting, func(x suspender) bool { return x.thread == t })
		if i < 0 {
			return
		}
		x := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		if id != runtimeevents.IDSuspendEEEnd {
			return
		}
		k.end(s.lane, now, runtimeevents.IDSuspendEEBegin, "") // what held is over: its events were lost
		k.hold(s, x, now)
	}
	switch id {
	case runtimeevents.IDSuspendEEEnd:
		k.end(s.lane, now, runtimeevents.IDSuspendEEEnd, "")
	case runtimeevents.IDRestartEEBegin:
		k.begin(s.lane, ev, now, "restarting")
	default:
		k.end(s.lane, now, runtimeevents.IDSuspendEEBegin, "")
		if len(s.waiting) > 0 {
			x := s.waiting[0]
			s.waiting = slices.Delete(s.waiting, 0, 1)
			k.hold(s, x, now)
		}
	}
}

// hold begins the suspension by x.
func (k *tracker) hold(s *suspended, x suspender, now int64) {
	s.holder = x.thread
	x.item.start = now
	s.items.Add(&x.item)
	s.push()
	s.items.Add(&item{start: now, name: k.name("suspending"), kind: runtimeevents.IDSuspendEEEnd})
	s.push()
}

// exception takes an event of a throw or of one of its handlers.
func (k *tracker) exception(ev *nettrace.Event, now int64, t *thread, id int) {
	ln := k.lane("exceptions", nameExceptions, t.proc, t, true)
	handler := func(what string) string {
		c := ev.Cursor()
		c.Skip(16)
		if m := c.UTF16().String(); m != "" {
			return what + " in " + m
		}
		return what
	}
	switch id {
	case runtimeevents.IDExceptionThrown:
		c := ev.Cursor()
		k.begin(ln, ev, now, cmp.Or(c.UTF16().String(), "Exception"))
	case runtimeevents.IDExceptionStop:
		k.ends[t.proc.trace] = true
		if !k.stayed(ln, now, runtimeevents.IDExceptionThrown) {
			k.end(ln, now, runtimeevents.IDExceptionThrown, "Exception")
			k.leave(ln, now)
		}
	case runtimeevents.IDExceptionCatchStart:
		// Since .NET 9 `throw;` writes no event: a handler that begins right inside of another one
		// shows that it was left.
		if n := len(ln.open); n > 0 && ln.items.At(ln.open[n-1]).kind == runtimeevents.IDExceptionCatchStart {
			k.end(ln, now, runtimeevents.IDExceptionCatchStart, "catch")
		}
		k.begin(ln, ev, now, handler("catch"))
	case runtimeevents.IDExceptionFinallyStart:
		k.begin(ln, ev, now, handler("finally"))
	case runtimeevents.IDExceptionFilterStart:
		k.begin(ln, ev, now, handler("filter"))
	case runtimeevents.IDExceptionCatchStop:
		k.endHandler(ln, now, runtimeevents.IDExceptionCatchStart, "catch")
	case runtimeevents.IDExceptionFinallyStop:
		k.endHandler(ln, now, runtimeevents.IDExceptionFinallyStart, "finally")
	case runtimeevents.IDExceptionFilterStop:
		k.endHandler(ln, now, runtimeevents.IDExceptionFilterStart, "filter")
	}
}

func (k *tracker) endHandler(ln *lane, now int64, kind int32, name string) {
	if !k.stayed(ln, now, kind) {
		k.end(ln, now, kind, name)
	}
}

// mostLeft bounds lane.left.
const mostLeft = 64

// leave ends what a throw that was handled lies in: a handler that throws is left mostly, and then
// neither it nor its own throw has a stop. If it was not, as the new one was caught inside of it,
// the stop comes: see stayed.
func (k *tracker) leave(ln *lane, now int64) {
	for _, at := range ln.open {
		it := ln.items.Change(at)
		it.dur = now - it.start
		ln.count(at, -1)
	}
	ln.left, ln.open = append(ln.left, ln.open...), ln.open[:0]
	if more := len(ln.left) - mostLeft; more > 0 {
		ln.left = slices.Delete(ln.left, 0, more)
	}
}

// stayed takes the stop of what was taken for left, and reports whether it was that: it went on
// until now, and what it lies in goes on.
func (k *tracker) stayed(ln *lane, now int64, kind int32) bool {
	if len(ln.open) > 0 {
		return false
	}
	for i, at := range slices.Backward(ln.left) {
		it := ln.items.Change(at)
		if it.kind != kind {
			continue
		}
		it.dur = now - it.start
		for _, out := range ln.left[:i] {
			if around := ln.items.At(out); around.start+around.dur >= it.start {
				ln.open = append(ln.open, out)
				ln.count(out, 1)
			}
		}
		ln.left = ln.left[:0]
		return true
	}
	return false
}

// finish closes what is open and puts the tracks into the profile.
func (k *tracker) finish() {
	which := withoutSampler
	if len(k.l.sampler) > 0 {
		which = withSampler
	}
	for _, s := range k.suspensions[which] {
		k.order = append(k.order, s.lane)
	}
	slices.SortStableFunc(k.order, func(a, b *lane) int { return cmp.Compare(a.at, b.at) })
	end := k.l.end
	for _, ln := range k.order {
		for _, at := range ln.open {
			it := ln.items.Change(at)
			if it.kind == runtimeevents.IDExceptionThrown && !k.ends[ln.track.Process] {
				it.instant = true // this runtime does not tell when a throw is over
				continue
			}
			it.dur, it.open = max(0, end-it.start), true
		}
		ln.open = nil
		ln.items.Done()
		if ln.items.Len() == 0 {
			continue
		}
		if !isSorted(ln.items) { // damaged files only
			ln.items = sorted(ln.items, k.aside)
			ln.track.Nested = false
		}
		ln.track.Slices, ln.track.Err = k.slices(ln.track.Group, ln.items), k.aside.Err
		k.l.profile.Tracks = append(k.l.profile.Tracks, ln.track)
	}
	if k.acts != nil {
		k.l.profile.Tracks = append(k.l.profile.Tracks, k.acts.tracks...)
		k.l.profile.Meta.WithoutIDs = k.acts.withoutIDs
	}
	k.details.log.Done()
	if k.spill {
		k.spilled()
	}
	k.sort()
}

// isSorted reports whether items are in order of their starts.
func isSorted(list *spool.List[item]) bool {
	last := int64(math.MinInt64)
	var room []item
	for i := range list.Chunks() {
		for _, x := range list.Chunk(i, &room) {
			if x.start < last {
				return false
			}
			last = x.start
		}
	}
	return true
}

// sorted returns items in order of their starts.
func sorted(list *spool.List[item], aside *spool.Spool) *spool.List[item] {
	var all, room []item
	for i := range list.Chunks() {
		all = append(all, list.Chunk(i, &room)...)
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].start < all[k].start })
	list = spool.ListIn[item](aside)
	for i := range all {
		list.Add(&all[i])
	}
	return list
}

// sort brings the tracks of each process together, those of the process before those
// of its threads.
func (k *tracker) sort() {
	procs := map[*profile.Process]int{}
	for i, p := range k.l.order {
		procs[p.trace] = i
	}
	threads := map[*profile.Thread]int{nil: -1}
	for i, t := range k.l.profile.Threads {
		threads[t] = i
	}
	slices.SortStableFunc(k.l.profile.Tracks, func(a, b *profile.Track) int {
		return cmp.Or(
			cmp.Compare(procs[a.Process], procs[b.Process]),
			cmp.Compare(threads[a.Thread], threads[b.Thread]),
			cmp.Compare(slices.Index(Groups, a.Group), slices.Index(Groups, b.Group)),
		)
	})
}

// slices yields items as slices.
func (k *tracker) slices(group string, list *spool.List[item]) iter.Seq[*profile.Slice] {
	return func(yield func(*profile.Slice) bool) {
		var s profile.Slice
		var values []nettrace.Value
		details := payloadReader{log: &k.details}
		var room []item
		for i := range list.Chunks() {
			for _, it := range list.Chunk(i, &room) {
				args := s.Args[:0]
				s = profile.Slice{Start: it.start, Dur: it.dur, Instant: it.instant, Open: it.open, Name: k.names[it.name], Category: group}
				if it.details > 0 {
					if ev := details.read(it.details - 1); ev != nil {
						s.Category = cmp.Or(ev.Metadata.Provider, group)
						args, values = k.args(args, values, ev.Metadata, ev.Version, ev.Payload)
					}
				}
				s.Args = args
				if !yield(&s) {
					return
				}
			}
		}
	}
}

// eventName is what an event is called; damaged metadata may have no name for it.
func eventName(ev *nettrace.Event) string {
	if name := ev.EventName(); name != "" {
		return name
	}
	return "event " + strconv.Itoa(ev.Metadata.EventID)
}

// spillEvents gives up on keeping all events in memory.
func (k *tracker) spillEvents() {
	k.spill = true
	k.order = slices.DeleteFunc(k.order, func(ln *lane) bool { return ln.track.Group == "events" })
	for key, ln := range k.lanes {
		if ln.track.Group == "events" {
			delete(k.lanes, key)
		}
	}
}

// shown reports whether another track shows the event.
func (k *tracker) shown(ev *nettrace.Event) bool {
	switch m := ev.Metadata; {
	case namesCode(m), m.Role == nettrace.RolePageFault:
		return true
	case m.Source == nettrace.SourceRuntime:
		switch id := ev.Metadata.EventID; id {
		case runtimeevents.IDGCStart, runtimeevents.IDGCEnd, runtimeevents.IDRestartEEEnd, runtimeevents.IDRestartEEBegin, runtimeevents.IDSuspendEEEnd, runtimeevents.IDSuspendEEBegin, runtimeevents.IDFinalizersEnd, runtimeevents.IDFinalizersBegin:
			return k.want["gc"]
		case runtimeevents.IDExceptionThrown, runtimeevents.IDExceptionCatchStart, runtimeevents.IDExceptionCatchStop, runtimeevents.IDExceptionFinallyStart, runtimeevents.IDExceptionFinallyStop, runtimeevents.IDExceptionFilterStart, runtimeevents.IDExceptionFilterStop, runtimeevents.IDExceptionStop:
			return k.want["exceptions"]
		case runtimeevents.IDContentionStart, runtimeevents.IDContentionStop:
			return k.want["contention"]
		}
	default:
		return k.acts != nil && ofActivity(ev)
	}
	return false
}

// appendDetail appends what the trace itself names, under a key that args do not have
// yet: of two members of one name a reader of JSON keeps one. A name that we use, or the
// writers do, gets "payload." before it, as often as it takes.
func appendDetail(args []profile.Arg, key string, value any) []profile.Arg {
	for key == "tracefix" || slices.ContainsFunc(args, func(a profile.Arg) bool { return a.Key == key }) {
		key = "payload." + key
	}
	return append(args, profile.Arg{Key: key, Value: value})
}

// args appends the decoded fields of a payload to args.
func (k *tracker) args(args []profile.Arg, values []nettrace.Value, m *nettrace.Metadata, version int, payload []byte) ([]profile.Arg, []nettrace.Value) {
	ev := nettrace.Event{Metadata: m, Version: version, Payload: payload}
	lay := ev.Layout()
	if lay == nil {
		return args, values
	}
	values, _ = lay.AppendValues(values[:0], payload, k.l.info.Header.PointerSize) // a short payload gives the fields that it holds
	for i := range values {
		if i >= len(lay.Fields) {
			break
		}
		v := &values[i]
		var x any
		switch v.Kind() {
		case nettrace.KindNone:
			continue
		case nettrace.KindBool:
			x = v.Bool()
		case nettrace.KindInt:
			x = v.Int()
		case nettrace.KindUint:
			x = v.Uint()
		case nettrace.KindFloat:
			x = v.Float()
			if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
				x = v.String()
			}
		default:
			x = v.String()
		}
		args = appendDetail(args, lay.Fields[i].Name, x)
	}
	return args, values
}
