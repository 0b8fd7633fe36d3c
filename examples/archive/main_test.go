package main

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A member that the zip does not give whole is one that cannot be read, and those behind it are read.
func TestBrokenMembers(t *testing.T) {
	const method = 99 // of packing, which nobody here knows
	trace, err := os.ReadFile("../../testdata/nettrace/executioncheckpoints.nettrace")
	require.NoError(t, err)
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, name := range []string{"sum", "stream", "method", "good"} {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		w, err := z.CreateHeader(h)
		require.NoError(t, err)
		_, err = w.Write(trace)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	data := packed.Bytes()
	members, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	directory := data[bytes.Index(data, []byte("PK\x01\x02")):]
	entry := func(name string) []byte { return directory[bytes.Index(directory, []byte(name))-46:] }
	entry("sum")[16] ^= 1
	entry("method")[10] = method
	at, err := members.File[1].DataOffset()
	require.NoError(t, err)
	data[at] |= 6 // of the kind of block that there is not
	name := filepath.Join(t.TempDir(), "a.zip")
	require.NoError(t, os.WriteFile(name, data, 0o600))

	assert.EqualError(t, readAll(context.Background(), name), "3 of 4 files cannot be read")
	ctx, stop := context.WithCancel(context.Background())
	stop()
	assert.ErrorIs(t, readAll(ctx, name), context.Canceled)
}
