package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestHaltsOfProcesses: each process stands still for itself.
func TestHaltsOfProcesses(t *testing.T) {
	var l Log
	for _, e := range []Event{
		{Kind: HaltAsked, Process: 1, Thread: 1, Time: 10}, {Kind: HaltBegin, Process: 1, Thread: 1, Time: 20},
		{Kind: HaltAsked, Process: 2, Thread: 2, Time: 25}, {Kind: HaltBegin, Process: 2, Thread: 2, Time: 30},
		{Kind: HaltEnd, Process: 1, Thread: 1, Time: 60}, {Kind: HaltEnd, Process: 2, Thread: 2, Time: 90},
	} {
		l.Add(&e)
	}
	got := map[uint32]int64{}
	r := l.Read()
	for e := (Event{}); r.Next(&e); {
		if e.Kind == HaltEnd {
			got[e.Process] = e.Blocked
		}
	}
	assert.Equal(t, map[uint32]int64{1: 40, 2: 60}, got)
}
