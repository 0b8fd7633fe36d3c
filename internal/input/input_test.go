package input

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func gz(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func zst(t *testing.T, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(b, nil)
}

func zipped(t *testing.T, members map[string]string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for n, c := range members {
		f, err := w.Create(n)
		require.NoError(t, err)
		_, err = f.Write([]byte(c))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestOpenFindsLayersAndKindByContent(t *testing.T) {
	const events = `{"traceEvents":[]}`
	for _, c := range []struct {
		name   string
		bytes  []byte
		kind   Kind
		layers []string
	}{
		{"object", []byte(events), Chromium, nil},
		{"array", []byte(" \n[{}]"), Chromium, nil},
		{"bare fragment", []byte(`,{"ph":"B"}`), Chromium, nil},
		{"byte order mark", []byte("\xef\xbb\xbf" + events), Chromium, nil},
		{"nettrace", []byte("Nettrace\x14\x00\x00\x00!FastSerialization.1"), Nettrace, nil},
		{"netperf", []byte("\x14\x00\x00\x00!FastSerialization.1"), Netperf, nil},
		{"speedscope by schema", []byte(`{"exporter":"x","$schema":"https://www.speedscope.app/file-format-schema.json"}`), Speedscope, nil},
		{"speedscope without schema", []byte(`{"shared":{"frames":[]},"profiles":[]}`), Speedscope, nil},
		{"a method called frames", []byte(`{"traceEvents":[{"name":"shared","x":"frames"}]}`), Chromium, nil},
		{"gzip", gz(t, []byte(events)), Chromium, []string{"gzip"}},
		{"two gzip members", append(gz(t, []byte(`{"trace`)), gz(t, []byte(`Events":[]}`))...), Chromium, []string{"gzip"}},
		{"zstd", zst(t, []byte(events)), Chromium, []string{"zstd"}},
		{"zip", zipped(t, map[string]string{"a/t.json": events}), Chromium, []string{"zip:a/t.json"}},
		{"gzip in zip", zipped(t, map[string]string{"t": string(gz(t, []byte(events)))}), Chromium, []string{"zip:t", "gzip"}},
		{"zstd in gzip", gz(t, zst(t, []byte("Nettrace"))), Nettrace, []string{"gzip", "zstd"}},
		{"empty", nil, Unknown, nil},
		{"html", []byte("<html>"), Unknown, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "misleading.txt")
			require.NoError(t, os.WriteFile(p, c.bytes, 0o600))
			f, err := Open(t.Context(), p, nil)
			require.NoError(t, err)
			defer f.Close()
			assert.Equal(t, c.kind, f.Kind)
			assert.Equal(t, c.layers, f.Layers)
			if c.kind == Chromium && len(c.layers) > 0 {
				for range 2 { // a file is read twice
					r, err := f.Reader()
					require.NoError(t, err)
					b, err := io.ReadAll(r)
					require.NoError(t, err)
					assert.Equal(t, events, string(b))
					require.NoError(t, r.Close())
				}
			}
			if c.kind == Unknown {
				assert.NotEmpty(t, Describe(f.Head()))
			}
		})
	}
}

func TestOpenStdinCanBeReadTwice(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(t.Context(), "-", &Options{Stdin: bytes.NewReader([]byte("[{}]")), TempDir: dir})
	require.NoError(t, err)
	for range 2 {
		r, err := f.Reader()
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, "[{}]", string(b))
		require.NoError(t, r.Close())
	}
	require.NoError(t, f.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing stays behind")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(t.Context(), filepath.Join(dir, "nothing"), nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(t.Context(), dir, nil)
	assert.ErrorContains(t, err, "tracefix batch")

	p := filepath.Join(dir, "many.zip")
	require.NoError(t, os.WriteFile(p, zipped(t, map[string]string{"a": "1", "b": "2"}), 0o600))
	_, err = Open(t.Context(), p, nil)
	assert.ErrorContains(t, err, "holds 2 files")

	b := []byte("[]")
	for range maxLayers + 1 {
		b = gz(t, b)
	}
	require.NoError(t, os.WriteFile(p, b, 0o600))
	_, err = Open(t.Context(), p, nil)
	assert.ErrorContains(t, err, "layers")
}

func TestTruncatedCompressionGivesWhatThereIs(t *testing.T) {
	content := bytes.Repeat([]byte(`{"ph":"B","name":"x","ts":1},`), 20000)
	full := gz(t, append([]byte("["), content...))
	p := filepath.Join(t.TempDir(), "cut.gz")
	require.NoError(t, os.WriteFile(p, full[:len(full)/2], 0o600))
	f, err := Open(t.Context(), p, nil)
	require.NoError(t, err)
	assert.Equal(t, Chromium, f.Kind)
	r, err := f.Reader()
	require.NoError(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.NotEmpty(t, b)
}

func TestFromOpenerCopiesNothing(t *testing.T) {
	dir := t.TempDir()
	opened := 0
	open := func(b []byte) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) {
			opened++
			return io.NopCloser(bytes.NewReader(b)), nil
		}
	}
	b := gz(t, []byte("[{}]"))
	f, err := FromOpener("member", int64(len(b)), open(b), &Options{TempDir: dir})
	require.NoError(t, err)
	assert.Equal(t, Chromium, f.Kind)
	assert.Equal(t, []string{"gzip"}, f.Layers)
	assert.Empty(t, f.Path())
	left, _ := os.ReadDir(dir)
	assert.Empty(t, left)
	before := opened
	for range 2 {
		r, err := f.Reader()
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, "[{}]", string(got))
		require.NoError(t, r.Close())
	}
	assert.Equal(t, before+2, opened)
	require.NoError(t, f.Close())

	// A zip needs a file: that alone is copied.
	z := zipped(t, map[string]string{"t.json": "[{}]"})
	f, err = FromOpener("member", int64(len(z)), open(z), &Options{TempDir: dir})
	require.NoError(t, err)
	assert.Equal(t, Chromium, f.Kind)
	assert.Equal(t, []string{"zip:t.json"}, f.Layers)
	require.NoError(t, f.Close())
	left, _ = os.ReadDir(dir)
	assert.Empty(t, left)
}

func TestBombIsRefused(t *testing.T) {
	b := gz(t, append([]byte("["), bytes.Repeat([]byte(" "), 4<<20)...))
	f, err := FromReader("bomb", bytes.NewReader(b), &Options{RatioAfter: 1 << 20, TempDir: t.TempDir()})
	require.NoError(t, err)
	defer f.Close()
	r, err := f.Reader()
	require.NoError(t, err)
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	assert.ErrorIs(t, err, ErrTooLarge)
}

// A file that may not be read is told as others are, by its name first.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() <= 0 { // -1 where there is none
		t.Skip("root reads everything")
	}
	name := filepath.Join(t.TempDir(), "a.nettrace")
	require.NoError(t, os.WriteFile(name, []byte("Nettrace"), 0))
	_, err := Open(t.Context(), name, nil)
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.True(t, strings.HasPrefix(err.Error(), name+": permission denied; "), err)
}

// TestLinkToNowhere: the link itself is not offered as the name that may have been meant.
func TestLinkToNowhere(t *testing.T) {
	link := filepath.Join(t.TempDir(), "lost.nettrace")
	if err := os.Symlink("nowhere.nettrace", link); err != nil {
		t.Skip(err)
	}
	_, err := Open(t.Context(), link, nil)
	assert.EqualError(t, err, link+": no such file or directory: it is a link that leads nowhere")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Open(t.Context(), link[:len(link)-1], nil)
	assert.ErrorContains(t, err, "did you mean "+link+"?")
}
