package spans

import (
	"github.com/tracefix/tracefix/profile"
)

// A lane is what one thread does: nested begins and ends in order of time. A
// thread mostly has one lane. It has a further one where time goes back while
// nothing is open, since dotnet-trace writes threads that share their numbers one
// after the other.
//
// The frames that are open are a stack of the table. From the frame `Thread (n)` on
// they begin anew, so that the stacks below it are those of the program: outer is
// the stack down to it (0 if none is open), cur the one below.
type lane struct {
	thread     int32           // chromium.Event.Thread
	t          *profile.Thread // nil while it has no sample
	first      int64           // ns of the first event
	cur, outer profile.StackID
	outerDepth int
	dotnet     bool // has had a frame `Thread (n)`
	own        ownThread

	lastNS  int64
	lastSub uint32
	begun   bool  // the event before was a begin
	began   int64 // ns of the last begin
	seen    bool  // has had an event

	// The transition under way: from the first event behind a sample to the last
	// one before the next.
	start    int64 // offset of its first event's separator
	last     int64 // offset of its last event's separator
	low      int   // least number of frames open
	from     state // before it
	fromCut  bool
	ignored  int  // ends of frames that were not open
	implied  int  // frames that were closed by the end of one below
	unsorted bool // time goes back: it is void
	sorted   bool // its events were put in order; its zones count events
	rungs    rungs
	tie      tie // the ends since time went on or a frame began
	tied     int // frames that were open before the ends at the time of the first begin
	maxDepth int // frames of a sample
	deepest  int // frames open, synthetic ones included
	spikes   int // runs of cut samples
	events   int

	fromSample int             // index of the sample before the transition, -1 if none
	clashes    []int64         // of ends that speedscope would misread: offsets like start
	root       profile.FrameID // 1 + the outermost frame
	named      profile.FrameID // the frame `Thread (n)`
}

// An oddEnd is an end of a frame that was not open, or not the innermost one.
type oddEnd struct {
	lane  *lane
	at    int64 // offset of its separator
	ns    int64
	ended int // frames, 0 if it was not open
}

// A state is what is open in a lane.
type state struct {
	cur, outer profile.StackID
}

// rungs are places among the ends of a transition: the last ones at which a multiple of
// rungHeight frames were open. Between them ends need not be read.
type rungs [4]rung

// A rung is the end before which so many frames are open.
type rung struct {
	depth uint32
	at    uint32 // offset of its separator, from that of the first event
}

const rungHeight = 32

// add takes in the end whose separator is at, before which depth frames are open.
func (r *rungs) add(depth int, at int64) {
	if depth%rungHeight == 0 && depth > 0 && at < 1<<32 {
		copy(r[1:], r[:])
		r[0] = rung{uint32(depth), uint32(at)}
	}
}

// A zone is a transition that a repair may change.
type zone struct {
	lane        *lane
	before      int   // index of the sample that it ends, -1 if none
	after       int   // index of the sample that it leads to, -1 if none
	start, last int64 // offsets of the separators of the first and the last event
	low         int
	tied        int // as in lane
	from, to    state
	rungs       rungs
	end         bool // of the lane: to is what stays open
}

// sampled reports whether the lane holds sampled stacks.
func (l *lane) sampled() bool { return l.dotnet || l.own.holds == holdsSamples }

// depth returns the number of frames that are open.
func (l *lane) depth(t *profile.Table) int { return t.Depth(l.cur) + l.outerDepth }

// begin opens f, and reports whether it is the thread's frame.
func (l *lane) begin(t *frameTable, f profile.FrameID) bool {
	l.cur = t.table.Push(l.cur, f)
	if l.outer != 0 || t.kind(f) != kindThread {
		return false
	}
	l.outer, l.cur = l.cur, 0
	l.outerDepth = t.table.Depth(l.outer)
	l.dotnet = true
	return true
}

// pop closes the innermost frame.
func (l *lane) pop(t *profile.Table) {
	if l.cur == 0 {
		l.cur, l.outer, l.outerDepth = l.outer, 0, 0
	}
	l.cur = t.Parent(l.cur)
}

// top returns the innermost frame that is open.
func (l *lane) top(t *profile.Table) (profile.FrameID, bool) {
	if l.cur != 0 {
		return t.Frame(l.cur), true
	}
	if l.outer != 0 {
		return t.Frame(l.outer), true
	}
	return 0, false
}

// maxSearch limits how far below the top an end may find its begin.
const maxSearch = 1024

// end closes f and returns how many frames that took: more than one if ends were
// lost above it, none if f is not open. name is 0 for an end without a name, which
// closes the top.
func (l *lane) end(t *frameTable, f profile.FrameID, name int32, sf bool) int {
	top, ok := l.top(t.table)
	if !ok {
		return 0
	}
	match := func(g profile.FrameID) bool {
		return g == f || !sf && int(g) < len(t.frames) && t.frames[g].name == name
	}
	if name == 0 || match(top) {
		l.pop(t.table)
		return 1
	}
	s, below := l.cur, l.outer
	for n := 1; n < maxSearch; n++ {
		if s == 0 {
			s, below = below, 0
			if s == 0 {
				return 0
			}
		}
		if match(t.table.Frame(s)) {
			for range n {
				l.pop(t.table)
			}
			return n
		}
		s = t.table.Parent(s)
	}
	return 0
}
