package input

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
)

// The file of a spool does not grow beyond what temporary files may take: the rest stays in memory.
func TestScratch(t *testing.T) {
	t.Setenv("TRACEFIX_MAX_SPOOL", "100K")
	f, err := scratch()
	if err != nil {
		t.Skip(err) // this system keeps the names of open files
	}
	defer f.(io.Closer).Close()
	_, err = f.WriteAt(make([]byte, 1000), 99_000)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 1000), 99_001)
	require.ErrorIs(t, err, ErrSpool)

	s := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return f, nil }}
	piece := make([]byte, 1000)
	aside := 0
	for range 200 {
		if s.Put(piece, 0, len(piece)) > 0 {
			aside++
		}
	}
	assert.Equal(t, 99, aside, "at 0 nothing is")
	assert.False(t, s.InUse())
	require.NoError(t, s.Err())

	t.Setenv("TRACEFIX_MAX_SPOOL", "much")
	_, err = scratch()
	assert.Error(t, err)
}
