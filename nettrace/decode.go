package nettrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// eventHeader is the header of event and metadata blocks of v4 to v6 (section 3.1).
type eventHeader struct {
	size       int
	compressed bool
	min, max   int64
}

func parseEventHeader(b []byte) (h eventHeader, ok bool) {
	if len(b) < 20 {
		return h, false
	}
	h.size = int(binary.LittleEndian.Uint16(b))
	h.compressed = binary.LittleEndian.Uint16(b[2:])&1 != 0
	h.min, h.max = int64(binary.LittleEndian.Uint64(b[4:])), int64(binary.LittleEndian.Uint64(b[12:]))
	return h, h.size >= 20 && h.size <= len(b)
}

// window returns the times that events of the block can have. The two times of the
// header are hints (test writers store 0), so an hour is allowed on both sides:
// what lies beyond comes from a delta that was hit.
func (r *Reader) window(h eventHeader) (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	if h.min > h.max || h.max == 0 || h.min <= 0 {
		return lo, hi
	}
	if r.h.Frequency > math.MaxInt64/3600/4 {
		return lo, hi
	}
	slack := 3600 * r.h.Frequency
	lo = h.min - slack
	if h.max < math.MaxInt64-slack {
		hi = h.max + slack
	}
	return lo, hi
}

// eventBlock reads an event block of v4 to v6.
func (r *Reader) eventBlock(data []byte, at int64, whole bool) {
	h, ok := parseEventHeader(data)
	if len(data) >= usualHeader && (!ok || h.size != usualHeader || !h.compressed) && r.mendHeader(data, &h, ok, at) {
		ok = true
	}
	if !ok {
		if whole || len(data) >= 20 {
			r.damaged(at, "EventBlock", fmt.Errorf("%w: header of %d bytes in a block of %d", ErrDamaged, h.size, len(data)), int64(len(data)))
		}
		return
	}
	r.src.unsum = r.src.unsum || !r.summed // recordings have no checksum
	blk := r.newBlock(data, at)
	before, losses, lostBefore := r.stats.Defects, len(r.losses), r.stats.Lost
	r.doubled, r.late, r.firsts = odd{}, odd{}, false
	if h.compressed {
		r.compressedEvents(blk, h, len(data), whole, !whole && r.src.endsAt(at+int64(len(data))))
	} else {
		r.uncompressed(blk, h, len(data), whole)
	}
	if !h.compressed || !whole || r.stats.Defects > before { // rows were left out or changed
		blk.facts.of(blk.rows)
	}
	if r.doubled.events > 0 {
		r.told(r.doubled.at, "EventBlock", fmt.Errorf("%w: %d events come a second time, by their sequence numbers and times; they are left out", ErrDamaged, r.doubled.events), 0)
	}
	if r.late.events > 0 {
		r.outOfPlace(blk)
	}
	if !whole {
		r.seqEpoch++ // what the rest of the block held is missing behind these
	}
	r.recognise(blk)
	r.lostFirst(blk)
	if whole && len(blk.rows) > 0 && r.stats.Defects == before {
		r.mend(blk, h)
		if r.stats.Defects == before {
			// What was read wrong has numbers that are wrong as well, and what the file lost the
			// recorder did not.
			lost := uint32(r.stats.Lost - lostBefore)
			if !r.checkTimes(h, &blk.facts, at) || r.follows(blk, lost) {
				r.notLost(blk, losses)
			}
		}
	}
	if len(blk.rows) == 0 && whole && r.stats.Defects == before {
		r.warn(at, "EventBlock", errors.New("block without events"), 0)
	}
	r.owed.clear()
	r.queueRows(blk)
}

// checkTimes compares the times of a whole block with its header. The runtime
// writes the true extremes, the recorder of v6 those of the sequence points around
// it. A difference is no proof of damage but often its only trace: a hole of
// zeros reads as events.
func (r *Reader) checkTimes(h eventHeader, f *rowFacts, at int64) bool {
	if h.max == 0 {
		return true
	}
	if r.timesAgree(h, f.first, f.last) {
		return true
	}
	r.damaged(at, "EventBlock", fmt.Errorf("%w: times of the events are %d to %d, the block says %d to %d", ErrDamaged, f.first, f.last, h.min, h.max), 0)
	return false
}

// timesAgree reports whether a block whose events are of these times says so; see checkTimes.
func (r *Reader) timesAgree(h eventHeader, first, last int64) bool {
	return r.h.Version == 6 && first >= h.min && last <= h.max || first == h.min && last == h.max
}

// checkPayload tells of a payload that cannot be decoded. A source that declares other fields than
// it writes is not damaged: of what is not the runtime's own, some payload of the type must fit.
func (r *Reader) checkPayload(blk *block, row *row) {
	m := row.meta
	if m.layout == nil && m.Role == RoleNone {
		return
	}
	payload := blk.buf[row.payload : row.payload+row.size]
	if m.Role == RoleSample && len(payload) == 4 {
		row.fits = binary.LittleEndian.Uint32(payload) <= uint32(SampleManaged)
		return
	}
	if m.lengths.hold(m, r.h.PointerSize, payload) || r.fits(m, payload) {
		row.fits = true
		if !m.fit {
			m.fit = true
			r.tellUnfit(m)
		}
		return
	}
	if m.unfit == 0 {
		m.unfitAt = blk.offset + int64(row.at())
	}
	m.unfit++
	m.unfitBytes += int64(row.size)
	if m.fit || m.layout != nil && m.layout.BuiltIn || m.Role != RoleNone {
		r.tellUnfit(m)
	}
}

