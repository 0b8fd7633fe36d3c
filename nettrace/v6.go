package nettrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxThreads bounds the rows of a v6 thread table that are live at one time.
const maxThreads = 1 << 18

// maxPairs bounds the pairs of texts that the Trace block tells, and the live rows of the thread
// table.
const maxPairs = 1 << 16

// What one list of labels may have, far beyond what recorders write: each event may refer to
// another one.
const (
	maxLabels     = 256
	maxLabelBytes = 64 << 10
)

// prologueV6 reads the prologue and the Trace block of v6 (section 2.6).
func (r *Reader) prologueV6() error {
	b := r.src.peek(24)
	if len(b) < 24 {
		return r.short(int64(len(b)), "header")
	}
	major, minor := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:])
	if major != 6 {
		return versionError(12, "major version %d, 6 is known", major)
	}
	r.h = Header{Version: 6, MinorVersion: int(minor), Frequency: 1e9, PointerSize: 8}
	r.threads = map[uint64]*Thread{}
	r.src.skip(20)
	kind, size := splitV6(b[20:])
	b = r.src.peek(4 + size)
	if kind != kindTrace {
		r.h.Missing = true
		r.resyncV6(20, "Trace", fmt.Errorf("%w: first block is of kind %d: clock and process are unknown", ErrDamaged, kind))
		return nil
	}
	if len(b) < 4+size {
		return r.short(20+int64(len(b)), "Trace")
	}
	c := Cursor{b: b[4:]}
	r.h.parseTrace(&c, func(where, format string, args ...any) { r.warn(24, where, fmt.Errorf(format, args...), 0) })
	if c.err != nil {
		r.warn(24, "Trace", c.err, 0)
	}
	r.count(kindTrace, 20, size)
	r.src.skip(4 + size)
	return nil
}

// splitV6 splits a block header of v6.
func splitV6(b []byte) (blockKind, int) {
	h := binary.LittleEndian.Uint32(b)
	return blockKind(min(h>>24, 0xff)), int(h & 0xffffff)
}

// readV6 reads a block of v6.
func (r *Reader) readV6() {
	at := r.src.offset()
	b := r.src.peek(4)
	if len(b) < 4 {
		if len(b) > 0 {
			r.damaged(at, "block header", io.ErrUnexpectedEOF, int64(len(b)))
			r.src.skip(len(b))
		}
		r.finish()
		return
	}
	kind, size := splitV6(b)
	if kind == kindEnd && size == 0 {
		r.endV6(at)
		return
	}
	if bit := r.fixHeaderV6(); bit >= 0 {
		r.told(at, "block header", fmt.Errorf("%w: block of kind %d, %d bytes, read as if bit %d of the byte at offset %d were not flipped", ErrDamaged, kind, size, bit&7, at+int64(bit>>3)), 0)
		flip(r.src.peek(4), bit)
		kind, size = splitV6(r.src.peek(4))
	}
	if kind <= kindTrace || size > r.opts.MaxBlockSize {
		r.resyncV6(at, "block header", fmt.Errorf("%w: block of kind %d, %d bytes", ErrDamaged, kind, size))
		return
	}
	b = r.src.peek(4 + size + probeV6)
	whole, end := len(b) >= 4+size, min(len(b), 4+size)
	rest := b[end:]
	if !whole || !plausibleV6(rest, r.src.err != nil) || !checkV6(b) && kind < kindUnknown {
		// Either this size is wrong, or what follows is damaged.
		if next := r.findV6(5, end); next >= 0 {
			r.damaged(at, kindV6(kind).String(), fmt.Errorf("%w: block size %d, but another block begins inside", ErrDamaged, size), 0)
			b = r.src.peek(next)
			r.contentsV6(kind, b[4:next], at+4, false)
			if kind == kindSequencePoint || kind >= kindUnknown {
				r.newRegion()
			}
			r.src.skip(next)
			return
		}
		b = r.src.peek(4 + size)
	}
	if !whole {
		r.damaged(at, kindV6(kind).String(), fmt.Errorf("block of %d bytes: %w", size, io.ErrUnexpectedEOF), 0)
		r.contentsV6(kind, b[4:end], at+4, false)
		r.src.skip(len(b))
		r.finish()
		return
	}
	before := r.stats.Defects
	r.contentsV6(kind, b[4:end], at+4, true)
	if r.stats.Defects > before && kind < kindUnknown {
		// The size may be wrong although another block seems to follow.
		if next := r.findV6(5, end); next >= 0 && r.mayReread(end-next) {
			end = next
			r.newRegion()
		}
	}
	r.src.skip(end)
}

