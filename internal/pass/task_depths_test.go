package pass

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

// A program is a thread that resumes awaits inside each other and is recorded: the stack of
// every event, and samples in between, cut at a limit.
type program struct {
	t     testing.TB
	r     *rand.Rand
	p     *profile.Profile
	th    *profile.Thread
	limit int
	at    int64
	stack []profile.FrameID // now
	truth []profile.StackID // whole, of every sample
	sites map[string]profile.FrameID
	next  uint32 // task
	drop  map[profile.TaskKind]bool
	bare  bool // events have no stacks
	busy  bool // methods go on when those that they resumed have returned
	// optimized: some code has the method that begins work in it, which in other code it calls
	optimized bool
	// inlined: some code that tells that a method is done is compiled into what calls it elsewhere
	inlined bool
	// delayed: it is a delay that resumes, and tells to be done when that has run
	delayed bool
	deep    int // frames of what the last method calls
}

func newProgram(t testing.TB, seed uint64, limit int) *program {
	g := &program{t: t, r: rand.New(rand.NewPCG(seed, 7)), limit: limit, sites: map[string]profile.FrameID{}, next: 1, drop: map[profile.TaskKind]bool{}}
	g.th = &profile.Thread{Process: &profile.Process{PID: 1}, TID: 1}
	g.p = &profile.Profile{Table: profile.NewTable(), Threads: []*profile.Thread{g.th}, Processes: []*profile.Process{g.th.Process}}
	g.call("Core!Thread.Start()", 0)
	g.call("Core!Pool.Dispatch()", 0)
	return g
}

// call calls a method from a place in the one that runs: the place is what the frame of the
// caller shows while it waits.
func (g *program) call(name string, site int) {
	g.stack = append(g.stack, g.frame(name, site))
}

func (g *program) frame(name string, site int) profile.FrameID {
	key := fmt.Sprint(name, site)
	f, ok := g.sites[key]
	if !ok {
		m := g.p.Table.AddMethod(profile.Method{Name: name})
		f = g.p.Table.AddFrame(profile.Frame{Method: m, Addr: uint64(len(g.sites))})
		g.sites[key] = f
	}
	return f
}

// move goes on to another place in the method that runs.
func (g *program) move(name string, site int) { g.stack[len(g.stack)-1] = g.frame(name, site) }

func (g *program) ret() { g.stack = g.stack[:len(g.stack)-1] }

func (g *program) record(typ profile.SampleType) {
	g.at += 1000
	whole := g.p.Table.Add(g.stack...)
	s := profile.Sample{Time: g.at, Type: typ, Stack: whole}
	if n := len(g.stack); n > g.limit {
		s.Stack, s.Cut = g.p.Table.Add(g.stack[n-g.limit:]...), profile.CutDepth
	}
	g.th.Samples.Append(s)
	g.truth = append(g.truth, whole)
}

func (g *program) sample() {
	if g.r.IntN(2) == 0 {
		g.record(profile.SampleManaged)
	}
}

func (g *program) event(kind profile.TaskKind, task, other uint32) {
	if g.drop[kind] {
		return
	}
	m := profile.TaskMark{Sample: int32(g.th.Samples.Len()), Stacked: !g.bare, Kind: kind, Task: task, Other: other}
	g.th.Tasks.Append(m)
	if g.bare {
		return
	}
	g.call("Core!System.Diagnostics.Tracing.EventSource.WriteEvent(int32)", int(kind))
	g.record(profile.SampleEvent)
	g.ret()
}

