// Package waits tells which methods of System.Threading and System.GC stop the thread that calls
// them, and how: the one list of them.
package waits

import "strings"

// A Kind is how a method stops its thread.
type Kind uint8

// The kinds.
const (
	None  Kind = iota
	Spin       // it waits on a CPU
	Near       // of a lock, or of what is waited for: where it is the innermost one that is told, the thread is held to stand still
	Sleep      // for a time
	Lock       // until nobody else has the lock
	Wait       // for an event, a task or another thread
	Park       // for work of the pool
)

// kinds are asked in this order: a method is of the first row whose begins its name begins with, if
// what follows holds one of holds.
var kinds = [...]struct {
	begins string
	holds  []string // nil: anything
	kind   Kind
}{
	{"SpinWait.SpinUntil", nil, Spin},
	{"Thread.Sleep", nil, Sleep},
	{"Thread.Join", nil, Wait},
	{"Thread.StartCore", nil, Wait},
	{"Monitor.Wait", nil, Wait},
	{"Monitor.ObjWait", nil, Wait},
	{"Monitor.", enters, Lock},
	{"Monitor.", nil, Near},
	{"Lock.", enters, Lock},
	{"Lock.", nil, Near},
	{"ReaderWriterLockSlim.", entersOrWaits, Lock},
	{"ReaderWriterLock.", entersOrWaits, Lock},
	{"ReaderWriterLock", nil, Near},
	{"WaitHandle.", entersOrWaits[:1], Wait},
	{"WaitHandle.", nil, Near},
	{"LowLevelLifoSemaphore.Wait", nil, Park},
	{"LowLevelLifoSemaphore.", nil, Near},
	{"LowLevelMonitor.Wait", nil, Wait},
	{"LowLevelMonitor.", nil, Near},
	{"Condition.Wait", nil, Wait},
	{"Condition.", nil, Near},
	{"ManualResetEventSlim.Wait", nil, Wait},
	{"SemaphoreSlim.Wait", nil, Wait},
	{"CountdownEvent.Wait", nil, Wait},
	{"Barrier.SignalAndWait", nil, Wait},
	{"Tasks.Task.Wait", nil, Wait},
	{"Tasks.Task.InternalWait", nil, Wait},
	{"Tasks.Task.SpinThenBlockingWait", nil, Wait},
	{"GC.", []string{"WaitFor"}, Wait}, // finalizers, or a collection that is announced
}

var (
	entersOrWaits = []string{"Wait", "Enter", "Acquire"}
	enters        = entersOrWaits[1:]
)

// Of returns how a method stops its thread, given its full name without arguments:
// System.Threading.Monitor.Wait.
func Of(name string) Kind {
	name, ok := strings.CutPrefix(name, "System.")
	if !ok {
		return None
	}
	if name, ok = strings.CutPrefix(name, "Threading."); !ok && !strings.HasPrefix(name, "GC.") {
		return None
	}
	if strings.Contains(name, "Async") { // WaitAsync, and WaitAsyncCore
		return None // it returns at once
	}
	for i := range kinds {
		row := &kinds[i]
		rest, ok := strings.CutPrefix(name, row.begins)
		if !ok {
			continue
		}
		found := row.holds == nil
		for _, part := range row.holds {
			found = found || strings.Contains(rest, part)
		}
		if found {
			return row.kind
		}
	}
	return None
}
