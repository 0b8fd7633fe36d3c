package nettrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// A Kind is the sort of a Value.
type Kind uint8

// Kinds of values, and which accessors apply.
const (
	KindNone   Kind = iota // none: the payload ended before this field
	KindBool               // Bool
	KindInt                // Int
	KindUint               // Uint
	KindFloat              // Float
	KindString             // Text, String, AppendText
	KindGUID               // GUID
	KindTime               // Time
	KindBytes              // Bytes
	KindArray              // Len, Elems
	KindObject             // Len, Members
)

// A Value is a decoded field. It refers to the event's payload and is valid as
// long as that. Arrays and objects are decoded as they are walked, so a Value
// costs no memory of its own.
type Value struct {
	kind     Kind
	enc      textEncoding
	pointer  uint8
	single   bool   // of KindFloat: float32
	bits     uint64 // scalars; number of elements of an array
	payload  []byte
	off, end uint32 // of the bytes in payload
	field    *Field // the element of an array, the field of an object
}

// Kind returns which of the accessors applies.
func (v *Value) Kind() Kind { return v.kind }

// Int returns an integer or boolean as int64.
func (v *Value) Int() int64 { return int64(v.bits) }

// Uint returns an integer or boolean as uint64.
func (v *Value) Uint() uint64 { return v.bits }

// Float returns a float, or an integer as float.
func (v *Value) Float() float64 {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.bits)
	case KindInt:
		return float64(int64(v.bits))
	}
	return float64(v.bits)
}

// IsFloat32 tells a float32 from a float64, whose shortest decimal form is longer.
func (v *Value) IsFloat32() bool { return v.single }

// Bool returns a boolean.
func (v *Value) Bool() bool { return v.bits != 0 }

// Text returns the text of a KindString without copying it.
func (v *Value) Text() Text {
	if v.kind != KindString {
		return Text{}
	}
	return Text{v.payload[v.off:v.end], v.enc}
}

// AppendText appends the text of a KindString to dst as UTF-8; U+FFFD stands
// for lone surrogates and invalid bytes.
func (v *Value) AppendText(dst []byte) []byte { return v.Text().AppendTo(dst) }

// GUID returns a GUID.
func (v *Value) GUID() (g GUID) {
	if v.kind == KindGUID {
		copy(g[:], v.payload[v.off:v.end])
	}
	return g
}

// Time returns a time in UTC, with the resolution of 100 ns that FILETIME has.
func (v *Value) Time() time.Time { return fileTime(v.bits) }

// fileTime converts 100 ns since 1601-01-01.
func fileTime(t uint64) time.Time {
	const epoch = 11644473600 // seconds from 1601 to 1970
	return time.Unix(int64(t/1e7)-epoch, int64(t%1e7)*100).UTC()
}

// Bytes returns the bytes of a KindBytes, and of other kinds those that stand
// in the payload if there are such.
func (v *Value) Bytes() []byte {
	if v.payload == nil {
		return nil
	}
	return v.payload[v.off:v.end:v.end]
}

// Len is the number of elements of a KindArray or of fields of a KindObject.
func (v *Value) Len() int {
	switch v.kind {
	case KindArray:
		return int(v.bits)
	case KindObject:
		return len(v.field.Fields)
	}
	return 0
}

// Elems yields the elements of a KindArray.
func (v *Value) Elems() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		var elem Value
		for w := v.Walk(); v.kind == KindArray && w.Next(&elem); {
			if !yield(elem) {
				return
			}
		}
	}
}

// Members yields the fields of a KindObject.
func (v *Value) Members() iter.Seq2[*Field, Value] {
	return func(yield func(*Field, Value) bool) {
		var member Value
		for w := v.Walk(); v.kind == KindObject && w.Next(&member); {
			if !yield(w.Field(), member) {
				return
			}
		}
	}
}

// Walk returns a Walker at the start of a KindArray or KindObject; of other
// kinds it is empty. It is what Elems and Members are made of, for loops in
// which their functions would cost an allocation.
func (v *Value) Walk() Walker {
	w := Walker{n: v.Len(), object: v.kind == KindObject}
	if w.n > 0 {
		w.field = v.field
		// What a RelLoc or DataLoc in it points to stands behind it.
		w.c = Cursor{b: v.payload, pos: int(v.off), pointer: int(v.pointer)}
	}
	return w
}