// fixHeaderV6 looks for a flipped bit in the header of the block that begins here, where no
// block follows it: with the bit flipped back two others follow. It returns its number, -1 if there
// is none.
func (r *Reader) fixHeaderV6() int {
	b := r.src.peek(4)
	kind, size := splitV6(b)
	if size <= r.opts.MaxBlockSize && r.leadsV6(1) {
		return -1
	}
	if kind == kindEnd && size == 0 || kind >= kindUnknown && r.chainAfterV6(4+size, 1) || r.leadsToOthers() {
		return -1
	}
	for bit := range 32 {
		b := r.src.peek(4)
		flip(b, bit)
		ok := r.effort(1) && r.leadsV6(2) && r.holdsRows()
		flip(r.src.peek(4), bit)
		if ok {
			return bit
		}
	}
	return -1
}

// holdsRows reports whether the block that begins here can be of its kind by the first of its rows, for
// kinds whose blocks begin with nothing else that tells them apart: any other block could be one.
func (r *Reader) holdsRows() bool {
	kind, size := splitV6(r.src.peek(4))
	var pass func(row []byte) bool
	switch kind {
	case kindMetadata:
		pass = rowIsMetadata
	case kindThread:
		pass = r.rowIsThread
	default:
		return true
	}
	c := Cursor{b: r.src.peek(4 + size), pos: 4}
	if kind == kindMetadata {
		c.Skip(int(c.U16()))
	}
	row := c.Bytes(int(c.U16()))
	return size == 0 || c.err == nil && pass(row)
}

// leadsV6 reports whether a known block begins here and n others follow it.
func (r *Reader) leadsV6(n int) bool {
	kind, size := splitV6(r.src.peek(4))
	return kind >= kindEvent && kind <= kindLabelList && size <= r.opts.MaxBlockSize && checkV6(r.src.peek(probeV6)) && r.chainAfterV6(4+size, n)
}

// leadsToOthers reports whether a known block begins here, and between it and two others, or the end, some of
// unknown kinds stand: a larger size would make them its contents.
func (r *Reader) leadsToOthers() bool {
	kind, size := splitV6(r.src.peek(4))
	if kind < kindEvent || kind > kindLabelList || size > r.opts.MaxBlockSize || !checkV6(r.src.peek(probeV6)) {
		return false
	}
	p, n := 4+size, 0
	end := p + largestBit
	for ; n < 4 && p <= end; n++ {
		b := r.src.peek(p + 4)
		if len(b) < p+4 {
			return false
		}
		if kind, size = splitV6(b[p:]); kind < kindUnknown {
			break
		}
		p += 4 + size
	}
	return n > 0 && p <= end && r.chainAfterV6(p, 2)
}

// largestBit is the most that one flipped bit changes a size by: blocks beyond need not be looked
// at, which would have all in front of them be held.
const largestBit = 1 << 23

// chainAfterV6 reports whether blocks begin at p, n of them or all to the end of the stream.
func (r *Reader) chainAfterV6(p, n int) bool {
	for range n {
		b := r.src.peek(p + probeV6)
		if len(b) < p+4 {
			return len(b) == p && r.src.err != nil
		}
		kind, size := splitV6(b[p:])
		if kind == kindEnd && size == 0 {
			return len(b) == p+4
		}
		if kind < kindEvent || kind > kindLabelList || !checkV6(b[p:]) {
			return false
		}
		p += 4 + size
	}
	return true
}

func kindV6(k blockKind) blockKind { return min(k, kindUnknown) }

