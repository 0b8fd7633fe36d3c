package batch

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// A walker opens entries: it yields the item of a trace, or those of the members of an
// archive. It takes one entry at a time.
type walker struct {
	ctx      context.Context
	temp     string // folder for temporary files
	do       string
	format   string
	maxSize  int64
	stores   *stores
	progress *Progress
	yield    func(*item) bool
	// archived is told that an entry is an archive, before its members are.
	archived func(*entry) error
	// known finds what an earlier run made of a member that need not be asked for again.
	known func(*item) *record

	entry   *entry
	version string // of the entry, for its members
	top     int    // place of the member of the entry that is walked
	seq     int    // items of the entry so far
}

// open yields the items of an entry.
func (w *walker) open(e *entry) bool {
	w.entry, w.version, w.top, w.seq = e, e.Version, 0, 0
	it := &item{name: e.Name, out: e.Out, stored: e.Size, credit: e.Size, skip: e.Skip, version: e.Version}
	if e.Refused != "" {
		it.err = errors.New(e.Refused)
	}
	switch {
	case it.skip != "" || it.err != nil:
		return w.emit(it)
	case e.Bucket != "":
		return w.openObject(e, it)
	}
	return w.openFile(e, it)
}

// emit yields an item at its place in the entry.
func (w *walker) emit(it *item) bool {
	it.index, it.member, it.seq, it.entry = w.entry.Index, w.top, w.seq, w.entry
	w.seq++
	it.name = strings.ToValidUTF8(it.name, "\uFFFD") // for reports; it is opened by its path
	return w.yield(it)
}

func (w *walker) refuse(name string, err error) bool {
	if w.ctx.Err() != nil {
		return false
	}
	return w.emit(&item{name: name, err: err})
}

func (w *walker) tooBig(n int64) error {
	return fmt.Errorf("%d bytes are more than --max-size allows (%d)", n, w.maxSize)
}

func (w *walker) openFile(e *entry, it *item) bool {
	it.path = e.Path
	if e.pipe {
		// Something that is named on the command line and can be read once.
		f := input.AwaitFile(w.ctx, e.Path)
		b, head := bufferedHead(f)
		k := sniffArchive(head)
		if k.form != "" {
			defer f.Close()
			return w.openArchive(k, source{stream: b})
		}
		it.path, it.stream, it.packed = "", b, k.packed
		it.closers = append(it.closers, func() { f.Close() })
		return w.emit(it)
	}
	f, err := os.Open(e.Path)
	if err != nil {
		return w.refuse(e.Name, input.Plain(err))
	}
	head, err := readHead(f)
	st, serr := f.Stat() // it may have grown since it was listed
	k := sniffArchive(head)
	if err == nil && serr == nil && k.form == "" && zipName(e.Path) {
		// Its first header may be broken, or a program stand before it: the directory tells. Of one
		// member that is put right where it is opened.
		if z, err := zipDirectory(f, st.Size()); err == nil && len(z.File) > 1 {
			k = archiveKind{form: "zip"}
		}
	}
	f.Close()
	if err = cmp.Or(err, serr); err != nil {
		return w.refuse(e.Name, input.Plain(err))
	}
	it.stored = st.Size()
	if k.form != "" {
		return w.openArchive(k, source{file: f, stored: it.stored})
	}
	if it.stored > w.maxSize {
		it.err = w.tooBig(it.stored)
	}
	it.packed = k.packed
	return w.emit(it)
}

func (w *walker) openArchive(k archiveKind, s source) bool {
	w.entry.archive = &record{Out: w.entry.Out, Version: w.version, Span: w.entry.Members, Trace: &report.Trace{}}
	if err := w.archived(w.entry); err != nil {
		return w.refuse(w.entry.Name, err)
	}
	return w.archive(k, s, w.entry.Name, below(w.entry.Prefix), 1)
}

// openObject asks for an object once: what its first bytes tell decides what is done with
// the rest of them.
func (w *walker) openObject(e *entry, it *item) bool {
	if e.Size > w.maxSize {
		it.err = w.tooBig(e.Size)
		return w.emit(it)
	}
	s, err := w.stores.get(w.ctx, e.Bucket)
	if err != nil {
		return w.refuse(e.Name, ofStore(err))
	}
	o := Object{Key: e.Key, Size: e.Size, Version: e.Version}
	if zipName(e.Key) && e.Size > zipTail { // its directory tells what it holds
		if ok, done := w.openZip(s, o); done {
			return ok
		}
	}
	r, o, err := openNow(w.ctx, s, o)
	if err != nil {
		return w.refuse(e.Name, ofStore(err))
	}
	w.version, it.version, it.stored = o.Version, o.Version, o.Size
	r = storeReader{r}
	b, head := bufferedHead(r)
	k := sniffArchive(head)
	switch k.form {
	case "tar":
		a := &objectAhead{ctx: w.ctx, store: s, o: o, r: r, b: b}
		defer a.close()
		return w.openArchive(k, source{ahead: a, stored: o.Size})
	case "zip": // by another name, or so small that it is here already
		r.Close()
		ok, _ := w.openZip(s, o)
		return ok
	}
	it.packed = k.packed
	it.stream, it.alone = b, true
	it.closers = append(it.closers, func() { r.Close() })
	return w.emit(it)
}

