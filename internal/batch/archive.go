package batch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/internal/input"
)

// Limits of archives.
const (
	maxNesting = 3       // archives in archives
	maxMembers = 1 << 20 // of one archive
	maxLayers  = 4       // compressions around one tar
	// headSize is what must be seen to know a tar inside gzip or zstd: one zstd block.
	headSize = 160 << 10
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
		r, closeLayer, err := unwrapLayer(layer, bytes.NewReader(head))
		if err != nil {
			return k
		}
		b := make([]byte, headSize)
		n, _ := io.ReadFull(r, b) // the head ends somewhere: what comes out counts
		closeLayer()
		head = b[:n]
	}
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

func unwrapLayer(layer string, r io.Reader) (io.Reader, func(), error) {
	switch layer {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return z, func() { z.Close() }, nil
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
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

// A source is where an archive's bytes come from: one of the three is set.
type source struct {
	file   *os.File
	open   func() (io.ReadCloser, error)
	stream io.Reader
	stored int64
}

// archive walks the members of an archive. prefix is its place in the tree of inputs;
// name is what reports call it.
func (w *walker) archive(k archiveKind, s source, name, prefix string, depth int) (goOn bool) {
	defer func() { // a decoder that trips over one archive must not stop the others
		if p := recover(); p != nil {
			goOn = w.refuse(name, prefix, fmt.Errorf("internal error: %v; please report it with the archive, if you can share it", p))
		}
	}()
	if depth > maxNesting {
		return w.refuse(name, prefix, fmt.Errorf("archives lie in archives more than %d deep", maxNesting))
	}
	if k.form == "zip" {
		return w.zip(s, name, prefix, depth)
	}
	return w.tar(k, s, name, prefix, depth)
}

// seekable gives s as a file: a copy, if it is none.
func (w *walker) seekable(s source) (*os.File, int64, func(), error) {
	if s.file != nil {
		f, err := os.Open(s.file.Name())
		return f, s.stored, func() { f.Close() }, err
	}
	r := s.stream
	if s.open != nil {
		o, err := s.open()
		if err != nil {
			return nil, 0, nil, err
		}
		defer o.Close()
		r = o
	}
	f, err := os.CreateTemp(w.temp, "archive-*")
	if err != nil {
		return nil, 0, nil, err
	}
	drop := func() { f.Close(); os.Remove(f.Name()) }
	n, err := io.Copy(f, &ctxReader{w.ctx, r})
	if err != nil && !errors.Is(err, input.ErrZipDirectory) {
		drop()
		return nil, 0, nil, err
	}
	return f, n, drop, nil
}

func (w *walker) zip(s source, name, prefix string, depth int) bool {
	f, size, closeFile, err := w.seekable(s)
	if err != nil {
		return w.refuse(name, prefix, err)
	}
	h := newShared(closeFile)
	defer h.done()
	z, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return w.zipCut(io.NewSectionReader(f, 0, size), err, name, prefix, depth)
	}
	z.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor())
	z.RegisterDecompressor(zstd.ZipMethodPKWare, zstd.ZipDecompressor())
	if len(z.File) > maxMembers {
		return w.refuse(name, prefix, fmt.Errorf("zip: %d members; at most %d are taken", len(z.File), maxMembers))
	}
	overlaps, broken := zipLayout(z)
	for _, e := range z.File {
		if e.FileInfo().IsDir() {
			continue
		}
		it := w.member(e.Name, name, prefix)
		it.stored, it.packed = int64(e.UncompressedSize64), false
		it.credit = int64(e.CompressedSize64)
		switch {
		case it.skip != "" || it.err != nil:
		case e.Mode()&os.ModeSymlink != 0:
			it.skip = skipLink
		case !e.Mode().IsRegular():
			it.skip = skipSpecial
		case e.Flags&1 != 0:
			it.err = fmt.Errorf("zip: %w", input.ErrEncrypted)
		case overlaps[e]:
			it.err = errors.New("zip: the member shares its bytes with another one; it looks like a decompression bomb")
		case broken[e] != nil:
			it.err = fmt.Errorf("zip: %w", broken[e])
		case int64(e.CompressedSize64) < 0 || int64(e.CompressedSize64) > size:
			it.err = fmt.Errorf("zip: the member claims %d bytes in an archive of %d", e.CompressedSize64, size)
		case int64(e.UncompressedSize64) < 0 || e.UncompressedSize64 > memberAfter && e.UncompressedSize64/archiveRatio > max(e.CompressedSize64, 1):
			it.err = fmt.Errorf("zip: the member claims to unpack from %d to %d bytes; it looks like a decompression bomb", e.CompressedSize64, e.UncompressedSize64)
		case int64(e.UncompressedSize64) > w.maxSize:
			it.err = w.tooBig(int64(e.UncompressedSize64))
		}
		if it.err != nil || it.skip != "" {
			if !w.emit(it) {
				return false
			}
			continue
		}
		head, err := zipHead(e)
		if err != nil && len(head) == 0 && e.UncompressedSize64 > 0 {
			it.err = fmt.Errorf("zip: %w", err)
			if !w.emit(it) {
				return false
			}
			continue
		}
		k := sniffArchive(head)
		open := func() (io.ReadCloser, error) { return e.Open() }
		if k.form != "" {
			if !w.archive(k, source{open: open, stored: int64(e.CompressedSize64)}, it.name, it.rel, depth+1) {
				return false
			}
			w.progress.credit(it.credit)
			continue
		}
		it.packed = k.packed
		it.open = open
		it.closers = append(it.closers, h.use())
		if !w.emit(it) {
			return false
		}
	}
	return true
}

