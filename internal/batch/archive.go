package batch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/text"
)

// Limits of archives.
const (
	maxNesting = 3       // archives in archives
	maxMembers = 1 << 20 // of one archive
	maxLayers  = 4       // compressions around one tar
	// headSize is what must be seen to know a tar inside gzip or zstd: one zstd block. bzip2 gives nothing of
	// a block of up to 900 KB before its end.
	headSize      = 160 << 10
	headSizeBzip2 = 1 << 20
)

// An archiveKind is what an archive is, with the compressions around it.
type archiveKind struct {
	form   string   // "zip", "tar", or "" for no archive
	layers []string // around a tar, outermost first
	packed bool     // the content is compressed, archive or not
}

// sniffArchive tells by a file's first bytes whether it is an archive.
func sniffArchive(head []byte) archiveKind {
	var k archiveKind
	for {
		switch {
		case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
			if len(k.layers) == 0 {
				k.form = "zip"
			}
			return k
		case tarHeader(head):
			k.form = "tar"
			return k
		}
		layer := layerOf(head)
		if layer == "" {
			return k
		}
		k.packed = true
		if len(k.layers) == maxLayers {
			return k
		}
		k.layers = append(k.layers, layer)
		// What is wrong with it is told where it is read: with a wrong checksum zstd gives nothing of a short frame.
		r, closeLayer, err := unwrapLayer(layer, bytes.NewReader(head), zstd.IgnoreChecksum(true))
		if err != nil {
			return k
		}
		b := make([]byte, headSize)
		n, _ := io.ReadFull(r, b) // the head ends somewhere: what comes out counts
		closeLayer()
		head = b[:n]
	}
}

// brokenArchive is the error of a file that is to be an archive and is none: as a file that lies
// beside the traces it would be left out, and with it all of its members.
func brokenArchive(in *input.File, name string) error {
	form, head := archiveName(name), in.Head()
	switch {
	case tarHeader(head): // it was not seen where archives are looked for
		return fmt.Errorf("a tar inside %s that cannot be unpacked as it is; copy it again, or unpack it with another program", strings.Join(in.Layers, " inside "))
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return errors.New("offset 0: expected the header of a tar's first member, found one with a wrong checksum; copy the archive again")
	case form == "", input.Foreign(head) != "":
		return nil
	case len(head) == 0:
		return fmt.Errorf("the file is empty, and no %s as its name says; copy it again", form)
	case form == "tar" && len(bytes.Trim(head, "\x00")) == 0:
		r, err := in.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.CopyN(io.Discard, r, 1<<20) // what cannot be unpacked looks like zeros, too
		if err == io.EOF {
			err = nil
		}
		return err // nil: one without members
	}
	return fmt.Errorf("offset 0: expected a %s as the file's name says, found %q; copy it again", form, head[:min(len(head), 16)])
}

func layerOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18:
		return "zstd" // begins with a skippable frame
	case bytes.HasPrefix(head, []byte("BZh")):
		return "bzip2"
	}
	return ""
}

func unwrapLayer(layer string, r io.Reader, o ...zstd.DOption) (io.Reader, func(), error) {
	switch layer {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return z, func() { z.Close() }, nil
	case "zstd":
		z, err := zstd.NewReader(r, append(o, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))...)
		if err != nil {
			return nil, nil, fmt.Errorf("zstd: %w", err)
		}
		return z, z.Close, nil
	}
	return bzip2.NewReader(r), func() {}, nil
}

