package load

import (
	"bytes"
	"encoding/binary"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Where events of the task library hold their task and its partner, as offsets of 32 bit
// numbers in the payload; -1: nowhere.
var taskEvents = [...]struct {
	kind        profile.TaskKind
	task, other int
}{
	10: {profile.TaskAwaited, 8, 16},
	11: {profile.TaskResumes, 8, -1},
	13: {profile.TaskResumed, 0, -1},
	14: {profile.TaskCreated, 0, -1},
	15: {profile.TaskCompleted, 0, -1},
	16: {profile.TaskJoins, 0, -1},
	17: {profile.TaskBegins, 0, 4},
	18: {profile.TaskEnds, -1, 0},
}

// How the names of a delay and of an unwrapped task begin in the payload of TaskCreated, behind the task:
// those of async methods begin with "Async: ".
var (
	delayName  = []byte("T\x00a\x00s\x00k\x00.\x00D\x00e\x00l\x00a\x00y\x00\x00\x00")
	unwrapName = []byte("T\x00a\x00s\x00k\x00.\x00U\x00n\x00w\x00r\x00a\x00p\x00\x00\x00")
)

// mark keeps what an event of the task library tells. If it is stacked its stack is the
// newest sample of t.
func (t *thread) mark(ev *nettrace.Event, stacked bool) {
	id := ev.Metadata.EventID
	if id < 0 || id >= len(taskEvents) {
		return
	}
	e := &taskEvents[id]
	if e.task == 0 && e.other == 0 || len(ev.Payload) < max(e.task, e.other)+4 { // or it is none of these
		return
	}
	number := func(at int) uint32 {
		if at < 0 {
			return 0
		}
		return binary.LittleEndian.Uint32(ev.Payload[at:])
	}
	m := profile.TaskMark{
		Sample: int32(t.trace.Samples.Len()), Stacked: stacked,
		Kind: e.kind, Task: number(e.task), Other: number(e.other),
	}
	if m.Kind == profile.TaskCreated {
		switch name := ev.Payload[4:]; {
		case bytes.HasPrefix(name, delayName):
			m.Other = profile.TaskDelay
		case bytes.HasPrefix(name, unwrapName):
			m.Other = profile.TaskUnwrap
		}
	}
	if m.Stacked {
		m.Sample--
	}
	t.trace.Tasks.Append(m)
}
