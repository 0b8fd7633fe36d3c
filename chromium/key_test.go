package chromium

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScanKey reads the first key of a document, which comes byte by byte.
func TestScanKey(t *testing.T) {
	for _, test := range []struct {
		in, name string
		value    int
	}{
		{`{"a":1}`, "a", 4},
		{`{"a" :  [`, "a", 7},
		{`{"\u0061":1}`, "a", 9},
		{`{"a" 1}`, "a", badJSON},
		{`{"a"`, "a", needMore},
		{`{"a`, "", needMore},
	} {
		r, err := NewReader(iotest.OneByteReader(strings.NewReader(test.in)), nil)
		require.NoError(t, err, test.in)
		name, value, err := r.scanKey()
		require.NoError(t, err, test.in)
		assert.Equal(t, test.name, name, test.in)
		assert.Equal(t, test.value, value, test.in)
	}
}
