package input

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is read ahead is what would be read otherwise: bytes, errors in their place, panics.
func TestReadAhead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	want := make([]byte, 3*aheadSize*aheadChunks+17)
	for i := range want {
		want[i] = byte(i * i >> 7)
	}
	boom := errors.New("boom")
	for name, r := range map[string]func() io.Reader{
		"whole":   func() io.Reader { return bytes.NewReader(want) },
		"halves":  func() io.Reader { return iotest.HalfReader(bytes.NewReader(want)) },
		"at once": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(want)) },
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			a := readAhead(io.NopCloser(r()), worthAhead)
			require.IsType(t, &ahead{}, a)
			got, err := io.ReadAll(iotest.OneByteReader(a))
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, got))
			n, err := a.Read(make([]byte, 1))
			assert.Equal(t, 0, n)
			assert.Equal(t, io.EOF, err, "and again")
			require.NoError(t, a.Close())
			require.NoError(t, a.Close(), "once more is harmless")
			assert.LessOrEqual(t, runtime.NumGoroutine(), before+1)
		})
	}
	t.Run("error", func(t *testing.T) {
		a := readAhead(io.NopCloser(io.MultiReader(bytes.NewReader(want), iotest.ErrReader(boom))), worthAhead)
		got, err := io.ReadAll(a)
		assert.Equal(t, boom, err)
		assert.True(t, bytes.Equal(want, got))
		require.NoError(t, a.Close())
	})
	t.Run("closed early", func(t *testing.T) {
		closed := false
		a := readAhead(closer{bytes.NewReader(want), &closed}, worthAhead)
		_, err := a.Read(make([]byte, 10))
		require.NoError(t, err)
		require.NoError(t, a.Close())
		assert.True(t, closed)
	})
	t.Run("panic", func(t *testing.T) {
		a := readAhead(io.NopCloser(panicking{}), worthAhead)
		assert.PanicsWithValue(t, "broken", func() { _, _ = io.ReadAll(a) })
		require.NoError(t, a.Close())
	})
	t.Run("small", func(t *testing.T) {
		assert.IsType(t, closer{}, readAhead(closer{}, worthAhead-1))
	})
}

type closer struct {
	io.Reader
	closed *bool
}

func (c closer) Close() error {
	*c.closed = true
	return nil
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("broken") }
