package nettrace

import (
	"fmt"
	"io"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// Options of a Reader. The zero value works.
type Options struct {
	// MaxBlockSize limits the size of one block; zero means 64 MiB.
	MaxBlockSize int
	// MaxBuffered limits the memory of events held back for sorting in one region
	// between sequence points; zero means 256 MiB. Beyond it the oldest half is
	// delivered although older events may follow, which Warn is told.
	MaxBuffered int
	// Hold is for how many further calls of Read an Event stays valid, so that events can be
	// handed to another goroutine; zero: until the next one.
	Hold int
	// Warn is called for each defect of the file that was skipped, at most 1,000
	// times; nil drops them. It is called while a block is read, which is
	// before the block's events are delivered.
	Warn func(*FormatError)
}

const (
	defaultMaxBlock    = 64 << 20
	defaultMaxBuffered = 256 << 20
	maxWarnings        = 1000
	maxLosses          = 1 << 18 // a recorder that cannot keep up makes some ten thousand in a GB
)

// BlockStats counts the blocks of one kind.
type BlockStats struct {
	Kind        string // as v4 names it: "EventBlock", "SPBlock", ..., "ThreadBlock"
	Count       int
	Bytes       int64 // contents
	MaxBytes    int
	FirstOffset int64 // of the first one
}

// Stats are counts over the part of a file read so far. Blocks are read ahead of
// the events that are delivered.
type Stats struct {
	Blocks         []BlockStats // in order of first appearance
	Events         int64
	PayloadBytes   int64
	Metadata       int   // definitions
	Stacks         int64 // stack records; before v4 distinct stacks
	MaxDepth       int   // frames of the longest stack record
	SequencePoints int
	Lost           uint64 // events that the runtime could not store, by sequence numbers
	LostGaps       int64  // in how many gaps
	UnknownMeta    int64  // events whose metadata is missing
	UnknownStacks  int64  // events whose stack is missing
	UnknownThreads int64  // v6: events whose thread row is missing
	UnknownLabels  int64  // v6: events whose label list is missing
	Late           int64  // delivered events older than one delivered before
	MaxBuffered    int    // most bytes of event blocks held at one time
	Defects        int64  // what Options.Warn was told, or would have been
	LostBytes      int64  // skipped because of damage
	// Newer counts what later versions may have added, and is passed over: blocks of v4 and v6 of
	// kinds that are not known, and in a file of a later minor version of v6 items of rows and
	// lists. NewerOffset is that of the first.
	Newer       int64
	NewerOffset int64
	// Ended is set once the mark that ends a trace was read.
	Ended bool
	// TrailingBytes is the number of bytes after the end mark.
	TrailingBytes int64
}

// A Reader reads the events of one file in the order of their times. It is not
// safe for concurrent use, but Nanos and the events that Options.Hold keeps valid are.
type Reader struct {
	src  source
	opts Options
	h    Header

	meta    metadataTable
	stacks  refTable
	labels  refTable
	threads map[uint64]*Thread // v6: rows by index
	pairs   int                // of texts in them
	region  uint64             // counts sequence points: StackKey
	interns map[string]uint32  // before v4: stacks by contents
	internB int                // bytes in interns
	internN uint32             // the last number given

	seq        map[uint64]*sequence
	run        uint32      // counts attempts to decode a run of events
	ran        []*sequence // those that the last of them has changed
	doubled    odd         // events of the block being decoded that came before
	late       odd         // events of it that were missing before
	early      odd         // threads that were behind a sequence point in front of it
	lossesHeld bool        // others have losses as they are
	pointTime  int64       // of the last sequence point
	efforts    int64       // see effort
	values     []Value     // scratch of fits
	firsts     bool        // the block being decoded has a thread that begins with a number above 1
	seqEpoch   uint32      // sequences of another epoch are not compared: something is missing between

	queue    queue
	carries  bool     // blocks of unknown kinds are for a Copier
	carried  carried  // those that are not passed on yet
	batch    *Batch   // of the last ReadBatch
	blocks   []*block // free
	buffers  [][]byte // free
	spare    int      // bytes of both
	held     []held   // may become free
	holds    int      // after how many more events: Options.Hold, or the length of a batch
	events   int64    // delivered
	someRows int      // what a new block has room for: some more than the one before had
	reading  *segment // what is being delivered
	blk      *block   // its block
	next     int      // of blk.rows
	end      int
	lastTime int64
	view     view        // of what is being delivered
	stale    bool        // the view is not what is known by now
	labelled labelReader // of Read

	draining  bool // all that waits may go: a sequence point, or the end
	forced    bool // likewise, until half of MaxBuffered is free
	clearRefs bool // once drained, forget stacks and label lists
	done      bool // nothing left to read
	err       error

	shift    int64    // bytes that went missing before: moves the alignment of blocks
	reread   int64    // see mayReread
	noObject [2]int64 // offsets between which no block header begins
	damage   *FormatError
	stats    Stats
	kinds    [numKinds]int // index+1 in stats.Blocks
	losses   []Loss
	// passedLosses of them lie before the last sequence point whose events are all delivered.
	passedLosses int
	stretch      stretch
	owed         owed
	notes        int  // definitions that a Writer has put there for a Reader
	summed       bool // the file announces a checksum
	sumSeen      bool
	eventSums    map[uint64]int64 // offsets of event blocks by their sums
}

// NewReader reads the header of a nettrace or netperf file; nil options are
// the defaults. Input without any known beginning is refused with ErrFormat, an
// unknown version with ErrVersion. Compressed input must be unpacked by the caller.
func NewReader(r io.Reader, opts *Options) (*Reader, error) {
	rd := &Reader{src: source{r: r}, lastTime: math.MinInt64, region: 1, seqEpoch: firstEpoch, stretch: stretch{epoch: firstEpoch}}
	if opts != nil {
		rd.opts = *opts
	}
	if rd.opts.MaxBlockSize <= 0 {
		rd.opts.MaxBlockSize = defaultMaxBlock
	}
	if rd.opts.MaxBuffered <= 0 {
		rd.opts.MaxBuffered = defaultMaxBuffered
	}
	rd.queue.watermark = math.MinInt64
	rd.seq, rd.pointTime = map[uint64]*sequence{}, math.MinInt64
	rd.stale, rd.holds, rd.labelled.keep = true, rd.opts.Hold, rd.opts.Hold > 0
	if err := rd.readPrologue(); err != nil {
		return nil, err
	}
	return rd, nil
}

// Header returns what the file says about the recording. It does not change,
// but for a guessed PointerSize in v1 and v2.
func (r *Reader) Header() *Header { return &r.h }

// Metadata lists all event types defined so far, by Metadata.Index.
func (r *Reader) Metadata() []*Metadata { return r.meta.all }

// Stats counts what was read so far; after the last event, of the whole file.
func (r *Reader) Stats() Stats {
	s := r.stats
	s.Blocks = append([]BlockStats(nil), s.Blocks...)
	s.Metadata = len(r.meta.all) - len(r.meta.lost) - r.notes
	return s
}

// Losses lists the gaps in sequence numbers found so far, the first 262,144 of
// them; Stats has the totals.
func (r *Reader) Losses() []Loss { return r.losses }

// InputOffset is the number of bytes consumed. Events are delivered later than their bytes are read.
func (r *Reader) InputOffset() int64 { return r.src.offset() }

// Nanos converts ticks to nanoseconds since Header.SyncQPC, rounding down, in exact
// integer arithmetic. Times of damaged files are limited to MaxNanos either way.
func (r *Reader) Nanos(qpc int64) int64 { return r.h.Nanos(qpc) }

// MaxNanos is beyond what any recording lasts, 36 years, and so far from the largest
// int64 that sums and differences of a few times do not overflow.
const MaxNanos = 1 << 60

// Nanos converts ticks to nanoseconds since SyncQPC; see Reader.Nanos.
func (h *Header) Nanos(qpc int64) int64 {
	d := uint64(qpc) - uint64(h.SyncQPC)
	neg := qpc < h.SyncQPC
	if neg {
		d = -d
	}
	freq := uint64(h.Frequency)
	if freq == 0 {
		freq = 1e9
	}
	q := uint64(MaxNanos)
	if freq == 1e9 { // of Linux and macOS: a division takes longer than all else
		q = min(q, d)
	} else if hi, lo := bits.Mul64(d, 1e9); hi < freq {
		n, rem := bits.Div64(hi, lo, freq)
		if neg && rem != 0 {
			n++
		}
		q = min(q, n)
	}
	if neg {
		return -int64(q)
	}
	return int64(q)
}

// All yields the events until the end, then an error unless the file was whole.
func (r *Reader) All() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		var ev Event
		for {
			switch err := r.Read(&ev); {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, err)
				return
			}
			if !yield(&ev, nil) {
				return
			}
		}
	}
}

