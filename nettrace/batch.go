package nettrace

// A Batch is events on their way from a Reader to who uses them, which may be another goroutine:
// see Reader.ReadBatch. It holds where they lie; Next makes events of them. So what goes from one
// processor to another is the decoded headers, and not the much larger Events. The zero value is an
// empty batch. Its memory is used again.
type Batch struct {
	runs  []run
	views []view
	n     int   // events
	since int64 // time of the newest event before the batch

	carried int // bytes of the blocks in its views, and of what is kept for them

	// what Next has come to
	run      int    // of runs
	blk      *block // of the run
	row, end int    // of the block
	view     *view  // of the run
	newest   int64
	labelled labelReader
}

// A run is rows of a block, from the one numbered first to before end, and the number of their view.
type run struct {
	blk        *block
	first, end int
	view       int
}

// A view is what a Reader knows besides the rows that it delivers: what events are filled in with.
// It does not change; where the Reader has read on there is another one.
type view struct {
	number  int // different from that of all views before
	version int
	pointer int // bytes
	process int
	stacks  records
	labels  records
	region  uint64

	losses       []Loss
	passedLosses int
	damaged      bool // the file is known to be
	unknownMeta  bool // an event of unknown metadata has come

	carried []carriedBlock // blocks of unknown kinds in front of its events, for a Copier
}

// Len returns the number of events.
func (b *Batch) Len() int { return b.n }

// Carried returns how many bytes the batch holds of blocks of unknown kinds, and for each of them,
// until a Copier has written it.
func (b *Batch) Carried() int { return b.carried }

// reset empties the batch. newest is the time of the newest event before it.
func (b *Batch) reset(newest int64) {
	clear(b.runs) // blocks that are too many are for the collector
	clear(b.views)
	b.runs, b.views = b.runs[:0], b.views[:0]
	b.n, b.since, b.carried = 0, newest, 0
	b.labelled.key = 0 // numbers are those of one file
	b.blk, b.view = nil, nil
}

// see makes v the view of what follows.
func (b *Batch) see(v *view) {
	if k := len(b.views) - 1; k < 0 || b.views[k].number != v.number {
		b.views = append(b.views, *v)
	}
}

// add appends n rows of a block.
func (b *Batch) add(v *view, blk *block, first, n int) {
	b.see(v)
	b.runs = append(b.runs, run{blk, first, first + n, len(b.views) - 1})
	b.n += n
}

// Rewind goes back before the first event.
func (b *Batch) Rewind() {
	b.run, b.newest = 0, b.since
	b.enter()
}

// enter begins the run that Next has come to.
func (b *Batch) enter() {
	if b.run < len(b.runs) {
		r := &b.runs[b.run]
		b.blk, b.row, b.end, b.view = r.blk, r.first, r.end, &b.views[r.view]
	}
}

// Next fills in the next event, and returns false after the last one. Payload and Stack are valid
// as long as the batch is, labels until another event is filled in.
func (b *Batch) Next(ev *Event) bool {
	if b.run == len(b.runs) {
		return false
	}
	row := &b.blk.rows[b.row]
	if ev.Late = row.time < b.newest; !ev.Late {
		b.newest = row.time
	}
	b.view.fill(ev, b.blk, row, &b.labelled)
	b.skip()
	return true
}

// skip passes over the event that Next would fill in.
func (b *Batch) skip() {
	if b.row++; b.row == b.end {
		b.run++
		b.enter()
	}
}

// fill makes an event of a row. Late is left alone.
func (v *view) fill(ev *Event, blk *block, row *row, l *labelReader) {
	m := row.meta
	ev.Time = row.time
	ev.ThreadID = row.thread
	ev.CaptureThreadID = row.capture
	ev.Processor = int(row.cpu)
	ev.Metadata = m
	ev.Version, ev.Opcode, ev.Level, ev.Keywords = m.Version, m.Opcode, m.Level, m.Keywords
	ev.Payload = blk.buf[row.payload : row.payload+row.size : row.payload+row.size]
	ev.Lost = row.lost
	ev.Sorted, ev.lostThread, ev.fitted = row.sorted, false, row.fits
	ev.pointer = uint8(v.pointer)
	ev.Offset = blk.offset + int64(row.at())
	ev.ProcessID = v.process
	ev.losses = v.losses
	if v.version < 4 {
		ev.SequenceNumber = 0
		ev.StackKey, ev.Stack = 0, Stack{}
		if row.stack > 0 {
			at := row.payload + row.size + 4
			ev.Stack = Stack{blk.buf[at : at+row.stack : at+row.stack], v.pointer}
			ev.StackKey = v.region<<32 | uint64(row.seq)
		}
		ev.setIDs(blk, row.ids)
		return
	}
	ev.SequenceNumber = row.seq
	ev.Stack, ev.StackKey = v.stackOf(row)
	if v.version < 6 {
		ev.setIDs(blk, row.ids)
		return
	}
	v.fillV6(ev, blk, row, l)
}

// stackOf returns the stack of an event of v4 or v6, and its key.
func (v *view) stackOf(row *row) (s Stack, key uint64) {
	if row.stack > 0 {
		if b := v.stacks.bytes(row.stack); len(b) > 0 {
			return Stack{b, v.pointer}, v.region<<32 | uint64(row.stack)
		}
	}
	return Stack{}, 0
}

// setIDs sets the activity ids of a file before v6, where the fields of v6 are empty.
func (ev *Event) setIDs(blk *block, n uint32) {
	ids := &noIDs
	if n > 0 {
		ids = &blk.ids[n-1]
	}
	ev.ActivityID = ids.activity
	ev.RelatedActivityID = ids.related
	if ev.Thread != nil || ev.LabelKey != 0 || ev.Labels != nil || ev.SpanID != 0 || ev.TraceID != [16]byte{} { // an Event that served another file
		ev.Thread, ev.ThreadIndex, ev.Labels, ev.LabelKey = nil, 0, nil, 0
		ev.TraceID, ev.SpanID = [16]byte{}, 0
	}
}
