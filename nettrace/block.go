package nettrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// searchStep is how far a search for the next block looks at a time.
const searchStep = 1 << 20

// readPrologue finds the version and reads the Trace object or block.
func (r *Reader) readPrologue() error {
	b := r.src.peek(32)
	switch {
	case len(b) >= 12 && string(b[:8]) == magic && binary.LittleEndian.Uint32(b[8:]) == 0:
		return r.prologueV6()
	case len(b) >= 32 && string(b[:8]) == magic && string(b[8:32]) == serialMagic:
		r.src.skip(32)
	case len(b) >= 24 && string(b[:24]) == serialMagic:
		r.src.skip(24)
	case r.src.err != nil && r.src.err != io.EOF:
		return r.src.err
	case len(b) > 0 && len(b) < 32 && (bytes.HasPrefix([]byte(magic+serialMagic), b) || bytes.HasPrefix([]byte(serialMagic), b) ||
		bytes.HasPrefix([]byte(magic+"\x00\x00\x00\x00"), b)):
		return r.short(int64(len(b)), "header")
	default:
		return r.headless(0, ErrFormat)
	}
	at := r.src.offset()
	b = r.src.peek(maxObject + 48 + 1)
	o, ok := parseObject(b)
	if !ok && r.src.err == io.EOF && len(b) < maxObject && (len(b) == 0 || cutObject(b)) {
		return r.short(at+int64(len(b)), "header")
	}
	if !ok || o.kind != kindTrace {
		return r.headless(at, errNoTrace)
	}
	switch {
	case o.version < 1:
		return r.headless(at, fmt.Errorf("version %d of the Trace object", o.version))
	case o.version > 5:
		return versionError(at, "Trace object version %d, 1 to 4 are known", o.version)
	}
	r.h.Version = min(int(o.version), 4)
	body := 48
	if r.h.Version <= 2 {
		body = 36
	}
	c := Cursor{b: b[o.size:min(len(b), o.size+body)]}
	if c.Len() < body {
		return r.short(at+int64(len(b)), "Trace")
	}
	r.h.parseTrace(&c, func(where, format string, args ...any) {
		r.warn(at+int64(o.size), where, fmt.Errorf(format, args...), 0)
	})
	r.count(kindTrace, at, body)
	r.src.skip(o.size + body)
	if r.h.Version <= 2 {
		return nil // the object stays open: the events are inside
	}
	if end := r.src.peek(1); len(end) > 0 && end[0] == tagEnd {
		r.src.skip(1)
	} else if len(end) > 0 {
		r.resync(r.src.offset(), "Trace", fmt.Errorf("%w: tag %d where the object should end", ErrDamaged, end[0]))
	}
	return nil
}

// short tells of a header that the input does not hold whole.
func (r *Reader) short(at int64, where string) error {
	if r.src.err != nil && r.src.err != io.EOF {
		return r.src.err
	}
	return &FormatError{Offset: at, Where: where, Err: errNoEvents}
}

// errNoEvents reports a file that ends before anything was recorded.
var errNoEvents = fmt.Errorf("the file ends within it, before the first event; record it anew, or copy it again: %w", io.ErrUnexpectedEOF)

// errNoTrace reports what is framed like a trace and has neither its first object nor a block.
var errNoTrace = fmt.Errorf("%w: no Trace object is here, and no block of events behind it; copy the file again", ErrDamaged)

// headless looks for the first block of a file whose beginning is missing or
// broken. Without the Trace object the clock is unknown.
func (r *Reader) headless(at int64, cause error) error {
	r.h = Header{Version: 4, Frequency: 1e9, PointerSize: 8, Missing: true}
	b := r.src.peek(4 * searchStep)
	i := findObject(b, 4)
	if j := bytes.Index(b, signatureV3); i < 0 && j >= 0 {
		i, r.h.Version = j, 3
	}
	if i < 0 {
		if r.src.err != nil && r.src.err != io.EOF {
			return r.src.err
		}
		return &FormatError{Offset: at, Where: "header", Err: cause}
	}
	r.damaged(at, "header", fmt.Errorf("%w: no header; clock and process are unknown", ErrDamaged), int64(i))
	r.src.skip(i)
	return nil
}

// readBlock reads one block, or for v1 and v2 some events.
func (r *Reader) readBlock() {
	switch {
	case r.h.Version == 6:
		r.readV6()
	case r.h.Version >= 3:
		r.readObject()
	default:
		r.readInline()
	}
}

