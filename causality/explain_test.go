package causality

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

const ms = int64(1e6)

// explained runs two threads for an activity of 100 ms: one waits, one is seen at work from
// 20 to 60 ms. Others are seen at work too, all that time.
func explained(t *testing.T, processors, others int, halts bool) *Time {
	t.Helper()
	l := newLab(t)
	var root *Activity
	x := NewExplainer(&ExplainOptions{
		Options: Options{
			Tree:   l.tree,
			Role:   func(f stacks.FrameID) Role { return frameRoles[f%100] },
			Method: func(f stacks.FrameID) uint32 { return f % 100 },
		},
		Root:       func(a *Activity) bool { root = a; return true },
		Processors: processors,
	})
	var log Log
	add := func(at int64, thread uint64, e Event, frames ...stacks.FrameID) {
		e.Time, e.Process, e.Thread = at, 1, thread
		e.Stack, e.HasID = l.tree.Add(frames...), e.Kind != Sample
		log.Add(&e)
	}
	wait := []stacks.FrameID{frameTop, frameUser, frameTaskWait}
	work := []stacks.FrameID{frameTop, frameOther}
	id := l.id(1)
	add(0, 1, Event{Kind: Start, ID: id, Name: "Request", Provider: "Lab"}, frameTop, frameUser)
	add(0, 1, Event{Kind: WaitBegin, ID: id, Task: 7}, frameTop, frameUser)
	for at := int64(0); at <= 100*ms; at += ms {
		if halts {
			add(at, 99, Event{Kind: HaltAsked})
			add(at, 99, Event{Kind: HaltBegin})
			add(at+ms/4, 99, Event{Kind: HaltEnd})
		}
		add(at+ms/4, 1, Event{Kind: Sample, External: true}, wait...)
		if at >= 20*ms && at <= 60*ms {
			add(at+ms/4, 2, Event{Kind: Other, ID: id}, work...)
			for n := range others {
				add(at+ms/4, uint64(10+n), Event{Kind: Other}, work...)
			}
		}
	}
	add(100*ms+ms/4, 1, Event{Kind: WaitEnd, ID: id, Task: 7}, frameTop, frameUser)
	var e Event
	for r := log.Read(); r.Next(&e); {
		x.Add(&e)
	}
	x.Finish()
	require.NotNil(t, root)
	got, ok := x.Explain(root, 0, 100*ms, nil, true)
	require.True(t, ok)
	assert.Equal(t, 100*ms, got.Time.Sum())
	assert.Equal(t, 40*ms, got.Time.Total, "what threads ran for it is not shared out")
	var steps int64
	for _, s := range got.Steps {
		steps += s.To - s.From
	}
	assert.Equal(t, 100*ms, steps)
	return &got.Time
}

// A thread that is ready has a processor for its share of the time only: while another one
// waits for it, the rest is the wait.
func TestReadyIsNotRunning(t *testing.T) {
	for _, c := range []struct {
		name       string
		processors int
		others     int
		halts      bool
		cpu        int64 // ms
	}{
		{"one for each", 2, 1, false, 40},
		{"three for two", 2, 2, false, 27},
		{"eight for two", 2, 7, false, 10},
		{"not known how many", 0, 7, false, 40},
		{"stopped for a quarter of the time", 2, 0, true, 30},
		{"both", 2, 7, true, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := explained(t, c.processors, c.others, c.halts)
			assert.InDelta(t, float64(c.cpu), float64(got.CPU)/1e6, 0.8)
			assert.InDelta(t, float64(100-c.cpu), float64(got.Of(Wait))/1e6, 0.8)
		})
	}
}

