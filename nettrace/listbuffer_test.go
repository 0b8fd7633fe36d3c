package nettrace

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestListBuffer holds that equal entries have one id within a region, whether they are written
// already or not, that they are written in the order of their ids, and that no more memory is kept
// than what waited at once takes.
func TestListBuffer(t *testing.T) {
	for _, sized := range []bool{false, true} {
		l := listBuffer{sized: sized}
		entry := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 1+i%700) }
		entries := [][]byte{{}, bytes.Repeat([]byte("large"), listPiece)}
		for i := range 3000 {
			entries = append(entries, entry(i))
		}
		kept := 0
		for region := range 3 {
			l.reset()
			for i, from := range []int{0, 1000, 2000} { // blocks
				to := from + 1000
				var want []byte
				for k := from; k < to; k++ {
					if sized {
						want = binary.LittleEndian.AppendUint32(want, uint32(len(entries[k])))
					}
					want = append(want, entries[k]...)
					assert.EqualValues(t, 1+k, l.id(entries[k]))
				}
				for k := range to { // those of blocks before are written
					assert.EqualValues(t, 1+k, l.id(bytes.Clone(entries[k])))
				}
				head := l.head(nil)
				assert.EqualValues(t, 1+from, binary.LittleEndian.Uint32(head))
				assert.EqualValues(t, 1000, binary.LittleEndian.Uint32(head[4:]))
				assert.Len(t, head, listHead)
				assert.Equal(t, len(want), l.size)
				assert.True(t, bytes.Equal(want, bytes.Join(l.pieces, nil)), "region %d, block %d", region, i)
				l.written()
				assert.Zero(t, l.size)
			}
			if region == 0 {
				kept = len(l.free)
			}
			assert.Len(t, l.free, kept)
			assert.LessOrEqual(t, kept, 6)
		}
	}
}
