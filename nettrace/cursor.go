package nettrace

import (
	"encoding/binary"
	"io"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// A Cursor reads the fields of a payload, or of any row of the format, one after
// the other. The first failure sticks: later reads return zero values and Err
// tells, so a row reads its fields in order and checks once.
type Cursor struct {
	b       []byte
	pos     int
	pointer int  // size of a pointer, 0 is 8
	odd     bool // a boolean was neither 0 nor 1, or an integer larger than its type
	err     error
}

// NewCursor returns a Cursor at the start of b.
func NewCursor(b []byte) Cursor { return Cursor{b: b} }

// Err returns io.ErrUnexpectedEOF once a field lay beyond the end, or
// ErrDamaged for an overlong varint.
func (c *Cursor) Err() error { return c.err }

// Pos is the number of bytes read.
func (c *Cursor) Pos() int { return c.pos }

// Len is the number of bytes left.
func (c *Cursor) Len() int { return len(c.b) - c.pos }

func (c *Cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.pos = len(c.b)
}

// Bytes reads n bytes; they belong to the underlying slice.
func (c *Cursor) Bytes(n int) []byte {
	if n < 0 || n > len(c.b)-c.pos {
		c.fail(io.ErrUnexpectedEOF)
		return nil
	}
	b := c.b[c.pos : c.pos+n : c.pos+n]
	c.pos += n
	return b
}

// Skip passes over n bytes.
func (c *Cursor) Skip(n int) { c.Bytes(n) }

// U8 reads one byte.
func (c *Cursor) U8() uint8 {
	if c.pos >= len(c.b) {
		c.fail(io.ErrUnexpectedEOF)
		return 0
	}
	v := c.b[c.pos]
	c.pos++
	return v
}

// U16 reads a u16.
func (c *Cursor) U16() uint16 {
	if b := c.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 reads a u32.
func (c *Cursor) U32() uint32 {
	if b := c.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 reads a u64.
func (c *Cursor) U64() uint64 {
	if b := c.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// I32 reads an i32.
func (c *Cursor) I32() int32 { return int32(c.U32()) }

// I64 reads an i64.
func (c *Cursor) I64() int64 { return int64(c.U64()) }

// F32 reads a float32.
func (c *Cursor) F32() float32 { return math.Float32frombits(c.U32()) }

// F64 reads a float64.
func (c *Cursor) F64() float64 { return math.Float64frombits(c.U64()) }

// Pointer reads an integer of the trace's pointer size.
func (c *Cursor) Pointer() uint64 {
	if c.pointer == 4 {
		return uint64(c.U32())
	}
	return c.U64()
}

// Varuint reads an unsigned LEB128 number of at most 10 bytes.
func (c *Cursor) Varuint() uint64 {
	v, shift := uint64(0), 0
	for i := c.pos; i < len(c.b); i++ {
		v |= uint64(c.b[i]&0x7f) << shift // bits beyond 64 are dropped
		if c.b[i] < 0x80 {
			c.pos = i + 1
			return v
		}
		if shift += 7; shift == 70 {
			c.fail(errVarint)
			return 0
		}
	}
	c.fail(io.ErrUnexpectedEOF)
	return 0
}

// Varuint32 reads an unsigned LEB128 number of at most 5 bytes; bits beyond 32
// are dropped as the reference reader does.
func (c *Cursor) Varuint32() uint32 {
	at := c.pos
	v := c.Varuint()
	if c.err == nil && c.pos-at > 5 {
		c.fail(errVarint)
		return 0
	}
	return uint32(v)
}

// Varint reads a zigzag number.
func (c *Cursor) Varint() int64 {
	u := c.Varuint()
	return int64(u>>1) ^ -int64(u&1)
}

// GUID reads a GUID.
func (c *Cursor) GUID() (g GUID) {
	copy(g[:], c.Bytes(16))
	return g
}

// UTF16 reads a UTF-16 string and its terminating zero unit.
func (c *Cursor) UTF16() Text {
	i := c.pos
	for ; i+8 <= len(c.b); i += 8 { // four units without a zero among them
		if u := binary.LittleEndian.Uint64(c.b[i:]); (u-0x0001_0001_0001_0001)&^u&0x8000_8000_8000_8000 != 0 {
			break
		}
	}
	for ; i+2 <= len(c.b); i += 2 {
		if c.b[i] == 0 && c.b[i+1] == 0 {
			t := Text{c.b[c.pos:i], textUTF16}
			c.pos = i + 2
			return t
		}
	}
	c.fail(io.ErrUnexpectedEOF)
	return Text{}
}

// UTF8Z reads a UTF-8 string and its terminating zero byte.
func (c *Cursor) UTF8Z() Text {
	for i := c.pos; i < len(c.b); i++ {
		if c.b[i] == 0 {
			t := Text{c.b[c.pos:i], textUTF8}
			c.pos = i + 1
			return t
		}
	}
	c.fail(io.ErrUnexpectedEOF)
	return Text{}
}

// String16 reads a u16 byte count and that much UTF-8, as Universal payloads have it.
func (c *Cursor) String16() Text { return Text{c.Bytes(int(c.U16())), textUTF8} }

// StringV reads a varuint32 byte count and that much UTF-8, as the rows of v6 have it.
func (c *Cursor) StringV() Text {
	n := c.Varuint32()
	if uint64(n) > uint64(c.Len()) {
		c.fail(io.ErrUnexpectedEOF)
		return Text{}
	}
	return Text{c.Bytes(int(n)), textUTF8}
}

// A Text is a string as it stands in a payload. It is valid as long as the
// payload is; String copies.
type Text struct {
	b   []byte
	enc textEncoding
}

type textEncoding uint8

const (
	textUTF16 textEncoding = iota
	textUTF8
)

// Len is the number of bytes in the payload.
func (t Text) Len() int { return len(t.b) }

// Raw returns the bytes in the payload: UTF-16LE or UTF-8, without a terminator.
func (t Text) Raw() []byte { return t.b }

// String returns the text as valid UTF-8; U+FFFD stands for lone surrogates and invalid bytes.
func (t Text) String() string {
	if len(t.b) == 0 {
		return ""
	}
	var room [128]byte
	return string(t.AppendTo(room[:0]))
}

// AppendTo appends what String returns to dst.
func (t Text) AppendTo(dst []byte) []byte {
	if t.enc == textUTF16 {
		return appendUTF16(dst, t.b)
	}
	if utf8.Valid(t.b) {
		return append(dst, t.b...)
	}
	for b := t.b; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}

// Equal reports whether the text is s, without allocating.
func (t Text) Equal(s string) bool {
	if t.enc == textUTF8 && utf8.Valid(t.b) {
		return string(t.b) == s
	}
	if len(t.b) > 2*len(s) {
		return false
	}
	var room [256]byte
	return string(t.AppendTo(room[:0])) == s
}

// appendUTF16 appends the UTF-16LE code units of b as UTF-8.
func appendUTF16(dst, b []byte) []byte {
	i := 0
	for ; i+8 <= len(b); i += 8 { // four ASCII units at a time
		u := binary.LittleEndian.Uint64(b[i:])
		if u&0xff80_ff80_ff80_ff80 != 0 {
			break
		}
		u = (u | u>>8) & 0x0000_ffff_0000_ffff
		dst = binary.LittleEndian.AppendUint32(dst, uint32(u|u>>16))
	}
	for ; i+2 <= len(b); i += 2 {
		u := rune(b[i]) | rune(b[i+1])<<8
		switch {
		case u < utf8.RuneSelf:
			dst = append(dst, byte(u))
		case !utf16.IsSurrogate(u):
			dst = utf8.AppendRune(dst, u)
		case i+4 <= len(b):
			r := utf16.DecodeRune(u, rune(b[i+2])|rune(b[i+3])<<8)
			dst = utf8.AppendRune(dst, r)
			if r != utf8.RuneError {
				i += 2
			}
		default:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	return dst
}
