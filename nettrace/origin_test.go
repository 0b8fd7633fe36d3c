package nettrace

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOrigin reads the part of a header that tells who wrote an event.
func TestOrigin(t *testing.T) {
	type told struct {
		delta    uint32
		captured uint64
		cpu      int32
		end      int
	}
	long := slices.Repeat([]byte{0xff}, 10)
	for _, test := range []struct {
		name string
		b    []byte
		want told
	}{
		{"small", []byte{1, 2, 3}, told{1, 2, 3, 3}},
		{"large", []byte{0x80, 1, 0xff, 0xff, 0xff, 0xff, 0x1f, 0}, told{128, 1<<33 - 1, 0, 8}},
		{"no processor", []byte{0, 7, 0xff, 0xff, 0xff, 0xff, 0x0f}, told{0, 7, -1, 7}},
		{"number too long", long, told{end: -1}},
		{"thread too long", append([]byte{1}, long...), told{end: -1}},
		{"processor too long", append([]byte{1, 2}, long...), told{1, 2, 0, -1}},
	} {
		var got told
		got.delta, got.captured, got.cpu, got.end = origin(append(test.b, make([]byte, blockPad)...), 0)
		assert.Equal(t, test.want, got, test.name)
	}
}