// Read decodes the next event into ev, whose slices and stack are valid until
// the next call. After the last event it returns io.EOF if the file was whole, else
// a *FormatError that wraps io.ErrUnexpectedEOF (the end is missing) or
// ErrDamaged (parts were skipped), or the wrapped error of the io.Reader. Errors stick.
func (r *Reader) Read(ev *Event) error {
	for r.next >= r.end {
		if !r.advance() {
			return r.err
		}
	}
	row := &r.blk.rows[r.next]
	r.next++
	r.events++
	if ev.Late = row.time < r.lastTime; ev.Late {
		r.stats.Late++
	} else {
		r.lastTime = row.time
	}
	r.view.fill(ev, r.blk, row, &r.labelled)
	return nil
}

// ReadBatch is Read for up to n events, at least one, which Batch.Next fills in: for those who hand
// events to another goroutine. It reads fewer only where it returns an error, which comes behind
// them, and none where much else is there for a Copier. The events of b are valid until the next
// call of Read or ReadBatch, unless Options.Hold says more.
func (r *Reader) ReadBatch(b *Batch, n int) error {
	n = max(n, 1)
	b.reset(r.lastTime)
	r.batch = b
	defer b.Rewind()
	r.holds = max(r.holds, n)
	for b.n < n && b.carried < carriedAtOnce {
		if r.next >= r.end {
			if !r.advance() {
				b.see(&r.view)
				return r.err
			}
			continue
		}
		k := min(r.end-r.next, n-b.n)
		b.add(&r.view, r.blk, r.next, k)
		rows := r.blk.rows[r.next : r.next+k] // their times do not go back
		r.next += k
		r.events += int64(k)
		for i := 0; i < k && rows[i].time < r.lastTime; i++ {
			r.stats.Late++
		}
		r.lastTime = max(r.lastTime, rows[k-1].time)
	}
	return nil
}

