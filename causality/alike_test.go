package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestActivitiesOfOneID: of activities that are open and have one id, as the encoder of .NET 10 gives it
// to the 11th to 255th below a connection, one is meant that the thread is in, or that a stop tells by
// what its start told. If that is none, nothing tells which.
func TestActivitiesOfOneID(t *testing.T) {
	l := newLab(t)
	lost := func(path ...uint32) activity.ID {
		id, err := activity.Encode(activity.NewPath(path...), activity.EncoderNew)
		require.NoError(t, err)
		return id
	}
	request := lost(1, 117, 12)
	require.Equal(t, request, lost(1, 117, 13))
	var begun []*Activity
	l.g.o.Started = func(a *Activity) { begun = append(begun, a) }
	begin := func(thread uint64, key int64) {
		l.add(Event{Kind: Start, ID: request, Related: lost(1, 117), Name: "Request", Task: key, Thread: thread}, frameTop, frameDispatch, frameRun, frameUser)
	}
	step := func(id activity.ID, kind Kind, key int64, frames ...stacks.FrameID) {
		l.add(Event{Kind: kind, ID: id, Name: "Request", Task: key}, append([]stacks.FrameID{frameTop, frameDispatch, frameRun}, frames...)...)
	}
	l.add(Event{Kind: Start, ID: lost(1, 117), Name: "Connection", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser) // 1
	begin(1, 7)                                                                                                              // 2
	begin(2, 8)                                                                                                              // 3
	begin(3, 9)                                                                                                              // 4
	step(request, Other, 0, frameUser)                                                                                       // 5: in the first
	l.add(Event{Kind: Start, ID: lost(1, 117, 12, 1), Related: request, Name: "Call"}, frameTop, frameDispatch, frameRun, frameUser)
	step(lost(1, 117, 12, 1), Stop, 0, frameUser) // 7
	l.add(Event{Kind: Idle})                      // 8
	step(activity.ID{}, Sample, 0, frameOther)    // 9
	step(request, Stop, 8, frameOther)            // 10: the second ends here
	l.add(Event{Kind: Idle})                      // 11
	step(activity.ID{}, Sample, 0, frameLibrary)  // 12
	step(request, Other, 0, frameLibrary)         // 13: the first or the third
	l.add(Event{Kind: Idle})                      // 14
	step(activity.ID{}, Sample, 0, frameUser)     // 15
	step(request, Stop, 7, frameUser)             // 16: the first
	l.add(Event{Kind: Idle})                      // 17
	step(activity.ID{}, Sample, 0, frameInside)   // 18
	step(request, Other, 0, frameInside)          // 19: only the third is left
	inner := func() {
		l.add(Event{Kind: Start, ID: lost(1, 117, 12, 1), Related: request, Name: "Inner"}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: Idle})
	}
	inner()
	begin(1, 10) // with the third
	inner()
	l.add(Event{Kind: Start, ID: lost(1, 117, 12, 1, 1), Related: lost(1, 117, 12, 1), Name: "Call"}, frameTop, frameDispatch, frameRun, frameUser)
	l.g.Finish()

	require.Len(t, begun, 9)
	assert.Same(t, begun[3], begun[5].Parent)
	assert.Same(t, begun[6], begun[7].Parent)
	assert.Same(t, begun[0], begun[8].Parent, "the third or the last one's: the connection is what both are in")
	assert.Same(t, begun[1], begun[4].Parent, "the call is the first request's")
	for ms, want := range map[int64]*Activity{9: begun[2], 15: begun[1], 18: begun[3]} {
		a, known, _ := l.workAt(ms)
		assert.True(t, known, ms)
		assert.Same(t, want, a, "at %d ms", ms)
	}
	_, known, _ := l.workAt(12)
	assert.False(t, known)
	for i, ms := range []int64{16, 10} {
		assert.Equal(t, ms*1e6, begun[1+i].Stop)
	}
}