// zipCut walks the members of a zip whose directory cannot be read for why.
func (w *walker) zipCut(f io.Reader, why error, name, prefix string, depth int) bool {
	count := &counter{r: f}
	z := input.NewZipSalvage(&ctxReader{w.ctx, count})
	r := &ratioReader{r: z, stored: func() int64 { return count.n }}
	told := false // that the zip is broken: by an item
	for n := 0; ; n++ {
		err := z.Next()
		unreadable := errors.Is(err, input.ErrEncrypted) || errors.Is(err, zip.ErrAlgorithm)
		if err != nil && !unreadable {
			if w.ctx.Err() != nil {
				return false
			}
			if told {
				return true
			}
			return w.refuse(name, prefix, fmt.Errorf("zip: %w (the directory at its end is missing or broken, and no member could be read without it)", why))
		}
		if n == maxMembers {
			return w.refuse(name, prefix, fmt.Errorf("zip: more than %d members", maxMembers))
		}
		if strings.HasSuffix(z.Name, "/") {
			continue
		}
		it := w.member(z.Name, name, prefix)
		if unreadable && it.skip == "" && it.err == nil {
			it.err = err
		}
		if it.skip == "" && it.err == nil {
			b, head := bufferedHead(r)
			k := sniffArchive(head)
			if k.form != "" {
				if !w.archive(k, source{stream: b}, it.name, it.rel, depth+1) {
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

func zipHead(e *zip.File) ([]byte, error) {
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readHead(r)
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
	b = append(b, make([]byte, headSize-len(b))...)
	m, err := io.ReadFull(r, b[n:])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:n+m], err
}

// zipLayout finds members that share bytes, which is how small zips unpack to
// petabytes, and members whose own header cannot be found.
func zipLayout(z *zip.Reader) (overlaps map[*zip.File]bool, broken map[*zip.File]error) {
	type span struct {
		from, to int64
		e        *zip.File
	}
	broken = map[*zip.File]error{}
	var spans []span
	for _, e := range z.File {
		from, err := e.DataOffset()
		if err != nil {
			broken[e] = err
			continue
		}
		if e.CompressedSize64 > 0 {
			spans = append(spans, span{from, from + int64(e.CompressedSize64), e})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	overlaps = map[*zip.File]bool{}
	var last span
	for i, s := range spans {
		if i > 0 && s.from < last.to {
			overlaps[s.e], overlaps[last.e] = true, true
		}
		if i == 0 || s.to > last.to {
			last = s
		}
	}
	return overlaps, broken
}

func (w *walker) tar(k archiveKind, s source, name, prefix string, depth int) bool {
	var h *shared
	var in io.Reader
	var count *counter // of stored bytes
	sections := false
	switch {
	case s.file != nil:
		f, err := os.Open(s.file.Name())
		if err != nil {
			return w.refuse(name, prefix, err)
		}
		h = newShared(func() { f.Close() })
		if len(k.layers) == 0 {
			c := &seekCounter{counter{r: f}}
			in, count, sections = c, &c.counter, true
			s.file = f
		} else {
			count = &counter{r: f}
			in = count
		}
	case s.open != nil:
		r, err := s.open()
		if err != nil {
			return w.refuse(name, prefix, err)
		}
		h = newShared(func() { r.Close() })
		count = &counter{r: r}
		in = count
	default:
		h = newShared(func() {})
		count = &counter{r: s.stream}
		in = count
	}
	defer h.done()
	if !sections {
		in = bufio.NewReaderSize(&ctxReader{w.ctx, in}, 64<<10)
	}
	for _, l := range k.layers {
		r, closeLayer, err := unwrapLayer(l, in)
		if err != nil {
			return w.refuse(name, prefix, err)
		}
		defer closeLayer()
		in = &ratioReader{r: r, stored: func() int64 { return count.n }}
	}
	read := &counter{r: in} // unpacked bytes; tar.Reader takes no more than it needs
	if !sections {
		in = read
	}
	t := tar.NewReader(in)
	credited := int64(0)
	ends := int64(0) // where the data of the last member do that was handed on as it comes
	for n := 0; ; n++ {
		hdr, err := t.Next()
		if err == io.EOF {
			return true
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			if w.ctx.Err() != nil {
				return false
			}
			if sections && ends > s.stored || !sections && ends > read.n {
				return true // it breaks off inside that member, which tells so itself
			}
			return w.refuse(name, prefix, fmt.Errorf("tar: stored byte %d: %w (%d members before it were read)", count.n, err, n))
		}
		if n == maxMembers {
			return w.refuse(name, prefix, fmt.Errorf("tar: more than %d members", maxMembers))
		}
		if hdr.Typeflag == tar.TypeDir || hdr.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		it := w.member(hdr.Name, name, prefix)
		it.stored = hdr.Size
		if depth == 1 {
			it.credit = count.n - credited
			credited = count.n
		}
		sparse := hdr.Typeflag == tar.TypeGNUSparse
		for key := range hdr.PAXRecords {
			sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
		}
		switch {
		case it.skip != "" || it.err != nil:
		case hdr.Typeflag == tar.TypeSymlink || hdr.Typeflag == tar.TypeLink:
			it.skip = skipLink
		case sparse:
			it.err = errors.New("tar: the member is sparse, which is not read")
		case hdr.Typeflag != tar.TypeReg:
			it.skip = skipSpecial
		case hdr.Size > w.maxSize:
			it.err = w.tooBig(hdr.Size)
		}
		if it.err != nil || it.skip != "" {
			if !w.emit(it) {
				return false
			}
			continue
		}
		if from := count.n; sections && from+hdr.Size <= s.stored {
			// Of a plain tar on disk a member is a piece of the file.
			f := s.file
			it.open = func() (io.ReadCloser, error) {
				return io.NopCloser(io.NewSectionReader(f, from, hdr.Size)), nil
			}
			head, _ := readHead(io.NewSectionReader(f, from, hdr.Size))
			kind := sniffArchive(head)
			if kind.form != "" {
				if !w.archive(kind, source{open: it.open, stored: hdr.Size}, it.name, it.rel, depth+1) {
					return false
				}
				w.progress.credit(it.credit)
				continue
			}
			it.packed = kind.packed
			it.closers = append(it.closers, h.use())
		} else {
			if ends = read.n + hdr.Size; sections {
				ends = from + hdr.Size
			}
			b, head := bufferedHead(t)
			kind := sniffArchive(head)
			if kind.form != "" {
				if !w.archive(kind, source{stream: b, stored: hdr.Size}, it.name, it.rel, depth+1) {
					return false
				}
				w.progress.credit(it.credit)
				continue
			}
			it.packed = kind.packed
			it.stream = b
		}
		if !w.emit(it) {
			return false
		}
	}
}

// member begins the item of a member: with its names, or with why it is left out.
func (w *walker) member(member, archive, prefix string) *item {
	shown := strings.ToValidUTF8(strings.ReplaceAll(member, `\`, "/"), "\uFFFD")
	it := &item{name: archive + "/" + strings.TrimLeft(shown, "/")}
	safe, err := memberName(member)
	if err != nil {
		it.name = archive + ": " + shown
		it.err = fmt.Errorf("refused: %w", err)
		it.rel = prefix
		return it
	}
	it.rel = path.Join(prefix, safe)
	if hidden(safe) {
		it.skip = skipHidden
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
