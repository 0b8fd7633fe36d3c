package spans

import (
	"bytes"
	"fmt"
	"io"
	"strings"
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

// TestUnmatchedOutOfOrder holds that events which are out of order are no damage, and that an end
// among them which ends nothing is told once, with its place in the file.
func TestUnmatchedOutOfOrder(t *testing.T) {
	var evs []string
	add := func(ts int, list ...string) {
		for _, x := range list {
			evs = append(evs, fmt.Sprintf(`{"name":%q,"ph":%q,"ts":%d,"pid":0,"tid":1}`, x[1:], x[:1], ts))
		}
	}
	add(1, "BThread (1)", "BMain", "Ba", "BCPU_TIME")
	add(3, "ECPU_TIME", "Eb", "EMain", "EThread (1)")
	add(2, "ECPU_TIME", "Ea", "Bb", "BCPU_TIME")
	for _, stray := range []bool{false, true} {
		if stray {
			add(2, "Enowhere")
		}
		in := "[" + strings.Join(evs, ",") + "]"
		var told []*chromium.FormatError
		tr, err := Read(t.Context(), opener([]byte(in)), &Options{Warn: func(e *chromium.FormatError, _ int64) { told = append(told, e) }})
		require.NoError(t, err)
		assert.Equal(t, 2, tr.Facts.Samples)
		if !stray {
			assert.Empty(t, told)
			continue
		}
		require.Len(t, told, 1)
		assert.True(t, strings.HasPrefix(in[told[0].Offset:], evs[len(evs)-1]), "offset %d", told[0].Offset)
	}
}

// TestUnmatchedWithoutEnd holds that ends which end nothing are all told, and that few of them are kept until then.
func TestUnmatchedWithoutEnd(t *testing.T) {
	const odd = 3 * mostOdd
	in := []byte(`[{"name":"Thread (1)","ph":"B","ts":0,"pid":0,"tid":1},{"name":"Main","ph":"B","ts":0,"pid":0,"tid":1},{"name":"CPU_TIME","ph":"B","ts":0,"pid":0,"tid":1}`)
	for i := range odd {
		in = fmt.Appendf(in, `,{"name":"nowhere","ph":"E","ts":%d,"pid":0,"tid":1}`, i/1000)
	}
	in = append(in, ']')
	var read *bytes.Reader
	told, left := 0, 0
	_, err := Read(t.Context(), func() (io.ReadCloser, error) {
		read = bytes.NewReader(in)
		return io.NopCloser(read), nil
	}, &Options{Warn: func(*chromium.FormatError, int64) {
		if told == 0 {
			left = read.Len()
		}
		told++
	}})
	require.NoError(t, err)
	assert.Equal(t, odd, told)
	assert.Greater(t, left, len(in)/4, "when the first one is told")
}
