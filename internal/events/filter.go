package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A filter is a Selection that was checked and made ready.
type filter struct {
	s      profile.Selection
	guids  []nettrace.GUID
	paths  []activity.Path
	others *activity.IDSet // that are wanted as well
}

// IsActivity reports whether s is a GUID or a path, which are the activities of a Selection.
func IsActivity(s string) bool {
	_, err := newFilter(&Options{Select: profile.Selection{Activities: []string{s}}})
	return err == nil
}

func newFilter(o *Options) (*filter, error) {
	f := &filter{s: o.Select, others: o.Activities}
	for _, a := range f.s.Activities {
		if g, err := activity.ParseID(a); err == nil {
			f.guids = append(f.guids, nettrace.GUID(g))
			continue
		}
		p, err := parsePath(a)
		if err != nil {
			return nil, fmt.Errorf("activity %s: expected a GUID or a path such as //1/2", a)
		}
		f.paths = append(f.paths, p)
	}
	return f, nil
}

// parsePath reads //1/2 and what PerfView prints of other processes, /#4297/1/2/.
func parsePath(s string) (activity.Path, error) {
	pid := uint64(0)
	if rest, ok := strings.CutPrefix(s, "/#"); ok {
		n, path, ok := strings.Cut(rest, "/")
		var err error
		if pid, err = strconv.ParseUint(n, 10, 32); err != nil || !ok {
			return activity.Path{}, errors.New("no process id after /#")
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
	if !text.List(f.s.Providers).Match(ev.Metadata.Provider) {
		return false
	}
	names := []string{strconv.Itoa(ev.Metadata.EventID), name}
	if ev.Metadata.Name != "" {
		names = append(names, ev.Metadata.Name)
	}
	return text.List(f.s.Events).Match(names...)
}

// wantsActivity decides by the activity id of an event or the one it relates to.
func (f *filter) wantsActivity(ev *nettrace.Event, ids *activity.Decoder) bool {
	if f.others == nil && len(f.s.Activities) == 0 || f.other(ev.ActivityID) || f.other(ev.RelatedActivityID) {
		return true
	}
	for _, g := range f.guids {
		if ev.ActivityID == g || ev.RelatedActivityID == g {
			return true
		}
	}
	if len(f.paths) == 0 || ev.ActivityID.IsZero() {
		return false
	}
	p, ok := ids.Path(activity.ID(ev.ActivityID))
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

// other reports whether id is wanted beside those of the selection. Most events have none.
func (f *filter) other(id nettrace.GUID) bool { return !id.IsZero() && f.others.Has(activity.ID(id)) }

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