// endV6 handles the end block. Zero bytes of a hole in the file look like one.
func (r *Reader) endV6(at int64) {
	r.src.skip(4)
	r.stats.Ended = true
	r.behindEnd(at, 4, "end of stream", "the end of the stream", probeV6, func([]byte) int { return r.findV6(0, searchStep) })
}

// resyncV6 passes over bytes that are no block. v6 has no signature: a place
// counts as a block if four headers in a row make sense.
func (r *Reader) resyncV6(at int64, where string, err error) {
	skipped, from := int64(0), 1
	for {
		b := r.src.peek(searchStep)
		if next := r.findV6(from, searchStep); next >= 0 {
			r.src.skip(next)
			skipped += int64(next)
			break
		}
		n := len(b)
		if n == searchStep {
			n -= probeV6
		}
		if n == len(b) {
			r.stats.Ended = n >= 4 && zero(b[n-4:])
			r.src.skip(n)
			skipped += int64(n)
			r.finish()
			break
		}
		r.src.skip(n)
		skipped += int64(n)
		from = 0
	}
	r.damaged(at, where, err, skipped)
	r.newRegion()
}

// probeV6 is how many bytes a look at a block takes.
const probeV6 = 40

// findV6 returns the position, counted from the first byte not consumed and less
// than to, where a chain of blocks begins, or -1.
func (r *Reader) findV6(from, to int) int {
	n := len(r.src.peek(to))
	for p := from; p+4 < n; p++ {
		b := r.src.peek(min(n, p+probeV6))[p:]
		if k, size := splitV6(b); k < kindEvent || k > kindLabelList || k == kindRemoveThread || size < 3 || !checkV6(b) {
			continue
		}
		if r.chainV6(p) {
			return p
		}
	}
	return -1
}

// chainV6 follows four block headers from a position, or at least two to the end of the
// file: among a million places some would name a size that by chance reaches to the end.
func (r *Reader) chainV6(p int) bool {
	for i := range 4 {
		b := r.src.peek(p + probeV6)
		if len(b) < p+4 {
			return i >= 2 && len(b) == p && r.src.err != nil // a file that stops between blocks
		}
		kind, size := splitV6(b[p:])
		if kind == kindEnd && size == 0 {
			return i >= 2 && len(b) == p+4
		}
		if kind < kindEvent || kind > kindLabelList || !checkV6(b[p:]) {
			return false
		}
		p += 4 + size
	}
	return true
}

// plausibleV6 reports whether b, which follows a block, may begin another one.
func plausibleV6(b []byte, last bool) bool {
	if len(b) < 4 {
		return last
	}
	kind, size := splitV6(b)
	return kind == kindEnd && size == 0 || kind > kindTrace && (kind >= kindUnknown || checkV6(b))
}

// checkV6 looks at the first bytes of a block for what its kind allows. b may
// hold less than the block.
func checkV6(b []byte) bool {
	kind, size := splitV6(b)
	b = b[4:]
	switch kind {
	case kindEvent:
		if h, ok := parseEventHeader(b); size < 20 || len(b) >= 20 && (!ok && h.size < 20 || h.size > size || h.size > 64 || h.min > h.max ||
			binary.LittleEndian.Uint16(b[2:]) > 1) {
			return false
		}
	case kindMetadata:
		return size >= 2 && (len(b) < 2 || int(binary.LittleEndian.Uint16(b)) <= size-2)
	case kindSequencePoint:
		if size < 16 {
			return false
		}
		if len(b) >= 16 {
			n := int(binary.LittleEndian.Uint32(b[12:]))
			return binary.LittleEndian.Uint32(b[8:]) <= 3 && n <= (size-16)/2 && n*15 >= size-16
		}
	case kindStack:
		if size < 8 {
			return false
		}
		if len(b) >= 12 && size >= 12 {
			n := int64(binary.LittleEndian.Uint32(b[8:]))
			return n%4 == 0 && n <= int64(size-12) && int64(binary.LittleEndian.Uint32(b[4:])) <= int64(size-8)/4
		}
	case kindThread:
		return size == 0 || size >= 3 && (len(b) < 2 || int(binary.LittleEndian.Uint16(b)) <= size-2)
	case kindLabelList:
		if size < 8 {
			return false
		}
		if len(b) >= 9 && size >= 9 {
			k := b[8] & 0x7f
			return k >= 1 && k <= 10 && int64(binary.LittleEndian.Uint32(b[4:])) <= int64(size-8)/2
		}
	}
	return true
}

