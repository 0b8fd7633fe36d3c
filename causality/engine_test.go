package causality

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Frames of the tests. Two numbers that differ by a multiple of 100 are places in one method.
const (
	frameTop stacks.FrameID = iota + 1
	frameDispatch
	frameRun
	frameStart
	frameUser
	frameOther
	frameSetResult
	frameTracing
	frameSleep
	frameMonitor
	frameTaskWait
	frameMoveNext
	frameRunContinuations
	frameInside
	frameRunInline
	frameTurns
	framePark
	frameLibrary
	frameMoveOther
	frameResumes
)

var frameRoles = map[stacks.FrameID]Role{
	frameTop: ThreadTop, frameDispatch: Dispatch, frameRun: Captured, frameStart: Scoped, frameSetResult: Completes,
	frameTracing: Tracing, frameSleep: Sleeps, frameMonitor: Locks, frameTaskWait: Waits,
	frameMoveNext: Steps, frameRunContinuations: Follows, frameInside: Inside,
	frameRunInline: AtOnce, frameTurns: Turns, framePark: Parks, frameLibrary: Library, frameMoveOther: Steps,
	frameResumes: Resumes,
}

// A lab runs an Engine on events that a test writes down.
type lab struct {
	t    *testing.T
	tree *stacks.Tree
	g    *Engine
	out  []Segment
	now  int64
	acts map[int]*Activity // by the last number of their path
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, tree: stacks.NewTree(), acts: map[int]*Activity{}}
	l.g = NewEngine(&Options{
		Tree:    l.tree,
		Role:    func(f stacks.FrameID) Role { return frameRoles[f%100] },
		Method:  func(f stacks.FrameID) uint32 { return f % 100 },
		Segment: func(s *Segment) { l.out = append(l.out, *s) },
		Started: func(a *Activity) {
			p, _ := activity.Decode(a.ID, false)
			l.acts[int(p.At(p.Len()-1))] = a
		},
	})
	return l
}

// id is the id of 1/n, 1/n/m, ...
func (l *lab) id(path ...uint32) activity.ID {
	if len(path) == 0 {
		return activity.ID{}
	}
	id, err := activity.Encode(activity.NewPath(append([]uint32{1}, path...)...), activity.EncoderOld)
	require.NoError(l.t, err)
	return id
}

// add adds an event one ms after the one before.
func (l *lab) add(e Event, frames ...stacks.FrameID) {
	l.now += 1e6
	e.Time, e.Process, e.Thread = l.now, 1, max(e.Thread, 1)
	e.Stack = l.tree.Add(frames...)
	e.HasID = e.Kind != Sample
	l.g.Add(&e)
}

// workAt returns what thread 1 worked for at ms.
func (l *lab) workAt(ms int64) (a *Activity, known bool, s State) {
	l.t.Helper()
	for i := range l.out {
		if v := &l.out[i]; v.Thread == 1 && v.From < ms*1e6 && ms*1e6 <= v.To && v.State != Queued && v.Thrown == nil {
			return v.Activity, v.Known, v.State
		}
	}
	return nil, false, 0
}

func TestFlowOfAScopeIsGivenBack(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...)                                                  // 1
	l.add(Event{Kind: Start, ID: l.id(1, 2), Related: l.id(1), Name: "Job"}, append(item, frameStart, frameOther)...) // 2
	l.add(Event{Kind: Sample}, append(item, frameStart, frameOther+100, frameUser)...)                                // 3: in the job
	l.add(Event{Kind: Sample}, item...)                                                                               // 4: it returned
	l.add(Event{Kind: Sample}, frameTop, frameDispatch)                                                               // 5: the item is done
	l.add(Event{Kind: Idle})                                                                                          // 6
	l.add(Event{Kind: Sample, External: true}, frameTop, frameDispatch, frameRun, frameUser)                          // 7: another item: whose?
	l.add(Event{Kind: Idle})                                                                                          // 8
	l.g.Finish()
	for ms, want := range map[int64]*Activity{3: l.acts[2], 4: l.acts[1], 5: nil, 6: nil} {
		a, known, _ := l.workAt(ms)
		assert.True(t, known, ms)
		assert.Same(t, want, a, "at %d ms", ms)
	}
	_, known, _ := l.workAt(7)
	assert.False(t, known, "nothing tells the flow of an item without events")
}

func TestAnEventTellsOfTheSamplesBeforeIt(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: Sample}, append(item, frameOther)...) // 3
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(item, frameOther+100)...)
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(3)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)
}

func TestAnEventWithoutAStackIsNotOfTheFlowBefore(t *testing.T) {
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
	l.add(Event{Kind: Sample}, frameRun, frameUser) // 2: a thread that the program made
	l.add(Event{Kind: Sample}, frameRun, frameUser) // 3
	l.add(Event{})                                  // it has come to its end: the runtime locks something
	l.g.Finish()
	for ms := int64(3); ms <= 4; ms++ {
		_, known, _ := l.workAt(ms)
		assert.False(t, known, "at %d ms", ms)
	}
}

func TestAnEventWithoutAStackMayBeOfTheNextWorkItem(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, append(item, frameUser)...) // 1
	l.add(Event{Kind: Sample}, append(item, frameMoveNext)...)                                     // 2
	l.add(Event{Kind: Sample}, append(item, frameMoveNext)...)                                     // 3
	l.add(Event{ID: l.id(1)})                                                                      // 4: the next item calls a method for the first time
	l.add(Event{ID: l.id(1)}, frameTop, frameDispatch, frameRun, frameUser)                        // 5: it
	l.g.Finish()
	_, known, _ := l.workAt(3)
	assert.False(t, known)
	a, known, _ := l.workAt(5)
	require.True(t, known)
	assert.Same(t, l.acts[1], a)
}

func TestAnEventWithoutAStackTellsWhereNoEventHasOne(t *testing.T) {
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2})                          // 1
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameRun, frameMoveNext)                // 2
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameRun, frameMoveNext)                // 3
	l.add(Event{ID: l.id(1)})                                                                   // 4
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameRun, frameMoveNext+100, frameUser) // 5
	l.g.Finish()
	a, known, _ := l.workAt(3)
	require.True(t, known)
	assert.Same(t, l.acts[1], a)
}

func TestAThreadThatHadNoWorkWasForNobodyWhateverComes(t *testing.T) {
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Connection", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: Sample}, frameTop, framePark) // 3
	l.add(Event{Kind: Sample}, frameTop, framePark) // 4
	item := []stacks.FrameID{frameTop, frameDispatch, frameLibrary, frameStart, frameUser}
	l.add(Event{Kind: Sample}, item...)                                                   // 5: for nobody, as it seems
	l.add(Event{Kind: Start, ID: l.id(1, 2), Related: l.id(1), Name: "Request"}, item...) // 6: it was for the connection
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(4)
	assert.True(t, known, "no work is that of the connection, and nothing else may be")
	assert.Nil(t, a)
	_, known, _ = l.workAt(5)
	assert.False(t, known)
}

// Async methods whose state is an object, as all of a debug build, share the code that resumes them.
func TestAnotherAsyncMethodIsAnotherCallOfWhatResumesIt(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, append(item, frameUser)...) // 1
	l.add(Event{Kind: Start, ID: l.id(2), Name: "Request", Thread: 3}, append(item, frameUser)...) // 2
	l.add(Event{ID: l.id(1)}, append(item, frameMoveNext)...)                                      // 3
	l.add(Event{Kind: Sample}, append(item, frameMoveNext+100)...)                                 // 4: the same call
	l.add(Event{Kind: Sample}, append(item, frameMoveOther)...)                                    // 5
	l.add(Event{Kind: Sample}, append(item, frameMoveNext)...)                                     // 6
	l.add(Event{ID: l.id(2)}, append(item, frameMoveNext+100, frameUser)...)                       // 7
	l.g.Finish()
	for ms, want := range map[int64]*Activity{4: l.acts[1], 5: nil, 6: l.acts[2]} {
		a, known, _ := l.workAt(ms)
		assert.Equal(t, want != nil, known, "at %d ms", ms)
		assert.Same(t, want, a, "at %d ms", ms)
	}
}

