package runtimeevents

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
)

func TestReadException(t *testing.T) {
	ev := event(IDExceptionThrown, 1, 1, "System.IO.IOException", "why", uint64(0xbeef), uint32(0x80131620), uint16(ExceptionHasInner|ExceptionCLSCompliant), uint16(0))
	e, err := ReadException(ev)
	require.NoError(t, err)
	assert.Equal(t, []string{"System.IO.IOException", "why"}, []string{e.Type.String(), e.Message.String()})
	assert.Equal(t, uint32(0x80131620), e.HResult)
	assert.Equal(t, ExceptionHasInner|ExceptionCLSCompliant, e.Flags)
	ev.Payload = ev.Payload[:len(ev.Payload)-3] // within the flags
	_, err = ReadException(ev)
	assert.Error(t, err)

	e, err = ReadException(event(IDExceptionThrown, 0, 1))
	require.NoError(t, err, "old runtimes write nothing")
	assert.Zero(t, e)
}

func TestReadAllocation(t *testing.T) {
	const large = uint32(1)
	for name, c := range map[string]struct {
		ev   *nettrace.Event
		want Allocation
		typ  string
	}{
		"version 0":               {event(IDAllocationTick, 0, 1, uint32(100), large), Allocation{Kind: 1, Amount: 100}, ""},
		"version 1":               {event(IDAllocationTick, 1, 1, uint32(100), large, uint16(0)), Allocation{Kind: 1, Amount: 100}, ""},
		"version 1, overflowed":   {event(IDAllocationTick, 1, 1, uint32(1<<31), large, uint16(0)), Allocation{Kind: 1}, ""},
		"version 2":               {event(IDAllocationTick, 2, 1, uint32(100), large, uint16(0), uint64(1<<33), uint64(7), "T", uint32(0)), Allocation{Kind: 1, Amount: 1 << 33}, "T"},
		"version 2, 64 bits of 0": {event(IDAllocationTick, 2, 1, uint32(100), large, uint16(0), uint64(0), uint64(7), "T", uint32(0)), Allocation{Kind: 1, Amount: 100}, "T"},
		"version 4":               {event(IDAllocationTick, 4, 1, uint32(100), large, uint16(0), uint64(101), uint64(7), "T", uint32(0), uint64(8), uint64(24)), Allocation{Kind: 1, Amount: 101, ObjectSize: 24}, "T"},
		"sampled":                 {event(IDAllocationSampled, 0, 1, large, uint16(0), uint64(7), "T", uint64(8), uint64(24), uint64(5)), Allocation{Kind: 1, ObjectSize: 24}, "T"},
	} {
		read := ReadAllocationTick
		if IsAllocationSampled(c.ev) {
			read = ReadAllocationSampled
		}
		a, err := read(c.ev)
		require.NoError(t, err, name)
		assert.Equal(t, c.typ, a.Type.String(), name)
		a.Type = nettrace.Text{}
		assert.Equal(t, c.want, a, name)
	}
}

// A collection is told to have been preceded by what was allocated since the one before.
func TestAllocatedBeforeEach(t *testing.T) {
	tick := func(at int64, bytes uint32) step {
		return step{at, IDAllocationTick, 5, []any{bytes, uint32(0), uint16(0)}}
	}
	p := collect([]step{
		tick(10, 100), tick(20, 30), gcStart(30, 1, 1, 0, NonConcurrentGC), tick(31, 7), gcEnd(40, 1, 1),
		gcStart(50, 1, 2, 0, NonConcurrentGC), gcEnd(60, 1, 2),
		tick(70, 1000), gcStart(80, 1, 3, 0, NonConcurrentGC), gcEnd(90, 1, 3), tick(100, 5),
	})
	require.Len(t, p.Collections, 3)
	assert.Equal(t, []uint64{130, 7, 1000}, []uint64{p.Collections[0].Allocated, p.Collections[1].Allocated, p.Collections[2].Allocated})
	assert.Equal(t, uint64(1142), p.TickBytes)
	assert.EqualValues(t, 5, p.Ticks)
	assert.True(t, p.Collections[0].AllocatedTold, "the first one of the process")

	p = collect([]step{tick(10, 100), gcStart(30, 1, 8, 0, NonConcurrentGC), gcEnd(40, 1, 8), gcStart(50, 1, 9, 0, NonConcurrentGC), gcEnd(60, 1, 9)})
	require.Len(t, p.Collections, 2)
	assert.False(t, p.Collections[0].AllocatedTold, "the trace began behind the one before it")
	assert.True(t, p.Collections[1].AllocatedTold)
}

