package nettrace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Salvage inside a block. Compressed event headers tell only what differs from the event
// before, so behind a broken header nothing is certain: neither where the next event begins
// nor what carries over. What can be known is checked: the ids of metadata, stacks, threads
// and labels, whether a payload fits its type, the times in the block's header. A place from
// which a dozen events pass all checks, or all to the end of the block, is where
// the events go on. Where one flipped bit explains the damage, it is flipped back.

const (
	followEvents = 12   // events that must make sense from a place on
	trustedTail  = 64   // events before a break that are looked at again
	bitFixBytes  = 1024 // of damage in which a flipped bit is looked for
	maxFixes     = 16   // flipped bits in one block
	anchorBytes  = 1024 // v6: where less is lost, less time is lost than a block's last time may be off by
	effortFree   = 1 << 23
)

// effort counts n looks at an event in a search. In all it allows twice the bytes read so
// far, so that a file made for it does not keep the reader busy for hours.
func (r *Reader) effort(n int) bool {
	r.efforts += int64(n)
	return r.efforts < effortFree+2*r.src.offset()
}

// A checkpoint is what compressed changes, to undo it.
type checkpoint struct {
	rows, ids, threads, metas int
	losses                    []Loss
	stats                     Stats
	doubled, late             odd
}

func (r *Reader) checkpoint(blk *block) checkpoint {
	r.run++
	r.ran, r.lossesHeld = r.ran[:0], true
	return checkpoint{len(blk.rows), len(blk.ids), len(blk.threads), len(r.meta.all), r.losses, r.stats, r.doubled, r.late}
}

// undo goes back to a checkpoint, which must be the newest.
func (r *Reader) undo(blk *block, p checkpoint) {
	blk.rows, blk.ids, blk.threads, r.losses = blk.rows[:p.rows], blk.ids[:p.ids], blk.threads[:p.threads], p.losses
	r.doubled, r.late = p.doubled, p.late
	for _, m := range r.meta.all[p.metas:] {
		delete(r.meta.lost, m.ID)
	}
	r.meta.all = r.meta.all[:p.metas]
	defects := r.stats.Defects
	r.stats = p.stats
	r.stats.Defects = defects
	for _, s := range r.ran {
		s.numbering = s.before
	}
}

// compressedEvents decodes the events of a block whose headers are compressed, across damage.
// cut tells that the file ends inside the block.
func (r *Reader) compressedEvents(blk *block, h eventHeader, end int, whole, cut bool) {
	var s headerState
	pos, resumed, lost := h.size, -1, 0
	lo, hi := r.window(h)
	for fixes := 0; ; {
		p := r.checkpoint(blk)
		to, err := r.compressed(blk, pos, end, lo, hi, s)
		bad := r.distrust(blk, h, p.rows, to, err != nil)
		if bad == to && err == nil {
			break // whole, or cut between two events
		}
		decoded := err == nil && whole
		if bad < to {
			err = errDoubt
		}
		suspects := r.suspects(blk, p.rows, bad)
		r.undo(blk, p)
		if cut && err == errShort {
			_, _ = r.compressed(blk, pos, bad, lo, hi, s)
			r.stats.LostBytes += int64(end - bad)
			break
		}
		if at, bit := r.fixBits(blk.buf, h, s, pos, suspects, end); at >= 0 && fixes < maxFixes {
			fixes++
			_, _ = r.compressed(blk, pos, at, lo, hi, s)
			s = stateAt(blk.buf, pos, s, at, r.h.Version == 6)
			r.told(blk.offset+int64(at), "EventBlock", fmt.Errorf("%w: read as if bit %d of the byte at offset %d were not flipped", err, bit&7, blk.offset+int64(bit>>3)), 0)
			pos = at
			continue
		}
		if decoded { // it may be a definition that is missing, or the times in the header
			_, _ = r.compressed(blk, pos, end, lo, hi, s)
			break
		}
		_, _ = r.compressed(blk, pos, bad, lo, hi, s)
		s = stateAt(blk.buf, pos, s, bad, r.h.Version == 6)
		at := blk.offset + int64(bad)
		next, state := r.resume(blk.buf, h, s, bad, end, whole)
		if whole || err == errDoubt || next < end {
			r.damaged(at, "EventBlock", err, int64(next-bad))
		} else {
			r.stats.LostBytes += int64(next - bad)
		}
		if next == end {
			break
		}
		pos, s, resumed = next, state, len(blk.rows)
		lost += next - bad
	}
	if resumed >= 0 {
		if whole && h.timed() && (r.h.Version < 6 || lost >= anchorBytes) {
			anchor(blk.rows[resumed:], h)
		}
		r.seqEpoch++ // the numbers behind the damage are not those of the file
	}
}