// A Walker goes through the elements of an array or the fields of an object.
type Walker struct {
	c      Cursor
	field  *Field // the element of the array, the field that is the object
	object bool
	i, n   int
	counts counts
}

// Next decodes the next one into v. It returns false at the end, or where the payload
// ends early.
func (w *Walker) Next(v *Value) bool {
	if w.i >= w.n {
		return false
	}
	*v = Value{}
	if w.object {
		v.decode(&w.c, &w.field.Fields[w.i], &w.counts)
		w.counts.set(w.i, v.bits)
	} else {
		v.decode(&w.c, w.field, nil)
	}
	w.i++
	return w.c.err == nil
}

// Field is the field that Next decoded, the element of an array.
func (w *Walker) Field() *Field {
	if w.object {
		return &w.field.Fields[w.i-1]
	}
	return w.field
}

// String returns the text of a KindString and a readable form of other kinds.
func (v *Value) String() string { return string(v.append(nil)) }

func (v *Value) append(dst []byte) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case KindInt:
		return strconv.AppendInt(dst, v.Int(), 10)
	case KindUint:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case KindFloat:
		size := 64
		if v.single {
			size = 32
		}
		return strconv.AppendFloat(dst, v.Float(), 'g', -1, size)
	case KindString:
		return v.AppendText(dst)
	case KindGUID:
		return v.GUID().AppendTo(dst)
	case KindTime:
		return v.Time().AppendFormat(dst, time.RFC3339Nano)
	case KindBytes:
		return fmt.Appendf(dst, "%x", v.Bytes())
	case KindArray:
		dst = append(dst, '[')
		sep := ""
		for e := range v.Elems() {
			dst = e.append(append(dst, sep...))
			sep = " "
		}
		return append(dst, ']')
	case KindObject:
		dst = append(dst, '{')
		sep := ""
		for f, m := range v.Members() {
			dst = append(append(append(dst, sep...), f.Name...), ':')
			dst = m.append(dst)
			sep = " "
		}
		return append(dst, '}')
	}
	return dst
}

// counts remembers the first values of a struct, for arrays whose length another field tells.
type counts struct{ n [24]uint64 }

func (c *counts) set(i int, n uint64) {
	if i < len(c.n) {
		c.n[i] = n
	}
}

func (c *counts) get(i int) uint64 {
	if c != nil && i < len(c.n) {
		return c.n[i]
	}
	return 0
}

// AppendValues decodes the payload by the event's Layout and appends one Value
// per field of the layout to dst, whose memory is reused. Fields beyond the end
// of a short payload have KindNone, and the error is io.ErrUnexpectedEOF then.
// Bytes behind the last field are ignored: newer versions append. Without a
// layout nothing is appended; Payload has the bytes.
//
// EventSource writes some types otherwise than it declares them (booleans, decimals, small
// enumerations, integers that WriteEvent takes as wider ones). Where only that form fits the payload,
// it is the one decoded.
func (ev *Event) AppendValues(dst []Value) ([]Value, error) {
	l := ev.Layout()
	if l == nil {
		return dst, nil
	}
	return l.AppendValues(dst, ev.Payload, ev.pointerSize())
}

func (ev *Event) pointerSize() int {
	if ev.pointer == 0 {
		return 8
	}
	return int(ev.pointer)
}

// AppendValues decodes a payload by the layout; see Event.AppendValues. The
// pointer size is that of the trace's Header.
func (l *Layout) AppendValues(dst []Value, payload []byte, pointerSize int) ([]Value, error) {
	start := len(dst)
	dst, err := l.appendWhole(dst, payload, pointerSize)
	if err != nil {
		dst = append(dst, make([]Value, start+len(l.Fields)-len(dst))...)
	}
	return dst, err
}

