package input

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Salvage of compressed content. A codec gives up at the first thing that cannot be; what
// stands behind it is often whole. Both kinds read on at the next block, with what
// was unpacked before as the window that its matches look back into. What they get wrong by that
// is for the reader of the trace to find, which is told that the content is broken at the end.

const (
	window      = 32 << 10 // of deflate
	probeOutput = 8 << 10  // what a place must unpack to in order to be one
	probeInput  = 256 << 10
	maxResumes  = 64
)

// A placed error is the first one of what unpacks, with where that was.
type placed struct {
	at  int64 // stored bytes of the layer before it
	out int64 // unpacked ones
	error
}

// Unwrap returns the cause.
func (p *placed) Unwrap() error { return p.error }

// Counting counts what is read from R.
type Counting struct {
	R io.Reader
	N int64 // bytes read
}

// Read implements io.Reader.
func (c *Counting) Read(p []byte) (int, error) {
	n, err := c.R.Read(p)
	c.N += int64(n)
	return n, err
}

// counted buffers r, and tells how many of its bytes were taken from that.
func counted(r io.Reader) (*bufio.Reader, func() int64) {
	c := &Counting{R: r}
	in := bufio.NewReaderSize(c, probeInput)
	return in, func() int64 { return c.N - int64(in.Buffered()) }
}

// A deflateSalvage reads deflate data, across places that cannot be unpacked.
type deflateSalvage struct {
	in      *bufio.Reader
	r       io.Reader // what unpacks now
	next    func() (io.Reader, error)
	taken   func() int64 // from the start of in; nil: not known
	out     int64
	size    int64  // that the output should have; 0: not known
	last    []byte // of the output
	err     error  // the first one
	resumes int
	members bool // others may follow
}

// newGzip unpacks gzip.
func newGzip(r io.Reader) (io.Reader, error) {
	in, taken := counted(r)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return &deflateSalvage{in: in, r: z, taken: taken, members: true, next: func() (io.Reader, error) {
		// Behind a member that was entered in the middle stand its sum and length, and another
		// member perhaps.
		if _, err := in.Discard(8); err != nil {
			return nil, err
		}
		return gzip.NewReader(in)
	}}, nil
}

// newInflate unpacks bare deflate data, as in a zip.
func newInflate(r io.Reader) *deflateSalvage {
	in, taken := counted(r)
	d := inflate(in)
	d.taken = taken
	return d
}

func (d *deflateSalvage) first() error { return d.err }

// Close implements io.Closer; there is nothing to close.
func (d *deflateSalvage) Close() error { return nil }

func inflate(in *bufio.Reader) *deflateSalvage {
	return &deflateSalvage{in: in, r: flate.NewReader(in), next: func() (io.Reader, error) { return nil, io.EOF }}
}

