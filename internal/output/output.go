// Package output makes files appear whole or not at all.
package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"

	"github.com/tracefix/tracefix/internal/relay"
)

// ErrExists reports an output that is there already.
var ErrExists = errors.New("already exists; use --force to replace it")

// A PlaceError reports an output that the system does not let be written where it was
// asked for: permissions, a full disk. What Check finds is a mistake of the user instead.
type PlaceError struct {
	Name string // as the user gave it
	Err  error
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("%s: cannot be written: %v; %s", e.Name, e.Err, advice(e.Err))
}

// advice says what can be done about an error of the system.
func advice(err error) string {
	for _, a := range []struct {
		is   syscall.Errno
		do   string
		only string // the system whose number it is, where package syscall has no name
	}{
		{syscall.ENOSPC, spaceAdvice, ""},
		{syscall.EDQUOT, spaceAdvice, ""},
		{112, spaceAdvice, "windows"}, // ERROR_DISK_FULL
		{39, spaceAdvice, "windows"},  // ERROR_HANDLE_DISK_FULL
		{syscall.EFBIG, "name a place that takes files of that size", ""},
		{syscall.EPIPE, "who reads it has ended: have it read to the end", ""},
		{syscall.ENAMETOOLONG, "give it a shorter name", ""},
		{206, "give it a shorter name", "windows"},                                     // ERROR_FILENAME_EXCED_RANGE
		{123, `give it a name without any of <>:"|?* that is not too long`, "windows"}, // ERROR_INVALID_NAME
	} {
		if (a.only == "" || a.only == runtime.GOOS) && errors.Is(err, a.is) {
			return a.do
		}
	}
	return "name a place that can be, or change its permissions"
}

const spaceAdvice = "free space there, or name another place"

// A TempError reports a temporary file that the system does not let be written.
type TempError struct {
	Dir string
	Err error
}

func (e *TempError) Error() string {
	variable := "TMPDIR"
	if runtime.GOOS == "windows" {
		variable = "TMP"
	}
	do := "set " + variable + " to a folder that can be written to"
	if advice(e.Err) == spaceAdvice {
		do = "free space there, or set " + variable + " to a folder that has more"
	}
	return fmt.Sprintf("%s, the folder for temporary files, cannot be written to: %v; %s", e.Dir, e.Err, do)
}

// Unwrap returns the cause.
func (e *TempError) Unwrap() error { return e.Err }

// InTemp makes a TempError of an error of a temporary file in the system's folder for these.
func InTemp(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if err == nil {
		return nil
	}
	return &TempError{os.TempDir(), err}
}

// Unwrap returns the cause.
func (e *PlaceError) Unwrap() error { return e.Err }

// placeError makes a PlaceError of an error of the system, which names other files.
func placeError(name string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError // of a rename
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return &PlaceError{name, err}
}

// DeviceOnWindows reports whether a file of that name, with whatever extension, is a device there:
// what is written to aux.json does not end.
func DeviceOnWindows(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	switch s := strings.ToUpper(strings.TrimRight(stem, " ")); {
	case s == "CON", s == "PRN", s == "AUX", s == "NUL", s == "CONIN$", s == "CONOUT$":
		return true
	case len(s) == 4 && (strings.HasPrefix(s, "COM") || strings.HasPrefix(s, "LPT")):
		return s[3] >= '0' && s[3] <= '9'
	}
	return false
}

// Folder makes a folder for outputs, if it is not there.
func Folder(name string) error {
	if err := os.MkdirAll(name, 0o777); err != nil {
		return placeError(name, err)
	}
	return nil
}

// Options of Create. The zero value works.
type Options struct {
	Force bool
	// Private makes a file that only its owner may read: it holds what a session said,
	// environments with their secrets among it.
	Private bool
	Stdout  io.Writer // for "-"; nil means os.Stdout
	// Inputs are files that must not be written to; "-" is the one that standard input comes from.
	Inputs []string
	// Others are the further outputs of the same run, such as its report; "" is none.
	// Of two under one name only the last one would be left.
	Others []string
	// Made is a folder that the run makes before it writes this; "" is none.
	Made string
	// Hold is how many bytes are kept back at first, so that the output can be made anew
	// where it would be gone else: see Gone. 0: as many as are written at once.
	Hold int
	// Context ends writing to a pipe or a device, which may wait for its reader. nil: nothing does.
	Context context.Context
}

func (o *Options) stdout() io.Writer {
	if o.Stdout == nil {
		return os.Stdout
	}
	return o.Stdout
}