// tarHeader reports whether b begins with a tar header: its checksum is right.
func tarHeader(b []byte) bool {
	if len(b) < 512 {
		return false
	}
	b = b[:512]
	var sum, signed int64
	for i, c := range b {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
		signed += int64(int8(c))
	}
	field := strings.Trim(string(b[148:156]), " \x00")
	if field == "" {
		return false
	}
	var want int64
	for _, c := range field {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	return want == sum || want == signed
}

// A source is where an archive's bytes come from: one of the five is set.
type source struct {
	file   *os.File
	object *objectAt
	ahead  *objectAhead
	open   func() (io.ReadCloser, error)
	stream io.Reader
	stored int64
}

// A folder is where the outputs of an archive's members lie, and what names it has.
type folder struct {
	prefix string
	names  *outNamer
}

// below is the folder of an archive.
func below(prefix string) folder { return folder{prefix, newOutNamer(prefix == "")} }

// archive walks the members of an archive. in is where their outputs lie; name is what
// reports call it.
func (w *walker) archive(k archiveKind, s source, name string, in folder, depth int) (goOn bool) {
	defer func() { // a decoder that trips over one archive must not stop the others
		if p := recover(); p != nil {
			goOn = w.refuse(name, fmt.Errorf("internal error: %v; please report it with the archive, if you can share it", p))
		}
	}()
	if depth > maxNesting {
		return w.refuse(name, fmt.Errorf("archives lie in archives more than %d deep", maxNesting))
	}
	if k.form == "zip" {
		return w.zip(s, name, in, depth)
	}
	return w.tar(k, s, name, in, depth)
}

// seekable gives s as something that can be read anywhere: a copy, if it cannot itself. Where s breaks
// off, or ends with another checksum than it should, the copy is of what came, and cut says why.
func (w *walker) seekable(s source) (at io.ReaderAt, size int64, drop func(), cut, err error) {
	if s.file != nil {
		f, err := os.Open(s.file.Name())
		return f, s.stored, func() { f.Close() }, nil, err
	}
	if s.object != nil {
		return s.object, s.stored, s.object.close, nil, nil
	}
	r := s.stream
	if s.open != nil {
		o, err := s.open()
		if err != nil {
			return nil, 0, nil, nil, err
		}
		defer o.Close()
		r = o
	}
	f, err := os.CreateTemp(w.temp, "archive-*")
	if err != nil {
		return nil, 0, nil, nil, inTemp(w.temp, err)
	}
	drop = func() { f.Close(); os.Remove(f.Name()) }
	to := &writeErr{w: f}
	n, err := io.Copy(to, &ctxReader{w.ctx, r})
	switch {
	case to.err != nil:
		err = inTemp(w.temp, to.err)
	case err == nil, errors.Is(err, input.ErrZipDirectory):
		return f, n, drop, nil, nil
	case n > 0 && w.ctx.Err() == nil && !ofStores(err) && !errors.Is(err, input.ErrTooLarge):
		return f, n, drop, err, nil
	}
	drop()
	return nil, 0, nil, nil, err
}

func (w *walker) zip(s source, name string, in folder, depth int) bool {
	f, size, closeFile, cut, err := w.seekable(s)
	if err != nil {
		return w.refuse(name, err)
	}
	h := newShared(closeFile)
	defer h.done()
	var z *zip.Reader
	if s.object != nil {
		z = s.object.z
	} else if z, err = zipDirectory(f, size); err != nil {
		return w.zipCut(io.NewSectionReader(f, 0, size), cmp.Or(cut, err), name, in, depth)
	}
	if len(z.File) > maxMembers {
		return w.refuse(name, fmt.Errorf("zip: %d members; at most %d are taken", len(z.File), maxMembers))
	}
	if depth == 1 && w.entry.Members != nil && w.entry.Members.Of != len(z.File) {
		return w.refuse(name, errSplitAnew)
	}
	if input.IsDiagsession(z) && !slices.ContainsFunc(z.File, func(e *zip.File) bool { return looksLikeTrace(e.Name) }) {
		if depth == 1 && w.entry.Members != nil && !w.entry.Members.has(0) {
			return true // whose part begins it tells
		}
		return w.emit(&item{name: name, skip: skipForeign + input.Diagsession})
	}
	layout := layoutOf(z, size, s.object)
	for i, e := range z.File {
		if e.FileInfo().IsDir() {
			continue
		}
		it := w.member(e.Name, name, in, e.Mode().IsRegular())
		if depth == 1 {
			if !w.entry.Members.has(i) {
				continue // another one's; its names are taken all the same
			}
			w.top = i
		}
		it.stored, it.packed = int64(e.UncompressedSize64), false
		it.credit = int64(e.CompressedSize64)
		if it.skip == "" && it.err == nil {
			if it.skip = notFile(e.Mode()); it.skip == "" {
				it.err = w.refused(e, layout)
			}
		}
		if !w.zipMember(s.object, e, it, h, layout, depth) {
			return false
		}
	}
	if cut != nil {
		return w.refuse(name, fmt.Errorf("%w (its members were read)", cut))
	}
	return true
}

// notFile tells why a member of that mode is left out, if it is.
func notFile(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return skipLink
	case !mode.IsRegular():
		return skipSpecial
	}
	return ""
}

