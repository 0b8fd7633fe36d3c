package spool

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Pieces beyond what stays in memory have places of their own, keep them when they are put again,
// and are read back.
func TestSpool(t *testing.T) {
	const room = 100
	var file *os.File
	s := &Spool{Memory: 250, Create: func() (File, error) {
		f, err := os.Create(filepath.Join(t.TempDir(), "spool"))
		file = f
		return f, err
	}}
	piece := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 50+i) }
	defer func() { file.Close() }() // Windows removes no open file
	places := map[int64]int{}
	for i := range 25 {
		at := s.Put(piece(i), 0, room)
		assert.Equal(t, i >= 4, at > 0, "50, 51, 52 and 53 bytes stay")
		assert.Equal(t, i >= 4, s.InUse())
		assert.Equal(t, i >= 23, s.Much(), "eight times 250 bytes, and where none is at the start")
		if at > 0 {
			require.NotContains(t, places, at)
			places[at] = i
		}
	}
	assert.Zero(t, s.Put(make([]byte, room+1), 0, room), "there is no room for it")
	for at, i := range places {
		if i%2 == 0 {
			assert.Equal(t, at, s.Put(piece(i+1), at, room))
			places[at] = i + 1
		}
	}
	for at, i := range places {
		b := make([]byte, len(piece(i)))
		require.True(t, s.Get(b, at))
		assert.Equal(t, piece(i), b)
	}
	require.NoError(t, s.Err())
	require.NoError(t, file.Truncate(0))
	assert.False(t, s.Get(make([]byte, 1), room))
	assert.ErrorContains(t, s.Err(), "cannot be read again")
}

// Without a file, or room in it, all stays in memory, and that is no error.
func TestSpoolWithoutFile(t *testing.T) {
	for name, s := range map[string]*Spool{
		"nil": nil, "no Create": {Memory: 1},
		"no file": {Memory: 1, Create: func() (File, error) { return nil, errors.New("no file") }},
		"no room": {Memory: 1, Create: func() (File, error) { return full{}, nil }},
	} {
		for range 3 {
			assert.Zero(t, s.Put(make([]byte, 10), 0, 10), name)
		}
		assert.False(t, s.InUse(), name)
		assert.NoError(t, s.Err(), name)
	}
}

type full struct{}

func (full) ReadAt([]byte, int64) (int, error)  { return 0, errors.New("nothing was written") }
func (full) WriteAt([]byte, int64) (int, error) { return 0, errors.New("no space left") }