// contentsV6 reads the contents of a block of v6; whole tells that b is all of it.
func (r *Reader) contentsV6(kind blockKind, b []byte, at int64, whole bool) {
	r.count(kindV6(kind), at, len(b))
	if whole && r.again(kind, b, at) {
		return
	}
	switch kind {
	case kindEvent:
		r.eventBlock(b, at, whole)
	case kindMetadata:
		r.metadataRows(b, at, whole)
	case kindSequencePoint:
		r.sequencePointV6(b, at, whole)
	case kindStack:
		r.stackBlock(b, at, whole)
	case kindThread:
		r.threadRows(b, at, whole)
	case kindRemoveThread:
		r.removeThreads(b, at, whole)
	case kindLabelList:
		r.labelLists(b, at, whole)
	default:
		// What is missing tells of another block whose kind was hit, but little is of a sequence point.
		point := binary.LittleEndian.AppendUint32(nil, uint32(len(b))|uint32(kindSequencePoint)<<24)
		if checkV6(append(point, b[:min(len(b), probeV6)]...)) {
			r.warn(at, "block", fmt.Errorf("skipped a block of unknown kind %d, %d bytes, which looks like a sequence point", kind, len(b)), int64(len(b)))
			return
		}
		r.newer(at - 4)
		if whole {
			r.carry(kind, b, at)
		} else {
			r.stats.LostBytes += int64(len(b)) // of the others what is read is told
		}
	}
}

// metadataRows reads a metadata block of v6 (section 3.2).
func (r *Reader) metadataRows(b []byte, at int64, whole bool) {
	c := Cursor{b: b}
	c.Skip(int(c.U16()))
	r.rows16(b, c.pos, at, "MetadataBlock", whole, rowIsMetadata, func(row []byte, offset int64) {
		m, err := parseRow(row, offset)
		if r.mayBeNewer() && errors.Is(err, errKind) {
			r.newer(offset)
		} else if err != nil {
			r.warn(offset, "metadata", err, int64(len(row)))
		}
		if m != nil {
			r.define(m)
		}
	})
}

// rowIsMetadata reports whether a row can define an event type: id, provider, event and name.
func rowIsMetadata(row []byte) bool {
	c := Cursor{b: row}
	id, provider := c.Varuint32(), c.StringV()
	c.Varuint32()
	name := c.StringV()
	return c.U16() < maxFieldsEach && c.err == nil && id > 0 && provider.Len() > 0 && printable(provider.b) && printable(name.b)
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(b)
}

// rows16 hands on the rows of a block of v6 that begin with a u16, their size. Behind damage it
// goes on where rows that pass follow to the end.
func (r *Reader) rows16(b []byte, pos int, at int64, where string, whole bool, pass func(row []byte) bool, do func(row []byte, offset int64)) {
	for pos < len(b) {
		c := Cursor{b: b, pos: pos}
		row := c.Bytes(int(c.U16()))
		err := c.err
		if err == nil && !pass(row) {
			err = fmt.Errorf("%w: row of %d bytes", ErrDamaged, len(row))
		}
		if err == nil {
			do(row, at+int64(pos))
			pos = c.pos
			continue
		}
		next, rows := r.rowsBehind(b, pos+1, 2, pass)
		if c.err == nil && len(row) > 0 && (rows == 0 || next >= c.pos) { // the row is odd, but ends where another begins
			do(row, at+int64(pos))
			pos = c.pos
			continue
		}
		if whole {
			r.damaged(at+int64(pos), where, err, int64(next-pos))
		}
		pos = next
	}
}

