package input

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"io"
)

// A bzip2Salvage reads bzip2. Its blocks do not look into each other: from the first that cannot be
// unpacked on, all is read once more block by block, and what of a broken one comes out counts.
type bzip2Salvage struct {
	open   func() (io.ReadCloser, error) // the data from its start
	r      io.Reader
	blocks *bzip2Blocks
	out    int64 // bytes handed out
	err    error // the first one
}

func newBzip2(r io.Reader, open func() (io.ReadCloser, error)) *bzip2Salvage {
	return &bzip2Salvage{open: open, r: bzip2.NewReader(bufio.NewReaderSize(r, 64<<10))}
}

func (z *bzip2Salvage) Read(p []byte) (int, error) {
	for {
		n, err := z.r.Read(p)
		z.out += int64(n)
		switch {
		case n > 0 || err == nil:
			return n, nil
		case z.err == nil && err == io.EOF || !Broken(err):
			return 0, err
		case z.err == nil: // from the start, behind what was handed out
			z.err = err
			in, err := z.open()
			if err != nil {
				return 0, z.err
			}
			z.blocks = &bzip2Blocks{in: bufio.NewReaderSize(in, 64<<10), closer: in}
			z.r = z.blocks
			if n, err := io.CopyN(io.Discard, z.r, z.out); err != nil && n < z.out {
				return 0, z.err
			}
		default:
			return 0, z.err
		}
	}
}

func (z *bzip2Salvage) Close() error {
	if z.blocks == nil {
		return nil
	}
	return z.blocks.closer.Close()
}

// bzip2Blocks unpacks the blocks of bzip2, whatever stands between them.
type bzip2Blocks struct {
	in     *bufio.Reader
	closer io.Closer
	octet  byte // of which some bits are not read yet
	unread int
	last   uint64     // the newest bits
	block  *bzip2Bits // that is being collected; nil before its mark
	r      io.Reader
}

const (
	bzip2Block = 0x314159265359 // before a block, at any bit
	bzip2End   = 0x177245385090 // behind the last one
	bzip2Mark  = 48             // bits of each
	bzip2Max   = 2 << 20        // more bytes than a block of 900,000 can take
)

func (z *bzip2Blocks) Read(p []byte) (int, error) {
	for {
		if z.r != nil {
			if n, err := z.r.Read(p); n > 0 || err == nil {
				return n, nil
			}
			z.r = nil // its end, or as far as it goes
		}
		block, err := z.next()
		if err != nil {
			return 0, err
		}
		z.r = bzip2.NewReader(bytes.NewReader(block))
	}
}

// next returns the next block as a file of its own.
func (z *bzip2Blocks) next() ([]byte, error) {
	for {
		if z.unread == 0 {
			var err error
			if z.octet, err = z.in.ReadByte(); err != nil {
				if block := z.block; block != nil {
					z.block = nil
					return block.file(0), nil
				}
				return nil, err
			}
			z.unread = 8
		}
		z.unread--
		bit := uint64(z.octet >> z.unread & 1)
		z.last = z.last<<1 | bit
		if z.block != nil {
			z.block.put(bit, 1)
		}
		block, mark := z.block, z.last&(1<<bzip2Mark-1)
		switch {
		case mark == bzip2Block:
			z.block = newBits()
		case mark == bzip2End || block != nil && len(block.b) > bzip2Max:
			z.block = nil
		default:
			continue
		}
		if block != nil {
			return block.file(bzip2Mark), nil
		}
	}
}

// bzip2Bits are those of a block, behind the head of a file.
type bzip2Bits struct {
	b []byte
	n int
}

func newBits() *bzip2Bits {
	w := &bzip2Bits{b: []byte("BZh9"), n: 32}
	w.put(bzip2Block, bzip2Mark)
	return w
}

func (w *bzip2Bits) put(v uint64, n int) {
	for n--; n >= 0; n-- {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>n&1) << (7 - w.n%8)
		w.n++
	}
}

// file ends the file, without the last bits. Its sum is that of its one block, which stands behind the mark.
func (w *bzip2Bits) file(without int) []byte {
	const sum = (32 + bzip2Mark) / 8
	w.n -= without
	if w.n < 8*(sum+4) {
		return w.b
	}
	w.b = w.b[:(w.n+7)/8]
	if k := w.n % 8; k > 0 {
		w.b[len(w.b)-1] &= 0xff << (8 - k)
	}
	w.put(bzip2End, bzip2Mark)
	w.put(uint64(binary.BigEndian.Uint32(w.b[sum:])), 32)
	return w.b
}
