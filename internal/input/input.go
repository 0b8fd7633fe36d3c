// Package input opens what a user names: a path or standard input, bare or inside
// gzip, zstd or zip, and tells by its content what it is. Names are never believed.
//
// A File can be read more than once, since symbols and stack evidence stand at the
// end of a trace. Standard input is kept in a temporary file for that.
//
// Read is the one loop over the events of a nettrace: whoever wants events is a Consumer that
// is handed to it, so that a file is read once for all of them.
package input

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/text"
)

// Options say how to open. The zero value works.
type Options struct {
	// Stdin is read for the name "-". Nil means os.Stdin.
	Stdin io.Reader
	// TempDir holds what cannot be read twice. Empty means the system's.
	TempDir string
	// MaxRatio limits how many bytes one stored byte may unpack to once RatioAfter
	// bytes have been unpacked. Zero means 500; real traces stay below 150.
	MaxRatio int64
	// RatioAfter is where MaxRatio begins to hold. Zero means 4 GiB.
	RatioAfter int64
}

// limits are the two limits with their defaults.
func (o *Options) limits() (ratio, after int64) {
	ratio, after = o.MaxRatio, o.RatioAfter
	if ratio == 0 {
		ratio = 500
	}
	if after == 0 {
		after = 4 << 30
	}
	return ratio, after
}

// ErrTooLarge reports content that unpacks to far more than a trace does.
var ErrTooLarge = errors.New("unpacks to more than a trace can be; it looks like a decompression bomb")

// ErrChanged reports a file that was another one when it was read again: what was found at
// first does not go with it.
var ErrChanged = errors.New("the file changed while it was read; wait until the recording has ended, or copy it, and run again")

