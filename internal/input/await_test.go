package input

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAwaitGivesAllBytes(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 50000)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		r    io.Reader
		want error
	}{
		"whole":         {bytes.NewReader(want), nil},
		"byte by byte":  {iotest.OneByteReader(bytes.NewReader(want)), nil},
		"end with data": {iotest.DataErrReader(bytes.NewReader(want)), nil},
		"failing":       {io.MultiReader(bytes.NewReader(want), iotest.ErrReader(broken)), broken},
	} {
		t.Run(name, func(t *testing.T) {
			r := Await(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(c.r), nil })
			defer r.Close()
			got, err := io.ReadAll(r)
			assert.Equal(t, c.want, err)
			assert.True(t, bytes.Equal(want, got))
		})
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	ctx, stop := context.WithCancel(t.Context())
	r := Await(ctx, func() (io.ReadCloser, error) { return in, nil })
	_, err = out.WriteString("some")
	require.NoError(t, err)
	b := make([]byte, 10)
	n, err := r.Read(b)
	require.NoError(t, err)
	assert.Equal(t, "some", string(b[:n]))

	stop()
	_, err = r.Read(b)
	require.ErrorIs(t, err, context.Canceled)
	_, err = out.WriteString("late") // what comes now reaches nobody
	require.NoError(t, err)
	assert.Equal(t, "some", string(b[:n]))
}

// TestOpenIsInterrupted: standard input that gives nothing does not keep Open, and
// nothing stays behind.
func TestOpenIsInterrupted(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	ctx, stop := context.WithCancel(t.Context())
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		_, err := Open(ctx, "-", &Options{Stdin: in, TempDir: dir})
		done <- err
	}()
	_, err = out.Write(make([]byte, 1<<20)) // more than a pipe holds: it is being read
	require.NoError(t, err)
	stop()
	assert.ErrorIs(t, <-done, context.Canceled)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestOpenStdinThatIsAFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "t.json")
	require.NoError(t, os.WriteFile(name, []byte("[{}]"), 0o600))
	in, err := os.Open(name)
	require.NoError(t, err)
	defer in.Close()
	f, err := Open(t.Context(), "-", &Options{Stdin: in, TempDir: dir})
	require.NoError(t, err)
	assert.Equal(t, Chromium, f.Kind)
	assert.EqualValues(t, 4, f.Stored)
	require.NoError(t, f.Close())
	_, err = in.Stat()
	assert.NoError(t, err, "it is not ours to close")
}