func TestTheCallsAroundAreInTheFlowTheyHandOn(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameMoveNext}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...) // 1
	l.add(Event{Kind: Start, ID: l.id(2), Name: "Request", Thread: 3}, item...) // 2
	l.add(Event{ID: l.id(1)}, item...)                                          // 3
	// The pool has resumed the same method of another request, which calls one.
	l.add(Event{ID: l.id(2)}, append(item, frameStart, frameMoveOther)...) // 4
	l.add(Event{Kind: Sample}, item...)                                    // 5: that has returned
	l.g.Finish()
	a, known, _ := l.workAt(5)
	require.True(t, known)
	assert.Same(t, l.acts[2], a)
}

func TestAnActivityOfACallIsNotThatOfTheCallsAround(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameMoveNext}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...) // 1
	l.add(Event{ID: l.id(1)}, item...)                                          // 2
	l.add(Event{ID: l.id(1, 2)}, append(item, frameStart, frameMoveOther)...)   // 3: the start of it was lost
	l.add(Event{Kind: Sample}, item...)                                         // 4
	l.g.Finish()
	a, known, _ := l.workAt(4)
	require.True(t, known)
	assert.Same(t, l.acts[1], a)
}

func TestWhoAwaitsInAnotherFlowDoesNotTellOfWhatEnds(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameMoveNext}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...) // 1
	l.add(Event{Kind: Start, ID: l.id(2), Name: "Request", Thread: 3}, item...) // 2
	l.add(Event{ID: l.id(1)}, item...)                                          // 3
	ended := append(item, frameSetResult)
	l.add(Event{ID: l.id(2)}, append(ended, frameRun, frameMoveOther, frameStart, frameUser)...) // 4
	l.add(Event{Kind: Sample}, ended...)                                                         // 5
	l.g.Finish()
	a, known, _ := l.workAt(5)
	require.True(t, known)
	assert.Same(t, l.acts[1], a)
}

func TestWhoAwaitsIsInTheFlowOfWhatEnds(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	further := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser + 100}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: Sample}, append(item, frameOther)...) // 3: goes on, nothing tells for whom
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(further, frameSetResult, frameRun, frameUser)...)
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(3)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)

	l = newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: Sample}, append(item, frameOther)...)
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(further, frameOther, frameRun, frameUser)...) // no method ended
	l.add(Event{Kind: Idle})
	l.g.Finish()
	_, known, _ = l.workAt(3)
	assert.False(t, known, "a callback has a flow of its own")
}

func TestWhoAwaitsIsInTheFlowOfOptimizedCodeThatEnds(t *testing.T) {
	for caller, want := range map[stacks.FrameID]bool{frameMoveNext: true, frameOther: false} {
		l := newLab(t)
		item := []stacks.FrameID{frameTop, frameDispatch, frameRun, caller}
		further := []stacks.FrameID{frameTop, frameDispatch, frameRun, caller + 100}
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameUser)
		l.add(Event{Kind: Idle})
		l.add(Event{Kind: Sample}, append(item, frameUser)...) // 3: goes on, nothing tells for whom
		l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(further, frameRunContinuations, frameRun, frameUser)...)
		l.add(Event{Kind: Idle})
		l.g.Finish()
		_, known, _ := l.workAt(3)
		assert.Equal(t, want, known, "SetResult is part of an async method only")
	}
}

// Who awaits a ValueTask is called by the method that ends, with nothing in between that says so.
func TestWhoAwaitsAValueTaskIsInTheFlowOfWhatEnds(t *testing.T) {
	for caller, want := range map[stacks.FrameID]bool{frameMoveNext: true, frameOther: false} {
		l := newLab(t)
		item := []stacks.FrameID{frameTop, frameDispatch, frameRun, caller}
		further := []stacks.FrameID{frameTop, frameDispatch, frameRun, caller + 100}
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameUser)
		l.add(Event{Kind: Idle})
		l.add(Event{Kind: Sample}, append(item, frameUser)...) // 3: goes on, nothing tells for whom
		l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(further, frameResumes, frameRun, frameUser)...)
		l.add(Event{Kind: Idle})
		l.g.Finish()
		_, known, _ := l.workAt(3)
		assert.Equal(t, want, known)
	}
}

// A pooled method is no task: no event tells when it goes on, but one tells what it awaits.
func TestWhatIsNoTaskGoesOnWhenOneIsDone(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	told := []stacks.FrameID{frameTop, frameDispatch, frameRunContinuations}
	goesOn := append(slices.Clip(told), frameLibrary, frameResumes, frameRun, frameMoveNext)
	for _, other := range []int64{6, 7} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
		l.add(Event{Kind: TaskAwait, ID: l.id(1), Task: 7, Thread: 2}, item...)
		l.add(Event{Kind: Start, ID: l.id(2), Name: "Request", Thread: 3}, item...)
		l.add(Event{Kind: TaskAwait, ID: l.id(2), Task: other, Thread: 3}, item...)
		l.add(Event{Kind: StepBegin, Task: 7}, append(slices.Clip(told), frameTracing)...)
		l.add(Event{Kind: Sample}, append(slices.Clip(goesOn), frameUser)...)                                       // 6
		l.add(Event{Kind: Sample}, append(slices.Clip(goesOn), frameRunContinuations, frameRun, frameMoveOther)...) // 7: who awaits that
		l.add(Event{Kind: StepEnd}, append(slices.Clip(told), frameTracing)...)
		l.add(Event{Kind: Idle})
		l.g.Finish()
		for _, ms := range []int64{6, 7} {
			a, known, _ := l.workAt(ms)
			assert.Equal(t, other != 7, known, "at %d ms: which of two that await it is not known", ms)
			if known {
				assert.Same(t, l.acts[1], a, "at %d ms", ms)
			}
		}
	}
}

// A ValueTask ends once: the second one that awaits at the place of the first awaits another one.
func TestAnotherThatAwaitsAValueTaskAwaitsAnotherOne(t *testing.T) {
	l := newLab(t)
	reads := []stacks.FrameID{frameTop, frameDispatch, frameInside, frameRun, frameMoveNext, frameResumes, frameRun, frameMoveOther}
	for n := range uint32(2) {
		l.add(Event{Kind: Start, ID: l.id(n + 1), Name: "Request", Thread: 2}, frameTop, frameUser)
	}
	l.add(Event{Kind: Other, ID: l.id(1)}, append(reads, frameTracing)...)
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(reads, frameSetResult, frameRun, frameUser)...)
	l.add(Event{Kind: Sample}, append(reads, frameUser)...) // 5
	l.add(Event{Kind: Other, ID: l.id(2)}, append(reads, frameUser+100)...)
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(5)
	assert.True(t, known)
	assert.Same(t, l.acts[2], a)
}

// A thread that was not told to leave the flow behind runs in the one in which it was made, as does
// a task that has one for itself.
func TestAThreadIsForWhoMadeIt(t *testing.T) {
	for name, c := range map[string]struct {
		frames []stacks.FrameID
		known  bool
	}{
		"it":              {[]stacks.FrameID{frameTop, frameRun, frameOther}, true},
		"its task":        {[]stacks.FrameID{frameTop, frameInside, frameRun, frameOther}, true},
		"one of its work": {[]stacks.FrameID{frameTop, frameUser, frameRun, frameOther}, false},
	} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: ThreadMade, ID: l.id(1), Thread: 2, Task: 77}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: ThreadBegins, Task: 77})
		l.add(Event{Kind: Sample}, c.frames...) // 4
		l.add(Event{Kind: Sample}, c.frames...) // 5
		l.add(Event{Kind: ThreadBegins, Task: 78})
		l.add(Event{Kind: Sample}, c.frames...) // 7: another thread, of the same number
		l.add(Event{Kind: Sample}, c.frames...) // 8
		l.g.Finish()
		a, known, _ := l.workAt(5)
		assert.Equal(t, c.known, known, name)
		if known {
			assert.Same(t, l.acts[1], a, name)
			ran := int64(0)
			for _, v := range l.out {
				if v.Thread == 1 && v.Activity == a && v.To <= 5e6 {
					ran += v.To - v.From
				}
			}
			assert.EqualValues(t, 2e6, ran, "%s: from its beginning on", name)
		}
		_, known, _ = l.workAt(8)
		assert.False(t, known, name)
	}
}

