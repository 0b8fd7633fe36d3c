package batch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/output"
)

// A memoryStore keeps objects in memory. It lists nothing below refuse.
type memoryStore struct {
	objects map[string][]byte
	refuse  string
}

func (m *memoryStore) List(_ context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if m.refuse != "" && prefix == m.refuse {
			yield(Object{}, errors.New("out of reach"))
			return
		}
		for _, key := range slices.Sorted(maps.Keys(m.objects)) {
			if strings.HasPrefix(key, prefix) && !yield(Object{Key: key, Size: int64(len(m.objects[key]))}, nil) {
				return
			}
		}
	}
}

func (m *memoryStore) Open(_ context.Context, o Object, at, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m.objects[o.Key][at:])), nil
}

func (m *memoryStore) Stat(_ context.Context, key string) (Object, error) {
	if b, ok := m.objects[key]; ok {
		return Object{Key: key, Size: int64(len(b))}, nil
	}
	return Object{}, fs.ErrNotExist
}

func (m *memoryStore) Put(_ context.Context, key string, r io.Reader) (err error) {
	m.objects[key], err = io.ReadAll(r)
	return err
}

func (m *memoryStore) Delete(_ context.Context, key string) error {
	delete(m.objects, key)
	return nil
}

func (m *memoryStore) Close() error { return nil }

// A run that could not begin says nothing of what killed the one before it.
func TestStopWithoutStart(t *testing.T) {
	m := &memoryStore{objects: map[string][]byte{}}
	killed := &storeSink{store: m, prefix: "out/"}
	_, err := killed.start(t.Context(), false, false)
	require.NoError(t, err)
	require.NoError(t, killed.log(t.Context(), true, fact{Begin: "a.json"}))
	require.NoError(t, killed.folder.Remove())

	m.refuse = "out/"
	failed := &storeSink{store: m, prefix: "out/"}
	before := len(m.objects)
	_, err = failed.start(t.Context(), true, false)
	require.Error(t, err)
	require.NoError(t, failed.close())
	assert.Len(t, m.objects, before)

	m.refuse = ""
	next := &storeSink{store: m, prefix: "out/"}
	j, err := next.start(t.Context(), true, false)
	require.NoError(t, err)
	assert.Equal(t, 1, j.tries["a.json"])
	require.NoError(t, next.close())
}

// Messages of a disk that is full tell the place and what to do, and no name that is another one in each run.
func TestDiskThatTakesNothing(t *testing.T) {
	out := t.TempDir()
	it := &item{stream: bytes.NewReader(make([]byte, inMemory+1))}
	err := it.capture(filepath.Join(out, "gone", "tmp"))
	var place *output.PlaceError
	require.ErrorAs(t, err, &place)
	assert.Equal(t, out, place.Name)
	w := &walker{ctx: t.Context(), temp: filepath.Join(out, "gone", "tmp")}
	_, _, _, _, err = w.seekable(source{stream: strings.NewReader("x")})
	require.ErrorAs(t, err, &place)
	assert.Equal(t, out, place.Name)
	assert.NotContains(t, err.Error(), "archive-")

	s := &dirSink{dir: out}
	_, err = s.start(t.Context(), false, false)
	require.NoError(t, err)
	require.NoError(t, s.file.Close())
	r := &runner{sink: s}
	r.log(t.Context(), fact{End: "a"})
	require.ErrorAs(t, r.logErr, &place)
	assert.Equal(t, out, place.Name)
	first := r.logErr.Error()
	r.log(t.Context(), fact{End: "b"})
	assert.Equal(t, first, r.logErr.Error(), "once, however many traces follow")
}

// What a merge that was killed left goes with the next one.
func TestMergeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	left := filepath.Join(dir, "tracefix-merge-123")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	m, err := NewMerger()
	require.NoError(t, err)
	if runtime.GOOS != "windows" { // where one of a moment ago may be another run's
		assert.NoFileExists(t, left)
	}
	require.NoError(t, m.Close())
	_ = os.Remove(left)
	rest, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, rest)
}

// A row that is none is told with the report that it is in.
func TestRowThatIsNone(t *testing.T) {
	m, err := NewMerger()
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Add("out/batch-report-1-of-1.ndjson", strings.NewReader(`{"k":"batch","command":"batch","do":"repair","shard":{"index":1,"count":1},"list":{},"totals":{"traces":1}}
{"k":"trace","index":7,"status":"ok","input":{"name":"a","bytes":"many"}}
`)))
	_, err = m.Report(nil)
	require.ErrorIs(t, err, errNoReport)
	assert.ErrorContains(t, err, "out/batch-report-1-of-1.ndjson: the row of trace 7: ")
}