// resume runs n methods that await each other, each resumed by the one before.
func (g *program) resume(n int, tasks []uint32) {
	const body, result, run, output = "App!App+<Same>d__1.MoveNext()", "Core!Builder.SetResult()", "Core!Task.RunContinuations()", "Core!Awaiter+<>c.<Output>b__1()"
	task, box, site := tasks[0], "Core!Box`1[App+<Same>d__1].MoveNext(class Thread)", 0
	if inlined := g.optimized && g.stack[len(g.stack)-1] == g.frame(output, 1) && g.r.IntN(2) == 0; inlined {
		box, site = output, 10
		g.move(box, site)
	} else {
		g.call(box, site)
	}
	depth := len(g.stack)
	g.sample()
	g.event(profile.TaskBegins, task, 2)
	g.move(box, site+1)
	g.call(body, 0)
	g.sample()
	if g.r.IntN(3) == 0 {
		g.call("App!Busy()", g.r.IntN(4))
		g.sample()
		g.ret()
	}
	if n > 1 {
		g.move(body, 1)
		set, calls := result, false
		if g.inlined {
			if calls = g.r.IntN(2) == 0; calls {
				g.call(result, 2)
				set = "Core!Builder.SetExisting()"
			}
		}
		g.call(set, 0)
		g.event(profile.TaskCompleted, task, 0)
		g.move(set, 1)
		g.call(run, 0)
		g.event(profile.TaskBegins, task, 0)
		g.move(run, 1)
		g.call(output, 0)
		g.event(profile.TaskResumes, task, 0)
		g.move(output, 1)
		g.resume(n-1, tasks[1:])
		g.move(output, 2)
		g.event(profile.TaskResumed, task, 0)
		g.ret()
		g.ret() // by a tail call: the end is told by the caller
		g.event(profile.TaskEnds, 0, 0)
		g.ret()
		if calls {
			g.ret()
		}
		if g.busy {
			g.move(body, 2)
			g.sample()
		}
	}
	if n == 1 && g.deep > 0 {
		g.move(body, 3)
		for i := range g.deep {
			g.call("App!Visit()", 0)
			if i > g.deep-4 {
				g.record(profile.SampleManaged)
			}
		}
		g.stack = g.stack[:len(g.stack)-g.deep]
	}
	g.ret()
	require.Len(g.t, g.stack, depth)
	g.move(box, site+2)
	g.event(profile.TaskEnds, 0, 2)
	if g.busy {
		g.sample()
	}
	if site == 0 {
		g.ret()
	}
}

// run starts a chain of n methods, then resumes it.
func (g *program) run(n int) {
	tasks := make([]uint32, n)
	for i := range tasks {
		tasks[i] = g.next
		g.next++
	}
	for i := 0; i+1 < n; i++ {
		g.event(profile.TaskAwaited, tasks[i], tasks[i+1])
	}
	g.call(fmt.Sprintf("Core!Resumer%d()", g.r.IntN(3)), 0)
	g.sample()
	if g.delayed {
		const complete = "Core!Delay.Complete()"
		delay := g.next
		g.next++
		g.event(profile.TaskCreated, delay, profile.TaskDelay)
		g.call(complete, 0)
		g.resume(n, tasks)
		g.move(complete, 1)
		g.event(profile.TaskCompleted, delay, 0)
		g.ret()
	} else {
		g.resume(n, tasks)
	}
	g.ret()
	g.sample()
}

// check resolves and holds the answers against the truth.
func (g *program) check(least float64) {
	g.t.Helper()
	all, err := resolveTasks(g.t.Context(), g.p, 0.9)
	require.NoError(g.t, err)
	answers := all[g.th]
	cut := 0
	for _, s := range g.th.Samples.All() {
		if s.Cut != profile.Whole {
			cut++
		}
	}
	require.NotZero(g.t, cut)
	last := int32(-1)
	for a := range answers.all {
		require.Greater(g.t, a.index, last)
		last = a.index
		if g.truth[a.index] != a.stack {
			require.Fail(g.t, "wrong", "sample %d: %d frames, truth %d", a.index, g.p.Table.Depth(a.stack), g.p.Table.Depth(g.truth[a.index]))
		}
		require.Greater(g.t, answers.confidence, float32(0.9))
	}
	assert.GreaterOrEqual(g.t, float64(answers.len()), least*float64(cut), "%d of %d", answers.len(), cut)
}

