package spans

// pairs finds what belongs together in the threads with a repair: a span's begin and end must
// agree in their category, or readers lose it.
type pairs struct {
	wanted []*openSpans // by chromium.Event.Thread; nil for a thread without a repair
	marks  []int64
}

// openSpans are those of a thread, as they will be written.
type openSpans struct {
	spans []openSpan
	count map[int32]int // by name, once it was asked for
}

type openSpan struct {
	name int32
	at   int64 // where its begin is; -1 for one that was put in

	joined bool // with another one, which may have another category
}

// event takes in a recorded event at a place and what is written around it.
func (p *pairs) event(t *frameTable, thread int32, phase byte, name int32, at int64, ed *edit) {
	if int(thread) >= len(p.wanted) || p.wanted[thread] == nil {
		return
	}
	o := p.wanted[thread]
	inserts := func(list []insert) {
		for _, x := range list {
			if x.phase == 'B' {
				o.begin(t.nameOf(x.frame), -1)
			} else {
				p.end(o, t.nameOf(x.frame), -1, true)
			}
		}
	}
	inserts(ed.before)
	switch {
	case ed.drop:
		if phase == 'B' && t.mixed {
			o.join(name)
		}
	case phase == 'B':
		o.begin(name, at)
	case phase == 'E':
		p.end(o, name, at, ed.early)
	}
	inserts(ed.after)
}

func (o *openSpans) begin(name int32, at int64) {
	o.spans = append(o.spans, openSpan{name: name, at: at})
	if o.count != nil {
		o.count[name]++
	}
}

// join takes in a begin that was left out: one of the open spans of the name goes on. Which one
// does not matter.
func (o *openSpans) join(name int32) {
	for i := range o.spans {
		if s := &o.spans[i]; s.name == name {
			s.joined = true
		}
	}
}

// end takes in an end at a place, -1 for one that was put in. moved says that it gets the mark
// in any case.
func (p *pairs) end(o *openSpans, name int32, at int64, moved bool) {
	last := len(o.spans) - 1
	if last < 0 {
		return
	}
	if name != 0 && o.spans[last].name != name && !o.has(name) {
		return
	}
	for {
		s := o.spans[last]
		o.spans = o.spans[:last]
		if o.count != nil {
			o.count[s.name]--
		}
		if last--; name != 0 && s.name != name {
			continue
		}
		if moved || s.at < 0 || s.joined {
			for _, at := range []int64{s.at, at} {
				if at >= 0 {
					p.marks = append(p.marks, at)
				}
			}
		}
		return
	}
}

// has reports whether a span of a name is open. Mostly the innermost one ends, and nobody asks.
func (o *openSpans) has(name int32) bool {
	if o.count == nil {
		o.count = map[int32]int{}
		for _, s := range o.spans {
			o.count[s.name]++
		}
	}
	return o.count[name] > 0
}

// pairSorted does with a thread that is not in order of time what event does with others.
func (rw *rewriter) pairSorted(s *sorter) {
	all := rw.pairs.wanted[s.lane.thread]
	if all == nil {
		return
	}
	for i := range s.events {
		e := &s.events[i]
		ed := rw.edits[e.off]
		if ed == nil {
			ed = &edit{}
		}
		rw.pairs.event(rw.table, s.lane.thread, e.phase, e.name, e.off, ed)
	}
	rw.pairs.wanted[s.lane.thread] = nil
}
