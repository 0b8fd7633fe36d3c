package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNoteOfSize(t *testing.T) {
	assert.Empty(t, noteOfSize("html", 500e6))
	assert.Empty(t, noteOfSize("speedscope", 5e9))
	assert.Equal(t, "the page has 1,230 MB, and a browser takes twice as much memory to show it; with --from and --to it has a part of the time only", noteOfSize("html", 1230e6))
}
