package load

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
	"github.com/tracefix/tracefix/runtimeevents"
)

// checkTrack asserts what profile.Track promises: order of start, slices that nest where
// it says so, and that a track can be gone through again.
func checkTrack(t *testing.T, tr *profile.Track) []profile.Slice {
	t.Helper()
	var all []profile.Slice
	var open []int64
	last := int64(-1 << 62)
	type key struct{ id uint64 }
	async := map[key][]int64{}
	for s := range tr.Slices {
		assert.GreaterOrEqual(t, s.Start, last, "%s: order of start", tr.Name)
		assert.GreaterOrEqual(t, s.Dur, int64(0))
		assert.NotEmpty(t, s.Name)
		assert.NotEmpty(t, s.Category)
		last = s.Start
		end := s.Start + s.Dur
		stack := &open
		if !tr.Nested && !s.Instant {
			st := async[key{s.ID}]
			stack = &st
		}
		if !s.Instant {
			for len(*stack) > 0 && (*stack)[len(*stack)-1] <= s.Start {
				*stack = (*stack)[:len(*stack)-1]
			}
			if len(*stack) > 0 {
				assert.LessOrEqual(t, end, (*stack)[len(*stack)-1], "%s: %s at %d does not nest", tr.Name, s.Name, s.Start)
			}
			*stack = append(*stack, end)
			if !tr.Nested {
				async[key{s.ID}] = *stack
			}
		}
		c := *s
		c.Args = append([]profile.Arg(nil), s.Args...)
		all = append(all, c)
	}
	n := 0
	for s := range tr.Slices {
		if n < len(all) {
			assert.Equal(t, all[n].Start, s.Start)
		}
		n++
	}
	assert.Equal(t, len(all), n, "%s: the second time", tr.Name)
	for range tr.Slices {
		break // a consumer may stop
	}
	return all
}

// The counts are those of the events in the reference library's list of the recording.
func TestTracks(t *testing.T) {
	tests := []struct {
		file   string
		groups []string
		want   map[string]int // by group and name of slice, if it is in the map
	}{
		{"noise", []string{"exceptions", "contention", "gc"}, map[string]int{
			"System.InvalidOperationException":                     513,
			"catch in instance void [Lab] Lab.Chain.Walk::Noise()": 513,
			"Contention":                            155,
			"GC gen 0 (blocking, small allocation)": 1,
			"suspended: GC":                         1,
			"suspending":                            1,
			"restarting":                            1,
			"Finalizers":                            2,
		}},
		{"activities", []string{"activities"}, map[string]int{
			"Visit": 2542, "Database": 656, "Security": 410,
		}},
		{"v6-web-faults", []string{"faults"}, map[string]int{"soft page fault": 10927}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			p, _, err := Profile(context.Background(), opener(t, "dotnet10/"+tt.file+".nettrace"), &Options{Tracks: tt.groups})
			require.NoError(t, err)
			require.NotEmpty(t, p.Tracks)
			got := map[string]int{}
			for _, tr := range p.Tracks {
				assert.Contains(t, tt.groups, tr.Group)
				for _, s := range checkTrack(t, tr) {
					if !(tr.Group == "activities" && s.Instant) {
						got[s.Name]++
					}
				}
			}
			for name, n := range tt.want {
				assert.Equal(t, n, got[name], name)
			}
		})
	}
}

// Every event that no other track shows is an instant, from memory or from the file.
func TestEventsTrack(t *testing.T) {
	open := opener(t, "dotnet10/http-full.nettrace")
	count := func(k *tracker) (n int, names map[string]int) {
		names = map[string]int{}
		for _, tr := range k.l.profile.Tracks {
			for _, s := range checkTrack(t, tr) {
				assert.True(t, s.Instant)
				names[s.Name+" "+s.Category]++
				n++
			}
		}
		return n, names
	}
	load := func(limit int) (int, map[string]int, int) {
		l := newLoader(&Options{Tracks: []string{"events"}})
		k := newTracker(context.Background(), l, open)
		k.limit, l.tracks = limit, k
		_, err := input.Read(context.Background(), open, nil, l)
		require.NoError(t, err)
		n, names := count(k)
		return n, names, len(l.profile.Tracks)
	}
	n, names, tracks := load(maxItems)
	assert.Greater(t, tracks, 1, "one for each thread")
	m, again, one := load(1000)
	assert.Equal(t, 1, one, "one for the process")
	assert.Equal(t, n, m)
	assert.Equal(t, names, again)
}

