package export

import (
	"strconv"

	"github.com/tracefix/tracefix/profile"
)

// appendCuts appends which spans of a thread are stacks that were cut, and not repaired, without
// being as deep as a limit: nothing else tells it to those who read the file again. It is
//
//	,"cut":SAMPLES,"cuts":[gap,length,depth,kind, ...]
//
// with four numbers for each stretch of such stacks that have one depth: ns from the end of the
// stretch before (from 0 for the first), ns that it lasts, frames, and 0 for a stack that was cut at
// the end of the recorder's copy or 1 for one whose unwinding failed, plus twice the number of its
// outermost frames that may be garbage. A stack that is deeper by now was repaired since.
func appendCuts(b []byte, t *profile.Table, th *profile.Thread, timing *profile.Timing) []byte {
	if !cutElsewhere(th) {
		return b
	}
	skip := t.Synthetic()
	repairs := th.Repairs.Cursor()
	samples, end := 0, int64(0) // end of the last stretch that is told
	var list []byte
	var open cutStretch
	flush := func() {
		if open.to <= open.from {
			return
		}
		for _, n := range [...]int64{open.from - end, open.to - open.from, int64(open.depth), int64(open.kind)} {
			list = append(strconv.AppendInt(list, n, 10), ',')
		}
		end = open.to
	}
	c := timing.Cursor(th)
	var st profile.Stretch
	for c.Read(&st) {
		x := cutStretch{from: max(st.Start, end, open.to), kind: int(st.Suspect) * 2}
		x.to = max(st.End, x.from+1) // nothing is written without a length
		if (st.Cut == profile.CutBytes || st.Cut == profile.CutBroken) && repairs.Of(st.Index) == nil {
			x.depth = writtenDepth(t, skip, st.Stack)
		}
		if x.depth == 0 {
			flush()
			open = cutStretch{}
			continue
		}
		samples++
		if st.Cut == profile.CutBroken {
			x.kind++
		}
		if x.from == open.to && x.depth == open.depth && x.kind == open.kind {
			open.to = x.to
			continue
		}
		flush()
		open = x
	}
	flush()
	if samples == 0 {
		return b
	}
	b = append(b, `,"cut":`...)
	b = strconv.AppendInt(b, int64(samples), 10)
	b = append(b, `,"cuts":[`...)
	b = append(b, list[:max(0, len(list)-1)]...)
	return append(b, ']')
}

// cutElsewhere reports whether a sample of th was cut at another place than the limit.
func cutElsewhere(th *profile.Thread) bool {
	return th.Samples.CutBy(profile.CutBytes)+th.Samples.CutBy(profile.CutBroken) > 0
}

// A cutStretch is a time, ns, in which a thread's stacks are cut in one way.
type cutStretch struct {
	from, to    int64
	depth, kind int
}

// writtenDepth returns the number of frames of a stack that are written.
func writtenDepth(t *profile.Table, skip []bool, s profile.StackID) (n int) {
	for ; s != 0; s = t.Parent(s) {
		if !skip[t.Method(t.Frame(s))] {
			n++
		}
	}
	return n
}
