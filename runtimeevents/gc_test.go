package runtimeevents

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A step is an event of a process's collections: what TestPauses lists.
type step struct {
	at     int64
	id     int
	tid    uint64
	fields []any
}

func suspend(at int64, tid uint64, reason, count uint32) step {
	return step{at, IDSuspendEEBegin, tid, []any{reason, count, uint16(0)}}
}
func gcStart(at int64, tid uint64, number, generation uint32, typ GCType) step {
	return step{at, IDGCStart, tid, []any{number, generation, uint32(0), uint32(typ), uint16(0)}}
}
func gcEnd(at int64, tid uint64, number uint32) step {
	return step{at, IDGCEnd, tid, []any{number, uint32(0), uint16(0)}}
}
func mark(at int64, tid uint64, id int) step { return step{at, id, tid, []any{uint16(0)}} }
func history(at int64, generation, mechanisms uint32) step {
	return step{at, IDGlobalHeapHistory, 9, []any{uint64(0), uint32(1), generation, uint32(0), uint32(0), mechanisms, uint16(0)}}
}

func collect(steps []step) *GCProcess {
	var c GCs
	for _, s := range steps {
		c.Event(event(s.id, 1, s.tid, s.fields...), s.at, 0)
	}
	p := c.Finish()
	if len(p) == 0 {
		return &GCProcess{}
	}
	return p[0]
}

// Suspensions for other reasons go to who asks for them, those that have no end last, and a process
// that had no others is one.
func TestOtherSuspensions(t *testing.T) {
	var got []*Suspension
	c := GCs{Other: func(s *Suspension) { got = append(got, s) }}
	for _, s := range []step{
		suspend(100, 1, 0, 0), mark(110, 1, IDSuspendEEEnd), mark(190, 1, IDRestartEEBegin), mark(250, 1, IDRestartEEEnd), suspend(300, 1, 0, 0),
	} {
		c.Event(event(s.id, 1, s.tid, s.fields...), s.at, 0)
	}
	procs := c.Finish()
	require.Len(t, procs, 1)
	assert.Empty(t, procs[0].Suspensions)
	require.Len(t, got, 2)
	assert.Equal(t, []int64{100, 110, 190, 250}, []int64{got[0].Start, got[0].Suspended, got[0].Restart, got[0].Restarted})
	assert.Equal(t, []int64{300, Unknown}, []int64{got[1].Start, got[1].Restarted})
}

