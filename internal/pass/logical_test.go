package pass

import (
	"context"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

const (
	dispatcher = "System.Private.CoreLib!System.Threading.ThreadPoolWorkQueue.Dispatch()"
	write      = "System.Private.CoreLib!System.Diagnostics.Tracing.EventSource.WriteEvent(int32)"
	onAwait    = "System.Private.CoreLib!System.Runtime.CompilerServices.TaskAwaiter.OutputWaitEtwEvents(class Task)"
	start      = "System.Private.CoreLib!System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start(!!0&)"
	continuing = "System.Private.CoreLib!System.Threading.Tasks.Task.RunContinuations(class System.Object)"
	execute    = "System.Private.CoreLib!System.Threading.Tasks.Task.ExecuteWithThreadLocal(class Task&)"
	invoke     = "System.Private.CoreLib!System.Threading.Tasks.Task.InnerInvoke()"
	waitFor    = "System.Private.CoreLib!System.Threading.Tasks.Task.Wait()"
	helpers    = "System.Private.CoreLib!System.Runtime.CompilerServices.AsyncHelpers+ThunkTaskCore.MoveNext(!!0)"
)

func box(method string) string {
	return "System.Private.CoreLib!System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.Int64,App.T+<" + method + ">d__1].MoveNext(class Thread)"
}

func move(method string) string { return "App!App.T+<" + method + ">d__1.MoveNext()" }

// A recorder makes a trace of one process.
type recorder struct {
	p      *profile.Profile
	frames map[string]profile.FrameID
	at     int64
}

func record() *recorder {
	return &recorder{
		p:      &profile.Profile{Table: profile.NewTable(), Processes: []*profile.Process{{PID: 1}}},
		frames: map[string]profile.FrameID{},
	}
}

func (r *recorder) thread() *profile.Thread {
	t := &profile.Thread{Process: r.p.Processes[0], TID: int64(len(r.p.Threads) + 1)}
	r.p.Threads = append(r.p.Threads, t)
	return t
}

func (r *recorder) stack(names ...string) profile.StackID {
	s := profile.StackID(0)
	for _, n := range names {
		f, ok := r.frames[n]
		if !ok {
			m := profile.Method{Name: n}
			for i := range n {
				if n[i] == '!' {
					m = profile.Method{Module: n[:i], Name: n[i+1:]}
					break
				}
			}
			f = r.p.Table.AddFrame(profile.Frame{Method: r.p.Table.AddMethod(m)})
			r.frames[n] = f
		}
		s = r.p.Table.Push(s, f)
	}
	return s
}

func (r *recorder) sample(t *profile.Thread, names ...string) {
	r.at += 1e6
	t.Samples.Append(profile.Sample{Time: r.at, Stack: r.stack(names...)})
}

func (r *recorder) event(t *profile.Thread, kind profile.TaskKind, task, other uint32, names ...string) {
	r.at += 1e6
	t.Tasks.Append(profile.TaskMark{Sample: int32(t.Samples.Len()), Stacked: true, Kind: kind, Task: task, Other: other})
	t.Samples.Append(profile.Sample{Time: r.at, Type: profile.SampleEvent, Stack: r.stack(append(slices.Clip(names), write)...)})
}

// stacks are the names of the samples of t that are no events.
func (r *recorder) stacks(t *profile.Thread) (out [][]string) {
	for _, s := range t.Samples.All() {
		if s.Type == profile.SampleEvent {
			continue
		}
		var names []string
		for _, f := range r.p.Table.AppendFrames(nil, s.Stack) {
			names = append(names, r.p.Table.MethodOf(f).Full())
		}
		out = append(out, names)
	}
	return out
}

// leave lets Outer call Middle and Middle call Inner, which awaits: each is left in turn.
func (r *recorder) leave(t *profile.Thread, caller ...string) {
	outer := append(caller, "App!App.T.Outer()", start, move("Outer"))
	middle := append(slices.Clip(outer), "App!App.T.Middle(int32)", start, move("Middle"))
	inner := append(slices.Clip(middle), "App!App.T.Inner()", start, move("Inner"))
	r.sample(t, append(slices.Clip(inner), "App!App.Work()")...)
	r.event(t, profile.TaskCreated, 1, 0, append(slices.Clip(inner), onAwait)...)
	r.event(t, profile.TaskCreated, 2, 0, append(slices.Clip(middle), onAwait)...)
	r.event(t, profile.TaskAwaited, 1, 2, append(slices.Clip(middle), onAwait)...)
	r.event(t, profile.TaskCreated, 3, 0, append(slices.Clip(outer), onAwait)...)
	r.event(t, profile.TaskAwaited, 2, 3, append(slices.Clip(outer), onAwait)...)
}

// resume resumes Inner and, when it is done, Middle inside of it.
func (r *recorder) resume(t *profile.Thread) {
	inner := []string{dispatcher, box("Inner")}
	r.event(t, profile.TaskBegins, 1, 2, inner...)
	inner = append(inner, move("Inner"))
	r.sample(t, append(slices.Clip(inner), "App!App.Work()")...)
	middle := append(slices.Clip(inner), continuing)
	r.event(t, profile.TaskBegins, 1, 0, middle...)
	middle = append(middle, box("Middle"))
	r.event(t, profile.TaskBegins, 2, 2, middle...)
	r.sample(t, append(slices.Clip(middle), move("Middle"), "App!App.Work()")...)
	r.event(t, profile.TaskEnds, 0, 2, middle...)
	r.event(t, profile.TaskEnds, 0, 0, inner...)
	r.event(t, profile.TaskEnds, 0, 2, dispatcher, box("Inner"))
}

func TestRewrite(t *testing.T) {
	r := record()
	a, b := r.thread(), r.thread()
	r.leave(a, "App!App.Main()")
	r.event(a, profile.TaskAwaited, 3, 0, "App!App.Main()", "App!App.Shell()", waitFor)
	r.resume(b)
	r.sample(b, dispatcher)
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{
		{"App!App.Main()", move("Outer"), move("Middle"), move("Inner"), "App!App.Work()"},
	}, r.stacks(a), "what begins a method is not shown")
	assert.Equal(t, [][]string{
		{"App!App.Main()", "App!App.Shell()", move("Outer"), move("Middle"), move("Inner"), "App!App.Work()"},
		{"App!App.Main()", "App!App.Shell()", move("Outer"), move("Middle"), "App!App.Work()"},
		{dispatcher},
	}, r.stacks(b), "those who wait, from the thread that does to the method that runs")
}

