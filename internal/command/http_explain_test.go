package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Where more requests end than may wait for the names of methods, the trace is read again, with
// the same result.
func TestExplainedByASecondReading(t *testing.T) {
	file := "requests-short"
	once, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
	assert.NotEmpty(t, once)
	rows := bytes.Count(once, []byte{'\n'})
	defer func(n int) { waiting = n }(waiting)
	// The room is full while the trace is read, or by those that its end hands out.
	for _, waiting = range []int{0, 10, rows - 40, rows - 10, rows - 2, rows - 1, rows, rows + 1} {
		again, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
		assert.Equal(t, string(once), string(again), "room for %d of %d", waiting, rows)
	}
}
