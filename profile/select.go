package profile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/glob"
)

// A Selection says which part of a profile is wanted. The zero value is all of it.
type Selection struct {
	Processes []string // ids or names; * and ? are wild
	Threads   []string // ids or names
	From, To  int64    // ns since the start of the trace; To 0: to the end
	Frame     string   // samples with a frame of that name, with or without its module
	CPUOnly   bool     // samples that were on a CPU; other events stay
	// Activities are names of activities, with or without Provider/ before, or paths: samples
	// of work for them, or for what is below. * and ? are wild in names. Requests are ids or
	// URLs of HTTP requests, these with or without what is before the path.
	Activities, Requests []string
}

// IsZero reports whether s selects everything.
func (s *Selection) IsZero() bool {
	return len(s.Processes) == 0 && len(s.Threads) == 0 && s.From == 0 && s.To == 0 && s.Frame == "" && !s.CPUOnly && len(s.Activities) == 0 && len(s.Requests) == 0
}

// Select leaves in p what s selects. It comes after a repair: what is not wanted is
// evidence all the same. Samples and threads that are not wanted are hidden and not
// dropped: else a sample before them would stand for their time too, and how the sampler
// ticked would be another.
func (p *Profile) Select(s Selection) {
	if s.IsZero() {
		return
	}
	frames := newFrameMatch(p.Table, s.Frame)
	kept := s.kept(p)
	var threads []*Thread
	for _, t := range p.Threads {
		if !s.thread(t) {
			p.Hidden = append(p.Hidden, t)
			continue
		}
		s.samples(t, frames, kept)
		threads = append(threads, t)
	}
	p.Threads = threads
	p.Processes = slices.DeleteFunc(p.Processes, func(pr *Process) bool { return !s.process(pr) })
	var tracks []*Track
	for _, t := range p.Tracks {
		if t.Process != nil && !s.process(t.Process) || t.Thread != nil && !matchAny(s.Threads, t.Thread.TID, t.Thread.Name) {
			continue
		}
		if s.From != 0 || s.To != 0 || len(s.Threads) != 0 {
			all := t.Slices
			t.Slices = func(yield func(*Slice) bool) {
				for sl := range all {
					if th := sl.Thread; th != nil && !matchAny(s.Threads, th.TID, th.Name) {
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
	return s.process(t.Process) && matchAny(s.Threads, t.TID, t.Name)
}

func (s *Selection) process(p *Process) bool {
	return p == nil || matchAny(s.Processes, p.PID, p.Name)
}

func (s *Selection) overlaps(from, to int64) bool {
	return to >= s.From && (s.To == 0 || from <= s.To)
}

func (s *Selection) samples(t *Thread, frames *frameMatch, kept []bool) {
	work := t.WorkCursor()
	t.Samples.Change(func(sm *Sample) bool {
		was := *sm
		sm.Hidden = s.CPUOnly && !sm.Type.OnCPU() || !frames.match(sm.Stack) || kept != nil && !forKept(kept, work.At(sm.Time)) || !s.clip(sm)
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
	from, to := sm.Time, sm.Time+sm.Dur
	if sm.Type == SampleOffCPU {
		from, to = from-sm.Dur, from
	}
	from = max(from, s.From)
	if s.To != 0 {
		to = min(to, s.To)
	}
	if from >= to {
		return false
	}
	sm.Time, sm.Dur = from, to-from
	if sm.Type == SampleOffCPU {
		sm.Time = to
	}
	return true
}

// matchAny reports whether one of patterns is the id or matches the name; no
// patterns match everything.
func matchAny(patterns []string, id int64, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	text := strconv.FormatInt(id, 10)
	for _, p := range patterns {
		if p == text || name != "" && glob.Match(p, name) {
			return true
		}
	}
	return false
}

// A frameMatch tells which stacks hold a frame of a name. Each stack is looked at once.
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
	m := &frameMatch{table: t, methods: make([]bool, t.Methods()), known: make([]int8, t.Stacks())}
	m.known[0] = -1
	for i := range m.methods {
		me := t.MethodAt(MethodID(i))
		short, _, _ := strings.Cut(me.Name, "(")
		m.methods[i] = glob.Match(pattern, me.Full()) || glob.Match(pattern, me.Name) || glob.Match(pattern, short)
	}
	return m
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