// TestCompiled: what a thread compiled belongs to the activity that it worked for, and to those around it; of what is
// compiled inside each other each instant counts once, and what was never ready does not.
func TestCompiled(t *testing.T) {
	l := newLab(t)
	acts := map[string]*Activity{}
	x := NewExplainer(&ExplainOptions{
		Options: Options{
			Tree:   l.tree,
			Role:   func(f stacks.FrameID) Role { return frameRoles[f%100] },
			Method: func(f stacks.FrameID) uint32 { return f % 100 },
		},
		Root: func(a *Activity) bool { acts[a.Name] = a; return true },
	})
	var log Log
	add := func(at int64, thread uint64, k Kind, id activity.ID, method int64) {
		log.Add(&Event{Kind: k, Time: at * ms, Process: 1, Thread: thread, ID: id, HasID: true, Task: method, Stack: l.tree.Add(frameTop, frameUser)})
	}
	outer, inner := l.id(1), l.id(1, 1)
	log.Add(&Event{Kind: Start, ID: outer, HasID: true, Name: "Outer", Provider: "Lab", Process: 1, Thread: 1})
	add(1, 1, CompileBegin, outer, 1)
	add(2, 1, CompileBegin, outer, 2) // inside of 1
	add(4, 1, CompileEnd, outer, 2)
	add(5, 1, CompileBegin, outer, 3) // fails
	add(8, 1, CompileEnd, outer, 1)
	add(9, 1, CompileEnd, outer, 4) // began before the trace
	add(10, 2, CompileBegin, activity.ID{}, 5)
	add(11, 1, CompileBegin, outer, 5) // on another thread as well
	add(12, 2, CompileEnd, activity.ID{}, 5)
	add(14, 1, CompileEnd, outer, 5)
	log.Add(&Event{Kind: Start, Time: 20 * ms, ID: inner, Related: outer, HasID: true, Name: "Inner", Provider: "Lab", Process: 1, Thread: 1})
	add(21, 1, CompileBegin, inner, 6)
	add(22, 1, CompileEnd, inner, 6)
	add(23, 1, CompileBegin, inner, 7) // never ready
	log.Add(&Event{Kind: Stop, Time: 24 * ms, ID: inner, HasID: true, Name: "Inner", Provider: "Lab", Process: 1, Thread: 1})
	for i := range int64(2 * maxCompiling) { // never ready either
		add(25, 1, CompileBegin, outer, 100+i)
	}
	add(26, 1, CompileBegin, outer, 8)
	add(28, 1, CompileEnd, outer, 8)
	log.Add(&Event{Kind: Stop, Time: 30 * ms, ID: outer, HasID: true, Name: "Outer", Provider: "Lab", Process: 1, Thread: 1})
	var e Event
	for r := log.Read(); r.Next(&e); {
		x.Add(&e)
	}
	x.Finish()
	for name, want := range map[string]struct {
		ns      int64
		methods int
	}{"Outer": {7*ms + 3*ms + 1*ms + 2*ms, 6}, "Inner": {1 * ms, 1}} {
		a := acts[name]
		require.NotNil(t, a, name)
		got, ok := x.Explain(a, a.Start, a.Stop, nil, false)
		require.True(t, ok, name)
		assert.Equal(t, want.ns, got.Time.Compiled, name)
		assert.Equal(t, want.methods, got.Time.Methods, name)
		assert.LessOrEqual(t, got.Time.Compiled, got.Time.Total, name)
	}
}

func TestTurnsOfAnyTime(t *testing.T) {
	var u turns
	u.wanted(-5*ms, 5*ms)
	u.wanted(-5*ms, 5*ms)
	assert.Equal(t, int64(10*ms), u.share(-5*ms, 5*ms, 2))
	assert.InDelta(t, float64(5*ms), float64(u.share(-5*ms, 5*ms, 1)), 0.7e6)
	u.wanted(0, 1<<62)
	assert.Less(t, len(u.buckets), 4, "a length of a file makes no slots")
	assert.Equal(t, int64(1)<<62, u.share(0, 1<<62, 1))
	for at := int64(0); at < (maxTurns+10)*bucket; at += bucket {
		u.halted(at, at+slot)
	}
	assert.LessOrEqual(t, len(u.buckets), maxTurns)
}