// Suspensions for no reason that has a name are the sampler's, and not shown, where there is one:
// also those that came before its first sample. Others are all shown, however many there are.
func TestSuspensions(t *testing.T) {
	const n = 5000
	for name, x := range map[string]struct {
		sampledFrom int // the suspension before which a sample comes
		want        int
	}{"no sampler": {n, n}, "a sampler from the start": {0, n / 2}, "a sampler later": {n / 3, n / 2}} {
		t.Run(name, func(t *testing.T) {
			l := &loader{o: &Options{Tracks: []string{"gc"}}, profile: &profile.Profile{}, sampler: map[uint64]bool{}}
			k := newTracker(context.Background(), l, nil)
			p := &process{trace: &profile.Process{}}
			one, other := &thread{proc: p}, &thread{proc: p}
			l.order = []*process{p}
			event := func(id int, now int64, th *thread, reason byte) {
				k.event(&nettrace.Event{Metadata: &nettrace.Metadata{EventID: id, Source: nettrace.SourceRuntime}, Payload: []byte{reason, 0, 0, 0}}, now, th)
			}
			for i := range n {
				if i == x.sampledFrom {
					l.sampler[7] = true
				}
				now := int64(i) * 1000
				reason := byte(i % 2) // 1: a collection
				event(runtimeevents.IDSuspendEEBegin, now, one, reason)
				event(runtimeevents.IDSuspendEEEnd, now+100, other, reason) // of somebody else
				event(runtimeevents.IDSuspendEEEnd, now+200, one, reason)
				event(runtimeevents.IDRestartEEBegin, now+300, one, reason)
				event(runtimeevents.IDRestartEEEnd, now+400, one, reason)
			}
			l.end = n * 1000
			k.finish()
			require.Len(t, l.profile.Tracks, 1)
			all := checkTrack(t, l.profile.Tracks[0])
			require.Len(t, all, 3*x.want)
			for i := range x.want {
				at := int64(i) * 1000 * n / int64(x.want)
				names := [3]string{"suspended: GC", "suspending", "restarting"}
				if x.want < n {
					at += 1000 // the second of each two
				} else if i%2 == 0 {
					names[0] = "suspended: other"
				}
				for part, want := range [3]profile.Slice{{Start: at, Dur: 400}, {Start: at, Dur: 200}, {Start: at + 300, Dur: 100}} {
					got := all[3*i+part]
					require.Equal(t, [3]any{names[part], want.Start, want.Dur}, [3]any{got.Name, got.Start, got.Dur})
				}
			}
		})
	}
}

// Two threads may want to suspend the others at once: the second one waits until the first is done,
// and each ends its own.
func TestSuspensionsBesideEachOther(t *testing.T) {
	const begin, suspended, restart, restarted = runtimeevents.IDSuspendEEBegin, runtimeevents.IDSuspendEEEnd, runtimeevents.IDRestartEEBegin, runtimeevents.IDRestartEEEnd
	type at struct{ start, dur int64 }
	type step struct{ id, thread int } // one each 10 ns, from 0
	for name, tt := range map[string]struct {
		steps []step
		want  []at
		open  int
	}{
		"one after the other": {
			[]step{{begin, 0}, {begin, 1}, {suspended, 0}, {restart, 0}, {restarted, 0}, {suspended, 1}, {restart, 1}, {restarted, 1}},
			[]at{{0, 40}, {0, 20}, {30, 10}, {40, 30}, {40, 10}, {60, 10}}, 0,
		},
		"the end of the first was lost": {
			[]step{{begin, 0}, {begin, 1}, {suspended, 0}, {suspended, 1}, {restart, 1}, {restarted, 1}, {restarted, 0}},
			[]at{{0, 30}, {0, 20}, {30, 20}, {30, 0}, {40, 10}}, 0,
		},
		"the beginning of the second was lost": {
			[]step{{begin, 0}, {suspended, 0}, {restart, 1}, {restarted, 1}, {restart, 0}, {restarted, 0}},
			[]at{{0, 50}, {0, 10}, {40, 10}}, 0,
		},
		"the second gives up": {
			[]step{{begin, 0}, {begin, 1}, {restarted, 1}, {suspended, 0}, {restart, 0}, {restarted, 0}},
			[]at{{0, 50}, {0, 30}, {40, 10}}, 0,
		},
		"the recording ends": {
			[]step{{begin, 0}, {suspended, 0}, {begin, 1}},
			[]at{{0, 20}, {0, 10}}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loader{o: &Options{Tracks: []string{"gc"}}, profile: &profile.Profile{}, sampler: map[uint64]bool{}}
			k := newTracker(context.Background(), l, nil)
			p := &process{trace: &profile.Process{}}
			threads := []*thread{{proc: p}, {proc: p}}
			l.order = []*process{p}
			for i, s := range tt.steps {
				l.end = int64(i) * 10
				k.event(&nettrace.Event{Metadata: &nettrace.Metadata{EventID: s.id, Source: nettrace.SourceRuntime}, Payload: []byte{1, 0, 0, 0}}, l.end, threads[s.thread])
			}
			k.finish()
			var got []at
			open := 0
			for _, s := range checkTrack(t, l.profile.Tracks[0]) {
				got = append(got, at{s.Start, s.Dur})
				if s.Open {
					open++
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.open, open)
		})
	}
}

