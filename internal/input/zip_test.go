package input

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// zipOf writes a zip as archive/zip does: sizes stand behind the data. With known they
// stand before it.
func zipOf(t testing.TB, method uint16, known bool, members ...string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, c := range members {
		h := &zip.FileHeader{Name: string(rune('a' + i)), Method: method}
		if !known {
			f, err := w.CreateHeader(h)
			require.NoError(t, err)
			_, err = f.Write([]byte(c))
			require.NoError(t, err)
			continue
		}
		var packed bytes.Buffer // as one member alone
		z := zip.NewWriter(&packed)
		f, err := z.CreateHeader(&zip.FileHeader{Name: "x", Method: method})
		require.NoError(t, err)
		_, err = f.Write([]byte(c))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		r, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
		require.NoError(t, err)
		raw, err := r.File[0].OpenRaw()
		require.NoError(t, err)
		h.CRC32, h.CompressedSize64, h.UncompressedSize64 = r.File[0].CRC32, r.File[0].CompressedSize64, r.File[0].UncompressedSize64
		f, err = w.CreateRaw(h)
		require.NoError(t, err)
		_, err = io.Copy(f, raw)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// The message about a zip of several files is one line, whatever the first of them is called.
func TestZipOfSeveral(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range []string{"a\nb", "c"} {
		_, err := w.Create(name)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	_, err := FromReader("x.zip", &out, nil)
	require.ErrorContains(t, err, "x.zip: the zip holds 2 files, such as a b;")
}

// TestZipSalvage cuts zips everywhere: members come in order, each is a beginning of what
// it was, and only the last one is not whole.
func TestZipSalvage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	members := []string{"first", string(noise), "", "last"}
	for name, whole := range map[string][]byte{
		"deflate, sizes behind": zipOf(t, zip.Deflate, false, members...),
		"deflate, sizes before": zipOf(t, zip.Deflate, true, members...),
		"stored, sizes before":  zipOf(t, zip.Store, true, members...),
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; n <= len(whole); n++ {
				z := NewZipSalvage(bytes.NewReader(whole[:n]))
				var got []string
				cut := false
				var end error
				for end == nil {
					if end = z.Next(); end != nil {
						break
					}
					require.False(t, cut, "%d bytes: a member behind one that is cut", n)
					b, err := io.ReadAll(z)
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					cut = !errors.Is(err, ErrZipDirectory)
					i := len(got)
					require.Less(t, i, len(members))
					require.Equal(t, string(rune('a'+i)), z.Name)
					require.True(t, bytes.HasPrefix([]byte(members[i]), b) && (cut || len(b) == len(members[i])), "%d bytes: member %d", n, i)
					got = append(got, string(b))
				}
				if end == io.EOF {
					require.Equal(t, members, got, "%d bytes", n)
				}
				if n == len(whole) {
					require.Equal(t, io.EOF, end)
				}
			}
		})
	}
}

func TestZipWithoutDirectory(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "t.zip")
	whole := zipOf(t, zip.Deflate, false, `[{"ph":"B","name":"x"}]`)
	for _, c := range []struct {
		n    int
		want error // of reading it; nil: it cannot be opened
	}{
		{len(whole) - 5, ErrZipDirectory},
		{45, io.ErrUnexpectedEOF},
		{20, nil},
	} {
		require.NoError(t, os.WriteFile(p, whole[:c.n], 0o600))
		f, err := Open(t.Context(), p, nil)
		if c.want == nil {
			assert.ErrorContains(t, err, "copy it again, or try `zip -FF`")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, Chromium, f.Kind)
		for range 2 {
			r, err := f.Reader()
			require.NoError(t, err)
			b, err := io.ReadAll(r)
			assert.ErrorIs(t, err, c.want)
			assert.NotEmpty(t, b)
			require.NoError(t, r.Close())
		}
	}
}

// What cannot be unpacked may say that it is the last block.
func TestZipMemberBehindZeros(t *testing.T) {
	data := trace(t)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		whole := zipOf(t, method, false, string(data))
		hit := bytes.Clone(whole)
		clear(hit[len(hit)/2 : len(hit)/2+8])
		p := filepath.Join(t.TempDir(), "t.zip")
		require.NoError(t, os.WriteFile(p, hit, 0o600))
		f, err := Open(t.Context(), p, nil)
		require.NoError(t, err)
		got, err := readAll(t, f)
		var unpack *UnpackError
		require.ErrorAs(t, err, &unpack)
		assert.Equal(t, "zip", unpack.Layer)
		assert.InDelta(t, len(hit)/2, unpack.At, float64(len(hit)/2), "about where it breaks")
		assert.Greater(t, common(data, got), 0.8)
		z, err := zip.NewReader(bytes.NewReader(hit), int64(len(hit)))
		require.NoError(t, err)
		m, err := OpenMember(z.File[0], int64(len(hit)))
		require.NoError(t, err)
		again, err := io.ReadAll(m)
		require.ErrorAs(t, err, &unpack)
		assert.True(t, bytes.Equal(got, again))
		require.NoError(t, m.Close())
	}
}

func TestEncryptedZip(t *testing.T) {
	b := zipOf(t, zip.Deflate, true, "[{}]")
	b[6] |= 1
	b[bytes.Index(b, []byte(zipDirectory))+8] |= 1
	p := filepath.Join(t.TempDir(), "t.zip")
	for _, n := range []int{len(b), len(b) - 5} {
		require.NoError(t, os.WriteFile(p, b[:n], 0o600))
		_, err := Open(t.Context(), p, nil)
		assert.ErrorIs(t, err, ErrEncrypted)
	}
}

// Whatever the bytes are, the members end, none is longer than what is told of it, and
// nothing panics.
func FuzzZipSalvage(f *testing.F) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		for _, known := range []bool{true, false} {
			if method == zip.Store && !known {
				continue
			}
			f.Add(zipOf(f, method, known, "first", strings.Repeat("second ", 100)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		z := NewZipSalvage(bytes.NewReader(b))
		for range len(b) + 1 {
			if err := z.Next(); errors.Is(err, ErrEncrypted) || errors.Is(err, zip.ErrAlgorithm) {
				continue
			} else if err != nil {
				return
			}
			if n, _ := io.CopyN(io.Discard, z, 1<<20); n == 1<<20 {
				return // a bomb is told by who counts
			}
		}
		t.Fatal("more members than bytes")
	})
}
