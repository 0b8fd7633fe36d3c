package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExplains(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"http", "x.nettrace", "--explain", "--format", "ndjson"}, true},
		{[]string{"activities", "--explain", "x.nettrace"}, false},
		{[]string{"http", "x.nettrace"}, false},
		{[]string{"convert", "x.nettrace", "-o", "x.json"}, false},
	} {
		parser, err := grammar(&CLI{}, c.args)
		require.NoError(t, err)
		kctx, err := parser.Parse(c.args)
		require.NoError(t, err, c.args)
		assert.Equal(t, c.want, explains(kctx), c.args)
	}
}

// Garbage is not let grow to what a small container has.
func TestRoomToExplain(t *testing.T) {
	for memory, want := range map[int64]int64{8 << 30: explainHeap, 512 << 20: explainHeap, 192 << 20: 96 << 20, 96 << 20: smallHeap, 0: smallHeap} {
		assert.Equal(t, want, roomToExplain(memory), memory)
	}
}

// TestHeapPolicy holds at which size of the heap the collector runs, and that the limit, near which
// the runtime gives memory back, lies beyond.
func TestHeapPolicy(t *testing.T) {
	const mb = 1 << 20
	goal := func(h *heapPolicy, alive int64) int64 {
		percent, limit := h.of(alive)
		heap := max(alive+alive*int64(percent)/100, 4*mb*int64(percent)/100) // as the runtime does it
		assert.GreaterOrEqual(t, limit, heap+slack, alive)
		return (heap + mb/2) / mb
	}
	var h heapPolicy
	h.floor.Store(smallHeap)
	for alive, want := range map[int64]int64{0: 40, 1: 40, 4: 44, 10: 72, 20: 72, 40: 72, 60: 76, 100: 116, 104: 120, 200: 240, 400: 490, 4000: 4990} {
		assert.InDelta(t, want, goal(&h, alive*mb), 1+float64(want)/100, alive)
	}
	for alive, want := range map[int64]int64{0: leastKept, 56: leastKept, 60: 84 * mb, 100: 124 * mb} {
		_, limit := h.of(alive * mb)
		assert.Equal(t, want, limit, "what is kept of %d MB", alive)
	}
	h.floor.Store(explainHeap)
	h.idle.Store(true)
	for alive, want := range map[int64]int64{0: 100, 1: 100, 60: 100, 90: 106, 240: 290} {
		assert.InDelta(t, want, goal(&h, alive*mb), 3, alive)
	}
}