func (d *deflateSalvage) Read(p []byte) (int, error) {
	for {
		n, err := d.r.Read(p)
		d.out += int64(n)
		d.last = append(d.last, p[:n]...)
		if len(d.last) > 4*window {
			d.last = append(d.last[:0], d.last[len(d.last)-window:]...)
		}
		if err == io.EOF && n == 0 && d.err == nil && d.out < d.size {
			err = errEndsEarly // broken bits look like the last block
		}
		switch {
		case err == nil || n > 0 && err == io.EOF:
			return n, nil
		case err == io.EOF && d.err == nil:
			return n, io.EOF
		case err == io.EOF: // the end of a member that was entered in the middle
			if d.r, err = d.next(); err != nil {
				d.r = ended{}
				return n, d.err
			}
		case d.end(err):
			return n, d.err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// end takes an error of what unpacks, and reports whether there is nothing behind it.
func (d *deflateSalvage) end(err error) bool {
	if d.err == nil {
		d.err = err
		if d.taken != nil {
			d.err = &placed{d.taken(), d.out, err}
		}
	}
	if d.resumes++; !Broken(err) || d.resumes > maxResumes {
		d.r = ended{}
		return true
	}
	if errors.Is(err, gzip.ErrChecksum) { // all of the member came out, right or not; another may follow
		if z, err := gzip.NewReader(d.in); err == nil {
			d.r = z
			return false
		}
		d.r = ended{}
		return true
	}
	if !d.resume() {
		d.r = ended{}
		return true
	}
	return false
}

type ended struct{}

func (ended) Read([]byte) (int, error) { return 0, io.EOF }

// member finds the next member of gzip in b; -1 if there is none.
func (d *deflateSalvage) member(b []byte) int {
	if !d.members {
		return -1
	}
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(gzipMagic+"\b"))
		if i < 0 {
			return -1
		}
		from += i
		if z, err := gzip.NewReader(bytes.NewReader(b[from:])); err == nil {
			if n, _ := io.ReadFull(z, make([]byte, 256)); n > 0 {
				return from
			}
		}
		from++
	}
}

// ends reports whether the blocks that begin at a bit take all of the data: what is no block would
// not end where the member does.
func ends(data, dict []byte, bit uint) bool {
	whole := bytes.NewReader(data)
	r := &shifted{r: bufio.NewReader(whole), bit: bit}
	_, err := io.Copy(io.Discard, flate.NewReaderDict(r, dict))
	return err == nil && whole.Len()+r.r.Buffered() < 2
}

// resume finds the next deflate block with codes of its own, at any bit, or the next member.
func (d *deflateSalvage) resume() bool {
	dict := d.last[max(0, len(d.last)-window):]
	out := make([]byte, probeOutput)
	var probe io.ReadCloser
	for {
		b, err := d.in.Peek(probeInput)
		if err == bufio.ErrBufferFull {
			err = nil
		}
		if len(b) < 64 {
			return false
		}
		member := d.member(b)
		for at := 0; at < len(b)-32 && (at < len(b)/2 || err != nil); at++ {
			if at == member {
				_, _ = d.in.Discard(at)
				z, err := gzip.NewReader(d.in)
				if err != nil {
					return false
				}
				d.r = z
				return true
			}
			for bit := range uint(8) {
				// Not the last block of the data, codes of its own, and counts of codes that can be.
				if h := (uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16) >> bit; h>>1&3 != 2 || h>>3&31 > 29 || h>>8&31 > 29 {
					continue
				}
				r := &shifted{r: bufio.NewReader(bytes.NewReader(b[at:])), bit: bit}
				if probe == nil {
					probe = flate.NewReaderDict(r, dict)
				} else if err := probe.(flate.Resetter).Reset(r, dict); err != nil {
					return false
				}
				n, perr := io.ReadFull(probe, out)
				if perr == nil || n > 0 && err != nil && (perr == io.EOF || errors.Is(perr, io.ErrUnexpectedEOF) && n > probeOutput/8) && !isCorrupt(perr) {
					if member > at+8 && !ends(b[at:member-8], dict, bit) {
						continue
					}
					_, _ = d.in.Discard(at) // they were peeked
					d.r = flate.NewReaderDict(&shifted{r: d.in, bit: bit}, dict)
					return true
				}
			}
		}
		if err != nil {
			return false
		}
		_, _ = d.in.Discard(len(b) / 2)
	}
}

func isCorrupt(err error) bool {
	var c flate.CorruptInputError
	return errors.As(err, &c)
}

// shifted gives bytes that begin at a bit of the first one. It reads one byte ahead.
type shifted struct {
	r   *bufio.Reader
	bit uint
}

func (s *shifted) ReadByte() (byte, error) {
	a, err := s.r.ReadByte()
	if err != nil || s.bit == 0 {
		return a, err
	}
	b, err := s.r.Peek(1)
	if err != nil {
		return a >> s.bit, nil
	}
	return a>>s.bit | b[0]<<(8-s.bit), nil
}

func (s *shifted) Read(p []byte) (int, error) {
	for i := range p {
		c, err := s.ReadByte()
		if err != nil {
			return i, err
		}
		p[i] = c
	}
	return len(p), nil
}

// A zstdSalvage reads zstd data. A block that cannot be unpacked is replaced by one of zeros and
// all is unpacked again, since blocks look back into each other.
type zstdSalvage struct {
	open    func() (io.ReadCloser, error) // the data from its start
	closers []io.Closer
	r       io.Reader
	blocks  *zstdBlocks
	out     int64 // bytes handed out
	bad     map[int64]bool
	seek    bool // the next frame where none begins
	err     error
}

func newZstd(r io.Reader, open func() (io.ReadCloser, error)) (*zstdSalvage, error) {
	z := &zstdSalvage{open: open, bad: map[int64]bool{}}
	return z, z.start(r, false)
}

func (z *zstdSalvage) first() error { return z.err }

func (z *zstdSalvage) start(r io.Reader, again bool) error {
	z.blocks = &zstdBlocks{in: bufio.NewReaderSize(r, 256<<10), bad: z.bad, seek: z.seek}
	d, err := zstd.NewReader(z.blocks, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(128<<20), zstd.IgnoreChecksum(again))
	if err != nil {
		return err
	}
	z.r = d
	z.closers = append(z.closers, d.IOReadCloser())
	return nil
}

func (z *zstdSalvage) Read(p []byte) (int, error) {
	for {
		n, err := z.r.Read(p)
		z.out += int64(n)
		switch {
		case err == nil || n > 0:
			return n, nil
		case err == io.EOF && z.err != nil:
			return 0, z.err
		case err == io.EOF:
			return 0, err
		}
		if z.err == nil {
			z.err = &placed{z.blocks.last, z.out, err}
		}
		if !z.again(err) {
			return 0, z.err
		}
	}
}

// again starts anew without the block that could not be unpacked, behind what was handed out.
func (z *zstdSalvage) again(err error) bool {
	if !Broken(err) || !z.avoid(err) {
		return false
	}
	_ = z.Close()
	in, err := z.open()
	if err != nil {
		return false
	}
	z.closers = append(z.closers, in)
	if z.start(in, true) != nil {
		return false
	}
	n, err := io.CopyN(io.Discard, z.r, z.out)
	if err != nil && n < z.out {
		// Another block before what was handed out: it came out before, so it is the same one.
		return false
	}
	return true
}

// avoid notes what the next attempt does not trip over, and returns false if there is nothing.
// Only the first one looks at checksums.
func (z *zstdSalvage) avoid(err error) bool {
	at := z.blocks.last
	switch {
	case errors.Is(err, zstd.ErrCRCMismatch):
		return true
	case z.blocks.headless:
		if z.seek {
			return false
		}
		z.seek = true
		return true
	case at <= 0 || z.bad[at] || len(z.bad) >= maxResumes:
		return false
	}
	z.bad[at] = true
	return true
}

func (z *zstdSalvage) Close() error {
	var err error
	for i := len(z.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, z.closers[i].Close())
	}
	z.closers = nil
	return err
}