// sequencePointV6 reads a sequence point of v6 (section 3.4).
func (r *Reader) sequencePointV6(b []byte, at int64, whole bool) {
	c := Cursor{b: b}
	t := c.I64()
	flags, n := c.U32(), c.U32()
	r.stats.SequencePoints++
	for i := uint32(0); i < n && c.err == nil; i++ {
		index, seq := c.Varuint(), c.Varuint32()
		if c.err == nil {
			r.syncSequence(index, seq, t, at)
		}
	}
	if c.err != nil && whole {
		r.damaged(at, "SPBlock", fmt.Errorf("%d threads are announced: %w", n, c.err), 0)
	}
	if flags&1 != 0 {
		clear(r.threads) // events that wait keep their rows
		r.pairs = 0
		clear(r.seq)
	}
	if flags&2 != 0 {
		r.meta.clear()
	}
	r.endRegion(t, at)
}

// threadRows reads a thread block of v6 (section 3.5).
func (r *Reader) threadRows(b []byte, at int64, whole bool) {
	r.rows16(b, 0, at, "ThreadBlock", whole, r.rowIsThread, func(row []byte, offset int64) {
		th, err := r.parseThread(row, offset)
		if r.mayBeNewer() && errors.Is(err, errKind) {
			r.newer(offset)
		} else if err != nil {
			r.warn(offset, "thread row", err, 0)
		}
		if th != nil {
			r.addThread(th)
		}
	})
}

// rowIsThread reports whether a row can define a thread.
func (r *Reader) rowIsThread(row []byte) bool {
	c := Cursor{b: row}
	index := c.Varuint()
	for c.Len() > 0 {
		switch c.U8() {
		case 1:
			c.StringV()
		case 2, 3:
			c.Varuint()
		case 4:
			c.StringV()
			c.StringV()
		default:
			return r.mayBeNewer() && c.err == nil && index < maxThreads<<8
		}
	}
	return c.err == nil && index < maxThreads<<8
}

// parseThread reads a row of a thread block; nil is none at all.
func (r *Reader) parseThread(b []byte, offset int64) (*Thread, error) {
	row := Cursor{b: b}
	th := &Thread{Index: row.Varuint(), ProcessID: r.h.ProcessID, Offset: offset}
	if row.err != nil {
		return nil, row.err
	}
	for row.Len() > 0 {
		switch kind := row.U8(); kind {
		case 1:
			th.Name = row.StringV().String()
		case 2:
			th.ProcessID = int(row.Varuint())
		case 3:
			th.ID = row.Varuint()
		case 4:
			th.KeyValues = append(th.KeyValues, KeyValue{row.StringV().String(), row.StringV().String()})
		default:
			return th, fmt.Errorf("item of %w %d", errKind, kind)
		}
	}
	return th, row.err
}

// addThread makes a thread known.
func (r *Reader) addThread(th *Thread) {
	if old := r.threads[th.Index]; old != nil && (old.ID != th.ID || old.ProcessID != th.ProcessID) {
		r.warn(th.Offset, "thread row", fmt.Errorf("thread index %d is defined again", th.Index), 0)
	}
	r.forget(th.Index)
	r.pairs += len(th.KeyValues)
	if len(r.threads) >= maxThreads || r.pairs > maxPairs {
		r.warn(th.Offset, "thread row", fmt.Errorf("%w: more than %d threads, or %d pairs of texts", ErrTooLarge, maxThreads, maxPairs), 0)
		clear(r.threads)
		r.pairs = len(th.KeyValues)
	}
	r.threads[th.Index] = th
	// A thread numbers its events from 1, so a first number above tells of a loss.
	s := r.sequenceOf(th.Index)
	s.last, s.epoch = 0, r.seqEpoch
}

// forget takes a row out of the thread table.
func (r *Reader) forget(index uint64) {
	if old := r.threads[index]; old != nil {
		r.pairs -= len(old.KeyValues)
		delete(r.threads, index)
	}
}