// openNow opens an object as it is now, and tells which version that is.
func openNow(ctx context.Context, s Store, o Object) (io.ReadCloser, Object, error) {
	r, err := s.Open(ctx, o, 0, -1)
	for range 3 { // it may be replaced again and again
		if !errors.Is(err, ErrReplaced) {
			break
		}
		if o, err = s.Stat(ctx, o.Key); err != nil {
			return nil, o, err
		}
		r, err = s.Open(ctx, o, 0, -1)
	}
	return r, o, err
}

// A storeReader marks what breaks off as a failure of the store, and not of what is read.
type storeReader struct{ io.ReadCloser }

func (r storeReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = ofStore(err)
	}
	return n, err
}

// An objectAhead reads an object forward, and asks anew for what is far ahead: for little at first,
// since the next thing there may be passed over, too.
type objectAhead struct {
	ctx   context.Context
	store Store
	o     Object
	at    int64
	r     io.ReadCloser
	b     *bufio.Reader // of r
	piece int64         // how much r is; 0: all there is
	until int64         // where what is wanted ends
}

const firstPiece = 64 << 10

func (a *objectAhead) Read(p []byte) (int, error) {
	n, err := a.b.Read(p)
	a.at += int64(n)
	if n == 0 && err == io.EOF && a.piece > 0 && a.at < a.o.Size {
		if err := a.ask(a.at, max(2*a.piece, a.until-a.at)); err != nil {
			return 0, err
		}
		return a.Read(p)
	}
	return n, err
}

// Seek implements io.Seeker, forward.
func (a *objectAhead) Seek(off int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		off += a.at
	}
	switch gap := off - a.at; {
	case whence == io.SeekEnd || gap < 0:
		return a.at, errors.ErrUnsupported
	case gap <= seekGap:
		_, err := io.CopyN(io.Discard, a, gap)
		if err == io.EOF { // past the end, as in files
			err, a.at = nil, off
		}
		return a.at, err
	}
	return off, a.ask(off, firstPiece)
}

func (a *objectAhead) ask(from, length int64) error {
	a.r.Close()
	r, err := a.store.Open(a.ctx, a.o, from, length)
	if err != nil {
		return ofStore(err)
	}
	a.r, a.at, a.piece = storeReader{r}, from, length
	a.b.Reset(a.r)
	return nil
}

func (a *objectAhead) close() { a.r.Close() }

func zipName(name string) bool { return strings.EqualFold(path.Ext(name), ".zip") }

// openZip walks a zip in a bucket without reading more of it than its directory and its own
// members. It is not done if the object is none.
func (w *walker) openZip(s Store, o Object) (ok, done bool) {
	at, err := newObjectAt(w.ctx, s, o)
	if err != nil {
		return w.refuse(w.entry.Name, ofStore(err)), true
	}
	if at.z, err = zipDirectory(at, o.Size); err == nil {
		return w.openArchive(archiveKind{form: "zip"}, source{object: at, stored: o.Size}), true
	}
	at.close()
	if errors.Is(err, errStore) {
		return w.refuse(w.entry.Name, ofStore(err)), true
	}
	r, o, err := openNow(w.ctx, s, o)
	if err != nil {
		return w.refuse(w.entry.Name, ofStore(err)), true
	}
	defer r.Close()
	b, head := bufferedHead(storeReader{r})
	if sniffArchive(head).form != "zip" {
		return false, false
	}
	// Without its directory it has to be read from its start.
	return w.openArchive(archiveKind{form: "zip"}, source{stream: b, stored: o.Size}), true
}

// errNoZip is the error of a zip whose directory cannot be read.
var errNoZip = errors.New("no zip with a directory")

