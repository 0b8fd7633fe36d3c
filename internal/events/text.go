package events

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

// A textForm lays out the lines for people: time, thread, event, activity, payload.
type textForm struct {
	width int
	color bool
	title int // width of the column of events, which grows with what is in it
	multi bool
}

// Columns. Text is aligned where it fits and shifted where it does not: what is
// written cannot wait for the widest line.
const (
	msWidth     = 13
	tidWidth    = 7
	titleWidth  = 36
	maxTitle    = 56
	valueLimit  = 2000 // bytes of one value where no width limits the line
	elementsMax = 32
)

func (t *textForm) init(o *Options, h *nettrace.Header) {
	t.width, t.color, t.title = o.Width, o.Color, titleWidth
	t.multi = h.Version >= 6
	if t.width > 0 {
		t.title = min(titleWidth, max(16, t.width/3))
	}
}

const (
	dim   = "\x1b[2m"
	bold  = "\x1b[1m"
	reset = "\x1b[0m"
)

// appendText appends the line of one event.
func (l *lister) appendText(b []byte, ev *nettrace.Event, k *kind, ns int64) []byte {
	t := &l.text
	start := len(b)
	b = appendPadded(b, msWidth, func(b []byte) []byte { return appendMsFixed(b, ns) })
	b = append(b, ' ')
	b = appendPadded(b, tidWidth, func(b []byte) []byte {
		if t.multi {
			b = append(strconv.AppendInt(b, int64(ev.ProcessID), 10), '/')
		}
		return strconv.AppendUint(b, ev.ThreadID, 10)
	})
	b = append(b, ' ', ' ')
	mark := func(s string) {
		if t.color {
			b = append(b, s...)
		}
	}
	mark(bold)
	at := len(b)
	b = text.AppendedLine(append(b, k.title...), at)
	n := utf8.RuneCount(b[at:])
	if n > t.title && n <= maxTitle && t.width == 0 {
		t.title = n
	}
	mark(reset)
	for ; n < t.title; n++ {
		b = append(b, ' ')
	}
	if !ev.ActivityID.IsZero() {
		b = append(b, ' ', ' ')
		mark(dim)
		at := len(b)
		if b = l.paths.append(b, ev.ActivityID, ev.ProcessID); len(b) == at {
			b = ev.ActivityID.AppendTo(b)
		}
		mark(reset)
	}
	at = len(b)
	b = text.AppendedLine(l.appendTextPayload(b, ev, k), at)
	for b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	if t.width > 0 {
		b = cutLine(b, start, t.width)
		if t.color {
			b = append(b, reset...)
		}
	}
	return append(b, '\n')
}

// appendPadded appends what f appends, with blanks before it up to width.
func appendPadded(b []byte, width int, f func([]byte) []byte) []byte {
	at := len(b)
	b = f(b)
	if pad := width - (len(b) - at); pad > 0 {
		for range pad {
			b = append(b, ' ')
		}
		copy(b[at+pad:], b[at:len(b)-pad])
		for i := range pad {
			b[at+i] = ' '
		}
	}
	return b
}

// appendMsFixed appends milliseconds with six decimals, so that they align.
func appendMsFixed(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/1e6, 10)
	b = append(b, '.')
	rest := u % 1e6
	for d := uint64(1e5); d > 0; d /= 10 {
		b = append(b, '0'+byte(rest/d%10))
	}
	return b
}

// cutLine shortens the line from start on to width characters; marks of ours take no place.
func cutLine(b []byte, start, width int) []byte {
	if len(b)-start <= width {
		return b
	}
	n := 0
	last := start // where the last character that fits begins
	for i := start; i < len(b); {
		if b[i] == reset[0] {
			i += bytes.IndexByte(b[i:], reset[len(reset)-1]) + 1
			continue
		}
		_, size := utf8.DecodeRune(b[i:])
		if n++; n == width {
			last = i
		} else if n > width {
			return append(b[:last], "…"...)
		}
		i += size
	}
	return b
}

