package input

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/internal/bitfix"
	"github.com/tracefix/tracefix/nettrace"
)

// A flippedBit is one that was found to be the other way in what is stored.
type flippedBit struct {
	at  int64 // byte
	bit uint8
}

// mend goes through compressed content once. Where one flipped bit explains why it cannot be unpacked,
// readers get it put back, and are told at the end. It reports whether it found one.
func (f *File) mend() bool {
	if len(f.Layers) != 1 || f.open != nil || f.Stored > bitfix.MaxPacked || f.zipCut {
		return false
	}
	if err := f.unpackAll(); err == nil || !Broken(err) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false // whole, or cut
	}
	stored, err := os.ReadFile(f.path)
	if err != nil {
		return false
	}
	near := f.firstDefect()
	if f.Layers[0] == "zstd" {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(bitfix.MaxUnpacked))
		if err != nil {
			return false
		}
		defer z.Close()
		var out []byte
		bit, ok := bitfix.Zstd(stored, near, func() bool {
			b, err := z.DecodeAll(stored, out[:0])
			out = b[:0]
			return err == nil
		})
		return f.put(bit, ok)
	}
	p, ok := f.packed(stored)
	if !ok {
		return false
	}
	bit, ok := bitfix.Deflate(p.data, p.size, near, p.sum, func() bool {
		sum := crc32.NewIEEE()
		n, err := io.Copy(sum, io.LimitReader(flate.NewReader(bytes.NewReader(p.data)), p.size+1))
		return err == nil && n == p.size && sum.Sum32() == p.sum
	})
	return f.put(p.at*8+bit, ok)
}

// put notes the flipped bit, if one was found.
func (f *File) put(bit int64, ok bool) bool {
	if ok {
		f.flipped = &flippedBit{bit >> 3, uint8(bit & 7)}
	}
	return ok
}

// unpackAll unpacks the content to see whether that can be done.
func (f *File) unpackAll() error {
	r, err := f.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// packed is compressed data within a file.
type packed struct {
	data []byte
	at   int64 // offset in the file
	size int64 // unpacked
	sum  uint32
}

// packed finds the compressed data in what is stored.
func (f *File) packed(stored []byte) (packed, bool) {
	switch f.Layers[0] {
	case "gzip":
		r := bytes.NewReader(stored)
		if _, err := gzip.NewReader(r); err != nil || len(stored) < 26 { // it reads no byte behind the header
			return packed{}, false
		}
		end := len(stored) - 8
		begin := len(stored) - r.Len()
		if begin > end {
			return packed{}, false
		}
		le := binary.LittleEndian
		return packed{stored[begin:end], int64(begin), int64(le.Uint32(stored[end+4:])), le.Uint32(stored[end:])}, true
	case "bzip2":
		return packed{}, false
	}
	z, err := zip.NewReader(bytes.NewReader(stored), int64(len(stored)))
	if err != nil {
		return packed{}, false
	}
	for _, e := range z.File {
		if "zip:"+e.Name != f.Layers[0] || e.Method != zip.Deflate {
			continue
		}
		at, err := e.DataOffset()
		if end := at + int64(e.CompressedSize64); err == nil && at <= end && end <= int64(len(stored)) {
			return packed{stored[at:end], at, int64(e.UncompressedSize64), e.CRC32}, true
		}
	}
	return packed{}, false
}

// firstDefect is where the trace shows first that its content is not what was recorded; -1 if it does not.
func (f *File) firstDefect() int64 {
	if !f.Kind.IsRecording() {
		return -1
	}
	in, err := f.Reader()
	if err != nil {
		return -1
	}
	defer in.Close()
	at := int64(-1)
	r, err := nettrace.NewReader(in, &nettrace.Options{Warn: func(e *nettrace.FormatError) {
		if at < 0 {
			at = e.Offset
		}
	}})
	if err != nil {
		return 0
	}
	var ev nettrace.Event
	for err == nil && at < 0 {
		err = r.Read(&ev)
	}
	return at
}

// ErrFlipped reports a bit that was found to be the other way, and was read as if it were not.
var ErrFlipped = errors.New("a bit was flipped, which its checksum tells")

func (b *flippedBit) err(layer string) error {
	return fmt.Errorf("%s: bit %d of the byte at offset %d: %w; it was put back, nothing is lost", layer, b.bit, b.at, ErrFlipped)
}

// A mended reader gives what is stored with the flipped bit put back.
type mended struct {
	r   io.Reader
	pos int64
	bit *flippedBit
}

func (m *mended) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.bit.put(p[:n], m.pos)
	m.pos += int64(n)
	return n, err
}

// put puts the bit back in bytes from an offset on.
func (b *flippedBit) put(p []byte, off int64) {
	if b != nil && b.at >= off && b.at < off+int64(len(p)) {
		p[b.at-off] ^= 1 << b.bit
	}
}
