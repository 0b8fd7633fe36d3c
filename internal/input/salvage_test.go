package input

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trace is the content of a real recording.
func trace(t testing.TB) []byte {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "chain.nettrace.zst"))
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

func packs(t testing.TB, data []byte) map[string][]byte {
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, err := g.Write(data)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	z, err := zstd.NewWriter(&zs)
	require.NoError(t, err)
	_, err = z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return map[string][]byte{"gzip": gz.Bytes(), "zstd": zs.Bytes(), "zip": zipOf(t, zip.Deflate, false, string(data))}
}

// common is how much of want, in pieces of 64 bytes, is found in got.
func common(want, got []byte) float64 {
	const n = 64
	have := map[[n]byte]bool{}
	for i := 0; i+n <= len(got); i++ {
		have[[n]byte(got[i:])] = true
	}
	found, all := 0, 0
	for i := 0; i+n <= len(want); i += n {
		all++
		if have[[n]byte(want[i:])] {
			found++
		}
	}
	return float64(found) / float64(all)
}

func readAll(t *testing.T, f *File) ([]byte, error) {
	r, err := f.Reader()
	require.NoError(t, err)
	defer r.Close()
	return io.ReadAll(r)
}

// TestWholeIsNotSearched holds that the flipped bit is looked for only in what a reader met broken.
func TestWholeIsNotSearched(t *testing.T) {
	for name, packed := range packs(t, trace(t)[:64<<10]) {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, packed, 0o600))
		f, err := Open(t.Context(), path, nil)
		require.NoError(t, err)
		_, err = readAll(t, f)
		require.NoError(t, err)
		assert.False(t, f.Mend(t.Context()), name)
		assert.True(t, f.Mendable(), name)
	}
}

// TestMendEnds holds that a search ends with its context.
func TestMendEnds(t *testing.T) {
	packed := packs(t, trace(t))["gzip"]
	packed[len(packed)/2] ^= 4
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, packed, 0o600))
	f, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	_, err = readAll(t, f)
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, f.Mend(ctx))
}

// TestSalvage holds that what stands behind damage in compressed content is unpacked, and
// that the damage is told.
func TestSalvage(t *testing.T) {
	data := trace(t)
	data = data[:min(len(data), 256<<10)]
	for name, packed := range packs(t, data) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			sum, least, rounds := 0.0, 1.0, 12
			for range rounds {
				hit := bytes.Clone(packed)
				hit[rng.IntN(len(hit))] ^= 1 << rng.IntN(8)
				path := filepath.Join(t.TempDir(), "x")
				require.NoError(t, os.WriteFile(path, hit, 0o600))
				f, err := Open(context.Background(), path, nil)
				if err != nil {
					least = 0
					continue
				}
				got, err := readAll(t, f)
				if f.Mend(t.Context()) {
					got, err = readAll(t, f)
					assert.Equal(t, data, got)
					assert.ErrorIs(t, err, ErrFlipped)
				}
				assert.False(t, f.Mend(t.Context()), "is searched once")
				if !bytes.Equal(got, data) {
					assert.Error(t, err, "%s: other content without a word", name)
				}
				share := common(data, got)
				sum, least = sum+share, min(least, share)
			}
			t.Logf("%s: mean %.1f %%, worst %.1f %%", name, 100*sum/float64(rounds), 100*least)
			assert.Greater(t, sum/float64(rounds), 0.9)
		})
	}
}

