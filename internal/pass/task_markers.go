package pass

import "github.com/tracefix/tracefix/profile"

// A siteFinder finds the call sites at which methods are markers. A method into which one that
// writes events was compiled is one only where it waits for what that calls: at other sites, and in
// code that was compiled otherwise, it calls the other one, or has written nothing yet.
//
// A whole stack tells. What has begun and not ended stands on it, and the frames above each of
// these are those of the event's own stack: the frame below them is a marker, and any other one of
// its method is none.
type siteFinder struct {
	*resolver
	lost bool   // open lacks something that has begun
	says []int  // by frame: how many stacks say that it is a marker, less those that say the opposite
	here []bool // scratch: which of nodes are markers
}

// findSites leaves in marks the frames of markers that are no marker elsewhere only. Frames that no
// whole stack tells of stay.
func (r *resolver) findSites(p *profile.Profile, threads []*profile.Thread) {
	f := siteFinder{resolver: r, says: make([]int, len(r.marks))}
	for _, t := range threads {
		f.thread(t, breaks(p, t))
	}
	less := false
	r.told = make([]bool, len(r.marks))
	for i, n := range f.says {
		r.told[i] = n != 0
		if n < 0 {
			r.marks[i], less = false, true
		}
	}
	if less {
		r.findOuter()
	}
}

// thread takes in the events of a thread.
func (f *siteFinder) thread(t *profile.Thread, breaks []int64) {
	f.open, f.lost = f.open[:0], true
	next := t.Samples.Cursor()
	var s profile.Sample
	for m := range t.Tasks.All() {
		switch m.Kind {
		case f.end:
			f.pop(&m)
		case f.begin:
			if f.end == none {
				f.continues(m.Task)
			}
			if f.delays[m.Task] {
				continue
			}
			if !m.Stacked {
				f.open, f.lost = append(f.open, entry{task: m.Task, other: m.Other}), true
				continue
			}
			next.Seek(int(m.Sample))
			if !next.Read(&s) || s.Cut != profile.Whole {
				f.open = append(f.open, entry{task: m.Task, other: m.Other})
				continue
			}
			for ; len(breaks) > 0 && breaks[0] <= s.Time; breaks = breaks[1:] {
				f.lost = true
			}
			f.begins(&m, s.Stack)
		}
	}
}

// begins takes an event that begins something, with its whole stack.
func (f *siteFinder) begins(m *profile.TaskMark, stack profile.StackID) {
	node := f.writer(stack)
	if node == 0 {
		f.lost = true
		return
	}
	f.markersOf(stack)
	if len(f.nodes) == 1 { // nothing else has begun
		f.open, f.lost = f.open[:0], false
	}
	f.open = append(f.open, entry{task: m.Task, other: m.Other, known: true, above: f.tab.Parent(node)})
	if f.lost && f.end != none {
		return
	}
	i := len(f.open) - 1
	f.here = f.here[:0]
	for _, n := range f.nodes {
		if f.end == none && (i < 0 || !f.open[i].known) {
			i = -1
			break // of those above nothing is known
		}
		above, is := f.tab.Parent(n), false
		for ; i >= 0 && f.open[i].known && f.open[i].above == above; i-- {
			is = true
		}
		f.here = append(f.here, is)
	}
	if f.lost = i >= 0; f.lost {
		return
	}
	for i, is := range f.here {
		if is {
			f.says[f.tab.Frame(f.nodes[i])]++
		} else {
			f.says[f.tab.Frame(f.nodes[i])]--
		}
	}
}