// refused tells why a member of a zip is not unpacked, if it is not.
func (w *walker) refused(e *zip.File, in *zipLayout) error {
	packed, unpacked := int64(e.CompressedSize64), int64(e.UncompressedSize64)
	switch {
	case e.Flags&1 != 0:
		return fmt.Errorf("zip: %w", input.ErrEncrypted)
	case in.overlaps[e]:
		return errors.New("zip: the member shares its bytes with another one; it looks like a decompression bomb")
	case in.broken[e] != nil:
		return zipError(in.broken[e])
	case packed < 0 || packed > in.size:
		return fmt.Errorf("zip: the member claims %d bytes in an archive of %d", e.CompressedSize64, in.size)
	case unpacked < 0 || unpacked > memberAfter && unpacked/archiveRatio > max(packed, 1):
		return fmt.Errorf("zip: the member claims to unpack from %d to %d bytes; it looks like a decompression bomb",
			e.CompressedSize64, e.UncompressedSize64)
	case unpacked > w.maxSize:
		return w.tooBig(unpacked)
	}
	return nil
}

// zipMember emits a member of a zip, or goes through it if it is an archive. Without o the bytes of
// the zip are at hand.
func (w *walker) zipMember(o *objectAt, e *zip.File, it *item, h *shared, in *zipLayout, depth int) bool {
	if it.err != nil || it.skip != "" {
		return w.emit(it)
	}
	if o != nil {
		if it.old = w.known(it); it.old != nil {
			return w.emit(it)
		}
		return w.zipObject(o, e, it, h, depth)
	}
	open := func() (io.ReadCloser, error) { return input.OpenMember(e, in.size) }
	head, err := headOf(open)
	if err != nil && len(head) == 0 && e.UncompressedSize64 > 0 {
		it.err = zipError(err)
		return w.emit(it)
	}
	k := sniffArchive(head)
	if k.form != "" {
		if !w.archive(k, source{open: open, stored: int64(e.CompressedSize64)}, it.name, below(it.prefix), depth+1) {
			return false
		}
		w.progress.credit(it.credit)
		return true
	}
	it.packed = k.packed
	it.open = open
	it.closers = append(it.closers, h.use())
	return w.emit(it)
}

// zipDirectory reads the directory of a zip.
func zipDirectory(f io.ReaderAt, size int64) (*zip.Reader, error) {
	z, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	return z, nil
}

// zipObject takes a member of a zip in a bucket: its bytes come with one request.
func (w *walker) zipObject(o *objectAt, e *zip.File, it *item, h *shared, depth int) bool {
	r, err := input.OpenMember(e, o.o.Size)
	if err != nil {
		it.err = zipError(err)
		return w.emit(it)
	}
	drop := func() { r.Close(); o.release(e) }
	b, head := bufferedHead(r)
	k := sniffArchive(head)
	if k.form != "" {
		defer drop()
		if !w.archive(k, source{stream: b, stored: int64(e.CompressedSize64)}, it.name, below(it.prefix), depth+1) {
			return false
		}
		w.progress.credit(it.credit)
		return true
	}
	it.packed = k.packed
	it.stream, it.alone = b, true
	it.closers = append(it.closers, h.use(), drop)
	return w.emit(it)
}

