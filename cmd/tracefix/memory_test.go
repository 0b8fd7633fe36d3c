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
		{[]string{"activities", "--explain", "x.nettrace"}, true},
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