// advance finds the next rows to deliver, reading on where none may go yet.
func (r *Reader) advance() bool {
	if r.err != nil {
		return false
	}
	if r.reading != nil {
		r.reading, r.blk = nil, nil
		if blk := r.queue.advance(r.end); blk != nil {
			r.freeBlock(blk)
		}
		if r.forced && r.queue.memory <= r.opts.MaxBuffered/2 {
			r.forced = false
		}
	}
	for {
		if s, n := r.queue.ready(r.draining || r.forced); s != nil && n > s.i {
			r.pass(s.blk.offset)
			r.reading, r.blk, r.next, r.end = s, s.blk, s.i, n
			r.look()
			return true
		}
		if len(r.carried.blocks) > 0 && (len(r.queue.heap) == 0 || r.carried.bytes > maxCarried) {
			r.pass(math.MaxInt64)
			return true // without events: many such blocks may follow one another
		}
		if r.draining && len(r.queue.heap) == 0 {
			r.drained()
		}
		switch {
		case r.done && len(r.queue.heap) == 0:
			r.warnUnknown()
			r.missingSum()
			r.err = r.endError()
			r.look()
			r.release()
			return false
		case r.done:
			r.draining = true
		default:
			r.readBlock()
			r.stale = true
			r.stats.MaxBuffered = max(r.stats.MaxBuffered, r.queue.bytes)
			if r.queue.memory > r.opts.MaxBuffered && !r.forced {
				r.forced = true
				r.warn(r.src.offset(), "EventBlock", fmt.Errorf("%w: over %d bytes of events without a sequence point: order is not guaranteed", ErrTooLarge, r.opts.MaxBuffered), 0)
			}
		}
	}
}

