package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/glob"
	"github.com/tracefix/tracefix/nettrace"
)

// Select says which events are wanted. The zero value is all of them. Lists are
// alternatives; all kinds of conditions must hold.
type Select struct {
	Providers  []string // names; * and ? are wild, letter case does not matter
	Events     []string // ids, or names such as Request/Start or RequestStart, likewise
	Threads    []string // OS thread ids, or names, likewise
	Processes  []string // process ids, or names, likewise
	Activities []string // GUIDs, or paths such as //1/2 with all that is below
	// From and To limit the time since the start of the trace; To 0 is no limit.
	From, To time.Duration
}

// A filter is a Select that was checked and made ready.
type filter struct {
	s          Select
	threads    ids
	processes  ids
	guids      []nettrace.GUID
	paths      []activity.Path
	from, to   int64
	inTime     bool // from or to is set
	byActivity bool
}

// ids are numbers and patterns that a user gave.
type ids struct {
	all      bool
	numbers  []int64
	patterns []string
}

func parseIDs(list []string) ids {
	r := ids{all: len(list) == 0}
	for _, s := range list {
		if n, err := strconv.ParseInt(s, 0, 64); err == nil {
			r.numbers = append(r.numbers, n)
		} else {
			r.patterns = append(r.patterns, s)
		}
	}
	return r
}

func (r *ids) holds(id int64, name string) bool {
	if r.all {
		return true
	}
	for _, n := range r.numbers {
		if n == id {
			return true
		}
	}
	return name != "" && matches(r.patterns, name)
}

// newFilter checks s. Its errors are mistakes of the user.
// Check refuses what no event can be.
func (s Select) Check() error {
	_, err := newFilter(s)
	return err
}

func newFilter(s Select) (*filter, error) {
	f := &filter{s: s, threads: parseIDs(s.Threads), processes: parseIDs(s.Processes), from: int64(s.From), to: int64(s.To)}
	f.inTime = f.from != 0 || f.to != 0
	if f.to != 0 && f.to <= f.from {
		return nil, fmt.Errorf("--to %v: is not after --from %v", s.To, s.From)
	}
	for _, a := range s.Activities {
		if g, err := activity.ParseID(strings.ToLower(strings.Trim(a, "{}"))); err == nil {
			f.guids = append(f.guids, nettrace.GUID(g))
			continue
		}
		p, err := parsePath(a)
		if err != nil {
			return nil, fmt.Errorf("--activity %s: expected a GUID or a path such as //1/2", a)
		}
		f.paths = append(f.paths, p)
	}
	f.byActivity = len(s.Activities) > 0
	return f, nil
}

// parsePath reads //1/2 and what PerfView prints of other processes, /#4297/1/2/.
func parsePath(s string) (activity.Path, error) {
	pid := uint64(0)
	if rest, ok := strings.CutPrefix(s, "/#"); ok {
		n, path, ok := strings.Cut(rest, "/")
		var err error
		if pid, err = strconv.ParseUint(n, 10, 32); err != nil || !ok {
			return activity.Path{}, errors.New("no process id behind /#")
		}
		s = path
	} else if !strings.Contains(s, "/") {
		return activity.Path{}, errors.New("no path")
	}
	p, err := activity.ParsePath(s)
	if err == nil && p.Len() == 0 {
		err = errors.New("empty path")
	}
	return p.WithProcess(uint32(pid)), err
}

// wantsKind decides what depends on the type of the event only.
func (f *filter) wantsKind(ev *nettrace.Event, name string) bool {
	if len(f.s.Providers) > 0 && !matches(f.s.Providers, ev.Metadata.Provider) {
		return false
	}
	if len(f.s.Events) == 0 {
		return true
	}
	id := strconv.Itoa(ev.Metadata.EventID)
	for _, e := range f.s.Events {
		if e == id || glob.Match(e, name) || ev.Metadata.Name != "" && glob.Match(e, ev.Metadata.Name) {
			return true
		}
	}
	return false
}

// wantsActivity decides by the activity id of an event or the one it relates to.
func (f *filter) wantsActivity(ev *nettrace.Event, paths *pathNames) bool {
	for _, g := range f.guids {
		if ev.ActivityID == g || ev.RelatedActivityID == g {
			return true
		}
	}
	if len(f.paths) == 0 || ev.ActivityID.IsZero() {
		return false
	}
	p, ok := paths.decode(ev.ActivityID)
	if !ok {
		return false
	}
	for i := range f.paths {
		if below(&p, &f.paths[i]) {
			return true
		}
	}
	return false
}

// below reports whether p is the activity root or one within it.
func below(p, root *activity.Path) bool {
	if root.Process() != 0 && root.Process() != p.Process() || p.Len() < root.Len() {
		return false
	}
	for i, n := range root.Numbers() {
		if p.At(i) != n {
			return false
		}
	}
	kind, number := root.Overflow()
	if kind == 0 {
		return true
	}
	k, n := p.Overflow()
	return p.Len() == root.Len() && k == kind && n == number
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if glob.Match(p, name) {
			return true
		}
	}
	return false
}
