package compare

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/nettrace"
)

// withoutRundown writes a recording without what the runtime tells at its end, as of a process that was killed.
func withoutRundown(t *testing.T, name string) string {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	r, err := nettrace.NewReader(z, nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "killed.nettrace")
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	w, err := nettrace.NewWriter(out, r.Header())
	require.NoError(t, err)
	for {
		var ev nettrace.Event
		if err := r.Read(&ev); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if ev.Metadata.Provider != nettrace.ProviderRuntime+"Rundown" {
			require.NoError(t, w.Write(&ev))
		}
	}
	require.NoError(t, w.Close())
	return path
}

// Methods that a recording does not name, since it was cut off, are not gone, nor new in the other one.
func TestRecordingWithoutNames(t *testing.T) {
	read := func(name string) *Trace {
		f, err := tracefix.Open(t.Context(), name)
		require.NoError(t, err)
		defer f.Close()
		tr, err := Read(t.Context(), f, filepath.Base(name), Options{})
		require.NoError(t, err)
		return tr
	}
	const name = "../../testdata/chain.nettrace.zst"
	killed := withoutRundown(t, name)
	for _, pair := range [][2]string{{name, killed}, {killed, name}} {
		r := Traces(read(pair[0]), read(pair[1]))
		assert.Equal(t, "nothing moved beyond noise", r.Summary(), pair)
	}
}
