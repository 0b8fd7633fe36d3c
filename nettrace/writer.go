package nettrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// A Writer writes events as a runtime (v4) or the Linux recorder (v6) does:
// blocks of the same sizes in the same order, compressed headers, stacks numbered
// anew in each region, sequence points. Files of v1 to v4 are written as v4, those
// of v6 as v6. What it writes is accepted by readers that insist on the rules, and is
// read back as the same events.
//
// Events are expected in order of time, as a Reader delivers them. An event that is
// older than one before it is written all the same, but readers that trust the
// order may show it at another place.
type Writer struct {
	w      io.Writer
	h      Header
	v6     bool
	offset int64
	sum    uint32 // CRC-32 of what was written
	err    error
	out    []byte

	damaged int64 // places of what Copy reads

	metadata map[*Metadata]uint32
	indexed  []indexed // metadata by Metadata.Index: that of one Reader is found faster so
	metas    blockBuffer
	defined  uint32 // definitions so far
	events   blockBuffer
	stacks   listBuffer
	copied   copiedStacks
	labels   listBuffer
	rows     []byte // v6: thread block
	threads  map[threadKey]uint64

	numbers map[uint64]*uint32 // last sequence number by capture thread
	order   []uint64           // capture threads, in order of appearance
	newest  struct {           // what was asked for last, as it mostly is again
		thread uint64
		number *uint32
	}
	// v6: rows of threads that lost events behind their last one, which the next sequence point or
	// block of removed threads is to tell.
	lost    []uint64
	removed bool
	lostBy  int64 // the sequence point is no earlier

	last      int64 // latest time written
	began     bool  // last is set
	sinceSP   int   // bytes of events since the last sequence point
	stack     []byte
	label     []byte
	payload   []byte
	sequenced bool // a sequence point is the last thing written
	others    bool // v6: a block of an unknown kind was written since the last one
}

// An indexed is the id of a definition.
type indexed struct {
	meta *Metadata
	id   uint32
}

// A blockBuffer collects the events of a block.
type blockBuffer struct {
	b        []byte
	state    headerState
	min, max int64
}

// copiedStacks are the ids of stacks that a Reader has numbered: to find them by their frames takes longer.
type copiedStacks struct {
	region uint64   // of the Reader
	ids    []uint32 // by number; 0: not known
}

type threadKey struct {
	index   uint64
	process int
	id      uint64
	name    string
}

const (
	eventBlockV4 = 100 << 10 // as large as the runtime's
	eventBlockV6 = 1 << 20   // as large as one-collect's
	regionV4     = 10 << 20  // bytes of events between sequence points
	sideBlock    = 8 << 20   // definitions, stacks, labels and threads stay well below 16 MiB, which v6 allows
	maxBlockV6   = 1<<24 - 1
	maxPayload   = defaultMaxBlock - 1<<12 // with what stands before it in its block, so that a Reader takes it
)

// NewWriter writes the header of a file. The version follows h.Version: v6 for
// 6, else v4; nil is the zero Header. The start time is h.SyncTime, or h.SyncTimeRaw where that is zero. One
// that is not a date, from 1601 to 30827, becomes 1970-01-01: strict readers refuse such files.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	if h == nil {
		h = &Header{}
	}
	wr := &Writer{w: w, h: *h, v6: h.Version == 6, metadata: map[*Metadata]uint32{}, threads: map[threadKey]uint64{}, numbers: map[uint64]*uint32{}, last: h.SyncQPC}
	wr.stacks.sized = true
	wr.resetStacks()
	wr.labels.reset()
	if wr.h.Frequency <= 0 {
		wr.h.Frequency = 1e9
	}
	if wr.h.PointerSize != 4 {
		wr.h.PointerSize = 8
	}
	if wr.v6 {
		wr.headerV6()
	} else {
		wr.headerV4()
	}
	return wr, wr.flushOut()
}

