package load

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A made is an ELF file of functions.
type made struct {
	id      []byte
	table   elf.SectionType
	symbols []elf.Sym64
	names   string
}

// bytes lays the file out: header, note, names, symbols, section headers.
func (m made) bytes() []byte {
	var note, syms, out bytes.Buffer
	le := binary.LittleEndian
	if m.id != nil {
		_ = binary.Write(&note, le, []uint32{4, uint32(len(m.id)), 3})
		note.WriteString("GNU\x00")
		note.Write(m.id)
	}
	_ = binary.Write(&syms, le, m.symbols)
	head := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64, Shentsize: 64, Shnum: 5, Shstrndx: 4}
	text := "\x00.note\x00.names\x00.syms\x00.sections\x00"
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_NOTE), Size: uint64(note.Len())},
		{Name: 7, Type: uint32(elf.SHT_STRTAB), Size: uint64(len(m.names))},
		{Name: 14, Type: uint32(m.table), Size: uint64(syms.Len()), Link: 2, Entsize: 24},
		{Name: 20, Type: uint32(elf.SHT_STRTAB), Size: uint64(len(text))},
	}
	at := uint64(64)
	for i := 1; i < len(sections); i++ {
		sections[i].Off = at
		at += sections[i].Size
	}
	head.Shoff = at
	_ = binary.Write(&out, le, head)
	for _, b := range [][]byte{note.Bytes(), []byte(m.names), syms.Bytes(), []byte(text)} {
		out.Write(b)
	}
	_ = binary.Write(&out, le, sections)
	return out.Bytes()
}

func function(name uint32, bind elf.SymBind, addr, size uint64) elf.Sym64 {
	return elf.Sym64{Name: name, Info: elf.ST_INFO(bind, elf.STT_FUNC), Shndx: 1, Value: addr, Size: size}
}

var example = made{
	id: []byte{0xab, 0xcd, 0xef, 1}, table: elf.SHT_SYMTAB,
	names: "\x00__write\x00write\x00_ZN3Lab3RunEi\x00data\x00gone\x00",
	symbols: []elf.Sym64{
		{},
		function(1, elf.STB_WEAK, 0x1000, 0x20), function(9, elf.STB_WEAK, 0x1000, 0x20),
		function(15, elf.STB_GLOBAL, 0x1020, 0x10),
		{Name: 29, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), Shndx: 1, Value: 0x1040, Size: 0x10},
		{Name: 34, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Value: 0x1050, Size: 0x10}, // defined elsewhere
		function(9000, elf.STB_GLOBAL, 0x1060, 0x10),                                           // no name
		function(1, elf.STB_GLOBAL, ^uint64(0)-3, 0x10),
	},
}

func TestELFLookup(t *testing.T) {
	b := example.bytes()
	f, err := readELF(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	assert.Equal(t, "abcdef01", f.BuildID)
	for addr, want := range map[uint64]string{
		0xfff: "", 0x1000: "write", 0x101f: "write", 0x1020: "Lab::Run(int)", 0x102f: "Lab::Run(int)", 0x1030: "",
		0x1040: "", 0x1050: "", 0x1060: "", ^uint64(0): "",
	} {
		name, ok := f.Lookup(addr)
		assert.Equal(t, want, name, "%#x", addr)
		assert.Equal(t, want != "", ok)
	}
}

func TestELFFind(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, m made) {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, m.bytes(), 0o644))
	}
	other := example
	other.id = []byte{1, 2, 3, 4}
	small := example
	small.table, small.symbols = elf.SHT_DYNSYM, example.symbols[:3]
	put("libother.so", other)
	put("libsmall.so", small)
	put("libsmall.so.dbg", example)
	put("root/usr/lib/libpath.so", example)
	put("ids/.build-id/ab/cdef01.debug", example)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text.so"), []byte("no ELF file"), 0o644))
	find := func(sub, id, path string) *elfFile {
		return (&elfFinder{Dirs: []string{filepath.Join(dir, sub)}}).Find(id, path, "")
	}
	full := len(find("", "abcdef01", "/x/libsmall.so").symbols)
	assert.Equal(t, 4, full, "the file with more symbols")
	assert.NotNil(t, find("root", "ABCDEF01", "/usr/lib/libpath.so"))
	assert.NotNil(t, find("ids", "abcdef01", "/anything"))
	assert.NotNil(t, (&elfFinder{Dirs: []string{dir}}).Find("abcdef01", "/gone", "/debug/libsmall.so.dbg"))
	assert.Nil(t, find("", "", "libsmall.so"), "without a build id nothing is proved")
	assert.Nil(t, find("", "../../..", "libsmall.so"))
	assert.Nil(t, find("root/usr", "abcdef01", "../lib/libpath.so"), "no name leads out of a directory")
	f := &elfFinder{Dirs: []string{dir}}
	assert.Nil(t, f.Find("abcdef01", "libother.so", ""), "another build is never a guess")
	require.Len(t, f.Notes, 1)
	assert.Contains(t, f.Notes[0], "another build")
	assert.Nil(t, f.Find("abcdef02", "text.so", ""))
	require.Len(t, f.Notes, 2)
}

// TestELFHostile: lengths and places that lie outside of the file, names without an end.
func TestELFHostile(t *testing.T) {
	b := example.bytes()
	for at := range b {
		for _, v := range []byte{0, 1, 0x7f, 0xff} {
			bad := bytes.Clone(b)
			bad[at] = v
			lookup(bad)
		}
		lookup(b[:at])
	}
	long := example
	long.names = "\x00" + strings.Repeat("x", 2*maxName) + "\x00"
	long.symbols = []elf.Sym64{function(1, elf.STB_GLOBAL, 0x1000, 16)}
	b = long.bytes()
	f, err := readELF(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	_, ok := f.Lookup(0x1000)
	assert.False(t, ok)
	// Each round doubles the name.
	bomb := "_Z1fI" + strings.Repeat("1aIS_S_E", 200) + "E"
	assert.LessOrEqual(t, len(demangled(bomb)), 1<<(maxDemangled+1))
}

func lookup(b []byte) {
	if f, err := readELF(bytes.NewReader(b), int64(len(b))); err == nil {
		for _, s := range f.symbols {
			f.Lookup(s.addr)
		}
		f.Lookup(0x1000)
	}
}

func FuzzELF(f *testing.F) {
	f.Add(example.bytes())
	small := example
	small.table = elf.SHT_DYNSYM
	f.Add(small.bytes())
	f.Fuzz(func(_ *testing.T, b []byte) { lookup(b) })
}