// openDirectory reads the directory of a zip that is an entry of the list.
func openDirectory(ctx context.Context, st *stores, e *entry) (*zip.Reader, func(), error) {
	var at io.ReaderAt
	var done func()
	if e.Bucket != "" {
		s, err := st.get(ctx, e.Bucket)
		if err != nil {
			return nil, nil, err
		}
		o, err := newObjectAt(ctx, s, Object{Key: e.Key, Size: e.Size, Version: e.Version})
		if err != nil {
			return nil, nil, err
		}
		at, done = o, o.close
	} else {
		f, err := os.Open(e.Path)
		if err != nil {
			return nil, nil, input.Plain(err)
		}
		at, done = f, func() { f.Close() }
	}
	z, err := zipDirectory(at, e.Size)
	if err == nil {
		return z, done, nil
	}
	done()
	if errors.Is(err, errStore) {
		return nil, nil, err
	}
	return nil, nil, errNoZip
}

const (
	zipTail   = 72 << 10  // holds the end record of a zip with any comment, and the directory of most
	zipHeader = 30        // bytes of a member's own header, without its names
	seekGap   = 256 << 10 // what is read rather than asked for anew
)

// errStore marks what a store could not give, where a broken zip would be taken for the cause.
var errStore = errors.New("the archive could not be read")

// An objectAt reads an object of a bucket anywhere, in long requests: each reader goes
// forward from where it began.
type objectAt struct {
	ctx   context.Context
	store Store
	o     Object
	tail  []byte // the end of the object
	z     *zip.Reader

	mu     sync.Mutex
	starts []int64             // of members, in order; what follows the last is the directory
	of     map[*zip.File]int64 // start of each
	reads  map[int64]*request  // by the start that they read from
	probe  func(off int64)     // set while the layout is found
}

// A request is one that is being read.
type request struct {
	r  io.ReadCloser
	b  *bufio.Reader
	at int64
}

func newObjectAt(ctx context.Context, s Store, o Object) (*objectAt, error) {
	n := min(o.Size, zipTail)
	r, err := s.Open(ctx, o, o.Size-n, n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tail := make([]byte, n)
	if _, err := io.ReadFull(r, tail); err != nil {
		return nil, err
	}
	return &objectAt{ctx: ctx, store: s, o: o, tail: tail, reads: map[int64]*request{}}, nil
}

// layout finds where the members begin, without asking for them: zip.File tells it only to
// who reads their headers.
func (a *objectAt) layout(z *zip.Reader) map[*zip.File]int64 {
	a.of = map[*zip.File]int64{}
	for _, e := range z.File {
		a.probe = func(off int64) { a.of[e] = off }
		e.DataOffset() // reads the header that the probe invents
	}
	a.probe = nil
	for _, off := range a.of {
		a.starts = append(a.starts, off)
	}
	slices.Sort(a.starts)
	return a.of
}

// ReadAt implements io.ReaderAt.
func (a *objectAt) ReadAt(p []byte, off int64) (int, error) {
	if a.probe != nil {
		a.probe(off)
		clear(p)
		return copy(p, "PK\x03\x04"), nil
	}
	if from := off - (a.o.Size - int64(len(a.tail))); from >= 0 {
		n := copy(p, a.tail[min(from, int64(len(a.tail))):])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
	start, end := a.within(off)
	a.mu.Lock()
	r := a.reads[start]
	a.mu.Unlock()
	if r == nil || off < r.at || off-r.at > seekGap {
		a.drop(start)
		body, err := a.store.Open(a.ctx, a.o, off, end-off)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errStore, ofStore(err))
		}
		r = &request{body, bufio.NewReaderSize(body, 64<<10), off}
		a.mu.Lock()
		a.reads[start] = r
		a.mu.Unlock()
	}
	if gap := off - r.at; gap > 0 {
		n, err := r.b.Discard(int(gap))
		if r.at += int64(n); err != nil {
			return 0, fmt.Errorf("%w: %w", errStore, ofStore(err))
		}
	}
	n, err := io.ReadFull(r.b, p)
	r.at += int64(n)
	switch {
	case err == nil:
		return n, nil
	case r.at < end:
		return n, fmt.Errorf("%w: %w", errStore, ofStore(err))
	case r.at < a.o.Size: // p goes on behind the member
		m, err := a.ReadAt(p[n:], r.at)
		return n + m, err
	}
	return n, io.EOF
}

// within gives the member that an offset lies in: the bytes that one request is to bring.
func (a *objectAt) within(off int64) (start, end int64) {
	i, found := slices.BinarySearch(a.starts, off)
	if !found {
		i--
	}
	end = a.o.Size
	if i+1 < len(a.starts) {
		end = a.starts[i+1]
	}
	if i < 0 {
		return -1, end
	}
	return a.starts[i], end
}

// release ends the request of a member.
func (a *objectAt) release(e *zip.File) { a.drop(a.of[e]) }

func (a *objectAt) drop(start int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.reads[start]; r != nil {
		r.r.Close()
		delete(a.reads, start)
	}
}

func (a *objectAt) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.reads {
		r.r.Close()
	}
	clear(a.reads)
}