// tellUnfit tells of the events of a type whose payloads cannot be decoded, so far.
func (r *Reader) tellUnfit(m *Metadata) {
	if m.unfit > 0 {
		r.told(m.unfitAt, "event", fmt.Errorf("%w: the payload of %s of %s cannot be decoded", ErrDamaged, events(m.unfit), m.EventName()), m.unfitBytes)
		m.unfit, m.unfitBytes = 0, 0
	}
}

func events(n int) string {
	if n == 1 {
		return "an event"
	}
	return fmt.Sprintf("%d events", n)
}

// mostSomeRows is twice what a block of the runtime holds.
const mostSomeRows = 4 << 10

// queueRows checks the payloads of a block and hands its rows to the queue, cut where time goes back.
func (r *Reader) queueRows(blk *block) {
	rows := blk.rows
	if len(rows) == 0 {
		r.freeBlock(blk)
		return
	}
	r.stats.Events += int64(len(rows))
	r.someRows = min(len(rows)+len(rows)/8, mostSomeRows)
	if r.queue.memory+blk.memory() > r.opts.MaxBuffered/4 {
		blk.trim() // much waits: memory counts for more than what reuse saves
		rows = blk.rows
	}
	start, payload := 0, int64(0)
	for i := range rows {
		row := &rows[i]
		r.checkPayload(blk, row)
		payload += int64(row.size)
		if i > 0 && row.time < rows[i-1].time {
			r.queue.push(segment{rows[start].time, blk.offset + int64(rows[start].at()), blk, start, i})
			blk.segments++
			start = i
		}
		if row.sorted && row.time > r.queue.watermark {
			r.queue.watermark = row.time
		}
	}
	r.queue.push(segment{rows[start].time, blk.offset + int64(rows[start].at()), blk, start, len(rows)})
	blk.segments++
	blk.held = blk.memory() + blk.segments*segmentSize
	r.queue.bytes += blk.contents()
	r.queue.memory += blk.held
	r.stats.PayloadBytes += payload
}

var (
	errVarint = fmt.Errorf("%w: overlong varint", ErrDamaged)
	errShort  = fmt.Errorf("event goes beyond its block: %w", io.ErrUnexpectedEOF)
	errTime   = fmt.Errorf("%w: time of the event is far outside its block's", ErrDamaged)
	errDoubt  = fmt.Errorf("%w: events that cannot be right", ErrDamaged)
	errRows   = fmt.Errorf("%w: more than %d events in a block", ErrTooLarge, maxRows)
	errZeros  = fmt.Errorf("%w: zeros where events should be", ErrDamaged)
	errFlags  = fmt.Errorf("%w: undefined flag in an event header", ErrDamaged)
)

// maxRows bounds the rows of one block. A block of v6 cannot hold more, one of
// the runtime is a hundred times smaller.
const maxRows = 1 << 21

// zeroRun zero bytes at the beginning of an event are a hole in the file: read as
// events they would be some without payload, all at one instant.
const zeroRun = 64

// uvarint decodes a varint at b[pos], which has blockPad bytes behind it. It
// returns the position behind it, or -1.
func uvarint(b []byte, pos int) (uint64, int) {
	v := uint64(b[pos] & 0x7f)
	if b[pos] < 0x80 {
		return v, pos + 1
	}
	v |= uint64(b[pos+1]&0x7f) << 7
	if b[pos+1] < 0x80 {
		return v, pos + 2
	}
	v |= uint64(b[pos+2]&0x7f) << 14
	if b[pos+2] < 0x80 {
		return v, pos + 3
	}
	shift := 21
	for i := pos + 3; i < pos+10; i++ {
		c := b[i]
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i + 1
		}
		shift += 7
	}
	return 0, -1
}

// uvarint32 is uvarint for values of at most 5 bytes.
func uvarint32(b []byte, pos int) (uint32, int) {
	v, end := uvarint(b, pos)
	if end-pos > 5 {
		return 0, -1
	}
	return uint32(v), end
}

// compressed decodes the events of a block in their compressed form (section
// 4.3): each header tells only what differs from the one before. It returns the
// position it came to, and why it could not go on.
func (r *Reader) compressed(blk *block, pos, end int, lo, hi int64, from headerState) (to int, err error) {
	blk.rows, to, err = r.compressedRows(blk, blk.rows, pos, end, lo, hi, from)
	return to, err
}

// read reads the ids that a header tells anew.
func (a *activityIDs) read(b []byte, pos int, flags byte) int {
	if flags&0x10 != 0 {
		a.activity = GUID(b[pos : pos+16])
		pos += 16
	}
	if flags&0x20 != 0 {
		a.related = GUID(b[pos : pos+16])
		pos += 16
	}
	return pos
}

