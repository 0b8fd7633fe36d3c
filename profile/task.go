package profile

import "github.com/tracefix/tracefix/internal/spool"

// TaskMarks are what events tell of the tasks of a thread, in the order in which they were written.
// The zero value is empty and keeps all in memory.
type TaskMarks struct{ beside[TaskMark] }

// TaskMarksIn returns an empty list that may put marks aside.
func TaskMarksIn(spool *Spool) TaskMarks { return TaskMarks{beside[TaskMark]{spool: spool}} }

// Cursor returns what reads the marks beside the samples.
func (l *TaskMarks) Cursor() TaskCursor { return TaskCursor{l.cursor()} }

// A TaskCursor reads marks in order.
type TaskCursor struct{ marks spool.Cursor[TaskMark] }

// Before returns the next mark if its Sample is before another one, nil if it is not or there is
// none. It is valid until the next call.
func (c *TaskCursor) Before(sample int) *TaskMark {
	m := c.marks.Peek()
	if m == nil || int(m.Sample) >= sample {
		return nil
	}
	c.marks.Next()
	return m
}

// A TaskMark is what an event of the task library tells: which task a thread works on, which
// is done, who awaits whom.
type TaskMark struct {
	// Sample is the number of the thread's sample that is the stack of the event, if Stacked,
	// else that of the first sample behind it.
	Sample  int32
	Stacked bool
	Kind    TaskKind
	Task    uint32
	// Other is the task that awaits Task (TaskAwaited), or what work it is (TaskBegins,
	// TaskEnds): 0 tells those who wait, 2 runs it. Of TaskCreated it is TaskDelay, TaskUnwrap or 0.
	Other uint32
}

// TaskDelay is the Other of a TaskMark that tells of a task which ends after some time. What awaits
// it runs before it is told to be done.
const TaskDelay = 1

// TaskUnwrap is the Other of a TaskMark that tells of the task which stands for one that another one returns.
const TaskUnwrap = 2

// A TaskKind is a kind of TaskMark.
type TaskKind uint8

// Kinds of marks. Those that begin and end something nest on their thread.
const (
	TaskCreated   TaskKind = iota // an async method is left for the first time: it is a task now
	TaskCompleted                 // Task is done: what awaits it may run inside
	TaskAwaited                   // Other awaits Task
	TaskResumes                   // what awaits Task goes on
	TaskResumed                   // and has returned
	TaskBegins                    // the thread works on Task
	TaskEnds                      // and has returned; Task is 0
	TaskJoins                     // Task depends on the one whose end the thread is telling those who wait
)
