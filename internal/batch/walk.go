package batch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
)

// Why inputs are left out, in the words of the reports.
const (
	skipLink    = "a link, which is not followed"
	skipSpecial = "not a regular file"
	skipHidden  = "hidden"
	skipNoTrace = "not a trace"
	skipJSON    = "JSON, but not a trace"
	skipForeign = "not a trace that tracefix reads: " // and what it is
	skipOutput  = "an output of this batch"
	skipLoop    = "a link that leads back to a folder being walked"
	skipTwice   = "a link to a folder that is walked anyway"
	skipBroken  = "a link that leads nowhere"
)

// A walker lists what a batch works on, in the order of its arguments and sorted by
// name within folders.
type walker struct {
	ctx      context.Context
	temp     string // folder for temporary files
	stdin    io.Reader
	do       string
	format   string
	maxSize  int64
	openURL  OpenURL
	ignore   []os.FileInfo // folders and files that are the batch's own
	names    *outNamer
	progress *Progress
	yield    func(*item) bool

	next int // index of the next item
}

// walk yields every input of paths. It returns early when yield returns false.
func (w *walker) walk(paths []string) error {
	many := len(paths) > 1
	for _, p := range paths {
		p = local(p)
		ok, err := true, error(nil)
		switch {
		case p == "-":
			ok, err = w.list()
		case isURL(p):
			ok = w.bucket(p, many)
		default:
			ok = w.argument(p, many)
		}
		if err != nil || !ok {
			return err
		}
	}
	return nil
}

// emit gives an item its index and its output's name, and yields it.
func (w *walker) emit(it *item) bool {
	it.index = w.next
	w.next++
	it.name = strings.ToValidUTF8(it.name, "\uFFFD") // for reports; it is opened by its path
	if it.skip == "" && it.err == nil {
		if it.rel == "" {
			it.rel = "trace"
		}
		it.out = w.names.take(outputName(it.rel, w.do, w.format))
	}
	return w.yield(it)
}

func (w *walker) refuse(name, rel string, err error) bool {
	return w.emit(&item{name: name, rel: rel, err: err})
}

func (w *walker) tooBig(n int64) error {
	return fmt.Errorf("%d bytes are more than --max-size allows (%d)", n, w.maxSize)
}

// argument takes one argument: a file, a folder or a glob.
func (w *walker) argument(p string, many bool) bool {
	st, err := os.Stat(p)
	if err != nil {
		if hasMeta(p) {
			return w.glob(p)
		}
		return w.refuse(p, "", plain(err))
	}
	prefix := ""
	if many { // then each folder and archive keeps its own name
		prefix = baseName(p)
	}
	if st.IsDir() {
		return w.folder(p, prefix)
	}
	return w.file(p, p, baseName(p), prefix, st)
}

// plain takes the path out of an error: the report has it already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func baseName(p string) string {
	abs, err := filepath.Abs(p)
	if err != nil {
		return filepath.Base(p)
	}
	b := filepath.Base(abs)
	if b == string(filepath.Separator) || b == "." {
		return ""
	}
	return b
}

// list takes the paths on standard input: one per line, or with zero bytes between.
func (w *walker) list() (bool, error) {
	in, stop := input.AwaitStdin(w.ctx, w.stdin)
	defer stop()
	b := bufio.NewReader(in)
	s := bufio.NewScanner(b)
	s.Buffer(nil, 1<<20)
	head, _ := b.Peek(4096)
	if i := strings.IndexByte(string(head), 0); i >= 0 {
		s.Split(splitZero)
	}
	for s.Scan() {
		line := strings.TrimSuffix(s.Text(), "\r")
		if line == "" {
			continue
		}
		if !w.listed(line) {
			return false, nil
		}
	}
	if err := s.Err(); err != nil {
		return false, fmt.Errorf("the list on standard input: %w", err)
	}
	return true, nil
}

func splitZero(data []byte, atEOF bool) (int, []byte, error) {
	if i := strings.IndexByte(string(data), 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// listed takes a path of a list. Its output keeps the whole path below DIR.
func (w *walker) listed(p string) bool {
	if p = local(p); isURL(p) {
		return w.bucket(p, true)
	}
	rel := listedRel(p)
	st, err := os.Stat(p)
	if err != nil {
		return w.refuse(p, rel, plain(err))
	}
	if st.IsDir() {
		return w.folder(p, rel)
	}
	return w.file(p, p, rel, rel, st)
}

func listedRel(p string) string {
	p = p[len(filepath.VolumeName(p)):]
	var parts []string
	for e := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(p)), "/") {
		switch e {
		case "", ".", "..":
		default:
			parts = append(parts, e)
		}
	}
	return strings.Join(parts, "/")
}

func (w *walker) folder(dir, rel string) bool {
	f := folderWalk{w: w, visited: map[string]bool{}}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		f.real, _ = filepath.Abs(real)
	}
	return f.walk(dir, rel, 0)
}

// A folderWalk is the walk of one argument.
type folderWalk struct {
	w       *walker
	real    string          // the argument without links
	visited map[string]bool // folders outside of it, reached by links
	match   func(rel string, dir bool) bool
}

