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
	"math/bits"
	"os"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/internal/input/bitfix"
	"github.com/tracefix/tracefix/nettrace"
)

// A patch makes stored bytes what was written.
type patch struct {
	at   int64
	xor  []byte // of one flipped bit one byte with it
	head bool   // found by how files begin, and not by a checksum
}

func flipped(at int64, bit uint8) patch { return patch{at: at, xor: []byte{1 << bit}} }

// Mend looks for the one flipped bit of compressed content that a reader found broken: where
// that explains it, readers get it put back from now on, and are told at the end. It reports
// whether what was read before is to be read again. It takes seconds, and is done once for a file.
func (f *File) Mend(ctx context.Context) bool {
	if !f.broken.Swap(false) || !f.Mendable() {
		return false
	}
	f.searched = true
	f.patch = f.search(ctx)
	f.read.Store(0)
	return f.patch != nil
}

// Mendable reports whether Mend would look for a flipped bit.
func (f *File) Mendable() bool {
	return !f.searched && f.patch == nil && len(f.Layers) == 1 && f.Stored <= bitfix.MaxPacked && !f.zipCut
}

// search looks for the flipped bit; nil: none was found.
func (f *File) search(ctx context.Context) *patch {
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
func flippedAt(bit int64, ok bool) *patch {
	if !ok {
		return nil
	}
	p := flipped(bit>>3, uint8(bit&7))
	return &p
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
var ErrFlipped = errors.New("a bit was flipped")

// err tells what was put back in a file.
func (p *patch) err(f *File) error {
	layer := "the file's beginning"
	if len(f.Layers) > 0 {
		layer = f.Layers[0]
	}
	if len(p.xor) > 1 {
		return fmt.Errorf("%s: the header at offset %d is broken; its directory tells what it was, nothing is lost", layer, p.at)
	}
	how := "which its checksum tells"
	if p.head {
		how = "without it this is no such file"
	}
	return fmt.Errorf("%s: bit %d of the byte at offset %d: %w, %s; it was put back, nothing is lost", layer, bits.TrailingZeros8(p.xor[0]), p.at, ErrFlipped, how)
}

const headBytes = 32 // as long as what mendHead looks at: the header of a zip has 30

// magics are how what is read here begins.
var magics = []string{gzipMagic + "\b", zstdMagic, bzip2Magic, zipFile, nettraceMagic, netperfMagic}

// mendHead looks for what stood at the beginning of a file as which nothing begins: it tries each
// bit by which that is not a known beginning, and the header that a zip's directory tells of. Of
// packed data that are broken it tries the bits behind the magic as well. It sniffs again, and
// reports whether that helped.
func (f *File) mendHead(broken bool) bool {
	if f.open != nil {
		return false
	}
	stored, err := os.Open(f.path)
	if err != nil {
		return false
	}
	defer stored.Close()
	head := make([]byte, headBytes)
	n, _ := io.ReadFull(stored, head) // of a shorter file all
	head = head[:n]
	var may []patch
	for _, m := range magics {
		if p, ok := oneBitOff(head, m); ok {
			may = append(may, p)
		}
	}
	from, to := 0, 0 // bytes behind the magic, of which no checksum tells before they are needed
	switch {
	case !broken:
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		from, to = 3, 4 // flags
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		from, to = 4, 18 // the header of the frame
	}
	for at := from; at < min(to, n); at++ {
		for bit := range uint8(8) {
			may = append(may, flipped(int64(at), bit))
		}
	}
	may = append(may, zipHeads(stored, f.Stored, head)...)
	layers := f.Layers
	f.trial = 4 * SniffSize // a reader of broken data goes through all of them, for each bit anew
	defer func() { f.trial = 0 }()
	for i := range may {
		may[i].head = true
		f.patch, f.Layers = &may[i], nil
		if f.sniff() == nil && f.Kind != Unknown {
			return true
		}
	}
	f.patch, f.Layers, f.Kind = nil, layers, Unknown
	return false
}

// oneBitOff returns the bit in which head is not what magic is, if it is one.
func oneBitOff(head []byte, magic string) (p patch, ok bool) {
	if len(head) < len(magic) {
		return p, false
	}
	off := 0
	for i := range magic {
		x := head[i] ^ magic[i]
		if off += bits.OnesCount8(x); x != 0 {
			p = patch{at: int64(i), xor: []byte{x}}
		}
	}
	return p, off == 1
}

// A mended reader gives what is stored with a patch.
type mended struct {
	r     io.Reader
	pos   int64
	patch *patch
}

func (m *mended) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.patch.put(p[:n], m.pos)
	m.pos += int64(n)
	return n, err
}

// put puts the patch onto bytes from an offset on.
func (p *patch) put(b []byte, off int64) {
	if p == nil {
		return
	}
	for i := max(p.at, off); i < min(p.at+int64(len(p.xor)), off+int64(len(b))); i++ {
		b[i-off] ^= p.xor[i-p.at]
	}
}