// suspects are the positions of events that a flipped bit may have hit, if reading came to
// one at bad that cannot be right: it, those before it, and one behind which much time went by.
func (r *Reader) suspects(blk *block, from, bad int) []int {
	rows := blk.rows[from:]
	n, jump, most := 0, 0, int64(0)
	for n < len(rows) && int(rows[n].at()) < bad {
		if n > 0 && rows[n].time-rows[n-1].time > most {
			jump, most = n, rows[n].time-rows[n-1].time
		}
		n++
	}
	at := []int{bad}
	for i := n - 1; i >= max(0, n-8); i-- {
		at = append(at, int(rows[i].at()))
	}
	if jump > 0 {
		at = append(at, int(rows[jump].at()))
	}
	return at
}

// fixBits looks for a flipped bit at several places. It returns the first where it is found, or -1.
func (r *Reader) fixBits(b []byte, h eventHeader, s headerState, pos int, suspects []int, end int) (at, bit int) {
	for _, at := range suspects {
		if bit, ok := r.fixBit(b, h, stateAt(b, pos, s, at, r.h.Version == 6), at, end); ok {
			return at, bit
		}
	}
	return -1, 0
}

// stateAt is the state with which the event at position to is read, where s is that of pos.
func stateAt(b []byte, pos int, s headerState, to int, v6 bool) headerState {
	c := Cursor{b: b[:to], pos: pos}
	for c.pos < to {
		if s.next(&c, v6) != nil {
			break
		}
		c.Skip(int(s.size))
	}
	return s
}

// distrust looks again at the events from a row on, behind which the block could not be
// decoded: what went wrong may have begun before it showed. It returns the position of the
// first event that cannot be right.
func (r *Reader) distrust(blk *block, h eventHeader, from, to int, broken bool) int {
	rows := blk.rows[from:]
	timed := h.timed() && len(rows) > 0 && h.holds(rows[0].time)
	f := &blk.facts
	f.of(rows)
	if !broken && !f.odd && (!timed || h.holds(f.first) && h.holds(f.last)) {
		return to
	}
	for i := range rows {
		row := &rows[i]
		if row.meta.Unknown && !r.meta.lacks(row.meta.ID, r.h.Version) || timed && !h.holds(row.time) ||
			broken && i >= len(rows)-trustedTail && !r.fits(row.meta, blk.buf[row.payload:row.payload+row.size]) {
			return int(row.at())
		}
	}
	return to
}

// timed reports whether the header tells the times of its events.
func (h *eventHeader) timed() bool { return h.min <= h.max && h.max != 0 }

func (h *eventHeader) holds(t int64) bool { return t >= h.min && t <= h.max }

// fits reports whether a payload can be one of this type.
func (r *Reader) fits(m *Metadata, payload []byte) bool {
	ev := Event{Metadata: m, Version: m.Version, Payload: payload, pointer: uint8(r.h.PointerSize), values: r.values}
	ok := ev.fits()
	r.values = ev.values
	return ok
}

// fits reports whether the payload can be one of the event's type.
func (ev *Event) fits() bool {
	switch ev.Metadata.Role {
	case RoleSample:
		n, ok := u32At(ev.Payload, 0)
		return ok && len(ev.Payload) == 4 && n <= uint32(SampleManaged)
	case RoleCPU, RoleContextSwitch, RolePageFault:
		_, err := ev.UniversalValue()
		return err == nil
	}
	l := ev.Layout()
	if l == nil {
		return true
	}
	var err error
	ev.values, err = l.appendWhole(ev.values[:0], ev.Payload, ev.pointerSize())
	return err == nil
}