// Broken reports whether an error of a reader is one of what was stored: a compressed
// file that was cut, say, of which what could be unpacked still counts. A disk that
// fails, a limit and a caller that gave up say nothing of the trace.
func Broken(err error) bool {
	var disk *fs.PathError
	for _, other := range []error{ErrTooLarge, context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !errors.As(err, &disk)
}

// An UnpackError reports compressed content that ends or breaks before it should. What
// was unpacked before counts.
type UnpackError struct {
	Layer  string // "gzip", "zstd", ...
	Stored int64  // bytes on disk
	At     int64  // of them, about where it breaks; 0: not known
	Err    error
}

func (e *UnpackError) Error() string {
	if errors.Is(e.Err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("%s: expected more compressed data, found the end of the file at its byte %d; copy it again to have the rest", e.Layer, e.Stored)
	}
	at := ""
	if e.At > 0 {
		at = fmt.Sprintf(" at its byte %d", e.At)
	}
	return fmt.Sprintf("%s: expected compressed data, found something else%s (%v); copy the file again to have the rest", e.Layer, at, e.Err)
}

// Unwrap returns the cause.
func (e *UnpackError) Unwrap() error { return e.Err }

// A ContentError says that Open or FromReader could not tell what a file holds for what is stored in it.
type ContentError struct{ error }

// Unwrap returns the cause.
func (e ContentError) Unwrap() error { return e.error }

// ofContent marks an error of know.
func ofContent(err error) error {
	if Broken(err) || errors.Is(err, ErrTooLarge) {
		return ContentError{err}
	}
	return err
}

// gzipEnds reports whether what is stored ends with the length that about out unpacked bytes have
// in gzip: it was not cut.
func (f *File) gzipEnds(out int64) bool {
	if f.open != nil {
		return false
	}
	file, err := os.Open(f.path)
	if err != nil {
		return false
	}
	defer file.Close()
	var size [4]byte
	if _, err := file.ReadAt(size[:], f.Stored-4); err != nil {
		return false
	}
	off := int32(binary.LittleEndian.Uint32(size[:]) - uint32(out))
	return max(off, -off) <= 1<<14
}

// unpackError makes an UnpackError of an error that is none of the disk; out is how much was
// unpacked before it.
func (f *File) unpackError(err error, out int64) error {
	var known *UnpackError
	if !Broken(err) || errors.As(err, &known) || errors.Is(err, ErrZipDirectory) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	layer, _, _ := strings.Cut(f.Layers[0], ":")
	if layer != "gzip" || !errors.Is(err, io.ErrUnexpectedEOF) || f.gzipEnds(out) { // gzip that just ends was cut; of a zip the directory at its end is here
		f.broken.Store(true)
	}
	if f.patch == nil && f.trial == 0 {
		f.failed.Store(true)
	}
	e := &UnpackError{Layer: layer, Stored: f.Stored, Err: err}
	var where *placed
	if errors.As(err, &where) && len(f.Layers) == 1 {
		e.At, e.Err = where.at, where.error
		if where.out < knownBy && f.patch == nil && f.trial == 0 {
			f.beheaded.CompareAndSwap(nil, e)
		}
	}
	return e
}

// knownBy is how many bytes are enough to know most files by.
const knownBy = 32

// A File is an opened input.
type File struct {
	Name   string // as the user gave it; "-" for standard input
	Kind   Kind
	Stored int64    // bytes on disk, before unpacking
	Layers []string // what was unwrapped, outermost first: "gzip", "zstd", "zip:member"

	path   string                        // where the bytes are
	open   func() (io.ReadCloser, error) // gives the bytes instead of path, if set
	temp   *os.File                      // removed by Close; open, since that keeps it from other runs
	gone   bool                          // it was, and nothing can be read any more
	zipCut bool                          // a zip without its directory
	ratio  int64
	after  int64 // unpacked bytes from which ratio holds
	read   atomic.Int64

	beheaded atomic.Pointer[UnpackError] // the content's beginning cannot be unpacked: of what it is only the rest tells
	crown    string                      // what readers get in place of that
	failed   atomic.Bool                 // something could not be unpacked
	broken   atomic.Bool                 // a reader met what cannot be unpacked, or has another checksum
	searched bool                        // for the flipped bit that explains it
	patch    *patch                      // of what is stored, that makes it what was written; nil: none was found
	trial    int64                       // how many stored bytes are read to see whether a patch helps; 0: all
}

// Open opens name, finds the layers around the trace and its kind. An unknown kind
// is no error here: batch runs skip such files. Standard input and named pipes are
// read to their end, or until ctx ends.
func Open(ctx context.Context, name string, o *Options) (*File, error) {
	if o == nil {
		o = &Options{}
	}
	f := &File{Name: name, path: name}
	f.ratio, f.after = o.limits()
	if name == "-" {
		in, stop := AwaitStdin(ctx, o.Stdin)
		err := f.spool(ctx, in, o.TempDir)
		stop()
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
	}
	st, err := os.Stat(f.path)
	switch {
	case name == "":
		return nil, errors.New("the name of the trace is empty; was a variable not set?")
	case err != nil && strings.ContainsAny(name, "*?"): // of Windows, where no shell expands it and none may be in a name
		return nil, fmt.Errorf("%s: %w; `tracefix batch %s -o DIR` takes patterns", name, errMissing, text.ShellWord(name))
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(name); err == nil {
			return nil, fmt.Errorf("%s: %w: it is a link that leads nowhere", name, errMissing)
		}
		hint := "; `tracefix batch URL -o DIR` reads s3:// and gs://; download it from elsewhere"
		if !strings.Contains(name, "://") {
			hint = MeantFile(name)
		}
		return nil, fmt.Errorf("%s: %w%s", name, errMissing, hint)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, Plain(err))
	}
	if st.IsDir() {
		return nil, FolderError{Name: name}
	}
	if !st.Mode().IsRegular() && name != "-" {
		// A pipe or a device can be read once only.
		in := AwaitFile(ctx, f.path)
		err := f.spool(ctx, in, o.TempDir)
		in.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if st, err = os.Stat(f.path); err != nil {
			return nil, err
		}
	}
	f.Stored = st.Size()
	if err := f.know(ctx); err != nil {
		f.Close()
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("%s: %w; change its permissions, or run as a user who may read it", name, Plain(err))
		}
		return nil, ofContent(err)
	}
	return f, nil
}

