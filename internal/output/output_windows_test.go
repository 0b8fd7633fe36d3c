package output

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDevices: an output that Windows would give to a device is refused, wherever it is.
func TestDevices(t *testing.T) {
	for _, name := range []string{"con", "aux.json", "COM1.speedscope.json", "lpt9", "Con .json"} {
		assert.ErrorContains(t, Check(filepath.Join(t.TempDir(), name), &Options{}), "device", name)
	}
	for _, name := range []string{"console.json", "com.json", "x.con", "NUL"} {
		assert.NoError(t, Check(filepath.Join(t.TempDir(), name), &Options{}), name)
	}
	assert.ErrorContains(t, Check(filepath.Join(t.TempDir(), "a:b.json"), &Options{}), "colon")
}

// TestNamelessFile: what is put aside takes no memory, and nothing of it stays.
func TestNamelessFile(t *testing.T) {
	f, err := NamelessFile("tracefix-test-")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("aside"), 1<<20)
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = f.ReadAt(b, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, "aside", string(b))
	require.NoError(t, f.Close())
	_, err = os.Lstat(f.Name())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestOpenElsewhere: an output appears though a virus scanner looks at its file just then.
func TestOpenElsewhere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.json")
	f, err := Create(name, &Options{})
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.NoError(t, err)
	other, err := os.Open(f.temp)
	require.NoError(t, err)
	time.AfterFunc(100*time.Millisecond, func() { other.Close() })
	require.NoError(t, f.Commit())
	assert.FileExists(t, name)
}

// TestFinishedIsNotLeft: a file that waits for its name, closed, is not taken for one that a killed run left.
func TestFinishedIsNotLeft(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "a.json"), &Options{})
	require.NoError(t, err)
	require.NoError(t, f.Finish())
	sweep(dir, besideName())
	assert.FileExists(t, f.temp)
	require.NoError(t, f.Commit())

	left := filepath.Join(dir, ".b.json.tracefix-01234567")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	long := time.Now().Add(-2 * restsClosed)
	require.NoError(t, os.Chtimes(left, long, long))
	sweep(dir, besideName())
	assert.NoFileExists(t, left)
}
