package input

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// ErrEncrypted reports a zip member that can be read with a password only.
var ErrEncrypted = errors.New("the member is encrypted; unpack it with its password first")

// ErrZipDirectory reports a zip that was read without the directory at its end, which a
// zip that was cut has lost.
var ErrZipDirectory = fmt.Errorf("the zip's directory is missing or broken, so that more may be lost after this member: %w", io.ErrUnexpectedEOF)

// OpenMember opens a member of a zip of so many bytes, of which what can be unpacked is given, the
// error behind it: zip.File.Open gives nothing behind what is broken.
func OpenMember(e *zip.File, stored int64) (io.ReadCloser, error) {
	r, err := openMember(e)
	if err != nil {
		return nil, err
	}
	return &toldMember{r, stored}, nil
}

// toldMember makes the errors of a member UnpackErrors.
type toldMember struct {
	*zipMember
	stored int64
}

func (m *toldMember) Read(p []byte) (int, error) {
	n, err := m.zipMember.Read(p)
	if where := (*placed)(nil); errors.As(err, &where) && Broken(err) {
		err = &UnpackError{Layer: "zip", Stored: m.stored, At: where.at, Err: where.error}
	}
	return n, err
}

// A zipMember is the content of a member of a zip. Its errors are placed within the zip.
type zipMember struct {
	e   *zip.File
	r   salvaged
	out uint64
	sum hash.Hash32
}

// salvaged is what unpacks with the error that it met first, if any.
type salvaged interface {
	io.ReadCloser
	first() error
}

func openMember(e *zip.File) (*zipMember, error) {
	open := func() (io.ReadCloser, error) {
		raw, err := e.OpenRaw()
		if err != nil {
			return nil, err
		}
		return io.NopCloser(raw), nil
	}
	raw, err := open()
	if err != nil {
		return nil, err
	}
	m := &zipMember{e: e, sum: crc32.NewIEEE()}
	switch e.Method {
	case zip.Store:
		m.r = asStored{raw}
	case zip.Deflate:
		d := newInflate(raw)
		d.size = int64(min(e.UncompressedSize64, 1<<62))
		m.r = d
	case zstd.ZipMethodWinZip, zstd.ZipMethodPKWare:
		if m.r, err = newZstd(raw, open); err != nil {
			return nil, err
		}
	default:
		return nil, methodError(e.Method)
	}
	return m, nil
}

// A methodError is the error of a member that is compressed in a way that is not read.
type methodError uint16

func (m methodError) Error() string {
	if uint16(m) == zip.Store { // only where a header leaves it to what stands behind the data
		return "its size is not known without the zip's directory; copy the archive again"
	}
	return fmt.Sprintf("compression method %d is not read; unpack it with another program first", uint16(m))
}

// Unwrap returns what package zip calls it.
func (methodError) Unwrap() error { return zip.ErrAlgorithm }

// asStored is a member that is not compressed.
type asStored struct{ io.ReadCloser }

func (asStored) first() error { return nil }

// errEndsEarly reports compressed data of which there are fewer than there should be.
var errEndsEarly = errors.New("the data end early")

// salvageRoom is how much longer than it was what is unpacked around damage may become.
const salvageRoom = 1 << 20

func (m *zipMember) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.sum.Write(p[:n])
	m.out += uint64(n)
	size := m.e.UncompressedSize64
	whole := m.r.first() == nil
	switch {
	case m.out > size && (whole || m.out-size > salvageRoom):
		err = zip.ErrFormat
	case err == io.EOF && whole && m.out < size:
		err = errEndsEarly
	case err == io.EOF && whole && m.e.CRC32 != 0 && m.sum.Sum32() != m.e.CRC32:
		err = zip.ErrChecksum
	}
	return n, m.place(err)
}

// place says where in the zip an error was met.
func (m *zipMember) place(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	at := &placed{int64(min(m.e.CompressedSize64, 1<<62)), int64(m.out), err}
	if where := (*placed)(nil); errors.As(err, &where) {
		at = &placed{where.at, where.out, where.error}
	}
	if begin, err := m.e.DataOffset(); err == nil { // asked for only now: of a bucket it is a request
		at.at += begin
	}
	if at.error == io.ErrUnexpectedEOF {
		at.error = errEndsEarly
	}
	return at
}

// Close ends the reading.
func (m *zipMember) Close() error { return m.r.Close() }

// noMember reports what zips hold beside their files.
func noMember(name string) bool {
	return strings.HasSuffix(name, "/") || strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(name, "__MACOSX/")
}

// A ZipSalvage reads the members of a zip in the order in which they stand there, without
// its directory. It is for zips that were cut: where there is a directory it tells more.
type ZipSalvage struct {
	// Name is that of the current member.
	Name string

	r      *bufio.Reader
	data   io.Reader // of the current member, unpacked; nil before the first
	packed io.Reader // of the current member
	end    bool      // behind the data stands what the header did not know
}

