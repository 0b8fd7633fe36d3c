package chromium

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Skipping of what is broken, too large or of no interest.

// largeEvent passes the event at pos on as no event.
func (r *Reader) largeEvent(commas int) error {
	if err := r.warn(r.base+int64(r.pos), r.where(), fmt.Errorf("event %w of %d bytes", ErrTooLarge, r.opts.MaxEventSize)); err != nil {
		return err
	}
	lead, err := r.lead(commas)
	if err != nil {
		return err
	}
	r.mark = r.pos
	if w := r.copies(); w != nil {
		lead = w.separator(lead, r.first)
	}
	if err := r.outside(lead); err != nil {
		return err
	}
	if err := r.skipValue(r.where(), false); err != nil {
		return err
	}
	r.took()
	return nil
}

// oddElement skips an element that is not an object.
func (r *Reader) oddElement(ev *Event, commas int) (bool, error) {
	for {
		n := r.scan.value(r.buf[r.pos:r.end], 0)
		if n > 0 {
			off, c := r.base+int64(r.pos), r.buf[r.pos]
			if err := r.warn(off, r.where(), fmt.Errorf("%w: begins with %q", ErrNotEvent, c)); err != nil {
				return false, err
			}
			r.pos += n
			r.mark = r.pos
			r.count++
			r.dropped = true
			return false, nil
		}
		if n == needMore && r.more(r.opts.MaxEventSize) {
			continue
		}
		if r.srcErr != nil {
			return false, r.srcErr
		}
		return r.resync(ev, commas, n)
	}
}

// brokenEvent handles an event that parse refused with n. A quote that was not
// escaped is put right, all else is skipped.
func (r *Reader) brokenEvent(ev *Event, commas, n int) (bool, error) {
	if n == tooDeep {
		return false, &FormatError{Offset: r.base + int64(r.pos+r.scan.at), Where: r.where(),
			Err: fmt.Errorf("%w of %d", ErrTooDeep, r.opts.MaxDepth)}
	}
	if n == badJSON && r.affords() {
		at := r.scan.at
		r.scan.quotes = true
		m := r.try(func(b []byte) int { return r.parse(b, ev) })
		if r.srcErr != nil {
			return false, r.srcErr
		}
		if m > 0 && r.scan.loose {
			lead, err := r.lead(commas)
			if err != nil {
				return false, err
			}
			r.missed = true
			return true, r.finish(ev, m, lead)
		}
		r.scan.quotes = false
		r.scan.at = at
	}
	return r.resync(ev, commas, n)
}

// maxTry is how far a reading of what may be no event looks.
const maxTry = 1 << 20

// try reads what stands at pos, which may be no event or not begin there: it must be
// whole and have a phase. How far it looks does not depend on the sizes of reads. What
// came to nothing counts as spent.
func (r *Reader) try(read func(b []byte) int) int {
	limit := min(r.opts.MaxEventSize, maxTry)
	for {
		b := r.buf[r.pos:min(r.end, r.pos+limit)]
		r.picky = true
		n := read(b)
		r.picky = false
		switch {
		case n == needMore && len(b) < limit && r.more(1<<30):
			continue
		case n == needMore:
			r.spent += int64(len(b))
		case n < 0:
			r.spent += int64(r.scan.at)
		}
		return n
	}
}

// affords reports whether broken input may be tried again. Readings that come to
// nothing can overlap, a megabyte each: all of them together may cost some times the
// bytes before this point.
func (r *Reader) affords() bool { return r.spent <= 16*r.InputOffset()+maxTry }