// Parallel.For, a query in parallel and who waits for a task that was not begun run it themselves.
func TestATaskThatIsRunAtOnceIsForWhoWaits(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	inside := append(slices.Clone(item), frameRunInline, frameRun, frameOther)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...)
	l.add(Event{Kind: Sample}, inside...)                                                   // 2
	l.add(Event{Kind: Sample, External: true}, append(slices.Clone(inside), frameSleep)...) // 3
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, item...)
	l.add(Event{Kind: Idle})
	l.g.Finish()
	for ms, want := range map[int64]State{2: Running, 3: Sleep} {
		a, known, s := l.workAt(ms)
		assert.True(t, known, ms)
		assert.Same(t, l.acts[1], a, ms)
		assert.Equal(t, want, s, ms)
	}
}

func TestWhoWorksForNobodyMayWaitForAnybody(t *testing.T) {
	for name, outer := range map[string][]stacks.FrameID{"a thread": {frameUser}, "an item of the pool": {frameTop, frameDispatch, frameLibrary}} {
		l := newLab(t)
		inside := append(slices.Clone(outer), frameRunInline, frameRun, frameOther)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: Sample}, outer...)  // 2
		l.add(Event{Kind: Sample}, inside...) // 3
		l.add(Event{Kind: Sample}, inside...) // 4
		l.add(Event{ID: l.id(1)}, inside...)  // 5: for the request
		l.add(Event{Kind: Sample}, outer...)  // 6
		l.add(Event{Kind: Sample}, inside...) // 7: for whom?
		l.add(Event{Kind: Sample}, inside...) // 8
		l.g.Finish()
		a, known, _ := l.workAt(4)
		assert.True(t, known, name)
		assert.Same(t, l.acts[1], a, name)
		_, known, _ = l.workAt(8)
		assert.False(t, known, name)
	}
}

func TestBehindTheEndOfAnAsyncMethodIsAnotherCall(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameOther, frameRun, frameMoveNext}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameUser)
	l.add(Event{Kind: Start, ID: l.id(2), Name: "Request", Thread: 3}, frameTop, frameUser)
	l.add(Event{Kind: Other, ID: l.id(1)}, append(item, frameUser)...)
	l.add(Event{Kind: Other, ID: l.id(1)}, append(item[:4:4], frameMoveNext+100, frameSetResult, frameRun, frameUser)...)
	l.add(Event{Kind: Sample}, append(item[:4:4], frameInside)...) // 5: leaves the one that has ended, or enters the next
	l.add(Event{Kind: Sample}, append(item, frameUser)...)         // 6: as before, but that one has ended
	l.add(Event{Kind: Other, ID: l.id(2)}, append(item, frameUser)...)
	l.add(Event{Kind: Idle})
	l.g.Finish()
	_, known, _ := l.workAt(5)
	assert.False(t, known)
	a, known, _ := l.workAt(6)
	assert.True(t, known)
	assert.Same(t, l.acts[2], a)
}

func TestThePoolAdjustsItselfBetweenWorkItems(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameUser)
	l.add(Event{Kind: Sample}, item...) // 2
	l.add(Event{Kind: Other, ID: l.id(1)}, item...)
	l.now += 1e6
	l.g.Add(&Event{Kind: Between, Time: l.now, Process: 1, Thread: 1}) // 4: no stack, no id
	l.add(Event{Kind: Sample}, item...)                                // 5: another one at the same place
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(3)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)
	_, known, _ = l.workAt(5)
	assert.False(t, known)
}

func TestTaskEventsTellTheFlow(t *testing.T) {
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
	l.add(Event{Kind: TaskAwait, ID: l.id(1), Task: 7, Next: 8, Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
	l.add(Event{Kind: TaskReady, ID: l.id(1), Task: 9, Thread: 2}, frameTop, frameDispatch, frameRun, frameUser, frameOther)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: WorkBegin, Task: 8}, frameTop, frameDispatch, frameUser, frameTracing)
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameUser, frameRun, frameOther) // 6
	l.add(Event{Kind: WorkEnd}, frameTop, frameDispatch, frameUser, frameTracing)
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameUser) // 8
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(6)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)
	a, known, _ = l.workAt(8)
	assert.True(t, known)
	assert.Nil(t, a)
}

// That an async method which yields goes on is told by a verbose event; that its task runs again, by any.
func TestAMethodThatYieldsIsQueuedUntilItRunsAgain(t *testing.T) {
	call := []stacks.FrameID{frameTop, frameDispatch, frameUser}
	body := append(slices.Clip(call), frameRun, frameMoveNext)
	for _, tt := range []struct {
		name   string
		before []Event // of the thread that yields
		stack  []stacks.FrameID
		taken  []Event
		want   int
	}{
		{"it had been left", nil, append(slices.Clip(body), frameInside), []Event{{Kind: WorkBegin, Task: 8}}, 1},
		{"it is left", []Event{{Kind: TaskMade, Task: 9}}, append(slices.Clip(body), frameMoveOther, frameInside), []Event{{Kind: WorkBegin, Task: 9}}, 1},
		{"a method that is no task", nil, append(slices.Clip(body), frameMoveOther, frameInside), []Event{{Kind: WorkBegin, Task: 8}}, 0},
		{"both events", nil, append(slices.Clip(body), frameInside), []Event{{Kind: TaskTaken, Task: 20}, {Kind: WorkBegin, Task: 8}}, 1},
		{"it awaits since", nil, append(slices.Clip(body), frameInside), []Event{{Kind: TaskAwait, Task: 5, Next: 8}, {Kind: WorkBegin, Task: 8}}, 0},
	} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, call...)
		l.add(Event{Kind: TaskAwait, ID: l.id(1), Task: 7, Next: 8, Thread: 2}, call...)
		l.add(Event{Kind: WorkBegin, Task: 8}, append(slices.Clip(call), frameTracing)...)
		for _, e := range tt.before {
			e.ID = l.id(1)
			l.add(e, tt.stack...)
		}
		l.add(Event{Kind: TaskYields, ID: l.id(1), Task: 20}, tt.stack...)
		from := l.now
		l.add(Event{Kind: WorkEnd}, append(slices.Clip(call), frameTracing)...)
		l.add(Event{Kind: Idle})
		for _, e := range tt.taken {
			e.Thread = 3
			l.add(e, append(slices.Clip(call), frameTracing)...)
		}
		l.add(Event{Kind: Idle, Thread: 3})
		l.g.Finish()
		n := 0
		for _, s := range l.out {
			if s.State == Queued {
				n++
				assert.Equal(t, from, s.From, tt.name)
				assert.Same(t, l.acts[1], s.Activity, tt.name)
			}
		}
		assert.Equal(t, tt.want, n, tt.name)
	}
}

