package tracefix_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/nettrace"
)

// read reads a trace from a reader as a service would.
func read(ctx context.Context, r io.Reader, o *tracefix.ReadOptions) error {
	f, err := tracefix.NewFile("upload", r)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Profile(ctx, o)
	return err
}

// Whatever the format of what was given: one type of error says that it is to blame, and where.
func TestFormatErrorOfEveryFormat(t *testing.T) {
	whole, err := os.ReadFile("testdata/chain.nettrace.zst")
	require.NoError(t, err)
	var two bytes.Buffer
	z := zip.NewWriter(&two)
	for _, name := range []string{"a.nettrace", "b.nettrace"} {
		_, err := z.Create(name)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	for name, c := range map[string]struct {
		content string
		offset  int64
		is      error
	}{
		"nothing":       {"", 0, tracefix.ErrNotATrace},
		"no trace":      {"hello", 0, tracefix.ErrNotATrace},
		"nettrace":      {"Nettrace", 8, io.ErrUnexpectedEOF},
		"old nettrace":  {"Nettrace\x14\x00\x00\x00!FastSerialization.1", 32, io.ErrUnexpectedEOF},
		"chromium":      {"{}", 2, chromium.ErrNoTrace},
		"zstd":          {string(whole[:8]), -1, io.ErrUnexpectedEOF},
		"gzip":          {"\x1f\x8b", -1, io.ErrUnexpectedEOF},
		"zip":           {"PK\x03\x04", -1, zip.ErrFormat},
		"zip of two":    {two.String(), -1, nil},
		"pprof in gzip": {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + strings.Repeat("\x00", 20), -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			err := read(t.Context(), strings.NewReader(c.content), nil)
			var fe *tracefix.FormatError
			require.ErrorAs(t, err, &fe)
			assert.Equal(t, c.offset, fe.Offset, err)
			assert.Equal(t, "upload", fe.Name)
			assert.True(t, strings.HasPrefix(err.Error(), "upload: "), err)
			if c.is != nil {
				assert.ErrorIs(t, err, c.is)
			}
		})
	}
}

// A bomb is content, too. (A real one takes 4 GB of blanks.)
func TestFormatErrorOfABomb(t *testing.T) {
	err := tracefix.AsFormatError("upload", fmt.Errorf("upload: %w", tracefix.ErrTooLarge))
	var fe *tracefix.FormatError
	require.ErrorAs(t, err, &fe)
	assert.ErrorIs(t, err, tracefix.ErrTooLarge)
}

// What the content is not to blame for is no FormatError.
func TestNoFormatError(t *testing.T) {
	nothingLeft(t)
	mine := errors.New("mine")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	packed, err := os.ReadFile(httpMore)
	require.NoError(t, err)
	f, err := tracefix.Open(t.Context(), httpMore)
	require.NoError(t, err)
	defer f.Close()
	_, missing := tracefix.Open(t.Context(), "there-is-none.nettrace")
	_, folder := tracefix.Open(t.Context(), t.TempDir())
	_, written := f.Rewrite(t.Context(), fails{mine}, nil, nil, false)
	_, short := f.Rewrite(t.Context(), fails{nil}, nil, nil, false)
	chain, err := tracefix.Open(t.Context(), "testdata/chain.chromium.json.zst")
	require.NoError(t, err)
	defer chain.Close()
	_, shortJSON := chain.Rewrite(t.Context(), fails{nil}, nil, nil, false)
	for name, c := range map[string]struct{ err, is error }{
		"missing":  {missing, os.ErrNotExist},
		"folder":   {folder, nil},
		"reader":   {read(t.Context(), io.MultiReader(bytes.NewReader(packed[:100]), fails{mine}), nil), mine},
		"canceled": {read(canceled, bytes.NewReader(packed), nil), context.Canceled},
		"options":  {read(t.Context(), bytes.NewReader(packed), &tracefix.ReadOptions{Tracks: []string{"none"}}), nil},
		"consumer": {f.Scan(t.Context(), consumer{event: func(*nettrace.Event) error { return mine }}), mine},
		"writer":   {written, mine},
		"short":    {short, io.ErrShortWrite},
		"chromium": {shortJSON, io.ErrShortWrite},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, c.err)
			var fe *tracefix.FormatError
			assert.False(t, errors.As(c.err, &fe), c.err)
			if c.is != nil {
				assert.ErrorIs(t, c.err, c.is)
			}
		})
	}
}

type fails struct{ err error }

func (f fails) Write([]byte) (int, error) { return 0, f.err }
func (f fails) Read([]byte) (int, error)  { return 0, f.err }

// A File that was closed says so, with its name once, and names no temporary file.
func TestClosed(t *testing.T) {
	packed, err := os.ReadFile(httpMore)
	require.NoError(t, err)
	for kind, content := range map[string]string{
		"nettrace":   string(packed),
		"chromium":   `{"traceEvents":[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a"}]}`,
		"speedscope": `{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[]},"profiles":[]}`,
		"folded":     "a;b 1\n",
	} {
		f, err := tracefix.NewFile("upload", strings.NewReader(content))
		require.NoError(t, err, kind)
		require.NoError(t, f.Close())
		require.NoError(t, f.Close(), "twice is once")
		require.Equal(t, kind, f.Kind())
		_, err = f.Profile(t.Context(), nil)
		assert.ErrorIs(t, err, os.ErrClosed)
		assert.EqualError(t, err, "upload: file already closed", kind)
		switch kind {
		case "nettrace":
			err = f.Scan(t.Context())
			assert.ErrorIs(t, err, os.ErrClosed)
			assert.EqualError(t, err, "upload: file already closed")
		case "chromium":
			_, err = f.Rewrite(t.Context(), io.Discard, nil, nil, false)
			assert.ErrorIs(t, err, os.ErrClosed)
			assert.EqualError(t, err, "upload: file already closed")
		}
	}
}