// know finds the layers and the kind of what is stored. Where nothing is known so, it looks for the
// flipped bit that is to blame, and for what the rest of the content is.
func (f *File) know(ctx context.Context) error {
	err := f.sniff()
	if errors.Is(err, errLayers) { // all could be unpacked
		return err
	}
	if err == nil && f.Kind == Unknown && len(f.Layers) > 0 {
		f.unpackAll()
	}
	if (err != nil || f.Kind == Unknown) && f.Mend(ctx) {
		f.Layers = nil
		err = f.sniff()
	}
	if (err != nil || f.Kind == Unknown) && f.patch == nil && f.mendHead(err != nil || f.searched) {
		err = nil
	}
	if (err != nil || f.Kind == Unknown) && f.behead() {
		err = nil
	}
	return err
}

// errMissing is that there is no such file. Each system has words of its own for that.
var errMissing error = noFile{}

type noFile struct{}

func (noFile) Error() string { return "no such file or directory" }

// Is implements errors.Is.
func (noFile) Is(target error) bool { return target == fs.ErrNotExist }

// A FolderError says that a folder was named in place of a trace.
type FolderError struct{ Name string }

func (e FolderError) Error() string { return e.With("") }

// With tells with which flags a batch does with each trace of the folder what was asked for.
func (e FolderError) With(flags string) string {
	return fmt.Sprintf("%s: is a folder; `tracefix batch %s%s -o DIR` works on folders", e.Name, text.ShellWord(e.Name), flags)
}

// MeantFile is the end of a message about a file or folder that there is not: the names in its
// folder that may have been meant, or "".
func MeantFile(name string) string { return text.DidYouMean(name, near(name)) }

// near are the paths that differ from name in the last part that there is not.
func near(name string) []string {
	dir, base := filepath.Split(name)
	d, err := os.Open(cmp.Or(dir, "."))
	if errors.Is(err, fs.ErrNotExist) && dir != "" {
		var list []string
		for _, meant := range text.Nearest(filepath.Clean(dir), near(filepath.Clean(dir))) {
			if _, err := os.Stat(filepath.Join(meant, base)); err == nil {
				list = append(list, filepath.Join(meant, base))
			}
		}
		return list
	}
	if err != nil {
		return nil
	}
	defer d.Close()
	const most = 10_000 // of a folder of millions some do: it is a hint
	names, _ := d.Readdirnames(most)
	names = text.Nearest(base, names)
	for i := range names {
		names[i] = dir + names[i]
	}
	return names
}

// Plain takes the system call and the name out of an error: users ask for no system
// call, and the name stands before it.
func Plain(err error) error {
	var pe *fs.PathError
	switch {
	case !errors.As(err, &pe):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return errMissing
	}
	return pe.Err
}

// FromReader opens bytes that are not a file of their own: an archive member. They
// are kept in a temporary file until Close.
func FromReader(name string, r io.Reader, o *Options) (*File, error) {
	if o == nil {
		o = &Options{}
	}
	f := &File{Name: name}
	f.ratio, f.after = o.limits()
	if err := f.spool(context.Background(), r, o.TempDir); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	st, err := os.Stat(f.path)
	if err != nil {
		f.Close()
		return nil, err
	}
	f.Stored = st.Size()
	if err := f.know(context.Background()); err != nil {
		f.Close()
		return nil, ofContent(err)
	}
	return f, nil
}

