package spans

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

// changes are what Rewrite does at the events that do not stay as they are, in the order of the
// file, some bytes each. They are known from the log before anything is written, so that all
// else is copied unread.
type changes struct {
	chunks [][]byte
	size   int     // of the chunks
	at     int64   // of the change that was added or read last
	run    drops   // of the newest events
	ends   []int64 // where ends are whose time is that of an end put in behind them, in order
}

// A change is the edit at an event, or events in a row that are dropped and need not be read.
type change struct {
	at int64 // of the separator before the event, or before the first of them
	to int64 // where the last of them ends; 0 of an edit
	edit
	atEnd bool // ends that are put in before it take the time of the end of its thread that was read last
}

// drops are events in a row that are dropped, and nothing else.
type drops struct {
	open        bool
	first, last int64 // as change.at
}

// mostChanged is how many bytes of changes are held, and one change more. A test changes it.
var mostChanged = 16 << 20

const (
	isDropped = 1 << iota
	isEarlier
	isMarked
	isAtEnd
	hasInserts
	isUnread
)

// add takes in a change behind those before. It returns false if there is no room.
func (c *changes) add(x *change) bool {
	if c.size > mostChanged {
		return false
	}
	last := len(c.chunks) - 1
	if last < 0 || cap(c.chunks[last])-len(c.chunks[last]) < 1+2*binary.MaxVarintLen64 {
		c.chunks = append(c.chunks, make([]byte, 0, logChunk))
		last++
	}
	b := c.chunks[last]
	c.size -= len(b)
	var kind byte
	for i, is := range [...]bool{x.drop, x.early, x.mark, x.atEnd, len(x.before)+len(x.after) > 0, x.to > 0} {
		if is {
			kind |= 1 << i
		}
	}
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(x.at-c.at))
	if kind&hasInserts != 0 {
		b = appendInserts(appendInserts(b, x.before), x.after)
	}
	if x.to > 0 {
		b = binary.AppendUvarint(b, uint64(x.to-x.at))
	}
	c.chunks[last], c.at = b, x.at
	c.size += len(b)
	return true
}

// follow takes in what happens at the event behind those before; next says that nothing stands
// between it and the one before but the separator. It returns false if there is no room.
func (c *changes) follow(x *change, next bool) bool {
	dropped := x.drop && !x.early && !x.mark && len(x.before)+len(x.after) == 0
	if c.run.open && dropped && next {
		c.run.last = x.at
		return true
	}
	end := int64(0)
	if next {
		end = x.at
	}
	if !c.close(end) {
		return false
	}
	if dropped {
		c.run = drops{true, x.at, x.at}
		return true
	}
	return !x.changes() || c.add(x)
}

// close takes in the run, whose last event ends at an offset; where that is not known, 0, the event
// must be read.
func (c *changes) close(end int64) bool {
	if !c.run.open {
		return true
	}
	c.run.open = false
	x := change{at: c.run.first, to: end, edit: edit{drop: true}}
	if end > 0 {
		return c.add(&x)
	}
	if x.to = c.run.last; x.to > x.at && !c.add(&x) {
		return false
	}
	x.at, x.to = c.run.last, 0
	return c.add(&x)
}

func appendInserts(b []byte, list []insert) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		what := uint64(x.frame) << 2
		if x.phase == 'E' {
			what |= 1
		}
		if x.early {
			what |= 2
		}
		b = binary.AppendUvarint(b, what)
	}
	return b
}

// rewind goes back to the first change.
func (c *changes) rewind() { c.at = 0 }

// next reads the next change and gives up what it takes; at is beyond all others behind the last one.
func (c *changes) next(x *change) {
	x.reset()
	if len(c.chunks) == 0 {
		x.at, x.to = math.MaxInt64, 0
		return
	}
	b := c.chunks[0]
	kind := b[0]
	b = b[1:]
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	c.at += int64(number())
	x.at = c.at
	x.drop, x.early, x.mark, x.atEnd = kind&isDropped != 0, kind&isEarlier != 0, kind&isMarked != 0, kind&isAtEnd != 0
	if kind&hasInserts != 0 {
		for _, list := range []*[]insert{&x.before, &x.after} {
			for range number() {
				what := number()
				in := insert{phase: 'B', frame: profile.FrameID(what >> 2), early: what&2 != 0}
				if what&1 != 0 {
					in.phase = 'E'
				}
				*list = append(*list, in)
			}
		}
	}
	if x.to = 0; kind&isUnread != 0 {
		x.to = x.at + int64(number())
	}
	if c.chunks[0] = b; len(b) == 0 {
		c.chunks = c.chunks[1:]
	}
}

