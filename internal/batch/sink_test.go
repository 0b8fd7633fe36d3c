package batch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
