package spans

import (
	"encoding/binary"

	"github.com/tracefix/tracefix/profile"
)

// A spanLog holds the begins and ends of a trace, some five bytes each, so that who wants to go
// through them again need not read the trace again. nil is a log that was given up: it takes nothing.
type spanLog struct {
	chunks [][]byte
	off    int64 // of the newest
	end    int64 // behind it
	thread int32 // its
}

// A logged is a begin or end event.
type logged struct {
	off    int64 // of the event
	lead   int64 // bytes of the separator before it
	thread int32
	name   int32
	frame  profile.FrameID // if timed
	phase  byte
	sf     bool
	timed  bool
	next   bool // nothing stands between the event before and this one but the separator
}

const (
	logChunk = 64 << 10
	// mostLogged is how many chunks are held: 32 MB are the spans of half a gigabyte.
	mostLogged = 512

	isEnd, hasSF, isTimed, otherThread, isNext = 1, 2, 4, 8, 16

	// longLead and more is not held with the kind of an event, in its upper bits, but behind it.
	longLead = 7
	leadBits = 5
)

// add takes in an event of frame f, which counts only if it has a time. It returns the log, or nil if that
// would become too large.
func (g *spanLog) add(b *brief, f profile.FrameID) *spanLog {
	if g == nil {
		return nil
	}
	last := len(g.chunks) - 1
	if last < 0 || cap(g.chunks[last])-len(g.chunks[last]) < 1+4*binary.MaxVarintLen64 {
		if len(g.chunks) == mostLogged {
			return nil
		}
		g.chunks = append(g.chunks, make([]byte, 0, logChunk))
		last++
	}
	kind := byte(min(b.lead, longLead)) << leadBits
	what := uint64(b.name)
	if b.timed {
		kind |= isTimed
		what = uint64(f)
	}
	if b.phase == 'E' {
		kind |= isEnd
	}
	if b.sf != nil {
		kind |= hasSF
	}
	if b.thread != g.thread {
		kind |= otherThread
	}
	if b.off-int64(b.lead) == g.end {
		kind |= isNext
	}
	to := append(g.chunks[last], kind)
	to = binary.AppendUvarint(to, what)
	to = binary.AppendUvarint(to, uint64(b.off-g.off))
	if kind&otherThread != 0 {
		to = binary.AppendUvarint(to, uint64(b.thread))
	}
	if b.lead >= longLead {
		to = binary.AppendUvarint(to, uint64(b.lead))
	}
	g.chunks[last], g.off, g.end, g.thread = to, b.off, b.off+int64(b.size), b.thread
	return g
}

// all calls yield for each event, in the order of the file.
func (g *spanLog) all(t *frameTable, yield func(*logged) bool) {
	var x logged
	for _, b := range g.chunks {
		number := func() int64 {
			v, n := binary.Uvarint(b)
			b = b[n:]
			return int64(v)
		}
		for len(b) > 0 {
			kind := b[0]
			b = b[1:]
			x.phase, x.sf, x.timed, x.next = 'B', kind&hasSF != 0, kind&isTimed != 0, kind&isNext != 0
			if kind&isEnd != 0 {
				x.phase = 'E'
			}
			if what := number(); x.timed {
				x.frame = profile.FrameID(what)
				x.name = t.frames[x.frame].name
			} else {
				x.name = int32(what)
			}
			x.off += number()
			if kind&otherThread != 0 {
				x.thread = int32(number())
			}
			if x.lead = int64(kind >> leadBits); x.lead == longLead {
				x.lead = number()
			}
			if !yield(&x) {
				return
			}
		}
	}
}
