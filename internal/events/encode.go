package events

import (
	"math"
	"strconv"
	"time"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

const hexDigits = "0123456789abcdef"

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
		return append(text.EscapeJSON(dst, at), '"')
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
			dst = append(text.AppendJSON(dst, w.Field().Name), ':')
			dst = appendValue(dst, &m)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}
