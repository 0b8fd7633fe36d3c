package runtimeevents

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

// event makes an event of the runtime's provider; fields are written one after the other.
func event(id, version int, tid uint64, fields ...any) *nettrace.Event {
	var b []byte
	for _, f := range fields {
		switch f := f.(type) {
		case uint8:
			b = append(b, f)
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, f)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, f)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, f)
		case float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
		case string:
			for _, c := range f {
				b = append(b, byte(c), 0)
			}
			b = append(b, 0, 0)
		default:
			panic("no such field")
		}
	}
	return &nettrace.Event{
		Metadata: &nettrace.Metadata{Provider: nettrace.ProviderRuntime, EventID: id, Version: version},
		Version:  version, ProcessID: 1, ThreadID: tid, Payload: b,
	}
}

func TestSuspensionsPairByThread(t *testing.T) {
	var s Suspensions
	require.Nil(t, s.Event(event(IDSuspendEEBegin, 1, 7, uint32(1), uint32(4), uint16(0)), 10))
	require.Nil(t, s.Event(event(IDSuspendEEEnd, 1, 8, uint16(0)), 11), "another thread")
	require.Nil(t, s.Event(event(IDSuspendEEEnd, 1, 7, uint16(0)), 12))
	require.Len(t, s.Open(1), 1)
	require.Nil(t, s.Event(event(IDRestartEEBegin, 1, 7, uint16(0)), 30))
	got := s.Event(event(IDRestartEEEnd, 1, 7, uint16(0)), 33)
	require.NotNil(t, got)
	assert.Equal(t, Suspension{Process: 1, Thread: 7, Reason: SuspendForGC, Count: 4, Start: 10, Suspended: 12, Restart: 30, Restarted: 33}, *got)
	assert.EqualValues(t, 20, got.Pause())
	assert.Empty(t, s.Open(1))
}

func TestSuspensionWithoutEndIsGivenByTheNext(t *testing.T) {
	var s Suspensions
	require.Nil(t, s.Event(event(IDSuspendEEBegin, 1, 7, uint32(6), uint32(4), uint16(0)), 10))
	got := s.Event(event(IDSuspendEEBegin, 1, 7, uint32(1), uint32(5), uint16(0)), 20)
	require.NotNil(t, got)
	assert.Equal(t, SuspendForGCPrep, got.Reason)
	assert.Equal(t, Unknown, got.Restart)
	assert.Zero(t, got.Pause())
	assert.Nil(t, s.Event(event(IDSuspendEEBegin, 1, 8), 20), "a payload that is too short")
	assert.Nil(t, s.Event(event(IDRestartEEEnd, 1, 9, uint16(0)), 20), "an end without a start")
}

func contentionStart(tid, lock, object, owner uint64) *nettrace.Event {
	return event(IDContentionStart, 2, tid, uint8(0), uint16(0), lock, object, owner)
}

func TestContentionsPairOnTheThread(t *testing.T) {
	var l Contentions
	require.Nil(t, l.Event(contentionStart(1, 5, 50, 3), 100, 9))
	require.Nil(t, l.Event(contentionStart(2, 5, 50, 3), 110, 0))
	got := l.Event(event(IDContentionStop, 1, 2, uint8(0), uint16(0), 42.5), 150, 0)
	require.NotNil(t, got)
	assert.Equal(t, Contention{Process: 1, Thread: 2, Start: 110, Stop: 150, Duration: 42, Lock: 5, Object: 50, Owner: 3}, *got)
	got = l.Event(contentionStart(1, 6, 60, 2), 200, 0)
	require.NotNil(t, got, "a thread that starts to wait again has left the wait before")
	assert.Equal(t, Contention{Process: 1, Thread: 1, Start: 100, Stop: Unknown, Duration: Unknown, Lock: 5, Object: 50, Owner: 3, Stack: 9}, *got)
	assert.Zero(t, got.Wait())
	assert.Len(t, l.Open(), 1)
	assert.Nil(t, l.Event(event(IDContentionStop, 1, 3, uint8(0), uint16(0), 1.0), 210, 0))
	assert.Equal(t, 1, l.StopsWithoutStart)
	assert.Equal(t, Contention{Process: 1, Thread: 3, Start: 209, Stop: 210, Duration: 1}, l.Early)
	assert.Nil(t, l.Event(event(IDContentionStop, 0, 3, uint8(0), uint16(0)), 220, 0))
	assert.Equal(t, Contention{Process: 1, Thread: 3, Start: Unknown, Stop: 220, Duration: Unknown}, l.Early, "before .NET 5")
}

