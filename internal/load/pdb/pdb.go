// Package pdb reads the source lines of .NET methods from portable PDBs: files of their own, or
// embedded in the DLL that they belong to.
//
// The format is the metadata of ECMA-335 (partition II, section 24) with the tables of
// https://github.com/dotnet/runtime/blob/main/docs/design/specs/PortablePdb-Metadata.md.
// The files are somebody's and may be hostile: what is kept of one is its bytes, and rows are
// looked at only when they are asked for.
package pdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"unicode/utf8"
)

// ErrWindows reports a PDB of the old kind, which only Windows' own library reads.
var ErrWindows = errors.New("a Windows PDB: build with DebugType portable or embedded")

// A GUID is the identity of a build, as files and the runtime's module events have it.
type GUID [16]byte

// A File is the source lines of a module.
type File struct {
	GUID GUID

	blob      []byte // the heap of all blobs
	documents table
	methods   table
	wide      bool // indexes of blobs have four bytes
	wideGUID  bool
	names     map[uint32]string // of documents, by row
}

// A table is rows of one size.
type table struct {
	rows, size uint32
	data       []byte
}

// row returns a row, counted from 1 as the format does.
func (t *table) row(i uint32) ([]byte, bool) {
	if i == 0 || i > t.rows {
		return nil, false
	}
	at := uint64(i-1) * uint64(t.size)
	return t.data[at : at+uint64(t.size)], true
}

// The tables of a PDB that are looked at.
const (
	tableDocument = 0x30
	tableMethod   = 0x31
)

// Parse takes a portable PDB apart, and keeps b. The error says at which byte it stopped to be
// one.
func Parse(b []byte) (*File, error) {
	if bytes.HasPrefix(b, []byte("Microsoft C/C++ MSF ")) {
		return nil, ErrWindows
	}
	streams, err := streamsOf(b)
	if err != nil {
		return nil, err
	}
	pdb, tables := streams["#Pdb"], streams["#~"]
	if len(pdb) < len(GUID{}) {
		return nil, errors.New("no #Pdb stream: metadata of something else")
	}
	f := &File{blob: streams["#Blob"], names: map[uint32]string{}}
	copy(f.GUID[:], pdb)
	return f, f.tables(tables)
}

// streamsOf returns the streams of a metadata root (II.24.2.1).
func streamsOf(b []byte) (map[string][]byte, error) {
	if len(b) < 20 || string(b[:4]) != "BSJB" {
		return nil, errors.New("byte 0: no BSJB: not a portable PDB")
	}
	version := uint64(binary.LittleEndian.Uint32(b[12:]))
	if version > 255 || 16+version+4 > uint64(len(b)) {
		return nil, fmt.Errorf("byte 12: a version of %d bytes in a file of %d", version, len(b))
	}
	at := 16 + int(version)
	n := int(binary.LittleEndian.Uint16(b[at+2:]))
	at += 4
	streams := map[string][]byte{}
	for range n {
		if at+9 > len(b) {
			return nil, fmt.Errorf("byte %d: the file ends in the list of %d streams", at, n)
		}
		offset, size := uint64(binary.LittleEndian.Uint32(b[at:])), uint64(binary.LittleEndian.Uint32(b[at+4:]))
		name := b[at+8 : min(len(b), at+8+32)]
		end := bytes.IndexByte(name, 0)
		if end < 0 {
			return nil, fmt.Errorf("byte %d: a stream's name has no end", at+8)
		}
		if offset+size > uint64(len(b)) {
			return nil, fmt.Errorf("byte %d: stream %q of %d bytes at %d in a file of %d", at, name[:end], size, offset, len(b))
		}
		streams[string(name[:end])] = b[offset : offset+size]
		at += 8 + (end+4)&^3
	}
	return streams, nil
}

// tables finds the two that hold lines (II.24.2.6).
func (f *File) tables(b []byte) error {
	if len(b) < 24 {
		return errors.New("no #~ stream of tables")
	}
	heaps, valid := b[6], binary.LittleEndian.Uint64(b[8:])
	if below := valid & (1<<tableDocument - 1); below != 0 {
		return fmt.Errorf("tables %#x of a program are in the way", below)
	}
	f.wideGUID, f.wide = heaps&2 != 0, heaps&4 != 0
	at := 24
	var rows [64]uint32
	for i := range rows {
		if valid>>i&1 == 0 {
			continue
		}
		if at+4 > len(b) {
			return fmt.Errorf("the stream of tables ends at byte %d, in the counts of rows", len(b))
		}
		rows[i] = binary.LittleEndian.Uint32(b[at:])
		at += 4
	}
	rest := b[at:]
	if heaps&0x40 != 0 && len(rest) >= 4 {
		rest = rest[4:] // extra data
	}
	blob, guid := width(f.wide), width(f.wideGUID)
	f.documents = table{rows: rows[tableDocument], size: 2*blob + 2*guid}
	f.methods = table{rows: rows[tableMethod], size: width(rows[tableDocument] > 1<<16-1) + blob}
	for _, t := range []*table{&f.documents, &f.methods} {
		size := uint64(t.rows) * uint64(t.size)
		if size > uint64(len(rest)) {
			return fmt.Errorf("a table of %d rows of %d bytes in %d", t.rows, t.size, len(rest))
		}
		t.data, rest = rest[:size], rest[size:]
	}
	return nil
}

func width(wide bool) uint32 {
	if wide {
		return 4
	}
	return 2
}