// Of a time that is dropped it is not known who wanted what, also where that was the last that was asked for.
func TestTurnsDrop(t *testing.T) {
	var u turns
	u.wanted(2000*ms, 2010*ms)
	u.wanted(2000*ms, 2010*ms)
	u.wanted(1000*ms, 1010*ms)
	u.wanted(1000*ms, 1010*ms)
	half := u.share(1000*ms, 1010*ms, 1)
	assert.InDelta(t, float64(5*ms), float64(half), 0.7e6)
	u.drop(1005 * ms) // inside what has some
	assert.Equal(t, half, u.share(1000*ms, 1010*ms, 1))
	u.drop(1500 * ms)
	assert.Equal(t, int64(10*ms), u.share(1000*ms, 1010*ms, 1))
	assert.InDelta(t, float64(5*ms), float64(u.share(2000*ms, 2010*ms, 1)), 0.7e6)
	assert.Len(t, u.buckets, 1)
}

// What goes on behind the end of an activity is not its own, though its flow goes on.
func TestExplainEnds(t *testing.T) {
	l := newLab(t)
	x := NewExplainer(&ExplainOptions{
		Options: Options{
			Tree:   l.tree,
			Role:   func(f stacks.FrameID) Role { return frameRoles[f%100] },
			Method: func(f stacks.FrameID) uint32 { return f % 100 },
		},
		Root: func(a *Activity) bool { return a.Name == "Request" },
	})
	root := &Activity{Name: "Request", Start: 10 * ms}
	x.started(root)
	inside, late := &Activity{Name: "Job", Parent: root, Start: 20 * ms}, &Activity{Name: "Job", Parent: root, Start: 120 * ms}
	x.started(inside)
	root.Stopped, root.Stop = true, 100*ms
	x.started(late)
	run, stand := l.tree.Add(frameTop, frameOther), l.tree.Add(frameTop, frameUser, frameTaskWait)
	for _, s := range []Segment{
		{From: 5 * ms, To: 30 * ms, State: Running, Stack: run},
		{From: 30 * ms, To: 30 * ms, Thrown: &Exception{Type: "In", At: 30 * ms}},
		{From: 60 * ms, To: 90 * ms, State: Wait, Stack: stand},
		{From: 90 * ms, To: 150 * ms, State: Running, Stack: run},
		{From: 150 * ms, To: 150 * ms, Thrown: &Exception{Type: "Out", At: 150 * ms}},
		{From: 150 * ms, To: 700 * ms, State: Wait, Stack: stand},
	} {
		s.Thread, s.Activity, s.Known = 1, root, true
		x.segment(&s)
	}
	got, ok := x.Explain(root, 10*ms, 100*ms, nil, false)
	require.True(t, ok)
	assert.Equal(t, 30*ms, got.Time.Total)
	require.Len(t, got.Hot, 1)
	assert.Equal(t, 30*ms, got.Hot[0].Time)
	require.Len(t, got.Stuck, 1)
	assert.Equal(t, 30*ms, got.Stuck[0].Time)
	require.Len(t, got.Exceptions, 1)
	assert.Equal(t, "In", got.Exceptions[0].Type)
	assert.Equal(t, []*Activity{inside}, got.Children)
}

