package command

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// A terminal gets no binary; text it does get.
func TestNoBinaryToTerminal(t *testing.T) {
	row := Lookup("convert")
	for format, refused := range map[string]bool{"nettrace": true, "pprof": true, "perfetto": true, "folded": false} {
		in, err := input.Open(t.Context(), filepath.Join("..", "..", "testdata", "nettrace", "async.nettrace.zst"), nil)
		require.NoError(t, err)
		defer in.Close()
		var out bytes.Buffer
		_, err = row.Run(t.Context(), row.New(), in, Options{Out: "-", Format: format, Stdout: &out, Terminal: &Screen{Width: 80}})
		if !refused {
			assert.NoError(t, err, format)
			continue
		}
		assert.ErrorAs(t, err, &report.UsageError{}, format)
		assert.ErrorContains(t, err, "name a file with -o", format)
		assert.Zero(t, out.Len(), format)
	}
}
