package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/load/pdb"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A mapping is a file, or anonymous memory, in the address space of a process.
type mapping struct {
	first, last uint64
	offset      uint64 // in the file
	from        int64
	meta        uint64
	file        string
}

// A nativeSymbol is a function in a mapping.
type nativeSymbol struct {
	first, last uint64
	from        int64
	mapping     int32 // -1: not known
	name, end   uint32
	offset      int64 // of the event in the file
}

// Images hold what the metadata of a trace's mappings tell, by metadata id. They are
// shared by all processes of a trace.
type Images struct {
	byID  map[uint64]elfImage
	files elfFinder // of their symbols
	pdbs  pdb.Finder
}

// An elfImage is an ELF file that was mapped.
type elfImage struct {
	bias               int64 // p_vaddr - p_offset
	buildID, debugLink string
}

// newImages returns images whose symbols are looked for in dirs.
func newImages(dirs []string) *Images {
	return &Images{byID: map[uint64]elfImage{}, files: elfFinder{Dirs: dirs}, pdbs: pdb.Finder{Dirs: dirs}}
}

// notes tell of files that were there and could not be used.
func (im *Images) notes() []string { return slices.Concat(im.files.Notes, im.pdbs.Notes) }

// function returns the name of the function at an offset of a mapped file, if a file with its
// symbols is at hand.
func (im *Images) function(m *mapping, offset uint64) (string, bool) {
	i := im.byID[m.meta]
	f := im.files.Find(i.buildID, present(m.file), i.debugLink)
	if f == nil {
		return "", false
	}
	return f.Lookup(offset + uint64(i.bias))
}

// Add takes a ProcessMappingMetadata event.
func (im *Images) Add(ev *nettrace.Event) error {
	var e nettrace.MappingMetadata
	if err := ev.MappingMetadata(&e); err != nil {
		return fmt.Errorf("ProcessMappingMetadata of %d bytes: %w", len(ev.Payload), err)
	}
	text := e.Symbol.Raw()
	var meta struct {
		Vaddr  string `json:"p_vaddr"`
		Offset string `json:"p_offset"`
		ID     string `json:"build_id"`
		Link   string `json:"debug_link"`
	}
	if len(text) == 0 || !json.Valid(text) || json.Unmarshal(text, &meta) != nil {
		return nil // nothing we need
	}
	v, err1 := strconv.ParseUint(meta.Vaddr, 0, 63)
	o, err2 := strconv.ParseUint(meta.Offset, 0, 63)
	if err1 == nil && err2 == nil {
		im.byID[e.ID] = elfImage{int64(v) - int64(o), meta.ID, meta.Link}
	}
	return nil
}

// kernelBase is where the kernel's half of the address space begins.
const kernelBase = 0xffff_8000_0000_0000

// mapping takes a ProcessMapping event.
func (p *symbols) mapping(ev *nettrace.Event, now int64) error {
	var e nettrace.Mapping
	if err := ev.Mapping(&e); err != nil {
		return fmt.Errorf("ProcessMapping of %d bytes: %w", len(ev.Payload), err)
	}
	m := mapping{first: e.Start, last: e.End, offset: e.FileOffset, from: now, meta: e.MetadataID, file: string(e.FileName.Raw())}
	// Exclusive when read from /proc, inclusive in a later record (nettrace.md 12.1).
	if m.last%4096 == 0 && m.last > m.first {
		m.last--
	}
	if i, ok := p.mapIDs[e.ID]; ok && p.maps[i] == m {
		return nil
	}
	p.mapIDs[e.ID] = int32(len(p.maps))
	p.maps = append(p.maps, m)
	p.renew(&m)
	return nil
}

// maxRenewed bounds the work for mappings that come one over the other, pages of code.
const maxRenewed = 1 << 26

// renew gives what was seen where m is now a new frame when it is seen again: it was in another
// file, that was unmapped since, or of the program that this process was before. Code that the
// runtime makes has events of its own.
func (p *symbols) renew(m *mapping) {
	if m.from <= 0 || m.file == "" || isCode(m.file) || m.first >= kernelBase || m.last < m.first || len(p.places) == 0 {
		return
	}
	if p.renewed += min(m.last>>12-m.first>>12+1, uint64(len(p.pages))); p.renewed > maxRenewed {
		return
	}
	p.retire(m.first, m.last-m.first+1, func(pl *place) bool { return pl.born < m.from })
}