// TestPausesThatAreNotTold: where events were lost, what seems to be one suspension is two.
func TestPausesThatAreNotTold(t *testing.T) {
	const lost = -1 // events of the thread of the next step, before it
	full := gcStart(150, 1, 2, 2, NonConcurrentGC)
	full.fields[2] = uint32(gcFull)
	for name, c := range map[string]struct {
		steps []step
		want  []int64 // pauses of the collections; lost: not told
	}{
		"the restart, and the beginning of the next": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC), gcEnd(130, 1, 1),
				mark(310, 1, IDSuspendEEEnd), gcStart(320, 1, 2, 0, NonConcurrentGC), gcEnd(330, 1, 2), mark(340, 1, IDRestartEEBegin),
			}, []int64{lost, lost},
		},
		"the restart, and all of the next suspension": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC), gcEnd(130, 1, 1),
				gcStart(320, 1, 2, 0, NonConcurrentGC), gcEnd(330, 1, 2), mark(340, 1, IDRestartEEBegin),
			}, []int64{lost, lost},
		},
		"another thread stops all before the restart": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC), gcEnd(130, 1, 1),
				suspend(200, 2, 0, 0), mark(210, 2, IDSuspendEEEnd), mark(220, 2, IDRestartEEBegin), mark(230, 2, IDRestartEEEnd), mark(340, 1, IDRestartEEBegin),
			}, []int64{lost},
		},
		"the numbers tell": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC), gcEnd(130, 1, 1),
				{lost, IDRestartEEBegin, 1, []any{uint16(0)}},
			}, []int64{lost},
		},
		"the second pause of a background collection": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), mark(130, 1, IDRestartEEBegin), mark(131, 1, IDRestartEEEnd),
				gcEnd(400, 3, 1),
			}, []int64{lost},
		},
		"the rest of a background collection, which another one tells": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), mark(130, 1, IDRestartEEBegin), mark(131, 1, IDRestartEEEnd),
				suspend(400, 1, 1, 1), mark(410, 1, IDSuspendEEEnd), gcStart(420, 1, 2, 0, NonConcurrentGC), gcEnd(430, 1, 2), mark(440, 1, IDRestartEEBegin), mark(441, 1, IDRestartEEEnd),
			}, []int64{lost, 40},
		},
		"the rest of a background collection": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), mark(130, 1, IDRestartEEBegin), mark(131, 1, IDRestartEEEnd),
				{lost, IDFinalizersBegin, 4, []any{uint16(0)}},
			}, []int64{lost},
		},
		"none: the trace ends while a background collection goes on": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), mark(130, 1, IDRestartEEBegin), mark(131, 1, IDRestartEEEnd),
				suspend(400, 1, 1, 1), mark(410, 1, IDSuspendEEEnd), gcStart(420, 1, 2, 0, ForegroundGC), gcEnd(430, 1, 2), mark(440, 1, IDRestartEEBegin), mark(441, 1, IDRestartEEEnd),
			}, []int64{30, 40},
		},
		"none: all are collected at once after a collection that was not enough": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 1, NonConcurrentGC), gcEnd(130, 1, 1),
				full, gcEnd(180, 1, 2), mark(190, 1, IDRestartEEBegin), mark(191, 1, IDRestartEEEnd),
			}, []int64{60, 30},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var cs GCs
			for _, s := range c.steps {
				ev := event(s.id, 1, s.tid, s.fields...)
				if ev.CaptureThreadID = s.tid; s.at == lost {
					ev.Lost, s.at = 7, 500
				}
				cs.Event(ev, s.at, 0)
			}
			procs := cs.Finish()
			require.Len(t, procs, 1)
			var got []int64
			for _, g := range procs[0].Collections {
				if got = append(got, lost); g.PauseTold() {
					got[len(got)-1] = g.Pause()
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// What a collection says to have committed is told on the threads that start and end it.
func TestCommitted(t *testing.T) {
	usage := func(at int64, tid uint64, bytes uint64) step {
		return step{at, IDGCDynamic, tid, []any{"CommittedUsage", uint32(42), uint16(1), bytes, uint64(0), uint64(0), uint64(0), uint64(0)}}
	}
	for name, c := range map[string]struct {
		steps         []step
		before, after uint64
	}{
		"both":                     {[]step{gcStart(10, 1, 1, 0, NonConcurrentGC), usage(11, 1, 100), usage(20, 2, 50), gcEnd(21, 2, 1)}, 100, 50},
		"of one that ended unseen": {[]step{gcStart(10, 1, 1, 0, NonConcurrentGC), usage(11, 1, 100), usage(30, 2, 70), usage(40, 3, 50), gcEnd(41, 3, 2)}, 100, 0},
		"the first was lost":       {[]step{gcStart(10, 1, 1, 0, NonConcurrentGC), usage(20, 2, 50), gcEnd(21, 2, 1)}, 0, 50},
		"the second was lost, and the next begins": {[]step{gcStart(10, 1, 1, 2, BackgroundGC), usage(11, 1, 100), usage(12, 1, 70), gcStart(30, 1, 2, 0, ForegroundGC), gcEnd(41, 1, 1)}, 100, 0},
		"a background collection does not tell it": {[]step{gcStart(10, 1, 1, 2, BackgroundGC), usage(11, 1, 100), gcStart(30, 2, 2, 0, ForegroundGC), usage(31, 2, 90), usage(32, 1, 80), gcEnd(33, 1, 2), gcEnd(41, 1, 1)}, 100, 0},
	} {
		g := collect(c.steps).Collections[0]
		assert.Equal(t, []uint64{c.before, c.after}, []uint64{g.CommittedBefore, g.CommittedAfter}, name)
	}
}

// The history of a background collection is told before its end or behind it, when others may have
// emptied what it counted. Where events were lost it may be that of another one.
func TestBackgroundHistory(t *testing.T) {
	heap := step{30, IDPerHeapHistory, 9, []any{uint16(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0),
		uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), uint64(0), uint32(1),
		uint64(90), uint64(0), uint64(0), uint64(80), uint64(50), uint64(20), uint64(0), uint64(0), uint64(0), uint64(0)}}
	stats := step{41, IDHeapStats, 1, []any{uint64(8), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(0), uint32(0), uint32(0), uint16(0)}}
	start, end, global := gcStart(10, 1, 1, 2, BackgroundGC), gcEnd(40, 1, 1), history(29, 2, uint32(mechanismConcurrent))
	for name, steps := range map[string][]step{
		"before the end": {start, global, heap, end, stats},
		"behind the end": {start, end, stats, global, heap},
	} {
		var whole, lossy GCs
		for _, s := range steps {
			ev := event(s.id, 1, s.tid, s.fields...)
			if s.id == IDPerHeapHistory {
				ev.Version, ev.Metadata.Version = 3, 3
			}
			whole.Event(ev, s.at, 0)
			if s.id == IDGlobalHeapHistory {
				ev.Lost = 3
			}
			lossy.Event(ev, s.at, 0)
		}
		g := whole.Finish()[0].Collections[0]
		require.True(t, g.HasHistory && g.HasSizes, name)
		assert.EqualValues(t, []uint64{90, 8, 8}, []uint64{g.Before(), g.After(), g.Fragmentation()}, name)
		assert.False(t, lossy.Finish()[0].Collections[0].HasHistory, name)
	}
}

func TestInduced(t *testing.T) {
	var induced []string
	for r := range GCReason(20) {
		if r.Induced() {
			induced = append(induced, r.String())
		}
	}
	assert.Equal(t, []string{"Induced", "InducedNotForced", "InducedCompacting", "InducedAggressive"}, induced)
}

// TestCollector: server GC that adapts the number of its heaps may have one, and then only the
// thread that collects tells it from workstation GC.
func TestCollector(t *testing.T) {
	triggered := func(at int64, tid uint64) step { return step{at, IDGCTriggered, tid, []any{uint32(0), uint16(0)}} }
	several := history(30, 0, 0)
	several.fields[1] = uint32(2)
	for name, c := range map[string]struct {
		steps []step
		want  Collector
	}{
		"who asked collects":             {[]step{triggered(10, 1), gcStart(20, 1, 1, 0, NonConcurrentGC), history(30, 0, 0)}, WorkstationCollector},
		"another thread collects":        {[]step{triggered(10, 1), gcStart(20, 2, 1, 0, NonConcurrentGC), history(30, 0, 0)}, ServerCollector},
		"several heaps":                  {[]step{gcStart(20, 1, 1, 0, NonConcurrentGC), several}, ServerCollector},
		"one heap, and nobody asked":     {[]step{gcStart(20, 1, 1, 0, NonConcurrentGC), history(30, 0, 0)}, UnknownCollector},
		"asked for by another reason":    {[]step{{10, IDGCTriggered, 1, []any{uint32(1), uint16(0)}}, gcStart(20, 2, 1, 0, NonConcurrentGC)}, UnknownCollector},
		"the start that it was for lost": {[]step{triggered(1, 3), gcStart(5, 3, 1, 0, NonConcurrentGC), triggered(10, 1), gcStart(20, 2, 3, 0, NonConcurrentGC)}, WorkstationCollector},
	} {
		t.Run(name, func(t *testing.T) {
			p := collect(c.steps)
			assert.Equal(t, c.want, p.Collector())
			assert.Equal(t, c.want == ServerCollector, p.Server())
		})
	}
}

func TestPauses(t *testing.T) {
	type want struct {
		number     uint32
		pause      int64
		concurrent bool
	}
	tests := map[string]struct {
		steps     []step
		want      []want
		unclaimed int
	}{
		"server: another thread suspends": {
			[]step{suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 2, 1, 0, NonConcurrentGC), gcEnd(180, 1, 1), mark(190, 1, IDRestartEEBegin), mark(250, 1, IDRestartEEEnd)},
			[]want{{1, 90, false}}, 0,
		},
		"a background collection has two pauses, a foreground one its own in between": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), mark(130, 1, IDRestartEEBegin), mark(131, 1, IDRestartEEEnd),
				suspend(200, 1, 1, 1), mark(210, 1, IDSuspendEEEnd), gcStart(220, 1, 2, 0, ForegroundGC), gcEnd(240, 1, 2), mark(250, 1, IDRestartEEBegin), mark(251, 1, IDRestartEEEnd),
				suspend(300, 3, 6, 1), mark(310, 3, IDSuspendEEEnd), mark(325, 3, IDRestartEEBegin), mark(326, 3, IDRestartEEEnd), gcEnd(400, 3, 1), history(410, 2, 1),
			},
			[]want{{1, 30 + 25, true}, {2, 50, false}}, 0,
		},
		"an ephemeral collection inside the first pause of a background one": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), gcStart(130, 1, 2, 0, NonConcurrentGC), gcEnd(170, 1, 2),
				mark(200, 1, IDRestartEEBegin), mark(210, 1, IDRestartEEEnd),
			},
			[]want{{1, 60, true}, {2, 40, false}}, 0,
		},
		"a background collection that falls back to blocking": {
			[]step{
				suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), history(150, 2, 2), gcEnd(170, 1, 1),
				mark(200, 1, IDRestartEEBegin), mark(210, 1, IDRestartEEEnd),
			},
			[]want{{1, 100, false}}, 0,
		},
		"a region without collections suspends and does not collect": {
			[]step{suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), mark(120, 1, IDRestartEEBegin), mark(121, 1, IDRestartEEEnd)},
			nil, 1,
		},
		"the trace ends within a pause": {
			[]step{suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC)},
			[]want{{1, 0, false}}, 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := collect(tt.steps)
			s := newSettling()
			for _, st := range append(tt.steps, gcStart(500, 1, 9, 0, NonConcurrentGC)) {
				s.Event(event(st.id, 1, st.tid, st.fields...), st.at, 0)
			}
			for i, g := range p.Collections[:s.early] {
				assert.Equal(t, told(g), s.byPID[1][i])
			}
			var got []want
			for _, g := range p.Collections {
				assert.Equal(t, name != "the trace ends within a pause", g.PauseTold())
				got = append(got, want{g.Number, g.Pause(), g.Concurrent})
			}
			assert.Equal(t, tt.want, got)
			assert.Len(t, p.Unclaimed(), tt.unclaimed)
		})
	}
}

