package nettrace

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Stacks of a region without end that come again and again are held once, and told by one key; every
// event has its own all the same.
func TestEqualStacks(t *testing.T) {
	const blocks, equal, frames = 120, 100, 1000
	head := unhex(t, knownV6)
	head = head[:bytes.Index(head, unhex(t, "1c000005"))] // up to the stacks
	stack := func(seed uint64, n int) (b []byte) {
		for i := range n {
			b = binary.LittleEndian.AppendUint64(b, 0x10000+seed<<20+uint64(i))
		}
		return b
	}
	same := stack(0, frames)
	// The stacks of a block: many equal ones, then a large, a small, and an empty one of its own.
	of := func(block, i int) []byte {
		switch i {
		case equal:
			return stack(uint64(block+1), frames)
		case equal + 1:
			return stack(uint64(block+1), 3)
		case equal + 2:
			return nil
		}
		return same
	}
	const each = equal + 3
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		_, _ = out.Write(head)
		for block := range blocks {
			rows := le32(le32(nil, uint32(block*each+1)), each)
			for i := range each {
				rows = append(le32(rows, uint32(len(of(block, i)))), of(block, i)...)
			}
			file := blockV6(nil, kindStack, rows)
			// Events with stacks of this block and the first one.
			events := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
			for _, id := range []int{block*each + 1, block*each + equal, block*each + equal + 1, block*each + equal + 2, block*each + equal + 3, 1, equal + 1} {
				events = append(binary.AppendUvarint(append(events, 0xc9, 1), uint64(id)), 1, 1, 5) // a payload of a byte
			}
			_, _ = out.Write(blockV6(file, kindEvent, events))
		}
		_, _ = out.Write([]byte{0, 0, 0, 0})
		_ = out.Close()
	}()
	r, err := NewReader(in, nil)
	require.NoError(t, err)
	var ev Event
	n := 0
	keys := map[uint64]bool{}
	for ; ; n++ {
		if err = r.Read(&ev); err != nil {
			break
		}
		block, i := n/7, n%7
		want := of([]int{block, block, block, block, block, 0, 0}[i], []int{0, equal - 1, equal, equal + 1, equal + 2, 0, equal}[i])
		require.True(t, bytes.Equal(want, ev.Stack.raw), "event %d", n)
		if bytes.Equal(want, same) {
			keys[ev.StackKey] = true
		}
		require.Equal(t, len(want) > 0, ev.StackKey != 0)
	}
	require.Equal(t, io.EOF, err, "%v", err)
	assert.Equal(t, 7*blocks, n)
	assert.Zero(t, r.Stats().Defects)
	assert.EqualValues(t, blocks*each, r.Stats().Stacks)
	held := 0
	for _, b := range r.stacks.blocks {
		held += cap(b)
	}
	assert.Less(t, held, 40<<20, "of %d MiB", r.InputOffset()>>20)
	assert.Less(t, len(keys), 120)
}
