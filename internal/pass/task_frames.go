package pass

import (
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// frames knows the parts that methods play.
type frames struct {
	tab   *profile.Table
	roles []role            // by method
	marks []bool            // by frame: it is a marker
	told  []bool            // by frame: whole stacks told whether it is; nil: they were not asked
	outer []profile.StackID // by stack: the innermost marker in its callers
}

type role uint8

const (
	looked  role = 1 << iota // the others are set
	writing                  // it is part of writing an event
	machine                  // the body of an async method
	marker
)

func newFrames(tab *profile.Table) *frames {
	return &frames{tab: tab, roles: make([]role, tab.Methods())}
}

func (f *frames) role(m profile.MethodID) role {
	if f.roles[m]&looked == 0 {
		f.roles[m] |= looked | roleOf(nameOf(f.tab.MethodAt(m)))
	}
	return f.roles[m]
}

// roleOf is the role of a method by its name without the module.
func roleOf(name string) role {
	switch {
	case strings.HasPrefix(name, "System.Diagnostics.Tracing."), strings.HasPrefix(name, "System.Threading.Tasks.TplEventSource."):
		return writing
	case isBody(name):
		return machine
	}
	return 0
}

func (f *frames) roleAt(s profile.StackID) role { return f.role(f.tab.Method(f.tab.Frame(s))) }

// writer returns the innermost frame that is not part of writing an event.
func (f *frames) writer(s profile.StackID) profile.StackID {
	for s != 0 && f.roleAt(s)&writing != 0 {
		s = f.tab.Parent(s)
	}
	return s
}

func (f *frames) setMarker(m profile.MethodID) { f.roles[m] |= marker }

// findMarks fills marks with all frames of markers.
func (f *frames) findMarks() {
	f.marks = make([]bool, f.tab.Frames())
	for i := range f.marks {
		f.marks[i] = f.roles[f.tab.Method(profile.FrameID(i))]&marker != 0
	}
}

// isMarker reports whether a frame is a marker, and whether whole stacks told so. Frames that
// came later are none.
func (f *frames) isMarker(id profile.FrameID) (is, sure bool) {
	return int(id) < len(f.marks) && f.marks[id], int(id) < len(f.told) && f.told[id]
}

// findOuter fills outer. All stacks at once take less time than each when it is asked for: callers
// come first.
func (f *frames) findOuter() {
	f.outer = make([]profile.StackID, f.tab.Len())
	for s := 1; s < len(f.outer); s++ {
		up := f.tab.Parent(profile.StackID(s))
		if up == 0 {
			continue
		}
		if f.marks[f.tab.Frame(up)] {
			f.outer[s] = up
		} else {
			f.outer[s] = f.outer[up]
		}
	}
}

// markersOf puts the markers of s into nodes, the innermost first.
func (r *resolver) markersOf(s profile.StackID) {
	r.nodes = r.nodes[:0]
	if r.outer == nil || s == 0 {
		return
	}
	if !r.marks[r.tab.Frame(s)] {
		s = r.outer[s]
	}
	for ; s != 0; s = r.outer[s] {
		r.nodes = append(r.nodes, s)
	}
}

// delays are the tasks that end after some time.
func delays(threads []*profile.Thread) map[uint32]bool {
	out := map[uint32]bool{}
	for _, t := range threads {
		for m := range t.Tasks.All() {
			if m.Kind == profile.TaskCreated && m.Other == profile.TaskDelay {
				out[m.Task] = true
			}
		}
	}
	return out
}

// awaiters tells for each task which one awaits it. Where no event says so, an async
// method awaits the one that it called and that was left right before it.
func awaiters(f *frames, threads []*profile.Thread) map[uint32]uint32 {
	out := map[uint32]uint32{}
	told := false
	for _, t := range threads {
		for m := range t.Tasks.All() {
			if m.Kind == profile.TaskAwaited && m.Other != 0 {
				out[m.Task] = m.Other
				told = true
			}
		}
	}
	if told {
		return out
	}
	for _, t := range threads {
		var inner uint32
		var stack profile.StackID
		next := t.Samples.Cursor()
		for m := range t.Tasks.All() {
			if m.Kind != profile.TaskCreated || !m.Stacked {
				inner = 0
				continue
			}
			next.Seek(int(m.Sample))
			s, _ := next.Next()
			if inner != 0 && f.leaves(stack, s.Stack) {
				out[inner] = m.Task
			}
			inner, stack = m.Task, s.Stack
		}
	}
	return out
}

// leaves reports whether the innermost async method of outer is the one that called the
// innermost async method of inner.
func (f *frames) leaves(inner, outer profile.StackID) bool {
	inner = f.body(f.tab.Parent(f.body(inner)))
	outer = f.body(outer)
	if inner == 0 || outer == 0 || f.tab.Method(f.tab.Frame(inner)) != f.tab.Method(f.tab.Frame(outer)) {
		return false
	}
	for {
		inner, outer = f.tab.Parent(inner), f.tab.Parent(outer)
		if inner == 0 || outer == 0 {
			return true // one is cut, or they are equal
		}
		if f.tab.Frame(inner) != f.tab.Frame(outer) {
			return false
		}
	}
}

// body returns the innermost body of an async method in s.
func (f *frames) body(s profile.StackID) profile.StackID {
	for s != 0 && f.roleAt(s)&machine == 0 {
		s = f.tab.Parent(s)
	}
	return s
}