// TestCalls: a span lies in the request that it is of, where both are told, and is none of its own;
// elsewhere it is a request.
func TestCalls(t *testing.T) {
	l := newLab(t)
	var roots []*Activity
	x := NewExplainer(&ExplainOptions{
		Options: Options{Tree: l.tree, Role: func(f stacks.FrameID) Role { return frameRoles[f%100] }, Method: func(f stacks.FrameID) uint32 { return f }},
		Root:    func(a *Activity) bool { roots = append(roots, a); return true },
	})
	var log Log
	add := func(at int64, kind Kind, id, related activity.ID, call, span bool) {
		log.Add(&Event{Kind: kind, Time: at * ms, Process: 1, Thread: 1, ID: id, Related: related, HasID: true, Name: "Request", Provider: "Lab", Call: call, Span: span})
	}
	none := activity.ID{}
	add(0, Start, l.id(1), none, false, false)            // served
	add(10, Start, l.id(1, 1), l.id(1), true, true)       // a span alone
	add(30, Stop, l.id(1, 1), none, false, false)         //
	add(40, Start, l.id(1, 2), l.id(1), true, false)      // a request
	add(50, Start, l.id(1, 2, 1), l.id(1, 2), true, true) // and its span
	add(60, Stop, l.id(1, 2, 1), none, false, false)      //
	add(70, Stop, l.id(1, 2), none, false, false)         //
	add(80, Start, l.id(2, 1), l.id(1), true, true)       // of another activity, as its path tells
	add(90, Stop, l.id(2, 1), none, false, false)         //
	add(100, Stop, l.id(1), none, false, false)           //
	var e Event
	for r := log.Read(); r.Next(&e); {
		x.Add(&e)
	}
	x.Finish()
	require.Len(t, roots, 5)
	var calls []bool
	for _, a := range roots {
		calls = append(calls, a.Call)
	}
	assert.Equal(t, []bool{false, true, true, false, true}, calls)
	got, _ := x.Explain(roots[0], 0, 100*ms, nil, false)
	assert.Len(t, got.Children, 3, "the one whose path tells another parent is not below it")
	own, _ := x.Explain(roots[2], 40*ms, 70*ms, nil, false)
	assert.Zero(t, own.Time.Other, "its span is itself")
	for _, c := range roots[0].work.calls {
		assert.Contains(t, []activity.ID{l.id(1, 1), l.id(1, 2)}, c.ID)
	}
	assert.Len(t, roots[0].work.calls, 2)
}

// TestPausesOfThreads: a collector asks for a pause while the sampler still holds all threads, and
// that these go on then ends no pause of it; nor does a pause of another process stop anyone here.
func TestPausesOfThreads(t *testing.T) {
	type what struct {
		at              int64 // ms
		process, thread int
		kind            Kind
	}
	for _, c := range []struct {
		name   string
		events []what
		gc     int64 // ms
	}{
		{"alone", []what{{20, 1, 5, PauseBegin}, {21, 1, 5, HaltBegin}, {30, 1, 5, PauseEnd}, {30, 1, 5, HaltEnd}}, 10},
		{"asked for while the sampler holds them", []what{
			{19, 1, 9, HaltAsked}, {19, 1, 9, HaltBegin}, {20, 1, 5, PauseBegin}, {21, 1, 9, PauseEnd}, {21, 1, 9, HaltEnd},
			{22, 1, 5, HaltBegin}, {30, 1, 5, PauseEnd}, {30, 1, 5, HaltEnd},
		}, 10},
		{"of another process", []what{{20, 2, 5, PauseBegin}, {30, 2, 5, PauseEnd}}, 0},
		{"of two processes", []what{{20, 2, 5, PauseBegin}, {25, 1, 5, PauseBegin}, {30, 2, 5, PauseEnd}, {33, 1, 5, PauseEnd}}, 8},
		{"without an end, and again", []what{{20, 1, 5, PauseBegin}, {50, 1, 5, PauseBegin}, {53, 1, 5, PauseEnd}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			var root *Activity
			x := NewExplainer(&ExplainOptions{
				Options: Options{
					Tree:   l.tree,
					Role:   func(f stacks.FrameID) Role { return frameRoles[f%100] },
					Method: func(f stacks.FrameID) uint32 { return f % 100 },
				},
				Root: func(a *Activity) bool { root = a; return true },
			})
			id, work := l.id(1), l.tree.Add(frameTop, frameOther)
			events := []Event{{Kind: Start, Process: 1, Thread: 1, ID: id, HasID: true, Name: "Request", Provider: "Lab", Stack: work}}
			for at := range int64(100) {
				events = append(events, Event{Kind: Other, Time: at * ms, Process: 1, Thread: 1, ID: id, HasID: true, Stack: work})
			}
			for _, w := range c.events {
				events = append(events, Event{Kind: w.kind, Time: w.at * ms, Process: uint32(w.process), Thread: uint64(w.thread)})
			}
			slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
			var log Log
			for i := range events {
				log.Add(&events[i])
			}
			var e Event
			for r := log.Read(); r.Next(&e); {
				x.Add(&e)
			}
			x.Finish()
			require.NotNil(t, root)
			got, ok := x.Explain(root, 0, 99*ms, nil, false)
			require.True(t, ok)
			assert.InDelta(t, float64(c.gc), float64(got.Time.GC)/1e6, 0.01)
			assert.Equal(t, 99*ms, got.Time.Sum())
		})
	}
}