// A File is an output being written. Commit makes it appear; Abort, or Close
// without Commit, leaves nothing behind.
type File struct {
	Name string
	line *relay.Line[[]byte] // to compression and disk, beside who writes
	z    io.WriteCloser      // compression, or nil
	f    *os.File            // nil for standard output
	temp string              // "" if f is the target itself
	// target is what temp is renamed to.
	target string
	// replace says that target may be there.
	replace bool
	n       atomic.Int64
	flushed int64 // of n: on the way to the disk
	hold    int   // bytes that wait until they are written
	sent    bool  // some were not held any more

	finished bool // nothing more can be written
	done     bool
}

// Create starts an output. The ends .gz and .zst of name ask for compression. The
// file is written beside its place under a temporary name; a device or a pipe is
// written to as it is.
func Create(name string, o *Options) (*File, error) {
	if o == nil {
		o = &Options{}
	}
	out := &File{Name: name, hold: max(o.Hold, bufferSize)}
	if err := Check(name, o); err != nil {
		return nil, err
	}
	dst := o.stdout()
	if name == "-" || leadsTo(name, dst) {
		if o.Context != nil && waits(dst) {
			dst = interruptible{o.Context, dst}
		}
	} else {
		// A link that leads nowhere is replaced as well.
		st, err := os.Lstat(name)
		out.replace = o.Force || err == nil && st.Mode()&fs.ModeSymlink != 0
		mode := fs.FileMode(0o666)
		if o.Private {
			mode = 0o600
		}
		ctx := o.Context
		if ctx == nil {
			ctx = context.Background()
		}
		old, replaced := modeOf(name)
		if replaced {
			mode &= old
		}
		f, err := out.open(ctx, mode)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			return nil, placeError(name, err)
		}
		if replaced && !o.Private && out.temp != "" {
			_ = f.Chmod(old) // what the umask took of it; without it fewer may read the file
		}
		out.f = f
		dst = f
		if out.temp == "" {
			dst = interruptible{ctx, f}
		}
	}
	disk := io.Writer(counted{dst, out})
	if err := out.compress(disk); err != nil {
		out.Close()
		return nil, err
	}
	if out.z != nil {
		disk = out.z
	}
	out.line = relay.New(nil, func(b *[]byte) error {
		_, err := disk.Write(*b)
		if *b = (*b)[:0]; err != nil {
			*b = nil // somebody may still read it: see interruptible
		}
		return err
	})
	return out, nil
}

// leadsTo reports whether name is another one for what w writes to, as /dev/stdout is. If a pipe was opened once
// more, a reader who goes away would end the command with an error, and not as a reader of standard output
// does; a socket cannot be opened; and a file that a shell has opened would be replaced, with what is before
// the output in it. Who names such a file itself is told that it is there.
func leadsTo(name string, w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	own, err := f.Stat()
	st, serr := os.Stat(name)
	return err == nil && serr == nil && os.SameFile(st, own) && (!st.Mode().IsRegular() || strings.HasPrefix(name, "/dev/"))
}

// modeOf is who may do what with the file that an output replaces: what one person may read is not
// to be public because it was made anew.
func modeOf(name string) (mode fs.FileMode, ok bool) {
	if runtime.GOOS == "windows" { // has but the attribute that forbids writing
		return 0, false
	}
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return 0, false
	}
	return st.Mode().Perm(), true
}

// What is compressed by itself, and how much of it at once: the bytes are to be the same for
// any number of processors.
const gzipBlock = 512 << 10

// compress sets the compression that the name asks for. Its blocks are compressed side by side.
func (o *File) compress(disk io.Writer) (err error) {
	workers := relay.Workers()
	disk = &copier{w: disk} // of memory that compression uses again
	switch strings.ToLower(filepath.Ext(o.Name)) {
	case ".gz":
		z := pgzip.NewWriter(disk)
		err = z.SetConcurrency(gzipBlock, workers+1)
		o.z = z
	case ".zst":
		o.z, err = zstd.NewWriter(disk, zstd.WithEncoderConcurrency(workers))
	}
	return err
}

// open opens what is written to: a temporary file, or the target itself if that is a
// device or a pipe, which a rename would replace.
func (o *File) open(ctx context.Context, mode fs.FileMode) (*os.File, error) {
	if st, err := os.Stat(o.Name); err == nil {
		if !st.Mode().IsRegular() {
			return openPipe(ctx, o.Name)
		}
		// A link stays one, and what it leads to is replaced.
		real, err := filepath.EvalSymlinks(o.Name)
		if err != nil {
			return nil, err
		}
		o.target = real
	} else {
		o.target = o.Name
	}
	f, err := createBeside(o.target, mode)
	if err == nil {
		o.temp = f.Name()
		Temporary(o.temp, f)
	}
	return f, err
}

