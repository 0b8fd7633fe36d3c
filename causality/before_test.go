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
		"recorded from the start":            {[]Event{start(1, 1, "Request"), stop(2, 1, "Request")}, 0},
		"one was open":                       {[]Event{start(1, 1, "Request"), stop(5, 0, "Request"), stop(6, 1, "Request")}, 5},
		"and nothing began before":           {[]Event{stop(5, 0, "Request"), start(6, 1, "Request")}, 5},
		"the last of several":                {[]Event{stop(5, 0, "Request"), start(6, 1, "Request"), start(6, 2, "Job"), stop(7, 2, "Job"), stop(9, 0, "Job"), stop(8, 1, "Request")}, 9},
		"begun before ids were on":           {[]Event{start(1, 0, "Request"), start(2, 1, "Request"), stop(3, 0, "Request"), stop(4, 1, "Request")}, 3},
		"its source follows none":            {[]Event{start(1, 1, "Request"), start(2, 0, "Read"), stop(3, 0, "Read"), stop(4, 1, "Request")}, 0},
		"there are stops only":               {[]Event{start(1, 1, "Request"), stop(3, 0, "Read")}, 0},
		"it stops in another context":        {[]Event{start(1, 1, "Host"), start(2, 2, "Request"), stop(3, 2, "Request"), stop(9, 0, "Host")}, 0},
		"one was open, another one without":  {[]Event{start(2, 1, "Request"), stop(3, 0, "Request"), stop(4, 0, "Request")}, 4},
		"two were open, another one without": {[]Event{start(2, 1, "Request"), stop(3, 0, "Request"), stop(4, 0, "Request"), stop(5, 0, "Request")}, 5},
		"and one is open at the end":         {[]Event{start(1, 1, "Request"), stop(5, 0, "Request"), stop(6, 1, "Request"), start(7, 2, "Request")}, 5},
		"activities of one id":               {[]Event{start(1, 1, "Request"), start(2, 1, "Request"), stop(3, 1, "Request"), stop(5, 0, "Request"), stop(6, 1, "Request")}, 5},
		"no ids at all":                      {[]Event{start(1, 0, "Request"), stop(3, 0, "Request")}, 0},
	} {
		var l Log
		for i := range c.events {
			l.Add(&c.events[i])
		}
		assert.Equal(t, c.want, l.Before()[7], name)
		assert.Zero(t, l.Before()[8], name)
	}
}

// What is kept of activities does not grow with a trace whose activities do not end.
func TestBeforeIsBounded(t *testing.T) {
	var b before
	for i := range 3 * mostBefore {
		e := Event{Kind: Start, Time: int64(i), ID: activity.ID{1, byte(i), byte(i >> 8 & 1)}, Provider: "P", Name: "N"}
		b.take(&e)
	}
	b.take(&Event{Kind: Stop, Time: 1 << 20, ID: activity.ID{1}, Provider: "P", Name: "N"})
	b.take(&Event{Kind: Stop, Time: 1 << 20, Provider: "P", Name: "N"})
	assert.Zero(t, b.end(), "nobody knows whose stop it is")
	assert.Empty(t, b.kinds[[2]string{"P", "N"}].open)
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
