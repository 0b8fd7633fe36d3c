package nettrace

import (
	"errors"
	"io"
)

// Copy writes all events that are left in r, with sequence points where r has them, so that lost
// events are told at the same places; v4 events keep their sequence numbers. edit may change an
// event before it is written, or drop it by returning false, from where on numbers are given anew;
// nil copies all.
//
// Of a damaged file Copy makes a clean one: events that are not whole (see Event.Whole) are left
// out, numbers are given anew, so that no reader takes what damage cost for lost by the recorder,
// and what was lost is noted in the file, for Reader.Salvage.
//
// Blocks of kinds that are not known, which a later version may have added, go from v4 into a copy
// in v4, and from v6 into one in v6, as they are but for the padding of v4: between the same events
// and sequence points, but where 16 MiB of them stand between events that must wait for others.
// What they may say of places in the file, or of ids, is that of the file read.
//
// Copy returns what ended the reading, nil for a whole file, or the error of the writing; it does
// not close w.
func Copy(w *Writer, r *Reader, edit func(*Event) bool) error {
	const events = 32 // at a time: so few stay in the first cache of a processor
	c := NewCopier(w, r, edit)
	var b Batch
	for {
		ended := r.ReadBatch(&b, events)
		if err := c.Write(&b); err != nil {
			return err
		}
		if ended != nil {
			return c.End(ended)
		}
	}
}

// A Copier does what Copy does for batches of the events of a Reader, which one goroutine may read
// while another one writes those before.
type Copier struct {
	r        *Reader // for End
	w        *Writer
	edit     func(*Event) bool
	event    Event
	region   uint64
	losses   int  // that were passed on
	numbered bool // as long as no event is dropped the numbers can stay
	leftOut  int64
}

// NewCopier returns a Copier of the events that are left in r, which must be read by ReadBatch. See Copy.
func NewCopier(w *Writer, r *Reader, edit func(*Event) bool) *Copier {
	r.carries = w.v6 == (r.h.Version == 6) && r.h.Version >= 4
	return &Copier{w: w, r: r, edit: edit, region: r.region, losses: r.passedLosses, numbered: !w.v6}
}

// Write writes the next batch of events, which may be one that the reading ended with.
func (c *Copier) Write(b *Batch) error {
	b.Rewind()
	for i := range b.views {
		v := &b.views[i]
		if err := c.enter(v); err != nil {
			return err
		}
		for i := range v.carried {
			if err := c.w.carry(&v.carried[i]); err != nil {
				return err
			}
			v.carried[i].raw = nil // the memory of a batch is kept, and that of its blocks is not
		}
		for b.run < len(b.runs) && b.runs[b.run].view == i {
			if row := &b.blk.rows[b.row]; c.plain(v, row) {
				if c.numbered {
					c.keepNumber(row.capture, row.seq, row.lost)
				}
				if err := c.w.writeRow(v, b.blk, row); err != nil {
					return err
				}
				b.skip()
				continue
			}
			b.Next(&c.event)
			if err := c.copy(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter goes on to events of another view. Where that is another region, lost events are told at
// the end of the one before.
func (c *Copier) enter(v *view) error {
	if v.region == c.region {
		return nil
	}
	c.region = v.region
	return c.lose(v.losses[:v.passedLosses])
}

// lose tells of the losses that were not passed on yet, and ends the region. Those of one place
// stand together in the copy, too.
func (c *Copier) lose(all []Loss) error {
	at := int64(-1)
	for ; c.losses < len(all); c.losses++ {
		l := &all[c.losses]
		if !l.AtSequencePoint || l.Count == 0 {
			continue
		}
		if l.Offset != at && at >= 0 {
			if err := c.w.SequencePoint(); err != nil {
				return err
			}
		}
		at = l.Offset
		c.w.addLoss(l)
	}
	return c.w.SequencePoint()
}

// plain reports whether an event of a sound file of v4 goes into the copy as it is: its header
// tells all that is to be known, and no Event need be made of it.
func (c *Copier) plain(v *view, row *row) bool {
	return c.edit == nil && v.version == 4 && !c.w.v6 && !v.damaged && !v.unknownMeta && (row.fits || row.meta.open())
}

// keepNumber has the next event of a capture thread get the number that it has. A thread may begin
// in the middle: its first events were lost.
func (c *Copier) keepNumber(capture uint64, number, lost uint32) {
	if number != 0 {
		*c.w.number(capture) = number - 1 - lost
	}
}

// copy writes the event.
func (c *Copier) copy(v *view) error {
	w, ev := c.w, &c.event
	stack, key := ev.Stack, ev.StackKey
	meta, version, payload := ev.Metadata, ev.Version, ev.Payload
	keep := c.edit == nil || c.edit(ev)
	fits := ev.fitted && ev.Metadata == meta && ev.Version == version && same(ev.Payload, payload)
	if !ev.whole(fits) || v.damaged && !fits && !ev.fits() {
		c.leftOut++
		keep = false
	}
	if !keep || v.damaged || v.unknownMeta {
		c.numbered = false
	}
	if !keep {
		w.keepLoss(ev)
		return nil
	}
	if c.numbered {
		c.keepNumber(ev.CaptureThreadID, ev.SequenceNumber, ev.Lost)
	}
	return w.write(ev, ev.StackKey == key && ev.Stack.same(stack))
}

// End notes what was lost, given what ended the reading, when all batches are written. It returns
// what Copy does.
func (c *Copier) End(ended error) error {
	// The events end with a sequence point, as those of a whole recording do, and what is noted
	// stands behind it: so a copy of the copy is the same.
	if err := c.lose(c.r.losses); err != nil {
		return err
	}
	if ended == io.EOF && c.leftOut == 0 && c.w.damaged == 0 {
		c.w.note(c.r.Salvage()) // of a copy of a copy
		return nil
	}
	var damage *FormatError
	if ended == io.EOF || errors.As(ended, &damage) {
		c.w.note(c.r.lostInCopy(c.leftOut, c.w.damaged))
	}
	if ended == io.EOF {
		return c.w.err
	}
	return ended
}