// NewZipSalvage returns a reader of the zip that r gives from its start.
func NewZipSalvage(r io.Reader) *ZipSalvage {
	return &ZipSalvage{r: bufio.NewReaderSize(r, probeInput)}
}

// Signatures of what a zip is made of.
const (
	zipFile      = "PK\x03\x04"
	zipDirectory = "PK\x01\x02"
	zipEnd       = "PK\x05\x06"
)

// Next goes to the next member. It returns io.EOF where the members end, and an error
// where they break off; one that wraps ErrEncrypted or zip.ErrAlgorithm says that this
// member cannot be read.
func (z *ZipSalvage) Next() error {
	if z.data != nil {
		if _, err := io.Copy(io.Discard, z.data); err != nil {
			return err
		}
		z.data = nil
		if z.end {
			z.skipSizes()
		} else if _, err := io.Copy(io.Discard, z.packed); err != nil {
			return err
		}
	}
	var h [30]byte
	if sig, err := z.r.Peek(4); err != nil {
		return noEOF(err)
	} else if s := string(sig); s == zipDirectory || s == zipEnd {
		return io.EOF
	} else if s != zipFile {
		return fmt.Errorf("zip: expected the next member, found %q", sig)
	}
	if _, err := io.ReadFull(z.r, h[:]); err != nil {
		return noEOF(err)
	}
	le := binary.LittleEndian
	flags, method := le.Uint16(h[6:]), le.Uint16(h[8:])
	size := uint64(le.Uint32(h[18:]))
	rest := make([]byte, int(le.Uint16(h[26:]))+int(le.Uint16(h[28:])))
	if _, err := io.ReadFull(z.r, rest); err != nil {
		return noEOF(err)
	}
	z.Name = string(rest[:le.Uint16(h[26:])])
	if size == 1<<32-1 {
		size = zip64Size(rest[le.Uint16(h[26:]):])
	}
	z.end = flags&8 != 0
	z.packed = z.r
	if !z.end {
		z.packed = io.LimitReader(z.r, int64(min(size, 1<<62)))
	}
	switch {
	case flags&1 != 0:
		z.data = z.packed
		return fmt.Errorf("zip: %q: %w", z.Name, ErrEncrypted)
	case method == zip.Deflate:
		if z.end {
			z.data = inflate(z.r) // reads no byte behind its end
		} else {
			z.data = newInflate(z.packed)
		}
	case method == zip.Store && !z.end:
		z.data = &exactly{z.packed, int64(min(size, 1<<62))}
	default:
		z.data = z.packed
		return fmt.Errorf("zip: %q: %w", z.Name, methodError(method))
	}
	return nil
}

// Read reads the member, and ends with ErrZipDirectory.
func (z *ZipSalvage) Read(p []byte) (int, error) {
	n, err := z.data.Read(p)
	if err == io.EOF {
		err = ErrZipDirectory
	}
	return n, err
}

// skipSizes goes over the sizes behind the data, which have one of four lengths.
func (z *ZipSalvage) skipSizes() {
	b, _ := z.r.Peek(24 + 4)
	for i := 12; i+4 <= len(b); i += 4 {
		switch string(b[i : i+4]) {
		case zipFile, zipDirectory, zipEnd:
			z.r.Discard(i)
			return
		}
	}
}

// zip64Size finds the size of the packed data among a header's extra fields.
func zip64Size(extra []byte) uint64 {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if extra = extra[4:]; n > len(extra) {
			break
		}
		if id == 1 && n >= 16 {
			return le.Uint64(extra[8:])
		}
		extra = extra[n:]
	}
	return 1 << 62
}

// exactly is a reader to whose end n bytes belong.
type exactly struct {
	r io.Reader
	n int64
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if e.n -= int64(n); err == io.EOF && e.n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// zipHeads are what may have stood where the header of a zip's one member is broken: the directory
// at the end tells where the data end, how long they are and the member's name. Behind the data a
// record of sizes may stand, of one of four lengths.
func zipHeads(r io.ReaderAt, size int64, head []byte) (may []patch) {
	z, err := zip.NewReader(r, size)
	if err != nil || len(z.File) != 1 || len(head) < 30 {
		return nil
	}
	tail := make([]byte, min(size, int64(22+len(z.Comment))))
	if n, err := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) || len(tail) < 22 {
		return nil
	} else if err != nil && err != io.EOF {
		return nil
	}
	le, e := binary.LittleEndian, z.File[0]
	end := int64(le.Uint32(tail[16:]))
	records := []int64{0}
	if e.Flags&8 != 0 {
		records = []int64{16, 12, 24, 20}
	}
	for _, n := range records {
		extra := end - n - int64(e.CompressedSize64) - 30 - int64(len(e.Name))
		if extra < 0 || extra > 1<<16-1 {
			continue
		}
		was := bytes.Clone(head[:30])
		copy(was, zipFile)
		le.PutUint16(was[26:], uint16(len(e.Name)))
		le.PutUint16(was[28:], uint16(extra))
		for i := range was {
			was[i] ^= head[i]
		}
		may = append(may, patch{xor: was})
	}
	return may
}
