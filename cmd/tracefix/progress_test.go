package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first rate told counts the time since the beginning, not since the first tick.
func TestFirstRate(t *testing.T) {
	var b bytes.Buffer
	bar := newBar(&b, "trace", 100<<20)
	time.Sleep(200 * time.Millisecond)
	require.NoError(t, bar.Set64(50<<20))
	assert.Contains(t, b.String(), " MB/s")
	assert.NotContains(t, b.String(), "GB/s")
}