// TestBeheaded holds that of content whose beginning cannot be unpacked the error of that is told,
// and not what the rest of it looks like.
func TestBeheaded(t *testing.T) {
	byCommand, err := os.ReadFile(filepath.Join("..", "..", "testdata", "chain.nettrace.zst"))
	require.NoError(t, err)
	for name, packed := range map[string][]byte{"zstd": byCommand, "gzip": packs(t, trace(t))["gzip"]} {
		clear(packed[14:54])
		path := filepath.Join(t.TempDir(), "x.nettrace")
		require.NoError(t, os.WriteFile(path, packed, 0o600))
		f, err := Open(t.Context(), path, nil)
		require.NoError(t, err)
		require.Equal(t, Unknown, f.Kind)
		fromFile := f.NotATrace().Error()
		assert.Regexp(t, "x.nettrace: offset [0-9]+: the beginning cannot be unpacked.*"+name+": expected compressed data, found something else at its byte [0-9]+ .*; copy the file again", fromFile)
		assert.NotContains(t, fromFile, "preallocated")
		f, err = FromOpener(path, int64(len(packed)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, nil)
		require.NoError(t, err)
		assert.Equal(t, fromFile, f.NotATrace().Error(), "a member of an archive")
	}
	// What can be unpacked is known by what it is.
	path := filepath.Join(t.TempDir(), "x")
	packed := packs(t, bytes.Repeat([]byte("words\n"), 1000))["gzip"]
	require.NoError(t, os.WriteFile(path, packed[:len(packed)-4], 0o600))
	f, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	assert.ErrorIs(t, f.NotATrace(), ErrNotATrace)
}

// TestSalvageParts holds that of content packed in parts (members of gzip, frames of zstd, blocks of
// bzip2) a broken one costs itself and no other, and is told.
func TestSalvageParts(t *testing.T) {
	data := trace(t)[:400<<10]
	third := len(data) / 3
	var gz, zs []byte
	var gzAt, zsAt [4]int
	for i := range 3 {
		packed := packs(t, data[i*third:][:third])
		gz, zs = append(gz, packed["gzip"]...), append(zs, packed["zstd"]...)
		gzAt[i+1], zsAt[i+1] = len(gz), len(zs)
	}
	bz, err := os.ReadFile(filepath.Join("testdata", "chain.bz2"))
	require.NoError(t, err)
	noise := make([]byte, 200)
	for i := range noise {
		noise[i] = byte(37*i + 11)
	}
	for name, c := range map[string]struct {
		packed []byte
		at     int
		with   []byte
		least  float64
	}{
		"gzip, noise":             {gz, (gzAt[1] + gzAt[2]) / 2, noise, 0.66},
		"gzip, a wrong sum":       {gz, gzAt[1] - 8, []byte{1, 2, 3, 4}, 0.99},
		"zstd, noise":             {zs, (zsAt[1] + zsAt[2]) / 2, noise, 0.66},
		"zstd, a wrong sum":       {zs, zsAt[1] - 4, []byte{1, 2, 3, 4}, 0.99},
		"zstd, no head":           {zs, zsAt[1], []byte{0, 0, 0, 0}, 0.66},
		"bzip2, noise":            {bz, len(bz) / 2, noise, 0.7},
		"bzip2, noise at the end": {bz, len(bz) - 250, noise, 0.7},
	} {
		t.Run(name, func(t *testing.T) {
			hit := bytes.Clone(c.packed)
			copy(hit[c.at:], c.with)
			got, err := unpacked(t, hit)
			assert.Error(t, err)
			assert.GreaterOrEqual(t, common(data[:3*third], got), c.least)
		})
	}
	got, err := unpacked(t, bz)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))
}

// unpacked reads a file of these bytes.
func unpacked(t *testing.T, packed []byte) ([]byte, error) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, packed, 0o600))
	f, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	return readAll(t, f)
}

// TestHeadsAreMended holds that a file is known by its beginning if a bit of that is flipped, or a
// zip if its header is gone: all its content comes out, and the bit is told.
func TestHeadsAreMended(t *testing.T) {
	data := trace(t)[:32<<10]
	files := packs(t, data)
	files["nettrace"] = data
	for name, places := range map[string][]int{
		"gzip":     {0, 1, 2, 3, 20, 30, 45, 60},
		"zstd":     {0, 1, 2, 3, 5},
		"zip":      {0, 1, 2, 3, 26, 27, 28, 29, 45, 60},
		"nettrace": {0, 3, 7},
	} {
		for _, at := range places {
			hit := bytes.Clone(files[name])
			hit[at] ^= 1 << (at % 8)
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, hit, 0o600))
			f, err := Open(t.Context(), path, nil)
			if !assert.NoError(t, err, "%s, byte %d", name, at) {
				continue
			}
			assert.Equal(t, Nettrace, f.Kind)
			got, err := readAll(t, f)
			if f.Mend(t.Context()) {
				got, err = readAll(t, f)
			}
			assert.True(t, bytes.Equal(data, got), "%s, byte %d", name, at)
			assert.Error(t, err, "%s, byte %d", name, at)
		}
	}
	clear(files["zip"][:30])
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, files["zip"], 0o600))
	f, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	got, err := readAll(t, f)
	assert.True(t, bytes.Equal(data, got))
	assert.ErrorContains(t, err, "its directory tells what it was")
}

