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
	raw  []byte // with its header; in v4 also with the tag that ends it, and without padding
	head int    // v4: the padding belongs behind so many bytes
	at   int64  // its offset
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
		raw := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))|uint32(kind)<<24)
		r.keep(carriedBlock{append(raw, b...), 0, at})
	}
}

// carryObject is carry for v4.
func (r *Reader) carryObject(o *object, b []byte, at int64) {
	if r.carries {
		raw := o.append(make([]byte, 0, o.size+4+len(b)+1))
		raw = binary.LittleEndian.AppendUint32(raw, uint32(len(b)))
		r.keep(carriedBlock{append(append(raw, b...), tagEnd), o.size + 4, at})
	}
}

func (r *Reader) keep(c carriedBlock) {
	r.carried.blocks = append(r.carried.blocks, c)
	r.carried.bytes += len(c.raw) + carriedSize
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

// carry writes a block behind all events so far and in the region of those: no sequence point is
// put in front of it, which would have readers forget what it may refer to.
func (w *Writer) carry(c *carriedBlock) error {
	if len(w.events.b) > 0 {
		w.flushMetadata()
		if w.v6 {
			w.blocksV6()
		} else {
			w.blocksV4()
		}
	}
	w.out = append(w.out, c.raw[:c.head]...)
	if !w.v6 {
		w.align()
	}
	_ = w.flushOut() // kept in w.err
	w.hand(c.raw[c.head:])
	w.sequenced, w.others = false, w.v6
	return w.err
}