// What is queued while ExecutionContext.SuppressFlow holds is called by nothing that hands it a
// flow.
func TestATaskThatWasMadeWithoutAFlowIsForNobody(t *testing.T) {
	for name, c := range map[string]struct {
		stack []stacks.FrameID
		want  int
	}{
		"with":         {[]stacks.FrameID{frameTop, frameDispatch, frameInside, frameRun, frameInside, frameUser}, 1},
		"without":      {[]stacks.FrameID{frameTop, frameDispatch, frameInside, frameUser}, 0},
		"async":        {[]stacks.FrameID{frameTop, frameDispatch, frameInside, frameMoveNext}, 0},
		"not there":    {[]stacks.FrameID{frameTop, frameDispatch, frameInside, frameInside}, 1},
		"one of later": {[]stacks.FrameID{frameTop, frameDispatch, frameInside, frameUser, frameRun, frameUser}, -1},
	} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: TaskReady, ID: l.id(1), Task: 7, Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: Idle})
		l.add(Event{Kind: WorkBegin, Task: 7}, frameTop, frameDispatch, frameInside, frameTracing)
		l.add(Event{Kind: Sample}, c.stack...) // 5
		l.add(Event{Kind: WorkEnd}, frameTop, frameDispatch, frameInside, frameTracing)
		l.add(Event{Kind: Idle})
		l.g.Finish()
		a, known, _ := l.workAt(5)
		assert.Equal(t, c.want >= 0, known, name)
		assert.Same(t, l.acts[c.want], a, name)
	}
}

// What ContinueWith made runs in the flow in which it was made, and not in that of who ends the
// task before it: a timer, say.
func TestATaskContinuesInTheFlowInWhichItWasMade(t *testing.T) {
	for name, c := range map[string]struct {
		made  bool
		stack []stacks.FrameID
	}{
		"by a thread of the pool": {true, []stacks.FrameID{frameTop, frameDispatch, frameUser, frameRun, frameOther}},
		"at once":                 {true, []stacks.FrameID{frameTop, frameDispatch, frameUser, frameRunInline, frameRun, frameOther}},
		"its making was lost":     {false, []stacks.FrameID{frameTop, frameDispatch, frameUser, frameRun, frameOther}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
			if c.made {
				l.add(Event{Kind: TaskMade, ID: l.id(1), Task: 7, Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
			}
			l.add(Event{Kind: Idle})
			timer := []stacks.FrameID{frameTop, frameDispatch, frameUser, frameTracing}
			l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameUser)
			l.add(Event{Kind: TaskContinues, Task: 7}, timer...)
			l.add(Event{Kind: WorkBegin, Task: 7}, timer...)
			l.add(Event{Kind: Sample}, c.stack...)
			ran := l.now / 1e6
			l.add(Event{Kind: WorkEnd, Task: 7}, timer...)
			l.add(Event{Kind: Idle})
			l.g.Finish()
			a, known, _ := l.workAt(ran)
			assert.Equal(t, c.made, known)
			if c.made {
				assert.Same(t, l.acts[1], a)
			}
		})
	}
}

// Whoever asks to be told that the flow changes is called while it does.
func TestWhoIsToldThatTheFlowChangesIsInNeither(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: Sample}, item...)                                                       // 3
	l.add(Event{Kind: Sample}, item...)                                                       // 4
	l.add(Event{Kind: LockBegin}, frameTop, frameDispatch, frameRun, frameTurns, frameOther)  // 5
	l.add(Event{Kind: LockEnd}, frameTop, frameDispatch, frameRun, frameTurns, frameOther)    // 6
	l.add(Event{Kind: Other, ID: l.id(1)}, frameTop, frameDispatch, frameTurns, frameTracing) // 7
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameLibrary)                         // 8
	l.add(Event{Kind: Sample}, frameTop, frameDispatch, frameLibrary)                         // 9
	l.add(Event{Kind: Idle})
	l.g.Finish()
	_, known, _ := l.workAt(4)
	assert.False(t, known, "an event of nobody behind it")
	a, known, _ := l.workAt(9)
	assert.True(t, known)
	assert.Nil(t, a, "an event of the item before")
}

// What is allocated or compiled while a Start or a Stop is written has the id that comes behind it.
func TestWhatIsInTheWritingOfAnEventIsInNeither(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameMoveNext}
	writes := append(slices.Clip(item), frameTracing)
	for _, kind := range []Kind{Start, Stop} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
		if kind == Stop {
			l.add(Event{Kind: Start, ID: l.id(1, 2), Related: l.id(1), Name: "Job", Thread: 2}, item...)
		}
		l.add(Event{Kind: Idle})
		l.add(Event{Kind: Sample}, item...)
		at := l.now / 1e6
		if kind == Start {
			l.add(Event{Kind: Other, ID: l.id(1, 2)}, append(slices.Clip(writes), frameOther)...)
			l.add(Event{Kind: Start, ID: l.id(1, 2), Related: l.id(1), Name: "Job"}, writes...)
		} else {
			l.add(Event{Kind: Other, ID: l.id(1)}, append(slices.Clip(writes), frameOther)...)
			l.add(Event{Kind: Stop, ID: l.id(1, 2), Name: "Job"}, writes...)
		}
		l.add(Event{Kind: Idle})
		l.g.Finish()
		a, known, _ := l.workAt(at)
		assert.True(t, known)
		assert.Same(t, l.acts[map[Kind]int{Start: 1, Stop: 2}[kind]], a, kind)
	}
}

// What changes the flow makes objects of its own before it has done so, and has its callback
// compiled behind that.
func TestWhatChangesTheFlowMayNotHaveDoneSo(t *testing.T) {
	for _, of := range [][]uint32{nil, {2}} {
		l := newLab(t)
		for n := range uint32(2) {
			l.add(Event{Kind: Start, ID: l.id(n + 1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
		}
		l.add(Event{Kind: ThreadMade, ID: l.id(1), Thread: 2, Task: 77}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: ThreadBegins, Task: 77})
		l.add(Event{Kind: Other, ID: l.id(of...)}, frameTop, frameRun)
		l.add(Event{Kind: Sample}, frameTop, frameRun, frameUser) // 6
		l.add(Event{Kind: Idle})
		l.g.Finish()
		a, known, _ := l.workAt(6)
		assert.True(t, known)
		assert.Same(t, l.acts[1+len(of)], a)
	}
}

// Of two requests that the pool runs one behind the other through the same middleware only the
// handlers differ.
func TestAnotherMethodInThePlaceOfOneMayBeAnotherCall(t *testing.T) {
	for name, c := range map[string]struct {
		before, behind []stacks.FrameID
		known          bool
	}{
		"another method":      {[]stacks.FrameID{frameMoveNext, frameUser}, []stacks.FrameID{frameMoveNext, frameOther}, false},
		"behind a start":      {[]stacks.FrameID{frameStart, frameMoveNext, frameUser}, []stacks.FrameID{frameStart, frameMoveNext, frameOther}, false},
		"further on":          {[]stacks.FrameID{frameMoveNext, frameUser}, []stacks.FrameID{frameMoveNext + 100, frameOther}, true},
		"in the method":       {[]stacks.FrameID{frameMoveNext, frameUser}, []stacks.FrameID{frameMoveNext, frameUser + 100, frameOther}, true},
		"it has returned":     {[]stacks.FrameID{frameMoveNext, frameUser}, []stacks.FrameID{frameMoveNext}, true},
		"it has called again": {[]stacks.FrameID{frameMoveNext}, []stacks.FrameID{frameMoveNext, frameOther}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			item := []stacks.FrameID{frameTop, frameDispatch, frameRun}
			l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, item...)
			l.add(Event{Kind: Idle})
			l.add(Event{Kind: Sample}, append(item, c.before...)...)             // 3
			l.add(Event{Kind: Sample}, append(item, c.before...)...)             // 4
			l.add(Event{Kind: Other, ID: l.id(1)}, append(item, c.behind...)...) // 5
			l.add(Event{Kind: Sample}, append(item, c.behind...)...)             // 6
			l.add(Event{Kind: Idle})
			l.g.Finish()
			_, known, _ := l.workAt(4)
			assert.Equal(t, c.known, known)
			a, _, _ := l.workAt(6)
			assert.Same(t, l.acts[1], a)
		})
	}
}

