// Package recorded makes recordings as runtimes wrote them that are not at hand.
package recorded

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// External is a nettrace as a runtime writes it that calls each sample external: .NET 9 did, before
// dotnet/runtime#123996 was mended.
func External(t testing.TB, src io.Reader) []byte {
	r, err := nettrace.NewReader(src, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, r.Header())
	require.NoError(t, err)
	var ev nettrace.Event
	for {
		err := r.Read(&ev)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if ev.Metadata.Role == nettrace.RoleSample {
			ev.Payload = binary.LittleEndian.AppendUint32(nil, uint32(nettrace.SampleExternal))
		}
		require.NoError(t, w.Write(&ev))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}
