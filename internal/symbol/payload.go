package symbol

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// errShort says that a payload ends before its layout does.
var errShort = errors.New("payload too short")

// A cursor reads the fields of a payload in order. The first failure sticks,
// later reads return zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.b) {
		c.bad = true
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) varuint() uint64 {
	v, n := binary.Uvarint(c.b)
	if c.bad || n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

// utf16z returns the code units of a string up to its terminator, which is consumed.
func (c *cursor) utf16z() []byte {
	i := 0
	for ; i+8 <= len(c.b); i += 8 { // no zero among four units
		if u := binary.LittleEndian.Uint64(c.b[i:]); (u-0x0001000100010001)&^u&0x8000800080008000 != 0 {
			break
		}
	}
	for ; i+1 < len(c.b); i += 2 {
		if c.b[i] == 0 && c.b[i+1] == 0 {
			s := c.take(i)
			c.take(2)
			return s
		}
	}
	c.bad = true
	return nil
}

// str16 returns the UTF-8 text behind a 16 bit length.
func (c *cursor) str16() []byte { return c.take(int(c.u16())) }

// appendUTF16 appends UTF-16 code units as UTF-8, lone surrogates as U+FFFD.
func appendUTF16(dst, src []byte) []byte {
	for len(src) >= 8 { // four ASCII characters
		u := binary.LittleEndian.Uint64(src)
		if u&0xff80ff80ff80ff80 != 0 {
			break
		}
		u = (u | u>>8) & 0x0000ffff0000ffff
		dst = binary.LittleEndian.AppendUint32(dst, uint32(u|u>>16))
		src = src[8:]
	}
	for i := 0; i+1 < len(src); i += 2 {
		u := rune(binary.LittleEndian.Uint16(src[i:]))
		if u < utf8.RuneSelf {
			dst = append(dst, byte(u))
			continue
		}
		if utf16.IsSurrogate(u) {
			r := rune(utf8.RuneError)
			if i+3 < len(src) {
				r = utf16.DecodeRune(u, rune(binary.LittleEndian.Uint16(src[i+2:])))
			}
			if r != utf8.RuneError {
				i += 2
			}
			u = r
		}
		dst = utf8.AppendRune(dst, u)
	}
	return dst
}

// indexUTF16 returns the byte offset of the first code unit u, -1 if there is none.
func indexUTF16(s []byte, u byte) int {
	for i := 0; i+1 < len(s); i += 2 {
		if s[i] == u && s[i+1] == 0 {
			return i
		}
	}
	return -1
}

const (
	beforeAll = math.MinInt64
	afterAll  = math.MaxInt64
)

// UTF16 returns the zero-terminated UTF-16 text at the start of b.
func UTF16(b []byte) string {
	c := cursor{b: b}
	return string(appendUTF16(nil, c.utf16z()))
}

// CutUTF16 splits zero-terminated UTF-16 text off the start of b; false if b holds no terminator.
func CutUTF16(b []byte) (s string, rest []byte, ok bool) {
	c := cursor{b: b}
	u := c.utf16z()
	return string(appendUTF16(nil, u)), c.b, !c.bad
}
