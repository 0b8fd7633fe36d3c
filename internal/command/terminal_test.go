package command

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// TestNamesToTerminal holds that names of a trace reach a terminal without what it would obey.
func TestNamesToTerminal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "evil.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"m!\u001b[2Jb\u202e"}]},
"profiles":[{"type":"evented","name":"Thread (7)","unit":"seconds","startValue":0,"endValue":9,"events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":5}]}]}`), 0o600))
	for _, c := range []struct{ row, format string }{{"convert", "folded"}, {"convert", "ndjson"}, {"convert", "speedscope"}, {"top", "csv"}, {"top", "text"}} {
		in, err := input.Open(t.Context(), name, nil)
		require.NoError(t, err)
		var out bytes.Buffer
		row := Lookup(c.row)
		_, err = row.Run(t.Context(), row.New(), in, Options{Out: "-", Format: c.format, Stdout: &out, Terminal: &Screen{Width: 80}})
		require.NoError(t, err)
		assert.NotContains(t, out.String(), "\x1b", c.format)
		assert.NotContains(t, out.String(), "\u202e", c.format)
		require.NoError(t, in.Close())
	}
}

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
