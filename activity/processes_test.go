package activity_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
)

// TestIDsOfContainers: two processes that are process 1 of their containers have the same ids in
// the recording of their machine. Each has its own starts, stops, parents and last events.
func TestIDsOfContainers(t *testing.T) {
	id := func(nums ...uint32) activity.ID {
		id, err := activity.Encode(activity.NewPath(nums...).WithProcess(1), activity.EncoderOld)
		require.NoError(t, err)
		return id
	}
	b := activity.NewBuilder(nil)
	add := func(at int64, process uint32, name string, op activity.Opcode, id, related activity.ID) {
		b.Add(&activity.Event{Time: at, Thread: uint64(process) + 1, Process: process, Provider: "P", Name: name, Opcode: op, ID: id, Related: related})
	}
	none := activity.ID{}
	for i, process := range []uint32{100, 200, 300} {
		at := int64(10 * i)
		add(at, process, "RequestStart", activity.Start, id(1, 1), none)
		add(at+1, process, "WorkStart", activity.Start, id(1, 1, 1), id(1, 1))
		add(at+2, process, "DeepStart", activity.Start, id(1, 1, 1, 7, 1), id(1, 1, 1, 7)) // its creator is not in the trace
	}
	add(40, 200, "Info", activity.Info, id(1, 1), none)
	for i, process := range []uint32{100, 200} {
		at := int64(50 + 10*i)
		add(at, process, "DeepStop", activity.Stop, id(1, 1, 1, 7, 1), none)
		add(at+1, process, "WorkStop", activity.Stop, id(1, 1, 1), none)
		add(at+2, process, "RequestStop", activity.Stop, id(1, 1), none)
	}
	add(80, 400, "WorkStart", activity.Start, id(1, 1, 2), id(1, 1)) // of a process that is seen from here on
	add(81, 400, "RequestStop", activity.Stop, id(1, 1), none)
	add(90, 500, "WorkStart", activity.Start, id(1, 1, 1), none) // its creator did not stop, but in another process
	add(91, 300, "WorkStart", activity.Start, id(1, 1, 3), none)

	rows := b.Finish().Rows
	require.Len(t, rows, 13)
	for i, process := range []uint32{100, 200} {
		for k, name := range []string{"Request", "Work", "Deep"} {
			r := &rows[3*i+k]
			assert.Equal(t, name, r.Name)
			assert.Equal(t, process, r.Process)
			assert.Equal(t, activity.OK, r.Status, "%s of %d", name, process)
			assert.False(t, r.Guess)
			assert.Equal(t, int64(10*i+k), r.Start)
			assert.Equal(t, int64(52+10*i-k), r.Stop, "%s of %d", name, process)
			if k > 0 {
				assert.Equal(t, 3*i+k-1, r.Parent, "%s of %d", name, process)
			}
		}
	}
	assert.Zero(t, rows[0].LastSeen)
	assert.EqualValues(t, 40, rows[3].LastSeen)
	assert.Equal(t, activity.Unfinished, rows[6].Status)
	assert.Equal(t, -1, rows[9].Parent)
	assert.Equal(t, activity.OrphanStop, rows[10].Status)
	assert.Equal(t, -1, rows[11].Parent)
	assert.False(t, rows[11].DeadCreator)
	assert.Equal(t, 6, rows[12].Parent)
}

// TestSpanToldTwice: a listener and a source may both tell of one span, each with a start and stop.
func TestSpanToldTwice(t *testing.T) {
	b := activity.NewBuilder(nil)
	add := func(at int64, name string, op activity.Opcode, id byte, source string) {
		b.Add(&activity.Event{
			Time: at, Thread: 1, Process: 1, Provider: activity.BridgeProvider, Name: name, Opcode: op, ID: activity.ID{id},
			Span: &activity.Span{Source: source, Name: "Out", TraceID: "t", SpanID: "s"},
		})
	}
	add(1, "ActivityStart", activity.Start, 1, "Source")
	add(2, "Activity1Start", activity.Start, 2, "Listener")
	add(8, "Activity1Stop", activity.Stop, 2, "Listener")
	add(9, "ActivityStop", activity.Stop, 1, "Source")
	rows := b.Finish().Rows
	require.Len(t, rows, 2)
	for i, stop := range []int64{9, 8} {
		assert.Equal(t, activity.OK, rows[i].Status)
		assert.Equal(t, activity.BySpan, rows[i].By)
		assert.Equal(t, stop, rows[i].Stop)
	}
}

// TestStopsOnce: what a stop ended by its id no later one ends again by its span or key.
func TestStopsOnce(t *testing.T) {
	b := activity.NewBuilder(nil)
	add := func(at int64, name string, op activity.Opcode, id byte, span *activity.Span, key string) {
		b.Add(&activity.Event{Time: at, Thread: 1, Process: 1, Provider: "P", Name: name, Opcode: op, ID: activity.ID{id}, Span: span, Key: key})
	}
	span := &activity.Span{Source: "S", Name: "N", TraceID: "t", SpanID: "s"}
	add(1, "SpanStart", activity.Start, 1, span, "")
	add(2, "SpanStop", activity.Stop, 1, nil, "")
	add(3, "SpanStop", activity.Stop, 9, span, "")
	add(4, "KeyStart", activity.Start, 2, nil, "k")
	add(5, "KeyStop", activity.Stop, 2, nil, "")
	add(6, "KeyStop", activity.Stop, 9, nil, "k")
	rows := b.Finish().Rows
	require.Len(t, rows, 4)
	assert.EqualValues(t, 2, rows[0].Stop)
	assert.Equal(t, activity.OrphanStop, rows[1].Status)
	assert.EqualValues(t, 5, rows[2].Stop)
	assert.Equal(t, activity.OrphanStop, rows[3].Status)
}