// errSplitAnew is the error of a zip of which others have other members to do, and that is not the
// one that was split: some of it would be done by nobody.
var errSplitAnew = errors.New("zip: the archive was replaced since its members were dealt out; list it again (a new plan, or all shards)")

// zipCut walks the members of a zip whose directory cannot be read for why.
func (w *walker) zipCut(f io.Reader, why error, name string, in folder, depth int) bool {
	if depth == 1 && w.entry.Members != nil {
		return w.refuse(name, errSplitAnew)
	}
	count := &input.Counting{R: f}
	z := input.NewZipSalvage(&ctxReader{w.ctx, count})
	r := &ratioReader{r: z, stored: func() int64 { return count.N }}
	told := false // that the zip is broken: by an item
	for n := 0; ; n++ {
		if depth == 1 {
			w.top = n
		}
		err := z.Next()
		unreadable := errors.Is(err, input.ErrEncrypted) || errors.Is(err, zip.ErrAlgorithm)
		if err != nil && !unreadable {
			if w.ctx.Err() != nil {
				return false
			}
			if told {
				return true
			}
			if !errors.Is(why, zip.ErrFormat) { // begins so itself
				why = fmt.Errorf("zip: %w", why)
			}
			return w.refuse(name, fmt.Errorf("%w: the directory at its end is missing or broken, and no member could be read without it; copy it again", why))
		}
		if n == maxMembers {
			return w.refuse(name, fmt.Errorf("zip: more than %d members", maxMembers))
		}
		if strings.HasSuffix(z.Name, "/") {
			continue
		}
		it := w.member(z.Name, name, in, true)
		if unreadable && it.skip == "" && it.err == nil {
			it.err = err
		}
		if it.skip == "" && it.err == nil {
			b, head := bufferedHead(r)
			k := sniffArchive(head)
			if k.form != "" {
				if !w.archive(k, source{stream: b}, it.name, below(it.prefix), depth+1) {
					return false
				}
				continue
			}
			it.stream, it.packed, told = b, true, true
		}
		if !w.emit(it) {
			return false
		}
	}
}

// zipError says that an error is one of a zip, unless it does so itself.
func zipError(err error) error {
	var unpack *input.UnpackError
	switch {
	case errors.As(err, &unpack):
		return err
	case errors.Is(err, zip.ErrFormat):
		return errors.New("zip: the member's own header is broken; copy the archive again")
	}
	return fmt.Errorf("zip: %w", err)
}

func headOf(open func() (io.ReadCloser, error)) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readHead(r)
}

// headSizeOf tells by the first bytes of a file how many of them it takes to know an archive.
func headSizeOf(b []byte) int {
	if layerOf(b) == "bzip2" {
		return headSizeBzip2
	}
	return headSize
}

// readHead reads as many of the first bytes as it takes to know an archive.
func readHead(r io.Reader) ([]byte, error) {
	b := make([]byte, 512)
	n, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if n < len(b) || layerOf(b) == "" {
		return b[:n], err
	}
	b = append(b, make([]byte, headSizeOf(b)-len(b))...)
	m, err := io.ReadFull(r, b[n:])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:n+m], err
}

// A zipLayout is where the members of a zip lie in it.
type zipLayout struct {
	size     int64 // of the zip
	overlaps map[*zip.File]bool
	broken   map[*zip.File]error
}

