package chromium

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// skipValue passes on one value, and with key the member that it is the value
// of, of any size. Bytes go to Outside as soon as the document could be closed
// behind them; what is no JSON is put right as in events.
func (r *Reader) skipValue(where string, key bool) error {
	commas := bytes.Count(r.buf[r.mark:r.pos], []byte{','}) // before what is at pos
	s := skipper{r: r, where: where, key: key, commas: commas, first: commas == 0}
	if key {
		s.at = atMember
	}
	r.skip.n = 0
	for s.at != atEndOfValue {
		c, ok, err := r.peek()
		if err != nil {
			return err
		}
		if !ok {
			return s.fail(io.ErrUnexpectedEOF)
		}
		if err := s.step(c); err != nil {
			return err
		}
		if s.at == behindValue {
			if err := s.pass(); err != nil {
				return err
			}
			if r.skip.n == 0 {
				s.at = atEndOfValue
				if key && !r.inFrames {
					r.blank = false
				}
			}
		}
	}
	return nil
}

// A skipper is where skipValue has come to; the brackets that are open are in Reader.skip.
type skipper struct {
	r      *Reader
	where  string
	key    bool // it is the value of a member, which is passed on as well
	at     skipState
	commas int  // in what is held
	first  bool // what is held stands behind an opening bracket, or is all: no comma stands before it
	loose  bool // what is held is no valid JSON
	hasKey bool // a key is out, and its value is not
}

// A skipState says what is due.
type skipState uint8

const (
	atValue      skipState = iota
	atMember               // behind an opening bracket or a comma: a key, a value or the end
	atColon                // behind a key
	behindValue            // a comma or the end
	atEndOfValue           // nothing: all is passed on, or given up
)

// step passes on the token that begins with c, at pos.
func (s *skipper) step(c byte) error {
	r := s.r
	switch {
	case s.at == atColon:
		if c != ':' {
			return s.broken()
		}
		r.pos++
		s.at = atValue
	case c == ',' && (s.at == behindValue || s.at == atMember):
		r.pos++
		if s.commas++; s.commas > 1 || s.first {
			s.loose = true
		}
		s.at = atMember
	case c == '}' || c == ']':
		if !s.closes(c) {
			return s.broken()
		}
		r.pos++
		r.skip.n--
		s.loose = s.loose || s.commas > 0
		s.first = true // no comma stands before it
		s.at = behindValue
	case s.at == behindValue:
		return s.broken()
	case c == '"':
		return s.quoted()
	case s.at == atMember && s.inObject():
		return s.broken()
	case c == '{' || c == '[':
		return s.enter(c)
	case literalByte[c]:
		valid, err := s.skipLiteral()
		if err != nil {
			return s.fail(err)
		}
		s.loose = s.loose || !valid
		s.at = behindValue
	default:
		return s.broken()
	}
	return nil
}

// closes reports whether the bracket c ends the innermost value that is open.
func (s *skipper) closes(c byte) bool {
	kinds := &s.r.skip
	return kinds.n > 0 && kinds.top() == (c == '}') && (s.at == behindValue || s.at == atMember)
}

// inObject reports whether members have keys here.
func (s *skipper) inObject() bool {
	kinds := &s.r.skip
	return kinds.n == 0 && s.key || kinds.n > 0 && kinds.top()
}

// enter steps over the opening bracket c.
func (s *skipper) enter(c byte) error {
	r := s.r
	if r.skip.n == r.opts.MaxDepth {
		return &FormatError{Offset: r.base + int64(r.pos), Where: s.where, Err: fmt.Errorf("%w of %d", ErrTooDeep, r.opts.MaxDepth)}
	}
	r.skip.push(c == '{')
	r.pos++
	s.at = atMember
	if err := s.pass(); err != nil {
		return err
	}
	s.first = true
	return nil
}

