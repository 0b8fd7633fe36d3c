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
// Behind the threads stands "All threads": every distinct stack once with its time, which is
// what the left-heavy and the sandwich view are for. Of another weight all profiles are like it.
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
	sp := newSpanner(t, skip)
	line := newSpanLine(out, func(b []byte, g *spanGroup, spans []frameSpan) []byte {
		return appendEvented(b, g, spans, frame, offCPU)
	})
	all := newWeighedStacks(allThreads)
	heads := make([]profileHead, len(threads))
	relay.Each(len(threads), func(i int) { heads[i] = headOf(p, threads[i], timing) })
	for i, th := range threads {
		if i > 0 {
			line.str(",")
		}
		name := threadTitle(th, len(processes) > 1)
		head := &heads[i]
		line.append(func(b []byte) []byte {
			b = append(b, "\n"+`{"type":"evented","name":`...)
			b = text.AppendJSON(b, name)
			b = append(b, `,"tracefix":`...) // for those who read the file again, as in Chromium JSON
			b = append(b, head.holds...)
			b = append(b, `,"unit":"nanoseconds","startValue":`...)
			b = strconv.AppendInt(b, head.first, 10)
			b = append(b, `,"endValue":`...)
			b = strconv.AppendInt(b, head.last, 10)
			return append(b, `,"events":[`...)
		})
		line.fresh = true

		wasOff := false
		end := head.first
		closing := func(methods []profile.MethodID) {
			if !wasOff && len(methods) == 0 {
				return
			}
			line.begin('C', end, nil)
			if wasOff {
				line.span(offCPUSpan, false)
			}
			for i := len(methods) - 1; i >= 0; i-- {
				line.span(methods[i], false)
			}
		}
		sts := timing.Cursor(th)
		for st, ok := sts.Next(); ok && out.err == nil; st, ok = sts.Next() {
			keep := sp.next(&st)
			closing(sp.closed)
			wasOff = st.Type == profile.SampleOffCPU
			if wasOff || keep < len(sp.path) {
				line.begin('O', st.Start, nil)
			}
			for _, m := range sp.path[keep:] {
				line.span(m, false)
			}
			leaf := int32(-1)
			if wasOff {
				line.span(offCPUSpan, false)
				leaf = offCPU
			}
			all.add(weighedStack{st.Stack, leaf}, float64(st.Nanos()))
			end = st.End
		}
		sp.step(0, 0)
		closing(sp.closed)
		line.str("]}")
	}
	line.close()
	if len(threads) > 1 {
		out.str(",")
		frames := &frameNames{p: p, skip: skip, method: frame}
		all.write(out, frames, "nanoseconds", `"tracefix":{"sum":true},`)
	}
	out.str("]")
	if err := out.repairMarks(p, &o, nil); err != nil {
		return err
	}
	out.str("}\n")
	return out.flush()
}

// appendEvented appends the events of a group. An event is a line: kind and time, which its
// neighbours share, and the frame.
func appendEvented(b []byte, g *spanGroup, spans []frameSpan, frame []int32, offCPU int32) []byte {
	var room [64]byte
	prefix := append(room[:0], ",\n"+`{"type":"`...)
	prefix = append(prefix, g.phase)
	prefix = append(prefix, `","at":`...)
	prefix = strconv.AppendInt(prefix, g.at, 10)
	prefix = append(prefix, `,"frame":`...)
	for i, s := range spans {
		if i == 0 && g.first {
			b = append(b, prefix[1:]...)
		} else {
			b = append(b, prefix...)
		}
		f := offCPU
		if s.method != offCPUSpan {
			f = frame[s.method]
		}
		b = strconv.AppendInt(b, int64(f), 10)
		b = append(b, '}')
	}
	return b
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
	met := make([]uint64, t.Stacks()/64+1)
	var order []profile.MethodID
	for _, th := range threads {
		c := th.Samples.Cursor()
		for s, ok := c.Next(); ok; s, ok = c.Next() {
			if !s.Written() {
				continue
			}
			if s.Type == profile.SampleOffCPU && offCPU < 0 {
				offCPU = add(profile.OffCPU, profile.Place{})
			}
			order = order[:0]
			for id := s.Stack; id != 0 && met[id/64]>>(id%64)&1 == 0; id = t.Parent(id) {
				met[id/64] |= 1 << (id % 64)
				order = append(order, t.Method(t.Frame(id)))
			}
			for i := len(order) - 1; i >= 0; i-- {
				if m := order[i]; !skip[m] && frame[m] < 0 {
					frame[m] = add(t.MethodAt(m).Full(), t.BeginOf(m))
				}
			}
		}
	}
	return frame, offCPU
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
	h := profileHead{first: -1, holds: appendHolds(nil, p, th, timing)}
	for st := range timing.Stretches(th) {
		if h.first < 0 {
			h.first = st.Start
		}
		h.last = st.End
	}
	h.first = max(h.first, 0)
	return h
}