func TestSurvival(t *testing.T) {
	for name, c := range map[string]struct {
		g    Generation
		want float64
		ok   bool
	}{
		"empty":              {Generation{}, 0, false},
		"free space only":    {Generation{Before: 100, FragmentationBefore: 100}, 0, false},
		"more free than all": {Generation{Before: 100, FragmentationBefore: 200}, 0, false},
		"not collected":      {Generation{Before: 100, After: 100}, 0, false},
		"all died":           {Generation{Before: 100, After: 0}, 0, true},
		"replaced":           {Generation{Before: 100, After: 100, In: 100}, 0, true},
		"half":               {Generation{Before: 120, FragmentationBefore: 20, After: 50, Out: 50}, 50, true},
		"told too large":     {Generation{Before: 100, After: 100, Out: 200}, 100, true},
	} {
		got, ok := c.g.Survival()
		assert.Equal(t, c.ok, ok, name)
		assert.InDelta(t, c.want, got, 1e-9, name)
	}
}

// Of the same work that is queued several times the oldest goes first.
func TestQueueOfTheSameWork(t *testing.T) {
	work := func(id int, what byte) *nettrace.Event {
		return &nettrace.Event{ProcessID: 1, Metadata: &nettrace.Metadata{Provider: nettrace.ProviderFramework, EventID: id}, Payload: []byte{what, 0, 0, 0, 0, 0, 0, 0}}
	}
	var p Pool
	for i, ev := range []*nettrace.Event{work(30, 1), work(30, 2), work(30, 1), work(30, 1), work(31, 1), work(31, 2), work(31, 1), work(31, 1), work(31, 1)} {
		p.Event(ev, int64(100+10*i), 0)
	}
	q := p.Processes()[0]
	assert.Equal(t, []Delay{{140, 40}, {150, 40}, {160, 40}, {170, 40}}, q.Delays)
	assert.EqualValues(t, 4, q.Enqueued)
	assert.True(t, q.QueueTold)
	assert.EqualValues(t, 1, q.Untimed, "the last dequeueing is of work that nothing tells to have come")
	assert.Zero(t, q.Waiting(math.MaxInt64))
	p.Event(work(30, 3), 200, 0)
	assert.Equal(t, []int{0, 1}, []int{q.Waiting(200), q.Waiting(201)})
}

// The time that passes while threads are started again is in no pause, and told beside.
func TestWaking(t *testing.T) {
	p := collect([]step{
		suspend(100, 1, 1, 1), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC), gcEnd(180, 1, 1),
		mark(190, 1, IDRestartEEBegin), mark(195, 1, IDRestartEEEnd),
		suspend(200, 1, 1, 2), mark(210, 1, IDSuspendEEEnd), gcStart(220, 1, 2, 0, NonConcurrentGC), gcEnd(280, 1, 2), mark(290, 1, IDRestartEEBegin),
	})
	require.Len(t, p.Collections, 2)
	a, b := p.Collections[0], p.Collections[1]
	assert.Equal(t, []int64{90, 10, 5}, []int64{a.Pause(), a.Suspend(), a.Waking()})
	assert.True(t, a.WakingTold())
	assert.Equal(t, []int64{90, 10, 0}, []int64{b.Pause(), b.Suspend(), b.Waking()})
	assert.False(t, b.WakingTold(), "its end is not in the trace")
}