// symbol takes a ProcessSymbol event.
func (p *symbols) symbol(ev *nettrace.Event, now int64) error {
	var e nettrace.Symbol
	if err := ev.Symbol(&e); err != nil {
		return fmt.Errorf("ProcessSymbol of %d bytes: %w", len(ev.Payload), err)
	}
	s, name := nativeSymbol{first: e.Start, last: e.End, from: now, mapping: -1, offset: ev.Offset}, e.Name.Raw()
	if s.last < s.first || s.first == 0 && s.last == ^uint64(0) {
		return nil // hidden kernel symbols
	}
	if i, ok := p.mapIDs[e.MappingID]; ok {
		s.mapping = i
	}
	// One symbol comes once per mapping that contains it.
	if n := len(p.symbols); n > 0 {
		l := &p.symbols[n-1]
		if l.first == s.first && l.last == s.last && l.from == s.from && string(p.text[l.name:l.end]) == string(name) {
			return nil
		}
	}
	if len(p.text)+len(name) > math.MaxInt32 {
		return errors.New("2 GiB of symbol names")
	}
	s.name = uint32(len(p.text))
	p.text = append(p.text, name...)
	s.end = uint32(len(p.text))
	p.symbols = append(p.symbols, s)
	return nil
}

type natives struct{ maps, symbols spans }

func (p *symbols) indexNative() natives {
	maps := make([]span, len(p.maps))
	for i, m := range p.maps {
		maps[i] = span{m.first, m.last, m.from, afterAll, int32(i)}
	}
	symbols := make([]span, len(p.symbols))
	for i, s := range p.symbols {
		symbols[i] = span{s.first, s.last, s.from, afterAll, int32(i)}
		if p.rules == Reference {
			symbols[i].from = beforeAll // the first in the file wins
		}
	}
	if p.rules == Reference {
		return natives{newSpans(maps), newSpans(symbols)}
	}
	return natives{newSpans(maps), clip(symbols, func(id int32, last uint64) { p.clipped[p.symbols[id].offset] = last })}
}

// native names an address by mappings and symbols (nettrace.md section 12.2).
func (p *symbols) native(ix natives, addr uint64, born int64) (profile.Method, Class) {
	mapAt := ix.maps.at(addr, born)
	if i := ix.symbols.at(addr, born); i >= 0 && !p.elsewhere(mapAt, p.symbols[i].mapping) {
		s := &p.symbols[i]
		if s.mapping >= 0 {
			mapAt = s.mapping
		}
		file := ""
		if mapAt >= 0 {
			file = p.maps[mapAt].file
		}
		return p.symbolName(string(p.text[s.name:s.end]), file, addr)
	}
	if mapAt < 0 {
		c := Garbage
		if addr >= kernelBase {
			c = InKernel
		}
		if len(p.maps) == 0 && addr != 0 {
			c = 0 // a file without mappings says nothing
		}
		return p.nameless("?", "?", addr), c
	}
	m := &p.maps[mapAt]
	mod := FileModule(m.file)
	switch {
	case isCode(m.file):
		return p.nameless("?", "?", addr), JIT
	case m.file == "":
		return p.nameless("", "?", addr), Garbage
	case m.file == "[stack]" || m.file == "[heap]":
		return p.nameless(mod, mod, addr), Garbage
	case addr >= kernelBase:
		return p.nameless(mod, mod, addr), InKernel
	}
	at := addr - m.first + m.offset
	if p.rules == ByTime {
		if name, ok := p.images.function(m, at); ok {
			return p.symbolName(name, m.file, addr)
		}
	}
	return p.nameless(mod, mod, at+uint64(p.images.byID[m.meta].bias)), 0
}

// elsewhere reports whether a symbol of the mapping of says nothing of code in the mapping at:
// another file is there, or was.
func (p *symbols) elsewhere(at, of int32) bool {
	if at < 0 || of < 0 || at == of || p.rules == Reference {
		return false
	}
	a, b := p.maps[at].file, p.maps[of].file
	return a != b && a != "" && b != "" && !isCode(a) && !isCode(b)
}