// TestCutGzipIsNotSearched holds that of gzip that was cut no flipped bit is looked for, and of
// gzip whose last bits make it go on beyond its end one is.
func TestCutGzipIsNotSearched(t *testing.T) {
	data := trace(t)[:64<<10]
	whole := packs(t, data)["gzip"]
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-100], 0o600))
	f, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	_, err = readAll(t, f)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.False(t, f.Mend(t.Context()))
	assert.True(t, f.Mendable(), "it was not searched")
	beyond := 0
	for bit := range 64 {
		hit := bytes.Clone(whole)
		hit[len(hit)-9-bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, hit, 0o600))
		f, err := Open(t.Context(), path, nil)
		require.NoError(t, err)
		if _, err = readAll(t, f); errors.Is(err, io.ErrUnexpectedEOF) && f.Mend(t.Context()) {
			got, _ := readAll(t, f)
			assert.True(t, bytes.Equal(data, got))
			beyond++
		}
	}
	assert.NotZero(t, beyond)
}

// Of content in parts the first of which cannot be unpacked the others are read: what they hold
// tells what the file is.
func TestBeheadedParts(t *testing.T) {
	chromium, err := os.ReadFile(filepath.Join("..", "..", "testdata", "chain.chromium.json.zst"))
	require.NoError(t, err)
	z, err := zstd.NewReader(bytes.NewReader(chromium))
	require.NoError(t, err)
	defer z.Close()
	chromium = make([]byte, 1<<20)
	_, err = io.ReadFull(z, chromium)
	require.NoError(t, err)
	for kind, data := range map[Kind][]byte{Nettrace: trace(t), Chromium: chromium} {
		third := len(data) / 3
		for _, by := range []string{"zstd", "gzip"} {
			var packed []byte
			for i := range 3 {
				packed = append(packed, packs(t, data[i*third:][:third])[by]...)
			}
			clear(packed[14:54])
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, packed, 0o600))
			fromPath, err := Open(t.Context(), path, nil)
			require.NoError(t, err)
			fromReader, err := FromReader(path, bytes.NewReader(packed), nil)
			require.NoError(t, err)
			defer fromReader.Close()
			member, err := FromOpener(path, int64(len(packed)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, nil)
			require.NoError(t, err)
			for _, f := range []*File{fromPath, fromReader, member} {
				require.Equal(t, kind.String(), f.Kind.String(), by)
				got, err := readAll(t, f)
				var unpack *UnpackError
				assert.ErrorAs(t, err, &unpack)
				assert.Equal(t, kind, Sniff(got))
				assert.GreaterOrEqual(t, common(data[:3*third], got), 0.66, by)
			}
		}
	}
}

// What a reader gives is mended as what a path names is.
func TestFromReaderMends(t *testing.T) {
	data := trace(t)[:300<<10]
	for by, packed := range packs(t, data) {
		for _, at := range []int{0, 1, 2, 3, 5, 12, 40, len(packed) / 2, len(packed) - 6} {
			hit := bytes.Clone(packed)
			hit[at] ^= 4
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, hit, 0o600))
			want, wantErr := Open(t.Context(), path, nil)
			got, gotErr := FromReader(path, bytes.NewReader(hit), nil)
			if wantErr != nil {
				assert.EqualError(t, gotErr, wantErr.Error(), "%s at %d", by, at)
				continue
			}
			require.NoError(t, gotErr, "%s at %d", by, at)
			defer got.Close()
			assert.Equal(t, want.Kind, got.Kind, "%s at %d", by, at)
			assert.Equal(t, want.Layers, got.Layers, "%s at %d", by, at)
			a, aErr := readAll(t, want)
			b, bErr := readAll(t, got)
			assert.True(t, bytes.Equal(a, b), "%s at %d", by, at)
			assert.Equal(t, aErr, bErr, "%s at %d", by, at)
		}
	}
}
