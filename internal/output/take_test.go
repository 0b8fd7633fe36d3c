package output

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/relay"
)

// TestTake holds that what is given stands in its place among what is written, whatever its size,
// and that it stays as it was until it is on the disk.
func TestTake(t *testing.T) {
	for _, procs := range []int{1, 2} {
		for _, hold := range []int{0, 1 << 20} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			name := filepath.Join(t.TempDir(), "out")
			out, err := Create(name, &Options{Hold: hold})
			require.NoError(t, err)
			defer out.Close()
			var want strings.Builder
			var b []byte
			for i, size := range []int{10, bufferSize / 4, 3 * bufferSize, 0, 1000, bufferSize, bufferSize/4 - 1, 2 * bufferSize} {
				b = append(b, bytes.Repeat([]byte{byte('a' + i)}, size)...)
				want.Write(b)
				b, err = relay.Give(out, b)
				require.NoError(t, err)
				require.Empty(t, b)
				_, err = out.Write([]byte("-"))
				require.NoError(t, err)
				want.WriteString("-")
				b = append(b, "!"...) // what was given is no longer ours, and this is other memory
			}
			require.NoError(t, out.Commit())
			got, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.True(t, want.String() == string(got), "%d processors, hold %d", procs, hold)
		}
	}
}

// TestGive holds that any writer can be given to: it keeps nothing.
func TestGive(t *testing.T) {
	var out bytes.Buffer
	b, err := relay.Give(&out, []byte("abc"))
	require.NoError(t, err)
	assert.Empty(t, b)
	assert.GreaterOrEqual(t, cap(b), 3, "its memory is used again")
	assert.Equal(t, "abc", out.String())
}

// TestWriteInPieces holds that what is written at once goes on in pieces of bufferSize, behind what
// is held first: or each buffer would grow to the largest of it.
func TestWriteInPieces(t *testing.T) {
	for _, procs := range []int{1, 2} {
		for _, hold := range []int{0, 1 << 20} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var pieces sizes
			out, err := Create("-", &Options{Hold: hold, Stdout: &pieces})
			require.NoError(t, err)
			defer out.Close()
			var want bytes.Buffer
			for i, size := range []int{1, bufferSize - 2, 5*bufferSize + 7, 0, bufferSize} {
				b := bytes.Repeat([]byte{byte('a' + i)}, size)
				want.Write(b)
				n, err := out.Write(b)
				require.NoError(t, err)
				require.Equal(t, size, n)
			}
			require.NoError(t, out.Commit())
			assert.True(t, want.String() == pieces.all.String(), "%d processors, hold %d", procs, hold)
			assert.Equal(t, max(hold, bufferSize), pieces.of[0])
			for _, n := range pieces.of[1:] {
				assert.LessOrEqual(t, n, bufferSize)
			}
		}
	}
}

// sizes keeps what was written, and in pieces of which sizes.
type sizes struct {
	all bytes.Buffer
	of  []int
}

func (s *sizes) Write(p []byte) (int, error) {
	s.of = append(s.of, len(p))
	return s.all.Write(p)
}
