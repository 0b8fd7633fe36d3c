package spans

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// TestUnmatchedIsDamage holds that an event missing in the middle of samples is told: what is left
// is whole JSON.
func TestUnmatchedIsDamage(t *testing.T) {
	data := unpack(t, "../../testdata/chain.chromium.json.zst")
	for _, phase := range []string{"B", "E"} {
		middle := len(data) / 2
		at := middle + bytes.Index(data[middle:], []byte(`"ph":"`+phase+`"`))
		from := bytes.LastIndexByte(data[:at], '{')
		to := at + bytes.IndexByte(data[at:], '}') + 1
		if data[to] == ',' {
			to++
		}
		hit := append(bytes.Clone(data[:from]), data[to:]...)
		var told []*chromium.FormatError
		_, err := Read(t.Context(), opener(hit), &Options{Warn: func(e *chromium.FormatError, _ int64) { told = append(told, e) }})
		require.NoError(t, err)
		require.NotEmpty(t, told, phase)
		assert.GreaterOrEqual(t, told[0].Offset, int64(from)-2)
	}
}