// FromOpener opens bytes that are not a file of their own but can be read as often as
// needed, such as a zip member: nothing is copied. open gives the bytes from their
// start, and stored is how many bytes they take on disk.
func FromOpener(name string, stored int64, open func() (io.ReadCloser, error), o *Options) (*File, error) {
	if o == nil {
		o = &Options{}
	}
	f := &File{Name: name, Stored: stored, open: open}
	f.ratio, f.after = o.limits()
	err := f.sniff()
	if errors.Is(err, errNeedsFile) {
		if err = f.spoolOpened(o.TempDir); err == nil {
			f.Layers = nil
			err = f.sniff()
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if f.Kind == Unknown && len(f.Layers) == 1 {
		f.unpackAll()
		f.behead()
	}
	return f, nil
}

// errNeedsFile says that content can be read from a file on disk only.
var errNeedsFile = errors.New("a zip is read from its end")

// spoolOpened copies what open gives to a temporary file.
func (f *File) spoolOpened(dir string) error {
	r, err := f.open()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	if err := f.spool(context.Background(), r, dir); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	f.open = nil
	st, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	f.Stored = st.Size()
	return nil
}

// spool copies r to a temporary file, in steps, so that ctx can end it.
func (f *File) spool(ctx context.Context, r io.Reader, dir string) error {
	t, err := output.TempFile(dir, "tracefix-input-")
	if err != nil {
		return err
	}
	f.path, f.temp = t.Name(), t
	whole := false
	defer func() {
		if !whole { // also where r panics
			f.Close()
		}
	}()
	limit, err := SpoolLimit(filepath.Dir(t.Name()))
	w := &spoolWriter{w: t, system: dir == ""}
	for n := int64(0); err == nil; {
		var k int64
		k, err = io.CopyN(w, r, 16<<20)
		if n += k; n > limit && (err == nil || err == io.EOF) {
			err = fmt.Errorf("%w: more than %d MB; %s=SIZE (such as 200G) allows more, TMPDIR names another folder", ErrSpool, limit/1e6, spoolEnv)
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	if err != io.EOF {
		return err
	}
	whole = true
	return nil
}

// spoolWriter tells what the disk of a temporary file does not take from what cannot be read.
type spoolWriter struct {
	w      io.Writer
	system bool // in the folder that the system has for that
}

func (s *spoolWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.system {
		err = output.InTemp(err)
	}
	return n, err
}

// Close removes temporary files. It does not close readers.
func (f *File) Close() error {
	if f.temp == nil {
		return nil
	}
	t := f.temp
	f.temp, f.gone = nil, true
	return output.RemoveTemp(t)
}

// Path is the file on disk that holds the stored bytes; empty if there is none.
func (f *File) Path() string { return f.path }

// Sources are the files that must not be written to while f is read, as output.Options want them: what came
// from standard input is a copy, beside the file that it may come from.
func (f *File) Sources() []string {
	if f.Name == "-" {
		return []string{f.path, f.Name}
	}
	return []string{f.path}
}

// BytesRead is how many stored bytes all readers together have consumed: for progress.
func (f *File) BytesRead() int64 { return f.read.Load() }

// Reader returns the unpacked content from its start. Every call reads anew.
func (f *File) Reader() (io.ReadCloser, error) {
	r, err := f.below(len(f.Layers))
	if err != nil {
		return nil, err
	}
	return readAhead(r, f.Stored), nil
}

// below returns the content with the first n layers unpacked.
func (f *File) below(n int) (io.ReadCloser, error) {
	if f.gone {
		return nil, fmt.Errorf("%s: %w", f.Name, os.ErrClosed)
	}
	var stored io.ReadCloser
	var file *os.File
	var err error
	if f.open != nil {
		stored, err = f.open()
	} else {
		file, err = os.Open(f.path)
		stored = file
	}
	if err != nil {
		return nil, err
	}
	s := &stack{closers: []io.Closer{stored}, f: f, whole: n == len(f.Layers)}
	var r io.Reader = &counter{stored, &f.read}
	if f.trial > 0 {
		r = io.LimitReader(r, f.trial)
	}
	if f.patch != nil {
		r = &mended{r: r, patch: f.patch}
	}
	for i := range n {
		if r, err = s.unwrap(i, r, file); err != nil {
			s.Close()
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if f.crown != "" && s.whole {
		r = &crowned{r, f.crown}
	}
	s.r = r
	return s, nil
}

type counter struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// stack is a reader with all that must be closed below it.
type stack struct {
	r       io.Reader
	f       *File
	out     int64
	whole   bool // all layers are unpacked
	closers []io.Closer
}

func (s *stack) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.out += int64(n)
	if (len(s.f.Layers) > 0 || s.f.open != nil) && s.out > s.f.after && s.out/s.f.ratio > s.f.Stored {
		return 0, fmt.Errorf("%s: %w (%d bytes so far from %d stored)", s.f.Name, ErrTooLarge, s.out, s.f.Stored)
	}
	switch {
	case err != nil && err != io.EOF && len(s.f.Layers) > 0:
		err = s.f.unpackError(err, s.out)
	case err == io.EOF && s.f.patch != nil && s.whole:
		err = s.f.patch.err(s.f)
	}
	return n, err
}

func (s *stack) Close() error {
	var err error
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i].Close())
	}
	s.closers = nil
	return err
}

// unwrap unpacks layer i of the file.
func (s *stack) unwrap(i int, r io.Reader, file *os.File) (io.Reader, error) {
	layer := s.f.Layers[i]
	name, member, _ := strings.Cut(layer, ":")
	switch name {
	case "gzip":
		z, err := newGzip(r)
		if err != nil {
			return nil, s.f.unpackError(err, 0)
		}
		return z, nil
	case "bzip2":
		z := newBzip2(r, func() (io.ReadCloser, error) { return s.f.below(i) })
		s.closers = append(s.closers, z)
		return z, nil
	case "zstd":
		z, err := newZstd(r, func() (io.ReadCloser, error) { return s.f.below(i) })
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		s.closers = append(s.closers, z)
		return z, nil
	case "zip":
		if s.f.zipCut {
			z := NewZipSalvage(r)
			for {
				if err := z.Next(); err != nil || z.Name == member {
					return z, err
				}
			}
		}
		z, err := zip.NewReader(readerAt{file, &s.f.read, s.f.patch}, s.f.Stored)
		if err != nil {
			return nil, fmt.Errorf("zip: %w", err)
		}
		for _, e := range z.File {
			if e.Name != member {
				continue
			}
			m, err := openMember(e)
			if err != nil { // the directory does not lead to it
				s.f.zipCut = true
				if _, err := file.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
				return s.unwrap(i, r, file)
			}
			s.closers = append(s.closers, m)
			return m, nil
		}
		return nil, fmt.Errorf("zip: no member %q any more", member)
	}
	return nil, fmt.Errorf("internal error: layer %q", layer)
}

type readerAt struct {
	f     *os.File
	n     *atomic.Int64
	patch *patch
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.f.ReadAt(p, off)
	r.n.Add(int64(n))
	r.patch.put(p[:n], off)
	return n, err
}

var errLayers = fmt.Errorf("more than %d layers of compression", maxLayers)

const (
	maxLayers = 4
	SniffSize = 64 << 10
)

func (f *File) sniff() error {
	defer f.read.Store(0)
	for {
		head, err := f.head()
		var unpack *UnpackError
		switch {
		case err == nil || len(head) > 0:
		case len(f.Layers) == 0:
			return err
		case errors.As(err, &unpack):
			return fmt.Errorf("%s: offset 0: %w", f.Name, unpack)
		}
		layer := ""
		switch {
		case bytes.HasPrefix(head, []byte(gzipMagic)):
			layer = "gzip"
		case bytes.HasPrefix(head, []byte(zstdMagic)), skippableFrame(head):
			layer = "zstd"
		case bytes.HasPrefix(head, []byte(bzip2Magic)):
			layer = "bzip2"
		case bytes.HasPrefix(head, []byte(zipFile)):
			if len(f.Layers) > 0 {
				return fmt.Errorf("%s: a zip inside %s cannot be read in one go; unpack it first", f.Name, f.Layers[0])
			}
			if f.open != nil {
				return errNeedsFile
			}
			m, err := f.zipMember()
			if err != nil {
				return err
			}
			layer = "zip:" + m
		}
		if layer == "" {
			f.Kind = Sniff(head)
			return nil
		}
		if len(f.Layers) == maxLayers {
			return fmt.Errorf("%s: %w", f.Name, errLayers)
		}
		f.Layers = append(f.Layers, layer)
	}
}

func skippableFrame(b []byte) bool {
	return len(b) >= 4 && b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18
}

func (f *File) head() ([]byte, error) {
	r, err := f.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, SniffSize)
	n, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:n], err
}