func TestOldContentionTellsNeitherLockNorDuration(t *testing.T) {
	var l Contentions
	require.Nil(t, l.Event(event(IDContentionStart, 1, 1, uint8(1), uint16(0)), 5, 0))
	got := l.Event(event(IDContentionStop, 0, 1, uint8(1), uint16(0)), 9, 0)
	require.NotNil(t, got)
	assert.Equal(t, Contention{Process: 1, Thread: 1, Start: 5, Stop: 9, Duration: Unknown, Native: true}, *got)
}

func TestUnfinishedCompilationsCountOnDemand(t *testing.T) {
	for name, tt := range map[string]struct {
		counts func(start, until int64) bool
		want   int
	}{
		"all":                       {nil, maxNested + 2},
		"those that never end":      {func(_, until int64) bool { return until == Unknown }, maxNested + 1},
		"those that start later on": {func(start, _ int64) bool { return start > 1 }, maxNested},
	} {
		jit := JIT{Counts: tt.counts}
		jit.Event(event(IDMethodJittingStarted, 1, 8, uint64(1), uint64(2), uint32(3), uint32(4)), 1, 0)
		for ns := range int64(maxNested + 1) { // the first one is given up for the last one
			jit.Event(event(IDMethodJittingStarted, 1, 7, uint64(ns), uint64(2), uint32(3), uint32(4)), 1+ns, 0)
		}
		jit.Finish()
		assert.Equal(t, tt.want, jit.Unfinished, name)
		assert.Equal(t, tt.want, jit.UnfinishedOf(1), name)
		assert.Zero(t, jit.UnfinishedOf(2), name)
	}
}

func TestWaitsNest(t *testing.T) {
	var w Waits
	start := func(source uint8) *nettrace.Event { return event(IDWaitStart, 0, 1, source, uint64(77), uint16(0)) }
	stop := event(IDWaitStop, 0, 1, uint16(0))
	require.Nil(t, w.Event(start(0), 1, 0))
	require.Nil(t, w.Event(start(1), 2, 0))
	inner, outer := w.Event(stop, 3, 0), w.Event(stop, 9, 0)
	require.NotNil(t, inner)
	require.NotNil(t, outer)
	assert.EqualValues(t, 1, inner.Stop-inner.Start)
	assert.True(t, inner.MonitorWait)
	assert.EqualValues(t, 8, outer.Stop-outer.Start)
	assert.Nil(t, w.Event(stop, 10, 0))
}

// TestQueueWithLostEvents: work that is queued again and again waits no longer since the end of one
// of its waits was lost.
func TestQueueWithLostEvents(t *testing.T) {
	work := func(id int, lost uint32) *nettrace.Event {
		return &nettrace.Event{ProcessID: 1, Lost: lost, Metadata: &nettrace.Metadata{Provider: nettrace.ProviderFramework, EventID: id}, Payload: make([]byte, 8)}
	}
	var p Pool
	p.Event(work(30, 0), 100, 0)
	p.Event(work(30, 1), 1000, 0) // behind the dequeueing at 110
	p.Event(work(31, 0), 1010, 0)
	p.Event(work(30, 0), 2000, 0)
	p.Event(work(31, 0), 2010, 0)
	assert.Equal(t, []Delay{{1010, 10}, {2010, 10}}, p.Processes()[0].Delays)
}

// TestCompilationsWithLostEvents: a method is compiled again and again, and the end of one
// compilation is not that of an earlier one, whose own was lost.
func TestCompilationsWithLostEvents(t *testing.T) {
	for lost, want := range map[uint32]int64{0: 500, 3: Unknown} {
		var j JIT
		j.Event(event(IDMethodJittingStarted, 1, 7, uint64(1), uint64(2), uint32(3), uint32(4)), 500, 0)
		other := event(IDMethodJittingStarted, 1, 8, uint64(9), uint64(2), uint32(3), uint32(4))
		other.CaptureThreadID = 8
		j.Event(other, 600, 0)
		ev := event(IDMethodLoadVerbose, 2, 7, uint64(1), uint64(2), uint64(0x1000), uint32(10), uint32(3), uint32(nettrace.MethodJitted), "N.T", "M", "void ()", uint16(0), uint64(1))
		ev.CaptureThreadID, ev.Lost = 7, lost
		j.Event(ev, 90000, 0)
		other = event(IDMethodLoadVerbose, 2, 8, uint64(9), uint64(2), uint64(0x1000), uint32(10), uint32(3), uint32(nettrace.MethodJitted), "N.T", "M", "void ()", uint16(0), uint64(1))
		j.Event(other, 90001, 0)
		j.Finish()
		require.Len(t, j.Compilations, 2)
		assert.Equal(t, want, j.Compilations[0].Start)
		assert.EqualValues(t, 600, j.Compilations[1].Start, "nothing of that thread was lost")
		assert.Zero(t, j.Unfinished)
	}
}