// A thread that waits may have a stack that was cut: who calls it is not known then.
func TestRewriteCutWait(t *testing.T) {
	const deep, lost = "App!App.Deep()", profile.Bridge
	for _, tt := range []struct {
		name   string
		stack  []string
		repair bool
		want   []string
	}{
		{"cut", []string{deep}, false, []string{profile.CallerUnknown, deep}},
		{"with a bridge", []string{"App!App.Main()", lost, deep}, true, []string{profile.CallerUnknown, deep}},
		{"repaired", []string{"App!App.Main()", deep}, true, []string{"App!App.Main()", deep}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := record()
			a, b := r.thread(), r.thread()
			r.frames[lost] = BridgeFrame(r.p.Table)
			r.leave(a, "App!App.Main()")
			r.event(a, profile.TaskAwaited, 3, 0, append(slices.Clip(tt.stack), waitFor)...)
			last := a.Samples.Len() - 1
			i := -1
			a.Samples.Change(func(s *profile.Sample) bool {
				if i++; i == last {
					s.Cut = profile.CutDepth
				}
				return i == last
			})
			if tt.repair {
				a.Repairs.Append(profile.Repair{Index: last, How: "before"})
			}
			r.resume(b)
			LogicalStacks(r.p)
			assert.Equal(t, append(slices.Clip(tt.want), move("Outer"), move("Middle"), move("Inner"), "App!App.Work()"), r.stacks(b)[0])
		})
	}
}

// A task of the pool that a method awaits runs below it.
func TestRewriteTask(t *testing.T) {
	r := record()
	a, b := r.thread(), r.thread()
	outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
	r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(outer), "System.Private.CoreLib!System.Threading.Tasks.Task.Run()")...)
	r.event(a, profile.TaskCreated, 2, 0, append(slices.Clip(outer), onAwait)...)
	r.event(a, profile.TaskAwaited, 1, 2, append(slices.Clip(outer), onAwait)...)
	r.event(b, profile.TaskBegins, 1, 2, dispatcher, execute)
	r.sample(b, dispatcher, execute, invoke, "App!App.Lambda()")
	r.event(b, profile.TaskEnds, 0, 2, dispatcher, execute)
	r.event(b, profile.TaskBegins, 9, 2, dispatcher, execute)
	r.sample(b, dispatcher, execute, invoke, "App!App.Other()")
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{
		{"App!App.Main()", profile.Started, move("Outer"), "App!App.Lambda()"},
		{dispatcher, execute, invoke, "App!App.Other()"},
	}, r.stacks(b), "what nobody awaits is shown as it runs")
}