// appendWhole is AppendValues without values for what a short payload does not hold, which may be
// far more than the payload.
func (l *Layout) appendWhole(dst []Value, payload []byte, pointerSize int) ([]Value, error) {
	start := len(dst)
	for _, fields := range l.forms {
		var c Cursor
		if dst, c = appendValues(dst[:start], fields, payload, pointerSize, false); c.err == nil && c.pos == len(payload) && !c.odd {
			return dst, nil
		}
	}
	dst, c := appendValues(dst[:start], l.Fields, payload, pointerSize, l.lengthUTF8)
	if l.lengthUTF8 && (c.err != nil || c.pos != len(payload)) {
		// Not the strings of drafts of v6: the type code means what it says.
		dst, c = appendValues(dst[:start], l.Fields, payload, pointerSize, false)
	}
	if l.located && c.err == nil && c.pos < len(payload) {
		locate(dst[start:], l.Fields, payload, c.pos)
	}
	return dst, c.err
}

// locate makes texts of the numbers that tell where one stands behind the fields, which end at end.
// The kernel's __data_loc and __rel_loc fields are declared as numbers (nettrace.md section 5.4):
// the low half is the position from the start of the record, or from behind the field, the high
// half the size with the zero at the end. What does not lead to such a text stays a number.
func locate(values []Value, fields []Field, payload []byte, end int) {
	record := 0 // where it starts: the recorder may put a value of its own before
	if f := &fields[0]; f.Type == TypeVaruint && f.Name == "Value" {
		record = int(values[0].end)
	}
	for i := range values {
		v := &values[i]
		if fields[i].Type != TypeUint32 || v.kind != KindUint {
			continue
		}
		at, size := int(v.bits&0xffff), int(v.bits>>16)
		for _, from := range [...]int{record + at, int(v.end) + at} {
			if text, ok := textAt(payload, end, from, size); ok {
				*v = Value{kind: KindString, enc: textUTF8, pointer: v.pointer, payload: payload, off: uint32(from), end: uint32(from + len(text))}
				break
			}
		}
	}
}

// textAt returns the text that takes size bytes of a payload from at on, with a zero behind it. It
// stands behind the fields, at the end of which up to 7 bytes are left for what is aligned there,
// or behind another one.
func textAt(payload []byte, end, at, size int) ([]byte, bool) {
	if size == 0 || at < end || at+size > len(payload) || at >= end+8 && payload[at-1] != 0 {
		return nil, false
	}
	text := payload[at : at+size-1]
	for _, c := range text {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return nil, false
		}
	}
	return text, payload[at+size-1] == 0 && utf8.Valid(text)
}

// Rest returns what lies in the payload behind its values, as AppendValues has appended them, up to
// the first text that a number locates: a recorder of v6 declares the fields up to the first that
// it cannot express. Zeros at the end are left out. Nil in other versions, where newer events have
// more fields than are known.
func (ev *Event) Rest(values []Value) []byte {
	l := ev.Layout()
	if ev.Metadata == nil || !ev.Metadata.row || l == nil || l.BuiltIn {
		return nil
	}
	_, c := appendValues(values[len(values):], l.Fields, ev.Payload, ev.pointerSize(), l.lengthUTF8)
	to := len(ev.Payload)
	for i := range values {
		switch v := &values[i]; {
		case i < len(l.Fields) && l.Fields[i].Type == TypeUint32 && v.kind == KindString:
			to = min(to, int(v.off))
		case int(v.end) == len(ev.Payload): // perhaps in another form
			return nil
		}
	}
	return bytes.TrimRight(ev.Payload[min(c.pos, to):to], "\x00")
}

func appendValues(dst []Value, fields []Field, payload []byte, pointerSize int, strings bool) ([]Value, Cursor) {
	c := Cursor{b: payload, pointer: pointerSize}
	var counts counts
	for i := range fields {
		f := &fields[i]
		var v Value
		if strings && f.Type == TypeUTF8 {
			v.decode(&c, &stringField, nil)
		} else {
			v.decode(&c, f, &counts)
		}
		if c.err != nil { // this field is not there, nor are those behind it
			return dst, c
		}
		counts.set(i, v.bits)
		dst = append(dst, v)
	}
	return dst, c
}

var stringField = Field{Type: TypeString16}