// Check says whether an output of that name may be written, before any work is done.
func Check(name string, o *Options) error {
	if name == "-" {
		if slices.Contains(o.Others, "-") {
			return errors.New("two outputs of one run would go to standard output; give one of them a file")
		}
		if f, ok := o.stdout().(*os.File); ok { // a shell wrote `>> IN`
			if st, err := f.Stat(); err == nil && st.Mode().IsRegular() && o.reads(st) {
				return errors.New("standard output: is the input as well; name another output")
			}
		}
		return nil
	}
	if runtime.GOOS == "windows" {
		switch base := filepath.Base(name); {
		case DeviceOnWindows(base) && !strings.EqualFold(base, "NUL"):
			return fmt.Errorf("%s: Windows takes that for a device; name another output", name)
		case strings.Contains(base, ":"):
			return fmt.Errorf("%s: Windows takes what follows the colon for a part of a file that no program shows; name another output", name)
		}
	}
	st, err := os.Stat(name)
	if err == nil && o.reads(st) {
		return fmt.Errorf("%s: is the input as well; name another output", name)
	}
	for _, other := range o.Others {
		if other != "" && sameTarget(name, other) {
			return fmt.Errorf("%s: two outputs of one run would be written there; name another one", name)
		}
	}
	switch {
	case err == nil && st.IsDir():
		return fmt.Errorf("%s: is a folder; name a file in it", name)
	case err == nil && !o.Force && st.Mode().IsRegular() && !leadsTo(name, o.stdout()):
		return fmt.Errorf("%s: %w", name, ErrExists)
	case err != nil && !os.IsNotExist(err):
		return placeError(name, err)
	}
	if st, err := os.Stat(filepath.Dir(name)); os.IsNotExist(err) && o.Made != "" && filepath.Dir(name) == filepath.Clean(o.Made) {
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: the folder %s does not exist; make it, or name another place", name, filepath.Dir(name))
	} else if !st.IsDir() {
		return fmt.Errorf("%s: %s is not a folder", name, filepath.Dir(name))
	}
	return nil
}

// reads reports whether a file is one of the inputs.
func (o *Options) reads(st fs.FileInfo) bool {
	return slices.ContainsFunc(o.Inputs, func(in string) bool {
		is, err := statInput(in)
		return err == nil && os.SameFile(st, is)
	})
}

// statInput is os.Stat for an input. Of standard input only a file can be lost by being written to:
// a terminal is both, and so is the null device.
func statInput(name string) (fs.FileInfo, error) {
	if name != "-" {
		return os.Stat(name)
	}
	st, err := os.Stdin.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	return st, err
}

// sameTarget tells whether two outputs would end under one name, which neither need have
// yet. A device takes what is written to it twice: os.DevNull is given for both.
func sameTarget(a, b string) bool {
	sa, erra := os.Stat(a)
	sb, errb := os.Stat(b)
	if erra == nil && errb == nil {
		return os.SameFile(sa, sb) && sa.Mode()&os.ModeDevice == 0
	}
	return os.IsNotExist(erra) && os.IsNotExist(errb) && place(a) == place(b)
}

// Place is the one name of what an output of that name would replace or become.
func Place(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		if real, err = filepath.Abs(real); err == nil {
			return real
		}
	}
	return place(name)
}

// place is the one name of a file that is not there yet, whatever way leads to its folder.
func place(name string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, filepath.Base(name))
}

// counted counts what goes to the disk, and names the output where that fails: the
// system's error has the temporary name.
type counted struct {
	w io.Writer
	o *File
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if end := c.o.n.Add(int64(n)); c.o.temp != "" && end-c.o.flushed >= flushSize {
		startFlush(c.o.f, c.o.flushed, end-c.o.flushed)
		c.o.flushed = end
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = placeError(c.o.title(), err)
	}
	return n, err
}

// flushSize is how much goes on its way to the disk at once. Else all of a large output would be left to
// Sync, which nothing interrupts.
const flushSize = 8 << 20

// title is what messages call the output.
func (o *File) title() string {
	if o.Name == "-" {
		return "standard output"
	}
	return o.Name
}

// bufferSize is how much goes to compression and disk at once.
const bufferSize = 256 << 10

