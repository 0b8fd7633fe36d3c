package activity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/nettrace"
)

// Opcode says whether an event starts or stops an activity.
type Opcode uint8

// Opcodes; the numbers are those of EventSource.
const (
	Info  Opcode = 0
	Start Opcode = 1
	Stop  Opcode = 2
)

// A Span is what the DiagnosticSource bridge tells of the System.Diagnostics.Activity
// behind an event.
type Span struct {
	Source       string // name of the ActivitySource or DiagnosticListener
	Name         string // ActivityName, without the ".Start" or ".Stop" of a DiagnosticListener
	ID           string // as it stands: W3C, or hierarchical ("|a.b_"); empty if unknown
	TraceID      string // 32 hex digits
	SpanID       string // 16 hex digits
	ParentSpanID string // empty for a root
	Kind         string // "Internal", "Client", "Server", "Producer", "Consumer"
	DisplayName  string // of a database command its text, in one line
	Status       string // "Unset", "Ok", "Error"
	Duration     int64  // ns, the activity's own measure; only a stop tells it
}

// An Event is one event of a trace. Those that neither start nor stop an activity are
// worth adding too: their ids tell that it still went on (Row.LastSeen).
type Event struct {
	Time     int64  // ns since the start of the trace
	Thread   uint64 // id of the thread that wrote it
	Process  uint32 // id of the process
	Provider string
	Name     string // with its suffix: RequestStart
	Opcode   Opcode
	ID       ID
	Related  ID
	Span     *Span // of bridge events, else nil
	// Key is what the source itself writes into the start and the stop of an activity
	// to tell it apart from others; empty if it does not. See DecodeKey.
	Key   string
	Label string // a better name for the row than that of the event; may be empty
}

// Status says how an activity ended.
type Status uint8

// The states of a row.
const (
	OK          Status = iota // started and stopped
	AutoStopped               // ended by the runtime without a Stop event
	Unfinished                // no Stop, and no sign that it ended
	OrphanStop                // a Stop whose Start is not in the trace
)

