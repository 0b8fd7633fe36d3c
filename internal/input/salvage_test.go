package input

import (
	"archive/zip"
	"bytes"
	"context"
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
				r, err := f.Reader()
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, r.Close())
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