// exact reports whether a payload is one of this type to its last byte, as far as the type is known.
func (r *Reader) exact(m *Metadata, payload []byte) bool {
	if m.Role == RoleSample {
		n, ok := u32At(payload, 0)
		return ok && len(payload) == 4 && (n == uint32(SampleExternal) || n == uint32(SampleManaged))
	}
	l := m.layout
	if l == nil || m.row && l.BuiltIn || m.Role == RoleCPU || m.Role == RoleContextSwitch || m.Role == RolePageFault || l.BuiltIn && m.Version > l.version {
		return r.fits(m, payload)
	}
	var c Cursor
	for _, fields := range l.forms {
		if r.values, c = appendValues(r.values[:0], fields, payload, r.h.PointerSize, false); c.err == nil && c.pos == len(payload) {
			return true
		}
	}
	r.values, c = appendValues(r.values[:0], l.Fields, payload, r.h.PointerSize, l.lengthUTF8)
	return c.err == nil && c.pos == len(payload)
}

// step reads the event at the cursor and reports whether it makes sense.
func (r *Reader) step(c *Cursor, s *headerState, lo, hi int64) bool {
	v6 := r.h.Version == 6
	at := c.pos
	f := c.b[at]
	if s.next(c, v6) != nil || uint64(s.size) > uint64(c.Len()) {
		return false
	}
	m := r.meta.find(s.id)
	if m == nil || int64(s.time) < lo || int64(s.time) > hi || s.cpu > 1<<16 && s.cpu != math.MaxUint32 {
		return false
	}
	if f&8 != 0 && s.stack != 0 && r.stacks.find(s.stack) == 0 {
		return false
	}
	if v6 {
		if _, missing := r.threadRow(s.thread); missing || s.labels != 0 && r.labels.find(s.labels) == 0 {
			return false
		}
	}
	return r.exact(m, c.Bytes(int(s.size))) && (f != 0 || !zero(c.b[at:c.pos]))
}

// follow reports whether the events from pos on make sense: enough of them, or all to the
// end where that is the end of the block.
func (r *Reader) follow(b []byte, pos int, s headerState, lo, hi int64, whole bool) bool {
	c := Cursor{b: b, pos: pos}
	for n, known := 0, 0; known < followEvents && n < 4*followEvents; n++ {
		if c.Len() == 0 {
			return whole && known >= 2
		}
		if !r.effort(1) || !r.step(&c, &s, lo, hi) {
			return false
		}
		if m := r.meta.find(s.id); m.layout != nil || m.Role != RoleNone {
			known++
		}
	}
	return true
}

// times are those that the events behind damage can have.
func (r *Reader) times(h eventHeader, s *headerState) (lo, hi int64) {
	if !h.timed() {
		return r.window(h)
	}
	if s.time == 0 {
		s.time = uint64(h.min) // the first event of a block tells the whole time
	}
	return h.min, h.max
}

// resume finds where the events go on behind damage at bad, and in which state; end if they do not.
func (r *Reader) resume(b []byte, h eventHeader, s headerState, bad, end int, whole bool) (int, headerState) {
	lo, hi := r.times(h, &s)
	states := r.statesFor(s)
	b = b[:end]
	for p := bad + 1; p < end; p++ {
		if b[p] == 0 && end-p >= zeroRun && zero(b[p:p+zeroRun]) {
			continue
		}
		for i := range states {
			s := states[i]
			if !r.begins(b[p], &s) {
				continue
			}
			if !r.effort(1) {
				return end, s
			}
			if r.follow(b, p, s, lo, hi, whole) {
				// What was said of the lost events does not hold for these.
				s.stack, s.activity, s.related, s.labels = 0, GUID{}, GUID{}, 0
				return p, s
			}
		}
	}
	return end, s
}

// begins reports whether events may go on in state s at an event with these flags: one that
// must tell whose it is does so.
func (r *Reader) begins(flags byte, s *headerState) bool {
	if r.h.Version == 6 && flags&32 != 0 {
		return false
	}
	if flags&1 != 0 {
		return true
	}
	m := r.meta.find(s.id)
	return m != nil && (m.Role != RoleSample && m.Role != RoleCPU || flags&12 == 12)
}

