package export

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// appendMicros appends ns as microseconds with as many of three decimals as it needs.
func appendMicros(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/1000, 10)
	f := u % 1000
	if f == 0 {
		return b
	}
	b = append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// appendFloat appends a number that JSON can hold; what it cannot becomes a string.
func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return text.AppendJSON(b, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendValue appends the value of an argument.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return text.AppendJSON(b, v)
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
		return text.AppendJSON(b, err.Error())
	}
	return append(b, t...)
}

// appendMark appends what a repair says of the frames it put back.
func appendMark(b []byte, r *profile.Repair) []byte {
	b = append(b, `{"how":`...)
	b = text.AppendJSON(b, r.How)
	b = append(b, `,"restored":`...)
	b = strconv.AppendInt(b, int64(r.Restored), 10)
	b = append(b, `,"confidence":`...)
	b = appendConfidence(b, float64(r.Confidence))
	if r.Restored > r.Above && r.BaseConfidence > 0 {
		b = append(b, `,"base_confidence":`...)
		b = appendConfidence(b, float64(r.BaseConfidence))
	}
	if r.Above > 0 {
		b = append(b, `,"above":`...)
		b = strconv.AppendInt(b, int64(r.Above), 10)
		if r.AboveConfidence > 0 { // what an earlier repair was sure of, a file does not always tell
			b = append(b, `,"above_confidence":`...)
			b = appendConfidence(b, float64(r.AboveConfidence))
		}
	}
	return append(b, '}')
}

// appendConfidence appends a share with three decimals: more would be noise.
func appendConfidence(b []byte, v float64) []byte {
	if math.IsNaN(v) {
		v = 0
	}
	return appendFloat(b, math.Round(max(0, min(1, v))*1000)/1000)
}