// idsOf returns the number of ids among those of the block; 0 if there are none.
func (blk *block) idsOf(ids *activityIDs) uint32 {
	if *ids == (activityIDs{}) {
		return 0
	}
	blk.ids = append(blk.ids, *ids)
	return uint32(len(blk.ids))
}

// compressedRows appends the events to rows. What carries over from event to event is in variables of
// its own: in a struct that methods share it costs a tenth of the time.
func (r *Reader) compressedRows(blk *block, rows []row, pos, end int, lo, hi int64, from headerState) ([]row, int, error) {
	var (
		b        = blk.buf
		v6       = r.h.Version == 6
		id       = from.id
		seq      = from.seq
		captured = from.capture // capture thread, as in the file
		time     = from.time
		cur      = row{thread: from.thread, size: from.size, cpu: max(int32(from.cpu), -1)} // what carries over
		numbers  *sequence
		act      = activityIDs{from.activity, from.related}
		lacks    missing
	)
	cur.meta = r.meta.find(id)
	r.carryOver(blk, &cur, &from) // also at the beginning of a block: the file may define a stack 0 and a thread 0
	for pos < end {
		at := pos
		f := b[pos]
		if f == 0 && end-pos >= zeroRun && binary.LittleEndian.Uint64(b[pos:]) == 0 && zero(b[pos:pos+zeroRun]) {
			return rows, at, errZeros
		}
		pos++
		if f&1 != 0 {
			if id, pos = uvarint32(b, pos); pos < 0 {
				return rows, at, errVarint
			}
			cur.meta = r.meta.find(id)
		}
		if f&2 != 0 {
			var delta uint32
			if delta, captured, cur.cpu, pos = origin(b, pos); pos < 0 {
				return rows, at, errVarint
			}
			seq += delta + 1
			numbers = nil
		} else if id != 0 {
			seq++
		}
		if f&4 != 0 {
			if cur.thread, pos = uvarint(b, pos); pos < 0 {
				return rows, at, errVarint
			}
			if v6 {
				cur.thread, lacks.thread = r.threadOf(blk, cur.thread)
			}
		}
		if f&8 != 0 {
			var n uint32
			if n, pos = uvarint32(b, pos); pos < 0 {
				return rows, at, errVarint
			}
			cur.stack = r.stacks.find(n)
			lacks.stack = cur.stack == 0 && n != 0
		}
		if c := b[pos]; c < 0x80 {
			time += uint64(c)
			pos++
		} else {
			var delta uint64
			if delta, pos = uvarint(b, pos); pos < 0 {
				return rows, at, errVarint
			}
			time += delta
		}
		if f&0x30 != 0 {
			switch {
			case !v6:
				pos = act.read(b, pos, f)
				cur.ids = blk.idsOf(&act)
			case f&0x20 != 0:
				return rows, at, errFlags
			default:
				var list uint32
				if list, pos = uvarint32(b, pos); pos < 0 {
					return rows, at, errVarint
				}
				cur.ids = r.labels.find(list)
				lacks.labels = cur.ids == 0 && list != 0
			}
		}
		if f&0x80 != 0 {
			if cur.size, pos = uvarint32(b, pos); pos < 0 {
				return rows, at, errVarint
			}
		}
		if pos > end || uint64(cur.size) > uint64(end-pos) {
			return rows, at, errShort
		}
		if t := int64(time); t < lo || t > hi {
			if len(rows) > 0 {
				return rows, at, errTime
			}
			lo, hi = math.MinInt64, math.MaxInt64 // it is the block's own header that is wrong
		}
		if numbers == nil {
			numbers, cur.capture = r.numbersOf(captured, &cur, seq, blk.offset+int64(at))
		}
		cur.lost = 0
		if numbers.epoch != r.seqEpoch || seq != numbers.last+1 && id != 0 {
			if r.jump(&cur, numbers, seq, captured, int64(time), blk.offset+int64(at)) {
				pos += int(cur.size)
				continue
			}
		} else {
			numbers.last, numbers.time = seq, int64(time)
		}
		if cur.meta == nil {
			cur.meta = r.meta.unknown(id)
		}
		if cur.meta.Unknown || lacks != (missing{}) {
			r.countUnknown(cur.meta, lacks)
		}
		n := len(rows)
		if n == maxRows {
			return rows, at, errRows
		}
		if n == cap(rows) {
			rows = slices.Grow(rows, 1)
		}
		rows = rows[:n+1]
		rows[n].set(&cur, int64(time), pos, pos-at, seq, f)
		pos += int(cur.size)
	}
	return rows, pos, nil
}

// origin reads how many numbers an event is ahead of the next one, the thread that wrote it, and the
// processor. It returns the position behind them, or -1.
func origin(b []byte, pos int) (delta uint32, captured uint64, cpu int32, end int) {
	if delta, pos = uvarint32(b, pos); pos < 0 {
		return 0, 0, 0, pos
	}
	if captured, pos = uvarint(b, pos); pos < 0 {
		return 0, 0, 0, pos
	}
	processor, pos := uvarint32(b, pos)
	return delta, captured, max(int32(processor), -1), pos
}