func (f *folderWalk) walk(dir, rel string, depth int) bool {
	w := f.w
	if w.ctx.Err() != nil {
		return false
	}
	if depth > maxDepth {
		return w.refuse(dir, rel, fmt.Errorf("folders lie more than %d deep", maxDepth))
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil && len(entries) == 0 {
		return w.refuse(dir, rel, plain(err))
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		r := path.Join(rel, e.Name())
		if f.match != nil && !f.match(name, e.IsDir() || e.Type()&os.ModeSymlink != 0) {
			continue
		}
		skip := func(why string) bool { return w.emit(&item{name: name, rel: r, skip: why}) }
		if strings.HasPrefix(e.Name(), ".") {
			if e.Name() == stateDir {
				continue
			}
			if !skip(skipHidden) {
				return false
			}
			continue
		}
		st, err := e.Info()
		if err == nil && e.Type()&os.ModeSymlink != 0 {
			st, err = os.Stat(name)
			if err != nil {
				why := skipBroken
				if !os.IsNotExist(err) { // "too many levels of symbolic links"
					why = skipLoop
				}
				if !skip(why) {
					return false
				}
				continue
			}
			if st.IsDir() {
				if why := f.linked(name); why != "" {
					if !skip(why) {
						return false
					}
					continue
				}
			}
		}
		if err != nil {
			if !w.refuse(name, r, plain(err)) {
				return false
			}
			continue
		}
		if f.match != nil && !st.IsDir() && !f.match(name, false) {
			continue
		}
		ok := true
		switch {
		case w.own(st):
			ok = skip(skipOutput)
		case st.IsDir():
			ok = f.walk(name, r, depth+1)
		case !st.Mode().IsRegular():
			ok = skip(skipSpecial)
		default:
			ok = w.file(name, name, r, r, st)
		}
		if !ok {
			return false
		}
	}
	return true
}

// linked says why a link to a folder is not walked; "" if it is.
func (f *folderWalk) linked(name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return skipLoop
	}
	switch {
	case within(f.real, real):
		return skipLoop
	case within(real, f.real), f.visited[real]:
		return skipTwice
	}
	for v := range f.visited { // folders nest: a part of what was seen, or more
		if within(real, v) {
			return skipTwice
		}
		if within(v, real) {
			return skipLoop
		}
	}
	f.visited[real] = true
	return ""
}

// within reports whether p is dir or lies below it.
func within(p, dir string) bool {
	r, err := filepath.Rel(dir, p)
	return err == nil && r != ".." && !strings.HasPrefix(r, ".."+string(filepath.Separator))
}

func (w *walker) own(st os.FileInfo) bool {
	for _, o := range w.ignore {
		if os.SameFile(o, st) {
			return true
		}
	}
	return false
}

// file takes a file: a trace, or an archive, whose members lie below prefix.
func (w *walker) file(p, name, rel, prefix string, st os.FileInfo) bool {
	if w.own(st) {
		return w.emit(&item{name: name, rel: rel, skip: skipOutput})
	}
	it := &item{name: name, rel: rel, path: p, stored: st.Size(), credit: st.Size()}
	if !st.Mode().IsRegular() {
		// Something that is named on the command line and can be read once: a pipe.
		f := input.AwaitFile(w.ctx, p)
		it.path, it.stream = "", f
		it.closers = append(it.closers, func() { f.Close() })
		return w.emit(it)
	}
	f, err := os.Open(p)
	if err != nil {
		return w.refuse(name, rel, plain(err))
	}
	head, err := readHead(f)
	f.Close()
	if err != nil {
		return w.refuse(name, rel, plain(err))
	}
	k := sniffArchive(head)
	if k.form != "" {
		return w.archive(k, source{file: f, stored: st.Size()}, name, prefix, 1)
	}
	if st.Size() > w.maxSize {
		return w.refuse(name, rel, w.tooBig(st.Size()))
	}
	it.packed = k.packed
	return w.emit(it)
}

func hasMeta(p string) bool { return strings.ContainsAny(p, "*?[") }

// glob takes a pattern that the shell did not expand: *, ?, [...], and ** for any
// number of folders. Outputs mirror the tree below the folder before the first of them.
func (w *walker) glob(pattern string) bool {
	slash := filepath.ToSlash(pattern)
	parts := strings.Split(slash, "/")
	n := 0
	for n < len(parts) && !hasMeta(parts[n]) {
		n++
	}
	base := strings.Join(parts[:n], "/")
	switch {
	case base == "" && strings.HasPrefix(slash, "/"):
		base = "/"
	case base == "":
		base = "."
	}
	pats := parts[n:]
	for _, p := range pats {
		if _, err := path.Match(p, ""); err != nil {
			return w.refuse(pattern, "", fmt.Errorf("%s is no pattern: %w", p, err))
		}
	}
	matched := false
	f := folderWalk{w: w, visited: map[string]bool{}}
	if real, err := filepath.EvalSymlinks(base); err == nil {
		f.real, _ = filepath.Abs(real)
	}
	f.match = func(name string, dir bool) bool {
		r, err := filepath.Rel(base, name)
		if err != nil {
			return false
		}
		elems := strings.Split(filepath.ToSlash(r), "/")
		m := matchElems(pats, elems, dir)
		// A folder that is on the way to a match is no match yet, but one that the
		// whole pattern matches is taken with all that is in it.
		matched = matched || m && (!dir || matchElems(pats, elems, false))
		return m
	}
	if !f.walk(filepath.FromSlash(base), "", 0) {
		return false
	}
	if !matched {
		return w.refuse(pattern, "", errors.New("nothing matches the pattern"))
	}
	return true
}

// matchElems matches the elements of a path. With partial, a path that can lead to a
// match, or that lies below one, counts too.
func matchElems(pats, elems []string, partial bool) bool {
	switch {
	case len(elems) == 0:
		return partial || len(pats) == 0 || len(pats) == 1 && pats[0] == "**"
	case len(pats) == 0:
		return true // below a folder that matches
	case pats[0] == "**":
		return matchElems(pats[1:], elems, partial) || matchElems(pats, elems[1:], partial)
	}
	ok, _ := path.Match(pats[0], elems[0])
	return ok && matchElems(pats[1:], elems[1:], partial)
}
