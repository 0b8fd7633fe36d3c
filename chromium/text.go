package chromium

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes the raw text of a JSON string, given without its quotes.
// Invalid escapes are kept as they stand, lone surrogates become U+FFFD and
// bytes that are not UTF-8 are kept.
func Unquote(raw []byte) string {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return string(raw)
	}
	out := append(make([]byte, 0, len(raw)), raw[:i]...)
	for i < len(raw) {
		c := raw[i]
		if c != '\\' || i+1 == len(raw) {
			out = append(out, c)
			i++
			continue
		}
		switch e := raw[i+1]; e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(raw[i+2:])
			if !ok {
				out = append(out, c, e)
				break
			}
			i += 4
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(raw) > i+3 && raw[i+2] == '\\' && raw[i+3] == 'u' {
					if low, ok := hex4(raw[i+4:]); ok {
						if pair = utf16.DecodeRune(r, low); pair != utf8.RuneError {
							i += 6
						}
					}
				}
				r = pair
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c, e)
		}
		i += 2
	}
	return string(out)
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(v), err == nil && b[0] != '+' && b[0] != '-'
}

// AppendQuoted appends s as a JSON string with its quotes. Only what JSON
// demands is escaped; characters outside ASCII are written as they are, since
// Perfetto refuses surrogate escapes. Bytes that are not UTF-8 become U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
		i++
	}
	return append(dst, '"')
}

// escapeLen returns the length of the valid escape at b[0], or 0.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

// fixString appends the raw text of a string with its faults put right:
// control characters, bare quotes, bytes that are not UTF-8, and backslashes that
// start no escape, which in practice are the separators of Windows paths.
func fixString(dst, raw []byte) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\':
			n := escapeLen(raw[i:])
			if n == 0 {
				dst = append(dst, '\\', '\\')
				continue
			}
			dst = append(dst, raw[i:i+n]...)
			i += n - 1
		case c == '"':
			dst = append(dst, '\\', '"')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n - 1
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// fixLiteral appends a number or word as valid JSON: what is no number at all,
// such as NaN, becomes a string.
func fixLiteral(dst, raw []byte) []byte {
	if validLiteral(raw) {
		return append(dst, raw...)
	}
	t := raw
	neg := false
	if len(t) > 0 && (t[0] == '+' || t[0] == '-') {
		neg = t[0] == '-'
		t = t[1:]
	}
	for len(t) > 1 && t[0] == '0' && t[1]-'0' < 10 {
		t = t[1:]
	}
	var num []byte
	if neg {
		num = append(num, '-')
	}
	if len(t) > 0 && t[0] == '.' {
		num = append(num, '0')
	}
	num = append(num, t...)
	if i := bytes.IndexByte(num, '.'); i >= 0 && (i+1 == len(num) || num[i+1]-'0' > 9) {
		num = append(num[:i], num[i+1:]...)
	}
	if validNumber(num) {
		return append(dst, num...)
	}
	dst = append(dst, '"')
	dst = fixString(dst, raw)
	return append(dst, '"')
}

// fix appends the value raw, which the scanner has accepted, as valid JSON.
// Everything that was valid keeps its bytes.
func (s *scanner) fix(dst, raw []byte) []byte {
	comma := false // one is due before the next member
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == ',':
			comma = true
			i++
		case isSpace(c):
			dst = append(dst, c)
			i++
		case c == '}' || c == ']':
			comma = false
			dst = append(dst, c)
			i++
		default:
			if comma {
				// Blanks behind the comma are already out; put it before them.
				k := len(dst)
				for k > 0 && isSpace(dst[k-1]) {
					k--
				}
				if dst[k-1] != '{' && dst[k-1] != '[' {
					dst = append(dst, 0)
					copy(dst[k+1:], dst[k:])
					dst[k] = ','
				}
				comma = false
			}
			switch {
			case c == '"':
				j := s.stringEnd(raw, i+1)
				if j < 0 { // the string is the last thing in raw: a lenient end needs a byte behind it
					j = len(raw) - 1
				}
				dst = append(dst, '"')
				dst = fixString(dst, raw[i+1:j])
				dst = append(dst, '"')
				i = j + 1
			case literalByte[c]:
				j := i
				for j < len(raw) && literalByte[raw[j]] {
					j++
				}
				dst = fixLiteral(dst, raw[i:j])
				i = j
			default:
				dst = append(dst, c)
				i++
			}
		}
	}
	return dst
}

// oddByte returns the index of the first byte that is a control character, no ASCII, or a
// backslash; -1 if there is none.
func oddByte(b []byte) int {
	const each, high, escapes = 0x0101010101010101, 0x8080808080808080, 0x0101010101010101 * '\\'
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if (x-' '*each|x|((x^escapes)-each))&high == 0 {
			continue
		}
		for k, c := range b[i : i+8] {
			if isOdd(c) {
				return i + k
			}
		}
	}
	for ; i < len(b); i++ {
		if isOdd(b[i]) {
			return i
		}
	}
	return -1
}

func isOdd(c byte) bool { return c < ' ' || c >= utf8.RuneSelf || c == '\\' }

// A textFault is what is wrong with text.
type textFault struct {
	odd     bool // control characters, or escapes that JSON does not know
	strange int  // bytes that are not UTF-8
}

// faultOf looks for what is wrong with the strings of JSON text.
func faultOf(b []byte) (f textFault) {
	if oddByte(b) < 0 {
		return f
	}
	for i := 0; ; {
		k := bytes.IndexByte(b[i:], '"')
		if k < 0 {
			return f
		}
		i += k + 1
		end := stringEnd(b, i)
		if end < 0 {
			end = len(b)
		}
		f.add(b[i:end])
		if i = end + 1; i >= len(b) {
			return f
		}
	}
}

// add looks at the raw text of a string.
func (f *textFault) add(b []byte) {
	for i := 0; i < len(b); {
		k := oddByte(b[i:])
		if k < 0 {
			return
		}
		i += k
		n := 1
		switch c := b[i]; {
		case c == '\\':
			if n = escapeLen(b[i:]); n == 0 {
				f.odd = true
				n = 1
			}
		case c < ' ':
			f.odd = true
		default:
			var r rune
			if r, n = utf8.DecodeRune(b[i:]); r == utf8.RuneError && n == 1 {
				f.strange++
			}
		}
		i += n
	}
}

// tellFault warns of a fault that is put right.
func (r *Reader) tellFault(off int64, where string, f textFault) error {
	if f.odd {
		if err := r.warn(off, where, ErrString); err != nil {
			return err
		}
	}
	switch {
	case f.strange == 1:
		return r.warn(off, where, fmt.Errorf("a byte that is %w; U+FFFD stands for it", ErrUTF8))
	case f.strange > 1:
		return r.warn(off, where, fmt.Errorf("%d bytes that are %w; U+FFFD stands for each", f.strange, ErrUTF8))
	}
	return nil
}
