package profile

import (
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// A Selection says which part of a trace is wanted: of a profile, or of its events,
// activities or requests. Each looks at what it has. The zero value is all of it.
//
// Lists are alternatives, and all conditions must hold. In names * stands for any text and ?
// for any character; letter case does not matter.
type Selection struct {
	Processes []string // ids or names
	Threads   []string // ids or names
	From, To  int64    // ns since the start of the trace; To 0: to the end
	Frame     string   // samples with a frame of that name, with or without its module
	CPUOnly   bool     // samples that were on a CPU; other events stay

	// Activities are names, with or without Provider/ before, GUIDs, or paths such as //1/2, with
	// all that is below.
	Activities []string
	Requests   []string // of HTTP: ids or URLs, these with or without what is before the path
	Hosts      []string // of requests: NAME, NAME:PORT or SCHEME://NAME:PORT
	Providers  []string // names of providers, event sources or meters
	Events     []string // ids, or names such as Request/Start or RequestStart
	Names      []string // of activities or counters
}

// IsZero reports whether s selects everything.
func (s *Selection) IsZero() bool {
	return !s.ofSamples() && len(s.Hosts) == 0 && len(s.Providers) == 0 && len(s.Events) == 0 && len(s.Names) == 0
}

// ofSamples reports whether s selects among the samples of a profile.
func (s *Selection) ofSamples() bool {
	return len(s.Processes) != 0 || len(s.Threads) != 0 || s.From != 0 || s.To != 0 || s.Frame != "" || s.CPUOnly || s.OfWork()
}

// OfWork reports whether s selects by what threads worked for.
func (s *Selection) OfWork() bool {
	return len(s.Activities) != 0 || len(s.Requests) != 0
}

// Select leaves in p what s selects. It comes after a repair: what is not wanted is
// evidence all the same. Samples and threads that are not wanted are hidden and not
// dropped: else a sample before them would stand for their time too, and how the sampler
// ticked would be another.
func (p *Profile) Select(s Selection) {
	if !s.ofSamples() {
		return
	}
	p.Meta.From = max(p.Meta.From, s.From)
	if s.To != 0 && (p.Meta.To == 0 || s.To < p.Meta.To) {
		p.Meta.To = s.To
	}
	frames := newFrameMatch(p.Table, s.Frame)
	kept := s.Inside(p)
	types := p.typing()
	var threads []*Thread
	for _, t := range p.Threads {
		if !s.thread(t) {
			p.Hidden = append(p.Hidden, t)
			continue
		}
		s.samples(t, frames, kept, types)
		if s.From != 0 || s.To != 0 {
			t.Work.keep(func(w *Work) bool { return s.overlaps(w.From, w.To) })
		}
		threads = append(threads, t)
	}
	p.Threads = threads
	p.Processes = slices.DeleteFunc(p.Processes, func(pr *Process) bool { return !s.process(pr) })
	var tracks []*Track
	for _, t := range p.Tracks {
		if t.Process != nil && !s.process(t.Process) || t.Thread != nil && !text.List(s.Threads).MatchID(t.Thread.TID, t.Thread.Name) {
			continue
		}
		if t.Slices != nil && (s.From != 0 || s.To != 0 || len(s.Threads) != 0) {
			all := t.Slices
			t.Slices = func(yield func(*Slice) bool) {
				for sl := range all {
					if th := sl.Thread; th != nil && !text.List(s.Threads).MatchID(th.TID, th.Name) {
						continue
					}
					if s.overlaps(sl.Start, sl.Start+sl.Dur) && !yield(sl) {
						return
					}
				}
			}
		}
		tracks = append(tracks, t)
	}
	p.Tracks = tracks
	p.Losses = slices.DeleteFunc(p.Losses, func(l Loss) bool {
		return l.Thread != nil && !s.thread(l.Thread) || !s.overlaps(l.From, l.To)
	})
}

func (s *Selection) thread(t *Thread) bool {
	return s.process(t.Process) && text.List(s.Threads).MatchID(t.TID, t.Name)
}

func (s *Selection) process(p *Process) bool {
	return p == nil || text.List(s.Processes).MatchID(p.PID, p.Name)
}

func (s *Selection) overlaps(from, to int64) bool {
	return to >= s.From && (s.To == 0 || from <= s.To)
}

func (s *Selection) samples(t *Thread, frames *frameMatch, kept []bool, types *typing) {
	work := t.Work.Cursor()
	t.Samples.Change(func(sm *Sample) bool {
		was := *sm
		sm.Hidden = sm.Hidden || s.CPUOnly && sm.Type != SampleEvent && !types.typeOf(t, sm).OnCPU() || !frames.match(sm.Stack) || kept != nil && !forKept(kept, work.At(sm.Time)) || !s.clip(sm)
		return *sm != was
	})
}

// forKept reports whether work was for an activity that is kept.
func forKept(kept []bool, w *Work) bool { return w != nil && w.Activity >= 0 && kept[w.Activity] }

// clip reports whether sm is in the time that s selects. Of a sample that knows how long it
// lasted the part in that time stays; of any other its instant counts.
func (s *Selection) clip(sm *Sample) bool {
	if sm.Dur <= 0 {
		return sm.Time >= s.From && (s.To == 0 || sm.Time < s.To)
	}
	from, to := max(sm.Time, s.From), sm.Time+sm.Dur
	if s.To != 0 {
		to = min(to, s.To)
	}
	if from >= to {
		return false
	}
	sm.Time, sm.Dur = from, to-from
	return true
}

// A frameMatch says which stacks hold a frame of a name. Each stack is looked at once.
type frameMatch struct {
	table   *Table
	methods []bool
	known   []int8 // by stack: 0 not looked at, 1 holds it, -1 does not
	trail   []StackID
}

func newFrameMatch(t *Table, pattern string) *frameMatch {
	if pattern == "" {
		return nil
	}
	m := &frameMatch{table: t, methods: methodsNamed(t, pattern), known: make([]int8, t.Stacks())}
	m.known[0] = -1
	return m
}

// methodsNamed marks the methods of that name, with or without module and arguments.
func methodsNamed(t *Table, pattern string) []bool {
	named := make([]bool, t.Methods())
	wanted := text.List{pattern}
	for i := range named {
		me := t.MethodAt(MethodID(i))
		short, _, _ := strings.Cut(me.Name, "(")
		named[i] = wanted.Match(me.Full(), me.Name, short)
	}
	return named
}

func (m *frameMatch) match(s StackID) bool {
	if m == nil {
		return true
	}
	m.trail = m.trail[:0]
	for m.known[s] == 0 {
		if m.methods[m.table.Method(m.table.Frame(s))] {
			m.known[s] = 1
			break
		}
		m.trail = append(m.trail, s)
		s = m.table.Parent(s)
	}
	for _, t := range m.trail {
		m.known[t] = m.known[s]
	}
	return m.known[s] > 0
}