// A throw is over when it is handled, also where its handler throws: that has no stop then. Where
// the new one is caught in the handler, it goes on.
func TestExceptionsThatHandlersThrow(t *testing.T) {
	const (
		throw, stop      = runtimeevents.IDExceptionThrown, runtimeevents.IDExceptionStop
		catch, uncatch   = runtimeevents.IDExceptionCatchStart, runtimeevents.IDExceptionCatchStop
		finally, unfinal = runtimeevents.IDExceptionFinallyStart, runtimeevents.IDExceptionFinallyStop
	)
	type at struct{ start, end int64 }
	for name, tt := range map[string]struct {
		events []int // one each 10 ns, from 0
		want   []at  // in order of their starts
		open   int
	}{
		"plain":                      {[]int{throw, catch, uncatch, stop}, []at{{0, 30}, {10, 20}}, 0},
		"throw;":                     {[]int{throw, catch, catch, uncatch, stop}, []at{{0, 40}, {10, 20}, {20, 30}}, 0},
		"throw; with a finally":      {[]int{throw, catch, finally, unfinal, catch, uncatch, stop}, []at{{0, 60}, {10, 40}, {20, 30}, {40, 50}}, 0},
		"the handler throws":         {[]int{throw, catch, throw, catch, uncatch, stop}, []at{{0, 50}, {10, 50}, {20, 50}, {30, 40}}, 0},
		"and what follows is alone":  {[]int{throw, catch, throw, catch, uncatch, stop, throw, catch, uncatch, stop}, []at{{0, 50}, {10, 50}, {20, 50}, {30, 40}, {60, 90}, {70, 80}}, 0},
		"caught in the handler":      {[]int{throw, catch, throw, catch, uncatch, stop, uncatch, stop}, []at{{0, 70}, {10, 60}, {20, 50}, {30, 40}}, 0},
		"two caught in the handler":  {[]int{throw, catch, throw, catch, uncatch, stop, throw, catch, uncatch, stop, uncatch, stop}, []at{{0, 110}, {10, 100}, {20, 50}, {30, 40}, {60, 90}, {70, 80}}, 0},
		"caught in a finally":        {[]int{throw, finally, throw, catch, uncatch, stop, unfinal, catch, uncatch, stop}, []at{{0, 90}, {10, 60}, {20, 50}, {30, 40}, {70, 80}}, 0},
		"left before, stayed now":    {[]int{throw, catch, throw, catch, uncatch, stop, throw, catch, throw, catch, uncatch, stop, uncatch, stop}, []at{{0, 50}, {10, 50}, {20, 50}, {30, 40}, {60, 130}, {70, 120}, {80, 110}, {90, 100}}, 0},
		"not handled":                {[]int{throw, catch, uncatch, stop, throw}, []at{{0, 30}, {10, 20}, {40, 40}}, 1},
		"the trace ends in handlers": {[]int{throw, catch, throw, catch}, []at{{0, 30}, {10, 30}, {20, 30}, {30, 30}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loader{o: &Options{Tracks: []string{"exceptions"}}, profile: &profile.Profile{}, sampler: map[uint64]bool{}}
			k := newTracker(t.Context(), l, nil)
			p := &process{trace: &profile.Process{}}
			th := &thread{proc: p}
			l.order = []*process{p}
			k.ends[p.trace] = true
			for i, id := range tt.events {
				l.end = int64(10 * i)
				k.event(&nettrace.Event{Metadata: &nettrace.Metadata{EventID: id, Source: nettrace.SourceRuntime}}, l.end, th)
			}
			k.finish()
			require.Len(t, l.profile.Tracks, 1)
			var got []at
			open := 0
			for s := range l.profile.Tracks[0].Slices {
				got = append(got, at{s.Start, s.Start + s.Dur})
				if s.Open {
					open++
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.open, open)
		})
	}
}

// A wait that its thread gave up, as Lock.TryEnter does without a stop, lasts no longer than until
// the thread waits anew.
func TestContentionWithoutStop(t *testing.T) {
	p, _, err := Profile(t.Context(), func() (io.ReadCloser, error) { return unpack("../../testdata/nettrace/runtime-locks.nettrace.zst") }, &Options{Tracks: []string{"contention"}})
	require.NoError(t, err)
	ended, gaveUp := 0, 0
	var sum int64
	for _, tr := range p.Tracks {
		for _, s := range checkTrack(t, tr) {
			require.False(t, s.Open)
			if s.Instant {
				gaveUp++
			} else {
				ended++
				sum += s.Dur
			}
		}
	}
	assert.Equal(t, [2]int{282, 8}, [2]int{ended, gaveUp})
	assert.InDelta(t, 8930.803599e6, sum, 1e3)
}

// Every reason of a collection has words.
func TestReasonsOfCollections(t *testing.T) {
	p, _, err := Profile(t.Context(), func() (io.ReadCloser, error) { return unpack("../../testdata/nettrace/runtime-gc.nettrace.zst") }, &Options{Tracks: []string{"gc"}})
	require.NoError(t, err)
	aggressive := 0
	for _, tr := range p.Tracks {
		for s := range tr.Slices {
			assert.NotContains(t, s.Name, "unknown")
			if strings.HasSuffix(s.Name, "induced, aggressive)") {
				aggressive++
			}
		}
	}
	assert.Equal(t, 1, aggressive)
	for i := range len(gcReasons) {
		assert.NotEqual(t, "Unknown", runtimeevents.GCReason(i).String())
	}
	assert.Equal(t, "Unknown", runtimeevents.GCReason(len(gcReasons)).String())
}

// In a recording where handlers throw and rethrow, nothing is open at its end and nothing lasts
// over what follows.
func TestExceptionsOfARecording(t *testing.T) {
	p, _, err := Profile(t.Context(), func() (io.ReadCloser, error) {
		return unpack("../../testdata/nettrace/runtime-exceptions.nettrace.zst")
	}, &Options{Tracks: []string{"exceptions"}})
	require.NoError(t, err)
	n := 0
	for _, tr := range p.Tracks {
		for s := range tr.Slices {
			n++
			require.False(t, s.Open, s.Name)
			require.Less(t, s.Dur, int64(50e6), s.Name)
		}
	}
	assert.Equal(t, 734+764+35+100, n)
}

// Tracks that cannot be read again have an error.
func TestTracksFromBrokenDisk(t *testing.T) {
	l := &loader{o: &Options{Tracks: []string{"exceptions"}}, profile: &profile.Profile{}, sampler: map[uint64]bool{}}
	k := newTracker(context.Background(), l, nil)
	k.aside = &spool.Spool{Create: func() (spool.File, error) { return tracetest.Unreadable{}, nil }, Memory: 1}
	p := &process{trace: &profile.Process{}}
	th := &thread{proc: p}
	l.order = []*process{p}
	const n = 20_000
	for i := range 2 * n {
		id := runtimeevents.IDExceptionThrown
		if i >= n {
			id = runtimeevents.IDExceptionStop
		}
		k.event(&nettrace.Event{Metadata: &nettrace.Metadata{EventID: id, Source: nettrace.SourceRuntime}}, int64(i), th)
	}
	k.finish()
	require.Len(t, l.profile.Tracks, 1)
	for range l.profile.Tracks[0].Slices {
	}
	require.ErrorContains(t, l.profile.Tracks[0].Err(), "gone")
}

// Items that came out of order, as in damaged files, are put into it, and equal ones stay as they are.
func TestSortedItems(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := spool.ListIn[item](input.Aside(1))
	var want []item
	for i := range 10_000 {
		x := item{start: r.Int64N(1000), dur: int64(i)}
		list.Add(&x)
		want = append(want, x)
	}
	require.False(t, isSorted(list))
	list = sorted(list, input.Aside(1))
	require.True(t, isSorted(list))
	slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(a.start, b.start) })
	for i := range want {
		require.Equal(t, want[i], list.At(i))
	}
}