// Where optimized code has the work item's own methods inside the pool's, nothing shows that it
// runs in a captured flow.
func TestWhatThePoolCallsItselfWasQueuedByAnybody(t *testing.T) {
	for called, none := range map[stacks.FrameID]bool{frameUser: false, frameLibrary: true, frameMoveNext: true} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
		l.add(Event{Kind: Idle})
		l.add(Event{Kind: Sample}, frameTop, frameDispatch, called)
		l.add(Event{Kind: Sample}, frameTop, frameDispatch, called) // 4
		l.add(Event{Kind: Sample}, frameTop, frameDispatch)
		l.g.Finish()
		a, known, _ := l.workAt(4)
		assert.Equal(t, none, known)
		assert.Nil(t, a)
	}
}

func TestTheSameStackIsNotTheSameWork(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "A", Thread: 2}, item...)
	l.add(Event{Kind: Start, ID: l.id(2), Name: "A", Thread: 3}, item...)
	l.add(Event{Kind: Other, ID: l.id(1)}, item...)
	l.add(Event{Kind: Sample}, append(item, frameOther)...) // 4: of the first or of the second
	l.add(Event{Kind: Other, ID: l.id(2)}, item...)
	l.add(Event{Kind: Idle})
	l.g.Finish()
	_, known, _ := l.workAt(4)
	assert.False(t, known)
}

func TestCutStacksAreAsWhatIsAroundThem(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	run := func(behind ...stacks.FrameID) *lab {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...)
		l.add(Event{Kind: Sample, Cut: true}, frameUser, frameUser, frameUser) // 2
		l.add(Event{Kind: Sample}, behind...)
		l.add(Event{Kind: Idle})
		l.g.Finish()
		return l
	}
	l := run(append(item, frameOther)...)
	a, known, _ := l.workAt(2)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)
	_, known, _ = run(frameTop, frameDispatch).workAt(2)
	assert.False(t, known, "it may have left the item before")
}

// Continuations of continuations make stacks that are cut: what events tell there is of what is
// cut, and of what is around.
func TestEventsTellTheFlowOfCutStacks(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Connection"}, item...)
	l.add(Event{Kind: Start, ID: l.id(1, 2), Related: l.id(1), Name: "Request"}, item...)
	l.add(Event{Kind: Other, ID: l.id(1, 2), Cut: true}, frameUser, frameUser, frameUser)      // 3
	l.add(Event{Kind: Sample, Cut: true}, frameUser, frameUser, frameOther)                    // 4
	l.add(Event{Kind: Stop, ID: l.id(1, 2), Name: "Request", Cut: true}, frameUser, frameUser) // 5
	l.add(Event{Kind: Sample}, item...)                                                        // 6
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(4)
	assert.True(t, known)
	assert.Same(t, l.acts[2], a, "and not in what it was in behind the end of the request")
	a, known, _ = l.workAt(6)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)
}

func TestCutStacksOfAThreadThatHadNoWorkAreOfNewWork(t *testing.T) {
	park := []stacks.FrameID{frameTop, framePark}
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun, frameUser)
	l.add(Event{Kind: Idle})
	l.add(Event{Kind: Sample}, park...)                                     // 3
	l.add(Event{Kind: Sample, Cut: true}, frameUser, frameUser, frameUser)  // 4
	l.add(Event{Kind: Sample, Cut: true}, frameUser, frameUser, frameOther) // 5
	l.add(Event{Kind: Other, ID: l.id(1), Cut: true}, frameUser, frameUser) // 6
	l.add(Event{Kind: Sample, External: true}, park...)                     // 7
	l.add(Event{Kind: Sample, External: true}, park...)                     // 8
	l.add(Event{Kind: Sample, Cut: true}, frameUser, frameUser, frameUser)  // 9
	l.add(Event{Kind: Sample, Cut: true}, frameUser, frameUser, frameOther) // 10
	l.add(Event{Kind: Sample, External: true}, park...)                     // 11
	l.add(Event{Kind: Idle})
	l.g.Finish()
	a, known, _ := l.workAt(5)
	assert.True(t, known)
	assert.Same(t, l.acts[1], a)
	a, _, _ = l.workAt(8)
	assert.Nil(t, a, "it waits for work again")
	_, known, _ = l.workAt(10)
	assert.False(t, known, "of which no event tells")
}

func TestStates(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	for _, c := range []struct {
		name     string
		external bool
		inner    []stacks.FrameID
		want     State
	}{
		{"running", false, nil, Running},
		{"native code that does not block", true, []stacks.FrameID{frameOther}, Running},
		{"sleep", true, []stacks.FrameID{frameSleep}, Sleep},
		{"just woken", false, []stacks.FrameID{frameSleep}, Sleep},
		{"lock", true, []stacks.FrameID{frameMonitor}, Lock},
		{"spins for a lock", false, []stacks.FrameID{frameMonitor}, Running},
		{"waits by sleeping", true, []stacks.FrameID{frameTaskWait, frameSleep}, Wait},
		{"called by who waits", true, []stacks.FrameID{frameTaskWait, frameUser, frameOther}, Running},
	} {
		l := newLab(t)
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...)
		l.add(Event{Kind: Sample, External: c.external}, append(item, c.inner...)...)
		l.add(Event{Kind: Sample, External: c.external}, append(item, c.inner...)...)
		l.g.Finish()
		_, _, s := l.workAt(3)
		assert.Equal(t, c.want, s, c.name)
	}
}

func TestWaitsThatEventsTell(t *testing.T) {
	l := newLab(t)
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...)
	l.add(Event{Kind: LockBegin, ID: l.id(1)}, item...)
	l.add(Event{Kind: HandleBegin, ID: l.id(1)}, item...) // every lock that blocks has one
	l.add(Event{Kind: HandleEnd, ID: l.id(1)})
	l.add(Event{Kind: LockEnd, ID: l.id(1)})
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, item...)
	l.g.Finish()
	for ms, want := range map[int64]State{2: Running, 3: Lock, 4: Lock, 5: Lock, 6: Running} {
		_, _, s := l.workAt(ms)
		assert.Equal(t, want, s, "at %d ms", ms)
	}
}

// TestLocksThatNobodyGot: Lock.TryEnter that gives up tells no end of its wait, which then ends
// where the thread does something else.
func TestLocksThatNobodyGot(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	entering := append(slices.Clone(item), frameMonitor)
	for name, c := range map[string]struct {
		kind  Kind
		stack []stacks.FrameID
		want  State // half a ms before the event behind it
	}{
		"it waits on":                    {Sample, append(slices.Clone(entering), frameInside), Lock},
		"who wanted the lock is behind":  {Sample, append(slices.Clone(item[:3]), frameOther), Running},
		"who wanted it goes on":          {Sample, append(slices.Clone(item[:3]), frameUser+100), Running},
		"code is compiled in it":         {Other, append(slices.Clone(entering), frameInside), Lock},
		"an event of other code":         {Other, append(slices.Clone(item[:3]), frameOther), Running},
		"an exception":                   {Throw, item, Running},
		"a task is queued":               {TaskReady, nil, Running},
		"another lock, which it has got": {LockBegin, entering, Lock},
		"nothing":                        {Other, nil, Lock},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...) // 1
			l.add(Event{Kind: LockBegin, ID: l.id(1)}, entering...)          // 2
			l.add(Event{Kind: HandleBegin, ID: l.id(1)}, entering...)        // 3
			l.add(Event{Kind: HandleEnd, ID: l.id(1)})                       // 4
			l.add(Event{Kind: c.kind, ID: l.id(1)}, c.stack...)              // 5
			if c.kind == LockBegin {
				l.add(Event{Kind: Other, ID: l.id(1)})
				l.add(Event{Kind: LockEnd, ID: l.id(1)})
				l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, item...)
				l.g.Finish()
				_, _, s := l.workAt(8)
				assert.Equal(t, Running, s)
				return
			}
			l.add(Event{Kind: c.kind, ID: l.id(1)}, c.stack...)             // 6
			l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, item...) // 7
			l.g.Finish()
			_, _, s := l.workAt(4)
			assert.Equal(t, Lock, s)
			_, _, s = l.workAt(6)
			assert.Equal(t, c.want, s)
		})
	}
}

