package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/batch"
)

// TestHeapOf: commands that read no trace, and batches, which have a budget of their own, are given no memory at once.
func TestHeapOf(t *testing.T) {
	explain := max(leastKept, roomToExplain(batch.DefaultMemory()))
	for _, c := range []struct {
		args []string
		want int64
	}{
		{nil, 0},
		{[]string{"--version"}, 0},
		{[]string{"version"}, 0},
		{[]string{"help", "info"}, 0},
		{[]string{"info", "--help"}, 0},
		{[]string{"-q", "batch", "dir", "-o", "out"}, 0},
		{[]string{"complete", "info"}, 0},
		{[]string{"info", "a.nettrace"}, leastKept},
		{[]string{"-q", "top", "-"}, leastKept},
		{[]string{"a.nettrace"}, leastKept},
		{[]string{"http", "a.nettrace", "--explain"}, explain},
	} {
		assert.Equal(t, c.want, heapOf(c.args), c.args)
	}
}
