package nettrace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBuiltInLayoutsStandTogether: every line of layouts.txt is found, and can be parsed.
func TestBuiltInLayoutsStandTogether(t *testing.T) {
	lines := 0
	for line := range strings.Lines(layoutsText) {
		if line[0] >= '0' && line[0] <= '9' {
			lines++
		}
	}
	found := 0
	for _, e := range builtInEvents() {
		found += len(e.all())
	}
	assert.Equal(t, lines, found, "the lines of an event must stand together")
}
