package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/input"
)

// What a shell hands over as an open file has no folder for an output beside it.
func TestDefaultOutput(t *testing.T) {
	row := Lookup("repair")
	for name, want := range map[string]string{
		"a.nettrace": "a.fixed.nettrace", "/dev/shm/a.nettrace": "/dev/shm/a.fixed.nettrace",
		"-": "-", "/dev/stdin": "-", "/dev/fd/63": "-",
	} {
		assert.Equal(t, want, row.defaultOutput(&input.File{Name: name, Kind: input.Nettrace}, "nettrace"))
	}
}