// What a task of the pool waits for runs below those who await that task, whichever thread comes first.
func TestRewriteTaskThatWaits(t *testing.T) {
	r := record()
	b, a := r.thread(), r.thread()
	outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
	lambda := []string{dispatcher, execute, invoke, "App!App.Lambda()"}
	inner := append(slices.Clip(lambda), "App!App.T.Inner()", start, move("Inner"))
	r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(outer), "System.Private.CoreLib!System.Threading.Tasks.Task.Run()")...)
	r.event(a, profile.TaskCreated, 2, 0, append(slices.Clip(outer), onAwait)...)
	r.event(a, profile.TaskAwaited, 1, 2, append(slices.Clip(outer), onAwait)...)
	r.event(b, profile.TaskBegins, 1, 2, dispatcher, execute)
	r.event(b, profile.TaskCreated, 3, 0, append(slices.Clip(inner), onAwait)...)
	r.event(b, profile.TaskAwaited, 3, 0, append(slices.Clip(lambda), waitFor)...)
	r.event(a, profile.TaskBegins, 3, 2, dispatcher, box("Inner"))
	r.sample(a, dispatcher, box("Inner"), move("Inner"), "App!App.Work()")
	r.event(a, profile.TaskEnds, 0, 2, dispatcher, box("Inner"))
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{{"App!App.Main()", profile.Started, move("Outer"), "App!App.Lambda()", move("Inner"), "App!App.Work()"}}, r.stacks(a))
}

const (
	sourceMove = "App!App.T+<Values>d__1.System.Collections.Generic.IAsyncEnumerator<System.Int32>.MoveNextAsync()"
	whenAll    = "System.Private.CoreLib!System.Threading.Tasks.Task+WhenAllPromise.Invoke(class System.Threading.Tasks.Task)"
	runTask    = "System.Private.CoreLib!System.Threading.Tasks.Task.Run(class System.Func`1<class System.Threading.Tasks.Task>)"
)

// A task that is joined with others is awaited by what awaits all of them: when those who wait for it are
// told, an event tells that something depends on it, or others are told of that.
func TestRewriteJoins(t *testing.T) {
	for _, kind := range []profile.TaskKind{profile.TaskJoins, profile.TaskBegins} {
		r := record()
		a, b := r.thread(), r.thread()
		outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
		r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(outer), "App!App.T.Inner()", start, move("Inner"), onAwait)...)
		r.event(a, profile.TaskCreated, 2, 0, append(slices.Clip(outer), "System.Private.CoreLib!System.Threading.Tasks.Task.WhenAll()")...)
		r.event(a, profile.TaskCreated, 3, 0, append(slices.Clip(outer), onAwait)...)
		r.event(a, profile.TaskAwaited, 2, 3, append(slices.Clip(outer), onAwait)...)
		r.event(b, profile.TaskBegins, 1, 2, dispatcher, box("Inner"))
		body := []string{dispatcher, box("Inner"), move("Inner")}
		r.sample(b, append(slices.Clip(body), "App!App.Work()")...)
		r.event(b, profile.TaskCompleted, 1, 0, body...)
		r.event(b, profile.TaskBegins, 1, 0, append(slices.Clip(body), continuing)...)
		r.event(b, kind, 2, 0, append(slices.Clip(body), continuing, whenAll)...)
		r.event(b, profile.TaskEnds, 0, 0, append(slices.Clip(body), continuing)...)
		r.event(b, profile.TaskEnds, 0, 2, dispatcher, box("Inner"))
		LogicalStacks(r.p)
		assert.Equal(t, [][]string{{"App!App.Main()", profile.Started, move("Outer"), move("Inner"), "App!App.Work()"}}, r.stacks(b), kind)
	}
}

// Task.Run of an async method makes two tasks, of which one runs what calls the method, and the other
// one is awaited.
func TestRewriteRun(t *testing.T) {
	for _, same := range []bool{true, false} {
		r := record()
		a, b := r.thread(), r.thread()
		outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
		run := append(slices.Clip(outer), runTask)
		r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(run), "System.Private.CoreLib!System.Threading.Tasks.Task.ScheduleAndStart(bool)")...)
		if !same {
			run = append(slices.Clip(outer), "App!App.Other()", runTask)
		}
		r.event(a, profile.TaskCreated, 2, profile.TaskUnwrap, run...)
		r.event(a, profile.TaskCreated, 3, 0, append(slices.Clip(outer), onAwait)...)
		r.event(a, profile.TaskAwaited, 2, 3, append(slices.Clip(outer), onAwait)...)
		r.event(b, profile.TaskBegins, 1, 2, dispatcher, execute)
		r.sample(b, dispatcher, execute, invoke, "App!App.Lambda()")
		r.event(b, profile.TaskEnds, 0, 2, dispatcher, execute)
		LogicalStacks(r.p)
		want := []string{"App!App.Main()", move("Outer"), profile.Started, "App!App.Lambda()"}
		if same {
			want = []string{"App!App.Main()", profile.Started, move("Outer"), "App!App.Lambda()"}
		}
		assert.Equal(t, [][]string{want}, r.stacks(b))
	}
}