// Cursor returns a Cursor at the start of the payload.
func (ev *Event) Cursor() Cursor { return Cursor{b: ev.Payload, pointer: ev.pointerSize()} }

// decode reads a field; the cursor spans the payload, or an array or object in it.
func (v *Value) decode(c *Cursor, f *Field, counts *counts) {
	v.payload, v.off, v.pointer = c.b, uint32(c.pos), uint8(c.pointer)
	switch f.Type {
	case TypeString:
		v.kind, v.enc = KindString, textUTF16
		v.end = v.off + uint32(c.UTF16().Len())
		return
	case TypeUint32, TypeHex32, TypeEnum32:
		v.kind, v.bits = KindUint, uint64(c.U32())
	case TypeInt32:
		v.kind, v.bits = KindInt, uint64(c.I32())
	case TypeUint64, TypeHex64:
		v.kind, v.bits = KindUint, c.U64()
	case TypeInt64:
		v.kind, v.bits = KindInt, c.U64()
	case TypeUint8:
		v.kind, v.bits = KindUint, uint64(c.U8())
	case TypeInt8:
		v.kind, v.bits = KindInt, uint64(int8(c.U8()))
	case TypeUint16:
		v.kind, v.bits = KindUint, uint64(c.U16())
	case TypeInt16:
		v.kind, v.bits = KindInt, uint64(int16(c.U16()))
	case TypePointer:
		v.kind, v.bits = KindUint, c.Pointer()
	case TypeVaruint:
		v.kind, v.bits = KindUint, c.Varuint()
	case TypeVarint:
		v.kind, v.bits = KindInt, uint64(c.Varint())
	case TypeBool32:
		v.kind, v.bits = KindBool, uint64(c.U32())
		c.odd = c.odd || v.bits > 1
	case TypeBool8:
		v.kind, v.bits = KindBool, uint64(c.U8())
		c.odd = c.odd || v.bits > 1
	case TypeFloat64:
		v.kind, v.bits = KindFloat, c.U64()
	case TypeFloat32:
		v.kind, v.single, v.bits = KindFloat, true, math.Float64bits(float64(c.F32()))
	case TypeGUID:
		v.kind = KindGUID
		c.Skip(16)
	case TypeDateTime:
		v.kind, v.bits = KindTime, c.U64()
	case TypeDecimal:
		v.kind = KindBytes
		c.Skip(16)
	case TypeChar:
		v.kind, v.enc = KindString, textUTF16
		c.Skip(2)
	case TypeUTF8:
		v.kind, v.enc = KindString, textUTF8
		c.Skip(1)
	case TypeString8:
		v.kind, v.enc = KindString, textUTF8
		v.end = v.off + uint32(c.UTF8Z().Len())
		return
	case TypeString16:
		v.kind, v.enc = KindString, textUTF8
		v.off += 2
		c.String16()
	case TypeArray:
		n := uint64(c.U16())
		v.off += 2
		v.array(c, f.Elem, n)
	case TypeFixed:
		v.array(c, f.Elem, uint64(f.Count))
	case TypeCounted:
		v.array(c, f.Elem, counts.get(f.Count))
	case TypeRelLoc, TypeDataLoc:
		v.location(c, f)
		return
	case typeWide:
		v.wide(c, f)
		return
	case TypeObject:
		v.kind, v.field = KindObject, f
		c.skipFields(f.Fields)
	default:
		c.fail(fmt.Errorf("%w: type code %d", ErrDamaged, f.Type))
	}
	v.end = uint32(c.pos)
	if v.end < v.off { // the field is cut
		v.end = v.off
	}
}

// array makes v the array of n elements at the cursor. Characters are a string, bytes are bytes.
func (v *Value) array(c *Cursor, elem *Field, n uint64) {
	v.arrayKind(elem, n)
	c.skipArray(elem, n)
}

func (v *Value) arrayKind(elem *Field, n uint64) {
	switch elem.Type {
	case TypeChar:
		v.kind, v.enc = KindString, textUTF16
	case TypeUTF8:
		v.kind, v.enc = KindString, textUTF8
	case TypeUint8:
		v.kind = KindBytes
	default:
		v.kind, v.bits, v.field = KindArray, n, elem
	}
}