// threadOf returns the number in the block of a row of the v6 thread table, and whether the row is
// missing.
func (r *Reader) threadOf(blk *block, index uint64) (n uint64, missing bool) {
	th, missing := r.threadRow(index)
	return blk.numberOf(th), missing
}

// missing tells what an event refers to that the file does not hold.
type missing struct{ stack, thread, labels bool }

// countUnknown counts it, and that the type is not known.
func (r *Reader) countUnknown(m *Metadata, lacks missing) {
	if m.Unknown {
		r.stats.UnknownMeta++
	}
	if lacks.stack {
		r.stats.UnknownStacks++
	}
	if lacks.thread {
		r.stats.UnknownThreads++
	}
	if lacks.labels {
		r.stats.UnknownLabels++
	}
}

// set makes next the event at hand, whose payload is at pos behind a header. It goes field by field:
// see row.
func (next *row) set(cur *row, time int64, pos, header int, seq uint32, flags byte) {
	next.time, next.meta = time, cur.meta
	next.thread, next.capture = cur.thread, cur.capture
	next.payload, next.size, next.header = uint32(pos), cur.size, uint8(header)
	next.seq, next.lost = seq, cur.lost
	next.stack, next.ids, next.cpu = cur.stack, cur.ids, cur.cpu
	next.sorted, next.fits = flags&0x40 != 0, false
}

// carryOver sets what the state in front of an event says of it.
func (r *Reader) carryOver(blk *block, cur *row, from *headerState) {
	cur.stack = r.stacks.find(from.stack)
	if r.h.Version == 6 {
		cur.ids = r.labels.find(from.labels)
		cur.thread, _ = r.threadOf(blk, from.thread)
		return
	}
	cur.ids = blk.idsOf(&activityIDs{from.activity, from.related})
}

// threadRow finds a row of the v6 thread table.
func (r *Reader) threadRow(index uint64) (th *Thread, missing bool) {
	if th = r.threads[index]; th == nil && index != 0 {
		return lostThread, true
	}
	return th, false
}

// lostThread stands for a row of the thread table that the file does not hold.
var lostThread = &Thread{}

// A plainHeader is what an uncompressed event header (section 4.2) tells.
type plainHeader struct {
	headerState
	payload, end int // where the payload begins and ends
	told         int // where the event ends by its first field, which counts padding
}

// plainAt reads the header at a position, and reports whether the event can be in b.
func (r *Reader) plainAt(b []byte, pos int) (e plainHeader, ok bool) {
	n := 80
	if r.h.Version == 6 {
		n = 52
	}
	if len(b)-pos < n {
		return e, false
	}
	h, le := b[pos:pos+n], binary.LittleEndian
	id := le.Uint32(h[4:])
	e.id, e.sorted = id&(1<<31-1), id>>31 == 0
	e.seq, e.thread, e.capture = le.Uint32(h[8:]), le.Uint64(h[12:]), le.Uint64(h[20:])
	e.cpu, e.stack, e.time = le.Uint32(h[28:]), le.Uint32(h[32:]), le.Uint64(h[36:])
	if r.h.Version == 6 {
		e.labels = le.Uint32(h[44:])
	} else {
		e.activity, e.related = GUID(h[44:60]), GUID(h[60:76])
	}
	size := int(int32(le.Uint32(h[n-4:])))
	e.told = pos + 4 + int(int32(le.Uint32(h)))
	e.payload, e.end = pos+n, pos+n+size
	return e, size >= 0 && e.end <= len(b)
}

// endsAt reports whether the event can end at a position: before v6 zeros may follow it, to a multiple of 4.
func (r *Reader) endsAt(b []byte, e *plainHeader, pos int) bool {
	return pos == e.end || r.h.Version < 6 && pos > e.end && pos < e.end+4 && pos <= len(b) && zero(b[e.end:pos])
}

// sized reports whether the event tells its size twice alike: only one of both is hit by damage.
func (r *Reader) sized(b []byte, e *plainHeader) bool { return r.endsAt(b, e, e.told) }

// plainFrom reports whether all events from a position on are certain, to the end of the block or a dozen:
// their sizes agree, what they refer to is known, and their times are those of the block.
func (r *Reader) plainFrom(b []byte, pos int, lo, hi int64) bool {
	for range followEvents {
		e, ok := r.plainAt(b, pos)
		if !ok || !r.sized(b, &e) || !r.effort(1) || r.meta.find(e.id) == nil || int64(e.time) < lo || int64(e.time) > hi ||
			e.stack != 0 && r.stacks.find(e.stack) == 0 || e.labels != 0 && r.labels.find(e.labels) == 0 {
			return false
		}
		if _, missing := r.threadRow(e.thread); missing && r.h.Version == 6 {
			return false
		}
		if pos = e.told; pos == len(b) {
			return true
		}
	}
	return true
}

