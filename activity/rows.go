package activity

import "iter"

// Rows are those of a Tree as a Builder keeps them, in some 70 bytes each.
type Rows struct {
	Facts
	n       int
	chunks  []*rowChunk
	counts  []Count          // by identity: provider and name of the rows
	names   map[int32]string // of rows that are not called as their identity is
	spans   map[int32]*Span
	foreign []ID        // related ids that no row has
	threads []rowThread // by number
	numbers map[rowThread]uint32
	last    [32]uint32 // numbers of the last threads, by their ids
}

type rowThread struct {
	process uint32
	thread  uint64
}

const rowsAtOnce = 1 << 10

// A rowChunk is so many rows side by side: the list never moves as a whole.
type rowChunk struct {
	rows  [rowsAtOnce]row
	flags [rowsAtOnce]uint16
	more  *[rowsAtOnce]rowMore // nil after Lean
}

// A row is a Row as it is kept.
type row struct {
	id          ID
	start       int64
	stop        int64 // with rowReplaced and not rowStopped the time of the Start that replaced it
	parent      int32
	identity    uint32
	startThread uint32 // number
	stopThread  uint32
}

// A rowMore is what else is kept of a row.
type rowMore struct {
	lastSeen int64
	related  int32 // 1 + the row that has the id; below 0: -1 - its place in foreign; 0: none
	above    int32 // parent, or a row above it if that is closed
}

// Flags of a row; above them its Status and By.
const (
	rowStarted = 1 << iota
	rowStopped
	rowOpen
	rowGuess
	rowDeadCreator
	rowPaired     // by what the payloads say, or by nothing
	rowReplaced   // another Start took its place
	rowStopThread // stopThread is known
	rowStatus     = 8
	rowBy         = 12
)

// Len returns the number of rows.
func (t *Rows) Len() int { return t.n }

func (t *Rows) at(i int32) *row { return &t.chunks[i/rowsAtOnce].rows[i%rowsAtOnce] }

func (t *Rows) more(i int32) *rowMore { return &t.chunks[i/rowsAtOnce].more[i%rowsAtOnce] }

// Lean drops what a Row has as Related and LastSeen.
func (t *Rows) Lean() {
	t.foreign = nil
	for _, c := range t.chunks {
		c.more = nil
	}
}

func (t *Rows) flags(i int32) *uint16 { return &t.chunks[i/rowsAtOnce].flags[i%rowsAtOnce] }

func (t *Rows) has(i int32, flag uint16) bool { return *t.flags(i)&flag != 0 }

func (t *Rows) set(i int32, flags uint16) { *t.flags(i) |= flags }

// setEnd notes how a row ended, and how that was found.
func (t *Rows) setEnd(i int32, s Status, by By) {
	f := t.flags(i)
	*f = *f&(1<<rowStatus-1) | uint16(s)<<rowStatus | uint16(by)<<rowBy
}

