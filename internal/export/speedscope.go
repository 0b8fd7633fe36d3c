package export

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/profile"
)

// Speedscope writes speedscope JSON: one evented profile per thread, those that work
// first. Times are integer nanoseconds, so closing and opening frames meet exactly;
// speedscope refuses a file where they do not. It has no place for tracks.
//
// Behind the threads stands "All threads": every distinct stack once with its time, which is what
// the left-heavy and the sandwich view are for. It holds each stack from root to leaf, and so is
// left out where that is much: see tooDeep. Of another weight all profiles are like it.
func Speedscope(w io.Writer, p *profile.Profile, o Options) error {
	weight, err := o.oneWeight(p)
	if err != nil {
		return err
	}
	if weight >= 0 {
		return speedscopeWeighed(w, p, o, weight)
	}
	out := newBuffer(w)
	t := p.Table
	skip := t.Synthetic()
	threads := slices.Clone(o.threads(p))
	ranks := rankThreads(p)
	slices.SortStableFunc(threads, func(a, b *profile.Thread) int { return cmp.Compare(ranks[a], ranks[b]) })
	threads = slices.DeleteFunc(threads, func(th *profile.Thread) bool { return !hasStretches(th) })

	out.str(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":`)
	out.b = text.AppendJSON(out.b, o.exporter())
	out.str(`,"name":`)
	out.b = text.AppendJSON(out.b, o.title(p))
	out.str(`,"activeProfileIndex":0,"shared":{"frames":[`)
	frame, offCPU := writeFrames(out, t, skip, threads)
	out.str("]},\n" + `"profiles":[`)

	processes := map[*profile.Process]bool{}
	for _, th := range threads {
		processes[th.Process] = true
	}
	timing := p.Timing()
	heads := make([]profileHead, len(threads))
	relay.Each(len(threads), func(i int) { heads[i] = headOf(p, threads[i], timing) })
	all := newWeighedStacks(allThreads)
	all.own = sumMember
	all.plain = make([]int, t.Stacks())
	x := &eventedWriter{heads: heads, several: len(processes) > 1, frame: frameEnds(frame), offCPU: endOf(offCPU)}
	line := newThreadLine(out, t, x.part, func(b *threadPart) {
		x.check(b)
		for i := range b.list {
			st := &b.list[i]
			leaf := int32(-1)
			if st.Type == profile.SampleOffCPU {
				leaf = offCPU
			}
			all.add(weighedStack{st.Stack, leaf}, float64(st.Nanos()))
		}
	})
	for i, th := range threads {
		if !line.thread(i, th, timing) {
			break
		}
	}
	line.close()
	if deep := all.tooDeep(t); deep > 0 && len(threads) > 1 {
		o.warn(`left out: the profile "All threads", in which each stack stands from root to leaf: ` + thousands(deep) + " frames. Each thread is whole")
	} else if len(threads) > 1 {
		out.str(",")
		frames := &frameNames{p: p, skip: skip, method: frame}
		all.write(out, frames, "nanoseconds")
	}
	out.str("]")
	if err := out.repairMarks(p, &o, nil); err != nil {
		return err
	}
	out.str("}\n")
	return out.flush()
}

// An eventedWriter makes profiles of the stretches of threads.
type eventedWriter struct {
	heads   []profileHead // by thread
	several bool          // processes
	frame   []eventEnd    // by method
	offCPU  eventEnd      // that of the leaf that says that a thread was switched out
	fresh   bool          // no event of the thread is written yet
}

// part makes the text of a part: what closes and what opens, one event in a line.
func (x *eventedWriter) part(b *threadPart) {
	b.open()
	b.events = 0
	wasOff, end := b.before.Type == profile.SampleOffCPU, b.before.End
	if b.first {
		x.head(b)
		wasOff, end = false, 0
	}
	for i := range b.list {
		st := &b.list[i].Stretch
		keep := b.sp.next(st)
		x.close(b, end, wasOff)
		wasOff = st.Type == profile.SampleOffCPU
		if wasOff || keep < len(b.sp.path) {
			b.begin('O', st.Start)
		}
		for _, m := range b.sp.path[keep:] {
			b.event(&x.frame[m])
		}
		if wasOff {
			b.event(&x.offCPU)
		}
		end = st.End
	}
	if b.last {
		b.sp.step(0, 0)
		x.close(b, end, wasOff)
		b.out = append(b.out, "]}"...)
	}
}

// close closes what the last step of b closed, and the leaf of time off the CPU.
func (x *eventedWriter) close(b *threadPart, at int64, wasOff bool) {
	if !wasOff && len(b.sp.closed) == 0 {
		return
	}
	b.begin('C', at)
	if wasOff {
		b.event(&x.offCPU)
	}
	for i := len(b.sp.closed) - 1; i >= 0; i-- {
		b.event(&x.frame[b.sp.closed[i]])
	}
}

// head writes what stands before the events of a thread.
func (x *eventedWriter) head(b *threadPart) {
	if b.number > 0 {
		b.out = append(b.out, ',')
	}
	head := &x.heads[b.number]
	b.out = append(b.out, "\n"+`{"type":"evented","name":`...)
	b.out = text.AppendJSON(b.out, threadTitle(b.th, x.several))
	b.out = append(b.out, `,"tracefix":`...) // for those who read the file again, as in Chromium JSON
	b.out = append(b.out, head.holds...)
	b.out = append(b.out, `,"unit":"nanoseconds","startValue":`...)
	b.out = strconv.AppendInt(b.out, head.first, 10)
	b.out = append(b.out, `,"endValue":`...)
	b.out = strconv.AppendInt(b.out, head.last, 10)
	b.out = append(b.out, `,"events":[`...)
}

// check takes away the comma before the first event of a thread.
func (x *eventedWriter) check(b *threadPart) {
	x.fresh = x.fresh || b.first
	if x.fresh && b.events > 0 {
		b.out = slices.Delete(b.out, b.at, b.at+1)
		x.fresh = false
	}
}

// An eventBegin is what all events of one phase at one time share: at most 48 bytes.
type eventBegin struct {
	text [64]byte
	n    int
}

// An eventEnd is the end of an event: the number of its frame, and a bracket.
type eventEnd struct {
	text [15]byte
	n    uint8
}

// begin prepares what all events of one phase at one time share.
func (b *threadPart) begin(phase byte, at int64) {
	p := append(b.begins.text[:0], ",\n"+`{"type":"`...)
	p = append(p, phase)
	p = append(p, `","at":`...)
	p = strconv.AppendInt(p, at, 10)
	b.begins.n = len(append(p, `,"frame":`...))
}

// event writes an event. Its two pieces are copied with what stands behind them, which the next one
// writes over: to copy as many bytes each time takes a few instructions, where to copy as many as
// there are is a call.
func (b *threadPart) event(end *eventEnd) {
	n := len(b.out)
	if b.events++; b.events == 1 {
		b.at = n
	}
	const most = len(b.begins.text) + len(end.text)
	if cap(b.out)-n < most {
		b.out = slices.Grow(b.out, max(most, len(b.out)))
	}
	to := b.out[n : n+most]
	*(*[len(b.begins.text)]byte)(to) = b.begins.text
	*(*[len(end.text)]byte)(to[b.begins.n:]) = end.text
	b.out = b.out[:n+b.begins.n+int(end.n)]
}

// frameEnds returns the ends of the events of frames, by method.
func frameEnds(frame []int32) []eventEnd {
	list := make([]eventEnd, len(frame))
	for m, f := range frame {
		if f >= 0 {
			list[m] = endOf(f)
		}
	}
	return list
}

// endOf returns the end of the events of a frame.
func endOf(frame int32) (e eventEnd) {
	e.n = uint8(len(append(strconv.AppendInt(e.text[:0], int64(frame), 10), '}')))
	return e
}

// writeFrames writes the names of all methods that the threads' stacks have, and
// returns their numbers by method and that of the off-CPU leaf.
func writeFrames(out *buffer, t *profile.Table, skip []bool, threads []*profile.Thread) (frame []int32, offCPU int32) {
	frame = make([]int32, t.Methods())
	for i := range frame {
		frame[i] = -1
	}
	offCPU = -1
	n := int32(0)
	add := func(name string, begin profile.Place) int32 {
		if n > 0 {
			out.str(",")
		}
		out.speedscopeFrame(name, begin)
		n++
		return n - 1
	}
	for _, m := range firstMet(t, threads) {
		switch {
		case m == offCPULeaf:
			if offCPU < 0 {
				offCPU = add(profile.OffCPU, profile.Place{})
			}
		case !skip[m] && frame[m] < 0:
			frame[m] = add(t.MethodAt(m).Full(), t.BeginOf(m))
		}
	}
	return frame, offCPU
}

// offCPULeaf stands for the leaf that says that a thread was switched out, where others are methods.
const offCPULeaf = ^profile.MethodID(0)

// firstMet returns the methods that the threads' stacks have, and offCPULeaf, in the order in which they come
// first: thread after thread, sample after sample, from the root on. Some come again.
//
// Several threads are looked at at once. Who does that passes over stacks that he met in threads
// before: their methods stand in his own list, and so before those of this thread. What is kept for
// that does not grow with the threads.
func firstMet(t *profile.Table, threads []*profile.Thread) []profile.MethodID {
	type place struct {
		thread int
		method profile.MethodID
	}
	type walk struct {
		stacks []uint64 // bits: met
		listed []bool   // by method
		off    bool
		list   []place
	}
	walks := relay.Shares(len(threads), func(w *walk, i int) {
		if w.stacks == nil {
			w.stacks, w.listed = make([]uint64, t.Stacks()/64+1), make([]bool, t.Methods())
		}
		var trail []profile.MethodID
		c := threads[i].Samples.Cursor()
		var s profile.Sample
		for c.Read(&s) {
			if !s.Written() {
				continue
			}
			if s.Type == profile.SampleOffCPU && !w.off {
				w.off = true
				w.list = append(w.list, place{i, offCPULeaf})
			}
			trail = trail[:0]
			for id := s.Stack; id != 0 && w.stacks[id/64]>>(id%64)&1 == 0; id = t.Parent(id) {
				w.stacks[id/64] |= 1 << (id % 64)
				trail = append(trail, t.Method(t.Frame(id)))
			}
			for _, m := range slices.Backward(trail) {
				if !w.listed[m] {
					w.listed[m] = true
					w.list = append(w.list, place{i, m})
				}
			}
		}
	})
	var order []profile.MethodID
	for i := range threads {
		for _, w := range walks { // one of them has gone through the thread
			for len(w.list) > 0 && w.list[0].thread == i {
				order = append(order, w.list[0].method)
				w.list = w.list[1:]
			}
		}
	}
	return order
}

// speedscopeFrame writes a frame: a method, and where it begins.
func (b *buffer) speedscopeFrame(name string, begin profile.Place) {
	b.str("\n" + `{"name":`)
	b.b = text.AppendJSON(b.b, cmp.Or(name, "?"))
	if begin.File != "" {
		b.str(`,"file":`)
		b.b = text.AppendJSON(b.b, begin.File)
		b.str(`,"line":` + strconv.Itoa(begin.Line))
	}
	b.str("}")
	b.flushed()
}

func hasStretches(th *profile.Thread) bool { return th.Samples.Written() > 0 }

// A profileHead is what stands in the file before the events of a thread.
type profileHead struct {
	first, last int64  // ns: where its first stretch begins and its last ends
	holds       []byte // see appendHolds
}

func headOf(p *profile.Profile, th *profile.Thread, timing *profile.Timing) profileHead {
	first, last := timing.Span(th)
	return profileHead{first: first, last: last, holds: appendIdentity(appendHolds(nil, p, th, timing), th)}
}

// appendIdentity puts into the end of an object whose stacks a profile has: the format knows no processes and
// threads, and the name of a profile is for people.
func appendIdentity(holds []byte, th *profile.Thread) []byte {
	b := holds[:len(holds)-1]
	if pr := th.Process; pr != nil {
		b = append(b, `,"pid":`...)
		b = strconv.AppendInt(b, pr.PID, 10)
		if pr.Name != "" {
			b = append(b, `,"process":`...)
			b = text.AppendJSON(b, pr.Name)
		}
	}
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, th.TID, 10)
	if th.Name != "" {
		b = append(b, `,"thread":`...)
		b = text.AppendJSON(b, th.Name)
	}
	return append(b, '}')
}
