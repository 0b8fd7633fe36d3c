package causality

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/nettrace"
)

// What an event tells is read from its payload; one that is too short tells nothing.
func TestDecode(t *testing.T) {
	words := func(l ...uint32) (b []byte) {
		for _, v := range l {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	const tasks, framework, runtime = nettrace.ProviderTasks, nettrace.ProviderFramework, nettrace.ProviderRuntime
	for _, c := range []struct {
		provider string
		id       int
		payload  []byte
		want     Event
	}{
		{tasks, 7, words(1, 2, 3, 4, 5), Event{Kind: TaskReady, Task: 3, HasID: true}},
		{tasks, 7, words(1, 2, 3, 4, 0x200, 1), Event{Kind: TaskContinues, Task: 3, HasID: true}},
		{tasks, 7, words(1, 2), Event{Kind: Other, HasID: true}},
		{tasks, 8, words(1, 2, 3), Event{Kind: WorkBegin, Task: 3, HasID: true}},
		{tasks, 9, words(1, 2, 3, 1), Event{Kind: WorkEnd, Task: 3, HasID: true}},
		{tasks, 10, words(1, 2, 3, 1, 5), Event{Kind: WaitBegin, Task: 3, Next: 5, HasID: true}},
		{tasks, 10, words(1, 2, 3, 2, 5), Event{Kind: TaskAwait, Task: 3, Next: 5, HasID: true}},
		{tasks, 10, words(1, 2, 3, 2), Event{Kind: Other, HasID: true}},
		{tasks, 11, words(1, 2, 3), Event{Kind: WaitEnd, Task: 3, HasID: true}},
		{tasks, 12, words(1, 2, 3), Event{Kind: TaskYields, Task: 3, HasID: true}},
		{tasks, 14, words(3), Event{Kind: TaskMade, Task: 3, HasID: true}},
		{tasks, 17, words(3, 2), Event{Kind: WorkBegin, Task: 3, HasID: true}},
		{tasks, 17, words(3, 1), Event{Kind: StepBegin, Task: 3, HasID: true}},
		{tasks, 17, words(3), Event{Kind: Other, HasID: true}},
		{tasks, 18, words(2), Event{Kind: WorkEnd, HasID: true}},
		{tasks, 18, words(1), Event{Kind: StepEnd, HasID: true}},
		{tasks, 18, nil, Event{Kind: Other, HasID: true}},
		{tasks, 19, words(3), Event{Kind: TaskTaken, Task: 3, HasID: true}},
		{tasks, 99, words(1, 2, 3), Event{Kind: Other, HasID: true}},
		{framework, 30, words(7, 1), Event{Kind: Enqueue, Task: 1<<32 + 7, HasID: true}},
		{framework, 31, words(7, 1), Event{Kind: Dequeue, Task: 1<<32 + 7, HasID: true}},
		{framework, 31, words(7), Event{Kind: Other, HasID: true}},
		{runtime, 9, words(1, 0), Event{Kind: PauseBegin, HasID: true}},
		{runtime, 9, words(6, 0), Event{Kind: PauseBegin, HasID: true}},
		{runtime, 9, words(2, 0), Event{Kind: HaltAsked, HasID: true}},
		{runtime, 8, nil, Event{Kind: HaltBegin, HasID: true}},
		{runtime, 3, nil, Event{Kind: HaltEnd, HasID: true}},
		{runtime, 7, nil, Event{Kind: PauseEnd, HasID: true}},
		{runtime, 50, nil, Event{Kind: Idle, HasID: true}},
		{runtime, 55, words(0, 0, 4, 6), Event{Kind: Adjust, Task: 4, Next: 6}},
		{runtime, 55, words(0, 0, 4), Event{Kind: Other}},
		{runtime, 54, nil, Event{Kind: Between}},
		{runtime, 56, nil, Event{Kind: Between}},
		{runtime, 70, words(7, 1, 0), Event{Kind: ThreadMade, Task: 1<<32 + 7, HasID: true}},
		{runtime, 71, words(7, 1, 0), Event{Kind: ThreadBegins, Task: 1<<32 + 7}},
		{runtime, 71, words(7), Event{Kind: Other, HasID: true}},
		{runtime, 81, nil, Event{Kind: LockBegin, HasID: true}},
		{runtime, 91, nil, Event{Kind: LockEnd, HasID: true}},
		{runtime, 290, nil, Event{Kind: Start, Runtime: true, Name: "AssemblyLoad", Provider: runtime, HasID: true}},
		{runtime, 291, nil, Event{Kind: Stop, Runtime: true, Name: "AssemblyLoad", Provider: runtime, HasID: true}},
		{runtime, 301, nil, Event{Kind: HandleBegin, HasID: true}},
		{runtime, 302, nil, Event{Kind: HandleEnd, HasID: true}},
		// Rundown has the ids of whatever thread asked for it.
		{nettrace.ProviderRuntime + "Rundown", 144, nil, Event{Kind: Other}},
		{"Microsoft-DotNETCore-EventPipe", 1, nil, Event{Kind: Other}},
	} {
		var e Event
		Decode(&e, &nettrace.Event{Metadata: &nettrace.Metadata{Provider: c.provider, EventID: c.id}, Payload: c.payload})
		assert.Equal(t, c.want, e, "%s %d %x", c.provider, c.id, c.payload)
	}
}

func TestDecodeActivities(t *testing.T) {
	id, related := nettrace.GUID{1}, nettrace.GUID{2}
	for _, c := range []struct {
		name   string
		opcode activity.Opcode
		want   Event
	}{
		{"RequestStart", activity.Start, Event{Kind: Start, Provider: "P", Name: "Request"}},
		{"Request", activity.Start, Event{Kind: Start, Provider: "P", Name: "Request", Unsuffixed: true}}, // EventName puts /Start behind it
		{"RequestStop", activity.Stop, Event{Kind: Stop, Provider: "P", Name: "Request"}},
		{"Request", activity.Stop, Event{Kind: Stop, Provider: "P", Name: "Request", Unsuffixed: true}},
		{"RequestStart", 0, Event{Kind: Other}},
	} {
		c.want.HasID, c.want.ID, c.want.Related = true, activity.ID(id), activity.ID(related)
		var e Event
		Decode(&e, &nettrace.Event{Metadata: &nettrace.Metadata{Provider: "P", Name: c.name, EventID: 1}, Opcode: int(c.opcode), ActivityID: id, RelatedActivityID: related})
		assert.Equal(t, c.want, e, "%s %d", c.name, c.opcode)
	}
}

// All spans start with the one event of their source, and all activities of the log with one of another:
// what they are called stands in the payload. Name stays that of the event, which start and stop have in common.
func TestDecodeLabels(t *testing.T) {
	texts := func(b []byte, list ...string) []byte {
		for _, s := range list {
			for _, u := range utf16.Encode([]rune(s)) {
				b = binary.LittleEndian.AppendUint16(b, u)
			}
			b = append(b, 0, 0)
		}
		return b
	}
	span := func(name string) []byte { return texts(nil, "Shop.Orders", name) }
	scope := texts(make([]byte, 8), "Shop.Log")
	for _, c := range []struct {
		provider, event string
		opcode          activity.Opcode
		payload         []byte
		name, want      string
	}{
		{activity.BridgeProvider, "ActivityStart", activity.Start, span("Place order"), "Activity", "Shop.Orders/Place order"},
		{activity.BridgeProvider, "Activity2Start", activity.Start, span("Request.Start"), "Activity2", "Shop.Orders/Request"},
		{activity.BridgeProvider, "ActivityStart", activity.Start, span("cut")[:20], "Activity", ""},
		{activity.BridgeProvider, "ActivityStop", activity.Stop, span("Place order"), "Activity", ""},
		{activity.BridgeProvider, "Other", activity.Start, span("Place order"), "Other", ""},
		{activity.LoggingProvider, "ActivityStart", activity.Start, scope, "Activity", "Shop.Log"},
		{"P", "ActivityStart", activity.Start, span("Place order"), "Activity", ""},
	} {
		var e Event
		Decode(&e, &nettrace.Event{Metadata: &nettrace.Metadata{Provider: c.provider, Name: c.event, EventID: 1}, Opcode: int(c.opcode), Payload: c.payload})
		assert.Equal(t, [2]string{c.name, c.want}, [2]string{e.Name, e.Label}, "%s %s", c.provider, c.event)
	}
}
