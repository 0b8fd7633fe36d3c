package activity

import (
	"iter"

	"github.com/tracefix/tracefix/internal/spool"
)

// Rows are those of a Tree as a Builder keeps them, in some 90 bytes each; see Options.Spool.
type Rows struct {
	Facts
	n       int
	spool   *spool.Spool
	pages   spool.Pages[rowPage]
	counts  []Count          // by identity: provider and name of the rows
	names   map[int32]string // of rows that are not called as their identity is
	spans   map[int32]*Span
	threads []rowThread // by number
	numbers map[rowThread]uint32
	last    [32]uint32 // numbers of the last threads, by their ids
}

type rowThread struct {
	process uint32
	thread  uint64
}

const rowsAtOnce = 1 << 9

// rowMemory is how many bytes of rows stay in memory where there is a Spool.
const rowMemory = 8 << 20

// A rowPage is so many rows side by side.
type rowPage struct {
	rows  [rowsAtOnce]row
	flags [rowsAtOnce]uint16
	more  [rowsAtOnce]rowMore
}

// A row is a Row as it is kept.
type row struct {
	id          ID
	start       int64
	stop        int64 // with rowReplaced and not rowStopped the time of the Start that replaced it
	parent      int32 // 1 + the row; 0: none
	identity    uint32
	startThread uint32 // number
	stopThread  uint32
}

// A rowMore is what else is kept of a row.
type rowMore struct {
	related  ID
	lastSeen int64
	above    int32 // as parent, or a row above it if that is closed
	// What autoStop finds, of rows without a Stop, but for around. Rows as in parent.
	around  int32 // the innermost row around it without a Stop
	stopped int32 // the innermost row around it with one
	below   int64 // the latest start below it
}

// Flags of a row; above them its Status and By.
const (
	rowStarted = 1 << iota
	rowStopped
	rowGuess
	rowDeadCreator
	rowPaired     // by what the payloads say, or by nothing
	rowReplaced   // another Start took its place
	rowStopThread // stopThread is known
	rowUntracked  // it lies in another activity, and has no id of its own
	rowStatus     = 8
	rowBy         = 12
)

// Err returns the error of rows that a Spool could not read again: those that were asked for since
// are not what they were.
func (t *Rows) Err() error { return t.pages.Err() }

// Len returns the number of rows.
func (t *Rows) Len() int { return t.n }

func (t *Rows) at(i int32) *row { return &t.pages.At(int(i / rowsAtOnce)).rows[i%rowsAtOnce] }

// processOf returns the process of a row.
func (t *Rows) processOf(r *row) uint32 { return t.threads[r.startThread].process }

// carries reports whether a row has an id of a process.
func (t *Rows) carries(i int32, id *owned) bool {
	r := t.at(i)
	return r.id == id.id && t.processOf(r) == id.process
}

func (t *Rows) more(i int32) *rowMore { return &t.pages.At(int(i / rowsAtOnce)).more[i%rowsAtOnce] }

func (t *Rows) flags(i int32) uint16 { return t.pages.At(int(i / rowsAtOnce)).flags[i%rowsAtOnce] }

// change returns a row that is changed before any other is added.
func (t *Rows) change(i int32) (*row, *uint16, *rowMore) {
	p := t.pages.Mut(int(i / rowsAtOnce))
	return &p.rows[i%rowsAtOnce], &p.flags[i%rowsAtOnce], &p.more[i%rowsAtOnce]
}

func (t *Rows) has(i int32, flag uint16) bool { return t.flags(i)&flag != 0 }

func (t *Rows) set(i int32, flags uint16) {
	_, f, _ := t.change(i)
	*f |= flags
}

// setEnd notes how a row ended, and how that was found.
func (t *Rows) setEnd(i int32, s Status, by By) {
	_, f, _ := t.change(i)
	*f = *f&(1<<rowStatus-1) | uint16(s)<<rowStatus | uint16(by)<<rowBy
}

func (t *Rows) number(process uint32, thread uint64) uint32 {
	k := rowThread{process, thread}
	last := &t.last[thread%uint64(len(t.last))]
	if n := *last; int(n) < len(t.threads) && t.threads[n] == k {
		return n
	}
	n, ok := t.numbers[k]
	if !ok {
		n = uint32(len(t.threads))
		t.threads, t.numbers[k] = append(t.threads, k), n
	}
	*last = n
	return n
}

// add appends the row of an event.
func (t *Rows) add(e *Event, parent int32, thread, identity uint32, name string) int32 {
	if t.n%rowsAtOnce == 0 {
		t.pages.Add()
	}
	i := int32(t.n)
	t.n++
	r, flags, more := t.change(i)
	*r = row{id: e.ID, start: e.Time, parent: 1 + parent, identity: identity, startThread: thread}
	more.above = 1 + parent
	if e.paired() {
		*flags |= rowPaired
	}
	if e.Opcode == Start {
		more.related = e.Related
	}
	if e.Span != nil {
		t.spans[i] = e.Span
	}
	if name != t.counts[identity].Name {
		t.names[i] = name
	}
	return i
}

