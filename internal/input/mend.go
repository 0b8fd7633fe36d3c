package input

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/internal/input/bitfix"
	"github.com/tracefix/tracefix/nettrace"
)

// A flippedBit is one that was found to be the other way in what is stored.
type flippedBit struct {
	at  int64 // byte
	bit uint8
}

// Mend looks for the one flipped bit of compressed content that a reader found broken: where
// that explains it, readers get it put back from now on, and are told at the end. It reports
// whether what was read before is to be read again. It takes seconds, and is done once for a file.
func (f *File) Mend(ctx context.Context) bool {
	if !f.broken.Swap(false) || !f.Mendable() {
		return false
	}
	f.searched = true
	f.flipped = f.search(ctx)
	f.read.Store(0)
	return f.flipped != nil
}

// Mendable reports whether Mend would look for a flipped bit.
func (f *File) Mendable() bool {
	return !f.searched && len(f.Layers) == 1 && f.Stored <= bitfix.MaxPacked && !f.zipCut
}

// search looks for the flipped bit; nil: none was found.
func (f *File) search(ctx context.Context) *flippedBit {
	stored, err := f.stored()
	if err != nil {
		return nil
	}
	near := f.firstDefect(ctx)
	if f.Layers[0] == "zstd" {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(bitfix.MaxUnpacked))
		if err != nil {
			return nil
		}
		defer z.Close()
		var out []byte
		return flippedAt(bitfix.Zstd(ctx, stored, near, func() bool {
			b, err := z.DecodeAll(stored, out[:0])
			out = b[:0]
			return err == nil
		}))
	}
	p, ok := f.packed(stored)
	if !ok {
		return nil
	}
	bit, ok := bitfix.Deflate(ctx, p.data, p.size, near, p.sum, func() bool {
		sum := crc32.NewIEEE()
		n, err := io.Copy(sum, io.LimitReader(flate.NewReader(bytes.NewReader(p.data)), p.size+1))
		return err == nil && n == p.size && sum.Sum32() == p.sum
	})
	return flippedAt(p.at*8+bit, ok)
}

// flippedAt is the flipped bit of that number, if one was found.
func flippedAt(bit int64, ok bool) *flippedBit {
	if !ok {
		return nil
	}
	return &flippedBit{bit >> 3, uint8(bit & 7)}
}

// stored returns what is stored, before unpacking.
func (f *File) stored() ([]byte, error) {
	r, err := f.below(0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// unpackAll unpacks the content, for what that says of it.
func (f *File) unpackAll() {
	if r, err := f.Reader(); err == nil {
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
	}
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
func (f *File) firstDefect(ctx context.Context) int64 {
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
	for err == nil && at < 0 && ctx.Err() == nil {
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
