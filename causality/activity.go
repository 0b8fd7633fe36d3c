package causality

import (
	"github.com/tracefix/tracefix/activity"
)

// An Activity is what a start event began.
type Activity struct {
	ID       activity.ID
	Process  uint32
	Parent   *Activity // nil: none that is known
	Provider string
	Name     string
	Start    int64 // ns; only if Started
	Stop     int64 // ns; only if Stopped
	Started  bool  // its start event is in the trace
	Stopped  bool
	Runtime  bool // of the runtime itself

	work *work // of those that Explainer.Root chose
	gone bool  // another one has its id now
}

// open reports whether a is running at a time.
func (a *Activity) openAt(t int64) bool { return !a.Stopped || t < a.Stop }

// at returns the innermost activity from a upwards that was running at a time and is not
// the runtime's own; nil if there is none.
func (a *Activity) at(t int64) *Activity {
	for a != nil && (a.Runtime || !a.openAt(t)) {
		a = a.Parent
	}
	return a
}

// servedAt returns what a thread in the flow of a worked for: what at returns, and behind
// the end of all of them still the innermost.
func (a *Activity) servedAt(t int64) *Activity {
	if live := a.at(t); live != nil {
		return live
	}
	for a != nil && a.Runtime {
		a = a.Parent
	}
	return a
}

// Below reports whether a is other or lies below it.
func (a *Activity) Below(other *Activity) bool {
	for ; a != nil; a = a.Parent {
		if a == other {
			return true
		}
	}
	return false
}

type activityKey struct {
	process uint32
	id      activity.ID
}

// activities finds activities by id.
type activities struct {
	byID  map[activityKey]*Activity
	gone  []*Activity // stopped, in that order: forgotten after a while
	lossy map[uint32]bool
	keep  int64 // ns for which those stopped are known
}

// start adds the activity that e starts.
func (as *activities) start(e *Event) *Activity {
	a := &Activity{
		ID: e.ID, Process: e.Process, Provider: e.Provider, Name: e.Name, Start: e.Time, Started: true, Runtime: e.Runtime,
	}
	if !e.Related.IsZero() {
		a.Parent = as.find(e.Process, e.Related)
	}
	if a.Parent == nil {
		a.Parent = as.prefix(e.Process, e.ID)
	}
	k := activityKey{e.Process, e.ID}
	if old := as.byID[k]; old != nil {
		old.gone = true
	}
	as.byID[k] = a
	return a
}

// find returns the newest activity of an id, which it adds if the trace began inside.
func (as *activities) find(process uint32, id activity.ID) *Activity {
	if id.IsZero() {
		return nil
	}
	k := activityKey{process, id}
	a := as.byID[k]
	if a == nil {
		a = &Activity{ID: id, Process: process}
		a.Parent = as.prefix(process, id)
		as.byID[k] = a
	}
	return a
}

// prefix returns the activity of the longest known path above that of id.
func (as *activities) prefix(process uint32, id activity.ID) *Activity {
	p, ok := activity.Decode(id, as.lossy[process])
	if !ok {
		return nil
	}
	if p.ProvesLossy() {
		as.lossy[process] = true
	}
	for n := p.Len() - 1; n > 1; n-- {
		above := activity.NewPath(p.Numbers()[:n]...).WithProcess(p.Process())
		for _, enc := range [...]activity.Encoder{activity.EncoderNew, activity.EncoderOld} {
			if up, err := activity.Encode(above, enc); err == nil {
				if a := as.byID[activityKey{process, up}]; a != nil {
					return a
				}
			}
		}
	}
	return nil
}

// stop ends an activity.
func (as *activities) stop(a *Activity, t int64) {
	if a.Stopped {
		return
	}
	a.Stop, a.Stopped = t, true
	as.gone = append(as.gone, a)
	for len(as.gone) > 0 && as.gone[0].Stop < t-as.keep {
		g := as.gone[0]
		as.gone[0] = nil
		as.gone = as.gone[1:]
		if !g.gone {
			delete(as.byID, activityKey{g.Process, g.ID})
		}
	}
}
