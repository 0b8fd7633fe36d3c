package nettrace

import "encoding/binary"

// Blocks of kinds that are not known go from a Reader to a Copier as they are. A Reader reads ahead of
// the events that it delivers, so such a block waits until all events of blocks in front of it are
// delivered; a sequence point is not passed before that.

// carried are blocks of unknown kinds that wait to be passed on.
type carried struct {
	blocks []carriedBlock
	bytes  int
}

type carriedBlock struct {
	raw []byte // with its header
	at  int64  // its offset
}

const (
	// maxCarried bounds the bytes that wait. Beyond it blocks overtake events in front of them.
	maxCarried = 1 << 24
	// carriedAtOnce is how many bytes end a batch: several are on their way at one time.
	carriedAtOnce = 1 << 20
	// carriedSize is what a block without contents takes: a view is made for it.
	carriedSize = 512
)

// carry keeps a block of v6 for a Copier.
func (r *Reader) carry(kind blockKind, b []byte, at int64) {
	if r.carries {
		raw := append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))|uint32(kind)<<24), b...)
		r.carried.blocks = append(r.carried.blocks, carriedBlock{raw, at})
		r.carried.bytes += len(raw) + carriedSize
	}
}

// pass passes on the blocks in front of an offset. Who reads no batches does not want them.
func (r *Reader) pass(before int64) {
	c := &r.carried
	n, size := 0, 0
	for n < len(c.blocks) && c.blocks[n].at < before {
		size += len(c.blocks[n].raw) + carriedSize
		n++
	}
	if n == 0 {
		return
	}
	if b := r.batch; b != nil {
		r.stale = true
		r.look() // another view, which is that of what follows
		r.view.carried = c.blocks[:n]
		b.see(&r.view)
		b.carried += size
		r.view.carried = nil
	}
	c.blocks, c.bytes = c.blocks[n:], c.bytes-size // not moved, which would take the square of their number
}

// carry writes a block of v6 that begins with its header, behind all events so far and in the region of
// those: no sequence point is put in front of it, which would have readers forget what it may refer to.
func (w *Writer) carry(raw []byte) error {
	if len(w.events.b) > 0 {
		w.flushMetadata()
		w.blocksV6()
	}
	_ = w.flushOut() // kept in w.err
	w.hand(raw)
	w.sequenced, w.others = false, true
	return w.err
}