// uncompressed decodes the events of a block that has no compressed headers.
func (r *Reader) uncompressed(blk *block, h eventHeader, end int, whole bool) {
	b := blk.buf[:end]
	lo, hi := r.window(h)
	if h.timed() {
		lo, hi = h.min, h.max
	}
	r.plainEvents(b, h.size, blk.offset, "EventBlock", whole,
		func(pos int) bool { return r.plainFrom(b, pos, lo, hi) },
		func(e *plainHeader, pos, _ int) { r.plainRow(blk, e, pos) })
}

// plainEvents hands on the events of a block at an offset that has no compressed headers, and where
// each begins and ends. No runtime writes this form. Behind an event that cannot be right the
// events go on where others follow that are certain: each header tells all of its event.
func (r *Reader) plainEvents(b []byte, from int, at int64, where string, whole bool, certain func(pos int) bool, do func(e *plainHeader, pos, next int)) {
	end := len(b)
	right := func(pos int) bool { // the end, or an event
		e, ok := r.plainAt(b, pos)
		return pos <= end && end-pos < 4 && zero(b[pos:]) || ok && r.sized(b, &e)
	}
	twice := false    // there are events whose sizes agree, so all of them should
	searched := false // to the end
	for pos := from; pos < end; {
		e, ok := r.plainAt(b, pos)
		next := e.told
		if ok && r.sized(b, &e) {
			twice = true
		} else {
			for next = pos + 1; !searched && next < end && r.effort(1) && !certain(next); {
				next++
			}
			if searched = searched || next == end || !r.effort(0); searched {
				next = end
			}
			switch {
			case ok && !searched && r.endsAt(b, &e, next): // its first field was hit
			case ok && searched && (!twice || right(e.end)): // or its writer has other sizes
				next = e.end
			default:
				if searched && twice && e.told > pos && right(e.told) { // the other size was hit
					next = e.told
				}
				err := errShort
				if ok {
					err = fmt.Errorf("%w: an event tells that it has %d bytes, and %d", ErrDamaged, e.told-pos, e.end-pos)
				}
				if lost := int64(next - pos); whole || next < end {
					r.damaged(at+int64(pos), where, err, lost)
				} else {
					r.stats.LostBytes += lost
				}
				pos = next
				continue
			}
		}
		do(&e, pos, next)
		pos = next
	}
}

// plainRow appends the event with a header at a position.
func (r *Reader) plainRow(blk *block, e *plainHeader, pos int) {
	at := blk.offset + int64(pos)
	cur := row{thread: e.thread, cpu: max(int32(e.cpu), -1), size: uint32(e.end - e.payload)}
	r.carryOver(blk, &cur, &e.headerState)
	lacks := missing{stack: cur.stack == 0 && e.stack != 0}
	if r.h.Version == 6 {
		lacks.thread, lacks.labels = blk.thread(cur.thread) == lostThread, cur.ids == 0 && e.labels != 0
	}
	if cur.meta = r.meta.find(e.id); cur.meta == nil {
		cur.meta = r.meta.unknown(e.id)
	}
	var s *sequence
	s, cur.capture = r.numbersOf(e.capture, &cur, e.seq, at)
	if s.epoch == r.seqEpoch && e.seq == s.last+1 {
		s.last, s.time = e.seq, int64(e.time)
	} else if r.jump(&cur, s, e.seq, e.capture, int64(e.time), at) {
		return
	}
	r.countUnknown(cur.meta, lacks)
	blk.rows = append(blk.rows, row{})
	blk.rows[len(blk.rows)-1].set(&cur, int64(e.time), e.payload, e.payload-pos, e.seq, 0)
	blk.rows[len(blk.rows)-1].sorted = e.sorted
}

// A headerState decodes compressed event headers one by one. It is the plain
// form of what Reader.compressed does, used where speed does not matter.
type headerState struct {
	id, seq, cpu, stack uint32
	capture, thread     uint64
	time                uint64
	activity, related   GUID
	labels              uint32
	size                uint32
	sorted              bool
}

// next reads a header.
func (s *headerState) next(c *Cursor, v6 bool) error {
	f := c.U8()
	if f&1 != 0 {
		s.id = c.Varuint32()
	}
	if f&2 != 0 {
		s.seq += c.Varuint32() + 1
		s.capture = c.Varuint()
		s.cpu = c.Varuint32()
	} else if s.id != 0 {
		s.seq++
	}
	if f&4 != 0 {
		s.thread = c.Varuint()
	}
	if f&8 != 0 {
		s.stack = c.Varuint32()
	}
	s.time += c.Varuint()
	switch {
	case f&16 != 0 && v6:
		s.labels = c.Varuint32()
	case f&16 != 0:
		s.activity = c.GUID()
	}
	if f&32 != 0 {
		if v6 {
			return errFlags
		}
		s.related = c.GUID()
	}
	s.sorted = f&64 != 0
	if f&128 != 0 {
		s.size = c.Varuint32()
	}
	return c.err
}

// usualHeader is the size of the header of a block of events that all known writers give it.
const usualHeader = 20

