package output

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestDevices: an output that Windows would give to a device is refused, wherever it is.
func TestDevices(t *testing.T) {
	for _, name := range []string{"con", "aux.json", "COM1.speedscope.json", "lpt9", "Con .json"} {
		assert.ErrorContains(t, Check(filepath.Join(t.TempDir(), name), &Options{}), "device", name)
	}
	for _, name := range []string{"console.json", "com.json", "x.con", "NUL"} {
		assert.NoError(t, Check(filepath.Join(t.TempDir(), name), &Options{}), name)
	}
}
