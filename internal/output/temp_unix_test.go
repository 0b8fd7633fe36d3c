//go:build unix

package output

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forget makes the next temporary file look for leftovers again, as another run does.
func forget() {
	clear(swept)
}

func namesIn(t *testing.T, dir string) (names []string) {
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestLeftoversAreRemoved: what a killed run left goes with the next one, what a live run works on stays,
// and so does what is not ours.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	live, err := TempFile("", "tracefix-input-")
	require.NoError(t, err)
	defer live.Close()
	liveDir, err := TempDir("tracefix-batch-")
	require.NoError(t, err)
	kept, err := TempDir("tracefix-view-")
	require.NoError(t, err)
	kept.Keep()
	dead, err := TempFile("", "tracefix-input-")
	require.NoError(t, err)
	dead.Close() // as the death of a process does
	deadDir, err := TempDir("tracefix-batch-")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(deadDir.Path, "spool"), []byte("x"), 0o600))
	deadDir.lock.Close()
	other := filepath.Join(dir, "tracefix-input-mine")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.Symlink(other, filepath.Join(dir, "tracefix-input-123")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "tracefix-input-124"), 0o600))

	forget()
	f, err := TempFile("", "tracefix-input-")
	require.NoError(t, err)
	defer f.Close()
	d, err := TempDir("tracefix-batch-")
	require.NoError(t, err)
	defer d.Remove()
	v, err := TempDir("tracefix-view-")
	require.NoError(t, err)
	defer v.Remove()
	left := namesIn(t, dir)
	for _, stays := range []string{live.Name(), liveDir.Path, kept.Path, other, f.Name()} {
		assert.Contains(t, left, filepath.Base(stays))
	}
	assert.NotContains(t, left, filepath.Base(dead.Name()))
	assert.NotContains(t, left, filepath.Base(deadDir.Path))
	require.NoError(t, liveDir.Remove())
}

// TestOutputsOfKilledRuns: temporary files of outputs go when a run writes in their folder, and no others.
func TestOutputsOfKilledRuns(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	live, err := Create(name, nil)
	require.NoError(t, err)
	require.NoError(t, live.Finish())
	for _, file := range []string{".a.json.tracefix-0123abcd", ".b.json.tracefix-0123abcd", ".b.json.tmp-0123abcd"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
	forget()
	next, err := Create(name, nil)
	require.NoError(t, err)
	left := namesIn(t, dir)
	assert.NotContains(t, left, ".a.json.tracefix-0123abcd")
	assert.NotContains(t, left, ".b.json.tracefix-0123abcd")
	assert.Contains(t, left, filepath.Base(live.temp))
	require.NoError(t, live.Commit())
	require.NoError(t, next.Close())
	assert.Equal(t, []string{".b.json.tmp-0123abcd", "a.json"}, namesIn(t, dir))
}

// TestPipesEndWithTheirContext: neither the opening of a named pipe without a reader nor a write to
// one that nobody empties keeps a run.
func TestPipesEndWithTheirContext(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := Create(name, &Options{Context: ctx})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	r, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	defer r.Close()
	ctx, stop = context.WithCancel(t.Context())
	out, err := Create(name, &Options{Context: ctx})
	require.NoError(t, err)
	time.AfterFunc(50*time.Millisecond, stop)
	_, err = out.Write([]byte(strings.Repeat("x", 4<<20)))
	err = errors.Join(err, out.Finish()) // it may be told later
	require.ErrorIs(t, err, context.Canceled)
	var place *PlaceError
	assert.False(t, errors.As(err, &place), "it is no fault of the place")
	require.NoError(t, out.Close())
}

// TestSweepersLeaveWhatBegins: what a run has just made, and has not locked yet, another one that begins
// may take for left. The run makes another then, and keeps that.
func TestSweepersLeaveWhatBegins(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	done := make(chan struct{})
	var sweepers sync.WaitGroup
	for range 3 {
		sweepers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					sweep(dir, prefixed("tracefix-batch-"))
				}
			}
		})
	}
	for range 200 {
		d, err := TempDir("tracefix-batch-")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(d.Path, "spool"), nil, 0o600))
		require.NoError(t, d.Remove())
		f, err := TempFile(dir, "tracefix-batch-")
		require.NoError(t, err)
		require.FileExists(t, f.Name())
		require.NoError(t, RemoveTemp(f))
	}
	close(done)
	sweepers.Wait()
}
