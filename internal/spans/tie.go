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
// Such an end, and those before it, take place earlier by as little as speedscope can tell for
// sure, some 1e-9 of a microsecond: it takes the least time from all, which rounds. Ends of the
// name that are left are those behind which no other stands: they may be taken in any order.

// earlier is by which part of it a time is made earlier: 16 steps of a float64.
const earlier = 0x1p-48

// isNear reports whether an end at a time must be made earlier, too, if one at a time before is.
func isNear(ns int64, sub uint32, before int64, beforeSub uint32) bool {
	gap := float64(ns-before) + (float64(sub)-float64(beforeSub))*1e-9
	return gap >= 0 && gap <= 2*earlier*math.Abs(float64(ns))
}

// lasts reports whether there is an earlier time for an end of what began at a time.
func lasts(began, end int64) bool {
	return float64(end-began) > 2*earlier*math.Abs(float64(end))
}

// A tie is a run of ends of one time, but for the noise of floats.
type tie struct {
	from   state   // what was open before
	ends   []int64 // where they are
	odd    bool    // one of them closed no frame, or several
	first  int64   // ns: of those that came first
	sub    uint32
	firsts int  // how many they are
	later  bool // there are others
}

// add takes in an end; was is what was open before it, n how many frames it closed.
func (t *tie) add(was state, at int64, n int, ns int64, sub uint32) {
	if len(t.ends) == 0 {
		t.from, t.first, t.sub, t.firsts, t.later = was, ns, sub, 0, false
	}
	if t.later = t.later || ns != t.first || sub != t.sub; !t.later {
		t.firsts++
	}
	t.ends = append(t.ends, at)
	t.odd = t.odd || n != 1
}

func (t *tie) reset() { t.ends, t.odd = t.ends[:0], false }

// moved takes out those ends that an earlier repair has made earlier than a begin at a time.
func (t *tie) moved(table *profile.Table, ns int64, sub uint32) {
	if len(t.ends) == 0 || !t.later || t.odd {
		return
	}
	gap := float64(ns-t.first) + (float64(sub)-float64(t.sub))*1e-9
	if least := earlier * math.Abs(float64(ns)); gap < 0.9*least || gap > 1.1*least {
		return
	}
	l := lane{cur: t.from.cur, outer: t.from.outer}
	for range t.firsts {
		l.pop(table)
	}
	t.from = state{cur: l.cur, outer: l.outer}
	t.ends = append(t.ends[:0], t.ends[t.firsts:]...)
}

// clash returns where the ends are that speedscope would mistake when a frame of the
// given name begins at their time.
func (t *tie) clash(frames *frameTable, name int32) []int64 {
	if t.odd {
		return nil
	}
	l, same, early := lane{cur: t.from.cur, outer: t.from.outer}, 0, 0
	for i := range t.ends {
		f, _ := l.top(frames.table)
		l.pop(frames.table)
		if frames.nameOf(f) == name {
			same = i + 1
		} else {
			early = same
		}
	}
	return t.ends[:early]
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
	if same {
		l.tie.moved(frames.table, l.lastNS, l.lastSub)
	}
	at := l.lastNS
	if len(l.tie.ends) > 0 {
		at = l.tie.first
	}
	lasts := lasts(l.began, at)
	if lasts && (same || len(l.tie.ends) == 0) {
		l.tied = l.tie.depth(frames.table)
	}
	if lasts && same && l.sampled() {
		l.clashes = append(l.clashes, l.tie.clash(frames, frames.nameOf(f))...)
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
