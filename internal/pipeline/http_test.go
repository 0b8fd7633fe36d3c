package pipeline

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/profile"
)

// The requests are read from the file once more. One that has become shorter in between
// is another one.
func TestRequestsOfTheSameFile(t *testing.T) {
	in, err := input.Open(t.Context(), filepath.Join("..", "requests", "testdata", "http-more.nettrace.zst"), nil)
	require.NoError(t, err)
	defer in.Close()
	p, info, err := load.Profile(t.Context(), in.Reader, &load.Options{})
	require.NoError(t, err)
	c := &Config{Tracks: []string{"http"}}
	require.NoError(t, addHTTP(t.Context(), in, c, p, info.Events))
	assert.NotEmpty(t, p.Tracks)
	assert.ErrorIs(t, addHTTP(t.Context(), in, c, &profile.Profile{}, info.Events+1), input.ErrChanged)
}