// finish notes the end of the input.
func (r *Reader) finish() { r.done = true }

// peekBlock peeks at n bytes. A size that the file does not bear out must not
// fill the memory: while more than a MiB is still to come, what has come is
// searched for the next block. It returns the position of a block that begins
// inside, or -1.
func (r *Reader) peekBlock(n, from int) (b []byte, inside int) {
	if n <= searchStep {
		return r.src.peek(n), -1
	}
	for have := searchStep; ; have += searchStep {
		have = min(have, n)
		b = r.src.peek(have)
		if i := findObject(b[min(from, len(b)):], r.h.Version); i >= 0 {
			return b, from + i
		}
		if have == n || len(b) < have {
			return b, -1
		}
		from = max(from, len(b)-maxObject)
	}
}

// readObject reads a block of v3 to v5.
func (r *Reader) readObject() {
	at := r.src.offset()
	b := r.src.peek(maxObject + 8)
	if len(b) == 0 {
		r.finish()
		return
	}
	if b[0] == tagNull {
		r.endTag(at)
		return
	}
	o, ok := parseObject(b)
	switch {
	case ok && o.kind != kindTrace:
	case !ok && r.src.err == io.EOF && len(b) < maxObject+8 && cutObject(b):
		r.damaged(at, "object header", io.ErrUnexpectedEOF, int64(len(b)))
		r.src.skip(len(b))
		r.finish()
		return
	default:
		err := fmt.Errorf("%w: no block header but % x", ErrDamaged, b[:min(len(b), 8)])
		if ok {
			err = fmt.Errorf("%w: a second Trace object", ErrDamaged)
		}
		r.resync(at, "object header", err)
		return
	}
	if len(b) < o.size+4 {
		r.damaged(at, o.kind.String(), io.ErrUnexpectedEOF, int64(len(b)))
		r.src.skip(len(b))
		r.finish()
		return
	}
	size := int(int32(binary.LittleEndian.Uint32(b[o.size:])))
	pad := int(-(at + int64(o.size) + 4 + r.shift) & 3)
	body := o.size + 4 + pad
	if size < 0 || size > r.opts.MaxBlockSize {
		r.salvage(at, o, body, size, fmt.Errorf("%w: block size %d", ErrTooLarge, size))
		return
	}
	b, inside := r.peekBlock(o.size+4+3+size+1, o.size) // whatever the padding
	switch {
	case inside >= 0:
		r.salvage(at, o, body, size, fmt.Errorf("%w: block size %d, but another block begins inside", ErrDamaged, size))
	case len(b) < body+size: // the file ends inside the block
		r.damaged(at, o.kind.String(), fmt.Errorf("block of %d bytes: %w", size, io.ErrUnexpectedEOF), 0)
		body = min(body, len(b)) // it may end in the padding
		r.contents(o, b[body:], at+int64(body), false)
		r.src.skip(len(b))
		r.finish()
	case len(b) > body+size && b[body+size] != tagEnd:
		if p, ok := r.otherPadding(b, o, size, pad); ok {
			r.damaged(at, o.kind.String(), fmt.Errorf("block is aligned as if %d bytes more stood before it", (pad-p)&3), 0)
			r.shift += int64(pad - p)
			r.contents(o, b[o.size+4+p:o.size+4+p+size], at+int64(o.size+4+p), true)
			r.src.skip(o.size + 4 + p + size + 1)
			return
		}
		r.salvage(at, o, body, size, fmt.Errorf("%w: tag %d after the block where %d ends it", ErrDamaged, b[body+size], tagEnd))
	default:
		if p, ok := r.otherPadding(b, o, size, pad); ok && !zero(b[o.size+4:body]) {
			pad, body = p, o.size+4+p
		}
		before, end := r.stats.Defects, min(len(b), body+size+1)
		r.contents(o, b[body:body+size], at+int64(body), true)
		if r.stats.Defects > before {
			// The size may be wrong although an end tag stands behind it by chance.
			// Its bytes may have moved: reading it may look at what is behind it.
			if i := findObject(r.src.peek(end)[body:body+size], r.h.Version); i >= 0 && r.mayReread(size-i) {
				end = body + i
				r.newRegion()
			}
		}
		r.src.skip(end)
	}
}