// trace appends the fields that the Trace object and block share.
func (w *Writer) trace() {
	raw := w.h.SyncTimeRaw
	t, ok := systemTime(raw)
	if set := w.h.SyncTime; !set.IsZero() && !set.Truncate(time.Millisecond).Equal(t) { // whoever copies a header may set it
		raw = appendSystemTime(set)
		_, ok = systemTime(raw)
		ok = ok && int(raw[0]) == set.UTC().Year()
	}
	if !ok {
		raw = appendSystemTime(time.Unix(0, 0))
	}
	for _, u := range raw {
		w.out = binary.LittleEndian.AppendUint16(w.out, u)
	}
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(w.h.SyncQPC))
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(w.h.Frequency))
	w.out = binary.LittleEndian.AppendUint32(w.out, uint32(w.h.PointerSize))
}

func (w *Writer) headerV4() {
	w.out = append(append(w.out, magic...), serialMagic...)
	w.object(kindTrace, 4)
	w.trace()
	for _, n := range [...]int{w.h.ProcessID, w.h.Processors, int(w.h.SamplingInterval)} {
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(n))
	}
	w.out = append(w.out, tagEnd)
}

func (w *Writer) headerV6() {
	w.out = append(w.out, magic...)
	for _, n := range [...]int{0, 6, w.h.MinorVersion} {
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(n))
	}
	start := w.beginV6(kindTrace)
	w.trace()
	w.out = binary.LittleEndian.AppendUint32(w.out, uint32(len(w.h.KeyValues)))
	for _, kv := range w.h.KeyValues {
		w.out = appendStringV(appendStringV(w.out, kv.Key), kv.Value)
	}
	w.endV6(start)
	// The recorder's first sequence point carries the start of the recording.
	w.sequencePointV6(w.h.SyncQPC)
}

// object appends the header of a FastSerialization object.
func (w *Writer) object(kind blockKind, version uint32) {
	w.out = append(w.out, tagBeginPrivate, tagBeginPrivate, tagNull)
	w.out = binary.LittleEndian.AppendUint32(w.out, version)
	w.out = binary.LittleEndian.AppendUint32(w.out, version)
	w.out = binary.LittleEndian.AppendUint32(w.out, uint32(len(kind.String())))
	w.out = append(append(w.out, kind.String()...), tagEnd)
}

// beginV4 appends what stands before the contents of a block of the given size.
func (w *Writer) beginV4(kind blockKind, size int) {
	w.object(kind, 2)
	w.out = binary.LittleEndian.AppendUint32(w.out, uint32(size))
	w.align()
}

// align pads what was written: the contents of a block of v4 begin at a multiple of 4.
func (w *Writer) align() {
	for (w.offset+int64(len(w.out)))%4 != 0 {
		w.out = append(w.out, 0)
	}
}

// beginV6 appends a block header, which endV6 completes.
func (w *Writer) beginV6(kind blockKind) int {
	w.out = append(w.out, 0, 0, 0, byte(kind))
	return len(w.out)
}

func (w *Writer) endV6(start int) {
	w.sizeV6(start, len(w.out)-start)
}

// sizeV6 puts the size of a block into the header before start.
func (w *Writer) sizeV6(start, size int) {
	if size > maxBlockV6 && w.err == nil {
		w.err = fmt.Errorf("nettrace: %w: block of %d bytes, v6 allows %d", ErrTooLarge, size, maxBlockV6)
	}
	b := w.out[start-4:]
	b[0], b[1], b[2] = byte(size), byte(size>>8), byte(size>>16)
}

// flushOut hands what was appended to the io.Writer.
func (w *Writer) flushOut() error {
	w.hand(w.out)
	w.out = w.out[:0]
	return w.err
}

// hand hands b to the io.Writer, before what was appended.
func (w *Writer) hand(b []byte) {
	if w.err == nil && len(b) > 0 {
		var n int
		if n, w.err = w.w.Write(b); w.err == nil && n != len(b) {
			w.err = io.ErrShortWrite
		}
		w.offset += int64(n)
		w.sum = crc32.Update(w.sum, crc32.IEEETable, b[:n])
	}
}