// drained follows the delivery of all that preceded a sequence point.
func (r *Reader) drained() {
	r.draining, r.stale = false, true
	r.queue.watermark = math.MinInt64
	if r.clearRefs {
		r.clearRefs = false
		r.stacks.clear(r.freeBuffer, r.holds > 0)
		r.labels.clear(r.freeBuffer, r.holds > 0)
		r.region++
		r.passedLosses = len(r.losses)
	}
}

// release drops what the delivered events no longer need.
func (r *Reader) release() {
	r.blocks, r.buffers, r.held, r.blk, r.interns = nil, nil, nil, nil, nil
	r.next, r.end = 0, 0
	r.batch = nil
	r.opts.Warn = nil // which may know all the batches that were read
}

// warnUnknown tells, at the end, of ids that the file does not explain.
func (r *Reader) warnUnknown() {
	for _, u := range [...]struct {
		events int64
		what   string
	}{
		{r.stats.UnknownMeta, "metadata"},
		{r.stats.UnknownStacks, "stacks"},
		{r.stats.UnknownThreads, "threads"},
		{r.stats.UnknownLabels, "label lists"},
	} {
		if u.events > 0 {
			r.warn(r.src.offset(), "end of file", fmt.Errorf("the file does not hold the %s of %d of its events", u.what, u.events), 0)
		}
	}
}

// endError tells how the stream ended.
func (r *Reader) endError() error {
	switch {
	case r.src.err != nil && r.src.err != io.EOF:
		return r.src.err
	case !r.stats.Ended:
		return &FormatError{Offset: r.src.offset(), Where: "end of file", Err: fmt.Errorf("no end mark, the recording was cut off: %w", io.ErrUnexpectedEOF)}
	case r.damage != nil:
		err := *r.damage
		err.Err = fmt.Errorf("%w; %d bytes lost in all: %w", err.Err, r.stats.LostBytes, ErrDamaged)
		err.Lost = r.stats.LostBytes
		return &err
	}
	return io.EOF
}

// warn tells of a defect that costs nothing.
func (r *Reader) warn(offset int64, where string, err error, lost int64) {
	r.stats.Defects++
	if r.opts.Warn != nil && r.stats.Defects <= maxWarnings {
		r.opts.Warn(&FormatError{Offset: offset, Where: where, Err: err, Lost: lost})
	}
}

// newer counts what a later minor version may have added at an offset.
func (r *Reader) newer(offset int64) {
	if r.stats.Newer++; r.stats.Newer == 1 {
		r.stats.NewerOffset = offset
	}
}

// mayBeNewer reports whether the file is of a later minor version than 6.0, in which items of
// unknown kinds are damage: one flipped bit makes such kinds of those that are known. Blocks are
// missed where theirs is hit.
func (r *Reader) mayBeNewer() bool { return r.h.Version == 6 && r.h.MinorVersion > 0 }

// damaged tells of a defect that costs lost bytes of the file.
func (r *Reader) damaged(offset int64, where string, err error, lost int64) {
	r.warn(offset, where, err, lost)
	r.stats.LostBytes += lost
	if r.damage == nil {
		r.damage = &FormatError{Offset: offset, Where: where, Err: err}
	}
	// Gaps in the sequence numbers may now stem from the damage.
	r.seqEpoch++
}

// count notes a block in the statistics.
func (r *Reader) count(kind blockKind, offset int64, size int) {
	i := r.kinds[kind]
	if i == 0 {
		r.stats.Blocks = append(r.stats.Blocks, BlockStats{Kind: kind.String(), FirstOffset: offset})
		i = len(r.stats.Blocks)
		r.kinds[kind] = i
	}
	b := &r.stats.Blocks[i-1]
	b.Count++
	b.Bytes += int64(size)
	b.MaxBytes = max(b.MaxBytes, size)
}

