package batch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

// An item is one thing in the list of inputs.
type item struct {
	entry  *entry // that it is, or is a member of
	index  int    // place of the entry in the list, over all shards
	member int    // place of the member in the entry
	seq    int    // place among the items of the entry
	name   string // as reports call it
	out    string // where its output lies in the output tree
	prefix string // where outputs of its members would lie, were it an archive
	stored int64  // bytes as stored
	packed bool   // compressed: unpacks to a multiple of stored
	credit int64  // bytes that its end adds to the progress

	// Its bytes: a file of its own, something that can be opened often, or a stream
	// that is there until the next item is asked for.
	path   string
	open   func() (io.ReadCloser, error)
	stream io.Reader
	alone  bool // stream is there until the item is closed

	version string  // tells versions of a bucket's object apart, if the store does
	hash    string  // SHA-256 of the stored bytes, once known
	cut     error   // why the bytes end before they should
	skip    string  // why it is left out
	err     error   // why it is refused
	old     *record // what an earlier run did

	closers []func()
}

func (it *item) close() {
	for i := len(it.closers) - 1; i >= 0; i-- {
		it.closers[i]()
	}
	it.closers = nil
}

// inMemory is the size up to which a stream's member needs no temporary file.
const inMemory = 4 << 20

// capture takes a stream's bytes, so that the walk can go on: small ones in memory,
// others in a temporary file in dir. What a broken archive still gives is kept.
func (it *item) capture(dir string) error {
	if it.stream == nil {
		return nil
	}
	sum := sha256.New()
	r := io.TeeReader(it.stream, sum)
	it.stream = nil
	var mem bytes.Buffer
	n, err := io.CopyN(&mem, r, inMemory)
	if err == io.EOF {
		it.held(mem.Bytes(), n, sum)
		return nil
	}
	if err != nil {
		return it.partly(mem.Bytes(), n, sum, err)
	}
	f, ferr := os.CreateTemp(dir, "member-*")
	if ferr != nil {
		return inTemp(dir, ferr)
	}
	it.closers = append(it.closers, func() { os.Remove(f.Name()) })
	w := &writeErr{w: f}
	if _, err = w.Write(mem.Bytes()); err == nil {
		var m int64
		m, err = io.Copy(w, r)
		n += m
	}
	if cerr := f.Close(); w.err == nil {
		w.err = cerr
	}
	if w.err != nil { // the disk is at fault, not the archive
		return inTemp(dir, w.err)
	}
	it.stored, it.path, it.hash = n, f.Name(), hex.EncodeToString(sum.Sum(nil))
	if err != nil && errors.Is(err, input.ErrTooLarge) {
		return err
	}
	it.cut = err
	return nil
}

// inTemp is the error of a file in dir, the temporary folder of a sink. It names the place that the
// folder lies in, and not the file, whose name is another one in each run.
func inTemp(dir string, err error) error {
	return &output.PlaceError{Name: filepath.Dir(filepath.Dir(dir)), Err: input.Plain(err)}
}

// writeErr tells errors of writing from those of reading.
type writeErr struct {
	w   io.Writer
	err error
}

func (w *writeErr) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

func (it *item) held(b []byte, n int64, sum hash.Hash) {
	it.stored, it.hash = n, hex.EncodeToString(sum.Sum(nil))
	it.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func (it *item) partly(b []byte, n int64, sum hash.Hash, err error) error {
	if n == 0 || errors.Is(err, input.ErrTooLarge) || errors.Is(err, context.Canceled) {
		return err
	}
	it.held(b, n, sum)
	it.cut = err
	return nil
}

// content returns the hash of the stored bytes.
func (it *item) content(ctx context.Context) (string, error) {
	if it.hash != "" {
		return it.hash, nil
	}
	r, err := it.bytes()
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum := sha256.New()
	var unpack *input.UnpackError // what came out is the same each time; the work tells the damage
	if _, err := io.Copy(sum, &ctxReader{ctx, r}); err != nil && !errors.As(err, &unpack) {
		return "", err
	}
	it.hash = hex.EncodeToString(sum.Sum(nil))
	return it.hash, nil
}

func (it *item) bytes() (io.ReadCloser, error) {
	if it.open != nil {
		return it.open()
	}
	return os.Open(it.path)
}

// input opens the item as a trace.
func (it *item) input(ctx context.Context, o *input.Options) (*input.File, error) {
	if it.open != nil {
		return input.FromOpener(it.name, it.stored, it.open, o)
	}
	f, err := input.Open(ctx, it.path, o)
	if err != nil {
		return nil, err
	}
	f.Name = it.name
	return f, nil
}

// ctxReader stops when the context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// A shared thing is closed by the last of its users.
type shared struct {
	users atomic.Int32
	close func()
}

func newShared(close func()) *shared {
	s := &shared{close: close}
	s.users.Store(1)
	return s
}

func (s *shared) use() func() {
	s.users.Add(1)
	return s.done
}

func (s *shared) done() {
	if s.users.Add(-1) == 0 {
		s.close()
	}
}

// ratioReader refuses a stream that unpacks to far more than archives of traces do.
type ratioReader struct {
	r      io.Reader
	stored func() int64 // bytes that went in so far
	out    int64
}

const (
	archiveRatio = 500
	archiveAfter = 1 << 30
	memberAfter  = 256 << 20
)

func (r *ratioReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.out += int64(n)
	if r.out > archiveAfter && r.out/archiveRatio > max(r.stored(), 1) {
		return 0, fmt.Errorf("%w (%d bytes so far from %d stored)", input.ErrTooLarge, r.out, r.stored())
	}
	return n, err
}

// seekCounter counts what is read of a file: skipping a member then costs nothing.
type seekCounter struct{ input.Counting }

func (c *seekCounter) Seek(off int64, whence int) (int64, error) {
	n, err := c.R.(io.Seeker).Seek(off, whence)
	if err == nil {
		c.N = n
	}
	return n, err
}

// bufferedHead lets the first bytes of a stream be looked at.
func bufferedHead(r io.Reader) (*bufio.Reader, []byte) {
	b := bufio.NewReaderSize(r, headSize)
	head, _ := b.Peek(headSize) // an error comes back with the next read
	if size := headSizeOf(head); size > headSize {
		b = bufio.NewReaderSize(b, size)
		head, _ = b.Peek(size)
	}
	return b, head
}

// lostBehind is the damage of an archive that ends or breaks inside the item.
func (it *item) lostBehind() report.Damage {
	what := "the archive ends or breaks inside this member, and what came after it is lost: " + it.cut.Error()
	var unpack *input.UnpackError
	if errors.Is(it.cut, input.ErrZipDirectory) || errors.As(it.cut, &unpack) {
		what = it.cut.Error()
	}
	return report.Damage{Offset: it.stored, Where: "archive", What: what}
}
