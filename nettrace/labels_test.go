package nettrace

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a list of labels tells of its event, and that it tells the same when it is written again.
// Recorders of before April 2026 wrote the version and the opcode as numbers without zigzag; others
// may have numbers of these names that say something else.
func TestLabelLists(t *testing.T) {
	str := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }
	number := func(key string, raw uint64) []byte {
		return binary.AppendUvarint(append([]byte{labelNumber}, str(key)...), raw)
	}
	text := func(key, value string) []byte { return append(append([]byte{labelString}, str(key)...), str(value)...) }
	numeric := func(key string, n int64) Label { return Label{Key: key, Number: n, IsNumeric: true} }
	for _, x := range []struct {
		name    string
		labels  [][]byte
		version int
		opcode  int
		want    []Label
	}{
		{"old: version 1", [][]byte{number("Version", 1), number("OpCode", 0)}, 1, 7, []Label{numeric("Version", 1), numeric("OpCode", 0)}},
		{"old: version and opcode", [][]byte{number("Version", 2), number("OpCode", 1)}, 2, 1, []Label{numeric("Version", 2), numeric("OpCode", 1)}},
		{"old: those of the definition", [][]byte{number("Version", 3), number("OpCode", 7)}, 3, 7, []Label{numeric("Version", 3), numeric("OpCode", 7)}},
		{"old: a list with more", [][]byte{number("n", 1<<40+1), number("Version", 3)}, 3, 7, []Label{numeric("n", 1<<40+1), numeric("Version", 3)}},
		{"old: no version", [][]byte{number("Version", 256)}, 3, 7, []Label{numeric("Version", 256)}},
		{"new", [][]byte{number("n", 3), {labelVersion, 2}, {labelOpcode, 1}}, 2, 1, []Label{numeric("n", -2)}},
		{"new: opcode 0 is one", [][]byte{{labelOpcode, 0}}, 3, 0, nil},
		{"new, with a number of that name", [][]byte{number("Version", 3), {labelVersion, 2}}, 2, 7, []Label{numeric("Version", -2)}},
		{"new: those of the definition, with others of that name", [][]byte{text("Version", "4"), text("OpCode", "1"), number("OpCode", 2), {labelOpcode, 7}, {labelVersion, 3}}, 3, 7,
			[]Label{{Key: "Version", Value: "4"}, {Key: "OpCode", Value: "1"}, numeric("OpCode", 1)}},
		{"numbers of others", [][]byte{number("n", 4), number("m", 3)}, 3, 7, []Label{numeric("n", 2), numeric("m", -2)}},
		{"text", [][]byte{text("Version", "4"), number("n", 4)}, 4, 7, []Label{{Key: "Version", Value: "4"}, numeric("n", 2)}},
		{"text that is no version", [][]byte{text("Version", "1.2"), text("OpCode", "Start")}, 3, 7, []Label{{Key: "Version", Value: "1.2"}, {Key: "OpCode", Value: "Start"}}},
	} {
		// A list is written by hand into the place of one that takes as many bytes.
		var list []byte
		for i, l := range x.labels {
			if i == len(x.labels)-1 {
				l[0] |= 0x80
			}
			list = append(list, l...)
		}
		m := &Metadata{Provider: "P", EventID: 1, Name: "E", Version: 3, Opcode: 7}
		var b bytes.Buffer
		w, err := NewWriter(&b, &Header{Version: 6, Frequency: 1e9, PointerSize: 8})
		require.NoError(t, err)
		filler := Label{Key: string(bytes.Repeat([]byte{'x'}, 32))}
		require.NoError(t, w.Write(&Event{Metadata: m, Thread: &Thread{ProcessID: 1, ID: 2}, Version: 3, Opcode: 7, Labels: []Label{filler}}))
		require.NoError(t, w.Close())
		file := b.Bytes()
		at := bytes.Index(file, []byte(filler.Key)) - 2 // behind kind and length
		size := len(file[at:at+2]) + 32 + 1
		block := at - 12 // header, first and count
		file = append(append(bytes.Clone(file[:at]), list...), file[at+size:]...)
		binary.LittleEndian.PutUint32(file[block:], binary.LittleEndian.Uint32(file[block:])+uint32(len(list)-size))

		for range 2 { // as it was, and as it is written
			r, err := NewReader(bytes.NewReader(file), nil)
			require.NoError(t, err, x.name)
			var ev Event
			require.NoError(t, r.Read(&ev), x.name)
			assert.Equal(t, []int{x.version, x.opcode}, []int{ev.Version, ev.Opcode}, x.name)
			assert.Equal(t, x.want, append([]Label(nil), ev.Labels...), x.name)

			var again bytes.Buffer
			w, err := NewWriter(&again, r.Header())
			require.NoError(t, err)
			require.NoError(t, w.Write(&ev))
			require.NoError(t, w.Close())
			file = again.Bytes()
		}
	}
}

// A thread may be removed and told again in the same words.
func TestThreadAgain(t *testing.T) {
	file := unhex(t, knownV6)[:20+4+0x35]
	row := []byte{5, 0, 1, 2, 42, 3, 77} // index 1, process, thread
	for i := range 2 {
		file = blockV6(file, kindThread, append(bytes.Clone(row), 3, 0, 2, 2, 43))
		file = blockV6(file, kindEvent, append(append([]byte{20, 0, 1, 0}, make([]byte, 16)...), 0x46, 0, 1, 0, 1, byte(i+1)))
		file = blockV6(file, kindRemoveThread, []byte{1, 1, 2, 0})
	}
	r, err := NewReader(bytes.NewReader(append(file, 0, 0, 0, 0)), nil)
	require.NoError(t, err)
	var ev Event
	n := 0
	for ; r.Read(&ev) == nil; n++ {
		assert.Equal(t, []uint64{42, 77}, []uint64{uint64(ev.ProcessID), ev.ThreadID})
	}
	assert.Equal(t, 2, n)
	assert.Zero(t, r.Stats().UnknownThreads)
	assert.Zero(t, r.Stats().Lost)
}

// A stack and a thread may have the number 0, which the first event of a block need not tell: each
// block begins with zeros.
func TestNumberZero(t *testing.T) {
	stacks := append(le32(le32(le32(nil, 0), 1), 8), le64(nil, 0x1234)...)
	rows := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
	rows = append(rows, 0xc1, 1, 1, 4, 0x81, 0x80, 0x80, 0) // without the flags of a thread and a stack
	rows = append(rows, 0x40, 1, 0x81, 0x80, 0x80, 0)
	v6 := unhex(t, knownV6)[:20+4+0x35+4+0x28]
	v6 = blockV6(v6, kindThread, []byte{5, 0, 0, 2, 42, 3, 77}) // index 0, process, thread
	v6 = blockV6(blockV6(v6, kindStack, stacks), kindEvent, rows)
	v4 := unhex(t, knownV4)
	v4 = v4[:bytes.Index(v4, []byte("StackBlock"))-15]
	v4 = objectV4(objectV4(v4, "StackBlock", stacks), "EventBlock", rows)
	for version, x := range map[int]struct {
		file   []byte
		thread uint64
	}{4: {append(v4, tagNull), 0}, 6: {append(v6, 0, 0, 0, 0), 77}} {
		r, err := NewReader(bytes.NewReader(x.file), nil)
		require.NoError(t, err)
		n := 0
		for ev, err := range r.All() {
			require.NoError(t, err, version)
			assert.Equal(t, x.thread, ev.ThreadID, version)
			assert.Equal(t, uint64(0x1234), ev.Stack.Leaf(), version)
			n++
		}
		assert.Equal(t, 2, n, version)
	}
}