// layoutOf finds members that share bytes, which is how small zips unpack to petabytes, and members
// whose own header cannot be found. Of a zip in a bucket the own headers are not read for that:
// what the directory tells has to do.
func layoutOf(z *zip.Reader, size int64, o *objectAt) *zipLayout {
	l := &zipLayout{size: size, overlaps: map[*zip.File]bool{}, broken: map[*zip.File]error{}}
	type bytes struct {
		from, to int64
		e        *zip.File
	}
	var all []bytes
	var starts map[*zip.File]int64
	if o != nil {
		starts = o.layout(z)
	}
	for _, e := range z.File {
		from, remote := starts[e]
		if remote {
			from += int64(zipHeader + len(e.Name))
		} else {
			var err error
			if from, err = e.DataOffset(); err != nil {
				l.broken[e] = err
				continue
			}
		}
		if e.CompressedSize64 > 0 {
			all = append(all, bytes{from, from + int64(e.CompressedSize64), e})
		}
	}
	text.SortRows(all, func(a, b *bytes) int { return cmp.Compare(a.from, b.from) })
	var last bytes
	for i, s := range all {
		if i > 0 && s.from < last.to {
			l.overlaps[s.e], l.overlaps[last.e] = true, true
		}
		if i == 0 || s.to > last.to {
			last = s
		}
	}
	return l
}

// An openTarball is a tar that is read.
type openTarball struct {
	*tar.Reader
	s        source
	h        *shared
	count    *input.Counting // of stored bytes
	from     io.Reader       // of unpacked bytes; tar.Reader takes no more of them than it needs
	read     *input.Counting // its
	seeks    bool            // so that members that are not wanted are not read
	layers   []func()        // what closes them
	credited int64           // of the stored bytes
	ends     int64           // where the data of the last member do that was handed on as it comes
	due      int64           // where the blocks of the last member end, at least
	broken   error           // the first header that is
}

// openTar opens a tar with the compressions around it.
func (w *walker) openTar(k archiveKind, s source) (*openTarball, error) {
	t := &openTarball{s: s, h: newShared(func() {})}
	var from io.Reader
	var stored io.ReadSeeker // nil: it can't be sought in
	switch {
	case s.file != nil:
		f, err := os.Open(s.file.Name())
		if err != nil {
			return nil, err
		}
		t.h = newShared(func() { f.Close() })
		if from = f; len(k.layers) == 0 {
			stored, t.s.file = f, f
		}
	case s.ahead != nil:
		if from = s.ahead; len(k.layers) == 0 {
			stored = s.ahead
		}
	case s.open != nil:
		o, err := s.open()
		if err != nil {
			return nil, err
		}
		t.h, from = newShared(func() { o.Close() }), o
	default:
		from = s.stream
	}
	if stored != nil {
		c := &seekCounter{input.Counting{R: stored}}
		t.count, t.seeks, t.read = &c.Counting, true, &c.Counting
		t.from, t.Reader = c, tar.NewReader(c)
		return t, nil
	}
	t.count = &input.Counting{R: from}
	var r io.Reader = bufio.NewReaderSize(&ctxReader{w.ctx, t.count}, 64<<10)
	for _, l := range k.layers {
		layer, closeLayer, err := unwrapLayer(l, r)
		if err != nil {
			t.close()
			return nil, err
		}
		t.layers = append(t.layers, closeLayer)
		r = &ratioReader{r: layer, stored: func() int64 { return t.count.N }}
	}
	t.read = &input.Counting{R: r}
	t.from, t.Reader = t.read, tar.NewReader(t.read)
	return t, nil
}

// close closes the compressions, and the file when its members are done.
func (t *openTarball) close() {
	for _, closeLayer := range slices.Backward(t.layers) {
		closeLayer()
	}
	t.h.done()
}

// breaksOff reports whether the data end inside the member that was handed on last, which tells so itself.
func (t *openTarball) breaksOff() bool {
	if t.seeks {
		return t.ends > t.s.stored
	}
	return t.ends > t.read.N
}

// next goes to the next member. Behind a broken header, of which nobody knows how long its data are, that is
// the one of the next header whose sum is right; and so behind the mark that ends a tar, which may be a hole of
// zeros, or that of the first of several tars (cat a.tar b.tar).
func (t *openTarball) next(ctx context.Context, before int) (*tar.Header, error) {
	hdr, err := t.Next()
	marked := err == io.EOF && t.read.N > t.due
	switch {
	case t.breaksOff():
	case marked, errors.Is(err, tar.ErrHeader):
		hdr, err = t.goOn(ctx, before, err)
	case err == io.EOF:
		err = errNoMark
	}
	if err == nil {
		t.due = t.read.N + dataSize(hdr)
	}
	return hdr, err
}