func appendStringV(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendStringUTF16 appends s and the zero that ends it. A zero in s would end it, too: it becomes U+FFFD.
func appendStringUTF16(dst []byte, s string) []byte {
	for _, r := range s {
		if r == 0 {
			r = utf8.RuneError
		}
		if r >= 0x10000 {
			hi, lo := utf16.EncodeRune(r)
			dst = binary.LittleEndian.AppendUint16(dst, uint16(hi))
			r = lo
		}
		dst = binary.LittleEndian.AppendUint16(dst, uint16(r))
	}
	return append(dst, 0, 0)
}

// Write adds an event. Used are its times and ids, Metadata, Stack (the StackKey
// does not matter), Payload, Lost, and in v6 Thread and the labels. Sequence
// numbers are given anew, with a gap of ev.Lost before the event.
func (w *Writer) Write(ev *Event) error { return w.write(ev, false) }

// write is Write. recorded says that the StackKey is that of the Stack, and so it does in all
// events of which it says so.
func (w *Writer) write(ev *Event, recorded bool) error {
	if w.err != nil {
		return w.err
	}
	if ev.Metadata == nil {
		return errors.New("nettrace: event without metadata")
	}
	if n := len(ev.Payload); n > maxPayload || w.v6 && n > maxBlockV6/2 {
		return fmt.Errorf("nettrace: %w: payload of %d bytes", ErrTooLarge, len(ev.Payload))
	}
	if w.full() {
		w.flushBlocks()
	}
	var s headerState // field by field: see row
	s.time, s.thread, s.capture = uint64(ev.Time), ev.ThreadID, ev.CaptureThreadID
	s.size, s.cpu = uint32(len(ev.Payload)), uint32(int32(ev.Processor))
	s.id = w.metadataID(ev.Metadata, ev.Time)
	var err error
	if recorded {
		s.stack, err = w.copiedID(ev.StackKey, ev.Stack)
	} else {
		s.stack, err = w.stackID(ev.Stack)
	}
	if err != nil {
		return err
	}
	if w.v6 {
		s.thread, s.capture = w.threadIndex(ev)
		if s.labels, err = w.labelList(ev); err != nil {
			return err
		}
	} else {
		s.activity, s.related = ev.ActivityID, ev.RelatedActivityID
	}
	return w.put(&s, ev.Payload, ev.Lost)
}

// writeRow is write for an event of a Reader of v4, by its row.
func (w *Writer) writeRow(v *view, blk *block, row *row) error {
	if w.err != nil {
		return w.err
	}
	if w.full() {
		w.flushBlocks()
	}
	var s headerState
	s.time, s.thread, s.capture = uint64(row.time), row.thread, row.capture
	s.size, s.cpu = row.size, uint32(row.cpu)
	s.id = w.metadataID(row.meta, row.time)
	stack, key := v.stackOf(row)
	var err error
	if s.stack, err = w.copiedID(key, stack); err != nil {
		return err
	}
	if row.ids > 0 {
		ids := &blk.ids[row.ids-1]
		s.activity = ids.activity
		s.related = ids.related
	}
	return w.put(&s, blk.buf[row.payload:row.payload+row.size], row.lost)
}

// put adds an event of which s says all but its number.
func (w *Writer) put(s *headerState, payload []byte, lost uint32) error {
	t := int64(s.time)
	s.sorted = !w.began || t >= w.last
	n := w.number(s.capture)
	*n += 1 + lost
	s.seq = *n
	e := &w.events
	if len(e.b) == 0 {
		e.min, e.max = t, t
	}
	e.min, e.max = min(e.min, t), max(e.max, t)
	before := len(e.b)
	e.b = e.state.append(e.b, s, w.v6)
	e.b = append(e.b, payload...)
	w.sinceSP += len(e.b) - before
	if s.sorted {
		w.last, w.began = t, true
	}
	w.sequenced = false
	return w.err
}

// number returns the last sequence number of a capture thread, to count it up.
func (w *Writer) number(thread uint64) *uint32 {
	if w.newest.number != nil && w.newest.thread == thread {
		return w.newest.number
	}
	n := w.numbers[thread]
	if n == nil {
		n = new(uint32)
		w.numbers[thread] = n
		w.order = append(w.order, thread)
	}
	w.newest.thread, w.newest.number = thread, n
	return n
}

// AddLoss notes events of a capture thread that were lost behind its last event,
// as the next sequence point will show. Losses before an event are recorded by
// Event.Lost. In v6 the thread is one of the Header's process.
func (w *Writer) AddLoss(captureThread uint64, count uint32) {
	w.addLoss(&Loss{CaptureThreadID: captureThread, ProcessID: w.h.ProcessID, Count: count, After: -1})
}

// addLoss is AddLoss for a loss of a Reader.
func (w *Writer) addLoss(l *Loss) {
	if !w.v6 {
		*w.number(l.CaptureThreadID) += l.Count
	} else if th := l.thread; th != nil {
		w.loseRow(w.row(threadKey{th.Index, th.ProcessID, th.ID, th.Name}, th.KeyValues), l.Count)
	} else {
		w.loseRow(w.row(threadKey{0, l.ProcessID, l.CaptureThreadID, ""}, nil), l.Count)
	}
	if w.removed = l.Before == l.After; !w.removed {
		w.lostBy = l.Before
	}
	w.sequenced = false
}

// keepLoss notes the events that were lost before one that is not written.
func (w *Writer) keepLoss(ev *Event) {
	if ev.Lost == 0 {
		return
	}
	if !w.v6 {
		w.AddLoss(ev.CaptureThreadID, ev.Lost)
		return
	}
	if w.full() {
		w.flushBlocks()
	}
	_, capture := w.threadIndex(ev)
	w.loseRow(capture, ev.Lost)
	w.sequenced = false
}

// loseRow is AddLoss for a row of the thread table of v6.
func (w *Writer) loseRow(index uint64, count uint32) {
	*w.number(index) += count
	if len(w.lost) > 2*len(w.threads) {
		w.sortLost()
	}
	w.lost = append(w.lost, index)
}

// full reports whether the blocks collected so far are to be written.
func (w *Writer) full() bool {
	if w.v6 {
		return len(w.events.b) >= eventBlockV6 || w.stacks.size >= sideBlock/4 || w.labels.size >= sideBlock || len(w.rows) >= sideBlock
	}
	return len(w.events.b) >= eventBlockV4-1024 || w.stacks.size >= regionV4/2
}

// append encodes the header next after the one before and makes it the state.
func (s *headerState) append(dst []byte, next *headerState, v6 bool) []byte {
	seq := s.seq
	if next.id != 0 {
		seq++
	}
	var f byte
	if next.id != s.id {
		f |= 1
	}
	if next.seq != seq || next.capture != s.capture || next.cpu != s.cpu {
		f |= 2
	}
	if next.thread != s.thread {
		f |= 4
	}
	if next.stack != s.stack {
		f |= 8
	}
	if !v6 && next.activity != s.activity || v6 && next.labels != s.labels {
		f |= 16
	}
	if !v6 && next.related != s.related {
		f |= 32
	}
	if next.sorted {
		f |= 64
	}
	if next.size != s.size {
		f |= 128
	}
	dst = append(dst, f)
	if f&1 != 0 {
		dst = binary.AppendUvarint(dst, uint64(next.id))
		s.id = next.id
	}
	if f&2 != 0 {
		dst = binary.AppendUvarint(dst, uint64(next.seq-s.seq-1))
		dst = binary.AppendUvarint(dst, next.capture)
		dst = binary.AppendUvarint(dst, uint64(next.cpu))
		s.capture, s.cpu = next.capture, next.cpu
	}
	if f&4 != 0 {
		dst = binary.AppendUvarint(dst, next.thread)
		s.thread = next.thread
	}
	if f&8 != 0 {
		dst = binary.AppendUvarint(dst, uint64(next.stack))
		s.stack = next.stack
	}
	dst = binary.AppendUvarint(dst, next.time-s.time)
	if f&16 != 0 {
		if v6 {
			dst = binary.AppendUvarint(dst, uint64(next.labels))
			s.labels = next.labels
		} else {
			dst = append(dst, next.activity[:]...)
			s.activity = next.activity
		}
	}
	if f&32 != 0 {
		dst = append(dst, next.related[:]...)
		s.related = next.related
	}
	if f&128 != 0 {
		dst = binary.AppendUvarint(dst, uint64(next.size))
		s.size = next.size
	}
	s.seq, s.time = next.seq, next.time
	return dst
}

// metadataID returns the id of a definition, which is put into the next metadata block if it is new.
func (w *Writer) metadataID(m *Metadata, t int64) uint32 {
	if uint(m.Index) < uint(len(w.indexed)) && w.indexed[m.Index].meta == m {
		return w.indexed[m.Index].id
	}
	id, ok := w.metadata[m]
	if !ok {
		id = w.define(m, t)
		w.metadata[m] = id
	}
	if i := m.Index; 0 <= i && i < 1<<12 { // of what no Reader has made it may be any number
		w.indexed = append(w.indexed, make([]indexed, max(0, i+1-len(w.indexed)))...)
		w.indexed[i] = indexed{m, id}
	}
	return id
}

// define puts a definition into the next metadata block and returns its id.
func (w *Writer) define(m *Metadata, t int64) uint32 {
	if w.defined == 0 && m != sumMark {
		w.define(sumMark, t)
	}
	w.defined++
	id := w.defined
	b := &w.metas
	if w.v6 {
		row := binary.AppendUvarint(w.payload[:0], uint64(id))
		row = appendStringV(row, written(m.Provider))
		row = append(row, m.rawV6()...)
		if len(row) > math.MaxUint16 {
			w.err = fmt.Errorf("nettrace: %w: metadata of %d bytes", ErrTooLarge, len(row))
			return id
		}
		if len(b.b)+len(row) > sideBlock {
			w.flushMetadata()
		}
		if len(b.b) == 0 {
			b.b = append(b.b, 0, 0) // header size
		}
		b.b = binary.LittleEndian.AppendUint16(b.b, uint16(len(row)))
		b.b, w.payload = append(b.b, row...), row
		return id
	}
	payload := binary.LittleEndian.AppendUint32(w.payload[:0], id)
	payload = appendStringUTF16(payload, written(m.Provider))
	payload = append(payload, m.rawV4()...)
	if len(b.b)+len(payload) > sideBlock {
		w.flushMetadata()
	}
	if len(b.b) == 0 {
		b.min, b.max = t, t
	}
	b.min, b.max = min(b.min, t), max(b.max, t)
	b.b = b.state.append(b.b, &headerState{time: uint64(t), size: uint32(len(payload)), sorted: true}, false)
	b.b, w.payload = append(b.b, payload...), payload
	return id
}

// written is the name of a provider as it is written: a Reader takes one of control characters for damage,
// which the name comes from.
func written(provider string) string {
	if printable([]byte(provider)) {
		return provider
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(provider, "?"))
}

// stackID returns the id of a stack in this region. Like the runtime, v4 gives
// the empty stack an id of its own.
func (w *Writer) stackID(s Stack) (uint32, error) {
	n := s.Len()
	if n == 0 && w.v6 {
		return 0, nil
	}
	raw := s.raw[:n*s.size]
	if n > 0 && s.size != w.h.PointerSize {
		w.stack = w.stack[:0]
		for i := range n {
			a := s.At(i)
			if w.h.PointerSize == 8 {
				w.stack = binary.LittleEndian.AppendUint64(w.stack, a)
				continue
			}
			if a > math.MaxUint32 {
				return 0, fmt.Errorf("nettrace: address %#x in a stack of a 32-bit process", a)
			}
			w.stack = binary.LittleEndian.AppendUint32(w.stack, uint32(a))
		}
		raw = w.stack
	}
	return w.stacks.id(raw), nil
}

// copiedID is stackID for a stack that a Reader knows by a key; 0 is none.
func (w *Writer) copiedID(key uint64, stack Stack) (id uint32, err error) {
	c, region, n := &w.copied, key>>32, int(uint32(key))
	if n == 0 {
		return w.stackID(stack)
	}
	if c.region != region {
		c.region = region
		clear(c.ids)
	}
	if n < len(c.ids) && c.ids[n] != 0 {
		return c.ids[n], nil
	}
	if id, err = w.stackID(stack); err == nil {
		if n >= len(c.ids) {
			c.ids = append(c.ids, make([]uint32, n+1-len(c.ids))...)
		}
		c.ids[n] = id
	}
	return id, err
}

// resetStacks forgets the ids of stacks.
func (w *Writer) resetStacks() {
	w.stacks.reset()
	clear(w.copied.ids)
}

// threadIndex returns the indices of an event's thread and capture thread (v6).
func (w *Writer) threadIndex(ev *Event) (thread, capture uint64) {
	if th := ev.Thread; th != nil {
		thread = w.row(threadKey{th.Index, th.ProcessID, th.ID, th.Name}, th.KeyValues)
	} else if ev.ThreadID != 0 || ev.ProcessID != 0 {
		thread = w.row(threadKey{ev.ThreadIndex, ev.ProcessID, ev.ThreadID, ""}, nil)
	}
	if ev.CaptureThreadID != 0 {
		if ev.Thread != nil && ev.CaptureThreadID == ev.Thread.ID {
			return thread, thread
		}
		capture = w.row(threadKey{0, ev.ProcessID, ev.CaptureThreadID, ""}, nil)
	}
	return thread, capture
}

// row returns the index of a thread row, which is written if this region has none such.
func (w *Writer) row(k threadKey, kvs []KeyValue) uint64 {
	if index, ok := w.threads[k]; ok {
		return index
	}
	index := uint64(len(w.threads))
	w.threads[k] = index
	at := len(w.rows)
	b := append(w.rows, 0, 0)
	b = binary.AppendUvarint(b, index)
	if k.name != "" {
		b = appendStringV(append(b, 1), k.name)
	}
	b = binary.AppendUvarint(append(b, 2), uint64(k.process))
	b = binary.AppendUvarint(append(b, 3), k.id)
	for _, kv := range kvs {
		if len(b)-at+len(kv.Key)+len(kv.Value)+16 > math.MaxUint16 {
			break
		}
		b = appendStringV(appendStringV(append(b, 4), kv.Key), kv.Value)
	}
	if len(b)-at-2 > math.MaxUint16 {
		w.err = fmt.Errorf("nettrace: %w: thread row of %d bytes", ErrTooLarge, len(b)-at)
	}
	binary.LittleEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	w.rows = b
	return index
}

// labelList returns the index of an event's label list (v6).
func (w *Writer) labelList(ev *Event) (uint32, error) {
	b, last, count := w.label[:0], -1, 0
	add := func(kind byte) {
		last = len(b)
		count++
		b = append(b, kind)
	}
	if !ev.ActivityID.IsZero() {
		add(labelActivity)
		b = append(b, ev.ActivityID[:]...)
	}
	if !ev.RelatedActivityID.IsZero() {
		add(labelRelated)
		b = append(b, ev.RelatedActivityID[:]...)
	}
	if ev.TraceID != [16]byte{} {
		add(labelTrace)
		b = append(b, ev.TraceID[:]...)
	}
	if ev.SpanID != 0 {
		add(labelSpan)
		b = binary.LittleEndian.AppendUint64(b, ev.SpanID)
	}
	m := ev.Metadata
	opcode, version := ev.Opcode != m.Opcode, ev.Version != m.Version
	for i := range ev.Labels { // one may read as if it told another
		x := &ev.Labels[i]
		n := x.small()
		opcode = opcode || x.Key == keyOpcode && n > 0 && n != ev.Opcode
		version = version || x.Key == keyVersion && n >= 0 && n != ev.Version
	}
	plain := plainNumbers(ev.Labels, opcode || version)
	for _, l := range ev.Labels {
		if l.IsNumeric {
			add(labelNumber)
			b = appendStringV(b, l.Key)
			n := uint64(l.Number)
			if !plain {
				n = uint64(l.Number<<1) ^ uint64(l.Number>>63)
			}
			b = binary.AppendUvarint(b, n)
		} else {
			add(labelString)
			b = appendStringV(appendStringV(b, l.Key), l.Value)
		}
	}
	if opcode {
		add(labelOpcode)
		b = append(b, byte(ev.Opcode))
	}
	if ev.Keywords != m.Keywords {
		add(labelKeywords)
		b = binary.LittleEndian.AppendUint64(b, ev.Keywords)
	}
	if ev.Level != m.Level {
		add(labelLevel)
		b = append(b, byte(ev.Level))
	}
	if version {
		add(labelVersion)
		b = append(b, byte(ev.Version))
	}
	w.label = b
	if last < 0 {
		return 0, nil
	}
	if count > maxLabels || len(b) > maxLabelBytes { // no Reader takes such a list
		return 0, fmt.Errorf("nettrace: %w: %d labels of %d bytes", ErrTooLarge, count, len(b))
	}
	b[last] |= 0x80
	return w.labels.id(b), nil
}

// flushMetadata writes the metadata block.
func (w *Writer) flushMetadata() {
	b := &w.metas
	if len(b.b) == 0 {
		return
	}
	if w.v6 {
		start := w.beginV6(kindMetadata)
		w.out = append(w.out, b.b...)
		w.endV6(start)
	} else {
		w.eventBlockV4(kindMetadata, b)
	}
	*b = blockBuffer{b: b.b[:0]}
}

// eventBlockV4 writes an event or metadata block.
func (w *Writer) eventBlockV4(kind blockKind, b *blockBuffer) {
	w.beginV4(kind, 20+len(b.b))
	w.appendEventHeader(b)
	w.out = append(append(w.out, b.b...), tagEnd)
}

func (w *Writer) appendEventHeader(b *blockBuffer) {
	w.out = append(w.out, 20, 0, 1, 0)
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(b.min))
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(b.max))
}