// At level Informational, as is asked for, TplEventSource tells no end of Task.Wait.
func TestWaitsOfWhichNoEndIsTold(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
	waiting := append(slices.Clone(item), frameTaskWait)
	for name, c := range map[string]struct {
		kind  Kind
		stack []stacks.FrameID
		want  State
	}{
		"it waits on":            {Sample, append(slices.Clone(waiting), frameInside), Wait},
		"who waited goes on":     {Sample, append(slices.Clone(item[:3]), frameUser+100), Running},
		"it needs locks for it":  {LockBegin, append(slices.Clone(waiting), frameMonitor), Wait},
		"an event of other code": {Other, append(slices.Clone(item[:3]), frameOther), Running},
		"a task is made":         {TaskMade, nil, Running},
		"nothing":                {Other, nil, Wait},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...)             // 1
			l.add(Event{Kind: WaitBegin, ID: l.id(1)}, append(waiting, frameTracing)...) // 2
			l.add(Event{Kind: Sample, External: true}, waiting...)                       // 3
			l.add(Event{Kind: c.kind, ID: l.id(1)}, c.stack...)                          // 4
			l.add(Event{Kind: c.kind, ID: l.id(1)}, c.stack...)                          // 5
			l.g.Finish()
			_, _, s := l.workAt(3)
			assert.Equal(t, Wait, s)
			_, _, s = l.workAt(5)
			assert.Equal(t, c.want, s)
		})
	}
}

// Whatever the events: no panic, segments of a thread in order, and nothing twice.
func TestAnyEvents(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := newLab(t)
		var log Log
		var all []Event
		for range 300 {
			e := Event{Kind: Kind(rng.IntN(int(TaskContinues) + 1)), Thread: 1 + rng.Uint64N(3), Task: rng.Int64N(4), Next: rng.Int64N(4), External: rng.IntN(2) == 0, Cut: rng.IntN(9) == 0, HasInner: rng.IntN(2) == 0}
			e.HasID = e.Kind != Sample
			halt := e.Kind >= HaltAsked && e.Kind <= HaltEnd // of which a Log joins those that tell nothing else
			if e.HasID && (halt || rng.IntN(3) > 0) {
				e.ID = l.id(1+rng.Uint32N(3), 1+rng.Uint32N(2))
			}
			if e.Kind == Start && rng.IntN(2) == 0 {
				e.Related = l.id(1 + rng.Uint32N(3))
			}
			if e.Kind == Start || e.Kind == Stop {
				e.Name, e.Provider = "A", "P"
				if e.Kind == Start && !e.ID.IsZero() {
					e.Label = "S/A"
				}
			}
			var frames []stacks.FrameID
			for range rng.IntN(8) {
				frames = append(frames, frameTop+rng.Uint32N(uint32(frameResumes))+100*rng.Uint32N(2))
			}
			l.now += rng.Int64N(3) * 1e6
			e.Time, e.Process = l.now, 1
			e.Stack = l.tree.Add(frames...)
			log.Add(&e)
			all = append(all, e)
			l.g.Add(&e)
		}
		l.g.Finish()
		last := map[uint64]int64{}
		for _, s := range l.out {
			require.LessOrEqual(t, s.From, s.To)
			if s.State == Queued || s.Thrown != nil {
				continue
			}
			require.GreaterOrEqual(t, s.From, last[s.Thread], "seed %d", seed)
			last[s.Thread] = s.To
		}
		var e Event
		r := log.Read()
		for i := range all {
			require.True(t, r.Next(&e))
			require.Equal(t, all[i], e)
		}
		require.False(t, r.Next(&e))
	}
}

func TestLogKeepsEveryID(t *testing.T) {
	var log Log
	rng := rand.New(rand.NewPCG(1, 2))
	var all []Event
	for i := range 50_000 {
		var id activity.ID
		binary.LittleEndian.PutUint64(id[:], rng.Uint64N(20_000))
		e := Event{Kind: Other, Time: int64(i), Thread: rng.Uint64N(5), HasID: true, ID: id, Name: "x", Blocked: int64(i % 3)}
		all = append(all, e)
		log.Add(&e)
	}
	assert.Equal(t, len(all), log.Len())
	r := log.Read()
	var e Event
	for i := range all {
		require.True(t, r.Next(&e))
		require.Equal(t, all[i], e)
	}
}

// What a log has put aside is read like what is in memory; where that cannot be read there are no
// more events, and the error is told.
func TestLogAside(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		var file *os.File
		log := Log{Spool: &spool.Spool{Memory: 2 * logChunk, Create: func() (spool.File, error) {
			f, err := os.Create(filepath.Join(t.TempDir(), "spool"))
			file = f
			return f, err
		}}}
		rng := rand.New(rand.NewPCG(1, 2))
		var all []Event
		for i := range 100_000 {
			var id activity.ID
			binary.LittleEndian.PutUint64(id[:], rng.Uint64N(20_000))
			e := Event{Kind: Other, Time: int64(i), Thread: rng.Uint64N(5), HasID: true, ID: id}
			all = append(all, e)
			log.Add(&e)
		}
		t.Cleanup(func() { file.Close() }) // Windows removes no open file
		st, err := file.Stat()
		require.NoError(t, err)
		require.Greater(t, st.Size(), int64(10*logChunk))
		if breaks {
			require.NoError(t, file.Truncate(st.Size()/2))
		}
		n := 0
		r := log.Read()
		for e := (Event{}); r.Next(&e); n++ {
			require.Equal(t, all[n], e)
		}
		if breaks {
			assert.Less(t, n, len(all))
			assert.Greater(t, n, len(all)/4)
			require.Error(t, log.Spool.Err())
		} else {
			assert.Equal(t, len(all), n)
			require.NoError(t, log.Spool.Err())
		}
	}
}

// Of a time that is dropped nothing is known, and all of what comes after it.
func TestTimelineDrop(t *testing.T) {
	const second = int64(1e9)
	full := func() *timeline {
		l := &timeline{}
		for at := range 100 * second / 1e7 {
			l.add(at*1e7, at*1e7+1e6, int64(1))
		}
		return l
	}
	l, all := full(), full()
	l.within(0, second, 0) // a page of it was the last one that was asked for
	l.drop(50 * second)
	assert.Empty(t, l.within(0, 40*second, 0))
	assert.Equal(t, all.within(50*second, 100*second, 0), l.within(50*second, 100*second, 0))
	assert.Less(t, len(l.pages), len(all.pages)*6/10)
	l.add(second, 2*second, 1)
	assert.Equal(t, []stretch{{second, 2 * second, 1}}, l.within(0, 40*second, 0), "what comes late is known")
}

// Of samples that are alike the log has the first and the last, in front of what ends them.
func TestLogJoinsSamplesThatAreAlike(t *testing.T) {
	sample := func(ms int64, thread uint64, stack stacks.StackID) Event {
		return Event{Kind: Sample, Time: ms * 1e6, Thread: thread, Stack: stack, External: true}
	}
	var log Log
	for _, e := range []Event{
		sample(1, 1, 7), sample(1, 2, 9), sample(2, 1, 7), sample(3, 1, 7), sample(3, 2, 9), {Kind: Idle, Time: 4e6, Thread: 1, HasID: true},
		sample(5, 1, 7), sample(6, 1, 8), sample(7, 1, 8), sample(1200, 1, 8), sample(1300, 1, 8),
	} {
		log.Add(&e)
	}
	assert.Equal(t, 11, log.Len())
	var got []Event
	r := log.Read()
	for e := (Event{}); r.Next(&e); {
		got = append(got, e)
	}
	assert.Equal(t, []Event{
		sample(1, 1, 7), sample(1, 2, 9), sample(3, 1, 7), {Kind: Idle, Time: 4e6, Thread: 1, HasID: true}, sample(5, 1, 7), sample(6, 1, 8),
		sample(7, 1, 8), sample(1200, 1, 8), // too long for one run
		sample(1300, 1, 8), sample(3, 2, 9),
	}, got)
}