// goOn looks for the next header whose sum is right, behind why there was none. What lies before it and is no zeros
// is told.
func (t *openTarball) goOn(ctx context.Context, before int, why error) (*tar.Header, error) {
	marked, broken := why == io.EOF, t.broken
	block := make([]byte, 512)
	for ctx.Err() == nil {
		if errors.Is(why, tar.ErrHeader) && broken == nil {
			broken = fmt.Errorf("tar: stored byte %d: %w (%d members before it were read, and those behind the next whole header)", t.count.N, why, before)
		}
		if !marked { // else something else may follow a whole tar
			t.broken = broken
		}
		_, err := io.ReadFull(t.from, block)
		switch {
		case err == io.ErrUnexpectedEOF, err != nil && marked: // what is wrong behind the end rest tells
			return nil, io.EOF
		case err != nil:
			return nil, err
		case tarHeader(block):
			t.Reader = tar.NewReader(t.again(block))
			var hdr *tar.Header
			if hdr, why = t.Next(); !errors.Is(why, tar.ErrHeader) {
				t.broken = broken
				return hdr, why
			}
		case len(bytes.Trim(block, "\x00")) > 0:
			why = tar.ErrHeader
		}
	}
	return nil, ctx.Err()
}

// again is what is read of the tar from a block on that was read already.
func (t *openTarball) again(block []byte) io.Reader {
	if s, ok := t.from.(io.Seeker); ok {
		if _, err := s.Seek(-int64(len(block)), io.SeekCurrent); err == nil {
			return t.from
		}
	}
	return io.MultiReader(bytes.NewReader(block), t.from)
}

// errNoMark is the error of a tar that breaks off between two members.
var errNoMark = errors.New("the mark that ends a tar is missing, and members may be missing with it; copy the archive again")

// dataSize is how much the data of a member take in the tar, but for sparse ones, of which nobody tells.
func dataSize(hdr *tar.Header) int64 {
	if hdr.Typeflag != tar.TypeReg || sparse(hdr) {
		return 0
	}
	return (hdr.Size + 511) &^ 511
}

// sparse reports whether the holes of a member are left out.
func sparse(hdr *tar.Header) bool {
	for key := range hdr.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return hdr.Typeflag == tar.TypeGNUSparse
}

// rest reads what lies behind the end of the tar: there its compression tells whether what came out of it
// is what was packed. Something else that follows that takes nothing from it.
func (t *openTarball) rest() error {
	if t.seeks {
		return nil
	}
	_, err := io.Copy(io.Discard, t.from)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch) || err == errBehindBzip2 {
		return nil
	}
	return err
}

// errBehindBzip2 is what package bzip2 says where something else follows.
const errBehindBzip2 = bzip2.StructuralError("bad magic value in continuation file")

func (w *walker) tar(k archiveKind, s source, name string, in folder, depth int) bool {
	t, err := w.openTar(k, s)
	if err != nil {
		return w.refuse(name, err)
	}
	defer t.close()
	for n := 0; ; n++ {
		if depth == 1 {
			w.top = n
		}
		hdr, err := t.next(w.ctx, n)
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			switch {
			case w.ctx.Err() != nil:
				return false
			case t.broken != nil:
				err = t.broken
			case t.breaksOff():
				return true
			case err == io.EOF:
				if err = t.rest(); err == nil || w.ctx.Err() != nil {
					return err == nil
				}
				err = fmt.Errorf("tar: behind its last member: %w (%d members were read, and may not be what was packed; copy the archive again)", err, n)
			default:
				err = fmt.Errorf("tar: stored byte %d: %w (%d members before it were read)", t.count.N, err, n)
			}
			return w.refuse(name, err)
		}
		if n == maxMembers {
			return w.refuse(name, fmt.Errorf("tar: more than %d members", maxMembers))
		}
		if hdr.Typeflag == tar.TypeDir || hdr.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if !w.tarMember(t, hdr, w.member(hdr.Name, name, in, hdr.Typeflag == tar.TypeReg), depth) {
			return false
		}
	}
}