// wide reads a value that is followed by what makes it an integer of more bytes.
func (v *Value) wide(c *Cursor, f *Field) {
	at := c.pos
	v.decode(c, f.Elem, nil)
	sign := byte(0)
	if v.kind == KindInt && v.Int() < 0 {
		sign = 0xff
	}
	for _, b := range c.Bytes(at + f.Count - c.pos) {
		c.odd = c.odd || b != sign
	}
}

// location makes v the array that a RelLoc or DataLoc points to.
func (v *Value) location(c *Cursor, f *Field) {
	at := c.U32()
	if c.err != nil {
		return
	}
	pos, size := int(at&0xffff), int(at>>16)
	if f.Type == TypeRelLoc {
		pos += c.pos
	}
	each := f.Elem.fixedSize(c.pointer)
	if pos+size > len(c.b) || each <= 0 {
		c.fail(io.ErrUnexpectedEOF)
		return
	}
	v.arrayKind(f.Elem, uint64(size/each))
	v.off, v.end = uint32(pos), uint32(pos+size)
}

// skipFields passes over a struct.
func (c *Cursor) skipFields(fields []Field) {
	var counts counts
	for i := range fields {
		if c.err != nil {
			return
		}
		var v Value
		v.decode(c, &fields[i], &counts)
		counts.set(i, v.bits)
	}
}

// skipArray passes over n elements.
func (c *Cursor) skipArray(elem *Field, n uint64) {
	if n == 0 {
		return
	}
	if each := elem.fixedSize(c.pointer); each > 0 {
		if n > uint64(c.Len()/each) {
			c.fail(io.ErrUnexpectedEOF)
			return
		}
		c.Skip(int(n) * each)
		return
	}
	least := elem.leastSize(c.pointer)
	if least == 0 || n > uint64(c.Len()/least) {
		// Elements without bytes could be repeated forever.
		c.fail(io.ErrUnexpectedEOF)
		return
	}
	for range n {
		var v Value
		if v.decode(c, elem, nil); c.err != nil {
			return
		}
	}
}

const hugeSize = 1 << 30

// fixedSize is the size of a field that always has the same, else -1.
func (f *Field) fixedSize(pointer int) int {
	switch f.Type {
	case TypeFixed:
		if each := f.Elem.fixedSize(pointer); each >= 0 {
			return min(hugeSize, f.Count*each)
		}
		return -1
	case TypeObject:
		sum := 0
		for i := range f.Fields {
			each := f.Fields[i].fixedSize(pointer)
			if each < 0 {
				return -1
			}
			sum = min(hugeSize, sum+each)
		}
		return sum
	case TypeString, TypeString8, TypeString16, TypeArray, TypeCounted, TypeVarint, TypeVaruint, TypeRelLoc, TypeDataLoc:
		return -1
	}
	return f.leastSize(pointer)
}

// leastSize is the least number of bytes that a field can have.
func (f *Field) leastSize(pointer int) int {
	switch f.Type {
	case TypeInt8, TypeUint8, TypeBool8, TypeUTF8, TypeVarint, TypeVaruint, TypeString8:
		return 1
	case TypeInt16, TypeUint16, TypeChar, TypeString, TypeString16, TypeArray:
		return 2
	case TypeBool32, TypeInt32, TypeUint32, TypeFloat32, TypeHex32, TypeEnum32, TypeRelLoc, TypeDataLoc:
		return 4
	case TypeInt64, TypeUint64, TypeFloat64, TypeHex64, TypeDateTime:
		return 8
	case TypeGUID, TypeDecimal:
		return 16
	case TypePointer:
		return pointer
	case TypeFixed:
		return min(hugeSize, f.Count*f.Elem.leastSize(pointer))
	case TypeObject:
		sum := 0
		for i := range f.Fields {
			sum = min(hugeSize, sum+f.Fields[i].leastSize(pointer))
		}
		return sum
	}
	return 0
}

// u32At reads a u32 at a fixed offset of a payload, if it is long enough.
func u32At(b []byte, off int) (uint32, bool) {
	if len(b) < off+4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b[off:]), true
}
