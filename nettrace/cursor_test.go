package nettrace

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// Text is read as the standard library reads it, whatever stands where among the units
// that are taken four at a time.
func TestUTF16(t *testing.T) {
	units := []uint16{'a', 'Z', 0x7f, 0x80, 0xff, 0x100, 0x7ff, 0x800, 0xd83d, 0xde00, 0xfffd}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := make([]uint16, rnd.IntN(24))
		for i := range text {
			text[i] = units[rnd.IntN(1+rnd.IntN(len(units)))]
		}
		var b []byte
		for _, u := range text {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		rest := "rest of it"[:rnd.IntN(11)]
		c := NewCursor(slices.Concat(b, []byte{0, 0}, []byte(rest)))
		got := c.UTF16()
		require.Equal(t, string(utf16.Decode(text)), got.String(), "%x", text)
		require.Equal(t, string(b), string(got.Raw()))
		require.Equal(t, rest, string(c.Bytes(c.Len())))
		require.NoError(t, c.Err())

		c = NewCursor(b)
		require.Zero(t, c.UTF16().Len())
		require.Error(t, c.Err(), "it has no end")
	}
}