// removeThreads reads the rows of a RemoveThread block (section 3.6).
func (r *Reader) removeThreads(b []byte, at int64, whole bool) {
	c := Cursor{b: b}
	clear(r.stretch.sums) // the same row may define a thread again
	r.stretch.events = true
	for c.Len() > 0 && c.err == nil {
		index, seq := c.Varuint(), c.Varuint32()
		if c.err != nil {
			break
		}
		r.syncSequence(index, seq, r.sequenceOf(index).time, at)
		r.forget(index)
		delete(r.seq, index)
	}
	if c.err != nil && whole {
		r.damaged(at, "RemoveThreadBlock", c.err, 0)
	}
}

// Kinds of labels (section 3.7).
const (
	labelActivity = 1 + iota
	labelRelated
	labelTrace
	labelSpan
	labelString
	labelNumber
	labelOpcode
	labelKeywords
	labelLevel
	labelVersion
)

// errKind reports a part of a row or list whose kind is not known, nor is its length.
var errKind = errors.New("unknown kind")

// skipLabels passes over one list of labels.
func skipLabels(c *Cursor) error {
	start := c.pos
	for n := 1; ; n++ {
		k := c.U8()
		switch k & 0x7f {
		case labelActivity, labelRelated, labelTrace:
			c.Skip(16)
		case labelSpan, labelKeywords:
			c.Skip(8)
		case labelString:
			c.StringV()
			c.StringV()
		case labelNumber:
			c.StringV()
			c.Varint()
		case labelOpcode, labelLevel, labelVersion:
			c.Skip(1)
		default:
			if c.err == nil {
				return fmt.Errorf("label of %w %d", errKind, k&0x7f)
			}
		}
		if n > maxLabels || c.err == nil && c.pos-start > maxLabelBytes {
			return ErrTooLarge
		}
		if c.err != nil || k&0x80 != 0 {
			return c.err
		}
	}
}

// labelLists reads a label list block.
func (r *Reader) labelLists(data []byte, at int64, whole bool) {
	c := Cursor{b: data}
	first, count := c.U32(), c.U32()
	if c.err != nil {
		if whole {
			r.damaged(at, "LabelListBlock", c.err, int64(len(data)))
		}
		return
	}
	if r.seqEpoch > 1 && first == 1 && r.labels.run > 0 {
		r.labels.restart() // as in stackBlock
	}
	r.labels.blocks = append(r.labels.blocks, r.newBuffer(data))
	n := uint32(0)
	for ; c.Len() > 0; n++ {
		start := c.pos
		if err := skipLabels(&c); err != nil {
			if r.mayBeNewer() && errors.Is(err, errKind) {
				// Its length is not known, so nothing is of the lists behind it.
				r.newer(at + int64(start))
				r.labels.add(first+n, start, c.pos-1-start)
				for n++; n < count && c.Len() > 0; n++ {
					r.labels.add(first+n, c.pos, 0)
					c.Skip(1)
				}
				return
			}
			if whole {
				r.warn(at+int64(start), "LabelListBlock", err, int64(len(data)-start))
			}
			break
		}
		r.labels.add(first+n, start, c.pos-start)
	}
	if n != count && whole {
		r.warn(at, "LabelListBlock", fmt.Errorf("count is %d, but the block holds %d lists", count, n), 0)
	}
}

// A labelReader reads lists of labels and holds the one read last: most events share one.
type labelReader struct {
	key      uint64
	labels   []Label
	activity GUID
	related  GUID
	trace    [16]byte
	span     uint64
	set      [4]bool // opcode, keywords, level, version
	opcode   int
	keywords uint64
	level    int
	version  int

	keep    bool // labels stay as they are when another list is read
	strings map[string]string
}