// resync skips what stands at pos up to the next event or the end of the array.
// A candidate must be whole and have a phase.
func (r *Reader) resync(ev *Event, commas, cause int) (bool, error) {
	lead, err := r.lead(commas)
	if err != nil {
		return false, err
	}
	r.leadBuf = append(r.leadBuf[:0], bytes.Clone(lead)...)
	start, where := r.base+int64(r.pos), r.where()
	off := start
	if cause == badJSON {
		off += int64(r.scan.at)
	}
	report := func(to int64) error {
		return r.warn(off, where, fmt.Errorf("%w; skipped %d bytes", ErrSyntax, to-start))
	}
	r.mark = r.pos
	i := r.pos + 1    // next byte to look at
	before := byte(0) // the byte before i that is not blank
	for {
		if i >= r.end {
			r.mark = r.end
			r.pos = r.end
			if !r.more(1 << 30) {
				if r.srcErr != nil {
					return false, r.srcErr
				}
				if r.opts.Strict && cause == badJSON {
					return false, report(r.base + int64(r.end))
				}
				return false, r.cut(start, where)
			}
			i = r.pos
			continue
		}
		switch r.buf[i] {
		case '{':
			r.mark, r.pos = i, i
			spent := r.spent
			n := r.try(func(b []byte) int { return r.parse(b, ev) })
			i = r.pos
			if n > 0 {
				if err := report(r.base + int64(i)); err != nil {
					return false, err
				}
				r.missed = true
				r.count++
				return true, r.finish(ev, n, r.leadBuf)
			}
			if !r.affords() {
				i += max(int(r.spent-spent), 1)
				r.spent = spent // paid with what is skipped
				continue
			}
		case ']':
			for r.end-i < 16<<10 {
				r.mark, r.pos = i, i
				if !r.more(16 << 10) {
					break
				}
				i = r.pos
			}
			if before == '}' && cause == badJSON && r.base+int64(i) >= off && r.endsArray(i) {
				if err := report(r.base + int64(i)); err != nil {
					return false, err
				}
				r.pos, r.mark = i, i
				r.count++
				r.dropped = true
				return false, nil
			}
		}
		if c := r.buf[i]; !isSpace(c) {
			before = c
		}
		i++
	}
}

// endsArray guesses whether the bracket at buf[i], met while skipping, is the
// end of the events: the document or a key follows, and no event is near.
func (r *Reader) endsArray(i int) bool {
	if len(r.open) == 0 {
		return false
	}
	b := r.buf[i+1 : min(r.end, i+16<<10)]
	j := skipSpace(b, 0)
	if j == len(b) {
		return r.end-i < 16<<10 // the input ends here
	}
	if b[j] == ',' {
		if j = skipSpace(b, j+1); j == len(b) || b[j] != '"' {
			return false
		}
	} else if b[j] != '}' {
		return false
	}
	return !bytes.Contains(b, []byte(`"ph"`))
}

// brokenValue goes on behind a broken top-level member at the events, or at the stack frames, if
// these are still to come; what was passed on of the member has been closed.
func (r *Reader) brokenValue(fe *FormatError) error {
	if r.inFrames {
		if err := r.framesEnd(); err != nil {
			return err
		}
		r.open = r.open[:len(r.open)-1]
		if err := r.outside([]byte{'}'}); err != nil {
			return err
		}
	}
	r.value, r.owed = nil, false
	for !r.found || r.frames == 0 {
		word, bracket := r.wanted()
		if i := bytes.Index(r.buf[r.pos:r.end], []byte(word)); i >= 0 {
			r.pos += i
			r.mark = r.pos
			for r.end-r.pos < 64 && r.more(64) {
			}
			k := bytes.IndexByte(r.buf[r.pos:min(r.end, r.pos+64)], bracket)
			if k < 0 || len(bytes.Fields(r.buf[r.pos+len(word):r.pos+k])) > 2 || k > len(word)+8 {
				r.pos++
				continue
			}
			if err := r.warn(fe.Offset, fe.Where, fe.Err); err != nil {
				return err
			}
			r.pos += k
			return r.goOn()
		}
		r.pos = max(r.pos, r.end-len(word))
		r.mark = r.pos
		if !r.more(1 << 30) {
			break
		}
	}
	if r.srcErr != nil {
		return r.srcErr
	}
	r.mark, r.pos = r.end, r.end
	if err := r.closeAll(); err != nil {
		return err
	}
	return fe
}

// wanted is the key that a broken document is searched for, and how its value begins.
func (r *Reader) wanted() (key string, bracket byte) {
	if r.found {
		return "stackFrames", '{'
	}
	return "traceEvents", '['
}