// zstdBlocks hands on a zstd stream, and knows where its blocks begin.
type zstdBlocks struct {
	in      *bufio.Reader
	bad     map[int64]bool // offsets of blocks to be replaced
	pos     int64
	last    int64 // offset of the block handed on last
	frame   bool  // inside one
	sum     bool  // a checksum follows the last block
	pending []byte
	left    int // bytes of a block to hand on as they are
	broken  bool
	// headless tells that something stands where a frame should begin, and seek that it is passed over.
	headless, seek bool
}

// zeroBlock is a block of zeros as large as a block can be.
func zeroBlock(last bool) []byte {
	h := uint32(zstdBlockMax)<<3 | 1<<1
	if last {
		h |= 1
	}
	return []byte{byte(h), byte(h >> 8), byte(h >> 16), 0}
}

const zstdBlockMax = 128 << 10

func (z *zstdBlocks) Read(p []byte) (int, error) {
	if len(z.pending) == 0 && z.left == 0 && !z.broken {
		z.step()
	}
	if len(z.pending) > 0 {
		n := copy(p, z.pending)
		z.pending = z.pending[n:]
		return n, nil
	}
	if z.left > 0 && len(p) > z.left {
		p = p[:z.left]
	}
	n, err := z.in.Read(p)
	z.pos += int64(n)
	z.left = max(0, z.left-n)
	return n, err
}