// fillV6 sets what only v6 has.
func (v *view) fillV6(ev *Event, blk *block, row *row, l *labelReader) {
	th := blk.thread(row.thread)
	ev.Thread, ev.ThreadIndex, ev.ThreadID = th, 0, 0
	if th == lostThread {
		ev.Thread, ev.lostThread = nil, true
	} else if th != nil {
		ev.ThreadIndex, ev.ThreadID, ev.ProcessID = th.Index, th.ID, th.ProcessID
	}
	if row.ids == 0 {
		ev.ActivityID, ev.RelatedActivityID, ev.TraceID, ev.SpanID = GUID{}, GUID{}, [16]byte{}, 0
		ev.Labels, ev.LabelKey = nil, 0
		return
	}
	if key := v.region<<32 | uint64(row.ids); l.key != key {
		l.read(v.labels.bytes(row.ids))
		l.key = key
	}
	ev.LabelKey, ev.Labels = l.key, l.labels
	ev.ActivityID, ev.RelatedActivityID, ev.TraceID, ev.SpanID = l.activity, l.related, l.trace, l.span
	if l.set[0] {
		ev.Opcode = l.opcode
	}
	if l.set[1] {
		ev.Keywords = l.keywords
	}
	if l.set[2] {
		ev.Level = l.level
	}
	if l.set[3] {
		ev.fitted = ev.fitted && l.version == ev.Version // another layout
		ev.Version = l.version
	}
}

// read reads a list that skipLabels has found whole.
func (l *labelReader) read(b []byte) {
	labels := l.labels[:0]
	if l.keep {
		labels = nil
	}
	*l = labelReader{labels: labels, keep: l.keep, strings: l.strings}
	c := Cursor{b: b}
	for {
		k := c.U8()
		switch k & 0x7f {
		case labelActivity:
			l.activity = c.GUID()
		case labelRelated:
			l.related = c.GUID()
		case labelTrace:
			l.trace = c.GUID()
		case labelSpan:
			l.span = c.U64()
		case labelString:
			l.labels = append(l.labels, Label{Key: l.text(c.StringV()), Value: l.text(c.StringV())})
		case labelNumber:
			l.labels = append(l.labels, Label{Key: l.text(c.StringV()), Number: int64(c.Varuint()), IsNumeric: true})
		case labelOpcode:
			l.opcode, l.set[0] = int(c.U8()), true
		case labelKeywords:
			l.keywords, l.set[1] = c.U64(), true
		case labelLevel:
			l.level, l.set[2] = int(c.U8()), true
		case labelVersion:
			l.version, l.set[3] = int(c.U8()), true
		}
		if k&0x80 != 0 || c.err != nil {
			break
		}
	}
	plain := plainNumbers(l.labels, l.set[0] || l.set[3])
	for i := range l.labels {
		x := &l.labels[i]
		if x.IsNumeric && !plain {
			x.Number = zigzag(uint64(x.Number))
		}
		if n := x.small(); x.Key == keyVersion && !l.set[3] && n >= 0 {
			l.version, l.set[3] = n, true
		} else if x.Key == keyOpcode && !l.set[0] && n > 0 { // 0 is what a recorder writes that knows none
			l.opcode, l.set[0] = n, true
		}
	}
}

// The labels in which recorders of before April 2026 tell the version and the opcode of an event.
const (
	keyVersion = "Version"
	keyOpcode  = "OpCode"
)

// plainNumbers reports whether a list is one of those recorders, which wrote numbers (kind 6) without zigzag
// (microsoft/one-collect 241): it tells with them what others tell with labels of an own kind.
func plainNumbers(labels []Label, ownKind bool) bool {
	if ownKind {
		return false
	}
	for i := range labels {
		if x := &labels[i]; x.IsNumeric && (x.Key == keyVersion || x.Key == keyOpcode) {
			return true
		}
	}
	return false
}

func zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// small returns the value of a label from 0 to 255, -1 if it is none of these.
func (x *Label) small() int {
	if x.IsNumeric {
		if x.Number < 0 || x.Number > 255 {
			return -1
		}
		return int(x.Number)
	}
	n, err := strconv.ParseUint(x.Value, 10, 8)
	if err != nil {
		return -1
	}
	return int(n)
}

// text returns a label's string, one copy for all that are equal.
func (l *labelReader) text(t Text) string {
	if s, ok := l.strings[string(t.b)]; ok {
		return s
	}
	s := t.String()
	if l.strings == nil || len(l.strings) >= 4096 {
		l.strings = map[string]string{}
	}
	if len(s) <= 256 {
		l.strings[string(t.b)] = s
	}
	return s
}