// mayReread reports whether n bytes of a block that made no sense may be read
// again, or further than its size, as something else. In all it allows as many as the file has so far, so
// that blocks made to overlap do not cost the square of their size.
func (r *Reader) mayReread(n int) bool {
	if r.reread+int64(n) > r.src.offset()+searchStep {
		return false
	}
	r.reread += int64(n)
	return true
}

// nextObject returns the position, counted from the first byte not consumed, of
// the first header of a known block at or behind from, or -1 if there is none
// within limit bytes. What was searched once is not searched again.
func (r *Reader) nextObject(from, limit int) int {
	at := r.src.offset()
	if r.noObject[0] <= at+int64(from) && at+int64(from) < r.noObject[1] {
		from = int(r.noObject[1] - at)
	} else {
		r.noObject = [2]int64{at + int64(from), at + int64(from)}
	}
	for n := firstWindow; ; n *= 2 {
		n = min(n, limit)
		b := r.src.peek(n)
		if from < len(b) {
			if i := findObject(b[from:], r.h.Version); i >= 0 {
				r.noObject[1] = at + int64(from+i)
				return from + i
			}
			from = max(from, len(b)-maxObject)
			r.noObject[1] = max(r.noObject[1], at+int64(from))
		}
		if len(b) < n || n == limit {
			return -1
		}
	}
}

