package bitfix

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// content is the beginning of a real recording.
func content(t testing.TB) []byte {
	f, err := os.Open(filepath.Join("..", "..", "..", "testdata", "chain.nettrace.zst"))
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, 200<<10))
	require.NoError(t, err)
	return b
}

func deflated(t testing.TB, data []byte, level int) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, level)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func zstded(t testing.TB, data []byte, level zstd.EncoderLevel) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level))
	require.NoError(t, err)
	return w.EncodeAll(data, nil)
}

// firstDifference is where two contents differ first, -1 if nowhere.
func firstDifference(a, b []byte) int64 {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return int64(min(len(a), len(b)))
}

// TestDeflate holds that a flipped bit is found in data of several levels, but for few.
func TestDeflate(t *testing.T) {
	data := content(t)
	want := crc32.ChecksumIEEE(data)
	rng := rand.New(rand.NewPCG(7, 1))
	found, all := 0, 0
	for _, level := range []int{1, 6, 9} {
		b := deflated(t, data, level)
		for range 6 {
			at := rng.Int64N(int64(len(b)) * 8)
			flip(b, at)
			got, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
			if err == nil && bytes.Equal(got, data) {
				flip(b, at) // a bit that says nothing
				continue
			}
			bit, ok := Deflate(t.Context(), b, int64(len(data)), firstDifference(data, got), want, func() bool {
				got, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
				return err == nil && bytes.Equal(got, data)
			})
			flip(b, at)
			if all++; ok {
				found++
				assert.Equal(t, at, bit, "level %d", level)
			}
		}
	}
	t.Logf("%d of %d found", found, all)
	assert.GreaterOrEqual(t, found, all*4/5)
}

// TestDeflateHoles holds that data of which much is zeros, as a disk may leave them, are not unpacked for bit after
// bit: nearly each of those before the end of the hole lets them be read a little further. Nor are they read to that end
// for each.
func TestDeflateHoles(t *testing.T) {
	data := bytes.Repeat(content(t), 5)
	died := 0
	for _, level := range []int{1, 6, 9} {
		for _, part := range [][2]int{{2, 8}, {1, 5}, {5, 9}} {
			b := deflated(t, data, level)
			clear(b[len(b)*part[0]/10 : len(b)*part[1]/10])
			s := scanDeflate(b, MaxUnpacked)
			if !s.died {
				continue
			}
			died++
			checks := 0
			_, ok := Deflate(t.Context(), b, int64(len(data)), -1, crc32.ChecksumIEEE(data), func() bool {
				checks++
				return false
			})
			require.False(t, ok)
			assert.Less(t, checks, 10, "level %d, hole %d", level, part)

			// Candidates in the hole, one after the other.
			s.lost = lost{max(0, s.end-reach), -1, make([]uint64, 2*reach/64)}
			at, n := int64(len(b))*8*int64(part[1])/10-1, int64(20_000)
			for c := at; c > at-n; c-- {
				i := sort.Search(len(s.places), func(i int) bool { return int64(s.places[i].bit) > c }) - 1
				_, _, _ = s.try(c, i, int64(len(data))-s.out)
			}
			assert.Less(t, s.tokens, 20*n, "level %d, hole %d", level, part)
		}
	}
	assert.Greater(t, died, 5)
}

// TestDeflateZeros holds that a flipped bit is found in data that are mostly zeros as they were packed.
func TestDeflateZeros(t *testing.T) {
	data := slices.Concat(content(t)[:50<<10], make([]byte, 1<<20), content(t)[50<<10:100<<10])
	rng := rand.New(rand.NewPCG(7, 3))
	found, all := 0, 0
	for _, level := range []int{1, 6} {
		b := deflated(t, data, level)
		for range 6 {
			at := rng.Int64N(int64(len(b)) * 8)
			flip(b, at)
			if got, err := io.ReadAll(flate.NewReader(bytes.NewReader(b))); err != nil || !bytes.Equal(got, data) {
				bit, ok := Deflate(t.Context(), b, int64(len(data)), firstDifference(data, got), crc32.ChecksumIEEE(data), func() bool {
					got, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
					return err == nil && bytes.Equal(got, data)
				})
				if all++; ok {
					found++
					assert.Equal(t, at, bit, "level %d", level)
				}
			}
			flip(b, at)
		}
	}
	t.Logf("%d of %d found", found, all)
	assert.GreaterOrEqual(t, found, all*4/5)
}

// TestZstd holds the same of zstd, but for bits that change next to nothing.
func TestZstd(t *testing.T) {
	data := content(t)
	rng := rand.New(rand.NewPCG(7, 2))
	found, all := 0, 0
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBestCompression} {
		b := zstded(t, data, level)
		for range 3 {
			at := 9*8 + rng.Int64N(int64(len(b)-13)*8)
			flip(b, at)
			unpack := func(ignore bool) ([]byte, error) {
				z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(ignore))
				require.NoError(t, err)
				defer z.Close()
				return io.ReadAll(z)
			}
			got, _ := unpack(true)
			bit, ok := Zstd(t.Context(), b, firstDifference(data, got), func() bool {
				_, err := unpack(false)
				return err == nil
			})
			flip(b, at)
			if all++; ok {
				found++
				assert.Equal(t, at, bit, "level %v", level)
			}
		}
	}
	t.Logf("%d of %d found", found, all)
	assert.Greater(t, found, all/3)
}

// TestScans holds that the codes of whole data are followed to their end, without a library.
func TestScans(t *testing.T) {
	data := content(t)
	for level := flate.HuffmanOnly; level <= 9; level++ {
		s := scanDeflate(deflated(t, data, level), MaxUnpacked)
		require.False(t, s.died)
		require.True(t, bytes.Equal(data, s.content), "level %d", level)
	}
	for level := zstd.SpeedFastest; level <= zstd.SpeedBestCompression; level++ {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(level))
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		s, ok := scanZstd(out.Bytes())
		require.True(t, ok)
		require.False(t, s.died)
		last := s.blocks[len(s.blocks)-1]
		require.Equal(t, int64(len(data)), last.out+int64(last.size), "level %v", level)
	}
}

// FuzzDeflate holds that any bytes can be searched, and are as they were behind that.
func FuzzDeflate(f *testing.F) {
	f.Add(deflated(f, content(f)[:600], 6), int64(600), int64(100))
	f.Add(deflated(f, content(f)[:600], 0), int64(600), int64(100))
	f.Fuzz(func(t *testing.T, b []byte, length, near int64) {
		if len(b) > 512 {
			return
		}
		before := bytes.Clone(b)
		_, ok := Deflate(t.Context(), b, length, near, 1, func() bool { return false })
		require.False(t, ok)
		require.Equal(t, before, b)
	})
}

// FuzzZstd holds the same.
func FuzzZstd(f *testing.F) {
	f.Add(zstded(f, content(f)[:600], zstd.SpeedDefault), int64(100))
	f.Add(zstded(f, content(f)[:400], zstd.SpeedBestCompression), int64(100))
	f.Fuzz(func(t *testing.T, b []byte, near int64) {
		if len(b) > 512 {
			return
		}
		before := bytes.Clone(b)
		_, ok := Zstd(t.Context(), b, near, func() bool { return false })
		require.False(t, ok)
		require.Equal(t, before, b)
	})
}
