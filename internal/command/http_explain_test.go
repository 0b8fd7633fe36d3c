package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Where more requests end than may wait for the names of methods, the trace is read again, with
// the same result.
func TestExplainedByASecondReading(t *testing.T) {
	file := "requests-short"
	once, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
	defer func(n int) { waiting = n }(waiting)
	waiting = 10
	twice, _ := runHTTP(t, file, "ndjson", &HTTP{Explain: true, Side: "both"})
	assert.NotEmpty(t, once)
	assert.Equal(t, string(once), string(twice))
}