// Task.Factory.StartNew(...).Unwrap() makes them by two calls: what it returned and what stands for that in
// the end tell that they belong together.
func TestRewriteUnwrap(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		r := record()
		a, b := r.thread(), r.thread()
		outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
		r.event(a, profile.TaskCreated, 2, profile.TaskUnwrap, append(slices.Clip(outer), "App!App.Extensions()", runTask)...)
		r.event(a, profile.TaskCreated, 3, 0, append(slices.Clip(outer), onAwait)...)
		r.event(a, profile.TaskAwaited, 2, 3, append(slices.Clip(outer), onAwait)...)
		run := []string{dispatcher, execute}
		r.event(b, profile.TaskBegins, 1, 2, run...)
		lambda := append(slices.Clip(run), invoke, "App!App.Lambda()")
		r.sample(b, lambda...)
		if resumed {
			lambda = append(lambda, box("Other"), move("Other")) // what goes on there returns nothing to the task
		}
		r.event(b, profile.TaskCreated, 4, 0, append(lambda, start, move("Inner"), onAwait)...)
		r.event(b, profile.TaskEnds, 0, 2, run...)
		body := []string{dispatcher, box("Inner"), move("Inner")}
		r.event(b, profile.TaskBegins, 4, 2, body[:2]...)
		r.event(b, profile.TaskBegins, 4, 0, append(slices.Clip(body), continuing)...)
		r.event(b, profile.TaskJoins, 2, 0, append(slices.Clip(body), continuing)...)
		r.event(b, profile.TaskEnds, 0, 0, append(slices.Clip(body), continuing)...)
		r.event(b, profile.TaskEnds, 0, 2, body[:2]...)
		LogicalStacks(r.p)
		want := []string{"App!App.Main()", profile.Started, move("Outer"), "App!App.Lambda()"}
		if resumed {
			want = []string{dispatcher, execute, invoke, "App!App.Lambda()"}
		}
		assert.Equal(t, [][]string{want}, r.stacks(b))
	}
}

// The workers of a parallel loop are awaited by what awaits the loop, though the last one alone sets its task:
// before and after they were left, and in a loop inside another one.
func TestRewriteParallelLoop(t *testing.T) {
	const (
		parallel = "System.Threading.Tasks.Parallel!System.Threading.Tasks.Parallel+"
		loop     = parallel + "<>c__53`1+<<ForEachAsync>b__53_0>d[System.Int32].MoveNext()"
		execute  = parallel + "ForEachAsyncState`1[System.Int32].System.Threading.IThreadPoolWorkItem.Execute()"
		complete = parallel + "ForEachAsyncState`1[System.Int32].Complete()"
	)
	loopBox := box("Loop")
	worker := func(r *recorder, th *profile.Thread, task, element uint32, method string) {
		first := []string{dispatcher, execute, start, loop}
		r.sample(th, append(slices.Clip(first), "App!App.T."+method+"()", start, move(method), "App!App.Work()")...)
		r.event(th, profile.TaskCreated, element, 0, append(slices.Clip(first), "App!App.T."+method+"()", start, move(method), onAwait)...)
		r.event(th, profile.TaskCreated, task, 0, append(slices.Clip(first), onAwait)...)
		r.event(th, profile.TaskAwaited, element, task, append(slices.Clip(first), onAwait)...)
	}
	end := func(r *recorder, th *profile.Thread, task, element, sets uint32, method string) {
		body := []string{dispatcher, box(method), move(method)}
		r.event(th, profile.TaskBegins, element, 2, body[:2]...)
		r.sample(th, append(slices.Clip(body), "App!App.Work()")...)
		r.event(th, profile.TaskBegins, element, 0, append(slices.Clip(body), continuing)...)
		body = append(body, continuing, loopBox)
		r.event(th, profile.TaskBegins, task, 2, body...)
		body = append(body, loop)
		if sets != 0 {
			r.event(th, profile.TaskBegins, sets, 0, append(slices.Clip(body), complete, continuing)...)
			r.event(th, profile.TaskEnds, 0, 0, append(slices.Clip(body), complete, continuing)...)
		}
		r.event(th, profile.TaskCompleted, task, 0, body...)
		r.event(th, profile.TaskEnds, 0, 2, body[:len(body)-1]...)
		r.event(th, profile.TaskEnds, 0, 0, body[:len(body)-3]...)
		r.event(th, profile.TaskEnds, 0, 2, body[:2]...)
	}
	wants := func(r *recorder, th *profile.Thread, task, by uint32, stack ...string) {
		r.event(th, profile.TaskCreated, by, 0, append(slices.Clip(stack), onAwait)...)
		r.event(th, profile.TaskAwaited, task, by, append(slices.Clip(stack), onAwait)...)
	}
	r := record()
	a, b := r.thread(), r.thread()
	outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
	r.event(a, profile.TaskAwaited, 2, 0, "App!App.Main()", waitFor)
	wants(r, a, 1, 2, outer...)
	worker(r, b, 5, 7, "Each")
	worker(r, b, 6, 8, "Each")
	wants(r, a, 20, 8, dispatcher, box("Each"), move("Each"))
	worker(r, b, 15, 17, "Inside")
	worker(r, b, 16, 18, "Inside")
	end(r, b, 15, 17, 0, "Inside")
	end(r, b, 16, 18, 20, "Inside")
	end(r, b, 5, 7, 0, "Each")
	end(r, b, 6, 8, 1, "Each")
	LogicalStacks(r.p)
	each := []string{"App!App.Main()", move("Outer"), loop, move("Each"), "App!App.Work()"}
	inside := []string{"App!App.Main()", move("Outer"), loop, move("Each"), loop, move("Inside"), "App!App.Work()"}
	assert.Equal(t, [][]string{each, each, inside, inside, inside, inside, each, each}, r.stacks(b))

	// Of loops in two places that run the same for each element only what they have in common is said.
	r = record()
	a, b = r.thread(), r.thread()
	for i, by := range []string{"Outer", "Other"} {
		n := uint32(i) * 100
		r.event(a, profile.TaskAwaited, n+2, 0, "App!App.Main()", waitFor)
		wants(r, a, n+3, n+2, "App!App.Main()", "App!App.T."+by+"()", start, move(by))
		wants(r, a, n+1, n+3, "App!App.Main()", "App!App.T."+by+"()", start, move(by), "App!App.T.Both()", start, move("Both"))
		worker(r, b, n+5, n+7, "Each")
		worker(r, b, n+6, n+8, "Each")
		end(r, b, n+5, n+7, 0, "Each")
		end(r, b, n+6, n+8, n+1, "Each")
	}
	LogicalStacks(r.p)
	got := r.stacks(b)
	both := []string{profile.CallerUnknown, move("Both"), loop, move("Each"), "App!App.Work()"}
	assert.Equal(t, [][]string{both, both, both}, got[:3])
	assert.Equal(t, []string{"App!App.Main()", move("Outer"), move("Both"), loop, move("Each"), "App!App.Work()"}, got[3], "the worker that ended the loop")
}

