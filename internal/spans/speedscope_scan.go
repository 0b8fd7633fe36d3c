package spans

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// A scanner reads JSON that may be damaged: what does not belong where it stands is told and
// passed over, so that one wrong byte costs what it is part of and no more.
type scanner struct {
	r     *bufio.Reader
	off   int64
	err   error // of the input, io.EOF at its end
	tok   []byte
	raw   bool // a string held raw control bytes
	last  bool // what is told now is that the input ended
	short bool // strings are single words: one that holds punctuation has lost its end
	warn  func(*SpeedscopeError)
	told  int
	where string
	keep  *bytes.Buffer // what is consumed goes here as well; nil: nowhere
}

const (
	maxString = 1 << 20 // bytes of a name
	maxTold   = 1000
)

func newScanner(r io.Reader, warn func(*SpeedscopeError)) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 64<<10), warn: warn, where: "the file"}
}

var errStop = errors.New("stop") // of scanner.err: an array is over although its bracket was not read

// damage tells of damage here. Its words do not say that it is damage: whoever prints them does.
func (s *scanner) damage(format string, args ...any) {
	s.damageAt(s.off, format, args...)
}

func (s *scanner) damageAt(at int64, format string, args ...any) {
	if s.err != nil && !s.last {
		return // it is the input that ends here, which is told once
	}
	if s.told++; s.told <= maxTold && s.warn != nil {
		s.warn(&SpeedscopeError{at, s.where, fmt.Errorf(format, args...)})
	}
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	b, err := s.r.Peek(1)
	if err != nil {
		s.err = err
		return 0
	}
	return b[0]
}

func (s *scanner) next() byte {
	c, err := s.r.ReadByte()
	if err != nil {
		s.err = err
		return 0
	}
	s.off++
	if s.keep != nil {
		s.keep.WriteByte(c)
	}
	return c
}

func (s *scanner) ended() bool { return s.err != nil }

// space passes over blanks and returns the byte behind them.
func (s *scanner) space() byte {
	for {
		switch c := s.peek(); c {
		case ' ', '\n', '\r', '\t':
			s.next()
		default:
			return c
		}
	}
}

// ahead returns the next bytes without blanks, at most n of the next 4n.
func (s *scanner) ahead(n int) string {
	b, _ := s.r.Peek(4 * n)
	out := make([]byte, 0, n)
	for _, c := range b {
		if c > ' ' {
			if out = append(out, c); len(out) == n {
				break
			}
		}
	}
	return string(out)
}

// str reads a string whose quote is next. It is not whole where it has no end.
func (s *scanner) str() (whole bool) {
	s.next()
	s.tok = s.tok[:0]
	s.raw = false
	for {
		c := s.next()
		switch {
		case s.ended() || len(s.tok) > maxString:
			return false
		case c == '"':
			return true
		case s.short && (c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':'):
			_ = s.r.UnreadByte() // it was just read
			s.off--
			return false
		case c == '\\':
			s.escape()
			continue
		case c < ' ':
			s.raw = true
		}
		s.tok = append(s.tok, c)
	}
}

func (s *scanner) escape() {
	switch c := s.next(); c {
	case 'b':
		s.tok = append(s.tok, '\b')
	case 'f':
		s.tok = append(s.tok, '\f')
	case 'n':
		s.tok = append(s.tok, '\n')
	case 'r':
		s.tok = append(s.tok, '\r')
	case 't':
		s.tok = append(s.tok, '\t')
	case 'u':
		b, _ := s.r.Peek(4)
		n, err := strconv.ParseUint(string(b), 16, 16)
		if err != nil {
			s.damage("escape \\u%s", b)
			return
		}
		for range 4 {
			s.next()
		}
		r := rune(n)
		if n >= 0xd800 && n < 0xdc00 { // the first half of a pair
			if b, _ := s.r.Peek(6); len(b) == 6 && b[0] == '\\' && b[1] == 'u' {
				if lo, err := strconv.ParseUint(string(b[2:]), 16, 16); err == nil && lo >= 0xdc00 && lo < 0xe000 {
					for range 6 {
						s.next()
					}
					r = rune((n-0xd800)<<10|(lo-0xdc00)) + 0x10000
				}
			}
		}
		s.tok = utf8.AppendRune(s.tok, r)
	default:
		s.tok = append(s.tok, c)
	}
}

// A value is one without braces or brackets, or the first byte of one with.
type value struct {
	kind byte // '"' string, '0' number, 'a' another word, '{', '[', 0 nothing
	num  float64
}