// Write writes content. An error may be that of an earlier Write.
func (o *File) Write(p []byte) (int, error) {
	for n := len(p); ; {
		b := o.line.Batch()
		some := p[:min(len(p), o.hold-len(*b))] // more would make each buffer as large as the largest piece
		if *b, p = append(*b, some...), p[len(some):]; len(*b) < o.hold {
			return n, nil
		}
		o.hold = bufferSize
		o.sent = true
		if err := o.line.Send(); err != nil {
			return 0, err
		}
	}
}

// Take implements relay.Taker: much content goes on its way in the memory in which it was made.
func (o *File) Take(p []byte) ([]byte, error) {
	b := o.line.Batch()
	if len(p) < bufferSize/4 || len(*b)+len(p) < o.hold && !o.sent {
		_, err := o.Write(p)
		return p[:0], err
	}
	o.hold = bufferSize
	o.sent = true
	if len(*b) > 0 {
		if err := o.line.Send(); err != nil {
			return nil, err
		}
		b = o.line.Batch()
	}
	free := *b
	*b = p
	return free[:0], o.line.Send()
}

// Gone reports whether something was written that Close does not take back.
func (o *File) Gone() bool { return o.sent && o.temp == "" }

// Bytes returns how many bytes went to the disk so far, after compression.
func (o *File) Bytes() int64 { return o.n.Load() }

// Finish completes the content, so that only the name is missing, which Commit gives.
// It is for outputs that are to appear together: they need not stay open for that.
func (o *File) Finish() error {
	if o.done || o.finished {
		return nil
	}
	o.finished = true
	_ = o.line.Send() // Close tells it
	err := o.line.Close()
	if o.z != nil {
		if zerr := o.z.Close(); err == nil { // it tells again of what it could not write
			err = zerr
		}
		o.z = nil
	}
	if o.f == nil {
		return err
	}
	if err == nil && o.temp != "" {
		err = o.f.Sync()
	}
	if !o.keeps() {
		if cerr := o.f.Close(); err == nil {
			err = cerr
		}
	}
	var told *PlaceError
	if err != nil && !errors.As(err, &told) && !errors.Is(err, context.Canceled) {
		return placeError(o.Name, err)
	}
	return err
}

// keeps reports whether the file stays open until it has its name: its lock tells others that
// somebody will give it one.
func (o *File) keeps() bool { return locks && removesOpen && o.temp != "" }

// Commit finishes the file and gives it its name.
func (o *File) Commit() error {
	if o.done {
		return nil
	}
	err := o.Finish()
	o.done = true
	if o.temp == "" {
		return err
	}
	if o.keeps() {
		defer o.f.Close()
	}
	if err == nil {
		switch err = o.appear(); {
		case err == ErrExists:
			err = fmt.Errorf("%s: %w", o.Name, err)
		case err != nil:
			err = placeError(o.Name, err)
		}
	}
	if err != nil {
		o.remove()
	}
	return err
}

// remove removes the temporary file.
func (o *File) remove() error {
	err := patiently(func() error { return os.Remove(o.temp) })
	Settled(o.temp)
	return err
}

// appear gives the temporary file its name. One that has appeared under it meanwhile is
// somebody else's: a link fails then, where a rename replaces it.
func (o *File) appear() error {
	unfinishedMu.Lock()
	defer unfinishedMu.Unlock()
	err := o.rename()
	if err == nil {
		delete(unfinished, o.temp)
	}
	return err
}

func (o *File) rename() error {
	if o.replace {
		return Rename(o.temp, o.target)
	}
	switch err := os.Link(o.temp, o.target); {
	case err == nil:
		return patiently(func() error { return os.Remove(o.temp) })
	case errors.Is(err, fs.ErrExist):
		return ErrExists
	}
	// The file system has no links: a look must do.
	if _, err := os.Lstat(o.target); err == nil {
		return ErrExists
	}
	return Rename(o.temp, o.target)
}

// Close drops the file unless it was committed.
func (o *File) Close() error {
	if o.done {
		return nil
	}
	o.done = true
	if o.line != nil {
		_ = o.line.Close()
	}
	if o.z != nil {
		o.z.Close()
	}
	if o.f == nil {
		return nil
	}
	var err error
	if o.temp != "" && removesOpen {
		err = o.remove()
	}
	if !o.finished || o.keeps() {
		err = errors.Join(err, o.f.Close())
	}
	if o.temp != "" && !removesOpen {
		err = o.remove()
	}
	return err
}
