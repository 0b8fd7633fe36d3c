package export

import (
	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
)

// A threadLine is the way of the stacks of threads into an output. Who goes through their
// stretches hands them on, part by part; others make text of the parts meanwhile, several at
// once, and what comes out is in the order of the threads and of time.
type threadLine struct {
	out  *buffer
	line *relay.Line[threadPart]
	// marks is set where text depends on which open frames a repair put back.
	marks bool
	// frames is how many frames the stacks of a part have, about: so many that what is done once
	// for a part, to open the stack before it, is little, and so few that the text of those on
	// their way, some hundred KB each at most, stays in the caches of the processors.
	frames int
	sp     *spanner // of the threads with repairs, for marks
}

// A threadPart is some stretches of a thread, one after the other, and the text that becomes of them.
type threadPart struct {
	th     *profile.Thread
	number int // of the thread in the output
	// before is the stretch before the first one of the part, which is open when the part
	// begins. There is none before the first part of a thread.
	before      profile.Stretch
	first, last bool
	list        []partStretch
	frames      int // of the stacks in list; of deep ones those that differ

	sp     *spanner
	marked []bool     // by depth: a frame that is open when the part begins was put back
	marks  []bool     // the same of those that are open by now
	ids    []byte     // of the thread
	prefix []byte     // of all events of one phase at one time
	begins eventBegin // the same of speedscope
	events int        // that are in out
	at     int        // where the first one is
	// the time of the stretch before, as it was written; see chromiumWriter.part
	begun, ended writtenTime
	out          []byte
}

// A partStretch is a stretch, and how many of its outermost frames a repair put back.
type partStretch struct {
	profile.Stretch
	inserted int
}

// partFrames is threadLine.frames of a format that sets none, some forty bytes an event.
var partFrames = 4 << 10

// newThreadLine returns a line behind what out has. render appends the text of a part to its out; it
// is called for several parts at once, and changes nothing else. check, which may be nil, sees
// the parts in their order before they are written.
func newThreadLine(out *buffer, t *profile.Table, render func(*threadPart), check func(*threadPart)) *threadLine {
	l := &threadLine{out: out, frames: partFrames}
	skip := t.Synthetic()
	l.sp = newSpanner(t, skip)
	l.line = relay.New(func(b *threadPart) {
		if b.sp == nil {
			b.sp = newSpanner(t, skip)
		}
		render(b)
	}, func(b *threadPart) error {
		if check != nil {
			check(b)
		}
		b.out = out.text(b.out)
		return out.err
	})
	return l
}

// text writes b behind what was collected, much of it without a copy, and returns memory for another one.
func (o *buffer) text(b []byte) []byte {
	if len(b) < bufferSize/8 {
		o.b = append(o.b, b...)
		o.flushed()
		return b[:0]
	}
	if o.flush() == nil {
		b, o.err = relay.Give(o.w, b)
	}
	return b[:0]
}

// thread hands on the stretches of a thread, the one with this number. It returns false if nothing
// more can be written.
func (l *threadLine) thread(number int, th *profile.Thread, timing *profile.Timing) bool {
	repairs := th.Repairs.Cursor()
	marks := l.marks && th.Repairs.Len() > 0
	var marked []bool
	b := l.begin(number, th)
	b.first, b.before, b.marked = true, profile.Stretch{}, b.marked[:0]
	c := timing.Cursor(th)
	var st profile.Stretch
	for c.ReadRun(&st, leastJoined) {
		if k := len(b.list) - 1; k >= 0 && goesOn(&b.list[k].Stretch, &st) {
			b.list[k].End = st.End
			continue
		}
		// What is done once for a part is little beside it also where the stack is very deep.
		if b.frames >= max(l.frames, l.sp.table.Depth(b.before.Stack)) {
			before := b.list[len(b.list)-1].Stretch
			if l.line.Send() != nil {
				return false
			}
			b = l.begin(number, th)
			b.first, b.before, b.marked = false, before, append(b.marked[:0], marked...)
		}
		n := 0
		if marks {
			n = inserted(l.sp.table, &st.Sample, repairs.Of(st.Index))
			marked = marked[:l.sp.next(&st)]
			for i := len(marked); i < len(l.sp.path); i++ {
				marked = append(marked, i < n)
			}
		}
		b.frames += l.framesOf(b, st.Stack) + 1
		b.list = append(b.list, partStretch{st, n})
	}
	b.last = true
	l.sp.step(0, 0)
	return l.line.Send() == nil
}

// deepStack is how many frames a stack has at least of which only those count in which it differs
// from the one before. Frames of others all count, which says enough of how much text they become,
// and need not be looked at.
const deepStack = 1 << 10

// framesOf returns for how many frames a stack counts that stands behind those in b.
func (l *threadLine) framesOf(b *threadPart, id profile.StackID) (n int) {
	t := l.sp.table
	d := t.Depth(id)
	if d < deepStack {
		return d
	}
	last := b.before.Stack
	if k := len(b.list); k > 0 {
		last = b.list[k-1].Stack
	}
	for e := t.Depth(last); id != last; n++ {
		if d >= e {
			id, d = t.Parent(id), d-1
		} else {
			last, e = t.Parent(last), e-1
		}
	}
	return n
}

// begin prepares the next part.
func (l *threadLine) begin(number int, th *profile.Thread) *threadPart {
	b := l.line.Batch()
	b.number, b.th, b.last = number, th, false
	b.list, b.frames = b.list[:0], 0
	return b
}

// leastJoined is how long, ns, a stretch is at most that is written by itself whatever stands beside it.
const leastJoined = 2

// goesOn reports whether next is the stack of last without an end between them, so that there is
// nothing to write where they meet. What does not last is left alone: formats write it a nanosecond long.
func goesOn(last, next *profile.Stretch) bool {
	return next.Joined && next.Stack == last.Stack && next.Type == last.Type && next.Fresh == 0 &&
		next.Start == last.End && next.End-next.Start > leastJoined && last.End-last.Start > leastJoined && next.Type != profile.SampleOffCPU
}

// partText is about how much text a part becomes at most. Of new memory what is not written is not
// touched; where a slice grows by a quarter each time five times as much is.
const partText = 512 << 10

// open makes the stack before the part the open one, with nothing to write for it.
func (b *threadPart) open() {
	b.sp.step(0, 0)
	if cap(b.out) < partText {
		b.out = make([]byte, 0, partText) // slices.Grow touches all of it
	}
	b.out = b.out[:0]
	if !b.first {
		b.sp.step(b.before.Stack, 0)
	}
}

// close ends the line: out has all of it then, and may be written to again.
func (l *threadLine) close() {
	if err := l.line.Close(); l.out.err == nil {
		l.out.err = err
	}
}