// An async iterator is awaited by what its values resume; its first method is one of its state machine.
func TestRewriteIterator(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		r := record()
		a, b := r.thread(), r.thread()
		outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
		values := append(slices.Clip(outer), sourceMove, start, move("Values"))
		r.sample(a, append(slices.Clip(values), "App!App.Work()")...)
		r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(values), onAwait)...)
		r.event(a, profile.TaskCreated, 2, 0, append(slices.Clip(outer), onAwait)...)
		r.event(a, profile.TaskAwaited, 7, 2, append(slices.Clip(outer), onAwait)...)
		r.event(b, profile.TaskBegins, 1, 2, dispatcher, box("Values"))
		body := []string{dispatcher, box("Values"), move("Values")}
		r.sample(b, append(slices.Clip(body), "App!App.Work()")...)
		if resumes {
			const source = "System.Private.CoreLib!System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1[System.Boolean].SignalCompletion()"
			r.event(b, profile.TaskBegins, 2, 2, append(slices.Clip(body), source, box("Outer"))...)
			r.event(b, profile.TaskEnds, 0, 2, append(slices.Clip(body), source, box("Outer"))...)
		}
		r.event(b, profile.TaskCompleted, 1, 0, body...)
		r.event(b, profile.TaskEnds, 0, 2, dispatcher, box("Values"))
		LogicalStacks(r.p)
		assert.Equal(t, [][]string{{"App!App.Main()", move("Outer"), move("Values"), "App!App.Work()"}}, r.stacks(a))
		want := []string{"App!App.Main()", move("Outer"), profile.Started, move("Values"), "App!App.Work()"} // the first value is
		if resumes {
			want = []string{"App!App.Main()", profile.Started, move("Outer"), move("Values"), "App!App.Work()"}
		}
		assert.Equal(t, [][]string{want}, r.stacks(b))
	}
}

// Nobody waited for a task that ended and told nobody. Else somebody may, or does.
func TestRewriteNobody(t *testing.T) {
	for _, tt := range []struct{ over, told bool }{{true, false}, {true, true}, {false, false}} {
		r := record()
		a := r.thread()
		body := []string{dispatcher, box("Inner"), move("Inner")}
		r.event(a, profile.TaskCreated, 1, 0, "App!App.T.Inner()", start, move("Inner"), onAwait)
		r.event(a, profile.TaskAwaited, 8, 1, "App!App.T.Inner()", start, move("Inner"), onAwait)
		r.event(a, profile.TaskBegins, 7, 0, dispatcher, continuing)
		r.event(a, profile.TaskEnds, 0, 0, dispatcher, continuing)
		r.event(a, profile.TaskBegins, 1, 2, dispatcher, box("Inner"))
		r.sample(a, append(slices.Clip(body), "App!App.Work()")...)
		if tt.over {
			r.event(a, profile.TaskCompleted, 1, 0, body...)
		}
		if tt.told {
			r.event(a, profile.TaskBegins, 1, 0, append(slices.Clip(body), continuing)...)
			r.event(a, profile.TaskEnds, 0, 0, append(slices.Clip(body), continuing)...)
		}
		r.event(a, profile.TaskEnds, 0, 2, dispatcher, box("Inner"))
		LogicalStacks(r.p)
		want := []string{move("Inner"), "App!App.Work()"}
		if tt.told || !tt.over {
			want = append([]string{profile.CallerUnknown}, want...)
		}
		assert.Equal(t, [][]string{want}, r.stacks(a), tt)
	}
}

