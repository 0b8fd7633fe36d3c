package compare

import "github.com/tracefix/tracefix/profile"

// An openStack adds up what methods cost from the time at which a thread calls them to the time at
// which they are gone, not stretch by stretch: of stacks that grow by a frame at a time these would
// be the square of the frames.
type openStack struct {
	c       *costs
	whole   int64 // how long what is compared of the trace is
	thread  *profile.Thread
	known   bool // the request is
	stack   profile.StackID
	added   []profile.StackID // scratch
	methods []openMethod      // by number of names
	gone    func(*openMethod) // told of methods that are no more on the stack; nil: they are added up as totals

	// What the stretches so far add up to.
	time    float64
	squares float64
	samples int
	rest    bursts   // of those of the thread whose request is not known
	past    []bursts // rest at the end of each of its bursts but the last, since the stack was empty
}

// An openMethod is one that is on the stack, with the sums of when it came there.
type openMethod struct {
	id      int // of names
	frames  int // of it on the stack
	time    float64
	squares float64
	samples int
	burst   int     // of past, or the last one
	start   int64   // of its part of the burst
	before  float64 // time of the burst until then
}

// add takes in a stretch; known says that its request is.
func (o *openStack) add(th *profile.Thread, st *profile.Stretch, known bool) {
	if th != o.thread || known != o.known {
		o.end()
		o.thread, o.known = th, known
	}
	o.leave(st.Stack)
	ns, last := float64(st.Nanos()), o.rest
	if !known {
		o.rest.add(th, st.Start, st.End, ns, o.whole)
		if last.thread == th && last.from != o.rest.from {
			o.past = append(o.past, last)
		}
	}
	for _, id := range o.added {
		if x := o.of(id); x != nil {
			if x.frames++; x.frames == 1 {
				x.time, x.squares, x.samples = o.time, o.squares, o.samples
				x.burst, x.start, x.before = len(o.past), st.Start, o.rest.time-ns
			}
		}
	}
	o.time += ns
	o.squares += ns * ns
	o.samples++
}

// end empties the stack.
func (o *openStack) end() {
	o.leave(0)
	o.past = o.past[:0]
}

// leave takes from the stack what another one has not, and leaves what that has more in added.
func (o *openStack) leave(to profile.StackID) {
	t, from := o.c.trace.Profile.Table, o.stack
	o.stack, o.added = to, o.added[:0]
	for from != to {
		if t.Depth(from) >= t.Depth(to) {
			if x := o.of(from); x != nil {
				if x.frames--; x.frames == 0 {
					o.close(x)
				}
			}
			from = t.Parent(from)
		} else {
			o.added = append(o.added, to)
			to = t.Parent(to)
		}
	}
}

// of returns the innermost method of a stack; nil: it is no code.
func (o *openStack) of(id profile.StackID) *openMethod {
	m := o.c.innermost(id)
	if m < 0 {
		return nil
	}
	for m >= len(o.methods) {
		o.methods = append(o.methods, openMethod{id: len(o.methods)})
	}
	return &o.methods[m]
}

// close adds up what there was since a method came.
func (o *openStack) close(x *openMethod) {
	if o.gone != nil {
		o.gone(x)
		return
	}
	s := o.c.total.add(x.id)
	s.time += o.time - x.time
	s.squares += o.squares - x.squares
	s.samples += o.samples - x.samples
	if o.known {
		return
	}
	start, before := x.start, x.before
	if x.burst < len(o.past) {
		b := &o.past[x.burst]
		s.rest.add(o.thread, start, b.until, b.time-before, o.whole)
		s.rest.own += o.rest.own - (b.own + b.time*b.time) // the bursts between that and the last one
		s.rest.covered += o.rest.covered - (b.covered + b.until - b.from)
		start, before = o.rest.from, 0
	}
	s.rest.add(o.thread, start, o.rest.until, o.rest.time-before, o.whole)
}