// A sample that was taken on a CPU stands for the time between two of a thread that runs; in
// between, nothing tells what the thread did, but where it was switched off its CPU.
func TestOnCPU(t *testing.T) {
	for _, x := range []struct {
		name              string
		every             int64 // between samples, ms
		off               int64 // ms off its CPU, from 1 ms behind each sample on; 0: not recorded
		cpu, wait, unseen int64 // ms
		told              bool  // an event tells that it waits, all the time
	}{
		{"idle", 100, 0, 10, 0, 990, false},
		{"busy", 1, 0, 1000, 0, 0, false},
		{"every other ms", 2, 0, 1000, 0, 0, false},
		{"idle, and the switches are told", 100, 99, 10, 990, 0, false},
		{"a switch that does not tell all of it", 100, 50, 10, 500, 490, false},
		{"an event tells of the wait, too", 100, 50, 0, 1000, 0, true},
	} {
		l := newLab(t)
		var root *Activity
		o := Options{
			Tree:     l.tree,
			Role:     func(f stacks.FrameID) Role { return frameRoles[f%100] },
			Method:   func(f stacks.FrameID) uint32 { return f % 100 },
			Interval: ms,
		}
		log := Log{Interval: ms}
		add := func(at int64, e Event, frames ...stacks.FrameID) {
			e.Time, e.Process, e.Thread = at, 1, 1
			e.Stack = l.tree.Add(frames...)
			log.Add(&e)
		}
		id := l.id(1)
		add(0, Event{Kind: Start, ID: id, HasID: true, Name: "Request", Provider: "Lab"}, frameTop, frameUser)
		if x.told {
			add(0, Event{Kind: WaitBegin, ID: id, HasID: true, Task: 7}, frameTop, frameUser)
		}
		for at := int64(0); at < 1000*ms; at += x.every * ms {
			add(at, Event{Kind: Sample, OnCPU: true}, frameTop, frameUser)
			if x.off > 0 {
				add(at+ms, Event{Kind: Sample, External: true, Blocked: x.off * ms}, frameTop, frameUser, frameTaskWait)
			}
		}
		if x.told {
			add(1000*ms, Event{Kind: WaitEnd, ID: id, HasID: true, Task: 7}, frameTop, frameUser)
		}
		add(1000*ms, Event{Kind: Stop, ID: id, HasID: true, Name: "Request", Provider: "Lab"}, frameTop, frameUser)
		o.OnCPU = log.OnCPU()
		assert.Equal(t, [2]bool{true, x.off > 0}, [2]bool{o.OnCPU, log.OffCPU()}, x.name)
		e := NewExplainer(&ExplainOptions{Options: o, Root: func(a *Activity) bool { root = a; return true }})
		var ev Event
		for r := log.Read(); r.Next(&ev); {
			e.Add(&ev)
		}
		e.Finish()
		got, ok := e.Explain(root, 0, 1000*ms, nil, false)
		require.True(t, ok, x.name)
		assert.Equal(t, []int64{x.cpu, x.wait, x.unseen}, []int64{got.Time.CPU / ms, got.Time.Of(Wait) / ms, (got.Time.Unknown + got.Time.Await) / ms}, x.name)
		assert.Equal(t, got.Time.CPU, got.Time.Total, x.name)
		for _, s := range got.Stuck {
			assert.Equal(t, Wait, s.State, x.name)
		}
	}
}
