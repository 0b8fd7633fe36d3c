package profile

import (
	"math/bits"
	"time"

	"github.com/tracefix/tracefix/internal/spool"
)

// A Walk is how long the recorder took to walk the stack of a sample, to some three in a hundred. EventPipe walks
// stacks to their roots, whatever it keeps of them, and writes the time behind each: it tells how deep a
// stack was that was cut. 0: not known.
type Walk uint8

// Walks are shifts of walkBits bits behind the highest one.
const walkBits = 4

// MostWalk is the longest time that is kept: what takes longer was no walk.
const MostWalk = 800 * time.Microsecond

// WalkOf returns the Walk of d; 0 if d is too short or too long to be one.
func WalkOf(d time.Duration) Walk {
	if d < 1<<walkBits || d > MostWalk {
		return 0
	}
	shift := bits.Len64(uint64(d)) - walkBits - 1
	return 1 + Walk(shift<<walkBits) + Walk(d>>shift)&(1<<walkBits-1)
}

// Duration returns how long w is, about; 0 if it is not known.
func (w Walk) Duration() time.Duration {
	if w == 0 {
		return 0
	}
	shift := (w - 1) >> walkBits
	from := time.Duration(1<<walkBits+(w-1)&(1<<walkBits-1)) << shift
	return from + 1<<shift/2
}

// Walks are those of the samples of a thread. The zero value knows none and keeps all in memory.
type Walks struct {
	spool *Spool
	full  []spool.Piece // of walksPerChunk each
	last  []byte
}

const walksPerChunk = 4 << 10

// WalksIn returns an empty list that may put walks aside.
func WalksIn(spool *Spool) Walks { return Walks{spool: spool} }

// Len is the number of samples up to the last one whose walk is known.
func (l *Walks) Len() int { return len(l.full)*walksPerChunk + len(l.last) }

// Add adds that of sample number index of the thread, which is behind those that were added before.
func (l *Walks) Add(index int, w Walk) {
	if w == 0 {
		return
	}
	for n := index - l.Len(); n > 0; n = index - l.Len() {
		l.last = append(l.last, make([]byte, min(n, walksPerChunk-len(l.last)))...)
		l.put()
	}
	l.last = append(l.last, byte(w))
	l.put()
}

// put puts the newest walks aside, if they are enough.
func (l *Walks) put() {
	if len(l.last) == walksPerChunk {
		l.full, l.last = append(l.full, l.spool.Keep(l.last)), l.last[:0]
	}
}

// From returns what reads them from sample number index on. When nothing is added any more, any number of
// goroutines may read.
func (l *Walks) From(index int) WalkCursor {
	c := WalkCursor{of: l, next: index / walksPerChunk}
	if c.more() {
		c.rest = c.rest[min(index%walksPerChunk, len(c.rest)):]
	}
	return c
}

// A WalkCursor reads walks in the order of the samples. The zero value knows none.
type WalkCursor struct {
	of         *Walks
	next       int // chunk
	rest, room []byte
}

// Next returns the next one, 0 behind the last.
func (c *WalkCursor) Next() Walk {
	if len(c.rest) == 0 && !c.more() {
		return 0
	}
	w := c.rest[0]
	c.rest = c.rest[1:]
	return Walk(w)
}

// more reads the next chunk and reports whether there is one.
func (c *WalkCursor) more() bool {
	switch {
	case c.of == nil || c.next > len(c.of.full):
		return false
	case c.next < len(c.of.full):
		c.rest = c.of.spool.Read(&c.of.full[c.next], &c.room)
	default:
		c.rest = c.of.last
	}
	c.next++
	return len(c.rest) > 0
}