// newBlock returns a block that holds a copy of data.
func (r *Reader) newBlock(data []byte, offset int64) *block {
	var blk *block
	r.letGo()
	if i := r.free(len(r.blocks)); i >= 0 {
		blk = r.blocks[i]
		r.blocks = slices.Delete(r.blocks, i, i+1)
		r.spare -= blk.memory()
		if cap(blk.buf) < len(data)+blockPad {
			blk.buf = nil
		}
	} else {
		blk = &block{rows: make([]row, 0, r.someRows)}
	}
	if blk.buf == nil {
		blk.buf = make([]byte, 0, len(data)+blockPad+len(data)/8)
	}
	blk.buf = append(append(blk.buf[:0], data...), zeros[:]...)
	blk.offset = offset
	blk.rows, blk.ids, blk.threads, blk.segments = blk.rows[:0], blk.ids[:0], blk.threads[:0], 0
	return blk
}

var zeros [blockPad]byte

// maxSpare bounds the bytes that are kept for reuse, a hundred times what a file of
// the runtime needs: one huge block must not stay for good.
const maxSpare = 32 << 20

// mayKeep reports whether n more bytes may be kept beside count others of their kind.
func (r *Reader) mayKeep(n, count int) bool {
	if count >= 64 || r.spare+n > maxSpare {
		return false
	}
	r.spare += n
	return true
}

// free returns which of n that are free, the newest last, is used next; -1: none. What another
// processor has just read is in its caches, and to write there takes several times as long: of that
// some rest, and the oldest is used.
func (r *Reader) free(n int) int {
	switch {
	case r.opts.Hold < manyHeld:
		return n - 1
	case n > mostRest:
		return 0
	}
	return -1
}

const (
	manyHeld = 1024 // events that are held by those who hand them to another processor
	mostRest = 2    // blocks, or buffers
)

// held is a block or a buffer of which delivered events may still hold parts.
type held struct {
	blk   *block
	buf   []byte
	until int64 // Reader.events from which on that is over
}

// hold keeps what is free, but for events that are held. Where that is much, it is left to the collector.
func (r *Reader) hold(h held) {
	if len(r.held) == 64 {
		r.held = slices.Delete(r.held, 0, 32)
	}
	h.until = r.events + int64(r.holds) + 1
	r.held = append(r.held, h)
}

// letGo frees what no event holds any more.
func (r *Reader) letGo() {
	n := 0
	for ; n < len(r.held) && r.held[n].until <= r.events; n++ {
		if h := &r.held[n]; h.blk != nil {
			r.keepBlock(h.blk)
		} else {
			r.keepBuffer(h.buf)
		}
	}
	r.held = slices.Delete(r.held, 0, n)
}

// freeBlock keeps a block for reuse.
func (r *Reader) freeBlock(blk *block) {
	if r.holds > 0 {
		r.hold(held{blk: blk})
		return
	}
	r.keepBlock(blk)
}

func (r *Reader) keepBlock(blk *block) {
	if r.mayKeep(blk.memory(), len(r.blocks)) {
		r.blocks = append(r.blocks, blk)
	}
}

// newBuffer returns a copy of data that lives until freeBuffer.
func (r *Reader) newBuffer(data []byte) []byte {
	r.letGo()
	if i := r.free(len(r.buffers)); i >= 0 {
		b := r.buffers[i]
		r.buffers = slices.Delete(r.buffers, i, i+1)
		r.spare -= cap(b)
		if cap(b) >= len(data) {
			return append(b[:0], data...)
		}
	}
	return append([]byte(nil), data...)
}

func (r *Reader) freeBuffer(b []byte) {
	if r.holds > 0 {
		r.hold(held{buf: b})
		return
	}
	r.keepBuffer(b)
}

func (r *Reader) keepBuffer(b []byte) {
	if r.mayKeep(cap(b), len(r.buffers)) {
		r.buffers = append(r.buffers, b)
	}
}

// look makes the view what is known by now.
func (r *Reader) look() {
	if !r.stale {
		return
	}
	r.stale, r.lossesHeld = false, true
	r.view = view{
		number: r.view.number + 1, version: r.h.Version, pointer: r.h.PointerSize, process: r.h.ProcessID,
		stacks: r.stacks.records, labels: r.labels.records, region: r.region,
		losses: r.losses, passedLosses: r.passedLosses, damaged: r.damage != nil, unknownMeta: r.stats.UnknownMeta > 0,
	}
}
