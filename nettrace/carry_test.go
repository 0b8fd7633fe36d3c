package nettrace

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copyOf is what Copy makes of a file, which is whole.
func copyOf(t testing.TB, data []byte) []byte {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Header())
	require.NoError(t, err)
	require.NoError(t, Copy(w, r, nil))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// others lists the blocks of unknown kinds in a file of v6, with their bytes, between the sequence points
// and the blocks of events where they stand.
func others(t testing.TB, data []byte) (list []string) {
	t.Helper()
	spans, kinds := blocksOf(t, data)
	for i, span := range spans {
		switch kinds[i] {
		case kindSequencePoint, kindEvent:
			list = append(list, kinds[i].String())
		default:
			if kinds[i] >= kindUnknown {
				list = append(list, fmt.Sprintf("%x", data[span[0]:span[1]]))
			}
		}
	}
	return list
}

// A copy holds the blocks of unknown kinds of a file of v6: byte for byte, between the events and the
// sequence points between which they stand. A copy of the copy is the same.
func TestCopyOtherBlocks(t *testing.T) {
	for _, name := range []string{"known", "v6-nosymbols"} {
		data := unhex(t, knownV6)
		if name != "known" {
			data = realV6(t, 60)                                                          // of several regions
			data = bytes.ReplaceAll(data, []byte(sumFollows), []byte("Checksum is not ")) // which more blocks would break
			data = bytes.ReplaceAll(data, []byte("Written bytes"), []byte("Written no mo"))
		}
		spans, kinds := blocksOf(t, data)
		n := 0
		put := func(file []byte) []byte {
			n++
			file = blockV6(file, 99, []byte{byte(n), byte(n >> 8), 5, 6, 7}[:2+n%4])
			if n%3 == 0 { // two alike, and one without contents
				file = blockV6(blockV6(blockV6(file, 9, []byte("twice")), 9, []byte("twice")), 255, nil)
			}
			return file
		}
		file := bytes.Clone(data[:spans[0][0]])
		for i, span := range spans {
			if i > 0 {
				file = put(file)
			}
			file = append(file, data[span[0]:span[1]]...)
			if name != "known" && kinds[i] == kindSequencePoint {
				file = append(put(file), data[span[0]:span[1]]...) // nothing else between two sequence points
			}
		}
		want, r, err := read(t, file)
		require.Equal(t, io.EOF, err)
		require.Zero(t, r.Stats().Defects)
		copied := copyOf(t, file)
		got, r2, err := read(t, copied)
		require.Equal(t, io.EOF, err)
		require.Zero(t, r2.Stats().Defects)
		require.Equal(t, want, got)
		require.Equal(t, r.Stats().Newer, r2.Stats().Newer)
		if name != "known" { // a copy begins and ends with a sequence point
			require.Equal(t, append(append([]string{"SPBlock"}, others(t, file)...), "SPBlock"), others(t, copied))
		}
		require.Equal(t, copied, copyOf(t, copied), "a copy of the copy differs")
	}
}

// otherObject appends an object of any name, version and tag.
func otherObject(file []byte, tag byte, version, minimum uint32, name string, contents []byte) []byte {
	file = append(file, tag, tag, tagNull)
	file = append(le32(le32(le32(file, version), minimum), uint32(len(name))), name...)
	file = le32(append(file, tagEnd), uint32(len(contents)))
	for len(file)%4 != 0 {
		file = append(file, 0)
	}
	return append(append(file, contents...), tagEnd)
}

// placed lists the objects of a file of v4 that are not known: their headers and contents, between
// the sequence points and the blocks of events where they stand.
func placed(t testing.TB, data []byte) (list []string) {
	t.Helper()
	spans, kinds := objectsOf(t, data, len(magic)+len(serialMagic))
	for i, span := range spans {
		switch kinds[i] {
		case kindSequencePoint, kindEvent:
			if k := kinds[i].String(); k != "EventBlock" || len(list) == 0 || list[len(list)-1] != k { // events may fill another number of blocks
				list = append(list, k)
			}
		case kindUnknown:
			o, _ := parseObject(data[span[0]:])
			body := (span[0] + o.size + 4 + 3) &^ 3
			list = append(list, fmt.Sprintf("%x %x", data[span[0]:span[0]+o.size+4], data[body:span[1]]))
		}
	}
	return list
}

// A copy of a file of v4 holds objects of unknown kinds, too. A copy of the copy is the same.
func TestCopyOtherObjects(t *testing.T) {
	for _, name := range []string{"known", "probe9.nettrace.gz"} {
		data := unhex(t, knownV4)
		if name != "known" {
			data = testFile(t, name)
		}
		spans, kinds := objectsOf(t, data, len(magic)+len(serialMagic))
		n := 0
		put := func(file []byte) []byte {
			n++
			file = otherObject(file, tagBegin+byte(n%2), uint32(n), uint32(n/2), fmt.Sprint("Other", n%3), bytes.Repeat([]byte{byte(n), byte(n >> 8), 5}, n%5))
			if n%3 == 0 { // two alike
				file = otherObject(otherObject(file, tagBegin, 1, 1, "Twice", []byte("twice and twice")), tagBegin, 1, 1, "Twice", []byte("twice and twice"))
			}
			return file
		}
		file := bytes.Clone(data[:spans[0][0]])
		for i, span := range spans {
			if kinds[i] == kindTrace {
				file = append(file, data[span[0]:span[1]]...)
				continue
			}
			file = put(file)
			o, _ := parseObject(data[span[0]:])
			body := (span[0] + o.size + 4 + 3) &^ 3
			file = otherObject(file, tagBeginPrivate, 2, 2, kinds[i].String(), data[body:span[1]-1])
		}
		file = append(put(file), tagNull)
		want, r, err := read(t, file)
		require.Equal(t, io.EOF, err)
		require.Zero(t, r.Stats().Defects)
		require.EqualValues(t, n+2*(n/3), r.Stats().Newer)
		copied := copyOf(t, file)
		got, r2, err := read(t, copied)
		require.Equal(t, io.EOF, err)
		require.Zero(t, r2.Stats().Defects)
		require.Equal(t, want, got)
		require.Equal(t, r.Stats().Newer, r2.Stats().Newer)
		others := placed(t, file)
		if others[len(others)-1] != "SPBlock" {
			others = append(others, "SPBlock") // with which a copy ends
		}
		require.Equal(t, others, placed(t, copied))
		require.Equal(t, copied, copyOf(t, copied), "a copy of the copy differs")
	}
}