// goOn reads the value of the wanted key, whose bracket is at pos, with a key of its own for Outside.
func (r *Reader) goOn() error {
	key, _ := r.wanted()
	member := `, "` + key + `":`
	if r.blank {
		member = member[2:]
	}
	r.blank = false
	if len(r.keys) < maxKeys {
		r.keys = append(r.keys, key)
	}
	r.mark, r.owed = r.pos, false
	if err := r.outside([]byte(member)); err != nil {
		return err
	}
	if !r.found {
		return r.enterArray()
	}
	r.pos++
	return r.readFrames()
}

// nearly reports whether a key is another one in which a byte was changed, left out or put in.
func nearly(key, other string) bool {
	n := 0
	for n < len(key) && n < len(other) && key[n] == other[n] {
		n++
	}
	key, other = key[n:], other[n:]
	if len(key) > len(other) {
		key, other = other, key
	}
	switch len(other) - len(key) {
	case 0:
		return key == "" || key[1:] == other[1:]
	case 1:
		return key == other[1:]
	}
	return false
}

// behind is what stands behind the end of the document.
type behind struct {
	from   int64
	begins byte
	trace  bool // it begins as another trace does
	events int
}

// Behind returns how many events were read from behind the end of the document, see Options.Behind.
func (r *Reader) Behind() int { return r.behind.events }

// tell warns of it.
func (b *behind) tell(r *Reader) error {
	err := fmt.Errorf("%w, beginning with %q", ErrTrailing, b.begins)
	switch size := r.InputOffset() - b.from; {
	case b.trace:
		err = fmt.Errorf("%w: another trace begins there, and its %d bytes are left out: times and threads are its own; split the file there to read it", ErrTrailing, size)
	case b.events == 1:
		err = fmt.Errorf("%w: an event in them is read, all else is left out", err)
	case b.events > 1:
		err = fmt.Errorf("%w: %d events in them are read, all else is left out", err, b.events)
	case size > 0:
		err = fmt.Errorf("%w: %d left out", err, size)
	}
	return r.warn(b.from, "document", err)
}

// beginsTrace reports whether another trace begins at pos: an array, or an object whose first key
// is one of a trace.
func (r *Reader) beginsTrace() bool {
	const most = 64
	for r.end-r.pos < most && r.more(most) {
	}
	b := r.buf[r.pos:min(r.end, r.pos+most)]
	if len(b) == 0 || b[0] != '{' {
		return len(b) > 0 && b[0] == '['
	}
	b = b[skipSpace(b, 1):]
	for _, key := range []string{"traceEvents", "displayTimeUnit", "otherData", "metadata", "stackFrames", "systemTraceEvents", "schemaVersion"} {
		if len(b) > len(key)+1 && b[0] == '"' && string(b[1:1+len(key)]) == key && b[1+len(key)] == '"' {
			return true
		}
	}
	return false
}

// readBehind reads the next event behind the end of the document, which must be whole and have a phase.
func (r *Reader) readBehind(ev *Event) (ok bool, err error) {
	for {
		r.mark = r.pos
		i := -1
		if r.opts.Behind && r.found && !r.behind.trace {
			i = bytes.IndexByte(r.buf[r.pos:r.end], '{')
		}
		if i < 0 {
			r.pos, r.mark = r.end, r.end
			if r.more(1 << 30) {
				continue
			}
			if r.srcErr != nil {
				return false, r.srcErr
			}
			if err := r.behind.tell(r); err != nil {
				return false, err
			}
			return false, io.EOF
		}
		r.pos += i
		r.mark = r.pos
		spent := r.spent
		n := r.try(func(b []byte) int { return r.parse(b, ev) })
		switch {
		case r.srcErr != nil:
			return false, r.srcErr
		case n > 0:
			lead := []byte(", ")
			if r.first {
				lead = nil
			}
			r.missed = true
			r.behind.events++
			return true, r.finish(ev, n, lead)
		case !r.affords():
			r.pos += max(int(r.spent-spent), 1)
			r.spent = spent // paid with what is skipped
		default:
			r.pos++
		}
	}
}

// IsCut reports whether err says that an input ended too early.
func IsCut(err error) bool {
	var fe *FormatError
	return errors.As(err, &fe) && errors.Is(fe.Err, io.ErrUnexpectedEOF)
}
