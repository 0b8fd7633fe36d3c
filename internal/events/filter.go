package events

import (
	"fmt"
	"strconv"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A filter is a Selection that was checked and made ready.
type filter struct {
	s       profile.Selection
	matcher *profile.ActivityMatcher
	others  *activity.IDSet // that are wanted as well
}

func newFilter(o *Options) (*filter, error) {
	for _, a := range o.Select.Activities {
		if !profile.IsActivityID(a) {
			return nil, fmt.Errorf("activity %s: expected a GUID or a path such as //1/2", a)
		}
	}
	return &filter{s: o.Select, matcher: profile.NewActivityMatcher(o.Select.Activities), others: o.Activities}, nil
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
func (f *filter) wantsActivity(ev *nettrace.Event, paths *pathNames) bool {
	if f.others == nil && len(f.s.Activities) == 0 || f.other(ev, ev.ActivityID) || f.other(ev, ev.RelatedActivityID) {
		return true
	}
	if f.matcher.ID(ev.ActivityID) || f.matcher.ID(ev.RelatedActivityID) {
		return true
	}
	if !f.matcher.HasPaths() || ev.ActivityID.IsZero() {
		return false
	}
	p := paths.of(ev.ActivityID)
	return len(p.numbers) > 0 && f.matcher.Path(p.process, string(p.numbers))
}

// other reports whether an id of an event is wanted beside those of the selection. Most events have none.
func (f *filter) other(ev *nettrace.Event, id nettrace.GUID) bool {
	return !id.IsZero() && f.others.Has(uint32(ev.ProcessID), activity.ID(id))
}