func TestAnIDThatComesAgainIsTheNewActivity(t *testing.T) {
	as := newActivities(horizon)
	start := func(id byte, name string, at int64) *Activity {
		e := &Event{Kind: Start, Process: 1, ID: activity.ID{id}, Name: name, Time: at}
		return as.start(e, as.begins(e), nil)
	}
	old := start(1, "old", 1)
	require.Same(t, old, as.find(1, old.ID))
	old.stop(2)
	again := start(1, "again", 3)
	assert.Same(t, again, as.find(1, old.ID), "the newest of its id")
	start(2, "other", 4)
	start(3, "third", 5)
	assert.Same(t, again, as.find(1, old.ID), "not among the last two any more")
	assert.NotSame(t, again, as.find(2, old.ID), "another process")
	again.stop(6)
	as.forget(7)
	as.forget(8)
	assert.NotSame(t, again, as.find(1, old.ID), "forgotten, however lately it was found")
}

// A program may start 500,000 activities a second: what is known of those that ended does not grow with it.
func TestOfVeryManyActivitiesThoseStoppedAreForgottenEarlier(t *testing.T) {
	as := newActivities(horizon)
	start := func(i uint32, at int64) *Activity {
		e := &Event{Kind: Start, Process: 1, Time: at}
		binary.LittleEndian.PutUint32(e.ID[:], i+1)
		return as.start(e, as.begins(e), nil)
	}
	const n = 5 * manyActivities
	var kept, forgotten int
	opened := make([]*Activity, 0, n/2)
	for i := range uint32(n) {
		since := as.since
		a := start(i, int64(i)*10)
		if i%2 == 0 {
			opened = append(opened, a)
		} else {
			a.stop(int64(i)*10 + 5)
		}
		if as.since != since {
			forgotten++
		}
	}
	for i := range uint32(n) {
		var id activity.ID
		binary.LittleEndian.PutUint32(id[:], i+1)
		a := as.known(1, &id)
		if i%2 == 0 {
			require.Same(t, opened[i/2], a, "an open one is known")
		} else if a != nil {
			kept++
		}
	}
	assert.Equal(t, 3, forgotten, "not at each start, though most are open")
	assert.Less(t, kept, n/2-manyActivities/4)
	assert.NotNil(t, as.known(1, &as.met[0].ID))
}

// Between two events a thread ran or stood: without samples that is not known, but for a moment.
func TestWhereTheFlowChangesWithoutASampleATimeIsUnseen(t *testing.T) {
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, frameTop, frameUser) // 1
	l.now += 9e6
	l.add(Event{Kind: Start, ID: l.id(2), Name: "Request"}, frameTop, frameDispatch, frameUser) // 11
	l.add(Event{Kind: Idle})
	l.g.Finish()
	for ms, want := range map[int64]struct {
		of    int
		state State
	}{2: {1, Running}, 3: {1, Unseen}, 6: {1, Unseen}, 7: {0, Unseen}, 10: {0, Unseen}, 11: {0, Running}} {
		a, known, s := l.workAt(ms)
		assert.True(t, known, ms)
		assert.Same(t, l.acts[want.of], a, ms)
		assert.Equal(t, want.state, s, "at %d ms", ms)
	}
}

func TestWithoutSamplesATimeBetweenEventsIsUnseen(t *testing.T) {
	for _, unsampled := range []bool{false, true} {
		l := newLab(t)
		l.g.o.Unsampled = unsampled
		item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, item...) // 1
		l.add(Event{Kind: Other, ID: l.id(1)}, item...)                  // 2
		l.now += 20e6
		l.add(Event{Kind: Other, ID: l.id(1)}, item...) // 23: it slept, perhaps
		l.add(Event{Kind: WaitBegin, ID: l.id(1), Task: 5}, item...)
		l.now += 20e6
		l.add(Event{Kind: WaitEnd, ID: l.id(1), Task: 5}, item...) // 45
		l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, item...)
		l.g.Finish()
		between := Running
		if unsampled {
			between = Unseen
		}
		for ms, want := range map[int64]State{2: Running, 12: between, 23: between, 24: Running, 40: Wait, 46: Running} {
			a, known, got := l.workAt(ms)
			assert.True(t, known, ms)
			assert.Same(t, l.acts[1], a, ms)
			assert.Equal(t, want, got, "unsampled %v at %d ms", unsampled, ms)
		}
	}
}

// TestIDsAreReadAlike holds that an id is read as the ids of all activities before it say, also of
// those whose parent is known.
func TestIDsAreReadAlike(t *testing.T) {
	g := NewEngine(&Options{Tree: stacks.NewTree(), Segment: func(*Segment) {}})
	lossy := func(nums ...uint32) activity.ID {
		id, err := activity.Encode(activity.NewPath(nums...).WithProcess(7), activity.EncoderNew)
		require.NoError(t, err)
		return id
	}
	root, eleventh, child := lossy(1, 1), lossy(1, 1, 11), lossy(1, 1, 11, 1)
	for i, e := range []Event{{ID: root}, {ID: eleventh, Related: root}, {ID: child, Related: eleventh}} {
		e.Kind, e.HasID, e.Process, e.Thread, e.Time = Start, true, 7, 1, int64(i)
		g.Add(&e)
	}
	ids := g.IDs()
	_, path := ids.Text(child)
	assert.Equal(t, "//1/1/?/1", path)
}

// TestWhatAnExceptionFollowsFrom: an exception tells that it names another one, which need not have
// been thrown.
func TestWhatAnExceptionFollowsFrom(t *testing.T) {
	l := newLab(t)
	throw := func(id activity.ID, name string, inner bool) {
		l.add(Event{Kind: Throw, ID: id, Name: name, Text: "x", HasInner: inner}, frameTop, frameUser)
	}
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"})
	throw(l.id(1), "NotFound", false)
	throw(l.id(1), "Wrapped", true)
	throw(l.id(1), "Wrapped", true) // thrown on
	throw(l.id(1), "Outer", true)
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"})
	l.add(Event{Kind: Start, ID: l.id(2), Name: "Request"})
	throw(l.id(2), "Read", true) // what it names was never thrown: that of the request before is not it
	throw(l.id(2), "Read", true)
	throw(l.id(2), "Send", true)
	l.now += 30e6
	throw(l.id(2), "Read", true) // another try
	l.g.Finish()
	var got [][2]string
	for _, s := range l.out {
		if s.Thrown != nil {
			got = append(got, [2]string{s.Thrown.Type, s.Thrown.Cause})
		}
	}
	assert.Equal(t, [][2]string{
		{"NotFound", ""}, {"Wrapped", "NotFound: x"}, {"Wrapped", "NotFound: x"}, {"Outer", "NotFound: x"},
		{"Read", ""}, {"Read", ""}, {"Send", "Read: x"}, {"Read", ""},
	}, got)
}

// An async method that threw has ended in the handler of its exception. The runtime tells the ends
// of that behind it, with the stack of the method: what the pool takes up next at the same place is
// another call.
func TestAnotherCallBehindAnException(t *testing.T) {
	l := newLab(t)
	step := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser, frameMoveNext}
	l.add(Event{Kind: Sample}, step...)                                                           // 1
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request"}, step...)                              // 2
	l.add(Event{Kind: Throw, ID: l.id(1)}, append(step[:5:5], frameOther)...)                     // 3
	l.add(Event{Kind: Stop, ID: l.id(1), Name: "Request"}, append(step[:5:5], frameSetResult)...) // 4: SetException
	l.add(Event{Kind: Caught, ID: l.id(2)}, append(step[:5:5], frameOther)...)                    // 5
	l.add(Event{Kind: Caught, ID: l.id(2)}, append(step[:5:5], frameOther)...)                    // 6
	l.add(Event{Kind: Sample}, append(step[:5:5], frameOther+100)...)                             // 7
	l.add(Event{Kind: Sample}, append(step[:5:5], frameOther+100)...)                             // 8
	l.add(Event{Kind: Idle})
	l.g.Finish()
	_, known, _ := l.workAt(8)
	assert.False(t, known)
}