// TestRewriteStarted: above a task that nobody is told to await stands what called the async method, be
// it left itself, run by a pool's thread and resumed, or one that starts itself again and again.
func TestRewriteStarted(t *testing.T) {
	resume := func(r *recorder, th *profile.Thread, task uint32, name string, also func(body []string)) {
		r.event(th, profile.TaskBegins, task, 2, dispatcher, box(name))
		body := []string{dispatcher, box(name), move(name)}
		r.sample(th, append(slices.Clip(body), "App!App.Work()")...)
		if also != nil {
			also(body)
		}
		r.event(th, profile.TaskEnds, 0, 2, dispatcher, box(name))
	}
	inner := func(above ...string) []string {
		return append(above, "App!App.T.Inner()", start, move("Inner"), onAwait)
	}
	awaits := func(r *recorder, th *profile.Thread) { // one that is not of these, so that events tell who awaits whom
		r.event(th, profile.TaskAwaited, 9000, 9001, "App!App.T.Other()", start, move("Other"), onAwait)
	}

	r := record()
	a, b := r.thread(), r.thread()
	outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
	awaits(r, a)
	r.event(a, profile.TaskCreated, 1, 0, inner(append(slices.Clip(outer), "App!App.Lambda()")...)...)
	r.event(a, profile.TaskCreated, 2, 0, append(slices.Clip(outer), onAwait)...)
	r.event(a, profile.TaskAwaited, 2, 0, "App!App.Main()", waitFor)
	resume(r, b, 1, "Inner", nil)
	resume(r, b, 2, "Outer", func(body []string) {
		r.event(b, profile.TaskCreated, 3, 0, inner(body...)...)
		r.event(b, profile.TaskCreated, 4, 0, inner(body...)...)
		r.event(b, profile.TaskAwaited, 4, 2, append(slices.Clip(body), onAwait)...)
	})
	resume(r, b, 3, "Inner", nil)
	resume(r, b, 4, "Inner", nil)
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{
		{"App!App.Main()", move("Outer"), "App!App.Lambda()", profile.Started, move("Inner"), "App!App.Work()"},
		{"App!App.Main()", move("Outer"), "App!App.Work()"},
		{"App!App.Main()", move("Outer"), profile.Started, move("Inner"), "App!App.Work()"},
		{"App!App.Main()", move("Outer"), move("Inner"), "App!App.Work()"},
	}, r.stacks(b))

	// A thread of the pool began with it: who gave it that work is not known.
	r = record()
	a = r.thread()
	awaits(r, a)
	r.event(a, profile.TaskCreated, 1, 0, inner(dispatcher)...)
	r.event(a, profile.TaskCreated, 2, 0, inner(dispatcher, "App!App.Connection.System.Threading.IThreadPoolWorkItem.Execute()")...)
	r.event(a, profile.TaskCreated, 3, 0, inner(dispatcher, "System.Private.CoreLib!System.Threading.TimerQueue.FireNextTimers()", "App!App.OnTimer()")...)
	r.event(a, profile.TaskCreated, 4, 0, dispatcher, "App!App.OnTimer()", runTask)
	for task := range uint32(3) {
		resume(r, a, task+1, "Inner", nil)
	}
	r.event(a, profile.TaskBegins, 4, 2, dispatcher, execute)
	r.sample(a, dispatcher, execute, invoke, "App!App.Lambda()")
	r.event(a, profile.TaskEnds, 0, 2, dispatcher, execute)
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{
		{profile.CallerUnknown, move("Inner"), "App!App.Work()"},
		{profile.CallerUnknown, move("Inner"), "App!App.Work()"},
		{"App!App.OnTimer()", profile.Started, move("Inner"), "App!App.Work()"},
		{"App!App.OnTimer()", profile.Started, "App!App.Lambda()"},
	}, r.stacks(a))

	// What starts itself again.
	r = record()
	a = r.thread()
	awaits(r, a)
	r.event(a, profile.TaskCreated, 1, 0, inner("App!App.Main()")...)
	for task := uint32(1); task < 1000; task++ {
		resume(r, a, task, "Inner", func(body []string) { r.event(a, profile.TaskCreated, task+1, 0, inner(body...)...) })
	}
	LogicalStacks(r.p)
	list := r.stacks(a)
	assert.Equal(t, []string{"App!App.Main()", profile.Started, move("Inner"), profile.Started, move("Inner"), "App!App.Work()"}, list[1])
	for i, s := range list {
		assert.LessOrEqual(t, len(s), maxStarters+3, i)
		assert.Equal(t, []string{profile.Started, move("Inner"), "App!App.Work()"}, s[len(s)-3:], i)
	}
}