// recall goes through the log as read does through the trace, and returns all changes but the marks, which it
// finds, too. It returns nil if the changes are too many to be held.
func (rw *rewriter) recall(zones []*zone) (*changes, error) {
	c, x, room := &changes{}, &change{}, true
	early := rw.early
	rw.pairUp()
	n := 0
	var err error
	rw.log.all(rw.table, func(ev *logged) bool {
		if n++; n&0xffff == 0 {
			if err = rw.ctx.Err(); err != nil {
				return false
			}
		}
		for len(zones) > 0 && zones[0].start <= ev.off {
			rw.start(zones[0])
			zones = zones[1:]
		}
		x.reset()
		x.at, x.atEnd = ev.off-ev.lead, false
		rw.listed(&x.edit, ev.off)
		if m := rw.at(ev.thread, ev.phase, ev.timed); m != nil {
			rw.step(m, &x.edit, ev.off, ev.phase, ev.frame, ev.name, ev.sf)
			if m.lastEnd >= 0 && slices.ContainsFunc(x.before, func(in insert) bool { return in.phase == 'E' }) {
				x.atEnd = true
				c.ends = append(c.ends, m.lastEnd)
			}
			if ev.phase == 'E' {
				m.lastEnd = x.at
			}
		}
		rw.pairs.event(rw.table, ev.thread, ev.phase, ev.name, x.at, &x.edit)
		x.mark = x.early
		room = c.follow(x, ev.next)
		return room
	})
	rw.log = nil
	if err != nil {
		return nil, err
	}
	rw.pairedUp()
	rw.active, rw.busy, rw.settled = nil, 0, nil
	if !room || !c.close(0) {
		rw.early = early
		return nil, nil
	}
	slices.Sort(c.ends)
	c.ends = slices.Compact(c.ends)
	return c, nil
}

// readChanges does what read does, but reads only events that change and those that tell the time
// of what is put in.
func (rw *rewriter) readChanges(in io.Reader, opts *chromium.Options, c *changes) error {
	if err := rw.r.Reset(rw.source(in, nil), opts); err != nil {
		return err
	}
	again := rereading{rw: rw, changes: c, marks: rw.marks}
	c.rewind()
	c.next(&again.x)
	for n := 0; ; n++ {
		if n&0xffff == 0 && rw.ctx.Err() != nil {
			return rw.ctx.Err()
		}
		at := again.next()
		if at == math.MaxInt64 {
			break
		}
		var err error
		if stop := again.unread(at); n > 0 && stop > at {
			err = again.leaveOut(at, stop)
		} else {
			err = again.read(at)
		}
		if err != nil {
			return err
		}
	}
	rw.r.PassTo(rw.eventsEnd)
	for {
		if err := rw.r.Read(&again.ev); err != nil {
			if !over(err) {
				return err
			}
			return rw.same(rw.r.InputOffset())
		}
	}
}

// A rereading is where readChanges is.
type rereading struct {
	rw      *rewriter
	changes *changes
	x       change   // the next one, or what is left of it
	marks   []int64  // those that follow
	endTS   [][]byte // by thread: of the end that was read last
	ev      chromium.Event
}

// next returns the offset of the next event that matters, with its separator: beyond all others if there is none.
func (a *rereading) next() int64 {
	at := a.x.at
	for _, list := range [][]int64{a.marks, a.changes.ends} {
		if len(list) > 0 {
			at = min(at, list[0])
		}
	}
	return at
}

// unread returns where what is dropped from at on ends, or an end has to be read; 0 if nothing is dropped there.
func (a *rereading) unread(at int64) int64 {
	switch {
	case at != a.x.at:
		return 0
	case len(a.changes.ends) > 0:
		return min(a.x.to, a.changes.ends[0])
	}
	return a.x.to
}

// leaveOut drops the events from at until stop without reading them.
func (a *rereading) leaveOut(at, stop int64) error {
	if err := a.rw.r.LeaveOut(at, stop); err != nil {
		return changed(err, at)
	}
	if a.x.at = stop; stop == a.x.to {
		a.changes.next(&a.x)
	}
	return nil
}

// read reads the event at an offset, and writes it with what changes.
func (a *rereading) read(at int64) error {
	ev, c := &a.ev, a.changes
	a.rw.r.PassTo(at)
	err := a.rw.r.Read(ev)
	if err == nil && ev.Offset-int64(len(ev.Lead)) != at {
		err = io.EOF
	}
	if err != nil {
		return changed(err, at)
	}
	for int(ev.Thread) >= len(a.endTS) {
		a.endTS = append(a.endTS, nil)
	}
	ed, end := &edit{}, []byte(nil)
	if a.x.at == at {
		ed = &a.x.edit
		if a.x.atEnd {
			end = a.endTS[ev.Thread]
		}
	}
	if len(a.marks) > 0 && a.marks[0] == at {
		ed.mark, a.marks = true, a.marks[1:]
	}
	if len(c.ends) > 0 && c.ends[0] == at {
		c.ends = c.ends[1:]
	}
	if err := a.rw.apply(ev, ed, end); err != nil {
		return err
	}
	if ev.Phase == 'E' && ev.TS.Valid {
		a.endTS[ev.Thread] = append(a.endTS[ev.Thread][:0], ev.TS.Text...)
	}
	if a.x.at == at {
		if a.x.at = ev.Offset + int64(len(ev.Raw)); a.x.at >= a.x.to {
			c.next(&a.x)
		}
	}
	return nil
}

// changed is the error of a reading that found no event where there was one at first.
func changed(err error, at int64) error {
	if over(err) {
		return fmt.Errorf("expected an event at offset %d as at first: %w", at, input.ErrChanged)
	}
	return err
}
