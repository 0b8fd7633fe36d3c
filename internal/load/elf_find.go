package load

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An elfFinder looks for the files with the symbols of what a trace has run. The zero value finds
// nothing; it is used by one goroutine at a time.
type elfFinder struct {
	// Dirs are searched in this order: for the file by its build id (.build-id/ab/cdef.debug, as
	// distributions and debuginfod lay them out), by its path below the directory, by its name
	// and by that of its debug link.
	Dirs []string
	// Notes tell of files that were there and could not be used.
	Notes []string

	found map[string]*elfFile // by build id; nil: there is none
}

// Find returns the symbols of a file with this build id, nil if there are none. Nothing else
// than the build id proves that a file is the one: without it nothing is found.
func (f *elfFinder) Find(buildID, path, debugLink string) *elfFile {
	buildID = strings.ToLower(buildID)
	if len(f.Dirs) == 0 || !isHex(buildID) {
		return nil
	}
	if file, ok := f.found[buildID]; ok {
		return file
	}
	if f.found == nil {
		f.found = map[string]*elfFile{}
	}
	file := f.search(buildID, path, debugLink)
	f.found[buildID] = file
	return file
}

func isHex(s string) bool {
	return len(s) >= 4 && len(s) <= 128 && strings.Trim(s, "0123456789abcdef") == ""
}

// search prefers a file with more symbols: one for debugging to the program itself.
func (f *elfFinder) search(buildID, path, debugLink string) (best *elfFile) {
	for _, name := range f.candidates(buildID, path, debugLink) {
		file, err := openELF(name)
		switch {
		case os.IsNotExist(err):
			continue
		case file != nil && file.BuildID != buildID:
			f.note("%s is another build of it (%s, the trace has %s): not used", name, file.BuildID, buildID)
			continue
		case err != nil:
			f.note("%s: %v", name, err)
			continue
		}
		if best == nil || len(file.symbols) > len(best.symbols) {
			best = file
		}
	}
	return best
}

// maxNotes is how many files are complained about.
const maxELFNotes = 8

func (f *elfFinder) note(format string, args ...any) {
	if len(f.Notes) < maxELFNotes {
		f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
	}
}

// candidates are the names under which the symbols may lie.
func (f *elfFinder) candidates(buildID, path, debugLink string) (list []string) {
	add := func(dir, name string) {
		// The names stand in the trace: none may lead out of the directory.
		if local := filepath.FromSlash(strings.TrimLeft(name, "/")); filepath.IsLocal(local) {
			if name := filepath.Join(dir, local); !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	base := func(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }
	for _, dir := range f.Dirs {
		split := buildID[:2] + "/" + buildID[2:]
		add(dir, ".build-id/"+split+".debug")
		add(dir, split+".debug")
		add(dir, buildID+"/debuginfo")
		if debugLink != "" {
			add(dir, base(debugLink))
		}
		if path != "" {
			add(dir, path)
			add(dir, path+".debug")
			add(dir, base(path)+".debug")
			add(dir, base(path)+".dbg")
			add(dir, base(path))
		}
	}
	return list
}

// open reads the symbols of a regular file.
func openELF(name string) (*elfFile, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("stat %s: %w", name, os.ErrNotExist)
	}
	r, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readELF(r, info.Size())
}
