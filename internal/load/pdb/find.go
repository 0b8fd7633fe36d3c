package pdb

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrNotEmbedded reports a DLL whose PDB is a file of its own.
var ErrNotEmbedded = errors.New("no PDB in it")

const (
	// maxFile is the largest file that is read; PDBs of the largest programs have some 100 MB.
	maxFile = 1 << 30
	// maxRatio is what deflate can at most make of a byte.
	maxRatio = 1032
	// maxDirectory is how many entries of a debug directory are looked at; compilers write five.
	maxDirectory = 64

	magic32        = 0x10b // of an optional header of 32 bits
	debugDirectory = 6     // IMAGE_DIRECTORY_ENTRY_DEBUG
	sectionSize    = 40
	embeddedPDB    = 17 // IMAGE_DEBUG_TYPE_EMBEDDED_PORTABLE_PDB
	entrySize      = 28
)

// Embedded returns the PDB that a DLL or EXE of that size holds.
func Embedded(r io.ReaderAt, size int64) ([]byte, error) {
	var b [64]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return nil, err
	}
	mz, at := string(b[:2]), int64(binary.LittleEndian.Uint32(b[0x3c:]))
	if _, err := r.ReadAt(b[:26], at); err != nil {
		return nil, err
	}
	if mz != "MZ" || string(b[:4]) != "PE\x00\x00" {
		return nil, errors.New("no PE file")
	}
	// The machine does not matter: where code was compiled ahead for others than Windows it is mixed with
	// the system.
	sections, dirs := binary.LittleEndian.Uint16(b[6:]), at+24+112
	if binary.LittleEndian.Uint16(b[24:]) == magic32 {
		dirs -= 16
	}
	at += 24 + int64(binary.LittleEndian.Uint16(b[20:]))
	if dirs+(debugDirectory+1)*8 > at {
		return nil, ErrNotEmbedded
	}
	if _, err := r.ReadAt(b[:4+(debugDirectory+1)*8], dirs-4); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(b[:]) <= debugDirectory {
		return nil, ErrNotEmbedded
	}
	address, n := binary.LittleEndian.Uint32(b[4+debugDirectory*8:]), binary.LittleEndian.Uint32(b[8+debugDirectory*8:])
	for ; sections > 0; sections-- {
		if _, err := r.ReadAt(b[:sectionSize], at); err != nil {
			return nil, err
		}
		at += sectionSize
		off := address - binary.LittleEndian.Uint32(b[12:])
		if address < binary.LittleEndian.Uint32(b[12:]) || off >= binary.LittleEndian.Uint32(b[16:]) {
			continue
		}
		list := make([]byte, min(n/entrySize, maxDirectory)*entrySize)
		if _, err := r.ReadAt(list, int64(binary.LittleEndian.Uint32(b[20:]))+int64(off)); err != nil {
			return nil, fmt.Errorf("debug directory: %w", err)
		}
		for ; len(list) >= entrySize; list = list[entrySize:] {
			if binary.LittleEndian.Uint32(list[12:]) == embeddedPDB {
				return inflate(r, size, int64(binary.LittleEndian.Uint32(list[24:])), int64(binary.LittleEndian.Uint32(list[16:])))
			}
		}
	}
	return nil, ErrNotEmbedded
}

// inflate unpacks the entry of a debug directory at that byte.
func inflate(r io.ReaderAt, size, at, n int64) ([]byte, error) {
	if n < 8 || at > size || n > size-at {
		return nil, fmt.Errorf("byte %d: an embedded PDB of %d bytes in a file of %d", at, n, size)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, at); err != nil {
		return nil, err
	}
	full := int64(binary.LittleEndian.Uint32(b[4:]))
	if string(b[:4]) != "MPDB" || full > maxRatio*n || full > maxFile {
		return nil, fmt.Errorf("byte %d: an embedded PDB of %d bytes that says %q and %d bytes", at, n, b[:4], full)
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(b[8:])), full)); err != nil {
		return nil, fmt.Errorf("byte %d: embedded PDB: %w", at, err)
	}
	return out.Bytes(), nil
}

// A Finder looks for the PDBs of what a trace has run. The zero value finds nothing; it is used
// by one goroutine at a time.
type Finder struct {
	// Dirs are searched in this order: for the PDB by its name, for it as symbol servers lay
	// them out (Lab.pdb/GUIDffffffff/Lab.pdb), and for the DLL that may hold it.
	Dirs []string
	// Notes tell of files that were there and could not be used.
	Notes []string

	found map[GUID]*File // nil: there is none
	any   *bool          // what Any has found
}

// Any reports whether a directory holds anything that may be a PDB or hold one.
func (f *Finder) Any() bool {
	if f.any == nil { // asked for each process of a machine
		holds := slices.ContainsFunc(f.Dirs, holdsAny)
		f.any = &holds
	}
	return *f.any
}

func holdsAny(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1 << 10)
		for _, n := range names {
			switch strings.ToLower(filepath.Ext(n)) {
			case ".pdb", ".dll", ".exe":
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// Find returns the lines of the module with this file name whose PDB the compiler wrote to the
// path pdb; nil if there are none. Nothing else than the id proves that a PDB is the one.
func (f *Finder) Find(id GUID, module, pdb string) *File {
	if len(f.Dirs) == 0 || id == (GUID{}) {
		return nil
	}
	if file, ok := f.found[id]; ok {
		return file
	}
	if f.found == nil {
		f.found = map[GUID]*File{}
	}
	file := f.search(id, Base(module), Base(pdb))
	f.found[id] = file
	return file
}

func (f *Finder) search(id GUID, module, pdb string) *File {
	for _, name := range f.candidates(id, module, pdb) {
		file, err := open(name)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, ErrNotEmbedded):
		case err != nil:
			f.note("%s: %v", name, err)
		case file.GUID != id:
			f.note("%s is of another build (%s, the trace has %s): not used", name, file.GUID, id)
		default:
			return file
		}
	}
	return nil
}

// maxNotes is how many files are complained about.
const maxNotes = 8

func (f *Finder) note(format string, args ...any) {
	if len(f.Notes) < maxNotes {
		f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
	}
}

// candidates are the files that may hold the PDB.
func (f *Finder) candidates(id GUID, module, pdb string) (list []string) {
	stem := strings.TrimSuffix(module, filepath.Ext(module))
	for _, dir := range f.Dirs {
		add := func(parts ...string) {
			// The names stand in the trace: none may lead out of the directory.
			if name := filepath.Join(parts...); filepath.IsLocal(name) && name != "." {
				list = append(list, filepath.Join(dir, name))
			}
		}
		add(pdb)
		if own := stem + ".pdb"; own != pdb {
			add(own)
		}
		add(pdb, id.hex()+"ffffffff", pdb)
		add(module)
	}
	return list
}

// String returns the id as .NET prints it.
func (g GUID) String() string {
	h := g.hex()
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// hex returns the id's digits; its first three numbers are little-endian.
func (g GUID) hex() string {
	return hex.EncodeToString([]byte{g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]})
}

// open reads the PDB that a regular file is or holds.
func open(name string) (*File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("stat %s: %w", name, os.ErrNotExist)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%d bytes: more than a PDB has", info.Size())
	}
	r, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b []byte
	if strings.EqualFold(filepath.Ext(name), ".pdb") {
		// The size is what the system said a moment ago; what it can't hold is not read.
		b, err = io.ReadAll(io.LimitReader(r, info.Size()))
	} else {
		b, err = Embedded(r, info.Size())
	}
	if err != nil {
		return nil, err
	}
	return Parse(b)
}
