package load

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

// The file of samples does not grow beyond what temporary files may take: the rest stays in memory.
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
	require.ErrorIs(t, err, input.ErrSpool)

	l := profile.SamplesIn(&profile.Spool{Memory: 1, Create: func() (profile.SpoolFile, error) { return f, nil }})
	for i := range 100_000 {
		l.Append(profile.Sample{Time: int64(i), Stack: profile.StackID(i * 7)})
	}
	for i, s := range l.All() {
		require.Equal(t, profile.Sample{Time: int64(i), Stack: profile.StackID(i * 7)}, s)
	}

	t.Setenv("TRACEFIX_MAX_SPOOL", "much")
	_, err = scratch()
	assert.Error(t, err)
}