// Every answer is the true stack, whatever kinds of events a trace holds; the more kinds it
// holds, the more is answered.
func TestResolve(t *testing.T) {
	all := []profile.TaskKind{profile.TaskCreated, profile.TaskCompleted, profile.TaskAwaited, profile.TaskResumes, profile.TaskResumed, profile.TaskBegins, profile.TaskEnds}
	for _, tt := range []struct {
		name  string
		kinds []profile.TaskKind
		least float64
	}{
		{"all", all, 0.9},
		{"work only", []profile.TaskKind{profile.TaskBegins, profile.TaskEnds}, 0.9},
		{"resumed", []profile.TaskKind{profile.TaskAwaited, profile.TaskResumes, profile.TaskResumed}, 0.9},
		{"resumes", []profile.TaskKind{profile.TaskAwaited, profile.TaskResumes}, 0.4},
		{"completed", []profile.TaskKind{profile.TaskAwaited, profile.TaskCompleted}, 0.4},
		{"who awaits whom only", []profile.TaskKind{profile.TaskAwaited}, 0},
	} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%s/%d", tt.name, seed), func(t *testing.T) {
				g := newProgram(t, seed, 30)
				for _, k := range all {
					g.drop[k] = true
				}
				for _, k := range tt.kinds {
					delete(g.drop, k)
				}
				g.busy = len(tt.kinds) > 3 || seed%2 == 0 && tt.name != "resumes" && tt.name != "completed"
				for range 8 {
					g.run(2 + g.r.IntN(30))
				}
				g.check(tt.least)
			})
		}
	}
}

// A method that has another one compiled into it begins what that would only where it calls what
// that calls.
func TestResolveOptimizedCode(t *testing.T) {
	for seed := range uint64(20) {
		g := newProgram(t, seed, 30)
		g.optimized, g.busy = true, seed%2 == 0
		for range 8 {
			g.run(2 + g.r.IntN(30))
		}
		g.check(0.9)
	}
}

// Events that tell that tasks are done, and none of the ends, tell as much where the method that
// writes them is compiled into its callers at times, and where delays resume, which write theirs
// when all is over.
func TestResolveCompleted(t *testing.T) {
	for seed := range uint64(20) {
		g := newProgram(t, seed, 30)
		g.inlined, g.delayed = seed%4 != 1, seed%4 != 0
		for k := range profile.TaskEnds + 1 {
			g.drop[k] = k != profile.TaskAwaited && k != profile.TaskCompleted && k != profile.TaskCreated
		}
		for range 8 {
			g.run(2 + g.r.IntN(30))
		}
		g.check(0.4)
	}
}

// Of a stack of which no recorded frame has begun anything its outermost frames are known, and how
// much has begun in the rest: what the stacks around it seem to show gives way to that.
func TestTasksTellOutermostFrames(t *testing.T) {
	lost := func(name string) bool {
		return !strings.Contains(name, "MoveNext(class") && !strings.Contains(name, "RunContinuations")
	}
	bridged, restored := 0, 0
	for seed := range uint64(8) {
		g := newProgram(t, seed, 30)
		g.deep = 40
		for range 30 {
			g.run(2 + g.r.IntN(12))
		}
		FixStacks(g.p, 0.9)
		repairs := g.th.Repairs.Cursor()
		for i, s := range g.th.Samples.All() {
			r := repairs.Of(i)
			if r == nil {
				continue
			}
			var frames, truth []string
			for _, f := range g.p.Table.AppendFrames(nil, s.Stack) {
				frames = append(frames, g.p.Table.MethodOf(f).Name)
			}
			for _, f := range g.p.Table.AppendFrames(nil, g.truth[i]) {
				truth = append(truth, g.p.Table.MethodOf(f).Name)
			}
			if r.How != profile.HowBridge {
				assert.Equal(t, len(slices.DeleteFunc(truth, lost)), len(slices.DeleteFunc(frames, lost)), "seed %d, sample %d", seed, i)
				continue
			}
			base := slices.Index(frames, profile.Bridge)
			require.Less(t, base, len(truth))
			assert.Equal(t, truth[:base], frames[:base], "seed %d, sample %d", seed, i)
			bridged++
			restored += base
		}
	}
	require.Greater(t, bridged, 100)
	assert.Greater(t, restored, 20*bridged)
}

