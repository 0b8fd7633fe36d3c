package batch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// Why inputs are left out, in the words of the reports.
const (
	skipLink    = "a link, which is not followed"
	skipSpecial = "not a regular file"
	skipHidden  = "hidden"
	skipNoTrace = "not a trace"
	skipJSON    = "JSON, but not a trace"
	skipForeign = "not a trace that tracefix reads: " // and what it is
	skipOutput  = "where the outputs of this batch go"
	skipLoop    = "a link that leads back to a folder being walked"
	skipTwice   = "a link to a folder that is walked anyway"
	skipBroken  = "a link that leads nowhere"
)

// An entry is one thing of the list of inputs. Nothing was opened to list it: whether it is
// a trace, an archive or something else is seen when it is its turn.
type entry struct {
	Index   int    `json:"i"` // place in the list
	Name    string `json:"name"`
	Out     string `json:"out,omitempty"`     // of its output, should it be a trace
	Prefix  string `json:"prefix,omitempty"`  // folder of its outputs, should it be an archive; empty: the top
	Path    string `json:"path,omitempty"`    // of a file
	Bucket  string `json:"bucket,omitempty"`  // URL of the bucket of an object
	Key     string `json:"key,omitempty"`     // of an object
	Size    int64  `json:"size,omitempty"`    // as stored
	Version string `json:"version,omitempty"` // of an object
	Skip    string `json:"skip,omitempty"`    // why it is left out
	Refused string `json:"refused,omitempty"` // why it cannot be taken
	Members *span  `json:"members,omitempty"` // which of a zip's; nil: all
	Share   int64  `json:"share,omitempty"`   // of Size, of these members

	// In a plan, of a name that is no text in UTF-8: JSON would not give it back.
	PathBytes []byte `json:"path_bytes,omitempty"`

	pipe bool // can be read once
	own  bool // an output of this batch: not part of the list

	left    *shared // who still works on it
	archive *record // nil: it is none
	undone  bool    // a member of it failed
	passed  bool    // see passOver
}

// outcome is what the journal is to know of an archive whose members all came to an end.
func (e *entry) outcome() fact {
	if e.undone || len(e.archive.Members) == 0 {
		return fact{End: e.Out}
	}
	return fact{Done: e.archive}
}

// came takes note of what became of a member.
func (e *entry) came(it *item, res *Result, f *fact) {
	if e.archive == nil || e.archive.Version == "" {
		return
	}
	m := memberRecord{Member: it.member, Seq: it.seq, Name: strings.TrimPrefix(it.name, e.Name), Bytes: it.stored}
	switch {
	case f != nil && f.Done != nil:
		m.Out = it.out
	case res.Status == Skipped:
		m.Skip = res.Reason
	default:
		e.undone = true
	}
	e.archive.Members = append(e.archive.Members, m)
}

// A span is a run of members of a zip, by their place in its directory.
type span struct {
	From int `json:"from"`
	To   int `json:"to"`
	Of   int `json:"of"` // members that the directory had when it was split
}

func (s *span) equal(o *span) bool { return s == o || s != nil && o != nil && *s == *o }

func (s *span) has(i int) bool { return s == nil || s.From <= i && i < s.To }

// A lister finds what a batch works on, in the order of its arguments and sorted by
// name within folders.
type lister struct {
	ctx      context.Context
	stdin    io.Reader
	do       string
	format   string
	stores   *stores
	ignore   []os.FileInfo // folders and files that are the batch's own
	names    *outNamer
	progress *Progress
	yield    func(*entry) bool
	// strict ends the listing where a part of it cannot be listed: whoever works on a part
	// of the list must have seen all of it.
	strict bool

	next   int // index of the next entry
	failed error
	seen   map[string]bool // what was yielded, where arguments may overlap; nil: they cannot
}

// walk yields every input of paths. It returns early when yield returns false.
func (w *lister) walk(paths []string) error {
	if err := w.all(paths); err != nil {
		return err
	}
	if w.failed != nil {
		return w.failed
	}
	return w.ctx.Err()
}

