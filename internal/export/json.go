package export

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tracefix/tracefix/profile"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string: raw UTF-8, escapes only where JSON needs
// them (Perfetto refuses surrogate pairs), invalid bytes as U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(b, s[from:i]...)
				b = append(b, "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(b, s[from:]...)
}

// appendMicros appends ns as microseconds with as many of three decimals as it needs.
func appendMicros(b []byte, ns int64) []byte { return appendFixed(b, ns, 1000, 3) }

// appendMillis appends ns as milliseconds with as many of six decimals as it needs.
func appendMillis(b []byte, ns int64) []byte { return appendFixed(b, ns, 1_000_000, 6) }

// appendFixed appends v/unit exactly; unit is 10 to the power of digits.
func appendFixed(b []byte, v, unit int64, digits int) []byte {
	u := uint64(v)
	if v < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/uint64(unit), 10)
	f := u % uint64(unit)
	if f == 0 {
		return b
	}
	b = append(b, '.')
	at := len(b)
	for range digits {
		b = append(b, '0')
	}
	for i := at + digits - 1; f > 0; i-- {
		b[i] = byte('0' + f%10)
		f /= 10
	}
	end := len(b)
	for b[end-1] == '0' {
		end--
	}
	return b[:end]
}

// appendFloat appends a number that JSON can hold; what it cannot becomes a string.
func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return appendString(b, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendValue appends the value of an argument.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case json.RawMessage:
		return append(b, v...)
	}
	// The model promises the types above; anything else is still told, as text.
	t, err := json.Marshal(v)
	if err != nil {
		return appendString(b, err.Error())
	}
	return append(b, t...)
}

// appendMark appends what a repair says of the frames it put back.
func appendMark(b []byte, r *profile.Repair) []byte {
	b = append(b, `{"how":`...)
	b = appendString(b, r.How)
	b = append(b, `,"restored":`...)
	b = strconv.AppendInt(b, int64(r.Restored), 10)
	b = append(b, `,"confidence":`...)
	b = appendConfidence(b, float64(r.Confidence))
	return append(b, '}')
}

// appendConfidence appends a share with three decimals: more would be noise.
func appendConfidence(b []byte, v float64) []byte {
	if math.IsNaN(v) {
		v = 0
	}
	return appendFloat(b, math.Round(max(0, min(1, v))*1000)/1000)
}
