package nettrace

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A source is a window onto an io.Reader. Whole blocks are looked at in the
// window before they are consumed, so that a block whose size field lies can be
// searched again. The window grows with the bytes that really arrive, never
// with what a length field promises.
type source struct {
	r    io.Reader
	buf  []byte
	pos  int   // of the first byte not consumed
	base int64 // file offset of buf[0]
	err  error // what ended the input: io.EOF, or the error of r

	sum   uint32 // CRC-32 of the bytes consumed
	unsum bool   // is not asked for
}

const firstWindow = 64 << 10

// offset is the file offset of the first byte not consumed.
func (s *source) offset() int64 { return s.base + int64(s.pos) }

// peek returns the next n bytes, fewer where the input ends. They are valid
// until the next call of peek.
func (s *source) peek(n int) []byte {
	for len(s.buf)-s.pos < n && s.err == nil {
		s.fill(n)
	}
	if have := len(s.buf) - s.pos; n > have {
		n = have
	}
	return s.buf[s.pos : s.pos+n]
}

// fill reads once, towards n bytes in the window. Bytes are moved to the front
// only if as many were consumed: a caller that consumes little and peeks far
// would else pay for the whole window each time.
func (s *source) fill(n int) {
	have := len(s.buf) - s.pos
	switch {
	case s.pos+n <= cap(s.buf) && len(s.buf) < cap(s.buf):
	case s.pos > 0 && s.pos >= have:
		s.base += int64(s.pos)
		s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
		s.pos = 0
	case len(s.buf) == cap(s.buf):
		grown := make([]byte, have, max(firstWindow, 2*cap(s.buf)))
		copy(grown, s.buf[s.pos:])
		s.base += int64(s.pos)
		s.buf, s.pos = grown, 0
	}
	for range 100 {
		got, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		if got < 0 || got > cap(s.buf)-len(s.buf) {
			s.err = errors.New("nettrace: invalid count from Read")
			return
		}
		s.buf = s.buf[:len(s.buf)+got]
		if err != nil {
			s.err = err
			if err != io.EOF {
				s.err = fmt.Errorf("nettrace: offset %d: %w", s.base+int64(len(s.buf)), err)
			}
			return
		}
		if got > 0 {
			return
		}
	}
	s.err = fmt.Errorf("nettrace: offset %d: %w", s.base+int64(len(s.buf)), io.ErrNoProgress)
}

// skip consumes n bytes that peek has shown.
func (s *source) skip(n int) {
	if !s.unsum {
		s.sum = crc32.Update(s.sum, crc32.IEEETable, s.buf[s.pos:s.pos+n])
	}
	s.pos += n
}

// endsAt reports whether the input is known to end at an offset.
func (s *source) endsAt(offset int64) bool {
	return s.err != nil && s.base+int64(len(s.buf)) == offset
}

// ended reports whether the input has no further byte.
func (s *source) ended() bool { return len(s.peek(1)) == 0 }
