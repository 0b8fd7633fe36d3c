package load

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
)

// A payloadLog keeps payloads of events without most of their zero bytes: half of a text is
// such, and much of a number.
type payloadLog struct {
	log spool.Log
	b   []byte
}

const payloadMemory = 4 << 20

func payloadsIn(s *spool.Spool) payloadLog { return payloadLog{log: spool.LogIn(s, payloadMemory)} }

// add appends a payload and returns its place.
func (l *payloadLog) add(meta uint32, version int, payload []byte) int64 {
	b := append(l.b[:0], 0, 0, 0, 0) // its own length
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
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	l.b = b
	return l.log.Add(b)
}

// A payloadReader reads what a payloadLog has, into memory of its own.
type payloadReader struct {
	log        *payloadLog
	b, payload []byte
}

// read returns the payload at a place, until the next one is read. It is empty if it cannot be read; see the Spool's Err.
func (r *payloadReader) read(at int64) (meta uint32, version int, payload []byte) {
	var size [4]byte
	r.log.log.Get(size[:], at)
	n := int(binary.LittleEndian.Uint32(size[:]))
	if n < len(size) {
		return 0, 0, nil
	}
	r.b = slices.Grow(r.b[:0], n)[:n]
	r.log.log.Get(r.b, at)
	b := r.b[len(size):]
	field := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v
	}
	meta, version = uint32(field()), int(field())
	left := int(field())
	payload = r.payload[:0]
	for ; left > 0 && len(b) > 0; left -= 8 {
		group := [8]byte{}
		mask := b[0]
		b = b[1:]
		for m := mask; m != 0 && len(b) > 0; m &= m - 1 {
			group[bits.TrailingZeros8(m)] = b[0]
			b = b[1:]
		}
		payload = append(payload, group[:min(8, left)]...)
	}
	r.payload = payload
	return meta, version, payload
}
