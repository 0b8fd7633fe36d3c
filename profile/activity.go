package profile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/text"
)

// Inside says of each activity of p whether s selects work for it: it, or one above it, is meant.
// nil: all work is, and none.
func (s *Selection) Inside(p *Profile) []bool {
	if len(s.Activities) == 0 && len(s.Requests) == 0 {
		return nil
	}
	m := NewActivityMatcher(s.Activities)
	keep := make([]bool, p.Activities.Len())
	for i, a := range p.Activities.All() {
		keep[i] = a.Parent >= 0 && keep[a.Parent] || m.Name(a.Provider, a.Name) || m.ID(a.ID) || a.requested(s.Requests)
		if !keep[i] && m.HasPaths() {
			keep[i] = m.Path(p.Activities.path(i))
		}
	}
	return keep
}

// requested reports whether one of the patterns means the request that a is.
func (a *Activity) requested(patterns []string) bool {
	return a.Request != 0 && MatchRequest(patterns, a.Request, a.URL)
}

// MatchRequest reports whether one of the patterns is the id of a request, or fits its URL or
// the part of that behind the host. It is what Selection.Requests means.
func MatchRequest(patterns []string, id int, url string) bool {
	target := url
	if _, rest, ok := strings.Cut(target, "://"); ok {
		target = rest[max(0, strings.IndexByte(rest, '/')):]
	}
	for _, p := range patterns {
		if n, err := strconv.Atoi(p); err == nil && n == id || url != "" && (text.Match(p, url) || text.Match(p, target)) {
			return true
		}
	}
	return false
}

// Names of the outermost frames that ByActivity gives.
const (
	NoActivity      = "(Non-Activities)"
	UnknownActivity = "(Unknown Activity)"
)

// ByActivity puts all stacks of p below frames of the activities that their threads worked
// for, the outermost first, so that time adds up by activity. Equal names are one frame:
// requests are told apart by what they ask for.
func (p *Profile) ByActivity() {
	b := byActivity{p: p, roots: spool.PagesIn[rootPage](p.Activities.Spool, rootMemory), frames: map[string]FrameID{}, stacks: map[[2]StackID]StackID{}}
	for b.roots.Len()*len(rootPage{}) < p.Activities.Len() {
		b.roots.Add()
	}
	for _, t := range p.Threads {
		c := t.Work.Cursor()
		t.Samples.Change(func(s *Sample) bool {
			s.Stack = b.under(b.root(c.At(s.Time)), s.Stack)
			return true
		})
	}
}

// A rootPage is the roots of so many activities.
type rootPage [1 << 11]StackID

const rootMemory = 2 << 20

type byActivity struct {
	p      *Profile
	roots  spool.Pages[rootPage] // by activity
	frames map[string]FrameID
	stacks map[[2]StackID]StackID
	trail  []FrameID
	around []int32 // activities, the innermost first
}

// frame returns the frame of a name.
func (b *byActivity) frame(name string) FrameID {
	f, ok := b.frames[name]
	if !ok {
		t := b.p.Table
		f = t.AddFrame(Frame{Method: t.AddMethod(Method{Name: name})})
		b.frames[name] = f
	}
	return f
}

// root returns the stack of the activities that w was for.
func (b *byActivity) root(w *Work) StackID {
	switch {
	case w == nil:
		return b.p.Table.Push(0, b.frame(UnknownActivity))
	case w.Activity < 0:
		return b.p.Table.Push(0, b.frame(NoActivity))
	}
	return b.activity(w.Activity)
}

// activity returns the stack of an activity and those around it. As many as a file says lie in each
// other.
func (b *byActivity) activity(i int32) StackID {
	up := StackID(0)
	b.around = b.around[:0]
	for ; i >= 0; i = b.p.Activities.Parent(i) {
		if up = b.roots.At(int(i) / len(rootPage{}))[int(i)%len(rootPage{})]; up != 0 {
			break
		}
		b.around = append(b.around, i)
	}
	for _, i := range slices.Backward(b.around) {
		up = b.below(up, i)
		b.roots.Mut(int(i) / len(rootPage{}))[int(i)%len(rootPage{})] = up
		b.roots.Trim()
	}
	return up
}

// below returns the stack of activity i, which lies in that of up.
func (b *byActivity) below(up StackID, i int32) StackID {
	a := b.p.Activities.At(i)
	switch name := "Activity " + a.Name; {
	case a.Name == "" && up == 0:
		return b.p.Table.Push(0, b.frame(name+b.p.Activities.Path(i)))
	case a.Name == "":
		return up
	case a.Request > 0 && a.Title != "":
		return b.p.Table.Push(up, b.frame(name+" "+a.Title))
	default:
		return b.p.Table.Push(up, b.frame(name))
	}
}

// under returns a stack with another one put below its outermost frame.
func (b *byActivity) under(root, s StackID) StackID {
	k := [2]StackID{root, s}
	if to, ok := b.stacks[k]; ok {
		return to
	}
	b.trail = b.p.Table.AppendFrames(b.trail[:0], s)
	to := b.p.Table.Join(root, b.trail)
	b.stacks[k] = to
	return to
}
