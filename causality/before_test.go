package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/activity"
)

// TestBefore: a stop without an id is that of an activity from before ids were on, if the runtime follows those
// of its name.
func TestBefore(t *testing.T) {
	start := func(at int64, id byte, name string) Event {
		return Event{Kind: Start, Time: at, Process: 7, ID: activity.ID{id}, HasID: true, Provider: "P", Name: name}
	}
	stop := func(at int64, id byte, name string) Event {
		e := start(at, id, name)
		e.Kind = Stop
		return e
	}
	for name, c := range map[string]struct {
		events []Event
		want   int64
	}{
		"recorded from the start":  {[]Event{start(1, 1, "Request"), stop(2, 1, "Request")}, 0},
		"one was open":             {[]Event{start(1, 1, "Request"), stop(5, 0, "Request"), stop(6, 1, "Request")}, 5},
		"and nothing began before": {[]Event{stop(5, 0, "Request"), start(6, 1, "Request")}, 5},
		"the last of several":      {[]Event{stop(5, 0, "Request"), start(6, 1, "Request"), start(6, 2, "Job"), stop(9, 0, "Job"), stop(8, 1, "Request")}, 9},
		"begun before ids were on": {[]Event{start(1, 0, "Request"), start(2, 1, "Request"), stop(3, 0, "Request"), stop(4, 1, "Request")}, 3},
		"its source follows none":  {[]Event{start(1, 1, "Request"), start(2, 0, "Read"), stop(3, 0, "Read"), stop(4, 1, "Request")}, 0},
		"there are stops only":     {[]Event{start(1, 1, "Request"), stop(3, 0, "Read")}, 0},
		"no ids at all":            {[]Event{start(1, 0, "Request"), stop(3, 0, "Request")}, 0},
	} {
		var l Log
		for i := range c.events {
			l.Add(&c.events[i])
		}
		assert.Equal(t, c.want, l.Before()[7], name)
		assert.Zero(t, l.Before()[8], name)
	}
}

// TestWithoutAnIDMayBeEarlier: while activities are open that began before ids were on, an event without an id
// tells that its thread works for none that began since, and no more; behind them, that it does for nobody.
func TestWithoutAnIDMayBeEarlier(t *testing.T) {
	l := newLab(t)
	l.g.o.Before = map[uint32]int64{1: 4e6}
	l.add(Event{Kind: Other, ID: l.id(1)}, frameTop, frameUser) // 1: ids are on
	for range 2 {
		l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameRun, frameUser) // 2, 5
		l.add(Event{Kind: Other}, frameTop, frameDispatch, frameRun, frameUser)  // 3, 6
		l.add(Event{Kind: Sample}, frameTop, frameDispatch)                      // 4, 7
	}
	l.g.Finish()
	for at, want := range map[int64]bool{3e6: true, 6e6: false} {
		found := false
		for i := range l.out {
			if v := &l.out[i]; v.From < at && at <= v.To {
				assert.Equal(t, []any{true, want}, []any{v.Known, v.Earlier}, at)
				assert.Nil(t, v.Activity, at)
				found = true
			}
		}
		assert.True(t, found, at)
	}
}
