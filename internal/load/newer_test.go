package load

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// withoutEnd is a file of v6 with one event, which goes on behind it.
func withoutEnd(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := nettrace.NewWriter(&b, &nettrace.Header{Version: 6, Frequency: 1e9, PointerSize: 8})
	require.NoError(t, err)
	require.NoError(t, w.Write(&nettrace.Event{Metadata: &nettrace.Metadata{Provider: "P"}, Time: 1}))
	require.NoError(t, w.Close())
	return b.Bytes()[:b.Len()-4]
}

// A block of a kind that a later version has added is noted, and no damage.
func TestNewerBlock(t *testing.T) {
	begin := withoutEnd(t)
	data := append(bytes.Clone(begin), 3, 0, 0, 99, 'n', 'e', 'w', 0, 0, 0, 0)
	p, info, err := Profile(t.Context(), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		&Options{Warn: func(e *nettrace.FormatError) { t.Error(e) }})
	require.NoError(t, err)
	assert.EqualValues(t, len(begin), info.Stats.NewerOffset)
	assert.Contains(t, p.Meta.Notes, NewerNote(info.Stats))
}

// A repair keeps such blocks: a copy tells of as many, and a copy of the copy is the same.
func TestRewriteNewerBlocks(t *testing.T) {
	open := opener(t, "dotnet10/v6-machine.nettrace")
	in, err := open()
	require.NoError(t, err)
	data, err := io.ReadAll(in)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	var file []byte
	var blocks [][]byte
	for at, n := 20, 0; at < len(data); n++ {
		size := 4 + int(binary.LittleEndian.Uint32(data[at:])&0xffffff)
		if at == 20 {
			file = append(file, data[:at]...)
		} else {
			block := []byte{3, 0, 0, 200, byte(n), 'U', byte(n)}
			blocks, file = append(blocks, block), append(file, block...)
		}
		file = append(file, data[at:at+size]...)
		at += size
	}
	require.Greater(t, len(blocks), 6)
	var once, twice bytes.Buffer
	_, info, err := Rewrite(t.Context(), bytesOpener(file), &once, &Options{}, graft)
	require.NoError(t, err)
	rest := once.Bytes()
	for _, block := range blocks { // in their order
		i := bytes.Index(rest, block)
		require.GreaterOrEqual(t, i, 0)
		rest = rest[i+len(block):]
	}
	_, again, err := Rewrite(t.Context(), bytesOpener(once.Bytes()), &twice, &Options{Warn: func(e *nettrace.FormatError) { t.Error(e) }}, nil)
	require.NoError(t, err)
	assert.Equal(t, once.Bytes(), twice.Bytes())
	assert.EqualValues(t, len(blocks), info.Stats.Newer)
	assert.Equal(t, [3]int64{info.Stats.Newer, info.Stats.Events, info.Stats.PayloadBytes}, [3]int64{again.Stats.Newer, again.Stats.Events, again.Stats.PayloadBytes})
}

// However many blocks of unknown kinds follow one another, and however large each of them is, few
// are held at one time: who reads waits for who writes.
func TestRewriteLargeBlocks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever GOGC says
	begin := withoutEnd(t)
	block := make([]byte, 1<<24+3)
	copy(block, []byte{0xff, 0xff, 0xff, 99})
	const blocks = 16
	open := func() (io.ReadCloser, error) {
		parts := []io.Reader{bytes.NewReader(begin)}
		for range blocks {
			parts = append(parts, bytes.NewReader(block))
		}
		return io.NopCloser(io.MultiReader(append(parts, bytes.NewReader(make([]byte, 4)))...)), nil
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	written, most := 0, uint64(0)
	_, info, err := Rewrite(t.Context(), open, writerFunc(func(p []byte) (int, error) {
		if len(p) >= len(block) {
			time.Sleep(20 * time.Millisecond) // so that who reads comes as far as it may
			var now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-before.HeapAlloc)
		}
		written += len(p)
		return len(p), nil
	}), &Options{}, nil)
	require.NoError(t, err)
	assert.EqualValues(t, blocks, info.Stats.Newer)
	assert.Greater(t, written, blocks*len(block))
	assert.Less(t, most, uint64(6*len(block)), "%d blocks are held", most/uint64(len(block)))
	t.Logf("%d MB are held", most>>20)
}
