package spans

import (
	"sort"

	"github.com/tracefix/tracefix/profile"
)

// A slice is a complete, begin or end event of a thread that holds no stacks of
// dotnet-trace. Such threads become weighted samples: one for each stretch of time
// in which the same slices are open.
type slice struct {
	start, end int64 // ns
	frame      profile.FrameID
	name       int32
	phase      byte
}

// collect keeps an event of a thread that may be of that kind.
func (d *reading) collect(b *brief) {
	if !b.timed || d.table.holds(b.thread) != holdsUnknown {
		return
	}
	for int(b.thread) >= len(d.slices) {
		d.slices = append(d.slices, nil)
	}
	if int(b.thread) < len(d.lanes) {
		if l := d.lanes[b.thread]; l != nil && l.dotnet {
			d.slices[b.thread] = nil
			return
		}
	}
	s := slice{start: b.ns, end: b.ns, frame: d.table.id(b), name: b.name, phase: b.phase}
	if b.phase == 'X' {
		if !b.lasting || b.dur < 0 {
			return
		}
		s.end += b.dur
	}
	d.slices[b.thread] = append(d.slices[b.thread], s)
}

// weigh makes threads of the slices collected. Their times are counted from base.
func (d *reading) weigh(base int64) {
	dotnet := map[int32]*lane{}
	first := map[int32]*lane{}
	for _, l := range d.all {
		if l.dotnet {
			dotnet[l.thread] = l
		} else if first[l.thread] == nil {
			first[l.thread] = l
		}
	}
	for id, list := range d.slices {
		if len(list) == 0 || dotnet[int32(id)] != nil {
			continue
		}
		l := first[int32(id)]
		if l == nil { // only complete events
			l = &lane{thread: int32(id)}
			d.all = append(d.all, l)
		}
		list = whole(list)
		l.first = list[0].start - base
		l.t = &profile.Thread{First: l.first, Last: l.first}
		for i := range list {
			list[i].start -= base
			list[i].end -= base
			l.t.Last = max(l.t.Last, list[i].end)
		}
		d.sweep(l.t, list)
		d.Facts.Untold += l.t.Samples.Len()
		d.slices[id] = nil
	}
}

// whole joins begins and ends and returns all slices by their start, the longer one
// first, else in the order of the file.
func whole(list []slice) []slice {
	sort.SliceStable(list, func(i, k int) bool { return list[i].start < list[k].start })
	last := list[0].end
	for _, s := range list {
		last = max(last, s.end)
	}
	var open []int
	out := list[:0]
	for _, s := range list {
		switch s.phase {
		case 'B':
			s.end = last // until its end is found
			open = append(open, len(out))
			out = append(out, s)
		case 'E':
			// A named end closes the innermost begin of that name, as in Perfetto.
			for i := len(open) - 1; i >= 0 && len(open)-i < maxSearch; i-- {
				b := &out[open[i]]
				if s.name != 0 && b.name != 0 && b.name != s.name {
					continue
				}
				for _, k := range open[i:] {
					out[k].end = s.start
				}
				open = open[:i]
				break
			}
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		out = append(out, slice{start: last, end: last})
	}
	sort.SliceStable(out, func(i, k int) bool {
		a, b := &out[i], &out[k]
		return a.start < b.start || a.start == b.start && a.end > b.end
	})
	return out
}

// sweep turns slices into samples. One that ends behind its parent is cut there, which is
// counted: the model has no place for spans that cross.
func (d *reading) sweep(t *profile.Thread, list []slice) {
	type open struct {
		end   int64
		stack profile.StackID // with the slice
	}
	var stack []open
	fresh := 0 // of stack, the innermost that no sample has yet
	now := list[0].start
	until := func(at int64) {
		if len(stack) > 0 && at > now {
			t.Samples.Append(profile.Sample{Time: now, Dur: at - now, Stack: stack[len(stack)-1].stack, Fresh: uint16(min(fresh, profile.MaxFresh))})
			fresh = 0
		}
		now = max(now, at)
	}
	pop := func(at int64) {
		for len(stack) > 0 && stack[len(stack)-1].end <= at {
			until(stack[len(stack)-1].end)
			stack = stack[:len(stack)-1]
			fresh = max(fresh-1, 0)
		}
		until(at)
	}
	for _, s := range list {
		if s.end == s.start {
			continue
		}
		pop(s.start)
		o := open{end: s.end}
		if len(stack) > 0 {
			top := stack[len(stack)-1]
			if s.end > top.end {
				d.Facts.Crossing++
				d.Facts.Clipped += s.end - top.end
				o.end = top.end
			}
			o.stack = top.stack
		}
		o.stack = d.table.table.Push(o.stack, s.frame)
		stack = append(stack, o)
		fresh++
	}
	for len(stack) > 0 {
		pop(stack[len(stack)-1].end)
	}
}
