package nettrace

import (
	"iter"
	"time"
)

// A Kind is the sort of a Value.
type Kind uint8

// Kinds of values.
const (
	KindNone   Kind = iota // beyond the end of a short payload
	KindBool               // Bool
	KindInt                // Int
	KindUint               // Uint
	KindFloat              // Float
	KindString             // String, AppendText
	KindGUID               // GUID
	KindTime               // Time
	KindBytes              // Bytes
	KindArray              // Elems
	KindObject             // Members
)

// A Value is one decoded field. It refers to the event's payload and is valid as long as that.
type Value struct{}

// Kind tells which of the accessors applies.
func (v *Value) Kind() Kind { return 0 }

// Int returns a signed or unsigned integer as int64.
func (v *Value) Int() int64 { return 0 }

// Uint returns an integer as uint64.
func (v *Value) Uint() uint64 { return 0 }

// Float returns a float.
func (v *Value) Float() float64 { return 0 }

// Bool returns a boolean.
func (v *Value) Bool() bool { return false }

// String returns the text of a KindString, of other kinds a readable form.
func (v *Value) String() string { return "" }

// AppendText appends the text of a KindString as UTF-8, lone surrogates as U+FFFD.
func (v *Value) AppendText(dst []byte) []byte { return dst }

// GUID returns a GUID.
func (v *Value) GUID() GUID { return GUID{} }

// Time returns a time in UTC.
func (v *Value) Time() time.Time { return time.Time{} }

// Bytes returns the bytes of a KindBytes.
func (v *Value) Bytes() []byte { return nil }

// Len is the number of elements of a KindArray or of fields of a KindObject.
func (v *Value) Len() int { return 0 }

// Elems yields the elements of a KindArray.
func (v *Value) Elems() iter.Seq[Value] { return nil }

// Members yields the fields of a KindObject.
func (v *Value) Members() iter.Seq2[*Field, Value] { return nil }

// AppendValues decodes the payload by its Layout and appends one Value per
// field of the layout to dst. Fields beyond the end of a short payload have
// KindNone; the error tells so. Without a layout it appends nothing.
func (ev *Event) AppendValues(dst []Value) ([]Value, error) { return dst, nil }

// Cursor returns a Cursor at the start of the payload.
func (ev *Event) Cursor() Cursor { return Cursor{b: ev.Payload} }

func findLayout(m *Metadata, version int) *Layout {
	if len(m.Fields) > 0 {
		return &Layout{Fields: m.Fields}
	}
	return nil
}
