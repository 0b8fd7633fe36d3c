package batch

import (
	"errors"
	"fmt"
	"hash/fnv"
	"path"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/output"
)

var errEscapes = errors.New("the member's name leads out of the output folder")

// memberName makes a safe slash-separated name of what an archive calls a member.
// What would lead out of the output folder is an error; what some file system could
// not hold is replaced.
func memberName(name string) (string, error) {
	s := strings.ReplaceAll(name, `\`, "/") // Windows tools write it into zips
	switch {
	case strings.ContainsRune(s, 0):
		return "", errors.New("the member's name holds a zero byte")
	case strings.HasPrefix(s, "/"):
		return "", fmt.Errorf("%w: it is absolute", errEscapes)
	case len(s) >= 2 && s[1] == ':' && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z'):
		return "", fmt.Errorf("%w: it names a drive", errEscapes)
	}
	var parts []string
	for _, p := range strings.Split(s, "/") {
		switch p {
		case "", ".":
		case "..":
			return "", fmt.Errorf("%w: it holds %q", errEscapes, "..")
		default:
			parts = append(parts, portable(p))
		}
	}
	if len(parts) == 0 {
		return "", errors.New("the member has no name")
	}
	if len(parts) > maxDepth {
		return "", fmt.Errorf("the member lies %d folders deep; at most %d are taken", len(parts), maxDepth)
	}
	return strings.Join(parts, "/"), nil
}

const (
	maxDepth     = 100 // folders below each other
	maxComponent = 200 // bytes of a name: file systems take 255, temporary names need some
)

// portable makes one component of a member's name such that Windows, macOS and Linux
// take it, and that it means a plain file in every one of them.
func portable(p string) string {
	p = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == utf8.RuneError:
			return '_'
		case runtime.GOOS == "windows" && strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		}
		return r
	}, p)
	if t := strings.TrimRight(p, ". "); t != p {
		p = t + strings.Repeat("_", len(p)-len(t))
	}
	stem, ext, _ := strings.Cut(p, ".")
	if output.DeviceOnWindows(stem) {
		p = stem + "_"
		if ext != "" {
			p += "." + ext
		}
	}
	return shorten(p)
}

// shorten keeps a component's beginning and end and marks what it left out.
func shorten(p string) string {
	if len(p) <= maxComponent {
		return p
	}
	h := fnv.New32a()
	h.Write([]byte(p))
	end := p[len(p)-40:]
	if i := strings.IndexByte(end, '.'); i >= 0 {
		end = end[i:]
	} else {
		end = ""
	}
	head := p[:maxComponent-len(end)-9]
	return strings.ToValidUTF8(fmt.Sprintf("%s~%08x%s", head, h.Sum32(), end), "_")
}

// The files that a batch itself keeps in the output folder.
const (
	stateDir   = ".tracefix"
	reportName = "batch-report"
)

// rowsEnd is the end of reports as rows, one for each trace.
const rowsEnd = ".ndjson"

var reportEnds = []string{".json", ".md", ".xml", ".html", rowsEnd}

// An outNamer gives every input of a folder an output of its own. It must see the inputs in
// order; then the same inputs get the same names.
type outNamer struct {
	files map[string]bool // folded names of outputs
	dirs  map[string]bool // folded names of folders that hold outputs
	next  map[string]int  // the last number given to a folded name
	below map[string]int  // likewise to a folder's
}

// newOutNamer begins with nothing, or at the top with what the batch itself keeps there.
func newOutNamer(top bool) *outNamer {
	n := &outNamer{files: map[string]bool{}, dirs: map[string]bool{}, next: map[string]int{}, below: map[string]int{}}
	if top {
		n.dirs[stateDir] = true
		for _, e := range reportEnds {
			n.files[reportName+e] = true
		}
		n.files[planName], n.files[piecesName] = true, true
	}
	return n
}

// fold makes equal what a file system may take for equal: case and composition.
func fold(s string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(s))) }

// take returns name, or name with a number if something else has it: ~2, ~3, ...
func (n *outNamer) take(name string) string {
	parts := strings.Split(name, "/")
	dir := ""
	for _, p := range parts[:len(parts)-1] {
		d := path.Join(dir, p)
		f := fold(d)
		if n.files[f] { // a file is there already: no folder can be
			k := max(n.below[f], 2) // what had a lower number is a file for good
			for d = path.Join(dir, fmt.Sprintf("%s~%d", p, k)); n.files[fold(d)]; k++ {
				d = path.Join(dir, fmt.Sprintf("%s~%d", p, k+1))
			}
			n.below[f] = k
		}
		dir = d
		n.dirs[fold(dir)] = true
	}
	base := parts[len(parts)-1]
	full := path.Join(dir, base)
	f := fold(full)
	if !n.files[f] && !n.dirs[f] {
		n.files[f] = true
		return full
	}
	stem, ext := splitKnown(base)
	for k := max(n.next[f], 1) + 1; ; k++ {
		c := path.Join(dir, fmt.Sprintf("%s~%d%s", stem, k, ext))
		if cf := fold(c); !n.files[cf] && !n.dirs[cf] {
			n.next[f] = k
			n.files[cf] = true
			return c
		}
	}
}

// splitKnown splits a known extension, with a compression's behind it, off a name.
func splitKnown(name string) (stem, ext string) {
	stem, comp := cutCompression(name)
	_, ext = command.ProfileFormats().Of(stem)
	return stem[:len(stem)-len(ext)], ext + comp
}

// cutCompression splits the end that names a compression off a name.
func cutCompression(name string) (stem, end string) {
	for _, e := range []string{".gz", ".zst", ".bz2"} {
		if len(name) > len(e) && strings.EqualFold(name[len(name)-len(e):], e) {
			return name[:len(name)-len(e)], name[len(name)-len(e):]
		}
	}
	return name, ""
}

// outputName is the name of what is made of the input rel. It follows from names
// alone, so that every shard finds the same one.
func outputName(rel, do, format string) string {
	rel = strings.ToValidUTF8(rel, "_")
	dir, base := path.Split(rel)
	stem, ext := splitKnown(base)
	known, comp := cutCompression(ext)
	if c := command.Lookup(do); c == nil || c.Rewrites == nil {
		return dir + shorten(stem+endOf(do, format))
	}
	if own, _ := command.ProfileFormats().Of("x" + known); format != "" && (own == nil || own.Name != format) {
		return dir + shorten(stem+command.ProfileFormats().Lookup(format).Extensions[0])
	}
	switch {
	case strings.EqualFold(known, ".netperf"):
		known = ".nettrace" // what is written is NetTrace
	case strings.EqualFold(comp, ".bz2"):
		comp = "" // is read only
	}
	return dir + shorten(stem+known+comp)
}

// looksLikeTrace says whether a file's name promises a trace: then content that is
// none is a failure and not a file that just lies there.
func looksLikeTrace(name string) bool {
	stem, _ := cutCompression(strings.ToLower(path.Base(name)))
	for _, e := range []string{".nettrace", ".netperf", ".json", ".trace"} {
		if strings.HasSuffix(stem, e) {
			return true
		}
	}
	return false
}

// archiveName says which archive a file's name promises, if any.
func archiveName(name string) string {
	if zipName(name) {
		return "zip"
	}
	stem, _ := cutCompression(strings.ToLower(name))
	for _, e := range []string{".tar", ".tgz", ".tbz2", ".tzst"} {
		if strings.HasSuffix(stem, e) {
			return "tar"
		}
	}
	return ""
}
