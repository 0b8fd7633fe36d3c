package pdb

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
)

var (
	id        = GUID{0x5e, 0x01, 0x8d, 0x0d, 0x8b, 0xbc, 0x37, 0x41, 0x8e, 0xb0, 0x77, 0x08, 0x94, 0x69, 0x87, 0x11}
	documents = []string{"/srv/lab/Walk.cs", "/srv/lab/Other.cs"}
	methods   = map[uint32][]tracetest.PDBPoint{
		1: {{IL: 0, Line: 10}, {IL: 6, Line: 300}, {IL: 9, Line: 0}, {IL: 300, Line: 20000}, {IL: 20000, Line: 12}},
		3: {{IL: 0, Line: 0}, {IL: 2, Line: 7, Document: 1}, {IL: 5, Line: 70}},
	}
)

func example() []byte { return tracetest.PDB(id, documents, methods) }

func TestPoints(t *testing.T) {
	f, err := Parse(example())
	require.NoError(t, err)
	assert.Equal(t, id, f.GUID)
	assert.Equal(t, "0d8d015e-bc8b-4137-8eb0-770894698711", f.GUID.String())
	walk, other := documents[0], documents[1]
	first := []Point{{0, Place{walk, 10}}, {6, Place{walk, 300}}, {300, Place{walk, 20000}}, {20000, Place{walk, 12}}}
	assert.Equal(t, first, f.Points(0x06000001))
	assert.Nil(t, f.Points(0x06000002), "a method without lines")
	assert.Equal(t, []Point{{2, Place{other, 7}}, {5, Place{walk, 70}}}, f.Points(0x06000003), "the first is hidden, the document changes")
	for _, token := range []uint32{0, 0x06000000, 0x06000004, 0x06ffffff, 0x02000001} {
		assert.Nil(t, f.Points(token), "%#x", token)
	}
	for il, line := range map[uint32]int{0: 10, 5: 10, 6: 300, 9: 300, 299: 300, 300: 20000, 1 << 30: 12} {
		at, ok := At(first, il)
		assert.True(t, ok)
		assert.Equal(t, line, at.Line, il)
	}
	_, ok := At(f.Points(0x06000003), 1)
	assert.False(t, ok, "before the first line there is none")
	begin, ok := Begin(first)
	assert.True(t, ok)
	assert.Equal(t, Place{walk, 10}, begin)
}

// TestNumbers: the examples of ECMA-335, II.23.2.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint32{
		"\x03": 0x03, "\x7f": 0x7f, "\x80\x80": 0x80, "\xae\x57": 0x2e57, "\xbf\xff": 0x3fff, "\xc0\x00\x40\x00": 0x4000, "\xdf\xff\xff\xff": 0x1fffffff,
	} {
		c := cursor{b: []byte(text)}
		assert.Equal(t, want, c.unsigned())
		assert.False(t, c.bad)
	}
	for text, want := range map[string]int32{
		"\x06": 3, "\x7b": -3, "\x80\x80": 64, "\x01": -64, "\xc0\x00\x40\x00": 8192, "\x80\x01": -8192, "\xdf\xff\xff\xfe": 268435455, "\xc0\x00\x00\x01": -268435456,
	} {
		c := cursor{b: []byte(text)}
		assert.Equal(t, want, c.signed(), "%x", text)
	}
	for _, text := range []string{"", "\x80", "\xc0\x00\x00", "\xff"} {
		c := cursor{b: []byte(text)}
		c.unsigned()
		assert.True(t, c.bad, "%x", text)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, b, 0o644))
	}
	put("beside/Lab.pdb", example())
	put("inside/Lab.dll", tracetest.DLL(example()))
	put("server/Lab.pdb/0d8d015ebc8b41378eb0770894698711ffffffff/Lab.pdb", example())
	put("other/Lab.pdb", tracetest.PDB(GUID{1}, documents, methods))
	put("windows/Lab.pdb", []byte("Microsoft C/C++ MSF 7.00\r\n\x1aDS"))
	put("none/Lab.txt", nil)
	const module, built = "/app/Lab.dll", `C:\src\obj\Release\Lab.pdb`
	in := func(sub string) *Finder { return &Finder{Dirs: []string{filepath.Join(dir, sub)}} }
	for _, sub := range []string{"beside", "inside", "server"} {
		f := in(sub)
		assert.True(t, f.Any(), sub)
		file := f.Find(id, module, built)
		require.NotNil(t, file, sub)
		assert.Len(t, file.Points(0x06000001), 4, sub)
		assert.Empty(t, f.Notes)
	}
	for sub, note := range map[string]string{
		"other":   "is of another build (00000001-0000-0000-0000-000000000000, the trace has 0d8d015e-bc8b-4137-8eb0-770894698711): not used",
		"windows": "a Windows PDB",
	} {
		f := in(sub)
		assert.Nil(t, f.Find(id, module, built), sub)
		assert.Nil(t, f.Find(id, module, built), sub)
		require.Len(t, f.Notes, 1, sub)
		assert.Contains(t, f.Notes[0], note)
	}
	assert.False(t, in("none").Any())
	assert.False(t, in("gone").Any())
	assert.Nil(t, in("beside").Find(GUID{}, module, built), "without an id nothing is proved")
	assert.Nil(t, in("beside").Find(id, "/app/..", `C:\..`), "no name leads out of a directory")
}

// TestHostile: lengths and places that lie outside of the file.
func TestHostile(t *testing.T) {
	for _, whole := range [][]byte{example(), tracetest.DLL(example())} {
		for at := range whole {
			for _, v := range []byte{0, 1, 0x7f, 0xff} {
				bad := bytes.Clone(whole)
				bad[at] = v
				readAll(bad)
			}
			readAll(whole[:at])
		}
	}
}

func readAll(b []byte) {
	if inner, err := Embedded(bytes.NewReader(b), int64(len(b))); err == nil {
		b = inner
	}
	if f, err := Parse(b); err == nil {
		for row := range min(f.methods.rows, 64) + 2 {
			At(f.Points(0x06000000|row), 100)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example())
	f.Add(tracetest.DLL(example()))
	f.Add([]byte("Microsoft C/C++ MSF 7.00\r\n\x1aDS"))
	f.Fuzz(func(_ *testing.T, b []byte) { readAll(b) })
}

// What is compiled ahead for Linux has the number of its machine mixed with one of the system.
func TestEmbeddedReadyToRun(t *testing.T) {
	b := tracetest.DLL(example())
	at := binary.LittleEndian.Uint32(b[0x3c:]) + 4
	binary.LittleEndian.PutUint16(b[at:], 0x8664^0x7B79)
	got, err := Embedded(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	assert.Equal(t, example(), got)
}

// A recording of a machine has hundreds of processes, and its folder may have thousands of files.
func TestAnyLooksOnce(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "Lab.pdb")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	f := Finder{Dirs: []string{dir}}
	assert.True(t, f.Any())
	require.NoError(t, os.Remove(name))
	assert.True(t, f.Any())
}