// The parts of a pause add up to all of it, and those of a collection inside another's pause count once.
func TestPauseIn(t *testing.T) {
	p := collect([]step{
		suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 2, BackgroundGC), gcStart(130, 1, 2, 0, NonConcurrentGC), gcEnd(170, 1, 2),
		mark(200, 1, IDRestartEEBegin), mark(210, 1, IDRestartEEEnd),
		suspend(300, 3, 6, 1), mark(310, 3, IDSuspendEEEnd), mark(325, 3, IDRestartEEBegin), mark(326, 3, IDRestartEEEnd), gcEnd(400, 3, 1),
	})
	outer, inner := p.Collections[0], p.Collections[1]
	for _, tt := range []struct{ from, until, outer, inner int64 }{
		{0, 500, 85, 40}, {0, 100, 0, 0}, {90, 140, 30, 10}, {140, 150, 0, 10}, {150, 310, 40, 20}, {205, 300, 0, 0}, {310, 500, 15, 0},
	} {
		assert.Equal(t, tt.outer, outer.PauseIn(tt.from, tt.until), tt)
		assert.Equal(t, tt.inner, inner.PauseIn(tt.from, tt.until), tt)
	}
}

// Of generations that were not collected .NET Core 3.x tells how they were before, and zeros for
// how they are behind: their free space is as it was.
func TestFreeSpaceOfWhatIsNotCollected(t *testing.T) {
	gen := func(values ...uint64) []any {
		fields := make([]any, 10)
		for i := range fields {
			fields[i] = uint64(0)
			if i < len(values) {
				fields[i] = values[i]
			}
		}
		return fields
	}
	heap := []any{uint16(0)}
	for range 6 {
		heap = append(heap, uint64(0))
	}
	for range 6 {
		heap = append(heap, uint32(0))
	}
	heap = append(heap, uint64(0), uint32(4))
	heap = append(heap, gen(6000, 0, 0, 24, 0, 0, 0, 0, 10)...)
	heap = append(heap, gen(1000, 200, 3, 1010, 0, 0, 10)...)           // nothing of its free space is left
	heap = append(heap, gen(397839176, 118181776, 32016)...)            // not told
	heap = append(heap, gen(26593136, 7452336, 1536, 26593136, 700)...) // told
	p := collect([]step{
		suspend(100, 1, 1, 0), mark(110, 1, IDSuspendEEEnd), gcStart(120, 1, 1, 0, NonConcurrentGC), gcEnd(170, 1, 1), history(180, 0, 0),
	})
	require.Len(t, p.Collections, 1)
	p.history = p.Collections[0]
	p.perHeapHistory(event(IDPerHeapHistory, 3, 9, heap...))
	var free []uint64
	for _, g := range p.Collections[0].Gen {
		free = append(free, g.Fragmentation)
	}
	assert.Equal(t, []uint64{0, 0, 118181776 + 32016, 700, 0}, free)
}

