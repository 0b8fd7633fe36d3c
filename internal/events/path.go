package events

import (
	"encoding/binary"
	"strconv"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/nettrace"
)

// pathNames turns activity ids into paths. It is to meet all ids of a trace, those of events that
// are not wanted too: an id may tell how others are to be read.
type pathNames struct {
	ids   activity.Decoder
	seen  [1 << cacheBits]nettrace.GUID // of late
	cache [1 << cacheBits]cachedPath
}

const cacheBits = 9

type cachedPath struct {
	id      nettrace.GUID
	process uint32
	numbers []byte // 1/2; empty: no path
}

// place returns where an id is kept. The last bytes of an id hold the check word, the first ones the numbers.
func place(id *nettrace.GUID) uint32 {
	h := binary.LittleEndian.Uint32(id[:]) ^ (uint32(id[4]) | uint32(id[8])<<8 | uint32(id[12])<<16 | uint32(id[13])<<24)
	return h * 0x9e3779b1 >> (32 - cacheBits)
}

// meet takes the ids of the next event.
func (n *pathNames) meet(ev *nettrace.Event) {
	if !ev.ActivityID.IsZero() {
		n.decode(ev.ActivityID)
	}
	if !ev.RelatedActivityID.IsZero() {
		n.decode(ev.RelatedActivityID)
	}
}

// decode takes an id for what it proves.
func (n *pathNames) decode(id nettrace.GUID) {
	seen := &n.seen[place(&id)]
	if *seen == id {
		return
	}
	*seen = id
	known := n.ids.Proven()
	n.ids.Decode(activity.ID(id))
	if n.ids.Proven() != known {
		clear(n.cache[:])
	}
}

// become makes n know what the ids of all events before prove.
func (n *pathNames) become(ids activity.Decoder) {
	if !n.ids.Equal(&ids) {
		clear(n.seen[:])
		clear(n.cache[:])
	}
	n.ids = ids
}

// of returns the path of an id. It is valid until the next one is asked for.
func (n *pathNames) of(id nettrace.GUID) *cachedPath {
	c := &n.cache[place(&id)]
	if c.id != id {
		*c = cachedPath{id: id, numbers: c.numbers[:0]}
		if p, ok := n.ids.Path(activity.ID(id)); ok {
			c.process, c.numbers = p.Process(), p.AppendText(c.numbers)
		}
	}
	return c
}

// append appends the path of an id, and nothing if it holds none. Paths of another
// process than pid name that process.
func (n *pathNames) append(dst []byte, id nettrace.GUID, pid int) []byte {
	p := n.of(id)
	if len(p.numbers) == 0 {
		return dst
	}
	dst = append(dst, '/')
	if o := int(p.process); o != 0 && pid != 0 && o != pid {
		dst = strconv.AppendInt(append(dst, '#'), int64(o), 10)
	}
	return append(append(dst, '/'), p.numbers...)
}