// value reads a value; the text of a string is in s.tok. Of an object or array nothing is consumed.
func (s *scanner) value() value {
	switch c := s.space(); {
	case c == '{' || c == '[':
		return value{kind: c}
	case c == '"':
		at := s.off
		if !s.str() {
			s.damageAt(at, "a string without end")
		} else if s.raw {
			s.damageAt(at, "raw control bytes in a string")
		}
		return value{kind: '"'}
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
		return s.literal()
	}
	return value{}
}

// literal reads a number or a word.
func (s *scanner) literal() value {
	s.tok = s.tok[:0]
	for {
		c := s.peek()
		if c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') || len(s.tok) > 64 {
			break
		}
		s.tok = append(s.tok, s.next())
	}
	if n, ok := jsonNumber(s.tok); ok {
		return value{kind: '0', num: n}
	}
	return value{kind: 'a'}
}

// jsonNumber reads a number as JSON has them.
func jsonNumber(b []byte) (float64, bool) {
	if len(b) == 0 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return 0, false
	}
	for _, c := range b {
		if c|0x20 == 'x' || c|0x20 == 'p' || c == '_' {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(string(b), 64)
	return n, err == nil
}

// skip passes over a value of any depth.
func (s *scanner) skip() {
	depth := 0
	for {
		switch c := s.space(); {
		case s.ended():
			return
		case c == '{' || c == '[':
			s.next()
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return
			}
			s.next()
			depth--
		case c == '"':
			s.str()
		default:
			s.next()
			if depth == 0 && c != ':' {
				s.literal()
			}
		}
		if depth == 0 {
			return
		}
	}
}

// object calls each for the keys of an object, whose brace is next or was consumed. each
// consumes the value and reports whether the object goes on. The result is false where the object
// broke off; what stands there is next.
func (s *scanner) object(opened bool, each func(key string) bool) bool {
	if !opened {
		if c := s.space(); c != '{' {
			s.damage("%s where { should be", show(c))
			return false
		}
		s.next()
	}
	for first := true; ; first = false {
		switch c := s.space(); {
		case s.ended():
			return false
		case c == '}':
			s.next()
			return true
		case c == ',' && !first:
			s.next()
		case c == '"':
			if !first {
				s.damage("no comma before a key")
			}
		case !first && c != '{' && c != '[' && c != ']':
			at := s.off
			s.next()
			if s.space() != '"' {
				s.damageAt(at, "%s where , or } should be", show(c))
				return false
			}
			s.damageAt(at, "%s where , should be", show(c))
		default:
			s.damage("%s where , or } should be", show(c))
			return false
		}
		if s.space() != '"' {
			if s.peek() == '}' {
				continue
			}
			s.damage("%s where a key should be", show(s.peek()))
			return false
		}
		at := s.off
		if !s.str() || len(s.tok) > 256 {
			s.damageAt(at, "a key without end")
			return false
		}
		key := string(s.tok)
		if c := s.space(); c != ':' {
			s.damage("%s where : should be", show(c))
			if c == '"' || c == '{' || c == '[' || c == ',' || c == '}' || c == ']' {
				return false
			}
		}
		s.next()
		if !each(key) {
			return false
		}
	}
}

// elements calls each at every element of an array, whose bracket is next: at its brace, or at
// what stands in its place. more says whether the array goes on where it seems to end.
func (s *scanner) elements(each func(), more func() bool) {
	if c := s.space(); c != '[' {
		s.damage("%s where [ should be", show(c))
	}
	if s.peek() != 'n' { // null
		s.next()
	}
	for first := true; ; {
		switch c := s.space(); {
		case s.ended():
			return
		case c == ']':
			s.next()
			if !more() {
				return
			}
			s.damage("] where no array ends")
		case c == ',':
			s.next()
		case c == '{':
			each()
			first = false
		case c == '}' && !first:
			// The bracket is missing: the object around the array ends.
			if !more() {
				s.damage("} where ] should be")
				return
			}
			s.next()
		default:
			s.damage("%s where { should be", show(c))
			s.next()
			s.toBrace()
		}
	}
}

// toBrace passes over bytes up to the next brace or bracket that may begin or end something.
func (s *scanner) toBrace() {
	for {
		switch c := s.peek(); {
		case s.ended() || c == '{' || c == '}' || c == ']':
			return
		}
		s.next()
	}
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func show(c byte) string {
	if c == 0 {
		return "nothing"
	}
	return strconv.QuoteRune(rune(c))
}
