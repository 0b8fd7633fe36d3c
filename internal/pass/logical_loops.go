package pass

import (
	"maps"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// Parallel.ForEachAsync and ForAsync have several workers, async methods that the pool runs and nobody
// awaits. Their caller awaits a task that the last of them sets when it is done, so events tell of that
// one only. The others run the same code for each element: they are awaited by those who await all
// loops that do.

// loops are what is known of such loops.
type loops struct {
	workers map[profile.MethodID]bool // their bodies
	ends    []join                    // the worker that was the last of a loop, and the task that the loop's caller awaits
}

// findLoops notes the bodies of workers.
func (w *rewriter) findLoops() {
	w.loops.workers = map[profile.MethodID]bool{}
	for m := range profile.MethodID(w.tab.Methods()) {
		name := nameOf(w.tab.MethodAt(m))
		if strings.HasPrefix(name, "System.Threading.Tasks.Parallel+") && isBody(name) {
			w.loops.workers[m] = true
		}
	}
}

// learnWorker takes what the method in frame f awaits: a worker awaits what it called for an element.
func (w *rewriter) learnWorker(m *profile.TaskMark, f profile.FrameID) {
	if !w.loops.workers[w.tab.Method(f)] {
		return
	}
	if _, ok := w.workers[m.Other]; !ok {
		w.workers[m.Other] = noMethod
	}
	if c := w.created[m.Task]; c.seen && c.frame != w.unknown {
		// It also awaits the next element, and its turn to fetch that.
		if called := w.tab.Method(c.frame); !w.loops.workers[called] && !w.iterators[called] {
			w.workers[m.Other] = called
		}
	}
}

// learnLoop takes what tells those who wait for a task: a worker does that at the end of its loop.
func (w *rewriter) learnLoop(s *profile.Sample, at *atTask) {
	if len(w.loops.workers) == 0 || at.Own.Other == runs {
		return
	}
	b := w.innermostBody(s.Stack)
	if b == 0 || !w.loops.workers[w.tab.Method(w.tab.Frame(b))] || !w.isResumed(b) {
		return
	}
	if task := at.Task(b, w.resumer(b)); task != 0 && task != at.Own.Task {
		w.loops.ends = append(w.loops.ends, join{task, at.Own.Task})
	}
}

// joinWorkers finds who awaits the loops.
func (w *rewriter) joinWorkers() {
	ends := map[profile.MethodID][]uint32{} // by what is run for an element: the tasks of such loops
	var order []profile.MethodID
	for _, j := range w.loops.ends {
		m, ok := w.workers[j.task]
		if !ok || m == noMethod || !w.awaited(j.by) {
			continue
		}
		if a, ok := w.awaits[j.by]; ok && a.frame != noFrame && w.loops.workers[w.tab.Method(a.frame)] {
			continue // workers wait for each other, to fetch elements
		}
		if len(ends[m]) == 0 {
			order = append(order, m)
		}
		ends[m] = append(ends[m], j.by)
		if !w.awaited(j.task) {
			w.awaits[j.task] = await{by: j.by, frame: noFrame}
		}
	}
	// Of a loop inside another one those who wait are known when those of the outer one are.
	for range maxLoops {
		found := map[profile.MethodID]profile.StackID{}
		for _, m := range order {
			found[m] = w.common(ends[m])
		}
		clear(w.prefixes)
		clear(w.memo)
		if maps.Equal(found, w.above) {
			break
		}
		w.above = found
	}
}

// maxLoops is how many loops inside each other are followed.
const maxLoops = 8

// common returns who awaits the tasks, as far as it is the same methods for all of them, below the frame for
// those who are not known. It is the stack of the task of which most is known.
func (w *rewriter) common(tasks []uint32) profile.StackID {
	var most profile.StackID
	for _, t := range tasks {
		if id := w.awaiters(t, noMethod); most == 0 || w.tab.Depth(id) > w.tab.Depth(most) {
			most = id
		}
	}
	n := w.tab.Depth(most)
	for _, t := range tasks {
		n = min(n, w.agree(most, w.awaiters(t, noMethod)))
	}
	if n == w.tab.Depth(most) {
		return most
	}
	w.path = w.path[:0]
	for s := most; len(w.path) < n; s = w.tab.Parent(s) {
		w.path = append(w.path, w.tab.Frame(s))
	}
	id := w.tab.Push(0, w.unknown)
	for _, f := range slices.Backward(w.path) {
		id = w.tab.Push(id, f)
	}
	return id
}

// agree returns how many of the innermost methods of s are those of other: all where other says no more. A method
// that was compiled anew has other frames.
func (w *rewriter) agree(s, other profile.StackID) int {
	for n := 0; ; n++ {
		if s == other || other != 0 && w.tab.Frame(other) == w.unknown {
			return w.tab.Depth(s) + n
		}
		if s == 0 || other == 0 || w.tab.Method(w.tab.Frame(s)) != w.tab.Method(w.tab.Frame(other)) {
			return n
		}
		s, other = w.tab.Parent(s), w.tab.Parent(other)
	}
}

// aboveLoop returns those who await the loops that run m for each element.
func (w *rewriter) aboveLoop(m profile.MethodID) profile.StackID {
	if id, ok := w.above[m]; ok {
		return id
	}
	return w.tab.Push(0, w.unknown)
}

// worker returns the innermost body of a worker in s where it is known who awaits its loop, else 0.
func (w *rewriter) worker(s profile.StackID) profile.StackID {
	if len(w.above) == 0 {
		return 0
	}
	for b := s; b != 0; b = w.tab.Parent(b) {
		if w.loops.workers[w.tab.Method(w.tab.Frame(b))] {
			if _, ok := w.above[w.calledBy(s, b)]; ok {
				return b
			}
			break
		}
	}
	return 0
}

// calledBy returns the async method in s that the one at b called, noMethod if there is none.
func (w *rewriter) calledBy(s, b profile.StackID) profile.MethodID {
	m := noMethod
	for ; s != b; s = w.tab.Parent(s) {
		if w.roleAt(s)&body != 0 {
			m = w.tab.Method(w.tab.Frame(s))
		}
	}
	return m
}