// String returns "ok", "auto-stopped", "unfinished" or "orphan-stop".
func (s Status) String() string {
	if names := [...]string{"ok", "auto-stopped", "unfinished", "orphan-stop"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// By says how the end of a row was found.
type By uint8

// Evidence for the end of a row.
const (
	ByNone   By = iota // it has none
	ByID               // the Stop carries the activity id of the Start
	BySpan             // the Stop carries the span id of the Start
	ByKey              // the Stop carries the Key of the Start
	ByThread           // same thread, no ids: a guess
	Inferred           // no Stop: the event that ended it was found by the rules of the tracker
)

// String returns "" for ByNone, else "id", "span", "key", "thread" or "inferred".
func (b By) String() string {
	if names := [...]string{"", "id", "span", "key", "thread", "inferred"}; int(b) < len(names) {
		return names[b]
	}
	return fmt.Sprintf("By(%d)", uint8(b))
}

// A Row is one activity: one Start event with what ended it, or a Stop event that
// ends nothing in the trace.
type Row struct {
	Provider    string
	Name        string // without suffix; Source/ActivityName of a bridged activity
	ID          ID
	Related     ID
	Parent      int   // index of the row of the parent; -1 for a root
	Start       int64 // ns; only if HasStart
	Stop        int64 // ns; only if HasStop
	HasStart    bool  // false for OrphanStop
	HasStop     bool  // the row has an end; no Stop event if Status is AutoStopped
	Status      Status
	By          By
	Guess       bool // the Stop could as well be that of a sibling
	DeadCreator bool // attached below an activity that had ended before it started
	Process     uint32
	StartThread uint64
	StopThread  uint64
	LastSeen    int64 // ns: time of the last event inside; 0 if there was none
	Span        *Span
}

// Duration returns the time from start to end, and false if one of them is unknown.
func (r *Row) Duration() (int64, bool) { return r.Stop - r.Start, r.HasStart && r.HasStop }

// Options of a Builder. The zero value is useful.
type Options struct {
	// PairByThread pairs starts and stops without activity ids by thread. That is
	// right for synchronous code and wrong for async code, where both happen on
	// different threads. Without it such events are only counted.
	PairByThread bool
	// Spool (a profile.Spool) takes what does not fit into memory of the rows: all but some
	// megabytes, and what its own Memory holds. nil: all stay in memory.
	Spool *spool.Spool
}

// A Count is the number of start and stop events of one kind that had no activity id.
type Count struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Starts   int    `json:"starts"`
	Stops    int    `json:"stops"`
}

// A Tree is the result of a Builder. Rows are in the order of their events.
type Tree struct {
	Rows []Row
	Facts
}

// Facts are what a Builder found beside the rows.
type Facts struct {
	// WithoutID counts the start and stop events without an activity id, in the
	// order of their first event. They are rows too, paired by thread and marked as a
	// guess, if the trace has ids or Options.PairByThread is set.
	WithoutID []Count
	// HasIDs reports whether any event carried an activity id.
	HasIDs bool
	ids    Decoder
}

// Path decodes the id of a row.
func (t *Facts) Path(r *Row) (Path, bool) { return t.ids.Path(r.ID) }

// Lossy reports whether a process was found to write ids of .NET 10.
func (t *Facts) Lossy() bool { return t.ids.Proven() > 0 }

type identityKey struct{ provider, name string }

type threadKey struct {
	process  uint32
	thread   uint64
	identity uint32
}

// A spanKey has an identity since a listener and a source may both tell of one span.
type spanKey struct {
	identity    uint32
	trace, span string
}

type sourceKey struct {
	process  uint32
	identity uint32
	key      string
}

// A Builder collects events, in time order, into a tree. Its memory grows with the number of
// activities, some 90 bytes each, or where there is a Spool with the number of those that are open.
type Builder struct {
	opts       Options
	rows       *Rows // outlive the Builder
	identities map[identityKey]uint32
	lately     [16]lately // identities that were asked for last
	hash       hasher
	opened     bitSet   // rows that have begun and not ended: the tables ask for it of some that are far apart
	byID       rowTable // last row of an id that is known
	open       rowTable // last open row of an id and identity
	siblings   rowTable // last row of a thread, an identity and a path without its last number
	spans      map[spanKey]int32
	keys       map[sourceKey]int32 // open rows
	threads    map[threadKey][]int32
	unsuffixed map[string][]uint32 // by provider the identities of starts whose names have no suffix
	orphans    bool                // a row without related id may have a parent: see deadCreators
	// Few rows have one.
	openPrev map[int32]int32 // the open row of the same id and identity before
	older    map[int32]int32 // previous row of the same id, or one before that if it is closed
	within   []withinRow     // by the number of the thread, where ids are those of .NET 10
}

// A withinRow is the row that a thread is in, by the newest start or stop that it wrote. Of the activities
// that have one id it is the one that the thread's next event means, most often behind a start, and always
// behind a stop: that of Hosting stands behind the one of Kestrel.
type withinRow struct {
	row   int32 // 1 + the row; 0: none
	ended bool  // one inside it
}

// NewBuilder returns an empty Builder. opts may be nil.
func NewBuilder(opts *Options) *Builder {
	b := &Builder{
		rows:       &Rows{names: map[int32]string{}, spans: map[int32]*Span{}, numbers: map[rowThread]uint32{}},
		identities: map[identityKey]uint32{},
		hash:       newHasher(),
		spans:      map[spanKey]int32{},
		keys:       map[sourceKey]int32{},
		threads:    map[threadKey][]int32{},
		unsuffixed: map[string][]uint32{},
		openPrev:   map[int32]int32{},
		older:      map[int32]int32{},
	}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Spool != nil {
		b.rows.spool, b.rows.pages = b.opts.Spool, spool.PagesIn[rowPage](b.opts.Spool, rowMemory)
	}
	return b
}

// bareName removes the suffix of a start or stop event; false if it has none. Its opcode makes it one
// all the same: BeginExecute and EndExecute are those of an activity if their source says so.
func bareName(name string, op Opcode) (string, bool) {
	suffix := "Start"
	if op == Stop {
		suffix = "Stop"
	}
	name, ok := strings.CutSuffix(name, suffix)
	return strings.TrimSuffix(name, "/"), ok
}

// runtimeProvider reports whether a provider's start and stop events are left out of
// the tree (rule 1): they are not made by EventSource, or not about the program.
func runtimeProvider(p string) bool {
	return nettrace.OfRuntime(p) || p == nettrace.ProviderTasks
}

// Add takes the next event and returns the index of the row that it began; -1 if it began none.
// Strings of e are kept, e is not.
func (b *Builder) Add(e *Event) int {
	hasID := !e.ID.IsZero()
	b.rows.HasIDs = b.rows.HasIDs || hasID
	if e.Opcode != Start && e.Opcode != Stop || runtimeProvider(e.Provider) {
		if hasID {
			b.seen(e)
		}
		return -1
	}
	name, suffixed := bareName(e.Name, e.Opcode)
	if e.Span != nil && !hasID && !e.paired() {
		name = e.label() // nobody asked for ids: what it is called is all that tells it from others
	}
	identity := b.identity(identityKey{e.Provider, name})
	if e.Opcode == Start {
		if !suffixed {
			b.noteUnsuffixed(e.Provider, identity)
		}
		return int(b.start(e, name, identity))
	}
	b.stop(e, name, identity, suffixed)
	return -1
}

// maxUnsuffixed bounds the kinds of starts of a source that any of its stops without a suffix may end.
const maxUnsuffixed = 64

// noteUnsuffixed notes that an event without a suffix starts activities.
func (b *Builder) noteUnsuffixed(provider string, identity uint32) {
	if list := b.unsuffixed[provider]; len(list) < maxUnsuffixed && !slices.Contains(list, identity) {
		b.unsuffixed[provider] = append(list, identity)
	}
}

// openUnsuffixed returns the newest row that a stop without a suffix ends: the tracker knows such events by
// their task, which is not in the file. So it is the id that tells, or without ids the thread.
func (b *Builder) openUnsuffixed(provider string, open func(identity uint32) int32) int32 {
	newest := int32(-1)
	for _, identity := range b.unsuffixed[provider] {
		newest = max(newest, open(identity))
	}
	return newest
}

// A lately is an identity and its number.
type lately struct {
	identityKey
	identity uint32
}

// identity returns the number of an identity. Of few kinds of events there are many, whose names
// are the same memory.
func (b *Builder) identity(k identityKey) uint32 {
	last := &b.lately[(len(k.provider)+3*len(k.name))%len(b.lately)]
	if last.identityKey == k && k != (identityKey{}) {
		return last.identity
	}
	n, ok := b.identities[k]
	if !ok {
		n = uint32(len(b.rows.counts))
		b.identities[k] = n
		b.rows.counts = append(b.rows.counts, Count{Provider: k.provider, Name: k.name})
	}
	*last = lately{k, n}
	return n
}

// An owned is an id and the process whose events carry it. The number of a process in the id itself
// is the one that it has in its container, where most are process 1: in a recording of a machine
// ids of several processes are equal.
type owned struct {
	process uint32
	id      ID
}

// known returns the last row of an id; -1 if there is none.
func (b *Builder) known(id *owned) int32 { return rowIn(b.slot(id, b.hash.id(id))) }

// slot returns the slot of the last row of an id, which has that hash; nil if there is none.
func (b *Builder) slot(id *owned, hash uint32) *rowSlot {
	return b.byID.find(hash, func(i int32) bool { return b.isKnown(i) && b.rows.carries(i, id) })
}

// openSlot returns the slot of the last open row of an id, which has that hash, and an identity;
// nil if there is none.
func (b *Builder) openSlot(id *owned, hash, identity uint32) *rowSlot {
	return b.open.find(b.hash.open(hash, identity), func(i int32) bool {
		return b.isOpen(i) && b.rows.carries(i, id) && b.rows.at(i).identity == identity
	})
}

// rowIn returns the row of a slot, -1 if that is nil.
func rowIn(s *rowSlot) int32 {
	if s == nil {
		return -1
	}
	return s.row - 1
}

func (b *Builder) isOpen(i int32) bool { return b.opened.has(i) }

// isKnown reports whether events can still be about row i: of those that have ended the last half
// million. What comes later with the id of another one, left over on some thread, goes below what
// its path says is open.
func (b *Builder) isKnown(i int32) bool { return int(i) >= b.rows.Len()-maxKnown || b.isOpen(i) }

const maxKnown = 1 << 19

// seen notes that e happened inside the activity whose id it has.
func (b *Builder) seen(e *Event) {
	if i := b.known(&owned{e.Process, e.ID}); i >= 0 {
		if o := b.lastOpen(i); o >= 0 {
			i = o
		}
		_, _, more := b.rows.change(i)
		more.lastSeen = e.Time
	}
}

// lastOpen returns the newest open row of the id of row i, the newest one of that id;
// -1 if there is none.
func (b *Builder) lastOpen(i int32) int32 {
	return b.follow(i, func(i int32) int32 { return rowOf(b.older, i) }, func(i, to int32) { b.older[i] = to })
}

// openAbove returns the first open row from i upwards; -1 if there is none.
func (b *Builder) openAbove(i int32) int32 {
	return b.follow(i, func(i int32) int32 { return b.rows.more(i).above - 1 }, func(i, to int32) {
		_, _, more := b.rows.change(i)
		more.above = 1 + to
	})
}

// rowOf returns what is noted of row i; -1 if nothing is.
func rowOf(m map[int32]int32, i int32) int32 {
	if to, ok := m[i]; ok {
		return to
	}
	return -1
}

// follow returns the first open row from i on, going by next. No row opens again: those
// it passes lead straight there the next time, for an id may have many.
func (b *Builder) follow(i int32, next func(int32) int32, lead func(i, to int32)) int32 {
	to := i
	for to >= 0 && !b.isOpen(to) {
		to = next(to)
	}
	for i != to {
		n := next(i)
		if n != to {
			lead(i, to)
		}
		i = n
	}
	return to
}

func (b *Builder) start(e *Event, name string, identity uint32) int32 {
	hasID := !e.ID.IsZero()
	if !hasID && !e.paired() {
		b.rows.counts[identity].Starts++
	}
	i := int32(b.rows.Len())
	parent := int32(-1)
	thread := b.rows.number(e.Process, e.Thread)
	id := owned{e.Process, e.ID}
	var own Path
	var hash uint32
	hasOwn, inside := false, false
	if hasID {
		hash = b.hash.id(&id)
		own, hasOwn = b.rows.ids.Decode(e.ID)
		if inside = hasOwn && b.untracked(e, &own); inside {
			parent = b.openOf(b.known(&id))
		}
	}
	switch {
	case inside:
	case !e.Related.IsZero():
		parent = b.parent(thread, &owned{e.Process, e.Related}, &own, hasOwn)
	case hasID:
		// How ids of the process are to be read may be known later only.
		lossy, _ := Decode(e.ID, true)
		b.orphans = b.orphans || max(own.n, lossy.n) > 1
	case e.Span != nil && e.Span.ParentSpanID != "":
		// The tracker is off, but a span says itself what it is in.
		if r, ok := b.spans[spanKey{identity, e.Span.TraceID, e.Span.ParentSpanID}]; ok {
			parent, inside = r, true
		}
	}
	switch {
	case hasID:
		if !inside && hasOwn && own.overflow == Fits && own.n > 0 {
			b.follows(i, &own, thread, identity, e.Time)
		}
		if s := b.openSlot(&id, hash, identity); s != nil {
			b.openPrev[i] = s.row - 1
			s.row = 1 + i
		} else {
			b.open.add(b.hash.open(hash, identity), i, b.isOpen)
		}
	case !e.paired():
		k := threadKey{e.Process, e.Thread, identity}
		b.threads[k] = append(b.threads[k], i)
	}
	if e.Span != nil && e.Span.SpanID != "" {
		b.spans[spanKey{identity, e.Span.TraceID, e.Span.SpanID}] = i
	} else if k := e.key(); k != "" {
		b.keys[sourceKey{e.Process, identity, k}] = i
	}
	b.rows.add(e, parent, thread, identity, cmp.Or(e.label(), name, e.Name))
	b.rows.set(i, rowStarted)
	if inside {
		b.rows.set(i, rowUntracked)
	}
	b.opened.set(i, true)
	if b.rows.Lossy() {
		b.enter(thread, i, false)
	}
	b.rows.setEnd(i, Unfinished, ByNone)
	if hasID && !inside {
		if s := b.slot(&id, hash); s != nil {
			b.older[i] = s.row - 1
			s.row = 1 + i
		} else {
			b.byID.add(hash, i, b.isKnown)
		}
	}
	return i
}

// key is what the start and the stop of an activity have in common by their payloads.
func (e *Event) key() string {
	if e.Span != nil {
		return e.Span.ID
	}
	return e.Key
}

// paired reports whether the payload of e tells it apart from others of its kind.
func (e *Event) paired() bool { return e.Span != nil && e.Span.SpanID != "" || e.key() != "" }

// label names the row of e if it is not the event that does.
func (e *Event) label() string {
	if e.Span != nil {
		return e.Span.label()
	}
	return e.Label
}

// follows notes that row i, whose path is p, is the last one of its thread, its identity and the
// activity that p runs through before its end. An open one before it has been replaced.
func (b *Builder) follows(i int32, p *Path, thread, identity uint32, at int64) {
	hash := b.hash.words(uint64(p.process), uint64(p.n))
	for _, v := range p.num[:p.n-1] {
		hash = b.hash.words(hash, uint64(v))
	}
	key := b.hash.short(hash, uint64(thread)<<32|uint64(identity))
	s := b.siblings.find(key, func(j int32) bool {
		if !b.isOpen(j) {
			return false
		}
		r := b.rows.at(j)
		if r.startThread != thread || r.identity != identity {
			return false
		}
		q, _ := b.rows.ids.Path(r.id)
		return q.process == p.process && q.n == p.n && slices.Equal(q.num[:q.n-1], p.num[:p.n-1])
	})
	if s == nil {
		b.siblings.add(key, i, b.isOpen)
		return
	}
	b.rows.replaced(s.row-1, at)
	s.row = 1 + i
}

// openOf returns the open row that what is inside row i belongs to, which is the newest one of its id;
// -1 if there is none.
func (b *Builder) openOf(i int32) int32 {
	if o := b.lastOpen(i); o >= 0 {
		return o
	}
	return b.openAbove(i)
}

// untracked reports whether a Start, which has that path, got no id of its own and shows the one that its
// thread had: its source has ActivityOptions.Disable, it has a related id that the program chose, or it
// lies 102 deep. Ids that lost a number are those of several activities.
func (b *Builder) untracked(e *Event, own *Path) bool {
	if own.HasLost() {
		return false
	}
	if p, ok := b.rows.ids.Decode(e.Related); ok && p.MayStart(own) {
		return false // as nearly always: its id is not looked for
	}
	return b.known(&owned{e.Process, e.ID}) >= 0
}

// parent applies rule 3: the row that a Start's related id names. The path
// that the tracker gave the Start overrules that.
func (b *Builder) parent(thread uint32, related *owned, own *Path, hasOwn bool) int32 {
	p, ok := b.rows.ids.Decode(related.id)
	if ok && hasOwn && !p.MayStart(own) {
		if i := b.prefix(related.process, own); i >= 0 {
			return b.openAbove(i)
		}
		return -1
	}
	if p.HasLost() {
		if row, _ := b.in(thread, related); row >= 0 {
			return row
		}
	}
	if row := b.known(related); row >= 0 {
		return b.openOf(row)
	}
	if ok {
		if i := b.prefix(related.process, &p); i >= 0 {
			return i
		}
	}
	if hasOwn {
		return b.prefix(related.process, own)
	}
	return -1
}

// in returns the row that a thread is in, if that is open and has an id, and whether one inside it has
// ended; -1 if there is none.
func (b *Builder) in(thread uint32, id *owned) (row int32, ended bool) {
	if int(thread) >= len(b.within) {
		return -1, false
	}
	w := b.within[thread]
	if w.row == 0 || !b.isOpen(w.row-1) || !b.rows.carries(w.row-1, id) {
		return -1, false
	}
	return w.row - 1, w.ended
}

// enter notes in which row a thread is.
func (b *Builder) enter(thread uint32, row int32, ended bool) {
	for int(thread) >= len(b.within) {
		b.within = append(b.within, withinRow{})
	}
	b.within[thread] = withinRow{1 + row, ended}
}

// prefix returns the newest row, an open one if there is one, of the longest known
// proper prefix of p, which is of a process.
func (b *Builder) prefix(process uint32, p *Path) int32 {
	for n := int(p.n) - 1; n > 0; n-- {
		for _, id := range b.rows.prefixIDs(p, n) {
			if i := b.known(&owned{process, id}); i >= 0 {
				if o := b.lastOpen(i); o >= 0 {
					return o
				}
				return i
			}
		}
	}
	return -1
}

// prefixIDs returns the ids that the first n numbers of p can have.
func (f *Facts) prefixIDs(p *Path, n int) []ID {
	q := *p
	q.n, q.overflow, q.overNum = uint8(n), Fits, 0
	clear(q.num[n:])
	var ids []ID
	encoders := []Encoder{EncoderOld, EncoderNew}
	if f.ids.Lossy(p.process) {
		encoders = encoders[1:]
	}
	for _, e := range encoders {
		if id, err := Encode(q, e); err == nil && (len(ids) == 0 || ids[0] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (b *Builder) stop(e *Event, name string, identity uint32, suffixed bool) {
	hasID := !e.ID.IsZero()
	i, by, guess := int32(-1), ByNone, false
	thread := b.rows.number(e.Process, e.Thread)
	switch {
	case e.Span != nil && e.Span.SpanID != "":
		k := spanKey{identity, e.Span.TraceID, e.Span.SpanID}
		if r, ok := b.spans[k]; ok {
			if delete(b.spans, k); b.isOpen(r) { // else a stop that did not tell its span was the one
				i, by = r, BySpan
			}
		}
	case e.key() != "":
		k := sourceKey{e.Process, identity, e.key()}
		if r, ok := b.keys[k]; ok {
			if delete(b.keys, k); b.isOpen(r) {
				i, by = r, ByKey
			}
		}
	case hasID:
		id := owned{e.Process, e.ID}
		hash := b.hash.id(&id)
		open := func(identity uint32) int32 { return rowIn(b.openSlot(&id, hash, identity)) }
		r := open(identity)
		if r < 0 && !suffixed {
			r = b.openUnsuffixed(e.Provider, open)
		}
		if r >= 0 {
			i, by = r, ByID
			// Two open siblings of one id (.NET 10): nothing but the thread can tell which it is.
			if o := b.openBefore(r); o >= 0 && b.rows.at(o).parent == b.rows.at(r).parent {
				guess = true
				if row, ended := b.in(thread, &id); row >= 0 && b.rows.at(row).identity == b.rows.at(r).identity {
					i, guess = row, !ended
				}
			}
		}
	default:
		b.rows.counts[identity].Stops++
		open := func(identity uint32) int32 {
			if s := b.threads[threadKey{e.Process, e.Thread, identity}]; len(s) > 0 {
				return s[len(s)-1]
			}
			return -1
		}
		r := open(identity)
		if r < 0 && !suffixed {
			r = b.openUnsuffixed(e.Provider, open)
		}
		if r >= 0 {
			i, by, guess = r, ByThread, true
			k := threadKey{e.Process, e.Thread, b.rows.at(r).identity}
			b.threads[k] = b.threads[k][:len(b.threads[k])-1]
		}
	}
	if i < 0 {
		if hasID {
			b.seen(e)
		}
		i := b.rows.add(e, -1, thread, identity, cmp.Or(e.label(), name, e.Name))
		b.rows.stop(i, e, OrphanStop, ByNone)
		b.opened.set(i, false)
		return
	}
	b.rows.stop(i, e, OK, by)
	b.opened.set(i, false)
	if parent := b.rows.at(i).parent - 1; parent >= 0 && b.rows.Lossy() {
		b.enter(thread, parent, true)
	}
	if guess {
		b.rows.set(i, rowGuess)
	}
	b.pop(i)
	if hasID && e.ID != b.rows.at(i).id {
		b.seen(e)
	}
}

// openBefore returns the open row of the id and identity of row r before that; -1 if there is none.
func (b *Builder) openBefore(r int32) int32 {
	before, ok := b.openPrev[r]
	for ok && !b.isOpen(before) {
		closed := before
		before, ok = b.openPrev[closed]
		delete(b.openPrev, closed)
	}
	if !ok {
		delete(b.openPrev, r)
		return -1
	}
	b.openPrev[r] = before
	return before
}

// pop has the open row before row i, which has ended, found in its place.
func (b *Builder) pop(i int32) {
	if _, ok := b.openPrev[i]; !ok {
		return
	}
	r := b.rows.at(i)
	s := b.open.find(b.hash.open(b.hash.id(&owned{b.rows.processOf(r), r.id}), r.identity), func(j int32) bool { return j == i })
	if s == nil {
		return // i is not the last one
	}
	before := b.openBefore(i)
	delete(b.openPrev, i)
	if before >= 0 {
		s.row = 1 + before
	} // else there is none: what has ended is not found
}

// Finish ends the rows that had no Stop and returns the tree. The Builder must not
// be used any more.
func (b *Builder) Finish() *Tree { return b.FinishRows().Tree() }

// FinishRows does what Finish does and leaves the rows as they were kept: in a third of the memory.
func (b *Builder) FinishRows() *Rows {
	t, orphans, open := b.rows, b.orphans, b.opened
	*b = Builder{opts: b.opts}
	for _, c := range t.counts {
		if c.Starts+c.Stops > 0 {
			t.WithoutID = append(t.WithoutID, c)
		}
	}
	if !t.HasIDs && !b.opts.PairByThread {
		// Nothing but the thread could pair these (section 7.2): no rows is right,
		// wrong durations are not. The others have no parents but spans, so none is lost.
		t.keep(&open)
	}
	if orphans {
		t.deadCreators(open)
	}
	t.autoStop(open)
	t.pages.Done()
	return t
}

// autoStop finds the ends of the rows that had no Stop.
func (t *Rows) autoStop(open bitSet) {
	first := int32(-1)
	for i := range open.all {
		first = i
		break
	}
	if first < 0 {
		return
	}
	// Each row tells the one around it that had no Stop when it began, and that the next one.
	for i := first + 1; i < int32(t.Len()); i++ {
		t.trim(i)
		r := t.at(i)
		if r.parent == 0 || t.has(i, rowDeadCreator) || !t.has(i, rowStarted) {
			continue
		}
		around := r.parent
		if !open.has(around - 1) {
			if around = t.more(around - 1).around; around == 0 {
				continue
			}
		}
		_, _, more := t.change(i)
		more.around = around
		_, _, up := t.change(around - 1)
		up.below = max(up.below, r.start)
	}
	for i := range open.backward {
		if around := t.more(i).around; around > 0 {
			at := t.more(i).below
			_, _, up := t.change(around - 1)
			up.below = max(up.below, at)
		}
		t.trim(i)
	}
	for i := range open.all {
		t.pages.Trim()
		r, flags, more := t.change(i)
		if up := r.parent - 1; up >= 0 {
			if statusOf(t.flags(up)) == OK {
				more.stopped = 1 + up
			} else {
				more.stopped = t.more(up).stopped
			}
		}
		end := int64(-1)
		if *flags&rowReplaced != 0 {
			end = r.stop
		}
		if more.stopped > 0 {
			if at := t.at(more.stopped - 1).stop; at >= r.start && (end < 0 || at < end) {
				end = at
			}
		}
		r.stop = 0
		if *flags&rowUntracked != 0 {
			continue // the tracker does not know of it and ends nothing
		}
		if end >= 0 && more.lastSeen <= end && more.below <= end {
			r.stop = end
			*flags |= rowStopped
			t.setEnd(i, AutoStopped, Inferred)
		}
	}
}

// deadCreators applies rule 4: a row without related id goes below the activity
// that its path runs through, if that one was never stopped.
func (t *Rows) deadCreators(unstopped bitSet) {
	open := map[owned][]int32{}
	for i := range unstopped.all {
		if r := t.at(i); !r.id.IsZero() {
			k := owned{t.processOf(r), r.id}
			open[k] = append(open[k], i)
		}
	}
	if len(open) == 0 {
		return
	}
	for i := range int32(t.Len()) {
		t.trim(i)
		r := t.at(i)
		id, process := r.id, t.processOf(r)
		if !t.has(i, rowStarted) || !t.more(i).related.IsZero() || id.IsZero() {
			continue
		}
		p, ok := t.ids.Path(id)
		if !ok || p.n < 2 {
			continue
		}
	search:
		for n := int(p.n) - 1; n > 0; n-- {
			for _, id := range t.prefixIDs(&p, n) {
				rows := open[owned{process, id}]
				if j, _ := slices.BinarySearch(rows, i); j > 0 {
					r, flags, _ := t.change(i)
					r.parent = 1 + rows[j-1]
					*flags |= rowDeadCreator
					break search
				}
			}
		}
	}
}