// end returns what setEnd was told.
func (t *Rows) end(i int32) (Status, By) {
	f := *t.flags(i)
	return Status(f >> rowStatus & 15), By(f >> rowBy)
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

// add appends the row of an event. related is the row that has its related id; -1 if none does.
func (t *Rows) add(e *Event, parent, related int32, thread, identity uint32, name string) int32 {
	if t.n%rowsAtOnce == 0 {
		t.chunks = append(t.chunks, &rowChunk{more: new([rowsAtOnce]rowMore)})
	}
	i := int32(t.n)
	t.n++
	*t.at(i) = row{id: e.ID, start: e.Time, parent: parent, identity: identity, startThread: thread}
	m := t.more(i)
	m.above = parent
	if e.paired() {
		t.set(i, rowPaired)
	}
	if e.Span != nil {
		t.spans[i] = e.Span
	}
	if name != t.counts[identity].Name {
		t.names[i] = name
	}
	if related >= 0 {
		m.related = 1 + related
	} else if e.Opcode == Start && !e.Related.IsZero() {
		t.foreign = append(t.foreign, e.Related)
		m.related = -int32(len(t.foreign))
	}
	return i
}

// stop ends a row.
func (t *Rows) stop(i int32, e *Event, s Status, by By) {
	r := t.at(i)
	r.stop, r.stopThread = e.Time, t.number(e.Process, e.Thread)
	if e.Span != nil {
		t.spans[i] = e.Span // it knows what the start did not
	}
	*t.flags(i) &^= rowOpen
	t.set(i, rowStopped|rowStopThread)
	t.setEnd(i, s, by)
}

// replaced notes that a Start took the place of a row that has not ended.
func (t *Rows) replaced(i int32, at int64) {
	if !t.has(i, rowStopped) {
		t.at(i).stop = at
		t.set(i, rowReplaced)
	}
}

// keep drops the rows that keep does not want. What they are called by others is wrong then.
func (t *Rows) keep(keep func(int32) bool) {
	names, spans := map[int32]string{}, map[int32]*Span{}
	to := int32(0)
	for i := range int32(t.n) {
		if !keep(i) {
			continue
		}
		*t.at(to), *t.more(to), *t.flags(to) = *t.at(i), *t.more(i), *t.flags(i)
		if s, ok := t.names[i]; ok {
			names[to] = s
		}
		if s, ok := t.spans[i]; ok {
			spans[to] = s
		}
		to++
	}
	t.n, t.names, t.spans = int(to), names, spans
	t.chunks = t.chunks[:(t.n+rowsAtOnce-1)/rowsAtOnce]
}

// Row puts row i into r.
func (t *Rows) Row(i int, r *Row) {
	k := int32(i)
	x := t.at(k)
	start := t.threads[x.startThread]
	*r = Row{
		Provider: t.counts[x.identity].Provider, Name: t.counts[x.identity].Name, ID: x.id, Parent: int(x.parent),
		HasStart: t.has(k, rowStarted), HasStop: t.has(k, rowStopped), Guess: t.has(k, rowGuess), DeadCreator: t.has(k, rowDeadCreator),
		Process: start.process, Span: t.spans[k],
	}
	if s, ok := t.names[k]; ok {
		r.Name = s
	}
	r.Status, r.By = t.end(k)
	if t.chunks[0].more != nil {
		m := t.more(k)
		r.LastSeen = m.lastSeen
		switch {
		case m.related > 0:
			r.Related = t.at(m.related - 1).id
		case m.related < 0:
			r.Related = t.foreign[-m.related-1]
		}
	}
	if r.HasStart {
		r.Start, r.StartThread = x.start, start.thread
	}
	if r.HasStop {
		r.Stop = x.stop
		if t.has(k, rowStopThread) {
			r.StopThread = t.threads[x.stopThread].thread
		}
	}
}

// Extent returns what a Row has as Start, HasStart, Stop, HasStop and Process.
func (t *Rows) Extent(i int) (start, stop int64, hasStart, hasStop bool, process uint32) {
	x, flags := t.at(int32(i)), *t.flags(int32(i))
	if hasStart = flags&rowStarted != 0; hasStart {
		start = x.start
	}
	if hasStop = flags&rowStopped != 0; hasStop {
		stop = x.stop
	}
	return start, stop, hasStart, hasStop, t.threads[x.startThread].process
}

// ID returns what Row i has as ID.
func (t *Rows) ID(i int) ID { return t.at(int32(i)).id }

// All yields the rows with their numbers. Each is valid until the next one.
func (t *Rows) All() iter.Seq2[int, *Row] {
	return func(yield func(int, *Row) bool) {
		r := &Row{}
		for i := range t.n {
			if t.Row(i, r); !yield(i, r) {
				return
			}
		}
	}
}

// Tree returns the rows as a Tree.
func (t *Rows) Tree() *Tree {
	tree := &Tree{Facts: t.Facts, Rows: make([]Row, t.n)}
	for i := range tree.Rows {
		t.Row(i, &tree.Rows[i])
	}
	return tree
}

// Parent returns what Row i has as Parent.
func (t *Rows) Parent(i int) int { return int(t.at(int32(i)).parent) }
