package samples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
)

// A new input is a reader and a row (export_test.go): info, every command that takes any trace, and
// a batch read it, and messages name it.
func TestStrangersInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "app.txt")
	require.NoError(t, os.WriteFile(name, []byte("STRANGER\nmain;work 3\nmain;rest 1\n"), 0o600))
	for _, row := range command.Table {
		if len(row.Reads) < len(input.Kinds()) {
			continue
		}
		in, err := input.Open(t.Context(), name, nil)
		require.NoError(t, err)
		assert.Equal(t, "stranger", in.Kind.String())
		var out bytes.Buffer
		_, err = row.Run(t.Context(), row.New(), in, command.Options{Out: "-", Stdout: &out, Format: row.Batch})
		require.NoError(t, err, row.Name)
		assert.NotEmpty(t, out.String(), row.Name)
		require.NoError(t, in.Close())
	}

	dir := t.TempDir()
	row := command.Lookup("convert")
	_, err := batch.Run(t.Context(), batch.Config{
		Paths: []string{name}, Out: dir, Do: "convert", Work: batch.WorkOf(row, row.New(), command.Options{}), Jobs: 1,
	})
	require.NoError(t, err)
	made, err := filepath.Glob(filepath.Join(dir, "app*"))
	require.NoError(t, err)
	require.Len(t, made, 1)
	b, err := os.ReadFile(made[0])
	require.NoError(t, err)
	assert.Equal(t, "main;rest 1\nmain;work 3\n", string(b))

	other := filepath.Join(t.TempDir(), "other.txt")
	require.NoError(t, os.WriteFile(other, []byte("no trace at all"), 0o600))
	in, err := input.Open(t.Context(), other, nil)
	require.NoError(t, err)
	defer in.Close()
	assert.ErrorContains(t, in.NotATrace(), "a stranger's stacks")
}