// A method that is resumed without an event, as pooled ones are, and what awaits a source of values,
// is not what the event tells of that its resumer runs in.
func TestRewriteResumedInside(t *testing.T) {
	r := record()
	a, b := r.thread(), r.thread()
	outer := []string{"App!App.Main()", "App!App.T.Outer()", start, move("Outer")}
	r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(outer), "App!App.T.Writer()", start, move("Writer"), onAwait)...)
	r.event(a, profile.TaskCreated, 2, 0, append(slices.Clip(outer), onAwait)...)
	r.event(a, profile.TaskAwaited, 1, 2, append(slices.Clip(outer), onAwait)...)
	writer := []string{dispatcher, box("Writer")}
	r.event(b, profile.TaskBegins, 1, 2, writer...)
	writer = append(writer, move("Writer"))
	r.sample(b, append(slices.Clip(writer), "App!App.Work()")...)
	const source = "System.Private.CoreLib!System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1[System.Int32].SetResult(!0)"
	pooled := "System.Private.CoreLib!System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1[System.Int32,App.T+<Pooled>d__1].MoveNext()"
	r.sample(b, append(slices.Clip(writer), source, pooled, move("Pooled"), "App!App.Work()")...)
	r.sample(b, append(slices.Clip(writer), "App!App.Notify()", pooled, move("Pooled"), "App!App.Work()")...)
	r.event(b, profile.TaskEnds, 0, 2, dispatcher, box("Writer"))
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{
		{"App!App.Main()", profile.Started, move("Outer"), move("Writer"), "App!App.Work()"},
		{profile.CallerUnknown, move("Pooled"), "App!App.Work()"},
		{profile.CallerUnknown, move("Pooled"), "App!App.Work()"},
	}, r.stacks(b))
}

// Without events only callers that never vary are believed.
func TestRewriteWithoutEvents(t *testing.T) {
	r := record()
	a := r.thread()
	for range leastSamples {
		r.sample(a, "App!App.Main()", "App!App.T.Outer()", start, move("Outer"), "App!App.T.Inner()", start, move("Inner"))
	}
	r.sample(a, dispatcher, box("Inner"), move("Inner"), "App!App.Work()")
	r.sample(a, dispatcher, box("Other"), move("Other"))
	LogicalStacks(r.p)
	got := r.stacks(a)[leastSamples:]
	assert.Equal(t, [][]string{
		{profile.CallerUnknown, move("Outer"), move("Inner"), "App!App.Work()"},
		{profile.CallerUnknown, move("Other")},
	}, got)

	r = record()
	a = r.thread()
	for i := range 2 * leastSamples {
		by := []string{"Outer", "Inner"}[i%2]
		r.sample(a, "App!App.Main()", "App!App.T."+by+"()", start, move(by), "App!App.T.Inner()", start, move("Inner"))
	}
	r.sample(a, dispatcher, box("Inner"), move("Inner"))
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{{profile.CallerUnknown, move("Inner")}}, r.stacks(a)[2*leastSamples:], "it calls itself: how often is not known")
}

// Runtime async leaves one method on the stack.
func TestRewriteRuntimeAsync(t *testing.T) {
	r := record()
	a := r.thread()
	r.sample(a, dispatcher, helpers, "App!App.T.Inner(int32)", "App!App.Work()")
	r.sample(a, "App!App.Main()", "App!App.T.Inner(int32)", "App!App.Work()")
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{
		{profile.CallerUnknown, "App!App.T.Inner(int32)", "App!App.Work()"},
		{"App!App.Main()", "App!App.T.Inner(int32)", "App!App.Work()"},
	}, r.stacks(a))
}

// A stack that was cut does not show who called, unless a repair put that back.
func TestRewriteCut(t *testing.T) {
	r := record()
	a := r.thread()
	r.sample(a, "App!App.F()", "App!App.G()")
	r.sample(a, "App!App.Main()", profile.Bridge, "App!App.G()")
	r.sample(a, "App!App.Main()", "App!App.F()", "App!App.G()")
	a.Samples.Change(func(s *profile.Sample) bool { s.Cut = profile.CutDepth; return true })
	a.Repairs.Append(profile.Repair{Index: 1, How: "bridge"})
	a.Repairs.Append(profile.Repair{Index: 2, How: "before"})
	r.p.Table.AddMethod(profile.Method{Name: profile.Bridge, Kind: profile.Synthetic})
	LogicalStacks(r.p)
	assert.Equal(t, []string{profile.CallerUnknown, "App!App.F()", "App!App.G()"}, r.stacks(a)[0])
	assert.Equal(t, []string{"App!App.Main()", "App!App.F()", "App!App.G()"}, r.stacks(a)[2])
}