// tarMember emits a member of a tar, or goes through it if it is an archive.
func (w *walker) tarMember(t *openTarball, hdr *tar.Header, it *item, depth int) bool {
	it.stored = hdr.Size
	if depth == 1 {
		it.credit = t.count.N - t.credited
		t.credited = t.count.N
	}
	if it.skip == "" && it.err == nil {
		it.skip, it.err = w.unreadable(hdr)
	}
	if it.skip == "" && it.err == nil {
		it.old = w.known(it)
	}
	if it.skip == "" && it.err == nil && it.old == nil {
		kind, inner := t.data(it, hdr.Size)
		if kind.form != "" {
			if !w.archive(kind, inner, it.name, below(it.prefix), depth+1) {
				return false
			}
			w.progress.credit(it.credit)
			return true
		}
	}
	return w.emit(it)
}

// unreadable tells why a member of a tar is left out; nothing if it is not.
func (w *walker) unreadable(hdr *tar.Header) (skip string, err error) {
	switch {
	case hdr.Typeflag == tar.TypeSymlink || hdr.Typeflag == tar.TypeLink:
		return skipLink, nil
	case sparse(hdr):
		return "", errors.New("tar: the member is sparse, which is not read")
	case hdr.Typeflag != tar.TypeReg:
		return skipSpecial, nil
	case hdr.Size > w.maxSize:
		return "", w.tooBig(hdr.Size)
	}
	return "", nil
}

// data says where the data of the newest member are: for it, or for who goes into it if it is an archive.
func (t *openTarball) data(it *item, size int64) (archiveKind, source) {
	from := t.count.N
	if t.s.file != nil && t.seeks && from+size <= t.s.stored {
		// Of a plain tar on disk a member is a piece of the file.
		f := t.s.file
		it.open = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(f, from, size)), nil }
		head, _ := readHead(io.NewSectionReader(f, from, size))
		kind := sniffArchive(head)
		if kind.form == "" {
			it.packed = kind.packed
			it.closers = append(it.closers, t.h.use())
		}
		return kind, source{open: it.open, stored: size}
	}
	if t.ends = t.read.N + size; t.seeks {
		t.ends = from + size
	}
	if t.s.ahead != nil {
		t.s.ahead.until = t.ends + 1024 // with the next header
	}
	b, head := bufferedHead(t.Reader)
	kind := sniffArchive(head)
	if kind.form == "" {
		it.packed, it.stream = kind.packed, b
	}
	return kind, source{stream: b, stored: size}
}

// member begins the item of a member: with its names, if it is a file, or with why it is
// left out.
func (w *walker) member(member, archive string, in folder, file bool) *item {
	shown := strings.ToValidUTF8(strings.ReplaceAll(member, `\`, "/"), "\uFFFD")
	it := &item{name: archive + "/" + strings.TrimLeft(shown, "/"), version: w.version}
	safe, err := memberName(member)
	switch {
	case err != nil:
		it.name = archive + ": " + shown
		it.err = fmt.Errorf("refused: %w", err)
	case hidden(safe):
		it.skip = skipHidden
	case file:
		out := in.names.take(outputName(safe, w.do, w.format))
		it.out, it.prefix = path.Join(in.prefix, out), path.Join(in.prefix, out)
		if out != safe {
			it.prefix = path.Join(in.prefix, in.names.take(safe))
		}
	}
	return it
}

// hidden reports what tools leave in archives and folders for themselves.
func hidden(rel string) bool {
	for p := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(p, ".") || p == "__MACOSX" {
			return true
		}
	}
	return false
}
