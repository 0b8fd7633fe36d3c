package load

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A payloadLog keeps payloads of events without most of their zero bytes: half of a text is
// such, and much of a number.
type payloadLog struct {
	chunks [][]byte
	full   bool
}

// payloadChunk is the size of most chunks, a power of two: a place in the log is one number.
const payloadChunk = 1 << 16

// add appends a payload and returns its place; false if the log is full.
func (l *payloadLog) add(meta uint32, version int, payload []byte) (at uint32, ok bool) {
	most := len(payload) + len(payload)/8 + 32
	n := len(l.chunks)
	if n == 0 || len(l.chunks[n-1])+most > cap(l.chunks[n-1]) || len(l.chunks[n-1]) >= payloadChunk {
		if l.full = l.full || n == math.MaxUint32/payloadChunk; l.full {
			return 0, false
		}
		l.chunks, n = append(l.chunks, make([]byte, 0, max(payloadChunk, most))), n+1
	}
	b := l.chunks[n-1]
	at = uint32((n-1)*payloadChunk + len(b))
	b = binary.AppendUvarint(b, uint64(meta))
	b = binary.AppendUvarint(b, uint64(version))
	b = binary.AppendUvarint(b, uint64(len(payload)))
	for len(payload) > 0 {
		mask := len(b)
		b = append(b, 0)
		for i, c := range payload[:min(8, len(payload))] {
			if c != 0 {
				b[mask] |= 1 << i
				b = append(b, c)
			}
		}
		payload = payload[min(8, len(payload)):]
	}
	l.chunks[n-1] = b
	return at, true
}

// read appends to dst the payload at a place.
func (l *payloadLog) read(at uint32, dst []byte) (meta uint32, version int, payload []byte) {
	b := l.chunks[at/payloadChunk][at%payloadChunk:]
	field := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	meta, version = uint32(field()), int(field())
	n := len(dst) + int(field())
	for len(dst) < n {
		group := [8]byte{}
		mask := b[0]
		b = b[1:]
		for m := mask; m != 0; m &= m - 1 {
			group[bits.TrailingZeros8(m)] = b[0]
			b = b[1:]
		}
		dst = append(dst, group[:min(8, n-len(dst))]...)
	}
	return meta, version, dst
}
