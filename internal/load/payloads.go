package load

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/nettrace"
)

// A payloadLog keeps what tells the details of events, payloads without most of their zero bytes:
// half of a text is such, and much of a number.
type payloadLog struct {
	log   spool.Log
	metas []*nettrace.Metadata
	index map[*nettrace.Metadata]uint32 // in metas
	b     []byte
}

const payloadMemory = 4 << 20

func payloadsIn(s *spool.Spool) payloadLog { return payloadLog{log: spool.LogIn(s, payloadMemory)} }

// add appends an event and returns its place.
func (l *payloadLog) add(ev *nettrace.Event) int64 {
	meta, ok := l.index[ev.Metadata]
	if !ok {
		if l.index == nil {
			l.index = map[*nettrace.Metadata]uint32{}
		}
		meta = uint32(len(l.metas))
		l.metas, l.index[ev.Metadata] = append(l.metas, ev.Metadata), meta
	}
	payload := ev.Payload
	b := append(l.b[:0], 0, 0, 0, 0) // its own length
	b = binary.AppendUvarint(b, uint64(meta))
	b = binary.AppendUvarint(b, uint64(ev.Version))
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
	log *payloadLog
	b   []byte
	ev  nettrace.Event
}

// read returns the event at a place, its definition, version and payload, until the next one is
// read. It is nil if it cannot be read; see the Spool's Err.
func (r *payloadReader) read(at int64) *nettrace.Event {
	var size [4]byte
	r.log.log.Get(size[:], at)
	n := int(binary.LittleEndian.Uint32(size[:]))
	if n < len(size) {
		return nil
	}
	r.b = slices.Grow(r.b[:0], n)[:n]
	r.log.log.Get(r.b, at)
	b := r.b[len(size):]
	field := func() int {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return int(v)
	}
	r.ev.Metadata, r.ev.Version = r.log.metas[min(field(), len(r.log.metas)-1)], field()
	left := field()
	payload := r.ev.Payload[:0]
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
	r.ev.Payload = payload
	return &r.ev
}