// What began on another thread when a flow was under way is not that flow: another call has come to
// its place unseen.
func TestAnActivityThatBeganLaterIsAnotherFlow(t *testing.T) {
	l := newLab(t)
	step := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser, frameMoveNext}
	l.add(Event{Kind: Sample}, step...)                                                                   // 1
	l.add(Event{Kind: Sample}, step...)                                                                   // 2
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Request", Thread: 2}, frameTop, frameDispatch, frameRun) // 3
	l.add(Event{Kind: Sample}, step...)                                                                   // 4
	l.add(Event{Kind: Other, ID: l.id(1)}, step...)                                                       // 5
	l.add(Event{Kind: Sample}, step...)                                                                   // 6
	l.add(Event{Kind: Other, ID: l.id(1)}, step...)                                                       // 7
	l.add(Event{Kind: Idle})
	l.g.Finish()
	for ms, want := range map[int64]bool{2: false, 4: false, 6: true} {
		a, known, _ := l.workAt(ms)
		assert.Equal(t, want, known, "at %d ms", ms)
		if want {
			assert.Same(t, l.acts[1], a)
		}
	}
}

// The names of a start and its stop tell nothing if they have no suffix.
func TestAStopWithoutASuffixEndsTheActivityOfItsID(t *testing.T) {
	for name, stops := range map[string]bool{"EndExecute": true, "Execute": false} {
		l := newLab(t)
		item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Job"}, item...)
		l.add(Event{Kind: Start, ID: l.id(1, 2), Related: l.id(1), Name: "BeginExecute", Unsuffixed: true}, item...)
		l.add(Event{Kind: Stop, ID: l.id(1, 2), Name: name, Unsuffixed: stops}, item...)
		l.add(Event{Kind: Sample}, append(item, frameOther)...)
		l.add(Event{Kind: Sample}, append(item, frameOther)...)
		l.g.Finish()
		assert.Equal(t, stops, l.acts[2].Stopped, name)
		a, _, _ := l.workAt(5)
		assert.Same(t, map[bool]*Activity{true: l.acts[1], false: l.acts[2]}[stops], a, name)
	}
}

// A start that gets no id of its own shows that of the activity which it is in, and that one goes on
// behind it, whatever names their events have.
func TestAStartWithoutAnIDOfItsOwnLiesInTheActivityOfItsID(t *testing.T) {
	for name, related := range map[string]activity.ID{"tracking disabled": {}, "a related id of the program": {1, 2, 3}} {
		for _, stops := range []bool{true, false} {
			l := newLab(t)
			item := []stacks.FrameID{frameTop, frameDispatch, frameRun, frameUser}
			l.add(Event{Kind: Start, ID: l.id(1), Name: "Job"}, item...)                                          // 1
			l.add(Event{Kind: Sample}, append(item, frameOther)...)                                               // 2
			l.add(Event{Kind: Start, ID: l.id(1), Related: related, Name: "BeginOff", Unsuffixed: true}, item...) // 3
			off := l.acts[1]
			l.add(Event{Kind: Sample}, append(item, frameOther)...)     // 4
			l.add(Event{ID: l.id(1)}, append(item, frameOther+100)...)  // 5: it tells of both
			l.add(Event{Kind: Sample}, append(item, frameOther+200)...) // 6
			if stops {
				l.add(Event{Kind: Stop, ID: l.id(1), Name: "EndOff", Unsuffixed: true}, item...) // 7
			} else {
				l.add(Event{ID: l.id(1)}, item...)
			}
			l.add(Event{Kind: Sample}, append(item, frameOther)...)                                         // 8
			l.add(Event{ID: l.id(1)}, append(item, frameOther)...)                                          // 9
			l.add(Event{ID: l.id(1), Thread: 2}, frameTop, frameDispatch, frameRun, frameOther)             // 10
			l.add(Event{Kind: Sample, Thread: 2}, frameTop, frameDispatch, frameRun, frameOther, frameUser) // 11
			l.add(Event{Kind: Stop, ID: l.id(1), Name: "Job"}, item...)                                     // 12
			l.add(Event{Kind: Sample}, append(item, frameOther)...)                                         // 13
			l.add(Event{}, append(item, frameOther)...)                                                     // 14
			l.g.Finish()
			job := off.Parent
			require.NotNil(t, job, name)
			want := map[int64]*Activity{2: job, 4: off, 6: off, 8: job, 9: job, 12: job, 13: nil}
			if !stops {
				want[8], want[9], want[12] = off, off, off
			}
			for ms, want := range want {
				a, known, _ := l.workAt(ms)
				assert.True(t, known, "%s, stops %v, at %d ms", name, stops, ms)
				assert.Same(t, want, a.at(ms*1e6-1), "%s, stops %v, at %d ms", name, stops, ms)
			}
			assert.Equal(t, stops, off.Stopped)
			assert.EqualValues(t, 12e6, job.Stop)
			for _, v := range l.out {
				if v.Thread == 2 && v.To == 11e6 {
					assert.Same(t, job, v.Activity, "another thread of the job")
				}
			}
		}
	}
}

// Activities that were never stopped and have no id of their own do not make ever longer chains.
func TestStartsWithoutAnIDOfTheirOwnAreNoEndlessChain(t *testing.T) {
	l := newLab(t)
	l.add(Event{Kind: Start, ID: l.id(1), Name: "Job"}, frameTop, frameUser)
	job := l.acts[1]
	for range 10 * maxWithin {
		l.add(Event{Kind: Start, ID: l.id(1), Name: "Off"}, frameTop, frameUser)
		depth := 0
		for a := l.acts[1]; a != job; a = a.Parent {
			depth++
		}
		require.LessOrEqual(t, depth, maxWithin)
	}
	assert.LessOrEqual(t, len(l.g.acts.within[job]), maxWithin)
	l.g.Finish()
}

// A work item that is under way when the recording begins may have begun an activity before: for whom
// it works is not known until an event tells. No flow is handed to the next one.
func TestAWorkItemThatBeganBeforeTheRecording(t *testing.T) {
	item := []stacks.FrameID{frameTop, frameDispatch, frameLibrary, frameStart, frameUser}
	next := []stacks.FrameID{frameTop, frameDispatch, frameInside, frameUser}
	for name, c := range map[string]struct {
		between []Event
		told    bool // whom the first item works for
	}{
		"the next one is another":  {nil, false},
		"an event tells":           {[]Event{{ID: activity.ID{1}}}, true},
		"an event is between them": {[]Event{{Kind: Between}}, false},
	} {
		l := newLab(t)
		l.add(Event{Kind: Sample}, item...) // 1
		l.add(Event{Kind: Sample}, item...) // 2
		for _, e := range c.between {
			if c.told {
				e.ID = l.id(1)
				l.add(e, item...)
			} else {
				l.add(e, frameTop, frameDispatch)
			}
		}
		l.add(Event{Kind: Sample}, next...)
		l.add(Event{Kind: Sample}, next...)
		last := l.now / 1e6
		l.g.Finish()
		a, known, _ := l.workAt(2)
		assert.Equal(t, c.told, known, name)
		assert.Equal(t, c.told, a != nil, name)
		a, known, _ = l.workAt(last)
		assert.True(t, known, name)
		assert.Nil(t, a, name)
	}
}
