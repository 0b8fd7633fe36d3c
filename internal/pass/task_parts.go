package pass

import (
	"slices"

	"github.com/tracefix/tracefix/profile"
)

// taskParts hold the repairs of a thread against what events tell of stacks which they do not tell
// whole: their outermost frames, and how many markers they have. An answer that has others is
// wrong, and a bridge has at least these frames before it.
type taskParts struct {
	tab    *profile.Table
	known  *taskAnswers
	bridge profile.FrameID
	out    profile.Repairs
	last   profile.Repair // that is not in out yet
	n      int            // of how many samples
	above  []profile.FrameID
}

// holdAgainst returns found, the repairs of t, as events have them. It adds stacks to tab.
func holdAgainst(tab *profile.Table, t *profile.Thread, found *profile.Repairs, known *taskAnswers) profile.Repairs {
	x := taskParts{tab: tab, known: known, bridge: BridgeFrame(tab), out: t.NewRepairs()}
	next := known.parts.from(0)
	samples := t.Samples.Cursor()
	var s profile.Sample
	for run, n := range found.Runs() {
		from, to := run.Index, run.Index+n
		for a := next.Peek(); a != nil && int(a.index) < to; a = next.Peek() {
			if at := int(a.index); at >= from && run.Dropped == 0 {
				samples.Seek(at)
				samples.Read(&s)
				if is := x.hold(run, s.Stack, a); is.Recorded != run.Recorded {
					x.add(run, from, at-from)
					x.add(is, at, 1)
					from = at + 1
				}
			}
			next.Next()
		}
		x.add(run, from, to-from)
	}
	x.flush()
	return x.out
}

// add adds a repair of n samples from index on, which may be none.
func (x *taskParts) add(r profile.Repair, index, n int) {
	if n == 0 {
		return
	}
	if index == x.last.Index+x.n {
		if r.Index = x.last.Index; r == x.last {
			x.n += n
			return
		}
	}
	x.flush()
	r.Index = index
	x.last, x.n = r, n
}

func (x *taskParts) flush() {
	if x.n > 0 {
		x.out.AppendRun(x.last, x.n)
	}
}

// hold returns the repair r of a sample that was recorded with a stack, as a tells it. Its Recorded
// is the stack that is to be put in.
func (x *taskParts) hold(r profile.Repair, recorded profile.StackID, a *taskAnswer) profile.Repair {
	if a.stack == 0 {
		return x.holdUntold(r, recorded, a)
	}
	all := int(a.markers)
	least := x.markers(a.stack).sure + x.markers(recorded).sure
	if least >= all {
		return r // what began behind a is on the stack, too
	}
	base, above := r.Recorded, 0
	if r.How == profile.HowBridge {
		base = x.outer(base, x.tab.Depth(base)-x.tab.Depth(recorded)-r.Above-1)
		above = x.readAbove(r, recorded)
	}
	fits, n := x.alike(x.outer(base, x.tab.Depth(a.stack)), a.stack), x.markers(base)
	if r.How == profile.HowBridge {
		fits = fits && n.sure+above+x.markers(recorded).sure <= all
	} else {
		fits = fits && n.sure <= all && all <= n.sure+n.maybe
	}
	if fits {
		return r
	}
	if r.How != profile.HowBridge || least+above >= all {
		x.above = x.above[:0]
	}
	return x.bridged(r, a.stack, recorded, x.known.confidence)
}

// holdUntold is hold where nothing tells how many markers the stack has. How often a unit of such a
// stack was repeated cannot be seen in others, in which it is as often as they are deep.
func (x *taskParts) holdUntold(r profile.Repair, recorded profile.StackID, a *taskAnswer) profile.Repair {
	back := x.tab.Depth(r.Recorded) - x.tab.Depth(recorded)
	if r.How == profile.HowBridge || back <= 0 {
		return r
	}
	base := x.outer(r.Recorded, back)
	n, is := x.markers(base), x.markers(recorded)
	least := n.sure + is.sure
	if n.sure+n.maybe == 0 || least <= int(a.markers) && int(a.markers) <= least+n.maybe+is.maybe {
		return r
	}
	for s := base; s != 0; s = x.tab.Parent(s) {
		if marks, _ := x.known.frames.isMarker(x.tab.Frame(s)); marks {
			base = x.tab.Parent(s)
		}
	}
	x.above = x.above[:0]
	return x.bridged(r, base, recorded, r.Confidence)
}

// bridged returns r as one with a bridge between the frames of base, which are known with a
// confidence, and those in above and of recorded.
func (x *taskParts) bridged(r profile.Repair, base, recorded profile.StackID, confidence float32) profile.Repair {
	stack := x.tab.Push(base, x.bridge)
	for _, f := range x.above {
		stack = x.tab.Push(stack, f)
	}
	var frames [128]profile.FrameID
	for _, f := range x.tab.AppendFrames(frames[:0], recorded) {
		stack = x.tab.Push(stack, f)
	}
	is := profile.Repair{
		Index: r.Index, Recorded: stack, How: profile.HowBridge, Restored: x.tab.Depth(base) + len(x.above), Above: len(x.above),
		BaseConfidence: confidence,
	}
	if is.Above > 0 {
		is.AboveConfidence = r.AboveConfidence
	}
	return is
}

// readAbove puts the frames that r has behind the bridge into above, and returns how many are
// markers.
func (x *taskParts) readAbove(r profile.Repair, recorded profile.StackID) (markers int) {
	x.above = x.above[:0]
	s := x.outer(r.Recorded, x.tab.Depth(r.Recorded)-x.tab.Depth(recorded))
	for range r.Above {
		f := x.tab.Frame(s)
		x.above = append(x.above, f)
		if marks, sure := x.known.frames.isMarker(f); marks && sure {
			markers++
		}
		s = x.tab.Parent(s)
	}
	slices.Reverse(x.above)
	return markers
}

// outer returns the outermost n frames of s, all if it has no more.
func (x *taskParts) outer(s profile.StackID, n int) profile.StackID {
	for x.tab.Depth(s) > n {
		s = x.tab.Parent(s)
	}
	return s
}

// alike reports whether two stacks are of the same methods: a whole stack may be known from another
// call.
func (x *taskParts) alike(a, b profile.StackID) bool {
	for a != b && a != 0 && b != 0 && x.tab.Method(x.tab.Frame(a)) == x.tab.Method(x.tab.Frame(b)) {
		a, b = x.tab.Parent(a), x.tab.Parent(b)
	}
	return a == b
}

// A count is how many markers a stack has: whole stacks told of those that are sure.
type count struct{ sure, maybe int }

func (x *taskParts) markers(s profile.StackID) (n count) {
	for ; s != 0; s = x.tab.Parent(s) {
		switch marks, sure := x.known.frames.isMarker(x.tab.Frame(s)); {
		case marks && sure:
			n.sure++
		case marks:
			n.maybe++
		}
	}
	return n
}