// statesFor are the states that may hold behind damage: that before it, and for files
// whose events leave out what does not change, that of the sampler.
func (r *Reader) statesFor(s headerState) []headerState {
	states := []headerState{s}
	if r.h.Version == 6 {
		return states
	}
	for _, m := range r.meta.all {
		if !r.effort(1) {
			break
		}
		if m.Role == RoleSample && m.ID != s.id && r.meta.find(m.ID) == m {
			s.id, s.size = m.ID, 4
			return append(states, s)
		}
	}
	return states
}

// anchor moves the rows behind damage to where the block's header has the last of them: the
// time that went by in lost events is lost with them. In the last block of v6 the header has the end of
// the recording, half a millisecond later.
func anchor(rows []row, h eventHeader) {
	if len(rows) == 0 {
		return
	}
	last := rows[0].time
	for i := range rows {
		last = max(last, rows[i].time)
	}
	for i := range rows {
		rows[i].time += h.max - last
	}
}

// fixBit looks for one flipped bit that explains why the event at bad, read in state s, and
// what follows cannot be right: with it flipped back all must fit, in files before v6 also the sequence
// numbers and the last time of the block. It returns the number of the bit in b and leaves it flipped.
func (r *Reader) fixBit(b []byte, h eventHeader, s headerState, bad, end int) (bit int, ok bool) {
	t := s
	lo, hi := r.times(h, &t)
	best, least, nearest := -1, math.MaxInt, int64(math.MaxInt64)
	to := min(end, bad+bitFixBytes)
	for i := bad * 8; i < to*8; i++ {
		flip(b, i)
		if !r.effort(1) {
			flip(b, i)
			return 0, false
		}
		c := Cursor{b: b[:end], pos: bad}
		t := s
		// Flipped behind the first event it would not help.
		good := r.step(&c, &t, lo, hi)
		first := c.pos
		if good && r.follow(b[:end], bad, s, lo, hi, true) {
			if n, off := r.oddities(b, h, s, bad, end); n < least || n == least && off < nearest {
				best, least, nearest = i, n, off
			}
		}
		flip(b, i)
		if good && first <= i>>3 {
			break
		}
	}
	if best < 0 || least > 0 && h.timed() && (r.h.Version < 6 || nearest > (h.max-h.min)/100) {
		return 0, false
	}
	flip(b, best)
	return best, true
}

func flip(b []byte, bit int) { b[bit>>3] ^= 1 << (bit & 7) }

// oddities counts what is not as it should be from pos to the end of a block: numbers that do
// not follow, a last time that the header does not tell; off is by how much it is off.
func (r *Reader) oddities(b []byte, h eventHeader, s headerState, pos, end int) (odd int, off int64) {
	v6 := r.h.Version == 6
	last := int64(math.MinInt64)
	numbers := map[uint64]uint32{}
	c := Cursor{b: b[:end], pos: pos}
	for c.Len() > 0 {
		if !r.effort(1) || s.next(&c, v6) != nil || uint64(s.size) > uint64(c.Len()) {
			return odd + 1000, math.MaxInt64
		}
		c.Skip(int(s.size))
		last = max(last, int64(s.time))
		if r.meta.find(s.id) == nil {
			odd++
		}
		if v6 {
			continue
		}
		n, ok := numbers[s.capture]
		if !ok {
			if q := r.seq[s.capture]; q != nil && q.epoch == r.seqEpoch {
				n, ok = q.last, true
			}
		}
		if ok && s.seq != n+1 {
			odd++
		}
		numbers[s.capture] = s.seq
	}
	if !h.timed() || last == h.max {
		return odd, 0
	}
	return odd + 1, max(h.max-last, last-h.max)
}

// mend puts right what one flipped bit in a block that decodes may have done: the id of
// metadata, or a time.
func (r *Reader) mend(blk *block, h eventHeader) {
	for i := 0; blk.facts.odd && i < len(blk.rows); i++ {
		if blk.rows[i].meta.Unknown && (i == 0 || blk.rows[i-1].meta != blk.rows[i].meta) {
			r.mendMetadata(blk, i)
		}
	}
	r.mendTime(blk, h)
}

