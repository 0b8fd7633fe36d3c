package symbol

import (
	"encoding/binary"
	"math/rand/v2"
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
		require.Equal(t, string(utf16.Decode(text)), string(appendUTF16(nil, b)), "%x", text)

		rest := []byte("rest of it"[:rnd.IntN(11)])
		c := cursor{b: append(append(append([]byte(nil), b...), 0, 0), rest...)}
		require.Equal(t, b, append([]byte(nil), c.utf16z()...))
		require.Equal(t, string(rest), string(c.b))
		require.False(t, c.bad)

		c = cursor{b: b}
		require.Nil(t, c.utf16z())
		require.True(t, c.bad)
	}
}
