package spans

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A trace with a thread in each event costs a small multiple of its size.
func TestManyThreads(t *testing.T) {
	const n = 100_000
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"ph":"B","name":"a","ts":%d,"pid":1,"tid":%d},`, i, i)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tr, err := Read(context.Background(), open, &Options{Lean: true})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, tr.Facts.Threads, n)
	per := (after.TotalAlloc - before.TotalAlloc) / n
	t.Logf("%d bytes are allocated for a thread, in all", per)
	assert.Less(t, per, uint64(1300))
}
