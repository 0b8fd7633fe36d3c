package chromium

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Skipping of what is broken, too large or of no interest.

// largeEvent passes the event at pos on unread.
func (r *Reader) largeEvent() error {
	if err := r.warn(r.base+int64(r.pos), r.where(), fmt.Errorf("event %w of %d bytes", ErrTooLarge, r.opts.MaxEventSize)); err != nil {
		return err
	}
	if err := r.pass(); err != nil { // its separator
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

// skipValue passes on one value, and with key the member that it is the value
// of, of any size. Bytes go to Outside as soon as the document could be closed
// behind them.
func (r *Reader) skipValue(where string, key bool) error {
	kinds := &r.skip
	kinds.n = 0
	const (
		value  = iota
		member // behind an opening bracket or a comma: a key, a value or the end
		colon
		after
	)
	at := value
	if key {
		at = member
	}
	inObject := func() bool { return kinds.n == 0 && key || kinds.n > 0 && kinds.top() }
	fail := func(err error) error {
		if err == io.ErrUnexpectedEOF {
			for ; kinds.n > 0; kinds.n-- {
				c := byte(']')
				if kinds.top() {
					c = '}'
				}
				if err := r.outside([]byte{c}); err != nil {
					return err
				}
			}
			return r.cut(r.base+int64(r.end), where)
		}
		return err
	}
	broken := func() error {
		off := r.base + int64(r.pos)
		err := &FormatError{Offset: off, Where: where, Err: fmt.Errorf("%w: found %q", ErrSyntax, r.buf[r.pos])}
		if r.opts.Strict {
			return err
		}
		for ; kinds.n > 0; kinds.n-- {
			c := byte(']')
			if kinds.top() {
				c = '}'
			}
			if e := r.outside([]byte{c}); e != nil {
				return e
			}
		}
		return r.brokenValue(err)
	}
	for {
		c, ok, err := r.peek()
		if err != nil {
			return err
		}
		if !ok {
			return fail(io.ErrUnexpectedEOF)
		}
		switch {
		case at == colon:
			if c != ':' {
				return broken()
			}
			r.pos++
			at = value
		case at == after && c == ',' || at == member && c == ',':
			r.pos++
			at = member
		case kinds.n > 0 && (c == '}' && kinds.top() || c == ']' && !kinds.top()) && (at == after || at == member):
			r.pos++
			kinds.n--
			if err := r.pass(); err != nil {
				return err
			}
			if kinds.n == 0 {
				return nil
			}
			at = after
		case at == after:
			return broken()
		case c == '"':
			isKey := at == member && inObject()
			if err := r.skipString(isKey); err != nil {
				return fail(err)
			}
			at = after
			if isKey {
				at = colon
			}
		case at == member && inObject():
			return broken()
		case c == '{' || c == '[':
			if kinds.n == r.opts.MaxDepth {
				return &FormatError{Offset: r.base + int64(r.pos), Where: where, Err: fmt.Errorf("%w of %d", ErrTooDeep, r.opts.MaxDepth)}
			}
			kinds.push(c == '{')
			r.pos++
			at = member
			if err := r.pass(); err != nil {
				return err
			}
		case literalByte[c]:
			passed := false
			for {
				for r.pos < r.end && literalByte[r.buf[r.pos]] {
					r.pos++
				}
				if r.pos < r.end {
					break
				}
				if r.end-r.mark >= 1<<20 {
					passed = true
					if err := r.pass(); err != nil {
						return err
					}
				}
				if !r.more(1 << 30) {
					break
				}
			}
			if r.srcErr != nil {
				return r.srcErr
			}
			if r.pos == r.end {
				if passed { // ends any number that began well
					if err := r.outside([]byte{'0'}); err != nil {
						return err
					}
				}
				return fail(io.ErrUnexpectedEOF)
			}
			at = after
		default:
			return broken()
		}
		if at == after {
			if err := r.pass(); err != nil {
				return err
			}
			if kinds.n == 0 {
				return nil
			}
		}
	}
}

// errInString says that the input ended in a string that was closed.
var errInString = io.ErrUnexpectedEOF

// skipString steps over the string at pos. One that is larger than a megabyte
// is passed on in parts and, if it has no end, closed.
func (r *Reader) skipString(isKey bool) error {
	for {
		if j := stringEnd(r.buf[:r.end], r.pos+1); j >= 0 {
			r.pos = j + 1
			return nil
		}
		if !r.more(1 << 20) {
			break
		}
	}
	if r.srcErr != nil {
		return r.srcErr
	}
	if r.eof && r.end-r.mark < 1<<20 {
		return io.ErrUnexpectedEOF
	}
	r.pos++
	for {
		// Step over what is plain; a backslash and what it escapes stay together.
		b := r.buf[:r.end]
		for r.pos < r.end {
			i := bytes.IndexAny(b[r.pos:], `"\`)
			if i < 0 {
				r.pos = r.end
				break
			}
			r.pos += i
			if b[r.pos] == '"' {
				r.pos++
				return nil
			}
			if r.end-r.pos < 6 && !r.eof {
				break
			}
			r.pos = min(r.pos+2, r.end)
		}
		if err := r.pass(); err != nil {
			return err
		}
		if !r.more(1 << 20) {
			if r.srcErr != nil {
				return r.srcErr
			}
			end := `"`
			if isKey {
				end = `":null`
			}
			if err := r.outside([]byte(end)); err != nil {
				return err
			}
			return errInString
		}
	}
}

// brokenValue goes on behind a broken top-level value if the events are still
// to come; what was passed on of the value has been closed.
func (r *Reader) brokenValue(fe *FormatError) error {
	want := []byte(`"traceEvents"`)
	for !r.found {
		if i := bytes.Index(r.buf[r.pos:r.end], want); i >= 0 {
			r.pos += i
			r.mark = r.pos
			k := skipSpace(r.buf[:r.end], r.pos+len(want))
			if k < r.end && r.buf[k] == ':' {
				k = skipSpace(r.buf[:r.end], k+1)
			}
			if k == r.end && r.more(1<<20) {
				continue
			}
			if k == r.end || r.buf[k] != '[' {
				r.pos++
				continue
			}
			if err := r.warn(fe.Offset, fe.Where, fe.Err); err != nil {
				return err
			}
			return r.outside([]byte(", "))
		}
		r.pos = max(r.pos, r.end-len(want))
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

// IsCut reports whether err says that an input ended too early.
func IsCut(err error) bool {
	var fe *FormatError
	return errors.As(err, &fe) && errors.Is(fe.Err, io.ErrUnexpectedEOF)
}