// stop ends a row.
func (t *Rows) stop(i int32, e *Event, s Status, by By) {
	r, flags, _ := t.change(i)
	r.stop, r.stopThread = max(r.start, e.Time), t.number(e.Process, e.Thread) // an event may come too late
	if e.Span != nil {
		if was := t.spans[i]; was != nil && e.Span.DisplayName == "" {
			e.Span.DisplayName = was.DisplayName
		}
		t.spans[i] = e.Span // it knows what the start did not
	}
	*flags |= rowStopped | rowStopThread
	t.setEnd(i, s, by)
}

// replaced notes that a Start took the place of a row that has not ended.
func (t *Rows) replaced(i int32, at int64) {
	if r, flags, _ := t.change(i); *flags&rowStopped == 0 {
		r.stop = at
		*flags |= rowReplaced
	}
}

// keep drops the rows that nothing but the thread pairs, also from those that are open. What others
// are called is wrong then.
func (t *Rows) keep(open *bitSet) {
	var kept bitSet
	names, spans := map[int32]string{}, map[int32]*Span{}
	moved := map[int32]int32{} // rows of spans, which are all that others lie in
	to := int32(0)
	for i := range int32(t.n) {
		if !t.has(i, rowPaired) {
			continue
		}
		kept.set(to, open.has(i))
		r, flags, more := t.change(to)
		*r, *flags, *more = *t.at(i), t.flags(i), *t.more(i)
		if r.parent > 0 {
			r.parent = 1 + moved[r.parent-1]
			more.above = r.parent
		}
		if s, ok := t.names[i]; ok {
			names[to] = s
		}
		if s, ok := t.spans[i]; ok {
			spans[to], moved[i] = s, to
		}
		to++
		t.trim(i)
	}
	t.n, t.names, t.spans, *open = int(to), names, spans, kept
	t.pages.Cut((t.n + rowsAtOnce - 1) / rowsAtOnce)
}

// trim puts rows aside every now and then: who goes through all of them says where that is.
func (t *Rows) trim(i int32) {
	if i%rowsAtOnce == 0 {
		t.pages.Trim()
	}
}

// Row puts row i into r.
func (t *Rows) Row(i int, r *Row) { t.fill(t.pages.At(i/rowsAtOnce), i, r) }

// fill puts row i, which is on a page, into r.
func (t *Rows) fill(p *rowPage, i int, r *Row) {
	k := i % rowsAtOnce
	x, flags, more := &p.rows[k], p.flags[k], &p.more[k]
	start := t.threads[x.startThread]
	*r = Row{
		Provider: t.counts[x.identity].Provider, Name: t.counts[x.identity].Name, ID: x.id, Related: more.related, Parent: int(x.parent) - 1,
		HasStart: flags&rowStarted != 0, HasStop: flags&rowStopped != 0, Guess: flags&rowGuess != 0, DeadCreator: flags&rowDeadCreator != 0,
		Status: statusOf(flags), By: By(flags >> rowBy), Process: start.process, Span: t.spans[int32(i)], LastSeen: more.lastSeen,
	}
	if s, ok := t.names[int32(i)]; ok {
		r.Name = s
	}
	if r.HasStart {
		r.Start, r.StartThread = x.start, start.thread
	}
	if r.HasStop {
		r.Stop = x.stop
		if flags&rowStopThread != 0 {
			r.StopThread = t.threads[x.stopThread].thread
		}
	}
}

func statusOf(flags uint16) Status { return Status(flags >> rowStatus & 15) }

// A RowReader reads rows one after the other, for who does not come back to them.
type RowReader struct {
	rows *Rows
	page *rowPage
	at   int // its number
	room rowPage
}

// Reader returns a RowReader.
func (t *Rows) Reader() *RowReader { return &RowReader{rows: t, at: -1} }

// Row puts row i into r.
func (d *RowReader) Row(i int, r *Row) {
	if i/rowsAtOnce != d.at {
		d.at = i / rowsAtOnce
		d.page = d.rows.pages.View(d.at, &d.room)
	}
	d.rows.fill(d.page, i, r)
}

// ID returns what Row i has as ID.
func (t *Rows) ID(i int) ID { return t.at(int32(i)).id }

// All yields the rows with their numbers. Each is valid until the next one.
func (t *Rows) All() iter.Seq2[int, *Row] {
	return func(yield func(int, *Row) bool) {
		r, d := &Row{}, t.Reader()
		for i := range t.n {
			if d.Row(i, r); !yield(i, r) {
				return
			}
		}
	}
}

// Tree returns the rows as a Tree.
func (t *Rows) Tree() *Tree {
	tree := &Tree{Facts: t.Facts, Rows: make([]Row, t.n)}
	d := t.Reader()
	for i := range tree.Rows {
		d.Row(i, &tree.Rows[i])
	}
	return tree
}

// Process returns what Row i has as Process.
func (t *Rows) Process(i int) uint32 { return t.processOf(t.at(int32(i))) }

// Parent returns what Row i has as Parent.
func (t *Rows) Parent(i int) int { return int(t.at(int32(i)).parent) - 1 }