// mendHeader reads the header h of a block at an offset as the usual one, where all of the block reads
// as events behind that, at the times that the header tells, and not behind h, if that may be one: a flipped
// bit in its size or its flags would cost them all.
func (r *Reader) mendHeader(b []byte, h *eventHeader, ok bool, at int64) bool {
	usual := *h
	usual.size, usual.compressed = usualHeader, true
	if h.max == 0 || !r.mayReread(len(b)) || ok && h.compressed && r.agrees(b, *h) || !r.agrees(b, usual) {
		return false
	}
	r.told(at, "EventBlock", fmt.Errorf("%w: header of %d bytes and flags %#x, read as one of %d bytes with compressed headers", ErrDamaged, h.size, binary.LittleEndian.Uint16(b[2:]), usualHeader), 0)
	*h = usual
	return true
}

// agrees reports whether b reads as events behind a header, at the times that it tells.
func (r *Reader) agrees(b []byte, h eventHeader) bool {
	first, last, ok := r.decodesBehind(b, h)
	return ok && r.timesAgree(h, first, last)
}

// decodes reports whether b reads as an event block to its last byte.
func (r *Reader) decodes(b []byte) bool {
	h, ok := parseEventHeader(b)
	if ok && h.compressed {
		_, _, ok = r.decodesBehind(b, h)
	}
	return ok && h.compressed
}

// decodesBehind reports whether b reads as events with compressed headers behind its own header, to its
// last byte, and the first and the last of their times.
func (r *Reader) decodesBehind(b []byte, h eventHeader) (first, last int64, ok bool) {
	lo, hi := r.window(h)
	first, last = math.MaxInt64, math.MinInt64
	c := Cursor{b: b, pos: h.size}
	var s headerState
	for c.Len() > 0 {
		if s.next(&c, r.h.Version == 6) != nil || int64(s.time) < lo || int64(s.time) > hi || uint64(s.size) > uint64(c.Len()) {
			return first, last, false
		}
		first, last = min(first, int64(s.time)), max(last, int64(s.time))
		c.Skip(int(s.size))
	}
	return first, last, true
}

// metadataBlock reads a metadata block of v4 or v5.
func (r *Reader) metadataBlock(b []byte, at int64, whole bool) {
	h, ok := parseEventHeader(b)
	if !ok {
		if whole || len(b) >= 20 {
			r.damaged(at, "MetadataBlock", fmt.Errorf("%w: header of %d bytes in a block of %d", ErrDamaged, h.size, len(b)), int64(len(b)))
		}
		return
	}
	var defined []*Metadata
	before := r.stats.Defects
	if h.compressed {
		defined = r.compressedMetadata(b, h.size, at, whole)
	} else {
		defined = r.plainMetadata(b, h.size, at, whole)
	}
	if whole && r.stats.Defects == before {
		r.oweMetas(defined, at)
	}
}

// compressedMetadata makes the definitions known that stand in a block behind its header.
func (r *Reader) compressedMetadata(b []byte, pos int, at int64, whole bool) (defined []*Metadata) {
	c := Cursor{b: b, pos: pos}
	var s headerState
	for c.Len() > 0 {
		start := c.pos
		payload, err := metadataEvent(&c, &s)
		if err == nil && !isDefinition(payload) {
			err = errNoDefinition
		}
		if err != nil {
			r.meta.last++
			next, state := c.pos, s
			if err != errNoDefinition || !definesAt(c, s) {
				next, state = r.nextDefinition(b, start, s)
			}
			if whole || next < len(b) {
				r.damaged(at+int64(start), "MetadataBlock", err, int64(next-start))
			}
			c, s = Cursor{b: b, pos: next}, state
			continue
		}
		if m := r.definition(payload, at+int64(start)); m != nil {
			defined = append(defined, m)
		}
	}
	return defined
}

// plainMetadata is compressedMetadata for a block that has no compressed headers.
func (r *Reader) plainMetadata(b []byte, pos int, at int64, whole bool) (defined []*Metadata) {
	r.plainEvents(b, pos, at, "MetadataBlock", whole,
		func(pos int) bool { return r.definitionsFrom(b, pos) },
		func(e *plainHeader, pos, next int) {
			payload := b[e.payload:e.end]
			if !isDefinition(payload) {
				r.meta.last++
				r.damaged(at+int64(pos), "MetadataBlock", errNoDefinition, int64(next-pos))
			} else if m := r.definition(payload, at+int64(pos)); m != nil {
				defined = append(defined, m)
			}
		})
	return defined
}

// errNoDefinition reports an event of a metadata block that can be no definition.
var errNoDefinition = fmt.Errorf("%w: no definition of an event", ErrDamaged)

// definition makes the one of a payload known; nil if there is none.
func (r *Reader) definition(payload []byte, at int64) *Metadata {
	m, err := parseMetadata(payload, at)
	if err != nil {
		r.warn(at, "metadata", err, int64(len(payload)))
		return nil
	}
	r.define(m)
	return m
}

// metadataEvent reads an event of a metadata block with compressed headers.
func metadataEvent(c *Cursor, s *headerState) (payload []byte, err error) {
	if err = s.next(c, false); err == nil && uint64(s.size) > uint64(c.Len()) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return c.Bytes(int(s.size)), nil
}