// zipMember finds the one trace of a zip.
func (f *File) zipMember() (string, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	z, err := zip.NewReader(file, f.Stored) // a patch is of what stands before the directory
	if err != nil {
		f.zipCut = true
		return f.firstMember(file, err)
	}
	var members []*zip.File
	for _, e := range z.File {
		if !noMember(e.Name) {
			members = append(members, e)
		}
	}
	switch len(members) {
	case 1:
		if members[0].Flags&1 != 0 {
			return "", fmt.Errorf("%s: zip: %q: %w", f.Name, members[0].Name, ErrEncrypted)
		}
		return members[0].Name, nil
	case 0:
		return "", fmt.Errorf("%s: the zip holds no file", f.Name)
	}
	for _, e := range members {
		if perfcollects(e.Name) {
			return e.Name, nil
		}
		if e.Name == diagsessionMember {
			return "", fmt.Errorf("%s: offset 0: %w: this is %s", f.Name, ErrNotATrace, Diagsession)
		}
	}
	return "", fmt.Errorf("%s: the zip holds %d files, such as %s; `tracefix batch` works on archives", f.Name, len(members), text.Line(members[0].Name))
}

// firstMember finds the first file of a zip whose directory cannot be read for why.
func (f *File) firstMember(r io.Reader, why error) (string, error) {
	z := NewZipSalvage(r)
	for {
		switch err := z.Next(); {
		case errors.Is(err, ErrEncrypted):
			return "", fmt.Errorf("%s: %w", f.Name, err)
		case err != nil:
			return "", fmt.Errorf("%s: %w: its directory is missing or broken (the file was cut, or is not a zip), and no member could be read without it; copy it again, or try `zip -FF`", f.Name, why)
		case !noMember(z.Name):
			return z.Name, nil
		}
	}
}