// An object whose name is a known one but for some bytes, or that holds another one, is damage, which a
// copy does not keep; so is one whose end is not there.
func TestCopyDamagedObjects(t *testing.T) {
	data := unhex(t, knownV4)
	spans, _ := blocksOf(t, data)
	end := data[:len(data)-1]
	for name, file := range map[string][]byte{
		"name":  append(otherObject(bytes.Clone(end), tagBeginPrivate, 2, 2, "StackBmock", []byte("contents")), tagNull),
		"names": append(otherObject(bytes.Clone(end), tagBeginPrivate, 2, 2, "StxckBmock", []byte("contents")), tagNull),
		"inner": append(otherObject(bytes.Clone(end), tagBeginPrivate, 2, 2, "Outer", data[spans[1][0]:spans[1][1]]), tagNull),
		"cut":   otherObject(bytes.Clone(end), tagBeginPrivate, 2, 2, "Cut", []byte("contents"))[:len(end)+30],
	} {
		r, err := NewReader(bytes.NewReader(file), nil)
		require.NoError(t, err)
		var out bytes.Buffer
		w, err := NewWriter(&out, r.Header())
		require.NoError(t, err)
		_ = Copy(w, r, nil)
		require.NoError(t, w.Close())
		assert.NotZero(t, r.Stats().Defects, name)
		_, kinds := objectsOf(t, out.Bytes(), len(magic)+len(serialMagic))
		assert.NotContains(t, kinds, kindUnknown, name)
	}
}

// Blocks between events that wait for later ones stand between the same events in the copy.
func TestCopyOtherBlocksUnsorted(t *testing.T) {
	v6 := unhex(t, knownV6)
	spans, kinds := blocksOf(t, v6)
	var file []byte
	for i, span := range spans {
		if kinds[i] == kindEvent {
			event := func(flags byte, time byte, seq byte) []byte { // of thread 1, 1 byte of payload
				b := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
				return append(b, flags&^0x10, 1, seq, 1, 3, 1, 1, time, 1, seq)
			}
			file = blockV6(file, kindEvent, event(0x9f, 90, 0))
			file = blockV6(file, 77, []byte("between"))
			file = blockV6(file, kindEvent, event(0x9f, 80, 1)) // earlier
			file = blockV6(file, 78, []byte("behind"))
			continue
		}
		if i == 0 {
			file = append(file, v6[:span[0]]...)
		}
		file = append(file, v6[span[0]:span[1]]...)
	}
	events, _, err := read(t, file)
	require.Equal(t, io.EOF, err, "%v", err)
	require.Len(t, events, 2)
	between, behind := fmt.Sprintf("%x", blockV6(nil, 77, []byte("between"))), fmt.Sprintf("%x", blockV6(nil, 78, []byte("behind")))
	// The later event of the file is the first one in time, so both blocks of events stand behind "between".
	assert.Equal(t, []string{"SPBlock", between, "EventBlock", behind, "SPBlock"}, others(t, copyOf(t, file)))
}

// A file of such blocks is copied in the memory of a few, whatever waits in front of them, and one whose
// size goes beyond the end takes none.
func TestCopyOtherBlocksMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever GOGC says
	v6 := unhex(t, knownV6)
	end := len(v6) - 4
	block := blockV6(nil, 99, make([]byte, 1<<20))
	const blocks = 400
	readers := []io.Reader{bytes.NewReader(v6[:end])}
	for range blocks {
		readers = append(readers, bytes.NewReader(block))
	}
	r, err := NewReader(io.MultiReader(append(readers, bytes.NewReader(v6[end:]))...), nil)
	require.NoError(t, err)
	peak := uint64(0)
	written := int64(0)
	w, err := NewWriter(writerFunc(func(p []byte) (int, error) {
		if written>>24 != (written+int64(len(p)))>>24 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
		written += int64(len(p))
		return len(p), nil
	}), r.Header())
	require.NoError(t, err)
	require.NoError(t, Copy(w, r, nil))
	require.NoError(t, w.Close())
	assert.Greater(t, written, int64(blocks<<20))
	assert.Less(t, peak, uint64(64<<20))

	cut := append(bytes.Clone(v6[:end]), 0xff, 0xff, 0xff, 99, 1, 2, 3)
	r, err = NewReader(bytes.NewReader(cut), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err = NewWriter(&out, r.Header())
	require.NoError(t, err)
	require.ErrorIs(t, Copy(w, r, nil), io.ErrUnexpectedEOF)
	require.NoError(t, w.Close())
	assert.EqualValues(t, 3, r.Stats().LostBytes)
	assert.NotContains(t, out.String(), "\x63\x01\x02\x03")
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