// flushBlocks writes all blocks collected: metadata, stacks, events, and a
// sequence point if it is time for one.
func (w *Writer) flushBlocks() {
	w.flushMetadata()
	if len(w.events.b) > 0 || len(w.lost) > 0 {
		if w.v6 {
			w.flushV6()
		} else {
			w.flushV4()
		}
	}
	_ = w.flushOut() // kept in w.err
}

func (w *Writer) flushV4() {
	w.blocksV4()
	if w.sinceSP >= regionV4 {
		w.sequencePointV4()
	}
}

// blocksV4 writes the events collected, and their stacks.
func (w *Writer) blocksV4() {
	if n := w.stacks.size; n > 0 {
		w.beginV4(kindStack, listHead+n)
		w.writeList(&w.stacks)
		w.out = append(w.out, tagEnd)
	}
	w.eventBlockV4(kindEvent, &w.events)
	w.events = blockBuffer{b: w.events.b[:0]}
}

// writeList writes the contents of a stack or label list block.
func (w *Writer) writeList(l *listBuffer) {
	w.out = l.head(w.out)
	_ = w.flushOut() // kept in w.err
	for _, p := range l.pieces {
		w.hand(p)
	}
	l.written()
}

// sequencePointV4 ends a region.
func (w *Writer) sequencePointV4() {
	w.beginV4(kindSequencePoint, 12+12*len(w.order))
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(w.last))
	w.out = binary.LittleEndian.AppendUint32(w.out, uint32(len(w.order)))
	for _, thread := range w.order {
		w.out = binary.LittleEndian.AppendUint64(w.out, thread)
		w.out = binary.LittleEndian.AppendUint32(w.out, *w.numbers[thread])
	}
	w.out = append(w.out, tagEnd)
	w.resetStacks()
	w.sinceSP, w.sequenced = 0, true
}