// TestSampledBytesAreUnbiased checks the estimator against its definition: what a sample
// stands for, times the probability of one, is the size.
func TestSampledBytesAreUnbiased(t *testing.T) {
	for _, size := range []uint64{1, 24, 1000, 102400, 1 << 20, 1 << 40} {
		p := 1 - math.Pow(1-1.0/102400, float64(size))
		require.InEpsilon(t, p, SampledProbability(size), 1e-6)
		assert.InEpsilon(t, float64(size), SampledBytes(size)*SampledProbability(size), 1e-12)
	}
	assert.InEpsilon(t, 102400, SampledBytes(24), 1e-3)
	assert.Zero(t, SampledBytes(0))
	assert.InDelta(t, 0, SampledVariance(1<<40), 1)
}

// FuzzEvents gives payloads of any content to all collectors: none may panic, and times
// of rows are those of events.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{9, 1, 1, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, 1, 0, 0})
	f.Add([]byte{1, 2, 7, 200, 200, 200})
	f.Fuzz(func(t *testing.T, b []byte) {
		var gcs GCs
		settling := newSettling()
		var jit JIT
		var pool Pool
		var locks Contentions
		var waits Waits
		for ns := int64(0); len(b) >= 3; ns++ {
			n := min(int(b[2]), len(b)-3)
			ev := event(int(b[0])+int(b[1]>>4)*50, int(b[1]&7), uint64(b[1]>>3&1))
			ev.Payload = b[3 : 3+n]
			gcs.Event(ev, ns, 0)
			settling.Event(ev, ns, 0)
			jit.Event(ev, ns, 0)
			pool.Event(ev, ns, 0)
			waits.Event(ev, ns, 0)
			if c := locks.Event(ev, ns, 0); c != nil {
				require.GreaterOrEqual(t, c.Wait(), int64(0))
			}
			if IsException(ev) {
				_, _ = ReadException(ev)
			}
			_, _ = ReadAllocationTick(ev)
			_, _ = ReadAllocationSampled(ev)
			b = b[3+n:]
		}
		jit.Finish()
		procs := gcs.Finish()
		settling.requireSame(t, procs)
		for _, p := range procs {
			for _, g := range p.Collections {
				require.GreaterOrEqual(t, g.Pause(), int64(0))
				g.Gen[0].Survival()
			}
			require.LessOrEqual(t, len(p.Unclaimed()), len(p.Suspensions))
		}
		for _, p := range pool.Processes() {
			p.MaxWorkers()
		}
	})
}