func (w *lister) all(paths []string) error {
	many := len(paths) > 1
	if many || slices.Contains(paths, "-") {
		w.seen = map[string]bool{}
	}
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

// emit gives an entry its index and the names of its outputs, and yields it. prefix is the
// folder of the outputs of an archive; empty for the top.
func (w *lister) emit(e *entry, rel, prefix string) bool {
	if w.again(e) {
		return true
	}
	if e.Bucket != "" { // files were measured before
		w.progress.addTotal(e.Size)
	}
	e.Index = w.next
	if !e.own {
		w.next++
	}
	e.Name = strings.ToValidUTF8(e.Name, "\uFFFD") // for reports; it is opened by its path
	if e.Skip == "" && e.Refused == "" {
		if rel == "" {
			rel = "trace"
		}
		e.Out = w.names.take(outputName(rel, w.do, w.format))
		switch prefix = strings.ToValidUTF8(prefix, "_"); prefix { // the journal and the reports hold text
		case "":
		case e.Out:
			e.Prefix = e.Out
		default: // names do not tell what is an archive: each gets a folder of its own
			e.Prefix = w.names.take(prefix)
		}
	}
	return w.yield(e)
}

// again reports whether an entry was yielded before: two arguments name it.
func (w *lister) again(e *entry) bool {
	if w.seen == nil {
		return false
	}
	key := e.Name
	if !isURL(key) {
		if abs, err := filepath.Abs(key); err == nil {
			key = abs
		}
	}
	old := w.seen[key]
	w.seen[key] = true
	return old
}

func (w *lister) skip(name, why string) bool { return w.emit(&entry{Name: name, Skip: why}, "", "") }

func (w *lister) refuse(name string, err error) bool {
	return w.emit(&entry{Name: name, Refused: err.Error()}, "", "")
}

// unlisted tells that a part of the list is not known.
func (w *lister) unlisted(name string, err error) bool {
	if w.ctx.Err() != nil {
		return false
	}
	if w.strict {
		w.failed = fmt.Errorf("%s: %w", name, err)
		return false
	}
	return w.refuse(name, err)
}

// argument takes one argument: a file, a folder or a glob.
func (w *lister) argument(p string, many bool) bool {
	st, err := os.Stat(p)
	if err != nil {
		if hasMeta(p) {
			return w.glob(p)
		}
		return w.unlisted(p, input.Plain(err))
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
func (w *lister) list() (bool, error) {
	in, stop := input.AwaitStdin(w.ctx, w.stdin)
	defer stop()
	b := bufio.NewReaderSize(in, listHead)
	s := bufio.NewScanner(b)
	s.Buffer(nil, 1<<20)
	head, _ := b.Peek(listHead)
	if err := noList(head); err != nil {
		return false, err
	}
	if bytes.HasPrefix(head, input.BOM) && !isEntry(firstOf(head)) {
		b.Discard(len(input.BOM)) // which Windows PowerShell writes
	}
	if bytes.IndexByte(head, 0) >= 0 {
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

// listHead is how much of a list is looked at to know that it is one.
const listHead = 4096

// peekList looks at a list before anything is made for what is in it.
func (c *Config) peekList(ctx context.Context) (stop func(), err error) {
	in, stop := input.AwaitStdin(ctx, c.Stdin)
	b := bufio.NewReaderSize(in, listHead)
	head, _ := b.Peek(listHead)
	c.Stdin = b
	return stop, noList(head)
}

// noList refuses what was meant to be worked on and not to be read as names: a piece of a trace between
// two zero bytes may be "/".
func noList(head []byte) error {
	what, kind, k := "", input.Sniff(head), sniffArchive(head)
	switch {
	case k.form != "":
		what = "a " + k.form + " archive"
	case k.packed:
		what = "a compressed file (" + k.layers[0] + ")"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return report.UsageError{Err: errors.New("the list on standard input is UTF-16 text; write it as UTF-8, one path per line")}
	case isEntry(firstOf(head)):
		return nil
	case input.Foreign(head) != "":
		what, _, _ = strings.Cut(input.Foreign(head), ";")
	case kind == input.Chromium || kind == input.Speedscope:
		if !jsonHead().Match(head) {
			return nil // a name may begin with a bracket
		}
		what = "a trace (" + kind.String() + ")"
	case kind != input.Unknown:
		what = "a trace (" + kind.String() + ")"
	case bytes.Contains(head, []byte("\x00\x00")) || bytes.IndexFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\x00\t\n\r", r) }) >= 0:
		what = "binary data"
	default:
		return nil
	}
	return report.UsageError{Err: fmt.Errorf("standard input holds %s and no list of paths (one per line, or with zero bytes between); name the file itself in place of the -", what)}
}

// jsonHead is how JSON begins that is no name with a bracket.
var jsonHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\s\x{feff}]*(\[\s*[{\]]|\{\s*["}])`) })

// firstOf is the first path of a list.
func firstOf(head []byte) string {
	end := "\n"
	if bytes.IndexByte(head, 0) >= 0 {
		end = "\x00"
	}
	for p := range strings.SplitSeq(string(head), end) {
		if p = strings.TrimSuffix(p, "\r"); p != "" {
			return p
		}
	}
	return ""
}

// isEntry reports whether p is a path of a list for sure.
func isEntry(p string) bool {
	if isURL(p) {
		return true
	}
	_, err := os.Lstat(local(p))
	return err == nil
}

func splitZero(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// listed takes a path of a list. Its output keeps the whole path below DIR.
func (w *lister) listed(p string) bool {
	if p = local(p); isURL(p) {
		return w.bucket(p, true)
	}
	rel := listedRel(p)
	st, err := os.Stat(p)
	if err != nil {
		return w.unlisted(p, input.Plain(err))
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

func (w *lister) folder(dir, rel string) bool {
	f := folderWalk{w: w, real: withoutLinks(dir), visited: map[string]bool{}}
	return f.walk(dir, rel, 0)
}

// A folderWalk is the walk of one argument.
type folderWalk struct {
	w       *lister
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
		return w.unlisted(dir, fmt.Errorf("folders lie more than %d deep", maxDepth))
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil && !w.unlisted(dir, input.Plain(err)) {
		return false
	}
	for _, e := range entries {
		if !f.entry(e, filepath.Join(dir, e.Name()), path.Join(rel, e.Name()), depth) {
			return false
		}
	}
	return true
}

// entry takes what is in a folder at a depth, and returns false to stop.
func (f *folderWalk) entry(e os.DirEntry, name, rel string, depth int) bool {
	w := f.w
	if f.match != nil && !f.match(name, e.IsDir() || e.Type()&os.ModeSymlink != 0) {
		return true
	}
	if strings.HasPrefix(e.Name(), ".") {
		return e.Name() == stateDir || w.skip(name, skipHidden)
	}
	st, err := e.Info()
	if err == nil && e.Type()&os.ModeSymlink != 0 {
		st, err = os.Stat(name)
		switch {
		case os.IsNotExist(err):
			return w.skip(name, skipBroken)
		case err != nil: // "too many levels of symbolic links"
			return w.skip(name, skipLoop)
		case st.IsDir():
			if why := f.linked(name); why != "" {
				return w.skip(name, why)
			}
		}
	}
	switch {
	case err != nil:
		return w.refuse(name, input.Plain(err))
	case f.match != nil && !st.IsDir() && !f.match(name, false):
		return true
	case st.IsDir() && w.own(name, st): // file asks for files
		return w.emit(&entry{Name: name, Skip: skipOutput, own: true}, "", "")
	case st.IsDir():
		return f.walk(name, rel, depth+1)
	case !st.Mode().IsRegular():
		return w.skip(name, skipSpecial)
	}
	return w.file(name, name, rel, rel, st)
}

// linked says why a link to a folder is not walked; "" if it is.
func (f *folderWalk) linked(name string) string {
	real := withoutLinks(name)
	switch {
	case real == "" || within(f.real, real):
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

func (w *lister) own(name string, st os.FileInfo) bool {
	for _, o := range w.ignore {
		if os.SameFile(o, st) {
			return true
		}
		// What a folder's listing tells is no identity on some of the file systems that Windows opens.
		if st.Name() == o.Name() {
			if st, err := os.Stat(name); err == nil && os.SameFile(o, st) {
				return true
			}
		}
	}
	return false
}

// file takes a file. If it is an archive, its members lie below prefix.
func (w *lister) file(p, name, rel, prefix string, st os.FileInfo) bool {
	if w.own(p, st) {
		return w.emit(&entry{Name: name, Skip: skipOutput, own: true}, "", "")
	}
	return w.emit(&entry{Name: name, Path: p, Size: st.Size(), pipe: !st.Mode().IsRegular()}, rel, prefix)
}

// bucket takes a URL: an object, a prefix that is walked like a folder, or a pattern.
func (w *lister) bucket(raw string, many bool) bool {
	s, l, err := w.stores.at(w.ctx, raw)
	bucket, root, key := l.bucket, l.root, l.key
	shown := strings.TrimSuffix(root+"/"+key, "/")
	if err != nil {
		return w.unlisted(shown, err)
	}
	if key != "" && !strings.HasSuffix(key, "/") && !hasMeta(key) {
		o, err := s.Stat(w.ctx, key)
		switch {
		case err == nil:
			prefix := ""
			if many {
				prefix = path.Base(key)
			}
			return w.object(bucket, root, o, path.Base(key), prefix)
		case !errors.Is(err, fs.ErrNotExist):
			return w.unlisted(shown, err)
		}
		key += "/" // then it is a folder
	}
	prefix, pats := key, []string(nil)
	if hasMeta(key) {
		parts := strings.Split(key, "/")
		n := 0
		for n < len(parts) && !hasMeta(parts[n]) {
			n++
		}
		prefix = strings.Join(parts[:n], "/")
		if prefix != "" {
			prefix += "/"
		}
		pats = parts[n:]
	}
	below := ""
	if many && pats == nil {
		below = path.Base(strings.TrimSuffix(prefix, "/"))
		if prefix == "" {
			below = path.Base(root)
		}
	}
	found := false
	for o, err := range s.List(w.ctx, prefix) {
		if err != nil {
			return w.unlisted(shown, err)
		}
		r := strings.TrimPrefix(o.Key, prefix)
		if strings.HasSuffix(o.Key, "/") || r == "" {
			continue // how consoles draw a folder
		}
		if pats != nil && !matchElems(pats, strings.Split(r, "/"), false) {
			continue
		}
		found = true
		ok := true
		safe, err := memberName(strings.TrimLeft(r, "/")) // of a key it is an empty folder's, as it is further behind
		switch {
		case err != nil:
			ok = w.refuse(root+"/"+o.Key, fmt.Errorf("refused: %w", err))
		case strings.HasPrefix(safe, stateDir+"/"):
		case hidden(safe):
			ok = w.skip(root+"/"+o.Key, skipHidden)
		default:
			rel := path.Join(below, safe)
			ok = w.object(bucket, root, o, rel, rel)
		}
		if !ok {
			return false
		}
	}
	if !found {
		return w.unlisted(shown, errors.New("there is no object of that name or below it"))
	}
	return true
}

func (w *lister) object(bucket, root string, o Object, rel, prefix string) bool {
	return w.emit(&entry{Name: root + "/" + o.Key, Bucket: bucket, Key: o.Key, Size: o.Size, Version: o.Version}, rel, prefix)
}

func hasMeta(p string) bool { return strings.ContainsAny(p, "*?[") }

// glob takes a pattern that the shell did not expand: *, ?, [...], and ** for any
// number of folders. Outputs mirror the tree below the folder before the first of them.
func (w *lister) glob(pattern string) bool {
	base, pats := splitPattern(pattern)
	for _, p := range pats {
		if _, err := path.Match(p, ""); err != nil {
			return w.unlisted(pattern, fmt.Errorf("%s is not a pattern: %w", p, err))
		}
	}
	matched := false
	f := folderWalk{w: w, real: withoutLinks(base), visited: map[string]bool{}}
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
		return w.unlisted(pattern, errors.New("nothing matches the pattern"))
	}
	return true
}

// splitPattern splits the folder before the first element that is a pattern off one.
func splitPattern(pattern string) (base string, pats []string) {
	slash := filepath.ToSlash(pattern)
	parts := strings.Split(slash, "/")
	n := 0
	for n < len(parts) && !hasMeta(parts[n]) {
		n++
	}
	base = strings.Join(parts[:n], "/")
	switch {
	case base == "" && strings.HasPrefix(slash, "/"):
		base = "/"
	case base == "":
		base = "."
	}
	return base, parts[n:]
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
