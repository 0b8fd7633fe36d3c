package load

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// A compressed file that was cut gives the tracks of what could be unpacked.
func TestTracksOfCutGzip(t *testing.T) {
	in, err := opener(t, "dotnet10/http-full.nettrace")()
	require.NoError(t, err)
	defer in.Close()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = io.Copy(z, in)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	cut := b.Bytes()[:b.Len()*3/4]

	told := 0
	p, _, err := Profile(context.Background(), func() (io.ReadCloser, error) {
		return gzip.NewReader(bytes.NewReader(cut))
	}, &Options{Tracks: Groups, Warn: func(*nettrace.FormatError) { told++ }})
	require.NoError(t, err)
	assert.Positive(t, told)
	assert.NotEmpty(t, p.Tracks)
}
