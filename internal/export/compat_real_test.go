package export_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// Where a trace holds task events the reference draws tasks below those that started them.
// Its file is ours, byte for byte behind the header.
func TestCompatWithTasks(t *testing.T) {
	for _, name := range []string{"await-full", "requests-short"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "requests-short" {
				t.Skip("large")
			}
			path := tracetest.Corpus(t, "dotnet10", name+".nettrace")
			tr, _, err := load.Compat(context.Background(), func() (io.ReadCloser, error) { return os.Open(path) }, nil)
			require.NoError(t, err)
			var out bytes.Buffer
			require.NoError(t, export.CompatSpeedscope(&out, tr, export.Options{}))
			f, err := os.Open(tracetest.Corpus(t, "dotnet10", "reference", name+".speedscope.json.zst"))
			require.NoError(t, err)
			defer f.Close()
			z, err := zstd.NewReader(f)
			require.NoError(t, err)
			defer z.Close()
			want, err := io.ReadAll(z)
			require.NoError(t, err)
			body := func(b []byte) []byte { return b[bytes.Index(b, []byte(`"shared"`)):] }
			require.True(t, bytes.Equal(body(want), body(out.Bytes())))
		})
	}
}