// nameless returns the Method of an address without a name: ref is its module by the
// reference's rules.
func (p *symbols) nameless(ref, module string, addr uint64) profile.Method {
	if p.rules == Reference {
		return profile.Method{Name: ref + "!?", Kind: profile.Unresolved}
	}
	return profile.Method{Module: module, Name: "0x" + strconv.FormatUint(addr, 16), Kind: profile.Unresolved}
}

// symbolName turns the text of a symbol into a method.
func (p *symbols) symbolName(text, file string, addr uint64) (profile.Method, Class) {
	m, c := named(text, file, addr)
	if p.rules == Reference {
		m.Module, m.Name = "", m.Full()
	}
	return m, c
}

// NamedSymbol turns the text of a symbol, as perf and collect-linux have it, into a method.
func NamedSymbol(text, file string, addr uint64) profile.Method {
	m, _ := named(text, file, addr)
	return m
}

func named(text, file string, addr uint64) (profile.Method, Class) {
	m := profile.Method{Module: FileModule(file), Name: text, Kind: profile.Native}
	var c Class
	switch {
	case isCode(file) || file == "":
		c = JIT
		mod, name, ok := parsePerfMap(text)
		if !ok {
			m.Module = "unknown" // a stub of the runtime
			break
		}
		m = profile.Method{Module: strings.ToLower(mod), Name: name, Kind: profile.Managed}
	case addr >= kernelBase:
		m.Kind, c = profile.Kernel, InKernel
		switch {
		case text == "ret_from_fork_asm" || text == "ret_from_fork":
			c |= Root
		case text == "entry_SYSCALL_64_after_hwframe" || strings.HasPrefix(text, "asm_"):
			c |= Entry
		}
	case threadRoots[text] || strings.HasPrefix(m.Module, "ld-musl-"):
		c = Root
	}
	return m, c
}

// threadRoots are the functions of libc in which threads begin.
var threadRoots = map[string]bool{
	"__clone3": true, "clone3": true, "__clone": true, "clone": true,
	"start_thread": true, "_start": true,
	"__libc_start_main": true, "__libc_start_call_main": true,
	"__libc_start_main_impl": true,
}

// isCode tells whether a mapping is memory that the runtime writes code to. perf calls it by the
// map that names its methods, and `perf inject --jit` by a file that it makes of each method.
func isCode(file string) bool {
	name := base(file)
	return strings.HasPrefix(file, "/memfd:doublemapper") || strings.HasPrefix(name, "perf-") && strings.HasSuffix(name, ".map") ||
		strings.HasPrefix(name, "jitted-") && strings.HasSuffix(name, ".so")
}

// FileModule is how a mapped file is called: `libc.so.6`, `system.private.corelib`.
func FileModule(file string) string { return strings.ToLower(trimImage(base(present(file)))) }

// present is the name of a file that was replaced while it was mapped, as an update does: the kernel
// marks it.
func present(file string) string { return strings.TrimSuffix(file, " (deleted)") }

// parsePerfMap takes the runtime's perf map text apart: `int32 [Lab] Ns.Type::Method(int32)[Tier]`.
func parsePerfMap(text string) (module, name string, ok bool) {
	if !strings.HasSuffix(text, "]") {
		return "", "", false
	}
	rest := text
	for {
		i := strings.IndexByte(rest, '[')
		if i < 0 {
			return "", "", false
		}
		rest = rest[i+1:]
		j := strings.IndexByte(rest, ']')
		if j < 0 {
			return "", "", false
		}
		if j > 0 && strings.HasPrefix(rest[j+1:], " ") && !isBounds(rest[:j]) {
			module, rest = rest[:j], rest[j+2:]
			break
		}
	}
	tier := strings.LastIndexByte(rest, '[')
	if tier <= 0 {
		return "", "", false
	}
	return module, rest[:tier], true
}

// isBounds recognises the brackets of an array of several dimensions, which a method may return:
// `int32[0...,0...] [Lab] Lab.Grid::Make()[Tier0]`.
func isBounds(s string) bool {
	return strings.Trim(s, "0123456789-.,") == "" && (strings.Contains(s, ",") || strings.Contains(s, "..."))
}
