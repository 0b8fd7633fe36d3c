package events

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tracefix/tracefix/nettrace"
)

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	at := len(dst)
	dst = append(dst, s...)
	return append(escapeFrom(dst, at), '"')
}

// escapeFrom escapes what dst holds from at on for a JSON string. Almost all text
// needs no escape, so it is looked at where it stands.
func escapeFrom(dst []byte, at int) []byte {
	for i := at; i < len(dst); i++ {
		if c := dst[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return escapeRest(dst, i)
		}
	}
	return dst
}

// escapeRest is the slow path of escapeFrom: at is the first byte that may need work.
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

// appendMs appends ns as milliseconds with all their digits: 34.491802.
func appendMs(dst []byte, ns int64) []byte {
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

// appendFloat appends f as JSON. What JSON has no number for becomes a string.
func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, f, form, -1, bits)
}

// appendTime appends t in UTC to 100 ns, which is what a .NET time can hold.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.0000000Z")
}

func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// appendValue appends v as JSON.
func appendValue(dst []byte, v *nettrace.Value) []byte {
	switch v.Kind() {
	case nettrace.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case nettrace.KindInt:
		return strconv.AppendInt(dst, v.Int(), 10)
	case nettrace.KindUint:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case nettrace.KindFloat:
		if v.IsFloat32() {
			return appendFloat(dst, v.Float(), 32)
		}
		return appendFloat(dst, v.Float(), 64)
	case nettrace.KindString:
		dst = append(dst, '"')
		at := len(dst)
		dst = v.AppendText(dst)
		return append(escapeFrom(dst, at), '"')
	case nettrace.KindGUID:
		dst = append(dst, '"')
		return append(v.GUID().AppendTo(dst), '"')
	case nettrace.KindTime:
		dst = append(dst, '"')
		return append(appendTime(dst, v.Time()), '"')
	case nettrace.KindBytes:
		dst = append(dst, '"')
		return append(appendHex(dst, v.Bytes()), '"')
	case nettrace.KindArray:
		dst = append(dst, '[')
		at := len(dst)
		var e nettrace.Value
		for w := v.Walk(); w.Next(&e); {
			if len(dst) > at {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, &e)
		}
		return append(dst, ']')
	case nettrace.KindObject:
		dst = append(dst, '{')
		at := len(dst)
		var m nettrace.Value
		for w := v.Walk(); w.Next(&m); {
			if m.Kind() == nettrace.KindNone {
				continue
			}
			if len(dst) > at {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, w.Field().Name), ':')
			dst = appendValue(dst, &m)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}