// blocksV6 writes the events collected, and what they refer to.
func (w *Writer) blocksV6() {
	w.listV6(kindStack, &w.stacks)
	if len(w.rows) > 0 {
		start := w.beginV6(kindThread)
		w.out = append(w.out, w.rows...)
		w.endV6(start)
		w.rows = w.rows[:0]
	}
	w.listV6(kindLabelList, &w.labels)
	if len(w.events.b) > 0 {
		start := w.beginV6(kindEvent)
		w.appendEventHeader(&w.events)
		w.out = append(w.out, w.events.b...)
		w.endV6(start)
		w.events = blockBuffer{b: w.events.b[:0]}
	}
}

func (w *Writer) flushV6() {
	w.blocksV6()
	at := w.last
	if len(w.lost) > 0 {
		at, w.lostBy = max(at, w.lostBy), 0
	}
	if w.removed {
		start := w.beginV6(kindRemoveThread)
		w.appendLost()
		w.endV6(start)
	}
	w.sequencePointV6(at)
}

// sortLost leaves each of the threads that lost events once.
func (w *Writer) sortLost() {
	slices.Sort(w.lost)
	w.lost = slices.Compact(w.lost)
}

// appendLost appends the last numbers of the threads that lost events, and returns how many they
// are.
func (w *Writer) appendLost() (threads uint32) {
	w.sortLost()
	for _, index := range w.lost {
		w.out = binary.AppendUvarint(binary.AppendUvarint(w.out, index), uint64(*w.number(index)))
	}
	threads = uint32(len(w.lost))
	w.lost, w.removed = w.lost[:0], false
	return threads
}

