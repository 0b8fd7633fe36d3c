package chromium

import (
	"bytes"
	"errors"
	"io"
)

// A Writer writes a trace: the copy of one that a Reader reads, with events
// changed, left out and added, or a new one. It does no buffering.
type Writer struct {
	w     io.Writer
	err   error
	begun bool   // something was written
	owns  bool   // the document's brackets are ours
	lead  []byte // separator for new events
	strip bool   // nothing stands in the array so far: the next event has no comma
	fresh bool   // a Reader has read no event of the array so far
	// outside is set where a Reader has passed on the bracket behind the events, or none before them so far.
	outside bool
	closed  bool
}

var (
	errClosed = errors.New("chromium: write to a closed Writer")
	errEnded  = errors.New("chromium: Insert before or behind the events of a copy: when a Reader has read the first event it is time for that, and when Options.EventsEnd is called")
	errOwns   = errors.New("chromium: a copy into a document that Insert has begun: Insert comes behind the first event that is read")
)

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, lead: []byte(usualLead)}
}

// Outside is for Options.Outside of the Reader that is being copied.
func (w *Writer) Outside() io.Writer { return outsideWriter{w} }

type outsideWriter struct{ w *Writer }

func (o outsideWriter) Write(p []byte) (int, error) {
	o.w.begun = true
	o.w.write(p)
	if o.w.err != nil {
		return 0, o.w.err
	}
	return len(p), nil
}

// starts is what a Reader tells that passes on another document.
func (w *Writer) starts() error {
	if w.owns {
		return errOwns
	}
	w.outside = true
	return nil
}

// begins is what a Reader tells behind the bracket before events.
func (w *Writer) begins() { w.strip, w.fresh, w.outside = true, true, false }

// ends is what a Reader tells before it passes on the bracket behind them.
func (w *Writer) ends() { w.strip, w.fresh, w.outside = false, false, true }

// separator is what goes before an event that was read, which is written next.
func (w *Writer) separator(lead []byte, first bool) []byte {
	switch {
	case first && w.fresh && !w.strip: // a new event stands before it
		lead = w.lead
	case !first && w.strip:
		lead = bytes.ReplaceAll(lead, []byte{','}, nil)
	}
	w.strip, w.fresh = false, false
	return lead
}

func (w *Writer) write(p []byte) {
	if w.err == nil && len(p) > 0 {
		var n int
		if n, w.err = w.w.Write(p); w.err == nil && n != len(p) {
			w.err = io.ErrShortWrite
		}
	}
}

// Write writes ev.Lead and ev.Raw of an event that a Reader has read.
func (w *Writer) Write(ev *Event) error {
	if w.closed {
		return errClosed
	}
	w.begun, w.outside = true, false
	w.follow(ev)
	w.write(w.separator(ev.Lead, ev.First))
	w.write(ev.Raw)
	return w.err
}

// usualLead is the separator of events that are put in where that of their neighbour will
// not do.
const usualLead = ", "

// follow has new events set apart as ev is. It depends on no other event: what is passed
// on unread makes no difference.
func (w *Writer) follow(ev *Event) {
	if len(ev.Lead) <= 16 && bytes.IndexByte(ev.Lead, ',') >= 0 {
		w.lead = append(w.lead[:0], ev.Lead...)
	} else {
		w.lead = append(w.lead[:0], usualLead...)
	}
}

// Drop leaves out an event that a Reader has read.
func (w *Writer) Drop(ev *Event) {
	w.begun = true
	if ev.First && (w.strip || !w.fresh) {
		w.strip = true
	}
	w.fresh = false
}

// Insert writes a new event behind the last one written. raw is its JSON text, which is not checked.
// The first one of all begins a new document of the object form.
//
// In a copy the array ends, and its bracket is passed on, when Read returns the error behind the
// last event: what is to stand behind all others is inserted in Options.EventsEnd. Insert refuses
// it later, since nobody would read it, and before the first event was read, since it has no place then.
func (w *Writer) Insert(raw []byte) error {
	switch {
	case w.closed:
		return errClosed
	case w.outside:
		return errEnded
	case !w.begun:
		w.begun, w.owns = true, true
		w.write([]byte(`{"traceEvents":[`))
	case w.strip:
		w.strip = false
	default:
		w.write(w.lead)
	}
	w.write(raw)
	return w.err
}

// InsertBefore writes a new event before ev, which has been read but not
// written yet, and makes ev follow it.
func (w *Writer) InsertBefore(ev *Event, raw []byte) error {
	if w.closed {
		return errClosed
	}
	w.begun, w.outside = true, false
	switch {
	case ev.First:
		w.write(w.separator(ev.Lead, true))
		ev.First, ev.Lead = false, w.lead
	case w.strip:
		w.write(w.separator(ev.Lead, false))
	default:
		w.follow(ev)
		w.write(w.lead)
	}
	w.write(raw)
	return w.err
}

// Close ends the document if the Writer began it. It does not close the
// io.Writer below. Nothing can be written to w any more.
func (w *Writer) Close() error {
	if !w.begun {
		w.begun, w.owns = true, true
		w.write([]byte(`{"traceEvents":[`))
	}
	if w.owns {
		w.write([]byte("],\"displayTimeUnit\":\"ms\"}\n"))
		w.owns = false
	}
	w.closed = true
	return w.err
}
