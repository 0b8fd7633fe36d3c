package spans

import (
	"math"

	"github.com/tracefix/tracefix/profile"
)

// speedscope's import keeps begins and ends in two queues by time. At one time it
// takes the ends first, unless the next end and the next begin have the same name and
// args: it takes that for a span without length, and the begin first. Where a call
// ends and another of that name begins elsewhere in the stack, all ends behind that
// one then find the new call on top, are lost, and the nesting with them:
//
//	B Main, B Run, B Wait, ..., E Wait, E Run, B Wait, ...
//
// Such an end is told apart by args of its own. One for each begin is enough: ends of
// the name of the innermost span are taken in any order, and the first of its name
// stays the first.

// A tie is a run of ends of one time.
type tie struct {
	from state   // what was open before
	ends []int64 // where they are
	odd  bool    // one of them closed no frame, or several
}

// add takes in an end; was is what was open before it, n how many frames it closed.
func (t *tie) add(was state, at int64, n int) {
	if len(t.ends) == 0 {
		t.from = was
	}
	t.ends = append(t.ends, at)
	t.odd = t.odd || n != 1
}

func (t *tie) reset() { t.ends, t.odd = t.ends[:0], false }

// clash returns where the end is that speedscope would mistake when a frame of the
// given name begins at its time.
func (t *tie) clash(frames *frameTable, name int32) (at int64, ok bool) {
	if t.odd {
		return 0, false
	}
	l, found := lane{cur: t.from.cur, outer: t.from.outer}, false
	for _, end := range t.ends {
		f, _ := l.top(frames.table)
		l.pop(frames.table)
		switch same := frames.nameOf(f) == name; {
		case same && !found:
			at, found = end, true
		case found && !same:
			return at, true
		}
	}
	return 0, false
}

// depth returns how many frames were open before the ends, all if there are none.
func (t *tie) depth(table *profile.Table) int {
	if len(t.ends) == 0 {
		return math.MaxInt
	}
	return table.Depth(t.from.cur) + table.Depth(t.from.outer)
}

// firstBegin notes what the first begin of a transition, of frame f, is tied to; same
// says that the event before has its time.
func (l *lane) firstBegin(frames *frameTable, f profile.FrameID, same bool) {
	l.tied = 0
	if same || len(l.tie.ends) == 0 {
		l.tied = l.tie.depth(frames.table)
	}
	if same && l.sampled() {
		if at, ok := l.tie.clash(frames, frames.nameOf(f)); ok {
			l.clashes = append(l.clashes, at)
		}
	}
	l.tie.reset()
}

// nameOf returns the number of the name of f, -1 for the bridge that the repair added.
func (t *frameTable) nameOf(f profile.FrameID) int32 {
	if int(f) >= len(t.frames) {
		return -1
	}
	return t.frames[f].name
}