// Tasks that await each other in a circle, and threads that wait for themselves, end.
func TestRewriteCircles(t *testing.T) {
	r := record()
	a, b := r.thread(), r.thread()
	body := []string{dispatcher, box("Inner"), move("Inner")}
	r.event(a, profile.TaskCreated, 1, 0, append(slices.Clip(body), onAwait)...)
	r.event(a, profile.TaskAwaited, 1, 2, append(slices.Clip(body), onAwait)...)
	r.event(a, profile.TaskAwaited, 2, 1, append(slices.Clip(body), onAwait)...)
	r.event(a, profile.TaskBegins, 3, 2, dispatcher, execute)
	r.event(a, profile.TaskAwaited, 3, 0, dispatcher, execute, invoke, "App!App.Self()", waitFor)
	r.event(b, profile.TaskBegins, 1, 2, dispatcher, box("Inner"))
	r.sample(b, body...)
	r.event(b, profile.TaskEnds, 0, 2, dispatcher, box("Inner"))
	r.event(b, profile.TaskBegins, 3, 2, dispatcher, execute)
	r.sample(b, dispatcher, execute, invoke, "App!App.Self()")
	LogicalStacks(r.p)
	got := r.stacks(b)
	assert.Contains(t, got[0], profile.CallerUnknown)
	assert.Less(t, len(got[0]), 10)
	assert.Less(t, len(got[1]), 10)
}

func TestMethodOf(t *testing.T) {
	for name, want := range map[string]string{
		"Lab.Await+<Same>d__9.MoveNext()":                                "Lab.Await.Same",
		"Program+<<Main>$>d__0.MoveNext()":                               "Program.<Main>$",
		"Lab.Req+<>c+<<Run>b__22_8>d.MoveNext()":                         "Lab.Req+<>c.<Run>b__22_8",
		"N.T`1+<M>d__3`2[System.__Canon,N.U`1[System.Int32]].MoveNext()": "N.T`1.M",
		"N.M+VB$StateMachine_0_Later`1[System.__Canon].MoveNext()":       "N.M.Later",
		"N.Client+send@114-1.MoveNext()":                                 "N.Client.send",
		"N.T.MoveNext()":                                                 "",
		"N.T`1+Enumerator[N.Client+send@114-1].MoveNext()":               "",
	} {
		assert.Equal(t, want, methodOf(name), name)
	}
	assert.True(t, isMethod("N.T`1[System.__Canon].M(class System.Object)", "N.T`1.M"))
	assert.False(t, isMethod("N.T`1[System.__Canon].M2(class System.Object)", "N.T`1.M"))
}

// The chains of real recordings: with all task events every method up to the outermost
// stands there, without them nothing is claimed.
func TestRewriteRecordings(t *testing.T) {
	for _, tt := range []struct {
		name    string
		unknown bool
	}{{"await-full", false}, {"await-none", true}, {"await-runtime", true}} {
		t.Run(tt.name, func(t *testing.T) {
			path := tracetest.Corpus(t, "dotnet10", tt.name+".nettrace")
			p, _, err := load.Profile(context.Background(), func() (io.ReadCloser, error) { return os.Open(path) }, &load.Options{Evidence: true})
			require.NoError(t, err)
			LogicalStacks(p)
			known, unknown := 0, 0
			for _, th := range p.Threads {
				for _, s := range th.Samples.All() {
					if s.Type == profile.SampleEvent {
						continue
					}
					frames := p.Table.AppendFrames(nil, s.Stack)
					if len(frames) == 0 {
						continue
					}
					first, last := p.Table.MethodOf(frames[0]).Name, p.Table.MethodOf(frames[len(frames)-1]).Name
					if last != "Lab.Await.Busy(float64)" && (len(frames) < 2 || p.Table.MethodOf(frames[len(frames)-2]).Name != "Lab.Await.Busy(float64)") {
						continue
					}
					if first == profile.CallerUnknown {
						unknown++
					} else {
						known++
						assert.Contains(t, first, "Program.<Main>(", "the thread that waits for all chains, which Task.Run and Task.WhenAll join")
					}
				}
			}
			if tt.unknown {
				assert.Positive(t, unknown)
			} else {
				assert.Greater(t, known, 150)
				assert.Zero(t, unknown)
			}
		})
	}
}

// Two processes number their tasks alike.
func TestRewriteProcesses(t *testing.T) {
	r := record()
	a := r.thread()
	r.leave(a, "App!App.Main()")
	r.p.Processes = append(r.p.Processes, &profile.Process{PID: 2})
	b := r.thread()
	b.Process = r.p.Processes[1]
	r.event(b, profile.TaskBegins, 1, 2, dispatcher, box("Inner"))
	r.sample(b, dispatcher, box("Inner"), move("Inner"), "App!App.Work()")
	r.event(b, profile.TaskEnds, 0, 2, dispatcher, box("Inner"))
	LogicalStacks(r.p)
	assert.Equal(t, [][]string{{profile.CallerUnknown, move("Inner"), "App!App.Work()"}}, r.stacks(b))
}
