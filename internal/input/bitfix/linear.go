package bitfix

import (
	"hash/crc32"
	"math/bits"
)

// Where a flipped bit changes what is unpacked but not how much, all that differs is copies of what
// differs first, and a CRC is linear: each bit of the content, with all that is copied from it,
// changes the checksum in its own way, whatever the others do. One pass from the end collects these
// changes, which takes a window only, since copies reach no further back. So the checksum that a
// candidate leads to is known without unpacking it.

// A change is how the checksum changes with each bit of a byte.
type change [8]uint32

// of is how it changes with these bits.
func (c *change) of(x byte) (sum uint32) {
	for ; x != 0; x &= x - 1 {
		sum ^= c[bits.TrailingZeros8(x)]
	}
	return sum
}

func (c *change) add(d *change) {
	for i := range c {
		c[i] ^= d[i]
	}
}

// changes are those of the content from low on, as many as the ring holds.
type changes struct {
	ring []change
	low  int
	at   change // of the byte at low, if nothing were copied from it
}

const (
	ringSize = 2 * window
	farthest = window / 2 // bytes after which a candidate must have come back
)

func newChanges(length int) *changes {
	c := &changes{ring: make([]change, ringSize), low: length}
	return c
}

func (c *changes) get(at int) *change { return &c.ring[at%ringSize] }

// reach makes the changes from a place on known.
func (c *changes) reach(to int) {
	for ; c.low > max(0, to); c.low-- {
		for i, v := range c.at {
			c.at[i] = crc32.IEEETable[v&255] ^ v>>8
		}
		if c.at[0] == 0 {
			for i := range c.at {
				c.at[i] = crc32.IEEETable[1<<i]
			}
		}
		*c.get(c.low - 1) = c.at
	}
}

// copied takes into account that n bytes are copied from dist before.
func (c *changes) copied(out int, o op) {
	if o.dist == 0 {
		return
	}
	c.reach(out - int(o.dist))
	for i := out + int(o.n) - 1; i >= out; i-- {
		c.get(i - int(o.dist)).add(c.get(i))
	}
}

// linear looks among all bits for the one that makes the checksum sum, if the number of bytes does
// not change.
func (s *deflateScan) linear(sum uint32, test func(c int64, ok bool) verdict) (int64, verdict) {
	ch := newChanges(len(s.content))
	now := crc32.ChecksumIEEE(s.content)
	end := s.end
	for t := len(s.places) - 1; t >= 0; t-- {
		p := &s.places[t]
		ch.reach(int(p.out))
		ch.copied(int(p.out), p.op)
		for c := int64(p.bit); c < end; c++ {
			left, back, ok := s.try(c, t, 0)
			if ok && back >= 0 {
				if int(s.places[back].out)-int(p.out) <= farthest {
					ok = now^s.differs(ch, left, back) == sum
				} else {
					ok = s.sum(left, back) == sum
				}
			}
			if v := test(c, ok && back >= 0); v != no {
				return c, v
			}
		}
		end = int64(p.bit)
	}
	return 0, no
}

// differs is how the checksum changes with the trial in place of what stands between two places.
func (s *deflateScan) differs(ch *changes, left, back int) (sum uint32) {
	from, to := int(s.places[left].out), int(s.places[back].out)
	buf := append(s.scratch[:0], s.content[max(0, from-window):from]...)
	begin := len(buf)
	coded := deflateBlock{stored: -1}
	for _, o := range s.trial {
		buf = s.unpack(buf, o, &coded)
	}
	s.scratch = buf
	fresh := buf[begin:]
	if len(fresh) != to-from {
		return 0
	}
	// What was copied within is not copied any more.
	s.local = s.local[:0]
	for i := from; i < to; i++ {
		s.local = append(s.local, *ch.get(i))
	}
	for _, p := range s.places[left:back] {
		if p.dist == 0 {
			continue
		}
		for i := range int(p.n) {
			if src := int(p.out) + i - int(p.dist); src >= from {
				s.local[src-from].add(&s.local[int(p.out)+i-from])
			}
		}
	}
	for i, x := range fresh {
		if x ^= s.content[from+i]; x != 0 {
			sum ^= s.local[i].of(x)
		}
	}
	return sum
}
