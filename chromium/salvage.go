package chromium

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
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

// skipValue passes on one value, and with key the member that it is the value
// of, of any size. Bytes go to Outside as soon as the document could be closed
// behind them; what is no JSON is put right as in events.
func (r *Reader) skipValue(where string, key bool) error {
	kinds := &r.skip
	kinds.n = 0
	commas := bytes.Count(r.buf[r.mark:r.pos], []byte{','}) // before what is at pos
	first := commas == 0                                    // it stands behind an opening bracket, or is all
	loose := false                                          // what is held is no valid JSON
	hasKey := false                                         // a key is out, and its value is not
	pass := func() error {
		err := r.passValue(where, loose, commas, first)
		commas, first, loose, hasKey = 0, false, false, false
		return err
	}
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
	closed := func() error {
		if hasKey {
			if err := r.outside([]byte(":null")); err != nil {
				return err
			}
		}
		for ; kinds.n > 0; kinds.n-- {
			c := byte(']')
			if kinds.top() {
				c = '}'
			}
			if err := r.outside([]byte{c}); err != nil {
				return err
			}
		}
		return nil
	}
	fail := func(err error) error {
		if err == io.ErrUnexpectedEOF {
			if err := closed(); err != nil {
				return err
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
		if hasKey || kinds.n > 0 {
			r.blank = false
		}
		if err := closed(); err != nil {
			return err
		}
		r.mark = r.pos
		if !key {
			return r.warn(off, where, err.Err)
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
			if commas++; commas > 1 || first {
				loose = true
			}
			at = member
		case kinds.n > 0 && (c == '}' && kinds.top() || c == ']' && !kinds.top()) && (at == after || at == member):
			r.pos++
			kinds.n--
			loose = loose || commas > 0
			first = true // no comma stands before it
			if err := pass(); err != nil {
				return err
			}
			if kinds.n == 0 {
				if key && !r.inFrames {
					r.blank = false
				}
				return nil
			}
			at = after
		case at == after:
			return broken()
		case c == '"':
			isKey := at == member && inObject()
			if err := r.skipString(isKey, where, pass); err != nil {
				return fail(err)
			}
			at = after
			if isKey {
				at, hasKey = colon, r.mark == r.pos
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
			if err := pass(); err != nil {
				return err
			}
			first = true
		case literalByte[c]:
			valid, err := r.skipLiteral(pass)
			if err != nil {
				return fail(err)
			}
			loose = loose || !valid
			at = after
		default:
			return broken()
		}
		if at == after {
			if err := pass(); err != nil {
				return err
			}
			if kinds.n == 0 {
				if key && !r.inFrames {
					r.blank = false
				}
				return nil
			}
		}
	}
}

// passValue passes on what is held of a value: the separator before it, a key perhaps, and a whole token.
func (r *Reader) passValue(where string, loose bool, commas int, first bool) error {
	held := r.buf[r.mark:r.pos]
	var fault textFault
	if !r.opts.Checked {
		fault = faultOf(held)
	}
	if fault.odd = fault.odd || loose; fault == (textFault{}) {
		return r.pass()
	}
	if err := r.tellFault(r.base+int64(r.mark), where, fault); err != nil {
		return err
	}
	r.mark = r.pos
	r.fixed = r.fixed[:0]
	if commas > 0 && !first || r.owed {
		r.owed = false
		r.fixed = append(r.fixed, ',')
	}
	for len(held) > 0 && (isSpace(held[0]) || held[0] == ',') {
		if held[0] != ',' {
			r.fixed = append(r.fixed, held[0])
		}
		held = held[1:]
	}
	r.fixed = r.scan.fix(r.fixed, held)
	return r.outside(r.fixed)
}

// skipLiteral steps over the number or word at pos, and reports whether it is valid. Of one that is
// larger than a megabyte the digits that it begins with are passed on.
func (r *Reader) skipLiteral(pass func() error) (valid bool, err error) {
	from := r.pos - r.mark // mark may move
	digits, passed := true, false
	for {
		for r.pos < r.end && literalByte[r.buf[r.pos]] {
			if c := r.buf[r.pos]; digits && (c < '0' || c > '9') && (passed || r.pos > r.mark+from) {
				if digits = false; passed {
					if err := r.pass(); err != nil {
						return false, err
					}
				}
			}
			r.pos++
		}
		if passed && !digits {
			r.mark = r.pos
		}
		if r.pos < r.end {
			break
		}
		if r.end-r.mark >= 1<<20 {
			switch text := r.buf[r.mark+from : r.pos]; {
			case passed && digits:
				if err := r.pass(); err != nil {
					return false, err
				}
			case digits && validLiteral(text):
				if err := pass(); err != nil {
					return false, err
				}
			default: // no number that anybody would write
				r.pos = r.mark + from
				r.buf[r.pos] = '0'
				r.pos++
				if err := pass(); err != nil {
					return false, err
				}
				r.pos, r.mark = r.end, r.end
				digits = false
			}
			passed, from = true, 0
		}
		if !r.more(1 << 30) {
			break
		}
	}
	if r.srcErr != nil {
		return false, r.srcErr
	}
	if r.pos == r.end {
		if passed { // ends any number that began well
			if err := r.outside([]byte{'0'}); err != nil {
				return false, err
			}
		}
		return false, io.ErrUnexpectedEOF
	}
	return passed || validLiteral(r.buf[r.mark+from:r.pos]), nil
}

// errInString says that the input ended in a string that was closed.
var errInString = io.ErrUnexpectedEOF

// skipString steps over the string at pos. One that is larger than a megabyte
// is passed on in parts and, if it has no end, closed; nothing of it is held then.
func (r *Reader) skipString(isKey bool, where string, pass func() error) error {
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
	if err := pass(); err != nil { // what stands before it
		return err
	}
	r.pos++
	if err := r.pass(); err != nil {
		return err
	}
	for {
		// Step over what is plain; a backslash and what it escapes stay together, and so do the
		// bytes of a character.
		b := r.buf[:r.end]
		ends := false
		for r.pos < r.end {
			i := bytes.IndexAny(b[r.pos:], `"\`)
			if i < 0 {
				r.pos = r.end
				for k := 1; k < utf8.UTFMax && !r.eof && r.end-k >= r.mark; k++ {
					if c := b[r.end-k:]; utf8.RuneStart(c[0]) {
						if !utf8.FullRune(c) {
							r.pos = r.end - k
						}
						break
					}
				}
				break
			}
			r.pos += i
			if ends = b[r.pos] == '"'; ends || r.end-r.pos < 6 && !r.eof {
				break
			}
			r.pos += max(1, escapeLen(b[r.pos:]))
		}
		if err := r.passText(where); err != nil {
			return err
		}
		if ends {
			r.pos++
			return r.pass()
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

// passText passes on what is held of a string.
func (r *Reader) passText(where string) error {
	held := r.buf[r.mark:r.pos]
	var fault textFault
	if !r.opts.Checked {
		fault.add(held)
	}
	if fault == (textFault{}) {
		return r.pass()
	}
	if err := r.tellFault(r.base+int64(r.mark), where, fault); err != nil {
		return err
	}
	r.mark = r.pos
	r.fixed = fixString(r.fixed[:0], held)
	return r.outside(r.fixed)
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
