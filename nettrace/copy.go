package nettrace

import (
	"errors"
	"io"
)

// Copy writes all events that are left in r, with sequence points where r has
// them, so that lost events are told at the same places; v4 events keep their
// sequence numbers. edit may change an event before it is written, or drop it by
// returning false, from where on numbers are given anew; nil copies all.
//
// Of a damaged file Copy makes a clean one: events that are not whole (see Event.Whole) are
// left out, numbers are given anew, so that no reader takes what damage cost for lost by the
// recorder, and what was lost is noted in the file, for Reader.Salvage.
//
// Copy returns what ended the reading, nil for a whole file, or the error of the
// writing; it does not close w.
func Copy(w *Writer, r *Reader, edit func(*Event) bool) error {
	c := NewCopier(w, r, edit)
	var step CopyStep
	for {
		ended := c.Read(&step)
		if err := c.Write(&step); err != nil {
			return err
		}
		if ended != nil {
			return c.End(ended)
		}
	}
}

// A Copier does what Copy does in steps, of which Read and Write may be called at once, each by
// one goroutine: the steps are written in the order in which they were read. See Options.Hold.
type Copier struct {
	// of Read
	r      *Reader
	region uint64
	losses int // of the reader that were passed on
	// of Write
	w        *Writer
	edit     func(*Event) bool
	numbered bool // as long as no event is dropped the numbers can stay
	leftOut  int64
}

// A CopyStep is an event on its way from a Reader to a Writer, and what changed before it.
type CopyStep struct {
	event     Event
	read      bool // there is an event
	newRegion bool
	losses    []lostBefore // told at the end of the region before
	damaged   bool         // the file is known to be by now
	numbered  bool         // the file's sequence numbers can stay
}

type lostBefore struct {
	thread uint64
	count  uint32
}

// NewCopier returns a Copier of the events that are left in r. See Copy.
func NewCopier(w *Writer, r *Reader, edit func(*Event) bool) *Copier {
	return &Copier{w: w, r: r, edit: edit, region: r.region, losses: r.passedLosses, numbered: !w.v6}
}

// Read reads the next step, which is to be written also where Read returns what ended the reading.
func (c *Copier) Read(s *CopyStep) error {
	r := c.r
	err := r.Read(&s.event)
	s.read, s.losses = err == nil, s.losses[:0]
	if s.newRegion = r.region != c.region; s.newRegion {
		c.region = r.region
		for ; c.losses < r.passedLosses; c.losses++ {
			if l := &r.losses[c.losses]; l.AtSequencePoint {
				s.losses = append(s.losses, lostBefore{l.CaptureThreadID, l.Count})
			}
		}
	}
	s.damaged = r.damage != nil
	s.numbered = !s.damaged && r.stats.UnknownMeta == 0
	return err
}

// Write writes a step.
func (c *Copier) Write(s *CopyStep) error {
	w, ev := c.w, &s.event
	if s.newRegion {
		for _, l := range s.losses {
			w.AddLoss(l.thread, l.count)
		}
		if err := w.SequencePoint(); err != nil {
			return err
		}
	}
	if !s.read {
		return nil
	}
	keep := c.edit == nil || c.edit(ev)
	if !ev.Whole() || s.damaged && !ev.fits() {
		c.leftOut++
		keep = false
	}
	if !keep || !s.numbered {
		c.numbered = false
	}
	if !keep {
		return nil
	}
	if c.numbered && ev.SequenceNumber != 0 {
		// A thread may begin in the middle: its first events were lost.
		*w.number(ev.CaptureThreadID) = ev.SequenceNumber - 1 - ev.Lost
	}
	return w.Write(ev)
}

// End notes what was lost, given what ended the reading, when all steps are written. It returns what Copy does.
func (c *Copier) End(ended error) error {
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