// Where nothing tells the ends and methods go on behind them, whole stacks show that the
// events mislead, and nothing is answered.
func TestResolveWithoutEnds(t *testing.T) {
	for seed := range uint64(20) {
		g := newProgram(t, seed, 30)
		g.busy = true
		for k := range profile.TaskEnds + 1 {
			g.drop[k] = k != profile.TaskAwaited && k != profile.TaskCompleted
		}
		for range 8 {
			g.run(2 + g.r.IntN(30))
		}
		answers, err := resolveTasks(t.Context(), g.p, 0.9)
		require.NoError(t, err)
		assert.Empty(t, answers)
	}
}

// Without stacks of their own events tell how deep a stack is where whole ones were sampled
// in between.
func TestResolveEventsWithoutStacks(t *testing.T) {
	g := newProgram(t, 3, 30)
	g.bare = true
	for range 8 {
		g.run(20)
	}
	answers, err := resolveTasks(t.Context(), g.p, 0.5)
	require.NoError(t, err)
	assert.Empty(t, answers, "no event shows what writes it")
}

// The frames above the marker of what has begun are known of all that has begun before, too, and hold their markers
// with the frames above these: so nobody looks at them again.
func TestKnownFramesAgree(t *testing.T) {
	checked := 0
	for seed := range uint64(12) {
		g := newProgram(t, seed, 30)
		g.busy = seed%2 == 0
		g.drop[profile.TaskKind(seed%uint64(profile.TaskEnds+1))] = seed%3 == 0
		for range 8 {
			g.bare = g.r.IntN(8) == 0
			g.run(2 + g.r.IntN(30))
		}
		visitTasks(g.p, func(_ *profile.Thread, _ int, _ *profile.Sample, at *atTask) {
			r, known, above := at.r, false, profile.StackID(0)
			next := func() profile.StackID {
				for above != 0 && r.roleAt(above)&marker == 0 {
					above = r.tab.Parent(above)
				}
				return above
			}
			for i := len(r.open) - 1; i >= 0; i-- {
				e := &r.open[i]
				if known {
					require.True(t, e.known)
					require.NotZero(t, next())
					if e.marker != anyMethod {
						require.Equal(t, r.tab.Method(r.tab.Frame(above)), e.marker)
					}
					require.Equal(t, r.tab.Parent(above), e.above)
					checked++
				}
				known, above = e.known, e.above
			}
			if known {
				require.Zero(t, next(), "no marker is left")
			}
		})
	}
	assert.Greater(t, checked, 10_000)
}

// What was lost makes no wrong answer.
func TestResolveLossy(t *testing.T) {
	for seed := range uint64(30) {
		g := newProgram(t, seed, 30)
		for range 10 {
			g.run(2 + g.r.IntN(30))
		}
		// A stretch of events is gone, with the samples in it.
		n := g.th.Samples.Len()
		from := g.r.IntN(n)
		to := min(n, from+1+g.r.IntN(40))
		var samples profile.Samples
		var truth []profile.StackID
		var lost int64
		for i, s := range g.th.Samples.All() {
			if i >= from && i < to {
				lost = s.Time
				continue
			}
			samples.Append(s)
			truth = append(truth, g.truth[i])
		}
		var tasks profile.TaskMarks
		for m := range g.th.Tasks.All() {
			if i := int(m.Sample); i < from {
				tasks.Append(m)
			} else if i >= to {
				m.Sample -= int32(to - from)
				tasks.Append(m)
			}
		}
		g.th.Samples, g.truth, g.th.Tasks = samples, truth, tasks
		g.p.Losses = []profile.Loss{{From: lost, To: lost + 1, Thread: g.th}}
		g.check(0.5)
	}
}

// A trace that begins in the middle of a chain.
func TestResolveAttachedLate(t *testing.T) {
	for seed := range uint64(20) {
		g := newProgram(t, seed, 30)
		for range 10 {
			g.run(25)
		}
		n := g.th.Samples.Len()
		from := n/4 + g.r.IntN(n/4)
		var samples profile.Samples
		for i, s := range g.th.Samples.All() {
			if i >= from {
				samples.Append(s)
			}
		}
		var tasks profile.TaskMarks
		for m := range g.th.Tasks.All() {
			if int(m.Sample) >= from {
				m.Sample -= int32(from)
				tasks.Append(m)
			}
		}
		g.th.Samples, g.truth, g.th.Tasks = samples, g.truth[from:], tasks
		g.check(0.4)
	}
}

