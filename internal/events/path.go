package events

import (
	"strconv"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/nettrace"
)

// pathNames turns activity ids into paths. One form of ids can be read in two ways,
// by the runtime that wrote it (activity-ids.md section 4); only when such an id turns
// up the runtime is looked for, which may mean to read the trace ahead.
type pathNames struct {
	// lossy tells whether the ids come from the encoder of .NET 10. Nil: they do not.
	lossy  func() bool
	known  bool // lossy was asked
	answer bool
	found  bool // it became known here

	cache [1 << cacheBits]cachedPath
}

const cacheBits = 9

type cachedPath struct {
	id   nettrace.GUID
	pid  int
	text []byte // empty: no path
}

// decode returns the path of an id, and false if it holds none.
func (n *pathNames) decode(id nettrace.GUID) (activity.Path, bool) {
	if n.known {
		return activity.Decode(activity.ID(id), n.answer)
	}
	p, ok := activity.Decode(activity.ID(id), false)
	lossy, lok := activity.Decode(activity.ID(id), true)
	switch {
	case ok && p.ProvesLossy():
		n.find(true)
		return lossy, lok
	case ok && p.Old():
		n.find(false)
		return p, ok
	case ok == lok && p == lossy:
		return p, ok
	}
	n.find(n.lossy != nil && n.lossy())
	return n.decode(id)
}

func (n *pathNames) find(answer bool) { n.known, n.answer, n.found = true, answer, true }

// become makes n know what other knows.
func (n *pathNames) become(other *pathNames) {
	if n.found {
		clear(n.cache[:])
	}
	n.lossy, n.known, n.answer, n.found = other.lossy, other.known, other.answer, false
}

// append appends the path of an id, and nothing if it holds none. Paths of another
// process than pid name that process.
func (n *pathNames) append(dst []byte, id nettrace.GUID, pid int) []byte {
	// The last bytes hold the check word, the first ones the numbers.
	h := uint32(id[0]) | uint32(id[1])<<8 | uint32(id[2])<<16 | uint32(id[3])<<24
	h ^= uint32(id[4]) | uint32(id[8])<<8 | uint32(id[12])<<16 | uint32(id[13])<<24
	c := &n.cache[h*0x9e3779b1>>(32-cacheBits)]
	if c.id != id || c.pid != pid {
		c.id, c.pid, c.text = id, pid, c.text[:0]
		if p, ok := n.decode(id); ok {
			c.text = append(c.text, '/')
			if o := int(p.Process()); o != 0 && pid != 0 && o != pid {
				c.text = append(c.text, '#')
				c.text = strconv.AppendInt(c.text, int64(o), 10)
			}
			c.text = append(c.text, '/')
			c.text = p.AppendText(c.text)
		}
	}
	return append(dst, c.text...)
}
