package causality

import (
	"encoding/binary"
	"unicode/utf16"
)

// utf16String reads UTF-16, low byte first.
func utf16String(b []byte) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}