// mendMetadata gives the events from row i on, which refer to one id that is not
// defined, the one definition that is a bit away from it and fits all of them. Where the definition is
// missing that is one out of its order: the bit was flipped in the id that it defines.
func (r *Reader) mendMetadata(blk *block, i int) {
	id, n := blk.rows[i].meta.ID, 0
	missing := r.meta.lacks(id, r.h.Version)
	rows := blk.rows[i:]
	for n < len(rows) && rows[n].meta == rows[0].meta {
		n++
	}
	rows = rows[:n]
	var found *Metadata
	for bit := range 32 {
		m := r.meta.find(id ^ 1<<bit)
		if m == nil || m.Unknown || missing && m.ID <= r.meta.last {
			continue
		}
		fit := true
		for j := range rows {
			fit = fit && r.exact(m, blk.buf[rows[j].payload:rows[j].payload+rows[j].size])
		}
		if !fit || found != nil && (found.Role == RoleSample || m.Role != RoleSample) {
			continue
		}
		found = m
	}
	if found == nil {
		return
	}
	for j := range rows {
		rows[j].meta = found
	}
	r.stats.UnknownMeta -= int64(n)
	r.told(blk.offset+int64(rows[0].at()), "event", fmt.Errorf("%w: metadata id %d is not defined, read as %d (%s)", ErrDamaged, id, found.ID, found.EventName()), 0)
}

// mendTime takes a flipped bit out of the times of a block: all events from one on are later
// than the header says, by a power of two.
func (r *Reader) mendTime(blk *block, h eventHeader) {
	rows, first, last := blk.rows, blk.facts.first, blk.facts.last
	if !h.timed() || len(rows) < 2 || h.holds(first) && h.holds(last) {
		return
	}
	at, most := 0, int64(0)
	for i := 1; i < len(rows); i++ {
		if d := rows[i].time - rows[i-1].time; d > most {
			at, most = i, d
		}
	}
	over := last - h.max
	if over != 0 && first-h.min == over { // the bit is in the first time, which is the only whole one
		for i := range rows {
			rows[i].time -= over
		}
		r.told(blk.offset+int64(rows[0].at()), "event", fmt.Errorf("%w: all events are %d ticks off what their block says, which they are moved by", ErrDamaged, over), 0)
		return
	}
	if over <= 0 {
		return
	}
	by := over
	if r.h.Version == 6 && over&(over-1) != 0 {
		by = int64(1) << min(62, bits.Len64(uint64(over)))
		for by>>1 >= over && by>>1 > 0 {
			by >>= 1
		}
		for by < math.MaxInt64/4 && most&by == 0 {
			by <<= 1
		}
	}
	if by&(by-1) != 0 || most&by == 0 {
		return
	}
	for i := at; i < len(rows); i++ {
		rows[i].time -= by
	}
	r.told(blk.offset+int64(rows[at].at()), "event", fmt.Errorf("%w: events that are later than their block says by a bit of %d ticks, which is left out", ErrDamaged, by), 0)
}

// told tells of damage that cost nothing.
func (r *Reader) told(offset int64, where string, err error, lost int64) {
	epoch := r.seqEpoch
	r.damaged(offset, where, err, lost)
	r.seqEpoch = epoch
}

// rowsBehind finds where the rows of a list go on behind damage in front of from: each has a
// length of width bytes before it, and all to the end must pass. It returns len(b) if nowhere.
func (r *Reader) rowsBehind(b []byte, from, width int, pass func(row []byte) bool) (at, rows int) {
	for ; from+width <= len(b) && r.effort(0); from++ {
		if n := r.rowsFrom(b, from, width, pass); n > 0 {
			return from, n
		}
	}
	return len(b), 0
}

func (r *Reader) rowsFrom(b []byte, pos, width int, pass func(row []byte) bool) (rows int) {
	for pos+width <= len(b) {
		if !r.effort(2) {
			return 0
		}
		size := int(b[pos]) | int(b[pos+1])<<8
		if width == 4 {
			n := binary.LittleEndian.Uint32(b[pos:])
			if n > 1<<24 {
				return 0
			}
			size = int(n)
		}
		pos += width
		if size > len(b)-pos || !pass(b[pos:pos+size]) {
			return 0
		}
		pos += size
		rows++
	}
	if pos != len(b) {
		return 0
	}
	return rows
}
