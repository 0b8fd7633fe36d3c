//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Sessions tell environments: their recordings, and the traces in them, are their owner's.
func TestSessionsArePrivate(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	rec := filepath.Join(dir, "a.rec")
	code, _, words := tracefix(t, "snoop", filepath.Join(dir, "s"), "--duration", "10ms", "-o", rec)
	require.Equal(t, exitOK, code, words)
	code, _, words = tracefix(t, "ipc", "../../testdata/ipc/reverse.rec.zst", "--extract", filepath.Join(dir, "x"))
	require.Equal(t, exitOK, code, words)
	traces, err := filepath.Glob(filepath.Join(dir, "x", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, traces)
	for _, name := range append(traces, rec) {
		st, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), st.Mode().Perm(), name)
	}
}
