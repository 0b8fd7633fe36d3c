package load

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/tracefix/tracefix/internal/text"
)

// errNoSymbols reports a file without a table of symbols.
var errNoSymbols = errors.New("no symbols")

// An elfFile is the functions of an ELF file: those of .symtab or .dynsym, of a program itself or of
// the file with its debug symbols. It is somebody's and may be hostile: what is read of it is bounded
// by its size, and names are looked at only when they are asked for.
type elfFile struct {
	BuildID string // hexadecimal, of the note that the linker wrote; empty if there is none
	symbols []elfSymbol
	names   []byte
}

// An elfSymbol is a function: size bytes from addr on.
type elfSymbol struct {
	addr, size uint64
	name       uint32 // where in names
	global     bool
}

const (
	// maxNote is how much of a note section is read: a build id is 20 bytes.
	maxNote = 64 << 10
	// maxName is the longest name that is one. Templates have names of several thousand bytes.
	maxName = 64 << 10
	// maxDemangled is the power of two that demangled names are kept below, and maxMangled the
	// longest name that is demangled: what they stand for can be far longer.
	maxDemangled = 14
	maxMangled   = 4 << 10
)

// readELF reads the functions of an ELF file of that size.
func readELF(r io.ReaderAt, size int64) (*elfFile, error) {
	e, err := elf.NewFile(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	f := &elfFile{BuildID: buildID(e, size)}
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		if err = f.read(e, kind, size); err == nil && len(f.symbols) > 0 {
			return f, nil
		}
	}
	return f, cmp.Or(err, errNoSymbols)
}

// sectionData returns the bytes of a section, which has to lie in the file as it is.
func sectionData(s *elf.Section, size int64) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || s.FileSize > uint64(size) || s.Offset > uint64(size)-s.FileSize {
		return nil, fmt.Errorf("section %s of %d bytes at byte %d is not in the file", s.Name, s.FileSize, s.Offset)
	}
	b := make([]byte, s.FileSize)
	_, err := s.ReaderAt.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// buildID returns the id in the first note of the GNU linker.
func buildID(e *elf.File, size int64) string {
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NOTE || s.FileSize > maxNote {
			continue
		}
		b, err := sectionData(s, size)
		if err != nil {
			continue
		}
		for len(b) >= 12 {
			name, desc, kind := uint64(e.ByteOrder.Uint32(b)), uint64(e.ByteOrder.Uint32(b[4:])), e.ByteOrder.Uint32(b[8:])
			b = b[12:]
			at := (name + 3) &^ 3
			if at+desc > uint64(len(b)) {
				break
			}
			if kind == 3 && string(b[:name]) == "GNU\x00" { // NT_GNU_BUILD_ID
				return hex.EncodeToString(b[at : at+desc])
			}
			b = b[min(uint64(len(b)), at+(desc+3)&^3):]
		}
	}
	return ""
}

// read takes the functions of one table of symbols.
func (f *elfFile) read(e *elf.File, kind elf.SectionType, size int64) error {
	i := slices.IndexFunc(e.Sections, func(s *elf.Section) bool { return s.Type == kind })
	if i < 0 {
		return errNoSymbols
	}
	link := e.Sections[i].Link
	if int64(link) >= int64(len(e.Sections)) {
		return fmt.Errorf("section %s has its names in section %d of %d", e.Sections[i].Name, link, len(e.Sections))
	}
	table, err := sectionData(e.Sections[i], size)
	if err != nil {
		return err
	}
	if f.names, err = sectionData(e.Sections[link], size); err != nil {
		return err
	}
	f.symbols = f.symbols[:0]
	entry := elf.Sym64Size
	if e.Class == elf.ELFCLASS32 {
		entry = elf.Sym32Size
	}
	for ; len(table) >= entry; table = table[entry:] {
		s, info, section := elfSymbol{name: e.ByteOrder.Uint32(table)}, byte(0), uint16(0)
		if e.Class == elf.ELFCLASS32 {
			s.addr, s.size = uint64(e.ByteOrder.Uint32(table[4:])), uint64(e.ByteOrder.Uint32(table[8:]))
			info, section = table[12], e.ByteOrder.Uint16(table[14:])
		} else {
			info, section = table[4], e.ByteOrder.Uint16(table[6:])
			s.addr, s.size = e.ByteOrder.Uint64(table[8:]), e.ByteOrder.Uint64(table[16:])
		}
		t := elf.ST_TYPE(info)
		if t != elf.STT_FUNC && t != elf.STT_GNU_IFUNC || section == uint16(elf.SHN_UNDEF) || s.size == 0 || s.addr+s.size < s.addr {
			continue
		}
		s.global = elf.ST_BIND(info) == elf.STB_GLOBAL
		f.symbols = append(f.symbols, s)
	}
	text.SortRows(f.symbols, func(a, b *elfSymbol) int { return cmp.Compare(a.addr, b.addr) })
	return nil
}

// Lookup returns the function that is at a virtual address of the file, demangled.
func (f *elfFile) Lookup(addr uint64) (string, bool) {
	end, _ := slices.BinarySearchFunc(f.symbols, addr, func(s elfSymbol, addr uint64) int {
		if s.addr <= addr {
			return -1
		}
		return 1
	})
	best, bestName := elfSymbol{}, ""
	// Of the functions that begin nearest before the address those are meant that reach it.
	for i := end - 1; i >= 0 && f.symbols[i].addr == f.symbols[end-1].addr && end-i <= maxAliases; i-- {
		s := f.symbols[i]
		if addr-s.addr >= s.size {
			continue
		}
		if name := f.name(s.name); name != "" && (bestName == "" || better(s, name, best, bestName)) {
			best, bestName = s, name
		}
	}
	if bestName == "" {
		return "", false
	}
	return demangled(bestName), true
}

// maxAliases is how many names of one function are looked at.
const maxAliases = 64

// better reports whether an alias of a function is the one that people know: it has fewer
// underscores before it, else it is global, else shorter.
func better(a elfSymbol, an string, b elfSymbol, bn string) bool {
	lead := func(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }
	if x, y := lead(an), lead(bn); x != y {
		return x < y
	}
	if a.global != b.global {
		return a.global
	}
	return cmp.Or(cmp.Compare(len(an), len(bn)), strings.Compare(an, bn)) < 0
}

func (f *elfFile) name(at uint32) string {
	if uint64(at) >= uint64(len(f.names)) {
		return ""
	}
	b := f.names[at:min(uint64(len(f.names)), uint64(at)+maxName)]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return ""
	}
	// A version stands behind an @ in some tables.
	name, _, _ := strings.Cut(string(b[:end]), "@")
	return name
}

// demangled returns the name of a C++ or Rust function as its source has it; other names as
// they are.
func demangled(name string) string {
	if len(name) > maxMangled {
		return name
	}
	return demangle.Filter(name, demangle.NoClones, demangle.MaxLength(maxDemangled))
}