// isDefinition reports whether a payload begins as that of a metadata event does: an id, the
// name of a provider, in UTF-16.
func isDefinition(payload []byte) bool {
	c := Cursor{b: payload}
	id, name := c.U32(), c.UTF16()
	return c.err == nil && id > 0 && id < 1<<24 && (name.Len() == 0 || printable([]byte(name.String())))
}

// describes reports whether a payload is a definition and tells what all of them do.
func describes(payload []byte) bool {
	if len(payload) < 24 || !isDefinition(payload) {
		return false
	}
	m, err := parseMetadata(payload, 0)
	return err == nil && (m.HasFieldList || len(m.Raw) >= 22)
}

// definitionsFrom is plainFrom for definitions.
func (r *Reader) definitionsFrom(b []byte, pos int) bool {
	for range followEvents {
		e, ok := r.plainAt(b, pos)
		if !ok || !r.sized(b, &e) || !r.effort(1) || e.id != 0 || !describes(b[e.payload:e.end]) {
			return false
		}
		if pos = e.told; pos == len(b) {
			return true
		}
	}
	return true
}

// definesAt reports whether a definition with a compressed header stands at the cursor, or nothing.
func definesAt(c Cursor, s headerState) bool {
	if c.Len() == 0 {
		return true
	}
	payload, err := metadataEvent(&c, &s)
	return err == nil && describes(payload)
}

// nextDefinition finds where definitions with compressed headers go on behind a damaged one: the
// size of each stands in front of it.
func (r *Reader) nextDefinition(b []byte, at int, s headerState) (int, headerState) {
	for p := at + 1; p < len(b) && r.effort(1); p++ {
		if b[p]&0x80 == 0 || b[p]&0x3e != 0 { // its size, and neither thread nor stack nor ids
			continue
		}
		c, t := Cursor{b: b, pos: p}, s
		if payload, err := metadataEvent(&c, &t); err == nil && describes(payload) {
			return p, s
		}
	}
	return len(b), s
}

// define makes a definition known.
func (r *Reader) define(m *Metadata) {
	r.noted(m)
	r.mendDefinition(m)
	if n := countFields(m.Fields); n > maxFieldsEach || len(m.Raw) > maxDefinition {
		r.warn(m.Offset, "metadata", fmt.Errorf("%w: %d fields of an event, which are not decoded", ErrTooLarge, n), 0)
		m.Fields, m.HasFieldList = nil, false
	}
	again, full := r.meta.define(m)
	switch {
	case full:
		r.warn(m.Offset, "metadata", fmt.Errorf("%w: more than %d definitions, or %d fields of them", ErrTooLarge, maxMetadata, maxDescribed), 0)
	case again:
		r.warn(m.Offset, "metadata", fmt.Errorf("metadata id %d is defined again as %s %d", m.ID, m.Provider, m.EventID), 0)
	}
}

// intern numbers the stacks of files before v4, which hold them inline. Numbers go on
// when the table is emptied: events that wait have theirs already.
func (r *Reader) intern(stack []byte) uint32 {
	n, ok := r.interns[string(stack)]
	if ok {
		return n
	}
	if r.interns == nil || r.internB > 64<<20 {
		r.interns, r.internB = map[string]uint32{}, 0
	}
	r.internN++
	n = r.internN
	r.interns[string(stack)] = n
	r.internB += len(stack) + 64
	r.stats.Stacks++
	r.stats.MaxDepth = max(r.stats.MaxDepth, len(stack)/r.h.PointerSize)
	return n
}

// eventV3 decodes an event of v1 to v3 (section 4.1) at b[at:end]. It returns the
// position behind it.
func (r *Reader) eventV3(blk *block, at, end int) (int, error) {
	c := Cursor{b: blk.buf[at:end]}
	size := int(c.I32())
	id := c.U32()
	cur := row{thread: uint64(c.U32()), time: c.I64(), cpu: -1, sorted: true}
	cur.capture = cur.thread
	act := activityIDs{c.GUID(), c.GUID()}
	n := int(c.I32())
	cur.payload, cur.header = uint32(at+c.pos), uint8(c.pos)
	payload := c.Bytes(n)
	depth := int(c.I32())
	stack := c.Bytes(depth)
	switch {
	case size < 0 || n < 0 || depth < 0:
		return at, fmt.Errorf("%w: sizes %d, %d, %d in an event", ErrDamaged, size, n, depth)
	case c.err != nil || size > end-at-4:
		return at, errShort
	case 4+size < c.pos || 4+size > c.pos+3:
		return at, fmt.Errorf("%w: event size %d, but its parts have %d bytes", ErrDamaged, size, c.pos-4)
	}
	next := at + 4 + size
	if id == 0 {
		r.metadataV3(payload, blk.offset+int64(at))
		return next, nil
	}
	if depth > 0 {
		if depth%r.h.PointerSize != 0 {
			if r.h.Version <= 2 && depth%4 == 0 {
				r.h.PointerSize = 4
			} else {
				r.warn(blk.offset+int64(at), "event", fmt.Errorf("stack of %d bytes is not a multiple of %d", depth, r.h.PointerSize), 0)
			}
		}
		cur.seq = r.intern(stack)
		cur.stack = uint32(depth)
	}
	if act != (activityIDs{}) {
		blk.ids = append(blk.ids, act)
		cur.ids = uint32(len(blk.ids))
	}
	if cur.meta = r.meta.find(id); cur.meta == nil {
		cur.meta = r.meta.unknown(id)
	}
	if cur.meta.Unknown {
		r.stats.UnknownMeta++
	}
	cur.size = uint32(n)
	blk.rows = append(blk.rows, cur)
	return next, nil
}

