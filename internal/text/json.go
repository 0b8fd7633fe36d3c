package text

import (
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendJSON appends s as a JSON string: raw UTF-8, escapes only where JSON needs them
// (Perfetto refuses surrogate pairs), invalid bytes as U+FFFD.
func AppendJSON(dst []byte, s string) []byte {
	dst = append(dst, '"')
	at := len(dst)
	dst = append(dst, s...)
	return append(EscapeJSON(dst, at), '"')
}

// EscapeJSON escapes what dst holds from at on for a JSON string. Almost all text
// needs no escape, so it is looked at where it stands.
func EscapeJSON(dst []byte, at int) []byte {
	for i := at; i < len(dst); i++ {
		if c := dst[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return escapeRest(dst, i)
		}
	}
	return dst
}

// escapeRest is the slow path of Escape: at is the first byte that may need work.
func escapeRest(dst []byte, at int) []byte {
	extra := 0
	for i := at; i < len(dst); {
		c := dst[i]
		switch {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			extra++
		case c < 0x20:
			extra += 5
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(dst[i:])
			if r == utf8.RuneError && n == 1 {
				extra += 2 // U+FFFD takes three bytes
			}
			i += n
			continue
		}
		i++
	}
	if extra == 0 {
		return dst
	}
	// Move the text to the end of its new place and escape it from there forward.
	n := len(dst)
	dst = append(dst, make([]byte, extra)...)
	copy(dst[at+extra:], dst[at:n])
	src, out := dst[at+extra:], dst[:at]
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\r':
			out = append(out, '\\', 'r')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(src[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		default:
			out = append(out, c)
		}
		i++
	}
	return out
}

// Millis is ns in milliseconds. In JSON and in numbers that are printed in full it has the digits of
// AppendMillis.
func Millis(ns int64) float64 { return float64(ns) / 1e6 }

// AppendMillis appends ns as milliseconds with all their digits: 34.491802.
func AppendMillis(dst []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		dst = append(dst, '-')
		u = -u
	}
	dst = strconv.AppendUint(dst, u/1e6, 10)
	rest := uint32(u % 1e6)
	if rest == 0 {
		return dst
	}
	var d [6]byte
	for i := 5; i >= 0; i-- {
		d[i] = '0' + byte(rest%10)
		rest /= 10
	}
	n := 6
	for d[n-1] == '0' {
		n--
	}
	return append(append(dst, '.'), d[:n]...)
}