// quoted steps over the string at pos, a key or a value.
func (s *skipper) quoted() error {
	r := s.r
	isKey := s.at == atMember && s.inObject()
	if j := stringEnd(r.buf[:r.end], r.pos+1); j >= 0 {
		r.pos = j + 1
	} else if err := s.longString(isKey); err != nil {
		return s.fail(err)
	}
	s.at = behindValue
	if isKey {
		s.at, s.hasKey = atColon, r.mark == r.pos
	}
	return nil
}

// fail closes what is open if the input has ended.
func (s *skipper) fail(err error) error {
	if err != io.ErrUnexpectedEOF {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	return s.r.cut(s.r.base+int64(s.r.end), s.where)
}

// broken gives up on the value, at pos: what was passed on of it is closed.
func (s *skipper) broken() error {
	r := s.r
	s.at = atEndOfValue
	off := r.base + int64(r.pos)
	err := &FormatError{Offset: off, Where: s.where, Err: fmt.Errorf("%w: found %q", ErrSyntax, r.buf[r.pos])}
	if r.opts.Strict {
		return err
	}
	if s.hasKey || r.skip.n > 0 {
		r.blank = false
	}
	if err := s.close(); err != nil {
		return err
	}
	r.mark = r.pos
	if !s.key {
		return r.warn(off, s.where, err.Err)
	}
	return r.brokenValue(err)
}

// close writes what is missing behind what was passed on.
func (s *skipper) close() error {
	r := s.r
	if s.hasKey {
		if err := r.outside([]byte(":null")); err != nil {
			return err
		}
	}
	for ; r.skip.n > 0; r.skip.n-- {
		c := byte(']')
		if r.skip.top() {
			c = '}'
		}
		if err := r.outside([]byte{c}); err != nil {
			return err
		}
	}
	return nil
}

// pass passes on what is held: the separator before it, a key perhaps, and a whole token.
func (s *skipper) pass() error {
	r := s.r
	separated, loose := s.commas > 0 && !s.first, s.loose
	s.commas, s.first, s.loose, s.hasKey = 0, false, false, false
	held := r.buf[r.mark:r.pos]
	var fault textFault
	if !r.opts.Checked {
		fault = faultOf(held)
	}
	if fault.odd = fault.odd || loose; fault == (textFault{}) {
		return r.pass()
	}
	if err := r.tellFault(r.base+int64(r.mark), s.where, fault); err != nil {
		return err
	}
	r.mark = r.pos
	r.fixed = r.fixed[:0]
	if separated || r.owed {
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
func (s *skipper) skipLiteral() (valid bool, err error) {
	r := s.r
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
				if err := s.pass(); err != nil {
					return false, err
				}
			default: // no number that anybody would write
				r.pos = r.mark + from
				r.buf[r.pos] = '0'
				r.pos++
				if err := s.pass(); err != nil {
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

// longString steps over the string at pos, whose end is not held. One that is larger than a megabyte
// is passed on in parts and, if it has no end, closed; nothing of it is held then.
func (s *skipper) longString(isKey bool) error {
	r := s.r
	for r.more(1 << 20) {
		if j := stringEnd(r.buf[:r.end], r.pos+1); j >= 0 {
			r.pos = j + 1
			return nil
		}
	}
	if r.srcErr != nil {
		return r.srcErr
	}
	if r.eof && r.end-r.mark < 1<<20 {
		return io.ErrUnexpectedEOF
	}
	if err := s.pass(); err != nil { // what stands before it
		return err
	}
	r.pos++
	if err := r.pass(); err != nil {
		return err
	}
	for {
		ends := r.skipText()
		if err := r.passText(s.where); err != nil {
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

// skipText steps over what is held of a string, and reports whether it came to its end. A backslash
// and what it escapes stay together, and so do the bytes of a character.
func (r *Reader) skipText() (ends bool) {
	b := r.buf[:r.end]
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
			return false
		}
		r.pos += i
		if b[r.pos] == '"' {
			return true
		}
		if r.end-r.pos < 6 && !r.eof {
			return false
		}
		r.pos += max(1, escapeLen(b[r.pos:]))
	}
	return false
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