// take hands on n bytes that were peeked.
func (z *zstdBlocks) take(n int) {
	b, _ := z.in.Peek(n)
	z.pending = append(z.pending[:0], b...)
	z.skip(len(b))
}

func (z *zstdBlocks) skip(n int) {
	k, _ := z.in.Discard(n)
	z.pos += int64(k)
}

// step finds out what comes next.
func (z *zstdBlocks) step() {
	if !z.frame {
		z.head()
		return
	}
	b, _ := z.in.Peek(3)
	if len(b) < 3 {
		z.broken = true
		return
	}
	h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	last, kind, size := h&1 != 0, h>>1&3, int(h>>3)
	stored := size
	if kind == 1 {
		stored = 1
	}
	begin := z.pos
	z.last = begin
	if z.bad[begin] {
		if kind == 3 || size > zstdBlockMax || !z.follows(3+stored, last) {
			// The header itself is wrong: the next one is where a chain of them begins.
			stored, last = z.nextBlock(), false
		}
		z.skip(3 + stored)
		z.pending = append(z.pending[:0], zeroBlock(last)...)
	} else {
		z.take(3)
		z.left = stored
	}
	if last {
		z.frame = false
		if z.sum {
			z.left += 4
		}
	}
}

// head hands on the header of a frame.
func (z *zstdBlocks) head() {
	b, _ := z.in.Peek(18)
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != 0xfd2fb528 {
		if len(b) >= 8 && skippableFrame(b) {
			z.left = 8 + int(binary.LittleEndian.Uint32(b[4:]))
			return
		}
		if z.headless = len(b) > 0; z.headless && z.seek && z.toFrame() {
			z.headless = false
			z.head()
			return
		}
		z.broken = true
		return
	}
	d := b[4]
	n := 5 + [4]int{0, 1, 2, 4}[d&3] + [4]int{0, 2, 4, 8}[d>>6]
	if d&0x20 == 0 {
		n++
	} else if d>>6 == 0 {
		n++
	}
	z.frame, z.sum = true, d&4 != 0
	z.take(n)
}

// toFrame goes to the next frame and returns false if there is none. A checksum may be what stands before it.
func (z *zstdBlocks) toFrame() bool {
	for {
		b, err := z.in.Peek(256 << 10)
		if i := bytes.Index(b, []byte(zstdMagic)); i >= 0 && i+18 <= len(b) {
			z.skip(i)
			return true
		}
		if err != nil {
			return false
		}
		z.skip(len(b) - 17)
	}
}

// follows reports whether a block begins n bytes from here, or the frame ends there.
func (z *zstdBlocks) follows(n int, last bool) bool {
	b, err := z.in.Peek(n + 7)
	if len(b) < n {
		return false
	}
	if last {
		return err != nil
	}
	return len(b) >= n+3 && plausibleBlock(b[n:])
}

func plausibleBlock(b []byte) bool {
	h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	return h>>1&3 == 2 && h>>3 > 32 && h>>3 <= zstdBlockMax || h>>1&3 == 0 && h>>3 <= zstdBlockMax
}

// nextBlock returns how far it is from behind the header here to the next block: one that four
// others follow, or the end.
func (z *zstdBlocks) nextBlock() int {
	b, err := z.in.Peek(256 << 10)
	for p := 4; p+3 <= len(b); p++ {
		q := p
		for n := 0; ; n++ {
			if n == 4 || n > 0 && err != nil && (q == len(b) || q == len(b)-4) {
				return p - 3
			}
			if q+3 > len(b) || !plausibleBlock(b[q:]) {
				break
			}
			h := uint32(b[q]) | uint32(b[q+1])<<8 | uint32(b[q+2])<<16
			q += 3 + int(h>>3)
		}
	}
	return len(b) - 3
}