// index reads an index of that width and returns what is behind it.
func index(b []byte, wide bool) (uint32, []byte) {
	if wide {
		return binary.LittleEndian.Uint32(b), b[4:]
	}
	return uint32(binary.LittleEndian.Uint16(b)), b[2:]
}

// blobAt returns a blob of the heap, nil if there is none.
func (f *File) blobAt(at uint32) []byte {
	if uint64(at) >= uint64(len(f.blob)) {
		return nil
	}
	c := cursor{b: f.blob[at:]}
	n := c.unsigned()
	if c.bad || uint64(n) > uint64(len(c.b)) {
		return nil
	}
	return c.b[:n]
}

// maxName is the longest name of a document that is one.
const maxName = 32 << 10

// document returns the name of a document, empty if it has none.
func (f *File) document(row uint32) string {
	name, ok := f.names[row]
	if ok {
		return name
	}
	if b, ok := f.documents.row(row); ok {
		at, _ := index(b, f.wide)
		name = f.documentName(f.blobAt(at))
	}
	f.names[row] = name
	return name
}

// documentName puts a name together: a separator, and the parts between.
func (f *File) documentName(b []byte) string {
	sep, n := utf8.DecodeRune(b)
	if n == 0 || sep == utf8.RuneError {
		return ""
	}
	var name strings.Builder
	c := cursor{b: b[n:]}
	for i := 0; len(c.b) > 0; i++ {
		part := f.blobAt(c.unsigned())
		if c.bad || name.Len()+len(part) > maxName {
			return ""
		}
		if i > 0 && sep != 0 {
			name.WriteRune(sep)
		}
		name.Write(part)
	}
	return strings.ToValidUTF8(name.String(), "\uFFFD")
}

// A Place is a line of a source file.
type Place struct {
	File string // as the compiler was given it: a path, or with deterministic builds one below /_/
	Line int    // from 1
}

// A Point is where in the source an instruction of IL stands.
type Point struct {
	IL uint32
	Place
}

// Points returns where the code of a method stands, by ascending IL; points that the compiler
// hid are left out. A method is named by its token. Nil: nothing is known of it.
func (f *File) Points(token uint32) []Point {
	row, ok := f.methods.row(token & 0xffffff)
	if !ok || token>>24 != 6 {
		return nil
	}
	doc, row := index(row, f.documents.rows > 1<<16-1)
	at, _ := index(row, f.wide)
	b := f.blobAt(at)
	if at == 0 || len(b) == 0 {
		return nil
	}
	return f.points(b, doc)
}

const (
	maxIL   = 0x20000000
	maxLine = 0x20000000
	// maxPoints is more than the statements of any method.
	maxPoints = 1 << 18
)

// points decodes a blob of sequence points.
func (f *File) points(b []byte, doc uint32) (list []Point) {
	c := cursor{b: b}
	c.unsigned() // the signature of the locals
	if doc == 0 {
		doc = c.unsigned()
	}
	il, line, column, seen := uint32(0), int64(0), int64(0), false
	for first := true; len(c.b) > 0 && !c.bad && len(list) < maxPoints; first = false {
		delta := c.unsigned()
		if delta == 0 && !first {
			doc = c.unsigned()
			continue
		}
		if il += delta; il >= maxIL {
			break
		}
		lines, columns := int64(c.unsigned()), int64(0)
		if lines == 0 {
			columns = int64(c.unsigned())
		} else {
			columns = int64(c.signed())
		}
		if lines == 0 && columns == 0 {
			continue // hidden
		}
		if !seen {
			line, column, seen = int64(c.unsigned()), int64(c.unsigned()), true
		} else {
			line, column = line+int64(c.signed()), column+int64(c.signed())
		}
		if c.bad || line < 1 || line >= maxLine {
			break
		}
		list = append(list, Point{il, Place{f.document(doc), int(line)}})
	}
	return list
}

// At returns the place of an instruction: the last point before it, as stack traces of .NET
// itself have it.
func At(points []Point, il uint32) (Place, bool) {
	i := sort.Search(len(points), func(i int) bool { return points[i].IL > il })
	if i == 0 {
		return Place{}, false
	}
	return points[i-1].Place, true
}

// Begin returns where a method begins: the first line that its points name.
func Begin(points []Point) (Place, bool) {
	if len(points) == 0 {
		return Place{}, false
	}
	best := points[0].Place
	for _, p := range points {
		if p.File == best.File && p.Line < best.Line {
			best = p.Place
		}
	}
	return best, true
}

// A cursor reads compressed numbers (II.23.2).
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) unsigned() uint32 {
	v, _ := c.number()
	return v
}

// number returns a number and how many bits it was written in.
func (c *cursor) number() (uint32, int) {
	b := c.b
	switch {
	case len(b) >= 1 && b[0] < 0x80:
		c.b = b[1:]
		return uint32(b[0]), 7
	case len(b) >= 2 && b[0] < 0xc0:
		c.b = b[2:]
		return uint32(binary.BigEndian.Uint16(b)) & 0x3fff, 14
	case len(b) >= 4 && b[0] < 0xe0:
		c.b = b[4:]
		return binary.BigEndian.Uint32(b) & 0x1fffffff, 29
	}
	c.b, c.bad = nil, true
	return 0, 7
}

// signed reads a number whose sign is its lowest bit.
func (c *cursor) signed() int32 {
	v, bits := c.number()
	if v&1 == 0 {
		return int32(v >> 1)
	}
	return int32(v>>1) - 1<<(bits-1)
}

// Base is the last part of a path of either kind of system.
func Base(name string) string { return path.Base(strings.ReplaceAll(name, `\`, "/")) }