// cutObject reports whether b may be the beginning of an object header.
func cutObject(b []byte) bool {
	if len(b) >= 15 {
		n := binary.LittleEndian.Uint32(b[11:])
		if n < 1 || n > uint32(len(oldTraceName)) || len(b) > 15+int(n) {
			return false
		}
	}
	return (b[0] == tagBegin || b[0] == tagBeginPrivate) && (len(b) < 2 || b[1] == b[0]) && (len(b) < 3 || b[2] == tagNull)
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// otherPadding finds the padding of a block when bytes of the file went
// missing before it, so that offsets no longer tell: zero bytes, the end tag in its
// place, a plausible block header.
func (r *Reader) otherPadding(b []byte, o object, size, not int) (int, bool) {
	found, n := 0, 0
	for pad := range 4 {
		start := o.size + 4 + pad
		if pad == not || start+size >= len(b) || b[start+size] != tagEnd || !zero(b[o.size+4:start]) {
			continue
		}
		if (o.kind == kindEvent || o.kind == kindMetadata) && r.h.Version >= 4 {
			if size < 20 || binary.LittleEndian.Uint16(b[start:]) != 20 || binary.LittleEndian.Uint16(b[start+2:]) > 1 {
				continue
			}
		}
		found, n = pad, n+1
	}
	return found, n == 1
}

// salvage reads what it can of a block whose size or end is wrong. The window
// still begins at the block's header; the block must end before the next one.
func (r *Reader) salvage(at int64, o object, body, size int, err error) {
	next := r.nextObject(o.size, r.opts.MaxBlockSize)
	b := r.src.peek(max(next, min(body+max(size, 0), r.opts.MaxBlockSize)))
	end := len(b)
	if next >= 0 {
		end = next
		if end > body && b[end-1] == tagEnd {
			end--
		}
	}
	if size >= 0 && body+size < end {
		// Either the size is too small or something else stands behind the
		// block: prefer the longer reading where it makes sense throughout.
		if o.kind != kindEvent || r.h.Version < 4 || !r.mayReread(end-body) || !r.decodes(b[body:end]) {
			end = body + size
		}
	}
	consumed := max(min(end, len(b)), 1)
	if next >= 0 && next-consumed <= 1 {
		consumed = next
	}
	r.damaged(at, o.kind.String(), err, 0)
	if body < end {
		r.contents(o, b[body:end], at+int64(body), false)
	}
	if o.kind == kindSequencePoint || o.kind == kindUnknown || consumed > 256<<10 {
		r.newRegion()
	}
	r.src.skip(consumed)
	if next < 0 && consumed >= len(b) && r.src.ended() {
		r.finish()
	}
}

// resync passes over bytes that are no block, up to the next header.
func (r *Reader) resync(at int64, where string, err error) {
	skipped := int64(0)
	tail := [2]byte{}
	for {
		b := r.src.peek(searchStep)
		if i := findObject(b, r.h.Version); i >= 0 {
			r.src.skip(i)
			skipped += int64(i)
			break
		}
		if len(b) < searchStep {
			if len(b) >= 2 {
				tail = [2]byte(b[len(b)-2:])
			}
			r.src.skip(len(b))
			skipped += int64(len(b))
			// The end mark itself may be whole behind the damage.
			r.stats.Ended = tail == [2]byte{tagEnd, tagNull}
			r.finish()
			break
		}
		r.src.skip(len(b) - maxObject)
		skipped += int64(len(b) - maxObject)
	}
	r.damaged(at, where, err, skipped)
	r.newRegion()
}

// newRegion forgets stacks and labels once what waits is delivered: a sequence
// point may be among lost bytes, and a stack of another region is worse than none.
func (r *Reader) newRegion() { r.draining, r.clearRefs = true, true }

// endTag handles the tag that ends a stream of v3 to v5.
func (r *Reader) endTag(at int64) {
	r.src.skip(1)
	r.endOwed(at)
	r.stats.Ended = true
	// What follows may be bytes after the end, or the end a begin tag that was hit.
	r.behindEnd(at, 1, "end tag", "the end tag", maxObject, func(b []byte) int { return findObject(b, r.h.Version) })
}

// behindEnd goes to the next block behind an end of the stream, which is n bytes long: then it was
// none, and that is told. If there is none, all the rest is trailing bytes. find returns where in b
// a block begins that has longest bytes in b, or -1.
func (r *Reader) behindEnd(at, n int64, where, end string, longest int, find func(b []byte) int) {
	if len(r.src.peek(1)) == 0 || r.atMagic() {
		r.finishTrailing(at + n)
		return
	}
	for skipped := int64(0); ; {
		b := r.src.peek(searchStep)
		if i := find(b); i >= 0 {
			r.src.skip(i)
			r.stats.Ended = false
			r.damaged(at, where, fmt.Errorf("%w: blocks after %s", ErrDamaged, end), n+skipped+int64(i))
			r.newRegion()
			return
		}
		pass := len(b)
		if pass == searchStep {
			pass -= longest
		}
		r.src.skip(pass)
		skipped += int64(pass)
		if pass == len(b) {
			r.trailing(at+n, skipped, false)
			return
		}
	}
}

// atMagic reports whether a trace begins at the first byte not consumed.
func (r *Reader) atMagic() bool {
	return string(r.src.peek(len(magic))) == magic || string(r.src.peek(len(serialMagic))) == serialMagic
}

// finishTrailing counts what is left of the input as trailing bytes.
func (r *Reader) finishTrailing(at int64) {
	trace := r.atMagic()
	n := int64(0)
	for {
		b := r.src.peek(searchStep)
		if len(b) == 0 {
			break
		}
		r.src.skip(len(b))
		n += int64(len(b))
	}
	r.trailing(at, n, trace)
}

func (r *Reader) trailing(at, n int64, trace bool) {
	r.stats.TrailingBytes = n
	if n > 0 {
		err := fmt.Errorf("%d bytes after the end of the trace", n)
		if trace {
			err = fmt.Errorf("another trace of %d bytes begins here", n)
		}
		r.warn(at, "end of file", err, 0)
	}
	r.finish()
}

// contents reads the contents of a block of v3 to v5; whole tells that b is all of it.
func (r *Reader) contents(o object, b []byte, at int64, whole bool) {
	r.count(o.kind, at, len(b))
	switch {
	case whole && r.again(o.kind, b, at):
	case o.kind == kindUnknown && whole && r.h.Version == 4 && !o.hit() && findObject(b, 4) < 0:
		r.newer(r.src.offset())
		r.carryObject(&o, b, at)
	case o.kind == kindUnknown:
		r.warn(at, o.name, fmt.Errorf("skipped a block of unknown kind, %d bytes", len(b)), int64(len(b)))
	case o.kind == kindEvent && r.h.Version < 4:
		r.eventsV3(b, at, whole)
	case o.kind == kindEvent:
		r.eventBlock(b, at, whole)
	case o.kind == kindMetadata:
		r.metadataBlock(b, at, whole)
	case o.kind == kindStack:
		r.stackBlock(b, at, whole)
	case o.kind == kindSequencePoint:
		r.sequencePoint(b, at, whole)
	}
}

// stackBlock reads a stack block of v4 to v6 (section 3.3).
func (r *Reader) stackBlock(data []byte, at int64, whole bool) {
	c := Cursor{b: data}
	first, count := c.U32(), c.U32()
	if c.err != nil {
		if whole {
			r.damaged(at, "StackBlock", c.err, int64(len(data)))
		}
		return
	}
	if r.seqEpoch > firstEpoch && r.stacks.run > 0 && (first == 1 || r.otherStack(first, data[8:])) {
		// After damage: ids that start again, or stand for others, mean that a sequence point was lost.
		r.stacks.restart()
	}
	data = r.newBuffer(data)
	if next := r.stacks.next(); first != next && bits.OnesCount32(first^next) == 1 && r.goesOn(at+int64(len(data)), next+count) {
		r.told(at, "StackBlock", fmt.Errorf("%w: stacks from id %d on, read as from %d on", ErrDamaged, first, next), 0)
		first = next
	}
	before := r.stats.Defects
	s := stackRows{r: r, at: at, first: first, id: first, count: count, share: r.stacks.crowded()}
	if !s.share {
		r.stacks.keep(data)
	}
	pos, err := s.read(data, c.pos)
	if err != nil && whole {
		if row, bit := s.fixBit(data, count-(s.id-first)); row >= 0 {
			r.told(at+int64(row), "StackBlock", fmt.Errorf("%w: read as if bit %d of the byte at offset %d were not flipped", err, bit&7, at+int64(bit>>3)), 0)
			pos, err = s.read(data, row)
		}
	}
	for err != nil && (whole || !r.src.endsAt(at+int64(len(data)))) {
		// The rows behind the damage are counted back from the last one.
		next, rows := r.rowsBehind(data, pos+1, 4, r.stackPasses)
		r.damaged(at+int64(pos), "StackBlock", err, int64(next-pos))
		if rows == 0 || uint32(rows) > count-(s.id-first) || count > uint32(len(data)/4) {
			count = s.id - first
			break
		}
		s.id = first + count - uint32(rows)
		pos, err = s.read(data, next)
	}
	if n := s.id - first; n != count && whole {
		r.warn(at, "StackBlock", fmt.Errorf("count is %d, but the block holds %d stacks", count, n), 0)
	}
	if s.again > 0 {
		r.warn(at, "StackBlock", fmt.Errorf("%d stack ids from %d on are defined again without a sequence point", s.again, first), 0)
	}
	if whole && r.stats.Defects == before {
		r.oweStacks(first, count, at)
	}
	if s.odd > 0 {
		r.warn(at, "StackBlock", fmt.Errorf("%d stacks are not a multiple of %d bytes", s.odd, r.h.PointerSize), 0)
	}
	if s.share {
		r.keepBuffer(data)
	}
}

// otherStack reports whether a known id stands for another stack than the one that b begins with.
func (r *Reader) otherStack(id uint32, b []byte) bool {
	n := r.stacks.find(id)
	if size, ok := u32At(b, 0); n > 0 && ok {
		known := r.stacks.bytes(n)
		return int(size) != len(known) || !bytes.HasPrefix(b[4:], known)
	}
	return false
}

// goesOn reports whether the block of stacks behind the one whose contents end at an offset begins
// with this id. It tells a bit of the ids that was flipped from a block that is missing in front of
// them.
func (r *Reader) goesOn(end int64, id uint32) bool {
	for pos := int(end - r.src.offset()); pos < searchStep; {
		var kind blockKind
		var size int
		b := r.src.peek(pos + 1 + maxObject + 8)
		if r.h.Version == 6 {
			if len(b) < pos+4 {
				return false
			}
			kind, size = splitV6(b[pos:])
			pos += 4
		} else {
			if len(b) < pos+1 {
				return false
			}
			o, ok := parseObject(b[pos+1:]) // behind the end tag
			if pos += 1 + o.size + 4; !ok || len(b) < pos {
				return false
			}
			kind, size = o.kind, int(int32(binary.LittleEndian.Uint32(b[pos-4:])))
			pos += int(-(r.src.offset() + int64(pos) + r.shift) & 3)
		}
		if kind == kindStack {
			b = r.src.peek(pos + 4)
			return len(b) == pos+4 && binary.LittleEndian.Uint32(b[pos:]) == id
		}
		if size < 0 || kind == kindSequencePoint {
			return false
		}
		pos += size
	}
	return false
}

// stackPasses reports whether a row of a stack block can be one.
func (r *Reader) stackPasses(row []byte) bool { return len(row)%r.h.PointerSize == 0 }

// stackRows reads the rows of a stack block.
type stackRows struct {
	r          *Reader
	at         int64
	first, id  uint32 // of the first one, of the next one
	count      uint32 // of all, as the block says
	again, odd int
	empty      int
	share      bool             // the block is not kept
	before     [trustedTail]int // where the last rows began, by their ids
}

// fixBit looks for one flipped bit in the size of one of the last rows with which left rows and those
// read since follow it to the end of the block. It leaves the bit flipped and forgets the rows read
// from this one on; row is where it begins, or -1.
func (s *stackRows) fixBit(data []byte, left uint32) (row, bit int) {
	if s.r.stacks.odd != nil {
		return -1, 0
	}
	for back := range min(trustedTail, s.id-s.first+1) {
		row := s.before[(s.id-back)%trustedTail]
		for bit := 8 * row; bit < 8*min(row+3, len(data)); bit++ {
			flip(data, bit)
			if n := s.r.rowsFrom(data, row, 4, s.r.stackPasses); n > 0 && uint32(n) == left+back {
				s.r.stacks.drop(back)
				s.r.stats.Stacks -= int64(back)
				s.id -= back
				return row, bit
			}
			flip(data, bit)
		}
	}
	return -1, 0
}

// read reads rows from pos on. It returns where it came to and why it could not go on.
func (s *stackRows) read(data []byte, pos int) (int, error) {
	r := s.r
	c := Cursor{b: data, pos: pos}
	for c.Len() > 0 {
		row := c.pos
		s.before[s.id%trustedTail] = row
		size := c.U32()
		stack := c.Bytes(int(size))
		if c.err != nil || size > 1<<30 {
			return row, fmt.Errorf("stack of %d bytes: %w", size, io.ErrUnexpectedEOF)
		}
		if size == 0 {
			// The runtime's equal stacks share an id, so a second empty one is a hole of zeros, unless the
			// block says that it has so many.
			if s.empty++; s.empty > 1 && c.Len() >= 4 && zero(data[row:row+8]) {
				if uint32(r.rowsFrom(data, row, 4, r.stackPasses)) != s.count-(s.id-s.first) {
					return row, fmt.Errorf("%w: zeros where stacks should be", ErrDamaged)
				}
				s.empty = math.MinInt
			}
		}
		if len(stack)%r.h.PointerSize != 0 {
			if next, rows := r.rowsBehind(data, row+1, 4, r.stackPasses); rows > 0 && next < c.pos {
				return row, fmt.Errorf("%w: stack of %d bytes", ErrDamaged, size)
			}
			s.odd++
		}
		if n := hole(data, row+4, c.pos); n > 0 {
			r.told(s.at+int64(row), "StackBlock", fmt.Errorf("%w: zeros where the frames of a stack should be", ErrDamaged), int64(n))
			stack = nil // its id is taken, so that the others keep theirs
		}
		if s.share && r.stacks.share(s.id, stack) || !s.share && r.stacks.add(s.id, row+4, len(stack)) {
			s.again++
		}
		r.stats.MaxDepth = max(r.stats.MaxDepth, len(stack)/r.h.PointerSize)
		s.id++
		r.stats.Stacks++
	}
	return c.pos, nil
}

// hole returns how many bytes of a stack, b[from:to], belong to a run of zeros that cannot be
// frames. The run may go on behind the stack.
func hole(b []byte, from, to int) (zeros int) {
	for at := from; at < to; at += zeroRun - 4 { // no run lies between these words
		at = min(at, to-4)
		if binary.LittleEndian.Uint32(b[at:]) != 0 {
			continue
		}
		lo, hi := at, at+4
		for lo > from && b[lo-1] == 0 {
			lo--
		}
		for hi < len(b) && b[hi] == 0 {
			hi++
		}
		if hi-lo >= zeroRun {
			return min(hi, to) - lo
		}
	}
	return 0
}

// sequencePoint reads a sequence point of v4 or v5 (section 3.4).
func (r *Reader) sequencePoint(b []byte, at int64, whole bool) {
	c := Cursor{b: b}
	t := c.I64()
	n := c.U32()
	r.stats.SequencePoints++
	if c.err != nil {
		r.newRegion()
		return
	}
	for i := uint32(0); i < n; i++ {
		thread, seq := c.U64(), c.U32()
		if c.err != nil {
			if whole {
				r.damaged(at, "SPBlock", fmt.Errorf("%d threads are announced: %w", n, c.err), 0)
			}
			break
		}
		r.syncSequence(thread, seq, t, at)
	}
	r.endRegion(t, at)
}