func (l *lister) appendTextPayload(b []byte, ev *nettrace.Event, k *kind) []byte {
	if k.layout == nil {
		if len(ev.Payload) > 0 {
			b = append(b, "  raw="...)
			b = appendHex(b, ev.Payload[:min(len(ev.Payload), valueLimit)])
			if len(ev.Payload) > valueLimit {
				b = append(b, "…"...)
			}
		}
		return b
	}
	var err error
	l.values, err = ev.AppendValues(l.values[:0])
	first := true
	for i := range l.values {
		v := &l.values[i]
		if i >= len(k.layout.Fields) || noWord(v) {
			continue
		}
		b = append(b, ' ')
		if first {
			b = append(b, ' ')
			first = false
		}
		f := &k.layout.Fields[i]
		if f.Name != "" {
			b = append(append(b, f.Name...), '=')
		}
		b = appendTextValue(b, v, f)
	}
	if err != nil {
		b = append(append(b, "  !"...), err.Error()...)
	} else if rest := ev.Rest(l.values); len(rest) > 0 {
		b = appendHex(append(b, " rest="...), rest[:min(len(rest), valueLimit)])
		if len(rest) > valueLimit {
			b = append(b, "…"...)
		}
	}
	return b
}

// noWord reports whether v is not worth a place on the line: it is missing, or empty text.
func noWord(v *nettrace.Value) bool {
	return v.Kind() == nettrace.KindNone || v.Kind() == nettrace.KindString && len(v.Text().Raw()) == 0
}

// appendTextValue appends a value as one would write it: text in quotes only where
// it needs them.
func appendTextValue(b []byte, v *nettrace.Value, f *nettrace.Field) []byte {
	switch v.Kind() {
	case nettrace.KindString:
		at := len(b)
		b = v.AppendText(b)
		if len(b)-at > valueLimit {
			n := at + valueLimit
			for n > at && !utf8.RuneStart(b[n]) {
				n--
			}
			b = append(b[:n], "…"...)
		}
		if plain(b[at:]) {
			return b
		}
		b = append(b, 0)
		copy(b[at+1:], b[at:])
		b[at] = '"'
		return append(text.EscapeJSON(b, at+1), '"')
	case nettrace.KindUint, nettrace.KindInt:
		switch f.Type {
		case nettrace.TypeHex32, nettrace.TypeHex64, nettrace.TypePointer:
			return strconv.AppendUint(append(b, "0x"...), v.Uint(), 16)
		}
		return appendValue(b, v)
	case nettrace.KindFloat:
		x := v.Float()
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return strconv.AppendFloat(b, x, 'g', -1, 64)
		}
		return appendValue(b, v)
	case nettrace.KindGUID:
		return v.GUID().AppendTo(b)
	case nettrace.KindTime:
		return appendTime(b, v.Time())
	case nettrace.KindBytes:
		raw := v.Bytes()
		b = appendHex(b, raw[:min(len(raw), valueLimit)])
		if len(raw) > valueLimit {
			b = append(b, "…"...)
		}
		return b
	case nettrace.KindArray:
		b = append(b, '[')
		n := 0
		var e nettrace.Value
		for w := v.Walk(); w.Next(&e); {
			if n > 0 {
				b = append(b, ' ')
			}
			if n++; n > elementsMax {
				b = append(b, "…"...)
				break
			}
			b = appendTextValue(b, &e, w.Field())
		}
		return append(b, ']')
	case nettrace.KindObject:
		b = append(b, '{')
		at := len(b)
		var x nettrace.Value
		for w := v.Walk(); w.Next(&x); {
			m := w.Field()
			if noWord(&x) {
				continue
			}
			if len(b) > at {
				b = append(b, ' ')
			}
			if m.Name != "" {
				b = append(append(b, m.Name...), '=')
			}
			b = appendTextValue(b, &x, m)
		}
		return append(b, '}')
	}
	return appendValue(b, v)
}

// plain reports whether text can stand without quotes.
func plain(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c == '"' || c == '=' || c == 0x7f {
			return false
		}
	}
	return true
}