// metadataV3 reads the payload of a metadata event of v1 to v3.
func (r *Reader) metadataV3(b []byte, at int64) {
	var m *Metadata
	var err error
	if r.h.Version == 3 {
		m, err = parseMetadata(b, at)
	} else {
		m, err = parseOld(b, r.h.Version, at)
	}
	if err != nil {
		r.warn(at, "metadata", err, int64(len(b)))
		return
	}
	r.define(m)
}

// eventsV3 reads an event block of v3. Events tell their sizes twice, so
// behind a broken one the next can be found.
func (r *Reader) eventsV3(data []byte, at int64, whole bool) {
	blk := r.newBlock(data, at)
	for pos := 0; pos < len(data); {
		next, err := r.eventV3(blk, pos, len(data))
		if err == nil {
			pos = next
			continue
		}
		next = r.findEventV3(blk.buf, pos+4, len(data), 4)
		if whole || next < len(data) {
			r.damaged(at+int64(pos), "EventBlock", err, int64(next-pos))
		} else {
			r.stats.LostBytes += int64(next - pos)
		}
		pos = next
	}
	r.queueRows(blk)
}

// findEventV3 returns the position of the next event of v1 to v3 whose sizes
// agree and whose metadata is known, or end.
func (r *Reader) findEventV3(b []byte, at, end, step int) int {
	for ; at+60 <= end; at += step {
		size := int64(int32(binary.LittleEndian.Uint32(b[at:])))
		n := int64(int32(binary.LittleEndian.Uint32(b[at+52:])))
		if size < 56 || n < 0 || n > size-56 || int64(at)+4+size > int64(end) {
			continue
		}
		id := binary.LittleEndian.Uint32(b[at+4:])
		depth := int64(int32(binary.LittleEndian.Uint32(b[at+56+int(n):])))
		if over := 4 + size - (60 + n + depth); depth < 0 || over < 0 || over > 3 || id != 0 && r.meta.find(id) == nil {
			continue
		}
		return at
	}
	return end
}

// inlineStep is how much of a v1 or v2 file is decoded at a time.
const inlineStep = 256 << 10

// readInline reads events of v1 and v2, which stand in the file without blocks
// (section 2.5).
func (r *Reader) readInline() {
	at := r.src.offset()
	n := inlineStep
	b := r.src.peek(n)
	if len(b) == n {
		if size := int(int32(binary.LittleEndian.Uint32(b))); size > n-4 && size <= r.opts.MaxBlockSize {
			n = size + 4 // one large event
			b = r.src.peek(n)
		}
	}
	if len(b) == 0 {
		r.finish()
		return
	}
	last := len(b) < n
	blk := r.newBlock(b, at)
	pos, ended := 0, false
	for pos < len(b) && !ended {
		next, err := r.eventV3(blk, pos, len(b))
		switch {
		case err == nil:
			pos = next
			continue
		case inlineEnd(b[pos:], at+int64(pos)):
			ended = true
			continue
		case errors.Is(err, io.ErrUnexpectedEOF) && !last && pos > 0 && r.mayReread(len(b)-pos):
			// The rest of this event comes with the next step.
			r.src.skip(pos)
			r.queueRows(blk)
			return
		}
		next = r.findEventV3(blk.buf, pos+1, len(b), 1)
		if next == len(b) {
			if i := bytes.Index(b[pos+1:], []byte("\x06\x01\x00\x00\x00")); last && i >= 0 && inlineEnd(b[pos+1+i:], at+int64(pos+1+i)) {
				next = pos + 1 + i
			} else if !last && len(b)-60 > pos {
				next = len(b) - 60
			}
		}
		r.damaged(at+int64(pos), "event", err, int64(next-pos))
		pos = next
	}
	if ended {
		pos += inlineTrailer
	}
	r.src.skip(pos)
	r.queueRows(blk)
	switch {
	case ended:
		r.stats.Ended = true
		r.finishTrailing(at + int64(pos))
	case last:
		r.finish()
	}
}

const inlineTrailer = 17

// inlineEnd recognises what stands behind the last event of v1 and v2.
func inlineEnd(b []byte, at int64) bool {
	if len(b) < inlineTrailer || b[0] != tagEnd {
		return false
	}
	c := Cursor{b: b[1:inlineTrailer]}
	count, end, table, p := c.U32(), c.U32(), c.U32(), c.U32()
	return count == 1 && end == uint32(at) && table == end+1 && p == table+8
}