// ErrNotATrace reports content that nobody here reads.
var ErrNotATrace = errors.New("is not a trace that tracefix reads")

// NotATrace is the error for a file of an unknown kind: it says what was expected, what
// was found and what to do.
func (f *File) NotATrace() error {
	if len(f.Layers) == 1 && f.beheaded.Load() == nil && !f.searched {
		f.unpackAll() // a member of an archive was not yet
	}
	if e := f.beheaded.Load(); e != nil {
		return fmt.Errorf("%s: offset %d: the beginning cannot be unpacked, and nothing else tells what the file holds: %w", f.Name, e.At, e)
	}
	return fmt.Errorf("%s: offset 0: %w: %s", f.Name, ErrNotATrace, Describe(f.Head()))
}

// Found shows how content begins, for messages.
func Found(head []byte) string {
	switch n := len(head); {
	case n == 0:
		return "nothing"
	case n > 16:
		return fmt.Sprintf("%q...", head[:16])
	}
	return fmt.Sprintf("%q and no more", head)
}

// Describe says what unknown content looks like and what to do, for messages.
func Describe(head []byte) string {
	if what := Foreign(head); what != "" {
		return "this is " + what
	}
	trimmed := bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf")
	switch {
	case len(head) == 0:
		return "the file is empty; copy it again, or record again"
	case allZero(head):
		return "the file begins with zero bytes: it was preallocated and never written, or the disk was full; record again"
	case bytes.HasPrefix(trimmed, []byte("<")) && bytes.Contains(trimmed, []byte("<svg")) && !bytes.Contains(trimmed, []byte("<html")):
		return "this is an SVG picture, which browsers open; give the trace that it was made from"
	case bytes.HasPrefix(trimmed, []byte("<?xml")) && !bytes.Contains(trimmed, []byte("<html")):
		return "this is XML and no trace; give the file as the recorder wrote it"
	case bytes.HasPrefix(trimmed, []byte("<")):
		return "this looks like HTML; save the trace itself (JSON), not the page around it"
	case bytes.HasPrefix(trimmed, []byte("# tracer")):
		return "this is an ftrace text, which tracefix does not read; `dotnet-trace collect-linux` gives what it reads"
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return "this is UTF-16 text, which `>` of Windows PowerShell makes of all it is given; write the file with -o, or convert it to UTF-8"
	}
	return "expected " + expected() + ", found " + Found(head) + "; give the file as the recorder wrote it"
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Head returns the first bytes of the content, for messages.
func (f *File) Head() []byte {
	b, _ := f.head()
	return b
}