// listV6 writes a block of stacks or label lists, if some wait.
func (w *Writer) listV6(kind blockKind, l *listBuffer) {
	if n := l.size; n > 0 {
		w.sizeV6(w.beginV6(kind), listHead+n)
		w.writeList(l)
	}
}

// sequencePointV6 ends a region; like the recorder it flushes the threads, so
// that their numbers start again. Index 0, which stands for an unknown thread and for the
// capture thread of all its events, has a row of its own: strict readers want one.
func (w *Writer) sequencePointV6(t int64) {
	start := w.beginV6(kindSequencePoint)
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(t))
	w.out = append(w.out, 1, 0, 0, 0, 0, 0, 0, 0) // flush threads; those listed have lost events
	at := len(w.out) - 4
	n := w.appendLost()
	binary.LittleEndian.PutUint32(w.out[at:], n)
	w.endV6(start)
	w.resetStacks()
	w.labels.reset()
	w.rows = w.rows[:0]
	clear(w.threads)
	w.row(threadKey{}, nil)
	clear(w.numbers)
	w.newest.number = nil
	w.order = w.order[:0]
	w.sinceSP, w.sequenced, w.others = 0, true, false
}

// Close writes what is left and the end mark. It does not close the io.Writer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.flushBlocks()
	if !w.v6 && !w.sequenced {
		w.sequencePointV4()
	}
	w.writeSum()
	if w.v6 {
		w.out = append(w.out, 0, 0, 0, 0)
	} else {
		w.out = append(w.out, tagNull)
	}
	if err := w.flushOut(); err != nil {
		return err
	}
	w.err = errors.New("nettrace: write to a closed Writer")
	return nil
}

// SequencePoint ends a region: a stack or label written again gets a new id, and
// readers compare sequence numbers. A Writer does so by itself often enough.
func (w *Writer) SequencePoint() error {
	if w.err != nil || w.sequenced {
		return w.err
	}
	w.flushBlocks()
	if w.others {
		w.sequencePointV6(w.last)
	} else if !w.v6 && !w.sequenced {
		w.sequencePointV4()
	}
	return w.flushOut()
}

// Damaged says before Copy that so many places of its input are known to be damaged: those of which only who
// uses the events can know are among them. Reader.Salvage of the copy counts them.
func (w *Writer) Damaged(places int64) { w.damaged = places }