func TestIsBody(t *testing.T) {
	for name, want := range map[string]bool{
		"Lab.Await+<Same>d__9.MoveNext()":        true,
		"Program+<<Main>$>d__0.MoveNext()":       true,
		"Lab.Req+<>c+<<Run>b__22_8>d.MoveNext()": true,
		"Polly.TimeoutResilienceStrategy+<ExecuteCore>d__12`2[System.__Canon,System.__Canon].MoveNext()":                                            true,
		"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.Int64,Lab.Await+<Same>d__9].MoveNext()":             false,
		"System.Linq.Enumerable+RangeSelectIterator`2[System.Int32,System.__Canon].MoveNext()":                                                      false,
		"System.Collections.Generic.List`1+Enumerator[System.__Canon].MoveNext()":                                                                   false,
		"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.Int64,Lab.Await+<Same>d__9].MoveNext(class Thread)": false,
	} {
		assert.Equal(t, want, isBody(name), name)
	}
}

// Events in any order, with any tasks, that begin and end nothing: no panic, and no answer
// without a proof.
func FuzzResolve(f *testing.F) {
	f.Add([]byte{5, 1, 2, 6, 0, 2, 1, 1, 0}, uint8(4))
	f.Add([]byte{3, 1, 0, 4, 1, 0, 3, 2, 0, 2, 2, 3, 0, 2, 0}, uint8(2))
	f.Add([]byte{1, 1, 0, 1, 2, 0, 2, 1, 2}, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, limit uint8) {
		g := newProgram(t, 1, int(limit%16)+2)
		for ; len(b) >= 3; b = b[3:] {
			switch b[0] % 10 {
			case 7:
				g.call(fmt.Sprintf("App!App+<M%d>d__1.MoveNext()", b[1]%4), int(b[2]%4))
			case 8:
				if len(g.stack) > 1 {
					g.ret()
				}
			case 9:
				g.record(profile.SampleManaged)
			default:
				g.bare = b[0] >= 128
				g.event(profile.TaskKind(b[0]%10), uint32(b[1]), uint32(b[2]))
			}
		}
		all, err := resolveTasks(t.Context(), g.p, 0)
		require.NoError(t, err)
		for _, answers := range all {
			for a := range answers.all {
				if a.index < 0 || int(a.index) >= g.th.Samples.Len() || g.p.Table.Depth(a.stack) <= g.limit {
					t.Fatalf("answer %+v", a)
				}
			}
		}
		visitTasks(g.p, func(_ *profile.Thread, _ int, s *profile.Sample, at *atTask) {
			at.Task(s.Stack, 0)
			at.Innermost()
		})
	})
}

// all yields the answers.
func (l *taskAnswers) all(yield func(taskAnswer) bool) {
	for c := l.from(0); c.Peek() != nil; c.Next() {
		if !yield(*c.Peek()) {
			return
		}
	}
}

// Answers are read from any sample on, from memory and from disk.
func TestTaskAnswers(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	aside := &spool.Spool{Memory: 1, Create: func() (spool.File, error) { return file, nil }}
	for _, s := range []*spool.Spool{nil, aside} {
		for _, n := range []int{0, 1, 5000, 20_000} {
			l := &taskAnswers{list: spool.ListIn[taskAnswer](s)}
			for i := range n {
				l.add(3*i+1, profile.StackID(i), 0)
			}
			require.Equal(t, n, l.len())
			for _, from := range []int{0, 1, 2, 3, 4095, 12_288, 12_289, 12_290, 3*n - 3, 3*n - 2, 3 * n, 5 * n} {
				c := l.from(from)
				for i := max(0, (from+1)/3); i < n; i++ {
					require.Equal(t, &taskAnswer{int32(3*i + 1), profile.StackID(i), 0}, c.Peek(), from)
					c.Next()
				}
				require.Nil(t, c.Peek())
			}
		}
	}
	assert.True(t, aside.InUse())
	var none *taskAnswers
	assert.Zero(t, none.len())
	c := none.from(7)
	assert.Nil(t, c.Peek())
}
