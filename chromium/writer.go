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
	strip bool   // the first event of the array was dropped: the next has no comma
	// ended is set where a Reader has passed on the bracket behind the events.
	ended  bool
	closed bool
}

var (
	errClosed = errors.New("chromium: write to a closed Writer")
	errEnded  = errors.New("chromium: Insert behind the end of the events: Options.EventsEnd is called in time for that")
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
	w.begun, w.ended = true, false
	if ev.First {
		w.strip = false
	}
	w.follow(ev)
	if w.strip {
		w.write(bytes.ReplaceAll(ev.Lead, []byte{','}, nil))
		w.strip = false
	} else {
		w.write(ev.Lead)
	}
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
	if ev.First {
		w.strip = true
	}
}

// Insert writes a new event behind the last one written. raw is its JSON text, which is not checked.
// The first one of all begins a new document of the object form.
//
// In a copy the array ends, and its bracket is passed on, when Read returns the error behind the
// last event: what is to stand behind all others is inserted in Options.EventsEnd. Insert refuses
// it later, since nobody would read it.
func (w *Writer) Insert(raw []byte) error {
	switch {
	case w.closed:
		return errClosed
	case w.ended:
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
	w.begun, w.ended = true, false
	if ev.First {
		w.write(ev.Lead)
		w.write(raw)
		ev.First = false
		ev.Lead = w.lead
		return w.err
	}
	if w.strip {
		w.strip = false
		w.write(bytes.ReplaceAll(ev.Lead, []byte{','}, nil))
		w.write(raw)
		return w.err
	}
	w.follow(ev)
	w.write(w.lead)
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
