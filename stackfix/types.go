package stackfix

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

type (
	// StackID names a stack of a [stacks.Tree]. 0 is the empty stack.
	StackID = stacks.StackID
	// FrameID names a frame: what two stacks may share. A recording with
	// instruction pointers has one for each pair of method and address (for all
	// but the innermost frame the address the callee returns to), a Chromium file
	// one for each name.
	FrameID = stacks.FrameID
	// MethodID names the method of a frame.
	MethodID = uint32
)

// Frames answers what Fix must know of a frame.
type Frames interface {
	// Method returns the method of f: two frames with one method are two call
	// sites in it. What was compiled anew is the same method still. Where frames
	// are names it returns f itself. It is asked about every number up to the
	// largest frame of the Tree.
	Method(f FrameID) MethodID
}

// A Cut says why a stack misses its root frames.
type Cut uint8

// Kinds of cuts.
const (
	Whole  Cut = iota // nothing is missing
	Depth             // at a limit of frames: EventPipe's 100
	Bytes             // at the end of a copy of the stack: the 4 KiB of collect-linux
	Broken            // where unwinding failed
)

// String returns "", "depth", "bytes" or "broken".
func (c Cut) String() string {
	if int(c) < len(cutNames) {
		return cutNames[c]
	}
	return fmt.Sprintf("Cut(%d)", uint8(c))
}

var cutNames = [...]string{"", "depth", "bytes", "broken"}

// A Sample is one look at the stack of a thread.
type Sample struct {
	Time  int64 // ns
	Stack StackID
	// Cut of a stack that is as deep as the limit is Depth, whether it is cut or
	// complete: Fix finds out.
	Cut Cut
	// Suspect is the number of outermost frames that may be garbage. A recorder
	// that copies bytes reads past the last real frame: the outermost frame it
	// tells is then wrong in four of ten stacks, the second in four of a thousand,
	// the third never. Fix keeps suspects that other samples confirm and drops
	// the others. A front drops by itself what cannot be code at all, and then
	// has one suspect less.
	Suspect uint8
	// Evidence marks the stack of another event: an exception, an allocation. It is
	// evidence like any other sample, and is repaired too unless Options.SamplesOnly says otherwise.
	Evidence bool
	// Effort is the logarithm of how much work the whole stack was for the recorder, by how long it
	// took: see [Work]. 0: it is not known. That of Bytes and Broken, which end a walk, is not asked for.
	Effort float32
}

// A Thread is one thread with its samples.
type Thread struct {
	// Process tells threads of different processes apart.
	Process uint32
	// Samples yields the samples from number from on, 0 being the first, in order of
	// time; see [Slice]. Fix reads them more than once, parts of them mostly, and keeps
	// none; they must be the same each time. Where Options.Each does so, several read them at once.
	Samples func(from int) iter.Seq[Sample]
	// Breaks are times in ns, ascending, at which what was true before says
	// nothing about what comes after: events were lost, the thread id went to
	// another thread. A sample at the very time of a break comes after it.
	Breaks []int64
	// Spread is the standard deviation of the efforts of its samples from the true ones.
	Spread float32
}

// Slice is the Samples of a Thread whose samples are a list.
func Slice(samples []Sample) func(from int) iter.Seq[Sample] {
	return func(from int) iter.Seq[Sample] { return slices.Values(samples[from:]) }
}

// How says how missing frames are known.
type How uint8

// The kinds of evidence, and the two answers that restore nothing.
const (
	// Complete: the stack only looked cut: it is as deep as the limit and begins
	// where the whole stacks of this trace begin. It is left alone.
	Complete How = iota
	// BothSides: the known stacks before and after it agree.
	BothSides
	// Before and After: a whole or repaired stack of the same thread.
	Before
	After
	// Chain: through other cut stacks of the same thread that overlap it.
	Chain
	// Caller: callers that never vary in this trace.
	Caller
	// Elsewhere: whole stacks of other threads or other times.
	Elsewhere
	// Bridge: the missing frames are not known; one frame stands for them.
	Bridge
)

var howNames = [...]string{"complete", "both-sides", "before", "after", "chain", "caller", "elsewhere", "bridge"}

// String returns the word that reports use: "both-sides", "bridge", ...
func (h How) String() string {
	if int(h) < len(howNames) {
		return howNames[h]
	}
	return fmt.Sprintf("How(%d)", uint8(h))
}

// A Repair is what Fix found out about a cut sample, and about those that follow it
// with the same stack.
type Repair struct {
	Index int32   // of the first sample among those of the thread, from 0
	N     int32   // samples in a row, at least 1
	Stack StackID // the whole stack; for Bridge: base frames that are known, the bridge, frames
	// that are known to call the recorded ones, the recorded frames
	// Restored is the number of frames put back, for Bridge those before the bridge and
	// behind it; Dropped that of suspect frames taken away.
	Restored int32
	// Above is how many of the frames put back stand behind the bridge, right above those
	// that were recorded; 0 for all but Bridge.
	Above   int32
	Dropped uint8
	How     How
	// Confidence is the measured probability that Stack is right, 0 to 1; 0 for
	// Bridge, whose stack is not known.
	Confidence float32
	// BaseConfidence and AboveConfidence are those of the frames before the bridge and of
	// those behind it; 0 where there are none.
	BaseConfidence, AboveConfidence float32
}

// Options for Fix. The zero value works but for Bridge.
type Options struct {
	// Bridge is the frame that stands for frames that cannot be known. A stack
	// that holds it already was repaired before and is left alone.
	Bridge FrameID
	// MinConfidence is the confidence that a repair needs; anything less becomes
	// a bridge. 0 means DefaultConfidence; to take every answer, pass a negative number.
	MinConfidence float64
	// SamplesOnly leaves out the repairs of samples that are marked as Evidence, but for those in a
	// row with others of the same stack. They are evidence all the same, and the other repairs are
	// the same ones.
	SamplesOnly bool
	// Found takes repairs of a thread in place of Result.Repairs, if it is set: each time some
	// more, in the order of the samples. The list is used again after the call.
	Found func(thread int, repairs []Repair)
	// Each calls f for 0 to n-1, for several at once if it likes, and returns when all are done.
	// nil calls one after the other. The result is the same.
	Each func(n int, f func(i int))
	// Workers is how many calls of f run at once at most. What is worth it for several only is not
	// done for one, which 0 means, too.
	Workers int
}

// DefaultConfidence is what Options.MinConfidence is unless set.
const DefaultConfidence = 0.9

// A Result holds the repairs of every thread, in the order of the threads, and per thread, in the
// order of the samples, every sample that has a Cut in one of them, but for those that
// Options.SamplesOnly leaves out; none where Options.Found takes them.
type Result struct {
	Repairs [][]Repair
	Stats   Stats
}

// Stats counts what Fix did.
type Stats struct {
	Samples  int                 // all
	Cut      int                 // those with a Cut, Complete ones left out
	How      [Bridge + 1]int     // repairs of each kind
	Restored int64               // frames put back
	Dropped  int64               // suspect frames taken away
	Expected [Bridge + 1]float64 // sum of confidences of each kind: expected right answers
}

// Names is the Frames of a recording whose frames are known by name only: every
// frame is its own method.
type Names struct{}

// Method returns f.
func (Names) Method(f FrameID) MethodID { return f }
